//! One data folder: what is live in it, who may write to it, and the disk beneath.
//!
//! Knows: file names, the manifest, the order of operations that makes a crash harmless.
//! Never knows: who supplies blocks, who asks for them, the network.

pub mod disk;
mod error;
pub mod head;
pub mod layout;
pub mod lock;
mod lookups;
pub mod manifest;
pub mod names;
mod part;
pub mod read;

pub use error::StoreError;
pub use lookups::SegmentKeys;
