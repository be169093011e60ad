//! Slim receipts, the receipt form of ere archives: no bloom, and the type as a field.
//!
//! `[[type, outcome, cumulative gas, logs], ...]`

use alloy_consensus::{Eip658Value, Receipt as Fields, TxType};
use alloy_primitives::Log;
use alloy_rlp::{Decodable, Encodable, Header};
use chain::{Receipt, whole_list};
use thiserror::Error;

/// Why bytes are not slim receipts.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SlimError {
    /// The RLP does not parse.
    #[error("not slim receipts: receipt {index}: {source}")]
    Rlp {
        /// Position in the block.
        index: usize,
        /// What the decoder met.
        source: alloy_rlp::Error,
    },
    /// More receipts than transactions.
    #[error("more than {limit} receipts for {limit} transactions")]
    Count {
        /// How many transactions there are.
        limit: usize,
    },
    /// A transaction type that this build does not know.
    #[error("receipt {index} has type {found:#04x}, known are 0x00 to 0x04")]
    TxType {
        /// Position in the block.
        index: usize,
        /// The type.
        found: u8,
    },
}

/// Reads a block's slim receipts, at most `count_max`: with more they are not this block's, and a
/// small entry may inflate to very many.
pub fn decode_slim(rlp: &[u8], count_max: usize) -> Result<Vec<Receipt>, SlimError> {
    let mut payload = whole_list(rlp).map_err(|source| SlimError::Rlp { index: 0, source })?;
    let mut receipts = Vec::new();
    while !payload.is_empty() {
        if receipts.len() == count_max {
            return Err(SlimError::Count { limit: count_max });
        }
        receipts.push(decode_one(&mut payload, receipts.len())?);
    }
    Ok(receipts)
}

/// The slim form of a block's receipts; what [`decode_slim`] read comes back to the byte.
#[must_use]
pub fn encode_slim(receipts: &[Receipt]) -> Vec<u8> {
    let head = |receipt: &Receipt| Header { list: true, payload_length: fields_length(receipt) };
    let payload_length =
        receipts.iter().map(|receipt| head(receipt).length_with_payload()).sum::<usize>();
    let list_head = Header { list: true, payload_length };
    let mut rlp = Vec::with_capacity(list_head.length_with_payload());
    list_head.encode(&mut rlp);
    for receipt in receipts {
        head(receipt).encode(&mut rlp);
        u8::from(receipt.tx_type).encode(&mut rlp);
        receipt.fields.status.encode(&mut rlp);
        receipt.fields.cumulative_gas_used.encode(&mut rlp);
        receipt.fields.logs.encode(&mut rlp);
    }
    rlp
}

fn fields_length(receipt: &Receipt) -> usize {
    [
        u8::from(receipt.tx_type).length(),
        receipt.fields.status.length(),
        receipt.fields.cumulative_gas_used.length(),
        receipt.fields.logs.length(),
    ]
    .iter()
    .sum()
}

fn decode_one(input: &mut &[u8], index: usize) -> Result<Receipt, SlimError> {
    let fault = |source| SlimError::Rlp { index, source };
    let mut payload = Header::decode_bytes(input, true).map_err(fault)?;
    let tx_type = u8::decode(&mut payload).map_err(fault)?;
    let status = Eip658Value::decode(&mut payload).map_err(fault)?;
    let cumulative_gas_used = u64::decode(&mut payload).map_err(fault)?;
    let logs = Vec::<Log>::decode(&mut payload).map_err(fault)?;
    if !payload.is_empty() {
        return Err(fault(alloy_rlp::Error::UnexpectedLength));
    }
    let tx_type =
        TxType::try_from(tx_type).map_err(|_| SlimError::TxType { index, found: tx_type })?;
    Ok(Receipt { tx_type, fields: Fields { status, cumulative_gas_used, logs } })
}
