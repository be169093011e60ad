//! Runs of ordinals as a whole: built, merged, probed, damaged.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]

use std::ops::Range;

use alloy_primitives::B256;
use chain::SplitMix64;

use super::bits::width_of;
use super::file::Shape;
use super::*;
use crate::bytes::slice;

/// A small generator with a fixed seed, so that every run of a test sees the same hashes.
struct Chance(SplitMix64);

impl Chance {
    fn number(&mut self) -> u64 {
        self.0.next_number()
    }

    fn hash(&mut self) -> B256 {
        let words = [self.number(), self.number(), self.number(), self.number()];
        B256::new(words.map(u64::to_be_bytes).concat().try_into().unwrap())
    }
}

type Entries = Vec<(B256, Position)>;

/// Slots from `first_slot` with these many transactions each.
fn entries(first_slot: u64, counts: &[u32], chance: &mut Chance) -> Entries {
    let slots = counts.iter().zip(first_slot..);
    slots
        .flat_map(|(count, slot)| (0..*count).map(move |ordinal| Position { slot, ordinal }))
        .map(|position| (chance.hash(), position))
        .collect()
}

fn build(first_slot: u64, slot_count: u64, entries: &[(B256, Position)]) -> Vec<u8> {
    let span = RunSpan::new(first_slot, slot_count).unwrap();
    let mut builder = OrdinalsBuilder::new(RunSubject::Transactions, span);
    for (hash, position) in entries {
        if span.contains(position.slot) {
            builder.push(hash, *position).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap()
}

/// Merges two files as a store does, piece by piece.
pub(super) fn merge_files(left: &[u8], right: &[u8]) -> Result<Vec<u8>, MergeError> {
    let open =
        |side, file| Run::from_file(file).map_err(|cause| MergeError::Corrupt { side, cause });
    let mut merge = Merge::new(open(Side::Left, left)?, open(Side::Right, right)?)?;
    let mut merged = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut merged)? {
        let file = if side == Side::Left { left } else { right };
        merge.supply(side, slice(file, &range))?;
    }
    Ok(merged)
}

fn probe(run: &Run, file: &[u8], hash: &B256) -> Result<Vec<Position>, CorruptIndex> {
    let key = IndexKey::of_hash(hash);
    let found = run.probe(key, slice(file, &run.bucket_range(key)))?;
    Ok(found.into_iter().collect())
}

/// Builds the span at once and by merging halves of halves down to `level_min` slots.
fn build_by_merging(
    first_slot: u64,
    slot_count: u64,
    slot_count_min: u64,
    all: &[(B256, Position)],
) -> Vec<u8> {
    if slot_count == slot_count_min {
        return build(first_slot, slot_count, all);
    }
    let half = slot_count / 2;
    let left = build_by_merging(first_slot, half, slot_count_min, all);
    let right = build_by_merging(first_slot + half, half, slot_count_min, all);
    merge_files(&left, &right).unwrap()
}

fn check_merges(first_slot: u64, counts: &[u32], all: &[(B256, Position)]) {
    let slot_count = u64::try_from(counts.len()).unwrap();
    let direct = build(first_slot, slot_count, all);
    let mut slot_count_min = slot_count;
    while slot_count_min > 0 {
        let merged = build_by_merging(first_slot, slot_count, slot_count_min, all);
        assert!(merged == direct, "{counts:?} from pieces of {slot_count_min} slots");
        slot_count_min /= 2;
    }
    let backwards: Entries = all.iter().rev().copied().collect();
    assert!(build(first_slot, slot_count, &backwards) == direct, "{counts:?} backwards");
    check_finds(&direct, all);
}

fn check_finds(file: &[u8], all: &[(B256, Position)]) {
    let run = Run::from_file(file).unwrap();
    assert_eq!(run.key_count(), u64::try_from(all.len()).unwrap());
    for (hash, position) in all {
        let found = probe(&run, file, hash).unwrap();
        assert!(found.contains(position), "{hash}: {found:?} has no {position:?}");
    }
    let mut held: Vec<Entry> = all
        .iter()
        .map(|(hash, position)| Entry { key: IndexKey::of_hash(hash), position: *position })
        .collect();
    held.sort_unstable();
    let mut read = Vec::new();
    for (bucket, range) in run.buckets() {
        read.extend(run.entries(bucket, slice(file, &range)).unwrap());
    }
    assert!(read == held, "the entries of all buckets are what was put in");
}

#[test]
fn merging_gives_the_bytes_of_a_direct_build() {
    let mut chance = Chance(SplitMix64::new(1));
    for (first_slot, counts) in [
        (0, vec![0]),
        (7, vec![1]),
        (0, vec![0, 0]),
        (2, vec![1, 0]),
        (2, vec![0, 1]),
        (4, vec![300, 0, 0, 5]),
        (4, vec![0, 0, 700, 0]),
        (8, vec![255, 256, 257, 1]),
        (1024, vec![3000, 2, 40_000, 0, 900, 900, 900, 901]),
        (16, (0..16).map(|slot| slot * slot * 37 % 2000).collect()),
    ] {
        let all = entries(first_slot, &counts, &mut chance);
        check_merges(first_slot, &counts, &all);
    }
}

#[test]
fn positions_with_equal_prefixes_are_all_candidates() {
    let mut chance = Chance(SplitMix64::new(2));
    let counts = [1500, 0, 400, 1200];
    let mut all = entries(4, &counts, &mut chance);
    let repeated = all[17].0;
    for index in [3, 900, 1499, 1500, 1700, 2000, 3099] {
        all[index].0.0[..5].copy_from_slice(&repeated.0[..5]);
    }
    check_merges(4, &counts, &all);
    let file = build(4, 4, &all);
    let found = probe(&Run::from_file(&file).unwrap(), &file, &repeated).unwrap();
    let expected: Vec<Position> =
        [3, 17, 900, 1499, 1500, 1700, 2000, 3099].map(|index: usize| all[index].1).to_vec();
    assert_eq!(found, expected);
}

#[test]
fn a_run_whose_keys_are_all_alike_is_built_merged_and_searched() {
    let counts = [600, 600];
    let mut all = entries(0, &counts, &mut Chance(SplitMix64::new(3)));
    for (hash, _) in &mut all {
        hash.0[..5].copy_from_slice(&[0xff; 5]);
    }
    check_merges(0, &counts, &all);
    let file = build(0, 2, &all);
    let run = Run::from_file(&file).unwrap();
    assert_eq!(probe(&run, &file, &all[5].0).unwrap().len(), 1200);
    assert_eq!(probe(&run, &file, &B256::ZERO).unwrap(), []);
}

#[test]
fn ordinals_may_have_gaps_and_be_as_high_as_they_like() {
    let mut chance = Chance(SplitMix64::new(4));
    let all: Entries = [(0, u32::MAX - 1), (0, 7), (1, 0), (3, u32::MAX - 1), (3, 9)]
        .map(|(slot, ordinal)| (chance.hash(), Position { slot, ordinal }))
        .to_vec();
    check_merges(0, &[0; 4], &all);
}

#[test]
fn absent_hashes_rarely_meet_a_candidate() {
    let mut chance = Chance(SplitMix64::new(5));
    let all = entries(0, &[100_000, 100_000], &mut chance);
    let file = build(0, 2, &all);
    let run = Run::from_file(&file).unwrap();
    let tries = 200_000;
    let found: usize = (0..tries).map(|_| probe(&run, &file, &chance.hash()).unwrap().len()).sum();
    // 200,000 keys among 2^39 prefixes: 0.07 false candidates are expected in all.
    assert!(found <= 3, "{found} false candidates in {tries} probes");
}

#[test]
fn false_candidates_are_as_rare_as_prefixes_are_many() {
    // 2^13 keys among 2^21 of the 2^39 prefixes are as dense as a run of 2^31 keys.
    let mut chance = Chance(SplitMix64::new(6));
    let squeeze = |mut hash: B256| {
        hash.0[..2].copy_from_slice(&[0xab, 0xcd]);
        hash.0[2] &= 0x3f;
        hash
    };
    let key_count = 1 << 13;
    let all: Entries = entries(0, &[key_count], &mut chance)
        .into_iter()
        .map(|(hash, position)| (squeeze(hash), position))
        .collect();
    let file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let tries = 50_000;
    let found: usize =
        (0..tries).map(|_| probe(&run, &file, &squeeze(chance.hash())).unwrap().len()).sum();
    let expected = tries / 256;
    assert!(found > expected / 2 && found < expected * 3 / 2, "{found}, expected {expected}");
}

#[test]
fn every_flipped_bit_is_an_error_or_changes_no_answer() {
    let mut chance = Chance(SplitMix64::new(7));
    let all = entries(6, &[300, 260], &mut chance);
    let absent: Vec<B256> = (0..5).map(|_| chance.hash()).collect();
    let mut file = build(6, 2, &all);
    let neighbour = build(4, 2, &entries(4, &[10, 10], &mut chance));
    let intact = merge_files(&neighbour, &file).unwrap();
    let mut errors = 0;
    for (at, bit) in (0..file.len()).flat_map(|at| [(at, 1 << (at % 8)), (at, 0xff)]) {
        file[at] ^= bit;
        let answer = |hash| Run::from_file(&file).and_then(|run| probe(&run, &file, hash));
        for (hash, position) in all.iter().step_by(23) {
            match answer(hash) {
                Ok(found) => assert!(found.contains(position), "byte {at}"),
                Err(_) => errors += 1,
            }
        }
        for hash in &absent {
            assert!(answer(hash).is_ok_and(|found| found.is_empty()) || answer(hash).is_err());
        }
        if let Ok(merged) = merge_files(&neighbour, &file) {
            assert!(merged == intact, "byte {at}");
        }
        file[at] ^= bit;
    }
    assert!(errors >= file.len(), "{errors} errors in {} bytes", file.len());
}

/// Puts the checksums right, as an attacker would.
fn forge(file: &mut [u8], buckets: &[Range<u64>]) {
    for (range, number) in buckets.iter().zip(0..) {
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
        let mut hasher = crc32fast::Hasher::new_with_initial(number);
        hasher.update(&file[start..end - 4]);
        file[end - 4..end].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
    let tail_start = usize::try_from(buckets.last().unwrap().end).unwrap();
    let end = file.len();
    let sum = crc32fast::hash(&file[tail_start..end - 12]);
    file[end - 12..end - 8].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn forged_checksums_give_errors_or_wrong_candidates_but_no_panic() {
    let mut chance = Chance(SplitMix64::new(13));
    let all = entries(6, &[300, 260], &mut chance);
    let intact = build(6, 2, &all);
    let neighbour = build(4, 2, &entries(4, &[10, 10], &mut chance));
    let run = Run::from_file(&intact).unwrap();
    let buckets: Vec<Range<u64>> = run.buckets().map(|(_, range)| range).collect();
    let mut refusals = 0;
    for (at, bit) in (0..intact.len()).flat_map(|at| [(at, 1 << (at % 8)), (at, 0xff)]) {
        let mut file = intact.clone();
        file[at] ^= bit;
        forge(&mut file, &buckets);
        let Ok(run) = Run::from_file(&file) else {
            refusals += 1;
            continue;
        };
        for (hash, _) in all.iter().step_by(23) {
            let _ = probe(&run, &file, hash);
        }
        for (bucket, range) in run.buckets() {
            let _ = run.entries(bucket, slice(&file, &range));
        }
        refusals += usize::from(merge_files(&neighbour, &file).is_err());
    }
    assert!(refusals > 100, "{refusals}");
}

#[test]
fn a_file_that_is_cut_short_or_extended_is_refused() {
    let file = build(6, 2, &entries(6, &[300, 260], &mut Chance(SplitMix64::new(8))));
    for end in 0..file.len() {
        assert!(Run::from_file(&file[..end]).is_err(), "the first {end} bytes");
        assert!(Run::from_file(&file[file.len() - end..]).is_err(), "the last {end} bytes");
    }
    let longer = [&[0], file.as_slice()].concat();
    assert!(matches!(Run::from_file(&longer), Err(CorruptIndex::Length { part: "buckets", .. })));
}

#[test]
fn a_bucket_that_is_kept_is_checked_before_it_is_first_used() {
    let all = entries(0, &[2000], &mut Chance(SplitMix64::new(10)));
    let mut file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let range_of = |hash: &B256| run.bucket_range(IndexKey::of_hash(hash));
    let damaged = range_of(&all[0].0);
    file[usize::try_from(damaged.start).unwrap()] ^= 1;
    let (verified, mut refusals) = (VerifiedBuckets::none_of(run.bucket_count()), 0);
    for _ in 0..2 {
        for (hash, position) in &all {
            let (key, bucket) = (IndexKey::of_hash(hash), slice(&file, &range_of(hash)));
            let found = run.probe_kept(key, bucket, &verified);
            match &found {
                Ok(found) => assert!(found.clone().into_iter().any(|it| it == *position)),
                Err(_) => refusals += 1,
            }
            let checked = run.probe(key, bucket);
            assert_eq!(format!("{found:?}"), format!("{checked:?}"));
        }
    }
    let own = all.iter().filter(|(hash, _)| range_of(hash) == damaged).count();
    assert_eq!(refusals, 2 * own);
    // What was found right is not looked at again: it cannot change where it is kept.
    let other = all.iter().find(|(hash, _)| range_of(hash) != damaged).unwrap();
    let (key, range) = (IndexKey::of_hash(&other.0), range_of(&other.0));
    let checksum = usize::try_from(range.end).unwrap() - 1;
    file[checksum] ^= 1;
    let bucket = slice(&file, &range);
    assert!(run.probe(key, bucket).is_err());
    assert!(run.probe_kept(key, bucket, &verified).is_ok());
}

#[test]
fn damage_names_the_place_and_both_values() {
    let all = entries(0, &[600], &mut Chance(SplitMix64::new(9)));
    let mut file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let key = IndexKey::of_hash(&all[0].0);
    let range = run.bucket_range(key);
    let (found, expected) = (range.end - range.start - 1, range.end - range.start);
    assert_eq!(
        run.probe(key, slice(&file, &(range.start..range.end - 1))),
        Err(CorruptIndex::Length { part: "bucket", expected, found })
    );
    let mut damaged = slice(&file, &range).to_vec();
    damaged[0] ^= 1;
    let refusal = run.probe(key, &damaged);
    assert!(matches!(refusal, Err(CorruptIndex::Checksum { at, .. }) if at == range.start));
    let end = file.len();
    file[end - 9] ^= 1;
    let tail_at = run.buckets().last().unwrap().1.end;
    let refusal = Run::from_file(&file).unwrap_err();
    assert!(matches!(refusal, CorruptIndex::Checksum { at, .. } if at == tail_at), "{refusal}");
    file[end - 13] = 9;
    let refusal = Run::from_file(&file).unwrap_err();
    assert_eq!(refusal, CorruptIndex::Version { expected: 1, found: 9 });
    let refusal = Run::from_file(&[1; 56]).unwrap_err();
    assert_eq!(refusal, CorruptIndex::Magic { expected: *b"QuipuIdx", found: [1; 8] });
}

#[test]
fn files_of_development_builds_are_refused_as_such() {
    for magic in [b"QuipuRun", b"QuipuPst"] {
        for before in [0, 44, 4000] {
            let file = [vec![7; before], magic.to_vec()].concat();
            assert_eq!(Run::from_file(&file).unwrap_err(), CorruptIndex::Unreleased);
        }
    }
}

#[test]
fn a_run_answers_only_questions_for_its_own_values() {
    let ordinals = build(0, 1, &entries(0, &[600], &mut Chance(SplitMix64::new(14))));
    let postings = PostingsBuilder::new(0).finish().unwrap();
    for (file, found) in [(ordinals, RunSubject::Transactions), (postings, RunSubject::Logs)] {
        let run = Run::from_file(&file).unwrap();
        let key = IndexKey::from_number(0);
        let bucket = slice(&file, &run.bucket_range(key));
        let is_of_lists = found == RunSubject::Logs;
        let expected = if is_of_lists { "ordinals" } else { "posting lists" };
        let refusal = Some(CorruptIndex::OtherValues { expected, found });
        assert_eq!(run.probe(key, bucket).err(), refusal.clone().filter(|_| is_of_lists));
        assert_eq!(run.find_postings(key, bucket).err(), refusal.filter(|_| !is_of_lists));
    }
}

#[test]
fn a_bucket_read_from_the_place_of_another_is_refused() {
    // Empty buckets of equal length differ in nothing but their number.
    let mut all = entries(0, &[6000], &mut Chance(SplitMix64::new(10)));
    for (hash, _) in &mut all {
        hash.0[..5].copy_from_slice(&[0; 5]);
    }
    let file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let bytes_of = |bucket| slice(&file, &run.buckets_range(bucket..bucket + 1).unwrap());
    let first = bytes_of(1);
    assert_eq!(run.entries(1, first), Ok(Vec::new()));
    let other = (2..24).find(|bucket| bytes_of(*bucket).len() == first.len()).unwrap();
    assert!(matches!(run.entries(other, first), Err(CorruptIndex::Checksum { .. })));
    assert!(matches!(run.entries(24, first), Err(CorruptIndex::Content { .. })));
}

#[test]
fn what_cannot_be_a_run_is_refused() {
    let span = RunSpan::new(2, 2).unwrap();
    let mut builder = OrdinalsBuilder::new(RunSubject::Blocks, span);
    let mut push = |slot, ordinal| builder.push(&B256::ZERO, Position { slot, ordinal });
    assert_eq!(push(1, 0), Err(BuildError::Slot { slot: 1, span }));
    assert_eq!(push(4, 0), Err(BuildError::Slot { slot: 4, span }));
    let (ordinal, ordinal_count) = (u32::MAX, u32::MAX);
    assert_eq!(push(3, u32::MAX), Err(BuildError::Ordinal { slot: 3, ordinal, ordinal_count }));
    push(3, 0).unwrap();
    push(3, 0).unwrap();
    assert_eq!(builder.finish(), Err(BuildError::Order { key: 0 }));
    let writer = OrdinalsWriter::new(RunSubject::Blocks, span, vec![1], 0);
    assert_eq!(writer.unwrap_err(), BuildError::SlotCounts { span, found: 1 });
    let writer = OrdinalsWriter::new(RunSubject::Blocks, span, vec![1, 0], 1).unwrap();
    let refusal = writer.finish(&mut Vec::new());
    assert_eq!(refusal, Err(BuildError::EntryCount { expected: 1, found: 0 }));
    let mut writer = OrdinalsWriter::new(RunSubject::Blocks, span, vec![1, 0], 1).unwrap();
    let position = Position { slot: 2, ordinal: 1 };
    let refusal = writer.push(Entry { key: IndexKey::from_number(0), position }, &mut Vec::new());
    assert_eq!(refusal, Err(BuildError::Ordinal { slot: 2, ordinal: 1, ordinal_count: 1 }));
    let writer = OrdinalsWriter::new(RunSubject::Blocks, span, vec![1, 0], (1 << 36) + 1);
    assert!(matches!(writer, Err(BuildError::TooMany { .. })));
}

#[test]
fn only_two_halves_of_the_same_subject_merge() {
    let file = |first_slot, subject| {
        let span = RunSpan::new(first_slot, 1).unwrap();
        OrdinalsBuilder::new(subject, span).finish().unwrap()
    };
    let [one, two] = [1, 2].map(|slot| file(slot, RunSubject::Transactions));
    let [left, right] = [1, 2].map(|slot| RunSpan::new(slot, 1).unwrap());
    assert_eq!(merge_files(&one, &two), Err(MergeError::NotHalves { left, right }));
    let left = RunSubject::Transactions;
    for (other, right) in [
        (file(3, RunSubject::Blocks), RunSubject::Blocks),
        (PostingsBuilder::new(3).finish().unwrap(), RunSubject::Logs),
    ] {
        assert_eq!(merge_files(&two, &other), Err(MergeError::Subjects { left, right }));
    }
    let cause = CorruptIndex::Length { part: "footer", expected: 56, found: 0 };
    assert_eq!(merge_files(&two, &[]), Err(MergeError::Corrupt { side: Side::Right, cause }));
}

#[test]
fn a_merge_says_what_it_needs_and_refuses_what_it_did_not_ask_for() {
    let all = entries(0, &[200_000, 10], &mut Chance(SplitMix64::new(11)));
    let [left, right] = [0, 1].map(|slot| build(slot, 1, &all));
    let mut merge =
        Merge::new(Run::from_file(&left).unwrap(), Run::from_file(&right).unwrap()).unwrap();
    let mut merged = Vec::new();
    let mut held_max = 0;
    loop {
        let mut piece = Vec::new();
        let step = merge.step(&mut piece).unwrap();
        held_max = held_max.max(piece.len());
        merged.extend(piece);
        match step {
            MergeStep::Need { side, range } => {
                let file = if side == Side::Left { &left } else { &right };
                assert!(range.end - range.start <= 1 << 18, "{range:?}");
                let longer = slice(file, &(range.start..range.end + 1));
                let refusal = merge.supply(side, longer);
                assert!(matches!(refusal, Err(MergeError::Corrupt { side: of, .. }) if of == side));
                merge.supply(side, slice(file, &range)).unwrap();
                let again = merge.supply(side, &[]);
                assert_eq!(again, Err(MergeError::NotNeeded { side }));
            }
            MergeStep::Done => break,
        }
    }
    assert!(merged == build(0, 2, &all));
    assert!(held_max < 1 << 19, "{held_max} bytes at once");
    assert_eq!(merge.step(&mut merged), Ok(MergeStep::Done));
}

/// What a run of `key_count` hashes takes, tail and all, whose buckets have the mean number of keys and
/// whose directory is as wide as if they scattered by six standard deviations both ways; and its tail.
fn expected_bytes(key_count: u64, slot_count: u64) -> (u64, u64) {
    let span = RunSpan::new(0, slot_count).unwrap();
    let shape = Shape::of_ordinals(RunSubject::Transactions, span, key_count, key_count);
    let mean = key_count / shape.bucket_count;
    let bucket = |keys| shape.ordinal_bucket_bytes(keys);
    let deviation = 6 * (mean.isqrt() + 1);
    let width = width_of(2 * deviation);
    let tail = 4 * slot_count + (shape.bucket_count * u64::from(width)).div_ceil(8) + 56;
    (shape.bucket_count * bucket(mean + 1) + tail, tail)
}

#[test]
fn a_tail_stays_under_a_megabyte_at_any_size() {
    for key_count in [1, 3000, 1_600_000, 10_000_000, 1 << 27, 2_000_000_000, 1 << 31, 1 << 33] {
        let (_, tail) = expected_bytes(key_count, SLOT_COUNT_MAX);
        assert!(tail < 1_000_000, "{key_count} keys: {tail} bytes");
    }
}

#[test]
fn a_key_costs_less_than_five_bytes_and_a_third() {
    for (key_count, slot_count) in
        [(3000, 1), (1_600_000, 1), (100_000_000, 64), (2_000_000_000, 2048), (3_000_000_000, 4096)]
    {
        let (bytes, tail) = expected_bytes(key_count, slot_count);
        println!("{key_count} keys: {} bytes each thousand, {tail}", bytes * 1000 / key_count);
        assert!(bytes * 3 < key_count * 16, "{key_count} keys: {bytes} bytes");
    }
}

#[test]
fn a_written_key_costs_less_than_five_bytes_and_a_third() {
    let all = entries(0, &[3000, 9000], &mut Chance(SplitMix64::new(12)));
    for (first_slot, slot_count, key_count) in [(0, 1, 3000), (1, 1, 9000), (0, 2, 12_000)] {
        let file = build(first_slot, slot_count, &all);
        println!("{key_count} keys: {} bytes", file.len());
        assert!(length(&file) * 3 < key_count * 16, "{} bytes", file.len());
    }
}

#[test]
fn no_count_makes_the_arithmetic_overflow() {
    let span = RunSpan::new(0, 1).unwrap();
    for key_count in [0, 1, 255, 256, 257, (1 << 27) - 1, 1 << 27, 1 << 36] {
        let shape = Shape::of_ordinals(RunSubject::Blocks, span, key_count, 1 << 44);
        assert_eq!(shape.bucket_of((1 << HASH_KEY_BITS) - 1), shape.bucket_count - 1);
        for bucket in [0, shape.bucket_count / 2, shape.bucket_count - 1] {
            assert_eq!(shape.bucket_of(shape.key_min(bucket)), bucket);
        }
        assert_eq!(shape.key_min(shape.bucket_count), 1 << HASH_KEY_BITS);
        assert!(shape.ordinal_bucket_bytes(key_count) < 1 << 48);
        assert_eq!(shape.value_bits, 44);
    }
}

#[test]
fn the_length_of_a_bucket_tells_how_many_keys_it_has() {
    let span = RunSpan::new(0, 1).unwrap();
    for key_count in [0, 1, 300, 1 << 27, 1 << 36] {
        for ordinal_end in [0, 1, 16, 17, 1 << 40] {
            let shape = Shape::of_ordinals(RunSubject::Blocks, span, key_count, ordinal_end);
            for own in (0..2000).chain([1 << 17, 1 << 36]) {
                assert_eq!(shape.ordinal_count(shape.ordinal_bucket_bytes(own)), own);
            }
        }
    }
}

/// The example of docs/format-index.md. A change of these bytes is a new format version.
#[test]
fn the_format_is_what_the_document_draws() {
    let hash = |first: u8| B256::repeat_byte(first);
    let position = |slot, ordinal| Position { slot, ordinal };
    let all =
        [(hash(0x11), position(6, 1)), (hash(0x99), position(7, 0)), (hash(0x88), position(6, 0))];
    let file = build(6, 2, &all);
    let expected = [
        "19222222222222222222cccccccc2c4000", // keys and values
        "809f3d3a",                           // the bucket's checksum
        "0200000001000000",                   // slot table
        "0600000000000000",                   // first slot
        "0300000000000000",                   // entries
        "0300000000000000",                   // keys
        "0300000000000000",                   // keys of the smallest bucket
        "0200000000000000",                   // slots, buckets with long lists
        "00040101",                           // width of sizes and of ordinals, subject, version
        "bd8c4a925175697075496478",           // the tail's checksum, magic
    ];
    assert_eq!(alloy_primitives::hex::encode(&file), expected.concat());
    check_finds(&file, &all);
}
