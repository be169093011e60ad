//! The logs that transactions leave.

use std::ops::RangeInclusive;

use alloy_primitives::{Address, B256, Log, LogData, TxKind, U256, address};

use super::call_kind::CallKind;
use super::random::SampleRandom;
use super::world::World;

/// Who logs that ether moved (EIP-7708).
const SYSTEM_ADDRESS: Address = address!("0xfffffffffffffffffffffffffffffffffffffffe");

/// Logs in ten thousand that have the address of the one before, of those of the same transaction.
const REPEATED_ADDRESSES: u64 = 6_000;
/// Topics in ten thousand that repeat that of the log before.
const REPEATED_TOPICS: u64 = 8_000;

/// What a use of `contract` logs; `None` stands for a contract that is being created.
pub(super) fn draw(
    world: &World,
    kind: CallKind,
    contract: Option<Address>,
    random: &mut SampleRandom,
) -> Vec<Log> {
    let contract = contract.unwrap_or_else(|| random.address());
    match kind {
        CallKind::Payment => Vec::new(),
        CallKind::TokenTransfer => vec![transfer(world, contract, random)],
        CallKind::TokenApproval => vec![approval(world, contract, random)],
        CallKind::NftTransfer => vec![nft_transfer(world, contract, random)],
        CallKind::Notice => vec![notice(contract, random)],
        CallKind::Swap => swap(world, contract, random),
        CallKind::Bundle => several(world, 4..=14, random),
        CallKind::Creation => several(world, 0..=2, random),
        CallKind::Batch => {
            vec![log(contract, vec![world.events.batch, word(random.below(1 << 24))], &[])]
        }
    }
}

/// Lets the logs of one transaction tell of the same few contracts and wallets again, as those of a trade
/// or of a bundle of payments do on mainnet.
pub(super) fn repeat_parties(logs: &mut [Log], random: &mut SampleRandom) {
    for later in 1..logs.len() {
        let Some(([.., earlier], [log, ..])) = logs.split_at_mut_checked(later) else { continue };
        if random.chance(REPEATED_ADDRESSES) {
            log.address = earlier.address;
        }
        let topics = log.data.topics_mut_unchecked().iter_mut();
        for (topic, before) in topics.zip(earlier.topics()).skip(1) {
            if random.chance(REPEATED_TOPICS) {
                *topic = *before;
            }
        }
    }
}

/// The log of EIP-7708: from Amsterdam on ether that moves is logged as a token's transfer is.
pub(super) fn payment(world: &World, from: Address, to: TxKind, value: U256) -> Option<Log> {
    let to = *to.to()?;
    let topics = vec![world.events.transfer, from.into_word(), to.into_word()];
    (!value.is_zero() && from != to).then(|| log(SYSTEM_ADDRESS, topics, &[B256::from(value)]))
}

fn log(address: Address, topics: Vec<B256>, words: &[B256]) -> Log {
    let data = words.concat().into();
    Log { address, data: LogData::new_unchecked(topics, data) }
}

fn word(value: u64) -> B256 {
    B256::from(U256::from(value))
}

fn amount_word(random: &mut SampleRandom) -> B256 {
    B256::from(random.amount())
}

fn wallet_word(world: &World, random: &mut SampleRandom) -> B256 {
    world.wallet(random).into_word()
}

fn transfer(world: &World, token: Address, random: &mut SampleRandom) -> Log {
    let topics =
        vec![world.events.transfer, wallet_word(world, random), wallet_word(world, random)];
    log(token, topics, &[amount_word(random)])
}

fn approval(world: &World, token: Address, random: &mut SampleRandom) -> Log {
    let spender = world.contract(random).into_word();
    let allowance =
        if random.chance(6_000) { B256::repeat_byte(0xff) } else { amount_word(random) };
    log(token, vec![world.events.approval, wallet_word(world, random), spender], &[allowance])
}

fn nft_transfer(world: &World, token: Address, random: &mut SampleRandom) -> Log {
    let (from, to) = (wallet_word(world, random), wallet_word(world, random));
    log(token, vec![world.events.transfer, from, to, word(random.below(10_000))], &[])
}

fn deposit(world: &World, vault: Address, random: &mut SampleRandom) -> Log {
    log(vault, vec![world.events.deposit, wallet_word(world, random)], &[amount_word(random)])
}

/// An anonymous event with no topic, or one or two that say nothing to anyone else.
fn notice(contract: Address, random: &mut SampleRandom) -> Log {
    let topics = (0..random.below(3)).map(|_| word(random.below(1 << 12))).collect();
    let words: Vec<B256> = (0..random.below(4)).map(|_| amount_word(random)).collect();
    log(contract, topics, &words)
}

/// One or two hops through pools: tokens in, tokens out, the pool's books, the trade.
fn swap(world: &World, router: Address, random: &mut SampleRandom) -> Vec<Log> {
    let mut logs = Vec::with_capacity(9);
    if random.chance(4_000) {
        logs.push(deposit(world, world.contract(random), random));
    }
    let token_in = world.contract(random);
    logs.push(transfer(world, token_in, random));
    let hop_count = if random.chance(5_000) { 2 } else { 1 };
    for _ in 0..hop_count {
        let (pool, token_out) = (world.contract(random), world.contract(random));
        logs.push(transfer(world, token_out, random));
        let reserves = [amount_word(random), amount_word(random)];
        logs.push(log(pool, vec![world.events.sync], &reserves));
        let topics = vec![world.events.swap, router.into_word(), wallet_word(world, random)];
        let amounts = [amount_word(random), B256::ZERO, B256::ZERO, amount_word(random)];
        logs.push(log(pool, topics, &amounts));
    }
    logs
}

fn several(world: &World, count: RangeInclusive<u64>, random: &mut SampleRandom) -> Vec<Log> {
    let mut logs = Vec::new();
    for _ in 0..random.within(count) {
        let contract = world.contract(random);
        logs.push(match random.below(10) {
            0..5 => transfer(world, contract, random),
            5..7 => deposit(world, contract, random),
            7 => nft_transfer(world, contract, random),
            8 => approval(world, contract, random),
            _ => notice(contract, random),
        });
    }
    logs
}
