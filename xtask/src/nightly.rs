//! `cargo xtask nightly`: the home of what takes longer than a change should wait.
//!
//! The plan is printed first, so that a log says what was meant to happen even if it breaks off; the
//! results come last, each with its time. A part that fails does not keep the others from running.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::fuzz::{self, FuzzArgs};
use crate::step::{CiStep, run_all};

/// Ten minutes a target: long enough for inputs that twenty seconds never reach.
pub const SECONDS_DEFAULT: u64 = 600;

/// Read by the tests that damage archives: every bit of every byte, not one bit of each.
const EVERY_BIT: (&str, &str) = ("QUIPU_FLIP_EVERY_BIT", "1");

/// Read by the test that plays random changes against a model: how many runs, ten times the usual.
const MODEL_SEEDS: (&str, &str) = ("QUIPU_MODEL_SEEDS", "3200");

/// Read by the tests that ask for logs at random: how many filters of each chain.
const LOG_FILTERS: (&str, &str) = ("QUIPU_LOG_FILTERS", "100000");

/// Read by the test that proves real chains: every item of them, not a few of each block.
const PROVE_EVERYTHING: (&str, &str) = ("QUIPU_PROVE_EVERYTHING", "1");

/// Read by the test that kills imports: how often.
const IMPORT_KILLS: (&str, &str) = ("QUIPU_KILLS", "100");

/// Read by the script that kills what takes blocks from a node: how often.
const NODE_KILLS: (&str, &str) = ("QUIPU_KILLS", "200");
const NODE_KILLS_SCRIPT: &str = "e2e/kills.sh";

/// The scripts that a change runs only if it touches what they test.
const RARE_SCRIPTS: [&str; 5] = ["operations", "consumers", "merge", "kills", "packaging"];

/// Publishes to a distributed store and reads from it, while parts of both are killed.
const BUCKET_SCRIPT: &str = "e2e/garage.sh";

/// What is run by its name.
#[derive(Debug)]
struct NightlyPart {
    name: &'static str,
    summary: &'static str,
    work: PartWork,
}

#[derive(Debug)]
enum PartWork {
    /// Commands, one after the other.
    Steps(fn(&Path) -> Vec<CiStep>),
    /// These targets.
    Fuzz(&'static [&'static str]),
}

/// In the order in which they run: the shortest first. `.github/workflows/nightly.yml` runs each as a
/// job of its own, and a test holds both lists together. A new long suite becomes a line
/// here.
const PARTS: &[NightlyPart] = &[
    NightlyPart {
        name: "fuzz-upstream",
        summary: "what nodes answer, and lists of mirrors",
        work: PartWork::Fuzz(&["mirror_list", "upstream_block"]),
    },
    NightlyPart {
        name: "fuzz-requests",
        summary: "what clients send",
        work: PartWork::Fuzz(&["http_paths", "pass_through", "rpc_body", "websocket"]),
    },
    NightlyPart {
        name: "fuzz-files",
        summary: "files of a data folder",
        work: PartWork::Fuzz(&["head_log", "index", "manifest", "segment"]),
    },
    NightlyPart {
        name: "fuzz-bucket",
        summary: "texts of a bucket, records of its cache, proof bundles",
        work: PartWork::Fuzz(&["bucket_manifest", "bucket_text", "cache_records", "proof"]),
    },
    NightlyPart {
        name: "fuzz-blocks",
        summary: "parts of blocks in consensus form, and anchors",
        work: PartWork::Fuzz(&["anchor", "body", "header", "receipts", "verify"]),
    },
    NightlyPart {
        name: "fuzz-archives",
        summary: "archives, their names and lists",
        work: PartWork::Fuzz(&[
            "archive",
            "archive_name",
            "checksum_list",
            "epoch_roots",
            "receipts_slim",
        ]),
    },
    NightlyPart {
        name: "proofs",
        summary: "a proof of every transaction, receipt and log of the real chains",
        work: PartWork::Steps(plan_proofs),
    },
    NightlyPart {
        name: "garage",
        summary: "a publisher and three readers of a distributed store, of which each is killed",
        work: PartWork::Steps(plan_garage),
    },
    NightlyPart {
        name: "model",
        summary: "ten times as many random runs of the store against its model, and 100,000 filters",
        work: PartWork::Steps(plan_model),
    },
    NightlyPart {
        name: "kills",
        summary: "100 kills of imports, and 200 beside a node",
        work: PartWork::Steps(plan_kills),
    },
    NightlyPart {
        name: "end-to-end",
        summary: "the end-to-end scripts that a change runs only if it touches what they test",
        work: PartWork::Steps(plan_end_to_end),
    },
    NightlyPart {
        name: "instructions",
        summary: "instructions of the six reads, against the committed numbers",
        work: PartWork::Steps(plan_instructions),
    },
    NightlyPart {
        name: "hostile",
        summary: "every abuse of the hostile-client suite for 20 seconds",
        work: PartWork::Steps(plan_hostile),
    },
    NightlyPart {
        name: "tests",
        summary: "every test in release mode, with every bit of the damaged archives flipped",
        work: PartWork::Steps(plan_tests),
    },
];

