//! What does it cost that a store has mainnet's number of segments and keys, beside a small one?
//!
//! The small store is 20 complete slots of a sample chain; the large one has the same blocks, and
//! 3,000 slots in all ([`crate::mainnet_size`]). Every question is asked of both by turns, through the
//! JSON-RPC service without its cache, and takes CPU time of the thread.
//!
//! What the probe of a lookup run costs is measured where it is done, between the work of requests: the
//! small store is asked with a bare probe of that run before every request, and without. In a loop of
//! its own a probe has the processor's caches to itself, and takes them from nobody.

use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U256};
use anyhow::{Context as _, Result, bail, ensure};
use chain::{BlockNumber, BlockRange, SplitMix64};
use pool::threads_default;
use rpc::Service;
use sample::{Payload, SampleSettings};
use segment::index::{IndexKey, Run, RunOpening, RunSubject, VerifiedBuckets};
use serde_json::json;
use store::disk::Folder;
use store::layout::HeldRange;
use store::read::{Inline, block_on};
use store::{
    CommitFacts, Limits, Reader, RowParts, SLOT_BLOCKS, Store, View, Writer, YOUNG_SLOT_BLOCKS,
};
use tokio::runtime::Runtime;

use crate::archives::{ArchiveFile, write_sample};
use crate::clock::{median, thread_cpu};
use crate::era::read_proven;
use crate::figure::{Figure, FigureUnit, Goal};
use crate::folder::BenchFolder;
use crate::keys::{Key, read_keys};
use crate::mainnet_size::{Size, grow};
use crate::questions::memory::memory_of_segments;
use crate::random::Random;

/// Complete slots of the small store.
const REAL_SLOTS: u64 = 20;
/// Mainnet's size: slots, and transactions in each, as they are on average.
const SIZE: Size =
    Size { slot_count: 3000, gap_slots: 0, keys_per_slot: 1_000_000, is_openable: false };
/// The same for memory and for commits, with room for new blocks: they do not touch the runs of other
/// slots, which are small therefore.
const COMMIT_SIZE: Size =
    Size { slot_count: 3000, gap_slots: 1, keys_per_slot: 1000, is_openable: true };
const TXS_PER_BLOCK: u32 = 4;
const READS: u32 = 5_000;
const ROUNDS: usize = 31;
/// A round is no shorter.
const ROUND_TIME: Duration = Duration::from_millis(30);
const OPENINGS: usize = 5;
/// An answer is made well within it.
const ANSWER_TIME: Duration = Duration::from_secs(8);

/// Makes both stores below `work`, and asks.
pub fn cost_of_segments(work: &Path, mut say: impl FnMut(&str)) -> Result<Vec<Figure>> {
    say("making a sample chain of 20 slots");
    let files = make_archives(&work.join("slots"))?;
    let (Some(first), Some((last, complete))) = (files.first(), files.split_last()) else {
        bail!("no archive was written");
    };
    let small = BenchFolder::at(work.join("small"));
    for file in complete {
        small.import(file, None, threads_default())?;
    }
    say("growing it to mainnet's size: some 16 GB");
    let large = BenchFolder::at(work.join("large"));
    grow(&small, large.path(), SIZE)?;
    say("asking both");
    let keys = read_keys(first, u64::MAX)?.1;
    let mut figures = vec![opening(&[&small, &large])?];
    figures.extend(reads(
        &[AskedStore::open(&small, first)?, AskedStore::open(&large, first)?],
        &keys,
    )?);
    large.remove()?;
    say("committing to both");
    let begin = REAL_SLOTS.saturating_mul(SLOT_BLOCKS);
    let young = BlockRange::from_count(begin, YOUNG_SLOT_BLOCKS).context("a range of blocks")?;
    small.import(last, Some(young), threads_default())?;
    let large = BenchFolder::at(work.join("large-to-commit"));
    grow(&small, large.path(), COMMIT_SIZE)?;
    figures.push(memory_of_segments(&large, &of_both())?);
    figures.extend(commits(&[&small, &large], last, young.end())?);
    Ok(figures)
}

