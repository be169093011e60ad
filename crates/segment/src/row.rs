//! A row: one transaction, its sender and its receipt as tokens.
//!
//! Knows: every field of transaction types 0 to 4 and of receipts, and which few bytes say them.
//! Never knows: pages, blocks, or the signature's r and s, which no token makes shorter and which
//! lie beside the rows.
//!
//! A transaction that would not come back to the byte is kept raw.

use alloy_consensus::{
    Eip658Value, EthereumTxEnvelope, Signed, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Log, LogData, Signature, TxKind, U256};
use chain::{Receipt, Transaction};

use crate::corrupt::RowFault;
use crate::tables::{Census, Codebook, Tables};
use crate::token::{RowReader, RowWriter, Tokens};

#[cfg(test)]
mod tests;

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

/// A transaction as a row gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The transaction in its EIP-2718 form.
    pub encoded: Bytes,
    /// The same, decoded.
    pub envelope: EthereumTxEnvelope<TxEip4844>,
    /// Who sent it.
    pub sender: Address,
    /// Its receipt, with its own gas instead of the block's running sum; `None` where the segment
    /// holds none.
    pub receipt: Option<RowReceipt>,
}

/// How much of a row is read: receipts come last and take as long as all the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The transaction and its sender alone.
    Transaction,
    /// Its receipt too, where there is one.
    Receipt,
}

/// A receipt as far as one row tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowReceipt {
    /// Post-state root before Byzantium, success or failure from there on.
    pub outcome: Eip658Value,
    /// Gas that this transaction used.
    pub gas_used: u64,
    /// What it logged.
    pub logs: Vec<Log>,
}

impl RowReceipt {
    /// The receipt's consensus fields, given the gas used in the block before it.
    #[must_use]
    pub fn into_fields(self, gas_before: u64) -> alloy_consensus::Receipt {
        // It wraps as the writer's difference did, so that any sum comes back.
        let cumulative_gas_used = gas_before.wrapping_add(self.gas_used);
        alloy_consensus::Receipt { status: self.outcome, cumulative_gas_used, logs: self.logs }
    }
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
pub(crate) struct Payload {
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
    payloads: &mut Vec<Payload>,
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
    payloads: &mut Vec<Payload>,
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
        put_bytes(tokens, &transaction.encoded, Part::Plain, payloads);
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
    payloads: &mut Vec<Payload>,
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
    let part = if envelope.is_create() { Part::Plain } else { Part::Call };
    put_bytes(tokens, envelope.input(), part, payloads);
}

fn put_receipt(tokens: &mut impl Tokens, source: RowSource<'_>, payloads: &mut Vec<Payload>) {
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
        put_bytes(tokens, &log.data.data, Part::Words, payloads);
    }
}

/// What bytes are likely to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A selector and words.
    Call,
    /// Words.
    Words,
    /// Neither: code.
    Plain,
}

fn put_bytes(tokens: &mut impl Tokens, bytes: &Bytes, part: Part, payloads: &mut Vec<Payload>) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut start =
        |kind: u64| tokens.varint(length.saturating_mul(BYTES_KINDS).saturating_add(kind));
    if bytes.len() > PAYLOAD_BYTES_MIN {
        start(BYTES_OUTSIDE);
        payloads.push(Payload { bytes: bytes.clone(), is_of_receipt: part == Part::Words });
        return;
    }
    if part == Part::Plain {
        start(BYTES_PLAIN);
        tokens.raw(bytes);
        return;
    }
    start(BYTES_WORDS);
    let mut rest: &[u8] = bytes;
    if part == Part::Call
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

/// What decoding a row needs beside its tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowContext<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) chain_id: Option<u64>,
    /// What the page's head says about the receipt; `None` if there is none, or none is wanted.
    pub(crate) receipt: Option<ReceiptHead>,
    /// Whether nothing may be left over; a receipt that nobody wants is.
    pub(crate) is_whole: bool,
    pub(crate) signature: &'a [u8; 64],
}

/// What is known of a receipt before its row is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiptHead {
    pub(crate) gas_used: u64,
    pub(crate) log_count: usize,
}

