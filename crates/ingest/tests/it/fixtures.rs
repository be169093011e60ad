//! Archives and a data folder that were written once and are read for ever.
//!
//! `tests/fixtures` holds the first 136 blocks of the sample chain with seed 7 and one
//! transaction a block, as this project wrote them on 2026-11-15: the era1 up to the merge, the
//! ere with all of them, and the data folders that the ere makes: segments of versions 1, 2 and 3,
//! lookup runs and manifest of version 1. A change of their bytes needs a new version, and a fixture
//! beside these.

use std::path::{Path, PathBuf};

use ingest::archive::Archive;
use ingest::prove::check_name;
use ingest::sample::{Payload, Settings};

use crate::check::check;
use crate::folder::{DataFolder, settings as import_settings};
use crate::made::{blocks, prove, proven_blocks, read_all, spec};

fn settings() -> Settings {
    Settings { seed: 7, block_count: 136, txs_per_block: 1, payload: Payload::Small }
}

fn fixture(extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
}

#[test]
fn committed_archives_are_proven_and_hold_the_sample_chain() {
    let settings = settings();
    let made = blocks(&settings);
    for (extension, count) in [("era1", 64), ("ere", 136)] {
        let archive = Archive::open(&fixture(extension)).unwrap();
        let report = prove(&archive, &settings, 2).unwrap();
        check_name(&archive, &report).unwrap();
        assert!(read_all(&archive).unwrap() == made[..count], "{extension}");
    }
}

#[test]
fn committed_data_folders_of_every_version_are_read_and_checked() {
    let archive = Archive::open(&fixture("ere")).unwrap();
    let committed = ["data-folder-1", "data-folder-2", "data-folder-3"].map(|name| {
        let data = DataFolder::new(&spec(&settings()));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), data.folder.path().join(entry.file_name())).unwrap();
        }
        data.check_holds(&proven_blocks(&archive, &data.spec));
        assert!(check(&data).1.is_empty(), "{name}");
        data
    });
    // The same blocks give the same bytes, today as then.
    let today = DataFolder::new(&spec(&settings()));
    today.import(&fixture("ere"), import_settings()).unwrap();
    let [older @ .., current] = committed;
    assert!(today.files() == current.files());
    assert!(older.iter().all(|older| today.files() != older.files()));
}
