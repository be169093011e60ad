//! `quipu export`: what was imported comes out again.

use std::fs;
use std::path::Path;

use alloy_primitives::{Bytes, hex};
use archive::Archive;
use chain::{Candidate, Receipt, logs_bloom};
use serde_json::Value;

use crate::harness::data::{Data, names, write_part};
use crate::harness::run::{archive, quipu, sample, text};

#[test]
fn an_ere_export_is_the_archive_that_was_imported() {
    let data = Data::imported();
    let ran = data.export("ere", "out", &[]).ends_with(0);
    assert!(ran.out.contains("blocks 0..99"), "{}", ran.out);
    assert!(ran.out.contains("1 file written: 100 blocks"), "{}", ran.out);
    let out = data.folder.path().join("out");
    let written = archive(&out);
    assert_eq!(written.file_name(), data.archive().file_name());
    assert!(fs::read(written).unwrap() == fs::read(data.archive()).unwrap());
    let list = |folder: &Path| fs::read(folder.join("checksums.txt")).unwrap();
    assert!(list(&out) == list(&data.folder.path().join("archives")));
    quipu(&["verify", "--genesis", text(&data.genesis()), text(&out)]).ends_with(0);
}

#[test]
fn an_era1_export_ends_at_the_merge_and_is_the_era1_of_the_chain() {
    let data = Data::imported();
    let ran = data.export("era1", "out", &[]).ends_with(0);
    assert!(ran.err.contains("blocks 64..99 are past the merge"), "{}", ran.err);
    let other = tempfile::tempdir().unwrap();
    sample(other.path(), "era1");
    let (written, made) = (archive(&data.folder.path().join("out")), archive(other.path()));
    assert_eq!(written.file_name(), made.file_name());
    assert!(fs::read(written).unwrap() == fs::read(made).unwrap());
    // Asked for by number, blocks that era1 cannot hold are missing.
    let ran = data.export("era1", "more", &["--blocks", "60..70"]).ends_with(1);
    assert!(ran.out.contains("blocks 60..63"), "{}", ran.out);
    assert!(ran.err.contains("blocks 64..70 are past the merge"), "{}", ran.err);
    data.export("era1", "none", &["--blocks", "64..70"]).ends_with(1);
    assert_eq!(names(&data.folder.path().join("none"), ".era1"), Vec::<String>::new());
}

#[test]
fn a_part_is_an_archive_of_its_own_that_holds_the_same_blocks() {
    let data = Data::imported();
    for (format, blocks, last) in [("ere", "10..69", 69), ("era1", "10..60", 60)] {
        data.export(format, format, &["--blocks", blocks]).ends_with(0);
        let written = Archive::open(&archive(&data.folder.path().join(format))).unwrap();
        assert_eq!((written.range().first(), written.range().last()), (10, last));
        let original = Archive::open(&data.archive()).unwrap();
        for number in 10..=last {
            assert!(written.read_block(number).unwrap() == original.read_block(number).unwrap());
        }
    }
}

#[test]
fn ndjson_has_one_object_a_block_with_its_consensus_bytes() {
    let data = Data::imported();
    data.export("ndjson", "out", &[]).ends_with(0);
    let path = data.folder.path().join("out/sample-0000000000-0000000099.ndjson");
    let lines = fs::read_to_string(path).unwrap();
    let original = Archive::open(&data.archive()).unwrap();
    let mut count = 0;
    for (number, line) in (0..).zip(lines.lines()) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["number"], number);
        let block = original.read_block(number).unwrap();
        assert_eq!(object["hash"], chain::hash_header(&block.header).to_string());
        check_line(&object, &block);
        count += 1;
    }
    assert_eq!(count, 100);
}

fn bytes(value: &Value) -> Bytes {
    value.as_str().unwrap().parse().unwrap()
}

