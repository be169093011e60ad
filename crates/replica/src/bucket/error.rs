//! Why a bucket did not do what it was asked.
//!
//! Knows: which failures may pass.
//! Never knows: how often something is tried.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::Duration;

use thiserror::Error;

/// Why a bucket did not do what it was asked.
#[derive(Debug, Error)]
pub enum BucketError {
    /// Not the address of a bucket.
    #[error("{url}: {reason}")]
    Url {
        /// What was given, without credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store refused or failed.
    #[error("{place}: {operation}: {reason}")]
    Failed {
        /// The bucket and the object.
        place: String,
        /// What was to be done.
        operation: &'static str,
        /// The store's word.
        reason: String,
        /// Whether it may do so another time.
        is_passing: bool,
    },
    /// The store did not answer in time.
    #[error("{place}: {operation}: no answer within {} s", timeout.as_secs_f64())]
    TimedOut {
        /// The bucket and the object.
        place: String,
        /// What was to be done.
        operation: &'static str,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// There is no such object.
    #[error("{place}: {operation}: there is no such object")]
    Missing {
        /// The bucket and the object.
        place: String,
        /// What was to be done.
        operation: &'static str,
    },
    /// An answer ended too early, or went on too long.
    #[error("{place}: {reason}")]
    Torn {
        /// The bucket and the object.
        place: String,
        /// How many bytes there were.
        reason: String,
    },
    /// An object is not what its name says.
    #[error("{place}: {reason}")]
    Damaged {
        /// The bucket and the object.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An object longer than its reader takes.
    #[error("{place}: {bytes} bytes, at most {bytes_max} are read")]
    TooLarge {
        /// The bucket and the object.
        place: String,
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        bytes_max: u64,
    },
    /// A web server, which is only read.
    #[error("{place} is a web server, which can be read and not written")]
    ReadOnly {
        /// The bucket.
        place: String,
    },
}

impl BucketError {
    /// What the store said of an object.
    pub(crate) fn from_store(
        place: String,
        operation: &'static str,
        cause: &object_store::Error,
    ) -> Self {
        use object_store::Error as Cause;
        if matches!(cause, Cause::NotFound { .. }) {
            return Self::Missing { place, operation };
        }
        let is_passing = matches!(cause, Cause::Generic { .. } | Cause::JoinError { .. });
        Self::Failed { place, operation, reason: whole_cause(cause), is_passing }
    }

    /// Whether there is no such object.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// Whether the same request may succeed another time.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Failed { is_passing: true, .. } | Self::TimedOut { .. } | Self::Torn { .. }
        )
    }

    /// Whether the bytes of one object are at fault, not the store.
    #[must_use]
    pub fn is_of_object(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Damaged { .. } | Self::TooLarge { .. } | Self::Torn { .. }
        )
    }
}

/// An error with the causes that its own text does not repeat.
pub(crate) fn whole_cause(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}
