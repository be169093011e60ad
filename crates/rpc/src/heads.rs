//! New heads: which headers lead a subscriber from the chain it knows to the chain that is.
//!
//! Knows: how two views differ, and where their chains part.
//! Never knows: who subscribed, or how a header is sent.

use std::ops::RangeInclusive;
use std::sync::Arc;

use chain::BlockNumber;
use store::{Reader, StoreError, View};

/// Headers that are told at once, before the view is looked at again.
pub(crate) const HEADS_MAX: u64 = 64;

/// As far as a subscriber knows the chain: a view, up to one of its blocks.
#[derive(Clone, Debug)]
pub(crate) struct HeadCursor {
    view: Arc<View>,
    /// `None` as long as there is no block.
    number: Option<BlockNumber>,
}

/// Blocks to tell a subscriber of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingHeads {
    /// Their numbers, ascending.
    pub(crate) numbers: RangeInclusive<u64>,
    /// Whether the last of them is the tip.
    pub(crate) is_all: bool,
}

impl HeadCursor {
    /// All of a view.
    pub(crate) fn all_of(view: Arc<View>) -> Self {
        let number = view.tip();
        Self { view, number }
    }

    /// A view up to one of its blocks.
    pub(crate) fn up_to(view: Arc<View>, number: BlockNumber) -> Self {
        Self { view, number: Some(number) }
    }

    /// The blocks of `now` that follow what was seen: those above the fork point. Where the tip went
    /// down, it is told again; where nothing leads to it, as over a gap, it is told alone.
    pub(crate) async fn due(
        &self,
        reader: &mut Reader,
        now: &View,
    ) -> Result<Option<PendingHeads>, StoreError> {
        let (Some(run), seen) = (now.coverage().last().copied(), self.number.map(BlockNumber::get))
        else {
            return Ok(None);
        };
        let tip = run.last();
        let first = match (seen, self.fork_point(reader, now, run.first(), tip).await?) {
            (Some(seen), Some(fork)) if fork == tip && seen == tip => return Ok(None),
            (_, Some(fork)) => fork.saturating_add(1).min(tip),
            // Another chain from its first block on.
            (Some(seen), None) if seen.saturating_add(1) >= run.first() => run.first(),
            (_, None) => tip,
        };
        let last = first.saturating_add(HEADS_MAX.saturating_sub(1)).min(tip);
        Ok(Some(PendingHeads { numbers: first..=last, is_all: last == tip }))
    }

    /// The highest block that was seen and is in `now`, not below `first`.
    async fn fork_point(
        &self,
        reader: &mut Reader,
        now: &View,
        first: u64,
        tip: u64,
    ) -> Result<Option<u64>, StoreError> {
        let Some(seen) = self.number else { return Ok(None) };
        for number in (first..=seen.get().min(tip)).rev() {
            let before = self.view.read_hash(reader, BlockNumber(number)).await?;
            if before.is_none() {
                break;
            }
            if before == now.read_hash(reader, BlockNumber(number)).await? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}
