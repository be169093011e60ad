//! What libFuzzer prints, as far as we judge by it.

use std::fmt;

use anyhow::{Context, Result};

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Covered places in the code after the seeds, and at the end.
    coverage: (u64, u64),
    /// Inputs tried.
    runs: u64,
    /// Whether an input made the target abort.
    pub(super) crashed: bool,
}

impl Report {
    /// Reads the status lines, such as `#8192 NEW cov: 14 ft: 21 corp: 7/59b`. A run without
    /// coverage is an error: it would be blind mutation.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let coverages: Vec<u64> = text.lines().filter_map(|line| number(line, "cov: ")).collect();
        let first = coverages.first().context("no coverage reported: not instrumented?")?;
        let last = coverages.last().context("no coverage reported: not instrumented?")?;
        let runs = text.lines().filter_map(|line| number(line, "#")).max().unwrap_or(0);
        Ok(Self { coverage: (*first, *last), runs, crashed: text.contains("deadly signal") })
    }
}

/// The number that follows `mark`, where `mark` begins a status line or stands inside one.
fn number(line: &str, mark: &str) -> Option<u64> {
    if !line.starts_with('#') {
        return None;
    }
    let (_, rest) = line.split_once(mark)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The lines of a failed run that tell a person what to look at, each closed by a semicolon.
pub(super) fn reason(text: &str) -> String {
    let tells = ["panicked at", "ERROR: libFuzzer", "Test unit written to"];
    let told = text.lines().filter(|line| tells.iter().any(|tell| line.contains(tell)));
    told.flat_map(|line| [line.trim(), "; "]).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.coverage;
        write!(f, "{} runs, coverage {first} -> {last}", self.runs)?;
        if self.crashed { write!(f, ", bug found") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_its_coverage_and_whether_it_crashed() {
        let quiet = "INFO: Seed: 1\n#2\tINITED cov: 3 ft: 3 corp: 1/1b\n#77\tDONE   cov: 9 ft: 12";
        let crash = format!("{quiet}\n==1== ERROR: libFuzzer: deadly signal\n");
        let report = |crashed| Report { coverage: (3, 9), runs: 77, crashed };
        assert_eq!(Report::parse(quiet).unwrap(), report(false));
        assert_eq!(Report::parse(&crash).unwrap(), report(true));
    }

    #[test]
    fn a_run_without_coverage_is_no_run() {
        assert!(Report::parse("#2\tINITED exec/s: 0\n#77\tDONE exec/s: 3").is_err());
    }
}
