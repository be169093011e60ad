//! Limits of requests to a node.

use std::time::Duration;

/// How a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskLimits {
    /// For a connection to be made.
    pub connect_timeout: Duration,
    /// For an answer to come back, all of it.
    pub answer_timeout: Duration,
    /// Bytes of an answer, also after it was inflated. The largest block has some 20 MB as JSON.
    pub answer_bytes_max: usize,
    /// Tries of a question whose failure may pass.
    pub tries_max: u32,
    /// Before the second try at the most; twice as long before each further one.
    pub pause_begin: Duration,
    /// Before any try at the most.
    pub pause_max: Duration,
    /// Questions at a time: the pace adapts to the node below it.
    pub concurrency_max: usize,
}

impl Default for AskLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            answer_bytes_max: 64 << 20,
            tries_max: 5,
            pause_begin: Duration::from_millis(200),
            pause_max: Duration::from_secs(10),
            concurrency_max: 16,
        }
    }
}
