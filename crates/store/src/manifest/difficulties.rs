//! Total difficulties: told once for a range, and added up from there.

use alloy_primitives::U256;
use chain::BlockNumber;

use super::{Manifest, ManifestConflict, SegmentEntry};

impl Manifest {
    /// Total difficulty before the first block of a segment, if it is known.
    #[must_use]
    pub fn difficulty_before(&self, segment: &SegmentEntry) -> Option<U256> {
        let number = segment.range.first();
        let range = self.coverage().into_iter().find(|range| range.contains(number))?;
        let base = match range.first() {
            0 => U256::ZERO,
            first => *self.difficulties.get(&first)?,
        };
        self.difficulty_between(range.first(), number).checked_add(base)
    }

    /// The difficulties of the blocks from `first` up to `end`, both of which begin a segment.
    fn difficulty_between(&self, first: u64, end: u64) -> U256 {
        let between = self.segments.iter().map(|entry| (entry.range.first(), entry.difficulty));
        let between = between.filter(|(number, _)| (first..end).contains(number));
        between.fold(U256::ZERO, |sum, (_, difficulty)| sum.saturating_add(difficulty))
    }

    /// Keeps of what is told one sum for every range, at its beginning, whatever was told first.
    pub(super) fn settle_difficulties(
        &mut self,
        told: Vec<(u64, U256)>,
    ) -> Result<(), ManifestConflict> {
        let told: Vec<(u64, U256)> =
            std::mem::take(&mut self.difficulties).into_iter().chain(told).collect();
        for range in self.coverage() {
            let first = range.first();
            let mut settled = (first == 0).then_some(U256::ZERO);
            // One that was told for a block which begins no segment any more cannot be compared.
            let begins = |number: u64| {
                self.find_segment(BlockNumber(number))
                    .is_some_and(|(_, it)| it.range.first() == number)
            };
            let told = told.iter().filter(|(number, _)| range.contains(*number) && begins(*number));
            for (number, found) in told {
                let between = self.difficulty_between(first, *number);
                let base = found.checked_sub(between);
                let held = settled.map(|held| held.saturating_add(between));
                match (settled, base) {
                    (None, Some(base)) => settled = Some(base),
                    (Some(held), Some(base)) if held == base => {}
                    (_, _) => {
                        let (number, found) = (*number, *found);
                        let held = held.unwrap_or(between);
                        return Err(ManifestConflict::Difficulty { number, found, held });
                    }
                }
            }
            if let Some(settled) = settled.filter(|_| first > 0) {
                self.difficulties.insert(first, settled);
            }
        }
        Ok(())
    }
}
