//! Why a mirror did not give a file, and why a file could not be had at all.
//!
//! Knows: which failures pass, which are the mirror's last word on a file, which are false bytes.
//! Never knows: which mirror it was; whoever asked does.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::B256;
use archive::shown;
use thiserror::Error;

use super::list::ListFault;
use crate::upstream::AskError;

/// Other files of an era that are told one by one when none of them could be had.
const OTHERS_SHOWN_MAX: usize = 4;

/// Why a mirror did not give what it was asked for.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MirrorFault {
    /// It did not answer, or broke off.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// It says that the file is not there.
    #[error("not there (HTTP {status})")]
    Missing {
        /// The status code.
        status: u16,
    },
    /// No bytes for too long, or too few.
    #[error("less than 64 KiB in {} s", .0.as_secs())]
    Stalled(Duration),
    /// A part that was not asked for.
    #[error("sends another part of the file than was asked for: {0}")]
    OtherPart(String),
    /// It leads elsewhere, and that is not followed.
    #[error("leads elsewhere: {0}")]
    Redirect(String),
    /// Not the bytes of the file.
    #[error("sends the file encoded as {0}")]
    Encoded(String),
    /// More bytes than a file may have.
    #[error("sends more than {bytes_max} bytes")]
    TooLarge {
        /// How many are taken.
        bytes_max: u64,
    },
    /// Other bytes than it lists.
    #[error("SHA-256 is {found}, its list says {expected}")]
    Checksum {
        /// Of what came.
        found: B256,
        /// What it lists.
        expected: B256,
    },
    /// The import refused what it sent.
    #[error("{0}")]
    Refused(String),
}

/// What a failure says of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorFaultKind {
    /// Another time may do: the mirror rests.
    Passing,
    /// Its last word on this file.
    Lasting,
    /// It sent what is false.
    False,
}

impl MirrorFault {
    /// What it says of the mirror.
    pub(super) fn kind(&self) -> MirrorFaultKind {
        match self {
            Self::Ask(AskError::Status { status: 400..=499, .. }) if !self.is_pressure() => {
                MirrorFaultKind::Lasting
            }
            // The same list is as long the next time.
            Self::Ask(AskError::TooLarge { .. })
            | Self::Missing { .. }
            | Self::Redirect(_)
            | Self::Encoded(_) => MirrorFaultKind::Lasting,
            Self::Ask(_) | Self::Stalled(_) | Self::OtherPart(_) => MirrorFaultKind::Passing,
            Self::TooLarge { .. } | Self::Checksum { .. } | Self::Refused(_) => {
                MirrorFaultKind::False
            }
        }
    }

    /// Whether the mirror asks to be left alone for a while.
    fn is_pressure(&self) -> bool {
        matches!(self, Self::Ask(AskError::Status { status: 408 | 425 | 429, .. }))
    }

    /// How long the mirror asks us to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Ask(error) => error.retry_after(),
            Self::Missing { .. }
            | Self::Stalled(_)
            | Self::OtherPart(_)
            | Self::Redirect(_)
            | Self::Encoded(_)
            | Self::TooLarge { .. }
            | Self::Checksum { .. }
            | Self::Refused(_) => None,
        }
    }
}

