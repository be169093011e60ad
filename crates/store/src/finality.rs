//! What somebody whom the writer follows calls safe and final.

use crate::block_id::BlockId;

/// Two blocks by their number and hash. A view carries them, so that one request sees one picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finality {
    /// Not expected to change.
    pub safe: Option<BlockId>,
    /// Will not change.
    pub finalized: Option<BlockId>,
}

impl Finality {
    /// What counts when somebody tells of finality: a final block stays unless a higher one is told.
    #[must_use]
    pub fn advanced_by(self, told: Self) -> Self {
        let held = self.finalized;
        let is_higher = |told: &BlockId| held.is_none_or(|held| told.number > held.number);
        let safe = told.safe.or(self.safe);
        Self { safe, finalized: told.finalized.filter(is_higher).or(held) }
    }

    /// What is left of it when every block above this one is dropped.
    #[must_use]
    pub fn lowered_to(self, to: BlockId) -> Self {
        let lowered = |block: BlockId| if block.number > to.number { to } else { block };
        Self { safe: self.safe.map(lowered), finalized: self.finalized.map(lowered) }
    }
}
