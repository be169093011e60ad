//! The sample chain: that it is valid, complete in its features, and always the same.
#![expect(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::{Eip658Value, Header, Transaction as _, TxType};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{Address, B256, U256, address, b256};
use chain::trust::Anchors;
use chain::{Block, Candidate, ChainSpec, Fork, Start, Verifier};
use sample::{CHAIN_ID, NETWORK_NAME, Payload, SampleSettings, generate, genesis};

fn make(settings: &SampleSettings, threads: usize) -> Vec<Candidate> {
    let mut blocks = Vec::new();
    let threads = NonZeroUsize::new(threads).unwrap();
    generate(settings, threads, |block| -> Result<(), Infallible> {
        blocks.push(block);
        Ok(())
    })
    .unwrap();
    blocks
}

fn spec(settings: &SampleSettings) -> ChainSpec {
    ChainSpec::from_genesis(NETWORK_NAME, &genesis(settings)).unwrap()
}

/// Makes the chain and sends every block through the door.
fn verified(settings: &SampleSettings) -> Vec<Block> {
    let spec = spec(settings);
    let anchors = Anchors::of(&spec);
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(0));
    let blocks = make(settings, 2).into_iter();
    blocks
        .map(|block| match verifier.verify(block) {
            Ok(block) => block.into_inner(),
            Err(mismatch) => panic!("{settings:?}: {mismatch}"),
        })
        .collect()
}

fn short() -> SampleSettings {
    SampleSettings { block_count: 260, ..SampleSettings::default() }
}

/// The chain of [`short`].
static SHORT: LazyLock<Vec<Block>> = LazyLock::new(|| verified(&short()));

#[test]
fn the_chain_verifies_and_begins_with_its_genesis() {
    let settings = short();
    let blocks = &*SHORT;
    assert_eq!(blocks.len(), 260);
    assert_eq!(Some(blocks[0].hash), spec(&settings).genesis_hash());
    assert_eq!(spec(&settings).chain_id(), Some(CHAIN_ID));
    for (number, block) in (0..).zip(blocks) {
        assert_eq!(block.header.number, number);
    }
}

#[test]
fn chains_of_any_seed_and_size_verify() {
    for seed in [0, 2, 77, u64::MAX] {
        for (txs_per_block, payload) in [
            (0, Payload::Small),
            (1, Payload::Mainnet),
            (7, Payload::Small),
            (60, Payload::Mainnet),
        ] {
            verified(&SampleSettings {
                seed,
                block_count: 160,
                txs_per_block,
                payload,
                ..SampleSettings::default()
            });
        }
    }
}

#[test]
fn a_genesis_file_names_the_same_chain() {
    let settings = short();
    let json = serde_json::to_string_pretty(&genesis(&settings)).unwrap();
    let read = ChainSpec::from_genesis(NETWORK_NAME, &serde_json::from_str(&json).unwrap());
    assert_eq!(read.unwrap().genesis_hash(), spec(&settings).genesis_hash());
    let hash = |settings| spec(&settings).genesis_hash();
    assert_eq!(hash(short()), hash(SampleSettings { block_count: 1, ..short() }));
    assert_ne!(hash(short()), hash(SampleSettings { seed: 2, ..short() }));
    assert_ne!(hash(short()), hash(SampleSettings { txs_per_block: 21, ..short() }));
    assert_ne!(hash(short()), hash(SampleSettings { payload: Payload::Mainnet, ..short() }));
}

#[test]
fn equal_settings_give_equal_bytes_on_any_number_of_threads() {
    for payload in [Payload::Small, Payload::Mainnet] {
        let settings = SampleSettings { block_count: 150, payload, ..SampleSettings::default() };
        let one = make(&settings, 1);
        assert!(one == make(&settings, 1));
        assert!(one == make(&settings, 5));
        let half = make(&SampleSettings { block_count: 75, ..settings }, 3);
        assert!(half == one[..75], "a longer chain begins with the shorter one");
    }
}

#[test]
fn the_chain_of_today_is_the_chain_of_yesterday() {
    let tip =
        |settings: &SampleSettings| chain::hash_header(&make(settings, 2).last().unwrap().header);
    assert_eq!(tip(&short()), SMALL_TIP, "the default chain has changed");
    let mainnet = SampleSettings { payload: Payload::Mainnet, ..short() };
    assert_eq!(tip(&mainnet), MAINNET_TIP, "the chain with mainnet's sizes has changed");
}

