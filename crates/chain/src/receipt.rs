//! Receipts in consensus form, and their blooms.

use std::iter;

use alloy_consensus::{
    Receipt as Fields, ReceiptWithBloom, RlpDecodableReceipt, RlpEncodableReceipt, TxType,
};
use alloy_primitives::map::{AddressMap, B256Map};
use alloy_primitives::{Address, B256, Bloom, BloomInput, Log};
use alloy_rlp::{BufMut, EMPTY_LIST_CODE, Header};
use thiserror::Error;

use crate::keccak::keccak256_each;
use crate::rlp::whole_list;

/// One receipt without its bloom, which is recomputed from the logs wherever it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The type of the transaction, which the consensus form repeats.
    pub tx_type: TxType,
    /// Outcome (post-state root before Byzantium), gas used so far in the block, logs.
    pub fields: Fields,
}

/// Why bytes are not a list of receipts.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReceiptError {
    /// The RLP does not parse.
    #[error("not receipts: receipt {index}: {source}")]
    Rlp {
        /// Position in the block.
        index: usize,
        /// What the decoder met.
        source: alloy_rlp::Error,
    },
    /// The bloom beside the logs is not theirs.
    #[error("receipt {index}: bloom is {found}, its logs give {expected}")]
    Bloom {
        /// Position in the block.
        index: usize,
        /// The bloom that was claimed.
        found: Box<Bloom>,
        /// The bloom of the logs.
        expected: Box<Bloom>,
    },
}

impl Receipt {
    /// Writes the EIP-2718 form that the receipts root commits to.
    pub fn encode_2718(&self, bloom: &Bloom, out: &mut dyn BufMut) {
        if self.tx_type != TxType::Legacy {
            out.put_u8(u8::from(self.tx_type));
        }
        self.fields.rlp_encode_with_bloom(bloom, out);
    }

    /// Length of the form inside a list of receipts, where a typed receipt is an RLP string.
    fn listed_length(&self, bloom: &Bloom) -> usize {
        let list_length = self.fields.rlp_encoded_length_with_bloom(bloom);
        if self.tx_type == TxType::Legacy {
            list_length
        } else {
            Header { list: false, payload_length: 1 + list_length }.length_with_payload()
        }
    }

    fn encode_listed(&self, bloom: &Bloom, out: &mut dyn BufMut) {
        if self.tx_type != TxType::Legacy {
            let payload_length = 1 + self.fields.rlp_encoded_length_with_bloom(bloom);
            Header { list: false, payload_length }.encode(out);
        }
        self.encode_2718(bloom, out);
    }
}

/// Reads a block's receipts in consensus form and checks each bloom against its logs.
pub fn decode_receipts(rlp: &[u8]) -> Result<Vec<Receipt>, ReceiptError> {
    let mut payload = whole_list(rlp).map_err(|source| ReceiptError::Rlp { index: 0, source })?;
    let mut receipts = Vec::new();
    while !payload.is_empty() {
        let index = receipts.len();
        let (receipt, found) =
            decode_listed(&mut payload).map_err(|source| ReceiptError::Rlp { index, source })?;
        let expected = logs_bloom(&receipt.fields.logs);
        if found != expected {
            let (found, expected) = (Box::new(found), Box::new(expected));
            return Err(ReceiptError::Bloom { index, found, expected });
        }
        receipts.push(receipt);
    }
    Ok(receipts)
}

/// The consensus form of a block's receipts; what [`decode_receipts`] read comes back to the byte.
#[must_use]
pub fn encode_receipts(receipts: &[Receipt]) -> Vec<u8> {
    let blooms: Vec<Bloom> =
        receipts.iter().map(|receipt| logs_bloom(&receipt.fields.logs)).collect();
    let with_blooms = || receipts.iter().zip(&blooms);
    let payload_length = with_blooms().map(|(receipt, bloom)| receipt.listed_length(bloom)).sum();
    let head = Header { list: true, payload_length };
    let mut rlp = Vec::with_capacity(head.length_with_payload());
    head.encode(&mut rlp);
    for (receipt, bloom) in with_blooms() {
        receipt.encode_listed(bloom, &mut rlp);
    }
    rlp
}

/// The bloom of a receipt's logs.
#[must_use]
pub fn logs_bloom(logs: &[Log]) -> Bloom {
    bloom_of(logs.iter().flat_map(|log| {
        let topics = log.data.topics().iter().map(B256::as_slice);
        iter::once(log.address.as_slice()).chain(topics)
    }))
}

