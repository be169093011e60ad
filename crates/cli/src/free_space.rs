//! Whether the disk of a data folder has space for what is to be imported.

use std::fs;
use std::path::PathBuf;

use anyhow::anyhow;
use archive::Archive;
use chain::BlockRange;
use store::View;
use store::disk::Disk;
use store::layout::{join_ranges, overlap, subtract};
use store::manifest::SegmentEntry;

use crate::Failure;
use crate::output::grouped;

/// Tenths of a byte that a data folder has for each byte of imported archives. Measured were 0.67 to 1.02
/// (docs/benchmarks.md); less than the least is required, so that no import is refused that fits.
const TENTHS_STORED: u64 = 6;

/// The least that a data folder needs for archives.
pub(crate) fn stored_bytes(archive_bytes: u64) -> u64 {
    share(archive_bytes, TENTHS_STORED, 10)
}

/// How many bytes of these archives have wanted blocks that are not held.
pub(crate) fn missing_archive_bytes(
    files: &[PathBuf],
    view: &View,
    wanted: Option<BlockRange>,
) -> u64 {
    let mut counted = view.coverage().to_vec();
    let missing_bytes = |path: &PathBuf| {
        // One that cannot be opened is refused when it is imported.
        let range = Archive::open(path).ok()?.range();
        let part = overlap(range, wanted.unwrap_or(range))?;
        let missing = subtract(&[part], &counted).iter().map(BlockRange::count).sum();
        let bytes = fs::metadata(path).ok()?.len();
        counted = join_ranges(counted.iter().copied().chain([part]));
        Some(share(bytes, missing, range.count()))
    };
    files.iter().filter_map(missing_bytes).fold(0, u64::saturating_add)
}

/// How many bytes of a view's segments have these blocks, without the files that are there already.
pub(crate) fn segment_bytes(view: &View, blocks: &[BlockRange], there: &[&dyn Disk]) -> u64 {
    let is_there = |entry: &SegmentEntry| {
        let has = |disk: &&dyn Disk| {
            disk.file_bytes(&entry.file_name).is_ok_and(|bytes| bytes == entry.bytes)
        };
        there.iter().any(has)
    };
    let bytes = view.segments().filter(|entry| !is_there(entry)).flat_map(|entry| {
        let parts = blocks.iter().filter_map(|range| overlap(entry.range, *range));
        parts.map(|part| share(entry.bytes, part.count(), entry.range.count()))
    });
    bytes.fold(0, u64::saturating_add)
}

/// Refuses to begin what the disk of a data folder has no space for.
pub(crate) fn refuse_without_space(disk: &dyn Disk, needed: u64) -> Result<(), Failure> {
    match disk.free_bytes()? {
        Some(free) if free < needed => Err(Failure::Work(anyhow!(
            "{}: at least {} bytes are needed, {} are free\n  hint: free some, give another --data-dir, or \
             take fewer blocks with --blocks FIRST..LAST",
            disk.place(),
            grouped(needed),
            grouped(free)
        ))),
        _ => Ok(()),
    }
}

/// The share of `bytes` that `part` is of `whole`.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::disk::EmptyDisk;
    use store::manifest::{Edit, Manifest, Network};
    use store::read::Inline;
    use store::{Limits, LocalFiles, PublishedHistory, Store};
    use testing::disk::faulty::FaultyDisk;

    use super::*;

    /// Seen: a fetch that was killed when half was copied found no space for all of it.
    #[test]
    fn what_is_copied_already_needs_no_space() {
        let segment = |first: u64| SegmentEntry {
            range: BlockRange::from_count(first, 100).unwrap(),
            file_name: format!("{first}.segment"),
            bytes: 5000,
            digest: alloy_primitives::B256::repeat_byte(1),
            has_receipts: true,
            parent_hash: alloy_primitives::B256::ZERO,
            last_hash: alloy_primitives::B256::repeat_byte(2),
            transaction_count: 1,
            log_count: 1,
            difficulty: alloy_primitives::U256::ZERO,
        };
        let edit = Edit { segments: vec![segment(0), segment(300)], ..Edit::default() };
        let manifest = Manifest::new(Network::default()).edited(edit).unwrap();
        let (copies, folder) = (FaultyDisk::new(1), FaultyDisk::new(1));
        let files = LocalFiles::new(Arc::new(copies.clone()), Arc::new(Inline));
        let (inline, files) = (Arc::new(Inline), Arc::new(files));
        let store = Store::open_beside(Arc::new(EmptyDisk), inline, files, Limits::default());
        let (store, manifest) = (store.unwrap(), [("one".to_owned(), Arc::new(manifest))]);
        store.show_published(&PublishedHistory::new(manifest, [].into(), []));
        let blocks = [BlockRange::from_count(0, 400).unwrap()];
        let needed = || segment_bytes(&store.view(), &blocks, &[&copies, &folder]);
        assert_eq!(needed(), 10_000);
        copies.write("0.segment", &[0; 5000]).unwrap();
        folder.write("300.segment", &[0; 4999]).unwrap();
        assert_eq!(needed(), 5_000);
        folder.write("300.segment", &[0; 5000]).unwrap();
        assert_eq!(needed(), 0);
    }

    #[test]
    fn a_disk_with_too_little_space_is_refused_with_what_is_needed_and_free() {
        let disk = FaultyDisk::new(1);
        refuse_without_space(&disk, u64::MAX).unwrap();
        disk.set_free_bytes(6_000);
        refuse_without_space(&disk, stored_bytes(10_000)).unwrap();
        let Err(Failure::Work(refused)) = refuse_without_space(&disk, stored_bytes(10_010)) else {
            panic!("it begins");
        };
        let said = "memory: at least 6,006 bytes are needed, 6,000 are free\n  hint: ";
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
}
