//! A store that changes while it is served: small true blocks, and the writer that adds them.

use std::sync::Arc;

use alloy_consensus::proofs::ordered_trie_root_encoded;
use alloy_consensus::{
    Eip658Value, EthereumTxEnvelope, Header, Receipt as Fields, SignableTransaction as _,
    TxEip4844, TxLegacy, TxType,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Bloom, Bytes, Log, LogData, TxKind};
use chain::trust::Anchors;
use chain::{Block, Body, Candidate, ChainSpec, Receipt, Start, Verified, Verifier, logs_bloom};
use rpc::{Service, ServiceSettings};
use store::disk::Disk;
use store::head::HeadLimits;
use store::read::Inline;
use store::{Limits, Store, Writer};
use testing::disk::faulty::FaultyDisk;

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

/// The contracts that log, in turn.
pub(crate) const LOGGING: [Address; 2] = [Address::repeat_byte(0xa0), Address::repeat_byte(0xa1)];

/// A block whose number says how many transactions it has, none to two, each with two logs.
fn logged_block(number: u64, parent_hash: B256, mark: u64, has_receipts: bool) -> Verified<Block> {
    let log = |index: u64| Log {
        address: LOGGING[usize::try_from((number + index) % 2).unwrap()],
        data: LogData::new_unchecked(
            vec![B256::with_last_byte(u8::try_from(number % 4).unwrap())],
            mark.to_be_bytes().into(),
        ),
    };
    let (mut transactions, mut receipts) = (Vec::new(), Vec::new());
    for index in 0..number % 3 {
        let (nonce, to) = (mark * 10 + index, TxKind::Call(LOGGING[0]));
        let tx = TxLegacy { nonce, gas_limit: 21_000, to, ..TxLegacy::default() };
        let signature = chain::sign(B256::repeat_byte(7), tx.signature_hash()).unwrap();
        let tx: EthereumTxEnvelope<TxEip4844> = tx.into_signed(signature).into();
        transactions.push(Bytes::from(tx.encoded_2718()));
        let (status, cumulative_gas_used) = (Eip658Value::Eip658(true), 21_000 * (index + 1));
        let fields = Fields { status, cumulative_gas_used, logs: vec![log(0), log(1)] };
        receipts.push(Receipt { tx_type: TxType::Legacy, fields });
    }
    let (mut encoded, mut bloom) = (Vec::new(), Bloom::ZERO);
    for receipt in &receipts {
        let own = logs_bloom(&receipt.fields.logs);
        bloom.accrue_bloom(&own);
        let mut out = Vec::new();
        receipt.encode_2718(&own, &mut out);
        encoded.push(out);
    }
    let header = Header {
        number,
        parent_hash,
        extra_data: mark.to_be_bytes().into(),
        transactions_root: ordered_trie_root_encoded(&transactions),
        receipts_root: ordered_trie_root_encoded(&encoded),
        logs_bloom: bloom,
        gas_used: 21_000 * (number % 3),
        ..Header::default()
    };
    let candidate = Candidate {
        header: alloy_rlp::encode(&header).into(),
        body: Body { transactions, ommers: Bytes::from_static(&[0xc0]), withdrawals: None },
        receipts: has_receipts.then_some(receipts),
        total_difficulty: None,
    };
    Verifier::new(&spec(), &Anchors::none(), Start::At(number)).verify(candidate).unwrap()
}

/// So many blocks, the first above `parent`.
pub(crate) fn branch(parent: (u64, B256), count: u64, mark: u64) -> Vec<Verified<Block>> {
    chained(parent, count, |number, hash| block(number, hash, mark))
}

/// The same with logs.
pub(crate) fn logged_branch(parent: (u64, B256), count: u64, mark: u64) -> Vec<Verified<Block>> {
    chained(parent, count, |number, hash| logged_block(number, hash, mark, true))
}

/// The same as somebody has it who has no receipts.
pub(crate) fn unlogged_branch(parent: (u64, B256), count: u64, mark: u64) -> Vec<Verified<Block>> {
    chained(parent, count, |number, hash| logged_block(number, hash, mark, false))
}

fn chained(
    parent: (u64, B256),
    count: u64,
    make: impl Fn(u64, B256) -> Verified<Block>,
) -> Vec<Verified<Block>> {
    let mut hash = parent.1;
    let mut blocks = Vec::new();
    for number in (parent.0 + 1..).take(usize::try_from(count).unwrap()) {
        blocks.push(make(number, hash));
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
