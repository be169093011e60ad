//! One data folder: what is live in it, who may write to it, and the disk beneath.
//!
//! Knows: file names, the manifest, the order of operations that makes a crash harmless.
//! Never knows: who supplies blocks, who asks for them, the network.
//!
//! ```
//! use std::sync::Arc;
//!
//! use chain::ChainSpec;
//! use store::disk::Folder;
//! use store::read::Inline;
//! use store::{Limits, Store, Writer};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let disk = Arc::new(Folder::create(folder.path()).unwrap());
//! let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
//! let spec = ChainSpec::bare("private", Some(1337), None);
//! let writer = Writer::open(Arc::clone(&store), spec.clone()).unwrap();
//! assert!(store.view().coverage().is_empty());
//! // A folder has one writer.
//! assert!(Writer::open(store, spec).is_err());
//! drop(writer);
//! ```

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
mod log_query;
mod lookups;
pub mod manifest;
mod missing_file;
pub mod names;
pub mod notice;
mod part;
mod presence;
mod published;
pub mod read;
mod reader;
pub mod repair;
pub mod stat;
mod store;
mod view;
mod writer;

// What builders of segments need of the format, so that they need not know it.
pub use segment::{
    Census, GROUP_BLOCKS, SLOT_BLOCKS, YOUNG_SLOT_BLOCKS, count_block, counted_blocks, groups,
};
// What reads ask for and give back.
pub use segment::{
    BlockExtras, GasAndLogsBefore, LogView, ReceiptView, Row, RowParts, RowSet, RowView, TxIndex,
};
// Why blocks could not be encoded, which errors tell.
pub use segment::WriteFault;

pub use block_id::BlockId;
pub use draft::{Draft, Group, GroupEncoder, NewSegment};
pub use error::StoreError;
pub use files::{FileSource, LocalFiles};
pub use finality::Finality;
pub use limits::Limits;
pub use log_query::{BloomQuery, LogQuery};
pub use lookups::{SegmentKeys, merge_run_files};
pub use missing_file::MissingFile;
pub use published::PublishedHistory;
pub use reader::{ReadCounts, Reader};
pub use segment::index::RunSubject;
pub use store::{CurrentView, FileFault, Store, Watcher};
pub use view::{
    BlockFacts, HashedBlock, LogSearch, LoggedRows, OpenTails, StoredBlock, StoredHeader,
    StoredTransaction, View,
};
pub use writer::{CommitFacts, Drafting, PreparedSegments, Writer};
