//! Runs and anchors on one side, the statuses they give on the other.

use alloy_primitives::U256;

use super::assess::STEPS;
use super::*;
use crate::range::BlockRange;

/// A made-up hash for block `number` of branch `branch`.
fn hash(branch: u8, number: u64) -> B256 {
    let mut hash = B256::with_last_byte(branch);
    hash[..8].copy_from_slice(&number.to_be_bytes());
    hash
}

fn anchor(number: u64) -> Anchor {
    Anchor { number, hash: hash(b'a', number) }
}

/// A run of branch `a`.
fn run(first: u64, last: u64) -> ProvenRun {
    forked(first, last, u64::MAX)
}

/// A run of a chain that is branch `a` below `fork` and branch `b` from there on.
fn forked(first: u64, last: u64, fork: u64) -> ProvenRun {
    let hash = |number| hash(if number < fork { b'a' } else { b'b' }, number);
    ProvenRun {
        range: BlockRange::from_ends(first, last).unwrap(),
        parent_hash: first.checked_sub(1).map_or(B256::ZERO, hash),
        last_hash: hash(last),
        hashes: (first..=last).take(200).map(|number| (number, hash(number))).collect(),
        epoch: None,
        difficulty: None,
    }
}

/// The genesis of branch `a`, and the operator's anchors on it.
fn trusting(numbers: &[u64]) -> Anchors {
    let spec = ChainSpec::bare("test", None, Some(hash(b'a', 0)));
    numbers
        .iter()
        .fold(Anchors::of(&spec), |anchors, number| anchors.with_operator(anchor(*number)).unwrap())
}

/// What `assess` says: a line for each run, hashes left out.
fn check(runs: &[ProvenRun], anchors: &Anchors, expected: &[&str]) {
    let lines: Vec<String> = assess(runs, anchors)
        .iter()
        .map(|assessment| match assessment {
            Ok(pieces) => format_pieces(pieces),
            Err(TrustConflict { number, with: Opponent::Anchor, .. }) => {
                format!("refused at {number} by an anchor")
            }
            Err(TrustConflict { number, claims, with: Opponent::ProvenRun(other, ground) }) => {
                let what = match claims {
                    Claims::Hash(..) => "",
                    Claims::TotalDifficulty(..) => " for its difficulty",
                };
                format!("refused at {number}{what} by {ground:?} run {other}")
            }
        })
        .collect();
    assert_eq!(lines, expected);
}

fn format_pieces(pieces: &[(BlockRange, TrustStatus)]) -> String {
    let pieces: Vec<String> = pieces
        .iter()
        .map(|(range, status)| {
            let status = status.to_string();
            let (text, _hash) = status.split_once(":0x").unwrap_or((&status, ""));
            format!("{range} {text}")
        })
        .collect();
    pieces.join(", ")
}

#[test]
fn with_genesis_alone_block_0_is_anchored_and_the_rest_linked() {
    check(&[run(0, 9)], &trusting(&[]), &["0..0 anchored by genesis, 1..9 linked to genesis"]);
    check(&[run(0, 0)], &trusting(&[]), &["0..0 anchored by genesis"]);
}

#[test]
fn a_run_on_top_of_genesis_is_linked_even_if_block_0_is_not_held() {
    check(
        &[run(5, 9), run(1, 4)],
        &trusting(&[]),
        &["5..9 linked to genesis", "1..4 linked to genesis"],
    );
}

#[test]
fn another_block_0_is_not_genesis() {
    check(&[forked(0, 0, 0)], &trusting(&[]), &["refused at 0 by an anchor"]);
}

#[test]
fn with_nothing_known_nothing_is_anchored() {
    check(&[run(0, 4), run(5, 9)], &Anchors::none(), &["0..4 not anchored", "5..9 not anchored"]);
}

