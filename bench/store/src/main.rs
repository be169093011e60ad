//! `cargo xtask bench store`: the figures of the storage layer, each beside what was promised.
//!
//!     cargo run --profile dist -p bench-store -- [--json] [--quick] [--data FOLDER] [--only KIND]...
//!
//! Real archives are read from the folder `ere` of `--data`, `../shared/data` unless it is given;
//! questions about files that are not there are left out. Everything else is a sample chain, made in
//! a temporary folder (`TMPDIR`, some 3 GB; 20 GB for `--only segments`) that goes with the run.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bench_store::archives::{ERA_BLOCKS, SYNTH, find_real, make_logs_sample, make_sample};
use bench_store::figure::{Figure, count, format_table, to_json};
use bench_store::folder::BenchFolder;
use bench_store::keys::read_keys;
use bench_store::machine::load;
use bench_store::questions::cold_reads::reads_per_answer;
use bench_store::questions::density::{bytes_on_disk, lookup_bytes};
use bench_store::questions::import_speed::import_beside_recovery;
use bench_store::questions::logs::{
    LogQuestions, import_with_index, index_bytes, index_bytes_of_real_chains,
};
use bench_store::questions::memory::{
    memory_of_holding, memory_of_import, memory_of_indexing, tell,
};
use bench_store::questions::segment_count::cost_of_segments;
use bench_store::questions::warm_reads::WarmReads;
use pool::threads_default;
use serde_json::json;

/// Transactions of the store that is held and read.
const STORE_TRANSACTIONS: u64 = 1_000_000;
/// Blocks of the sample chain whose import is timed.
const TIMED_BLOCKS: u64 = 160;

/// The kinds of questions, in the table's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum QuestionKind {
    Density,
    Lookup,
    Warm,
    Cold,
    Memory,
    Speed,
    Logs,
    Segments,
}

const KINDS: [(&str, QuestionKind); 8] = [
    ("density", QuestionKind::Density),
    ("lookup", QuestionKind::Lookup),
    ("warm", QuestionKind::Warm),
    ("cold", QuestionKind::Cold),
    ("memory", QuestionKind::Memory),
    ("speed", QuestionKind::Speed),
    ("logs", QuestionKind::Logs),
    ("segments", QuestionKind::Segments),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match tell(&arguments) {
        Some(told) => told.map(|told| println!("{told}")),
        None => StoreArgs::parse(&arguments).and_then(|request| run(&request)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench store: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
#[derive(Debug)]
struct StoreArgs {
    is_json: bool,
    /// Whether the sample chain is left out, which takes minutes to make.
    is_quick: bool,
    data: PathBuf,
    kinds: Vec<QuestionKind>,
}

impl StoreArgs {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut request = Self {
            is_json: false,
            is_quick: false,
            data: PathBuf::from("../shared/data"),
            kinds: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--json" => request.is_json = true,
                "--quick" => request.is_quick = true,
                "--data" => request.data = PathBuf::from(value()?),
                "--only" => {
                    let name = value()?;
                    let known = KINDS.iter().find(|(known, _)| known == name);
                    let names = KINDS.map(|(name, _)| name).join(", ");
                    let (_, kind) = known.with_context(|| format!("{name} is none of {names}"))?;
                    request.kinds.push(*kind);
                }
                unknown => bail!("unexpected argument {unknown}"),
            }
        }
        if request.kinds.is_empty() {
            // Mainnet's number of keys takes 16 GB and minutes: only who asks for it gets it.
            let usual = KINDS.iter().map(|(_, kind)| *kind);
            request.kinds = usual.filter(|kind| *kind != QuestionKind::Segments).collect();
        }
        Ok(request)
    }

    fn wants(&self, kinds: &[QuestionKind]) -> bool {
        self.kinds.iter().any(|kind| kinds.contains(kind))
    }
}

fn run(request: &StoreArgs) -> Result<()> {
    let begun = Instant::now();
    let load_before = load();
    let work = tempfile::Builder::new().prefix("quipu-bench-").tempdir()?;
    let mut answers = Answers { request, work: work.path(), found: Vec::new(), begun };
    answers.of_real_chains()?;
    answers.of_sample_chain()?;
    answers.of_speed()?;
    answers.of_logs()?;
    answers.of_segments()?;
    let figures = answers.in_order();
    let seconds = begun.elapsed().as_secs();
    if request.is_json {
        let (threads, load_after) = (threads_default().get(), load());
        let json = json!({
            "seconds": seconds,
            "threads": threads,
            "load_before": load_before,
            "load_after": load_after,
            "figures": to_json(&figures),
        });
        println!("{json:#}");
        return Ok(());
    }
    print!("{}", format_table(&figures));
    let show = |load: Option<f64>| load.map_or_else(|| "?".into(), |load| format!("{load:.1}"));
    println!(
        "\n{} figures in {seconds} s on {} threads; load average {} before, {} after",
        count(&figures),
        threads_default(),
        show(load_before),
        show(load())
    );
    Ok(())
}

/// What has been found so far.
struct Answers<'a> {
    request: &'a StoreArgs,
    work: &'a Path,
    found: Vec<(QuestionKind, Figure)>,
    begun: Instant,
}

