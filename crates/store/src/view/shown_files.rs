//! The files of a view: which segments and runs it shows, and what their tails take in memory.

use super::View;
use crate::manifest::{RunEntry, SegmentEntry};

/// The tails in memory of the files that a view shows: directories and tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenTails {
    /// Segments that are open.
    pub segment_count: u64,
    /// What theirs take, which [`crate::Limits::tail_bytes_max`] bounds.
    pub segment_bytes: u64,
    /// What those of runs take: there are few runs of a subject, and they stay open.
    pub run_bytes: u64,
}

impl View {
    /// All segments that are shown, lowest block first: those of the folder, and published ones.
    pub fn segments(&self) -> impl Iterator<Item = &SegmentEntry> {
        self.sealed.files().map(|file| &file.entry)
    }

    /// All lookup and log runs that are asked, those of the folder first.
    pub fn runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.sealed.runs().map(|file| &file.entry)
    }

    /// What is said of a listed segment.
    pub(crate) fn find_segment(&self, file_name: &str) -> Option<&SegmentEntry> {
        self.sealed.find_listed_segment(file_name)
    }

    /// What is said of a listed run.
    pub(crate) fn find_run(&self, file_name: &str) -> Option<&RunEntry> {
        self.sealed.find_listed_run(file_name)
    }

    /// What the tails of its open files take.
    #[must_use]
    pub fn open_tails(&self) -> OpenTails {
        let mut tails = OpenTails::default();
        for file in self.sealed.files().filter(|file| file.is_open()) {
            tails.segment_count = tails.segment_count.saturating_add(1);
            tails.segment_bytes = tails.segment_bytes.saturating_add(file.memory_bytes());
        }
        let runs = self.sealed.runs().map(|run| run.memory_bytes());
        tails.run_bytes = runs.fold(0, u64::saturating_add);
        tails
    }
}
