//! `quipu compare`: ask another endpoint the same questions, show the differences.

mod report;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use anyhow::{Context as _, anyhow, bail, ensure};
use chain::{BlockRange, ChainSpec};
use node::{AskLimits, Upstream};
use rpc::compare::{
    AnswerKind, CompareTally, ComparedCall, differences, questions_of_absent, questions_of_block,
    spread,
};
use rpc::{Service, ServiceSettings, UnknownHash};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::Failure;
use crate::args::compare::CompareArgs;
use crate::data_folder::DataFolder;
use crate::output::print_lines;
use crate::progress::Watch;
use crate::upstream_args::parse_node;

/// For an answer of our own.
const OWN_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let url = parse_node(&args.with).context("--with").map_err(Failure::Usage)?;
    let name = url.name().to_owned();
    if !url.is_http() {
        return Err(Failure::Usage(anyhow!("--with: {name} must be reached over http or https")));
    }
    let endpoint = Upstream::new(url, AskLimits::default()).context("--with");
    let endpoint = endpoint.map_err(Failure::Usage)?;
    let folder = DataFolder::open(&args.data)?;
    let coverage = folder.store.view().coverage().to_vec();
    let blocks = choose(&coverage, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let spec = folder.spec()?;
    let genesis_hash = spec.genesis_hash();
    let service = service(&folder, spec_by(&endpoint, spec, &runtime));
    let asking = Comparison {
        service,
        genesis_hash,
        receipts: folder.store.view().coverage_receipts().to_vec(),
        endpoint,
        name,
        txs_per_block: args.txs_per_block,
        seed: args.seed,
        prints_every: args.every,
        watch: Watch::blocks("comparing", u64::try_from(blocks.len()).unwrap_or(u64::MAX)),
        waiting: Mutex::new(blocks.into()),
        tally: Mutex::default(),
    };
    let asking = Arc::new(asking);
    let outcome = runtime.block_on(ask_all(&asking, args.concurrency.get()));
    let elapsed = asking.watch.finish();
    outcome?;
    let tally = asking.tally.lock().unwrap_or_else(PoisonError::into_inner);
    print_lines(&report::lines(&asking.name, &tally, elapsed))?;
    if tally.differences() == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// The blocks to ask about: of those that are held.
fn choose(coverage: &[BlockRange], args: &CompareArgs) -> anyhow::Result<Vec<u64>> {
    let wanted = |range: &BlockRange| match args.blocks {
        None => Some(*range),
        Some(asked) => {
            BlockRange::from_ends(range.first().max(asked.first()), range.last().min(asked.last()))
        }
    };
    let held: Vec<BlockRange> = coverage.iter().filter_map(wanted).collect();
    let total = held.iter().map(BlockRange::count).sum();
    match args.blocks {
        None => ensure!(total > 0, "no block is held yet"),
        Some(asked) => {
            let ranges: Vec<String> = coverage.iter().map(ToString::to_string).collect();
            ensure!(
                total == asked.count(),
                "{total} of blocks {asked} are held; held are: {}",
                ranges.join(", ")
            );
        }
    }
    let count = if args.blocks.is_some() { total } else { args.sample.get() };
    let mut held = held.into_iter();
    let mut range = held.next();
    let mut before = 0;
    let mut blocks = Vec::new();
    // Both run upwards, so one pass finds the block of every position.
    for position in spread(total, count, args.seed) {
        while let Some(it) = range.filter(|it| position - before >= it.count()) {
            before += it.count();
            range = held.next();
        }
        blocks.extend(range.map(|it| it.first() + position - before));
    }
    Ok(blocks)
}

/// Our own answers, as `quipu serve` gives them, but for unknown hashes: those of a folder with gaps
/// would all differ, and say nothing about what is held.
fn service(folder: &DataFolder, spec: ChainSpec) -> Service {
    let settings =
        ServiceSettings { unknown_hash: UnknownHash::Null, ..ServiceSettings::default() };
    Service::new(Arc::clone(&folder.store), spec, settings)
}

/// A chain whose blob parameters nobody here knows has those of the other endpoint: without them
/// every blob's price would be a difference.
fn spec_by(node: &Upstream, spec: ChainSpec, runtime: &Runtime) -> ChainSpec {
    let told = match spec.blob_schedule() {
        Some(_) => Vec::new(),
        None => runtime.block_on(node.fetch_blob_params()),
    };
    if told.is_empty() { spec } else { spec.with_blob_params(told) }
}

/// All that is asked, and what comes of it.
struct Comparison {
    service: Service,
    /// That of our chain, where block 0 is not held.
    genesis_hash: Option<B256>,
    receipts: Vec<BlockRange>,
    endpoint: Upstream,
    /// What it is called.
    name: String,
    txs_per_block: u64,
    seed: u64,
    prints_every: bool,
    watch: Watch,
    /// Blocks that nobody has taken yet.
    waiting: Mutex<VecDeque<u64>>,
    tally: Mutex<CompareTally>,
}

async fn ask_all(asking: &Arc<Comparison>, connection_count: usize) -> anyhow::Result<()> {
    asking.refuse_other_chain().await?;
    for (position, question) in questions_of_absent().iter().enumerate() {
        asking.ask(0, position, question).await?;
    }
    let mut workers = JoinSet::new();
    for _ in 0..connection_count {
        let asking = Arc::clone(asking);
        workers.spawn(async move {
            while let Some(number) = asking.next() {
                asking.ask_of_block(number).await?;
            }
            anyhow::Ok(())
        });
    }
    // The first failure ends the others with the set.
    while let Some(ended) = workers.join_next().await {
        ended.context("a worker broke off")??;
    }
    Ok(())
}

impl Comparison {
    fn next(&self) -> Option<u64> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Of another chain everything would differ.
    async fn refuse_other_chain(&self) -> anyhow::Result<()> {
        let question = ComparedCall { method: "eth_chainId", params: json!([]) };
        let ours = self.own(&question).await?;
        let theirs = self.theirs(&question).await?;
        if let (AnswerKind::Result(ours), AnswerKind::Result(theirs)) = (&ours, &theirs)
            && ours != theirs
        {
            bail!("{} serves chain id {theirs}, the data folder holds {ours}", self.name);
        }
        self.refuse_other_genesis().await
    }

    /// An id is anybody's to take: the first block tells chains apart.
    async fn refuse_other_genesis(&self) -> anyhow::Result<()> {
        let question =
            ComparedCall { method: "eth_getBlockByNumber", params: json!(["0x0", false]) };
        let hash = |answer: &AnswerKind| match answer {
            AnswerKind::Result(block) => block.get("hash")?.as_str()?.parse::<B256>().ok(),
            AnswerKind::Refused { .. } => None,
        };
        let ours = hash(&self.own(&question).await?).or(self.genesis_hash);
        let theirs = hash(&self.theirs(&question).await?);
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && ours != theirs
        {
            bail!(
                "{} serves another chain of the same id: its genesis is {theirs}, that of the data \
                 folder is {ours}",
                self.name
            );
        }
        Ok(())
    }

    async fn ask_of_block(&self, number: u64) -> anyhow::Result<()> {
        let own = ComparedCall { method: "eth_getBlockByNumber", params: json!([number, false]) };
        let AnswerKind::Result(block) = self.own(&own).await? else {
            bail!("block {number} cannot be read: see quipu check");
        };
        let transactions = block.get("transactions").and_then(Value::as_array).map_or(0, Vec::len);
        let total = u64::try_from(transactions).unwrap_or(u64::MAX);
        let picked = spread(total, self.txs_per_block, self.seed ^ number);
        let has_receipts = self.receipts.iter().any(|range| range.contains(number));
        let questions = questions_of_block(&block, &picked, has_receipts);
        for (position, question) in questions.iter().enumerate() {
            self.ask(number + 1, position, question).await?;
        }
        let picked = u64::try_from(picked.len()).unwrap_or(u64::MAX);
        self.watch.advance_by(1, picked);
        Ok(())
    }

    async fn ask(&self, turn: u64, position: usize, question: &ComparedCall) -> anyhow::Result<()> {
        let theirs = self.theirs(question).await?;
        let found = differences(&self.own(question).await?, &theirs);
        if self.prints_every {
            for difference in &found {
                self.watch.print(report::difference(question, difference))?;
            }
        }
        let order = (turn, u64::try_from(position).unwrap_or(u64::MAX));
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.add(order, question, found);
        Ok(())
    }

    async fn own(&self, question: &ComparedCall) -> anyhow::Result<AnswerKind> {
        let answer = self.service.respond(&question.body(), OWN_TIMEOUT).await;
        let answer = answer.ok_or_else(|| anyhow!("no answer of our own"))?;
        Ok(AnswerKind::parse(&answer)?)
    }

    async fn theirs(&self, question: &ComparedCall) -> anyhow::Result<AnswerKind> {
        let ComparedCall { method, params } = question;
        let place = || format!("{}: asked {method} {params}", self.name);
        let answer = self.endpoint.post(question.body()).await.with_context(place)?;
        AnswerKind::parse(&answer).with_context(place)
    }
}
