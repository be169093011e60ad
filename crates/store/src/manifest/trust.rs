//! How far the blocks of a manifest can be trusted.
//!
//! Knows: which segments are runs of proven blocks, and which are digest only.
//! Never knows: how runs are judged.

use std::collections::BTreeSet;

use chain::accumulator::EPOCH_BLOCKS;
use chain::trust::{AnchorConflict, Anchors, Epoch, Opponent, ProvenRun, TrustStatus, assess};
use chain::{BlockNumber, BlockRange};

use super::{Manifest, ManifestConflict, SegmentEntry};
use crate::layout::{join_ranges, overlap};

impl Manifest {
    /// The segments as runs of proven blocks, for [`chain::trust::assess`]. What is digest only is none of
    /// them: nothing is linked through it.
    #[must_use]
    pub fn trust_runs(&self) -> Vec<ProvenRun> {
        self.proven_segments().map(|entry| self.trust_run(entry)).collect()
    }

    fn proven_segments(&self) -> impl Iterator<Item = &SegmentEntry> {
        self.segments.iter().filter(|entry| !self.is_digest_only(&entry.file_name))
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
        Ok(statuses_of(&self.trust_runs(), &self.digest_only(), &self.trusted()?))
    }

    /// The blocks of segments that were taken as somebody published them, and that nobody has proven.
    #[must_use]
    pub fn digest_only(&self) -> Vec<BlockRange> {
        join_ranges(self.digest_only_segments().map(|entry| entry.range))
    }

    /// These segments, lowest block first.
    pub fn digest_only_segments(&self) -> impl Iterator<Item = &SegmentEntry> {
        self.segments.iter().filter(|entry| self.is_digest_only(&entry.file_name))
    }

    /// Whether a file is one of these segments.
    #[must_use]
    pub fn is_digest_only(&self, file_name: &str) -> bool {
        self.digest_only.contains(file_name)
    }

    /// Whether some of these blocks are digest only.
    pub(crate) fn has_digest_only(&self, blocks: BlockRange) -> bool {
        self.digest_only_segments().any(|entry| overlap(entry.range, blocks).is_some())
    }

    /// Only what is listed can be digest only.
    pub(super) fn check_digest_only(&self) -> Result<(), ManifestConflict> {
        let listed: BTreeSet<&str> =
            self.digest_only_segments().map(|entry| &*entry.file_name).collect();
        match self.digest_only.iter().find(|name| !listed.contains(name.as_str())) {
            Some(name) => Err(ManifestConflict::Unlisted { file_name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The files of proven segments that contradict each other, or a trusted hash.
    pub(crate) fn contradictory_segments(&self) -> Result<BTreeSet<String>, ManifestConflict> {
        let segments: Vec<&SegmentEntry> = self.proven_segments().collect();
        let assessed = assess(&self.trust_runs(), &self.trusted()?);
        let refused = assessed.into_iter().enumerate();
        let refused = refused.filter_map(|(position, it)| Some((position, it.err()?.with)));
        let positions = refused.flat_map(|(position, with)| match with {
            Opponent::Anchor => [Some(position), None],
            Opponent::ProvenRun(other, _) => [Some(position), Some(other)],
        });
        let files = positions.flatten().filter_map(|position| segments.get(position));
        Ok(files.map(|entry| entry.file_name.clone()).collect())
    }

    /// The files of proven segments with blocks that link to nothing trusted.
    pub(crate) fn unanchored_segments(&self) -> Result<BTreeSet<String>, ManifestConflict> {
        let assessed = assess(&self.trust_runs(), &self.trusted()?);
        let with_status = self.proven_segments().zip(assessed);
        let unanchored = with_status.filter(|(_, assessed)| {
            let mut statuses = assessed.iter().flatten();
            statuses.any(|(_, status)| *status == TrustStatus::Unanchored)
        });
        Ok(unanchored.map(|(entry, _)| entry.file_name.clone()).collect())
    }
}

/// How far the blocks of these runs can be trusted to be canonical, and those that are digest only, lowest
/// first.
pub(crate) fn statuses_of(
    runs: &[ProvenRun],
    digest_only: &[BlockRange],
    trusted: &Anchors,
) -> Vec<(BlockRange, TrustStatus)> {
    let unproven = digest_only.iter().map(|range| (*range, TrustStatus::DigestOnly));
    let assessed = assess(runs, trusted).into_iter().flatten().flatten();
    let mut all: Vec<(BlockRange, TrustStatus)> = assessed.chain(unproven).collect();
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
