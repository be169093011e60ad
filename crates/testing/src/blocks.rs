//! Small valid blocks: every third is empty, the others have a signed transaction or two. Of blocks with
//! the letter [`SPARSE`] only one in sixteen has a transaction: whole slots of them are made in a moment.

use alloy_consensus::{
    Eip658Value, EthereumTxEnvelope, Header, Receipt as Fields, SignableTransaction as _,
    TxEip4844, TxLegacy, TxType,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Bloom, LogData, TxKind, keccak256};
use chain::trust::Anchors;
use chain::{
    Block, BlockNumber, Body, Candidate, ChainSpec, Receipt, Start, Verified, Verifier, logs_bloom,
};

/// The parent of the first block of tests.
pub const BASE: (BlockNumber, B256) = (BlockNumber(100), B256::repeat_byte(0xba));

/// The letter of blocks that are mostly empty.
pub const SPARSE: u8 = b's';

/// The chain of the blocks.
#[must_use]
pub fn spec() -> ChainSpec {
    ChainSpec::bare("test", None, None)
}

/// A block's number and hash.
#[must_use]
pub fn id(block: &Verified<Block>) -> (BlockNumber, B256) {
    (BlockNumber(block.header.number), block.hash)
}

/// A run of blocks above `parent`, one for each letter: the same letters give the same blocks.
#[must_use]
pub fn run(parent: (BlockNumber, B256), letters: &str) -> Vec<Verified<Block>> {
    let mut parent = parent;
    let mut blocks = Vec::new();
    for letter in letters.bytes() {
        blocks.push(block(parent.0.get() + 1, parent.1, letter, true));
        parent = id(&blocks[blocks.len() - 1]);
    }
    blocks
}

/// A block that is told apart from others of its place by a letter.
#[must_use]
pub fn block(number: u64, parent_hash: B256, letter: u8, has_receipts: bool) -> Verified<Block> {
    let count = if letter == SPARSE { u64::from(number % 16 == 3) } else { number % 3 };
    let transactions: Vec<_> = (0..count).map(|index| transaction(number, letter, index)).collect();
    let receipts = (1..=count).map(|count| receipt(number, letter, count));
    let receipts: Vec<Receipt> = receipts.collect();
    let mut bloom = Bloom::ZERO;
    let encoded: Vec<Vec<u8>> = receipts
        .iter()
        .map(|receipt| {
            bloom.accrue_bloom(&logs_bloom(&receipt.fields.logs));
            let mut out = Vec::new();
            receipt.encode_2718(&logs_bloom(&receipt.fields.logs), &mut out);
            out
        })
        .collect();
    let ommers = alloy_primitives::Bytes::from_static(&[0xc0]);
    let header = Header {
        number,
        parent_hash,
        extra_data: vec![letter].into(),
        transactions_root: alloy_trie::root::ordered_trie_root_encoded(&transactions),
        ommers_hash: keccak256(&ommers),
        receipts_root: alloy_trie::root::ordered_trie_root_encoded(&encoded),
        logs_bloom: bloom,
        gas_used: receipts.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used),
        ..Header::default()
    };
    let candidate = Candidate {
        header: alloy_rlp::encode(&header).into(),
        body: Body { transactions, ommers, withdrawals: None },
        receipts: has_receipts.then_some(receipts),
        total_difficulty: None,
    };
    let (spec, anchors) = (spec(), Anchors::none());
    Verifier::new(&spec, &anchors, Start::At(number)).verify(candidate).unwrap()
}

fn transaction(number: u64, letter: u8, index: u64) -> alloy_primitives::Bytes {
    let nonce = number * 1000 + u64::from(letter) * 3 + index;
    let to = TxKind::Call(Address::repeat_byte(letter));
    let tx = TxLegacy { nonce, gas_limit: 21_000, to, ..TxLegacy::default() };
    let signature = chain::sign(B256::repeat_byte(7), tx.signature_hash()).unwrap();
    let envelope: EthereumTxEnvelope<TxEip4844> = tx.into_signed(signature).into();
    envelope.encoded_2718().into()
}

/// One log that all have, and in some blocks one more, with up to three topics that few others have.
fn receipt(number: u64, letter: u8, count: u64) -> Receipt {
    let common = alloy_primitives::Log {
        address: Address::repeat_byte(3),
        data: LogData::new_unchecked(vec![B256::repeat_byte(4)], vec![1, 2, 3].into()),
    };
    let topics = [number % 2, number / 4, u64::from(letter) + number % 7];
    let topics = topics.map(|word| B256::left_padding_from(&word.to_be_bytes()));
    let topics = topics.into_iter().take(usize::try_from(number % 4).unwrap());
    let other = alloy_primitives::Log {
        address: Address::repeat_byte(5 + u8::try_from(number % 3).unwrap()),
        data: LogData::new_unchecked(topics.collect(), vec![letter].into()),
    };
    let fields = Fields {
        status: Eip658Value::Eip658(true),
        cumulative_gas_used: 21_000 * count,
        logs: if number % 5 < 2 { vec![common, other] } else { vec![common] },
    };
    Receipt { tx_type: TxType::Legacy, fields }
}
