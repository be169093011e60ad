//! Makes bundles with alloy's tries, headers and receipts: nothing of the crate under test.

use alloy_consensus::{Eip658Value, Header, Receipt, ReceiptWithBloom, RlpEncodableReceipt as _};
use alloy_primitives::{Address, B256, Bloom, Bytes, Log, LogData, U256, hex, keccak256};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles};
use proof::{ProofBundle, ProofRefusal, ProofVerdict};
use sha2::{Digest as _, Sha256};

/// Numbers without pattern, the same each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// A trie over positions, as alloy builds it; and the nodes on the way to one of them, root first.
pub(crate) fn trie(values: &[Vec<u8>], wanted: Option<usize>) -> (B256, Vec<Vec<u8>>) {
    if values.is_empty() {
        return (EMPTY_ROOT_HASH, Vec::new());
    }
    let key = |index: usize| Nibbles::unpack(alloy_rlp::encode(index));
    let target: Vec<Nibbles> = wanted.map(key).into_iter().collect();
    let mut builder =
        HashBuilder::default().with_proof_retainer(ProofRetainer::new(target.clone()));
    let mut leaves: Vec<(Nibbles, &Vec<u8>)> =
        values.iter().enumerate().map(|(index, value)| (key(index), value)).collect();
    leaves.sort();
    for (key, value) in leaves {
        builder.add_leaf(key, value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes();
    let path = target.first().map(|target| nodes.matching_nodes_sorted(target)).unwrap_or_default();
    // What stands inside its parent is no node of its own: so do go-ethereum and EIP-1186.
    let path = path.into_iter().map(|(_, node)| node.to_vec()).enumerate();
    let path = path.filter(|(depth, node)| *depth == 0 || node.len() >= 32);
    (root, path.map(|(_, node)| node).collect())
}

/// A block to prove something of.
#[derive(Clone)]
pub(crate) struct TestBlock {
    pub(crate) header: Header,
    pub(crate) transactions: Vec<Vec<u8>>,
    pub(crate) receipts: Vec<Vec<u8>>,
    pub(crate) logs: Vec<Vec<Log>>,
    pub(crate) withdrawals: Option<Vec<Vec<u8>>>,
}

/// Of few different addresses and topics, so that filters find some.
pub(crate) fn address(byte: u64) -> Address {
    Address::repeat_byte(u8::try_from(byte).unwrap())
}

pub(crate) fn topic(byte: u64) -> B256 {
    B256::repeat_byte(u8::try_from(byte).unwrap())
}

fn random_log(random: &mut Random) -> Log {
    let topics = (0..random.below(5)).map(|_| topic(random.below(6))).collect();
    let count = random.below(70);
    let data = Bytes::from(random.bytes(count));
    Log { address: address(random.below(6)), data: LogData::new_unchecked(topics, data) }
}

/// The consensus bytes of a receipt, typed or not.
pub(crate) fn receipt_bytes(tx_type: u8, gas: u64, logs: &[Log]) -> (Vec<u8>, Bloom) {
    let status = if gas.is_multiple_of(7) {
        Eip658Value::PostState(B256::repeat_byte(7))
    } else {
        Eip658Value::Eip658(gas.is_multiple_of(2))
    };
    let receipt = Receipt { status, cumulative_gas_used: gas, logs: logs.to_vec() };
    let with_bloom: ReceiptWithBloom<Receipt> = receipt.into();
    let mut bytes = if tx_type == 0 { Vec::new() } else { vec![tx_type] };
    with_bloom.receipt.rlp_encode_with_bloom(&with_bloom.logs_bloom, &mut bytes);
    (bytes, with_bloom.logs_bloom)
}

impl TestBlock {
    /// A block with so many transactions, some of them so short that the trie's nodes stand inside of
    /// each other.
    pub(crate) fn random(number: u64, parent: B256, count: u64, random: &mut Random) -> Self {
        let transactions: Vec<Vec<u8>> = (0..count)
            .map(|index| {
                let longest = if random.below(3) == 0 { 300 } else { 30 };
                let size = random.below(longest);
                let bytes = random.bytes(size);
                if index.is_multiple_of(3) {
                    return alloy_rlp::encode(vec![Bytes::from(bytes)]);
                }
                [&[u8::try_from(random.below(4)).unwrap() + 1], bytes.as_slice()].concat()
            })
            .collect();
        let logs: Vec<Vec<Log>> = (0..count)
            .map(|_| {
                let count = random.below(4);
                (0..count).map(|_| random_log(random)).collect()
            })
            .collect();
        Self::of(number, parent, transactions, logs)
    }

    pub(crate) fn of(
        number: u64,
        parent_hash: B256,
        transactions: Vec<Vec<u8>>,
        logs: Vec<Vec<Log>>,
    ) -> Self {
        let mut logs_bloom = Bloom::ZERO;
        let mut receipts = Vec::new();
        for (index, logs) in (0..).zip(&logs) {
            let (receipt, bloom) =
                receipt_bytes(u8::try_from(index % 5).unwrap(), 21_000 + index, logs);
            logs_bloom |= bloom;
            receipts.push(receipt);
        }
        let withdrawals: Option<Vec<Vec<u8>>> = (number % 2 == 1)
            .then(|| (0..number % 5).map(|index| alloy_rlp::encode(vec![index, number])).collect());
        let header = Header {
            parent_hash,
            ommers_hash: keccak256([0xc0]),
            transactions_root: trie(&transactions, None).0,
            receipts_root: trie(&receipts, None).0,
            logs_bloom,
            number,
            gas_limit: 30_000_000,
            timestamp: 1_700_000_000 + number * 12,
            difficulty: U256::from(if withdrawals.is_some() { 0 } else { 17_179_869_184_u64 }),
            base_fee_per_gas: withdrawals.is_some().then_some(7),
            withdrawals_root: withdrawals.as_ref().map(|withdrawals| trie(withdrawals, None).0),
            ..Header::default()
        };
        Self { header, transactions, receipts, logs, withdrawals }
    }

    pub(crate) fn hash(&self) -> B256 {
        keccak256(alloy_rlp::encode(&self.header))
    }

    /// A transaction with its path; the members that a bundle has of it.
    pub(crate) fn transaction_member(&self, index: usize) -> String {
        member("transaction", index, &self.transactions)
    }

    pub(crate) fn receipt_member(&self, index: usize) -> String {
        member("receipt", index, &self.receipts)
    }

    pub(crate) fn header_member(&self) -> String {
        format!("\"header\":{}", quoted(&alloy_rlp::encode(&self.header)))
    }

    /// A proof of a transaction, with its receipt and the log at a position, if it has one.
    pub(crate) fn bundle(&self, index: usize, way: &str) -> String {
        let log = match self.logs[index].len() {
            0 => String::new(),
            count => {
                let position = index % count;
                format!(",\"log\":{{\"position\":{position},\"after\":{}}}", count - position - 1)
            }
        };
        let header = self.header_member();
        let (transaction, receipt) = (self.transaction_member(index), self.receipt_member(index));
        format!("{{\"version\":1,{header},{transaction},{receipt}{log},{way}}}")
    }

    /// A proof of all of the block.
    pub(crate) fn whole(&self, way: &str) -> String {
        let withdrawals = self.withdrawals.as_ref();
        let withdrawals = withdrawals.map(|list| format!(",\"withdrawals\":{}", quoted_list(list)));
        format!(
            "{{\"version\":1,{},\"transactions\":{},\"receipts\":{},\"ommers\":\"0xc0\"{},{way}}}",
            self.header_member(),
            quoted_list(&self.transactions),
            quoted_list(&self.receipts),
            withdrawals.unwrap_or_default(),
        )
    }
}

fn member(name: &str, index: usize, values: &[Vec<u8>]) -> String {
    let nodes = trie(values, Some(index)).1;
    let rlp = quoted(&values[index]);
    format!("\"{name}\":{{\"index\":{index},\"rlp\":{rlp},\"proof\":{}}}", quoted_list(&nodes))
}

pub(crate) fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", hex::encode_prefixed(bytes))
}

pub(crate) fn quoted_list<B: AsRef<[u8]>>(list: &[B]) -> String {
    let items: Vec<String> = list.iter().map(|bytes| quoted(bytes.as_ref())).collect();
    format!("[{}]", items.join(","))
}

/// A chain of blocks, each the parent of the next.
pub(crate) fn chain(first: u64, counts: &[u64], random: &mut Random) -> Vec<TestBlock> {
    let mut blocks: Vec<TestBlock> = Vec::new();
    for (number, count) in (first..).zip(counts) {
        let parent = blocks.last().map_or(B256::repeat_byte(9), TestBlock::hash);
        blocks.push(TestBlock::random(number, parent, *count, random));
    }
    blocks
}

/// The way from the block before `following` to the last of them, whose number and hash are given
/// in case there are none.
pub(crate) fn headers_way(block: &TestBlock, following: &[TestBlock]) -> String {
    let anchor = following.last().unwrap_or(block);
    let headers: Vec<Vec<u8>> =
        following.iter().map(|block| alloy_rlp::encode(&block.header)).collect();
    format!(
        "\"status\":\"linked\",\"anchor\":{{\"number\":{},\"hash\":\"{}\",\"by\":\"headers\",\"path\":{}}}",
        anchor.header.number,
        anchor.hash(),
        quoted_list(&headers)
    )
}

fn pair(left: B256, right: B256) -> B256 {
    B256::new(Sha256::digest([left.0, right.0].concat()).into())
}

/// All siblings of one leaf of a full tree, and its root.
fn branch(mut leaves: Vec<B256>, mut place: usize) -> (Vec<B256>, B256) {
    let mut siblings = Vec::new();
    while leaves.len() > 1 {
        siblings.push(leaves[place ^ 1]);
        leaves = leaves.chunks(2).map(|both| pair(both[0], both[1])).collect();
        place /= 2;
    }
    (siblings, leaves[0])
}

fn length(count: usize) -> B256 {
    B256::new(U256::from(count).to_le_bytes())
}

/// A way through an accumulator whose other records and epochs are made up; and its root.
pub(crate) fn accumulator_way(block: &TestBlock, random: &mut Random) -> (String, B256) {
    let number = usize::try_from(block.header.number).unwrap();
    let (epoch, place) = (number / 8192, number % 8192);
    let records = 8192.min(place + 9);
    let mut leaves: Vec<B256> = (0..records).map(|_| B256::from_slice(&random.bytes(32))).collect();
    let total_difficulty = B256::new(U256::from(number * 1_000_003).to_le_bytes());
    leaves[place] = pair(block.hash(), total_difficulty);
    leaves.resize(8192, B256::ZERO);
    let (lower, tree) = branch(leaves, place);
    let epochs = epoch + 2;
    let mut roots: Vec<B256> = (0..epochs).map(|_| B256::from_slice(&random.bytes(32))).collect();
    roots[epoch] = pair(tree, length(records));
    roots.resize(2048, B256::ZERO);
    let (upper, list) = branch(roots, epoch);
    let current = pair(branch(vec![B256::ZERO; 8192], 0).1, length(0));
    let root = pair(pair(list, length(epochs)), current);
    let siblings: Vec<B256> = [
        vec![total_difficulty],
        lower,
        vec![length(records)],
        upper,
        vec![length(epochs), current],
    ]
    .concat();
    let path = quoted_list(&siblings);
    let way = format!(
        "\"status\":\"anchored\",\"anchor\":{{\"hash\":\"{root}\",\"by\":\"accumulator\",\"path\":{path}}}"
    );
    (way, root)
}

/// A way through headers where one is enough.
pub(crate) fn short_way(block: &TestBlock) -> String {
    headers_way(block, &[])
}

/// Verifies a text, trusting what it leads to.
pub(crate) fn check(text: &str) -> Result<ProofVerdict, ProofRefusal> {
    proof::verify(&ProofBundle::parse(text.as_bytes())?, &[])
}

/// The text is refused at a step, with these words.
pub(crate) fn refused(text: &str, expected: &str) {
    let refusal = check(text).expect_err("refused").to_string();
    assert!(refusal.contains(expected), "{refusal}\ndoes not say: {expected}");
}

/// A filter over logs, and its members in a bundle.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestFilter {
    pub(crate) addresses: Vec<Address>,
    pub(crate) topics: Vec<Vec<B256>>,
}

