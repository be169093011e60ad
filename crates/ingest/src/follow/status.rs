//! How following goes: cheap to look at, from any thread.
//!
//! Knows: the newest block here and there, since when they differ, when a node was last heard, what
//! last went wrong, and a conflict if there is one.
//! Never knows: who looks, or what for.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use chain::BlockRange;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::FollowError;
use crate::upstream::{UpstreamStatus, Upstreams, UpstreamsError};

/// The time between two blocks, where no headers tell it.
const BLOCK_TIME_DEFAULT: Duration = Duration::from_secs(12);

/// Two chains that differ at a block that is final here.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("block {number} is final as {ours} here, and {theirs} by the upstream")]
pub struct Conflict {
    /// Which block.
    pub number: u64,
    /// Its hash here.
    pub ours: B256,
    /// Its hash there.
    pub theirs: B256,
}

/// How following goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Our newest block.
    pub tip: Option<(u64, B256)>,
    /// The number of the newest block that nodes told of.
    pub upstream_tip: Option<u64>,
    /// When the preferred node or the quorum last told its tip.
    pub heard_at: Option<Instant>,
    /// Why they did not the last time, if they did not.
    pub tip_error: Option<String>,
    /// The first block that was told of and is not here, and when it was told of.
    pub awaited: Option<(u64, Instant)>,
    /// The time between two blocks, by the newest headers that are held.
    pub block_time: Option<Duration>,
    /// How often nodes without subscriptions are asked for their tip.
    pub poll_every: Duration,
    /// What is final here is not what the nodes have: nothing is followed.
    pub conflict: Option<Conflict>,
    /// Blocks that were left out because the tip was too far.
    pub gap: Option<BlockRange>,
    /// Why the tip could not be followed the last time, if it could not.
    pub last_error: Option<String>,
    /// Why the backfill in the background does not go on, if it does not.
    pub backfill_error: Option<String>,
    /// The nodes.
    pub upstreams: Vec<UpstreamStatus>,
}

impl Status {
    /// How many blocks are told of and not here.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        Some(self.upstream_tip?.saturating_sub(self.tip?.0))
    }

    /// How long the nodes have been silent, if that is longer than two blocks take.
    #[must_use]
    pub fn silence(&self) -> Option<Duration> {
        self.late(self.heard_at?)
    }

    /// How long a block is awaited that was told of, if that is longer than two blocks take.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.late(self.awaited?.1)
    }

    fn late(&self, since: Instant) -> Option<Duration> {
        let block_time = self.block_time.unwrap_or(BLOCK_TIME_DEFAULT).max(self.poll_every);
        Some(since.elapsed()).filter(|elapsed| *elapsed > block_time.saturating_mul(2))
    }

    fn set_tip(&mut self, tip: Option<(u64, B256)>) {
        self.tip = tip;
        let reached = tip.map_or(0, |(number, _)| number);
        if self.awaited.is_some_and(|(number, _)| tip.is_some() && number <= reached) {
            let next = self.upstream_tip.filter(|number| *number > reached);
            self.awaited = next.map(|number| (number, Instant::now()));
        }
    }
}

/// Where the follower writes how it goes.
#[derive(Debug)]
pub struct StatusBoard {
    upstreams: Arc<Upstreams>,
    status: watch::Sender<Status>,
}

impl StatusBoard {
    pub(super) fn new(upstreams: Arc<Upstreams>) -> Self {
        Self { upstreams, status: watch::Sender::default() }
    }

    /// How it goes now.
    #[must_use]
    pub fn status(&self) -> Status {
        let status = self.status.borrow().clone();
        Status { upstreams: self.upstreams.statuses(), ..status }
    }

    /// Hears of every change, but for those of the nodes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// The time between two blocks.
    pub(super) fn block_time(&self) -> Duration {
        self.status.borrow().block_time.unwrap_or(BLOCK_TIME_DEFAULT)
    }

    pub(super) fn set_block_time(&self, block_time: Option<Duration>) {
        self.status.send_if_modified(|status| {
            let before = std::mem::replace(&mut status.block_time, block_time);
            before != block_time
        });
    }

    pub(super) fn begun(&self, tip: Option<(u64, B256)>, poll_every: Duration) {
        self.status.send_modify(|status| {
            (status.tip, status.poll_every) = (tip, poll_every);
        });
    }

    /// The preferred node or the quorum told its tip.
    pub(super) fn heard_of(&self, number: u64) {
        self.status.send_modify(|status| {
            status.upstream_tip = Some(number);
            let now = Instant::now();
            status.heard_at = Some(now);
            let is_here = status.tip.is_some_and(|(tip, _)| number <= tip);
            status.awaited = if is_here { None } else { status.awaited.or(Some((number, now))) };
            if status.tip_error.take().is_some() {
                info!(number, "the upstream tells its tip again");
            }
        });
    }

    /// Nobody told a tip. Tells whether this is news.
    pub(super) fn silent(&self, error: &UpstreamsError) -> bool {
        let mut is_news = false;
        self.status.send_modify(|status| {
            is_news = status.tip_error.replace(error.to_string()).is_none();
        });
        is_news
    }

    pub(super) fn left_gap(&self, gap: Option<BlockRange>) {
        self.status.send_modify(|status| status.gap = gap);
    }

    pub(super) fn backfilled(&self, error: Option<String>) {
        self.status.send_modify(|status| status.backfill_error = error);
    }

    pub(super) fn stepped(&self, tip: Option<(u64, B256)>) {
        self.status.send_modify(|status| {
            status.set_tip(tip);
            let (conflict, error) = (status.conflict.take(), status.last_error.take());
            if conflict.is_some() || error.is_some() {
                info!("following again");
            }
        });
    }

    /// Tells whether this is news.
    pub(super) fn failed(&self, tip: Option<(u64, B256)>, error: &FollowError) -> bool {
        let said = error.to_string();
        let is_news = self.status.borrow().last_error.as_ref() != Some(&said);
        self.status.send_modify(|status| {
            status.set_tip(tip);
            status.last_error = Some(said);
        });
        is_news
    }

    /// Tells whether this is news.
    pub(super) fn conflicted(&self, conflict: Conflict) -> bool {
        let is_news = self.status.borrow().conflict != Some(conflict);
        self.status.send_modify(|status| status.conflict = Some(conflict));
        is_news
    }
}
