//! A data folder of several segments, and what is refused of it.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::data::names;
use super::run::{Ran, quipu, text};
use super::served::Served;

/// A data folder with blocks 0 to 599 in three segments.
pub(crate) struct Long {
    pub(crate) folder: TempDir,
}

impl Long {
    pub(crate) fn new() -> Self {
        let long = Self { folder: tempfile::tempdir().unwrap() };
        let (to, size) = (long.archives(), ["--block-count", "600", "--txs-per-block", "1"]);
        quipu(&[&["sample", "--to", text(&to)], &size[..]].concat()).ends_with(0);
        long.import().ends_with(0);
        assert_eq!(long.segments().len(), 3, "{:?}", long.segments());
        long
    }

    pub(crate) fn archives(&self) -> PathBuf {
        self.folder.path().join("archives")
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn segments(&self) -> Vec<String> {
        names(&self.path(), ".segment")
    }

    pub(crate) fn lose(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        quipu(&[args, &["--data-dir", text(&self.path())]].concat())
    }

    pub(crate) fn import(&self) -> Ran {
        let archives = self.archives();
        let genesis = archives.join("genesis.json");
        self.run(&["import", "--genesis", text(&genesis), text(&archives)])
    }
}

/// The error code of a block by number; `None` if it is answered, be it with null.
pub(crate) fn refused_code(served: &Served, number: u64) -> Option<i64> {
    let params = json!([format!("{number:#x}"), false]);
    served.call("eth_getBlockByNumber", &params)["error"]["code"].as_i64()
}
