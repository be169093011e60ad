//! Following a node while serving: the threads that do it, and their end.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ingest::follow::{Follower, Settings};
use ingest::pool::threads_default;
use store::head::{HeadLimits, Recovery};
use store::{Store, Writer};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::Failure;
use crate::args::FollowArgs;
use crate::chain_choice;
use crate::commands::import::told;
use crate::data_folder::DataFolder;
use crate::folder_chain::FolderChain;
use crate::priority::give_way;

use super::health::FollowHealth;

/// What is to be followed.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) args: &'a FollowArgs,
    pub(crate) chain: FolderChain,
}

/// A tip that is followed on threads of its own.
#[derive(Debug)]
pub(crate) struct Following {
    health: Arc<FollowHealth>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Following {
    /// Takes the folder's lock, asks the nodes which chain they follow, and begins.
    pub(crate) fn begin(
        plan: &Plan<'_>,
        folder: &DataFolder,
        store: &Arc<Store>,
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        let Plan { args, chain } = plan;
        let starting = store.view().tip().unwrap_or_default();
        let nodes = args.upstream.nodes(&chain.spec)?;
        runtime.block_on(nodes.introduce())?;
        let anchors = chain_choice::anchors(&chain.spec, &args.chain.anchors, None)?;
        let writer = Writer::open(Arc::clone(store), chain.spec.clone());
        let mut writer = writer.map_err(|error| told(&error))?;
        chain.settle(folder, &writer)?;
        let recovery = writer.open_head(&anchors, HeadLimits::default());
        tell(&recovery.map_err(|error| told(&error))?);
        let settings = Settings {
            poll_every: Duration::from_millis(args.poll_every.get()),
            gap_max: args.gap_max,
            finality_depth: args.upstream.finality_depth,
            threads: threads_default(),
        };
        let follower = Follower::new(writer, nodes, chain.spec.clone(), anchors, settings);
        let health = Arc::new(FollowHealth::of(follower.board(), starting));
        let (stop, stopped) = watch::channel(false);
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let mut threads = Vec::new();
        let background = follower.background(args.backfill_to);
        let (beside, stopped_beside) = (runtime.clone(), stopped.clone());
        let work = move || {
            give_way();
            background.run(&beside, stopped_beside);
        };
        threads.push(named("background").spawn(work)?);
        let runtime = runtime.clone();
        threads.push(named("follow").spawn(move || follower.run(&runtime, stopped))?);
        Ok(Self { health, stop, threads })
    }

    /// What clients and supervisors are told of it.
    pub(crate) fn health(&self) -> Arc<FollowHealth> {
        Arc::clone(&self.health)
    }

    /// Ends it, after the change that is under way. What a backfill has not committed was never
    /// promised.
    pub(crate) fn end(self) {
        self.stop.send_replace(true);
        for thread in self.threads {
            if thread.join().is_err() {
                warn!("following ended in a panic");
            }
        }
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
