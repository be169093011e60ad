//! The end of every import and backfill: what arrived is judged beside what is held, and committed.

use alloy_primitives::U256;
use chain::trust::{Anchors, ProvenRun, TrustStatus};
use chain::{BlockRange, ChainSpec};
use store::{CommitFacts, NewSegment, StoreError};

use super::ImportError;
use super::intake::network_of;
use super::trust::Trust;

/// Whoever makes new segments live.
pub type Commit<'a> = dyn FnMut(Vec<NewSegment>, CommitFacts) -> Result<(), StoreError> + 'a;

/// What was taken of a file or of a unit of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportReport {
    /// The blocks that were taken.
    pub range: BlockRange,
    /// Transactions in them.
    pub transaction_count: u64,
    /// Segments that were built.
    pub segment_count: usize,
    /// Bytes of these segments.
    pub bytes: u64,
    /// How far the blocks can be trusted to be canonical.
    pub statuses: Vec<(BlockRange, TrustStatus)>,
}

/// Blocks that are proven and built, but not live.
pub(crate) struct Arrival {
    pub(crate) run: ProvenRun,
    pub(crate) segments: Vec<NewSegment>,
    pub(crate) transaction_count: u64,
    /// Total difficulty before a block, if the source says it.
    pub(crate) difficulty: Option<(u64, U256)>,
}

/// Who lets an arrival in.
pub(crate) struct Judge<'a> {
    /// The file or the blocks, for messages.
    pub(crate) source: &'a str,
    /// What the source is called where its word on a block is named beside what is held.
    pub(crate) called: &'a dyn Fn(u64) -> String,
    pub(crate) spec: &'a ChainSpec,
    pub(crate) anchors: &'a Anchors,
    /// What is held.
    pub(crate) trust: Trust,
    pub(crate) is_unanchored_allowed: bool,
}

impl Judge<'_> {
    /// Commits an arrival that nothing contradicts.
    pub(crate) fn commit(
        self,
        arrival: Arrival,
        commit: &mut Commit<'_>,
    ) -> Result<ImportReport, ImportError> {
        let Arrival { run, segments, transaction_count, difficulty } = arrival;
        let range = run.range;
        let statuses = self.trust.judge(self.source, self.called, &run, self.anchors)?;
        let is_unanchored =
            |(_, status): &&(BlockRange, TrustStatus)| *status == TrustStatus::Unanchored;
        if let Some((range, _)) = statuses.iter().find(is_unanchored)
            && !self.is_unanchored_allowed
        {
            let (file, range) = (self.source.to_owned(), *range);
            return Err(ImportError::Unanchored { file, range });
        }
        let bytes = segments.iter().map(|segment| segment.entry().bytes).sum();
        let segment_count = segments.len();
        let anchors = self.anchors.operator().filter(|anchor| range.contains(anchor.number));
        let facts = CommitFacts {
            network: network_of(self.spec),
            anchors: anchors.chain(self.trust.anchors).collect(),
            epochs: run.epoch.into_iter().collect(),
            difficulties: difficulty.into_iter().collect(),
        };
        commit(segments, facts)?;
        Ok(ImportReport { range, transaction_count, segment_count, bytes, statuses })
    }
}
