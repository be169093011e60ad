//! Segments of true blocks, whose tails are about as long as mainnet's: 8192 hashes and full tables.

use std::sync::Arc;

use alloy_consensus::{
    Eip658Value, EthereumTxEnvelope, Header, Receipt as Fields, SignableTransaction, TxEip2930,
    TxEip4844, TxLegacy, TxType,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bloom, Bytes, LogData, Signature, TxKind, U256, keccak256};
use chain::trust::Anchors;
use chain::{
    Block, BlockRange, Body, Candidate, ChainSpec, Receipt, SplitMix64, Start, Verified, Verifier,
    logs_bloom,
};
use segment::{Census, Encoder, SLOT_BLOCKS, SegmentWriter, count_block, counted_blocks, groups};
use store::layout::HeldRange;
use store::manifest::SegmentEntry;
use store::names::segment_name;

/// Every sixteenth block has a transaction, beginning with this one.
pub(crate) const FIRST_WITH_TRANSACTION: u64 = 3;
/// The ordinal of a transaction with call data that has a page of its own.
pub(crate) const LONG_CALL: usize = 1;
/// They log once in each segment, in its first two transactions.
pub(crate) const RARE: [Address; 2] = [Address::repeat_byte(0x77), Address::repeat_byte(0x78)];

/// Call data of a transaction: two of them do not share a page.
const CALL_BYTES: usize = 2600;
const LONG_CALL_BYTES: usize = 9000;
/// What fills the tables of a segment.
const ADDRESSES: u64 = 12_288;
const WORDS: u64 = 6_144;

/// A segment of a whole slot.
#[derive(Debug)]
pub(crate) struct TrueSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) bytes: Vec<u8>,
    pub(crate) block_hashes: Vec<B256>,
    /// By their ordinals.
    pub(crate) transaction_hashes: Vec<B256>,
}

impl TrueSegment {
    /// The segment of a slot, above a block with this hash.
    pub(crate) fn of_slot(slot: u64, parent_hash: B256) -> Self {
        let range = BlockRange::from_count(slot * SLOT_BLOCKS, SLOT_BLOCKS).unwrap();
        let (spec, anchors) = (ChainSpec::bare("test", None, None), Anchors::none());
        let start = Start::At(range.first());
        let mut verifier = Verifier::new(&spec, &anchors, start);
        let mut blocks: Vec<Verified<Block>> = Vec::new();
        for number in range.first()..range.end() {
            let parent_hash = blocks.last().map_or(parent_hash, |block| block.hash);
            blocks.push(verifier.verify(candidate(number, parent_hash)).unwrap());
        }
        let at = |number: u64| (number - range.first()) as usize;
        let mut census = Census::default();
        counted_blocks(range).for_each(|it| count_block(&mut census, &blocks[at(it.get())]));
        let encoder = Encoder::new(Arc::new(census.into_tables()), true);
        let mut writer = SegmentWriter::new(range, &encoder).unwrap();
        let mut bytes = Vec::new();
        for group in groups(range) {
            let group = &blocks[at(group.first())..at(group.end())];
            bytes.extend(writer.push(encoder.encode_group(group).unwrap()).unwrap());
        }
        let (end, footer) = writer.finish().unwrap();
        bytes.extend(end);
        let digest = B256::from(footer.digest);
        let entry = SegmentEntry {
            range,
            file_name: segment_name(HeldRange { range, has_receipts: true }, digest),
            bytes: bytes.len() as u64,
            digest,
            has_receipts: true,
            parent_hash: footer.facts.parent_hash,
            last_hash: footer.facts.last_hash,
            transaction_count: footer.facts.transaction_count,
            log_count: footer.facts.log_count,
            difficulty: U256::ZERO,
        };
        let transactions = blocks.iter().flat_map(|block| &block.transactions);
        let transaction_hashes = transactions.map(|it| keccak256(&it.encoded)).collect();
        let block_hashes = blocks.iter().map(|block| block.hash).collect();
        Self { entry, bytes, block_hashes, transaction_hashes }
    }
}

