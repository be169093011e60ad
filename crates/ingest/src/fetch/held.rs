//! Whether a data folder holds what an archive would bring, by the archive's name alone.

use archive::{ArchiveName, Format};
use chain::{BlockNumber, BlockRange};
use store::layout::{overlap, subtract};
use store::read::block_on;
use store::{Reader, StoreError, View};

use super::list::named_range;

/// Whether nothing of a file is missing, or none of its blocks is `wanted`. In doubt it is missing:
/// then the import finds out.
pub fn is_file_held(
    view: &View,
    archive: &ArchiveName,
    wanted: Option<BlockRange>,
) -> Result<bool, StoreError> {
    let Some(named) = named_range(archive) else { return Ok(false) };
    let Some(part) = overlap(named, wanted.unwrap_or(named)) else { return Ok(true) };
    let manifest = view.manifest();
    let held = if archive.is_without_receipts {
        manifest.coverage()
    } else {
        manifest.coverage_receipts()
    };
    if subtract(&[part], &held).is_empty() {
        return Ok(true);
    }
    // A part has all the blocks that its name says.
    if archive.part.is_some() {
        return Ok(false);
    }
    // Another file need not have a whole era: the chain, or proof of work, may end in it.
    let Some(begun) = held
        .iter()
        .find_map(|range| overlap(*range, part).filter(|found| found.first() == part.first()))
    else {
        return Ok(false);
    };
    match archive.format {
        Format::Era1 => {
            let epoch = manifest.epochs().find(|epoch| epoch.number == archive.era);
            Ok(epoch.is_some_and(|epoch| epoch.last.min(part.last()) <= begun.last()))
        }
        Format::Ere => {
            let mut reader = Reader::new().map_err(StoreError::Reader)?;
            for number in (begun.first()..begun.end()).rev() {
                let hash = block_on(view.read_hash(&mut reader, BlockNumber(number)))?;
                if hash.is_some_and(|hash| hash.starts_with(&archive.short_hash)) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}