fn make_archives(folder: &Path) -> Result<Vec<ArchiveFile>> {
    let block_count = REAL_SLOTS * SLOT_BLOCKS + 2 * YOUNG_SLOT_BLOCKS;
    let payload = Payload::Small;
    let settings = SampleSettings {
        seed: 1,
        block_count,
        txs_per_block: TXS_PER_BLOCK,
        payload,
        ..SampleSettings::default()
    };
    write_sample(folder, &settings)
}

/// A store that is asked through the service.
struct AskedStore {
    service: Service,
    runtime: Runtime,
    folder: BenchFolder,
    view: Arc<View>,
}

impl AskedStore {
    fn open(folder: &BenchFolder, file: &ArchiveFile) -> Result<Self> {
        let store = open(folder)?;
        let view = store.view();
        let settings =
            rpc::ServiceSettings { cache_bytes_max: 0, ..rpc::ServiceSettings::default() };
        let service = Service::new(store, file.spec.clone(), settings);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { service, runtime, folder: folder.clone(), view })
    }

    /// CPU time of a request, in millionths of a second, by a round that is long enough to be timed.
    /// `before` is done before each of them, and told which it is.
    fn ask(&self, bodies: &[Vec<u8>], mut before: impl FnMut(usize) -> Result<()>) -> Result<f64> {
        self.runtime.block_on(async {
            let begun = thread_cpu();
            let mut count = 0_u32;
            for (index, body) in bodies.iter().enumerate().cycle() {
                let is_whole = count.is_multiple_of(READS) && count > 0;
                if is_whole && thread_cpu().saturating_sub(begun) >= ROUND_TIME {
                    break;
                }
                count = count.saturating_add(1);
                before(index)?;
                let answer = self.service.respond(body, ANSWER_TIME).await;
                let answer = answer.context("no answer")?;
                let has_result = answer.windows(9).take(64).any(|it| it == b"\"result\":");
                ensure!(has_result, "{}", String::from_utf8_lossy(&answer));
                black_box(answer);
            }
            let time = thread_cpu().saturating_sub(begun);
            Ok(time.as_secs_f64() * 1e6 / f64::from(count))
        })
    }
}

fn open(folder: &BenchFolder) -> Result<Arc<Store>> {
    let disk = Arc::new(Folder::open(folder.path())?);
    Ok(Arc::new(Store::open(disk, Arc::new(Inline), Limits::default())?))
}

fn opening(folders: &[&BenchFolder; 2]) -> Result<Figure> {
    let mut times = [Duration::ZERO; 2];
    for (folder, time) in folders.iter().zip(&mut times) {
        let mut all = Vec::new();
        for _ in 0..OPENINGS {
            let begun = Instant::now();
            black_box(open(folder)?.view().tip());
            all.push(begun.elapsed());
        }
        *time = median(all);
    }
    Ok(milliseconds("segments_open", "opening a store", times, 2000.0))
}

/// The time of the large store, with that of the small one beside it.
fn milliseconds(
    name: &'static str,
    question: &str,
    [small, large]: [Duration; 2],
    must: f64,
) -> Figure {
    Figure {
        name,
        question: question.to_owned(),
        of: of_both(),
        value: large.as_secs_f64() * 1e3,
        unit: FigureUnit::Millis,
        goal: Goal::at_most(must, must / 2.0),
        note: format!("{:.1} ms with the small store", small.as_secs_f64() * 1e3),
    }
}

fn of_both() -> String {
    format!("{} slots beside {REAL_SLOTS}", SIZE.slot_count)
}

/// A question, and what it costs in CPU time beyond the probes of lookup runs.
struct StoreQuestion<'a> {
    name: &'static str,
    text: &'static str,
    bodies: Vec<Vec<u8>>,
    probes: Option<(RunSubject, &'a [B256])>,
    /// Whether a limit was promised: to ask more runs costs more.
    is_promised: bool,
}

