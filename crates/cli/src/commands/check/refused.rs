//! How much of a folder is not what it should be, and what helps.
//!
//! Knows: which files can be had again, and how.
//! Never knows: what is wrong with them.

use std::fmt::Write as _;

use ingest::check::CheckedFolder;
use store::{RunSubject, StoreError, View};

use crate::output::counted;

const COPY_HINT: &str = "\n  hint: bring damaged files back from a copy, or import the blocks \
                         again into another folder";

/// How much is refused.
#[derive(Debug, Default)]
pub(super) struct RefusedCounts {
    /// Files.
    pub(super) files: u64,
    /// Trusted hashes that blocks here contradict.
    pub(super) anchors: u64,
    /// Accumulator epochs that do.
    pub(super) epochs: u64,
    /// Segments that are digest only, true inside, and link to nothing known.
    pub(super) unanchored: u64,
    /// Files of the log index: `quipu index` builds them again.
    log_index: u64,
    /// Files that can be dropped or built anew, which is told with what became of them.
    digest_only: u64,
}

impl RefusedCounts {
    /// Of what a check refused.
    pub(super) fn of(view: &View, checked: &CheckedFolder, errors: &[StoreError]) -> Self {
        let manifest = view.manifest();
        let is_of_log_index = |error: &StoreError| {
            names_one(error, manifest.runs_of(RunSubject::Logs).map(|run| run.file_name.as_str()))
        };
        let is_digest_only = |error: &StoreError| {
            let segments = checked.false_segments.iter().map(String::as_str);
            names_one(error, segments.filter(|name| manifest.is_digest_only(name)))
                || names_one(error, checked.false_unproven_runs(manifest))
        };
        let mut counts = Self::default();
        for error in errors {
            let is_of_log_index = is_of_log_index(error);
            let is_digest_only = is_digest_only(error) && !is_of_log_index;
            counts.add_file();
            counts.log_index = counts.log_index.saturating_add(u64::from(is_of_log_index));
            counts.digest_only = counts.digest_only.saturating_add(u64::from(is_digest_only));
        }
        counts
    }

    pub(super) fn add_file(&mut self) {
        self.files = self.files.saturating_add(1);
    }

    /// Counts segments that are digest only and contradict what is proven.
    pub(super) fn add_contradictory(&mut self, count: u64) {
        self.files = self.files.saturating_add(count);
        self.digest_only = self.digest_only.saturating_add(count);
    }

    pub(super) fn is_none(&self) -> bool {
        self.files == 0 && self.anchors == 0 && self.epochs == 0 && self.unanchored == 0
    }

    /// What is said of them.
    pub(super) fn text(&self, place: &str) -> String {
        let mut said = Vec::new();
        match self.files {
            0 => {}
            1 => said.push("1 of its files is not what it should be".to_owned()),
            count => said.push(format!("{count} of its files are not what they should be")),
        }
        match self.unanchored {
            0 => {}
            1 => said.push("1 of its files links to nothing known".to_owned()),
            count => said.push(format!("{count} of its files link to nothing known")),
        }
        for (count, noun) in [(self.anchors, "anchor"), (self.epochs, "accumulator epoch")] {
            let are = if count == 1 { "is" } else { "are" };
            if count > 0 {
                said.push(format!("{} {are} contradicted", counted(count, noun)));
            }
        }
        let mut text = format!("{place}: {}", said.join("; "));
        if self.log_index.saturating_add(self.digest_only) < self.files {
            text.push_str(COPY_HINT);
        }
        if self.log_index > 0 {
            let _ =
                write!(text, "\n  hint: quipu index --data-dir {place} builds the log index again");
        }
        text
    }
}

/// Whether an error names one of these files.
fn names_one<'a>(error: &StoreError, mut names: impl Iterator<Item = &'a str>) -> bool {
    let text = error.to_string();
    names.any(|name| text.contains(name))
}
