//! What the bytes of a data folder are for.

use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use anyhow::{Context as _, Result};
use segment::{FOOTER_BYTES, Footer, Inflater, Segment};
use store::RunSubject;

use crate::figure::{count, ratio};
use crate::folder::BenchFolder;

/// What the bytes of a data folder are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// Transactions in it.
    pub transaction_count: u64,
    /// Pages of transactions, senders and receipts.
    pub rows: u64,
    /// Pages of long call data and log data.
    pub payloads: u64,
    /// Pages of headers.
    pub headers: u64,
    /// Pages of ommers and withdrawals.
    pub others: u64,
    /// Directories and tables.
    pub tails: u64,
    /// Footers.
    pub footers: u64,
    /// Lookup of transactions by hash.
    pub transaction_lookups: u64,
    /// Lookup of blocks by hash.
    pub block_lookups: u64,
    /// The log index.
    pub log_index: u64,
    /// The manifest, and whatever else there is.
    pub rest: u64,
}

impl Anatomy {
    /// Looks into every file of a folder.
    pub fn of(folder: &BenchFolder) -> Result<Self> {
        let view = folder.view()?;
        let manifest = view.manifest();
        let mut sum = Self::default();
        for entry in manifest.segments() {
            sum += Self::of_segment(&fs::read(folder.path().join(&entry.file_name))?)?;
        }
        let run_bytes = |subject| -> u64 { manifest.runs_of(subject).map(|run| run.bytes).sum() };
        sum.transaction_lookups = run_bytes(RunSubject::Transactions);
        sum.block_lookups = run_bytes(RunSubject::Blocks);
        sum.log_index = run_bytes(RunSubject::Logs);
        sum.rest = folder.bytes()?.saturating_sub(sum.bytes());
        Ok(sum)
    }

    /// The parts of one segment's file.
    pub fn of_segment(file: &[u8]) -> Result<Self> {
        let footer_bytes = count(file.last_chunk::<FOOTER_BYTES>().context("no footer")?);
        let (_, footer) = file.split_at(file.len().saturating_sub(FOOTER_BYTES));
        let footer = Footer::parse(footer)?;
        let tail = footer.tail_range(count(file))?;
        let tail = usize::try_from(tail.start)?..usize::try_from(tail.end)?;
        let tail = file.get(tail).context("the tail is not in the file")?;
        let segment = Segment::open(footer, &mut Inflater::new()?, tail)?;
        let parts = segment.part_bytes();
        Ok(Self {
            transaction_count: segment.facts().transaction_count,
            rows: parts.transactions.saturating_add(parts.receipts),
            payloads: parts.transaction_payloads.saturating_add(parts.receipt_payloads),
            headers: parts.headers,
            others: parts.others,
            tails: parts.tail,
            footers: footer_bytes,
            ..Self::default()
        })
    }

    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Bytes for each transaction, part by part.
    #[must_use]
    pub fn describe(&self) -> String {
        let parts = self
            .named()
            .map(|(name, bytes)| format!("{name} {:.1}", ratio(bytes, self.transaction_count)));
        format!("bytes a transaction: {}", parts.join(", "))
    }

    fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("rows", self.rows),
            ("long payloads", self.payloads),
            ("headers", self.headers),
            ("ommers and withdrawals", self.others),
            ("directories and tables", self.tails),
            ("footers", self.footers),
            ("transaction lookup", self.transaction_lookups),
            ("block lookup", self.block_lookups),
            ("log index", self.log_index),
            ("manifest", self.rest),
        ]
    }
}

impl AddAssign for Anatomy {
    fn add_assign(&mut self, other: Self) {
        self.transaction_count += other.transaction_count;
        self.rows += other.rows;
        self.payloads += other.payloads;
        self.headers += other.headers;
        self.others += other.others;
        self.tails += other.tails;
        self.footers += other.footers;
        self.transaction_lookups += other.transaction_lookups;
        self.block_lookups += other.block_lookups;
        self.log_index += other.log_index;
        self.rest += other.rest;
    }
}

/// The size of a file.
pub fn file_bytes(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).with_context(|| "an archive's size")?.len())
}
