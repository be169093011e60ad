//! Files that are held open: each is opened when it is first asked, and shared by all views.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use alloy_primitives::B256;
use arc_swap::ArcSwapOption;
use segment::index::{CorruptIndex, Run, RunOpening, RunSpan, RunSubject, VerifiedBuckets};
use segment::{FOOTER_BYTES, Footer, Segment};

use crate::disk::{Disk, DiskError};
use crate::error::StoreError;
use crate::limits::Limits;
use crate::manifest::{RunEntry, SegmentEntry};
use crate::read::{Blocking, Inline, LocalBytes, SegmentBytes, block_on, fetch};
use crate::reader::Reader;

mod claims;
mod faults;
mod resident;

pub(crate) use claims::{Claim, FileClaims, Removal};
pub(crate) use faults::{FaultKind, Faults};
use resident::{MemoryBudget, reside};

/// Where the files of a store are opened.
pub trait FileSource: fmt::Debug + Send + Sync {
    /// The bytes of a file, which has `file_bytes` of them if it is the listed one: to look would be a
    /// round trip where files are far away.
    fn open(&self, file_name: &str, file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError>;
}

/// Files of a folder.
#[derive(Clone, Debug)]
pub struct LocalFiles {
    disk: Arc<dyn Disk>,
    blocking: Arc<dyn Blocking>,
}

impl LocalFiles {
    /// The files of `disk`; `blocking` waits for bytes that are not in memory.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, blocking: Arc<dyn Blocking>) -> Self {
        Self { disk, blocking }
    }
}

impl FileSource for LocalFiles {
    fn open(&self, file_name: &str, _file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        let file = self.disk.open(file_name)?;
        Ok(Arc::new(LocalBytes::new(file, Arc::clone(&self.blocking))))
    }
}

/// Files of a folder, and beside them those that are somewhere else: a folder's own come first.
#[derive(Debug)]
pub(crate) struct LocalFirst {
    local: LocalFiles,
    remote: Arc<dyn FileSource>,
}

impl LocalFirst {
    pub(crate) fn new(local: LocalFiles, remote: Arc<dyn FileSource>) -> Self {
        Self { local, remote }
    }
}

impl FileSource for LocalFirst {
    fn open(&self, file_name: &str, file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        match self.local.open(file_name, file_bytes) {
            // Files are named by their content; one that lost a part of it is none of them.
            Ok(file) if file.file_bytes() == file_bytes => Ok(file),
            Err(error) if !error.is_of_file() => Err(error),
            _ => self.remote.open(file_name, file_bytes),
        }
    }
}

/// Opens files and bounds the memory of their tails.
#[derive(Debug)]
pub(crate) struct Files {
    source: Arc<dyn FileSource>,
    /// Who wants which file.
    claims: Arc<FileClaims>,
    /// What could not be read.
    faults: Arc<Faults>,
    tail_bytes_max: u64,
    open_segments_max: usize,
    /// For runs as a whole.
    run_room: Arc<MemoryBudget>,
    /// Every file that a view lists: views share them.
    listed: Mutex<Listed>,
    /// Every segment that was opened; asked only when another one is.
    opened: Mutex<Vec<Weak<SegmentFile>>>,
}

/// Files by name.
#[derive(Debug, Default)]
struct Listed {
    segments: BTreeMap<String, Weak<SegmentFile>>,
    runs: BTreeMap<String, Weak<RunFile>>,
}

/// A listed segment.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    pub(crate) entry: SegmentEntry,
    claim: Claim,
    faults: Arc<Faults>,
    open: ArcSwapOption<OpenSegment>,
    /// Since the last time that memory was short.
    is_used: AtomicBool,
}

/// A segment whose tail is in memory.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) bytes: Arc<dyn SegmentBytes>,
    pub(crate) segment: Segment,
}

/// A listed run.
#[derive(Debug)]
pub(crate) struct RunFile {
    pub(crate) entry: RunEntry,
    claim: Claim,
    faults: Arc<Faults>,
    open: OnceLock<OpenRun>,
}

/// A run whose tail is in memory.
#[derive(Debug)]
pub(crate) struct OpenRun {
    pub(crate) bytes: Arc<dyn SegmentBytes>,
    pub(crate) run: Run,
    /// Buckets that were found right, if the run is in memory as a whole.
    pub(crate) verified: VerifiedBuckets,
}

