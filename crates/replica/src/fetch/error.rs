//! Why a range did not come.

use std::io;
use std::ops::Range;

use store::disk::{DiskError, Operation};
use thiserror::Error;

use crate::bucket::BucketError;

/// Why a range did not come.
#[derive(Debug, Error)]
pub(crate) enum RangeFetchError {
    /// The store refused, failed, or did not answer in time.
    #[error("{place}: bytes {}..{}, attempt {attempts}: {cause}", range.start, range.end)]
    Failed { place: String, range: Range<u64>, attempts: u32, cause: BucketError },
    /// Other bytes came than were asked for.
    #[error("{place}: bytes {}..{}: others came", range.start, range.end)]
    Torn { place: String, range: Range<u64> },
    /// The object is not as long as the file is listed to be.
    #[error("{place}: the object has {found} bytes, {file_bytes} are listed")]
    Length { place: String, found: u64, file_bytes: u64 },
    /// No such object.
    #[error("{place}: there is no such object")]
    Missing { place: String },
    /// In a bucket that is a folder, something that is no regular file.
    #[error("{place}: this is {kind}, not a file")]
    NotAFile { place: String, kind: &'static str },
    /// The runtime that fetches has ended.
    #[error("{place}: the runtime that fetches has ended")]
    Ended { place: String },
}

impl RangeFetchError {
    /// The same, as whoever reads files knows it.
    pub(crate) fn to_disk_error(&self) -> DiskError {
        match self {
            Self::Missing { place } => {
                DiskError::Missing { place: place.clone(), operation: Operation::Read }
            }
            Self::NotAFile { place, kind } => {
                DiskError::NotAFile { place: place.clone(), operation: Operation::Read, kind }
            }
            Self::Length { place, found, file_bytes } => {
                DiskError::Shrunk { place: place.clone(), file_bytes: *file_bytes, found: *found }
            }
            Self::Ended { place } => DiskError::PoolClosed { place: place.clone() },
            Self::Failed { place, range, attempts, cause } => {
                let text = format!("bytes {}..{}: {cause}", range.start, range.end);
                let text = format!("{text} ({attempts} attempts)");
                failed(place, text)
            }
            Self::Torn { place, range } => {
                failed(place, format!("bytes {}..{}: others came", range.start, range.end))
            }
        }
    }
}

fn failed(place: &str, text: String) -> DiskError {
    let cause = io::Error::other(text);
    DiskError::Failed { place: place.to_owned(), operation: Operation::Read, cause }
}