/// Reads a row. `payload` gives the row's long bytes in the order in which it has them.
pub(crate) fn decode_row(
    row: &[u8],
    context: RowContext<'_>,
    payload: &mut dyn FnMut() -> Option<Bytes>,
) -> Result<Row, RowFault> {
    let mut reader = RowReader::new(row, context.tables);
    let flags = reader.cursor.byte("flags")?;
    let sender = reader.address("sender")?;
    let (envelope, encoded) = if flags & TYPE_MASK == TYPE_RAW {
        let encoded = read_bytes(&mut reader, Part::Plain, payload)?;
        let envelope =
            EthereumTxEnvelope::decode_2718_exact(&encoded).map_err(|_| RowFault::Raw)?;
        (envelope, encoded)
    } else {
        let envelope = read_transaction(&mut reader, flags, context, payload)?;
        let encoded = envelope.encoded_2718().into();
        (envelope, encoded)
    };
    let receipt = match context.receipt {
        Some(head) => Some(read_receipt(&mut reader, flags, head, payload)?),
        None => None,
    };
    match reader.cursor.rest().len() {
        left if left > 0 && context.is_whole => Err(RowFault::Rest { left }),
        _ => Ok(Row { encoded, envelope, sender, receipt }),
    }
}

/// The fields that transaction types share, and those that only some have.
struct Fields {
    tx_type: u8,
    chain_id: Option<u64>,
    nonce: u64,
    gas_limit: u64,
    fee: u128,
    tip: u128,
    to: TxKind,
    value: U256,
    access_list: AccessList,
    blob_fee: u128,
    blob_hashes: Vec<B256>,
    authorizations: Vec<SignedAuthorization>,
    input: Bytes,
}

fn read_transaction(
    reader: &mut RowReader<'_>,
    flags: u8,
    context: RowContext<'_>,
    payload: &mut dyn FnMut() -> Option<Bytes>,
) -> Result<EthereumTxEnvelope<TxEip4844>, RowFault> {
    let is_set = |flag: u8| flags & flag != 0;
    let tx_type = flags & TYPE_MASK;
    let to = if is_set(CREATION) { TxKind::Create } else { TxKind::Call(reader.address("to")?) };
    let nonce = reader.cursor.varint("nonce")?;
    let gas_limit = narrow(reader.amount("gas limit")?, "gas limit")?;
    let fee = narrow(reader.amount("fee")?, "fee")?;
    let tip = if tx_type >= 2 { narrow(reader.amount("tip")?, "tip")? } else { 0 };
    let value = reader.amount("value")?;
    let has_access_list = tx_type >= 1 && is_set(CHAIN_OR_ACCESS);
    let access_list =
        if has_access_list { read_access_list(reader)? } else { AccessList::default() };
    let (blob_fee, blob_hashes) = if tx_type == 3 { read_blobs(reader)? } else { (0, Vec::new()) };
    let authorizations = if tx_type == 4 { read_authorizations(reader)? } else { Vec::new() };
    let part = if is_set(CREATION) { Part::Plain } else { Part::Call };
    let input = read_bytes(reader, part, payload)?;
    let is_of_chain = tx_type > 0 || is_set(CHAIN_OR_ACCESS);
    let fields = Fields {
        tx_type,
        chain_id: context.chain_id.filter(|_| is_of_chain),
        nonce,
        gas_limit,
        fee,
        tip,
        to,
        value,
        access_list,
        blob_fee,
        blob_hashes,
        authorizations,
        input,
    };
    let (r, s) = context.signature.split_at(32);
    let parity = is_set(ODD_PARITY);
    assemble(fields, Signature::new(U256::from_be_slice(r), U256::from_be_slice(s), parity))
}

fn assemble(
    fields: Fields,
    signature: Signature,
) -> Result<EthereumTxEnvelope<TxEip4844>, RowFault> {
    let Fields { tx_type, nonce, gas_limit, fee, tip, to, value, access_list, input, .. } = fields;
    let chain_id = fields.chain_id.unwrap_or_default();
    let callee = || to.to().copied().ok_or(RowFault::Tag { what: "creation", found: tx_type });
    Ok(match tx_type {
        0 => {
            let (chain_id, gas_price) = (fields.chain_id, fee);
            let tx = TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input };
            EthereumTxEnvelope::Legacy(Signed::new_unhashed(tx, signature))
        }
        1 => {
            let gas_price = fee;
            let tx =
                TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input };
            EthereumTxEnvelope::Eip2930(Signed::new_unhashed(tx, signature))
        }
        2 => {
            let tx = TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee,
                max_priority_fee_per_gas: tip,
                to,
                value,
                access_list,
                input,
            };
            EthereumTxEnvelope::Eip1559(Signed::new_unhashed(tx, signature))
        }
        3 => {
            let tx = TxEip4844 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee,
                max_priority_fee_per_gas: tip,
                to: callee()?,
                value,
                access_list,
                blob_versioned_hashes: fields.blob_hashes,
                max_fee_per_blob_gas: fields.blob_fee,
                input,
            };
            EthereumTxEnvelope::Eip4844(Signed::new_unhashed(tx, signature))
        }
        4 => {
            let tx = TxEip7702 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: fee,
                max_priority_fee_per_gas: tip,
                to: callee()?,
                value,
                access_list,
                authorization_list: fields.authorizations,
                input,
            };
            EthereumTxEnvelope::Eip7702(Signed::new_unhashed(tx, signature))
        }
        found => return Err(RowFault::Tag { what: "transaction type", found }),
    })
}

