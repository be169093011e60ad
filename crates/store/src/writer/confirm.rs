//! What was digest only and is proven now.
//!
//! Knows: that this is one commit, and that what contradicts proven blocks, or links to nothing trusted,
//! stays what it was.
//! Never knows: how blocks are proven.

use std::collections::BTreeSet;

use chain::BlockRange;

use super::{CommitFacts, Writer};
use crate::error::StoreError;
use crate::layout::join_ranges;
use crate::manifest::Edit;

/// What became of segments that were proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmed {
    /// The blocks that are not digest only any more.
    pub blocks: Vec<BlockRange>,
    /// The files that stay digest only because their blocks link to nothing trusted.
    pub unanchored: BTreeSet<String>,
}

impl Writer {
    /// Records that the blocks of these segments were proven, and what became known of the chain with
    /// them. Segments that are not listed any more, or were not digest only, are passed over, and so are
    /// those that contradict what is proven or trusted, and unless that is allowed those that link to
    /// nothing trusted.
    pub fn confirm(
        &mut self,
        proven: &BTreeSet<String>,
        facts: CommitFacts,
        is_unanchored_allowed: bool,
    ) -> Result<Confirmed, StoreError> {
        self.look()?;
        let view = self.view();
        let before = view.manifest();
        let marked = before.digest_only_segments().filter(|it| proven.contains(&it.file_name));
        let mut proven: BTreeSet<String> = marked.map(|it| it.file_name.clone()).collect();
        let CommitFacts { network, anchors, epochs, difficulties, arrived: _ } = facts;
        let is_told = !(anchors.is_empty() && epochs.is_empty());
        let facts = Edit { network, anchors, epochs, difficulties, ..Edit::default() };
        let mut unanchored = BTreeSet::new();
        let next = loop {
            if proven.is_empty() && !is_told {
                // What failed before may be shown and not be durable.
                self.replace_as_it_is(before)?;
                return Ok(Confirmed { blocks: Vec::new(), unanchored });
            }
            let next = before.edited(Edit { proven: proven.clone(), ..facts.clone() })?;
            let refused = next.contradictory_segments()?;
            let count = proven.len();
            proven.retain(|name| !refused.contains(name));
            if proven.len() == count && !is_unanchored_allowed {
                unanchored.extend(next.unanchored_segments()?.intersection(&proven).cloned());
                proven.retain(|name| !unanchored.contains(name));
            }
            if proven.len() == count {
                break next;
            }
        };
        self.settle_head()?;
        self.replace(next)?;
        let segments = before.segments().iter().filter(|it| proven.contains(&it.file_name));
        Ok(Confirmed { blocks: join_ranges(segments.map(|entry| entry.range)), unanchored })
    }
}
