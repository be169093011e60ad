//! What a lookup costs: bytes a key, and time to build, merge and probe, beside a hash map and a
//! sorted list that hold the same keys in memory.
//!
//!     cargo bench -p quipu-segment --bench lookup [-- --keys COUNT]
//!
//! With `--keys` it writes one run of that many keys instead, without holding it, and probes its
//! beginning: 2000000000 is mainnet's size, and takes a few minutes.
//!
//! Times are the best of several rounds. A probe is given its bucket's bytes: reading them is the
//! caller's cost, and not counted.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark reports and gives up")]

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use chain::SplitMix64;
use segment::index::{
    Entry, HASH_KEY_BITS, IndexKey, Merge, MergeStep, OrdinalsBuilder, OrdinalsWriter, Position,
    Run, RunOpening, RunSpan, RunSubject, Side,
};

const ROUNDS: usize = 5;
const PROBE_COUNT: u32 = 200_000;
/// Buckets that are read before they are probed: few enough to stay in the processor's cache.
const PROBE_BATCH: usize = 32;
/// How much of a run that is too large for memory is kept to be probed.
const KEPT_BYTES: usize = 256 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let keys = arguments.iter().position(|argument| argument == "--keys");
    if let Some(count) = keys.and_then(|at| arguments.get(at + 1)) {
        measure_large(count.parse().expect("a number of keys"));
        return;
    }
    println!(
        "{:>10} | {:>7} | {:>7} {:>7} | {:>20} | {:>15} | {:>17}",
        "", "bytes", "build", "merge", "probe ns", "hash map ns", "sorted list ns"
    );
    println!(
        "{:>10} | {:>7} | {:>7} {:>7} | {:>6} {:>6} {:>6} | {:>7} {:>7} | {:>8} {:>8}",
        "keys", "a key", "ns", "ns", "hit", "miss", "bytes", "hit", "miss", "hit", "miss"
    );
    for key_count in [3_000, 100_000, 1_000_000, 10_000_000] {
        measure(key_count);
    }
}

fn measure(key_count: u32) {
    let mut chance = Chance(SplitMix64::new(key_count.into()));
    let hashes: Vec<B256> = (0..key_count).map(|_| chance.hash()).collect();
    let present: Vec<B256> =
        (0..PROBE_COUNT).filter_map(|_| hashes.get(chance.below(hashes.len()))).copied().collect();
    let absent: Vec<B256> = (0..PROBE_COUNT).map(|_| chance.hash()).collect();

    let mut file = Vec::new();
    let build_time = best(|| file = build(0, 2, &hashes));
    let [left, right] = [0, 1].map(|slot| build(slot, 1, &hashes));
    let merge_time = best(|| {
        let merged = merge(&left, &right);
        assert!(merged == file, "a merge gives the bytes of a direct build");
    });
    let run = Run::from_file(&file).expect("an intact tail");
    let probe = |hashes| probe_time(&run, &file, hashes);
    let bucket = run.bucket_range(IndexKey::from_number(0));

    let map: HashMap<B256, u32> = hashes.iter().copied().zip(0..).collect();
    let map_probe = |hashes: &[B256]| {
        best(|| {
            for hash in hashes {
                black_box(map.get(hash));
            }
        })
    };
    let mut list: Vec<u64> = hashes.iter().map(first_bits).collect();
    list.sort_unstable();
    let list_probe = |hashes: &[B256]| {
        best(|| {
            for hash in hashes {
                let _ = black_box(list.binary_search(&first_bits(hash)));
            }
        })
    };
    println!(
        "{key_count:>10} | {:>7.3} | {:>7.1} {:>7.1} | {:>6.0} {:>6.0} {:>6} | {:>7.0} {:>7.0} | {:>8.0} {:>8.0}",
        f64::from(u32::try_from(file.len()).expect("a small file")) / f64::from(key_count),
        each(build_time, key_count),
        each(merge_time, key_count),
        each(probe(&present), PROBE_COUNT),
        each(probe(&absent), PROBE_COUNT),
        bucket.end - bucket.start,
        each(map_probe(&present), PROBE_COUNT),
        each(map_probe(&absent), PROBE_COUNT),
        each(list_probe(&present), PROBE_COUNT),
        each(list_probe(&absent), PROBE_COUNT),
    );
}

fn merge(left: &[u8], right: &[u8]) -> Vec<u8> {
    let [left_run, right_run] = [left, right].map(|file| Run::from_file(file).expect("a tail"));
    let mut merge = Merge::new(left_run, right_run).expect("two halves");
    let mut merged = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut merged).expect("intact halves") {
        let file = if side == Side::Left { left } else { right };
        merge.supply(side, slice(file, range)).expect("an intact half");
    }
    merged
}

