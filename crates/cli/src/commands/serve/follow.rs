//! Following a node while serving: the threads that do it, and their end.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chain::ChainSpec;
use ingest::folder_chain::FolderChain;
use ingest::follow::{FollowSettings, Follower, StatusBoard};
use node::{Upstreams, UpstreamsError};
use pool::threads_default;
use rpc::Service;
use store::head::{CutKind, HeadLimits, Recovery};
use store::{Store, Writer};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::Failure;
use crate::args::serve::FollowArgs;
use crate::chain_choice;
use crate::commands::import::to_failure;
use crate::folder_text::unlisted_segment;
use crate::node::{Node, OwnChain};
use crate::priority::lower_priority;
use crate::upstream_args::log_blob_prices;

use super::health::FollowHealth;

/// Before nodes that did not say which chain they follow are asked again.
const CHAIN_PAUSE: Duration = Duration::from_secs(1);
/// Before nodes that did not tell blob parameters are asked again.
const BLOB_PARAMS_PAUSE: Duration = Duration::from_secs(10);
/// How often they are asked: most nodes that do not tell do not know the method.
const BLOB_PARAMS_TRIES: u32 = 3;

/// What is to be followed.
#[derive(Debug)]
pub(crate) struct FollowPlan<'a> {
    pub(crate) args: &'a FollowArgs,
    /// `None` if only a node can tell.
    pub(crate) chain: Option<FolderChain>,
}

/// What following needs of the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerParts {
    pub(crate) store: Arc<Store>,
    pub(crate) service: Arc<Service>,
    pub(crate) health: Arc<FollowHealth>,
    /// The node that calls are passed through to.
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) runtime: Handle,
}

/// How long after it was told to stop a change that is under way is waited for. A merge or a seal of
/// many blocks takes longer, and a disk may take any time: it is left as a crash would leave it, and the
/// next start takes it up.
const STOP_MAX: Duration = Duration::from_millis(1500);

/// A tip that is followed on threads of its own.
#[derive(Debug)]
pub(crate) struct Following {
    stop: watch::Sender<bool>,
    stopped_at: OnceLock<Instant>,
    failures: mpsc::Receiver<Failure>,
    worker: FollowThread,
}

impl Following {
    /// What must be done before it begins: takes the folder's lock and proves the head, which may take
    /// long. Which chain it is may be left for the nodes to say: then the folder is empty, and there
    /// is nothing to do.
    pub(crate) fn opening(
        plan: &FollowPlan<'_>,
        parts: &ServerParts,
    ) -> impl FnOnce() -> Result<Option<OpenedFolder>, Failure> + Send + use<> {
        let (args, chain, parts) = (plan.args.clone(), plan.chain.clone(), parts.clone());
        move || chain.map(|chain| OpenedFolder::open(&args, &chain, &parts)).transpose()
    }

    /// Begins. Where nothing is opened, nodes are asked which chain they follow until they say it.
    pub(crate) fn begin(
        plan: &FollowPlan<'_>,
        opened: Option<OpenedFolder>,
        parts: ServerParts,
    ) -> Result<Self, Failure> {
        let args = plan.args.clone();
        let (stop, stopped) = watch::channel(false);
        let (fails, failures) = mpsc::channel(1);
        let follow = move || {
            let opened = match opened {
                Some(opened) => Ok(Some(opened)),
                None => open_asked(&args, &parts, stopped.clone()),
            };
            match opened {
                Ok(Some(opened)) => opened.run(&args, &parts, stopped),
                Ok(None) => {}
                Err(failure) => drop(fails.try_send(failure)),
            }
        };
        let worker = FollowThread::spawn("follow", follow)?;
        Ok(Self { stop, stopped_at: OnceLock::new(), failures, worker })
    }

