//! Following a node while serving: the threads that do it, and their end.
//!
//! Knows: what must be there before a node is asked, and what a node is asked beside serving.
//! Never knows: how a tip is followed. Nothing here waits for a node before the server listens.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chain::ChainSpec;
use ingest::follow::{Follower, Settings, StatusBoard};
use ingest::pool::threads_default;
use ingest::upstream::{Upstreams, UpstreamsError};
use rpc::Service;
use store::head::{HeadLimits, Recovery};
use store::{Store, Writer};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::Failure;
use crate::args::FollowArgs;
use crate::chain_choice;
use crate::commands::import::told;
use crate::data_folder::DataFolder;
use crate::folder_chain::FolderChain;
use crate::node::{Node, OwnChain};
use crate::priority::give_way;
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
pub(crate) struct Plan<'a> {
    pub(crate) args: &'a FollowArgs,
    /// `None` if only a node can tell.
    pub(crate) chain: Option<FolderChain>,
}

/// What following needs of the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerParts {
    pub(crate) folder: DataFolder,
    pub(crate) store: Arc<Store>,
    pub(crate) service: Arc<Service>,
    pub(crate) health: Arc<FollowHealth>,
    /// The node that calls are passed through to.
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) runtime: Handle,
}

/// A tip that is followed on threads of its own.
#[derive(Debug)]
pub(crate) struct Following {
    stop: watch::Sender<bool>,
    failures: mpsc::Receiver<Failure>,
    thread: JoinHandle<()>,
}

impl Following {
    /// Takes the folder's lock and begins. Which chain it is may be left for the nodes to say: then
    /// the folder is empty, and they are asked until they do.
    pub(crate) fn begin(plan: &Plan<'_>, parts: ServerParts) -> Result<Self, Failure> {
        let args = plan.args.clone();
        let (stop, stopped) = watch::channel(false);
        let (fails, failures) = mpsc::channel(1);
        let opened = match &plan.chain {
            Some(chain) => Some(Opened::open(&args, chain, &parts)?),
            None => None,
        };
        let follow = move || {
            let opened = match opened {
                Some(opened) => Ok(Some(opened)),
                None => open_asked(&args, &parts, stopped.clone()),
            };
            match opened {
                Ok(Some(opened)) => opened.run(&args, &parts, stopped, fails),
                Ok(None) => {}
                Err(failure) => drop(fails.try_send(failure)),
            }
        };
        let thread = thread::Builder::new().name("follow".to_owned()).spawn(follow)?;
        Ok(Self { stop, failures, thread })
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
        self.stop.send_replace(true);
    }

    /// Ends it, after the change that is under way. What a backfill has not committed was never
    /// promised.
    pub(crate) fn end(self) {
        self.stop();
        if self.thread.join().is_err() {
            warn!("following ended in a panic");
        }
    }
}

/// All that following needs, before any node was asked.
#[derive(Debug)]
struct Opened {
    follower: Follower,
    nodes: Arc<Upstreams>,
    spec: ChainSpec,
}

impl Opened {
    fn open(args: &FollowArgs, chain: &FolderChain, parts: &ServerParts) -> Result<Self, Failure> {
        let nodes = args.upstream.nodes(&chain.spec)?;
        let anchors = chain_choice::anchors(&chain.spec, &args.chain.anchors, None)?;
        let writer = Writer::open(Arc::clone(&parts.store), chain.spec.clone());
        let mut writer = writer.map_err(|error| told(&error))?;
        chain.remember(&parts.folder, &mut writer)?;
        let recovery = writer.open_head(&anchors, HeadLimits::default());
        tell(&recovery.map_err(|error| told(&error))?);
        parts.health.starts_at(parts.store.view().tip().unwrap_or_default());
        let settings = Settings {
            poll_every: Duration::from_millis(args.poll_every.get()),
            gap_max: args.gap_max,
            finality_depth: args.upstream.finality_depth,
            threads: threads_default(),
        };
        let spec = chain.spec.clone();
        let follower = Follower::new(writer, Arc::clone(&nodes), spec.clone(), anchors, settings);
        parts.health.follow(follower.board());
        Ok(Self { follower, nodes, spec })
    }

    /// Follows until it is told to stop.
    fn run(
        self,
        args: &FollowArgs,
        parts: &ServerParts,
        stopped: watch::Receiver<bool>,
        fails: mpsc::Sender<Failure>,
    ) {
        let Self { follower, nodes, spec } = self;
        let background = follower.background(args.backfill_to);
        let learning = Learning {
            nodes,
            board: follower.board(),
            service: Arc::clone(&parts.service),
            spec,
            fails,
        };
        let learning = parts.runtime.spawn(learning.run());
        thread::scope(|scope| {
            let stopped_beside = stopped.clone();
            scope.spawn(move || {
                give_way();
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
) -> Result<Option<Opened>, Failure> {
    let asking = async {
        let mut is_told = false;
        loop {
            let error = match args.upstream.ask_spec().await {
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
    Opened::open(args, &FolderChain::asked(spec), parts).map(Some)
}

/// Whether nobody answered, as opposed to answering what cannot be followed.
fn is_silence(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(UpstreamsError::NoneLeft(_)))
}

/// What nodes are asked once, beside serving.
struct Learning {
    nodes: Arc<Upstreams>,
    board: Arc<StatusBoard>,
    service: Arc<Service>,
    spec: ChainSpec,
    fails: mpsc::Sender<Failure>,
}

impl Learning {
    async fn run(self) {
        // One that is of another chain at its introduction is a wrong configuration. One that does
        // not answer now is asked again before it is first used, and then only set aside.
        if let Err(error @ UpstreamsError::Foreign { .. }) = self.nodes.introduce().await {
            drop(self.fails.try_send(error.into()));
            return;
        }
        self.learn_blob_params().await;
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

/// What a head lost since it was last open.
fn tell(recovery: &Recovery) {
    for cut in &recovery.cuts {
        info!(%cut, "the head's log");
    }
    for refused in &recovery.refused {
        warn!(hash = %refused.hash, reason = refused.reason, "a block of the head is not true");
    }
    if let Some(it) = recovery.superseded {
        let (number, found, sealed) = (it.number, it.found, it.sealed);
        warn!(number, %found, %sealed, "the head is dropped: another chain was sealed since");
    }
}
