//! One transaction and its receipt: typed, priced, signed.

use alloy_consensus::transaction::{RlpEcdsaEncodableTx, SignableTransaction};
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy, TxType};
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4844::VERSIONED_HASH_VERSION_KZG;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Log, Signature, TxKind, U256};

use super::accounts::{Account, SampleKey};
use super::call::ContractCall;
use super::call_kind::CallKind;
use super::events;
use super::random::{SampleRandom, to_u64};
use super::world::World;
use super::{Payload, schedule};

const GWEI: u64 = 1_000_000_000;
/// What the cheapest transaction costs, up to Amsterdam.
pub(super) const GAS_MIN: u64 = 21_000;
/// What a payment costs from Amsterdam on if the account is touched already.
const CHEAP_GAS: u64 = 12_000;
/// Payments of Amsterdam in ten thousand that are so cheap.
const CHEAP_SHARE: u64 = 2_500;
const CREATION_GAS: u64 = 32_000;
const ACCESS_ADDRESS_GAS: u64 = 2_400;
const ACCESS_KEY_GAS: u64 = 1_900;
const AUTHORISATION_GAS: u64 = 25_000;
/// EIP-7623: what a token of calldata costs at least. A zero byte is one token, another is four.
const TOKEN_FLOOR_GAS: u64 = 10;
const TOKEN_GAS: u64 = 4;

/// Transactions in ten thousand that fail, of those that run code.
const FAILED_SHARE: u64 = 500;

/// Where a transaction stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPosition {
    /// The block.
    pub(super) number: u64,
    /// The transaction, counted through the whole chain.
    pub(super) ordinal: u64,
    /// Gas that the transaction may use at most, so that the rest of the block fits.
    pub(super) gas_max: u64,
    /// Blobs it carries; any make it a blob transaction.
    pub(super) blob_count: u64,
}

/// A signed transaction and what became of it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) tx_type: TxType,
    pub(super) encoded: Bytes,
    pub(super) gas_used: u64,
    pub(super) is_success: bool,
    pub(super) logs: Vec<Log>,
}

/// What all types have.
struct Fields {
    chain_id: u64,
    nonce: u64,
    gas_limit: u64,
    /// The price, or the most that may be paid.
    fee_max: u128,
    tip: u128,
    to: TxKind,
    value: U256,
    input: Bytes,
    access_list: AccessList,
}

pub(super) fn make(
    world: &World,
    payload: Payload,
    position: CallPosition,
    random: &mut SampleRandom,
) -> Made {
    let tx_type = draw_type(position, random);
    let can_create = !matches!(tx_type, TxType::Eip4844 | TxType::Eip7702);
    let call = ContractCall::draw(world, payload, can_create, random);
    let (account, nonce) = world.accounts.of_tx(position.ordinal);
    let authorizations = if tx_type == TxType::Eip7702 {
        authorizations(world, position.ordinal, random)
    } else {
        Vec::new()
    };
    let access_list = access_list(world, tx_type, random);
    let is_success = call.kind == CallKind::Payment || !random.chance(FAILED_SHARE);
    let is_amsterdam = position.number >= schedule::AMSTERDAM;
    // EIP-2780 lowers what a payment to an account costs that is touched already.
    let is_cheap = is_amsterdam && call.kind == CallKind::Payment && random.chance(CHEAP_SHARE);
    let wanted = if is_cheap { CHEAP_GAS } else { gas(&call, &access_list, authorizations.len()) };
    let gas_used = wanted.min(position.gas_max);
    let (fee_max, tip) = fees(position.number, random);
    let payment = events::payment(world, account.address, call.to, call.value);
    let payment = payment.filter(|_| is_amsterdam);
    let common = Fields {
        chain_id: world.chain_id,
        nonce,
        gas_limit: gas_limit(&call, gas_used, is_success, random),
        fee_max,
        tip,
        to: call.to,
        value: call.value,
        input: call.input,
        access_list,
    };
    let encoded = encode(tx_type, common, authorizations, account, position, random);
    let logs = if is_success { payment.into_iter().chain(call.logs).collect() } else { Vec::new() };
    Made { tx_type, encoded, gas_used, is_success, logs }
}

fn draw_type(position: CallPosition, random: &mut SampleRandom) -> TxType {
    if position.blob_count > 0 {
        return TxType::Eip4844;
    }
    let drawn = random.below(100);
    match (position.number, drawn) {
        (schedule::PRAGUE.., 0..3) => TxType::Eip7702,
        (schedule::LONDON.., 0..75) => TxType::Eip1559,
        (schedule::LONDON.., 75..80) | (schedule::BERLIN..schedule::LONDON, 0..30) => {
            TxType::Eip2930
        }
        _ => TxType::Legacy,
    }
}

/// Highest price and tip, in wei. From London on the base fee begins with a gwei and never rises.
fn fees(number: u64, random: &mut SampleRandom) -> (u128, u128) {
    // Tips and prices have few digits when people choose them and many when programs do.
    let fine = if random.chance(5_000) { random.below(GWEI) } else { 0 };
    let tip = random.within(0..=3) * GWEI / 2 + fine;
    if number < schedule::LONDON {
        return (u128::from((1 + random.below(60)) * GWEI + fine), 0);
    }
    let headroom = random.within(0..=4) * INITIAL_BASE_FEE / 4;
    (u128::from(INITIAL_BASE_FEE + headroom + tip), u128::from(tip))
}

