//! `quipu stat`: what the data folder holds.

mod page;

use std::sync::Arc;

use anyhow::anyhow;
use chain::BlobPrices;
use serde_json::{Map, Value};
use store::journal::unlisted_segments;
use store::lock::LOCK_NAME;
use store::names::is_head_file;
use store::notice::read_notice;
use store::read::block_on;
use store::stat::{PartBytesCache, Stat};
use store::{MissingFile, StoreError, View};

use crate::Failure;
use crate::args::stat::StatArgs;
use crate::commands::at;
use crate::data_folder::DataFolder;
use crate::folder_text::unlisted_segment;
use crate::head_text::{head_faults, head_notes};
use crate::output::{counted, note, print_lines};

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
    let gathered = gather(&folder)?;
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).iter().chain(&head_notes(&recovery)) {
        note(fault);
    }
    let lines = if args.json {
        let mut page = gathered.page(&folder, false)?;
        page.extend(gathered.files());
        vec![Value::Object(page).to_string()]
    } else {
        let mut lines = text(&folder, &gathered.stat);
        if gathered.stat.block_count > 0 && !is_blob_schedule_known(&folder)? {
            lines.push(BLOB_PRICES_UNKNOWN.to_owned());
        }
        if let Some(BesideFiles { unlisted, notice, .. }) = &gathered.beside {
            lines.extend(unlisted.iter().map(|name| unlisted_segment(name)));
            lines.extend(notice.as_ref().map(|notice| format!("standstill {notice}")));
        }
        lines
    };
    print_lines(&lines)?;
    refuse_unreadable(&folder, &gathered.stat)
}

/// What was printed is right, but not all that the folder lists.
fn refuse_unreadable(folder: &DataFolder, stat: &Stat) -> Result<(), Failure> {
    let Some(MissingFile { file_name, reason, .. }) = stat.unreadable.first() else {
        return Ok(());
    };
    let files = counted(u64::try_from(stat.unreadable.len()).unwrap_or(u64::MAX), "file");
    let place = folder.path.display();
    Err(Failure::Work(anyhow!(
        "{place}: cannot read {files}; the first is {file_name}: {reason}\n  hint: quipu doctor \
         --data-dir {place}"
    )))
}

/// What a folder holds, by one of its views.
#[derive(Debug)]
pub(crate) struct FolderStat {
    pub(crate) view: Arc<View>,
    pub(crate) stat: Stat,
    /// `None` if the folder itself cannot be read.
    beside: Option<BesideFiles>,
}

/// What lies in a folder beside the files that it lists.
#[derive(Debug)]
struct BesideFiles {
    head_bytes: u64,
    other_bytes: u64,
    unlisted: Vec<String>,
    /// What a follower that stands still left.
    notice: Option<String>,
}

impl FolderStat {
    /// The object of `stat --json` without its lists of files.
    pub(crate) fn page(
        &self,
        folder: &DataFolder,
        is_short: bool,
    ) -> Result<Map<String, Value>, Failure> {
        let is_schedule_known = self.stat.block_count == 0 || is_blob_schedule_known(folder)?;
        let mut page = page::members(&self.stat, is_short);
        let notice = self.beside.as_ref().and_then(|beside| beside.notice.clone());
        page.insert("notice".to_owned(), notice.into());
        page.insert("blob_schedule_known".to_owned(), is_schedule_known.into());
        Ok(page)
    }

    /// These lists.
    pub(crate) fn files(&self) -> Map<String, Value> {
        let mut lists = page::files(self.view.manifest());
        let unlisted = self.beside.as_ref().map(|beside| beside.unlisted.clone());
        lists.insert("unlisted_segments".to_owned(), unlisted.unwrap_or_default().into());
        lists
    }

    /// Whether the folder itself can be read.
    pub(crate) fn is_folder_read(&self) -> bool {
        self.beside.is_some()
    }
}

/// Whether blobs have a price here, as far as the folder itself tells.
fn is_blob_schedule_known(folder: &DataFolder) -> Result<bool, Failure> {
    Ok(folder.spec()?.blob_prices() == BlobPrices::Known)
}

/// The page for people.
pub(crate) fn text(folder: &DataFolder, stat: &Stat) -> Vec<String> {
    page::text(&folder.path.display().to_string(), stat)
}

/// Looks at the folder, also at files that cannot be read.
pub(crate) fn gather(folder: &DataFolder) -> Result<FolderStat, Failure> {
    folder.store.pass_over_missing()?;
    let refresh = || folder.store.refresh();
    Ok(gather_with(folder, &mut PartBytesCache::default(), refresh)?)
}

/// What a store that is served holds: whoever shows its views reads the manifest.
pub(crate) fn gather_served(
    folder: &DataFolder,
    cache: &mut PartBytesCache,
) -> Result<FolderStat, StoreError> {
    gather_with(folder, cache, || Ok(false))
}

/// Looks at the folder. An import beside us may remove a file that it has just made superfluous: then the
/// folder is another, and we look again. `refresh` tells whether it has found another manifest.
fn gather_with(
    folder: &DataFolder,
    cache: &mut PartBytesCache,
    refresh: impl Fn() -> Result<bool, StoreError>,
) -> Result<FolderStat, StoreError> {
    let mut tries = 1;
    loop {
        let gathered = gather_once(folder, folder.store.view(), cache)?;
        if gathered.stat.unreadable.is_empty() || tries >= TRIES_MAX {
            return Ok(gathered);
        }
        let is_other = !Arc::ptr_eq(&gathered.view, &folder.store.view());
        if !is_other && !refresh()? {
            return Ok(gathered);
        }
        tries += 1;
    }
}

fn gather_once(
    folder: &DataFolder,
    view: Arc<View>,
    cache: &mut PartBytesCache,
) -> Result<FolderStat, StoreError> {
    let beside = look_beside(folder, &view);
    let (head_bytes, other_bytes) =
        beside.as_ref().map_or((0, 0), |beside| (beside.head_bytes, beside.other_bytes));
    let gathering = Stat::gather(&view, folder.source(), cache, head_bytes, other_bytes);
    let mut stat = block_on(gathering)?;
    if let Err(error) = &beside {
        let (file_name, reason) = (folder.disk.place(), error.to_string());
        stat.unreadable.insert(0, MissingFile { file_name, blocks: None, reason });
    }
    Ok(FolderStat { view, stat, beside: beside.ok() })
}

fn look_beside(folder: &DataFolder, view: &View) -> Result<BesideFiles, StoreError> {
    let (mut head_bytes, mut other_bytes) = (0_u64, 0_u64);
    // The lock names its holder while it is held: that is no part of what is kept.
    let is_counted = |name: &&String| !view.lists(name) && *name != LOCK_NAME;
    for name in folder.disk.list()?.iter().filter(is_counted) {
        let sum = if is_head_file(name) { &mut head_bytes } else { &mut other_bytes };
        match folder.disk.file_bytes(name) {
            // It is gone since, or a link that leads nowhere.
            Err(error) if error.is_missing() => {}
            found => *sum = sum.saturating_add(found?),
        }
    }
    let unlisted = unlisted_segments(&*folder.disk)?;
    Ok(BesideFiles { head_bytes, other_bytes, unlisted, notice: read_notice(&*folder.disk)? })
}
