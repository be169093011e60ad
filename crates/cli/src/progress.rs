//! Progress on long work: a line that fits a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use ingest::prove::{BlockDone, Progress};
use rustix::termios::tcgetwinsize;

use crate::output::{Verbosity, clock, counted, counted_grouped, grouped, print_lines, verbosity};

/// Between two lines where there is no terminal.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);
/// Between two changes of the line on a terminal.
pub(crate) const CHANGE_EVERY: Duration = Duration::from_millis(100);
/// Columns of a terminal that does not say how many it has.
const COLUMNS_DEFAULT: u16 = 80;
/// Columns of the bar between its brackets: the most, and the fewest that say anything.
const BAR_MAX: usize = 30;
const BAR_MIN: usize = 8;

/// What the work is measured in.
#[derive(Clone, Copy, Debug)]
enum WorkUnit {
    Bytes,
    Blocks,
}

/// Watches one piece of long work.
#[derive(Debug)]
pub(crate) struct Watch {
    what: &'static str,
    unit: WorkUnit,
    line: ProgressLine,
    begun: Instant,
    total: u64,
    done: AtomicU64,
    blocks: AtomicU64,
    transactions: AtomicU64,
}

impl Watch {
    /// Work measured in bytes.
    pub(crate) fn bytes(what: &'static str, total: u64) -> Self {
        Self::new(what, total, WorkUnit::Bytes)
    }

    /// Work measured in blocks.
    pub(crate) fn blocks(what: &'static str, total: u64) -> Self {
        Self::new(what, total, WorkUnit::Blocks)
    }

    fn new(what: &'static str, total: u64, unit: WorkUnit) -> Self {
        let line = ProgressLine::default();
        line.set_total(total);
        Self {
            what,
            unit,
            line,
            begun: Instant::now(),
            total,
            done: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
        }
    }

    /// `amount` more of the total is done, with a block and its transactions.
    pub(crate) fn advance_by(&self, amount: u64, transaction_count: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.transactions.fetch_add(transaction_count, Ordering::Relaxed);
        self.show_if_due();
    }

    /// All of the total up to `done` is done, though no block told it.
    pub(crate) fn reach(&self, done: u64) {
        self.done.fetch_max(done, Ordering::Relaxed);
        self.show_if_due();
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.line.say(line);
    }

    /// Prints a line of the result above the bar.
    pub(crate) fn print(&self, line: String) -> std::io::Result<()> {
        self.line.print(line)
    }

    /// Ends the bar; tells how long the work took.
    pub(crate) fn finish(&self) -> Duration {
        self.line.finish();
        self.begun.elapsed()
    }

    fn show_if_due(&self) {
        let elapsed = self.begun.elapsed();
        if !self.line.is_due(elapsed) {
            return;
        }
        let order = Ordering::Relaxed;
        let done = self.done.load(order);
        let percent = done.saturating_mul(100) / self.total.max(1);
        let transactions = self.transactions.load(order);
        if self.line.is_terminal {
            let pace = self.line.pace(done);
            let rate = pace.per_second;
            let [amount, rate] = match self.unit {
                WorkUnit::Bytes => [
                    format!("{} of {}", HumanBytes(done), HumanBytes(self.total)),
                    format!("{}/s", HumanBytes(rate)),
                ],
                WorkUnit::Blocks => [
                    format!("{} of {} blocks", grouped(done), grouped(self.total)),
                    format!("{} blocks/s", grouped(rate)),
                ],
            };
            let parts = [
                format!("{percent} %"),
                format!("eta {}", clock(pace.left.as_secs())),
                amount,
                rate,
                counted_grouped(transactions, "transaction"),
            ];
            self.line.show(self.what, done, self.total, &parts);
        } else {
            let left = elapsed.as_secs() * self.total.saturating_sub(done) / done.max(1);
            eprintln!(
                "{}: {percent} %, {}, {}, eta {left} s",
                self.what,
                counted(self.blocks.load(order), "block"),
                counted(transactions, "transaction")
            );
        }
    }
}

impl Progress for Watch {
    fn advance(&self, block: BlockDone) {
        self.advance_by(block.bytes, block.transaction_count);
    }
}

/// Lets work that is measured in blocks tell of its blocks.
#[derive(Debug)]
pub(crate) struct ByBlock<'a>(pub(crate) &'a Watch);

impl Progress for ByBlock<'_> {
    fn advance(&self, block: BlockDone) {
        self.0.advance_by(1, block.transaction_count);
    }
}

/// The line of a terminal, or none where there is no terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    pub(crate) is_terminal: bool,
    is_quiet: bool,
    shown_count: AtomicU64,
}

/// How fast work went lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkPace {
    pub(crate) per_second: u64,
    /// How long the rest takes if it goes on so.
    pub(crate) left: Duration,
}

