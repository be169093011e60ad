//! The operator's anchors, held against the blocks of a folder that is checked.
//!
//! Knows: what is said of each, and that nothing is dropped for what one of them says.
//! Never knows: how they are recorded.

use alloy_primitives::B256;
use chain::trust::Anchor;
use chain::{BlockNumber, BlockRange};
use ingest::check::CheckedFolder;
use store::manifest::{Manifest, SegmentEntry};
use store::read::block_on;
use store::{CommitFacts, Reader, StoreError, View};

use crate::Failure;

use super::digest_only::texts;

/// Anchors, and what the folder has in their places.
#[derive(Debug)]
pub(super) struct HeldAnchors(Vec<(Anchor, AnchorFinding)>);

#[derive(Debug)]
enum AnchorFinding {
    SameHash,
    Absent,
    Unreadable(StoreError),
    Contradicted {
        held: B256,
        /// The segment that has it; none if it is in the head.
        entry: Option<SegmentEntry>,
        /// Blocks that are digest only and are not proven because of it.
        unproven: Vec<BlockRange>,
    },
}

impl HeldAnchors {
    /// Holds anchors against the blocks here. What contradicts one, and what descends from it, does
    /// not count as proven.
    pub(super) fn hold(
        view: &View,
        anchors: &[Anchor],
        checked: &mut CheckedFolder,
    ) -> Result<Self, Failure> {
        let mut reader = Reader::new()?;
        let mut found = Vec::new();
        for anchor in anchors {
            let number = BlockNumber(anchor.number);
            let finding = match block_on(view.read_hash(&mut reader, number)) {
                Err(error) => AnchorFinding::Unreadable(error),
                Ok(None) => AnchorFinding::Absent,
                Ok(Some(held)) if held == anchor.hash => AnchorFinding::SameHash,
                Ok(Some(held)) => {
                    let entry = view.manifest().find_segment(number).map(|(_, it)| it.clone());
                    let unproven = checked.contradict(view.manifest(), number);
                    AnchorFinding::Contradicted { held, entry, unproven }
                }
            };
            found.push((*anchor, finding));
        }
        Ok(Self(found))
    }

    /// What is said of those that held blocks contradict.
    pub(super) fn errors(&self) -> Vec<String> {
        let said = self.0.iter().filter_map(|(anchor, finding)| {
            let AnchorFinding::Contradicted { held, entry, .. } = finding else { return None };
            let place = match entry {
                Some(entry) => format!("by {}", entry.file_name),
                None => "in the head".to_owned(),
            };
            let number = anchor.number;
            Some(format!(
                "anchor {anchor}: block {number} is {held} {place}\n  hint: see which of the two is \
                 false"
            ))
        });
        said.collect()
    }

    /// What became of each, one after the other.
    pub(super) fn lines(
        &self,
        view: &View,
        facts: &CommitFacts,
        after: &Manifest,
        place: &str,
    ) -> Vec<String> {
        let before = view.manifest();
        let lines = self.0.iter().filter_map(|(anchor, finding)| {
            let number = anchor.number;
            let said = match finding {
                AnchorFinding::SameHash => fate(anchor, before, facts, after),
                AnchorFinding::Absent => {
                    format!("block {number} is not here, nothing was held against it")
                }
                AnchorFinding::Unreadable(error) => {
                    format!("block {number} cannot be read, nothing was held against it: {error}")
                }
                AnchorFinding::Contradicted { unproven, .. } if unproven.is_empty() => return None,
                AnchorFinding::Contradicted { entry, unproven, .. } => format!(
                    "blocks {} contradict it or descend from a block that does: they stay digest \
                     only, and --drop-false does not drop them for it\n  hint: if the anchor is right, {}",
                    texts(unproven),
                    way_out(before, entry.as_ref(), place)
                ),
            };
            Some(format!("anchor {anchor}: {said}"))
        });
        lines.collect()
    }
}

/// What became of an anchor whose block is here.
fn fate(anchor: &Anchor, before: &Manifest, facts: &CommitFacts, after: &Manifest) -> String {
    let is_in = |manifest: &Manifest| manifest.anchors().any(|known| known == *anchor);
    let is_same_after = is_in(after);
    let reason = match after.find_segment(BlockNumber(anchor.number)) {
        _ if is_same_after && is_in(before) => return "true, and was recorded before".to_owned(),
        _ if is_same_after => return "true, and is recorded".to_owned(),
        _ if facts.anchors.contains(anchor) => "the data folder could not be changed",
        None => "its block is in the head, of which none is kept",
        Some((_, entry)) if after.is_digest_only(&entry.file_name) => "its block is not proven",
        Some(_) => "the file of its block is not what it should be",
    };
    format!("it is the hash that is here, but not recorded: {reason}")
}

/// How blocks are got rid of that contradict an anchor which is right.
fn way_out(manifest: &Manifest, entry: Option<&SegmentEntry>, place: &str) -> String {
    let below = entry.and_then(|entry| {
        let number = entry.range.first().checked_sub(1)?;
        let (_, below) = manifest.find_segment(BlockNumber(number))?;
        (below.last_hash == entry.parent_hash).then_some((number, entry.parent_hash))
    });
    match below {
        Some((number, hash)) => format!(
            "quipu rewind --data-dir {place} --to {number}:{hash} drops them, and all that is above \
             that block"
        ),
        None => "fetch into another folder".to_owned(),
    }
}
