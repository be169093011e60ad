//! The questions: what is asked by name, with which bodies, and what was promised of it.

use anyhow::{Context as _, Result};
use bench_store::figure::Goal;
use bench_store::random::Random;

use crate::call::{batch, block_by_number, logs_of, logs_to, receipt, transaction_by_hash};
use crate::chain_keys::{ChainKeys, usual};
use crate::contest::Driver;

/// Bodies of a question that is asked at random. Each is picked from all there is.
const PICKS: usize = 100_000;
/// Answers of which the one of the middle length is hot.
const LOOKED_AT: usize = 101;
/// Long bodies of a question that is asked at random.
const LONG_PICKS: usize = 200;
/// Transactions of the blocks that are asked for in full.
const BLOCK_TRANSACTIONS: usize = 200;
/// Blocks whose logs are asked for together.
const LOGS_BLOCKS: usize = 10;
/// Connections of a question that does not say otherwise.
pub const CONNECTIONS: u32 = 32;
/// Requests in a second where the time of each is what counts.
pub const FIXED_RATE: u32 = 10_000;

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    /// For `--only` and for programs.
    pub name: &'static str,
    /// For people.
    pub words: &'static str,
    /// What may be sent; one body only if it is hot.
    pub bodies: Vec<String>,
    /// Headers beside the type of the content.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Connections at a time.
    pub connections: u32,
    /// Who sends it.
    pub driver: Driver,
    /// Whether answers that were kept are no answer to it.
    pub is_uncached: bool,
    /// What was promised of Quipu's share of nginx: of the requests in a second, or where the rate is
    /// fixed of the 99th of a hundred waits.
    pub goal: Option<Goal>,
}

impl Question {
    fn new(name: &'static str, words: &'static str, bodies: Vec<String>) -> Self {
        Self {
            name,
            words,
            bodies,
            headers: Vec::new(),
            connections: CONNECTIONS,
            driver: Driver::Wrk,
            is_uncached: false,
            goal: None,
        }
    }

    fn promised(mut self, must: f64, target: f64) -> Self {
        self.goal = Goal::at_least(must, target);
        self
    }

    /// Blocks are few enough to be asked for again and again: they would come to be kept.
    fn uncached(mut self) -> Self {
        self.is_uncached = true;
        self
    }

    fn at_fixed_rate(mut self) -> Self {
        self.driver = Driver::Oha(FIXED_RATE);
        self.goal = Goal::at_most(1.5, 1.1);
        self
    }

    fn encoded(mut self, encoding: &'static str) -> Self {
        self.headers.push(("Accept-Encoding", encoding));
        self
    }

    /// How its answers are encoded.
    #[must_use]
    pub fn encoding(&self) -> Option<&'static str> {
        let header = self.headers.iter().find(|(name, _)| *name == "Accept-Encoding");
        header.map(|(_, value)| *value)
    }
}

/// All questions that nginx is asked too, in the table's order. The server at `address` tells which
/// answers are of a usual length.
pub fn all(keys: &ChainKeys, address: &str) -> Result<Vec<Question>> {
    let bodies = Bodies::new(keys, address)?;
    let hot_transaction = || vec![bodies.hot_transaction.clone()];
    let hot_block = || vec![bodies.hot_block.clone()];
    Ok(vec![
        Question::new("hot-transaction", "hot transaction by hash", hot_transaction())
            .promised(0.75, 1.0),
        Question::new(
            "random-transaction",
            "random transaction by hash",
            bodies.random_transactions.clone(),
        )
        .promised(0.6, 0.8),
        Question::new("random-receipt", "random receipt", bodies.random_receipts.clone())
            .promised(0.6, 0.8),
        Question::new("hot-block", "hot full block", hot_block()).promised(0.7, 0.9),
        Question::new("random-block", "random full block", bodies.random_blocks(true))
            .uncached()
            .promised(0.12, 0.3),
        Question::new(
            "hot-block-hashes",
            "hot block with hashes",
            vec![bodies.hot_block_hashes.clone()],
        )
        .promised(0.7, 0.9),
        Question::new(
            "random-block-hashes",
            "random block with hashes",
            bodies.random_blocks(false),
        )
        .uncached()
        .promised(0.1, 0.25),
        Question::new("latest", "latest block with hashes", vec![block_by_number("latest", false)]),
        Question::new("receipts-batch", "100 receipts of a block in a batch", bodies.receipts()),
        Question {
            // A batch takes tens of milliseconds: more of them would only wait for each other.
            connections: 4,
            ..Question::new("mixed-batch", "1000 mixed calls in a batch", bodies.mixed())
        },
        Question::new("not-found", "a hash that is not there", bodies.not_found()),
        Question {
            connections: 10_000,
            ..Question::new(
                "connections",
                "hot transaction on 10,000 connections",
                hot_transaction(),
            )
        },
        Question {
            driver: Driver::H2load,
            ..Question::new("http2", "hot transaction over HTTP/2", hot_transaction())
        },
        Question::new("gzip", "hot full block, gzip", hot_block()).encoded("gzip"),
        Question::new("zstd", "hot full block, zstd", hot_block()).encoded("zstd"),
        Question::new("latency-hot", "p99 of a hot transaction at 10,000/s", hot_transaction())
            .at_fixed_rate(),
        Question::new(
            "latency-random",
            "p99 of random transactions at 10,000/s",
            bodies.random_transactions.clone(),
        )
        .at_fixed_rate(),
    ])
}

