//! The tip as the preferred node or the quorum has it, heard on a thread of its own.
//!
//! Knows: when the tip is asked for, and that news of a subscription wakes and decides nothing.
//! Never knows: what becomes of a tip. The follower may prove or seal for long; this never waits for
//! it, so what it writes down shows how far the follower is behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use super::StatusBoard;
use crate::upstream::{HeaderClaim, TipNews, Upstreams};

/// With a subscription nodes are asked all the same, this often: news may be lost.
const POLL_SUBSCRIBED: Duration = Duration::from_secs(6);
/// For a subscription to be agreed on.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Before it is tried again where no node agreed to one.
const SUBSCRIBE_PAUSE: Duration = Duration::from_mins(1);

/// Hears of the tip, and tells the follower and the board.
#[derive(Debug)]
pub(super) struct TipMonitor {
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) poll_every: Duration,
}

impl TipMonitor {
    /// Hears of the tip for as long as it is let. Every time it is heard of, though it is the same,
    /// the follower is told: it may have failed to reach it.
    pub(super) async fn run(self, tips: watch::Sender<Option<HeaderClaim>>) {
        let mut news: Option<TipNews> = None;
        let mut subscribe_at = Instant::now();
        loop {
            match self.upstreams.fetch_tip().await {
                Ok(tip) => {
                    self.board.heard_of(tip.number);
                    tips.send_replace(Some(tip));
                    if !is_alive(news.as_ref()).await && subscribe_at <= Instant::now() {
                        news = self.subscribe().await;
                        let pause = if news.is_some() { Duration::ZERO } else { SUBSCRIBE_PAUSE };
                        subscribe_at = Instant::now().checked_add(pause).unwrap_or(subscribe_at);
                    }
                }
                Err(error) => {
                    if self.board.silent(&error) {
                        warn!(%error, "no upstream tells its tip; serving what is here");
                    }
                }
            }
            self.wait(&mut news).await;
        }
    }

    async fn subscribe(&self) -> Option<TipNews> {
        timeout(SUBSCRIBE_TIMEOUT, self.upstreams.subscribe()).await.ok().flatten()
    }

    /// Waits for news or for the time to ask again.
    async fn wait(&self, news: &mut Option<TipNews>) {
        // Only the preferred node's news come when the tip that counts has changed.
        let is_told =
            self.upstreams.quorum() == 1 && news.as_ref().is_some_and(TipNews::is_of_preferred);
        let pause = if is_told {
            POLL_SUBSCRIBED.min(self.board.block_time()).max(self.poll_every)
        } else {
            self.poll_every
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = next_of(news) => {}
        }
    }
}

async fn is_alive(news: Option<&TipNews>) -> bool {
    match news {
        Some(news) => news.is_alive().await,
        None => false,
    }
}

/// The next of the news; never, if nobody tells any.
async fn next_of(news: &mut Option<TipNews>) {
    match news {
        Some(news) => news.next().await,
        None => std::future::pending().await,
    }
}