impl SegmentFile {
    /// The file goes with the last view that lists it.
    pub(crate) fn supersede(&self) {
        self.claim.supersede();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load().is_some()
    }

    /// About how much memory its tail takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.open.load().as_ref().map_or(0, |open| open.segment.memory_bytes())
    }

    /// Notes that bytes of it are wrong.
    pub(crate) fn corrupt(&self, cause: segment::Corrupt) -> StoreError {
        let error = StoreError::Segment { file: self.entry.file_name.clone(), cause };
        if self.open.load_full().is_some_and(|open| open.bytes.discard_copies()) {
            return self.faults.note_copy(&self.entry.file_name, error);
        }
        self.unread(error)
    }

    /// Notes that bytes of it could not be read, or are wrong.
    pub(crate) fn unread(&self, error: impl Into<StoreError>) -> StoreError {
        let error = error.into();
        let version = self.open.load().as_ref().and_then(|open| open.bytes.version());
        self.faults.note_unread(&self.entry.file_name, &error, version);
        error
    }
}

impl RunFile {
    /// The file goes with the last view that lists it.
    pub(crate) fn supersede(&self) {
        self.claim.supersede();
    }

    /// About how much memory its tail takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.open.get().map_or(0, |open| open.run.memory_bytes())
    }

    /// Notes that bytes of it are wrong.
    pub(crate) fn corrupt(&self, cause: CorruptIndex) -> StoreError {
        let error = StoreError::Index { file: self.entry.file_name.clone(), cause };
        if self.open.get().is_some_and(|open| open.bytes.discard_copies()) {
            return self.faults.note_copy(&self.entry.file_name, error);
        }
        self.unread(error)
    }

    /// Notes that bytes of it could not be read, or are wrong.
    pub(crate) fn unread(&self, error: impl Into<StoreError>) -> StoreError {
        let error = error.into();
        let version = self.open.get().and_then(|open| open.bytes.version());
        self.faults.note_unread(&self.entry.file_name, &error, version);
        error
    }

    /// The run, opened if it is not. Run tails are few and under a megabyte each: they stay, and so
    /// do whole runs of hashes while there is room for them.
    pub(crate) async fn opened(&self, files: &Files) -> Result<&OpenRun, StoreError> {
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let opened = files.open_run(&self.entry).await;
        let open =
            opened.inspect_err(|error| self.faults.note_unopened(&self.entry.file_name, error))?;
        Ok(self.open.get_or_init(|| open))
    }
}

/// Reads the tail of a run, and believes it if it is what the manifest lists.
async fn open_run(entry: &RunEntry, bytes: &dyn SegmentBytes) -> Result<Run, StoreError> {
    let corrupt = |cause| StoreError::Index { file: entry.file_name.clone(), cause };
    let file_bytes = check_length(&entry.file_name, bytes.file_bytes(), entry.bytes)?;
    let mut buffer = Vec::new();
    let mut opening = RunOpening::new(file_bytes);
    let run = loop {
        fetch(bytes, opening.needed(), &mut buffer).await?;
        if let Some(run) = opening.supply(&buffer).map_err(corrupt)? {
            break run;
        }
    };
    check_content(entry, run.subject(), run.span())?;
    Ok(run)
}

/// Reads the tail of a segment, and believes it if it is what the manifest lists.
async fn open_segment(
    reader: &mut Reader,
    entry: &SegmentEntry,
    bytes: &dyn SegmentBytes,
) -> Result<Segment, StoreError> {
    let corrupt = |cause| StoreError::Segment { file: entry.file_name.clone(), cause };
    let file_bytes = check_length(&entry.file_name, bytes.file_bytes(), entry.bytes)?;
    let footer_bytes = u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX);
    let start = file_bytes.saturating_sub(footer_bytes);
    fetch(bytes, start..file_bytes, &mut reader.page).await?;
    let footer = Footer::parse(&reader.page).map_err(corrupt)?;
    for (what, found, expected) in [
        ("digest", B256::from(footer.digest).to_string(), entry.digest.to_string()),
        ("blocks", footer.facts.range.to_string(), entry.range.to_string()),
        (
            "presence of receipts",
            footer.facts.has_receipts.to_string(),
            entry.has_receipts.to_string(),
        ),
    ] {
        if found != expected {
            let file = entry.file_name.clone();
            return Err(StoreError::NotListed { file, what, found, expected });
        }
    }
    let tail = footer.tail_range(file_bytes).map_err(corrupt)?;
    fetch(bytes, tail, &mut reader.page).await?;
    Segment::open(footer, &mut reader.inflater, &reader.page).map_err(corrupt)
}

