//! How much of a folder is not what it should be, and what helps.

use std::fmt::Write as _;

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
    /// Files of the log index: `quipu index` builds them again.
    log_index: u64,
}

impl RefusedCounts {
    /// Of what a check refused.
    pub(super) fn of(view: &View, errors: &[StoreError]) -> Self {
        let manifest = view.manifest();
        let is_of_log_index = |error: &StoreError| {
            names_one(error, manifest.runs_of(RunSubject::Logs).map(|run| run.file_name.as_str()))
        };
        let mut counts = Self::default();
        for error in errors {
            counts.add_file();
            counts.log_index = counts.log_index.saturating_add(u64::from(is_of_log_index(error)));
        }
        counts
    }

    pub(super) fn add_file(&mut self) {
        self.files = self.files.saturating_add(1);
    }

    pub(super) fn is_none(&self) -> bool {
        self.files == 0 && self.anchors == 0
    }

    /// What is said of them.
    pub(super) fn text(&self, place: &str) -> String {
        let mut said = Vec::new();
        match self.files {
            0 => {}
            1 => said.push("1 of its files is not what it should be".to_owned()),
            count => said.push(format!("{count} of its files are not what they should be")),
        }
        if self.anchors > 0 {
            let are = if self.anchors == 1 { "is" } else { "are" };
            said.push(format!("{} {are} contradicted", counted(self.anchors, "anchor")));
        }
        let mut text = format!("{place}: {}", said.join("; "));
        if self.log_index < self.files {
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
