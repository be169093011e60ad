//! Sealed files in an object store: how they travel there and back, and how they are read in place.
//!
//! Knows: the objects of a bucket, the order that makes a half-done upload harmless, ranged reads.
//! Never knows: JSON, HTTP serving, who supplies blocks, which chain is canonical.
//!
//! A bucket holds files that are named by their content, and manifests that are named by theirs. What
//! it holds is the union of all manifests, so publishers need not know of each other.

mod bucket;
mod fetch;
mod listed_file;
mod object_names;
mod published;
mod range_cache;
mod read_ahead;
mod remote_counts;
mod remote_files;
mod signed_text;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use fetch::ReadSettings;
pub use listed_file::{DigestCheck, FileKind, FileMismatch, ListedFile, listed_files};
pub use published::{BucketFault, Published, PublishedManifest, read_published};
pub use range_cache::{DiskCacheSettings, RangeCache, RangeCacheSettings};
pub use remote_counts::RemoteCounts;
pub use remote_files::RemoteFiles;
