//! What a folder says that it held, whatever is there now.

use chain::{BlockNumber, BlockRange};

use crate::block_id::BlockId;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::journal::recorded_segments;
use crate::manifest::{Manifest, SegmentEntry};
use crate::names::segment_range;

/// The blocks that the manifest says are or were held; without one, those of the segments that the
/// journal names and that are not there.
pub(super) fn find_claims(
    disk: &dyn Disk,
    before: Option<&Manifest>,
    present: &[String],
) -> Result<Vec<BlockRange>, StoreError> {
    if let Some(before) = before {
        return Ok(before.coverage().into_iter().chain(before.lost().iter().copied()).collect());
    }
    let recorded = recorded_segments(disk)?;
    let gone = recorded.iter().filter(|name| !present.contains(name));
    Ok(gone.filter_map(|name| segment_range(name)).collect())
}

/// The hashes that a manifest knows of blocks that it lists, or that it knows to be lost.
pub(super) fn known_hashes(manifest: &Manifest) -> impl Iterator<Item = BlockId> {
    let last = |entry: &SegmentEntry| BlockId {
        number: BlockNumber(entry.range.last()),
        hash: entry.last_hash,
    };
    let sealed = manifest.segments().iter().map(last);
    let head = manifest.head().and_then(|record| record.block);
    sealed.chain(head).chain(manifest.lost_hashes())
}