/// What the transaction would use: what its bytes cost, and what running it takes.
fn gas(call: &ContractCall, access_list: &AccessList, authorization_count: usize) -> u64 {
    let zero_count: u64 = call.input.iter().map(|byte| u64::from(*byte == 0)).sum();
    let tokens = zero_count + 4 * (to_u64(call.input.len()) - zero_count);
    let key_count: usize = access_list.0.iter().map(|item| item.storage_keys.len()).sum();
    let creation = if call.kind == CallKind::Creation { CREATION_GAS } else { 0 };
    let run = GAS_MIN
        + creation
        + tokens * TOKEN_GAS
        + to_u64(access_list.0.len()) * ACCESS_ADDRESS_GAS
        + to_u64(key_count) * ACCESS_KEY_GAS
        + to_u64(authorization_count) * AUTHORISATION_GAS
        + call.execution_gas;
    run.max(GAS_MIN + tokens * TOKEN_FLOOR_GAS)
}

fn gas_limit(
    call: &ContractCall,
    gas_used: u64,
    is_success: bool,
    random: &mut SampleRandom,
) -> u64 {
    if call.kind == CallKind::Payment {
        return gas_used;
    }
    // Half of the failures ran out of gas.
    if !is_success && random.chance(5_000) {
        return gas_used;
    }
    let estimate = gas_used + gas_used * random.within(0..=50) / 100;
    if random.chance(3_000) { estimate.next_multiple_of(10_000) } else { estimate }
}

fn access_list(world: &World, tx_type: TxType, random: &mut SampleRandom) -> AccessList {
    let item_count = match tx_type {
        TxType::Eip2930 => random.within(1..=3),
        TxType::Eip1559 | TxType::Eip7702 if random.chance(500) => random.within(1..=3),
        TxType::Legacy | TxType::Eip1559 | TxType::Eip4844 | TxType::Eip7702 => 0,
    };
    let mut items = Vec::new();
    for _ in 0..item_count {
        let address = world.contract(random);
        let keys = (0..random.below(5)).map(|_| storage_key(world, random));
        items.push(AccessListItem { address, storage_keys: keys.collect() });
    }
    items.into()
}

/// A small slot number, or the hash that a mapping's slot is.
fn storage_key(world: &World, random: &mut SampleRandom) -> B256 {
    if random.chance(5_000) { B256::from(U256::from(random.below(32))) } else { world.word(random) }
}

fn authorizations(
    world: &World,
    tx_ordinal: u64,
    random: &mut SampleRandom,
) -> Vec<SignedAuthorization> {
    let mut signed = Vec::new();
    for index in 0..random.within(1..=3) {
        // Chain id 0 is good on every chain, and the zero address takes the code away again.
        let chain_id = if random.chance(1_000) { 0 } else { world.chain_id };
        let address = if random.chance(1_000) { Address::ZERO } else { world.contract(random) };
        let authorization = Authorization { chain_id: U256::from(chain_id), address, nonce: 0 };
        let key = SampleKey::of_authority(world.seed, tx_ordinal, index);
        let signature = key.sign(authorization.signature_hash());
        signed.push(authorization.into_signed(signature));
    }
    signed
}

fn encode(
    tx_type: TxType,
    common: Fields,
    authorization_list: Vec<SignedAuthorization>,
    account: &Account,
    position: CallPosition,
    random: &mut SampleRandom,
) -> Bytes {
    let Fields { chain_id, nonce, gas_limit, fee_max, tip, to, value, input, access_list } = common;
    let is_high_s = position.number < schedule::HOMESTEAD && random.chance(5_000);
    let key = &account.key;
    // Types without creation are never given one.
    let callee = || to.to().copied().unwrap_or_default();
    match tx_type {
        TxType::Legacy => {
            let is_protected = position.number >= schedule::SPURIOUS_DRAGON && !random.chance(700);
            let chain_id = is_protected.then_some(chain_id);
            let gas_price = fee_max;
            let tx = TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input };
            sign(&tx, key, is_high_s)
        }
        TxType::Eip2930 => {
            let gas_price = fee_max;
            let tx =
                TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input };
            sign(&tx, key, is_high_s)
        }
        TxType::Eip1559 => {
            let tx = TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee_max,
                max_priority_fee_per_gas: tip,
                to,
                value,
                access_list,
                input,
            };
            sign(&tx, key, is_high_s)
        }
        TxType::Eip4844 => {
            let tx = TxEip4844 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee_max,
                max_priority_fee_per_gas: tip,
                to: callee(),
                value,
                access_list,
                blob_versioned_hashes: (0..position.blob_count)
                    .map(|_| versioned_hash(random))
                    .collect(),
                // Well above what a long run of full blocks makes of the blob fee.
                max_fee_per_blob_gas: u128::from(random.within(64..=128) * GWEI),
                input,
            };
            sign(&tx, key, is_high_s)
        }
        TxType::Eip7702 => {
            let tx = TxEip7702 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee_max,
                max_priority_fee_per_gas: tip,
                to: callee(),
                value,
                access_list,
                authorization_list,
                input,
            };
            sign(&tx, key, is_high_s)
        }
    }
}

fn versioned_hash(random: &mut SampleRandom) -> B256 {
    let mut hash = random.hash();
    if let Some(version) = hash.as_mut_slice().first_mut() {
        *version = VERSIONED_HASH_VERSION_KZG;
    }
    hash
}

fn sign<T>(tx: &T, key: &SampleKey, is_high_s: bool) -> Bytes
where
    T: SignableTransaction<Signature> + RlpEcdsaEncodableTx,
{
    let hash = tx.signature_hash();
    let signature = if is_high_s { key.sign_high_s(hash) } else { key.sign(hash) };
    let mut encoded = Vec::with_capacity(tx.eip2718_encoded_length(&signature));
    tx.eip2718_encode(&signature, &mut encoded);
    encoded.into()
}
