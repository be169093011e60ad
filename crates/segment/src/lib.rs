//! The bytes of immutable files: verified blocks as rows and pages, and indexes.
//!
//! Knows: how blocks become bytes and come back bit for bit, checksums, and which bytes a reader
//! needs next.
//! Never knows: where the bytes live, who reads them, which chain is canonical.
//!
//! An index keeps 39 bits of a hash, so what it finds must be hashed again:
//!
//! ```
//! use alloy_primitives::keccak256;
//! use segment::index::{IndexKey, OrdinalsBuilder, Position, Run, RunSpan, RunSubject};
//!
//! let span = RunSpan::new(0, 1).unwrap();
//! let mut builder = OrdinalsBuilder::new(RunSubject::Transactions, span);
//! let position = Position { slot: 0, ordinal: 7 };
//! builder.push(&keccak256("a transaction"), position).unwrap();
//! let file = builder.finish().unwrap();
//!
//! let run = Run::from_file(&file).unwrap();
//! let key = IndexKey::of_hash(&keccak256("a transaction"));
//! let bucket = run.bucket_range(key);
//! let found = run.probe(key, &file[bucket.start as usize..bucket.end as usize]).unwrap();
//! assert_eq!(found.into_iter().collect::<Vec<_>>(), [position]);
//! ```

mod bytes;
mod corrupt;
mod file;
pub mod index;
mod page;
mod rlp;
mod row;
mod row_set;
mod tables;
mod token;
mod tx_position;

pub use bytes::slice;
pub use corrupt::{Corrupt, PageFault, RowFault};
pub use file::block::BlockPlace;
pub use file::encode::{EncodedGroup, Encoder, count_block};
pub use file::footer::{FOOTER_BYTES, Footer, SegmentFacts};
pub use file::read::{
    BlockExtras, HeaderRecord, PagePlace, PartBytes, RowPlace, RowPosition, Segment,
};
pub use file::shape::{
    GROUP_BLOCKS, SLOT_BLOCKS, SegmentShape, YOUNG_SLOT_BLOCKS, counted_blocks, groups, is_counted,
};
pub use file::write::SegmentWriter;
pub use file::write_fault::WriteFault;
pub use page::{GasAndLogsBefore, Inflater, Rows, RowsRoom};
pub use row::RowParts;
pub use row_set::{LogView, ReceiptView, Row, RowIter, RowSet, RowView};
pub use tables::{Census, Tables};
pub use tx_position::{TxIndex, TxOrdinal};
