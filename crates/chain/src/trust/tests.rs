//! Runs and anchors on one side, the statuses they give on the other.

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
fn run(first: u64, last: u64) -> Run {
    Run {
        range: BlockRange::from_ends(first, last).unwrap(),
        parent_hash: first.checked_sub(1).map_or(B256::ZERO, |parent| hash(b'a', parent)),
        last_hash: hash(b'a', last),
        anchors_met: Vec::new(),
        epoch: None,
        epoch_last: None,
    }
}

fn met(mut run: Run, numbers: &[u64]) -> Run {
    run.anchors_met = numbers.iter().copied().map(anchor).collect();
    run
}

/// The genesis of branch `a`, and the operator's anchors on it.
fn trusting(numbers: &[u64]) -> Anchors {
    let spec = ChainSpec::bare("test", None, Some(hash(b'a', 0)));
    numbers
        .iter()
        .fold(Anchors::of(&spec), |anchors, number| anchors.with_operator(anchor(*number)).unwrap())
}

/// What `assess` says: a line for each run, hashes left out.
fn check(runs: &[Run], anchors: &Anchors, expected: &[&str]) {
    let lines: Vec<String> = match assess(runs, anchors) {
        Ok(assessed) => assessed.iter().map(|pieces| format_pieces(pieces)).collect(),
        Err(broken) => vec![broken.to_string()],
    };
    assert_eq!(lines, expected);
}

fn format_pieces(pieces: &[(BlockRange, Status)]) -> String {
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
    let mut other = run(0, 0);
    other.last_hash = hash(b'b', 0);
    check(&[other], &trusting(&[]), &["0..0 not anchored"]);
}

#[test]
fn with_nothing_known_nothing_is_anchored() {
    check(
        &[run(0, 4), met(run(5, 9), &[7])],
        &Anchors::none(),
        &["0..4 not anchored", "5..9 not anchored"],
    );
}

#[test]
fn an_anchor_proves_what_is_below_it_and_links_what_is_above() {
    check(&[met(run(0, 9), &[6])], &trusting(&[6]), &["0..6 anchored by 6, 7..9 linked to 6"]);
    check(
        &[met(run(3, 9), &[8, 5])],
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
        &[met(run(5, 9), &[7]), run(10, 12), run(0, 4)],
        &trusting(&[7]),
        &["5..7 anchored by 7, 8..9 linked to 7", "10..12 linked to 7", "0..4 anchored by 7"],
    );
}

#[test]
fn a_gap_stops_both_ways() {
    check(
        &[run(1, 4), met(run(6, 9), &[8]), run(11, 12)],
        &trusting(&[8]),
        &["1..4 linked to genesis", "6..8 anchored by 8, 9..9 linked to 8", "11..12 not anchored"],
    );
}

#[test]
fn overlapping_runs_share_what_their_common_last_block_proves() {
    check(
        &[run(0, 9), run(4, 9), run(2, 6), met(run(10, 12), &[11])],
        &trusting(&[11]),
        &[
            "0..9 anchored by 11",
            "4..9 anchored by 11",
            "2..6 not anchored",
            "10..11 anchored by 11, 12..12 linked to 11",
        ],
    );
}

#[test]
fn a_branch_off_an_anchored_chain_is_linked_to_where_it_leaves() {
    let mut branch = run(5, 7);
    branch.last_hash = hash(b'b', 7);
    check(
        &[run(1, 4), met(run(5, 9), &[8]), branch],
        &trusting(&[8]),
        &["1..4 anchored by 8", "5..8 anchored by 8, 9..9 linked to 8", "5..7 linked to 4"],
    );
}

#[test]
fn an_anchor_that_is_no_longer_trusted_counts_for_nothing() {
    check(&[met(run(3, 9), &[6])], &trusting(&[]), &["3..9 not anchored"]);
}

/// Mainnet with its list of epoch roots, where the list is at hand.
fn mainnet() -> Option<Anchors> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(list) = std::fs::read(data.join("mainnet-accumulators.bin")) else {
        println!("skipped: no ../shared/data");
        return None;
    };
    println!("reading ../shared/data");
    let spec = ChainSpec::known("mainnet").unwrap();
    Some(Anchors::of(&spec).with_epoch_roots(EpochRoots::parse(&list).unwrap()))
}

#[test]
fn an_accumulator_epoch_is_anchored_whole_and_reaches_down() {
    let Some(anchors) = mainnet() else { return };
    let mut first = run(0, 8191);
    first.epoch = Some(0);
    let mut third = run(16_384, 24_575);
    third.epoch = Some(2);
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
    let Some(anchors) = mainnet() else { return };
    let mut last = met(run(15_532_032, 15_540_223), &[15_537_000]);
    last.epoch = Some(1896);
    last.epoch_last = Some(15_537_393);
    let expected = "15532032..15537393 anchored by accumulator epoch 1896, \
        15537394..15540223 linked to accumulator epoch 1896";
    check(std::slice::from_ref(&last), &anchors, &[expected]);
    let anchors = anchors.with_operator(anchor(15_540_000)).unwrap();
    last.anchors_met.push(anchor(15_540_000));
    let expected = "15532032..15537393 anchored by accumulator epoch 1896, \
        15537394..15540000 anchored by 15540000, 15540001..15540223 linked to 15540000";
    check(&[last], &anchors, &[expected]);
}

#[test]
fn epoch_roots_count_only_for_mainnet() {
    let Some(mainnet) = mainnet() else { return };
    assert!(mainnet.expected_epoch_root(1896).is_some());
    assert_eq!(mainnet.expected_epoch_root(1897), None);
    let elsewhere = Anchors { genesis_hash: Some(hash(b'a', 0)), ..mainnet };
    assert_eq!(elsewhere.expected_epoch_root(0), None);
    let mut claimed = run(8192, 16_383);
    claimed.epoch = Some(1);
    check(&[claimed], &elsewhere, &["8192..16383 not anchored"]);
}

#[test]
fn adjacent_runs_that_do_not_join_are_refused_with_both_hashes() {
    let mut upper = run(5, 9);
    upper.parent_hash = hash(b'b', 4);
    let expected =
        format!("block 5 has parent {}, but block 4 is {}", hash(b'b', 4), hash(b'a', 4));
    check(&[upper.clone(), run(0, 4)], &trusting(&[]), &[&expected]);
    check(&[upper.clone()], &trusting(&[4]), &[&expected]);
    // A second run that does join makes the first one a branch.
    check(
        &[run(0, 4), upper, run(5, 6)],
        &trusting(&[]),
        &[
            "0..0 anchored by genesis, 1..4 linked to genesis",
            "5..9 not anchored",
            "5..6 linked to genesis",
        ],
    );
}

#[test]
fn an_anchor_reads_as_it_is_written() {
    let text = "15537394:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664";
    let anchor: Anchor = text.parse().unwrap();
    assert_eq!((anchor.number, anchor.to_string().as_str()), (15_537_394, text));
    assert_eq!(
        Status::Anchored(AnchoredBy::Operator(anchor)).to_string(),
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
