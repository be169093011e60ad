//! Block 0 of the sample chain, as a genesis file and as a header.

use std::collections::BTreeMap;

use alloy_eips::eip7840::BlobParams;
use alloy_genesis::{ChainConfig, EthashConfig, Genesis, GenesisAccount};
use alloy_primitives::{B256, Bytes, U256};

use super::accounts::Account;
use super::{Payload, SampleSettings, schedule};

/// Accounts that own something from the beginning.
const FUNDED_COUNT: u64 = 16;
/// A billion ether, in wei.
const BALANCE_WEI: u128 = 1_000_000_000 * 1_000_000_000_000_000_000;

/// The genesis of the chain that `settings` describe. Its block count does not matter; all else
/// does, so that two different chains never share a genesis hash.
#[must_use]
pub fn genesis(settings: &SampleSettings) -> Genesis {
    let alloc = (0..FUNDED_COUNT)
        .map(|index| {
            let address = Account::new(settings.seed, index).address;
            (address, GenesisAccount::default().with_balance(U256::from(BALANCE_WEI)))
        })
        .collect();
    Genesis {
        config: config(settings),
        nonce: 0x42,
        timestamp: schedule::timestamp(0),
        extra_data: extra_data(settings),
        gas_limit: schedule::gas_limit(settings, 0),
        difficulty: U256::from(schedule::difficulty(settings.seed, 0)),
        mix_hash: B256::ZERO,
        alloc,
        ..Genesis::default()
    }
}

fn config(settings: &SampleSettings) -> ChainConfig {
    ChainConfig {
        chain_id: settings.chain_id,
        homestead_block: Some(schedule::HOMESTEAD),
        eip150_block: Some(schedule::TANGERINE_WHISTLE),
        eip155_block: Some(schedule::SPURIOUS_DRAGON),
        eip158_block: Some(schedule::SPURIOUS_DRAGON),
        byzantium_block: Some(schedule::BYZANTIUM),
        constantinople_block: Some(schedule::PETERSBURG),
        petersburg_block: Some(schedule::PETERSBURG),
        istanbul_block: Some(schedule::ISTANBUL),
        muir_glacier_block: Some(schedule::MUIR_GLACIER),
        berlin_block: Some(schedule::BERLIN),
        london_block: Some(schedule::LONDON),
        arrow_glacier_block: Some(schedule::ARROW_GLACIER),
        gray_glacier_block: Some(schedule::GRAY_GLACIER),
        merge_netsplit_block: Some(schedule::PARIS),
        shanghai_time: Some(schedule::timestamp(schedule::SHANGHAI)),
        cancun_time: Some(schedule::timestamp(schedule::CANCUN)),
        prague_time: Some(schedule::timestamp(schedule::PRAGUE)),
        osaka_time: Some(schedule::timestamp(schedule::OSAKA)),
        bpo1_time: Some(schedule::timestamp(schedule::BPO1)),
        bpo2_time: Some(schedule::timestamp(schedule::BPO2)),
        amsterdam_time: Some(schedule::timestamp(schedule::AMSTERDAM)),
        terminal_total_difficulty: Some(U256::from(schedule::terminal_total_difficulty(
            settings.seed,
        ))),
        terminal_total_difficulty_passed: true,
        ethash: Some(EthashConfig {}),
        blob_schedule: BTreeMap::from([
            ("cancun".to_owned(), BlobParams::cancun()),
            ("prague".to_owned(), BlobParams::prague()),
            ("osaka".to_owned(), BlobParams::osaka()),
            ("bpo1".to_owned(), BlobParams::bpo1()),
            ("bpo2".to_owned(), BlobParams::bpo2()),
        ]),
        ..ChainConfig::default()
    }
}

/// What the chain is made of, inside its first header.
fn extra_data(settings: &SampleSettings) -> Bytes {
    let payload = match settings.payload {
        Payload::Small => 0_u8,
        Payload::Mainnet => 1,
    };
    let mut extra = b"quipu sample ".to_vec();
    extra.extend_from_slice(&settings.seed.to_be_bytes());
    extra.extend_from_slice(&settings.txs_per_block.to_be_bytes());
    extra.push(payload);
    extra.into()
}
