//! A block as far as it can be made without its parent.

use alloy_consensus::{Eip658Value, Header, Receipt as Fields, proofs};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{B64, Bloom, Bytes, U256};
use alloy_trie::root::{ordered_trie_root_encoded, ordered_trie_root_with_encoder};
use chain::{Receipt, logs_bloom};

use super::random::{SampleRandom, Stream, to_u64, to_usize};
use super::schedule::{self, AMSTERDAM, BYZANTIUM, CANCUN, PARIS, PRAGUE, SHANGHAI};
use super::transaction::{self, CallPosition, GAS_MIN};
use super::world::World;
use super::{BlockPosition, SampleSettings};

const WITHDRAWALS_PER_BLOCK: u64 = 16;
const VALIDATOR_COUNT: u64 = 8192;
const BLOBS_PER_TX_MAX: u64 = 6;
/// Blobs come in waves of this many blocks, one in four of them full.
const BLOB_WAVE_BLOCKS: u64 = 16;

/// What builders write into their blocks.
const EXTRA_DATA: [&[u8]; 6] =
    [b"", b"quipu sample", b"knot-builder", b"cord/1.4.2/linux", b"\xd8\x83sample\x00", b"@"];

/// A block without what its parent decides.
#[derive(Debug)]
pub struct BlockDraft {
    pub(super) header: Header,
    pub(super) transactions: Vec<Bytes>,
    pub(super) receipts: Vec<Receipt>,
    pub(super) withdrawals: Option<Bytes>,
}

impl BlockDraft {
    /// Block 0, which has no contents.
    pub(super) fn genesis(header: Header) -> Self {
        Self { header, transactions: Vec::new(), receipts: Vec::new(), withdrawals: None }
    }

    pub(super) fn new(settings: &SampleSettings, world: &World, place: BlockPosition) -> Self {
        let number = place.number;
        let mut random = SampleRandom::new(settings.seed, Stream::Block, number, 0);
        let mut header = empty_header(settings, number, &mut random);
        let withdrawals = (number >= SHANGHAI).then(|| withdrawals(world, number, &mut random));
        header.withdrawals_root = withdrawals.as_deref().map(proofs::calculate_withdrawals_root);
        let mut draft = Self {
            header,
            transactions: Vec::new(),
            receipts: Vec::new(),
            withdrawals: withdrawals.map(|list| alloy_rlp::encode(&list).into()),
        };
        let blob_counts = blob_counts(number, place.tx_count, &mut random);
        draft.header.blob_gas_used = schedule::blob_params(number)
            .map(|_| blob_counts.iter().sum::<u64>() * DATA_GAS_PER_BLOB);
        draft.fill(settings, world, place, &blob_counts);
        if number >= AMSTERDAM {
            draft.part_gas(schedule::gas_used_max(settings), &mut random);
        }
        draft.commit();
        draft
    }

    /// Makes the transactions and their receipts.
    fn fill(
        &mut self,
        settings: &SampleSettings,
        world: &World,
        place: BlockPosition,
        blob_counts: &[u64],
    ) {
        let tx_count = u64::from(place.tx_count);
        // Blob transactions stand at even distances.
        let stride = (tx_count / to_u64(blob_counts.len()).max(1)).max(1);
        for index in 0..tx_count {
            let mut random =
                SampleRandom::new(settings.seed, Stream::Transaction, place.number, index);
            let gas_before = self.header.gas_used;
            let gas_of_others = (tx_count - index - 1) * GAS_MIN;
            let blob_count = if index % stride == 0 {
                blob_counts.get(to_usize(index / stride)).copied().unwrap_or(0)
            } else {
                0
            };
            let position = CallPosition {
                number: place.number,
                ordinal: place.first_ordinal + index,
                gas_max: schedule::gas_used_max(settings) - gas_before - gas_of_others,
                blob_count,
            };
            let made = transaction::make(world, settings.payload, position, &mut random);
            self.header.gas_used = gas_before + made.gas_used;
            let status = if place.number >= BYZANTIUM {
                Eip658Value::Eip658(made.is_success)
            } else {
                Eip658Value::PostState(random.hash())
            };
            let fields =
                Fields { status, cumulative_gas_used: self.header.gas_used, logs: made.logs };
            self.transactions.push(made.encoded);
            self.receipts.push(Receipt { tx_type: made.tx_type, fields });
        }
    }

