//! Archives from mirrors: listed, downloaded with resume, and handed to the import.
//!
//! Mirrors are asked in the order in which they are given. A download that is cut, killed or moved to
//! another mirror goes on with the byte where it ended. While one file is imported, the next two
//! download: at most three are on disk.

mod catalog;
mod download;
mod error;
mod folder;
mod held;
mod http;
mod list;
mod mirror_url;
mod mirrors;
mod pipeline;
mod task;

use std::time::Duration;

pub use catalog::{MirrorFile, MirrorSource, parse_list};
pub use download::Downloader;
pub use error::{DownloadError, FaultKind, ListError, MirrorFault};
pub use folder::DownloadFolder;
pub use held::is_file_held;
pub use list::ListFault;
pub use mirror_url::{MirrorUrl, MirrorUrlError};
pub use mirrors::Mirrors;
pub use pipeline::{FetchFailure, FileTaker, TakeVerdict, fetch_files};

/// The folder inside a data folder that holds downloads until they are imported.
pub const WORK_FOLDER_NAME: &str = "fetch";

/// Limits of requests to mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of an archive.
    pub file_bytes_max: u64,
    /// Time for a connection, for the head of a response, and for a whole list.
    pub timeout: Duration,
    /// Time over which the rate of a download is measured.
    pub window: Duration,
    /// Pause of a mirror after its first failure; it doubles with each further one, up to 64 times.
    pub pause: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            file_bytes_max: 8 << 30,
            timeout: Duration::from_secs(30),
            window: Duration::from_secs(10),
            pause: Duration::from_secs(1),
        }
    }
}

/// Observes downloads; called from the threads that download.
pub trait FetchWatch: Send + Sync {
    /// This many more bytes came.
    fn received(&self, bytes: u64);

    /// Reports what the user should know.
    fn warn(&self, text: String);
}
