//! A row: one transaction, its sender and its receipt as tokens.
//!
//! A transaction that would not come back to the byte is kept raw.

use alloy_consensus::{Eip658Value, EthereumTxEnvelope, TxEip4844};
use alloy_primitives::{Bytes, U256};
use chain::{Receipt, Transaction};

use crate::tables::{Census, Codebook};
use crate::token::{RowWriter, Tokens};

mod decode;
#[cfg(test)]
mod tests;

pub(crate) use decode::{RowContext, decode_row};

/// Call data or log data longer than this lies in a page of its own.
pub(crate) const PAYLOAD_BYTES_MIN: usize = 4096;

/// Row flags.
const TYPE_MASK: u8 = 0b0000_0111;
const TYPE_RAW: u8 = 7;
const ODD_PARITY: u8 = 1 << 3;
const CREATION: u8 = 1 << 4;
/// Legacy: signed for the page's chain. Others: the access list is not empty.
const CHAIN_OR_ACCESS: u8 = 1 << 5;
const SUCCESS: u8 = 1 << 6;
const POST_STATE: u8 = 1 << 7;

/// How bytes are written: the low bits of their first number.
const BYTES_WORDS: u64 = 0;
const BYTES_PLAIN: u64 = 1;
const BYTES_OUTSIDE: u64 = 2;
const BYTES_KINDS: u64 = 3;

/// How much of a row is read: receipts come last and take as long as all the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowParts {
    /// The transaction and its sender alone.
    Transaction,
    /// Its receipt too, where there is one.
    Receipt,
}

/// Whether senders are copied to where rows go: the hash of a transaction needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    Told,
    LeftOut,
}

/// What a row is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSource<'a> {
    pub(crate) transaction: &'a Transaction,
    pub(crate) receipt: Option<&'a Receipt>,
    /// Gas used in the block before this transaction.
    pub(crate) gas_before: u64,
    /// The chain that rows of its page leave out.
    pub(crate) chain_id: Option<u64>,
}

impl RowSource<'_> {
    /// Whether the row can leave out the chain id: it is none or the page's.
    pub(crate) fn says_chain(&self) -> bool {
        let own = alloy_consensus::Transaction::chain_id(&self.transaction.envelope);
        own.is_none() || own == self.chain_id
    }

    /// What the page's head says about the receipt.
    pub(crate) fn receipt_head(&self) -> Option<ReceiptHead> {
        let fields = &self.receipt?.fields;
        let gas_used = fields.cumulative_gas_used.wrapping_sub(self.gas_before);
        Some(ReceiptHead { gas_used, log_count: fields.logs.len() })
    }
}

/// Long bytes of a row, which lie outside it.
#[derive(Clone, Debug)]
pub(crate) struct RowPayload {
    pub(crate) bytes: Bytes,
    /// Whether it is log data; else call data or code.
    pub(crate) is_of_receipt: bool,
}

/// Counts what the row would refer to.
pub(crate) fn count_row(census: &mut Census, source: RowSource<'_>) {
    let payloads = &mut Vec::new();
    census.begin_row();
    put_front(census, source, payloads, true);
    put_receipt(census, source, payloads);
}

/// Appends the row's tokens to `out`, and what is too long for it to `payloads`; the transaction
/// raw, or field by field. Gives back how many of the tokens say the receipt: they are the last.
pub(crate) fn encode_row(
    out: &mut Vec<u8>,
    codebook: &Codebook,
    source: RowSource<'_>,
    payloads: &mut Vec<RowPayload>,
    is_raw: bool,
) -> usize {
    let mut writer = RowWriter::new(out, codebook);
    put_front(&mut writer, source, payloads, !is_raw);
    let front_bytes = writer.written();
    put_receipt(&mut writer, source, payloads);
    writer.written().saturating_sub(front_bytes)
}

/// Everything before the receipt.
fn put_front(
    tokens: &mut impl Tokens,
    source: RowSource<'_>,
    payloads: &mut Vec<RowPayload>,
    is_exact: bool,
) {
    let RowSource { transaction, receipt, .. } = source;
    let mut flags = if is_exact { tx_flags(&transaction.envelope) } else { TYPE_RAW };
    let outcome = receipt.map(|receipt| receipt.fields.status);
    match outcome {
        Some(Eip658Value::Eip658(true)) => flags |= SUCCESS,
        Some(Eip658Value::PostState(_)) => flags |= POST_STATE,
        Some(Eip658Value::Eip658(false)) | None => {}
    }
    tokens.byte(flags);
    tokens.address(transaction.sender);
    if is_exact {
        put_transaction(tokens, &transaction.envelope, payloads);
    } else {
        put_bytes(tokens, &transaction.encoded, BytesKind::Plain, payloads);
    }
}

