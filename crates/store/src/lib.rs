//! One data folder: what is live in it, who may write to it, and the disk beneath.
//!
//! Knows: file names, the manifest, the order of operations that makes a crash harmless.
//! Never knows: who supplies blocks, who asks for them, the network.

mod block_id;
pub mod check;
pub mod disk;
mod draft;
mod error;
mod files;
mod finality;
mod footer;
pub mod genesis_file;
pub mod head;
mod head_reader;
pub mod journal;
pub mod layout;
mod limits;
pub mod lock;
mod lookups;
pub mod manifest;
#[cfg(test)]
mod model;
pub mod names;
pub mod notice;
mod part;
mod presence;
pub mod read;
mod reader;
pub mod repair;
pub mod stat;
mod store;
mod view;
mod writer;

// What builders of segments need of the format, so that they need not know it.
pub use segment::{
    Census, GROUP_BLOCKS, SLOT_BLOCKS, Tables, YOUNG_SLOT_BLOCKS, count_block, counted_blocks,
    groups, is_counted,
};
// What reads ask for and give back.
pub use segment::{Before, LogView, Others, ReceiptView, Row, RowSet, RowView, Wanted};

pub use block_id::BlockId;
pub use draft::{Draft, Group, GroupEncoder, NewSegment};
pub use error::StoreError;
pub use files::{FileSource, LocalFiles};
pub use finality::Finality;
pub use limits::Limits;
pub use lookups::SegmentKeys;
pub use reader::Reader;
pub use store::{CurrentView, Store, Watcher};
pub use view::{BlockFacts, HashedBlock, StoredBlock, StoredHeader, StoredTransaction, View};
pub use writer::{Drafting, PreparedSegments, Told, Writer};
