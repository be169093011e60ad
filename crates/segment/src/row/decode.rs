//! A row's tokens back into the transaction's bytes and its receipt.
//!
//! Fields are written as RLP while they are read, and the head that needs their length is put
//! into room left before them: no transaction is built in between. The writer reads every row
//! back through this before it keeps it, and compares.

use alloy_consensus::Eip658Value;
use alloy_primitives::Bytes;
use chain::TxFields;

use super::{
    BYTES_KINDS, BYTES_OUTSIDE, BYTES_PLAIN, BytesKind, CHAIN_OR_ACCESS, CREATION, ODD_PARITY,
    PAYLOAD_BYTES_MIN, POST_STATE, ReceiptHead, SUCCESS, Senders, TYPE_MASK, TYPE_RAW,
};
use crate::corrupt::RowFault;
use crate::rlp::{
    HEAD_BYTES_MAX, fill_list_head, list_head_bytes, put_list_head, put_number, put_string_head,
    put_u64, put_u128, put_word,
};
use crate::row_set::{LogEntry, ReceiptEntry, RowBuffers, RowSlot};
use crate::tables::Tables;
use crate::token::RowReader;

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
    pub(crate) senders: Senders,
}

/// The row's long bytes, one after the other.
pub(crate) type Payloads<'a> = dyn FnMut() -> Option<Bytes> + 'a;

/// Reads a row.
pub(crate) fn decode_row(
    row: &[u8],
    context: RowContext<'_>,
    payload: &mut Payloads<'_>,
    slot: RowSlot<'_>,
) -> Result<(), RowFault> {
    let RowSlot { buffers, entry } = slot;
    let mut reader = RowReader::new(row, context.tables);
    let flags = reader.cursor.byte("flags")?;
    let sender = reader.address("sender")?;
    let out = &mut buffers.bytes;
    if context.senders == Senders::Told {
        entry.sender = out.len();
        out.extend_from_slice(sender);
    }
    let begin = if flags & TYPE_MASK == TYPE_RAW {
        let begin = out.len();
        read_bytes(&mut reader, BytesKind::Plain, payload, out, BytesForm::Bare)?;
        let encoded = out.get(begin..).unwrap_or_default();
        TxFields::read(encoded).map_err(|_| RowFault::Raw)?;
        begin
    } else {
        read_transaction(&mut reader, flags, context, payload, out)?
    };
    entry.encoded = begin..out.len();
    entry.receipt = match context.receipt {
        Some(head) => Some(read_receipt(&mut reader, flags, head, payload, buffers)?),
        None => None,
    };
    match reader.cursor.rest().len() {
        left if left > 0 && context.is_whole => Err(RowFault::Rest { left }),
        _ => Ok(()),
    }
}

