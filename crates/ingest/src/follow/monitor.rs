//! The tip as the preferred node or the quorum has it, heard on a thread of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use node::{AgreedTip, TipNews, Upstreams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::warn;

use super::StatusBoard;

/// With a subscription nodes are asked all the same, this often: news may be lost.
const POLL_SUBSCRIBED: Duration = Duration::from_secs(6);
/// For a subscription to be agreed on.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Before it is tried again where no node agreed to one.
const SUBSCRIBE_PAUSE: Duration = Duration::from_mins(1);
/// The tip is not asked for more often than this because of news, unless it is polled more often: a
/// node may send any number of them.
const NEWS_PAUSE: Duration = Duration::from_millis(100);

/// Hears of the tip, and tells the follower and the board.
#[derive(Debug)]
pub(super) struct TipMonitor {
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) poll_every: Duration,
}

/// A subscription that is being agreed on.
type PendingSubscription = Pin<Box<dyn Future<Output = Option<TipNews>> + Send>>;

/// Where the monitor hears of new tips.
#[derive(Default)]
struct NewsSource {
    news: Option<TipNews>,
    /// Polled while the monitor waits: a node that does not answer holds up nothing.
    subscribing: Option<PendingSubscription>,
    subscribe_at: Option<Instant>,
}

impl TipMonitor {
    /// Hears of the tip for as long as it is let. Every time it is heard of, though it is the same,
    /// the follower is told: it may have failed to reach it.
    pub(super) async fn run(self, tips: watch::Sender<Option<AgreedTip>>) {
        let mut source = NewsSource::default();
        loop {
            let asked_at = Instant::now();
            match self.upstreams.fetch_tip().await {
                Ok(tip) => {
                    self.board.heard_of(tip);
                    tips.send_replace(Some(tip));
                    source.subscribe_if_due(&self.upstreams);
                }
                Err(error) => {
                    if self.board.silent(&error) {
                        warn!(%error, "no upstream reports its tip; retrying, and serving stored blocks only");
                    }
                }
            }
            self.wait(&mut source, asked_at).await;
        }
    }

    /// Waits for news or for the time to ask again.
    async fn wait(&self, source: &mut NewsSource, asked_at: Instant) {
        // Only the preferred node's news come when the tip that counts has changed.
        let is_told = self.upstreams.quorum() == 1
            && source.news.as_ref().is_some_and(TipNews::is_of_preferred);
        let pause = if is_told {
            POLL_SUBSCRIBED.min(self.board.block_time()).max(self.poll_every)
        } else {
            self.poll_every
        };
        let news_at = asked_at.checked_add(NEWS_PAUSE.min(self.poll_every)).unwrap_or(asked_at);
        tokio::select! {
            () = sleep(pause) => {}
            () = source.next() => sleep_until(news_at).await,
        }
    }
}

impl NewsSource {
    /// Begins to subscribe if there is no subscription and it is time to.
    fn subscribe_if_due(&mut self, upstreams: &Arc<Upstreams>) {
        let is_alive = self.news.as_ref().is_some_and(TipNews::is_alive);
        let is_due = self.subscribe_at.is_none_or(|time| time <= Instant::now());
        if is_alive || self.subscribing.is_some() || !is_due {
            return;
        }
        self.news = None;
        let upstreams = Arc::clone(upstreams);
        let subscribing =
            async move { timeout(SUBSCRIBE_TIMEOUT, upstreams.subscribe()).await.ok().flatten() };
        self.subscribing = Some(Box::pin(subscribing));
    }

    /// Waits for the next of the news, or for a subscription to begin; for ever, if there is neither.
    async fn next(&mut self) {
        if let Some(subscribing) = &mut self.subscribing {
            self.news = subscribing.await;
            self.subscribing = None;
            let pause = if self.news.is_some() { Duration::ZERO } else { SUBSCRIBE_PAUSE };
            self.subscribe_at = Instant::now().checked_add(pause);
            return;
        }
        match &mut self.news {
            Some(news) => news.next().await,
            None => std::future::pending().await,
        }
    }
}
