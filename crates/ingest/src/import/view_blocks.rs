//! What a view holds, as a source of blocks: of the folder itself, or of what others published.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use chain::{BlockNumber, BlockRange, Candidate, Fault, Mismatch, RuleFault};
use store::layout::overlap;
use store::read::block_on;
use store::{Reader, StoreError, View};
use tokio::sync::watch;

use super::ImportError;
use super::gathered::{AccountableBlocks, Link};
use crate::prove::Blocks;
use crate::stop::is_stopped;

/// The blocks of a view.
pub(super) struct ViewBlocks {
    view: Arc<View>,
    /// Those that are asked for.
    part: BlockRange,
    /// Who published them; `None` for the folder's own.
    publisher: Option<Arc<str>>,
    stop: Option<watch::Receiver<bool>>,
    /// What a block takes on average.
    bytes_each: u64,
}

impl ViewBlocks {
    /// Those of `part`, until `stop` is raised.
    pub(super) fn new(
        view: Arc<View>,
        part: BlockRange,
        publisher: Option<Arc<str>>,
        stop: Option<watch::Receiver<bool>>,
    ) -> Self {
        let concerned = view.segments().filter(|entry| overlap(entry.range, part).is_some());
        let (bytes, count) = concerned.fold((0_u64, 0_u64), |(bytes, count), entry| {
            (bytes.saturating_add(entry.bytes), count.saturating_add(entry.range.count()))
        });
        let bytes_each = bytes / count.max(1);
        Self { view, part, publisher, stop, bytes_each }
    }

    fn fault(&self, cause: StoreError) -> ImportError {
        match &self.publisher {
            Some(publisher) if !matches!(cause, StoreError::Reader(_)) => {
                ImportError::Published { publisher: publisher.to_string(), cause: Box::new(cause) }
            }
            _ => cause.into(),
        }
    }

    /// What both say where a published block and one of the folder do not fit.
    fn contradiction(&self, Link { number, found, expected }: Link) -> Option<ImportError> {
        let (file, below) = (self.publisher.as_deref()?.to_owned(), number.checked_sub(1)?);
        let (published, held, by) = match (self.part.contains(below), self.part.contains(number)) {
            (false, true) => (found, expected, number),
            (true, false) => (expected, found, below),
            _ => return None,
        };
        let by = self.view.file_of(BlockNumber(by));
        let said =
            format!("hash of block {below} is {published} by {by}, {held} by the data folder");
        Some(ImportError::Contradiction { file, said })
    }

    fn false_block(&self, mismatch: Mismatch) -> ImportError {
        let file = self.view.file_of(BlockNumber(mismatch.number));
        self.fault(StoreError::Block { file, mismatch })
    }
}

impl Blocks for ViewBlocks {
    type Error = ImportError;

    fn read_block(&self, number: u64) -> Result<Candidate, ImportError> {
        if is_stopped(self.stop.as_ref()) {
            return Err(StoreError::Stopped.into());
        }
        let number = BlockNumber(number);
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.view.read_candidate(&mut reader, number));
        let held = held.map_err(|cause| self.fault(cause))?;
        held.ok_or_else(|| self.fault(StoreError::NotHeld { number }))
    }

    fn find_header(&self, number: u64) -> Result<Option<Bytes>, ImportError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.view.read_header(&mut reader, BlockNumber(number)));
        Ok(held.map_err(|cause| self.fault(cause))?.map(|header| header.rlp))
    }

    fn block_bytes(&self, _number: u64) -> u64 {
        self.bytes_each
    }

    fn refuse(&self, mismatch: Mismatch) -> ImportError {
        let number = mismatch.number;
        // The block before may be one of the folder.
        if let Fault::ParentHash { found, expected } = *mismatch.fault {
            return self.refuse_link(Link { number, found, expected });
        }
        self.false_block(mismatch)
    }
}

impl AccountableBlocks for ViewBlocks {
    fn refuse_link(&self, link: Link) -> ImportError {
        let Link { number, found, expected } = link;
        if let Some(contradiction) = self.contradiction(link) {
            return contradiction;
        }
        let fault = Box::new(Fault::ParentHash { found, expected });
        self.false_block(Mismatch { number, fault })
    }

    fn refuse_step(&self, number: u64, fault: RuleFault) -> ImportError {
        self.false_block(Mismatch { number, fault: Box::new(Fault::Rule(fault)) })
    }

    fn refuse_lost(&self, number: u64, found: B256, lost: B256) -> ImportError {
        let file = self.publisher.as_deref().unwrap_or("the data folder").to_owned();
        let said = format!(
            "hash of block {number} is {found} there, {lost} by the data folder, which held that \
             block and lost it"
        );
        ImportError::Contradiction { file, said }
    }
}