/// The hash of block 259 of the default settings.
const SMALL_TIP: B256 = b256!("1756031f354e58c25babcf20ab8b4dba49e0dcb2cec7407611e25e1b3425836c");
/// The same with the payload of mainnet.
const MAINNET_TIP: B256 = b256!("1bd11f22f68acce8a0e470b3f07545d93fa96981dd1ebed7501687d33704183b");

#[test]
fn a_failing_consumer_ends_the_work() {
    for threads in [1, 3] {
        let mut taken = 0;
        let ended = generate(&short(), NonZeroUsize::new(threads).unwrap(), |_| {
            taken += 1;
            if taken == 10 { Err("enough") } else { Ok(()) }
        });
        assert_eq!((ended, taken), (Err("enough"), 10));
    }
}

#[test]
fn headers_have_the_fields_of_their_fork() {
    let settings = short();
    let spec = spec(&settings);
    let mut total_difficulty = U256::ZERO;
    for (block, candidate) in SHORT.iter().zip(make(&settings, 2)) {
        let Header { number, timestamp, .. } = block.header;
        let is = |fork| spec.is_active(fork, number, timestamp).unwrap();
        let header = &block.header;
        assert_eq!(header.difficulty.is_zero(), is(Fork::Paris), "block {number}");
        assert_eq!(header.nonce.is_zero(), is(Fork::Paris), "block {number}");
        assert_eq!(header.base_fee_per_gas.is_some(), is(Fork::London), "block {number}");
        assert_eq!(header.withdrawals_root.is_some(), is(Fork::Shanghai), "block {number}");
        assert_eq!(header.blob_gas_used.is_some(), is(Fork::Cancun), "block {number}");
        assert_eq!(header.excess_blob_gas.is_some(), is(Fork::Cancun), "block {number}");
        assert_eq!(header.parent_beacon_block_root.is_some(), is(Fork::Cancun), "block {number}");
        assert_eq!(header.requests_hash.is_some(), is(Fork::Prague), "block {number}");
        assert_eq!(header.block_access_list_hash.is_some(), is(Fork::Amsterdam), "block {number}");
        assert_eq!(header.slot_number.is_some(), is(Fork::Amsterdam), "block {number}");
        assert!(header.extra_data.len() <= 32 && header.gas_used <= header.gas_limit);
        total_difficulty += header.difficulty;
        assert_eq!(candidate.total_difficulty, (!is(Fork::Paris)).then_some(total_difficulty));
    }
    assert_eq!(genesis(&settings).config.terminal_total_difficulty, Some(total_difficulty));
}

#[test]
fn forks_begin_where_they_should() {
    let spec = spec(&short());
    let mut begins: Vec<(Fork, u64)> = Vec::new();
    for block in &*SHORT {
        let fork = spec.fork_at(block.header.number, block.header.timestamp).unwrap();
        if begins.last().is_none_or(|(last, _)| *last != fork) {
            begins.push((fork, block.header.number));
        }
    }
    let expected = [
        (Fork::Frontier, 0),
        (Fork::Homestead, 8),
        (Fork::TangerineWhistle, 12),
        (Fork::SpuriousDragon, 16),
        (Fork::Byzantium, 24),
        (Fork::Petersburg, 32),
        (Fork::Istanbul, 36),
        (Fork::MuirGlacier, 40),
        (Fork::Berlin, 44),
        (Fork::London, 52),
        (Fork::ArrowGlacier, 56),
        (Fork::GrayGlacier, 60),
        (Fork::Paris, 64),
        (Fork::Shanghai, 72),
        (Fork::Cancun, 80),
        (Fork::Prague, 96),
        (Fork::Osaka, 112),
        (Fork::Bpo1, 120),
        (Fork::Bpo2, 128),
        (Fork::Amsterdam, 136),
    ];
    assert_eq!(begins, expected);
}

#[test]
fn senders_nonces_count_up_from_zero() {
    let mut next: BTreeMap<Address, u64> = BTreeMap::new();
    for block in verified(&SampleSettings { txs_per_block: 60, ..short() }) {
        for transaction in &block.transactions {
            let expected = next.entry(transaction.sender).or_default();
            assert_eq!(transaction.envelope.nonce(), *expected, "{}", transaction.sender);
            *expected += 1;
        }
    }
    assert!(next.len() > 500 && next.values().any(|count| *count > 1000), "{}", next.len());
}

