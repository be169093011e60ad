//! What `verify` prints: a line for each file, then a sum.

use std::path::Path;
use std::time::Duration;

use archive::{ArchiveError, ArchiveFault, Remedy, shown};
use chain::trust::TrustStatus;
use ingest::prove::ProofReport;
use ingest::survey::{Finding, ProvenArchive};
use serde_json::{Value, json};

use crate::hints::system_hint;
use crate::output::{counted, rate};
use crate::trust_text::{verdict, word};

/// For whom to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs: one object a line.
    Json,
}

/// A refusal and what to do about it.
pub(crate) fn refusal(error: &ArchiveError) -> String {
    let hint = hint(error).map_or(String::new(), |hint| format!("\n  hint: {hint}"));
    format!("error: {error}{hint}")
}

/// For whoever names a file that is none.
pub(crate) const NAME_ARCHIVE_HINT: &str = "if it should be an archive, get it again; otherwise name archives \
     (.era1, .ere, .erae) or folders of them; the genesis.json of a chain goes with --genesis";

pub(crate) fn hint(error: &ArchiveError) -> Option<&'static str> {
    if let ArchiveFault::Io(cause) = error.fault.as_ref()
        && let Some(hint) = system_hint(cause.kind())
    {
        return Some(hint);
    }
    remedy_hint(error.remedy())
}

pub(crate) fn remedy_hint(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        // The error says all that is known.
        Remedy::FixPath => return None,
        Remedy::Retry => "the system could not read it; try again",
        Remedy::Unpack => "the file is compressed: unpack it, and give what comes out",
        Remedy::NameArchive => NAME_ARCHIVE_HINT,
        Remedy::CompareTrust => {
            "the file is of another chain than --network, --genesis, --anchor or the data folder: \
             name the file's own chain, or download the file again if it should be of this one"
        }
        Remedy::ReplaceFile => "the file is damaged or invalid: download it again",
        Remedy::Relabel => "the blocks are proven, but the file is not what its name says",
        Remedy::FixRequest => "ask for the network that the file's name says, or rename the file",
        Remedy::MendList => "mend or remove the checksum list",
        Remedy::AskElsewhere => "another file holds it",
    })
}

/// A line for every finding and, for people, the sum.
pub(crate) fn lines(findings: &[Finding], elapsed: Duration, output: Output) -> Vec<String> {
    let mut lines: Vec<String> = findings
        .iter()
        .map(|finding| match (output, &finding.outcome) {
            (Output::Json, outcome) => to_json(finding, outcome).to_string(),
            (Output::Text, Ok(proven)) => to_text(finding, proven),
            (Output::Text, Err(error)) => {
                let word = if is_unreadable(error) { "UNREADABLE" } else { "FALSE" };
                // The reason was said when the file was read.
                format!("{}  {word}", shown(&finding.path))
            }
        })
        .collect();
    if output == Output::Text {
        lines.push(sum(findings, elapsed));
    }
    lines
}

fn to_text(finding: &Finding, proven: &ProvenArchive) -> String {
    let report = &proven.report;
    let root = match report.accumulator {
        Some(root) => format!("accumulator {root}"),
        None => format!("last hash {}", report.run.last_hash),
    };
    let receipts = if report.has_receipts { "" } else { " without receipts" };
    format!(
        "{}  blocks {}  {}{receipts}  {root}  {}",
        shown(&finding.path),
        report.run.range,
        counted(report.transaction_count, "transaction"),
        verdict(&proven.statuses)
    )
}

fn to_json(finding: &Finding, outcome: &Result<ProvenArchive, ArchiveError>) -> Value {
    let file = shown(&finding.path);
    match outcome {
        Ok(ProvenArchive { report, statuses }) => json!({
            "file": file,
            "proven": true,
            "format": report.format.extension(),
            "first": report.run.range.first(),
            "last": report.run.range.last(),
            "transactions": report.transaction_count,
            "receipts": report.has_receipts,
            "accumulator": report.accumulator,
            "last_hash": report.run.last_hash,
            "status": statuses.iter().map(status_to_json).collect::<Vec<_>>(),
        }),
        Err(error) => json!({
            "file": file,
            "proven": false,
            "readable": !is_unreadable(error),
            "block": error.block,
            "byte": error.offset,
            "error": error.fault.to_string(),
        }),
    }
}

fn status_to_json((range, status): &(chain::BlockRange, TrustStatus)) -> Value {
    json!({ "first": range.first(), "last": range.last(), "status": word(status), "says": status.to_string() })
}

fn sum(findings: &[Finding], elapsed: Duration) -> String {
    let proven = || findings.iter().filter_map(|finding| finding.outcome.as_ref().ok());
    let blocks: u64 = proven().map(|proven| proven.report.run.range.count()).sum();
    let transactions: u64 = proven().map(|proven| proven.report.transaction_count).sum();
    let count = u64::try_from(proven().count()).unwrap_or(u64::MAX);
    let line = format!(
        "{} proven: {}, {} in {:.1} s{}",
        counted(count, "file"),
        counted(blocks, "block"),
        counted(transactions, "transaction"),
        elapsed.as_secs_f64(),
        rate(transactions, "transaction", elapsed)
    );
    let refused = || findings.iter().filter_map(|finding| finding.outcome.as_ref().err());
    let unreadable_count = refused().filter(|error| is_unreadable(error)).count();
    let false_count = refused().count() - unreadable_count;
    let counts = [(false_count, "FALSE"), (unreadable_count, "UNREADABLE")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.fold(line, |line, (count, word)| format!("{line}; {count} {word}"))
}

/// Nothing is known of a file that cannot be read, or whose checksum list cannot: it is not false.
fn is_unreadable(error: &ArchiveError) -> bool {
    let remedy = error.remedy();
    matches!(remedy, Remedy::Retry | Remedy::FixPath | Remedy::Unpack | Remedy::MendList)
}

/// A proven file, before it is known how far it can be trusted.
pub(crate) fn progress(path: &Path, report: &ProofReport) -> String {
    let ProofReport { transaction_count, run, .. } = report;
    let transactions = counted(*transaction_count, "transaction");
    format!("proven: {}  blocks {}  {transactions}", shown(path), run.range)
}
