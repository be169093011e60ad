//! A file under way: written once from front to back, hashed as it goes, named when it is whole.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::Path;

use alloy_primitives::B256;
use sha2::{Digest, Sha256};

use crate::e2store::{Tag, write_entry};
use crate::unfinished::Unfinished;

/// A file without its final name; it is removed unless it is kept.
#[derive(Debug)]
pub(super) struct Unnamed {
    unfinished: Unfinished,
    file: BufWriter<File>,
}

impl Unnamed {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let (unfinished, file) = Unfinished::create(folder)?;
        Ok(Self { unfinished, file: BufWriter::with_capacity(1 << 18, file) })
    }
}

/// The archive file itself.
#[derive(Debug)]
pub(super) struct Sink {
    unnamed: Unnamed,
    hasher: Sha256,
    position: u64,
}

impl Sink {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let unnamed = Unnamed::create(folder)?;
        let mut sink = Self { unnamed, hasher: Sha256::new(), position: 0 };
        sink.entry(Tag::Version, &[])?;
        Ok(sink)
    }

    /// Where the next byte goes.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn entry(&mut self, tag: Tag, data: &[u8]) -> io::Result<()> {
        write_entry(self, tag, data).map(drop)
    }

    /// The numbered order in which a file becomes visible; a crash before step 2 leaves nothing
    /// but an unfinished file.
    pub(super) fn keep_as(mut self, path: &Path) -> io::Result<(u64, B256)> {
        self.unnamed.file.flush()?;
        self.unnamed.file.get_ref().sync_all()?; // 1. the contents are durable
        self.unnamed.unfinished.keep_as(path)?; //   2. the name appears
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?; //      3. the name is durable
        }
        Ok((self.position, B256::from_slice(&self.hasher.finalize())))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.unnamed.file.write(bytes)?;
        let written = bytes.get(..count).unwrap_or_default();
        self.hasher.update(written);
        let count_bytes = u64::try_from(count).map_err(io::Error::other)?;
        self.position = self.position.saturating_add(count_bytes);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unnamed.file.flush()
    }
}

/// A section on its way into an archive: entries kept on disk, so that memory stays bounded while
/// the sections before it grow.
#[derive(Debug)]
pub(super) struct Spool {
    unnamed: Unnamed,
    entry_bytes: Vec<u64>,
}

impl Spool {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self { unnamed: Unnamed::create(folder)?, entry_bytes: Vec::new() })
    }

    pub(super) fn entry(&mut self, tag: Tag, data: &[u8]) -> io::Result<()> {
        self.entry_bytes.push(write_entry(&mut self.unnamed.file, tag, data)?);
        Ok(())
    }

    /// Appends the section to the archive and tells where each entry landed.
    pub(super) fn pour(mut self, sink: &mut Sink) -> io::Result<Vec<u64>> {
        let mut offsets = Vec::with_capacity(self.entry_bytes.len());
        let mut offset = sink.position();
        for bytes in &self.entry_bytes {
            offsets.push(offset);
            offset = offset.saturating_add(*bytes);
        }
        self.unnamed.file.flush()?;
        let file = self.unnamed.file.get_mut();
        file.rewind()?;
        io::copy(&mut BufReader::with_capacity(1 << 18, file), sink)?;
        Ok(offsets)
    }
}
