//! Posting files against a plain map of keys and places.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256};
use chain::SplitMix64;

use super::bucket::{KeyPlaces, PlaceList};
use super::part::{PART_BITS, SLOT_PLACE_BITS};
use super::tail::place_bits_max;
use super::*;
use crate::bytes::{slice, wide};
use crate::lookup::RunSpan;

type Model = BTreeMap<u64, BTreeSet<u64>>;

/// Places of `slot_count` slots: singles, keys of many slots, and hubs.
fn model(slot_count: u64, seed: u64) -> Model {
    let mut numbers = SplitMix64::new(seed);
    let mut model = Model::new();
    let universe = slot_count << SLOT_PLACE_BITS;
    for key in 0..3000_u64 {
        let prefix = PostingKey::of(PostingKind::Topic1, &key.to_be_bytes()).number();
        let count = match key {
            0 => 100_000,
            1 => 9000,
            2 => 600 * slot_count,
            3..50 => 1 + numbers.below(700),
            _ => 1 + numbers.below(2),
        };
        let places = (0..count).map(|_| numbers.below(universe));
        model.entry(prefix).or_default().extend(places);
    }
    model
}

fn slot_file(model: &Model, slot: u64) -> Vec<u8> {
    let mut builder = PostingsBuilder::new();
    for (prefix, places) in model {
        for place in places.iter().filter(|place| **place >> SLOT_PLACE_BITS == slot) {
            let inside = place & ((1 << SLOT_PLACE_BITS) - 1);
            let block = u32::try_from(inside >> PART_BITS).unwrap();
            let part = u32::try_from(inside & 15).unwrap();
            let key = PostingKey::from_number(*prefix);
            // The last and the first transaction of a part give the same posting.
            let transactions = transactions_of(part);
            builder.push(key, block, transactions.start);
            builder.push(key, block, transactions.end - 1);
        }
    }
    builder.finish(slot).unwrap()
}

fn direct_file(model: &Model, slot_count: u64) -> Vec<u8> {
    let count = model.values().map(|places| wide(places.len())).sum();
    let span = RunSpan::new(0, slot_count).unwrap();
    let mut writer = PostingsWriter::new(span, count, place_bits_max(slot_count)).unwrap();
    let mut out = Vec::new();
    for (prefix, places) in model {
        let list = PlaceList::new(places.iter().copied().collect(), slot_count);
        writer.push(KeyPlaces { prefix: *prefix, list }, &mut out).unwrap();
    }
    writer.finish(&mut out).unwrap();
    out
}

/// The places of a key, as a query reads them.
fn find(file: &[u8], key: PostingKey) -> Result<BTreeSet<u64>, CorruptPostings> {
    let postings = Postings::from_file(file)?;
    let found = postings.probe(key, slice(file, &postings.bucket_range(key)))?;
    let slots = match found {
        None => Vec::new(),
        Some(FoundPostings::Slots(slots)) => slots,
        Some(FoundPostings::Long(place)) => {
            let table = place.read_table(slice(file, &place.table_range()))?;
            let all = 0..postings.span().slot_count();
            table.read_parts(all.clone(), slice(file, &table.pieces_range(all)))?
        }
    };
    Ok(flat(&slots))
}

fn flat(slots: &[(u64, SlotParts)]) -> BTreeSet<u64> {
    let mut places = BTreeSet::new();
    for (slot, parts) in slots {
        for block in parts.as_slice() {
            let inside =
                block.iter().map(|part| u64::from(block.block) << PART_BITS | u64::from(part));
            places.extend(inside.map(|place| slot << SLOT_PLACE_BITS | place));
        }
    }
    places
}

/// Every posting of a file, bucket by bucket.
fn all(file: &[u8]) -> Result<Model, CorruptPostings> {
    let postings = Postings::from_file(file)?;
    let mut found = Model::new();
    for bucket in 0..postings.bucket_count() {
        let range = postings.buckets_range(bucket..bucket + 1).unwrap();
        for KeyEntry { key, slots } in postings.entries(bucket, slice(file, &range))? {
            assert!(found.insert(key.number(), flat(&slots)).is_none(), "a key twice");
        }
    }
    Ok(found)
}

