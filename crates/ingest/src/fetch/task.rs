//! One file to download, and what became of each mirror that lists it.

use std::path::PathBuf;

use alloy_primitives::B256;

use super::catalog::{MirrorFile, MirrorSource};
use super::error::{FaultKind, MirrorFault};

/// Failures of a mirror in a row, without progress, after which a file is abandoned. With the pauses
/// between them about ten minutes.
const TRIES_MAX: u32 = 16;
/// Wrong downloads of one file after which a mirror is not asked for it again: one may be damage on the
/// way.
const FALSE_MAX: u32 = 2;

/// A file to download.
#[derive(Debug)]
pub(super) struct FileTask {
    pub(super) file: MirrorFile,
    /// One for each source of the file.
    tries: Vec<SourceTries>,
    /// Whether each download is of one mirror alone: parts of several did not fit together.
    pub(super) is_unmixed: bool,
    /// Whether it is retried after pauses; otherwise another name for the same blocks comes first.
    pub(super) is_patient: bool,
}

/// What became of one source of a file.
#[derive(Clone, Debug, Default)]
struct SourceTries {
    count: u32,
    false_count: u32,
    is_out: bool,
    /// The last failure.
    said: Option<String>,
}

/// A file that is whole on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WholeFile {
    pub(super) path: PathBuf,
    pub(super) sha256: B256,
    /// The source that it came from.
    pub(super) source: usize,
    /// Whether these are this source's bytes for certain.
    pub(super) is_certain: bool,
    /// Whether it was there already.
    pub(super) is_found: bool,
}

impl FileTask {
    pub(super) fn new(file: MirrorFile, is_patient: bool) -> Self {
        let tries = vec![SourceTries::default(); file.sources.len()];
        Self { file, tries, is_unmixed: false, is_patient }
    }

    /// The sources that can still be asked, with their positions.
    pub(super) fn open_sources(&self) -> impl Iterator<Item = (usize, &MirrorSource)> {
        let tries_max = if self.is_patient { TRIES_MAX } else { 1 };
        let sources = self.file.sources.iter().zip(&self.tries).enumerate();
        let open = sources.filter(move |(_, (_, it))| !it.is_out && it.count < tries_max);
        open.map(|(position, (source, _))| (position, source))
    }

    /// Whether a patient retry may succeed.
    pub(super) fn may_retry(&self) -> bool {
        !self.is_patient && self.tries.iter().any(|it| !it.is_out)
    }

    /// Notes a failure. Returns whether it differs from the one before it.
    pub(super) fn note(&mut self, source: usize, fault: &MirrorFault) -> bool {
        let Some(tries) = self.tries.get_mut(source) else { return false };
        tries.count = tries.count.saturating_add(1);
        match fault.kind {
            FaultKind::Passing | FaultKind::Slow => {}
            FaultKind::Lasting => tries.is_out = true,
            FaultKind::False => {
                tries.false_count = tries.false_count.saturating_add(1);
                tries.is_out = tries.false_count >= FALSE_MAX;
            }
        }
        let text = Some(fault.to_string());
        std::mem::replace(&mut tries.said, text.clone()) != text
    }

    /// Notes progress: failures count anew.
    pub(super) fn note_progress(&mut self) {
        self.tries.iter_mut().for_each(|it| it.count = 0);
    }

    /// The import refused these bytes: sources that list the same bytes are not asked.
    pub(super) fn refuse(&mut self, sha256: B256) {
        for (source, tries) in self.file.sources.iter().zip(&mut self.tries) {
            if source.sha256 == Some(sha256) {
                tries.is_out = true;
                let same = || "lists the same bytes, which are refused".to_owned();
                tries.said.get_or_insert_with(same);
            }
        }
    }

    /// The last failure of each source, with its mirror.
    pub(super) fn said(&self) -> impl Iterator<Item = (usize, &str)> {
        let said = self.file.sources.iter().zip(&self.tries);
        said.filter_map(|(source, tries)| Some((source.mirror, tries.said.as_deref()?)))
    }
}
