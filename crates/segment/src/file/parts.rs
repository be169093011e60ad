//! Which page a block's header is in, and which one its ommers and withdrawals.

use crate::bytes::allocated;

/// The pages of one kind, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct PartPages(Vec<PartPage>);

#[derive(Clone, Copy, Debug)]
struct PartPage {
    /// Which page of the segment it is.
    page: usize,
    /// The position of the first block that is not in it.
    end: usize,
}

impl PartPages {
    /// Adds a page of the next so many blocks.
    pub(super) fn push(&mut self, page: usize, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let end = self.block_count().saturating_add(count);
        self.0.push(PartPage { page, end });
    }

    /// How many blocks the pages hold parts of.
    pub(super) fn block_count(&self) -> usize {
        self.0.last().map_or(0, |page| page.end)
    }

    /// The page with the block at a position, and how many blocks come before it there.
    pub(super) fn find(&self, position: usize) -> Option<(usize, usize)> {
        let at = self.0.partition_point(|page| page.end <= position);
        let before = at.checked_sub(1).and_then(|before| self.0.get(before));
        let first = before.map_or(0, |before| before.end);
        Some((self.0.get(at)?.page, position.checked_sub(first)?))
    }

    /// Bytes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_found_in_the_page_that_has_it() {
        let mut pages = PartPages::default();
        assert_eq!((pages.block_count(), pages.find(0)), (0, None));
        // An empty page is no block's.
        for (page, count) in [(7, 3), (8, 1), (9, 0), (12, 2)] {
            pages.push(page, count);
        }
        let found: Vec<_> = (0..pages.block_count()).map(|at| pages.find(at).unwrap()).collect();
        assert_eq!(found, [(7, 0), (7, 1), (7, 2), (8, 0), (12, 0), (12, 1)]);
        assert_eq!(pages.find(6), None);
        pages.push(13, u64::MAX);
        assert_eq!(pages.block_count(), usize::MAX);
    }
}