impl TestFilter {
    pub(crate) fn members(&self, from: u64, to: u64) -> String {
        let topics: Vec<String> = self.topics.iter().map(|any| quoted_list(any)).collect();
        let filter = format!(
            "{{\"fromBlock\":{from},\"toBlock\":{to},\"address\":{},\"topics\":[{}]}}",
            quoted_list(&self.addresses),
            topics.join(",")
        );
        let hash = keccak256(&filter);
        format!("\"filter\":{filter},\"filterHash\":\"{hash}\"")
    }

    /// Word for word what nodes say of filters.
    pub(crate) fn matches(&self, log: &Log) -> bool {
        let topics = log.topics();
        (self.addresses.is_empty() || self.addresses.contains(&log.address))
            && self.topics.len() <= topics.len()
            && self.topics.iter().zip(topics).all(|(any, it)| any.is_empty() || any.contains(it))
    }

    /// Whether the bloom says that no log matches, in alloy's words.
    pub(crate) fn is_excluded_by(&self, bloom: &Bloom) -> bool {
        let has = |item: &[u8]| bloom.contains_input(alloy_primitives::BloomInput::Raw(item));
        bloom.is_zero()
            || (!self.addresses.is_empty() && !self.addresses.iter().any(|it| has(it.as_slice())))
            || self.topics.iter().any(|any| !any.is_empty() && !any.iter().any(|it| has(&it.0)))
    }

    /// A list of all matching logs of a chain; receipts only where they are needed.
    pub(crate) fn bundle(&self, blocks: &[TestBlock]) -> String {
        let entries: Vec<String> = blocks
            .iter()
            .map(|block| {
                let receipts = (!self.is_excluded_by(&block.header.logs_bloom))
                    .then(|| format!(",\"receipts\":{}", quoted_list(&block.receipts)));
                format!("{{{}{}}}", block.header_member(), receipts.unwrap_or_default())
            })
            .collect();
        let (first, last) = (blocks.first().unwrap(), blocks.last().unwrap());
        format!(
            "{{\"version\":1,{},\"blocks\":[{}],{}}}",
            self.members(first.header.number, last.header.number),
            entries.join(","),
            short_way(last)
        )
    }
}
