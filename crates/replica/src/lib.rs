//! Sealed files in an object store: how they travel there and back, and how they are read in place.
//!
//! Knows: the objects of a bucket, the order that makes a half-done upload harmless, ranged reads.
//! Never knows: JSON, HTTP serving, who supplies blocks, which chain is canonical.
//!
//! A bucket holds files that are named by their content, and manifests that are named by theirs. What
//! it holds is the union of all manifests, so publishers need not know of each other.

mod bucket;
mod check;
mod copy_ahead;
mod copy_files;
mod download;
mod fetch;
mod merge_runs;
mod object_names;
mod pin;
mod progress;
mod prune;
mod publish;
mod published;
mod range_cache;
mod read_ahead;
mod reencode;
mod remote_counts;
mod remote_files;
mod retract;
#[cfg(test)]
mod scripted_store;
mod sealed_file;
mod signed_text;
mod supersede;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use check::{BucketReport, check};
pub use copy_ahead::{CopyOutcome, copy_ahead};
pub use copy_files::{CopiedFiles, CopyError, copy_files};
pub use fetch::RangeReadSettings;
pub use merge_runs::{MergedRuns, RunMergeError, merge_runs};
pub use pin::{pin_files, pin_held, unpin_others};
pub use progress::PublishProgress;
pub use prune::{Pruning, prune};
pub use publish::{Publication, PublishError, PublishTask, publish};
#[doc(hidden)]
pub use published::decode_published_manifest;
pub use published::{BucketFault, Published, PublishedManifest, read_published};
pub use range_cache::{DiskCacheSettings, RangeCache, RangeCacheSettings};
#[doc(hidden)]
pub use reencode::{reencode_bucket_text, reencode_cache_file};
pub use remote_counts::RemoteCounts;
pub use remote_files::RemoteFiles;
pub use retract::{retract, segments_within};
pub use sealed_file::{DigestCheck, FileKind, FileMismatch, SealedFile, listed_files};
