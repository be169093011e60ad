//! Why a bucket did not do what it was asked.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use store::disk::DiskError;
use thiserror::Error;

use super::UPKEEP_FACTOR;

/// Where clients ask the machine for credentials if nothing else has any: of Amazon, Google and Azure.
const METADATA_PATHS: [&str; 4] =
    ["/latest/api/token", "/latest/meta-data/", "/computeMetadata/", "/metadata/identity/"];

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
        /// Whether it lacks or refuses credentials.
        is_denied: bool,
        /// What the system says, if it is the cause.
        system: Option<io::ErrorKind>,
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
    /// The store sends so little that it would never end.
    #[error("{place}: {operation}: only {bytes} bytes within {} s", timeout.as_secs_f64())]
    TooSlow {
        /// The bucket and the object.
        place: String,
        /// What was to be done.
        operation: &'static str,
        /// What came.
        bytes: u64,
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
    /// In a folder, something that is no regular file: to open a FIFO would wait for its other end.
    #[error("{place}: {operation}: this is {kind}, not a file; remove it")]
    NotAFile {
        /// The bucket and the object.
        place: String,
        /// What was to be done.
        operation: &'static str,
        /// What is there, with its article.
        kind: &'static str,
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
    /// More manifests and retractions than are read of one bucket.
    #[error(
        "{place}: more than {max} {what} are listed, and no more are read; quipu merge and quipu prune with \
         --at URL take up to {UPKEEP_FACTOR} times as many and leave the manifests that are needed, and all \
         retractions; if there are more, remove them by hand and see who may write there"
    )]
    TooMany {
        /// The bucket and the folder.
        place: String,
        /// What there is too much of.
        what: &'static str,
        /// How many are read.
        max: u64,
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
        if let Some(kind) = irregular_kind(cause) {
            return Self::NotAFile { place, operation, kind };
        }
        let is_passing = matches!(cause, Cause::Generic { .. } | Cause::JoinError { .. });
        let mut reason = whole_cause(cause);
        let is_without_credentials = METADATA_PATHS.iter().any(|path| reason.contains(path));
        if is_without_credentials {
            reason = String::from(
                "no credentials: neither the environment nor the metadata service of a cloud \
                 machine has any",
            );
        }
        let is_denied = is_without_credentials
            || matches!(cause, Cause::Unauthenticated { .. } | Cause::PermissionDenied { .. });
        Self::Failed { place, operation, reason, is_passing, is_denied, system: system_kind(cause) }
    }

    /// The bucket, and the object if there is one.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Url { url, .. } => url,
            Self::Failed { place, .. }
            | Self::TimedOut { place, .. }
            | Self::TooSlow { place, .. }
            | Self::Missing { place, .. }
            | Self::NotAFile { place, .. }
            | Self::Torn { place, .. }
            | Self::Damaged { place, .. }
            | Self::TooLarge { place, .. }
            | Self::TooMany { place, .. }
            | Self::ReadOnly { place } => place,
        }
    }

    /// What the system says, if it is the cause.
    #[must_use]
    pub fn system_kind(&self) -> Option<io::ErrorKind> {
        if let Self::Failed { system, .. } = self { *system } else { None }
    }

    /// Whether the store lacks or refuses credentials.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Failed { is_denied: true, .. })
    }

    /// What is wrong, for whoever names the object.
    #[must_use]
    pub(crate) fn reason(&self) -> String {
        let said = self.to_string();
        let reason = said.strip_prefix(self.place()).and_then(|rest| rest.strip_prefix(": "));
        reason.unwrap_or(&said).to_owned()
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
            Self::Failed { is_passing: true, .. }
                | Self::TimedOut { .. }
                | Self::TooSlow { .. }
                | Self::Torn { .. }
        )
    }

    /// Whether the bytes of one object are at fault, not the store.
    #[must_use]
    pub fn is_of_object(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::NotAFile { .. }
                | Self::Damaged { .. }
                | Self::TooLarge { .. }
                | Self::Torn { .. }
        )
    }
}

/// What the system says, wherever it stands among the causes.
fn system_kind(cause: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let of_system = cause.downcast_ref().map(io::Error::kind);
    let of_disk = || cause.downcast_ref().and_then(DiskError::system_kind);
    of_system.or_else(of_disk).or_else(|| system_kind(cause.source()?))
}

/// What a bucket in a folder refused to open.
fn irregular_kind(cause: &object_store::Error) -> Option<&'static str> {
    let object_store::Error::NotSupported { source } = cause else { return None };
    let DiskError::NotAFile { kind, .. } = source.downcast_ref()? else { return None };
    Some(kind)
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

#[cfg(test)]
mod tests {
    use store::disk::Operation;

    use super::*;

    #[test]
    fn what_the_system_says_is_found_among_the_causes() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let of_disk = DiskError::Failed {
            place: "blocks".to_owned(),
            operation: Operation::Write,
            cause: full(),
        };
        let sources: [Box<dyn StdError + Send + Sync>; 2] = [full().into(), of_disk.into()];
        for source in sources {
            let cause = object_store::Error::Generic { store: "folder", source };
            let error = BucketError::from_store("file:///b: a".to_owned(), "put", &cause);
            assert_eq!(error.system_kind(), Some(io::ErrorKind::StorageFull));
            assert!(!error.is_denied());
        }
    }
}
