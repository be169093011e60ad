//! The bytes of immutable files: verified blocks as rows and pages, and lookups by hash.
//!
//! Knows: how blocks become bytes and come back bit for bit, checksums, and which bytes a reader
//! needs next.
//! Never knows: where the bytes live, who reads them, which chain is canonical.

mod bytes;
mod corrupt;
mod file;
mod late;
pub mod lookup;
mod page;
mod rlp;
mod row;
mod row_set;
mod tables;
mod token;

pub use corrupt::{Corrupt, PageFault, RowFault};
pub use file::block::BlockPlace;
pub use file::encode::{EncodedGroup, Encoder, count_block};
pub use file::footer::{FOOTER_BYTES, Facts, Footer};
pub use file::read::{HeaderRecord, Others, PagePlace, PartBytes, RowPlace, RowPosition, Segment};
pub use file::shape::{
    GROUP_BLOCKS, SLOT_BLOCKS, SegmentShape, YOUNG_SLOT_BLOCKS, counted_blocks, groups, is_counted,
};
pub use file::write::SegmentWriter;
pub use file::write_fault::WriteFault;
pub use page::{Before, Inflater, Rows, RowsRoom};
pub use row::Wanted;
pub use row_set::{LogView, ReceiptView, Row, RowIter, RowSet, RowView};
pub use tables::{Census, Tables};
