//! Every rule with a header that breaks just it, and what is not held against whom.

use alloy_eips::eip7691;
use alloy_primitives::b64;

use super::*;

/// A chain with London at block 10, no told merge block, and a fork at every thousandth second.
const CONFIG: &str = r#"{"config": {"chainId": 7, "londonBlock": 10, "shanghaiTime": 3000,
    "cancunTime": 4000, "pragueTime": 5000, "osakaTime": 6000, "bpo1Time": 7000,
    "terminalTotalDifficulty": 1000, "blobSchedule": {
    "bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8346193}} AMSTERDAM},
    "gasLimit": "0x5f5e100", "difficulty": "0x20000", "alloc": {}}"#;

fn described(amsterdam: &str) -> ChainSpec {
    let genesis = serde_json::from_str(&CONFIG.replace("AMSTERDAM", amsterdam)).unwrap();
    ChainSpec::from_genesis("test", &genesis).unwrap()
}

fn spec() -> ChainSpec {
    described(r#", "amsterdamTime": 8000"#)
}

/// A header with all that the fork of its number and timestamp asks for.
fn header(number: u64, timestamp: u64) -> Header {
    let from = |first: u64| timestamp >= first;
    Header {
        number,
        timestamp,
        gas_limit: 30_000_000,
        gas_used: 15_000_000,
        difficulty: U256::from(u64::from(!from(3000))),
        base_fee_per_gas: (number >= 10).then_some(INITIAL_BASE_FEE),
        withdrawals_root: from(3000).then_some(B256::ZERO),
        blob_gas_used: from(4000).then_some(0),
        excess_blob_gas: from(4000).then_some(0),
        parent_beacon_block_root: from(4000).then_some(B256::ZERO),
        requests_hash: from(5000).then_some(B256::ZERO),
        block_access_list_hash: from(8000).then_some(B256::ZERO),
        slot_number: from(8000).then_some(7),
        ..Header::default()
    }
}

fn fields(header: &Header) -> StepFields {
    StepFields::of(header, &alloy_rlp::encode(header))
}

/// Holds a child against its parent, as the verifier does.
fn check(spec: &ChainSpec, parent: &Header, child: &Header) -> Result<bool, RuleFault> {
    check_header(spec, Some(&fields(parent)), child, &fields(child))
}

/// What is said of a child at `timestamp` after `change`; the child is sound before it.
fn refused(timestamp: u64, change: impl FnOnce(&mut Header)) -> String {
    let (parent, mut child) = (header(20, timestamp - 12), header(21, timestamp));
    assert_eq!(check(&spec(), &parent, &child), Ok(true), "at {timestamp}");
    change(&mut child);
    check(&spec(), &parent, &child).unwrap_err().to_string()
}

#[test]
fn headers_of_every_fork_are_sound_and_so_are_the_steps_into_it() {
    for timestamp in [100, 3000, 4000, 5000, 6000, 7000, 8000, 9000] {
        let (parent, child) = (header(20, timestamp - 12), header(21, timestamp));
        assert_eq!(check(&spec(), &parent, &child), Ok(true), "at {timestamp}");
    }
    assert_eq!(check(&spec(), &header(8, 88), &header(9, 100)), Ok(true));
}

#[test]
fn a_header_has_exactly_the_fields_of_its_fork() {
    let found = |number, timestamp, count: usize, change: fn(&mut Header)| {
        let mut child = header(number, timestamp);
        change(&mut child);
        let error = check_header(&spec(), None, &child, &fields(&child)).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("header has {count} fields, ")), "{shown}");
    };
    found(9, 100, 16, |it| it.base_fee_per_gas = Some(1));
    found(10, 100, 15, |it| it.base_fee_per_gas = None);
    found(21, 2999, 17, |it| it.withdrawals_root = Some(B256::ZERO));
    found(21, 3000, 16, |it| it.withdrawals_root = None);
    found(21, 4000, 19, |it| it.parent_beacon_block_root = None);
    found(21, 4999, 21, |it| it.requests_hash = Some(B256::ZERO));
    found(21, 5000, 20, |it| it.requests_hash = None);
    found(21, 7999, 22, |it| it.block_access_list_hash = Some(B256::ZERO));
    found(21, 8000, 22, |it| it.slot_number = None);
    let text = refused(8000, |it| it.slot_number = None);
    assert_eq!(text, "header has 22 fields, Amsterdam has 23");
}