    /// Waits until following turns out to be impossible as it is configured.
    pub(crate) async fn failed(&mut self) -> Failure {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// Tells it to end; it does so after the change that is under way.
    pub(crate) fn stop(&self) {
        self.stopped_at.get_or_init(Instant::now);
        self.stop.send_replace(true);
    }

    /// Ends it, after the change that is under way if that does not take long. What a backfill has not
    /// committed was never promised.
    pub(crate) fn end(self) {
        self.stop();
        let waited = self.stopped_at.get().map_or(Duration::ZERO, Instant::elapsed);
        match self.worker.end_within(STOP_MAX.saturating_sub(waited)) {
            Some(Ok(())) => {}
            Some(Err(_)) => warn!("following ended in a panic"),
            None => warn!("a change is under way and is left: the next start takes it up"),
        }
    }
}

/// A thread whose end can be waited for no longer than it may take.
#[derive(Debug)]
struct FollowThread {
    thread: JoinHandle<()>,
    /// Its other end goes when the thread ends, also in a panic.
    ended: std::sync::mpsc::Receiver<()>,
}

impl FollowThread {
    fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<Self> {
        let (ends, ended) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ends = ends;
            work();
        })?;
        Ok(Self { thread, ended })
    }

    /// How it ended; `None` if it did not within this time, and then it is left to the process's end.
    fn end_within(self, time: Duration) -> Option<thread::Result<()>> {
        match self.ended.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => None,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Some(self.thread.join()),
        }
    }
}

/// All that following needs, before any node was asked.
#[derive(Debug)]
pub(crate) struct OpenedFolder {
    follower: Follower,
    nodes: Arc<Upstreams>,
    spec: ChainSpec,
}

impl OpenedFolder {
    fn open(args: &FollowArgs, chain: &FolderChain, parts: &ServerParts) -> Result<Self, Failure> {
        let nodes = args.upstream.nodes(chain.spec())?;
        let anchors = chain_choice::anchors(chain.spec(), &args.chain.anchors, None)?;
        let writer = Writer::open(Arc::clone(&parts.store), chain.spec().clone());
        let mut writer = writer.map_err(|error| to_failure(&error))?;
        writer.unaccounted().iter().for_each(|name| warn!("{}", unlisted_segment(name)));
        chain.remember(&mut writer)?;
        let recovery = writer.open_head(&anchors, HeadLimits::default());
        log_recovery(&recovery.map_err(|error| to_failure(&error))?);
        parts.health.starts_at(parts.store.view().tip().unwrap_or_default().get());
        let settings = FollowSettings {
            poll_every: Duration::from_millis(args.poll_every.get()),
            gap_max: args.gap_max,
            finality_depth: args.upstream.finality_depth,
            threads: threads_default(),
        };
        let spec = chain.spec().clone();
        let follower = Follower::new(writer, Arc::clone(&nodes), spec.clone(), anchors, settings);
        parts.health.follow(follower.board());
        Ok(Self { follower, nodes, spec })
    }

    /// Follows until it is told to stop.
    fn run(self, args: &FollowArgs, parts: &ServerParts, stopped: watch::Receiver<bool>) {
        let Self { follower, nodes, spec } = self;
        let background = follower.background(args.backfill_to);
        let board = follower.board();
        let service = Arc::clone(&parts.service);
        let learning = parts.runtime.spawn(Learning { nodes, board, service, spec }.run());
        thread::scope(|scope| {
            let stopped_beside = stopped.clone();
            scope.spawn(move || {
                lower_priority();
                background.run(&parts.runtime, stopped_beside);
            });
            follower.run(&parts.runtime, stopped);
        });
        learning.abort();
    }
}

