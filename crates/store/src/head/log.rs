//! The log's writer: every change durable and atomic, or an error.
//!
//! A batch counts with its last record, the tip. A log is only added to by the process that wrote
//! its beginning, and only while nothing failed: whatever else is at its end (a torn write, a failed
//! fsync after which memory and disk may differ) stays behind in a generation that nobody adds to. So
//! does a file that is not the one which was written any more, because somebody cut or replaced it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::record::{LogStart, Tip, encode_block, encode_tip};
use super::tree::{Base, Tree};
use super::{HeadBlock, HeadError};
use crate::disk::{Disk, WritableFile};
use crate::finality::Finality;
use crate::names::HEAD_STAGED;

/// Records are written when so many bytes have come together.
const WRITE_BYTES: usize = 4 << 20;
/// Bytes of a damaged log that are copied at a time.
const COPY_BYTES: u64 = 4 << 20;
/// After so many batches a log is replaced: those that only move the tip must not fill the disk.
const BATCHES_MAX: u64 = 1 << 16;

/// The name of a generation's log.
pub(super) fn log_name(generation: u64) -> String {
    format!("head-{generation}.log")
}

/// The generation that a file's name tells, if it is the name of a log.
pub(super) fn log_generation(name: &str) -> Option<u64> {
    let generation = name.strip_prefix("head-")?.strip_suffix(".log")?.parse().ok()?;
    (log_name(generation) == name).then_some(generation)
}

/// Files that a new log makes worthless.
#[derive(Debug, Default)]
pub(super) struct OldFiles {
    pub(super) removed: BTreeSet<String>,
    /// Damaged ones are kept for whoever wants to look, under another name.
    pub(super) set_aside: BTreeSet<String>,
}

/// Where changes are written.
#[derive(Debug)]
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    /// The highest generation that there is or may be.
    generation: u64,
    /// What the log has, if it can be added to.
    written: Option<WrittenLog>,
    /// What its last tip says is final, if it can be added to.
    finality: Finality,
    old: OldFiles,
}

/// What this process wrote to a log and made durable.
#[derive(Debug)]
struct WrittenLog {
    batches: u64,
    file_bytes: u64,
    /// The last record, a tip: two logs of one length differ in it.
    last_record: Vec<u8>,
}

impl WrittenLog {
    /// Whether the file of this name ends as it was written.
    fn check(&self, disk: &dyn Disk, name: &str) -> Result<(), HeadError> {
        let changed = |found: String| HeadError::LogChanged {
            place: format!("{}/{name}", disk.place()),
            found,
            expected: self.file_bytes,
        };
        let file_bytes = match disk.file_bytes(name) {
            Err(error) if error.is_missing() => return Err(changed("is not there".to_owned())),
            Err(error) if error.is_of_content() => return Err(changed("is no file".to_owned())),
            found => found?,
        };
        if file_bytes != self.file_bytes {
            return Err(changed(format!("has {file_bytes} bytes")));
        }
        let last_bytes = u64::try_from(self.last_record.len()).unwrap_or(u64::MAX);
        let range = file_bytes.saturating_sub(last_bytes)..file_bytes;
        if disk.read_range(name, range)? != self.last_record {
            return Err(changed("ends with another record".to_owned()));
        }
        Ok(())
    }
}

impl Log {
    /// A log after `generation`; the first change begins it.
    pub(super) fn new(disk: Arc<dyn Disk>, generation: u64, old: OldFiles) -> Self {
        Self { disk, generation, written: None, finality: Finality::default(), old }
    }

    /// Whether the disk is known to hold exactly what the last change left, and this of finality.
    pub(super) fn is_settled_with(&self, finality: Finality) -> bool {
        self.written.is_some() && self.finality == finality
    }

    /// Whether the file is what this process wrote. If it is not, that is an error once: the next change
    /// writes a log of its own, and what is there is kept for whoever wants to look.
    pub(super) fn check(&mut self) -> Result<(), HeadError> {
        let Some(written) = &self.written else { return Ok(()) };
        let name = log_name(self.generation);
        let checked = written.check(&*self.disk, &name);
        if matches!(checked, Err(HeadError::LogChanged { .. })) {
            self.written = None;
            self.old.set_aside.insert(name);
        }
        checked
    }

    /// Makes the tree durable, which is what the log holds, these blocks, and another tip; and what
    /// is final. If the file is not what was written, that is told as an error, and the next change
    /// writes a log of its own.
    pub(super) fn add(
        &mut self,
        next: &Tree,
        added: &[Arc<HeadBlock>],
        finality: Finality,
    ) -> Result<(), HeadError> {
        self.check()?; //                                   0. a batch on other bytes would be lost
        let written = self.written.take().filter(|written| written.batches < BATCHES_MAX);
        let (Some(written), Some(base)) = (written, next.base()) else {
            return self.replace(next, finality);
        };
        let batch = written.batches.saturating_add(1);
        let file = self.disk.append(&log_name(self.generation), &[])?;
        let mut writer = LogWriter::new(file, written.file_bytes);
        for block in added {
            writer.block(batch, block)?;
        }
        writer.tip(batch, tip_of(next, base, finality))?; //      1. the batch is in the file
        (self.written, self.finality) = (Some(writer.finish(batch)?), finality); // 2. and durable
        Ok(())
    }