fn plan_tests(_root: &Path) -> Vec<CiStep> {
    let (name, value) = EVERY_BIT;
    let tests = ["test", "--workspace", "--locked", "--release", "--no-fail-fast"];
    vec![CiStep::cargo("long tests", &tests).with_env(name, value)]
}

fn plan_model(_root: &Path) -> Vec<CiStep> {
    let (name, value) = MODEL_SEEDS;
    let model = [
        "test",
        "--package",
        "quipu-store",
        "--locked",
        "--release",
        "--test",
        "it",
        "--",
        "model::",
    ];
    let model = CiStep::cargo("the store against its model", &model).with_env(name, value);
    let (name, value) = LOG_FILTERS;
    let filters =
        ["test", "--workspace", "--locked", "--release", "--test", "it", "--", "random_filters"];
    vec![model, CiStep::cargo("log filters against every receipt", &filters).with_env(name, value)]
}

fn plan_proofs(_: &Path) -> Vec<CiStep> {
    let (name, value) = PROVE_EVERYTHING;
    let test = "everything_of_real_chains_is_proven";
    let every = ["test", "--workspace", "--locked", "--release", "--test", "it"];
    let every = [&every[..], &["--", test, "--nocapture"]].concat();
    vec![CiStep::cargo("proofs of real chains", &every).with_env(name, value)]
}

fn plan_kills(root: &Path) -> Vec<CiStep> {
    let (name, value) = IMPORT_KILLS;
    let imports =
        ["test", "--workspace", "--locked", "--release", "--test", "it", "--", "a_killed_import"];
    let imports = CiStep::cargo("kills of imports", &imports).with_env(name, value);
    let (name, value) = NODE_KILLS;
    let beside_a_node =
        CiStep::script("kills beside a node", root, NODE_KILLS_SCRIPT).with_env(name, value);
    vec![imports, beside_a_node]
}

fn plan_garage(root: &Path) -> Vec<CiStep> {
    vec![CiStep::script("a distributed store", root, BUCKET_SCRIPT)]
}

fn plan_end_to_end(root: &Path) -> Vec<CiStep> {
    let scripts = CiStep::script("end-to-end", root, "e2e/run");
    vec![scripts.with_args(&RARE_SCRIPTS)]
}

fn plan_instructions(_: &Path) -> Vec<CiStep> {
    vec![CiStep::cargo("instructions", &["xtask", "instructions"])]
}

fn plan_hostile(_: &Path) -> Vec<CiStep> {
    vec![CiStep::cargo("hostile clients", &["xtask", "bench", "hostile"])]
}

/// What to run and for how long.
#[derive(Debug)]
pub struct NightlyArgs {
    /// Only tells which parts there are.
    is_list: bool,
    /// Time for each fuzz target.
    seconds: u64,
    parts: Vec<&'static NightlyPart>,
}

impl NightlyArgs {
    /// Reads `[--list] [--seconds N] [PART...]`; without a part all of them are meant.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let is_list = arguments.iter().any(|argument| argument == "--list");
        let others: Vec<String> =
            arguments.iter().filter(|argument| *argument != "--list").cloned().collect();
        let FuzzArgs { seconds, targets: names } = FuzzArgs::parse(&others, SECONDS_DEFAULT)?;
        for name in &names {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            PARTS.iter().find(|part| part.name == name).with_context(|| {
                format!("no part of nightly is called {name}; there are {}", known.join(", "))
            })?;
        }
        let is_wanted =
            |part: &&NightlyPart| names.is_empty() || names.iter().any(|name| name == part.name);
        Ok(Self { is_list, seconds, parts: PARTS.iter().filter(is_wanted).collect() })
    }
}

/// How a part went.
#[derive(Debug)]
struct PartResult {
    name: &'static str,
    time: Duration,
    /// Why it failed.
    failure: Option<String>,
}

