//! `cargo xtask instructions`: how many instructions each read takes, against committed numbers.
//!
//! Times differ from minute to minute; instructions of one thread hardly do. A read is done N times
//! and 2 N times, each in a process of its own and each twice, and the difference is N reads without
//! the beginning and the end. The numbers depend on the compiler and on what the processor offers (callgrind hides
//! AVX-512): they are of one kind of machine, and blessed there.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{cargo, succeed, target};
use crate::tools::{self, Packaged};

/// The committed numbers.
const NUMBERS: &str = "bench/serve/instructions.txt";
/// More than this is a failure; less than this is told.
const TOLERANCE_PERCENT: u64 = 3;

const VALGRIND: Packaged = Packaged { program: "valgrind", package: "valgrind" };

/// The six reads, and two of them hot, with how often each is done.
const READS: [(&str, u64); 8] = [
    ("block-by-number", 16),
    ("block-by-hash-hashes", 16),
    ("transaction-by-hash", 240),
    ("transaction-by-number", 240),
    ("transaction-by-block-hash", 240),
    ("receipt", 240),
    ("hot-transaction", 240),
    ("hot-block", 16),
];

/// The chain that is read.
const SAMPLE: [&str; 6] = ["--block-count", "64", "--txs-per-block", "200", "--payload", "mainnet"];

/// Counts, and compares with the committed numbers, or writes them.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let is_blessed = match arguments {
        [] => false,
        [argument] if argument == "--bless" => true,
        [argument, ..] => bail!("unexpected argument {argument}"),
    };
    tools::provide_packages(&[VALGRIND])?;
    let folder = Programs::build(root)?;
    let mut found = Vec::new();
    for (read, count) in READS {
        let [once, twice] = [count, 2 * count].map(|count| folder.count(read, count));
        let difference = twice?.checked_sub(once?).context("more reads took less")?;
        println!("{read:<26} {:>10} instructions", difference / count);
        found.push((read.to_owned(), difference / count));
    }
    let path = root.join(NUMBERS);
    if is_blessed {
        return fs::write(&path, format_numbers(&found)).context(NUMBERS);
    }
    let committed = fs::read_to_string(&path).context(NUMBERS)?;
    compare(&parse_numbers(&committed)?, &found)
}

/// What is counted, and the data folder that it reads.
struct Programs {
    reads: PathBuf,
    store: PathBuf,
}

impl Programs {
    /// The folder is made anew, in the format of today, by the binary that the tests use: its bytes do not
    /// depend on the profile.
    fn build(root: &Path) -> Result<Self> {
        let build = |args: &[&str]| {
            succeed(cargo().current_dir(root).args(["build", "--locked", "--quiet"]).args(args))
        };
        build(&["--workspace", "--bins", "--tests"])?;
        build(&["--profile", "dist", "--package", "bench-serve", "--bin", "reads"])?;
        let target = target(root);
        let folder = target.join("instructions");
        if folder.exists() {
            fs::remove_dir_all(&folder).context("what the last run left")?;
        }
        let (archives, store) = (folder.join("archives"), folder.join("store"));
        let quipu = target.join("debug/quipu");
        let mut sample = Command::new(&quipu);
        silent(sample.arg("sample").arg("--to").arg(&archives).args(SAMPLE))?;
        let mut import = Command::new(&quipu);
        import.arg("import").arg("--data-dir").arg(&store).arg("--genesis");
        silent(import.arg(archives.join("genesis.json")).arg(&archives))?;
        Ok(Self { reads: target.join("dist/reads"), store })
    }

    /// Instructions of a process that does so many of one read: the smaller of two counts, since what
    /// happens now and then, such as a page that has to be waited for, only ever adds.
    fn count(&self, read: &str, count: u64) -> Result<u64> {
        Ok(self.count_once(read, count)?.min(self.count_once(read, count)?))
    }

    fn count_once(&self, read: &str, count: u64) -> Result<u64> {
        let mut callgrind = Command::new("valgrind");
        callgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        callgrind.arg(&self.reads).arg(&self.store).args([read, &count.to_string()]);
        let output = callgrind.output().context("cannot start valgrind")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{read}: {said}");
        parse_collected(&said).with_context(|| format!("{read}: valgrind said {said}"))
    }
}

fn silent(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", said.trim());
    Ok(())
}

/// `==42== Collected : 123456`
fn parse_collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

fn format_numbers(numbers: &[(String, u64)]) -> String {
    let mut text = String::from(
        "# Instructions of one read, counted by `cargo xtask instructions`; --bless writes them.\n",
    );
    for (read, count) in numbers {
        let _ = writeln!(text, "{read} {count}");
    }
    text
}

fn parse_numbers(text: &str) -> Result<Vec<(String, u64)>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let parse = |line: &str| {
        let (read, count) = line.split_once(' ')?;
        Some((read.to_owned(), count.trim().parse().ok()?))
    };
    lines.map(|line| parse(line).with_context(|| format!("{NUMBERS}: {line}"))).collect()
}

/// Fails where a read takes more than before, and tells where it takes less: then the numbers should
/// be blessed, or the next loss up to here would not be seen.
fn compare(committed: &[(String, u64)], found: &[(String, u64)]) -> Result<()> {
    let mut worse = Vec::new();
    for (read, count) in found {
        let before = committed.iter().find(|(name, _)| name == read);
        let (_, before) = before.with_context(|| format!("{NUMBERS} has no {read}: --bless"))?;
        let (now, then) = (count.saturating_mul(100), before.saturating_mul(100));
        let margin = before.saturating_mul(TOLERANCE_PERCENT);
        if now > then.saturating_add(margin) {
            worse.push(format!("{read} takes {count} instructions, {before} before"));
        } else if now.saturating_add(margin) < then {
            println!("{read} takes {count} instructions, {before} before: --bless keeps that");
        }
    }
    ensure!(worse.is_empty(), "{}", worse.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(read, count)| ((*read).to_owned(), *count)).collect()
    }

    #[test]
    fn a_read_may_take_three_percent_more_and_any_amount_less() {
        let committed = numbers(&[("receipt", 10_000)]);
        for count in [1, 9_000, 10_000, 10_300] {
            compare(&committed, &numbers(&[("receipt", count)])).unwrap();
        }
        let error = compare(&committed, &numbers(&[("receipt", 10_301)])).unwrap_err();
        assert_eq!(error.to_string(), "receipt takes 10301 instructions, 10000 before");
        assert!(compare(&committed, &numbers(&[("block", 1)])).is_err());
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let written = numbers(&[("receipt", 12_345), ("hot-block", 7)]);
        assert_eq!(parse_numbers(&format_numbers(&written)).unwrap(), written);
        assert!(parse_numbers("receipt many").is_err());
    }

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        let said = "==42== Events    : Ir\n==42== Collected : 123456\n==42==\n";
        assert_eq!(parse_collected(said), Some(123_456));
        assert_eq!(parse_collected("==42== Command: reads\n"), None);
    }
}
