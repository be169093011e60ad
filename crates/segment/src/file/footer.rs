//! The footer: what a segment says about itself in its last bytes.
//!
//! It has nothing that the blocks themselves do not say: equal blocks give equal footers.

use std::ops::Range;

use alloy_primitives::B256;
use chain::BlockRange;

use super::shape::SegmentShape;
use crate::bytes::Cursor;
use crate::corrupt::Corrupt;

/// The footer's length: the last bytes of every segment.
pub const FOOTER_BYTES: usize = MAGIC.len() + 4 + 4 + NUMBERS * 8 + 32 + 32 + DIGEST_BYTES + 4 + 4;
const _: () = assert!(FOOTER_BYTES == 184, "docs/format.md draws 184 bytes");
const DIGEST_BYTES: usize = 32;
const NUMBERS: usize = 8;

/// The version of the format. Other bytes for the same blocks need another number, one that no file
/// has ever had.
const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"QuipuSeg";
/// How the footers of development builds begin.
const UNRELEASED_MAGIC: [u8; 8] = *b"QUIPUSEG";

const HAS_RECEIPTS: u32 = 1 << 0;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
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
    /// What the segment says about itself. Its range and the digest are the file's name.
    pub facts: SegmentFacts,
    /// SHA-256 of everything before the footer.
    pub digest: [u8; DIGEST_BYTES],
    pub(super) tail_bytes: u64,
}

impl Footer {
    /// The last bytes of a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { facts, digest, tail_bytes } = self;
        let flags = if facts.has_receipts { HAS_RECEIPTS } else { 0 };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
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
        if found == UNRELEASED_MAGIC {
            return Err(Corrupt::Unreleased);
        }
        if found != MAGIC {
            return Err(Corrupt::Magic { found, expected: MAGIC });
        }
        let version = u32::from_le_bytes(cursor.array("version")?);
        if version != VERSION {
            return Err(Corrupt::Version { found: version, known: VERSION });
        }
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
        let facts = SegmentFacts {
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
        Ok(Self { facts, digest, tail_bytes })
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
        let facts = SegmentFacts {
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
        Footer { facts, digest: [8; DIGEST_BYTES], tail_bytes: 9 }
    }

    #[test]
    fn a_footer_comes_back() {
        for footer in [footer(0, 1), footer(8192, 8192), footer(256 * 7 + 3, 200)] {
            let bytes = footer.encode();
            assert_eq!(bytes.len(), FOOTER_BYTES);
            assert_eq!(Footer::parse(&bytes).unwrap(), footer);
        }
    }

    /// A footer with another version, and the checksum that belongs to it.
    fn of_version(version: u32) -> Vec<u8> {
        let mut bytes = footer(0, 1).encode();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..176]);
        bytes[176..180].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn files_of_development_builds_and_of_later_builds_are_refused() {
        assert_eq!(Footer::parse(&of_version(VERSION)).unwrap(), footer(0, 1));
        for version in [0, 2, u32::MAX] {
            let fault = Footer::parse(&of_version(version)).unwrap_err();
            assert!(matches!(fault, Corrupt::Version { known: 1, .. }), "{fault}");
            let old = [&UNRELEASED_MAGIC, &of_version(version)[8..]].concat();
            let fault = Footer::parse(&old).unwrap_err();
            assert!(matches!(fault, Corrupt::Unreleased), "{fault}");
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