/// What was read of a file that is not what it should be is not kept. Tells whether it was of a copy: then
/// the file may be opened anew.
fn discard_if_wrong(bytes: &dyn SegmentBytes, error: &StoreError) -> bool {
    !matches!(error, StoreError::Disk(_)) && bytes.discard_copies()
}

/// Whether a run is the one that the manifest lists.
fn check_content(entry: &RunEntry, subject: RunSubject, span: RunSpan) -> Result<(), StoreError> {
    if (subject, span) == (entry.subject, entry.span) {
        return Ok(());
    }
    let text = |(subject, span): (RunSubject, RunSpan)| format!("{subject} of {span}");
    let (found, expected) = (text((subject, span)), text((entry.subject, entry.span)));
    let (file, what) = (entry.file_name.clone(), "content");
    Err(StoreError::NotListed { file, what, found, expected })
}

/// The same for whoever builds runs, who waits for the disk.
pub(crate) fn open_run_on(disk: &dyn Disk, entry: &RunEntry) -> Result<Run, StoreError> {
    let bytes = LocalBytes::new(disk.open(&entry.file_name)?, Arc::new(Inline));
    block_on(open_run(entry, &bytes))
}

impl Files {
    pub(crate) fn new(source: Arc<dyn FileSource>, limits: Limits) -> Self {
        let (listed, opened) = (Mutex::default(), Mutex::default());
        let Limits { tail_bytes_max, open_segments_max, run_bytes_max } = limits;
        let run_room = Arc::new(MemoryBudget::new(run_bytes_max));
        let (claims, faults) = (Arc::default(), Arc::default());
        Self { source, claims, faults, tail_bytes_max, open_segments_max, run_room, listed, opened }
    }

    /// What could not be read.
    pub(crate) fn faults(&self) -> &Arc<Faults> {
        &self.faults
    }