fn read_access_list(reader: &mut RowReader<'_>) -> Result<AccessList, RowFault> {
    let count = reader.cursor.count("access list")?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let address = reader.address("access list")?;
        let key_count = reader.cursor.count("storage keys")?;
        let mut storage_keys = Vec::with_capacity(key_count);
        for _ in 0..key_count {
            storage_keys.push(B256::from(reader.single_word()?));
        }
        items.push(AccessListItem { address, storage_keys });
    }
    Ok(AccessList(items))
}

fn read_blobs(reader: &mut RowReader<'_>) -> Result<(u128, Vec<B256>), RowFault> {
    let fee = narrow(reader.amount("blob fee")?, "blob fee")?;
    let count = reader.cursor.count("blob hashes")?;
    let mut hashes = Vec::with_capacity(count);
    for _ in 0..count {
        hashes.push(B256::from(reader.cursor.array::<32>("blob hash")?));
    }
    Ok((fee, hashes))
}

fn read_authorizations(reader: &mut RowReader<'_>) -> Result<Vec<SignedAuthorization>, RowFault> {
    let count = reader.cursor.count("authorizations")?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let chain_id = reader.amount("authorization")?;
        let address = reader.address("authorization")?;
        let nonce = reader.cursor.varint("authorization")?;
        let y_parity = reader.cursor.byte("authorization")?;
        let r = U256::from_be_bytes(reader.cursor.array::<32>("authorization")?);
        let s = U256::from_be_bytes(reader.cursor.array::<32>("authorization")?);
        let authorization = Authorization { chain_id, address, nonce };
        list.push(SignedAuthorization::new_unchecked(authorization, y_parity, r, s));
    }
    Ok(list)
}

fn read_receipt(
    reader: &mut RowReader<'_>,
    flags: u8,
    head: ReceiptHead,
    payload: &mut dyn FnMut() -> Option<Bytes>,
) -> Result<RowReceipt, RowFault> {
    let outcome = if flags & POST_STATE == 0 {
        Eip658Value::Eip658(flags & SUCCESS != 0)
    } else {
        Eip658Value::PostState(reader.cursor.array::<32>("post-state root")?.into())
    };
    let ReceiptHead { gas_used, log_count } = head;
    // A log takes more than one byte: more logs than bytes are damage, and nothing is allocated.
    let left = reader.cursor.rest().len();
    if log_count > left {
        return Err(RowFault::Ends { what: "logs", needed: log_count, left });
    }
    let mut logs = Vec::with_capacity(log_count);
    for _ in 0..log_count {
        let address = reader.address("log")?;
        let topic_count = reader.cursor.count("topics")?;
        let mut topics = Vec::with_capacity(topic_count);
        for _ in 0..topic_count {
            topics.push(B256::from(reader.single_word()?));
        }
        let data = read_bytes(reader, Part::Words, payload)?;
        logs.push(Log { address, data: LogData::new_unchecked(topics, data) });
    }
    Ok(RowReceipt { outcome, gas_used, logs })
}

fn read_bytes(
    reader: &mut RowReader<'_>,
    part: Part,
    payload: &mut dyn FnMut() -> Option<Bytes>,
) -> Result<Bytes, RowFault> {
    let what = "bytes";
    let start = reader.cursor.varint(what)?;
    let length = usize::try_from(start / BYTES_KINDS).map_err(|_| RowFault::TooLarge { what })?;
    match start % BYTES_KINDS {
        BYTES_OUTSIDE => {
            let bytes = payload().ok_or(RowFault::NoPayload)?;
            if bytes.len() == length { Ok(bytes) } else { Err(RowFault::NoPayload) }
        }
        BYTES_PLAIN => Ok(Bytes::copy_from_slice(reader.cursor.take(length, what)?)),
        _ if length > PAYLOAD_BYTES_MIN => Err(RowFault::TooLarge { what }),
        _ => {
            let mut bytes = Vec::with_capacity(length);
            if part == Part::Call && length >= 4 {
                bytes.extend_from_slice(&reader.selector()?);
            }
            let words_length = length.saturating_sub(bytes.len()) / 32 * 32;
            reader.words(words_length, &mut bytes)?;
            let tail_length = length.saturating_sub(bytes.len());
            bytes.extend_from_slice(reader.cursor.take(tail_length, what)?);
            Ok(bytes.into())
        }
    }
}

fn narrow<T: TryFrom<U256>>(value: U256, what: &'static str) -> Result<T, RowFault> {
    T::try_from(value).map_err(|_| RowFault::TooLarge { what })
}