fn check_line(object: &Value, block: &Candidate) {
    assert_eq!(bytes(&object["header"]), block.header);
    assert_eq!(bytes(&object["ommers"]), block.body.ommers);
    match &block.body.withdrawals {
        Some(rlp) => assert_eq!(bytes(&object["withdrawals"]), *rlp),
        None => assert!(object["withdrawals"].is_null()),
    }
    let list = |key: &str| object[key].as_array().unwrap().iter().map(bytes).collect::<Vec<_>>();
    assert_eq!(list("transactions"), block.body.transactions);
    let senders = list("senders");
    assert_eq!(senders.len(), block.body.transactions.len());
    assert!(senders.iter().all(|sender| sender.len() == 20));
    let encoded = |receipt: &Receipt| {
        let mut bytes = Vec::new();
        receipt.encode_2718(&logs_bloom(&receipt.fields.logs), &mut bytes);
        Bytes::from(bytes)
    };
    let receipts: Vec<Bytes> = block.receipts.as_ref().unwrap().iter().map(encoded).collect();
    assert_eq!(list("receipts"), receipts);
}

#[test]
fn every_range_is_exported_and_a_hole_in_what_was_asked_ends_with_1() {
    let data = Data::new();
    let part = write_part(&data.archive(), 60..=99, true, &data.folder.path().join("part"));
    data.import(&["--blocks", "0..49"]).ends_with(0);
    data.run("import", &["--unanchored", text(&part)]).ends_with(0);
    // All that is held: the gap is told, and nothing is missing of what was asked.
    let ran = data.export("ndjson", "all", &[]).ends_with(0);
    assert!(ran.err.contains("note: blocks 50..59 are not held"), "{}", ran.err);
    let written = names(&data.folder.path().join("all"), ".ndjson");
    let expected = ["sample-0000000000-0000000049.ndjson", "sample-0000000060-0000000099.ndjson"];
    assert_eq!(written, expected);
    let ran = data.export("ere", "asked", &["--blocks", "40..64"]).ends_with(1);
    assert!(ran.err.contains("error: blocks 50..59 are not held"), "{}", ran.err);
    assert!(ran.out.contains("blocks 40..49") && ran.out.contains("blocks 60..64"), "{}", ran.out);
    let ran = data.export("ere", "none", &["--blocks", "50..55"]).ends_with(1);
    assert!(ran.err.contains("does not hold any of blocks 50..55"), "{}", ran.err);
    assert!(!data.folder.path().join("none").exists());
}

#[test]
fn files_that_are_there_are_never_replaced() {
    let data = Data::imported();
    for format in ["ere", "era1", "ndjson"] {
        data.export(format, format, &[]).ends_with(0);
        let folder = data.folder.path().join(format);
        let written = names(&folder, format).pop().unwrap();
        fs::write(folder.join(&written), "mine").unwrap();
        let ran = data.export(format, format, &[]).ends_with(1);
        assert!(ran.err.contains(&format!("{written}: is there already")), "{}", ran.err);
        assert_eq!(fs::read(folder.join(&written)).unwrap(), b"mine");
        let left = names(&folder, "").into_iter().filter(|name| name.starts_with('.'));
        assert_eq!(left.count(), 0, "nothing unfinished stays");
    }
}

#[test]
fn blocks_without_receipts_are_an_ere_of_their_own_and_no_era1() {
    let data = Data::new();
    let bare = write_part(&data.archive(), 0..=99, false, &data.folder.path().join("bare"));
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), "--without-receipts", text(&bare)];
    data.run("import", &args).ends_with(0);
    data.export("ere", "out", &[]).ends_with(0);
    let written = archive(&data.folder.path().join("out"));
    assert_eq!(written.file_name(), bare.file_name());
    assert!(fs::read(written).unwrap() == fs::read(&bare).unwrap());
    let ran = data.export("era1", "none", &[]).ends_with(1);
    assert!(ran.err.contains("blocks 0..99 are held without receipts"), "{}", ran.err);
    assert!(ran.err.contains("--format ere"), "{}", ran.err);
    data.export("ndjson", "lines", &["--blocks", "7..7"]).ends_with(0);
    let line = data.folder.path().join("lines/sample-0000000007-0000000007.ndjson");
    let object: Value = serde_json::from_slice(&fs::read(line).unwrap()).unwrap();
    assert!(object["receipts"].is_null());
    assert!(hex::decode(object["header"].as_str().unwrap()).is_ok());
    // With receipts of some of them, each kind has archives of its own.
    data.import(&["--blocks", "0..49"]).ends_with(0);
    let ran = data.export("ere", "both", &[]).ends_with(0);
    assert!(ran.out.contains("noproofs.ere  blocks 0..49"), "{}", ran.out);
    assert!(ran.out.contains("noproofs-noreceipts.ere  blocks 50..99"), "{}", ran.out);
}