#[test]
fn steps_of_time_gas_and_fees_are_held_against_a_child() {
    let text = refused(6000, |it| it.timestamp = 5988);
    assert_eq!(text, "timestamp is 5988, the parent's is 5988: it must be above");
    let text = refused(6000, |it| it.gas_used = it.gas_limit + 1);
    assert_eq!(text, "gas used is 30000001, the gas limit is 30000000");
    let bound = 30_000_000 / 1024;
    for gas_limit in [30_000_000 + bound, 30_000_000 - bound] {
        let text = refused(6000, |it| it.gas_limit = gas_limit);
        let expected = format!("gas limit is {gas_limit}, expected at least 5000 and less than");
        assert!(text.starts_with(&expected), "{text}");
    }
    let mut child = header(21, 6000);
    child.gas_limit = 30_000_000 + bound - 1;
    assert_eq!(check(&spec(), &header(20, 5988), &child), Ok(true));
    let text = refused(6000, |it| it.base_fee_per_gas = Some(INITIAL_BASE_FEE + 1));
    assert_eq!(text, "base fee is 1000000001, the parent's gas gives 1000000000");
}

#[test]
fn a_gas_limit_below_the_least_is_refused() {
    let (mut parent, mut child) = (header(8, 88), header(9, 100));
    parent.gas_limit = 5000;
    parent.gas_used = 0;
    child.gas_used = 0;
    child.gas_limit = 5000;
    assert_eq!(check(&spec(), &parent, &child), Ok(true));
    child.gas_limit = 4999;
    let error = check(&spec(), &parent, &child).unwrap_err();
    let is_newest_fork = false;
    assert_eq!(error, RuleFault::GasLimit { found: 4999, parent: 5000, bound: 4, is_newest_fork });
}

#[test]
fn the_first_block_of_london_doubles_the_gas_limit_and_begins_with_one_gwei() {
    let (parent, mut child) = (header(9, 88), header(10, 100));
    child.gas_limit = 60_000_000;
    assert_eq!(check(&spec(), &parent, &child), Ok(true));
    child.base_fee_per_gas = Some(7);
    let error = check(&spec(), &parent, &child).unwrap_err();
    let is_newest_fork = false;
    assert_eq!(error, RuleFault::BaseFee { found: 7, expected: INITIAL_BASE_FEE, is_newest_fork });
    child = header(10, 100);
    let error = check(&spec(), &parent, &child).unwrap_err();
    let bound = 60_000_000 / 1024;
    let (found, parent) = (30_000_000, 60_000_000);
    assert_eq!(error, RuleFault::GasLimit { found, parent, bound, is_newest_fork });
}

#[test]
fn the_base_fee_follows_the_parents_gas() {
    let mut parent = header(20, 5988);
    parent.gas_used = 30_000_000;
    let mut child = header(21, 6000);
    child.base_fee_per_gas = Some(1_125_000_000);
    assert_eq!(check(&spec(), &parent, &child), Ok(true));
    parent.gas_used = 0;
    child.base_fee_per_gas = Some(875_000_000);
    assert_eq!(check(&spec(), &parent, &child), Ok(true));
}