/// Runs the parts that are named, or tells their names.
pub fn run(root: &Path, request: &NightlyArgs) -> Result<()> {
    for NightlyPart { name, summary, .. } in &request.parts {
        println!("{name:<14} {summary}");
    }
    if request.is_list {
        return Ok(());
    }
    let mut results = Vec::new();
    for part in &request.parts {
        println!("=== {}", part.name);
        let started = Instant::now();
        let outcome = run_part(root, part, request.seconds);
        let failure = outcome.err().map(|error| format!("{error:#}"));
        results.push(PartResult { name: part.name, time: started.elapsed(), failure });
    }
    summarize(&results)
}

fn run_part(root: &Path, part: &NightlyPart, seconds: u64) -> Result<()> {
    match part.work {
        PartWork::Steps(steps) => run_all(root, steps(root)),
        PartWork::Fuzz(targets) => {
            let targets = targets.iter().map(ToString::to_string).collect();
            fuzz::run(root, &FuzzArgs { seconds, targets })
        }
    }
}

/// Prints a line for each part; any failure is one.
fn summarize(results: &[PartResult]) -> Result<()> {
    println!("=== nightly");
    for PartResult { name, time, failure } in results {
        let outcome = failure.as_deref().map_or("ok".to_owned(), |why| format!("FAILED: {why}"));
        println!("{name:<14} {:>6} s  {outcome}", time.as_secs());
    }
    let failed = results.iter().filter(|result| result.failure.is_some());
    let failed: Vec<&str> = failed.map(|result| result.name).collect();
    if failed.is_empty() { Ok(()) } else { bail!("nightly failed: {}", failed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HOUR_SECONDS: u64 = 3600;

    fn read(path: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
    }

    fn parse(arguments: &[&str]) -> Result<NightlyArgs> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        NightlyArgs::parse(&arguments)
    }

    fn names(request: &NightlyArgs) -> Vec<&str> {
        request.parts.iter().map(|part| part.name).collect()
    }

    #[test]
    fn parts_run_by_name_and_all_of_them_without_one() {
        let all = parse(&[]).unwrap();
        assert_eq!((all.parts.len(), all.seconds, all.is_list), (PARTS.len(), 600, false));
        let two = parse(&["tests", "--seconds", "5", "kills", "tests"]).unwrap();
        assert_eq!((names(&two), two.seconds), (vec!["kills", "tests"], 5));
        let listed = parse(&["--list"]).unwrap();
        assert!(listed.is_list && listed.parts.len() == PARTS.len());
        let unknown = parse(&["tests", "test"]).unwrap_err().to_string();
        assert!(unknown.contains("called test;") && unknown.contains("fuzz-files"), "{unknown}");
        for wrong in [&["--lst"][..], &["--seconds"], &["--seconds", "0"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_fuzz_target_is_in_one_part() {
        let manifest = read("fuzz/Cargo.toml");
        let bins = manifest.split("[[bin]]").skip(1);
        let name = |bin: &str| bin.split('"').nth(1).unwrap().to_owned();
        let mut targets: Vec<String> = bins.map(name).filter(|it| it != fuzz::CANARY).collect();
        targets.sort_unstable();
        let mut parted = Vec::new();
        for part in PARTS {
            if let PartWork::Fuzz(targets) = part.work {
                parted.extend_from_slice(targets);
                // On one core, with the canary and some minutes for the build.
                let count = u64::try_from(targets.len()).unwrap();
                assert!(count * SECONDS_DEFAULT + 600 <= HOUR_SECONDS, "{}", part.name);
            }
        }
        parted.sort_unstable();
        assert_eq!(parted, targets);
    }

    /// Where no path had changed, nothing ran them.
    #[test]
    fn every_script_that_runs_by_its_paths_runs_at_night() {
        let run = read("e2e/run");
        let (_, order) = run.split_once("by_path_order=(").unwrap();
        let (order, _) = order.split_once(')').unwrap();
        assert_eq!(order.split_whitespace().collect::<Vec<_>>(), RARE_SCRIPTS);
    }

    #[test]
    fn the_workflow_runs_every_part() {
        let workflow = read(".github/workflows/nightly.yml");
        let listed = workflow.lines().skip_while(|line| line.trim() != "part:").skip(1);
        let listed: Vec<&str> = listed.map_while(|line| line.trim().strip_prefix("- ")).collect();
        assert_eq!(listed, PARTS.iter().map(|part| part.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_part_that_fails_is_named_in_the_end() {
        let result = |name, failure: Option<&str>| PartResult {
            name,
            time: Duration::from_secs(7),
            failure: failure.map(str::to_owned),
        };
        assert!(summarize(&[result("kills", None), result("tests", None)]).is_ok());
        let failed = summarize(&[result("kills", Some("gone")), result("tests", None)]);
        assert_eq!(failed.unwrap_err().to_string(), "nightly failed: kills");
    }
}
