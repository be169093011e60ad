//! Layouts that other writers made: legacy tags, the draft's index, proofs, entries nobody knows.
//!
//! The files are put together here entry by entry, not by our own writer.

use archive::{Archive, ArchiveError, ArchiveFault, Format};
use chain::Candidate;
use sample::{Payload, SampleSettings};

use crate::harness::made::{blocks, prove, read_all, write};

#[derive(Clone)]
struct Entry {
    tag: [u8; 2],
    data: Vec<u8>,
}

const HEADER: [u8; 2] = [3, 0];
const BODY: [u8; 2] = [4, 0];
const TOTAL_DIFFICULTY: [u8; 2] = [6, 0];
const ACCUMULATOR: [u8; 2] = [7, 0];
const SLIM_RECEIPTS: [u8; 2] = [10, 0];
const PROOF: [u8; 2] = [11, 0];
const ERE_INDEX: [u8; 2] = [0x67, 0x32];
const ERA1_INDEX: [u8; 2] = [0x66, 0x32];

fn settings() -> SampleSettings {
    SampleSettings {
        seed: 11,
        block_count: 70,
        txs_per_block: 2,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// Blocks 60 to 66, across the merge, and their entries by our own writer.
fn sound() -> (Vec<Candidate>, Vec<Entry>) {
    let blocks = blocks(&settings())[60..67].to_vec();
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), Format::Ere, &blocks);
    let bytes = std::fs::read(&paths[0]).unwrap();
    let mut rest = bytes.as_slice();
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[2..6].try_into().unwrap()) as usize;
        entries.push(Entry { tag: [rest[0], rest[1]], data: rest[8..8 + length].to_vec() });
        rest = &rest[8 + length..];
    }
    (blocks, entries)
}

fn entry(tag: [u8; 2], data: &[u8]) -> Entry {
    Entry { tag, data: data.to_vec() }
}

/// Writes the entries and an index over the given tags, in their order.
fn pack(entries: &[Entry], index_tag: [u8; 2], slots: &[[u8; 2]], first: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut offsets: Vec<Vec<u64>> = vec![Vec::new(); slots.len()];
    for entry in entries.iter().filter(|entry| ![ERE_INDEX, ERA1_INDEX].contains(&entry.tag)) {
        for (slot, tag) in slots.iter().enumerate() {
            if *tag == entry.tag {
                offsets[slot].push(bytes.len() as u64);
            }
        }
        push(&mut bytes, entry);
    }
    let index_offset = bytes.len() as u64;
    let count = offsets[0].len();
    let mut index = first.to_le_bytes().to_vec();
    for block in 0..count {
        for slot in &offsets {
            index.extend(slot[block].wrapping_sub(index_offset).to_le_bytes());
        }
    }
    index.extend((slots.len() as u64).to_le_bytes());
    index.extend((count as u64).to_le_bytes());
    push(&mut bytes, &entry(index_tag, &index));
    bytes
}

fn push(bytes: &mut Vec<u8>, entry: &Entry) {
    bytes.extend(entry.tag);
    bytes.extend((entry.data.len() as u32).to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(&entry.data);
}

const SLOTS: [[u8; 2]; 4] = [HEADER, BODY, SLIM_RECEIPTS, TOTAL_DIFFICULTY];

fn take(bytes: Vec<u8>) -> Result<Vec<Candidate>, ArchiveError> {
    let archive = Archive::from_source("packed".to_owned(), bytes)?;
    prove(&archive, &settings(), 2)?;
    read_all(&archive)
}

#[test]
fn what_this_module_packs_is_what_the_writer_writes() {
    let (blocks, entries) = sound();
    assert_eq!(take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap(), blocks);
}

#[test]
fn legacy_tags_of_receipts_are_read() {
    let (blocks, mut entries) = sound();
    for entry in entries.iter_mut().filter(|entry| entry.tag == SLIM_RECEIPTS) {
        entry.tag = [8, 0];
    }
    let slots = [HEADER, BODY, [8, 0], TOTAL_DIFFICULTY];
    assert_eq!(take(pack(&entries, ERE_INDEX, &slots, 60)).unwrap(), blocks);
}

#[test]
fn the_drafts_index_tag_is_read() {
    let (blocks, entries) = sound();
    assert_eq!(take(pack(&entries, ERA1_INDEX, &SLOTS, 60)).unwrap(), blocks);
}

#[test]
fn proofs_are_passed_over_under_both_tags() {
    for tag in [PROOF, [9, 0]] {
        let (blocks, mut entries) = sound();
        let place = entries.iter().position(|entry| entry.tag == TOTAL_DIFFICULTY).unwrap();
        for _ in 0..blocks.len() {
            entries.insert(place, entry(tag, b"opaque"));
        }
        let slots = [HEADER, BODY, SLIM_RECEIPTS, TOTAL_DIFFICULTY, tag];
        let bytes = pack(&entries, ERE_INDEX, &slots, 60);
        assert!(Archive::from_source(String::new(), bytes.clone()).unwrap().has_proofs());
        assert_eq!(take(bytes).unwrap(), blocks);
    }
}

#[test]
fn unknown_and_repeated_version_entries_are_passed_over() {
    let (blocks, mut entries) = sound();
    entries.insert(3, entry([0x65, 0x32], b""));
    entries.insert(5, entry([0, 0], b"padding"));
    entries.insert(9, entry([0x77, 0x01], b"from the future"));
    assert_eq!(take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap(), blocks);
}

#[test]
fn an_index_that_misses_or_doubles_a_component_is_refused() {
    let (_, entries) = sound();
    for slots in [
        vec![HEADER, BODY, SLIM_RECEIPTS],
        vec![HEADER, BODY, BODY, TOTAL_DIFFICULTY],
        vec![HEADER, BODY, SLIM_RECEIPTS, TOTAL_DIFFICULTY, TOTAL_DIFFICULTY],
    ] {
        let error = take(pack(&entries, ERE_INDEX, &slots, 60)).unwrap_err();
        let is_told = matches!(
            *error.fault,
            ArchiveFault::EntryCount { .. } | ArchiveFault::IndexTarget { .. }
        );
        assert!(is_told, "{error}");
    }
}

#[test]
fn an_index_with_another_first_block_is_refused_by_number() {
    let (_, entries) = sound();
    let error = take(pack(&entries, ERE_INDEX, &SLOTS, 61)).unwrap_err();
    assert!(error.to_string().contains("block 61, byte 8: number is 60, expected 61"), "{error}");
}

#[test]
fn entries_that_the_index_does_not_count_are_refused() {
    let (_, mut entries) = sound();
    let body = entries.iter().position(|entry| entry.tag == BODY).unwrap();
    entries.remove(body);
    let error = take(pack(&entries, ERE_INDEX, &[HEADER], 60)).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::IndexSlots { found: 1, .. }), "{error}");
}

