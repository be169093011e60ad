//! The tip of a chain, followed: readers see the old chain or the new one, never a mixture.
//!
//! All of it happens on one thread, which has the folder's only writer. Others who want to commit (a
//! backfill in the background) ask it to. Another thread hears of the tip, and is never busy.

mod background;
mod branch;
mod error;
mod finality;
mod header_rules;
mod monitor;
mod prove;
mod standstill;
mod start;
mod status;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alloy_primitives::B256;
use chain::trust::Anchors;
use chain::{BlockNumber, ChainSpec, decode_header};
use node::{AgreedTip, BlockTag, HeaderClaim, Upstreams};
use store::head::SupersededBlock;
use store::read::block_on;
use store::{BlockId, CommitFacts, PreparedSegments, Reader, StoreError, View, Writer};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::stop::until_stopped;

use standstill::Standstill;

pub use background::Background;
pub use error::{FinalityConflict, FollowError};
use monitor::TipMonitor;
pub use status::{FollowStatus, ReorgDepths, StatusBoard, WorkCount};

/// Blocks that are taken in one step while the tip is far.
const STEP_BLOCKS: u64 = 64;
/// Blocks over which the time between two of them is measured.
const BLOCK_TIME_SPAN: u64 = 16;
/// The time between two blocks is taken to be at least this.
const BLOCK_TIME_MIN: Duration = Duration::from_secs(1);
/// And at most this.
const BLOCK_TIME_MAX: Duration = Duration::from_mins(1);
/// Commits that wait for the thread that has the writer.
const COMMITS_MAX: usize = 1;

/// How a tip is followed.
#[derive(Clone, Copy, Debug)]
pub struct FollowSettings {
    /// How often nodes without subscriptions are asked for their tip.
    pub poll_every: Duration,
    /// How many blocks are caught up with before a gap is left instead.
    pub gap_max: u64,
    /// Blocks this far below the tip are final; `None` goes by what nodes say.
    pub finality_depth: Option<u64>,
    /// How many threads prove.
    pub threads: NonZeroUsize,
}

/// New segments for whoever has the writer.
#[derive(Debug)]
pub(crate) struct CommitRequest {
    segments: PreparedSegments,
    facts: CommitFacts,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// Follows a tip.
#[derive(Debug)]
pub struct Follower {
    writer: Writer,
    upstreams: Arc<Upstreams>,
    spec: ChainSpec,
    anchors: Anchors,
    settings: FollowSettings,
    board: Arc<StatusBoard>,
    /// When nodes were last asked what is final.
    finality_asked: Option<Instant>,
    /// Per node, linked headers from the block that it last called final (its tip, where depth decides)
    /// down towards our tip, while our tip is below that block.
    final_paths: BTreeMap<usize, Vec<HeaderClaim>>,
    /// The lost block that the nodes were found to have too.
    lost_checked: Option<BlockId>,
    /// The block of the head that was last logged as superseded.
    superseded: Option<SupersededBlock>,
    /// What following cannot go past for now.
    standstill: Option<Standstill>,
    /// What the folder's notice says.
    notice: Option<String>,
    /// Why the notice could not be changed the last time.
    notice_error: Option<String>,
    /// Whose tip ours is, by that node's place in the order of preference. After a restart that is
    /// not known, and it is taken to be the preferred node's.
    tip_member: usize,
    /// The largest block of the last answer, as JSON; `None` before there was one.
    block_bytes: Option<u64>,
    /// Says when to stop; `None` before it began.
    stop: Option<watch::Receiver<bool>>,
    commits: mpsc::Receiver<CommitRequest>,
    /// The other end, for those who want to commit.
    commits_from: mpsc::Sender<CommitRequest>,
}

/// The highest sealed block, of the folder or published. A segment that cannot be read is sealed all the
/// same: nothing is followed below it.
fn sealed_tip(view: &View) -> Option<BlockNumber> {
    let own = view.manifest().segments().iter();
    view.segments().chain(own).map(|entry| BlockNumber(entry.range.last())).max()
}

/// A block by number and hash.
type BlockNumberAndHash = (u64, B256);

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Ours is the tip that was told.
    Done,
    /// There is more to do at once.
    More,
}

impl Follower {
    /// A follower for a writer whose head is open.
    #[must_use]
    pub fn new(
        writer: Writer,
        upstreams: Arc<Upstreams>,
        spec: ChainSpec,
        anchors: Anchors,
        settings: FollowSettings,
    ) -> Self {
        let (commits_from, commits) = mpsc::channel(COMMITS_MAX);
        let board = Arc::new(StatusBoard::new(Arc::clone(&upstreams)));
        let notice = writer.notice().unwrap_or_else(|error| {
            warn!(%error, "the notice in the data folder cannot be read: it will be replaced");
            // Not none: it goes with the first step that succeeds.
            Some(error.to_string())
        });
        Self {
            writer,
            upstreams,
            spec,
            anchors,
            settings,
            board,
            finality_asked: None,
            final_paths: BTreeMap::new(),
            lost_checked: None,
            superseded: None,
            standstill: None,
            notice,
            notice_error: None,
            tip_member: 0,
            block_bytes: None,
            stop: None,
            commits,
            commits_from,
        }
    }

