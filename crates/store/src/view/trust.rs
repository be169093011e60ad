//! How far the blocks of a view can be trusted.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use chain::trust::{ProvenRun, TrustStatus};
use chain::{BlockNumber, BlockRange, decode_header};

use super::View;
use crate::error::StoreError;
use crate::manifest::{ManifestConflict, statuses_of};
use crate::reader::Reader;

impl View {
    /// How far all blocks can be trusted to be canonical, those of the head included, lowest first.
    pub fn statuses(&self) -> Result<Vec<(BlockRange, TrustStatus)>, ManifestConflict> {
        self.statuses_with(self.head_run(BlockNumber::MAX))
    }

    /// The same of what is sealed, and of blocks that lie above it.
    pub fn statuses_with(
        &self,
        above: Option<ProvenRun>,
    ) -> Result<Vec<(BlockRange, TrustStatus)>, ManifestConflict> {
        let mut runs = self.sealed.trust_runs();
        runs.extend(above);
        let trusted = self.sealed.trusted(self.network().genesis_hash, &self.published)?;
        Ok(statuses_of(&runs, &trusted))
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

    /// The nearest block from a number on whose hash was trusted beforehand.
    #[must_use]
    pub fn trusted_from(&self, number: BlockNumber) -> Option<BlockNumber> {
        let is_genesis = number == BlockNumber(0) && self.network().genesis_hash.is_some();
        let anchor = || self.sealed.anchor_from(number, &self.published);
        if is_genesis { Some(number) } else { anchor() }
    }

    /// Whether [`View::finalized`] answers without an assessment of all segments.
    #[cfg(test)]
    pub(crate) fn is_trust_assessed(&self) -> bool {
        self.finalized.get().is_some()
    }

    /// Total difficulty before a block, where a source told it for its segment or the one before.
    pub async fn difficulty_before(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<U256>, StoreError> {
        if number == BlockNumber(0) {
            return Ok(Some(U256::ZERO));
        }
        let Some((first, mut sum)) = self.sealed.difficulty_before(number) else {
            return Ok(None);
        };
        for before in first.get()..number.get() {
            let Some(header) = self.read_header(reader, BlockNumber(before)).await? else {
                return Ok(None);
            };
            let Ok(header) = decode_header(&header.rlp) else { return Ok(None) };
            sum = sum.saturating_add(header.difficulty);
        }
        Ok(Some(sum))
    }
}
