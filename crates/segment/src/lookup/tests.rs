//! Runs as a whole: built, merged, probed, damaged.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]

use std::ops::Range;

use alloy_primitives::B256;
use chain::SplitMix64;

use super::bits::width_of;
use super::tail::RunFooter;
use super::*;

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
    let mut builder = RunBuilder::new(Subject::Transactions, span);
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

fn slice(file: &[u8], range: Range<u64>) -> &[u8] {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
    file.get(start..end).unwrap_or_default()
}

fn probe(run: &Run, file: &[u8], hash: &B256) -> Result<Vec<Position>, CorruptRun> {
    let found = run.probe(hash, slice(file, run.bucket_range(hash)))?;
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
        .map(|(hash, position)| Entry { prefix: HashPrefix::of(hash), position: *position })
        .collect();
    held.sort_unstable();
    let mut read = Vec::new();
    for bucket in 0..run.bucket_count() {
        let range = run.buckets_range(bucket..bucket + 1).unwrap();
        read.extend(run.entries(bucket, slice(file, range)).unwrap());
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
    let buckets: Vec<Range<u64>> = (0..run.bucket_count())
        .map(|bucket| run.buckets_range(bucket..bucket + 1).unwrap())
        .collect();
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
        for bucket in 0..run.bucket_count() {
            let range = run.buckets_range(bucket..bucket + 1).unwrap();
            let _ = run.entries(bucket, slice(&file, range));
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
    assert!(matches!(Run::from_file(&longer), Err(CorruptRun::Length { part: "buckets", .. })));
}

#[test]
fn a_bucket_that_is_kept_is_checked_before_it_is_first_believed() {
    let all = entries(0, &[2000], &mut Chance(SplitMix64::new(10)));
    let mut file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let damaged = run.bucket_range(&all[0].0);
    file[usize::try_from(damaged.start).unwrap()] ^= 1;
    let (verified, mut refusals) = (VerifiedBuckets::none_of(run.bucket_count()), 0);
    for _ in 0..2 {
        for (hash, position) in &all {
            let bucket = slice(&file, run.bucket_range(hash));
            let found = run.probe_kept(hash, bucket, &verified);
            match &found {
                Ok(found) => assert!(found.clone().into_iter().any(|it| it == *position)),
                Err(_) => refusals += 1,
            }
            let checked = run.probe(hash, bucket);
            assert_eq!(format!("{found:?}"), format!("{checked:?}"));
        }
    }
    let own = all.iter().filter(|(hash, _)| run.bucket_range(hash) == damaged).count();
    assert_eq!(refusals, 2 * own);
    // What was found right is not looked at again: it cannot change where it is kept.
    let other = all.iter().find(|(hash, _)| run.bucket_range(hash) != damaged).unwrap();
    let range = run.bucket_range(&other.0);
    let checksum = usize::try_from(range.end).unwrap() - 1;
    file[checksum] ^= 1;
    let bucket = slice(&file, range);
    assert!(run.probe(&other.0, bucket).is_err());
    assert!(run.probe_kept(&other.0, bucket, &verified).is_ok());
}

#[test]
fn damage_names_the_place_and_both_values() {
    let all = entries(0, &[600], &mut Chance(SplitMix64::new(9)));
    let mut file = build(0, 1, &all);
    let run = Run::from_file(&file).unwrap();
    let hash = all[0].0;
    let range = run.bucket_range(&hash);
    let number = run.geometry().bucket_of(HashPrefix::of(&hash));
    let short = slice(&file, range.start..range.end - 1);
    let (found, expected) = (range.end - range.start - 1, range.end - range.start);
    assert_eq!(
        run.probe(&hash, short).unwrap_err().to_string(),
        format!(
            "bucket {number} at byte {}: {found} bytes, directory says {expected}",
            range.start
        )
    );
    let end = file.len();
    file[end - 9] ^= 1;
    let text = Run::from_file(&file).unwrap_err().to_string();
    assert!(text.starts_with("tail: checksum "), "{text}");
    file[end - 14] = 9;
    assert_eq!(Run::from_file(&file).unwrap_err().to_string(), "run format 9, this build reads 1");
    assert_eq!(
        Run::from_file(&[1; 44]).unwrap_err().to_string(),
        "not a run file: it ends with [01, 01, 01, 01, 01, 01, 01, 01], \
         expected [51, 75, 69, 70, 75, 52, 75, 6e]"
    );
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
    let bytes_of = |bucket| slice(&file, run.buckets_range(bucket..bucket + 1).unwrap());
    let first = bytes_of(1);
    assert_eq!(run.entries(1, first), Ok(Vec::new()));
    let other = (2..24).find(|bucket| bytes_of(*bucket).len() == first.len()).unwrap();
    let refusal = run.entries(other, first);
    assert!(matches!(refusal, Err(CorruptRun::BucketChecksum { bucket, .. }) if bucket == other));
    assert_eq!(run.entries(24, first), Err(CorruptRun::NoBucket { bucket: 24, bucket_count: 24 }));
}

#[test]
fn what_cannot_be_a_run_is_refused() {
    let span = RunSpan::new(2, 2).unwrap();
    let mut builder = RunBuilder::new(Subject::Blocks, span);
    let mut push = |slot, ordinal| builder.push(&B256::ZERO, Position { slot, ordinal });
    assert_eq!(push(1, 0).unwrap_err().to_string(), "slot 1 is not in slots 2..3");
    assert_eq!(push(4, 0).unwrap_err().to_string(), "slot 4 is not in slots 2..3");
    assert_eq!(
        push(3, u32::MAX).unwrap_err().to_string(),
        "slot 3: ordinal 4294967295, expected less than 4294967295"
    );
    push(3, 0).unwrap();
    push(3, 0).unwrap();
    assert_eq!(
        builder.finish().unwrap_err().to_string(),
        "entry 1 (prefix 0000000000) does not come after the one before it"
    );
    let writer = RunWriter::new(Subject::Blocks, span, vec![1], 0);
    assert_eq!(
        writer.unwrap_err().to_string(),
        "slots 2..3: ordinal counts for 1 slots, expected 2"
    );
    let writer = RunWriter::new(Subject::Blocks, span, vec![1, 0], 1).unwrap();
    assert_eq!(
        writer.finish(&mut Vec::new()).unwrap_err().to_string(),
        "0 entries, 1 were announced"
    );
}

#[test]
fn only_two_halves_of_the_same_subject_merge() {
    let file = |first_slot, subject| {
        let span = RunSpan::new(first_slot, 1).unwrap();
        RunBuilder::new(subject, span).finish().unwrap()
    };
    let check = |left: &[u8], right: &[u8], expected: &str| {
        assert_eq!(merge_files(left, right).unwrap_err().to_string(), expected);
    };
    let [one, two] = [1, 2].map(|slot| file(slot, Subject::Transactions));
    check(&one, &two, "slots 1..1 and slots 2..2 are not the halves of one run");
    let blocks = file(3, Subject::Blocks);
    check(&two, &blocks, "a run of transactions and one of blocks do not merge");
    check(&two, &[], "right run: footer: 0 bytes, expected 44");
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
                let longer = slice(file, range.start..range.end + 1);
                let refusal = merge.supply(side, longer).unwrap_err().to_string();
                assert!(refusal.starts_with(&format!("{side} run: piece of buckets: ")));
                merge.supply(side, slice(file, range)).unwrap();
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

/// The width of bucket counts when they scatter by six standard deviations both ways.
fn count_bits_expected(geometry: &Geometry) -> u32 {
    let mean = geometry.key_count() / geometry.bucket_count();
    width_of(12 * (mean.isqrt() + 1))
}

#[test]
fn a_tail_stays_under_a_megabyte_at_any_size() {
    for key_count in [1, 3000, 1_600_000, 10_000_000, 1 << 27, 2_000_000_000, 1 << 31, 1 << 33] {
        let geometry = Geometry::new(key_count, key_count);
        let tail = geometry.tail_bytes(SLOT_COUNT_MAX, count_bits_expected(&geometry));
        assert!(tail < 1_000_000, "{key_count} keys: {tail} bytes");
    }
}

#[test]
fn a_key_costs_less_than_five_bytes_and_a_third() {
    for (key_count, slot_count) in
        [(3000, 1), (1_600_000, 1), (100_000_000, 64), (2_000_000_000, 2048), (3_000_000_000, 4096)]
    {
        let geometry = Geometry::new(key_count, key_count);
        let tail = geometry.tail_bytes(slot_count, count_bits_expected(&geometry));
        let bytes = geometry.buckets_bytes() + tail;
        println!("{key_count} keys: {} bytes each thousand", bytes * 1000 / key_count);
        assert!(bytes * 3 < key_count * 16, "{key_count} keys: {bytes} bytes");
    }
}

#[test]
fn what_the_formula_says_is_what_is_written() {
    let all = entries(0, &[3000, 9000], &mut Chance(SplitMix64::new(12)));
    for (first_slot, slot_count, key_count) in [(0, 1, 3000), (1, 1, 9000), (0, 2, 12_000)] {
        let file = build(first_slot, slot_count, &all);
        let geometry = Geometry::new(key_count, key_count);
        let footer = RunFooter::parse(&file, length(&file)).unwrap();
        assert_eq!(footer.tail().start, geometry.buckets_bytes());
        assert!(length(&file) * 3 < key_count * 16, "{} bytes", file.len());
    }
}

#[test]
fn no_count_makes_the_arithmetic_overflow() {
    for key_count in [0, 1, 255, 256, 257, (1 << 27) - 1, 1 << 27, KEY_COUNT_MAX] {
        let geometry = Geometry::new(key_count, 1 << 44);
        let last = HashPrefix::from_number(u64::MAX);
        assert_eq!(geometry.bucket_of(last), geometry.bucket_count() - 1);
        for bucket in [0, geometry.bucket_count() / 2, geometry.bucket_count() - 1] {
            let first = geometry.bucket_prefix_min(bucket);
            assert_eq!(geometry.bucket_of(HashPrefix::from_number(first)), bucket);
        }
        assert_eq!(geometry.bucket_prefix_min(geometry.bucket_count()), 1 << PREFIX_BITS);
        assert!(geometry.buckets_bytes() < 1 << 48, "{}", geometry.buckets_bytes());
        assert!(geometry.low_bits() <= PREFIX_BITS && geometry.value_bits() == 44);
    }
}

/// The example of docs/format-lookup.md. A change of these bytes is a new format version.
#[test]
fn the_format_is_what_the_document_draws() {
    let hash = |first: u8| B256::repeat_byte(first);
    let position = |slot, ordinal| Position { slot, ordinal };
    let all =
        [(hash(0x11), position(6, 1)), (hash(0x99), position(7, 0)), (hash(0x88), position(6, 0))];
    let file = build(6, 2, &all);
    let expected = [
        "19222222222222222222cccccccc2c04", // keys and values
        "cebb15f6",                         // the bucket's checksum
        "0200000001000000",                 // slot table
        "0600000000000000",                 // first slot
        "0300000000000000",                 // keys
        "0300000000000000",                 // fewest keys in a bucket
        "0200000000010100",                 // slots, width of counts, subject, version
        "059d019b517569707552756e",         // the tail's checksum, magic
    ];
    assert_eq!(alloy_primitives::hex::encode(&file), expected.concat());
    check_finds(&file, &all);
}