#[test]
fn an_anchor_proves_what_is_below_it_and_links_what_is_above() {
    check(&[run(0, 9)], &trusting(&[6]), &["0..6 anchored by 6, 7..9 linked to 6"]);
    check(
        &[run(3, 9)],
        &trusting(&[5, 8]),
        &["3..5 anchored by 5, 6..8 anchored by 8, 9..9 linked to 8"],
    );
}

#[test]
fn an_anchor_at_a_runs_end_or_parent_needs_no_mention() {
    check(&[run(0, 4), run(5, 9)], &trusting(&[4]), &["0..4 anchored by 4", "5..9 linked to 4"]);
    check(&[run(5, 9)], &trusting(&[4]), &["5..9 linked to 4"]);
}

#[test]
fn an_anchor_in_the_upper_of_two_joined_runs_anchors_the_lower() {
    check(
        &[run(5, 9), run(10, 12), run(0, 4)],
        &trusting(&[7]),
        &["5..7 anchored by 7, 8..9 linked to 7", "10..12 linked to 7", "0..4 anchored by 7"],
    );
}

#[test]
fn a_gap_stops_both_ways() {
    check(
        &[run(1, 4), run(6, 9), run(11, 12)],
        &trusting(&[8]),
        &["1..4 linked to genesis", "6..8 anchored by 8, 9..9 linked to 8", "11..12 not anchored"],
    );
}

#[test]
fn overlapping_runs_are_one_chain() {
    check(
        &[run(0, 9), run(4, 12), run(2, 6), run(10, 15)],
        &trusting(&[11]),
        &[
            "0..9 anchored by 11",
            "4..11 anchored by 11, 12..12 linked to 11",
            "2..6 anchored by 11",
            "10..11 anchored by 11, 12..15 linked to 11",
        ],
    );
}

#[test]
fn a_run_that_contradicts_an_anchored_one_is_refused_on_either_side() {
    let expected_above = ["5..8 anchored by 8, 9..9 linked to 8"];
    // Below: it does not lead to the anchor.
    check(
        &[forked(0, 4, 3), run(5, 9)],
        &trusting(&[8]),
        &["refused at 4 by Firmer run 1", expected_above[0]],
    );
    // The same with the true one beside it.
    check(
        &[forked(0, 4, 3), run(0, 4), run(5, 9)],
        &trusting(&[8]),
        &["refused at 4 by Firmer run 1", "0..4 anchored by 8", expected_above[0]],
    );
    // Inside.
    check(
        &[run(0, 9), forked(0, 4, 3)],
        &trusting(&[8]),
        &["0..8 anchored by 8, 9..9 linked to 8", "refused at 4 by Firmer run 0"],
    );
    // Above: it leaves below the anchor.
    check(
        &[run(0, 9), forked(5, 9, 7)],
        &trusting(&[9]),
        &["0..9 anchored by 9", "refused at 9 by an anchor"],
    );
}

#[test]
fn of_two_chains_without_an_anchor_both_are_refused() {
    check(
        &[run(0, 9), forked(0, 9, 5)],
        &trusting(&[]),
        &["refused at 9 by Equal run 1", "refused at 9 by Equal run 0"],
    );
    // Also above an anchor that both hold.
    check(
        &[run(0, 9), forked(0, 9, 5)],
        &trusting(&[3]),
        &["refused at 9 by Equal run 1", "refused at 9 by Equal run 0"],
    );
}

#[test]
fn a_run_that_descends_from_genesis_stands_firmer_than_one_that_does_not() {
    let linked = "0..0 anchored by genesis, 1..4 linked to genesis";
    check(&[run(0, 4), forked(5, 9, 4)], &trusting(&[]), &[linked, "refused at 4 by Firmer run 0"]);
    check(
        &[run(0, 4), forked(5, 9, 4), run(5, 9)],
        &trusting(&[]),
        &[linked, "refused at 4 by Firmer run 0", "5..9 linked to genesis"],
    );
}

