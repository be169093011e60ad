//! Files that could not be read: noted where it happens, once for each file until it is well again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::disk::{DiskError, FileVersion};
use crate::error::StoreError;

/// A failure of the disk is told for so many looks after the last one: it says nothing of the file, so
/// nothing tells that it has passed.
const DISK_LOOKS: u32 = 60;

/// How much of a file cannot be read; the worse, the higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// Nothing of the file itself: a copy of it was wrong, which nobody reads any more.
    Copy,
    /// The disk failed.
    Disk,
    /// Some of its bytes are wrong.
    Part,
    /// All: it is gone, cut, or another file.
    Whole,
}

/// What is wrong with a file.
#[derive(Clone, Debug)]
pub(crate) struct NotedFault {
    pub(crate) kind: FaultKind,
    pub(crate) reason: String,
    /// Which file it was; `None` if there was none, or if that is not known yet.
    pub(crate) version: Option<FileVersion>,
    /// Nobody has acted on it yet.
    is_new: bool,
    looks_left: u32,
}

/// What is wrong with files, by their names.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    noted: Mutex<BTreeMap<String, NotedFault>>,
    /// Whether views do without files of which nothing can be read. Whoever does not serve wants an error.
    is_passed_over: AtomicBool,
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NotedFault>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on views do without files of which nothing can be read.
    pub(crate) fn pass_over(&self) {
        self.is_passed_over.store(true, Ordering::Release);
    }

    /// A file could not be opened.
    pub(crate) fn note_unopened(&self, file_name: &str, error: &StoreError) {
        self.note(file_name, error, FaultKind::Whole, None);
    }

    /// Some of an open file, which is this one, could not be read.
    pub(super) fn note_unread(
        &self,
        file_name: &str,
        error: &StoreError,
        version: Option<FileVersion>,
    ) {
        self.note(file_name, error, FaultKind::Part, version);
    }

    /// Bytes were wrong that were of a copy, which is discarded: whoever reads the file next has it opened
    /// anew, and this is no fault of it.
    pub(super) fn note_copy(&self, file_name: &str, error: StoreError) -> StoreError {
        self.note(file_name, &error, FaultKind::Copy, None);
        error
    }

    fn note(
        &self,
        file_name: &str,
        error: &StoreError,
        of_file: FaultKind,
        version: Option<FileVersion>,
    ) {
        if matches!(error, StoreError::Disk(DiskError::PoolClosed { .. })) {
            return; // the process ends
        }
        let is_of_disk = matches!(error, StoreError::Disk(error) if !error.is_of_file());
        let kind = if is_of_disk { FaultKind::Disk } else { of_file };
        let mut noted = self.lock();
        if let Some(known) = noted.get_mut(file_name).filter(|known| known.kind >= kind) {
            known.looks_left = DISK_LOOKS;
            return;
        }
        let (reason, looks_left) = (error.to_string(), DISK_LOOKS);
        let fault = NotedFault { kind, reason, version, is_new: true, looks_left };
        noted.insert(file_name.to_owned(), fault);
    }

    /// What was noted since the last call.
    pub(crate) fn take_new(&self) -> Vec<(String, NotedFault)> {
        let mut noted = self.lock();
        let new = noted.iter_mut().filter_map(|(name, fault)| {
            std::mem::take(&mut fault.is_new).then(|| (name.clone(), fault.clone()))
        });
        new.collect()
    }

    /// All that is noted of files themselves.
    pub(crate) fn all(&self) -> BTreeMap<String, NotedFault> {
        let mut faults = self.lock().clone();
        faults.retain(|_, fault| fault.kind != FaultKind::Copy);
        faults
    }

    /// The files that views do without, with the reasons.
    pub(crate) fn passed_over(&self) -> Vec<(String, String)> {
        if !self.is_passed_over.load(Ordering::Acquire) {
            return Vec::new();
        }
        let noted = self.lock();
        let whole = noted.iter().filter(|(_, fault)| fault.kind == FaultKind::Whole);
        whole.map(|(name, fault)| (name.clone(), fault.reason.clone())).collect()
    }

    /// The file is well, or nobody lists it.
    pub(crate) fn forget(&self, file_name: &str) {
        self.lock().remove(file_name);
    }

    /// Which file it was that could not be read.
    pub(crate) fn set_version(&self, file_name: &str, version: Option<FileVersion>) {
        if let Some(fault) = self.lock().get_mut(file_name) {
            fault.version = version;
        }
    }

    /// What is wrong with the file now.
    pub(crate) fn set_reason(&self, file_name: &str, error: &StoreError) {
        if let Some(fault) = self.lock().get_mut(file_name) {
            fault.reason = error.to_string();
        }
    }

    /// Looks once more at a fault that nothing tells the end of; forgets it after a while, and tells
    /// whether it has.
    pub(crate) fn pass(&self, file_name: &str) -> bool {
        let mut noted = self.lock();
        let Some(fault) = noted.get_mut(file_name) else { return false };
        fault.looks_left = fault.looks_left.saturating_sub(1);
        fault.looks_left == 0 && noted.remove(file_name).is_some()
    }
}
