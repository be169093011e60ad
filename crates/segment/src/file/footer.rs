//! The footer: what a segment says about itself in its last bytes.
//!
//! Knows: the range, the counts, the links to neighbours, the digest that names the file.
//! Never knows: anything that the blocks themselves do not say: equal blocks give equal footers.

use std::ops::Range;

use alloy_primitives::B256;
use chain::BlockRange;

use super::shape::SegmentShape;
use crate::bytes::Cursor;
use crate::corrupt::Corrupt;
use crate::version::Version;

/// The footer's length: the last bytes of every segment.
pub const FOOTER_BYTES: usize = MAGIC.len() + 4 + 4 + NUMBERS * 8 + 32 + 32 + DIGEST_BYTES + 4 + 4;
const _: () = assert!(FOOTER_BYTES == 184, "docs/format.md draws 184 bytes");
const DIGEST_BYTES: usize = 32;
const NUMBERS: usize = 8;

const MAGIC: [u8; 8] = *b"QUIPUSEG";

const HAS_RECEIPTS: u32 = 1 << 0;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The blocks.
    pub range: BlockRange,
    /// The hash of the block before the first.
    pub parent_hash: B256,
    /// The hash of the last block.
    pub last_hash: B256,
    /// Whether receipts are in it.
    pub has_receipts: bool,
    /// How many transactions.
    pub transaction_count: u64,
    /// How many logs.
    pub log_count: u64,
    /// Bytes of all rows before compression.
    pub token_bytes: u64,
    /// How many of these say receipts.
    pub receipt_token_bytes: u64,
    /// Bytes of the payload pages that hold log data.
    pub receipt_payload_bytes: u64,
}

/// The footer: facts, the tail's length, and the digest that names the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// By which version of the format the file was written.
    pub version: Version,
    /// What the segment says about itself. Its range and the digest are the file's name.
    pub facts: Facts,
    /// SHA-256 of everything before the footer.
    pub digest: [u8; DIGEST_BYTES],
    pub(super) tail_bytes: u64,
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { version, facts, digest, tail_bytes } = self;
        let flags = if facts.has_receipts { HAS_RECEIPTS } else { 0 };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&version.number().to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        let numbers: [u64; NUMBERS] = [
            facts.range.first(),
            facts.range.count(),
            facts.transaction_count,
            facts.log_count,
            facts.token_bytes,
            facts.receipt_token_bytes,
            facts.receipt_payload_bytes,
            *tail_bytes,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(facts.parent_hash.as_slice());
        out.extend_from_slice(facts.last_hash.as_slice());
        out.extend_from_slice(digest);
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out
    }

    /// Reads the last [`FOOTER_BYTES`] of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut cursor = Cursor::new(bytes);
        let found = cursor.array::<8>("magic")?;
        if found != MAGIC {
            return Err(Corrupt::Magic { found, expected: MAGIC });
        }
        let found = u32::from_le_bytes(cursor.array("version")?);
        let known = Version::CURRENT.number();
        let version = Version::of_number(found).ok_or(Corrupt::Version { found, known })?;
        let flags = u32::from_le_bytes(cursor.array("flags")?);
        let mut numbers = [0_u64; NUMBERS];
        for number in &mut numbers {
            *number = u64::from_le_bytes(cursor.array("number")?);
        }
        let parent_hash = cursor.array::<32>("parent hash")?.into();
        let last_hash = cursor.array::<32>("last hash")?.into();
        let digest = cursor.array("digest")?;
        let checked = bytes.len().saturating_sub(cursor.rest().len());
        let expected = u32::from_le_bytes(cursor.array("checksum")?);
        let found = crc32fast::hash(bytes.get(..checked).unwrap_or_default());
        if found != expected || cursor.rest() != [0; 4] {
            return Err(Corrupt::FooterChecksum { found, expected });
        }
        if flags & !HAS_RECEIPTS != 0 {
            return Err(Corrupt::Flags { found: flags });
        }
        let [
            first,
            block_count,
            transaction_count,
            log_count,
            token_bytes,
            receipt_token_bytes,
            receipt_payload_bytes,
            tail_bytes,
        ] = numbers;
        let facts = Facts {
            range: BlockRange::from_count(first, block_count)
                .filter(|range| SegmentShape::of(*range).is_some())
                .ok_or(Corrupt::Range { first, block_count })?,
            parent_hash,
            last_hash,
            has_receipts: flags & HAS_RECEIPTS != 0,
            transaction_count,
            log_count,
            token_bytes,
            receipt_token_bytes,
            receipt_payload_bytes,
        };
        Ok(Self { version, facts, digest, tail_bytes })
    }

    /// The blocks: first and last are in the file's name, beside the digest.
    #[must_use]
    pub fn range(&self) -> BlockRange {
        self.facts.range
    }

    /// The bytes of the tail in a file of `file_bytes`.
    pub fn tail_range(&self, file_bytes: u64) -> Result<Range<u64>, Corrupt> {
        let footer_bytes = u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX);
        let end = file_bytes.checked_sub(footer_bytes);
        let start = end.and_then(|end| end.checked_sub(self.tail_bytes));
        match start.zip(end) {
            Some((start, end)) => Ok(start..end),
            None => Err(Corrupt::TailLength { found: self.tail_bytes, file_bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer(first: u64, count: u64) -> Footer {
        let facts = Facts {
            range: BlockRange::from_count(first, count).unwrap(),
            parent_hash: B256::repeat_byte(1),
            last_hash: B256::repeat_byte(2),
            has_receipts: true,
            transaction_count: 3,
            log_count: 4,
            token_bytes: 5,
            receipt_token_bytes: 6,
            receipt_payload_bytes: 7,
        };
        Footer { version: Version::CURRENT, facts, digest: [8; DIGEST_BYTES], tail_bytes: 9 }
    }

    #[test]
    fn a_footer_comes_back() {
        for footer in [footer(0, 1), footer(8192, 8192), footer(256 * 7 + 3, 200)] {
            let bytes = footer.encode();
            assert_eq!(bytes.len(), FOOTER_BYTES);
            assert_eq!(Footer::parse(&bytes).unwrap(), footer);
        }
    }

    #[test]
    fn blocks_that_make_no_segment_are_refused() {
        for footer in [footer(255, 2), footer(0, 300), footer(1, 8192), footer(0, 16_384)] {
            let fault = Footer::parse(&footer.encode()).unwrap_err();
            assert!(matches!(fault, Corrupt::Range { .. }), "{fault}");
        }
    }
}
