//! Every abuse: one row and one plain function each.

mod bodies;
mod connections;
mod http1;
mod http2;
mod websocket;

use anyhow::Result;

use crate::attack::Attack;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
    WebSocket,
}

/// An abuse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abuse {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// What each connection does, for people.
    pub(crate) words: &'static str,
    pub(crate) spoken: Spoken,
    /// Connections at a time: in the long form, and in the short one.
    pub(crate) connections: [usize; 2],
    /// Whether it may fill the budget, so that others are told to come again for long answers.
    pub(crate) fills_budget: bool,
    /// Statuses that the server must have answered with, so that it is known to have been reached.
    pub(crate) statuses: &'static [u16],
    /// Whether the server must have ended a connection.
    pub(crate) is_ended: bool,
    pub(crate) run: fn(&Attack<'_>) -> Result<()>,
}

impl Abuse {
    const fn new(
        spoken: Spoken,
        name: &'static str,
        connections: [usize; 2],
        words: &'static str,
        run: fn(&Attack<'_>) -> Result<()>,
    ) -> Self {
        let (fills_budget, statuses, is_ended) = (false, &[], false);
        Self { name, words, spoken, connections, fills_budget, statuses, is_ended, run }
    }

    const fn fills_budget(mut self) -> Self {
        self.fills_budget = true;
        self
    }

    const fn answered(mut self, statuses: &'static [u16]) -> Self {
        self.statuses = statuses;
        self
    }

    const fn ended(mut self) -> Self {
        self.is_ended = true;
        self
    }
}

/// All of them.
pub(crate) const ABUSES: &[Abuse] = &[
    Abuse::new(
        Spoken::Http1,
        "pipelined",
        [2, 2],
        "a 4 MiB body, then 52,000 pipelined requests",
        http1::pipelined,
    )
    .answered(&[200]),
    Abuse::new(
        Spoken::Http1,
        "slow-heads",
        [200, 50],
        "a byte of a head now and then",
        http1::slow_heads,
    ),
    Abuse::new(
        Spoken::Http1,
        "slow-bodies",
        [200, 50],
        "a 4 MiB body announced, a byte of it now and then",
        http1::slow_bodies,
    ),
    Abuse::new(
        Spoken::Http1,
        "slow-readers",
        [100, 30],
        "the longest answer asked for, a byte of it taken now and then",
        http1::slow_readers,
    )
    .fills_budget(),
    Abuse::new(
        Spoken::Http1,
        "malformed",
        [4, 2],
        "malformed and unusual requests",
        http1::malformed,
    )
    .answered(&[200, 400, 404, 405, 415, 431])
    .ended(),
    Abuse::new(
        Spoken::Http2,
        "rapid-reset",
        [4, 2],
        "streams opened and reset",
        http2::rapid_reset,
    )
    .ended(),
    Abuse::new(
        Spoken::Http2,
        "zero-window",
        [8, 4],
        "32 streams without a window, and PINGs",
        http2::zero_window,
    )
    .fills_budget(),
    Abuse::new(
        Spoken::Http2,
        "one-byte-windows",
        [8, 4],
        "32 streams with windows of a byte at a time",
        http2::one_byte_windows,
    )
    .fills_budget(),
    Abuse::new(
        Spoken::Http2,
        "ping-flood",
        [4, 2],
        "PINGs, every other client reads nothing",
        http2::pings,
    ),
    Abuse::new(
        Spoken::Http2,
        "settings-flood",
        [4, 2],
        "SETTINGS, every other client reads nothing",
        http2::settings,
    ),
    Abuse::new(
        Spoken::Http2,
        "continuation-flood",
        [4, 2],
        "a head of CONTINUATION frames without an end",
        http2::continuations,
    )
    .ended(),
    Abuse::new(
        Spoken::Http2,
        "empty-data",
        [4, 2],
        "a body of empty DATA frames",
        http2::empty_data,
    ),
    Abuse::new(
        Spoken::Http2,
        "long-filters",
        [10, 3],
        "22 calls of `eth_getLogs` with 1,000 addresses at a time",
        http2::long_filters,
    )
    .answered(&[200]),
    Abuse::new(
        Spoken::WebSocket,
        "unfinished-messages",
        [200, 48],
        "1 MiB of a message that never ends, and PINGs",
        websocket::unfinished_messages,
    )
    .answered(&[101]),
    Abuse::new(
        Spoken::WebSocket,
        "long-messages",
        [200, 48],
        "a message of 4 MiB answered, and PINGs",
        websocket::long_messages,
    )
    .answered(&[101]),
    Abuse::new(
        Spoken::WebSocket,
        "control-frames",
        [4, 2],
        "PINGs of 125 bytes, every other client reads nothing",
        websocket::control_frames,
    )
    .answered(&[101]),
    Abuse::new(
        Spoken::WebSocket,
        "one-byte-frames",
        [4, 2],
        "a message in frames of one byte",
        websocket::one_byte_frames,
    )
    .answered(&[101]),
    Abuse::new(
        Spoken::WebSocket,
        "huge-frames",
        [4, 2],
        "frames of 1 TiB and of 5 MiB and a byte announced",
        websocket::huge_frames,
    )
    .answered(&[101])
    .ended(),
    Abuse::new(
        Spoken::WebSocket,
        "sockets-unread",
        [50, 20],
        "32 of the longest answers asked for and not read, and PINGs",
        websocket::unread,
    )
    .answered(&[101])
    .fills_budget(),
    Abuse::new(
        Spoken::Http1,
        "empty-batches",
        [4, 2],
        "batches of 1.6 million `{}`",
        bodies::empty_batches,
    )
    .answered(&[200]),
    Abuse::new(
        Spoken::Http1,
        "deep-nesting",
        [4, 2],
        "4 MiB of brackets, and of objects",
        bodies::nesting,
    )
    .answered(&[200]),
    Abuse::new(
        Spoken::Http1,
        "gzip-bombs",
        [4, 2],
        "256 MiB of blanks, and a million `{}`, as gzip",
        bodies::gzip_bombs,
    )
    .answered(&[413]),
    Abuse::new(
        Spoken::Http1,
        "zstd-bombs",
        [4, 2],
        "256 MiB of blanks, and a million `{}`, as zstd",
        bodies::zstd_bombs,
    )
    .answered(&[413]),
    Abuse::new(
        Spoken::Http1,
        "packed-answers",
        [8, 4],
        "the longest answer, as brotli, gzip or zstd",
        bodies::packed_answers,
    )
    .answered(&[200])
    .fills_budget(),
    Abuse::new(
        Spoken::Http1,
        "resets",
        [4, 2],
        "connections that are reset at once, some after a request",
        connections::resets,
    )
    .fills_budget(),
    Abuse::new(
        Spoken::Http1,
        "blocks-unread",
        [10_000, 1000],
        "the largest block asked for and not read",
        connections::blocks_unread,
    )
    .fills_budget(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_abuse_has_a_name_of_its_own_and_is_shorter_in_the_short_form() {
        for (index, abuse) in ABUSES.iter().enumerate() {
            assert!(ABUSES[..index].iter().all(|other| other.name != abuse.name), "{}", abuse.name);
            let [long, short] = abuse.connections;
            assert!((1..=long).contains(&short), "{}", abuse.name);
            assert!(!abuse.words.contains('|'), "{} is a cell of a table", abuse.name);
        }
    }
}
