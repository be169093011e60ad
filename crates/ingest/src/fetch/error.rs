//! Failures of mirrors, and files that could not be downloaded.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::B256;
use archive::shown;
use thiserror::Error;

use super::list::ListFault;

/// Other files of an era that are named when none of them could be downloaded.
const OTHERS_SHOWN_MAX: usize = 4;

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A retry after a pause may succeed.
    Passing,
    /// Too few bytes came: other mirrors come first from now on.
    Slow,
    /// A retry cannot succeed.
    Lasting,
    /// Wrong bytes: the mirror comes last from now on.
    False,
}

/// A request to a mirror that failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text}")]
pub struct MirrorFault {
    /// What follows from it.
    pub kind: FaultKind,
    /// Whether the mirror says that the file is not there.
    pub(super) is_missing: bool,
    text: String,
    /// The pause that the mirror asked for.
    pub(super) retry_after: Option<Duration>,
}

impl MirrorFault {
    pub(super) fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self { kind, is_missing: false, text: text.into(), retry_after: None }
    }

    /// A response with another status than that of a file.
    pub(super) fn status(status: u16, retry_after: Option<Duration>) -> Self {
        let is_missing = matches!(status, 404 | 410);
        let kind = match status {
            408 | 425 | 429 | 500.. => FaultKind::Passing,
            _ => FaultKind::Lasting,
        };
        let text = if is_missing {
            format!("not there (HTTP {status})")
        } else {
            format!("HTTP {status}")
        };
        Self { kind, is_missing, text, retry_after }
    }

    pub(super) fn too_large(bytes_max: u64) -> Self {
        Self::new(FaultKind::False, format!("sends more than {bytes_max} bytes"))
    }

    pub(super) fn checksum(found: B256, expected: B256) -> Self {
        Self::new(FaultKind::False, format!("SHA-256 is {found}, its list says {expected}"))
    }
}

/// Why a mirror has no list.
#[derive(Debug, Error)]
pub enum ListError {
    /// The request failed.
    #[error("{list}: {fault}")]
    Mirror {
        /// The list.
        list: &'static str,
        /// Why.
        fault: MirrorFault,
    },
    /// What came is no list.
    #[error(transparent)]
    List(#[from] ListFault),
    /// It came too late: the fetch goes on without it.
    #[error("no list within {} s", .0.as_secs())]
    Late(Duration),
    /// Neither list exists.
    #[error("has neither checksums_sha256.txt nor urls.txt")]
    NoList,
}

/// Why a file could not be downloaded.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// Every mirror of the file failed.
    #[error("{file}: no mirror gives one that can be taken{}", lines(.said))]
    NoMirror {
        /// The file.
        file: String,
        /// The last failure of each mirror.
        said: Vec<String>,
    },
    /// A file of the user has its name.
    #[error("{}: is there already, and is not what the mirrors have: {said}", shown(.path))]
    Occupied {
        /// The file.
        path: PathBuf,
        /// The difference.
        said: String,
    },
    /// Another process downloads to the same folder.
    #[error("{}: another process downloads to it", shown(.path))]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The disk failed.
    #[error("{}: {cause}", shown(.path))]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

impl DownloadError {
    /// The same error with those of other files of the era, each of which may have the same blocks.
    #[must_use]
    pub(super) fn with_others(mut self, others: &[Self]) -> Self {
        if let Self::NoMirror { said, .. } = &mut self {
            let shown = others.iter().take(OTHERS_SHOWN_MAX);
            said.extend(shown.map(|it| format!("also {}", it.to_string().replace('\n', "\n  "))));
            if let more @ 1.. = others.len().saturating_sub(OTHERS_SHOWN_MAX) {
                said.push(format!("also {more} more of this era"));
            }
        }
        self
    }
}

fn lines(said: &[String]) -> String {
    said.iter().flat_map(|line| ["\n  ", line]).collect()
}