fn reads(stores: &[AskedStore; 2], keys: &[Key]) -> Result<Vec<Figure>> {
    // One hash in two hundred has a false candidate, here in a segment that is not there. It would
    // take another read of a row.
    let mut reader = Reader::new()?;
    let [_, large] = stores;
    let mut has_no_false_candidate = |hash: B256| {
        let found = large.view.find_transaction(&mut reader, hash, RowParts::Transaction);
        block_on(found).is_ok()
    };
    let reads = usize::try_from(READS)?;
    let mut picks = Random::default().pick(keys, reads.saturating_mul(2));
    picks.retain(|key| has_no_false_candidate(key.hash));
    picks.truncate(reads);
    let body = |method: &str, params: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
            .to_string()
            .into_bytes()
    };
    let each = |method: &str, params: &dyn Fn(&Key) -> serde_json::Value| -> Vec<Vec<u8>> {
        picks.iter().map(|key| body(method, params(key))).collect()
    };
    let number = |key: &Key| format!("{:#x}", key.number.get());
    let hashes: Vec<B256> = picks.iter().map(|key| key.hash).collect();
    let absent = (0..).map(|index| B256::from(U256::from(SplitMix64::at(index)) << 192));
    let absent: Vec<B256> =
        absent.filter(|hash| has_no_false_candidate(*hash)).take(reads).collect();
    ensure!(picks.len() == reads, "too few transactions to ask for");
    let unknown = absent.iter().map(|hash| body("eth_getTransactionByHash", json!([hash])));
    let probes = Some((RunSubject::Transactions, &*hashes));
    let at = |key: &Key| json!([number(key), format!("{:#x}", key.index.get())]);
    let unknown = StoreQuestion {
        name: "segments_unknown",
        text: "eth_getTransactionByHash of an unknown hash, all runs probed",
        bodies: unknown.collect(),
        probes: None,
        is_promised: false,
    };
    let promised = |name, text, bodies, probes| StoreQuestion {
        name,
        text,
        bodies,
        probes,
        is_promised: true,
    };
    let by_number = "eth_getBlockByNumber";
    let by_place = "eth_getTransactionByBlockNumberAndIndex";
    let (by_hash, receipt) = ("eth_getTransactionByHash", "eth_getTransactionReceipt");
    let height = each("eth_blockNumber", &|_| json!([]));
    let tagged = each(by_number, &|_| json!(["earliest", false]));
    let blocks = each(by_number, &|key| json!([number(key), false]));
    let (by_hash, receipts) =
        (each(by_hash, &|key| json!([key.hash])), each(receipt, &|key| json!([key.hash])));
    let beyond = "eth_getTransactionByHash, beyond its probe";
    let receipt_beyond = "eth_getTransactionReceipt, beyond its probe";
    let questions = [
        promised("segments_block_number", "eth_blockNumber", height, None),
        promised("segments_earliest", "eth_getBlockByNumber, a tag", tagged, None),
        promised("segments_block", "eth_getBlockByNumber, hashes", blocks, None),
        promised("segments_transaction_at", by_place, each(by_place, &at), None),
        promised("segments_transaction", beyond, by_hash, probes),
        promised("segments_receipt", receipt_beyond, receipts, probes),
        unknown,
    ];
    questions.iter().map(|question| compare(stores, question)).collect()
}

/// Asks both stores by turns, and compares the least times.
fn compare(stores: &[AskedStore; 2], question: &StoreQuestion<'_>) -> Result<Figure> {
    let mut probes = Vec::new();
    if let Some((subject, _)) = question.probes {
        for store in stores {
            probes.push(RunProbe::open(store, subject)?);
        }
    }
    let hashes = question.probes.map_or(&[][..], |(_, hashes)| hashes);
    let [small_store, _] = stores;
    // Both stores, and the small one with a probe of either's run before every request.
    let (mut least, mut least_probed) = ([f64::MAX; 2], [f64::MAX; 2]);
    for round in 0..=ROUNDS {
        let mut times = Vec::new();
        for store in stores {
            times.push(store.ask(&question.bodies, |_| Ok(()))?);
        }
        for probe in &mut probes {
            times.push(small_store.ask(&question.bodies, |index| probe.of(hashes.get(index)))?);
        }
        // The first round fills caches.
        if round > 0 {
            for (least, time) in least.iter_mut().chain(&mut least_probed).zip(times) {
                *least = least.min(time);
            }
        }
    }
    let [small, large] = least;
    let mut note = format!("{large:.2} us against {small:.2} us");
    let mut value = large / small;
    let goal = if question.is_promised { Goal::at_most(1.05, 1.0) } else { None };
    if !probes.is_empty() {
        let [small_probe, large_probe] = least_probed.map(|probed| probed - small);
        value = (large - large_probe) / (small - small_probe);
        note = format!("{note}; of that the probe {large_probe:.2} us against {small_probe:.2} us");
    }
    Ok(Figure {
        name: question.name,
        question: question.text.to_owned(),
        of: of_both(),
        value,
        unit: FigureUnit::Ratio,
        goal,
        note,
    })
}

