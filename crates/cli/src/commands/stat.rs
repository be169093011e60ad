//! `quipu stat`: what the data folder holds.

mod page;

use std::sync::Arc;

use chain::BlobPrices;
use serde_json::Value;
use store::journal::unlisted_segments;
use store::lock::LOCK_NAME;
use store::names::is_head_file;
use store::notice::read_notice;
use store::read::block_on;
use store::stat::{PartBytesCache, Stat};
use store::{StoreError, View};

use crate::Failure;
use crate::args::stat::StatArgs;
use crate::commands::at;
use crate::data_folder::DataFolder;
use crate::folder_text::unlisted_segment;
use crate::head_text::{head_faults, head_notes};
use crate::output::{note, print_lines};

/// What is said of a chain that nobody described.
const BLOB_PRICES_UNKNOWN: &str = "blob prices  not known: the folder keeps no blob schedule; \
    quipu serve asks the node that it follows, or give --genesis FILE to an import";
/// How often a folder that changes under our eyes is looked at again.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &StatArgs) -> Result<(), Failure> {
    if let Some(url) = &args.at {
        return at::stat_bucket(url, args.json);
    }
    let folder = DataFolder::open(&args.data)?;
    let stat = gather(&folder)?;
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).iter().chain(&head_notes(&recovery)) {
        note(fault);
    }
    let lines = if args.json {
        vec![page_with(&folder, &stat)?.to_string()]
    } else {
        let mut lines = text(&folder, &stat);
        if stat.block_count > 0 && !is_blob_schedule_known(&folder)? {
            lines.push(BLOB_PRICES_UNKNOWN.to_owned());
        }
        let unlisted = unlisted_segments(&*folder.disk)?;
        lines.extend(unlisted.iter().map(|name| unlisted_segment(name)));
        let notice = read_notice(&*folder.disk)?;
        lines.extend(notice.map(|notice| format!("standstill {notice}")));
        lines
    };
    Ok(print_lines(&lines)?)
}

/// What a store that is served holds, and the page for programs: whoever shows its views reads the
/// manifest.
pub(crate) fn page_of(
    folder: &DataFolder,
    cache: &mut PartBytesCache,
) -> Result<(Stat, Value), Failure> {
    let stat = gather_with(folder, cache, || Ok(false))?;
    let page = page_with(folder, &stat)?;
    Ok((stat, page))
}

fn page_with(folder: &DataFolder, stat: &Stat) -> Result<Value, Failure> {
    let is_schedule_known = stat.block_count == 0 || is_blob_schedule_known(folder)?;
    let notice = read_notice(&*folder.disk)?;
    let mut page = page::json(stat, notice.as_deref());
    if let Some(object) = page.as_object_mut() {
        object.insert("blob_schedule_known".to_owned(), is_schedule_known.into());
        object.insert("unlisted_segments".to_owned(), unlisted_segments(&*folder.disk)?.into());
    }
    Ok(page)
}

/// Whether blobs have a price here, as far as the folder itself tells.
fn is_blob_schedule_known(folder: &DataFolder) -> Result<bool, Failure> {
    Ok(folder.spec()?.blob_prices() == BlobPrices::Known)
}

/// The page for people.
pub(crate) fn text(folder: &DataFolder, stat: &Stat) -> Vec<String> {
    page::text(&folder.path.display().to_string(), stat)
}

/// Looks at the folder. An import beside us may remove a file that it has just made superfluous:
/// then the folder is another, and we look again.
pub(crate) fn gather(folder: &DataFolder) -> Result<Stat, Failure> {
    gather_with(folder, &mut PartBytesCache::default(), || folder.store.refresh())
}

/// The same; `refresh` tells whether it has found another manifest.
fn gather_with(
    folder: &DataFolder,
    cache: &mut PartBytesCache,
    refresh: impl Fn() -> Result<bool, StoreError>,
) -> Result<Stat, Failure> {
    let mut tries = 1;
    loop {
        let view = folder.store.view();
        let gathered = gather_once(folder, &view, cache);
        let is_missing = matches!(&gathered, Err(StoreError::Disk(error)) if error.is_missing());
        if !is_missing || tries >= TRIES_MAX {
            return Ok(gathered?);
        }
        let is_other = !Arc::ptr_eq(&view, &folder.store.view());
        if !is_other && !refresh()? {
            return Ok(gathered?);
        }
        tries += 1;
    }
}

fn gather_once(
    folder: &DataFolder,
    view: &View,
    cache: &mut PartBytesCache,
) -> Result<Stat, StoreError> {
    let (mut head_bytes, mut beside_bytes) = (0_u64, 0_u64);
    // The lock names its holder while it is held: that is no part of what is kept.
    let is_counted = |name: &&String| !view.lists(name) && *name != LOCK_NAME;
    for name in folder.disk.list()?.iter().filter(is_counted) {
        let sum = if is_head_file(name) { &mut head_bytes } else { &mut beside_bytes };
        match folder.disk.file_bytes(name) {
            // It is gone since, or a link that leads nowhere.
            Err(error) if error.is_missing() => {}
            found => *sum = sum.saturating_add(found?),
        }
    }
    block_on(Stat::gather(view, folder.source(), cache, head_bytes, beside_bytes))
}
