//! How far the blocks of a view can be trusted.
//!
//! Knows: which runs of proven blocks a view has, of its folder, of what others published, of its head.
//! Never knows: how runs are judged.

use std::collections::BTreeMap;

use chain::trust::{ProvenRun, TrustStatus};
use chain::{BlockNumber, BlockRange};

use super::View;
use crate::manifest::statuses_of;

impl View {
    /// How far all blocks can be trusted to be canonical, those of the head included, lowest first.
    #[must_use]
    pub fn statuses(&self) -> Vec<(BlockRange, TrustStatus)> {
        self.statuses_with(self.head_run(BlockNumber::MAX))
    }

    /// The same of what is sealed, and of blocks that lie above it.
    pub(crate) fn statuses_with(&self, above: Option<ProvenRun>) -> Vec<(BlockRange, TrustStatus)> {
        let mut runs = self.sealed.trust_runs();
        runs.extend(above);
        statuses_of(&runs, &self.sealed.trusted(self.network().genesis_hash))
    }

    /// The head's blocks up to a number as a run of proven blocks, for [`chain::trust::assess`].
    #[must_use]
    pub fn head_run(&self, last: BlockNumber) -> Option<ProvenRun> {
        let blocks = self.head.blocks();
        let count = blocks.partition_point(|block| block.number() <= last);
        let blocks = blocks.get(..count)?;
        let (first, last) = (blocks.first()?, blocks.last()?);
        Some(ProvenRun {
            range: BlockRange::from_ends(first.number(), last.number())?,
            parent_hash: first.parent_hash(),
            last_hash: last.hash(),
            hashes: BTreeMap::new(),
            epoch: None,
            difficulty: None,
        })
    }
}