#[test]
fn excess_blob_gas_follows_the_schedule_of_the_childs_fork() {
    let next = |timestamp: u64, excess: u64, blob_count: u64| {
        let mut parent = header(20, timestamp - 12);
        parent.excess_blob_gas = Some(excess);
        parent.blob_gas_used = Some(blob_count * DATA_GAS_PER_BLOB);
        let mut child = header(21, timestamp);
        child.excess_blob_gas = Some(u64::MAX);
        match check(&spec(), &parent, &child) {
            Err(RuleFault::ExcessBlobGas { expected, .. }) => expected,
            other => panic!("{other:?}"),
        }
    };
    let blobs = |count: u64| count * DATA_GAS_PER_BLOB;
    let large = 400 * eip7691::TARGET_BLOBS_PER_BLOCK_ELECTRA * DATA_GAS_PER_BLOB;
    // Cancun's target is 3, Prague's 6, BPO1's 10, and Amsterdam has no numbers of its own.
    assert_eq!(next(4012, blobs(5), 4), blobs(6));
    assert_eq!(next(5000, blobs(5), 4), blobs(3));
    assert_eq!(next(5012, blobs(1), 4), 0);
    assert_eq!(next(7000, large, 12), large + blobs(2));
    assert_eq!(next(8000, large, 12), large + blobs(2));
    // EIP-7918: where blobs cost less than their execution, the excess falls no more.
    assert_eq!(next(5012, blobs(6), 6), blobs(6));
    assert_eq!(next(6000, blobs(6), 6), blobs(6) + blobs(6) * 3 / 9);
    assert_eq!(next(8000, blobs(12), 6), blobs(12) + blobs(6) * 5 / 15);
}

#[test]
fn numbers_that_no_honest_parent_has_do_not_overflow() {
    for timestamp in [3012, 4012, 6012, 9000] {
        let mut parent = header(20, timestamp - 12);
        parent.gas_used = u64::MAX;
        parent.gas_limit = u64::MAX;
        parent.base_fee_per_gas = Some(u64::MAX);
        parent.blob_gas_used = parent.blob_gas_used.map(|_| u64::MAX);
        parent.excess_blob_gas = parent.excess_blob_gas.map(|_| u64::MAX);
        let mut child = header(21, timestamp);
        assert!(check(&spec(), &parent, &child).is_err());
        child.gas_limit = u64::MAX;
        assert!(check(&spec(), &parent, &child).is_err());
        child.base_fee_per_gas = Some(u64::MAX / 2 + u64::MAX / 16);
        drop(check(&spec(), &parent, &child));
    }
    // Parameters that a genesis file may have, and nothing can be computed with.
    for (target, max, fraction) in [(5, 0, 100), (5, 4, 100), (1, 2, 0), (1, u64::MAX, 100)] {
        let mut params = BlobParams::osaka();
        (params.target_blob_count, params.max_blob_count) = (target, max);
        params.update_fraction = fraction;
        assert_eq!(next_excess_blob_gas(&params, &fields(&header(20, 6000))), None);
    }
}

#[test]
fn blobs_take_the_gas_that_the_header_says() {
    let mut header = header(21, 6000);
    header.blob_gas_used = Some(2 * DATA_GAS_PER_BLOB);
    assert_eq!(check_blobs(&header, 2), Ok(()));
    let text = check_blobs(&header, 3).unwrap_err().to_string();
    assert_eq!(text, "blob gas used is 262144, its 3 blobs take 393216");
    header.blob_gas_used = None;
    assert_eq!(check_blobs(&header, 0), Ok(()));
}

#[test]
fn after_the_merge_nothing_of_proof_of_work_is_left() {
    let text = refused(3000, |it| it.difficulty = U256::from(1));
    assert_eq!(text, "difficulty is 1, after the merge it is 0");
    let text = refused(3000, |it| it.nonce = b64!("0x0000000000000001"));
    assert_eq!(text, "nonce is 0x0000000000000001, after the merge it is 0");
    let text = refused(3000, |it| it.ommers_hash = B256::ZERO);
    assert!(text.starts_with("ommers hash is 0x0000"), "{text}");
}

