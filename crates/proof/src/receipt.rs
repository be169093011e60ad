//! Receipts in consensus form, as far as their logs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::hash::{Hash32, write_hex};
use crate::rlp::{RlpFault, RlpItem, collect_items, list_items, whole_list};

const RECEIPT_FIELDS: usize = 4;
const LOG_FIELDS: usize = 3;
/// `LOG4` has four.
const TOPICS_MAX: usize = 4;
/// A typed receipt begins with its type, which is below the first byte of any list.
const TYPE_MAX: u8 = 0x7f;

/// An address, as a log names its contract.
pub(crate) type AddressBytes = [u8; 20];

/// A log of a proven block.
#[derive(Clone, PartialEq, Eq)]
pub struct ProvenLog {
    /// Its block.
    pub block_number: u64,
    /// Its block's hash.
    pub block_hash: Hash32,
    /// Its transaction, by position in the block.
    pub transaction_index: u64,
    /// Its position in the receipt.
    pub position: u64,
    /// Its position in the block: known where all receipts of the block were given.
    pub log_index: Option<u64>,
    /// The contract.
    pub address: [u8; 20],
    /// At most four.
    pub topics: Vec<Hash32>,
    /// The rest.
    pub data: Vec<u8>,
}

impl fmt::Debug for ProvenLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ProvenLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, transaction {}, ", self.block_number, self.transaction_index)?;
        match self.log_index {
            Some(index) => write!(f, "log {index}: address ")?,
            None => write!(f, "log {} of its receipt: address ", self.position)?,
        }
        write_hex(f, &self.address)?;
        write!(f, ", topics {:?}, data ", self.topics)?;
        write_hex(f, &self.data)
    }
}

/// What a receipt says of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogParts<'a> {
    pub(crate) address: AddressBytes,
    pub(crate) topics: Vec<Hash32>,
    pub(crate) data: &'a [u8],
}

/// All logs of a receipt; what is wrong with it, if it is none.
pub(crate) fn logs_of(receipt: &[u8]) -> Result<Vec<LogParts<'_>>, String> {
    let typed = receipt.split_first().filter(|(first, _)| **first <= TYPE_MAX);
    let list = typed.map_or(receipt, |(_, list)| list);
    let of_receipt = |fault: RlpFault| format!("byte {} of its list: {}", fault.offset, fault.what);
    let fields = whole_list(list, RECEIPT_FIELDS).map_err(of_receipt)?;
    let [_outcome, _gas, _bloom, logs] = fields.as_slice() else {
        return Err(format!("it has {} fields, not {RECEIPT_FIELDS}", fields.len()));
    };
    let logs = list_items(logs).map_err(of_receipt)?;
    logs.enumerate()
        .map(|(position, log)| {
            let at = |what: &str| format!("log {position}: {what}");
            log.and_then(|log| LogParts::read(&log)).map_err(|fault| at(fault.what))
        })
        .collect()
}

impl<'a> LogParts<'a> {
    fn read(log: &RlpItem<'a>) -> Result<Self, RlpFault> {
        let fault = |what| RlpFault { offset: 0, what };
        let fields = collect_items(log, LOG_FIELDS)?;
        let [address, topics, data] = fields.as_slice() else {
            return Err(fault("it does not have three fields"));
        };
        let address = address.array().ok_or(fault("its address does not have 20 bytes"))?;
        let topics = collect_items(topics, TOPICS_MAX)?
            .iter()
            .map(|topic| topic.array().map(Hash32).ok_or(fault("a topic does not have 32 bytes")))
            .collect::<Result<_, _>>()?;
        let data = data.string().ok_or(fault("its data are a list"))?;
        Ok(Self { address, topics, data })
    }
}
