//! Opening a run: its footer tells where its tail is, and the tail is all that a probe needs.
//!
//! Knows: which bytes of the file are read, and in which order.
//! Never knows: where the file is, or who reads it.

use std::ops::Range;

use super::error::CorruptRun;
use super::geometry::FOOTER_BYTES;
use super::run::Run;
use super::tail::RunFooter;
use crate::bytes::slice;

/// A run that is being opened, by two reads of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOpening {
    file_bytes: u64,
    /// Where the tail is; `None` until the footer was supplied.
    tail: Option<Range<u64>>,
}

impl RunOpening {
    /// Begins to open a file of so many bytes.
    #[must_use]
    pub fn new(file_bytes: u64) -> Self {
        Self { file_bytes, tail: None }
    }

    /// The bytes of the file that are needed next: those of the footer, then those of the tail.
    #[must_use]
    pub fn needed(&self) -> Range<u64> {
        let footer = self.file_bytes.saturating_sub(FOOTER_BYTES)..self.file_bytes;
        self.tail.clone().unwrap_or(footer)
    }

    /// Supplies the bytes that [`Self::needed`] names; `None` if those of the tail are still needed.
    pub fn supply(&mut self, bytes: &[u8]) -> Result<Option<Run>, CorruptRun> {
        if self.tail.is_some() {
            return Run::parse(bytes, self.file_bytes).map(Some);
        }
        self.tail = Some(RunFooter::parse(bytes, self.file_bytes)?.tail());
        Ok(None)
    }
}

impl Run {
    /// Opens a run whose whole file is in memory.
    pub fn from_file(file: &[u8]) -> Result<Self, CorruptRun> {
        let mut opening = RunOpening::new(u64::try_from(file.len()).unwrap_or(u64::MAX));
        loop {
            if let Some(run) = opening.supply(slice(file, &opening.needed()))? {
                return Ok(run);
            }
        }
    }
}
