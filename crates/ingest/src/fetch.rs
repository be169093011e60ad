//! Archives from mirrors: listed, downloaded with resume, and handed to whoever proves them.
//!
//! Knows: mirrors as web folders of archives, their lists, HTTP ranges, and who of several mirrors is
//! asked.
//! Never knows: whether an archive is true. What a mirror sends is believed no more than a file: it
//! goes the way of every local archive, and a mirror whose files are refused is set aside.
//!
//! One file is handed over while the next one downloads, so at most two are on disk. A download that
//! is cut, killed or moved to another mirror goes on where it ended.

mod catalog;
mod download;
mod error;
mod events;
mod held;
mod http;
mod limits;
mod list;
mod mirror_state;
mod mirror_url;
mod mirrors;
mod partial;
mod pipeline;
mod relative_url;
mod task;

pub use catalog::{MirrorFile, MirrorSource, parse_list};
pub use download::Downloader;
pub use error::{DownloadError, ListError, MirrorFault};
pub use events::{FetchEvent, FetchWatch};
pub use held::is_file_held;
pub use limits::FetchLimits;
pub use list::ListFault;
pub use mirror_url::{MirrorUrl, MirrorUrlError};
pub use mirrors::Mirrors;
pub use partial::DownloadFolder;
pub use pipeline::{FetchFailure, FileTaker, TakeVerdict, fetch_files};

/// The folder inside a data folder where downloads lie until they are taken.
pub const WORK_FOLDER_NAME: &str = "fetch";
