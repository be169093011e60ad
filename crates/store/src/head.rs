//! The head: the newest blocks, not yet final, in memory, with a log that survives a crash.
//!
//! A change is durable before it can be seen. A reorg is a change of which hash is canonical: blocks
//! are written once, and going back to an older branch costs one small record. The log is never
//! believed beyond what [`Verifier`](chain::Verifier) proves again when it is opened. Its bytes are
//! drawn in docs/format-head.md.

use std::sync::Arc;

use alloy_primitives::B256;
use chain::trust::Anchors;
use chain::{Block, BlockNumber, ChainSpec, Verified};
use thiserror::Error;

use crate::block_id::BlockId;
use crate::disk::{Disk, DiskError};
use crate::finality::Finality;
use crate::names::is_head_file;

mod block;
#[cfg(test)]
pub(crate) mod fixture;
mod log;
mod record;
mod recover;
mod tail;
#[cfg(test)]
mod tests;
mod tree;
mod view;

pub use block::HeadBlock;
use log::Log;
use recover::Recovered;
pub use recover::{Cut, CutFault, CutKind, Recovery, RefusedBlock, SupersededBlock};
pub(crate) use tail::LogTail;
use tree::{Base, Tree};
pub use view::{HeadView, TxPlace};

/// Whether a folder has a log of a head.
pub fn has_log(disk: &dyn Disk) -> Result<bool, DiskError> {
    Ok(disk.list()?.iter().any(|name| log::log_generation(name).is_some()))
}

/// How many bytes all files of the head take.
pub fn file_bytes(disk: &dyn Disk) -> Result<u64, DiskError> {
    let mut sum: u64 = 0;
    for name in disk.list()?.iter().filter(|name| is_head_file(name)) {
        match disk.file_bytes(name) {
            // A new log has just taken its place.
            Err(error) if error.is_missing() => {}
            found => sum = sum.saturating_add(found?),
        }
    }
    Ok(sum)
}

/// How large a head may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Memory of all its blocks, those of side branches included, as [`HeadBlock::bytes`] counts it.
    pub bytes_max: u64,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: 1 << 30 }
    }
}

/// Why a head could not be opened or changed. After an error it is as it was before.
#[derive(Debug, Error)]
pub enum HeadError {
    /// The disk failed. The change is not done, but a crash before the next change that succeeds
    /// may leave it done all the same.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A block that is not the child of the one before it.
    #[error("block {number} ({hash}) has parent {found}, the block before it is {expected}")]
    ParentHash {
        /// The block.
        number: BlockNumber,
        /// Its hash.
        hash: B256,
        /// The parent that it names.
        found: B256,
        /// The block that it was put upon.
        expected: B256,
    },
    /// A block whose number does not follow.
    #[error("block {hash} has number {found}, expected {expected}")]
    Number {
        /// The block.
        hash: B256,
        /// Its number.
        found: BlockNumber,
        /// The number that follows.
        expected: BlockNumber,
    },
    /// A block that is not on the canonical chain of the head, nor the one that it stands on.
    #[error("block {hash} is not canonical in the head, {}", canonical_text(*.number, *.canonical))]
    NotCanonical {
        /// The block.
        hash: B256,
        /// Its number, if it was told.
        number: Option<BlockNumber>,
        /// The canonical block of that number.
        canonical: Option<B256>,
    },
    /// A block that the head does not hold.
    #[error("block {hash} is not in the head")]
    Unknown {
        /// The block.
        hash: B256,
    },
    /// The canonical chain would take too much memory.
    #[error(
        "the head would have {bytes} bytes, at most {bytes_max}: nothing has become final for long. It \
         goes on when the node finalises blocks; --finality-depth N is for chains that never do"
    )]
    Full {
        /// How many it would have.
        bytes: u64,
        /// How many it may have.
        bytes_max: u64,
    },
    /// A block that no reader of the log would take.
    #[error("block {hash} would take {bytes} bytes of the log, at most {bytes_max}")]
    BlockTooLarge {
        /// The block.
        hash: B256,
        /// How many bytes its record would have.
        bytes: usize,
        /// How many a record may have.
        bytes_max: usize,
    },
    /// A log that another build wrote.
    #[error(
        "{place}: head log of version {found}, this build reads up to {expected}: use the build that \
         wrote it, or a newer one"
    )]
    Version {
        /// The file.
        place: String,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// A log that was read before and is not there any more.
    #[error(
        "{name}, which was read before, is gone, and no newer log of the head is there: bring it back \
         from a copy; `quipu repair` accepts the loss"
    )]
    LogGone {
        /// The file.
        name: String,
    },
    /// A log that lost bytes which were read before.
    #[error(
        "{name}: the head's log has {found} bytes, {expected} were read before: bring it back from a \
         copy; `quipu repair` accepts the loss"
    )]
    LogShrunk {
        /// The file.
        name: String,
        /// How long it is.
        found: u64,
        /// How long it was at least.
        expected: u64,
    },
    /// A log that is not the one that this process wrote: somebody cut, replaced or removed it.
    #[error(
        "{place}: the head's log was changed by somebody else: it {found}, this process wrote \
         {expected} bytes; the change is not done, and the next one writes the whole head to a new log"
    )]
    LogChanged {
        /// The file.
        place: String,
        /// What is there.
        found: String,
        /// How long it was.
        expected: u64,
    },
    /// Another block in the place of one that was recorded as final.
    #[error(
        "block {number} is {found}, but {expected} was recorded as final; `quipu rewind` takes that back"
    )]
    Final {
        /// Its number.
        number: BlockNumber,
        /// The block that was to become canonical.
        found: B256,
        /// The one that is final.
        expected: B256,
    },
}