/// Why there is no list of a mirror.
#[derive(Debug, Error)]
pub enum ListError {
    /// The mirror did not give it.
    #[error("{list}: {fault}")]
    Mirror {
        /// The list.
        list: String,
        /// Why.
        fault: MirrorFault,
    },
    /// What it gave is no list.
    #[error(transparent)]
    List(#[from] ListFault),
    /// It came too late: the work goes on with the lists of others, if there are any.
    #[error("no list within {} s{}", .time.as_secs(), if *.is_after { " of another mirror's" } else { "" })]
    Late {
        /// How long it was waited for.
        time: Duration,
        /// Whether that was since another mirror's list came.
        is_after: bool,
    },
    /// It has none.
    #[error("has neither checksums_sha256.txt nor urls.txt")]
    NoList,
}

/// Why a file could not be downloaded.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// No mirror gives it.
    #[error("{file}: no mirror gives one that can be taken{}", lines(.said))]
    NoMirror {
        /// The file.
        file: String,
        /// What became of each mirror.
        said: Vec<String>,
    },
    /// All that could give it failed for too long.
    #[error("{file}: less than 64 KiB of it came in {} s{}", .patience.as_secs(), lines(.said))]
    Quiet {
        /// The file.
        file: String,
        /// How long it was tried.
        patience: Duration,
        /// What became of each mirror.
        said: Vec<String>,
    },
    /// A file of the user's is in its place.
    #[error("{}: is there already, and is not what the mirrors have: {said}", shown(.path))]
    Occupied {
        /// The file.
        path: PathBuf,
        /// Why not.
        said: String,
    },
    /// Another process downloads to the same place.
    #[error("{}: another process downloads to it", shown(.path))]
    Locked {
        /// The file or folder.
        path: PathBuf,
    },
    /// The disk failed.
    #[error("{}: {cause}", shown(.path))]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

impl DownloadError {
    /// The same, with what became of other files of the same era that could not be had either: each may
    /// be another name for the same blocks, and its mirrors are others.
    #[must_use]
    pub(super) fn with_others(mut self, others: &[Self]) -> Self {
        let (Self::NoMirror { said, .. } | Self::Quiet { said, .. }) = &mut self else {
            return self;
        };
        let shown = others.iter().take(OTHERS_SHOWN_MAX);
        said.extend(shown.map(|other| format!("also {}", other.to_string().replace('\n', "\n  "))));
        if let more @ 1.. = others.len().saturating_sub(OTHERS_SHOWN_MAX) {
            said.push(format!("also {more} more of this era"));
        }
        self
    }

    /// The file that could not be had because of its mirrors.
    #[must_use]
    pub fn file_of_mirrors(&self) -> Option<&str> {
        match self {
            Self::NoMirror { file, .. } | Self::Quiet { file, .. } => Some(file),
            Self::Occupied { .. } | Self::Locked { .. } | Self::Disk { .. } | Self::Stopped => None,
        }
    }
}

fn lines(said: &[String]) -> String {
    let begin = if said.is_empty() { "" } else { "\n  " };
    format!("{begin}{}", said.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_other_files_is_told_below_and_not_without_end() {
        let lost = |file: &str| {
            let said = vec![format!("http://{file}.example/: not there")];
            DownloadError::NoMirror { file: file.to_owned(), said }
        };
        let others = ["b", "c", "d", "e", "f", "g"].map(lost);
        let said = lost("a").with_others(others.get(..1).unwrap()).to_string();
        let expected = "a: no mirror gives one that can be taken\n  http://a.example/: not there\n  \
                        also b: no mirror gives one that can be taken\n    http://b.example/: not there";
        assert_eq!(said, expected);
        let said = lost("a").with_others(&others).to_string();
        assert!(said.contains("also e: ") && !said.contains("also f: "), "{said}");
        assert!(said.ends_with("\n  also 2 more of this era"), "{said}");
    }

    #[test]
    fn failures_pass_or_last_or_are_lies() {
        let status = |status| {
            let (retry_after, begin) = (None, String::new());
            MirrorFault::Ask(AskError::Status { status, retry_after, begin }).kind()
        };
        for code in [408, 425, 429, 500, 502, 503] {
            assert_eq!(status(code), MirrorFaultKind::Passing, "{code}");
        }
        for code in [400, 401, 403, 451] {
            assert_eq!(status(code), MirrorFaultKind::Lasting, "{code}");
        }
        assert_eq!(MirrorFault::Missing { status: 404 }.kind(), MirrorFaultKind::Lasting);
        let too_large = MirrorFault::Ask(AskError::TooLarge { bytes_max: 1 });
        assert_eq!(too_large.kind(), MirrorFaultKind::Lasting);
        assert_eq!(MirrorFault::Refused(String::new()).kind(), MirrorFaultKind::False);
    }
}
