//! The one line that says how far a download is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ingest::fetch::FetchWatch;
use ingest::prove::{BlockDone, Progress};
use replica::PublishProgress;

use crate::output::{clock, grouped, ratio};
use crate::progress::ProgressLine;

/// Watches downloads, and blocks that are proven meanwhile.
#[derive(Debug)]
pub(super) struct FetchProgress {
    line: ProgressLine,
    begun: Instant,
    /// Blocks that are to be had.
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
}

impl Default for FetchProgress {
    fn default() -> Self {
        Self {
            line: ProgressLine::default(),
            begun: Instant::now(),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }
}

impl FetchProgress {
    /// So many blocks are to be had.
    pub(super) fn expect(&self, blocks: u64) {
        self.total.store(blocks, Ordering::Relaxed);
    }

    /// All of the total up to `done` is done, whether or not blocks told it.
    pub(super) fn reach(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.show_if_due();
    }

    /// Prints a line above the bar.
    pub(super) fn say(&self, line: &str) {
        self.line.say(line);
    }

    /// Prints a line of the result above the bar.
    pub(super) fn print(&self, line: String) -> std::io::Result<()> {
        self.line.print(line)
    }

    /// Ends the bar; tells how long the work took and how many bytes came.
    pub(super) fn finish(&self) -> (Duration, u64) {
        self.line.finish();
        (self.begun.elapsed(), self.bytes.load(Ordering::Relaxed))
    }

    fn show_if_due(&self) {
        let elapsed = self.begun.elapsed();
        if !self.line.is_due(elapsed) {
            return;
        }
        let counts = [&self.done, &self.total, &self.bytes].map(|it| it.load(Ordering::Relaxed));
        let [done, total, bytes] = counts;
        let parts = describe(done, total, bytes, elapsed);
        if self.line.is_terminal {
            self.line.show("fetching", done, total, &parts);
        } else {
            eprintln!("fetching: {}", parts.join(", "));
        }
    }
}

impl Progress for FetchProgress {
    fn advance(&self, _block: BlockDone) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.show_if_due();
    }
}

impl PublishProgress for FetchProgress {
    fn advance(&self, bytes: u64) {
        self.received(bytes);
    }
}

impl FetchWatch for FetchProgress {
    fn received(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.show_if_due();
    }

    fn warn(&self, text: String) {
        self.say(&format!("warning: {text}"));
    }
}

/// How far it is: bytes, blocks, rate, and how long the rest takes if it goes on so.
fn describe(done: u64, total: u64, bytes: u64, elapsed: Duration) -> [String; 4] {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    // Of a slow mirror, millions a second would be none.
    let rate = match bytes.saturating_mul(1000) / millis {
        slow @ 0..1_000_000 => format!("{} kB/s", slow / 1000),
        _ => format!("{} MB/s", ratio(bytes, millis.saturating_mul(1000), 1)),
    };
    let amount = match bytes {
        few @ 0..10_000_000 => format!("{} kB", grouped(few / 1000)),
        _ => format!("{} MB", grouped(bytes / 1_000_000)),
    };
    let eta = match done {
        0 => "?".to_owned(),
        done => {
            let left = u128::from(total.saturating_sub(done)) * elapsed.as_millis();
            clock(u64::try_from(left / u128::from(done) / 1000).unwrap_or(u64::MAX))
        }
    };
    [
        amount,
        format!("{} of {} blocks", grouped(done), grouped(total.max(done))),
        rate,
        format!("eta {eta}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_bytes_blocks_rate_and_the_time_that_is_left() {
        let ten = Duration::from_secs(10);
        let text = describe(8192, 81_920, 123_456_789, ten).join(", ");
        assert_eq!(text, "123 MB, 8,192 of 81,920 blocks, 12.3 MB/s, eta 1 min");
        let text = describe(0, 81_920, 0, Duration::ZERO).join(", ");
        assert_eq!(text, "0 kB, 0 of 81,920 blocks, 0 kB/s, eta ?");
        let text = describe(0, 81_920, 184_320, Duration::from_secs(45)).join(", ");
        assert_eq!(text, "184 kB, 0 of 81,920 blocks, 4 kB/s, eta ?");
    }
}
