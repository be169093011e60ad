//! The page that tells what is held and how serving goes, as `/stat.json`.

use std::fmt;
use std::pin::Pin;

use thiserror::Error;

use crate::call_counts::CallTimes;
use crate::traffic::TrafficCounts;

/// What a server tells of itself at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveCounts {
    /// What clients have asked since the start.
    pub traffic: TrafficCounts,
    /// How long their calls took.
    pub times: CallTimes,
    /// Bytes of bodies and answers in memory.
    pub bytes_under_way: usize,
    /// Why what is configured cannot be answered; none if it can.
    pub troubles: Vec<String>,
}

/// What of the page a request wants, and may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatScope {
    /// Whether the lists of files are on it: `?files=1`.
    pub has_files: bool,
    /// Whether names of upstreams are left out: there are keys, and the request came without one.
    pub hides_upstreams: bool,
}

/// Why there is no page; the server says only that there is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PageError(pub String);

/// A page under way: its bytes.
pub type MakingPage<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, PageError>> + Send + 'a>>;

/// Who makes the page.
pub trait StatPage: fmt::Debug + Send + Sync {
    /// Makes the page, as one JSON object.
    fn make(&self, live: LiveCounts, scope: StatScope) -> MakingPage<'_>;
}
