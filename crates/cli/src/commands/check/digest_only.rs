//! What becomes of blocks that are digest only when they are checked.
//!
//! Knows: what is recorded of those that are true, and the way out of those that are false.
//! Never knows: how blocks are proven.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use chain::{BlockRange, ChainSpec};
use ingest::check::CheckedFolder;
use store::layout::{join_ranges, subtract};
use store::lock::LockError;
use store::{CommitFacts, StoreError, View, Writer};

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::commands::import::to_failure;
use crate::data_folder::DataFolder;
use crate::output::counted;

/// A folder that was checked.
pub(super) struct DigestOnly<'a> {
    pub(super) folder: &'a DataFolder,
    /// What was checked.
    pub(super) view: &'a View,
    pub(super) checked: &'a CheckedFolder,
    /// What became known of the chain.
    pub(super) facts: CommitFacts,
    pub(super) args: &'a CheckArgs,
}

/// What became of blocks that were digest only.
#[derive(Debug, Default)]
pub(super) struct SettledBlocks {
    proven: Vec<BlockRange>,
    dropped: Vec<BlockRange>,
    /// Those that are false and still there.
    left: Vec<BlockRange>,
}

impl DigestOnly<'_> {
    /// Records what was proven, and drops what is false if that is wanted. The folder is locked for no
    /// longer than that takes.
    pub(super) fn settle(self, spec: ChainSpec) -> Result<SettledBlocks, Failure> {
        let manifest = self.view.manifest();
        let is_marked = |name: &String| manifest.is_digest_only(name);
        let mut refused: BTreeSet<String> =
            self.checked.false_segments.iter().filter(|it| is_marked(it)).cloned().collect();
        let is_dropping =
            self.args.drop_false && !(refused.is_empty() && self.checked.false_runs.is_empty());
        let CommitFacts { anchors, epochs, .. } = &self.facts;
        let is_recording =
            !(self.checked.proven.is_empty() && anchors.is_empty() && epochs.is_empty());
        if !is_dropping && !is_recording {
            return Ok(SettledBlocks { left: self.blocks_of(&refused), ..Default::default() });
        }
        let mut writer = match Writer::open(Arc::clone(&self.folder.store), spec) {
            Err(StoreError::Lock(error @ LockError::Held { .. })) => {
                return Err(Failure::Work(anyhow!(
                    "{error}\n  hint: what was proven is not recorded, and nothing was dropped: stop the \
                     server that writes here and check again"
                )));
            }
            writer => writer.map_err(|error| to_failure(&error))?,
        };
        let confirmed = writer.confirm(&self.checked.proven, self.facts.clone());
        let proven = confirmed.map_err(|error| to_failure(&error))?;
        // What contradicts a trusted hash, or its proven neighbour, is proven inside and stays marked.
        let after = writer.view();
        let contradictory = self.checked.proven.iter();
        refused.extend(contradictory.filter(|it| after.manifest().is_digest_only(it)).cloned());
        if !self.args.drop_false {
            return Ok(SettledBlocks {
                proven,
                left: self.blocks_of(&refused),
                dropped: Vec::new(),
            });
        }
        let dropped = writer.drop_unproven(&refused, &self.checked.false_runs);
        let dropped = dropped.map_err(|error| to_failure(&error))?;
        Ok(SettledBlocks { proven, dropped, left: Vec::new() })
    }

    fn blocks_of(&self, names: &BTreeSet<String>) -> Vec<BlockRange> {
        let segments = self.view.manifest().digest_only_segments();
        join_ranges(segments.filter(|it| names.contains(&it.file_name)).map(|it| it.range))
    }
}

impl SettledBlocks {
    /// What is said of the blocks of a view that were digest only.
    pub(super) fn lines(&self, view: &View, folder: &Path) -> Vec<String> {
        let before = view.manifest().digest_only();
        if before.is_empty() {
            return Vec::new();
        }
        let place = folder.display();
        let mut lines = vec![self.proven_text(&before)];
        if !self.dropped.is_empty() {
            lines.push(format!(
                "blocks {} were digest only and false, and are dropped: quipu fetch takes them again, from \
                 another publisher or without --digest-only",
                texts(&self.dropped)
            ));
        }
        if !self.left.is_empty() {
            lines.push(format!(
                "blocks {} are digest only and false\n  hint: quipu check --data-dir {place} --drop-false \
                 drops them, and quipu fetch takes them again, from another publisher or without \
                 --digest-only",
                texts(&self.left)
            ));
        }
        lines
    }

    fn proven_text(&self, before: &[BlockRange]) -> String {
        let count = |ranges: &[BlockRange]| ranges.iter().map(BlockRange::count).sum::<u64>();
        let (proven_count, all_count) = (count(&self.proven), count(before));
        if proven_count == all_count {
            let are =
                if all_count == 1 { "was digest only and is" } else { "were digest only and are" };
            return format!("{} {are} proven now", counted(all_count, "block"));
        }
        let left = subtract(&subtract(before, &self.proven), &self.dropped);
        let stay = if left.is_empty() {
            String::new()
        } else {
            format!("; {} stay digest only", texts(&left))
        };
        format!("{proven_count} of {all_count} blocks that were digest only are proven now{stay}")
    }
}

fn texts(ranges: &[BlockRange]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