#[test]
fn total_difficulty_is_told_again_as_the_archive_told_it() {
    let data = Data::new();
    // A part in the middle: only the archive knows the sum before it.
    data.import(&["--blocks", "20..99", "--unanchored"]).ends_with(0);
    data.export("ere", "out", &[]).ends_with(0);
    let written = Archive::open(&archive(&data.folder.path().join("out"))).unwrap();
    let original = Archive::open(&data.archive()).unwrap();
    for number in 20..100 {
        let sum = |archive: &Archive<_>| archive.read_total_difficulty(number).unwrap();
        assert_eq!(sum(&written), sum(&original), "block {number}");
    }
}

#[test]
fn pre_merge_archives_need_total_difficulty_and_say_so() {
    let data = Data::new();
    let silent = data.folder.path().join("silent.ere");
    fs::write(&silent, without_difficulties(&fs::read(data.archive()).unwrap())).unwrap();
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), "--unanchored", "--blocks", "20..99", text(&silent)];
    data.run("import", &args).ends_with(0);
    for format in ["ere", "era1"] {
        let ran = data.export(format, "out", &[]).ends_with(1);
        assert!(ran.err.contains("total difficulty before block 20 is not known"), "{}", ran.err);
        assert!(!data.folder.path().join("out").exists(), "refused before anything is written");
    }
    data.export("ere", "later", &["--blocks", "64..99"]).ends_with(0);
    data.export("ndjson", "lines", &[]).ends_with(0);
}

/// An ere archive without its total difficulties and its accumulator, which the format allows.
fn without_difficulties(bytes: &[u8]) -> Vec<u8> {
    const HEADER: u16 = 0x03;
    const SECTIONS: [u16; 3] = [HEADER, 0x04, 0x0a];
    let (mut kept, mut offsets) = (Vec::new(), [const { Vec::new() }; 3]);
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        let section = SECTIONS.iter().position(|section| *section == kind);
        if let Some(section) = section {
            offsets[section].push(kept.len() as u64);
        }
        if section.is_some() || kept.is_empty() {
            kept.extend_from_slice(&rest[..8 + length]);
        }
        rest = &after[length..];
    }
    let index_offset = kept.len() as u64;
    let mut index = 0_u64.to_le_bytes().to_vec();
    for block in 0..offsets[0].len() {
        for section in &offsets {
            index.extend_from_slice(&section[block].wrapping_sub(index_offset).to_le_bytes());
        }
    }
    index.extend_from_slice(&3_u64.to_le_bytes());
    index.extend_from_slice(&(offsets[0].len() as u64).to_le_bytes());
    kept.extend_from_slice(&[0x67, 0x32]);
    kept.extend_from_slice(&(index.len() as u32).to_le_bytes());
    kept.extend_from_slice(&[0, 0]);
    kept.extend(index);
    kept
}

#[test]
fn wrong_flags_end_with_2_and_a_folder_that_cannot_be_written_with_1() {
    let data = Data::imported();
    data.run("export", &["--format", "ere"]).ends_with(2);
    data.export("zip", "out", &[]).ends_with(2);
    data.export("ere", "out", &["--blocks", "5..4"]).ends_with(2);
    assert!(!data.folder.path().join("out").exists());
    let file = data.folder.path().join("in the way");
    fs::write(&file, "").unwrap();
    for format in ["ere", "ndjson"] {
        let ran = data.export(format, "in the way", &[]).ends_with(1);
        assert!(ran.err.contains("in the way"), "{}", ran.err);
    }
}