    /// The next view that lists this file opens it anew.
    pub(crate) fn forget(&self, file_name: &str) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.segments.remove(file_name);
        listed.runs.remove(file_name);
    }

    async fn open_run(&self, entry: &RunEntry) -> Result<OpenRun, StoreError> {
        let (bytes, run) = loop {
            let bytes = self.open_file(&entry.file_name, entry.bytes)?;
            match open_run(entry, &*bytes).await {
                Err(error) if discard_if_wrong(&*bytes, &error) => {}
                opened => break (bytes, opened?),
            }
        };
        let bytes = match entry.subject {
            RunSubject::Logs => bytes,
            RunSubject::Transactions | RunSubject::Blocks => reside(&self.run_room, bytes).await?,
        };
        let verified = VerifiedBuckets::none_of(run.bucket_count());
        Ok(OpenRun { bytes, run, verified })
    }

    /// Whether a listed segment can be opened, and is closed again.
    pub(crate) async fn try_segment(&self, entry: &SegmentEntry) -> Result<(), StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        self.open_segment(&mut reader, entry).await.map(drop)
    }

    /// Whether a listed run can be opened, and is closed again.
    pub(crate) async fn try_run(&self, entry: &RunEntry) -> Result<(), StoreError> {
        self.open_run(entry).await.map(drop)
    }

    /// Who wants which file.
    pub(crate) fn claims(&self) -> &Arc<FileClaims> {
        &self.claims
    }

    /// Opens a file. Where no descriptor is left, those of segments that nobody reads are given up.
    fn open_file(
        &self,
        file_name: &str,
        file_bytes: u64,
    ) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        match self.source.open(file_name, file_bytes) {
            Err(error) if error.is_out_of_descriptors() => {
                self.close_all();
                self.source.open(file_name, file_bytes)
            }
            opened => opened,
        }
    }

    fn close_all(&self) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.drain(..).filter_map(|held| held.upgrade()).for_each(|file| file.open.store(None));
    }

    /// The segments of these entries, the same for all views that list them.
    pub(crate) fn listed_segments(&self, entries: &[SegmentEntry]) -> Arc<[Arc<SegmentFile>]> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.segments.retain(|_, file| file.strong_count() > 0);
        entries.iter().map(|entry| self.listed_segment(&mut listed, entry)).collect()
    }

    fn listed_segment(&self, listed: &mut Listed, entry: &SegmentEntry) -> Arc<SegmentFile> {
        let held = listed.segments.get(&entry.file_name).and_then(Weak::upgrade);
        if let Some(file) = held.filter(|file| file.entry == *entry) {
            file.claim.keep();
            return file;
        }
        let file = Arc::new(SegmentFile {
            entry: entry.clone(),
            claim: self.claims.claim_listed(&entry.file_name),
            faults: Arc::clone(&self.faults),
            open: ArcSwapOption::empty(),
            is_used: AtomicBool::new(false),
        });
        listed.segments.insert(entry.file_name.clone(), Arc::downgrade(&file));
        file
    }

    /// The runs of these entries, the same for all views that list them.
    pub(crate) fn listed_runs(&self, entries: &[RunEntry]) -> Arc<[Arc<RunFile>]> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.runs.retain(|_, file| file.strong_count() > 0);
        entries.iter().map(|entry| self.listed_run(&mut listed, entry)).collect()
    }

    fn listed_run(&self, listed: &mut Listed, entry: &RunEntry) -> Arc<RunFile> {
        let held = listed.runs.get(&entry.file_name).and_then(Weak::upgrade);
        if let Some(file) = held.filter(|file| file.entry == *entry) {
            file.claim.keep();
            return file;
        }
        let file = Arc::new(RunFile {
            entry: entry.clone(),
            claim: self.claims.claim_listed(&entry.file_name),
            faults: Arc::clone(&self.faults),
            open: OnceLock::new(),
        });
        listed.runs.insert(entry.file_name.clone(), Arc::downgrade(&file));
        file
    }

    /// The segment, opened if it is not.
    pub(crate) async fn segment(
        &self,
        reader: &mut Reader,
        file: &Arc<SegmentFile>,
    ) -> Result<Arc<OpenSegment>, StoreError> {
        if let Some(open) = file.open.load_full() {
            // Written by every read, it would be taken from one core to another each time.
            if !file.is_used.load(Ordering::Relaxed) {
                file.is_used.store(true, Ordering::Relaxed);
            }
            return Ok(open);
        }
        let opened = self.open_segment(reader, &file.entry).await;
        let opened =
            opened.inspect_err(|error| self.faults.note_unopened(&file.entry.file_name, error))?;
        let open = Arc::new(opened);
        if file.open.swap(Some(Arc::clone(&open))).is_none() {
            self.keep(file);
        }
        Ok(open)
    }

    async fn open_segment(
        &self,
        reader: &mut Reader,
        entry: &SegmentEntry,
    ) -> Result<OpenSegment, StoreError> {
        loop {
            let bytes = self.open_file(&entry.file_name, entry.bytes)?;
            match open_segment(reader, entry, &*bytes).await {
                Err(error) if discard_if_wrong(&*bytes, &error) => {}
                opened => return Ok(OpenSegment { bytes, segment: opened? }),
            }
        }
    }

    /// Remembers a segment that was opened, and closes others if there are too many or memory is short. A
    /// reader that has
    /// one of them keeps it until it is done.
    fn keep(&self, file: &Arc<SegmentFile>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|held| held.upgrade().is_some());
        file.is_used.store(true, Ordering::Relaxed);
        opened.push(Arc::downgrade(file));
        let files = opened.iter().filter_map(Weak::upgrade);
        let mut sum: u64 = files.map(|file| file.memory_bytes()).sum();
        let mut count = opened.len();
        // Two rounds: the first spares those that were used since the last time.
        for _ in 0..2 {
            opened.retain(|held| {
                let is_too_much = sum > self.tail_bytes_max || count > self.open_segments_max;
                let Some(other) = held.upgrade().filter(|_| is_too_much) else { return true };
                if Arc::ptr_eq(&other, file) || other.is_used.swap(false, Ordering::Relaxed) {
                    return true;
                }
                sum = sum.saturating_sub(other.memory_bytes());
                count = count.saturating_sub(1);
                other.open.store(None);
                false
            });
        }
    }
}

/// The length of a file, if it is the listed one.
pub(crate) fn check_length(file_name: &str, found: u64, expected: u64) -> Result<u64, StoreError> {
    if found == expected {
        return Ok(found);
    }
    Err(StoreError::NotListed {
        file: file_name.to_owned(),
        what: "length",
        found: format!("{found} bytes"),
        expected: format!("{expected} bytes"),
    })
}
