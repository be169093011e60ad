//! Sealed files in an object store: how they travel there and back, and how they are read in place.
//!
//! Knows: the objects of a bucket, the order that makes a half-done upload harmless, ranged reads.
//! Never knows: JSON, HTTP serving, who supplies blocks, which chain is canonical.
//!
//! A bucket holds files that are named by their content, and manifests that are named by theirs. What
//! it holds is the union of all manifests, so publishers need not know of each other.

mod bucket;
mod listed_file;
mod object_names;
mod published;
mod signed_text;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use listed_file::{DigestCheck, FileKind, FileMismatch, ListedFile, listed_files};
pub use published::{BucketFault, Published, PublishedManifest, read_published};
