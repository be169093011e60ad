//! What a transaction does: where it goes, what it carries, what it leaves behind.

use std::ops::RangeInclusive;

use alloy_primitives::{B256, Bytes, Log, TxKind, U256};

use super::Payload;
use super::call_kind::CallKind;
use super::events;
use super::random::{SampleRandom, to_usize};
use super::world::World;

/// One line of a payload's table.
struct PayloadRow {
    kind: CallKind,
    /// How many transactions in ten thousand.
    share: u64,
    input_bytes: RangeInclusive<u64>,
}

const fn row(kind: CallKind, share: u64, input_bytes: RangeInclusive<u64>) -> PayloadRow {
    PayloadRow { kind, share, input_bytes }
}

/// Enough of everything to be looked at, in few bytes.
const SMALL: [PayloadRow; 7] = [
    row(CallKind::Payment, 5_500, 0..=0),
    row(CallKind::TokenTransfer, 2_400, 68..=68),
    row(CallKind::TokenApproval, 300, 68..=68),
    row(CallKind::NftTransfer, 300, 100..=100),
    row(CallKind::Notice, 300, 4..=100),
    row(CallKind::Swap, 1_000, 132..=260),
    row(CallKind::Creation, 200, 100..=400),
];

/// Sizes as in mainnet blocks of July 2023: the median transaction has 181 bytes, one in ten more
/// than 768, one in a hundred more than 3.2 KB; four in a thousand are rollup batches of up to
/// 120 KB and make up almost half of all bytes.
const MAINNET: [PayloadRow; 10] = [
    row(CallKind::Payment, 3_400, 0..=0),
    row(CallKind::TokenTransfer, 2_600, 68..=68),
    row(CallKind::TokenApproval, 400, 68..=68),
    row(CallKind::NftTransfer, 400, 100..=100),
    row(CallKind::Notice, 140, 4..=132),
    row(CallKind::Swap, 2_100, 164..=644),
    row(CallKind::Bundle, 760, 644..=3_012),
    row(CallKind::Bundle, 60, 3_012..=8_004),
    row(CallKind::Creation, 100, 500..=4_000),
    row(CallKind::Batch, 40, 54_000..=118_000),
];

/// A transaction's use, without its sender and price.
#[derive(Debug)]
pub(super) struct ContractCall {
    pub(super) kind: CallKind,
    pub(super) to: TxKind,
    pub(super) value: U256,
    pub(super) input: Bytes,
    /// What it logs if it succeeds.
    pub(super) logs: Vec<Log>,
    /// Gas that running it takes, beside what its bytes cost.
    pub(super) execution_gas: u64,
}

impl ContractCall {
    /// Draws a use. Where `can_create` is false, for transaction types that cannot, a creation
    /// becomes a payment.
    pub(super) fn draw(
        world: &World,
        payload: Payload,
        can_create: bool,
        random: &mut SampleRandom,
    ) -> Self {
        let row = draw_row(payload, random);
        if row.kind == CallKind::Payment || (row.kind == CallKind::Creation && !can_create) {
            return Self::payment(world, random);
        }
        let input_bytes = to_usize(draw_size(&row.input_bytes, random));
        let (to, input) = if row.kind == CallKind::Creation {
            (TxKind::Create, code(world, input_bytes, random))
        } else if row.kind == CallKind::Batch {
            (TxKind::Call(world.contract(random)), batch(world, input_bytes, random))
        } else {
            (TxKind::Call(world.contract(random)), arguments(world, input_bytes, random))
        };
        let value = if random.chance(1_000) { random.amount() } else { U256::ZERO };
        let mut logs = events::draw(world, row.kind, to.to().copied(), random);
        if payload == Payload::Mainnet {
            events::repeat_parties(&mut logs, random);
        }
        let per_log_gas: u64 = logs.iter().map(|_| random.within(8_000..=30_000)).sum();
        let execution_gas = per_log_gas + random.below(20_000);
        Self { kind: row.kind, to, value, input: input.into(), logs, execution_gas }
    }

    fn payment(world: &World, random: &mut SampleRandom) -> Self {
        Self {
            kind: CallKind::Payment,
            to: TxKind::Call(world.wallet(random)),
            value: random.amount(),
            input: Bytes::new(),
            logs: Vec::new(),
            execution_gas: 0,
        }
    }
}

fn draw_row(payload: Payload, random: &mut SampleRandom) -> &'static PayloadRow {
    let rows: &'static [PayloadRow] = match payload {
        Payload::Small => &SMALL,
        Payload::Mainnet => &MAINNET,
    };
    let mut drawn = random.below(rows.iter().map(|row| row.share).sum());
    for row in rows {
        if drawn < row.share {
            return row;
        }
        drawn -= row.share;
    }
    unreachable!("a number below the sum of the shares falls into one of them")
}

/// The smaller of two draws: within a kind, too, small is common.
fn draw_size(range: &RangeInclusive<u64>, random: &mut SampleRandom) -> u64 {
    random.within(range.clone()).min(random.within(range.clone()))
}

/// A selector and words, cut to `length` bytes.
fn arguments(world: &World, length: usize, random: &mut SampleRandom) -> Vec<u8> {
    let mut input = Vec::with_capacity(length + 32);
    input.extend_from_slice(&world.selector(random));
    while input.len() < length {
        input.extend_from_slice(argument(world, random).as_slice());
    }
    input.truncate(length);
    input
}

/// One ABI word: mostly zeros, mostly seen before.
fn argument(world: &World, random: &mut SampleRandom) -> B256 {
    match random.below(100) {
        0..30 => world.wallet(random).into_word(),
        30..45 => world.contract(random).into_word(),
        45..70 => B256::from(random.amount()),
        70..90 => B256::from(U256::from(random.below(64) * 32)),
        90..95 => world.word(random),
        _ => random.hash(),
    }
}

/// Something that looks like init code to a compressor: pieces that other contracts have too, and
/// some of its own.
fn code(world: &World, length: usize, random: &mut SampleRandom) -> Vec<u8> {
    // PUSH1 0x80 PUSH1 0x40 MSTORE, as compilers begin.
    let mut input = vec![0x60, 0x80, 0x60, 0x40, 0x52];
    while input.len() < length {
        let piece = if random.chance(8_000) { world.word(random) } else { random.hash() };
        input.extend_from_slice(piece.as_slice());
    }
    input.truncate(length);
    input
}

/// A selector, then bytes that nothing can compress.
fn batch(world: &World, length: usize, random: &mut SampleRandom) -> Vec<u8> {
    let mut input = vec![0; length];
    random.fill(&mut input);
    for (to, from) in input.iter_mut().zip(world.selector(random)) {
        *to = from;
    }
    input
}
