//! A file as a manifest lists it, and whether bytes are that file.

use alloy_primitives::B256;
use segment::{FOOTER_BYTES, Footer};
use sha2::{Digest as _, Sha256};
use store::layout::HeldRange;
use store::manifest::{Manifest, RunEntry, SegmentEntry};
use store::names::{run_name, segment_name};
use thiserror::Error;

/// What is known of a file before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedFile {
    /// Its name, in a folder as in a bucket.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The digest that the manifest lists.
    pub digest: B256,
    /// What that is a digest of.
    pub kind: FileKind,
}

/// Which bytes a listed digest is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Of everything before the footer, which repeats it.
    Segment(HeldRange),
    /// Of the whole file.
    Run,
}

/// Bytes that are not the listed file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileMismatch {
    /// It is longer or shorter.
    #[error("it has {found} bytes, {expected} are listed")]
    Length {
        /// How long it is, as far as it was read.
        found: u64,
        /// How long it should be.
        expected: u64,
    },
    /// Its bytes are others.
    #[error("its SHA-256 is {found}, {expected} is listed")]
    Digest {
        /// Of what is there.
        found: B256,
        /// Of what should be there.
        expected: B256,
    },
    /// Its footer says something else.
    #[error("its footer says {found}, {expected} is listed")]
    Footer {
        /// What it says, or what is wrong with it.
        found: String,
        /// What it should say.
        expected: String,
    },
}

impl From<&SegmentEntry> for SealedFile {
    fn from(entry: &SegmentEntry) -> Self {
        let SegmentEntry { file_name, bytes, digest, .. } = entry;
        let kind = FileKind::Segment(entry.held());
        Self { name: file_name.clone(), bytes: *bytes, digest: *digest, kind }
    }
}

impl From<&RunEntry> for SealedFile {
    fn from(entry: &RunEntry) -> Self {
        let RunEntry { file_name, bytes, digest, .. } = entry;
        Self { name: file_name.clone(), bytes: *bytes, digest: *digest, kind: FileKind::Run }
    }
}

/// The files of a manifest: its segments, then its runs.
#[must_use]
pub fn listed_files(manifest: &Manifest) -> Vec<SealedFile> {
    let segments = manifest.segments().iter().map(SealedFile::from);
    segments.chain(manifest.runs().iter().map(SealedFile::from)).collect()
}

/// A file of the manifest whose name is not the one that its content has, as name and expected name.
pub(crate) fn find_misnamed(manifest: &Manifest) -> Option<(&str, String)> {
    let segments = manifest.segments().iter();
    let segments = segments.map(|it| (&*it.file_name, segment_name(it.held(), it.digest)));
    let runs = manifest.runs().iter();
    let runs = runs.map(|it| (&*it.file_name, run_name(it.subject, it.span, it.digest)));
    segments.chain(runs).find(|(name, expected)| name != expected)
}

/// Holds the bytes of a file against its digest, while they come.
#[derive(Debug)]
pub struct DigestCheck {
    file: SealedFile,
    hasher: Sha256,
    /// How many bytes were taken.
    taken: u64,
    /// The end of a segment, which its digest is not of.
    footer: Vec<u8>,
}

impl DigestCheck {
    /// Nothing was taken yet.
    #[must_use]
    pub fn new(file: &SealedFile) -> Self {
        Self { file: file.clone(), hasher: Sha256::new(), taken: 0, footer: Vec::new() }
    }

    /// Takes the bytes that follow. Refuses them as soon as the file is too long.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), FileMismatch> {
        let before = self.taken;
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.taken = before.saturating_add(count);
        if self.taken > self.file.bytes {
            return Err(FileMismatch::Length { found: self.taken, expected: self.file.bytes });
        }
        let footer_bytes = match &self.file.kind {
            FileKind::Segment(_) => u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX),
            FileKind::Run => 0,
        };
        let left = self.file.bytes.saturating_sub(footer_bytes).saturating_sub(before);
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (digested, footer) = bytes.split_at_checked(left).unwrap_or((bytes, &[]));
        self.hasher.update(digested);
        self.footer.extend_from_slice(footer);
        Ok(())
    }

    /// Whether all that was taken is the listed file.
    pub fn finish(self) -> Result<(), FileMismatch> {
        let SealedFile { bytes, digest: expected, kind, .. } = self.file;
        if self.taken != bytes {
            return Err(FileMismatch::Length { found: self.taken, expected: bytes });
        }
        let found = B256::from_slice(&self.hasher.finalize());
        if found != expected {
            return Err(FileMismatch::Digest { found, expected });
        }
        let FileKind::Segment(held) = kind else { return Ok(()) };
        let text = |held: HeldRange, digest: B256| {
            let receipts = if held.has_receipts { "with" } else { "without" };
            format!("blocks {} {receipts} receipts, SHA-256 {digest}", held.range)
        };
        let expected = text(held, expected);
        let found = match Footer::parse(&self.footer) {
            Ok(footer) => {
                let Footer { facts, digest, .. } = footer;
                let held = HeldRange { range: facts.range, has_receipts: facts.has_receipts };
                text(held, B256::from(digest))
            }
            Err(cause) => cause.to_string(),
        };
        if found == expected { Ok(()) } else { Err(FileMismatch::Footer { found, expected }) }
    }
}
