//! The run of one slot: the keys of its new segments and, for those that stay, the run that the slot had.

use std::ops::Range;

use chain::{BlockNumber, BlockRange};
use segment::index::{
    CorruptIndex, Entry, IndexKey, OrdinalsBuilder, Position, PostingsBuilder, Run, RunSpan,
    RunSubject,
};
use segment::{SLOT_BLOCKS, slice};

use super::sources::{RunSources, SLOT_RUN_BYTES_MAX, in_slot};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::open_run_on;
use crate::manifest::{RunEntry, SegmentEntry};

/// Builds the run of one slot.
pub(super) fn build_slot(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    subject: RunSubject,
    span: RunSpan,
) -> Result<Vec<u8>, StoreError> {
    match subject {
        RunSubject::Logs => build_log_slot(sources, disk, span.first_slot()),
        RunSubject::Transactions | RunSubject::Blocks => {
            build_hash_slot(sources, disk, subject, span)
        }
    }
}

/// A segment that the slot had: its name, where its ordinals were, and where they begin now, if
/// somebody wants them.
type Move = (String, Range<u64>, Option<u64>);

/// Of a segment that stays, ordinals may have moved.
fn build_hash_slot(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    subject: RunSubject,
    span: RunSpan,
) -> Result<Vec<u8>, StoreError> {
    let slot = span.first_slot();
    let mut builder = OrdinalsBuilder::new(subject, span);
    let mut moves = moves_before(sources, subject, slot);
    let mut ordinal = 0_u64;
    for entry in sources.in_slot(slot) {
        let first = first_ordinal(subject, entry, ordinal);
        let own = moves.iter_mut().find(|(name, ..)| *name == entry.file_name);
        let mut push = |keys: &[IndexKey]| {
            keys.iter().zip(first..).try_for_each(|(key, ordinal)| {
                builder.push_entry(Entry { key: *key, position: at(slot, ordinal) })
            })
        };
        match (sources.keys.get(&entry.file_name), own) {
            (Some(keys), _) => push(keys.of(subject))?,
            (None, Some((.., to))) => *to = Some(first),
            (None, None) => {
                return Err(StoreError::NotHeld { number: BlockNumber(entry.range.first()) });
            }
        }
        ordinal = ordinal.saturating_add(entry.transaction_count);
    }
    if moves.iter().any(|(.., to)| to.is_some()) {
        move_entries(sources, disk, (subject, span), &moves, &mut builder)?;
    }
    Ok(builder.finish()?)
}

/// The segments that the slot had; nobody wants them yet.
fn moves_before(sources: &RunSources<'_>, subject: RunSubject, slot: u64) -> Vec<Move> {
    let mut ordinal = 0_u64;
    let mut moves = Vec::new();
    for entry in in_slot(sources.before.segments(), slot) {
        let first = first_ordinal(subject, entry, ordinal);
        let count = match subject {
            RunSubject::Transactions => entry.transaction_count,
            RunSubject::Blocks | RunSubject::Logs => entry.range.count(),
        };
        moves.push((entry.file_name.clone(), first..first.saturating_add(count), None));
        ordinal = ordinal.saturating_add(entry.transaction_count);
    }
    moves
}

fn first_ordinal(subject: RunSubject, entry: &SegmentEntry, transactions_before: u64) -> u64 {
    match subject {
        RunSubject::Transactions => transactions_before,
        RunSubject::Blocks | RunSubject::Logs => entry.range.first() % SLOT_BLOCKS,
    }
}

/// Takes over the entries of segments that stay, to the ordinals that they have now.
fn move_entries(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    (subject, span): (RunSubject, RunSpan),
    moves: &[Move],
    builder: &mut OrdinalsBuilder,
) -> Result<(), StoreError> {
    let held = sources.before.runs_of(subject).find(|entry| entry.span == span);
    let Some(held) = held else {
        let number = span.first_slot().saturating_mul(SLOT_BLOCKS);
        return Err(StoreError::NotHeld { number: BlockNumber(number) });
    };
    read_buckets(disk, held, |run, bucket, bytes| {
        for Entry { key, position } in
            run.entries(bucket, bytes).map_err(|cause| corrupt(held, cause))?
        {
            let ordinal = u64::from(position.ordinal);
            let own = moves.iter().find(|(_, ordinals, _)| ordinals.contains(&ordinal));
            if let Some((_, ordinals, Some(to))) = own {
                let ordinal = to.saturating_add(ordinal.saturating_sub(ordinals.start));
                builder.push_entry(Entry { key, position: at(position.slot, ordinal) })?;
            }
        }
        Ok(())
    })
}

fn at(slot: u64, ordinal: u64) -> Position {
    // A builder refuses the highest ordinal, so nothing is cut off in silence.
    Position { slot, ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX) }
}

/// Postings name blocks by their numbers, so those of a segment that stays are kept as they are; they are
/// read from the segment if the slot had no run of its own.
fn build_log_slot(
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
    is_missing || matches!(error, StoreError::Index { .. } | StoreError::NotListed { .. })
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
    let first = held.span.first_slot().saturating_mul(SLOT_BLOCKS);
    let is_kept = |block: u32| {
        let number = first.saturating_add(block.into());
        kept.iter().any(|range| range.contains(number))
    };
    read_buckets(disk, held, |run, bucket, bytes| {
        for entry in run.posting_entries(bucket, bytes).map_err(|cause| corrupt(held, cause))? {
            builder.push_entry(&entry, is_kept);
        }
        Ok(())
    })
}

/// Gives the bytes of each bucket of a slot's run.
fn read_buckets(
    disk: &dyn Disk,
    held: &RunEntry,
    mut take: impl FnMut(&Run, u64, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let run = open_run_on(disk, held)?;
    let file = disk.read(&held.file_name, SLOT_RUN_BYTES_MAX)?;
    run.buckets().try_for_each(|(bucket, range)| take(&run, bucket, slice(&file, &range)))
}

fn corrupt(held: &RunEntry, cause: CorruptIndex) -> StoreError {
    StoreError::Index { file: held.file_name.clone(), cause }
}