#[test]
fn every_place_of_every_key_is_found_and_no_other() {
    let model = model(1, 7);
    let file = slot_file(&model, 0);
    assert_eq!(all(&file).unwrap(), model);
    for (prefix, places) in &model {
        assert_eq!(find(&file, PostingKey::from_number(*prefix)).unwrap(), *places);
    }
    for absent in 0..2000_u64 {
        let key = PostingKey::of(PostingKind::Topic2, &absent.to_be_bytes());
        assert!(find(&file, key).unwrap().is_empty());
    }
}

#[test]
fn a_merged_file_is_the_one_that_a_direct_build_gives() {
    for levels in 1..5_u32 {
        let slot_count = 1 << levels;
        let model = model(slot_count, u64::from(levels));
        let mut files: Vec<Vec<u8>> = (0..slot_count).map(|slot| slot_file(&model, slot)).collect();
        for _ in 0..levels {
            files =
                files.chunks(2).map(|it| merge_posting_files(&it[0], &it[1]).unwrap()).collect();
        }
        assert_eq!(files.len(), 1);
        assert_eq!(files[0], direct_file(&model, slot_count), "{slot_count} slots");
        assert_eq!(all(&files[0]).unwrap(), model);
        for prefix in model.keys().take(200) {
            let key = PostingKey::from_number(*prefix);
            assert_eq!(find(&files[0], key).unwrap(), model[prefix]);
        }
    }
}

#[test]
fn a_long_list_is_read_slot_by_slot() {
    let model = model(8, 3);
    let file = direct_file(&model, 8);
    let hub = PostingKey::of(PostingKind::Topic1, &0_u64.to_be_bytes());
    let postings = Postings::from_file(&file).unwrap();
    let found = postings.probe(hub, slice(&file, &postings.bucket_range(hub))).unwrap();
    let Some(FoundPostings::Long(place)) = found else { panic!("{found:?}") };
    let table = place.read_table(slice(&file, &place.table_range())).unwrap();
    for slots in [0..1, 3..5, 7..8] {
        let range = table.pieces_range(slots.clone());
        assert!(range.end - range.start < (place.range().end - place.range().start) / 2);
        let found = flat(&table.read_parts(slots.clone(), slice(&file, &range)).unwrap());
        let expected: BTreeSet<u64> = model[&hub.number()]
            .iter()
            .copied()
            .filter(|place| slots.contains(&(place >> SLOT_PLACE_BITS)))
            .collect();
        assert_eq!(found, expected, "{slots:?}");
    }
}

#[test]
fn every_flipped_byte_is_refused() {
    let mut small: Model =
        model(1, 9).into_iter().filter(|(_, places)| places.len() < 3).take(40).collect();
    small.insert(77, (0..700).map(|n| n * 180).collect());
    let file = slot_file(&small, 0);
    assert_eq!(all(&file).unwrap(), small);
    for place in 0..file.len() {
        for bit in [0, 7] {
            let mut damaged = file.clone();
            damaged[place] ^= 1 << bit;
            // A reserved byte of the footer is covered by its checksum like all others.
            assert!(all(&damaged).is_err(), "byte {place} of {}", file.len());
        }
    }
    for length in 0..file.len() {
        assert!(all(&file[..length]).is_err(), "cut to {length}");
    }
}

#[test]
fn kinds_do_not_meet() {
    let topic = B256::repeat_byte(7);
    let keys: BTreeSet<u64> = PostingKind::TOPICS
        .iter()
        .map(|kind| PostingKey::of(*kind, topic.as_slice()).number())
        .chain([PostingKey::of_address(&Address::repeat_byte(7)).number()])
        .collect();
    assert_eq!(keys.len(), 5);
}

#[test]
fn only_halves_merge() {
    let file = |slot| PostingsBuilder::new().finish(slot).unwrap();
    assert!(merge_posting_files(&file(0), &file(1)).is_ok());
    let error = merge_posting_files(&file(1), &file(2)).unwrap_err().to_string();
    assert_eq!(error, "slots 1..1 and slots 2..2 are not the halves of one posting file");
}
