//! A file that is being written: it gets its name when it is whole and durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use sha2::{Digest, Sha256};

use crate::disk::{Disk, DiskError, WritableFile};
use crate::files::{Claim, FileClaims};
use crate::names::part_name;

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Gives every unfinished file of a store a name of its own.
#[derive(Debug)]
pub(crate) struct StagingArea {
    disk: Arc<dyn Disk>,
    claims: Arc<FileClaims>,
    next: AtomicU64,
}

impl StagingArea {
    pub(crate) fn new(disk: Arc<dyn Disk>, claims: Arc<FileClaims>) -> Self {
        Self { disk, claims, next: AtomicU64::new(0) }
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Begins a file.
    pub(crate) fn begin(&self) -> StagedFile {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        StagedFile {
            disk: Arc::clone(&self.disk),
            claims: Arc::clone(&self.claims),
            name: part_name(number),
            buffer: Vec::new(),
            bytes: 0,
            hasher: Sha256::new(),
            file: None,
            is_begun: false,
            is_named: false,
        }
    }
}

/// An unfinished file. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct StagedFile {
    disk: Arc<dyn Disk>,
    claims: Arc<FileClaims>,
    name: String,
    buffer: Vec<u8>,
    bytes: u64,
    hasher: Sha256,
    /// The file, until its bytes are durable.
    file: Option<Box<dyn WritableFile>>,
    is_begun: bool,
    is_named: bool,
}

/// A finished file.
#[derive(Debug)]
pub(crate) struct FileDigest {
    /// Its length.
    pub(crate) bytes: u64,
    /// SHA-256 of all of it.
    pub(crate) digest: B256,
}

impl StagedFile {
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.hasher.update(bytes);
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Makes the bytes durable; nothing is added after this.
    pub(crate) fn close(&mut self) -> Result<FileDigest, DiskError> {
        self.flush()?;
        if let Some(mut file) = self.file.take() {
            file.fsync()?;
        }
        let digest = B256::from_slice(&std::mem::take(&mut self.hasher).finalize());
        Ok(FileDigest { bytes: self.bytes, digest })
    }

    /// Gives a closed file its name, which is durable after the folder's next fsync. The file goes with
    /// the last claim on it, unless it is listed or kept.
    pub(crate) fn rename(mut self, name: &str) -> Result<Claim, DiskError> {
        let claim = self.claims.claim_new(name, || self.disk.rename(&self.name, name))?;
        self.is_named = true;
        Ok(claim)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        if let Some(file) = &mut self.file {
            file.append(&self.buffer)?;
        } else {
            // A write that fails may leave a part of the bytes: from here on there is a file to remove.
            self.is_begun = true;
            // What a crash left under this name goes.
            self.file = Some(self.disk.write(&self.name, &self.buffer)?);
        }
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if self.is_begun && !self.is_named {
            // Whoever opens the folder to write removes what cannot be removed now.
            let _ = self.claims.remove(&self.name);
        }
    }
}