/// Appends the transaction; gives back where it begins.
fn read_transaction(
    reader: &mut RowReader<'_>,
    flags: u8,
    context: RowContext<'_>,
    payload: &mut Payloads<'_>,
    out: &mut Vec<u8>,
) -> Result<usize, RowFault> {
    let is_set = |flag: u8| flags & flag != 0;
    let tx_type = flags & TYPE_MASK;
    let is_creation = is_set(CREATION);
    if tx_type > 4 || (tx_type >= 3 && is_creation) {
        return Err(RowFault::Tag { what: "transaction type", found: flags });
    }
    let to = if is_creation { None } else { Some(reader.address("to")?) };
    let nonce = reader.cursor.varint("nonce")?;
    let gas_limit = reader.amount_u64("gas limit")?;
    let fee = reader.amount_u128("fee")?;
    let tip = if tx_type >= 2 { Some(reader.amount_u128("tip")?) } else { None };
    // Room for the type and the longest head.
    let payload_begin = begin_list(out);
    if tx_type > 0 {
        put_u64(out, context.chain_id.unwrap_or_default());
    }
    put_u64(out, nonce);
    if let Some(tip) = tip {
        put_u128(out, tip);
    }
    put_u128(out, fee);
    put_u64(out, gas_limit);
    match to {
        Some(to) => put_address(out, to),
        None => put_string_head(out, 0),
    }
    reader.amount_rlp("value", out)?;
    // Lists come before the call data in tokens and after it in RLP. Most have no other than an
    // access list that is empty: that is written where it belongs.
    let part = if is_creation { BytesKind::Plain } else { BytesKind::Call };
    let has_access_list = is_set(CHAIN_OR_ACCESS);
    if tx_type > 0 && (has_access_list || tx_type > 2) {
        let begin = out.len();
        read_lists(reader, tx_type, has_access_list, out)?;
        let middle = out.len();
        read_bytes(reader, part, payload, out, BytesForm::Rlp)?;
        swap(out, begin, middle);
    } else {
        read_bytes(reader, part, payload, out, BytesForm::Rlp)?;
        if tx_type > 0 {
            put_list_head(out, 0);
        }
    }
    let parity = u128::from(is_set(ODD_PARITY));
    let chain_id = context.chain_id.filter(|_| is_set(CHAIN_OR_ACCESS));
    let v = match (tx_type, chain_id) {
        (0, None) => parity.saturating_add(27),
        // EIP-155 puts the chain into it.
        (0, Some(id)) => u128::from(id).saturating_mul(2).saturating_add(35 + parity),
        _ => parity,
    };
    put_u128(out, v);
    for word in context.signature.as_chunks().0 {
        put_word(out, word);
    }
    Ok(fill_list_head(out, payload_begin, Some(tx_type).filter(|it| *it > 0)))
}

/// What typed transactions have between call data and signature.
fn read_lists(
    reader: &mut RowReader<'_>,
    tx_type: u8,
    has_access_list: bool,
    out: &mut Vec<u8>,
) -> Result<(), RowFault> {
    if has_access_list {
        read_access_list(reader, out)?;
    } else {
        put_list_head(out, 0);
    }
    if tx_type == 3 {
        read_blobs(reader, out)?;
    }
    if tx_type == 4 {
        read_authorizations(reader, out)?;
    }
    Ok(())
}

/// A 32-byte word with its head.
const KEY_BYTES: usize = 33;
/// An address with its head.
const ADDRESS_BYTES: usize = 21;

fn read_access_list(reader: &mut RowReader<'_>, out: &mut Vec<u8>) -> Result<(), RowFault> {
    let count = reader.cursor.count("access list")?;
    let list = begin_list(out);
    for _ in 0..count {
        let address = reader.address("access list")?;
        let key_count = reader.cursor.count("storage keys")?;
        let keys_bytes = key_count.saturating_mul(KEY_BYTES);
        put_list_head(out, keys_bytes.saturating_add(ADDRESS_BYTES + list_head_bytes(keys_bytes)));
        put_address(out, address);
        put_list_head(out, keys_bytes);
        for _ in 0..key_count {
            out.push(0x80 + 32);
            reader.single_word(out)?;
        }
    }
    end_list(out, list);
    Ok(())
}

fn read_blobs(reader: &mut RowReader<'_>, out: &mut Vec<u8>) -> Result<(), RowFault> {
    put_u128(out, reader.amount_u128("blob fee")?);
    let count = reader.cursor.count("blob hashes")?;
    put_list_head(out, count.saturating_mul(KEY_BYTES));
    for _ in 0..count {
        out.push(0x80 + 32);
        out.extend_from_slice(reader.cursor.array_ref::<32>("blob hash")?);
    }
    Ok(())
}

fn read_authorizations(reader: &mut RowReader<'_>, out: &mut Vec<u8>) -> Result<(), RowFault> {
    let what = "authorization";
    let count = reader.cursor.count("authorizations")?;
    let list = begin_list(out);
    for _ in 0..count {
        let item = begin_list(out);
        reader.amount_rlp(what, out)?;
        let address = reader.address(what)?;
        put_address(out, address);
        put_u64(out, reader.cursor.varint(what)?);
        put_number(out, &[reader.cursor.byte(what)?]);
        put_word(out, &reader.cursor.array(what)?);
        put_word(out, &reader.cursor.array(what)?);
        end_list(out, item);
    }
    end_list(out, list);
    Ok(())
}

