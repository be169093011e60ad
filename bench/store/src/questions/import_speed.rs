//! How fast is a verified import beside the bare recovery of the same senders?
//!
//! Recovery is the limit: no import that knows its senders can do without it. Both take turns in one
//! run, on the same transactions and with as many threads, and the medians are compared. An import
//! begins with an empty folder and ends when everything is durable and listed.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use archive::{Archive, ArchiveError};
use chain::trust::Anchors;
use ingest::prove::{NO_POINTS, NoProgress, Prover};
use pool::{map_in_order, threads_default};

use crate::archives::ArchiveFile;
use crate::clock::{median, process_cpu};
use crate::figure::{Figure, FigureUnit, Goal};
use crate::folder::BenchFolder;

/// Rounds of each contestant.
const ROUNDS: usize = 7;

type ArchiveBlocks = Vec<Vec<chain::Transaction>>;

/// Compares both, with one thread and with one for each core.
pub fn import_beside_recovery(file: &ArchiveFile, work: &Path) -> Result<Vec<Figure>> {
    let blocks = read_transactions(file)?;
    let mut counts = vec![NonZeroUsize::MIN, threads_default()];
    counts.dedup();
    counts.into_iter().map(|threads| compare(file, &blocks, threads, work)).collect()
}

/// What the rounds of one contestant took.
#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Times {
    fn add(&mut self, round: impl FnOnce() -> Result<()>) -> Result<()> {
        let (wall, cpu) = (Instant::now(), process_cpu());
        round()?;
        self.wall.push(wall.elapsed());
        self.cpu.push(process_cpu().saturating_sub(cpu));
        Ok(())
    }
}

fn compare(
    file: &ArchiveFile,
    blocks: &ArchiveBlocks,
    threads: NonZeroUsize,
    work: &Path,
) -> Result<Figure> {
    let (mut bare, mut imports) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        bare.add(|| recover(blocks, threads))?;
        let folder = BenchFolder::at(work.join("speed"));
        imports.add(|| folder.import(file, None, threads).map(drop))?;
        folder.remove()?;
    }
    let count: usize = blocks.iter().map(Vec::len).sum();
    let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    let share = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    let best = share(best(&bare.wall), best(&imports.wall));
    let cpu = share(median(bare.cpu), median(imports.cpu));
    let (bare, imports) = (median(bare.wall), median(imports.wall));
    Ok(Figure {
        name: "import_beside_recovery",
        question: format!("verified import / bare sender recovery, {threads} threads"),
        of: file.title.clone(),
        value: share(bare, imports),
        unit: FigureUnit::Ratio,
        goal: Goal::at_least(0.70, 0.80),
        note: format!(
            "{} and {} transactions/s by the median of {ROUNDS} rounds; by the best round {best:.2}, \
             by CPU time {cpu:.2}",
            rate(count, imports),
            rate(count, bare)
        ),
    })
}

fn recover(blocks: &ArchiveBlocks, threads: NonZeroUsize) -> Result<()> {
    let ended = map_in_order(
        threads,
        blocks.iter(),
        |transactions| {
            transactions.iter().all(|transaction| {
                let envelope = &transaction.envelope;
                let hash = envelope.signature_hash();
                let sender = envelope.signature().recover_address_from_prehash(&hash);
                sender.ok() == Some(transaction.sender)
            })
        },
        |is_right| if is_right { ControlFlow::Continue(()) } else { ControlFlow::Break(()) },
    );
    ensure!(ended.is_continue(), "a sender is not the one that was proven");
    Ok(())
}

fn read_transactions(file: &ArchiveFile) -> Result<ArchiveBlocks> {
    let (anchors, threads) = (Anchors::of(&file.spec), threads_default());
    let (spec, progress, points) = (&file.spec, &NoProgress, NO_POINTS);
    let mut blocks = Vec::new();
    Prover { spec, anchors: &anchors, threads, progress, points }.prove_each(
        &Archive::open(&file.path)?,
        |block| block.into_inner().transactions,
        |transactions| -> Result<(), ArchiveError> {
            blocks.push(transactions);
            Ok(())
        },
    )?;
    Ok(blocks)
}

fn rate(count: usize, time: Duration) -> u128 {
    u128::try_from(count).unwrap_or_default() * 1_000_000 / time.as_micros().max(1)
}