#[test]
fn fees_and_gas_are_plausible() {
    let settings = SampleSettings { payload: Payload::Mainnet, ..short() };
    let spec = spec(&settings);
    for block in verified(&settings) {
        let header = &block.header;
        let blob_fee = spec
            .blob_params_at(header.timestamp)
            .map(|params| params.calc_blob_fee(header.excess_blob_gas.unwrap()));
        let mut gas_before = 0;
        let mut blob_count = 0;
        for (transaction, receipt) in block.transactions.iter().zip(block.receipts.unwrap()) {
            let transaction = &transaction.envelope;
            let gas_used = receipt.fields.cumulative_gas_used - gas_before;
            gas_before = receipt.fields.cumulative_gas_used;
            let gas_min = if header.slot_number.is_some() { 12_000 } else { 21_000 };
            assert!(gas_used >= gas_min && gas_used <= transaction.gas_limit());
            let base_fee = u128::from(header.base_fee_per_gas.unwrap_or(0));
            assert!(transaction.max_fee_per_gas() >= base_fee);
            assert!(
                transaction.max_fee_per_gas()
                    >= transaction.max_priority_fee_per_gas().unwrap_or(0)
            );
            if let Some(fee_max) = transaction.max_fee_per_blob_gas() {
                assert!(fee_max >= blob_fee.unwrap());
            }
            let hashes = transaction.blob_versioned_hashes().unwrap_or_default();
            assert!(hashes.len() <= 6 && hashes.iter().all(|hash| hash[0] == 1));
            blob_count += u64::try_from(hashes.len()).unwrap();
        }
        assert_eq!(header.blob_gas_used.unwrap_or(0), blob_count * DATA_GAS_PER_BLOB);
        let blobs_max =
            spec.blob_params_at(header.timestamp).map_or(0, |params| params.max_blob_count);
        assert!(blob_count <= blobs_max);
    }
}

#[test]
fn ommers_descend_from_ancestors() {
    let blocks = &*SHORT;
    for block in blocks {
        for ommer in &block.ommers {
            let parent = &blocks[usize::try_from(ommer.number).unwrap() - 1];
            assert_eq!(ommer.parent_hash, parent.hash);
            assert!(ommer.number < block.header.number && block.header.number <= ommer.number + 6);
        }
    }
}

#[test]
fn authorisations_are_signed_and_withdrawals_count_up() {
    let mut next_withdrawal = 0;
    for block in &*SHORT {
        for withdrawal in block.withdrawals.iter().flatten() {
            assert_eq!(withdrawal.index, next_withdrawal);
            next_withdrawal += 1;
        }
        for transaction in &block.transactions {
            let list = transaction.envelope.authorization_list().unwrap_or_default();
            for signed in list {
                let signature = signed.signature().unwrap();
                assert!(signature.s() <= SECP256K1N_HALF);
                signature.recover_address_from_prehash(&signed.signature_hash()).unwrap();
            }
        }
    }
}

/// Who logs ether that moves (EIP-7708).
const SYSTEM_ADDRESS: Address = address!("0xfffffffffffffffffffffffffffffffffffffffe");

/// How often each thing that a reader may meet occurs.
#[test]
fn everything_occurs() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for block in &*SHORT {
        count_features(block, |feature| *counts.entry(feature).or_default() += 1);
    }
    let expected = [
        "legacy without chain id",
        "legacy with chain id",
        "access list transaction",
        "fee market transaction",
        "blob transaction",
        "set-code transaction",
        "high s before Homestead",
        "creation",
        "failed",
        "post-state root",
        "0 topics",
        "1 topics",
        "2 topics",
        "3 topics",
        "4 topics",
        "access list in a fee market transaction",
        "1 blobs",
        "6 blobs",
        "1 authorisations",
        "3 authorisations",
        "16 withdrawals",
        "0 withdrawals",
        "1 ommers",
        "2 ommers",
        "0 transactions",
        "200 transactions",
        "no extra data",
        "extra data",
        "receipts at the header's gas before Amsterdam",
        "receipts below the header's gas from Amsterdam",
        "receipts at the header's gas from Amsterdam",
        "receipts above the header's gas from Amsterdam",
        "gas below 21,000",
        "logged payment",
    ];
    let missing: Vec<_> = expected.iter().filter(|name| !counts.contains_key(**name)).collect();
    assert!(missing.is_empty(), "missing {missing:?} of {counts:#?}");
    let unexpected = [
        "high s from Homestead",
        "failed with logs",
        "receipts below the header's gas before Amsterdam",
        "receipts above the header's gas before Amsterdam",
    ];
    assert!(unexpected.iter().all(|name| !counts.contains_key(*name)), "{counts:#?}");
}