/// The bloom of one receipt, given the addresses and topics of its logs.
#[must_use]
pub fn bloom_of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Bloom {
    let items: Vec<&[u8]> = items.into_iter().collect();
    let mut bloom = Bloom::ZERO;
    for hash in keccak256_each(&items) {
        bloom.accrue(BloomInput::Hash(hash));
    }
    bloom
}

/// The bloom of each receipt, given the addresses and topics of its logs. Where many are due, those
/// that repeat are hashed once, and several at a time.
#[must_use]
pub fn bloom_each<'a, R>(receipts: impl IntoIterator<Item = R>) -> Vec<Bloom>
where
    R: IntoIterator<Item = &'a [u8]>,
{
    let (mut distinct, mut uses, mut ends) = (Distinct::default(), Vec::new(), Vec::new());
    for receipt in receipts {
        uses.extend(receipt.into_iter().map(|item| distinct.position_of(item)));
        ends.push(uses.len());
    }
    let hashes = keccak256_each(&distinct.items);
    let mut begin = 0;
    let bloom = |end: usize| {
        let mut bloom = Bloom::ZERO;
        for position in uses.get(begin..end).unwrap_or_default() {
            let hash = hashes.get(*position).copied().unwrap_or_default();
            bloom.accrue(BloomInput::Hash(hash));
        }
        begin = end;
        bloom
    };
    ends.into_iter().map(bloom).collect()
}

/// What is to be hashed, each once.
#[derive(Debug, Default)]
struct Distinct<'a> {
    items: Vec<&'a [u8]>,
    addresses: AddressMap<usize>,
    topics: B256Map<usize>,
}

impl<'a> Distinct<'a> {
    fn position_of(&mut self, item: &'a [u8]) -> usize {
        let next = self.items.len();
        let position = if let Ok(address) = Address::try_from(item) {
            *self.addresses.entry(address).or_insert(next)
        } else if let Ok(topic) = B256::try_from(item) {
            *self.topics.entry(topic).or_insert(next)
        } else {
            next
        };
        if position == next {
            self.items.push(item);
        }
        position
    }
}

fn decode_listed(input: &mut &[u8]) -> alloy_rlp::Result<(Receipt, Bloom)> {
    // A typed receipt is a string that begins with its type.
    let is_typed = input.first().is_some_and(|first| *first < EMPTY_LIST_CODE);
    if !is_typed {
        return decode_fields(TxType::Legacy, input);
    }
    let typed = Header::decode_bytes(input, false)?;
    let (tx_type, mut list) = typed.split_first().ok_or(alloy_rlp::Error::InputTooShort)?;
    let tx_type = TxType::try_from(*tx_type)
        .ok()
        .filter(|tx_type| *tx_type != TxType::Legacy)
        .ok_or(alloy_rlp::Error::Custom("unknown receipt type"))?;
    let decoded = decode_fields(tx_type, &mut list)?;
    if list.is_empty() { Ok(decoded) } else { Err(alloy_rlp::Error::UnexpectedLength) }
}

fn decode_fields(tx_type: TxType, input: &mut &[u8]) -> alloy_rlp::Result<(Receipt, Bloom)> {
    let ReceiptWithBloom { receipt: fields, logs_bloom } = Fields::rlp_decode_with_bloom(input)?;
    Ok((Receipt { tx_type, fields }, logs_bloom))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::LogData;

    use super::*;

    #[test]
    fn blooms_made_together_are_those_made_alone() {
        let log = |address: u8, topics: &[u8]| Log {
            address: Address::repeat_byte(address),
            data: LogData::new_unchecked(
                topics.iter().map(|topic| B256::repeat_byte(*topic)).collect(),
                alloy_primitives::Bytes::new(),
            ),
        };
        let receipts = [
            vec![],
            vec![log(1, &[1, 2, 3, 4]), log(1, &[1])],
            vec![log(2, &[])],
            vec![log(1, &[5, 2]), log(3, &[9; 4]), log(1, &[5])],
        ];
        let items = receipts.iter().map(|logs| {
            logs.iter().flat_map(|log| {
                let topics = log.data.topics().iter().map(B256::as_slice);
                iter::once(log.address.as_slice()).chain(topics)
            })
        });
        let expected: Vec<Bloom> = receipts.iter().map(|logs| logs_bloom(logs)).collect();
        assert_eq!(bloom_each(items), expected);
    }
}
