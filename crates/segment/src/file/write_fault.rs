//! Why blocks cannot be written into a segment.

use chain::BlockRange;
use thiserror::Error;

use crate::corrupt::PageFault;

/// Why blocks cannot be written.
#[derive(Debug, Error)]
pub enum WriteFault {
    /// Blocks that make no segment.
    #[error("blocks {0}: neither inside one slot of 256 nor a whole one of 8192")]
    Shape(BlockRange),
    /// A group without blocks.
    #[error("a group has at least one block")]
    Empty,
    /// Blocks that are not all that the segment has of a group.
    #[error("blocks {first}..{last} are not what the segment has of one group of 16")]
    NotGroup {
        /// The first block.
        first: u64,
        /// The last.
        last: u64,
    },
    /// Not the block after the one before.
    #[error("block {found}, expected {expected}")]
    NotNext {
        /// The block that was given.
        found: u64,
        /// The one that comes next.
        expected: u64,
    },
    /// Not the child of the block before.
    #[error("block {number} is not the child of the block before")]
    NotChild {
        /// The block that was given.
        number: u64,
    },
    /// Receipts are in every block of a segment or in none.
    #[error("block {number} {} receipts, unlike its segment", if *.has_receipts { "has" } else { "has no" })]
    ReceiptsPresence {
        /// The block.
        number: u64,
        /// Whether it has receipts.
        has_receipts: bool,
    },
    /// Encoded by other tables, of which readers would see other values.
    #[error("block {number} was encoded with the tables of another segment")]
    OtherTables {
        /// The group's first block.
        number: u64,
    },
    /// The segment is finished before its last block.
    #[error("blocks end before {expected}, the segment is {range}")]
    Missing {
        /// The block that comes next.
        expected: u64,
        /// The segment's blocks.
        range: BlockRange,
    },
    /// A row did not come back as it went in: a bug, and nothing was written.
    #[error("block {number}, transaction {index}: does not come back to the byte")]
    NotExact {
        /// The block.
        number: u64,
        /// Position in the block.
        index: usize,
    },
    /// zstd refused.
    #[error(transparent)]
    Page(#[from] PageFault),
}
