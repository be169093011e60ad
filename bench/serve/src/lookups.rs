//! Lookups alone: what finding a hash costs among so many that no chain of them is at hand.
//!
//! Hashes are made from their numbers, so none needs to be remembered. Runs lie in memory: a store keeps
//! small ones there too, and asks the system for the buckets of large ones, which is not counted here.

use std::hint::black_box;
use std::ops::Range;

use alloy_primitives::B256;
use anyhow::{Context as _, Result, ensure};
use bench_store::clock::least_cpu;
use bench_store::random::Random;
use chain::SplitMix64;
use segment::index::{IndexKey, OrdinalsBuilder, Position, Run, RunSpan, RunSubject, plan_runs};

/// Transactions of a slot: 8192 blocks of about 200.
const KEYS_PER_SLOT: u64 = 1_600_000;
const PROBE_COUNT: u32 = 100_000;
const ROUNDS: usize = 3;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// Bytes of all runs for each key.
    pub bytes_per_key: f64,
    /// Nanoseconds of CPU until a key is found.
    pub hit: f64,
    /// Nanoseconds of CPU until all runs have said that there is no such key.
    pub miss: f64,
    /// How many runs there are.
    pub run_count: usize,
}

/// Builds the runs of so many keys, and probes them.
pub fn look(key_count: u64) -> Result<Looked> {
    let complete = key_count / KEYS_PER_SLOT;
    let mut spans = plan_runs(std::iter::once(0..complete));
    if !key_count.is_multiple_of(KEYS_PER_SLOT) {
        // A slot that is not complete has a run of its own.
        spans.push(RunSpan::new(complete, 1)?);
    }
    let files = spans.iter().map(|span| build(*span, key_count)).collect::<Result<Vec<_>>>()?;
    let runs = files.iter().map(|file| Opened::new(file)).collect::<Result<Vec<_>>>()?;
    let mut random = Random::default();
    let end = usize::try_from(key_count).context("more keys than there are addresses")?;
    let picks: Vec<(B256, Position)> = (0..PROBE_COUNT)
        .map(|_| random.below(end))
        .filter_map(|number| u64::try_from(number).ok())
        .map(|number| (hash_of(number), position_of(number)))
        .collect();
    let hit = least_cpu(ROUNDS, || {
        for (hash, position) in &picks {
            ensure!(find(&runs, hash, Some(*position))?, "{hash} is not found");
        }
        Ok(())
    })?;
    let absent: Vec<B256> = (0..u64::from(PROBE_COUNT))
        .map(|number| hash_of(key_count.saturating_add(number)))
        .collect();
    let miss = least_cpu(ROUNDS, || {
        for hash in &absent {
            black_box(find(&runs, hash, None)?);
        }
        anyhow::Ok(())
    })?;
    let bytes = files.iter().map(Vec::len).sum::<usize>();
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e9 / f64::from(PROBE_COUNT);
    Ok(Looked {
        bytes_per_key: bench_store::figure::ratio(u64::try_from(bytes)?, key_count),
        hit: each(hit),
        miss: each(miss),
        run_count: runs.len(),
    })
}

struct Opened<'a> {
    file: &'a [u8],
    run: Run,
}

impl<'a> Opened<'a> {
    fn new(file: &'a [u8]) -> Result<Self> {
        Ok(Self { file, run: Run::from_file(file)? })
    }
}

fn slice(file: &[u8], range: Range<u64>) -> Result<&[u8]> {
    let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
    file.get(range).context("a range outside of the file")
}

/// Asks one run after the other, lowest slot first as a store does, until one has the position; with
/// none, all of them.
fn find(runs: &[Opened<'_>], hash: &B256, wanted: Option<Position>) -> Result<bool> {
    for Opened { file, run } in runs {
        let key = IndexKey::of_hash(hash);
        let positions = run.probe(key, slice(file, run.bucket_range(key))?)?;
        if wanted.is_some_and(|wanted| positions.into_iter().any(|it| it == wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn build(span: RunSpan, key_count: u64) -> Result<Vec<u8>> {
    let mut builder = OrdinalsBuilder::new(RunSubject::Transactions, span);
    let first = span.first_slot().saturating_mul(KEYS_PER_SLOT);
    let end = span.end_slot().saturating_mul(KEYS_PER_SLOT).min(key_count);
    for number in first..end {
        builder.push(&hash_of(number), position_of(number))?;
    }
    Ok(builder.finish()?)
}

fn position_of(number: u64) -> Position {
    let ordinal = u32::try_from(number % KEYS_PER_SLOT).unwrap_or_default();
    Position { slot: number / KEYS_PER_SLOT, ordinal }
}

/// Looks random.
fn hash_of(number: u64) -> B256 {
    let mut hash = B256::ZERO;
    let words = (1_u64..=4).map(|word| SplitMix64::at(number.wrapping_mul(4).wrapping_add(word)));
    hash.0.iter_mut().zip(words.flat_map(u64::to_be_bytes)).for_each(|(to, from)| *to = from);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_where_it_was_put() {
        let looked = look(3000).unwrap();
        assert_eq!(looked.run_count, 1);
        assert!((5.0..6.0).contains(&looked.bytes_per_key), "{looked:?}");
    }

    #[test]
    fn a_key_lies_in_the_slot_of_its_number() {
        let position = position_of(KEYS_PER_SLOT + 7);
        assert_eq!(position, Position { slot: 1, ordinal: 7 });
        assert_ne!(hash_of(0), hash_of(1));
    }
}
