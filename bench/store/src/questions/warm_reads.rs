//! What does a read cost whose bytes are in memory? CPU time of the thread that asks.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Bloom, keccak256};
use anyhow::{Context as _, Result, ensure};
use chain::BlockNumber;
use store::read::block_on;
use store::{Reader, RowParts, StoredBlock, StoredTransaction, View};

use crate::clock::least_cpu;
use crate::figure::{Figure, FigureUnit, Goal, count};
use crate::keys::{Key, nearest_blocks};
use crate::random::Random;
use crate::rows::{header_bloom, receipt_bloom, receipt_blooms};

/// Rounds of which the quickest counts.
const ROUNDS: usize = 7;
/// Reads of single transactions in a round.
const READS: usize = 20_000;
/// Reads of whole blocks in a round, at the least.
const BLOCK_READS: usize = 64;
/// The size of a full block of mainnet, and how many of that size are read by turns.
const BLOCK_TRANSACTIONS: usize = 194;
const BLOCKS_MAX: usize = 16;

/// One view, asked by one thread.
#[derive(Debug)]
pub struct WarmReads<'a> {
    of: &'a str,
    view: Arc<View>,
    reader: Reader,
    keys: &'a [Key],
    picks: Vec<&'a Key>,
}

impl<'a> WarmReads<'a> {
    /// Reads of all transactions of a view, which has exactly these.
    pub fn new(of: &'a str, view: Arc<View>, keys: &'a [Key]) -> Result<Self> {
        let picks = Random::default().pick(keys, READS);
        Ok(Self { of, view, reader: Reader::new()?, keys, picks })
    }

    /// Asks every question.
    pub fn ask(&mut self) -> Result<Vec<Figure>> {
        self.check_receipts()?;
        let bare = RowParts::Transaction;
        let by_hash = self.each_pick(|this, key| this.find(key, bare), |_| Ok(()))?;
        let by_position = self.each_pick(|this, key| this.read(key, bare), |_| Ok(()))?;
        let bloom = |found: &StoredTransaction| {
            black_box(receipt_bloom(found)?);
            Ok(())
        };
        let both = RowParts::Receipt;
        let receipt_by_hash = self.each_pick(|this, key| this.find(key, both), bloom)?;
        let receipt_by_position = self.each_pick(|this, key| this.read(key, both), bloom)?;
        let goal = Goal::at_most(10.0, 5.0);
        let figure = |name, question: &str, goal, time| Figure {
            name,
            question: question.to_owned(),
            of: self.of.to_owned(),
            value: micros(time, READS),
            unit: FigureUnit::Micros,
            goal,
            note: String::new(),
        };
        let mut figures = vec![
            figure("transaction_by_hash_warm", "warm transaction by hash, proven", goal, by_hash),
            figure("transaction_by_place_warm", "warm transaction by place", None, by_position),
            figure(
                "receipt_by_place_warm",
                "warm receipt with bloom, by place",
                goal,
                receipt_by_position,
            ),
            figure(
                "receipt_by_hash_warm",
                "warm receipt with bloom, by hash, proven",
                goal,
                receipt_by_hash,
            ),
        ];
        figures.extend(self.blocks()?);
        figures.push(figure(
            "keccak_yardstick",
            "yardstick: keccak-256 of 1000 bytes",
            None,
            keccak_each()?,
        ));
        Ok(figures)
    }

    fn each_pick(
        &mut self,
        mut get: impl FnMut(&mut Self, &Key) -> Result<StoredTransaction>,
        mut finish: impl FnMut(&StoredTransaction) -> Result<()>,
    ) -> Result<Duration> {
        let picks = std::mem::take(&mut self.picks);
        let time = least_cpu(ROUNDS, || {
            for key in &picks {
                let found = get(self, key)?;
                let is_right = (found.block.number, found.index) == (key.number, key.index);
                ensure!(is_right, "{} is elsewhere", key.hash);
                finish(black_box(&found))?;
            }
            Ok(())
        });
        self.picks = picks;
        time
    }

    fn find(&mut self, key: &Key, wanted: RowParts) -> Result<StoredTransaction> {
        let found = block_on(self.view.find_transaction(&mut self.reader, key.hash, wanted))?;
        found.with_context(|| format!("{} is not found", key.hash))
    }