    /// Makes the tree and what is final durable in a log of its own, which takes the place of the one
    /// before.
    pub(super) fn replace(&mut self, next: &Tree, finality: Finality) -> Result<(), HeadError> {
        self.written = None;
        let Some(base) = next.base() else {
            return Ok(()); // a head that never had a block has no log
        };
        // Remembered before anything can fail: the number of this attempt is used up either way.
        self.old.removed.insert(log_name(self.generation));
        // A failure after the rename leaves a log of this generation: its number is used up.
        self.generation = self.generation.saturating_add(1);
        let name = log_name(self.generation);
        self.keep_damaged()?; //                            0. a copy, before anything can go
        let written = self.stage(next, base, finality)?; // 1. beside the others, and durable
        self.disk.rename(HEAD_STAGED, &name)?; //           2. the highest generation counts
        self.disk.fsync_folder()?; //                       3. the name is durable
        (self.written, self.finality) = (Some(written), finality);
        self.sweep(); //                                    4. the others are worthless
        Ok(())
    }

    /// Writes the whole tree and makes it durable: each canonical block is a batch, so that damage costs
    /// only what is above it, and one more has the side branches.
    fn stage(&self, next: &Tree, base: Base, finality: Finality) -> Result<WrittenLog, HeadError> {
        let canonical = u64::try_from(next.canonical().len()).unwrap_or(u64::MAX);
        let whole_batches = canonical.saturating_add(1);
        let start = LogStart { generation: self.generation, whole_batches, base };
        let start = start.encode();
        let file = self.disk.write(HEAD_STAGED, &start)?; // over what a crash left
        let mut writer = LogWriter::new(file, length(start.len()));
        for (batch, block) in (1..).zip(next.canonical()) {
            writer.block(batch, block)?;
            encode_tip(batch, Tip { hash: block.hash(), finality }, &mut writer.buffer);
        }
        for block in next.side_blocks() {
            writer.block(whole_batches, block)?;
        }
        writer.tip(whole_batches, tip_of(next, base, finality))?;
        writer.finish(whole_batches)
    }

    /// Makes the log believe that it has so many batches.
    #[cfg(test)]
    pub(super) fn pretend_batches(&mut self, count: u64) {
        if let Some(written) = &mut self.written {
            written.batches = count;
        }
    }

    /// Removes what is worthless. What cannot be removed now harms nobody and is tried again.
    fn sweep(&mut self) {
        let live = log_name(self.generation);
        let Self { disk, old, .. } = self;
        old.removed.retain(|name| {
            *name != live && disk.remove(name).is_err_and(|error| !error.is_missing())
        });
    }

    /// Copies damaged logs for whoever wants to look. A log that were renamed before the next one is
    /// there would be missing after a crash, and one that is renamed later would be removed as an old
    /// one by whoever opens the folder after a crash in between.
    fn keep_damaged(&mut self) -> Result<(), HeadError> {
        while let Some(name) = self.old.set_aside.first().cloned() {
            let copy = name.replace(".log", ".damaged");
            let file_bytes = match self.disk.file_bytes(&name) {
                // Nothing of it can be copied, and what is no file is not ours to remove.
                Err(error) if error.is_of_file() => {
                    self.old.set_aside.remove(&name);
                    continue;
                }
                found => found?,
            };
            let mut file = self.disk.write(&copy, &[])?;
            let mut at = 0;
            while at < file_bytes {
                let end = at.saturating_add(COPY_BYTES).min(file_bytes);
                file.append(&self.disk.read_range(&name, at..end)?)?;
                at = end;
            }
            file.fsync()?;
            self.disk.fsync_folder()?;
            self.old.set_aside.remove(&name);
            self.old.removed.insert(name);
        }
        Ok(())
    }
}

/// What a batch ends with that leaves this tree.
fn tip_of(tree: &Tree, base: Base, finality: Finality) -> Tip {
    Tip { hash: tree.tip_hash().unwrap_or(base.parent_hash), finality }
}

/// Collects records and appends them.
struct LogWriter {
    file: Box<dyn WritableFile>,
    buffer: Vec<u8>,
    /// How long the file is without what is in the buffer.
    file_bytes: u64,
    /// The last tip.
    last_record: Vec<u8>,
}

impl LogWriter {
    fn new(file: Box<dyn WritableFile>, file_bytes: u64) -> Self {
        Self { file, buffer: Vec::new(), file_bytes, last_record: Vec::new() }
    }

    fn block(&mut self, batch: u64, block: &HeadBlock) -> Result<(), HeadError> {
        encode_block(batch, block.block(), &mut self.buffer)?;
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn tip(&mut self, batch: u64, tip: Tip) -> Result<(), HeadError> {
        let begin = self.buffer.len();
        encode_tip(batch, tip, &mut self.buffer);
        self.last_record = self.buffer.get(begin..).unwrap_or_default().to_vec();
        self.flush()
    }

    fn flush(&mut self) -> Result<(), HeadError> {
        self.file.append(&self.buffer)?;
        self.file_bytes = self.file_bytes.saturating_add(length(self.buffer.len()));
        self.buffer.clear();
        Ok(())
    }

    /// What the file has when everything is in it, and durable.
    fn finish(mut self, batches: u64) -> Result<WrittenLog, HeadError> {
        self.file.fsync()?;
        let Self { file_bytes, last_record, .. } = self;
        Ok(WrittenLog { batches, file_bytes, last_record })
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
