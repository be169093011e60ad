//! The log index of blocks that are held: built later, built again, or not wanted.

use super::{CommitExtras, CommitFacts, Writer};
use crate::check::check_run_file;
use crate::error::StoreError;
use segment::index::RunSubject;

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

    /// Reads the log index through and takes the runs off the manifest that are gone or not what was
    /// written, in one commit: their blocks then have no index, as after an import without one, and
    /// [`Writer::index_next_slot`] builds it again. Returns the names of these runs; `watch` is told of
    /// the bytes that were read.
    pub fn give_up_damaged_log_runs(
        &mut self,
        mut watch: impl FnMut(u64),
    ) -> Result<Vec<String>, StoreError> {
        let view = self.view();
        let mut damaged = Vec::new();
        for entry in view.manifest().runs_of(RunSubject::Logs) {
            match check_run_file(&**self.store.disk(), entry) {
                Ok(()) => {}
                // A disk that fails says nothing of a file.
                Err(StoreError::Disk(error)) if !error.is_of_file() => return Err(error.into()),
                Err(error) if error.is_of_file() => damaged.push(entry.file_name.clone()),
                Err(error) => return Err(error),
            }
            watch(entry.bytes);
        }
        if !damaged.is_empty() {
            self.look()?;
            self.replace_as_it_is(&view.manifest().clone().without_log_runs(&damaged))?;
        }
        Ok(damaged)
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
