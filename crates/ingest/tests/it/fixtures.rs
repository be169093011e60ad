//! Archives and a data folder that were written once and are read for ever.
//!
//! `tests/fixtures` holds the first 152 blocks of the sample chain with seed 7 and one
//! transaction a block, as this project wrote them on 2026-11-16: the era1 up to the merge, the
//! ere with all of them, and the data folders that the ere makes: a segment and index files of version 1,
//! and a manifest of version 1 without a log index, or of version 2 with one. A change of their bytes
//! needs a new version, and a folder beside these, which every later build still opens or refuses by
//! its version.
//! `QUIPU_BLESS=1 cargo test -p quipu-ingest --test it fixtures` writes the archives and the folder of
//! today's version anew, and leaves those of others.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use archive::{Archive, Format};
use ingest::prove::check_name;
use sample::{Payload, SampleSettings};
use segment::FOOTER_BYTES;
use store::disk::Folder;
use store::read::Inline;
use store::{Limits, Store, Writer};

use crate::check::check;
use crate::harness::folder::{DataFolder, settings as import_settings};
use crate::harness::made::{blocks, prove, proven_blocks, read_all, spec, write};

fn settings() -> SampleSettings {
    SampleSettings {
        seed: 7,
        block_count: 152,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// The data folder that today's code writes.
const DATA_FOLDER: &str = "data-folder-v1-logs";
/// What the code before the log index wrote.
const UNINDEXED_FOLDER: &str = "data-folder-v1";

fn folder() -> PathBuf {
    static BLESSED: Once = Once::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    if std::env::var_os("QUIPU_BLESS").is_some() {
        BLESSED.call_once(|| bless(&folder));
    }
    folder
}

/// Writes the archives and the data folder that today's code gives.
fn bless(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(DATA_FOLDER) {
            std::fs::remove_dir_all(path).unwrap();
        } else if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    std::fs::create_dir_all(folder.join(DATA_FOLDER)).unwrap();
    let blocks = blocks(&settings());
    write(folder, Format::Era1, &blocks[..64]);
    let ere = write(folder, Format::Ere, &blocks).remove(0);
    let data = DataFolder::new(&spec(&settings()));
    data.import(&ere, import_settings()).unwrap();
    for (name, bytes) in data.files() {
        std::fs::write(folder.join(DATA_FOLDER).join(name), bytes).unwrap();
    }
}

fn fixture(extension: &str) -> PathBuf {
    let mut paths = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
}

/// A copy of a committed data folder.
fn committed(name: &str) -> DataFolder {
    let data = DataFolder::new(&spec(&settings()));
    for entry in std::fs::read_dir(folder().join(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), data.folder.path().join(entry.file_name())).unwrap();
    }
    data
}

#[test]
fn committed_archives_are_proven_and_hold_the_sample_chain() {
    let settings = settings();
    let made = blocks(&settings);
    for (extension, count) in [("era1", 64), ("ere", 152)] {
        let archive = Archive::open(&fixture(extension)).unwrap();
        let report = prove(&archive, &settings, 2).unwrap();
        check_name(&archive, &report).unwrap();
        assert!(read_all(&archive).unwrap() == made[..count], "{extension}");
    }
}

#[test]
fn the_committed_data_folder_is_read_and_checked() {
    let archive = Archive::open(&fixture("ere")).unwrap();
    let committed = committed(DATA_FOLDER);
    committed.check_holds(&proven_blocks(&archive, &committed.spec));
    assert!(check(&committed).1.is_empty());
    // The same blocks give the same bytes, today as then.
    let today = DataFolder::new(&spec(&settings()));
    today.import(&fixture("ere"), import_settings()).unwrap();
    assert!(today.files() == committed.files(), "{:?}", today.files().keys());
}

#[test]
fn a_folder_without_a_log_index_is_read_and_gets_one() {
    let archive = Archive::open(&fixture("ere")).unwrap();
    let old = committed(UNINDEXED_FOLDER);
    old.check_holds(&proven_blocks(&archive, &old.spec));
    assert!(check(&old).1.is_empty());
    let mut writer = Writer::open(old.store(), old.spec.clone()).unwrap();
    assert_eq!(writer.index_next_slot().unwrap(), Some(0));
    assert_eq!(writer.index_next_slot().unwrap(), None);
    drop(writer);
    assert!(old.files() == committed(DATA_FOLDER).files(), "{:?}", old.files().keys());
}

#[test]
fn a_folder_of_a_development_build_is_refused_when_it_is_opened() {
    let data = committed(DATA_FOLDER);
    let names = data.files().into_keys();
    let name = names.into_iter().find(|name| name.ends_with(".segment")).unwrap();
    let path = data.folder.path().join(&name);
    let mut bytes = std::fs::read(&path).unwrap();
    let footer = bytes.len() - FOOTER_BYTES;
    bytes[footer..footer + 8].copy_from_slice(b"QUIPUSEG");
    std::fs::write(&path, bytes).unwrap();
    let disk = Arc::new(Folder::open(data.folder.path()).unwrap());
    let error = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap_err();
    let expected = format!(
        "{}: written by a development build: import the archives again, into another folder",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}
