//! Archives that were written once and are read for ever.
//!
//! `tests/fixtures` holds the first 136 blocks of the sample chain with seed 7 and one
//! transaction a block, as this project wrote them on 2026-11-15: the era1 up to the merge, the
//! ere with all of them.

use std::path::{Path, PathBuf};

use ingest::archive::Archive;
use ingest::prove::check_name;
use ingest::sample::{Payload, Settings};

use crate::made::{blocks, prove, read_all};

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
