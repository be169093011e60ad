//! Notifications of new tips.

use std::sync::Arc;

use hyper::body::Bytes;
use tokio::sync::watch;
use tracing::{info, warn};

use super::{MemberIndex, Upstreams};
use crate::client::Upstream;

/// News of a node's tips. They say when to look: what the tip is, is asked of those that decide it.
#[derive(Debug)]
pub struct TipNews {
    upstream: Arc<Upstream>,
    news: watch::Receiver<Option<Bytes>>,
    member_index: MemberIndex,
    /// The connection that was subscribed on.
    connection: u64,
}

impl TipNews {
    /// Waits for the next tip. Of what came between two waits only the newest counts.
    pub async fn next(&mut self) {
        // The other end lives as long as the node, which is kept here.
        let _ = self.news.changed().await;
    }

    /// Whether they are of the preferred node.
    #[must_use]
    pub fn is_of_preferred(&self) -> bool {
        self.member_index == 0
    }

    /// Whether news can still come. A connection that was made anew has no subscription.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.upstream.is_connected() && self.upstream.connection_count() == self.connection
    }
}

impl Upstreams {
    /// Subscribes to the tips of the first node that offers it.
    pub async fn subscribe(&self) -> Option<TipNews> {
        for (member_index, member) in self.members.iter().enumerate() {
            let Some(news) = member.upstream.news() else { continue };
            if !self.is_ready(member).await {
                continue;
            }
            match member.upstream.subscribe_tips().await {
                Ok(()) => {
                    if member.may_log() {
                        let upstream = member.upstream.name();
                        info!(upstream, "the node tells new tips by subscription");
                    }
                    let upstream = Arc::clone(&member.upstream);
                    let connection = upstream.connection_count();
                    return Some(TipNews { upstream, news, member_index, connection });
                }
                Err(error) if member.may_log() => {
                    warn!(upstream = member.upstream.name(), %error, "the node offers no subscription");
                }
                Err(_) => {}
            }
        }
        None
    }
}
