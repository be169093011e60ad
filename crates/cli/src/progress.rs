//! Progress on long work: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ingest::prove::{BlockDone, Progress};

use crate::output::{Verbosity, counted, print_lines, verbosity};

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Watches one piece of long work.
#[derive(Debug)]
pub(crate) struct Watch {
    what: &'static str,
    bar: ProgressBar,
    is_terminal: bool,
    is_quiet: bool,
    begun: Instant,
    total: u64,
    done: AtomicU64,
    blocks: AtomicU64,
    transactions: AtomicU64,
    lines_printed: AtomicU64,
}

impl Watch {
    /// Work measured in bytes.
    pub(crate) fn bytes(what: &'static str, total: u64) -> Self {
        let template = "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} eta {eta} {msg}";
        Self::new(what, total, template)
    }

    /// Work measured in blocks.
    pub(crate) fn blocks(what: &'static str, total: u64) -> Self {
        let template = "{prefix} [{bar:30}] {pos}/{len} blocks {per_sec} eta {eta} {msg}";
        Self::new(what, total, template)
    }

    fn new(what: &'static str, total: u64, template: &str) -> Self {
        let is_quiet = verbosity() == Verbosity::Quiet;
        let is_terminal = std::io::stderr().is_terminal() && !is_quiet;
        let bar = if is_terminal { ProgressBar::new(total) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        Self {
            what,
            bar,
            is_terminal,
            is_quiet,
            begun: Instant::now(),
            total,
            done: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            lines_printed: AtomicU64::new(0),
        }
    }

    /// `amount` more of the total is done, with a block and its transactions.
    pub(crate) fn advance_by(&self, amount: u64, transaction_count: u64) {
        let done = self.done.fetch_add(amount, Ordering::Relaxed) + amount;
        self.blocks.fetch_add(1, Ordering::Relaxed);
        let transactions =
            self.transactions.fetch_add(transaction_count, Ordering::Relaxed) + transaction_count;
        if self.is_terminal {
            self.bar.set_position(done);
            self.bar.set_message(counted(transactions, "transaction"));
        } else if !self.is_quiet {
            self.print_line_if_due(done, transactions);
        }
    }

    /// All of the total up to `done` is done, though no block told it.
    pub(crate) fn reach(&self, done: u64) {
        let done = self.done.fetch_max(done, Ordering::Relaxed).max(done);
        self.bar.set_position(done);
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Prints a line of the result above the bar.
    pub(crate) fn print(&self, line: String) -> std::io::Result<()> {
        self.bar.suspend(|| print_lines(&[line]))
    }

    /// Ends the bar; tells how long the work took.
    pub(crate) fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.begun.elapsed()
    }

    /// Without a terminal, one line for every [`LINE_EVERY`] that has passed.
    fn print_line_if_due(&self, done: u64, transactions: u64) {
        let elapsed = self.begun.elapsed();
        let due = elapsed.as_secs() / LINE_EVERY.as_secs();
        let printed = self.lines_printed.load(Ordering::Relaxed);
        let is_mine = due > printed
            && self
                .lines_printed
                .compare_exchange(printed, due, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            let percent = done.saturating_mul(100) / self.total.max(1);
            let blocks = self.blocks.load(Ordering::Relaxed);
            let left = elapsed.as_secs() * self.total.saturating_sub(done) / done.max(1);
            eprintln!(
                "{}: {percent} %, {}, {}, eta {left} s",
                self.what,
                counted(blocks, "block"),
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
