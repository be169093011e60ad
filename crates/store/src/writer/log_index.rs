//! The log index of blocks that are held: built later, or not wanted.
//!
//! Knows: that it is built slot by slot, each in a commit of its own, so that whoever is interrupted
//! goes on where it was.
//! Never knows: how postings are made.

use super::{CommitExtras, CommitFacts, Writer};
use crate::error::StoreError;
use crate::run_subject::RunSubject;

impl Writer {
    /// Says whether new blocks get a log index. A folder that has one keeps it whole: it is refused to
    /// leave out blocks that come later.
    pub fn want_log_index(&mut self, is_wanted: bool) -> Result<(), StoreError> {
        let view = self.view();
        let manifest = view.manifest();
        if manifest.is_without_log_index() != is_wanted {
            return Ok(());
        }
        if !is_wanted && manifest.runs_of(RunSubject::Logs).next().is_some() {
            return Err(StoreError::HasLogIndex { folder: self.store.disk().place() });
        }
        self.look()?;
        self.replace_as_it_is(&manifest.clone().with_log_index(is_wanted))
    }

    /// Builds the log index of the lowest slot that holds blocks with receipts and has none; `None` if there
    /// is no such slot, or nobody wants an index.
    pub fn index_next_slot(&mut self) -> Result<Option<u64>, StoreError> {
        let view = self.view();
        if view.manifest().is_without_log_index() {
            return Ok(None);
        }
        let slot = view.manifest().slots_without_log_index().first().copied();
        let Some(slot) = slot else { return Ok(None) };
        let extras = CommitExtras { indexed_now: Some(slot), ..CommitExtras::default() };
        self.commit_with(Vec::new(), CommitFacts::default(), extras)?;
        Ok(Some(slot))
    }
}