    fn read(&mut self, key: &Key, wanted: RowParts) -> Result<StoredTransaction> {
        let read = self.view.read_transaction(&mut self.reader, key.number, key.index, wanted);
        block_on(read)?.with_context(|| format!("{} is not there", key.hash))
    }

    fn read_block(&mut self, number: u64, wanted: RowParts) -> Result<StoredBlock> {
        let block = block_on(self.view.read_block(&mut self.reader, BlockNumber(number), wanted))?;
        block.with_context(|| format!("block {number} is not there"))
    }

    /// What is timed below is right: single rows are those of their blocks, hashes are those that
    /// the archive told, and blooms add up to what headers commit to.
    fn check_receipts(&mut self) -> Result<()> {
        for keys in nearest_blocks(self.keys, BLOCK_TRANSACTIONS, BLOCKS_MAX) {
            let Some(first) = keys.first() else { continue };
            let block = self.read_block(first.number.get(), RowParts::Receipt)?;
            let hashes = block.rows.hashes();
            ensure!(hashes.iter().eq(keys.iter().map(|key| &key.hash)), "other hashes");
            let sum = receipt_blooms(&block)?.into_iter().fold(Bloom::ZERO, |sum, one| sum | one);
            ensure!(sum == header_bloom(&block)?, "block {}: other blooms", first.number);
            for (key, row) in keys.iter().zip(&block.rows) {
                let single = self.read(key, RowParts::Receipt)?.row;
                let found = self.find(key, RowParts::Receipt)?.row;
                ensure!(single.view() == row && found.view() == row, "other rows");
            }
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<[Figure; 2]> {
        let nearest = nearest_blocks(self.keys, BLOCK_TRANSACTIONS, BLOCKS_MAX);
        let size = nearest.first().map_or(0, |block| block.len());
        let numbers: Vec<BlockNumber> =
            nearest.iter().filter_map(|it| Some(it.first()?.number)).collect();
        let turns = BLOCK_READS.div_ceil(numbers.len().max(1));
        let mut timed = |has_blooms: bool| {
            let time = least_cpu(ROUNDS, || -> Result<()> {
                for number in (0..turns).flat_map(|_| &numbers) {
                    let wanted = if has_blooms { RowParts::Receipt } else { RowParts::Transaction };
                    let block = self.read_block((*number).get(), wanted)?;
                    ensure!(black_box(block.rows.hashes()).len() == size, "other rows");
                    if has_blooms {
                        black_box(receipt_blooms(&block)?);
                    }
                    black_box(block);
                }
                Ok(())
            })?;
            Ok::<f64, anyhow::Error>(micros(time, turns.saturating_mul(numbers.len())) / 1000.0)
        };
        let plain = timed(false)?;
        let with_blooms = timed(true)?;
        let figure = |name, question: String, value, goal| Figure {
            name,
            question,
            of: self.of.to_owned(),
            value,
            unit: FigureUnit::Millis,
            goal,
            note: format!("{} blocks of this size by turns", count(&numbers)),
        };
        Ok([
            figure(
                "block_warm",
                format!("warm block of {size}: rows, senders, hashes"),
                plain,
                Goal::at_most(0.5, 0.25),
            ),
            figure(
                "block_with_receipts_warm",
                "the same with receipts and blooms".into(),
                with_blooms,
                Goal::at_most(1.0, 0.5),
            ),
        ])
    }
}

/// Hashes something as often as a round reads. Its time says how fast the machine was just now:
/// CPU time grows with neighbours too, since they share caches and clock rates.
fn keccak_each() -> Result<Duration> {
    let bytes = [7; 1000];
    least_cpu(ROUNDS, || {
        for _ in 0..READS {
            black_box(keccak256(black_box(&bytes)));
        }
        Ok(())
    })
}

/// Millionths of a second for each of `count`.
#[must_use]
pub fn micros(time: Duration, count: usize) -> f64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    crate::figure::ratio(nanos, u64::try_from(count).unwrap_or(u64::MAX)) / 1000.0
}
