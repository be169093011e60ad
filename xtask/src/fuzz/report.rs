//! What libFuzzer prints, as far as we judge by it.

use std::fmt;

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Covered places in the code after the seeds, and at the end. None is told of a run whose seed
    /// broke the target, nor of a target without counters.
    pub(super) coverage: Option<(u64, u64)>,
    /// Inputs tried.
    runs: u64,
    /// Whether an input made the target abort.
    pub(super) crashed: bool,
}

impl Report {
    /// Reads the status lines, such as `#8192 NEW cov: 14 ft: 21 corp: 7/59b`.
    pub(super) fn parse(text: &str) -> Self {
        let coverages: Vec<u64> = text.lines().filter_map(|line| number(line, "cov: ")).collect();
        let coverage = coverages.first().copied().zip(coverages.last().copied());
        let runs = text.lines().filter_map(|line| number(line, "#")).max().unwrap_or(0);
        Self { coverage, runs, crashed: text.contains("deadly signal") }
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
        write!(f, "{} runs", self.runs)?;
        if let Some((first, last)) = self.coverage {
            write!(f, ", coverage {first} -> {last}")?;
        }
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
        let report = |crashed| Report { coverage: Some((3, 9)), runs: 77, crashed };
        assert_eq!(Report::parse(quiet), report(false));
        assert_eq!(Report::parse(&crash), report(true));
        let blind = Report::parse("#2\tINITED exec/s: 0\n#77\tDONE exec/s: 3");
        assert_eq!(blind, Report { coverage: None, ..report(false) });
    }
}
