//! What a rival store is asked and what it tells of itself, whichever it is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use zstd::bulk::Decompressor;

/// A store that holds the contents, open for reading.
pub(crate) trait Rival {
    /// The ordinal of the row with this hash.
    fn find(&self, hash: &[u8; 32]) -> Result<Option<u64>>;

    /// The row of an ordinal, whole and not compressed, in place of what the buffer holds.
    fn read(&mut self, ordinal: u64, row: &mut Vec<u8>) -> Result<()>;
}

/// A rival and what it took to fill it.
pub(crate) struct Loaded {
    /// What the table calls it.
    pub(crate) title: &'static str,
    /// The hashes.
    pub(crate) index: Cost,
    /// The rows.
    pub(crate) rows: Cost,
    /// The store.
    pub(crate) store: Box<dyn Rival>,
}

/// What one part of a store took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Bytes on the disk, when all is written and compacted.
    pub(crate) bytes: u64,
    /// CPU time of all threads, from memory to there.
    pub(crate) spent: Duration,
}

/// The first bytes of a hash as a number that sorts as they do: enough to find a row, not to prove it.
pub(crate) fn short(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// What some work took by a clock.
pub(crate) fn timed(
    clock: impl Fn() -> Duration,
    work: impl FnOnce() -> Result<()>,
) -> Result<Duration> {
    let begun = clock();
    work()?;
    Ok(clock().saturating_sub(begun))
}

/// Gives back a row that was compressed alone.
pub(crate) fn inflate(
    inflater: &mut Decompressor<'_>,
    bytes: &[u8],
    row: &mut Vec<u8>,
) -> Result<()> {
    let length = Decompressor::upper_bound(bytes).context("a frame that tells its length")?;
    row.clear();
    row.reserve(length);
    inflater.decompress_to_buffer(bytes, row)?;
    Ok(())
}

/// Bytes of a file.
pub(crate) fn file_bytes(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).with_context(|| path.display().to_string())?.len())
}
