//! How far the blocks of a manifest can be trusted.

use chain::accumulator::EPOCH_BLOCKS;
use chain::trust::{AnchorConflict, Anchors, Epoch, ProvenRun, TrustStatus, assess};
use chain::{BlockNumber, BlockRange};

use super::{Manifest, ManifestConflict, SegmentEntry};

impl Manifest {
    /// The segments as runs of proven blocks, for [`chain::trust::assess`].
    #[must_use]
    pub fn trust_runs(&self) -> Vec<ProvenRun> {
        self.segments.iter().map(|entry| self.trust_run(entry)).collect()
    }

    /// One of them.
    pub(crate) fn trust_run(&self, entry: &SegmentEntry) -> ProvenRun {
        let range = entry.range;
        let hashes = self.anchors.range(range.first()..range.end());
        // No epoch below ends here, and of the others the lowest ends first.
        let mut epochs = self.epochs.range(range.first() / EPOCH_BLOCKS..);
        let epoch = epochs.find(|(_, last)| **last >= range.first());
        let epoch = epoch.filter(|(_, last)| range.contains(**last));
        ProvenRun {
            range,
            parent_hash: entry.parent_hash,
            last_hash: entry.last_hash,
            hashes: hashes.map(|(number, hash)| (*number, *hash)).collect(),
            epoch: epoch.map(|(number, last)| Epoch { number: *number, last: *last }),
            difficulty: None,
        }
    }

    /// What the folder trusts: its genesis, and what held blocks were proven by.
    pub fn trusted(&self) -> Result<Anchors, ManifestConflict> {
        self.add_trusted(Anchors::of_genesis(self.network.genesis_hash), |_| true)
    }

    /// The same beside what other manifests trust, for blocks that count.
    pub(crate) fn add_trusted(
        &self,
        others: Anchors,
        counts: impl Fn(BlockNumber) -> bool,
    ) -> Result<Anchors, ManifestConflict> {
        let own = self.anchors().filter(|anchor| counts(BlockNumber(anchor.number)));
        let anchors = others.with_operators(own).map_err(|conflict| {
            let AnchorConflict { refused, trusted, .. } = conflict;
            ManifestConflict::Anchor { refused, trusted }
        })?;
        Ok(self.epochs().fold(anchors, |anchors, epoch| anchors.with_proven_epoch(epoch.number)))
    }

    /// How far the held blocks can be trusted to be canonical, lowest first.
    pub fn statuses(&self) -> Result<Vec<(BlockRange, TrustStatus)>, ManifestConflict> {
        Ok(statuses_of(&self.trust_runs(), &self.trusted()?))
    }
}

/// How far the blocks of these runs can be trusted to be canonical, lowest first.
pub(crate) fn statuses_of(runs: &[ProvenRun], trusted: &Anchors) -> Vec<(BlockRange, TrustStatus)> {
    let assessed = assess(runs, trusted).into_iter().flatten().flatten();
    let mut all: Vec<(BlockRange, TrustStatus)> = assessed.collect();
    all.sort_by_key(|(range, _)| range.first());
    let mut joined: Vec<(BlockRange, TrustStatus)> = Vec::new();
    for (range, status) in all {
        let touching =
            joined.pop_if(|(before, same)| before.end() == range.first() && *same == status);
        let first = touching.map_or(range.first(), |(before, _)| before.first());
        let range = BlockRange::from_ends(first, range.last()).unwrap_or(range);
        joined.push((range, status));
    }
    joined
}
