//! The log of a head that another process may be writing, read without the folder's lock.
//!
//! A look costs what is new: a log is read on from where it was read to, and a log of another
//! generation is read from its beginning, but no block in it is proven twice. What is not whole at the
//! end is a batch that is being written, and is looked at again when the file has changed.

use chain::ChainSpec;
use chain::trust::Anchors;

use super::record::LogStart;
use super::recover::{Cut, LogReader, Proof, Recovery, Replay, list_logs};
use super::tree::Tree;
use super::{HeadError, HeadView};
use crate::block_id::BlockId;
use crate::disk::{Disk, DiskError};
use crate::finality::Finality;

/// How often the folder is looked at anew if a log goes away while it is looked at.
const TRIES_MAX: u32 = 16;

/// A log, followed.
#[derive(Debug)]
pub(crate) struct LogTail {
    spec: ChainSpec,
    anchors: Anchors,
    log: Option<ReadLog>,
    /// Logs of higher generations whose beginnings are not whole.
    lost_starts: Vec<Cut>,
}

/// The log that counts, as far as it was read.
#[derive(Debug)]
struct ReadLog {
    name: String,
    replay: Replay,
    /// How long the file was.
    file_bytes: u64,
    cut: Option<Cut>,
}

impl LogTail {
    pub(crate) fn new(spec: ChainSpec) -> Self {
        let anchors = Anchors::of(&spec);
        Self { spec, anchors, log: None, lost_starts: Vec::new() }
    }

    /// Reads what is new; tells whether anything was.
    pub(crate) fn look(&mut self, disk: &dyn Disk) -> Result<bool, HeadError> {
        let mut tries = 1;
        loop {
            match self.look_once(disk) {
                // A log of the next generation has just taken its place, and a list that was made
                // meanwhile may lack both.
                Err(HeadError::Disk(DiskError::Missing { .. }) | HeadError::LogGone { .. })
                    if tries < TRIES_MAX =>
                {
                    tries += 1;
                }
                looked => return looked,
            }
        }
    }

    fn look_once(&mut self, disk: &dyn Disk) -> Result<bool, HeadError> {
        let mut lost_starts = Vec::new();
        for (generation, name) in list_logs(disk)?.into_iter().rev() {
            let reader = LogReader::open(disk, &name)?;
            match reader.start(generation)? {
                Ok(start) => {
                    self.refuse_loss(start, reader.file_bytes())?;
                    let is_other_start = lost_starts != self.lost_starts;
                    self.lost_starts = lost_starts;
                    let is_same = |log: &ReadLog| log.replay.start == start;
                    let before = self.log.take();
                    let is_read_on = before.as_ref().is_some_and(is_same);
                    let unread = || {
                        let replay = Replay::new(start);
                        ReadLog { name: name.clone(), replay, file_bytes: 0, cut: None }
                    };
                    let (known, mut log) = match before {
                        Some(log) if is_read_on => (Tree::default(), log),
                        Some(log) => (log.replay.into_blocks(), unread()),
                        None => (Tree::default(), unread()),
                    };
                    let is_changed = log.read_on(&reader, &self.spec, &self.anchors, &known);
                    self.log = Some(log);
                    return Ok(is_changed? || is_other_start || !is_read_on);
                }
                Err(cut) => lost_starts.push(cut),
            }
        }
        if let Some(log) = &self.log {
            return Err(HeadError::LogGone { name: log.name.clone() });
        }
        let is_changed = lost_starts != self.lost_starts;
        self.lost_starts = lost_starts;
        Ok(is_changed)
    }

    /// What was read of a log was durable: a log that lacks it was damaged, and is not believed.
    fn refuse_loss(&self, start: LogStart, file_bytes: u64) -> Result<(), HeadError> {
        let Some(log) = &self.log else { return Ok(()) };
        let (name, known) = (log.name.clone(), log.replay.start);
        if start.generation < known.generation {
            return Err(HeadError::LogGone { name });
        }
        let expected = log.replay.kept_bytes;
        if start == known && file_bytes < expected {
            return Err(HeadError::LogShrunk { name, found: file_bytes, expected });
        }
        Ok(())
    }

    /// The head that the log gives.
    pub(crate) fn head(&self) -> Result<HeadView, HeadError> {
        Ok(HeadView::new(&self.tree()?))
    }

    /// The part of it above a block.
    pub(crate) fn head_above(&self, block: BlockId) -> Result<HeadView, HeadError> {
        let tree = self.tree()?;
        let above = tree.sealed_below(block.number, block.hash)?;
        Ok(HeadView::new(&above.unwrap_or(tree)))
    }

    fn tree(&self) -> Result<Tree, HeadError> {
        self.log.as_ref().map_or_else(|| Ok(Tree::default()), |log| log.replay.canonical())
    }

    /// What it says is final.
    pub(crate) fn finality(&self) -> Finality {
        self.log.as_ref().map(|log| log.replay.tip.finality).unwrap_or_default()
    }

    /// What was not taken, and why.
    pub(crate) fn recovery(&self) -> Recovery {
        let log = self.log.as_ref();
        let cuts = self.lost_starts.iter().chain(log.and_then(|log| log.cut.as_ref()));
        Recovery {
            log: log.map(|log| log.name.clone()),
            cuts: cuts.cloned().collect(),
            refused: log.map(|log| log.replay.refused.clone()).unwrap_or_default(),
            superseded: None,
        }
    }
}

impl ReadLog {
    /// Reads what was added; tells whether there was anything.
    fn read_on(
        &mut self,
        reader: &LogReader,
        spec: &ChainSpec,
        anchors: &Anchors,
        known: &Tree,
    ) -> Result<bool, HeadError> {
        if reader.file_bytes() == self.file_bytes {
            return Ok(false);
        }
        let (kept, cut) = (self.replay.kept_bytes, self.cut.take());
        self.cut = reader.replay(&mut self.replay, &Proof { spec, anchors, known })?;
        self.file_bytes = reader.file_bytes();
        Ok(self.replay.kept_bytes != kept || self.cut != cut)
    }
}