#[test]
fn total_difficulties_that_no_accumulator_proves_are_refused() {
    let (_, mut entries) = sound();
    entries.retain(|entry| entry.tag != ACCUMULATOR);
    let error = take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::NoAccumulator { .. }), "{error}");
}

#[test]
fn an_accumulator_over_other_blocks_is_refused() {
    let (_, mut entries) = sound();
    let place = entries.iter().position(|entry| entry.tag == ACCUMULATOR).unwrap();
    entries[place].data[0] ^= 1;
    let error = take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::Accumulator { .. }), "{error}");
}

#[test]
fn entries_of_very_many_tiny_things_are_refused_before_they_take_memory() {
    let list_of = |item: &[u8], count: usize| {
        let mut rlp = Vec::new();
        alloy_rlp::Header { list: true, payload_length: item.len() * count }.encode(&mut rlp);
        rlp.extend(item.repeat(count));
        rlp
    };
    let framed = |plain: &[u8]| {
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        std::io::Write::write_all(&mut encoder, plain).unwrap();
        encoder.into_inner().unwrap()
    };
    let transactions = list_of(&[0xc0], 1 << 20);
    let mut body = Vec::new();
    alloy_rlp::Header { list: true, payload_length: transactions.len() + 1 }.encode(&mut body);
    body.extend(transactions);
    body.push(0xc0);
    let receipts = list_of(&[0xc4, 0x80, 0x01, 0x01, 0xc0], 1 << 20);
    for (tag, plain, told) in [
        (BODY, body, "transaction 0 has 1 bytes, at least 32 expected"),
        (SLIM_RECEIPTS, receipts, "more than"),
    ] {
        let (_, mut entries) = sound();
        let place = entries.iter().position(|entry| entry.tag == tag).unwrap();
        entries[place].data = framed(&plain);
        let error = take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn an_era1_index_must_point_to_headers() {
    let blocks = blocks(&settings())[..3].to_vec();
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(&write(folder.path(), Format::Era1, &blocks)[0]).unwrap();
    assert!(take(bytes.clone()).is_ok());
    // Every offset forward by one header: to the bodies.
    let index = bytes.len() - 3 * 8 - 24;
    let mut moved = bytes.clone();
    let mut header_offset = 8;
    for block in 0..3 {
        let place = index + 16 + 8 * block;
        let head = &bytes[header_offset..header_offset + 6];
        let header_bytes = 8 + u64::from(u32::from_le_bytes(head[2..6].try_into().unwrap()));
        let offset = u64::from_le_bytes(bytes[place..place + 8].try_into().unwrap());
        let next = offset.wrapping_add(header_bytes);
        moved[place..place + 8].copy_from_slice(&next.to_le_bytes());
        for _ in 0..4 {
            let head = &bytes[header_offset..header_offset + 6];
            header_offset += 8 + u32::from_le_bytes(head[2..6].try_into().unwrap()) as usize;
        }
    }
    let error = take(moved).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::IndexOffset { what: "header", .. }), "{error}");
}

#[test]
fn an_entry_that_inflates_without_end_is_refused() {
    let (_, mut entries) = sound();
    let place = entries.iter().position(|entry| entry.tag == BODY).unwrap();
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    let zeros = vec![0; 1 << 20];
    for _ in 0..65 {
        std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    }
    entries[place].data = encoder.into_inner().unwrap();
    let error = take(pack(&entries, ERE_INDEX, &SLOTS, 60)).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::InflatedTooLarge { .. }), "{error}");
    assert_eq!(error.block, Some(60));
}