#[test]
fn total_difficulties_that_do_not_follow_each_other_are_refused() {
    let with_difficulty = |mut run: ProvenRun, before: u64, after: u64| {
        run.difficulty = Some((U256::from(before), U256::from(after)));
        run
    };
    let (lower, upper) = (with_difficulty(run(0, 4), 0, 50), run(5, 9));
    check(
        &[lower.clone(), with_difficulty(upper.clone(), 50, 90)],
        &trusting(&[9]),
        &["0..4 anchored by 9", "5..9 anchored by 9"],
    );
    // An anchor proves hashes. The sum from genesis is proven, the other is not.
    check(
        &[lower, with_difficulty(upper.clone(), 51, 91)],
        &trusting(&[9]),
        &[
            "0..0 anchored by genesis, 1..4 linked to genesis",
            "refused at 4 for its difficulty by Firmer run 0",
        ],
    );
    check(
        &[with_difficulty(run(2, 4), 1, 50), with_difficulty(upper, 51, 91)],
        &trusting(&[]),
        &[
            "refused at 4 for its difficulty by Equal run 1",
            "refused at 4 for its difficulty by Equal run 0",
        ],
    );
}

#[test]
fn comparisons_grow_with_the_runs_and_anchors_and_not_with_their_product() {
    const RUNS: u64 = 3000;
    let runs: Vec<ProvenRun> = (0..RUNS).map(|at| run(at * 10, at * 10 + 9)).collect();
    let with_epochs = |mut runs: Vec<ProvenRun>| {
        for (number, run) in (0..).zip(&mut runs) {
            run.epoch = Some(Epoch { number, last: run.range.last() });
        }
        runs
    };
    let all: Vec<u64> = runs.iter().map(|run| run.range.last()).collect();
    let top = &all[all.len() - 1..];
    let epochs = (0..RUNS).fold(trusting(&all), Anchors::with_proven_epoch);
    for (runs, anchors) in [
        (runs.clone(), trusting(&[])),
        (runs.clone(), trusting(top)),
        (runs.iter().rev().cloned().collect(), trusting(top)),
        (runs.clone(), trusting(&all)),
        (with_epochs(runs), epochs),
    ] {
        let before = STEPS.get();
        assert!(assess(&runs, &anchors).iter().all(Result::is_ok));
        let steps = STEPS.get() - before;
        assert!((RUNS..20 * RUNS).contains(&steps), "{steps} comparisons for {RUNS} runs");
    }
}

#[test]
fn an_anchor_that_is_no_longer_trusted_counts_for_nothing() {
    check(&[run(3, 9)], &trusting(&[]), &["3..9 not anchored"]);
}

/// Mainnet with its list of epoch roots.
fn mainnet() -> Anchors {
    let spec = ChainSpec::known("mainnet").unwrap();
    Anchors::of(&spec).with_epoch_roots(EpochRoots::mainnet())
}

#[test]
fn an_accumulator_epoch_is_anchored_whole_and_reaches_down() {
    let anchors = mainnet();
    let mut first = run(0, 8191);
    // The made-up hash of block 0 is not mainnet's; without it the verifier's word counts.
    first.hashes.clear();
    first.epoch = Some(Epoch { number: 0, last: 8191 });
    let mut third = run(16_384, 24_575);
    third.epoch = Some(Epoch { number: 2, last: 24_575 });
    let expected = [
        "0..8191 anchored by accumulator epoch 0",
        "8192..16383 anchored by accumulator epoch 2",
        "16384..24575 anchored by accumulator epoch 2",
        "24576..24577 linked to accumulator epoch 2",
    ];
    check(&[first, run(8192, 16_383), third, run(24_576, 24_577)], &anchors, &expected);
}