impl Answers<'_> {
    fn add(&mut self, kind: QuestionKind, figures: impl IntoIterator<Item = Figure>) {
        if self.request.wants(&[kind]) {
            self.found.extend(figures.into_iter().map(|figure| (kind, figure)));
        }
    }

    fn in_order(mut self) -> Vec<Figure> {
        self.found.sort_by_key(|(kind, _)| *kind);
        self.found.into_iter().map(|(_, figure)| figure).collect()
    }

    fn say(&self, what: &str) {
        eprintln!("[{:>4} s] {what}", self.begun.elapsed().as_secs());
    }

    fn of_real_chains(&mut self) -> Result<()> {
        if self.request.wants(&[QuestionKind::Density]) {
            self.say("weighing real blocks");
            let figures = bytes_on_disk(&self.request.data, self.work)?;
            self.add(QuestionKind::Density, figures);
        }
        let Some(file) = find_real(&self.request.data, SYNTH) else { return Ok(()) };
        if self.request.wants(&[QuestionKind::Lookup, QuestionKind::Warm, QuestionKind::Cold]) {
            self.say("reading blocks in mainnet's shape");
            let folder = BenchFolder::at(self.work.join("synth"));
            folder.import(&file, None, threads_default())?;
            self.of_folder(&file.title, &folder, &read_keys(&file, u64::MAX)?.1)?;
            folder.remove()?;
        }
        Ok(())
    }

    fn of_folder(
        &mut self,
        of: &str,
        folder: &BenchFolder,
        keys: &[bench_store::keys::Key],
    ) -> Result<()> {
        self.add(QuestionKind::Lookup, [lookup_bytes(of, folder)?]);
        if self.request.wants(&[QuestionKind::Warm]) {
            self.say("timing warm reads");
            let figures = WarmReads::new(of, folder.view()?, keys)?.ask()?;
            self.add(QuestionKind::Warm, figures);
        }
        if self.request.wants(&[QuestionKind::Cold]) {
            self.say("counting cold reads");
            self.add(QuestionKind::Cold, reads_per_answer(of, folder, keys)?);
        }
        Ok(())
    }

    /// One archive of a whole era: all of it makes one large segment, the first million
    /// transactions of it make many small ones.
    fn of_sample_chain(&mut self) -> Result<()> {
        let wanted =
            [QuestionKind::Lookup, QuestionKind::Warm, QuestionKind::Cold, QuestionKind::Memory];
        if self.request.is_quick || !self.request.wants(&wanted) {
            return Ok(());
        }
        self.say("making a sample era");
        let file = make_sample(&self.work.join("era"), ERA_BLOCKS)?;
        let (range, keys) = read_keys(&file, STORE_TRANSACTIONS)?;
        self.say("importing its first million transactions");
        let folder = BenchFolder::at(self.work.join("million"));
        let of = format!("sample, {} tx in {} blocks", count(&keys), range.count());
        let figure = memory_of_import(&file, Some(range), &folder, &of)?;
        self.add(QuestionKind::Memory, [figure]);
        self.of_folder(&of, &folder, &keys)?;
        if self.request.wants(&[QuestionKind::Memory]) {
            self.say("holding them");
            let held = memory_of_holding(&folder, &of)?;
            folder.remove()?;
            self.say("importing the whole era");
            let folder = BenchFolder::at(self.work.join("whole"));
            let of = format!("sample era, {ERA_BLOCKS} x 200");
            let figure = memory_of_import(&file, None, &folder, &of)?;
            let indexed = figure.value;
            self.add(QuestionKind::Lookup, [lookup_bytes(&of, &folder)?]);
            self.add(QuestionKind::Memory, [figure, held, memory_of_holding(&folder, &of)?]);
            folder.remove()?;
            self.say("importing the whole era without a log index");
            let folder = BenchFolder::at(self.work.join("unindexed"));
            let figure = memory_of_indexing(&file, &folder, &of, indexed)?;
            self.add(QuestionKind::Memory, [figure]);
            folder.remove()?;
        }
        Ok(())
    }

    fn of_logs(&mut self) -> Result<()> {
        if !self.request.wants(&[QuestionKind::Logs]) {
            return Ok(());
        }
        self.say("indexing the logs of real blocks");
        let figures = index_bytes_of_real_chains(&self.request.data, self.work)?;
        self.add(QuestionKind::Logs, figures);
        if let Some(file) = find_real(&self.request.data, SYNTH) {
            self.say("timing imports with a log index and without");
            let figure = import_with_index(&file, self.work)?;
            self.add(QuestionKind::Logs, [figure]);
        }
        if self.request.is_quick {
            return Ok(());
        }
        self.say("making a chain of a million transactions in 10,000 blocks");
        let file = make_logs_sample(&self.work.join("logs-archive"))?;
        let folder = BenchFolder::at(self.work.join("logs"));
        for part in &file {
            folder.import(part, None, threads_default())?;
        }
        let Some(first) = file.first() else { return Ok(()) };
        let of = "sample, 10^6 tx in 10,500 blocks";
        self.add(QuestionKind::Logs, [index_bytes(of, &folder)?]);
        self.say("asking for logs");
        let figures = LogQuestions::ask_all(of, &folder, first)?;
        self.add(QuestionKind::Logs, figures);
        Ok(())
    }

    fn of_segments(&mut self) -> Result<()> {
        if !self.request.wants(&[QuestionKind::Segments]) {
            return Ok(());
        }
        let figures = cost_of_segments(self.work, |what| self.say(what))?;
        self.add(QuestionKind::Segments, figures);
        Ok(())
    }

    fn of_speed(&mut self) -> Result<()> {
        if !self.request.wants(&[QuestionKind::Speed]) {
            return Ok(());
        }
        if let Some(file) = find_real(&self.request.data, SYNTH) {
            self.say("timing imports of blocks in mainnet's shape");
            let figures = import_beside_recovery(&file, self.work)?;
            self.add(QuestionKind::Speed, figures);
        }
        if self.request.is_quick {
            return Ok(());
        }
        self.say("timing imports of a sample chain");
        let file = make_sample(&self.work.join("timed"), TIMED_BLOCKS)?;
        let figures = import_beside_recovery(&file, self.work)?;
        self.add(QuestionKind::Speed, figures);
        Ok(())
    }
}