/// Asks the nodes which chain they follow until they say it. `None` if it is told to stop first.
fn open_asked(
    args: &FollowArgs,
    parts: &ServerParts,
    mut stopped: watch::Receiver<bool>,
) -> Result<Option<OpenedFolder>, Failure> {
    // The same ones all the time: they say once that they do not answer.
    let nodes = args.upstream.unknown_nodes()?;
    let asking = async {
        let mut is_told = false;
        loop {
            let error = match args.upstream.ask_spec(&nodes).await {
                Err(Failure::Work(error)) if is_silence(&error) => error,
                asked => return asked,
            };
            if !is_told {
                warn!(%error, "the folder is empty, and no upstream says which chain it follows");
                is_told = true;
            }
            parts.health.waits(&error.to_string());
            sleep(CHAIN_PAUSE).await;
        }
    };
    let asked = parts.runtime.block_on(async {
        tokio::select! {
            asked = asking => asked.map(Some),
            _ = stopped.wait_for(|is_stopped| *is_stopped) => Ok(None),
        }
    });
    let Some(spec) = asked? else { return Ok(None) };
    info!(chain = spec.name(), "the upstream says which chain it is");
    parts.service.learn_chain(spec.clone());
    if let Some(node) = &parts.node {
        node.expect_chain(OwnChain::of(&spec));
    }
    OpenedFolder::open(args, &FolderChain::of(spec), parts).map(Some)
}

/// Whether those whose word counts are silent or do not agree yet, as opposed to naming a chain that
/// cannot be followed.
fn is_silence(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            UpstreamsError::NoneLeft(_)
                | UpstreamsError::Undecided { .. }
                | UpstreamsError::NoCommonChain { .. }
        )
    )
}

/// What nodes are asked once, beside serving.
struct Learning {
    nodes: Arc<Upstreams>,
    board: Arc<StatusBoard>,
    service: Arc<Service>,
    spec: ChainSpec,
}

impl Learning {
    async fn run(self) {
        let nodes = Arc::clone(&self.nodes);
        // A node of another chain is set aside, with a line in the log: soon, and not when it is first
        // needed.
        tokio::join!(nodes.identify_all(), self.learn_blob_params());
    }

    /// Asks for the blob parameters of a chain that has none of its own: without them no blob has a
    /// price.
    async fn learn_blob_params(self) {
        if self.spec.blob_schedule().is_some() {
            return;
        }
        let mut heard = self.board.watch();
        if heard.wait_for(|status| status.heard_at.is_some()).await.is_err() {
            return;
        }
        for _ in 0..BLOB_PARAMS_TRIES {
            let told = self.nodes.fetch_blob_params().await;
            if !told.is_empty() {
                let spec = self.spec.with_blob_params(told);
                log_blob_prices(&spec);
                return self.service.learn_chain(spec);
            }
            sleep(BLOB_PARAMS_PAUSE).await;
        }
        log_blob_prices(&self.spec);
    }
}

/// Logs what a head lost since it was last open.
fn log_recovery(recovery: &Recovery) {
    for cut in &recovery.cuts {
        if cut.kind == CutKind::TornTail {
            info!(%cut, "the head's log ends with a write that a crash interrupted");
        } else {
            warn!(%cut, "the head's log is damaged: what is proven of it is taken");
        }
    }
    for refused in &recovery.refused {
        warn!(hash = %refused.hash, reason = refused.reason, "a block of the head is not true");
    }
    if let Some(it) = recovery.superseded {
        let (number, found, sealed) = (it.number.get(), it.found, it.sealed);
        warn!(number, %found, %sealed, "the head is dropped: another chain was sealed since");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Seen: a merge that takes a minute delayed the end of the server as long.
    #[test]
    fn a_thread_that_does_not_end_is_not_waited_for() {
        let (sender, receiver) = sync_channel::<()>(1);
        let busy = FollowThread::spawn("busy", move || assert!(receiver.recv().is_err())).unwrap();
        assert!(busy.end_within(Duration::from_millis(20)).is_none());
        drop(sender);
        let done = FollowThread::spawn("done", || ()).unwrap();
        assert!(matches!(done.end_within(Duration::from_mins(1)), Some(Ok(()))));
        let broken = FollowThread::spawn("broken", || panic!("on purpose")).unwrap();
        assert!(matches!(broken.end_within(Duration::from_mins(1)), Some(Err(_))));
    }
}
