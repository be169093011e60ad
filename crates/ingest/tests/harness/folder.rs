//! A data folder for tests, and what is in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::keccak256;
use chain::trust::Anchors;
use chain::{Block, BlockNumber, ChainSpec, Verified};
use ingest::import::{ImportError, ImportSettings, Importer, Outcome};
use ingest::prove::NoProgress;
use store::disk::Folder;
use store::read::{Inline, block_on};
use store::{GasAndLogsBefore, Limits, Reader, RowParts, Store, TxIndex, View, Writer};
use tempfile::TempDir;

use crate::harness::made::threads;

/// How the tests import unless they say otherwise.
pub(crate) fn settings() -> ImportSettings {
    ImportSettings {
        is_unanchored_allowed: false,
        is_without_receipts_allowed: false,
        is_without_log_index: false,
        blocks: None,
        threads: threads(2),
    }
}

/// A data folder of its own.
pub(crate) struct DataFolder {
    pub(crate) folder: TempDir,
    pub(crate) spec: ChainSpec,
    pub(crate) anchors: Anchors,
}

impl DataFolder {
    pub(crate) fn new(spec: &ChainSpec) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, spec: spec.clone(), anchors: Anchors::of(spec) }
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        let disk = Arc::new(Folder::open(self.folder.path()).unwrap());
        Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap())
    }

    pub(crate) fn import(
        &self,
        file: &Path,
        settings: ImportSettings,
    ) -> Result<Outcome, ImportError> {
        let store = self.store();
        store.read_head(self.spec.clone()).unwrap();
        let mut writer = Writer::open(store, self.spec.clone()).unwrap();
        let (spec, anchors, progress) = (&self.spec, &self.anchors, &NoProgress);
        Importer { writer: &mut writer, spec, anchors, settings, progress }.import_file(file)
    }

    pub(crate) fn import_all(&self, files: &[PathBuf], settings: ImportSettings) {
        for file in files {
            self.import(file, settings).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Every file but the lock, by name.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap());
        let files = entries.map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        });
        files.filter(|(name, _)| name != "lock").collect()
    }

    /// Whether all of these blocks come back by number, by hash and by position.
    pub(crate) fn check_holds(&self, blocks: &[Verified<Block>]) {
        check_view(&self.store().view(), blocks);
    }
}

/// Whether a view shows all of these blocks.
pub(crate) fn check_view(view: &View, blocks: &[Verified<Block>]) {
    let mut reader = Reader::new().unwrap();
    for block in blocks {
        check_block(view, &mut reader, block);
    }
}

fn check_block(view: &View, reader: &mut Reader, block: &Block) {
    let number = block.header.number;
    let candidate = block_on(view.read_candidate(reader, BlockNumber(number))).unwrap().unwrap();
    assert!(candidate == block.to_candidate(), "block {number}");
    assert_eq!(block_on(view.find_block(reader, block.hash)).unwrap(), Some(BlockNumber(number)));
    assert_eq!(block_on(view.read_hash(reader, BlockNumber(number))).unwrap(), Some(block.hash));
    let header = block_on(view.read_header(reader, BlockNumber(number))).unwrap().unwrap();
    assert_eq!((header.hash, &header.rlp), (block.hash, &block.header_rlp));
    assert_eq!(header.block_bytes, block.rlp_bytes());
    let (mut gas_before, mut logs_before) = (0, 0);
    for (index, transaction) in (0..).zip(&block.transactions) {
        let at = (BlockNumber(number), TxIndex(index));
        let read = block_on(view.read_transaction(reader, at.0, at.1, RowParts::Receipt))
            .unwrap()
            .unwrap();
        let row = read.row.view();
        assert_eq!(*row.encoded, *transaction.encoded, "block {number}, transaction {index}");
        assert_eq!(row.sender, transaction.sender);
        assert_eq!((read.block.number, read.index), at);
        assert_eq!(read.block.hash, block.hash);
        assert_eq!(read.block.timestamp, block.header.timestamp);
        assert_eq!(read.block.base_fee, block.header.base_fee_per_gas);
        assert_eq!(read.block.excess_blob_gas, block.header.excess_blob_gas);
        let hash = keccak256(&transaction.encoded);
        let found = block_on(view.find_transaction(reader, hash, RowParts::Receipt)).unwrap();
        assert!(found.as_ref() == Some(&read), "block {number}, transaction {index}");
        if let Some(receipts) = &block.receipts {
            assert_eq!(read.before, Some(GasAndLogsBefore { gas: gas_before, logs: logs_before }));
            let fields = &receipts[index as usize].fields;
            assert!(row.receipt.unwrap().to_fields(gas_before) == *fields);
            gas_before = fields.cumulative_gas_used;
            logs_before += fields.logs.len() as u64;
        }
    }
    let past = TxIndex::from_usize(block.transactions.len());
    assert_eq!(
        block_on(view.read_transaction(reader, BlockNumber(number), past, RowParts::Receipt))
            .unwrap(),
        None
    );
}