fn candidate(number: u64, parent_hash: B256) -> Candidate {
    let in_slot = number % SLOT_BLOCKS;
    let transactions = match in_slot {
        32 => vec![table_filler(number, 0), table_filler(number, 1)],
        _ if in_slot % 16 == FIRST_WITH_TRANSACTION => {
            let is_long = in_slot / 16 == LONG_CALL as u64;
            vec![call(number, if is_long { LONG_CALL_BYTES } else { CALL_BYTES })]
        }
        _ => Vec::new(),
    };
    let logs_rarely = RARE.get((in_slot / 16) as usize);
    let address = *logs_rarely.unwrap_or(&Address::repeat_byte(3));
    let receipts: Vec<Receipt> =
        (1..).zip(&transactions).map(|(count, tx)| receipt(tx.0, count, address)).collect();
    let transactions: Vec<Bytes> = transactions.into_iter().map(|(_, encoded)| encoded).collect();
    let blooms = receipts.iter().map(|it| logs_bloom(&it.fields.logs));
    let bloom = blooms.fold(Bloom::ZERO, |sum, bloom| sum | bloom);
    let encoded = receipts.iter().map(|receipt| {
        let mut out = Vec::new();
        receipt.encode_2718(&logs_bloom(&receipt.fields.logs), &mut out);
        out
    });
    let encoded: Vec<Vec<u8>> = encoded.collect();
    let ommers = Bytes::from_static(&[0xc0]);
    let header = Header {
        number,
        parent_hash,
        timestamp: number * 12,
        transactions_root: alloy_trie::root::ordered_trie_root_encoded(&transactions),
        ommers_hash: keccak256(&ommers),
        receipts_root: alloy_trie::root::ordered_trie_root_encoded(&encoded),
        logs_bloom: bloom,
        gas_used: receipts.last().map_or(0, |it| it.fields.cumulative_gas_used),
        ..Header::default()
    };
    Candidate {
        header: alloy_rlp::encode(&header).into(),
        body: Body { transactions, ommers, withdrawals: None },
        receipts: Some(receipts),
        total_difficulty: None,
    }
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = SplitMix64::new(seed);
    let numbers = std::iter::repeat_with(|| noise.next_number().to_le_bytes());
    numbers.flatten().take(bytes).collect()
}

fn call(nonce: u64, bytes: usize) -> (TxType, Bytes) {
    let to = TxKind::Call(Address::repeat_byte(5));
    let input = noise(nonce, bytes).into();
    let tx = TxLegacy { nonce, gas_limit: 100_000, to, input, ..TxLegacy::default() };
    (TxType::Legacy, signed(tx))
}

/// Two of these have enough in common to fill the tables.
fn table_filler(number: u64, index: u64) -> (TxType, Bytes) {
    let word = |kind: u64, seed: u64| {
        let seeds = (0..4).map(|at| (number << 20 | seed << 4 | at) ^ kind << 60);
        let bytes: Vec<u8> = seeds.flat_map(|it| SplitMix64::at(it).to_be_bytes()).collect();
        B256::from_slice(&bytes)
    };
    let items = (0..ADDRESSES).map(|seed| {
        let storage_keys = if seed < WORDS { vec![word(1, seed)] } else { Vec::new() };
        AccessListItem { address: Address::from_word(word(2, seed)), storage_keys }
    });
    let tx = TxEip2930 {
        chain_id: 1,
        nonce: index,
        gas_limit: 100_000,
        to: TxKind::Call(Address::repeat_byte(5)),
        access_list: AccessList(items.collect()),
        ..TxEip2930::default()
    };
    (TxType::Eip2930, signed(tx))
}

fn signed<T: SignableTransaction<Signature>>(tx: T) -> Bytes
where
    EthereumTxEnvelope<TxEip4844>: From<alloy_consensus::Signed<T>>,
{
    let signature = chain::sign(B256::repeat_byte(7), tx.signature_hash()).unwrap();
    EthereumTxEnvelope::<TxEip4844>::from(tx.into_signed(signature)).encoded_2718().into()
}

fn receipt(tx_type: TxType, count: u64, address: Address) -> Receipt {
    let data = LogData::new_unchecked(vec![B256::repeat_byte(4)], vec![1, 2, 3].into());
    let fields = Fields {
        status: Eip658Value::Eip658(true),
        cumulative_gas_used: 21_000 * count,
        logs: vec![alloy_primitives::Log { address, data }],
    };
    Receipt { tx_type, fields }
}
