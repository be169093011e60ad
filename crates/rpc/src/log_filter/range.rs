//! The blocks of a filter's range: what its numbers and tags mean to a store.

use chain::{BlockNumber, BlockRange};

use crate::absence::Absence;
use crate::params::{BlockRef, BlockTagName};
use crate::refusal::Refusal;

/// What ranges are held against: the chain as far as a store knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterHorizon<'a> {
    /// The blocks that are held, lowest first.
    pub(crate) blocks: &'a [BlockRange],
    /// Those among them whose receipts are.
    pub(crate) receipts: &'a [BlockRange],
    pub(crate) tip: Option<BlockNumber>,
    pub(crate) safe: Option<BlockNumber>,
    pub(crate) finalized: Option<BlockNumber>,
    /// The highest block that was held and lost.
    pub(crate) lost: Option<BlockNumber>,
    /// What a block above all of them is.
    pub(crate) above_tip: Absence,
}

impl FilterHorizon<'_> {
    /// The blocks of a range, if the logs of all of them are held.
    pub(crate) fn resolve(&self, from: BlockRef, to: BlockRef) -> Result<BlockRange, Refusal> {
        let is_pending = |end| end == BlockRef::Tag(BlockTagName::Pending);
        if is_pending(from) || is_pending(to) {
            return Err(Refusal::PendingLogs);
        }
        let (first, last) = (self.number(from)?, self.number(to)?);
        if first > last {
            return Err(Refusal::InvalidBlockRange);
        }
        let is_above = self.tip.is_none_or(|tip| last > tip) && self.lost < Some(last);
        if is_above && self.above_tip == Absence::Absent {
            return Err(Refusal::BlockRangeBeyondHead);
        }
        let blocks_not_held = |number| Refusal::BlockNotHeld { number, held: self.blocks.to_vec() };
        // Only the highest number of all ends no range.
        let asked = BlockRange::from_ends(first, last);
        let asked = asked.ok_or_else(|| blocks_not_held(last.get()))?;
        if let Some(number) = first_missing(asked, self.blocks) {
            return Err(blocks_not_held(number));
        }
        match first_missing(asked, self.receipts) {
            Some(number) => Err(Refusal::ReceiptsNotHeld { number, held: self.receipts.to_vec() }),
            None => Ok(asked),
        }
    }

    fn number(&self, end: BlockRef) -> Result<BlockNumber, Refusal> {
        let tag = match end {
            BlockRef::Number(number) => return Ok(BlockNumber(number)),
            BlockRef::Tag(tag) => tag,
            // A range has no hashes: the parser reads none.
            BlockRef::Hash(_) => return Err(Refusal::InvalidBlockRange),
        };
        let lowest = || self.blocks.first().map(|range| BlockNumber(range.first()));
        let found = match tag {
            BlockTagName::Latest => self.tip,
            BlockTagName::Earliest => lowest(),
            BlockTagName::Safe => self.safe,
            BlockTagName::Finalized => self.finalized,
            BlockTagName::Pending => None,
        };
        let unknown = || match self.tip {
            Some(_) => Refusal::TagUnknown { tag: tag.name() },
            None => Refusal::NothingHeld,
        };
        found.ok_or_else(unknown)
    }
}

/// The first block of a range that none of these holds.
pub(crate) fn first_missing(asked: BlockRange, held: &[BlockRange]) -> Option<u64> {
    let mut next = asked.first();
    for range in held {
        if range.contains(BlockNumber(next)) {
            if range.last() >= asked.last() {
                return None;
            }
            next = range.last().saturating_add(1);
        }
    }
    Some(next)
}
