//! Disks for tests.

pub mod faulty;

// `faulty` names these by `crate::disk`, which is the same here and in `store`, whose unit tests compile
// it too.
use store::disk::{
    CachedRead, DataFile, Disk, DiskError, FileVersion, LockGuard, LockHolder, Operation,
    WritableFile, is_file_name, range_bytes,
};
