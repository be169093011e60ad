//! Headers: their hash, and the fields that proofs rest on.

use alloc::format;
use alloc::string::String;

use crate::hash::{Hash32, keccak256};
use crate::rlp::whole_list;

/// Fields of Frontier's header.
const FIELDS_MIN: usize = 15;
/// More than any fork will need.
const FIELDS_MAX: usize = 64;

/// Bytes of a logs bloom.
pub(crate) const BLOOM_BYTES: usize = 256;

/// What a header commits to.
#[derive(Clone, Debug)]
pub(crate) struct HeaderParts {
    pub(crate) hash: Hash32,
    pub(crate) parent: Hash32,
    pub(crate) number: u64,
    pub(crate) ommers_hash: Hash32,
    pub(crate) transactions_root: Hash32,
    pub(crate) receipts_root: Hash32,
    pub(crate) bloom: [u8; BLOOM_BYTES],
    /// From Shanghai on.
    pub(crate) withdrawals_root: Option<Hash32>,
}

impl HeaderParts {
    /// Reads a header; what is wrong with it, if it is none.
    pub(crate) fn read(rlp: &[u8]) -> Result<Self, String> {
        let fields = whole_list(rlp, FIELDS_MAX)
            .map_err(|fault| format!("byte {} of the header: {}", fault.offset, fault.what))?;
        if fields.len() < FIELDS_MIN {
            return Err(format!("a header has {} fields, at least {FIELDS_MIN}", fields.len()));
        }
        let field = |index: usize, name: &str| {
            fields
                .get(index)
                .ok_or_else(|| format!("field {index} of the header, {name}, is missing"))
        };
        let malformed = |index: usize, name: &str| {
            format!("field {index} of the header, {name}, does not have its form")
        };
        let hash = |index: usize, name: &str| {
            field(index, name)?.array().map(Hash32).ok_or_else(|| malformed(index, name))
        };
        let number = field(8, "number")?;
        let withdrawals_root = match fields.get(16) {
            Some(_) => Some(hash(16, "withdrawals root")?),
            None => None,
        };
        if let Some(index) = fields.iter().position(|field| field.is_list) {
            return Err(format!("field {index} of the header is a list"));
        }
        Ok(Self {
            hash: keccak256(rlp),
            parent: hash(0, "parent hash")?,
            number: number.number().ok_or_else(|| malformed(8, "number"))?,
            ommers_hash: hash(1, "ommers hash")?,
            transactions_root: hash(4, "transactions root")?,
            receipts_root: hash(5, "receipts root")?,
            bloom: field(6, "bloom")?.array().ok_or_else(|| malformed(6, "bloom"))?,
            withdrawals_root,
        })
    }

    /// Why this header is not the one that follows `before`; `None` if it is.
    pub(crate) fn unlinked(&self, before: &Self) -> Option<String> {
        if self.parent != before.hash {
            return Some(format!(
                "the header of block {} names {} as its parent, not block {} with hash {}",
                self.number, self.parent, before.number, before.hash
            ));
        }
        (Some(self.number) != before.number.checked_add(1)).then(|| {
            format!("the header of block {} follows that of block {}", self.number, before.number)
        })
    }
}
