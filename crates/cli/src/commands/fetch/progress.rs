//! The one line that says how far a download is.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ingest::fetch::{FetchEvent, FetchWatch};
use ingest::prove::{BlockDone, Progress};

use crate::output::{Verbosity, grouped, print_lines, ratio, verbosity};

/// Between two changes of the line on a terminal.
const CHANGE_EVERY: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Watches downloads, and blocks that are proven meanwhile.
#[derive(Debug)]
pub(super) struct FetchProgress {
    bar: ProgressBar,
    is_terminal: bool,
    is_quiet: bool,
    begun: Instant,
    /// Blocks that are to be had.
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
    shown_count: AtomicU64,
}

impl Default for FetchProgress {
    fn default() -> Self {
        let is_quiet = verbosity() == Verbosity::Quiet;
        let is_terminal = std::io::stderr().is_terminal() && !is_quiet;
        let bar = if is_terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("fetching [{bar:30}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            is_terminal,
            is_quiet,
            begun: Instant::now(),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            shown_count: AtomicU64::new(0),
        }
    }
}

impl FetchProgress {
    /// So many blocks are to be had.
    pub(super) fn expect(&self, blocks: u64) {
        self.total.store(blocks, Ordering::Relaxed);
        self.bar.set_length(blocks);
    }

    /// All of the total up to `done` is done, whether or not blocks told it.
    pub(super) fn reach(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.show_if_due();
    }

    /// Prints a line above the bar.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Prints a line of the result above the bar.
    pub(super) fn print(&self, line: String) -> std::io::Result<()> {
        self.bar.suspend(|| print_lines(&[line]))
    }

    /// Ends the bar; tells how long the work took and how many bytes came.
    pub(super) fn finish(&self) -> (Duration, u64) {
        self.bar.finish_and_clear();
        (self.begun.elapsed(), self.bytes.load(Ordering::Relaxed))
    }

    fn show_if_due(&self) {
        let every = if self.is_terminal { CHANGE_EVERY } else { LINE_EVERY };
        let elapsed = self.begun.elapsed();
        let due = u64::try_from(elapsed.as_millis() / every.as_millis()).unwrap_or(u64::MAX);
        let shown = self.shown_count.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        let count = &self.shown_count;
        if due <= shown || count.compare_exchange(shown, due, order, order).is_err() {
            return;
        }
        let [done, total, bytes] = [&self.done, &self.total, &self.bytes].map(|it| it.load(order));
        let text = describe(done, total, bytes, elapsed);
        if self.is_terminal {
            self.bar.set_position(done);
            self.bar.set_message(text);
        } else if !self.is_quiet {
            eprintln!("fetching: {text}");
        }
    }
}

impl Progress for FetchProgress {
    fn advance(&self, _block: BlockDone) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.show_if_due();
    }
}

impl FetchWatch for FetchProgress {
    fn received(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.show_if_due();
    }

    fn heard(&self, event: &FetchEvent) {
        self.say(&format!("warning: {event}"));
    }
}

/// How far it is: bytes, blocks, rate, and how long the rest takes if it goes on so.
fn describe(done: u64, total: u64, bytes: u64, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = ratio(bytes, millis.saturating_mul(1000), 1);
    let eta = match done {
        0 => "?".to_owned(),
        done => {
            let left = u128::from(total.saturating_sub(done)) * elapsed.as_millis();
            clock(u64::try_from(left / u128::from(done) / 1000).unwrap_or(u64::MAX))
        }
    };
    format!(
        "{} MB, {} of {} blocks, {rate} MB/s, eta {eta}",
        grouped(bytes / 1_000_000),
        grouped(done),
        grouped(total.max(done))
    )
}

/// Seconds as people read them.
fn clock(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours @ 1..=47, minutes) => format!("{hours} h {minutes} min"),
        (hours, _) => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_bytes_blocks_rate_and_the_time_that_is_left() {
        let ten = Duration::from_secs(10);
        let text = describe(8192, 81_920, 123_456_789, ten);
        assert_eq!(text, "123 MB, 8,192 of 81,920 blocks, 12.3 MB/s, eta 1 min");
        let text = describe(0, 81_920, 0, Duration::ZERO);
        assert_eq!(text, "0 MB, 0 of 81,920 blocks, 0.0 MB/s, eta ?");
    }

    #[test]
    fn times_are_told_in_the_unit_that_suits_them() {
        let shown = [0, 59, 60, 3599, 3600, 172_799, 172_800].map(clock);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "47 h 59 min", "2 days"]);
    }
}
