//! How following goes: cheap to look at, from any thread.
//!
//! Knows: the newest block here and there, what last went wrong, and a conflict if there is one.
//! Never knows: who looks, or what for.

use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockRange;
use thiserror::Error;
use tokio::sync::watch;
use tracing::info;

use super::FollowError;
use crate::upstream::{UpstreamStatus, Upstreams};

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

    pub(super) fn heard_of(&self, number: u64) {
        self.status.send_modify(|status| status.upstream_tip = Some(number));
    }

    pub(super) fn left_gap(&self, gap: Option<BlockRange>) {
        self.status.send_modify(|status| status.gap = gap);
    }

    pub(super) fn backfilled(&self, error: Option<String>) {
        self.status.send_modify(|status| status.backfill_error = error);
    }

    pub(super) fn stepped(&self, tip: Option<(u64, B256)>) {
        self.status.send_modify(|status| {
            status.tip = tip;
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
            status.tip = tip;
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
