//! Reading a log after whatever happened: the longest beginning that is whole and proven.
//!
//! A batch is begun after the one before it is durable. So bytes that are not whole are a torn tail,
//! which every crash may leave, if they belong to the last batch; they are damage if a later batch
//! follows, or if the log did not have its name before they were durable.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use chain::trust::Anchors;
use chain::{BlockNumber, Candidate, ChainSpec, Mismatch, Start, Verifier, decode_header};

use super::log::{OldFiles, log_generation};
pub use super::record::CutFault;
use super::record::{
    FoundStart, LogStart, RECORD_BYTES_MAX, RECORD_HEAD_BYTES, Record, RecordHead, START_BYTES,
    TIP_BYTES, Tip, VERSION,
};
use super::tree::Tree;
use super::{HeadBlock, HeadError};
use crate::disk::{DataFile, Disk, DiskError};
use crate::finality::Finality;

/// What opening the head found besides the blocks that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The log that was read; `None` if there was none, or none with a whole beginning.
    pub log: Option<String>,
    /// Ends of logs that were not taken.
    pub cuts: Vec<Cut>,
    /// Whole blocks that did not prove, and those above them.
    pub refused: Vec<RefusedBlock>,
    /// A block of which another was sealed: then no block of the log was taken.
    pub superseded: Option<SupersededBlock>,
}

/// A block of the log in whose place another one was sealed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupersededBlock {
    /// Its number.
    pub number: BlockNumber,
    /// Its hash.
    pub found: B256,
    /// The hash of the one that was sealed.
    pub sealed: B256,
}

impl Recovery {
    /// Whether all is as a head leaves it that was not interrupted.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.cuts.is_empty() && self.refused.is_empty() && self.superseded.is_none()
    }

    /// Whether something was lost that had been acknowledged.
    #[must_use]
    pub fn has_damage(&self) -> bool {
        !self.refused.is_empty() || self.cuts.iter().any(|cut| cut.kind != CutKind::TornTail)
    }
}

/// The end of a log that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub place: String,
    /// The byte at which it stops being whole.
    pub offset: u64,
    /// How many bytes were not taken, from the end of the last whole batch on.
    pub bytes: u64,
    /// What is wrong at the offset.
    pub fault: CutFault,
    /// How it came about.
    pub kind: CutKind,
}

/// How a log came to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// A crash during the last write, which nobody was told had succeeded.
    TornTail,
    /// Bytes that were durable are not what they were.
    Damage {
        /// Whole batches that were found after the damage and had to be left out.
        batches_after: u64,
    },
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, offset, bytes, fault, kind } = self;
        write!(f, "{place}: byte {offset}: {fault}; {bytes} bytes not taken: ")?;
        match kind {
            CutKind::TornTail => f.write_str("a write that a crash interrupted"),
            CutKind::Damage { batches_after } => {
                write!(f, "damage, {batches_after} whole changes after it are lost")
            }
        }
    }
}

/// A whole block of the log that is not in the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedBlock {
    /// Its hash, as the log says.
    pub hash: B256,
    /// Why.
    pub reason: String,
}

/// A head as its log has it.
pub(super) struct Recovered {
    pub(super) tree: Tree,
    pub(super) finality: Finality,
    /// The highest generation of any file.
    pub(super) generation: u64,
    pub(super) files: OldFiles,
    pub(super) recovery: Recovery,
}

/// Reads the highest log with a whole beginning.
pub(super) fn recover(
    disk: &dyn Disk,
    spec: &ChainSpec,
    anchors: &Anchors,
) -> Result<Recovered, HeadError> {
    let logs = list_logs(disk)?;
    let proof = Proof { spec, anchors, known: &Tree::default() };
    let generation = logs.last().map_or(0, |(generation, _)| *generation);
    let mut files = OldFiles::default();
    let mut recovery = Recovery::default();
    let (mut tree, mut finality) = (None, Finality::default());
    for (generation, name) in logs.into_iter().rev() {
        if tree.is_none() {
            let reader = LogReader::open(disk, &name)?;
            let cut = match reader.start(generation)? {
                Ok(start) => {
                    recovery.log = Some(name.clone());
                    let mut replay = Replay::new(start);
                    let cut = reader.replay(&mut replay, &proof)?;
                    finality = replay.tip.finality;
                    tree = Some(replay.canonical()?);
                    recovery.refused = replay.refused;
                    cut
                }
                Err(cut) => Some(cut),
            };
            let is_damaged = cut.as_ref().is_some_and(|cut| cut.kind != CutKind::TornTail);
            recovery.cuts.extend(cut);
            if is_damaged || !recovery.refused.is_empty() {
                files.set_aside.insert(name);
                continue;
            }
        }
        files.removed.insert(name);
    }
    Ok(Recovered { tree: tree.unwrap_or_default(), finality, generation, files, recovery })
}

