//! Which of the segments that lie in a folder belong together.

use chain::BlockRange;

use super::UnlistedFile;
use crate::error::StoreError;
use crate::layout::{join_ranges, overlap, subtract};
use crate::manifest::{ManifestConflict, SegmentEntry};

/// Segments that share no block, lowest first, and those that share blocks with them.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) chosen: Vec<&'a SegmentEntry>,
    pub(super) passed_over: Vec<UnlistedFile>,
}

/// Chooses. Files that contradict each other are refused: nobody here can tell which is right.
pub(super) fn choose<'a>(candidates: &[&'a SegmentEntry]) -> Result<Choice<'a>, StoreError> {
    let mut ordered: Vec<&SegmentEntry> = candidates.to_vec();
    ordered.sort_by_key(|entry| {
        let (range, name) = (entry.range, entry.file_name.as_str());
        (!entry.has_receipts, u64::MAX.saturating_sub(range.count()), range.first(), name)
    });
    let mut chosen: Vec<&SegmentEntry> = Vec::new();
    let mut others: Vec<(&SegmentEntry, &SegmentEntry)> = Vec::new();
    for entry in ordered {
        let shares = |held: &&&SegmentEntry| overlap(held.range, entry.range).is_some();
        let Some(held) = chosen.iter().find(shares) else {
            chosen.push(entry);
            continue;
        };
        // Of one kind and range there is one file, unless they are of two chains.
        if held.held() == entry.held() {
            return Err(ManifestConflict::Blocks {
                file_name: entry.file_name.clone(),
                range: entry.range,
                held_name: held.file_name.clone(),
                held: held.range,
            }
            .into());
        }
        others.push((entry, held));
    }
    let coverage = join_ranges(chosen.iter().map(|entry| entry.range));
    let passed_over = others.into_iter().map(|(entry, held)| pass_over(entry, held, &coverage));
    let passed_over = passed_over.collect();
    chosen.sort_by_key(|entry| entry.range.first());
    for (below, above) in chosen.iter().zip(chosen.iter().skip(1)) {
        if below.range.end() == above.range.first() && below.last_hash != above.parent_hash {
            return Err(StoreError::Differs {
                file: above.file_name.clone(),
                what: format!(
                    "parent hash of block {}, whose parent {} holds,",
                    above.range.first(),
                    below.file_name
                ),
                found: above.parent_hash.to_string(),
                expected: below.last_hash.to_string(),
            });
        }
    }
    Ok(Choice { chosen, passed_over })
}

/// Why a file is not listed that shares blocks with one that is. It is superseded only if all of its
/// blocks are listed.
fn pass_over(entry: &SegmentEntry, held: &SegmentEntry, coverage: &[BlockRange]) -> UnlistedFile {
    let missing = subtract(&[entry.range], coverage);
    let is_superseded = missing.is_empty();
    let reason = if is_superseded {
        format!("superseded: {} holds blocks {}", held.file_name, held.range)
    } else {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        format!(
            "it shares blocks with {}, which holds {}, and blocks {} are in no other file: import \
             them again, or move the other file away and repair again to list this one",
            held.file_name,
            held.range,
            missing.join(", ")
        )
    };
    UnlistedFile { file_name: entry.file_name.clone(), reason, is_superseded }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};
    use chain::BlockRange;

    use super::*;
    use crate::names::segment_name;

    fn hash_of(number: u64) -> B256 {
        B256::left_padding_from(&(number + 1).to_be_bytes())
    }

    fn entry(first: u64, last: u64, has_receipts: bool) -> SegmentEntry {
        let range = BlockRange::from_ends(first, last).unwrap();
        let digest = hash_of(first * 100_000 + last);
        SegmentEntry {
            range,
            file_name: segment_name(crate::layout::HeldRange { range, has_receipts }, digest)
                .replace("0000000000000000", &format!("{first:08}{last:08}")),
            bytes: 1,
            digest,
            has_receipts,
            parent_hash: first.checked_sub(1).map_or(B256::ZERO, hash_of),
            last_hash: hash_of(last),
            transaction_count: 0,
            log_count: 0,
            difficulty: U256::ZERO,
        }
    }

    fn check(files: &[(u64, u64, bool)], chosen: &str, superseded_count: usize) {
        let entries: Vec<_> =
            files.iter().map(|(first, last, receipts)| entry(*first, *last, *receipts)).collect();
        let found = choose(&entries.iter().collect::<Vec<_>>()).unwrap();
        let text = |entry: &&SegmentEntry| {
            format!("{}{}", entry.range, if entry.has_receipts { "" } else { " bare" })
        };
        assert_eq!(found.chosen.iter().map(text).collect::<Vec<_>>().join(", "), chosen);
        let superseded = found.passed_over.iter().filter(|it| it.is_superseded).count();
        assert_eq!(superseded, superseded_count, "{:?}", found.passed_over);
    }

    #[test]
    fn a_complete_slot_wins_over_its_pieces_and_a_longer_piece_over_a_shorter() {
        let pieces: Vec<_> = (0..32).map(|it| (it * 256, it * 256 + 255, true)).collect();
        let all: Vec<_> =
            pieces.iter().copied().chain([(0, 8191, true), (8192, 8400, true)]).collect();
        check(&all, "0..8191, 8192..8400", 32);
        check(&[(0, 99, true), (0, 199, true), (256, 300, true)], "0..199, 256..300", 1);
    }

    #[test]
    fn receipts_win_and_what_has_none_stays_beside_them() {
        check(
            &[(0, 54, false), (0, 35, true), (36, 54, false), (100, 120, false)],
            "0..35, 36..54 bare, 100..120 bare",
            1,
        );
        check(&[(0, 54, false), (0, 54, true)], "0..54", 1);
    }

    #[test]
    fn a_file_is_superseded_only_if_all_of_its_blocks_are_listed() {
        check(&[(0, 99, true), (50, 120, true)], "0..99", 0);
        check(&[(0, 99, true), (50, 120, true), (100, 130, true)], "0..99, 100..130", 1);
        let entries = [entry(0, 99, true), entry(50, 120, true)];
        let choice = choose(&entries.iter().collect::<Vec<_>>()).unwrap();
        let said = &choice.passed_over[0].reason;
        assert!(said.contains("blocks 100..120 are in no other file"), "{said}");
    }

    #[test]
    fn files_of_two_chains_are_refused_with_both_names() {
        let (one, mut other) = (entry(0, 99, true), entry(0, 99, true));
        other.file_name = other.file_name.replace("00000099.", "0000009a.");
        let refused = choose(&[&one, &other]).unwrap_err().to_string();
        assert!(
            refused.contains(&one.file_name) && refused.contains(&other.file_name),
            "{refused}"
        );
        let mut above = entry(100, 120, true);
        above.parent_hash = hash_of(5);
        let refused = choose(&[&one, &above]).unwrap_err().to_string();
        assert!(
            refused.contains(&one.file_name) && refused.contains(&above.file_name),
            "{refused}"
        );
    }
}
