//! `quipu check --at` and `quipu stat --at`: a bucket, proven and shown.

use std::sync::Arc;

use alloy_primitives::hex;
use chain::BlockRange;
use chain::trust::TrustStatus;
use replica::{BucketFault, Published, check};
use serde_json::{Value, json};
use store::disk::EmptyDisk;
use store::{Limits, MissingFile, PublishedHistory, RunSubject, Store, View};

use crate::Failure;
use crate::bucket::{
    TransferProgress, bucket_failure, bucket_runtime, nothing_published, open_bucket,
    published_history, read_bucket, refuse_unpublished,
};
use crate::interrupt::on_interrupt;
use crate::output::{counted, grouped, note, print_lines};
use crate::trust_text::word;

/// Reads every object of a bucket and holds it against its length and digest.
pub(crate) fn check_bucket(url: &str) -> Result<(), Failure> {
    let bucket = open_bucket("--at", url)?;
    on_interrupt("not everything was checked; nothing was changed", || ())?;
    let progress = TransferProgress::new("checking");
    let runtime = bucket_runtime()?;
    let report = runtime.block_on(check(&bucket, &progress, &|| false));
    let elapsed = progress.finish();
    let mut report = report.map_err(|error| bucket_failure(&error))?;
    let published = runtime.block_on(read_bucket(&bucket))?;
    // What is well and contradicts the rest is shown by no reader.
    let view = shown(&published_history(&published))?;
    for MissingFile { file_name: object, reason, .. } in view.missing() {
        if !report.faults.iter().any(|fault| fault.object.ends_with(object)) {
            report.faults.push(BucketFault { object: object.clone(), reason: reason.clone() });
        }
    }
    let place = bucket.place();
    if report.manifests == 0 && report.faults.is_empty() {
        return Err(nothing_published(&bucket, "--at"));
    }
    for fault in &report.faults {
        eprintln!("error: {place}: {}: {}", fault.object, fault.reason);
    }
    if !report.faults.is_empty() {
        let count = u64::try_from(report.faults.len()).unwrap_or(u64::MAX);
        print_lines(&[format!(
            "{place}: {} not what should be there\n  hint: quipu publish from a folder that holds the \
             same blocks sends what is missing; a damaged object has to be removed first",
            match count {
                1 => "1 object is".to_owned(),
                count => format!("{count} objects are"),
            }
        )])?;
        return Err(Failure::Told);
    }
    Ok(print_lines(&[format!(
        "{place}: all is as its manifests say: {}, {} with {} bytes in {:.1} s; their blocks are proven \
         where they are imported, and by quipu check where they are held",
        counted(report.manifests, "manifest"),
        counted(report.files, "file"),
        grouped(report.bytes),
        elapsed.as_secs_f64()
    )])?)
}

/// Tells what is published in a bucket, as a reader shows it.
pub(crate) fn stat_bucket(url: &str, is_json: bool) -> Result<(), Failure> {
    let bucket = open_bucket("--at", url)?;
    let published = bucket_runtime()?.block_on(read_bucket(&bucket))?;
    refuse_unpublished(&bucket, &published)?;
    let view = shown(&published_history(&published))?;
    let statuses = view.statuses()?;
    let facts = BucketFacts::of(&view, &published);
    if is_json {
        return Ok(print_lines(&[facts.json(bucket.place(), &view, &statuses).to_string()])?);
    }
    for it in view.missing() {
        note(&format!("{} is set aside: {}", it.file_name, it.reason));
    }
    Ok(print_lines(&facts.text(bucket.place(), &view, &statuses))?)
}

/// What a reader without a folder shows of published history.
fn shown(history: &PublishedHistory) -> Result<Arc<View>, Failure> {
    let store = Store::open(Arc::new(EmptyDisk), Arc::new(store::read::Inline), Limits::default())?;
    store.show_published(history);
    Ok(store.view())
}

/// A bucket in numbers.
#[derive(Debug)]
struct BucketFacts {
    manifests: Vec<String>,
    withdrawn: usize,
    segments: u64,
    transactions: u64,
    logs: u64,
    bytes: [(&'static str, u64); 3],
}

impl BucketFacts {
    fn of(view: &View, published: &Published) -> Self {
        let of_runs = |is_of_logs: bool| {
            let runs = view.runs().filter(|run| (run.subject == RunSubject::Logs) == is_of_logs);
            runs.map(|run| run.bytes).fold(0, u64::saturating_add)
        };
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        Self {
            manifests: published.manifests.iter().map(|it| hex::encode(it.name)).collect(),
            withdrawn: published.retracted.len(),
            segments: sum(&mut view.segments().map(|_| 1)),
            transactions: sum(&mut view.segments().map(|it| it.transaction_count)),
            logs: sum(&mut view.segments().map(|it| it.log_count)),
            bytes: [
                ("segments", sum(&mut view.segments().map(|it| it.bytes))),
                ("lookups", of_runs(false)),
                ("log_index", of_runs(true)),
            ],
        }
    }

    fn total(&self) -> u64 {
        self.bytes.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    fn text(
        &self,
        place: &str,
        view: &View,
        statuses: &[(BlockRange, TrustStatus)],
    ) -> Vec<String> {
        let network = view.network();
        let name = network.name.unwrap_or_else(|| "unknown chain".to_owned());
        let id = network.chain_id.map_or(String::new(), |id| format!(", chain id {id}"));
        let blocks = view.coverage().iter().map(BlockRange::count).fold(0, u64::saturating_add);
        let mut lines = vec![format!("{name}{id} in {place}")];
        lines.push(format!(
            "{} blocks, {} transactions, {} logs",
            grouped(blocks),
            grouped(self.transactions),
            grouped(self.logs)
        ));
        for (range, status) in statuses {
            lines.push(format!("  {range}  {}", word(status)));
        }
        lines.push(format!(
            "{} in {}, {} runs; {} bytes",
            counted(self.segments, "segment"),
            counted(u64::try_from(self.manifests.len()).unwrap_or(u64::MAX), "manifest"),
            view.runs().count(),
            grouped(self.total())
        ));
        if self.withdrawn > 0 {
            let count = u64::try_from(self.withdrawn).unwrap_or(u64::MAX);
            lines.push(format!("{} withdrawn", counted(count, "segment")));
        }
        lines
    }

    fn json(&self, place: &str, view: &View, statuses: &[(BlockRange, TrustStatus)]) -> Value {
        let network = view.network();
        let range = |it: &BlockRange| json!({ "first": it.first(), "last": it.last() });
        let statuses = statuses.iter().map(|(it, status)| {
            json!({ "first": it.first(), "last": it.last(), "status": word(status) })
        });
        let set_aside = view.missing().iter();
        let set_aside = set_aside.map(|it| json!({ "object": it.file_name, "reason": it.reason }));
        let bytes = self.bytes.iter().map(|(part, bytes)| ((*part).to_owned(), (*bytes).into()));
        let mut bytes: serde_json::Map<String, Value> = bytes.collect();
        bytes.insert("total".to_owned(), self.total().into());
        json!({
            "place": place,
            "network": network.name,
            "chain_id": network.chain_id,
            "coverage": statuses.collect::<Vec<_>>(),
            "coverage_receipts": view.coverage_receipts().iter().map(range).collect::<Vec<_>>(),
            "transactions": self.transactions,
            "logs": self.logs,
            "segments": self.segments,
            "bytes": bytes,
            "manifests": self.manifests,
            "withdrawn_segments": self.withdrawn,
            "set_aside": set_aside.collect::<Vec<_>>(),
        })
    }
}
