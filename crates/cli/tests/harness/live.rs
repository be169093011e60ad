//! A store that changes while it is served: small true blocks, and the writer that adds them.
//!
//! Knows: how blocks without transactions are made, and how a head is opened over any disk.
//! Never knows: what is asked meanwhile.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes};
use chain::trust::Anchors;
use chain::{Block, Body, Candidate, ChainSpec, Start, Verified, Verifier};
use rpc::{Service, ServiceSettings};
use store::disk::Disk;
use store::disk::faulty::FaultyDisk;
use store::head::HeadLimits;
use store::read::Inline;
use store::{Limits, Store, Writer};

/// The number of the first block, whose parent nobody has.
pub(crate) const FIRST: u64 = 1000;

pub(crate) fn spec() -> ChainSpec {
    ChainSpec::bare("live", Some(7), None)
}

/// A block without transactions; another mark is another block.
pub(crate) fn block(number: u64, parent_hash: B256, mark: u64) -> Verified<Block> {
    let header =
        Header { number, parent_hash, extra_data: mark.to_be_bytes().into(), ..Header::default() };
    let candidate = Candidate {
        header: alloy_rlp::encode(&header).into(),
        body: Body { transactions: vec![], ommers: Bytes::from_static(&[0xc0]), withdrawals: None },
        receipts: Some(vec![]),
        total_difficulty: None,
    };
    Verifier::new(&spec(), &Anchors::none(), Start::At(number)).verify(candidate).unwrap()
}

/// So many blocks, the first above `parent`.
pub(crate) fn branch(parent: (u64, B256), count: u64, mark: u64) -> Vec<Verified<Block>> {
    let mut hash = parent.1;
    let mut blocks = Vec::new();
    for number in (parent.0 + 1..).take(usize::try_from(count).unwrap()) {
        blocks.push(block(number, hash, mark));
        hash = blocks[blocks.len() - 1].hash;
    }
    blocks
}

/// A store with its writer.
pub(crate) struct Live {
    pub(crate) store: Arc<Store>,
    pub(crate) writer: Writer,
}

impl Live {
    /// One on a disk of its own, with a head of so many blocks.
    pub(crate) fn with_blocks(count: u64) -> Self {
        let mut live = Self::on(Arc::new(FaultyDisk::new(1)), spec());
        live.writer.extend(branch((FIRST - 1, B256::repeat_byte(0xba)), count, 0)).unwrap();
        live
    }

    /// One over the files of a disk.
    pub(crate) fn on(disk: Arc<dyn Disk>, spec: ChainSpec) -> Self {
        let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
        let store = Arc::new(store);
        let mut writer = Writer::open(Arc::clone(&store), spec).unwrap();
        writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        Self { store, writer }
    }

    pub(crate) fn service(&self, settings: ServiceSettings) -> Service {
        Service::new(Arc::clone(&self.store), spec(), settings)
    }

    /// Number and hash of every block of the head.
    pub(crate) fn chain(&self) -> Vec<(u64, B256)> {
        let view = self.store.view();
        view.head().blocks().iter().map(|block| (block.number().get(), block.hash())).collect()
    }

    pub(crate) fn tip(&self) -> (u64, B256) {
        *self.chain().last().unwrap()
    }
}
