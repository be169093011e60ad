//! Sample chain to archive and back: what is read is what was written.

use std::path::Path;

use archive::{Archive, ArchiveName, ArchiveWriter, ChecksumList, Format, WriteError};
use chain::Candidate;
use ingest::prove::check_name;
use sample::{NETWORK_NAME, Payload, SampleSettings};

use crate::harness::made::{blocks, prove, read_all, write};

fn settings(seed: u64, block_count: u64) -> SampleSettings {
    SampleSettings {
        seed,
        block_count,
        txs_per_block: 3,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// Writes, reads, proves; every block must come back the same.
fn check(settings: &SampleSettings, format: Format, blocks: &[Candidate]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), format, blocks);
    let mut read = Vec::new();
    for path in &paths {
        let archive = Archive::open(path).unwrap();
        assert_eq!(archive.format(), format);
        let report = prove(&archive, settings, 2).unwrap();
        check_name(&archive, &report).unwrap();
        read.extend(read_all(&archive).unwrap());
    }
    assert_eq!(read.len(), blocks.len());
    for (position, (read, written)) in read.iter().zip(blocks).enumerate() {
        assert_eq!(read, written, "block {position} of the run");
    }
}

#[test]
fn an_era1_holds_the_blocks_before_the_merge() {
    let settings = settings(1, 64);
    check(&settings, Format::Era1, &blocks(&settings));
}

#[test]
fn an_ere_holds_blocks_on_both_sides_of_the_merge() {
    let settings = settings(2, 200);
    check(&settings, Format::Ere, &blocks(&settings));
}

#[test]
fn an_archive_may_begin_anywhere() {
    let settings = settings(3, 140);
    let blocks = blocks(&settings);
    for (first, end) in [(5, 6), (60, 68), (64, 65), (100, 140)] {
        check(&settings, Format::Ere, &blocks[first..end]);
    }
    check(&settings, Format::Era1, &blocks[30..64]);
}

#[test]
fn blocks_without_receipts_are_labelled_and_come_back_without() {
    let settings = settings(4, 80);
    let mut blocks = blocks(&settings);
    for block in &mut blocks {
        block.receipts = None;
    }
    check(&settings, Format::Ere, &blocks);
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), Format::Ere, &blocks);
    let name = ArchiveName::parse(&paths[0]).unwrap();
    assert!(name.is_without_receipts && name.is_without_proofs, "{name}");
}

#[test]
fn a_run_past_8192_blocks_is_cut_at_the_era() {
    let settings = SampleSettings { txs_per_block: 0, ..settings(5, 8200) };
    let blocks = blocks(&settings);
    let folder = tempfile::tempdir().unwrap();
    // From the middle, so that the files are short and the cut is inside.
    let paths = write(folder.path(), Format::Ere, &blocks[8180..]);
    let ranges: Vec<String> =
        paths.iter().map(|path| Archive::open(path).unwrap().range().to_string()).collect();
    assert_eq!(ranges, ["8180..8191", "8192..8199"]);
    check(&settings, Format::Ere, &blocks[8180..]);
}

#[test]
fn the_checksum_lists_speak_of_every_file() {
    let settings = settings(6, 70);
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), Format::Ere, &blocks(&settings));
    let lists = ChecksumList::read_in(folder.path()).unwrap();
    assert_eq!(lists.len(), 2, "one by name, one by number");
    for list in &lists {
        let expected = archive::hash_file(&paths[0]).unwrap();
        assert_eq!(list.find(&paths[0]), Some(expected), "{}", list.file());
    }
}

#[test]
fn nothing_unfinished_is_left_behind() {
    let settings = settings(7, 70);
    let blocks = blocks(&settings);
    let folder = tempfile::tempdir().unwrap();
    let mut writer = ArchiveWriter::create(folder.path(), NETWORK_NAME, Format::Ere).unwrap();
    for block in &blocks {
        writer.push(block).unwrap();
    }
    assert!(files_in(folder.path()) > 0, "sections wait on disk");
    drop(writer);
    assert_eq!(files_in(folder.path()), 0);
}

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let settings = settings(8, 70);
    let made = blocks(&settings);
    let folder = tempfile::tempdir().unwrap();
    let push = |format, blocks: &[Candidate]| -> WriteError {
        let mut writer = ArchiveWriter::create(folder.path(), NETWORK_NAME, format).unwrap();
        blocks.iter().try_for_each(|block| writer.push(block)).unwrap_err()
    };
    let message = push(Format::Era1, &made).to_string();
    assert_eq!(message, "block 64 is post-merge: era1 holds pre-merge blocks only, use ere");
    let message = push(Format::Ere, &[made[3].clone(), made[5].clone()]).to_string();
    assert_eq!(message, "block 5 after block 3: archives hold consecutive blocks");
    let mut bare = made[4].clone();
    bare.receipts = None;
    let message = push(Format::Ere, &[made[3].clone(), bare]).to_string();
    assert_eq!(message, "block 4 has no receipts, unlike its archive");
    let mut unsummed = made[3].clone();
    unsummed.total_difficulty = None;
    let message = push(Format::Era1, &[unsummed]).to_string();
    assert_eq!(message, "block 3 is pre-merge and has no total difficulty");
}