    /// Lets the header say another gas than the receipts add up to, as Amsterdam does: less where
    /// the transactions wrote much (of execution gas and state gas it has the larger, EIP-8037), more
    /// where they got refunds (EIP-7778).
    fn part_gas(&mut self, gas_used_max: u64, random: &mut SampleRandom) {
        let sum = self.header.gas_used;
        self.header.gas_used = match random.below(3) {
            0 => sum,
            1 => sum - sum * random.within(1..=50) / 100,
            _ => (sum + sum * random.within(1..=25) / 100).min(gas_used_max),
        };
    }

    /// Sets what the header says of transactions and receipts.
    fn commit(&mut self) {
        self.header.transactions_root = ordered_trie_root_encoded(&self.transactions);
        let blooms: Vec<(&Receipt, Bloom)> = self
            .receipts
            .iter()
            .map(|receipt| (receipt, logs_bloom(&receipt.fields.logs)))
            .collect();
        for (_, bloom) in &blooms {
            self.header.logs_bloom.accrue_bloom(bloom);
        }
        self.header.receipts_root =
            ordered_trie_root_with_encoder(&blooms, |(receipt, bloom), out| {
                receipt.encode_2718(bloom, out);
            });
    }
}

/// The header of a block without contents. State root, proof-of-work fields, randomness, beacon
/// root and the hash of the block access list are made up.
fn empty_header(settings: &SampleSettings, number: u64, random: &mut SampleRandom) -> Header {
    let has_requests = random.chance(1_000);
    Header {
        beneficiary: SampleRandom::new(settings.seed, Stream::Wallet, random.zipf(6), 1).address(),
        state_root: random.hash(),
        difficulty: U256::from(schedule::difficulty(settings.seed, number)),
        number,
        gas_limit: schedule::gas_limit(settings, number),
        timestamp: schedule::timestamp(number),
        extra_data: Bytes::from_static(random.pick::<&[u8]>(&EXTRA_DATA)),
        mix_hash: random.hash(),
        nonce: if number < PARIS { B64::from(random.next()) } else { B64::ZERO },
        parent_beacon_block_root: (number >= CANCUN).then(|| random.hash()),
        requests_hash: (number >= PRAGUE)
            .then(|| if has_requests { random.hash() } else { EMPTY_REQUESTS_HASH }),
        block_access_list_hash: (number >= AMSTERDAM).then(|| random.hash()),
        slot_number: (number >= AMSTERDAM).then(|| schedule::slot(number)),
        ..Header::default()
    }
}

/// Sixteen withdrawals in three blocks of four, none in the fourth.
fn withdrawals(world: &World, number: u64, random: &mut SampleRandom) -> Vec<Withdrawal> {
    let since_shanghai = number - SHANGHAI;
    if since_shanghai % 4 == 3 {
        return Vec::new();
    }
    let blocks_before = since_shanghai / 4 * 3 + since_shanghai % 4;
    let first = blocks_before * WITHDRAWALS_PER_BLOCK;
    let mut list = Vec::new();
    for index in first..first + WITHDRAWALS_PER_BLOCK {
        // Now and then a validator leaves with its whole stake, in gwei.
        let stake = if random.chance(100) { 32_000_000_000 } else { 0 };
        let amount = stake + random.within(16_000_000..=19_000_000);
        let validator_index = index % VALIDATOR_COUNT;
        list.push(Withdrawal { index, validator_index, address: world.wallet(random), amount });
    }
    list
}

/// How many blobs each blob transaction of the block carries.
fn blob_counts(number: u64, tx_count: u32, random: &mut SampleRandom) -> Vec<u64> {
    let Some(params) = schedule::blob_params(number) else {
        return Vec::new();
    };
    let is_wave = (number / BLOB_WAVE_BLOCKS) % 4 == 2;
    let mut blobs_left =
        if is_wave { params.max_blob_count } else { random.below(params.target_blob_count + 1) };
    let count_max = usize::try_from(tx_count.div_ceil(4)).unwrap_or(usize::MAX);
    let mut counts = Vec::new();
    while blobs_left > 0 && counts.len() < count_max {
        let count = random.within(1..=BLOBS_PER_TX_MAX.min(blobs_left));
        counts.push(count);
        blobs_left -= count;
    }
    counts
}