/// The time of probes alone: buckets are read a batch at a time, as a caller would, and the clock
/// runs only while they are probed.
fn probe_time(run: &Run, file: &[u8], hashes: &[B256]) -> Duration {
    let round = |_| {
        let mut time = Duration::ZERO;
        for batch in hashes.chunks(PROBE_BATCH) {
            let buckets: Vec<Vec<u8>> = batch
                .iter()
                .map(|hash| slice(file, run.bucket_range(IndexKey::of_hash(hash))).to_vec())
                .collect();
            let begun = Instant::now();
            for (hash, bucket) in batch.iter().zip(&buckets) {
                black_box(run.probe(IndexKey::of_hash(hash), bucket).expect("an intact run"));
            }
            time += begun.elapsed();
        }
        time
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

/// The run of two slots with half of the hashes each, or of one of them.
fn build(first_slot: u64, slot_count: u64, hashes: &[B256]) -> Vec<u8> {
    let span = RunSpan::new(first_slot, slot_count).expect("an aligned span");
    let mut builder = OrdinalsBuilder::new(RunSubject::Transactions, span);
    let halves = hashes.split_at(hashes.len() / 2);
    for (half, slot) in [halves.0, halves.1].into_iter().zip(0..) {
        for (hash, ordinal) in half.iter().zip(0..) {
            if span.contains(slot) {
                builder.push(hash, Position { slot, ordinal }).expect("an entry of the span");
            }
        }
    }
    builder.finish().expect("a run")
}

/// Writes a run of about as many evenly spread prefixes over 2048 slots and throws most of it
/// away.
fn measure_large(wanted: u64) {
    let slot_count = 2048;
    let key_count = prefixes(wanted).zip(0_u64..).map(|(_, index)| index + 1).last();
    let key_count = key_count.expect("at least one key");
    let span = RunSpan::new(0, slot_count).expect("an aligned span");
    let ordinals = u32::try_from(key_count.div_ceil(slot_count)).expect("a mainnet-sized slot");
    let counts = vec![ordinals; usize::try_from(slot_count).expect("few slots")];
    let mut writer =
        OrdinalsWriter::new(RunSubject::Transactions, span, counts, key_count).expect("a run");
    let mut chance = Chance(SplitMix64::new(1));
    let (mut kept, mut bytes, mut file_bytes, mut sample) = (Vec::new(), Vec::new(), 0, Vec::new());
    let begun = Instant::now();
    for prefix in prefixes(wanted) {
        let slot = chance.number() % slot_count;
        let ordinal = u32::try_from(chance.number() % u64::from(ordinals)).expect("below a u32");
        let key = IndexKey::from_number(prefix);
        let entry = Entry { key, position: Position { slot, ordinal } };
        writer.push(entry, &mut bytes).expect("an ascending prefix");
        if kept.len() < KEPT_BYTES && sample.len() < 1 << 22 {
            sample.push(prefix);
        }
        if bytes.len() > 1 << 20 {
            file_bytes += bytes.len();
            if kept.len() < KEPT_BYTES {
                kept.extend_from_slice(&bytes);
            }
            bytes.clear();
        }
    }
    writer.finish(&mut bytes).expect("all keys");
    let took = begun.elapsed();
    file_bytes += bytes.len();
    let file_bytes = u64::try_from(file_bytes).expect("a file");
    let offset = file_bytes - u64::try_from(bytes.len()).expect("a buffer");
    let read = |range: Range<u64>| slice(&bytes, range.start - offset..range.end - offset);
    let mut opening = RunOpening::new(file_bytes);
    opening.supply(read(opening.needed())).expect("a footer");
    let tail = opening.needed();
    println!("{key_count} keys: {file_bytes} bytes, tail {}", tail.end - tail.start);
    println!("  {:.4} bytes a key", ratio(file_bytes, key_count));
    println!(
        "  {:.1} ns a key to write, including the generator",
        ratio(u64::try_from(took.as_nanos()).expect("short"), key_count)
    );
    let begun = Instant::now();
    let run = opening.supply(read(tail)).expect("an intact tail").expect("a run");
    println!("  {} us to open the tail", begun.elapsed().as_micros());
    let hashes: Vec<B256> = (0..PROBE_COUNT)
        .map(|_| hash_of(*sample.get(chance.below(sample.len())).expect("inside")))
        .filter(|hash| {
            run.bucket_range(IndexKey::of_hash(hash)).end
                < u64::try_from(kept.len()).expect("a buffer")
        })
        .collect();
    let time = probe_time(&run, &kept, &hashes);
    let count = u32::try_from(hashes.len()).expect("few probes");
    let bucket = run.bucket_range(IndexKey::from_number(0));
    println!(
        "  {:.0} ns a probe ({count} hits), bucket {} bytes",
        each(time, count),
        bucket.end - bucket.start
    );
}

/// Ascending, distinct prefixes with the gaps of randomly thrown ones, the same at every call.
fn prefixes(key_count: u64) -> impl Iterator<Item = u64> {
    let mut chance = Chance(SplitMix64::new(key_count));
    let mean = ratio(1 << HASH_KEY_BITS, key_count);
    let mut at = 0.0_f64;
    std::iter::from_fn(move || {
        let uniform = ratio((chance.number() >> 12) + 1, 1 << 52);
        at += (-uniform.ln() * mean).max(1.0);
        (at < ratio(1 << HASH_KEY_BITS, 1)).then(|| floor(at))
    })
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "both are below 2^53")]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a prefix is positive and below 2^39"
)]
fn floor(number: f64) -> u64 {
    number as u64
}

fn hash_of(prefix: u64) -> B256 {
    let mut hash = B256::ZERO;
    let first = (prefix << (u64::BITS - HASH_KEY_BITS)).to_be_bytes();
    hash.0.iter_mut().zip(first).for_each(|(to, from)| *to = from);
    hash
}

fn first_bits(hash: &B256) -> u64 {
    hash.0.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn slice(file: &[u8], range: Range<u64>) -> &[u8] {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).expect("an offset"));
    file.get(start..end).expect("a range inside")
}

fn best(mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

/// Nanoseconds for each of `count`.
fn each(time: Duration, count: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(count)
}

/// The same hashes at every run.
struct Chance(SplitMix64);

impl Chance {
    fn number(&mut self) -> u64 {
        self.0.next_number()
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.number()).unwrap_or(0).checked_rem(count).unwrap_or(0)
    }

    fn hash(&mut self) -> B256 {
        let words = [self.number(), self.number(), self.number(), self.number()];
        let mut hash = B256::ZERO;
        let bytes = words.into_iter().flat_map(u64::to_be_bytes);
        hash.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        hash
    }
}
