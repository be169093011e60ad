//! `cargo xtask bench compare`: our store beside redb and RocksDB, holding the same rows and hashes.
//!
//!     cargo run --profile dist --manifest-path bench/compare/Cargo.toml -- \
//!         [--json] [--data FOLDER] [--transactions N]
//!
//! Rows are the transaction, its sender and its receipt without bloom; the index is from the
//! 32-byte hash to a number. Nothing else of a block is in the rivals. The real archive is read from
//! the folder `ere` of `--data`, `../shared/data` unless it is given, and left out where it is not
//! there. Of a sample chain as many blocks are made as hold about N transactions, 200,000 unless it
//! is said, up to one era. All blocks are in memory (some 3 kB a transaction), and the stores in a
//! temporary folder (`TMPDIR`, some 4 kB a transaction) that goes with the run.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]
#![expect(clippy::doc_markdown, reason = "RocksDB is a name, not code")]

mod contents;
mod contest;
mod ours;
mod rival;
mod rival_redb;
mod rival_rocksdb;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bench_store::archives::{ERA_BLOCKS, SYNTH, find_real, make_sample};
use bench_store::figure::{count, format_table, to_json};
use bench_store::machine::load;
use serde_json::json;

const TRANSACTIONS_DEFAULT: u64 = 200_000;
/// Transactions of a block of the sample chain, on average.
const TXS_PER_BLOCK: u64 = 194;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match ContestArgs::parse(&arguments).and_then(|request| run(&request)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench compare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
#[derive(Debug)]
struct ContestArgs {
    is_json: bool,
    data: PathBuf,
    transactions: u64,
}

impl ContestArgs {
    fn parse(arguments: &[String]) -> Result<Self> {
        let data = PathBuf::from("../shared/data");
        let mut request = Self { is_json: false, data, transactions: TRANSACTIONS_DEFAULT };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--json" => request.is_json = true,
                "--data" => request.data = PathBuf::from(value()?),
                "--transactions" => {
                    let value = value()?;
                    let parsed = value.parse().with_context(|| format!("{argument} {value}"));
                    request.transactions = parsed?;
                }
                unknown => bail!("unexpected argument {unknown}"),
            }
        }
        Ok(request)
    }
}

fn run(request: &ContestArgs) -> Result<()> {
    let begun = Instant::now();
    let load_before = load();
    let say = |what: &str| eprintln!("[{:>4} s] {what}", begun.elapsed().as_secs());
    let work = tempfile::Builder::new().prefix("quipu-compare-").tempdir()?;
    let mut figures = Vec::new();
    if let Some(file) = find_real(&request.data, SYNTH) {
        say("blocks in mainnet's shape");
        figures.extend(contest::hold(&file, work.path(), &say)?);
    }
    say("making a sample chain");
    let blocks = request.transactions.div_ceil(TXS_PER_BLOCK).clamp(1, ERA_BLOCKS);
    let file = make_sample(&work.path().join("sample"), blocks)?;
    figures.extend(contest::hold(&file, work.path(), &say)?);
    let (seconds, load_after) = (begun.elapsed().as_secs(), load());
    if request.is_json {
        let json = json!({
            "seconds": seconds,
            "load_before": load_before,
            "load_after": load_after,
            "figures": to_json(&figures),
        });
        println!("{json:#}");
        return Ok(());
    }
    print!("{}", format_table(&figures));
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    println!(
        "\n{} figures in {seconds} s; load average {} before, {} after",
        count(&figures),
        load(load_before),
        load(load_after)
    );
    Ok(())
}