fn canonical_text(number: Option<BlockNumber>, canonical: Option<B256>) -> String {
    match (number, canonical) {
        (Some(number), Some(hash)) => format!("its block {number} is {hash}"),
        (Some(number), None) => format!("it has no block {number}"),
        (None, _) => "and it does not stand on it".to_owned(),
    }
}

/// The head's one writer. Whoever has it holds the folder's lock.
#[derive(Debug)]
pub struct Head {
    tree: Tree,
    view: Arc<HeadView>,
    /// What is safe and final by the last word that was made durable.
    finality: Finality,
    log: Log,
    limits: HeadLimits,
}

impl Head {
    /// The head that the folder's log holds, each block proven again; an empty one if there is no
    /// log. [`Recovery`] tells what was not taken, and why.
    pub fn open(
        disk: Arc<dyn Disk>,
        spec: &ChainSpec,
        anchors: &Anchors,
        limits: HeadLimits,
    ) -> Result<(Self, Recovery), HeadError> {
        let mut recovered = recover::recover(&*disk, spec, anchors)?;
        let log = Log::new(disk, recovered.generation, std::mem::take(&mut recovered.files));
        let view = Arc::new(HeadView::new(&recovered.tree));
        let Recovered { tree, finality, recovery, .. } = recovered;
        Ok((Self { tree, view, finality, log, limits }, recovery))
    }

    /// The canonical chain as it is now; it never changes under its holder.
    #[must_use]
    pub fn view(&self) -> Arc<HeadView> {
        Arc::clone(&self.view)
    }

    /// Number and hash of the block that the head stands on. `None` if it never had a block, or if
    /// its first one is genesis.
    #[must_use]
    pub fn base(&self) -> Option<(BlockNumber, B256)> {
        self.view.base()
    }

    /// What is safe and final, as it was last recorded.
    #[must_use]
    pub fn finality(&self) -> Finality {
        self.finality
    }

    /// Makes durable what is safe and final. A final block never gives way to a lower one or to another
    /// of its number: only `lower_finality_with` takes it back.
    pub fn set_finality(&mut self, told: Finality) -> Result<(), HeadError> {
        let next = self.finality.advanced_by(told);
        if self.log.is_settled_with(next) {
            return Ok(());
        }
        self.log.add(&self.tree, &[], next)?;
        self.finality = next;
        Ok(())
    }

    /// Makes a change and, in the same batch, lets no block above this one be final any more.
    pub fn lower_finality_with(
        &mut self,
        to: BlockId,
        change: impl FnOnce(&mut Self) -> Result<(), HeadError>,
    ) -> Result<(), HeadError> {
        let before = self.finality;
        self.finality = before.lowered_to(to);
        let changed = change(self);
        if changed.is_err() {
            self.finality = before;
        }
        changed
    }

    /// Whether the head holds this block, canonical or not.
    #[must_use]
    pub fn known(&self, hash: &B256) -> bool {
        self.tree.find(hash).is_some()
    }