/// The lowest run of a store, probed as the store does it: in memory if it fits there.
struct RunProbe {
    run: Run,
    file: File,
    /// The whole run with the buckets that were found right, if it fits.
    kept: Option<(Vec<u8>, VerifiedBuckets)>,
    buffer: Vec<u8>,
}

impl RunProbe {
    fn open(store: &AskedStore, subject: RunSubject) -> Result<Self> {
        let mut runs = store.view.manifest().runs().iter();
        let listed = runs.find(|entry| entry.subject == subject).context("a store without runs")?;
        let file = File::open(store.folder.path().join(&listed.file_name))?;
        let mut buffer = Vec::new();
        let mut opening = RunOpening::new(listed.bytes);
        let run = loop {
            read_range(&file, opening.needed(), &mut buffer)?;
            if let Some(run) = opening.supply(&buffer)? {
                break run;
            }
        };
        let mut kept = None;
        if listed.bytes <= Limits::default().run_bytes_max {
            let mut whole = Vec::new();
            read_range(&file, 0..listed.bytes, &mut whole)?;
            kept = Some((whole, VerifiedBuckets::none_of(run.bucket_count())));
        }
        Ok(Self { run, file, kept, buffer })
    }

    fn of(&mut self, hash: Option<&B256>) -> Result<()> {
        let key = IndexKey::of_hash(hash.context("fewer hashes than requests")?);
        let range = self.run.bucket_range(key);
        let found = if let Some((whole, verified)) = &self.kept {
            let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
            let bucket = whole.get(range).context("a bucket outside of the file")?;
            self.run.probe_kept(key, bucket, verified)?
        } else {
            read_range(&self.file, range, &mut self.buffer)?;
            self.run.probe(key, &self.buffer)?
        };
        black_box(found);
        Ok(())
    }
}

fn read_range(file: &File, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.resize(usize::try_from(range.end.saturating_sub(range.start))?, 0);
    Ok(file.read_exact_at(buffer, range.start)?)
}

/// A young segment is committed to each store, and another process looks at the folder again.
fn commits(folders: &[&BenchFolder; 2], file: &ArchiveFile, first: u64) -> Result<[Figure; 2]> {
    let blocks = read_proven(file)?;
    let range = BlockRange::from_count(first, YOUNG_SLOT_BLOCKS).context("a range of blocks")?;
    let find = |number: BlockNumber| {
        blocks.iter().find(|block| block.header.number == number.get()).cloned()
    };
    let (mut committing, mut looking) = ([Duration::ZERO; 2], [Duration::ZERO; 2]);
    for (index, folder) in folders.iter().enumerate() {
        let reader = open(folder)?;
        let mut writer = Writer::open(open(folder)?, file.spec.clone())?;
        let segment = writer.build(HeldRange { range, has_receipts: true }, &find)?;
        let begun = Instant::now();
        writer.commit(vec![segment], CommitFacts::default())?;
        let committed = begun.elapsed();
        let begun = Instant::now();
        ensure!(reader.refresh()?, "the reader sees no other manifest");
        ensure!(reader.view().coverage().iter().any(|it| it.contains(range.last())), "not there");
        if let Some(time) = committing.get_mut(index) {
            *time = committed;
        }
        if let Some(time) = looking.get_mut(index) {
            *time = begun.elapsed();
        }
    }
    Ok([
        milliseconds("segments_commit", "committing 256 blocks, durable", committing, 100.0),
        milliseconds("segments_view", "another view, for a reader", looking, 100.0),
    ])
}
