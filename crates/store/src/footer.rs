//! What a segment file tells of itself without being read: its name, its length and its footer.

use alloy_primitives::{B256, U256};
use segment::{FOOTER_BYTES, Footer};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::check_length;
use crate::layout::HeldRange;
use crate::manifest::{EntryDifference, SegmentEntry};
use crate::names::segment_name;

/// What a manifest would say of a segment file, but for its difficulty.
pub(crate) fn read_entry(disk: &dyn Disk, name: &str) -> Result<SegmentEntry, StoreError> {
    let bytes = disk.file_bytes(name)?;
    let footer_bytes = u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX);
    let footer = disk.read_range(name, bytes.saturating_sub(footer_bytes)..bytes)?;
    let footer = Footer::parse(&footer)
        .map_err(|cause| StoreError::Segment { file: name.to_owned(), cause })?;
    let facts = footer.facts;
    let (digest, has_receipts) = (B256::from(footer.digest), facts.has_receipts);
    let expected = segment_name(HeldRange { range: facts.range, has_receipts }, digest);
    if expected != name {
        let (file, what, found) = (name.to_owned(), "name".to_owned(), name.to_owned());
        return Err(StoreError::Differs { file, what, found, expected });
    }
    Ok(SegmentEntry {
        range: facts.range,
        file_name: expected,
        bytes,
        digest,
        has_receipts,
        parent_hash: facts.parent_hash,
        last_hash: facts.last_hash,
        transaction_count: facts.transaction_count,
        log_count: facts.log_count,
        difficulty: U256::ZERO,
    })
}

/// Whether a listed file has the length and the footer that the manifest says.
pub(crate) fn look_at_segment(disk: &dyn Disk, entry: &SegmentEntry) -> Result<(), StoreError> {
    // A footer is looked for at the end: of a file that was cut, that is not where it was.
    check_length(&entry.file_name, disk.file_bytes(&entry.file_name)?, entry.bytes)?;
    let found = read_entry(disk, &entry.file_name)?;
    let found = SegmentEntry { difficulty: entry.difficulty, ..found };
    match found.find_difference(entry) {
        None => Ok(()),
        Some(EntryDifference { what, found, expected }) => Err(StoreError::Differs {
            file: entry.file_name.clone(),
            what: format!("{what} by the footer"),
            found,
            expected,
        }),
    }
}