/// Leaves room for the head of a list whose length is not known yet.
fn begin_list(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEAD_BYTES_MAX]);
    out.len()
}

/// Puts the head before a list that began there, and closes the gap.
fn end_list(out: &mut Vec<u8>, begin: usize) {
    let head = fill_list_head(out, begin, None);
    let room = begin.saturating_sub(HEAD_BYTES_MAX);
    swap(out, room, head);
    out.truncate(out.len().saturating_sub(head.saturating_sub(room)));
}

/// Changes the places of what lies between `begin` and `middle` and what comes after.
fn swap(out: &mut [u8], begin: usize, middle: usize) {
    if let Some(both) = out.get_mut(begin..) {
        both.rotate_left(middle.saturating_sub(begin).min(both.len()));
    }
}

/// Appends an address with its head.
#[inline]
fn put_address(out: &mut Vec<u8>, address: &[u8; 20]) {
    put_string_head(out, address.len());
    out.extend_from_slice(address);
}

fn read_receipt(
    reader: &mut RowReader<'_>,
    flags: u8,
    head: ReceiptHead,
    payload: &mut Payloads<'_>,
    buffers: &mut RowBuffers,
) -> Result<ReceiptEntry, RowFault> {
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
    let RowBuffers { bytes, logs } = buffers;
    let first_log = logs.len();
    logs.reserve(log_count);
    for _ in 0..log_count {
        let address = reader.address("log")?;
        let address_at = bytes.len();
        bytes.extend_from_slice(address);
        let topic_count = reader.cursor.count("topics")?;
        let begin = bytes.len();
        for _ in 0..topic_count {
            reader.single_word(bytes)?;
        }
        let topics_end = bytes.len();
        read_bytes(reader, BytesKind::Words, payload, bytes, BytesForm::Bare)?;
        logs.push(LogEntry {
            address: address_at,
            topics: begin..topics_end,
            data: topics_end..bytes.len(),
        });
    }
    Ok(ReceiptEntry { outcome, gas_used, logs: first_log..logs.len() })
}

/// How bytes are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BytesForm {
    Bare,
    /// As an RLP string.
    Rlp,
}

fn read_bytes(
    reader: &mut RowReader<'_>,
    part: BytesKind,
    payload: &mut Payloads<'_>,
    out: &mut Vec<u8>,
    form: BytesForm,
) -> Result<(), RowFault> {
    let what = "bytes";
    let start = reader.cursor.varint(what)?;
    let length = usize::try_from(start / BYTES_KINDS).map_err(|_| RowFault::TooLarge { what })?;
    // One small byte is its own encoding: the head is put before it if it turns out to be larger.
    if form == BytesForm::Rlp && length != 1 {
        put_string_head(out, length);
    }
    let begin = out.len();
    match start % BYTES_KINDS {
        BYTES_OUTSIDE => {
            let bytes = payload().filter(|it| it.len() == length).ok_or(RowFault::NoPayload)?;
            out.extend_from_slice(&bytes);
        }
        BYTES_PLAIN => out.extend_from_slice(reader.cursor.take(length, what)?),
        _ if length > PAYLOAD_BYTES_MIN => return Err(RowFault::TooLarge { what }),
        _ => {
            let mut rest = length;
            if part == BytesKind::Call && length >= 4 {
                out.extend_from_slice(&reader.selector()?);
                rest = rest.saturating_sub(4);
            }
            reader.words(rest / 32 * 32, out)?;
            out.extend_from_slice(reader.cursor.take(rest % 32, what)?);
        }
    }
    if form == BytesForm::Rlp && length == 1 && out.last().is_some_and(|byte| *byte >= 0x80) {
        out.insert(begin, 0x81);
    }
    Ok(())
}
