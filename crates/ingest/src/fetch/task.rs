//! One file that is to be had, and what became of each mirror that has it.
//!
//! Knows: which mirrors are out for this file, and why.
//! Never knows: how mirrors stand otherwise, or how bytes come.

use std::path::PathBuf;

use alloy_primitives::B256;

use super::catalog::MirrorFile;
use super::error::{MirrorFault, MirrorFaultKind};

/// How often a mirror may send false bytes of one file. Twice, because a single time may be damage on
/// the way.
const FALSE_MAX: u32 = 2;

/// A file that is to be had.
#[derive(Debug)]
pub(super) struct FileTask {
    pub(super) file: MirrorFile,
    /// As many as the file has sources.
    tries: Vec<SourceTries>,
    /// Whether parts of several mirrors did not fit together: then each download is of one mirror.
    pub(super) has_misfit: bool,
    /// Mirrors that have the same blocks under other names, for which this one may be left.
    pub(super) rivals: Vec<usize>,
}

/// What became of one source of a file.
#[derive(Clone, Debug, Default)]
struct SourceTries {
    false_count: u32,
    is_out: bool,
    /// Whether an end that nothing announced was taken for a cut before.
    is_end_doubted: bool,
    /// The last that was wrong.
    said: Option<String>,
}

/// A file that is whole on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WholeDownload {
    pub(super) path: PathBuf,
    pub(super) sha256: B256,
    /// Which source of the file it came from.
    pub(super) source: usize,
    /// Whether these are this source's bytes beyond doubt: they have its checksum, or all came from it
    /// in this run.
    pub(super) is_certain: bool,
    /// Whether its end is one beyond doubt: the mirror said how long it is, or its checksum is right.
    pub(super) is_end_told: bool,
    /// Whether it was there already.
    pub(super) is_found: bool,
}

impl FileTask {
    pub(super) fn new(file: MirrorFile) -> Self {
        let tries = vec![SourceTries::default(); file.sources.len()];
        Self { file, tries, has_misfit: false, rivals: Vec::new() }
    }

    /// The sources that may still be asked: their positions, mirrors and checksums.
    pub(super) fn open_sources(&self) -> impl Iterator<Item = (usize, usize, Option<B256>)> {
        let sources = self.file.sources.iter().zip(&self.tries).enumerate();
        let open = sources.filter(|(_, (_, tries))| !tries.is_out);
        open.map(|(position, (source, _))| (position, source.mirror, source.sha256))
    }

    /// Remembers a failure of a source.
    pub(super) fn note(&mut self, source: usize, fault: &MirrorFault) {
        let Some(tries) = self.tries.get_mut(source) else { return };
        tries.said = Some(fault.to_string());
        match fault.kind() {
            MirrorFaultKind::Passing => {}
            MirrorFaultKind::Lasting => tries.is_out = true,
            MirrorFaultKind::False => {
                tries.false_count = tries.false_count.saturating_add(1);
                tries.is_out = tries.false_count >= FALSE_MAX;
            }
        }
    }

    /// Whether the end of a body is doubted for the first time.
    pub(super) fn doubt_end(&mut self, source: usize) -> bool {
        let Some(tries) = self.tries.get_mut(source) else { return false };
        !std::mem::replace(&mut tries.is_end_doubted, true)
    }

    /// What was downloaded is refused: whoever lists the very same bytes need not be asked.
    pub(super) fn refuse(&mut self, download: &WholeDownload, said: &str) {
        let fault = MirrorFault::Refused(said.to_owned());
        if !download.is_certain {
            self.has_misfit = true;
            return;
        }
        let sources = self.file.sources.iter().zip(&mut self.tries).enumerate();
        for (position, (source, tries)) in sources {
            if position == download.source {
                tries.said = Some(fault.to_string());
                tries.is_out = true;
            } else if source.sha256 == Some(download.sha256) {
                // What it said itself is what became of it.
                tries
                    .said
                    .get_or_insert_with(|| "lists the same bytes, which are refused".to_owned());
                tries.is_out = true;
            }
        }
    }

    /// What became of each source, with its mirror.
    pub(super) fn said(&self) -> impl Iterator<Item = (usize, &str)> {
        let said = self.file.sources.iter().zip(&self.tries);
        said.filter_map(|(source, tries)| Some((source.mirror, tries.said.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::catalog::join_lists;
    use crate::fetch::list::parse_sums;

    const NAME: &str = "x-00000-00000000.ere";

    /// A file that mirrors list with these checksums.
    fn task(sums: &[u8]) -> FileTask {
        let url = "http://a.example/".parse().unwrap();
        let list = |sum: &u8| {
            let text = format!("{}  {NAME}", format!("{sum:02x}").repeat(32));
            parse_sums(&url, text.as_bytes()).unwrap()
        };
        let files = join_lists(sums.iter().map(list).enumerate().collect());
        FileTask::new(files[0].clone())
    }

    fn open(task: &FileTask) -> Vec<usize> {
        task.open_sources().map(|(position, ..)| position).collect()
    }

    #[test]
    fn a_source_is_out_when_it_lacks_the_file_or_lied_twice_of_it() {
        let mut task = task(&[1, 1, 1]);
        task.note(0, &MirrorFault::Missing { status: 404 });
        let cut = MirrorFault::OtherPart(String::new());
        let lie = MirrorFault::Refused("false".to_owned());
        for fault in [&cut, &cut, &cut, &lie] {
            task.note(1, fault);
        }
        assert_eq!(open(&task), [1, 2]);
        task.note(1, &lie);
        assert_eq!(open(&task), [2]);
        let said: Vec<_> = task.said().collect();
        assert_eq!(said, [(0, "not there (HTTP 404)"), (1, "false")]);
    }

    #[test]
    fn whoever_lists_refused_bytes_is_out_and_others_are_not() {
        let mut task = task(&[1, 2, 1]);
        let refused = |is_certain| WholeDownload {
            path: PathBuf::new(),
            sha256: B256::repeat_byte(1),
            source: 0,
            is_certain,
            is_end_told: true,
            is_found: false,
        };
        task.refuse(&refused(false), "false");
        assert_eq!(open(&task), [0, 1, 2]);
        assert!(task.has_misfit);
        task.refuse(&refused(true), "false");
        assert_eq!(open(&task), [1]);
        let said: Vec<_> = task.said().collect();
        assert_eq!(said, [(0, "false"), (2, "lists the same bytes, which are refused")]);
    }

    #[test]
    fn a_mirror_without_the_file_is_not_said_to_have_sent_what_is_refused() {
        let mut task = task(&[1, 1]);
        task.note(0, &MirrorFault::Missing { status: 404 });
        let refused = WholeDownload {
            path: PathBuf::new(),
            sha256: B256::repeat_byte(1),
            source: 1,
            is_certain: true,
            is_end_told: true,
            is_found: false,
        };
        task.refuse(&refused, "false");
        let said: Vec<_> = task.said().collect();
        assert_eq!(said, [(0, "not there (HTTP 404)"), (1, "false")]);
    }

    #[test]
    fn an_end_is_doubted_once() {
        let mut task = task(&[1]);
        assert!(task.doubt_end(0) && !task.doubt_end(0));
    }
}