fn tx_flags(envelope: &EthereumTxEnvelope<TxEip4844>) -> u8 {
    use alloy_consensus::Transaction as _;
    let mut flags = u8::from(envelope.tx_type());
    let is_marked = match envelope {
        EthereumTxEnvelope::Legacy(tx) => tx.tx().chain_id.is_some(),
        EthereumTxEnvelope::Eip2930(_)
        | EthereumTxEnvelope::Eip1559(_)
        | EthereumTxEnvelope::Eip4844(_)
        | EthereumTxEnvelope::Eip7702(_) => {
            envelope.access_list().is_some_and(|list| !list.is_empty())
        }
    };
    let marks = [
        (envelope.signature().v(), ODD_PARITY),
        (envelope.is_create(), CREATION),
        (is_marked, CHAIN_OR_ACCESS),
    ];
    for (is_set, flag) in marks {
        if is_set {
            flags |= flag;
        }
    }
    flags
}

fn put_transaction(
    tokens: &mut impl Tokens,
    envelope: &EthereumTxEnvelope<TxEip4844>,
    payloads: &mut Vec<RowPayload>,
) {
    use alloy_consensus::Transaction as _;
    if let Some(to) = envelope.to() {
        tokens.address(to);
    }
    tokens.varint(envelope.nonce());
    tokens.amount(U256::from(envelope.gas_limit()));
    tokens.amount(U256::from(envelope.max_fee_per_gas()));
    if let Some(tip) = envelope.max_priority_fee_per_gas() {
        tokens.amount(U256::from(tip));
    }
    tokens.amount(envelope.value());
    if let Some(list) = envelope.access_list().filter(|list| !list.is_empty()) {
        tokens.length(list.len());
        for item in list.iter() {
            tokens.address(item.address);
            tokens.length(item.storage_keys.len());
            for key in &item.storage_keys {
                put_word(tokens, &key.0);
            }
        }
    }
    if let Some(fee) = envelope.max_fee_per_blob_gas() {
        tokens.amount(U256::from(fee));
        let hashes = envelope.blob_versioned_hashes().unwrap_or_default();
        tokens.length(hashes.len());
        for hash in hashes {
            tokens.raw(hash.as_slice());
        }
    }
    if let Some(list) = envelope.authorization_list() {
        tokens.length(list.len());
        for authorization in list {
            tokens.amount(*authorization.chain_id());
            tokens.address(*authorization.address());
            tokens.varint(authorization.nonce());
            tokens.byte(authorization.y_parity());
            tokens.raw(&authorization.r().to_be_bytes::<32>());
            tokens.raw(&authorization.s().to_be_bytes::<32>());
        }
    }
    let part = if envelope.is_create() { BytesKind::Plain } else { BytesKind::Call };
    put_bytes(tokens, envelope.input(), part, payloads);
}

fn put_receipt(tokens: &mut impl Tokens, source: RowSource<'_>, payloads: &mut Vec<RowPayload>) {
    let Some(receipt) = source.receipt else { return };
    let fields = &receipt.fields;
    if let Eip658Value::PostState(root) = fields.status {
        tokens.raw(root.as_slice());
    }
    for log in &fields.logs {
        tokens.address(log.address);
        let topics = log.data.topics();
        tokens.length(topics.len());
        for topic in topics {
            put_word(tokens, &topic.0);
        }
        put_bytes(tokens, &log.data.data, BytesKind::Words, payloads);
    }
}

/// What bytes are likely to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BytesKind {
    /// A selector and words.
    Call,
    /// Words.
    Words,
    /// Neither: code.
    Plain,
}

fn put_bytes(
    tokens: &mut impl Tokens,
    bytes: &Bytes,
    part: BytesKind,
    payloads: &mut Vec<RowPayload>,
) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut start =
        |kind: u64| tokens.varint(length.saturating_mul(BYTES_KINDS).saturating_add(kind));
    if bytes.len() > PAYLOAD_BYTES_MIN {
        start(BYTES_OUTSIDE);
        payloads.push(RowPayload { bytes: bytes.clone(), is_of_receipt: part == BytesKind::Words });
        return;
    }
    if part == BytesKind::Plain {
        start(BYTES_PLAIN);
        tokens.raw(bytes);
        return;
    }
    start(BYTES_WORDS);
    let mut rest: &[u8] = bytes;
    if part == BytesKind::Call
        && let Some((selector, after)) = rest.split_first_chunk::<4>()
    {
        tokens.selector(*selector);
        rest = after;
    }
    let (words, tail) = rest.as_chunks::<32>();
    let mut zeros = 0;
    for word in words {
        if word.iter().all(|byte| *byte == 0) {
            zeros += 1;
            continue;
        }
        if zeros > 0 {
            tokens.zeros(zeros);
            zeros = 0;
        }
        tokens.word(word);
    }
    if zeros > 0 {
        tokens.zeros(zeros);
    }
    tokens.raw(tail);
}

fn put_word(tokens: &mut impl Tokens, word: &[u8; 32]) {
    if word.iter().all(|byte| *byte == 0) {
        tokens.zeros(1);
    } else {
        tokens.word(word);
    }
}

/// What is known of a receipt before its row is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiptHead {
    pub(crate) gas_used: u64,
    pub(crate) log_count: usize,
}