#[test]
fn the_last_epoch_ends_at_the_merge_and_not_with_its_file() {
    let anchors = mainnet();
    let mut last = run(15_532_032, 15_540_223);
    last.epoch = Some(Epoch { number: 1896, last: 15_537_393 });
    let expected = "15532032..15537393 anchored by accumulator epoch 1896, \
        15537394..15540223 linked to accumulator epoch 1896";
    check(std::slice::from_ref(&last), &anchors, &[expected]);
    let anchors = anchors.with_operator(anchor(15_540_000)).unwrap();
    last.hashes.insert(15_540_000, hash(b'a', 15_540_000));
    let expected = "15532032..15537393 anchored by accumulator epoch 1896, \
        15537394..15540000 anchored by 15540000, 15540001..15540223 linked to 15540000";
    check(&[last], &anchors, &[expected]);
}

#[test]
fn epoch_roots_count_only_for_mainnet() {
    let mainnet = mainnet();
    assert!(mainnet.expected_epoch_root(1896).is_some());
    assert_eq!(mainnet.expected_epoch_root(1897), None);
    let elsewhere = Anchors { genesis_hash: Some(hash(b'a', 0)), ..mainnet };
    assert_eq!(elsewhere.expected_epoch_root(0), None);
    let mut claimed = run(8192, 16_383);
    claimed.epoch = Some(Epoch { number: 1, last: 16_383 });
    check(&[claimed], &elsewhere, &["8192..16383 not anchored"]);
}

#[test]
fn a_run_that_does_not_follow_the_anchor_below_it_is_refused() {
    check(&[forked(5, 9, 4)], &trusting(&[4]), &["refused at 4 by an anchor"]);
}

#[test]
fn the_points_where_runs_meet_are_their_ends_and_the_anchors() {
    let ranges = [run(0, 4).range, run(3, 9).range];
    let points = meeting_points(&ranges, &trusting(&[7]));
    assert_eq!(points.into_iter().collect::<Vec<_>>(), [0, 2, 4, 7, 9]);
}

#[test]
fn an_anchor_reads_as_it_is_written() {
    let text = "15537394:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664";
    let anchor: Anchor = text.parse().unwrap();
    assert_eq!((anchor.number, anchor.to_string().as_str()), (15_537_394, text));
    assert_eq!(
        TrustStatus::Anchored(AnchoredBy::Operator(anchor)).to_string(),
        format!("anchored by {text}")
    );
}

#[test]
fn what_is_not_an_anchor_is_refused_with_the_reason() {
    let check = |text: &str, expected: &str| {
        let error = text.parse::<Anchor>().unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("NUMBER:HASH"), "{error}");
    };
    let digits = "11".repeat(32);
    check("5", "no colon");
    check(&format!(":0x{digits}"), "not a number");
    check(&format!("+5:0x{digits}"), "not a number");
    check(&format!("0x5:0x{digits}"), "not a number");
    check("5:0x1234", "not a hash");
    check(&format!("5:{digits}"), "not a hash");
    check(&format!("5:0x{digits}00"), "not a hash");
}

#[test]
fn a_second_hash_for_one_block_is_refused() {
    let check = |number: u64, kind: AnchorKind| {
        let refused = Anchor { number, hash: hash(b'b', number) };
        let conflict = trusting(&[5]).with_operator(refused).unwrap_err();
        assert_eq!(conflict, AnchorConflict { refused, trusted: hash(b'a', number), kind });
    };
    check(0, AnchorKind::Genesis);
    check(5, AnchorKind::Operator);
    assert_eq!(trusting(&[5]).with_operator(anchor(5)), Ok(trusting(&[5])));
    assert_eq!(trusting(&[0]), trusting(&[]));
}

#[test]
fn the_expected_hash_says_who_vouches_for_it() {
    let anchors = trusting(&[5]);
    assert_eq!(anchors.expected_hash(0), Some((hash(b'a', 0), AnchorKind::Genesis)));
    assert_eq!(anchors.expected_hash(5), Some((hash(b'a', 5), AnchorKind::Operator)));
    assert_eq!(anchors.expected_hash(6), None);
    assert_eq!(Anchors::none().expected_hash(0), None);
}