impl Default for ProgressLine {
    fn default() -> Self {
        let is_quiet = verbosity() == Verbosity::Quiet;
        let is_terminal = std::io::stderr().is_terminal() && !is_quiet;
        let bar = if is_terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, is_terminal, is_quiet, shown_count: AtomicU64::new(0) }
    }
}

impl ProgressLine {
    pub(crate) fn set_total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Whether it is time to show something: at most one of those who ask at the same time is told so.
    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        let every = if self.is_terminal { CHANGE_EVERY } else { LINE_EVERY };
        let due = u64::try_from(elapsed.as_millis() / every.as_millis()).unwrap_or(u64::MAX);
        let order = Ordering::Relaxed;
        let shown = self.shown_count.load(order);
        !self.is_quiet
            && due > shown
            && self.shown_count.compare_exchange(shown, due, order, order).is_ok()
    }

    /// How fast it went lately, now that so much is done.
    pub(crate) fn pace(&self, done: u64) -> WorkPace {
        self.bar.set_position(done);
        // A float becomes a whole number by way of its digits: a cast may lose what it means.
        let per_second = format!("{:.0}", self.bar.per_sec()).parse().unwrap_or_default();
        WorkPace { per_second, left: self.bar.eta() }
    }

    pub(crate) fn show(&self, what: &str, done: u64, total: u64, parts: &[String]) {
        let size = tcgetwinsize(std::io::stderr()).ok();
        // The bar fills the rest of the line, and goes by a size that has both rows and columns.
        let columns =
            size.filter(|size| size.ws_row > 0 && size.ws_col > 0).map(|size| size.ws_col);
        let columns = usize::from(columns.unwrap_or(COLUMNS_DEFAULT));
        self.bar.set_message(fit_line(what, done, total, parts, columns));
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Prints a line of the result above the bar.
    pub(crate) fn print(&self, line: String) -> std::io::Result<()> {
        self.bar.suspend(|| print_lines(&[line]))
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is done, a bar if there is room for one, and as many parts as fit, the first ones first. It is
/// shorter than the terminal is wide: some begin a new line after the last column.
fn fit_line(what: &str, done: u64, total: u64, parts: &[String], columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let mut text = what.to_owned();
    let mut shown = String::new();
    for part in parts {
        let longer = if shown.is_empty() { part.clone() } else { format!("{shown}, {part}") };
        if text.len().saturating_add(longer.len()).saturating_add(1) > room {
            break;
        }
        shown = longer;
    }
    let taken = text.len().saturating_add(shown.len()).saturating_add(" [] ".len());
    let bar = room.saturating_sub(taken).min(BAR_MAX);
    if bar >= BAR_MIN {
        let share = u128::from(done) * u128::try_from(bar).unwrap_or_default();
        let full = usize::try_from(share / u128::from(total.max(1))).unwrap_or(bar).min(bar);
        let arrow = if full == bar { "" } else { ">" };
        text = format!("{text} [{:bar$}]", format!("{}{arrow}", "=".repeat(full)));
    }
    text = format!("{text} {shown}");
    text.truncate(room);
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&str; 5] =
        ["42 %", "eta 12 min", "1.21 GiB of 2.88 GiB", "12.34 MiB/s", "123,456,789 transactions"];

    fn fit(columns: usize) -> String {
        fit_line("importing", 42, 100, &PARTS.map(str::to_owned), columns)
    }

    #[test]
    fn a_line_has_what_fits_the_terminal() {
        assert_eq!(
            fit(130),
            "importing [============>                 ] 42 %, eta 12 min, 1.21 GiB of 2.88 GiB, \
             12.34 MiB/s, 123,456,789 transactions"
        );
        assert_eq!(
            fit(80),
            "importing [======>        ] 42 %, eta 12 min, 1.21 GiB of 2.88 GiB, 12.34 MiB/s"
        );
        assert_eq!(fit(50), "importing 42 %, eta 12 min, 1.21 GiB of 2.88 GiB");
        assert_eq!(fit(45), "importing [======>        ] 42 %, eta 12 min");
        assert_eq!(fit(30), "importing 42 %, eta 12 min");
        assert_eq!(fit(4), "imp");
        for columns in 0..200 {
            assert!(fit(columns).len() < columns.max(1), "{columns}: {}", fit(columns));
        }
    }

    #[test]
    fn the_bar_is_full_at_the_end_and_never_longer() {
        let bar = |done, total| fit_line("x", done, total, &[], 15);
        assert_eq!(bar(0, 10), "x [>        ]");
        assert_eq!(bar(10, 10), "x [=========]");
        assert_eq!(bar(u64::MAX, 10), "x [=========]");
        assert_eq!(bar(0, 0), "x [>        ]");
    }
}
