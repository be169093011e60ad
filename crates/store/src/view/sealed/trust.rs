//! How far sealed blocks of several manifests can be trusted.

use alloy_primitives::B256;
use chain::BlockNumber;
use chain::trust::{Anchors, ProvenRun};

use super::Sealed;
use crate::manifest::ManifestConflict;
use crate::published::AdmittedHistory;

impl Sealed {
    /// All of it as runs of proven blocks, for [`chain::trust::assess`].
    pub(in crate::view) fn trust_runs(&self) -> Vec<ProvenRun> {
        // Of a folder alone also those that cannot be read: they are sealed all the same.
        if let Some(own) = self.layers.first().filter(|_| !self.is_union) {
            return own.manifest.trust_runs();
        }
        let mut before: Option<(u64, B256)> = None;
        let mut runs = Vec::new();
        for piece in &self.pieces {
            let Some((layer, entry)) = self.layers.get(piece.layer).zip(self.entry(piece)) else {
                continue;
            };
            let mut run = layer.manifest.trust_run(entry);
            run.range = piece.range;
            if piece.range.first() > entry.range.first() {
                let parent = before.filter(|(end, _)| *end == piece.range.first());
                run.parent_hash = parent.map(|(_, hash)| hash).unwrap_or_default();
            }
            run.last_hash = piece.seam.unwrap_or(entry.last_hash);
            run.hashes.retain(|number, _| piece.range.contains(*number));
            run.epoch = run.epoch.filter(|epoch| piece.range.contains(epoch.last));
            before = Some((piece.range.end(), run.last_hash));
            runs.push(run);
        }
        runs
    }

    /// What all manifests trust, but for blocks that were withdrawn: what is wrong with those may
    /// be their hashes.
    pub(in crate::view) fn trusted(
        &self,
        genesis_hash: Option<B256>,
        published: &AdmittedHistory,
    ) -> Result<Anchors, ManifestConflict> {
        let anchors = Anchors::of_genesis(genesis_hash);
        self.layers.iter().map(|layer| &layer.manifest).try_fold(anchors, |anchors, manifest| {
            manifest.add_trusted(anchors, |number| published.is_live(manifest, number))
        })
    }

    /// The nearest block from a number on that any manifest trusts.
    pub(in crate::view) fn anchor_from(
        &self,
        number: BlockNumber,
        published: &AdmittedHistory,
    ) -> Option<BlockNumber> {
        let anchors = self.layers.iter().filter_map(|layer| {
            let manifest = &layer.manifest;
            manifest.anchors_from(number).find(|it| published.is_live(manifest, *it))
        });
        anchors.min()
    }
}