#[test]
fn where_nobody_told_the_merge_block_a_difficulty_of_zero_does() {
    let (mut parent, mut child) = (header(20, 88), header(21, 100));
    child.difficulty = U256::ZERO;
    assert_eq!(check(&spec(), &parent, &child), Ok(true));
    child.nonce = b64!("0x0000000000000001");
    let error = check(&spec(), &parent, &child).unwrap_err();
    assert!(matches!(error, RuleFault::Nonce { .. }), "{error}");
    (parent.difficulty, child) = (U256::ZERO, header(21, 100));
    let error = check(&spec(), &parent, &child).unwrap_err();
    assert_eq!(error, RuleFault::Difficulty { found: U256::from(1) });
    // Block 0 may have any difficulty.
    let mut genesis = header(0, 88);
    genesis.difficulty = U256::ZERO;
    assert_eq!(check(&spec(), &genesis, &header(1, 100)), Ok(true));
}

#[test]
fn only_described_chains_are_held_to_their_rules() {
    let (parent, mut child) = (header(20, 5988), header(21, 100));
    child.gas_used = u64::MAX;
    for chain_id in [None, Some(1), Some(7)] {
        let spec = ChainSpec::bare("test", chain_id, None);
        assert_eq!(check(&spec, &parent, &child), Ok(false));
        assert_eq!(check_step(&spec, &fields(&parent), &fields(&child)), Ok(()));
    }
    assert!(check_step(&spec(), &fields(&parent), &fields(&child)).is_err());
}

#[test]
fn a_later_fork_than_any_that_is_known_is_held_only_to_what_no_fork_changed() {
    // Known only up to BPO1, and the network has gone to Amsterdam.
    let old = described("");
    let (parent, mut child) = (header(20, 8988), header(21, 9000));
    child.excess_blob_gas = Some(77);
    child.base_fee_per_gas = Some(77);
    assert_eq!(check(&old, &parent, &child), Ok(false));
    child.timestamp = 8988;
    assert!(matches!(check(&old, &parent, &child), Err(RuleFault::Timestamp { .. })));
    // A field that this build does not know, on a chain whose forks are known up to Amsterdam.
    let mut child = header(21, 9000);
    child.base_fee_per_gas = Some(77);
    let mut rlp = alloy_rlp::encode(&child);
    rlp.push(0x80);
    let longer = StepFields::of(&child, &rlp);
    let known = spec();
    assert_eq!(check_header(&known, Some(&fields(&parent)), &child, &longer), Ok(false));
    child.nonce = b64!("0x0000000000000001");
    assert!(check_header(&known, Some(&fields(&parent)), &child, &longer).is_err());
    // Before the newest fork nobody may have more.
    let child = header(21, 6000);
    let longer = StepFields { field_count: 22, ..fields(&child) };
    let error = check_header(&known, None, &child, &longer).unwrap_err();
    assert!(matches!(error, RuleFault::Fields { .. }), "{error}");
}

#[test]
fn a_step_that_a_later_fork_may_explain_says_so() {
    type Break = (fn(&mut Header), &'static str);
    let breaks: [Break; 3] = [
        (|it| it.excess_blob_gas = Some(1), "excess blob gas is 1, the parent's blobs give 0"),
        (|it| it.base_fee_per_gas = Some(7), "base fee is 7, the parent's gas gives 1000000000"),
        (
            |it| it.gas_limit = 60_000_000,
            "gas limit is 60000000, expected at least 5000 and less than 29296 away from 30000000",
        ),
    ];
    for (break_child, said) in breaks {
        let broken = |timestamp| {
            let mut child = header(21, timestamp);
            break_child(&mut child);
            check(&spec(), &header(20, timestamp - 12), &child).unwrap_err()
        };
        let error = broken(9000);
        assert!(error.may_be_later_fork(), "{error}");
        assert!(error.to_string().ends_with("does not know; then upgrade"), "{error}");
        let error = broken(7012);
        assert!(!error.may_be_later_fork());
        assert_eq!(error.to_string(), said);
    }
}
