//! Genesis files: the fields of their headers, their hashes, their forks.

use std::io::Write as _;
use std::path::Path;

use alloy_primitives::U256;

use super::*;
use crate::spec::ChainSpec;

fn parse(json: &str) -> Genesis {
    serde_json::from_str(json).unwrap()
}

/// A genesis of one funded account and the given config.
fn with_config(config: &str) -> Genesis {
    parse(&format!(
        r#"{{"config": {{"chainId": 7, {config}}}, "gasLimit": "0x5f5e100", "difficulty": "0x20000",
        "alloc": {{"0x00000000000000000000000000000000000000aa": {{"balance": "0x1"}}}}}}"#
    ))
}

const ALL_AT_ZERO: &str = r#""homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0,
    "eip158Block": 0, "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0,
    "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0, "terminalTotalDifficulty": 0,
    "shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0"#;

/// Which optional fields block 0 has, oldest first.
fn fields(header: &Header) -> Vec<&'static str> {
    let all = [
        ("base fee", header.base_fee_per_gas.is_some()),
        ("withdrawals", header.withdrawals_root.is_some()),
        ("blob gas used", header.blob_gas_used.is_some()),
        ("excess blob gas", header.excess_blob_gas.is_some()),
        ("beacon root", header.parent_beacon_block_root.is_some()),
        ("requests", header.requests_hash.is_some()),
        ("access list", header.block_access_list_hash.is_some()),
        ("slot", header.slot_number.is_some()),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

/// Past the capture of what tests print: skipped tests are counted.
fn say_skipped() {
    let test = std::thread::current();
    let name = test.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped: {name}: no ../shared/data");
}

#[test]
fn the_sample_chains_genesis_has_its_published_hash() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(json) = std::fs::read_to_string(data.join("execution-apis/genesis.json")) else {
        say_skipped();
        return;
    };
    let spec = ChainSpec::from_genesis("sample", &parse(&json)).unwrap();
    let hash = "0x44fd89d504659cd58f48f4796b77a7e7012cf296a2409afa2f6c3cb99b5b3d99";
    assert_eq!(spec.genesis_hash().unwrap().to_string(), hash);
    assert_eq!(spec.chain_id(), Some(3_503_995_874_084_926));
    assert_eq!(spec.fork_at(35, 0), Some(Fork::GrayGlacier));
    assert_eq!(spec.fork_at(36, 389), Some(Fork::Paris));
    assert_eq!(spec.fork_at(60, 540), Some(Fork::Bpo2));
    assert_eq!(spec.blob_params_at(540).map(|params| params.max_blob_count), Some(21));
}

#[test]
fn the_genesis_of_a_chain_that_crosses_amsterdam_has_its_published_hash() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(json) = std::fs::read_to_string(data.join("amsterdam/genesis.json")) else {
        say_skipped();
        return;
    };
    let spec = ChainSpec::from_genesis("amsterdam", &parse(&json)).unwrap();
    let hash = "0x592b8bb3a0c9a0206f1dd49c79971eaa0c01802a728e6e79263ef71fb2ee178b";
    assert_eq!(spec.genesis_hash().unwrap().to_string(), hash);
    assert_eq!(spec.fork_at(10, 1_790_000_143), Some(Fork::Bpo2));
    assert_eq!(spec.fork_at(11, 1_790_000_144), Some(Fork::Amsterdam));
    let fraction = spec.blob_params_at(1_790_000_144).map(|params| params.update_fraction);
    assert_eq!(fraction, Some(11_684_671));
}