    /// How it goes, for whoever wants to look.
    #[must_use]
    pub fn board(&self) -> Arc<StatusBoard> {
        Arc::clone(&self.board)
    }

    /// What goes on beside it, to run on a thread of its own: merging slots, and filling gaps down to
    /// a block if one is given.
    #[must_use]
    pub fn background(&self, backfill_to: Option<u64>) -> Background {
        Background {
            drafting: self.writer.drafting(),
            upstreams: Arc::clone(&self.upstreams),
            spec: self.spec.clone(),
            anchors: self.anchors.clone(),
            threads: self.settings.threads,
            backfill_to,
            unmerged: BTreeMap::new(),
            unit_retry: None,
            commits: self.commits_from.clone(),
            board: Arc::clone(&self.board),
        }
    }

    /// Follows until `stop` says so. Occupies the calling thread, and another that hears of the tip;
    /// nodes are asked on `runtime`.
    ///
    /// Stopping waits for what is being proven or committed and for no node: whatever is asked of
    /// one is dropped, and nothing is changed between two questions that the next start cannot
    /// take up.
    pub fn run(mut self, runtime: &Handle, stop: watch::Receiver<bool>) {
        let (tips, heard) = watch::channel(None);
        let is_built_in = self.spec.is_built_in();
        self.board.begun(self.tip().ok().flatten(), self.settings.poll_every, is_built_in);
        self.board.set_block_time(self.block_time());
        let monitor = TipMonitor {
            upstreams: Arc::clone(&self.upstreams),
            board: Arc::clone(&self.board),
            poll_every: self.settings.poll_every,
        };
        self.stop = Some(stop.clone());
        thread::scope(|scope| {
            let stopped = stop.clone();
            scope.spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = until_stopped(Some(stopped)) => {}
                        () = monitor.run(tips) => {}
                    }
                });
            });
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = until_stopped(Some(stop)) => {}
                    () = self.follow(heard) => {}
                }
            });
        });
        // What was answered is there at the next start, whatever became of the log since the last block.
        self.keep_log();
    }

    /// Goes after the tips that are heard of, for ever.
    async fn follow(&mut self, mut heard: watch::Receiver<Option<AgreedTip>>) {
        loop {
            let target = *heard.borrow_and_update();
            if let Some(target) = target
                && self.step_and_tell(target).await == Step::More
            {
                self.commit_waiting();
                continue;
            }
            self.wait(&mut heard).await;
        }
    }

    /// Writes the head's log anew if somebody cut, replaced or removed it. What fails here is told until
    /// it is done, and tried again.
    fn keep_log(&mut self) {
        let kept = self.writer.keep_head_log();
        if let Ok(Some(changed)) = &kept {
            warn!(error = %changed, "the head's log is written anew");
        }
        let error = kept.err().map(|error| error.to_string());
        if self.board.kept_log(error.as_deref()) {
            error!(
                error,
                "the head's log cannot be written: blocks that are not sealed would be lost \
                when the server stops; serving what is here"
            );
        }
    }

    /// Waits until the tip is heard of again; commits what others bring meanwhile.
    async fn wait(&mut self, heard: &mut watch::Receiver<Option<AgreedTip>>) {
        loop {
            self.keep_log();
            tokio::select! {
                // A node that says nothing is no reason not to look.
                () = sleep(self.settings.poll_every) => {}
                changed = heard.changed() => {
                    if changed.is_err() {
                        // Nobody hears of the tip any more, which the board tells.
                        std::future::pending::<()>().await;
                    }
                    return;
                }
                Some(request) = self.commits.recv() => self.commit(request),
            }
        }
    }

    fn commit_waiting(&mut self) {
        while let Ok(request) = self.commits.try_recv() {
            self.commit(request);
        }
    }

    fn commit(&mut self, request: CommitRequest) {
        let committed = self.writer.commit_prepared(request.segments, request.facts);
        // Whoever asked may be gone: what is committed stays.
        let _ = request.done.send(committed);
    }

    /// One step, and what is to be told of it.
    async fn step_and_tell(&mut self, target: AgreedTip) -> Step {
        self.log_superseded();
        let stepped = self.step(target).await;
        if let Some(missing) = stepped.as_ref().err().and_then(FollowError::missing_block) {
            self.upstreams.doubt_tip(target, missing).await;
        }
        self.note_outcome(stepped.as_ref().err());
        let tip = self.tip().ok().flatten();
        self.board.set_block_time(self.block_time());
        match stepped {
            Ok(step) => {
                self.upstreams.reached_tip(target);
                self.board.stepped(tip);
                step
            }
            Err(FollowError::Conflict(conflict)) => {
                if self.board.conflicted(conflict) {
                    let FinalityConflict { number, ours, theirs } = conflict;
                    error!(number, %ours, %theirs, "the upstream contradicts what is final here: \
                        its chain is not followed; `quipu rewind` resolves it");
                }
                Step::Done
            }
            Err(error) => {
                if self.board.failed(tip, &error) {
                    warn!(%error, "cannot follow now; serving what is here");
                }
                Step::Done
            }
        }
    }

    async fn step(&mut self, tip: AgreedTip) -> Result<Step, FollowError> {
        let target = tip.claim;
        self.check_standstill().await?;
        let Some(ours) = self.begin(target).await? else { return Ok(Step::More) };
        let goal = self.goal(target, ours).await?;
        if self.hash_at(goal.number)? != Some(goal.hash) {
            let followed = self.follow_branch(goal).await;
            // Some of a branch may be ours though the rest could not be had.
            if self.tip()? != Some(ours) {
                self.tip_member = tip.member_index;
            }
            followed?;
        } else if goal == target && tip.member_index < self.tip_member {
            self.drop_above(goal)?;
            self.tip_member = tip.member_index;
        }
        let is_there = goal == target;
        let has_more = self.refresh_finality(!is_there).await?;
        Ok(if is_there && !has_more { Step::Done } else { Step::More })
    }

    /// Takes back what a less preferred node added above a block of ours that a more preferred one
    /// tells as its tip, down to what is final: that node may have invented it. A node that tells a
    /// lower tip than it did before only lags, and takes nothing away.
    fn drop_above(&mut self, tip: HeaderClaim) -> Result<(), FollowError> {
        let number = tip.number.max(self.floor());
        let Some(ours) = self.writer.view().head().tip().map(|block| block.number()) else {
            return Ok(());
        };
        let Some(hash) = self.hash_at(number)?.filter(|_| number < ours.get()) else {
            return Ok(());
        };
        self.writer.rewind(hash)?;
        self.tell_reorg((number, hash), ours.get().saturating_sub(number), 0);
        Ok(())
    }

    /// The block to reach in this step: the tip, or one on the way if that is far.
    async fn goal(
        &self,
        target: HeaderClaim,
        ours: BlockNumberAndHash,
    ) -> Result<HeaderClaim, FollowError> {
        let near = ours.0.saturating_add(STEP_BLOCKS);
        if target.number <= near {
            return Ok(target);
        }
        let goal = self.upstreams.fetch_agreed(BlockTag::Number(near)).await?;
        goal.ok_or(FollowError::Moved { number: near })
    }

    /// Our newest block.
    fn tip(&self) -> Result<Option<BlockNumberAndHash>, StoreError> {
        let view = self.writer.view();
        // Sealed blocks may go on above the head: others may have published them.
        let Some(number) = view.tip().max(sealed_tip(&view)) else { return Ok(None) };
        Ok(self.hash_at(number.get())?.map(|hash| (number.get(), hash)))
    }

    /// The hash of our block of this number, or of the one that the head stands on.
    fn hash_at(&self, number: u64) -> Result<Option<B256>, StoreError> {
        let view = self.writer.view();
        if let Some((_, hash)) = view.head().base().filter(|(base, _)| *base == BlockNumber(number))
        {
            return Ok(Some(hash));
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        block_on(view.read_hash(&mut reader, BlockNumber(number)))
    }

    /// The time between two blocks, by the newest headers that are held.
    fn block_time(&self) -> Option<Duration> {
        let view = self.writer.view();
        let last = view.tip()?;
        let mut reader = Reader::new().ok()?;
        let mut timestamp = |number: BlockNumber| {
            let header = block_on(view.read_header(&mut reader, number)).ok()??;
            Some(decode_header(&header.rlp).ok()?.timestamp)
        };
        let end = timestamp(last)?;
        let over = |blocks: u64| Some((blocks, BlockNumber(last.get().checked_sub(blocks)?)));
        let (blocks, begin) = [over(BLOCK_TIME_SPAN), over(1)]
            .into_iter()
            .flatten()
            .find_map(|(blocks, first)| Some((blocks, timestamp(first)?)))?;
        let millis = end.saturating_sub(begin).saturating_mul(1000) / blocks;
        Some(Duration::from_millis(millis).clamp(BLOCK_TIME_MIN, BLOCK_TIME_MAX))
    }

    /// Logs once that blocks of the head are not shown: another chain was sealed in their place.
    fn log_superseded(&mut self) {
        let superseded = self.writer.view().superseded();
        if superseded != self.superseded
            && let Some(SupersededBlock { number, found, sealed }) = superseded
        {
            let number = number.get();
            warn!(number, %found, %sealed, "blocks of the head are not shown: another chain was \
                sealed or published in their place");
        }
        self.superseded = superseded;
    }

    /// Says that blocks were taken from another branch than before, if they were.
    fn tell_reorg(&self, fork_point: BlockNumberAndHash, dropped: u64, added: usize) {
        if dropped > 0
            && let Some(count) = self.board.reorganised(dropped)
        {
            info!(fork_point = fork_point.0, dropped, added, count, "the chain was reorganised");
        }
    }
}
