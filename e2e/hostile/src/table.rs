//! What came out, for people.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_serve::page::{replace_between, wrap};
use bench_serve::report::format_micros;

use crate::good_client::GoodOutcome;

/// Between these lines of `security.md` a run writes.
const LINES: [&str; 2] = ["<!-- bench hostile: begin -->", "<!-- bench hostile: end -->"];
const MEGABYTE: u64 = 1_000_000;

/// What was found beside one abuse.
#[derive(Debug)]
pub(crate) struct AbuseRow {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) connections: usize,
    /// The well-behaved client just before, if its waits are compared.
    pub(crate) alone: Option<GoodOutcome>,
    pub(crate) beside: GoodOutcome,
    /// Bytes of the server's memory: before, at the highest, and after the clients are gone.
    pub(crate) before: u64,
    pub(crate) during: u64,
    pub(crate) after: u64,
    /// The most that there may be.
    pub(crate) ceiling: u64,
    /// What the attacker did.
    pub(crate) done: String,
    /// What must not be.
    pub(crate) problems: Vec<String>,
}

impl AbuseRow {
    /// In one line, for the log.
    pub(crate) fn format(&self) -> String {
        let mut text =
            format!("{}: {}; {} right", self.name, self.done, self.beside.answer_count());
        let _ = write!(text, ", {} refused with 503", self.beside.refused);
        let _ = write!(text, ", {} faults", self.beside.fault_count);
        for (name, outcome) in [("alone", self.alone.as_ref()), ("beside", Some(&self.beside))] {
            let Some(outcome) = outcome else { continue };
            let [p50, p99] = [50, 99].map(|it| micros(outcome.percentile(it)));
            let _ = write!(text, "; {name} p50 {p50}, p99 {p99}");
        }
        let _ = write!(
            text,
            "; RSS {} MB before, {} at the highest (ceiling {}), {} after",
            megabytes(self.before),
            megabytes(self.during),
            megabytes(self.ceiling),
            megabytes(self.after)
        );
        text
    }

    fn ratio(&self) -> Option<f64> {
        let alone = self.alone.as_ref()?.percentile(99).as_secs_f64();
        (alone > 0.0).then(|| self.beside.percentile(99).as_secs_f64() / alone)
    }
}

/// A table in Markdown.
pub(crate) fn format_rows(rows: &[AbuseRow]) -> String {
    let mut text = String::from(
        "| abuse | connections | p99 alone | p99 beside | ratio | 503 | \
         RSS before | during | after |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let alone = row.alone.as_ref().map(|alone| micros(alone.percentile(99)));
        let ratio = row.ratio().map(|ratio| format!("{ratio:.1}"));
        let refused = if row.beside.refused > 0 {
            let all = u64::try_from(row.beside.answer_count()).unwrap_or_default();
            let all = all.saturating_add(row.beside.refused).max(1);
            format!("{} %", row.beside.refused.saturating_mul(100).div_ceil(all))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {refused} | {} MB | {} MB | {} MB |",
            row.words,
            row.connections,
            alone.unwrap_or_default(),
            micros(row.beside.percentile(99)),
            ratio.unwrap_or_default(),
            megabytes(row.before),
            megabytes(row.during),
            megabytes(row.after),
        );
    }
    text
}

/// Puts a section into the folder's `security.md`.
pub(crate) fn write(docs: &Path, section: &str) -> Result<()> {
    let path = docs.join("security.md");
    let name = path.display().to_string();
    let page = fs::read_to_string(&path).with_context(|| name.clone())?;
    let [begin, end] = LINES;
    let page = replace_between(&page, LINES, &wrap(section))
        .with_context(|| format!("{name} has no {begin} before {end}"))?;
    fs::write(&path, page).context(name)
}

/// Bytes in millions, rounded.
pub(crate) fn megabytes(bytes: u64) -> u64 {
    bytes.saturating_add(MEGABYTE / 2) / MEGABYTE
}

fn micros(wait: Duration) -> String {
    format_micros(wait.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_every_column() {
        let mut beside = GoodOutcome::default();
        beside.refused = 1;
        let row = AbuseRow {
            name: "pings",
            words: "PINGs",
            connections: 4,
            alone: None,
            beside,
            before: 20_400_000,
            during: 30_600_000,
            after: 21_000_000,
            ceiling: 300_000_000,
            done: "4 connections".to_owned(),
            problems: Vec::new(),
        };
        assert!(row.format().starts_with("pings: 4 connections; 0 right, 1 refused with 503"));
        let table = format_rows(&[row]);
        let columns = |line: &str| line.matches('|').count();
        assert!(table.lines().all(|line| columns(line) == 10), "{table}");
        assert!(table.contains("| 100 % | 20 MB | 31 MB | 21 MB |"), "{table}");
    }
}
