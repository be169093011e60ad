//! A folder that follows nodes, as `serve` does it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alloy_primitives::B256;
use chain::BlockNumber;
use ingest::follow::{FollowSettings, FollowStatus, Follower, StatusBoard};
use node::Upstreams;
use store::head::HeadLimits;
use store::{Store, View, Writer};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;

use super::chains::Chain;
use super::node::Node;
use super::told::Told;
use crate::harness::folder::{DataFolder, check_view};
use crate::harness::made::threads;

/// Longer than anything takes that ends at all.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// As it is followed, but with the times of a test.
pub(crate) fn quick() -> FollowSettings {
    FollowSettings {
        poll_every: Duration::from_millis(10),
        gap_max: 10_000,
        finality_depth: None,
        threads: threads(2),
    }
}

/// Nodes that all have the same blocks, and the same final one.
pub(crate) fn alike<const N: usize>(
    runtime: &Handle,
    chain: &[Arc<Told>],
    finalized: u64,
) -> [Node; N] {
    std::array::from_fn(|_| {
        let node = Node::start(runtime, chain.to_vec());
        node.set_finality(Some(finalized));
        node
    })
}

pub(crate) struct Followed {
    pub(crate) store: Arc<Store>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) nodes: Arc<Upstreams>,
    runtime: Handle,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Followed {
    pub(crate) fn start(
        runtime: &Handle,
        data: &DataFolder,
        nodes: &Arc<Upstreams>,
        settings: FollowSettings,
        backfill_to: Option<u64>,
    ) -> Self {
        Self::start_limited(runtime, data, nodes, settings, backfill_to, HeadLimits::default())
    }

    /// The same, with a head of another size.
    pub(crate) fn start_limited(
        runtime: &Handle,
        data: &DataFolder,
        nodes: &Arc<Upstreams>,
        settings: FollowSettings,
        backfill_to: Option<u64>,
        limits: HeadLimits,
    ) -> Self {
        let store = data.store();
        let mut writer = Writer::open(Arc::clone(&store), data.spec.clone()).unwrap();
        let recovery = writer.open_head(&data.anchors, limits).unwrap();
        assert!(!recovery.has_damage(), "{recovery:?}");
        let nodes = Arc::clone(nodes);
        let (spec, anchors) = (data.spec.clone(), data.anchors.clone());
        let follower = Follower::new(writer, Arc::clone(&nodes), spec, anchors, settings);
        let (stop, stopped) = watch::channel(false);
        let board = follower.board();
        let mut threads = Vec::new();
        let background = follower.background(backfill_to);
        let (beside, stopped_beside) = (runtime.clone(), stopped.clone());
        threads.push(thread::spawn(move || background.run(&beside, stopped_beside)));
        let handle = runtime.clone();
        threads.push(thread::spawn(move || follower.run(&handle, stopped)));
        Self { store, board, nodes, runtime: runtime.clone(), stop, threads }
    }

    /// Waits until the status is as wanted.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        is_wanted: impl FnMut(&FollowStatus) -> bool,
    ) -> FollowStatus {
        let mut watch = self.board.watch();
        let waited =
            self.runtime.block_on(async { timeout(DEADLINE, watch.wait_for(is_wanted)).await });
        let Ok(status) = waited else { panic!("{what}: still {:?}", self.board.status()) };
        status.unwrap().clone()
    }

    /// Waits until a block is the tip.
    pub(crate) fn wait_tip(&self, hash: B256) {
        self.wait_for("tip", |status| status.tip.is_some_and(|tip| tip.1 == hash));
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.store.view()
    }

    /// All that is held is of this chain, and its tip is the chain's.
    pub(crate) fn check(&self, chain: &Chain) {
        let view = self.view();
        assert_eq!(view.tip(), Some(BlockNumber(chain.last().unwrap().number())));
        let held = view.coverage();
        let held = chain.iter().filter(|told| held.iter().any(|it| it.contains(told.number())));
        let held: Vec<_> = held.map(|told| told.verified.clone()).collect();
        check_view(&view, &held);
    }

    /// Ends it, as a server does.
    pub(crate) fn end(mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}
