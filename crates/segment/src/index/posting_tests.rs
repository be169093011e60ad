//! Runs of posting lists against a plain map of keys and places.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::Address;
use chain::SplitMix64;

use super::file::{Shape, place_bits_max};
use super::ordinal_tests::merge_files;
use super::part::{PART_BITS, SLOT_PLACE_BITS};
use super::posting::PlaceList;
use super::writer::RunWriter;
use super::*;
use crate::bytes::{slice, wide};

type Model = BTreeMap<u64, BTreeSet<u64>>;

const GOLDEN: &str = "02000000dbe0bf5dc4eecba7ed48011c033b3dde02000000000000000300000000000000020000000000000014000000\
    00000000010000000000000000070301dfee14dc5175697075496478";

/// Places of `slot_count` slots: singles, keys of many slots, hubs, and one that is a hub of one slot.
fn model(slot_count: u64, key_count: u64, seed: u64) -> Model {
    let mut numbers = SplitMix64::new(seed);
    let mut model = Model::new();
    let universe = slot_count << SLOT_PLACE_BITS;
    for key in 0..key_count {
        let prefix = IndexKey::of(KeyKind::Topic1, &key.to_be_bytes()).number();
        let (count, end) = match key {
            0 => (100_000, universe),
            1 => (9000, universe),
            2 => (600 * slot_count, universe),
            // Long in a file of one slot, and not in one of many.
            3 => (700, 1 << SLOT_PLACE_BITS),
            4..50 => (1 + numbers.below(700), universe),
            _ => (1 + numbers.below(2), universe),
        };
        let places = (0..count).map(|_| numbers.below(end));
        model.entry(prefix).or_default().extend(places);
    }
    model
}

/// The same without the later blocks of some slots, and without any of others.
fn thinned(model: Model) -> Model {
    let is_held = |place: &u64| match (place >> SLOT_PLACE_BITS) % 4 {
        0 => place & ((1 << SLOT_PLACE_BITS) - 1) < 20 << PART_BITS,
        1 => false,
        _ => true,
    };
    let held = |places: BTreeSet<u64>| places.into_iter().filter(is_held).collect::<BTreeSet<_>>();
    let keys = model.into_iter().map(|(key, places)| (key, held(places)));
    keys.filter(|(_, places)| !places.is_empty()).collect()
}