#[test]
fn block_0_has_the_fields_of_the_forks_active_in_it() {
    let check = |config: &str, expected: &[&str]| {
        assert_eq!(fields(&genesis_header(&with_config(config)).unwrap()), expected, "{config}");
    };
    let cancun = ["base fee", "withdrawals", "blob gas used", "excess blob gas", "beacon root"];
    let amsterdam = format!(r#"{ALL_AT_ZERO}, "amsterdamTime": 0"#);
    let bogota = format!(r#"{ALL_AT_ZERO}, "amsterdamTime": 0, "bogotaTime": 0"#);
    check(r#""homesteadBlock": 0"#, &[]);
    check(r#""londonBlock": 1"#, &[]);
    check(r#""londonBlock": 0"#, &["base fee"]);
    check(r#""londonBlock": 0, "shanghaiTime": 0"#, &["base fee", "withdrawals"]);
    check(r#""londonBlock": 0, "shanghaiTime": 1"#, &["base fee"]);
    check(r#""londonBlock": 0, "cancunTime": 0"#, &cancun);
    check(ALL_AT_ZERO, &[&cancun[..], &["requests"]].concat());
    let of_amsterdam = [&cancun[..], &["requests", "access list", "slot"]].concat();
    check(&amsterdam, &of_amsterdam);
    check(&bogota, &of_amsterdam);
}

#[test]
fn a_header_carries_what_the_file_gives() {
    let mut genesis = with_config(ALL_AT_ZERO);
    genesis.base_fee_per_gas = Some(7);
    genesis.excess_blob_gas = Some(8);
    genesis.gas_limit = 0;
    let header = genesis_header(&genesis).unwrap();
    assert_eq!(header.base_fee_per_gas, Some(7));
    assert_eq!(header.excess_blob_gas, Some(8));
    assert_eq!(header.gas_limit, GAS_LIMIT_DEFAULT);
    assert_eq!(header.difficulty, U256::from(0x20000));
}

#[test]
fn a_genesis_with_every_fork_code_and_storage_keeps_its_hash() {
    let mut genesis = with_config(ALL_AT_ZERO);
    let account = r#"{"0x00000000000000000000000000000000000000bb": {"balance": "0x2",
        "nonce": "0x1", "code": "0x6001", "storage": {
        "0x0000000000000000000000000000000000000000000000000000000000000001":
        "0x0000000000000000000000000000000000000000000000000000000000000002",
        "0x0000000000000000000000000000000000000000000000000000000000000003":
        "0x0000000000000000000000000000000000000000000000000000000000000000"}}}"#;
    let accounts: std::collections::BTreeMap<_, _> = serde_json::from_str(account).unwrap();
    genesis.alloc.extend(accounts);
    let hash = genesis_header(&genesis).unwrap().hash_slow();
    assert_eq!(
        hash.to_string(),
        "0xfcaaa0ffe563ec0fd9da8a847cfb8410aa972a6deef4d056773575272bb41d0f"
    );
}

#[test]
fn what_is_not_a_genesis_is_refused_with_both_values() {
    let check = |genesis: Genesis, expected: &str| {
        assert_eq!(genesis_header(&genesis).unwrap_err().to_string(), expected);
    };
    let mut numbered = with_config(ALL_AT_ZERO);
    numbered.number = Some(5);
    check(numbered, "genesis: number is 5, expected 0");
    let mut expensive = with_config(ALL_AT_ZERO);
    expensive.base_fee_per_gas = Some(1 << 64);
    check(
        expensive,
        "genesis: baseFeePerGas is 18446744073709551616, at most 18446744073709551615 fits a header",
    );
    check(
        with_config(r#""berlinBlock": 9, "londonBlock": 8"#),
        "genesis: London begins at block 8, before Berlin at block 9",
    );
    check(
        with_config(r#""londonBlock": 0, "shanghaiTime": 5, "cancunTime": 4"#),
        "genesis: Cancun begins at time 4, before Shanghai at time 5",
    );
    check(
        with_config(r#""londonBlock": 0, "amsterdamTime": 5, "bogotaTime": 4"#),
        "genesis: Bogota begins at time 4, before Amsterdam at time 5",
    );
}

#[test]
fn paris_is_told_by_the_netsplit_block_or_a_terminal_difficulty_of_zero() {
    let check = |config: &str, expected: Option<u64>| {
        let forks = forks(&with_config(config).config).unwrap();
        let paris = forks.iter().find(|(fork, _)| *fork == Fork::Paris);
        assert_eq!(paris.map(|(_, begins)| *begins), expected.map(Activation::Block), "{config}");
    };
    check(r#""londonBlock": 0, "terminalTotalDifficulty": 0"#, Some(0));
    check(r#""londonBlock": 0, "terminalTotalDifficulty": 0, "mergeNetsplitBlock": 3"#, Some(3));
    check(r#""londonBlock": 0, "terminalTotalDifficulty": 5"#, None);
    check(r#""londonBlock": 0"#, None);
}

#[test]
fn a_chain_with_another_consensus_is_not_held_to_ethereums_rules() {
    let is_described = |config: &str| {
        ChainSpec::from_genesis("test", &with_config(config)).unwrap().is_described()
    };
    assert!(is_described(ALL_AT_ZERO));
    assert!(is_described(r#""londonBlock": 0, "ethash": {}, "depositContractAddress": null"#));
    assert!(!is_described(r#""londonBlock": 0, "clique": {"period": 5, "epoch": 30000}"#));
    assert!(!is_described(r#""londonBlock": 0, "qbft": {"blockperiodseconds": 2}"#));
    assert!(!is_described(r#""londonBlock": 0, "zeroBaseFee": true"#));
    assert!(!is_described(r#""londonBlock": 0, "QBFT": {"blockperiodseconds": 2}"#));
    assert!(!is_described(r#""londonBlock": 0, "fixedBaseFee": true"#));
    assert!(!is_described(r#""londonBlock": 0, "arbitrum": {"EnableArbOS": true}"#));
    assert!(!is_described(r#""londonBlock": 0, "aForkThatIsNotKnownTime": 7"#));
    assert!(is_described(r#""londonBlock": 0, "aForkThatIsNotKnownTime": null"#));
    assert!(is_described(r#""londonBlock": 0, "discovery": {}, "contractSizeLimit": 9"#));
}

#[test]
fn a_fork_left_out_begins_with_the_next_one_given() {
    let forks = forks(&with_config(r#""berlinBlock": 4, "daoForkBlock": 1"#).config).unwrap();
    assert_eq!(forks[1], (Fork::Homestead, Activation::Block(4)));
    assert!(forks.iter().all(|(fork, _)| *fork != Fork::Dao && *fork != Fork::MuirGlacier));
    assert_eq!(forks.last(), Some(&(Fork::Berlin, Activation::Block(4))));
}

#[test]
fn a_blob_schedule_fills_what_the_file_leaves_out() {
    let check = |config: &str, timestamp: u64, expected: Option<(u64, u64)>| {
        let spec = ChainSpec::from_genesis("test", &with_config(config)).unwrap();
        let params = spec.blob_params_at(timestamp);
        let found = params.map(|params| (params.max_blob_count, params.blob_base_cost));
        assert_eq!(found, expected, "{config} at {timestamp}");
    };
    let timed = r#""londonBlock": 0, "cancunTime": 1, "pragueTime": 2, "osakaTime": 3"#;
    let bpo = r#""bpo1Time": 4, "bpo2Time": 5"#;
    let entry = |max| format!(r#"{{"target": 1, "max": {max}, "baseFeeUpdateFraction": 100}}"#);
    check(r#""londonBlock": 0"#, 9, None);
    check(timed, 0, None);
    check(timed, 1, Some((6, 0)));
    check(timed, 2, Some((9, 0)));
    check(timed, 3, Some((9, BLOB_BASE_COST)));
    let custom = format!(
        r#"{timed}, {bpo}, "blobSchedule": {{"prague": {}, "bpo2": {}}}"#,
        entry(40),
        entry(50)
    );
    check(&custom, 1, Some((6, 0)));
    check(&custom, 2, Some((40, 0)));
    check(&custom, 3, Some((40, BLOB_BASE_COST)));
    check(&custom, 4, Some((40, BLOB_BASE_COST)));
    check(&custom, 5, Some((50, BLOB_BASE_COST)));
    let later = format!(r#"{custom}, "amsterdamTime": 6, "bogotaTime": 7"#);
    check(&later, 6, Some((50, BLOB_BASE_COST)));
    check(&later, 7, Some((50, BLOB_BASE_COST)));
    let entries = format!(
        r#"{timed}, {bpo}, "amsterdamTime": 6, "bogotaTime": 6,
        "blobSchedule": {{"bpo2": {}, "amsterdam": {}, "bogota": {}}}"#,
        entry(50),
        entry(60),
        entry(70)
    );
    check(&entries, 5, Some((50, BLOB_BASE_COST)));
    check(&entries, 6, Some((70, BLOB_BASE_COST)));
}
