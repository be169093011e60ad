//! `quipu stat`: what the data folder holds.

mod page;

use store::StoreError;
use store::disk::DiskError;
use store::genesis_file::GENESIS_NAME;
use store::read::block_on;
use store::stat::Stat;

use crate::Failure;
use crate::args::StatArgs;
use crate::data_folder::DataFolder;
use crate::head_text::{head_faults, head_notes};
use crate::output::print_lines;

/// How often a folder that changes under our eyes is looked at again.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &StatArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let stat = gather(&folder)?;
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).iter().chain(&head_notes(&recovery)) {
        eprintln!("note: {fault}");
    }
    let lines = if args.json { vec![page::json(&stat).to_string()] } else { text(&folder, &stat) };
    Ok(print_lines(&lines)?)
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
    let genesis_bytes = match folder.disk.file_bytes(GENESIS_NAME) {
        Err(DiskError::Missing { .. }) => 0,
        found => found?,
    };
    let head_bytes = store::head::file_bytes(&*folder.disk)?;
    block_on(Stat::gather(&folder.store.view(), folder.source(), head_bytes, genesis_bytes))
}
