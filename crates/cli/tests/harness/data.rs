//! Sample chains in parts, and data folders that hold them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use archive::{Archive, ArchiveWriter, Format};
use tempfile::TempDir;

use crate::harness::run::{Ran, archive, quipu, sample, text};

/// A sample chain of 100 blocks as one ere archive, and a data folder that is not there yet.
pub(crate) struct Data {
    pub(crate) folder: TempDir,
}

impl Data {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        sample(&folder.path().join("archives"), "ere");
        Self { folder }
    }

    /// The same with the chain in the data folder.
    pub(crate) fn imported() -> Self {
        let data = Self::new();
        data.import(&[]).ends_with(0);
        data
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        archive(&self.folder.path().join("archives"))
    }

    pub(crate) fn genesis(&self) -> PathBuf {
        self.folder.path().join("archives/genesis.json")
    }

    /// Runs a command on the data folder.
    pub(crate) fn run(&self, command: &str, args: &[&str]) -> Ran {
        let path = self.path();
        quipu(&[&[command, "--data-dir", text(&path)], args].concat())
    }

    /// Imports the archive with its genesis.
    pub(crate) fn import(&self, args: &[&str]) -> Ran {
        let (genesis, archive) = (self.genesis(), self.archive());
        self.run("import", &[&["--genesis", text(&genesis), text(&archive)], args].concat())
    }

    /// Exports into a folder of this name.
    pub(crate) fn export(&self, format: &str, to: &str, args: &[&str]) -> Ran {
        let to = self.folder.path().join(to);
        self.run("export", &[&["--format", format, "--to", text(&to)], args].concat())
    }

    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.path())
    }
}

/// Every file of a folder but the lock, by name.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.map(|entry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    });
    files.filter(|(name, _)| name != "lock").collect()
}

/// Writes some blocks of an archive as an ere archive of their own, without receipts if told so.
pub(crate) fn write_part(
    from: &Path,
    blocks: RangeInclusive<u64>,
    has_receipts: bool,
    to: &Path,
) -> PathBuf {
    let archive = Archive::open(from).unwrap();
    let mut writer = ArchiveWriter::create(to, "sample", Format::Ere).unwrap();
    for number in blocks {
        let mut block = archive.read_block(number).unwrap();
        if !has_receipts {
            block.receipts = None;
        }
        writer.push(&block).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!(written.len(), 1, "one archive");
    written[0].path.clone()
}

/// The names of the files in a folder with an ending, in order.
pub(crate) fn names(folder: &Path, ending: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}