fn count_features(block: &Block, mut count: impl FnMut(String)) {
    count(format!("{} transactions", block.transactions.len()));
    count(format!("{} ommers", block.ommers.len()));
    if let Some(withdrawals) = &block.withdrawals {
        count(format!("{} withdrawals", withdrawals.len()));
    }
    let has_extra_data = !block.header.extra_data.is_empty();
    count(if has_extra_data { "extra data" } else { "no extra data" }.to_owned());
    let receipts = block.receipts.as_ref().unwrap();
    let gas_sum = receipts.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used);
    let order = match gas_sum.cmp(&block.header.gas_used) {
        Ordering::Less => "below",
        Ordering::Equal => "at",
        Ordering::Greater => "above",
    };
    let side = if block.header.slot_number.is_some() { "from" } else { "before" };
    count(format!("receipts {order} the header's gas {side} Amsterdam"));
    let mut gas_before = 0;
    for (transaction, receipt) in block.transactions.iter().zip(receipts) {
        let gas_used = receipt.fields.cumulative_gas_used - gas_before;
        gas_before = receipt.fields.cumulative_gas_used;
        if gas_used < 21_000 {
            count("gas below 21,000".to_owned());
        }
        let envelope = &transaction.envelope;
        count(match envelope.tx_type() {
            TxType::Legacy if envelope.chain_id().is_none() => "legacy without chain id".to_owned(),
            TxType::Legacy => "legacy with chain id".to_owned(),
            TxType::Eip2930 => "access list transaction".to_owned(),
            TxType::Eip1559 => "fee market transaction".to_owned(),
            TxType::Eip4844 => "blob transaction".to_owned(),
            TxType::Eip7702 => "set-code transaction".to_owned(),
        });
        if envelope.signature().s() > SECP256K1N_HALF {
            let is_allowed = block.header.number < 8;
            count(format!("high s {} Homestead", if is_allowed { "before" } else { "from" }));
        }
        if envelope.to().is_none() {
            count("creation".to_owned());
        }
        if envelope.tx_type() == TxType::Eip1559
            && envelope.access_list().is_some_and(|list| !list.is_empty())
        {
            count("access list in a fee market transaction".to_owned());
        }
        if let Some(hashes) = envelope.blob_versioned_hashes() {
            count(format!("{} blobs", hashes.len()));
        }
        if let Some(list) = envelope.authorization_list() {
            count(format!("{} authorisations", list.len()));
        }
        match receipt.fields.status {
            Eip658Value::PostState(_) => count("post-state root".to_owned()),
            Eip658Value::Eip658(false) if receipt.fields.logs.is_empty() => {
                count("failed".to_owned());
            }
            Eip658Value::Eip658(false) => count("failed with logs".to_owned()),
            Eip658Value::Eip658(true) => {}
        }
        for log in &receipt.fields.logs {
            count(format!("{} topics", log.topics().len()));
            if log.address == SYSTEM_ADDRESS {
                count("logged payment".to_owned());
            }
        }
    }
}

#[test]
fn the_payload_of_mainnet_has_its_sizes() {
    let settings = SampleSettings {
        block_count: 300,
        txs_per_block: 100,
        payload: Payload::Mainnet,
        seed: 5,
        ..SampleSettings::default()
    };
    let mut sizes = Vec::new();
    let mut log_count = 0;
    let mut addresses: BTreeMap<Address, usize> = BTreeMap::new();
    for block in make(&settings, 2) {
        sizes.extend(block.body.transactions.iter().map(|encoded| encoded.len()));
        for log in block.receipts.unwrap().iter().flat_map(|receipt| &receipt.fields.logs) {
            *addresses.entry(log.address).or_default() += 1;
            log_count += 1;
        }
    }
    sizes.sort_unstable();
    let count = sizes.len();
    let at = |per_mille: usize| sizes[(count - 1) * per_mille / 1000];
    let check = |what: &str, found: usize, range: std::ops::RangeInclusive<usize>| {
        assert!(range.contains(&found), "{what}: {found}, expected {range:?}");
    };
    check("median", at(500), 160..=200);
    check("p90", at(900), 650..=900);
    check("p99", at(990), 2_500..=4_000);
    check("max", at(1000), 100_000..=121_000);
    let batches: Vec<usize> = sizes.iter().copied().filter(|size| *size > 8192).collect();
    check("batches in 10,000", batches.len() * 10_000 / count, 25..=60);
    let share = batches.iter().sum::<usize>() * 100 / sizes.iter().sum::<usize>();
    check("share of batches in all bytes", share, 37..=57);
    check("logs in 100 transactions", log_count * 100 / count, 200..=260);
    let busiest = addresses.values().max().unwrap() * 100 / log_count;
    check("share of the busiest address in all logs", busiest, 3..=15);
    check("addresses that log", addresses.len(), 1_000..=20_000);
}