/// Hot answers from the shortest to the longest.
pub fn of_sizes(keys: &ChainKeys, address: &str) -> Result<Vec<Question>> {
    let bodies = Bodies::new(keys, address)?;
    let by_count = |count: usize| {
        let near = keys.blocks_of_about(count);
        near.get(near.len() / 2).map(|block| block_by_number(&block.number, true))
    };
    let hot = |name, words, body: Option<String>| Some(Question::new(name, words, vec![body?]));
    let receipt = bodies.hot_transaction.replace("TransactionByHash", "TransactionReceipt");
    let questions = [
        hot("size-transaction", "transaction", Some(bodies.hot_transaction)),
        hot("size-receipt", "receipt", Some(receipt)),
        hot("size-hashes", "block with hashes", Some(bodies.hot_block_hashes)),
        hot("size-block-100", "full block of about 100 transactions", by_count(100)),
        hot("size-block-200", "full block of about 200 transactions", Some(bodies.hot_block)),
        hot("size-block-300", "full block of about 300 transactions", by_count(300)),
    ];
    Ok(questions.into_iter().flatten().collect())
}

/// Of those the ones that nodes are asked too, with what was promised of Quipu's share of theirs.
#[must_use]
pub fn of_nodes(questions: Vec<Question>) -> Vec<Question> {
    let promised = |question: Question| match question.name {
        "random-transaction" | "random-receipt" => Some(question.promised(1.5, 2.0)),
        "random-block" => Some(question.promised(6.0, 10.0)),
        "receipts-batch" => Some(question.promised(3.0, 10.0)),
        _ => None,
    };
    questions.into_iter().filter_map(promised).collect()
}

/// What only nodes are asked too: logs of a chain that they made.
#[must_use]
pub fn of_logs(recipients: &[String], keys: &ChainKeys) -> Vec<Question> {
    let near = keys.blocks_of_about(BLOCK_TRANSACTIONS);
    let pairs =
        near.chunks(LOGS_BLOCKS).filter_map(|blocks| Some((blocks.first()?, blocks.last()?)));
    vec![
        Question::new(
            "sparse-logs",
            "ten logs of all blocks by a topic",
            recipients.iter().map(|it| logs_to(it)).collect(),
        ),
        Question::new(
            "dense-logs",
            "all logs of ten blocks",
            pairs.map(|(first, last)| logs_of(&first.number, &last.number)).collect(),
        ),
    ]
}

/// What is sent, made of what there is.
struct Bodies<'a> {
    keys: &'a ChainKeys,
    hot_transaction: String,
    hot_block: String,
    hot_block_hashes: String,
    random_transactions: Vec<String>,
    random_receipts: Vec<String>,
}

impl<'a> Bodies<'a> {
    fn new(keys: &'a ChainKeys, address: &str) -> Result<Self> {
        let near = keys.blocks_of_about(BLOCK_TRANSACTIONS);
        let full: Vec<String> = Random::default()
            .pick(&near, LOOKED_AT)
            .iter()
            .map(|block| block_by_number(&block.number, true))
            .collect();
        let hot_block = usual(address, &full)?.context("no block is there")?.clone();
        let picks = keys.pick(&mut Random::default(), PICKS);
        let random_transactions: Vec<String> =
            picks.iter().map(|hash| transaction_by_hash(hash)).collect();
        let hot_transaction = usual(address, random_transactions.iter().take(LOOKED_AT))?;
        Ok(Self {
            keys,
            hot_transaction: hot_transaction.context("no transaction is there")?.clone(),
            hot_block_hashes: hot_block.replace(",true]", ",false]"),
            hot_block,
            random_receipts: picks.iter().map(|hash| receipt(hash)).collect(),
            random_transactions,
        })
    }

    /// Every block of about the right size.
    fn random_blocks(&self, is_full: bool) -> Vec<String> {
        let near = self.keys.blocks_of_about(BLOCK_TRANSACTIONS);
        near.iter().map(|block| block_by_number(&block.number, is_full)).collect()
    }

    fn receipts(&self) -> Vec<String> {
        let near = self.keys.blocks_of_about(BLOCK_TRANSACTIONS);
        let picks = Random::default().pick(&near, LONG_PICKS);
        let first = |hashes: &'a [String]| hashes.iter().take(100).map(|hash| receipt(hash));
        picks.iter().map(|block| batch(&first(&block.transactions).collect::<Vec<_>>())).collect()
    }

    /// Half of the calls ask for transactions; of the others four in five for receipts, one for what
    /// is not there, and one in fifty for a block with hashes.
    fn mixed(&self) -> Vec<String> {
        let mut random = Random::default();
        let near = self.keys.blocks_of_about(BLOCK_TRANSACTIONS);
        let one = |random: &mut Random| {
            let hashes = self.keys.pick(random, 890);
            let (transactions, receipts) = hashes.split_at(hashes.len().min(500));
            let mut calls: Vec<String> =
                transactions.iter().map(|hash| transaction_by_hash(hash)).collect();
            calls.extend(receipts.iter().map(|hash| receipt(hash)));
            let blocks = random.pick(&near, 10);
            calls.extend(blocks.iter().map(|block| block_by_number(&block.number, false)));
            calls.extend((0..100).map(|_| transaction_by_hash(&made_up(random))));
            batch(&calls)
        };
        // Ten of them are a megabyte, and ten thousand different calls.
        (0..10).map(|_| one(&mut random)).collect()
    }

    fn not_found(&self) -> Vec<String> {
        let mut random = Random::default();
        let count = PICKS.min(self.keys.transaction_count());
        (0..count).map(|_| transaction_by_hash(&made_up(&mut random))).collect()
    }
}

/// A hash of nothing.
fn made_up(random: &mut Random) -> String {
    let parts: Vec<String> = (0..8).map(|_| format!("{:08x}", random.below(1 << 32))).collect();
    format!("0x{}", parts.concat())
}
