//! `reads FOLDER READ COUNT`: so many of one read, without a network, for callgrind to count.
//!
//! No key is asked for twice, but by the reads called hot: what is measured is finding an answer, not
//! having it. The keys come from a service of their own, so that no cache of the one that is asked has
//! seen them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bench_serve::call::{
    block_by_hash, block_by_number, receipt, transaction_by_hash, transaction_in_block,
};
use bench_serve::chain_keys::{BlockKeys, keys_of};
use chain::ChainSpec;
use rpc::{Service, ServiceSettings};
use serde_json::Value;
use store::disk::{Disk, Folder};
use store::read::Inline;
use store::{Limits, Store};
use tokio::runtime::Runtime;

const TIME: Duration = Duration::from_hours(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reads: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let [folder, read, count] = arguments else { bail!("reads FOLDER READ COUNT") };
    let count: usize = count.parse().context("how many")?;
    // A single thread: nothing but the reads happens while they are counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let blocks = Asked::open(folder, &runtime)?.keys()?;
    let bodies = bodies(read, &blocks, count)?;
    let asked = Asked::open(folder, &runtime)?;
    for body in &bodies {
        let answer = asked.ask(body)?;
        let is_value = answer.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{");
        ensure!(is_value, "{body}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

/// The requests: spread over all that there is, none twice.
fn bodies(read: &str, blocks: &[BlockKeys], count: usize) -> Result<Vec<String>> {
    let places: Vec<(&BlockKeys, usize)> = blocks
        .iter()
        .flat_map(|block| (0..block.transactions.len()).map(move |index| (block, index)))
        .collect();
    let hash = |(block, index): &(&BlockKeys, usize)| {
        block.transactions.get(*index).cloned().unwrap_or_default()
    };
    let of_place: Option<fn(&BlockKeys, usize, &str) -> String> = match read {
        "transaction-by-hash" => Some(|_, _, hash| transaction_by_hash(hash)),
        "transaction-by-number" => {
            Some(|block, index, _| transaction_in_block("Number", &block.number, index))
        }
        "transaction-by-block-hash" => {
            Some(|block, index, _| transaction_in_block("Hash", &block.hash, index))
        }
        "receipt" => Some(|_, _, hash| receipt(hash)),
        _ => None,
    };
    let full: Vec<&BlockKeys> = blocks.iter().filter(|it| !it.transactions.is_empty()).collect();
    let hot_place = places.get(places.len() / 2).context("no transaction is there")?;
    let hot_block = full.get(full.len() / 2).context("no block is there")?;
    Ok(match (read, of_place) {
        (_, Some(body)) => {
            let spread = spread(&places, count)?;
            spread.into_iter().map(|it| body(it.0, it.1, &hash(it))).collect()
        }
        ("hot-transaction", None) => vec![transaction_by_hash(&hash(hot_place)); count],
        ("hot-block", None) => vec![block_by_number(&hot_block.number, true); count],
        ("block-by-number", None) => {
            let spread = spread(&full, count)?;
            spread.into_iter().map(|it| block_by_number(&it.number, true)).collect()
        }
        ("block-by-hash-hashes", None) => {
            let spread = spread(&full, count)?;
            spread.into_iter().map(|it| block_by_hash(&it.hash, false)).collect()
        }
        (unknown, None) => bail!("no read is called {unknown}"),
    })
}

/// Transactions are taken this far apart: no two from one page.
const STEP: usize = 24;

/// The first `count` of items that lie a step apart, or where there are too few for that one after the
/// other. Two counts that are compared must look at the same places, and so begin alike.
fn spread<T>(items: &[T], count: usize) -> Result<Vec<&T>> {
    ensure!(count <= items.len(), "{count} of {} would ask for some twice", items.len());
    let step = if count.saturating_mul(STEP) <= items.len() { STEP } else { 1 };
    Ok(items.iter().step_by(step).take(count).collect())
}

struct Asked<'a> {
    service: Service,
    store: Arc<Store>,
    runtime: &'a Runtime,
}

impl<'a> Asked<'a> {
    fn open(folder: &str, runtime: &'a Runtime) -> Result<Self> {
        let disk: Arc<dyn Disk> = Arc::new(Folder::open(folder)?);
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default())?);
        let spec = ChainSpec::bare("sample", None, None);
        let service = Service::new(Arc::clone(&store), spec, ServiceSettings::default());
        Ok(Self { service, store, runtime })
    }

    fn ask(&self, body: &str) -> Result<Vec<u8>> {
        let answer = self.runtime.block_on(self.service.respond(body.as_bytes(), TIME));
        answer.context("a request without an answer")
    }

    fn keys(&self) -> Result<Vec<BlockKeys>> {
        let tip = self.store.view().tip().context("an empty folder")?;
        let read = |number: u64| {
            let answer = self.ask(&block_by_number(&format!("{number:#x}"), false))?;
            let answer: Value = serde_json::from_slice(&answer)?;
            keys_of(&answer).with_context(|| format!("block {number}: {answer}"))
        };
        (0..=tip.get()).map(read).collect()
    }
}
