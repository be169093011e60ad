//! Published history into a data folder: proven block by block, as archives are.
//!
//! Blocks are taken in units of a slot, each committed as a whole: killed at any moment, the folder is as
//! it was after the last unit.

use std::sync::Arc;

use alloy_primitives::U256;
use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, ChainSpec};
use store::layout::{HeldRange, overlap, subtract};
use store::read::block_on;
use store::{Reader, StoreError, View, Writer};
use tokio::sync::watch;

use super::gathered::difficulty_told;
use super::view_blocks::ViewBlocks;
use super::{
    Arrival, Gathered, ImportError, ImportReport, ImportSettings, Intake, Judge, Trust, Unit,
    parent_above, plan_units,
};
use crate::prove::{Progress, Prover};

/// Takes published blocks into one data folder.
pub struct PublishedImporter<'a> {
    /// The folder.
    pub writer: &'a mut Writer,
    /// What is published, readable at hand.
    pub published: &'a Arc<View>,
    /// How messages call the publisher.
    pub publisher: &'a Arc<str>,
    /// The chain's facts.
    pub spec: &'a ChainSpec,
    /// What is trusted beforehand.
    pub anchors: &'a Anchors,
    /// What may be taken.
    pub settings: ImportSettings,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
    /// Says when to stop before a unit is done.
    pub stop: Option<watch::Receiver<bool>>,
}

impl std::fmt::Debug for PublishedImporter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishedImporter")
            .field("writer", &self.writer)
            .field("publisher", &self.publisher)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl PublishedImporter<'_> {
    /// What is published, wanted and missing in the folder, in an order in which every unit finds what
    /// it links to.
    #[must_use]
    pub fn plan(
        view: &View,
        published: &View,
        anchors: &Anchors,
        settings: &ImportSettings,
    ) -> Vec<Unit> {
        let with_receipts = published.coverage_receipts();
        let without = if settings.is_without_receipts_allowed {
            subtract(published.coverage(), with_receipts)
        } else {
            Vec::new()
        };
        let manifest = view.manifest();
        let (held_with, held) = (manifest.coverage_receipts(), manifest.coverage());
        let wanted = |range: &BlockRange| match settings.blocks {
            Some(wanted) => overlap(*range, wanted),
            None => Some(*range),
        };
        let units = |ranges: &[BlockRange], held: &[BlockRange]| {
            let wanted = ranges.iter().filter_map(wanted);
            wanted.flat_map(|range| plan_units(range, held, anchors)).collect::<Vec<_>>()
        };
        let mut planned = units(with_receipts, &held_with);
        planned.extend(units(&without, &held));
        planned
    }

    /// Takes one unit. If it fails, nothing of it is held.
    pub fn take(&mut self, unit: &Unit) -> Result<ImportReport, ImportError> {
        let part = unit.range;
        let view = self.writer.view();
        let trust = Trust::gather(self.publisher, &view, part, self.anchors)?;
        let has_receipts = subtract(&[part], self.published.coverage_receipts()).is_empty();
        if !has_receipts && !self.settings.is_without_receipts_allowed {
            return Err(ImportError::NoReceipts { file: self.publisher.to_string() });
        }
        let targets = self.writer.plan(&[HeldRange { range: part, has_receipts }]);
        let above = parent_above(&view, part)?;
        let publisher = Some(Arc::clone(self.publisher));
        let source =
            ViewBlocks::new(Arc::clone(self.published), part, publisher, self.stop.clone());
        let prover = Prover {
            spec: self.spec,
            anchors: self.anchors,
            threads: self.settings.threads,
            progress: self.progress,
            points: &trust.points,
        };
        let mut gathered = Gathered::new(self.spec, &source, part, &trust)
            .with_difficulty(self.difficulty_before(part.first())?, self.publisher);
        let drafting = self.writer.drafting();
        let intake = Intake { drafting: &drafting, prover, source: &source, part };
        let segments = intake.build_all(&targets, &mut |facts| gathered.add(facts))?;
        let transaction_count = gathered.transaction_count;
        let run = gathered.finish(above, self.anchors)?;
        // What nothing here bears out is not recorded: it would stand against those who know better.
        let is_known = run.epoch.is_some() || total_held(&view, part.first())?.is_some();
        let difficulty = if is_known { difficulty_told(&view, &run, &segments)? } else { None };
        let judge = Judge {
            source: self.publisher,
            called: &|number| self.published.file_of(BlockNumber(number.max(part.first()))),
            spec: self.spec,
            anchors: self.anchors,
            trust,
            is_unanchored_allowed: self.settings.is_unanchored_allowed,
        };
        let arrival = Arrival { run, segments, transaction_count, difficulty };
        judge.commit(arrival, &mut |segments, facts| self.writer.commit(segments, facts))
    }

    /// Total difficulty before a block by the publisher, where it has one. Accumulators alone commit to it.
    fn difficulty_before(&self, number: u64) -> Result<Option<U256>, ImportError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let told = block_on(self.published.difficulty_before(&mut reader, BlockNumber(number)));
        told.map_err(|cause| ImportError::Published {
            publisher: self.publisher.to_string(),
            cause: Box::new(cause),
        })
    }
}

/// Total difficulty before a block by what the folder holds.
fn total_held(view: &View, number: u64) -> Result<Option<U256>, StoreError> {
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    block_on(view.difficulty_before(&mut reader, BlockNumber(number)))
}
