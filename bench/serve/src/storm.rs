//! A storm of reorgs: a node that mines and reorganises its chain all the time, or stands still.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::call::block_by_number;
use crate::http::ask;
use crate::node::RivalNode;
use crate::server::{ServerProcess, result_of};

/// Between a block and the reorg that takes it away, and between that and the next block.
const HALF_PERIOD: Duration = Duration::from_millis(100);
/// Depths go from one to this, and begin again.
const DEPTH_MAX: u64 = 30;
/// Blocks above the chain that is asked for, so that it is final: anvil calls final what lies 64 below.
const CALM_ABOVE: u64 = 100;
/// Accounts that send a transaction into every block: one each, so that no two want the same nonce.
const SENDERS: usize = 8;
const FOLLOW_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the thread is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StormTarget {
    Storm,
    Calm,
    End,
}

#[derive(Debug)]
struct Shared {
    wanted: Mutex<StormTarget>,
    changed: Condvar,
    node: RivalNode,
}

impl Shared {
    /// The thread lets it go only while it rests: whoever has it knows that nothing is under way.
    fn wanted(&self) -> MutexGuard<'_, StormTarget> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Half of a period, or less if something else is wanted.
    fn rest<'a>(&self, wanted: MutexGuard<'a, StormTarget>) -> MutexGuard<'a, StormTarget> {
        let is_stormy = |wanted: &mut StormTarget| *wanted == StormTarget::Storm;
        let rested = self.changed.wait_timeout_while(wanted, HALF_PERIOD, is_stormy);
        rested.unwrap_or_else(PoisonError::into_inner).0
    }

    fn want(&self, wanted: StormTarget) {
        *self.wanted() = wanted;
        self.changed.notify_all();
    }
}

/// A node, the Quipu that follows it, and the thread that tells the node what to do.
#[derive(Debug)]
pub struct Storm {
    shared: Arc<Shared>,
    served: ServerProcess,
    thread: Option<JoinHandle<Result<Done>>>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    reorgs: u64,
    blocks: u64,
    /// Reorgs whose tip Quipu had before the next block came.
    in_time: u64,
}

impl Storm {
    /// Puts the blocks above what is there now that reorgs may take, and gives the number of the
    /// highest block that they may not.
    pub fn prepare(node: &RivalNode) -> Result<u64> {
        let calm = node.last()?;
        node.server.call("anvil_mine", &json!([format!("{CALM_ABOVE:#x}")]))?;
        Ok(calm)
    }

    /// Waits until Quipu has the node's chain, and is ready to blow.
    pub fn new(node: RivalNode, served: ServerProcess) -> Result<Self> {
        let oldest = || {
            let told = served.call("eth_capabilities", &json!([])).ok()?;
            Some(told.pointer("/blocks/oldestBlock")?.as_str()? == "0x0")
        };
        follows(&node, &served)?;
        wait_for("blocks from genesis on", || oldest().unwrap_or(false))?;
        let shared = Arc::new(Shared {
            wanted: Mutex::new(StormTarget::Calm),
            changed: Condvar::new(),
            node,
        });
        let (of_thread, address) = (Arc::clone(&shared), served.address.clone());
        let thread = thread::Builder::new().name("storm".to_owned());
        let thread = thread.spawn(move || blow_on(&of_thread, &address))?;
        Ok(Self { shared, served, thread: Some(thread) })
    }

    /// The Quipu that follows.
    #[must_use]
    pub fn served(&self) -> &ServerProcess {
        &self.served
    }

    /// Lets it storm, or waits until all is calm and Quipu has the node's chain.
    pub fn blow(&mut self, is_stormy: bool) -> Result<()> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            self.end()?;
            bail!("the storm is over");
        }
        if is_stormy {
            self.shared.want(StormTarget::Storm);
            return Ok(());
        }
        self.shared.want(StormTarget::Calm);
        follows(&self.shared.node, &self.served)
    }

    /// Ends it, sees that Quipu has the node's chain, and tells what was done.
    pub fn end(&mut self) -> Result<String> {
        self.shared.want(StormTarget::End);
        let thread = self.thread.take().context("it has ended")?;
        let done = thread.join().unwrap_or_else(|_| bail!("it panicked"))?;
        follows(&self.shared.node, &self.served)?;
        Ok(format!(
            "{} reorgs of {} blocks; Quipu had the new tip of {} within {} ms, and has the last",
            done.reorgs,
            done.blocks,
            done.in_time,
            HALF_PERIOD.as_millis()
        ))
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.shared.want(StormTarget::End);
        if let Some(thread) = self.thread.take() {
            // Whatever it has to tell, somebody else was told before.
            let _ = thread.join();
        }
    }
}

fn blow_on(shared: &Shared, served: &str) -> Result<Done> {
    let senders = shared.node.accounts()?;
    let node = &shared.node.server;
    let mut done = Done::default();
    let mut wanted = shared.wanted();
    loop {
        match *wanted {
            StormTarget::End => return Ok(done),
            StormTarget::Calm => {
                wanted = shared.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            StormTarget::Storm => mine(node, &senders)?,
        }
        wanted = shared.rest(wanted);
        if *wanted != StormTarget::Storm {
            continue;
        }
        let depth = done.reorgs.checked_rem(DEPTH_MAX).unwrap_or_default().saturating_add(1);
        node.call("anvil_reorg", &json!([depth, []]))?;
        done.reorgs = done.reorgs.saturating_add(1);
        done.blocks = done.blocks.saturating_add(depth);
        wanted = shared.rest(wanted);
        let is_followed = tip_hash(&node.address)? == tip_hash(served)?;
        done.in_time = done.in_time.saturating_add(u64::from(is_followed));
    }
}

/// A block with a few transactions.
fn mine(node: &ServerProcess, senders: &[Value]) -> Result<()> {
    let send = |from: &Value| {
        let transfer = json!({"from": from, "to": from, "value": "0x1", "gas": "0x5208"});
        json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [transfer]})
    };
    let batch: Vec<Value> = senders.iter().take(SENDERS).map(send).collect();
    let answers = node.ask(&Value::Array(batch).to_string())?;
    for answer in answers.as_array().context("a batch gets a list")? {
        result_of(answer)?;
    }
    node.call("evm_mine", &json!([])).map(drop)
}

/// Waits until Quipu's tip is the node's.
fn follows(node: &RivalNode, served: &ServerProcess) -> Result<()> {
    let wanted = tip_hash(&node.server.address)?;
    wait_for("the node's tip", || tip_hash(&served.address).is_ok_and(|found| found == wanted))
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_there() {
        ensure!(begun.elapsed() < FOLLOW_WITHIN, "Quipu does not get {what}");
        // Nobody tells a client of HTTP.
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn tip_hash(address: &str) -> Result<Value> {
    let body = block_by_number("latest", false);
    let block: Value = serde_json::from_slice(&ask(address, "/", Some(body.as_bytes()), &[])?)?;
    block.pointer("/result/hash").cloned().context("no latest block")
}
