//! `quipu stat`: what the data folder holds.

mod page;

use chain::BlobPrices;
use store::StoreError;
use store::disk::DiskError;
use store::genesis_file::GENESIS_NAME;
use store::manifest::MANIFEST_NAME;
use store::notice::{NOTICE_NAME, read_notice};
use store::read::block_on;
use store::stat::Stat;

use crate::Failure;
use crate::args::StatArgs;
use crate::data_folder::DataFolder;
use crate::folder_chain::spec_of;
use crate::head_text::{head_faults, head_notes};
use crate::output::print_lines;

/// What is said of a chain that nobody described.
const BLOB_PRICES_UNKNOWN: &str = "blob prices  not known: the folder keeps no blob schedule; \
    quipu serve asks the node that it follows, or give --genesis FILE to an import";
/// How often a folder that changes under our eyes is looked at again.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &StatArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let stat = gather(&folder)?;
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).iter().chain(&head_notes(&recovery)) {
        eprintln!("note: {fault}");
    }
    let is_schedule_known = stat.block_count == 0 || is_blob_schedule_known(&folder)?;
    let notice = read_notice(&*folder.disk)?;
    let lines = if args.json {
        let mut page = page::json(&stat, notice.as_deref());
        if let Some(object) = page.as_object_mut() {
            object.insert("blob_schedule_known".to_owned(), is_schedule_known.into());
        }
        vec![page.to_string()]
    } else {
        let mut lines = text(&folder, &stat);
        if !is_schedule_known {
            lines.push(BLOB_PRICES_UNKNOWN.to_owned());
        }
        lines.extend(notice.map(|notice| format!("standstill {notice}")));
        lines
    };
    Ok(print_lines(&lines)?)
}

/// Whether blobs have a price here, as far as the folder itself tells.
fn is_blob_schedule_known(folder: &DataFolder) -> Result<bool, Failure> {
    Ok(spec_of(folder)?.blob_prices() == BlobPrices::Known)
}

/// The page for people.
pub(crate) fn text(folder: &DataFolder, stat: &Stat) -> Vec<String> {
    page::text(&folder.path.display().to_string(), stat)
}

/// Looks at the folder. An import beside us may remove a file that it has just made superfluous:
/// then the folder is another, and we look again.
pub(crate) fn gather(folder: &DataFolder) -> Result<Stat, Failure> {
    let mut tries = 1;
    loop {
        let gathered = gather_once(folder);
        let is_missing = matches!(&gathered, Err(StoreError::Disk(error)) if error.is_missing());
        if !is_missing || tries >= TRIES_MAX || !folder.store.refresh()? {
            return Ok(gathered?);
        }
        tries += 1;
    }
}

fn gather_once(folder: &DataFolder) -> Result<Stat, StoreError> {
    let bytes_of = |name: &str| match folder.disk.file_bytes(name) {
        Err(DiskError::Missing { .. }) => Ok(0),
        found => found,
    };
    let view = folder.store.view();
    // The manifest is counted with what it lists; one that lists nothing may not be there yet.
    let is_empty = view.manifest().segments().is_empty();
    let mut beside_bytes = if is_empty { bytes_of(MANIFEST_NAME)? } else { 0 };
    for name in [GENESIS_NAME, NOTICE_NAME] {
        beside_bytes = beside_bytes.saturating_add(bytes_of(name)?);
    }
    let head_bytes = store::head::file_bytes(&*folder.disk)?;
    block_on(Stat::gather(&view, folder.source(), head_bytes, beside_bytes))
}