    /// Memory of all blocks, those of side branches included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// How much more memory the blocks may take.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        self.limits.bytes_max.saturating_sub(self.bytes())
    }

    /// Holds the log against what this process wrote. If somebody cut, replaced or removed it, the whole
    /// head is written to a new one, and what was found is told.
    pub fn keep_log(&mut self) -> Result<Option<HeadError>, HeadError> {
        let changed = match self.log.check() {
            Ok(()) => None,
            Err(changed @ HeadError::LogChanged { .. }) => Some(changed),
            Err(error) => return Err(error),
        };
        // Also what could not be written before.
        self.extend(Vec::new())?;
        Ok(changed)
    }

    /// Adds blocks above the tip. The first block of a head that never had one may be any.
    pub fn extend(&mut self, blocks: Vec<Verified<Block>>) -> Result<(), HeadError> {
        let fork_point = self.tree.tip_hash();
        self.branch_off(fork_point, blocks)
    }

    /// Drops what is above the canonical block `to`, or above the block that the head stands on.
    pub fn rewind(&mut self, to: B256) -> Result<(), HeadError> {
        self.branch_off(Some(to), Vec::new())
    }

    /// Drops what is above the canonical block `fork_point` and adds `blocks` in its place.
    pub fn reorg(
        &mut self,
        fork_point: B256,
        blocks: Vec<Verified<Block>>,
    ) -> Result<(), HeadError> {
        self.branch_off(Some(fork_point), blocks)
    }

    /// Makes the branch canonical that ends with `tip`, all of whose blocks the head holds already.
    pub fn switch_to(&mut self, tip: B256) -> Result<(), HeadError> {
        let next = self.tree.switched_to(tip)?;
        self.change(next, &[])
    }

    /// Adds blocks, each the child of one that the head holds, canonical or not. `tip` becomes
    /// canonical in the same change; without one the blocks are a side branch. If the canonical chain
    /// and that branch are too large together, the branch becomes canonical at once, unless it is
    /// shorter: then it has no room.
    pub fn adopt(
        &mut self,
        blocks: Vec<Verified<Block>>,
        tip: Option<B256>,
    ) -> Result<(), HeadError> {
        let blocks: Vec<_> =
            blocks.into_iter().map(|block| Arc::new(HeadBlock::new(block))).collect();
        let last = blocks.last().map(|block| (block.number(), block.hash()));
        let (mut next, added) = self.tree.adopted(blocks, tip)?;
        if let Some((number, last)) = last.filter(|_| tip.is_none() && self.is_too_large(&next)) {
            next.drop_side_branches(Some(last));
            let bytes = next.bytes();
            if bytes > self.limits.bytes_max {
                // The beginning of a branch is no chain that any node has.
                if self.view.tip().is_some_and(|tip| tip.number() > number) {
                    return Err(HeadError::Full { bytes, bytes_max: self.limits.bytes_max });
                }
                next = next.switched_to(last)?;
            }
        }
        self.change(next, &added)
    }

    fn is_too_large(&self, tree: &Tree) -> bool {
        tree.bytes() > self.limits.bytes_max
    }

    /// The blocks up to and including this canonical one are in segments now and leave the head, and
    /// so do side branches that do not descend from it. A block above the tip may be named too: the
    /// head is then empty and stands on it.
    pub fn seal_below(&mut self, number: BlockNumber, hash: B256) -> Result<(), HeadError> {
        match self.tree.sealed_below(number, hash)? {
            Some(next) => self.change(next, &[]),
            None => Ok(()),
        }
    }

    /// A block that the head holds, canonical or not.
    #[must_use]
    pub fn find(&self, hash: &B256) -> Option<&HeadBlock> {
        self.tree.find(hash).map(|block| &**block)
    }

    /// The number of the lowest block, or of the first that may come. `None` if any may.
    pub(crate) fn next_of_base(&self) -> Option<BlockNumber> {
        self.tree.base().map(|base| base.next)
    }

    /// Drops every block; the first of the next ones is the child of this block.
    pub fn stand_on(&mut self, number: BlockNumber, hash: B256) -> Result<(), HeadError> {
        let base = Base { next: number.saturating_add(1), parent_hash: hash };
        self.change(Tree::on(base), &[])
    }

    fn branch_off(
        &mut self,
        fork_point: Option<B256>,
        blocks: Vec<Verified<Block>>,
    ) -> Result<(), HeadError> {
        let blocks = blocks.into_iter().map(|block| Arc::new(HeadBlock::new(block))).collect();
        let (next, added) = self.tree.branched_off(fork_point, blocks)?;
        self.change(next, &added)
    }

    /// What is final has no other block in its place, also where the head lost it to damage.
    fn check_final(&self, next: &Tree) -> Result<(), HeadError> {
        let Some(BlockId { number, hash: expected }) = self.finality.finalized else {
            return Ok(());
        };
        match next.canonical_hash(number) {
            Some(found) if found != expected => Err(HeadError::Final { number, found, expected }),
            Some(_) | None => Ok(()),
        }
    }

    /// Makes `next` durable, then visible. `added` are the blocks that the log does not hold yet.
    fn change(&mut self, mut next: Tree, added: &[Arc<HeadBlock>]) -> Result<(), HeadError> {
        self.check_final(&next)?;
        // While the log may hold a change that failed, even staying is to be made durable.
        let is_settled = self.log.is_settled_with(self.finality);
        if next.is_same_as(&self.tree) && added.is_empty() && is_settled {
            return Ok(());
        }
        let bytes_max = self.limits.bytes_max;
        if !added.is_empty() && next.bytes() > bytes_max {
            next.drop_side_branches(None);
            let bytes = next.bytes();
            if bytes > bytes_max {
                return Err(HeadError::Full { bytes, bytes_max });
            }
        }
        // The log cannot lose blocks or stand elsewhere: that takes a new one.
        let is_addition = next.base() == self.tree.base()
            && next.block_count()
                == self.tree.block_count().saturating_add(
                    added.iter().filter(|block| self.tree.find(&block.hash()).is_none()).count(),
                );
        if is_addition {
            self.log.add(&next, added, self.finality)?; // 1. durable, or an error and nothing has changed
        } else {
            self.log.replace(&next, self.finality)?;
        }
        self.tree = next; //                    2. what the next change builds upon
        self.view = Arc::new(HeadView::new(&self.tree)); // 3. readers may see it
        Ok(())
    }
}
