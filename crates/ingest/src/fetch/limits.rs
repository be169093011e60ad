//! How long, how often and how much a mirror is asked.
//!
//! Knows: the limits and their defaults.
//! Never knows: what is asked.

use std::time::Duration;

/// How mirrors are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// For a connection to be made.
    pub connect_timeout: Duration,
    /// For the head of an answer to come.
    pub head_timeout: Duration,
    /// For the next 64 KiB of a body to come, or the rest of it.
    pub stall_timeout: Duration,
    /// For a whole list to come.
    pub list_timeout: Duration,
    /// For other lists to come when one mirror's has come.
    pub list_grace: Duration,
    /// After so long it is told whose list is waited for.
    pub list_notice: Duration,
    /// Bytes of a list. One of every era that there will be for a century is shorter.
    pub list_bytes_max: usize,
    /// Bytes of an archive.
    pub file_bytes_max: u64,
    /// How often a list is asked for whose failure may pass.
    pub list_tries: u32,
    /// After the first failure of a mirror it rests so long at the most; twice as long after each
    /// further one.
    pub pause_begin: Duration,
    /// The longest rest.
    pub pause_max: Duration,
    /// How long all mirrors may fail before a file is given up, and how long lists are waited for.
    pub patience: Duration,
    /// Over how long the rate of a download is measured.
    pub rate_window: Duration,
    /// Bytes a second below which it is told that a mirror is slow, if no other is better asked.
    pub slow_rate: u64,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_mins(1),
            list_grace: Duration::from_secs(10),
            list_notice: Duration::from_secs(5),
            list_bytes_max: 16 << 20,
            file_bytes_max: 8 << 30,
            list_tries: 4,
            pause_begin: Duration::from_millis(500),
            pause_max: Duration::from_mins(1),
            patience: Duration::from_mins(10),
            rate_window: Duration::from_secs(5),
            slow_rate: 50_000,
        }
    }
}
