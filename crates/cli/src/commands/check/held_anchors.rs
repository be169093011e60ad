//! The operator's anchors, compared with the blocks of a folder that is checked.

use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::anyhow;
use chain::trust::Anchor;
use chain::{BlockNumber, BlockRange, ChainSpec};
use store::lock::LockError;
use store::manifest::{Manifest, SegmentEntry};
use store::read::block_on;
use store::{Reader, StoreError, View, Writer};

use crate::Failure;
use crate::commands::import::to_failure;
use crate::data_folder::DataFolder;

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
    },
}

impl HeldAnchors {
    /// Compares anchors with the blocks of a view.
    pub(super) fn find(view: &View, anchors: &[Anchor]) -> Result<Self, Failure> {
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
                    AnchorFinding::Contradicted { held, entry }
                }
            };
            found.push((*anchor, finding));
        }
        Ok(Self(found))
    }

    /// Records anchors of sealed blocks whose segments passed the check. The folder is locked for no
    /// longer than that takes.
    pub(super) fn record(
        &self,
        folder: &DataFolder,
        view: &View,
        refused: &[BlockRange],
        spec: ChainSpec,
    ) -> Result<(), Failure> {
        let manifest = view.manifest();
        let is_new = |(anchor, finding): &&(Anchor, AnchorFinding)| {
            let is_refused = refused.iter().any(|range| range.contains(anchor.number));
            let is_sealed = manifest.find_segment(BlockNumber(anchor.number)).is_some();
            let is_known = manifest.anchors().any(|known| known == *anchor);
            let is_same = matches!(finding, AnchorFinding::SameHash);
            is_same && is_sealed && !is_refused && !is_known
        };
        let new: Vec<Anchor> = self.0.iter().filter(is_new).map(|(anchor, _)| *anchor).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut writer = match Writer::open(Arc::clone(&folder.store), spec) {
            Err(StoreError::Lock(error @ LockError::Held { .. })) => {
                return Err(Failure::Work(anyhow!(
                    "{error}\n  hint: no anchor is recorded: stop the server that writes here and check \
                     again"
                )));
            }
            writer => writer.map_err(|error| to_failure(&error))?,
        };
        writer.record_anchors(new).map_err(|error| to_failure(&error))
    }

    /// The errors of those that held blocks contradict.
    pub(super) fn errors(&self) -> Vec<String> {
        let said = self.0.iter().filter_map(|(anchor, finding)| {
            let AnchorFinding::Contradicted { held, entry } = finding else { return None };
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
    pub(super) fn lines(&self, before: &Manifest, after: &Manifest, place: &str) -> Vec<String> {
        let lines = self.0.iter().map(|(anchor, finding)| {
            let number = anchor.number;
            let said = match finding {
                AnchorFinding::SameHash => fate(anchor, before, after),
                AnchorFinding::Absent => {
                    format!("block {number} is not here, nothing was compared with it")
                }
                AnchorFinding::Unreadable(error) => {
                    format!("block {number} cannot be read, nothing was compared with it: {error}")
                }
                AnchorFinding::Contradicted { entry, .. } => {
                    format!("if the anchor is right, {}", way_out(before, entry.as_ref(), place))
                }
            };
            format!("anchor {anchor}: {said}")
        });
        lines.collect()
    }
}

/// What became of an anchor whose block is here.
fn fate(anchor: &Anchor, before: &Manifest, after: &Manifest) -> String {
    let is_in = |manifest: &Manifest| manifest.anchors().any(|known| known == *anchor);
    let is_sealed = after.find_segment(BlockNumber(anchor.number)).is_some();
    match (is_in(after), is_in(before)) {
        (true, true) => "true, and was recorded before".to_owned(),
        (true, false) => "true, and is recorded".to_owned(),
        (false, _) if is_sealed => {
            "the same hash is here, but not recorded: its segment did not pass, or the data folder \
             could not be changed"
                .to_owned()
        }
        (false, _) => {
            "the same hash is here, but not recorded: its block is in the head, of which no anchor is \
             kept"
                .to_owned()
        }
    }
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
