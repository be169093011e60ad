//! Block bodies in consensus form, taken apart without copying.

use alloy_primitives::Bytes;
use alloy_rlp::{EMPTY_LIST_CODE, Encodable, Header};
use thiserror::Error;

use crate::rlp::{take_list, whole_list};

/// The largest EIP-2718 type: the first byte of an encoded transaction tells a typed payload from
/// a legacy list.
const TX_TYPE_MAX: u8 = 0x7f;
/// No transaction is shorter: r alone takes some twenty bytes. Without this a small body that
/// inflates to nothing but empty lists would take fifty times its bytes in memory.
const TX_BYTES_MIN: usize = 32;

/// The parts of a body as raw bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Each transaction in its EIP-2718 form, as the transactions root commits to it.
    pub transactions: Vec<Bytes>,
    /// The RLP list of ommer headers, as the ommers hash commits to it.
    pub ommers: Bytes,
    /// The RLP list of withdrawals; `None` before Shanghai.
    pub withdrawals: Option<Bytes>,
}

/// Why bytes are not a body.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BodyError {
    /// The RLP does not parse.
    #[error("not a body: {0}")]
    Rlp(#[from] alloy_rlp::Error),
    /// Neither two nor three parts.
    #[error("not a body: {found} parts, expected 2 or 3")]
    PartCount {
        /// How many parts there are.
        found: usize,
    },
    /// A transaction string that cannot be a typed transaction.
    #[error(
        "not a body: transaction {index} begins with byte {found:#04x}, a type is at most 0x7f"
    )]
    TxType {
        /// Position in the block.
        index: usize,
        /// The byte where a type should be.
        found: u8,
    },
    /// Something too short for a transaction.
    #[error("not a body: transaction {index} has {found} bytes, at least {TX_BYTES_MIN} expected")]
    TxShort {
        /// Position in the block.
        index: usize,
        /// Its length.
        found: usize,
    },
}

impl Body {
    /// Takes a body's RLP apart; the parts share `rlp`'s memory.
    pub fn decode(rlp: &Bytes) -> Result<Self, BodyError> {
        let mut payload = whole_list(rlp)?;
        let mut parts = Vec::with_capacity(3);
        while !payload.is_empty() {
            parts.push(take_list(&mut payload)?);
        }
        let (transactions, ommers, withdrawals) = match *parts.as_slice() {
            [transactions, ommers] => (transactions, ommers, None),
            [transactions, ommers, withdrawals] => (transactions, ommers, Some(withdrawals)),
            _ => return Err(BodyError::PartCount { found: parts.len() }),
        };
        Ok(Self {
            transactions: split_transactions(rlp, transactions)?,
            ommers: rlp.slice_ref(ommers),
            withdrawals: withdrawals.map(|list| rlp.slice_ref(list)),
        })
    }

    /// The body's RLP; what [`Body::decode`] took apart comes back to the byte.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut transactions_length = 0;
        for transaction in &self.transactions {
            transactions_length += wrapped_length(transaction);
        }
        let transactions_head = Header { list: true, payload_length: transactions_length };
        let payload_length = transactions_head.length_with_payload()
            + self.ommers.len()
            + self.withdrawals.as_ref().map_or(0, |list| list.len());
        let body_head = Header { list: true, payload_length };
        let mut rlp = Vec::with_capacity(body_head.length_with_payload());
        body_head.encode(&mut rlp);
        transactions_head.encode(&mut rlp);
        for transaction in &self.transactions {
            if is_legacy(transaction) {
                rlp.extend_from_slice(transaction);
            } else {
                transaction.as_ref().encode(&mut rlp);
            }
        }
        rlp.extend_from_slice(&self.ommers);
        if let Some(withdrawals) = &self.withdrawals {
            rlp.extend_from_slice(withdrawals);
        }
        rlp
    }
}

/// Whether an encoded transaction is an untyped RLP list.
fn is_legacy(transaction: &[u8]) -> bool {
    transaction.first().is_some_and(|first| *first >= EMPTY_LIST_CODE)
}

/// The length of a transaction in a list of them: a typed one is a string there.
pub(crate) fn wrapped_length(transaction: &[u8]) -> usize {
    if is_legacy(transaction) { transaction.len() } else { transaction.length() }
}

fn split_transactions(rlp: &Bytes, list: &[u8]) -> Result<Vec<Bytes>, BodyError> {
    let mut payload = whole_list(list)?;
    let mut transactions = Vec::new();
    while !payload.is_empty() {
        let index = transactions.len();
        let raw = if payload.first().is_some_and(|first| *first >= EMPTY_LIST_CODE) {
            take_list(&mut payload)?
        } else {
            let typed = Header::decode_bytes(&mut payload, false)?;
            if let Some(found) = typed.first().copied().filter(|first| *first > TX_TYPE_MAX) {
                return Err(BodyError::TxType { index, found });
            }
            typed
        };
        if raw.len() < TX_BYTES_MIN {
            return Err(BodyError::TxShort { index, found: raw.len() });
        }
        transactions.push(rlp.slice_ref(raw));
    }
    Ok(transactions)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::hex;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better at every call")]
    fn check(rlp: &[u8], expected: Result<(usize, bool), BodyError>) {
        let rlp = Bytes::copy_from_slice(rlp);
        let body = Body::decode(&rlp);
        if let Ok(body) = &body {
            assert_eq!(body.encode(), rlp.to_vec());
        }
        let shape = body.map(|body| (body.transactions.len(), body.withdrawals.is_some()));
        assert_eq!(shape, expected);
    }

    #[test]
    fn bodies_come_apart_and_back_together() {
        check(&hex!("c2c0c0"), Ok((0, false)));
        check(&hex!("c3c0c0c0"), Ok((0, true)));
        // A list of 31 bytes and a string of 32: a legacy transaction and a typed one.
        let legacy = [[0xdf].as_slice(), &[1; 31]].concat();
        let typed = [[0xa0, 3].as_slice(), &[0xff; 31]].concat();
        let body = [[0xf8, 0x44, 0xf8, 0x41].as_slice(), &legacy, &typed, &[0xc0]].concat();
        check(&body, Ok((2, false)));
    }

    #[test]
    fn what_is_not_a_body_is_refused() {
        check(&hex!("c1c0"), Err(BodyError::PartCount { found: 1 }));
        check(&hex!("c4c0c0c0c0"), Err(BodyError::PartCount { found: 4 }));
        check(&hex!("c2c0c000"), Err(alloy_rlp::Error::UnexpectedLength.into()));
        check(&hex!("c3c180c0"), Err(BodyError::TxShort { index: 0, found: 0 }));
        check(&hex!("c3c1c0c0"), Err(BodyError::TxShort { index: 0, found: 1 }));
        check(&hex!("c5c382c001c0"), Err(BodyError::TxType { index: 0, found: 0xc0 }));
        check(&hex!("80"), Err(alloy_rlp::Error::UnexpectedString.into()));
    }
}
