//! What becomes of blocks that are digest only when they are checked.
//!
//! Knows: what is recorded of those that are true, and the way out of those that are false.
//! Never knows: how blocks are proven.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use chain::{BlockRange, ChainSpec};
use ingest::check::CheckedFolder;
use replica::{SealedFile, has_listed_file};
use store::layout::{join_ranges, subtract};
use store::lock::LockError;
use store::manifest::SegmentEntry;
use store::{CommitFacts, StoreError, View, Writer};

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::commands::import::to_failure;
use crate::data_folder::DataFolder;
use crate::output::counted;

/// What is said of blocks for which nothing speaks but they themselves.
const UNLINKED: &str = "link to nothing known";

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
    /// Those whose files are as they were published, and prove false or contradict what is proven.
    refuted: Vec<BlockRange>,
    /// Those whose files are not here as they were published.
    damaged: Vec<BlockRange>,
    /// Those that are true inside and link to nothing known, which was not allowed.
    unanchored: Vec<BlockRange>,
    /// Those of these that are dropped.
    dropped: Vec<BlockRange>,
    /// Those of these that are not, because the head stands on them.
    under_head: Vec<BlockRange>,
    /// How many segments proved true inside and contradict what is proven.
    pub(super) contradictory_count: u64,
    /// How many did and link to nothing known.
    pub(super) unanchored_count: u64,
    /// How many false lookup runs told of blocks that were digest only.
    false_run_count: usize,
    are_runs_rebuilt: bool,
}

impl DigestOnly<'_> {
    /// Records what was proven, and drops what is false if that is wanted. The folder is locked for no
    /// longer than that takes. What was done is told also if something fails after it.
    pub(super) fn settle(&self, spec: ChainSpec) -> (SettledBlocks, Result<(), Failure>) {
        let mut settled = SettledBlocks::default();
        let done = self.settle_into(&mut settled, spec);
        (settled, done)
    }

    fn settle_into(&self, settled: &mut SettledBlocks, spec: ChainSpec) -> Result<(), Failure> {
        let manifest = self.view.manifest();
        let marked = manifest.digest_only_segments();
        let marked = marked.filter(|it| self.checked.false_segments.contains(&it.file_name));
        let (whole, damaged): (Vec<&SegmentEntry>, Vec<&SegmentEntry>) =
            marked.partition(|it| has_listed_file(&*self.folder.disk, &SealedFile::from(*it)));
        let mut refused: BTreeSet<String> =
            whole.iter().chain(&damaged).map(|it| it.file_name.clone()).collect();
        settled.refuted = join_ranges(whole.iter().map(|it| it.range));
        settled.damaged = join_ranges(damaged.iter().map(|it| it.range));
        settled.false_run_count = self.checked.false_unproven_runs(manifest).count();
        let is_dropping =
            self.args.drop_false && !(refused.is_empty() && settled.false_run_count == 0);
        let CommitFacts { anchors, epochs, .. } = &self.facts;
        let is_recording =
            !(self.checked.proven.is_empty() && anchors.is_empty() && epochs.is_empty());
        if !is_dropping && !is_recording {
            return Ok(());
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
        let confirmed =
            writer.confirm(&self.checked.proven, self.facts.clone(), self.args.unanchored);
        let confirmed = confirmed.map_err(|error| to_failure(&error))?;
        settled.proven = confirmed.blocks;
        // What contradicts a trusted hash, or its proven neighbour, is proven inside and stays marked.
        let after = writer.view();
        let marked = after.manifest().digest_only_segments();
        for entry in marked.filter(|it| self.checked.proven.contains(&it.file_name)) {
            let (ranges, count) = if confirmed.unanchored.contains(&entry.file_name) {
                (&mut settled.unanchored, &mut settled.unanchored_count)
            } else {
                refused.insert(entry.file_name.clone());
                (&mut settled.refuted, &mut settled.contradictory_count)
            };
            ranges.push(entry.range);
            *count = count.saturating_add(1);
        }
        for ranges in [&mut settled.refuted, &mut settled.unanchored] {
            *ranges = join_ranges(std::mem::take(ranges));
        }
        let mut false_runs = &self.checked.false_runs;
        if !self.args.drop_false {
            (refused, false_runs) = (BTreeSet::new(), const { &BTreeSet::new() });
        }
        if self.args.drop_unanchored {
            refused.extend(confirmed.unanchored);
        }
        if refused.is_empty() && false_runs.is_empty() {
            return Ok(());
        }
        // The head would stand on nothing; the others go all the same.
        if let Some((base, _)) = after.head().base()
            && let Some((_, entry)) = after.manifest().find_segment(base)
            && refused.remove(&entry.file_name)
        {
            settled.under_head.push(entry.range);
        }
        let dropped = writer.drop_unproven(&refused, false_runs);
        settled.dropped = dropped.map_err(|error| to_failure(&error))?;
        settled.are_runs_rebuilt = self.args.drop_false;
        Ok(())
    }
}

impl SettledBlocks {
    /// What is said of the blocks of a view that were digest only.
    pub(super) fn lines(&self, view: &View, place: &str) -> Vec<String> {
        let before = view.manifest().digest_only();
        if before.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![self.proven_text(&before)];
        let elsewhere = ", from another publisher or without --digest-only";
        for (blocks, what, from) in [
            (&self.refuted, "false", elsewhere),
            (&self.damaged, "damaged here", ""),
            (&self.unanchored, UNLINKED, ""),
        ] {
            let stay = subtract(blocks, &self.dropped);
            let gone = subtract(blocks, &stay);
            let left = subtract(&stay, &self.under_head);
            if !gone.is_empty() {
                lines.push(format!(
                    "blocks {} were digest only and {what}, and are dropped: quipu fetch takes \
                     them again{from}",
                    texts(&gone)
                ));
            }
            if !left.is_empty() && what == UNLINKED {
                lines.push(format!(
                    "blocks {} are true inside and {UNLINKED}: they stay digest only\n  hint: fetch \
                     what lies between, give a block hash that you trust with --anchor, or take \
                     them as they are with --unanchored; --drop-unanchored drops them",
                    texts(&left)
                ));
            } else if !left.is_empty() {
                lines.push(format!(
                    "blocks {} are digest only and {what}: fetch them again\n  hint: quipu check \
                     --data-dir {place} --drop-false drops them, and quipu fetch takes them \
                     again{from}",
                    texts(&left)
                ));
            }
        }
        if !self.under_head.is_empty() {
            lines.push(format!(
                "blocks {} are digest only and not what they should be, and the head stands on \
                 them: they are not dropped\n  hint: quipu rewind to a block below them drops both",
                texts(&self.under_head)
            ));
        }
        lines.extend(self.runs_text(place));
        lines
    }

    fn runs_text(&self, place: &str) -> Option<String> {
        let (runs, are, were) = match self.false_run_count {
            0 => return None,
            1 => ("a lookup run".to_owned(), "is", "was"),
            count => (format!("{count} lookup runs"), "are", "were"),
        };
        Some(if self.are_runs_rebuilt {
            format!(
                "{runs} of blocks that are digest only {were} false and {are} built anew: check \
                 again\n  hint: quipu check --data-dir {place} proves these blocks"
            )
        } else {
            format!(
                "{runs} of blocks that are digest only {are} false\n  hint: quipu check --data-dir \
                 {place} --drop-false builds anew what is false of them, and the next check \
                 proves these blocks"
            )
        })
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

pub(super) fn texts(ranges: &[BlockRange]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