/// The folder's logs with their generations, oldest first.
pub(super) fn list_logs(disk: &dyn Disk) -> Result<Vec<(u64, String)>, DiskError> {
    let mut logs: Vec<(u64, String)> = Vec::new();
    for name in disk.list()? {
        logs.extend(log_generation(&name).map(|generation| (generation, name)));
    }
    logs.sort_unstable();
    Ok(logs)
}

/// A log that is read.
pub(super) struct LogReader {
    file: Arc<dyn DataFile>,
}

impl LogReader {
    pub(super) fn open(disk: &dyn Disk, name: &str) -> Result<Self, DiskError> {
        Ok(Self { file: disk.open(name)? })
    }

    /// How long the log was when it was opened.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    /// The log's beginning, or the whole file as a cut.
    pub(super) fn start(&self, generation: u64) -> Result<Result<LogStart, Cut>, HeadError> {
        let bytes = self.read_up_to(0, START_BYTES)?;
        let (fault, place) = match LogStart::decode(&bytes, generation) {
            Ok(FoundStart::Ours(start)) => return Ok(Ok(start)),
            Ok(FoundStart::Version(found)) => {
                let place = self.file.place().to_owned();
                return Err(HeadError::Version { place, found, expected: VERSION });
            }
            Err(fault) => (fault, self.file.place().to_owned()),
        };
        let batches_after = self.count_batches_after(0, 0)?;
        let bytes = self.file.file_bytes();
        Ok(Err(Cut { place, offset: 0, bytes, fault, kind: CutKind::Damage { batches_after } }))
    }

    /// Does what the log says, batch after batch, from where it was read to before until its end or
    /// to where it is not whole.
    pub(super) fn replay(
        &self,
        replay: &mut Replay,
        proof: &Proof<'_>,
    ) -> Result<Option<Cut>, HeadError> {
        let mut offset = replay.kept_bytes;
        let mut pending = Vec::new();
        while offset < self.file.file_bytes() {
            let fault = match self.record(offset, replay.next_batch)? {
                Ok((end, Record::Block(hash, candidate))) => {
                    pending.push((hash, candidate));
                    offset = end;
                    continue;
                }
                Ok((end, Record::Tip(tip))) => match replay.commit(&mut pending, tip, proof) {
                    Ok(()) => {
                        offset = end;
                        replay.kept_bytes = end;
                        replay.next_batch = replay.next_batch.saturating_add(1);
                        continue;
                    }
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            return Ok(Some(self.cut(replay, fault, offset)?));
        }
        // A log of whole batches is whole only if it has all that its name was given for.
        if pending.is_empty() && replay.next_batch > replay.start.whole_batches {
            return Ok(None);
        }
        Ok(Some(self.cut(replay, CutFault::Unfinished, offset)?))
    }

    fn cut(&self, replay: &Replay, fault: CutFault, offset: u64) -> Result<Cut, DiskError> {
        let batches_after = self.count_batches_after(offset, replay.next_batch)?;
        let is_damage = replay.next_batch <= replay.start.whole_batches || batches_after > 0;
        let kind = if is_damage { CutKind::Damage { batches_after } } else { CutKind::TornTail };
        let bytes = self.file.file_bytes().saturating_sub(replay.kept_bytes);
        Ok(Cut { place: self.file.place().to_owned(), offset, bytes, fault, kind })
    }

    /// The record at `offset`, which must belong to `batch`, and where it ends.
    fn record(
        &self,
        offset: u64,
        batch: u64,
    ) -> Result<Result<(u64, Record), CutFault>, DiskError> {
        let head = match RecordHead::decode(&self.read_up_to(offset, RECORD_HEAD_BYTES)?) {
            Ok(head) => head,
            Err(fault) => return Ok(Err(fault)),
        };
        let needed = RECORD_HEAD_BYTES.saturating_add(head.payload_bytes);
        if needed > RECORD_BYTES_MAX {
            let (found, expected) = (length(needed), length(RECORD_BYTES_MAX));
            return Ok(Err(CutFault::Field { field: "length of a record", found, expected }));
        }
        let bytes = Bytes::from(self.read_up_to(offset, needed)?);
        if bytes.len() < needed {
            return Ok(Err(CutFault::Short { had: length(bytes.len()), needed: length(needed) }));
        }
        let record = Record::decode(head, &bytes).and_then(|record| {
            if head.batch == batch {
                return Ok((offset.saturating_add(length(needed)), record));
            }
            Err(CutFault::Field { field: "batch", found: head.batch, expected: batch })
        });
        Ok(record)
    }

    /// How many whole tips of batches after `batch` there are anywhere after `offset`. A tip record
    /// has a kind of four bytes and few lengths, so one pass over the bytes finds them all.
    fn count_batches_after(&self, offset: u64, batch: u64) -> Result<u64, DiskError> {
        const WINDOW_BYTES: usize = 1 << 20;
        let mut count: u64 = 0;
        let mut at = offset;
        while at < self.file.file_bytes() {
            let window = Bytes::from(self.read_up_to(at, WINDOW_BYTES + TIP_BYTES)?);
            for position in 0..window.len().min(WINDOW_BYTES) {
                let Some(rest) = window.get(position..) else { break };
                if let Ok(head) = RecordHead::decode(rest)
                    && let Some(bytes) = head.tip_bytes().and_then(|count| rest.get(..count))
                    && head.batch > batch
                    && Record::decode(head, &window.slice_ref(bytes)).is_ok()
                {
                    count = count.saturating_add(1);
                }
            }
            at = at.saturating_add(length(WINDOW_BYTES));
        }
        Ok(count)
    }

    /// As many of the bytes as the file has.
    fn read_up_to(&self, offset: u64, count: usize) -> Result<Vec<u8>, DiskError> {
        let end = offset.saturating_add(length(count)).min(self.file.file_bytes());
        let range: Range<u64> = offset.min(end)..end;
        let mut buffer = Vec::new();
        self.file.read_at(range, &mut buffer)?;
        Ok(buffer)
    }
}

/// What proves the blocks of a log.
pub(super) struct Proof<'a> {
    pub(super) spec: &'a ChainSpec,
    pub(super) anchors: &'a Anchors,
    /// Blocks that these have proven before, in an older log.
    pub(super) known: &'a Tree,
}

/// The head that comes about batch by batch.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) start: LogStart,
    /// Where the last whole batch ends.
    pub(super) kept_bytes: u64,
    next_batch: u64,
    /// All blocks; which of them are canonical is left to the end.
    tree: Tree,
    /// The proven block that the last batch ends with, and what that batch says is final.
    pub(super) tip: Tip,
    pub(super) refused: Vec<RefusedBlock>,
    /// The parents of blocks that were refused: the way down to what is proven.
    refused_parents: BTreeMap<B256, B256>,
}

