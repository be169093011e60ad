//! The run of one slot of the log index.
//!
//! Knows: that postings tell blocks by their numbers, so that those of a segment that stays are kept
//! as they are.
//! Never knows: larger runs, or what a log says.

use chain::{BlockNumber, BlockRange};
use segment::postings::PostingsBuilder;
use segment::{SLOT_BLOCKS, slice};

use super::sources::{RunSources, SLOT_RUN_BYTES_MAX};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::open_postings_on;
use crate::manifest::RunEntry;
use crate::run_subject::RunSubject;

/// Builds the run of one slot from the keys of its new segments, which are read where nobody built them.
/// Those that stay are taken from the run that the slot had, or read if it had none of its own.
pub(super) fn build_log_slot(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    slot: u64,
) -> Result<Vec<u8>, StoreError> {
    let mut builder = PostingsBuilder::new(slot);
    let mut staying: Vec<BlockRange> = Vec::new();
    for entry in sources.in_slot(slot).filter(|entry| entry.has_receipts) {
        match sources.keys.get(&entry.file_name) {
            None if sources.before.lists_segment(&entry.file_name) => staying.push(entry.range),
            None => read_entries(sources, &[entry.range], &mut builder)?,
            Some(keys) => {
                let number = BlockNumber(entry.range.first());
                let logs = keys.logs.as_ref().ok_or(StoreError::NotHeld { number })?;
                builder.append(logs)?;
            }
        }
    }
    if staying.is_empty() {
        return Ok(builder.finish()?);
    }
    let mut held = sources.before.runs_of(RunSubject::Logs);
    match held.find(|run| run.span.first_slot() == slot && run.span.slot_count() == 1) {
        Some(held) => match keep_entries(disk, held, &staying, &mut builder) {
            // What is damaged is derived again: nobody is to wait for a repair.
            Err(error) if is_damage(&error) => read_entries(sources, &staying, &mut builder)?,
            kept => kept?,
        },
        None => read_entries(sources, &staying, &mut builder)?,
    }
    Ok(builder.finish()?)
}

fn is_damage(error: &StoreError) -> bool {
    let is_missing = matches!(error, StoreError::Disk(error) if error.is_missing());
    is_missing || matches!(error, StoreError::Postings { .. } | StoreError::NotListed { .. })
}

/// Reads the logs of these blocks.
fn read_entries(
    sources: &RunSources<'_>,
    blocks: &[BlockRange],
    builder: &mut PostingsBuilder,
) -> Result<(), StoreError> {
    for range in blocks {
        builder.append(&(sources.read_logs)(*range)?)?;
    }
    Ok(())
}

/// Takes over what a slot's run says of these blocks.
fn keep_entries(
    disk: &dyn Disk,
    held: &RunEntry,
    kept: &[BlockRange],
    builder: &mut PostingsBuilder,
) -> Result<(), StoreError> {
    let postings = open_postings_on(disk, held)?;
    let file = disk.read(&held.file_name, SLOT_RUN_BYTES_MAX)?;
    let corrupt = |cause| StoreError::Postings { file: held.file_name.clone(), cause };
    let first = held.span.first_slot().saturating_mul(SLOT_BLOCKS);
    let is_kept = |block: u32| {
        let number = first.saturating_add(block.into());
        kept.iter().any(|range| range.contains(number))
    };
    for bucket in 0..postings.bucket_count() {
        let range = postings.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
        for entry in postings.entries(bucket, slice(&file, &range)).map_err(corrupt)? {
            builder.push_entry(&entry, is_kept);
        }
    }
    Ok(())
}