fn slot_file(model: &Model, slot: u64) -> Vec<u8> {
    let mut builder = PostingsBuilder::new(slot);
    for (prefix, places) in model {
        for place in places.iter().filter(|place| **place >> SLOT_PLACE_BITS == slot) {
            let inside = place & ((1 << SLOT_PLACE_BITS) - 1);
            let number = slot * 8192 + (inside >> PART_BITS);
            let part = u32::try_from(inside & 15).unwrap();
            let key = IndexKey::from_number(*prefix);
            // The last and the first transaction of a part give the same posting.
            let transactions = transactions_of(part);
            builder.push(key, number, transactions.start).unwrap();
            builder.push(key, number, transactions.end - 1).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn direct_file(model: &Model, slot_count: u64) -> Vec<u8> {
    let count = model.values().map(|places| wide(places.len())).sum();
    let span = RunSpan::new(0, slot_count).unwrap();
    let shape = Shape::new(RunSubject::Logs, span, count, place_bits_max(slot_count));
    let mut writer = RunWriter::new(shape, Vec::new()).unwrap();
    let mut out = Vec::new();
    for (prefix, places) in model {
        let list = PlaceList::new(places.iter().copied().collect(), slot_count);
        writer.push(*prefix, list, &mut out).unwrap();
    }
    writer.finish(&mut out).unwrap();
    out
}

/// The places of a key, as a query reads them.
fn find(file: &[u8], key: IndexKey) -> Result<BTreeSet<u64>, CorruptIndex> {
    let run = Run::from_file(file)?;
    let found = run.find_postings(key, slice(file, &run.bucket_range(key)))?;
    let slots = match found {
        None => Vec::new(),
        Some(FoundPostings::Slots(slots)) => slots,
        Some(FoundPostings::Long(place)) => {
            let table = place.read_table(slice(file, &place.table_range()))?;
            let all = 0..run.span().slot_count();
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
fn all(file: &[u8]) -> Result<Model, CorruptIndex> {
    let run = Run::from_file(file)?;
    let mut found = Model::new();
    for (bucket, range) in run.buckets() {
        for KeyEntry { key, slots } in run.posting_entries(bucket, slice(file, &range))? {
            assert!(found.insert(key.number(), flat(&slots)).is_none(), "a key twice");
        }
    }
    Ok(found)
}

#[test]
fn every_place_of_every_key_is_found_and_no_other() {
    let model = model(1, 3000, 7);
    let file = slot_file(&model, 0);
    assert_eq!(all(&file).unwrap(), model);
    for (prefix, places) in &model {
        assert_eq!(find(&file, IndexKey::from_number(*prefix)).unwrap(), *places);
    }
    for absent in 0..2000_u64 {
        let key = IndexKey::of(KeyKind::Topic2, &absent.to_be_bytes());
        assert!(find(&file, key).unwrap().is_empty());
    }
}

#[test]
fn a_merged_file_is_the_one_that_a_direct_build_gives() {
    for levels in 1..5_u32 {
        for is_thinned in [false, true] {
            let slot_count = 1 << levels;
            // Enough of them that a merge reads a side in more than one piece.
            let mut model = model(slot_count, 40_000, u64::from(levels));
            if is_thinned {
                model = thinned(model);
            }
            let mut files: Vec<Vec<u8>> =
                (0..slot_count).map(|slot| slot_file(&model, slot)).collect();
            for _ in 0..levels {
                let merge = |halves: &[Vec<u8>]| merge_files(&halves[0], &halves[1]);
                files = files.chunks(2).map(|halves| merge(halves).unwrap()).collect();
            }
            assert_eq!(files.len(), 1);
            assert_eq!(files[0], direct_file(&model, slot_count), "{slot_count}, {is_thinned}");
            assert_eq!(all(&files[0]).unwrap(), model);
            for prefix in model.keys().take(200) {
                let key = IndexKey::from_number(*prefix);
                assert_eq!(find(&files[0], key).unwrap(), model[prefix]);
            }
        }
    }
}

#[test]
fn a_long_list_is_read_slot_by_slot() {
    let model = model(8, 3000, 3);
    let file = direct_file(&model, 8);
    let hub = IndexKey::of(KeyKind::Topic1, &0_u64.to_be_bytes());
    let run = Run::from_file(&file).unwrap();
    let found = run.find_postings(hub, slice(&file, &run.bucket_range(hub))).unwrap();
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
        model(1, 3000, 9).into_iter().filter(|(_, places)| places.len() < 3).take(40).collect();
    small.insert(77, (0..700).map(|n| n * 180).collect());
    let file = slot_file(&small, 0);
    assert_eq!(all(&file).unwrap(), small);
    for place in 0..file.len() {
        for bit in [0, 7] {
            let mut damaged = file.clone();
            damaged[place] ^= 1 << bit;
            assert!(all(&damaged).is_err(), "byte {place} of {}", file.len());
        }
    }
    for length in 0..file.len() {
        assert!(all(&file[..length]).is_err(), "cut to {length}");
    }
}

#[test]
fn only_halves_merge() {
    let file = |slot| PostingsBuilder::new(slot).finish().unwrap();
    assert_eq!(merge_files(&file(0), &file(1)).unwrap(), direct_file(&Model::new(), 2));
    let [left, right] = [1, 2].map(|slot| RunSpan::new(slot, 1).unwrap());
    assert_eq!(merge_files(&file(1), &file(2)), Err(MergeError::NotHalves { left, right }));
}

#[test]
fn a_block_of_another_slot_is_refused() {
    let mut builder = PostingsBuilder::new(3);
    let key = IndexKey::from_number(5);
    builder.push(key, 3 * 8192, 0).unwrap();
    let span = RunSpan::new(3, 1).unwrap();
    assert_eq!(builder.push(key, 4 * 8192, 0), Err(BuildError::Slot { slot: 4, span }));
}

/// The bytes that docs/format-index.md draws: what is written once is read for ever.
#[test]
fn the_bytes_of_a_file_stay_what_they_are() {
    let mut builder = PostingsBuilder::new(2);
    let address = Address::repeat_byte(0x11);
    for (number, index) in [(2 * 8192, 0), (2 * 8192 + 7, 130), (2 * 8192 + 7, 131)] {
        builder.push(IndexKey::of_address(&address), number, index).unwrap();
    }
    let topic = IndexKey::of(KeyKind::Topic0, &[0x22; 32]);
    builder.push(topic, 2 * 8192 + 1, 16).unwrap();
    let file = builder.finish().unwrap();
    assert_eq!(alloy_primitives::hex::encode(file), GOLDEN);
}

/// Bytes whose checksums are right and whose content no writer wrote.
mod forged {
    use super::super::long_list::{LongListEntry, LongListPlace};
    use super::super::writer::IndexValue as _;
    use super::*;

    fn list_of(piece: &[u8]) -> Result<Vec<(u64, SlotParts)>, CorruptIndex> {
        let width = 17;
        let length = u32::try_from(piece.len()).unwrap();
        let mut file = length.to_le_bytes()[..3].to_vec();
        file.extend(crc32fast::hash(&file).to_le_bytes());
        file.extend(piece);
        let entry = LongListEntry { width, bytes: wide(file.len()), count: 700 };
        let place = LongListPlace { start: 0, slot_count: 1, entry };
        let table = place.read_table(slice(&file, &place.table_range()))?;
        table.read_parts(0..1, slice(&file, &table.pieces_range(0..1)))
    }

    fn piece(count: u32, body_bytes: usize) -> Vec<u8> {
        let mut piece = count.to_le_bytes()[..3].to_vec();
        piece.resize(3 + body_bytes, 0xff);
        piece.extend(crc32fast::hash(&piece).to_le_bytes());
        piece
    }

    #[test]
    fn a_piece_has_the_length_of_its_places() {
        for (count, body_bytes) in [(0, 0), (700, 4), (131_072, 32_768), (131_072, 16_383)] {
            let refused = list_of(&piece(count, body_bytes)).unwrap_err().to_string();
            assert_eq!(refused, "piece at byte 7: its length is not that of its places");
        }
        assert!(list_of(&piece(131_072, 16_384)).is_ok());
    }

    /// A run of `key_count` keys of one posting each, and a bucket of its shape with these lists instead.
    fn run_and_bucket(key_count: u64, lists: &[(u64, PlaceList)]) -> (Run, Vec<u8>) {
        let keys: Model = (0..key_count).map(|key| (key << 20, [key].into())).collect();
        let run = Run::from_file(&direct_file(&keys, 1)).unwrap();
        let mut bytes = Vec::new();
        PlaceList::encode(&run.shape, 0, lists, &mut bytes);
        (run, bytes)
    }

    /// What the run answers when the bucket is long enough to take the place of its own.
    fn find(run: &Run, bucket: &[u8], key: u64) -> Result<(), CorruptIndex> {
        let place = file::BucketPlace { long_start: 0, range: 0..wide(bucket.len()) };
        posting::find_in(run, 0, &place, IndexKey::from_number(key), bucket).map(drop)
    }

    #[test]
    fn a_bucket_has_no_more_keys_than_its_file() {
        let lists: Vec<_> = (0..3).map(|key| (key, PlaceList::Short(vec![key]))).collect();
        let (run, bucket) = run_and_bucket(3, &lists);
        assert_eq!(find(&run, &bucket, 1), Ok(()));
        let (run, bucket) = run_and_bucket(2, &lists);
        let refused = find(&run, &bucket, 1).unwrap_err().to_string();
        assert_eq!(refused, "bucket at byte 0: it has more keys than there can be");
    }

    #[test]
    fn a_list_that_should_be_long_is_not_read_from_its_bucket() {
        let list = PlaceList::Short((0..600).collect());
        let (run, bucket) = run_and_bucket(1, &[(9, list)]);
        let refused = find(&run, &bucket, 9).unwrap_err().to_string();
        assert_eq!(refused, "bucket at byte 0: a list that should be long lies in it");
    }
}