impl Replay {
    pub(super) fn new(start: LogStart) -> Self {
        let (kept_bytes, next_batch) = (length(START_BYTES), 1);
        let (refused, refused_parents) = (Vec::new(), BTreeMap::new());
        let tip = Tip { hash: start.base.parent_hash, finality: Finality::default() };
        let tree = Tree::on(start.base);
        Self { start, kept_bytes, next_batch, tree, tip, refused, refused_parents }
    }

    /// All blocks that were proven.
    pub(super) fn into_blocks(self) -> Tree {
        self.tree
    }

    /// Proves the blocks of a batch. The branch is canonical that ends with `tip`, or as much of it
    /// as is proven.
    fn commit(
        &mut self,
        pending: &mut Vec<(B256, Box<Candidate>)>,
        tip: Tip,
        proof: &Proof<'_>,
    ) -> Result<(), CutFault> {
        let refused_before = self.refused.len();
        for (hash, candidate) in pending.drain(..) {
            let parent_hash = decode_header(&candidate.header).map(|header| header.parent_hash);
            match self.prove(hash, *candidate, proof) {
                Ok(block) => self.tree.insert(block),
                Err(reason) => {
                    self.refused.push(RefusedBlock { hash, reason });
                    self.refused_parents.extend(parent_hash.map(|parent| (hash, parent)));
                }
            }
        }
        let mut proven = tip.hash;
        while let Some(parent_hash) = self.refused_parents.get(&proven) {
            proven = *parent_hash;
        }
        if self.tree.number_after(&proven).is_none() {
            // The batch does not count, and may be read again when there is more of the file.
            self.refused.truncate(refused_before);
            return Err(CutFault::Tip { hash: tip.hash });
        }
        self.tip = Tip { hash: proven, ..tip };
        Ok(())
    }

    /// The head after the last batch.
    pub(super) fn canonical(&self) -> Result<Tree, HeadError> {
        self.tree.switched_to(self.tip.hash)
    }

    fn prove(
        &self,
        hash: B256,
        candidate: Candidate,
        proof: &Proof<'_>,
    ) -> Result<Arc<HeadBlock>, String> {
        let header = decode_header(&candidate.header).map_err(|error| error.to_string())?;
        let next = self.tree.number_after(&header.parent_hash).ok_or_else(|| {
            format!("block {}: its parent {} is not in the head", header.number, header.parent_hash)
        })?;
        // The same block: its number follows from its header, which its hash stands for.
        let is_enough = |known: &&Arc<HeadBlock>| {
            known.number() == next
                && known.parent_hash() == header.parent_hash
                && (known.block().receipts.is_some() || candidate.receipts.is_none())
        };
        if let Some(known) = proof.known.find(&hash).filter(is_enough) {
            return Ok(Arc::clone(known));
        }
        let start = match next.parent() {
            Some(number) => Start::After { number: number.get(), hash: header.parent_hash },
            None => Start::At(0),
        };
        let proven = Verifier::new(proof.spec, proof.anchors, start).verify(candidate);
        let block = proven.map_err(|mismatch: Mismatch| mismatch.to_string())?;
        if block.hash != hash {
            let number = block.header.number;
            return Err(format!("block {number}: its hash is {}, the log says {hash}", block.hash));
        }
        Ok(Arc::new(HeadBlock::new(block)))
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
