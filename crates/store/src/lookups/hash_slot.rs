//! The run of one slot of a hash lookup.
//!
//! Knows: how the ordinals of transactions move when segments come or go before them.
//! Never knows: larger runs, or what the hashes are hashes of.

use std::ops::Range;

use chain::BlockNumber;
use segment::lookup::{Entry, HashPrefix, Position, RunBuilder, RunSpan, Subject};
use segment::{SLOT_BLOCKS, slice};

use super::sources::{RunSources, SLOT_RUN_BYTES_MAX, in_slot};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::open_run_on;
use crate::manifest::SegmentEntry;

/// A segment that the slot had: its name, where its ordinals were, and where they begin now, if
/// somebody wants them.
type Move = (String, Range<u64>, Option<u64>);

/// Builds the run of one slot from the keys of its new segments and, for those that stay, from the run
/// that it had.
pub(super) fn build_hash_slot(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    subject: Subject,
    span: RunSpan,
) -> Result<Vec<u8>, StoreError> {
    let slot = span.first_slot();
    let mut builder = RunBuilder::new(subject, span);
    let mut moves = moves_before(sources, subject, slot);
    let mut ordinal = 0_u64;
    for entry in sources.in_slot(slot) {
        let first = first_ordinal(subject, entry, ordinal);
        let own = moves.iter_mut().find(|(name, ..)| *name == entry.file_name);
        let mut push = |keys: &[HashPrefix]| {
            keys.iter().zip(first..).try_for_each(|(prefix, ordinal)| {
                builder.push_entry(Entry { prefix: *prefix, position: at(slot, ordinal) })
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
fn moves_before(sources: &RunSources<'_>, subject: Subject, slot: u64) -> Vec<Move> {
    let mut ordinal = 0_u64;
    let mut moves = Vec::new();
    for entry in in_slot(sources.before.segments(), slot) {
        let first = first_ordinal(subject, entry, ordinal);
        let count = match subject {
            Subject::Transactions => entry.transaction_count,
            Subject::Blocks => entry.range.count(),
        };
        moves.push((entry.file_name.clone(), first..first.saturating_add(count), None));
        ordinal = ordinal.saturating_add(entry.transaction_count);
    }
    moves
}

fn first_ordinal(subject: Subject, entry: &SegmentEntry, transactions_before: u64) -> u64 {
    match subject {
        Subject::Transactions => transactions_before,
        Subject::Blocks => entry.range.first() % SLOT_BLOCKS,
    }
}

/// Takes over the entries of segments that stay, to the ordinals that they have now.
fn move_entries(
    sources: &RunSources<'_>,
    disk: &dyn Disk,
    (subject, span): (Subject, RunSpan),
    moves: &[Move],
    builder: &mut RunBuilder,
) -> Result<(), StoreError> {
    let held = sources.before.runs_of(subject.into()).find(|entry| entry.span == span);
    let Some(held) = held else {
        let number = span.first_slot().saturating_mul(SLOT_BLOCKS);
        return Err(StoreError::NotHeld { number: BlockNumber(number) });
    };
    let run = open_run_on(disk, held)?;
    let file = disk.read(&held.file_name, SLOT_RUN_BYTES_MAX)?;
    let corrupt = |cause| StoreError::Lookup { file: held.file_name.clone(), cause };
    for bucket in 0..run.bucket_count() {
        let range = run.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
        for Entry { prefix, position } in
            run.entries(bucket, slice(&file, &range)).map_err(corrupt)?
        {
            let ordinal = u64::from(position.ordinal);
            let own = moves.iter().find(|(_, ordinals, _)| ordinals.contains(&ordinal));
            if let Some((_, ordinals, Some(to))) = own {
                let ordinal = to.saturating_add(ordinal.saturating_sub(ordinals.start));
                let position = at(position.slot, ordinal);
                builder.push_entry(Entry { prefix, position })?;
            }
        }
    }
    Ok(())
}

fn at(slot: u64, ordinal: u64) -> Position {
    // A builder refuses the highest ordinal, so nothing is cut off in silence.
    Position { slot, ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX) }
}
