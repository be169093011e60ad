//! Several nodes in order of preference: who is asked, who rests, who is not believed any more.
//!
//! Knows: that the first that is well is asked, that one that fails rests for a while and one that lied
//! for long, and how many must agree on which block is canonical.
//! Never knows: how a lie is found out; whoever proves a block tells.

mod member;

use std::sync::Arc;
use std::time::Duration;

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use chain::ChainSpec;
use futures_util::future::{join_all, try_join_all};
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{error, info, warn};

use super::address::UpstreamUrl;
use super::client::{AskLimits, Upstream};
use super::error::{AskError, FetchError};
use super::fetch::{BlockTag, Fetched, HeaderClaim, Identity, Which};

pub use member::{Health, Member, UpstreamStatus};

/// How far below the newest common block a quorum is looked for.
const QUORUM_DEPTH: u64 = 4;
/// For what a node says of the places of blocks, however often it is asked: a few bytes, and another
/// node may know.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);
/// The same of a node that failed the last time, while another is well.
const CLAIM_TIMEOUT_FAILED: Duration = Duration::from_secs(2);

/// How long nodes are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestLimits {
    /// After a first failure; twice as long after each further one.
    pub failure_begin: Duration,
    /// After any number of failures at the most.
    pub failure_max: Duration,
    /// After a lie, or where a node cannot tell what is needed.
    pub set_aside: Duration,
}

impl Default for RestLimits {
    fn default() -> Self {
        Self {
            failure_begin: Duration::from_secs(1),
            failure_max: Duration::from_mins(1),
            set_aside: Duration::from_hours(1),
        }
    }
}

/// Why no node could answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UpstreamsError {
    /// Every one of them fails, rests or was set aside.
    #[error("no upstream answers: {0}")]
    NoneLeft(String),
    /// None of them has the block.
    #[error("no upstream has block {number}: {said}")]
    NotThere {
        /// Which block.
        number: u64,
        /// What each of them said.
        said: String,
    },
    /// None of them gives the block in a form that this build knows.
    #[error("{said}")]
    UnknownFork {
        /// Which block.
        number: u64,
        /// What each of them said.
        said: String,
    },
    /// A node of another chain.
    #[error("upstream {name} has {what} {found}, expected {expected}: it follows another chain")]
    Foreign {
        /// Which node.
        name: String,
        /// What is compared.
        what: &'static str,
        /// What it has.
        found: String,
        /// What the data folder or the flags say.
        expected: String,
    },
    /// Too few agree.
    #[error("{quorum} upstreams must agree on a block, and they do not: {said}")]
    NoQuorum {
        /// How many must.
        quorum: usize,
        /// What they say.
        said: String,
    },
    /// Nobody wants the answer any more.
    #[error("told to stop")]
    Stopped,
    /// A node cannot be asked at all.
    #[error("upstream {name}: {cause}")]
    Unusable {
        /// Which node.
        name: String,
        /// Why.
        cause: AskError,
    },
}

/// The nodes.
#[derive(Debug)]
pub struct Upstreams {
    members: Vec<Member>,
    quorum: usize,
    rest: RestLimits,
    chain_id: Option<u64>,
    genesis_hash: Option<B256>,
}

/// A node by its place in the order of preference.
pub(crate) type Place = usize;

/// What a node is asked about, as far as it says how long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The places of blocks: short.
    Claims,
    /// Blocks, which may be long and may be many.
    Blocks,
}

impl Upstreams {
    /// Nodes of a chain, the preferred one first. Nothing is asked yet.
    pub fn new(
        urls: Vec<UpstreamUrl>,
        spec: &ChainSpec,
        quorum: usize,
        ask: AskLimits,
        rest: RestLimits,
    ) -> Result<Self, UpstreamsError> {
        if quorum > urls.len() || urls.is_empty() {
            let said = format!("{} upstreams are given", urls.len());
            return Err(UpstreamsError::NoQuorum { quorum, said });
        }
        let mut members = Vec::with_capacity(urls.len());
        for url in urls {
            let name = url.name().to_owned();
            let upstream = Upstream::new(url, ask);
            let upstream = upstream.map_err(|cause| UpstreamsError::Unusable { name, cause })?;
            members.push(Member::new(Arc::new(upstream)));
        }
        let (chain_id, genesis_hash) = (spec.chain_id(), spec.genesis_hash());
        Ok(Self { members, quorum: quorum.max(1), rest, chain_id, genesis_hash })
    }

    /// How many must agree on which block is canonical.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// What is known of every node now.
    #[must_use]
    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        self.members.iter().map(Member::status).collect()
    }

    /// What a node is called.
    #[must_use]
    pub fn name(&self, place: usize) -> &str {
        self.members.get(place).map_or("unknown", |member| member.upstream.name())
    }

    /// Asks every node which chain it follows. One of another chain is an error; one that does not
    /// answer is asked again before it is first used. Tells what the first that answered said.
    pub async fn introduce(&self) -> Result<Identity, UpstreamsError> {
        let asked = self.members.iter().map(|member| async move {
            match member.upstream.fetch_identity().await {
                // At once: others may be silent.
                Ok(identity) => {
                    self.check_identity(member.upstream.name(), identity, None)?;
                    Ok(Some((member, identity)))
                }
                Err(error) => {
                    member.failed(&error.to_string(), self.rest);
                    Ok(None)
                }
            }
        });
        let mut first: Option<Identity> = None;
        for (member, identity) in try_join_all(asked).await?.into_iter().flatten() {
            self.check_identity(member.upstream.name(), identity, first)?;
            member.identified();
            first.get_or_insert(identity);
        }
        first.ok_or_else(|| self.none_left())
    }

    /// The blob parameters that the first node that tells any goes by, with the times from which on.
    pub async fn fetch_blob_params(&self) -> Vec<(u64, BlobParams)> {
        for member in &self.members {
            let told = member.upstream.fetch_blob_params().await;
            if !told.is_empty() {
                return told;
            }
        }
        Vec::new()
    }

    fn check_identity(
        &self,
        name: &str,
        found: Identity,
        other: Option<Identity>,
    ) -> Result<(), UpstreamsError> {
        let foreign = |what, found: String, expected: String| {
            Err(UpstreamsError::Foreign { name: name.to_owned(), what, found, expected })
        };
        let chain_id = self.chain_id.or(other.map(|other| other.chain_id));
        if let Some(expected) = chain_id.filter(|expected| *expected != found.chain_id) {
            return foreign("chain id", found.chain_id.to_string(), expected.to_string());
        }
        let genesis_hash = self.genesis_hash.or(other.and_then(|other| other.genesis_hash));
        match found.genesis_hash.zip(genesis_hash) {
            Some((found, expected)) if found != expected => {
                foreign("genesis hash", found.to_string(), expected.to_string())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Asks the nodes in their order until one answers. When all rest, waits for the first of them
    /// until `patience` is over. A node that is on a fork that this build does not know is passed over
    /// where blocks of it are wanted.
    async fn ask_any<T>(
        &self,
        wanted: &[Which],
        patience: Duration,
        subject: Subject,
        ask: impl AsyncFn(&Upstream) -> Result<T, FetchError>,
    ) -> Result<(Place, T), UpstreamsError> {
        let until = Instant::now().checked_add(patience);
        loop {
            let mut missing: Option<(u64, Vec<String>)> = None;
            let mut unknown: Option<(u64, String)> = None;
            let mut refused: Vec<String> = Vec::new();
            for (place, member) in self.members.iter().enumerate() {
                if member.is_rested()
                    && let Some((number, said)) = member.unknown_among(wanted)
                {
                    unknown.get_or_insert((number, said));
                    continue;
                }
                let error = match self.ask_member(member, subject, &ask).await {
                    None => continue,
                    Some(Ok(answer)) => return Ok((place, answer)),
                    Some(Err(error)) => error,
                };
                if let FetchError::NotThere { number } | FetchError::Elsewhere { number } = error {
                    let said = format!("{}: {error}", member.upstream.name());
                    missing.get_or_insert((number, Vec::new())).1.push(said);
                } else if let FetchError::UnknownFork { number, .. } = error {
                    let said = self.left_known_forks(place, &error);
                    unknown.get_or_insert((number, said));
                } else if error.is_lie() {
                    self.lied(place, &error.to_string());
                } else if error.is_refusal() && patience.is_zero() && subject == Subject::Blocks {
                    // It answers: another is asked for this block, and its word of the tip counts on.
                    refused.push(format!("{}: {error}", member.upstream.name()));
                } else {
                    member.failed(&error.to_string(), self.rest);
                }
            }
            if let Some((number, said)) = unknown {
                return Err(UpstreamsError::UnknownFork { number, said });
            }
            if let Some((number, said)) = missing {
                return Err(UpstreamsError::NotThere { number, said: said.join("; ") });
            }
            if !refused.is_empty() {
                return Err(UpstreamsError::NoneLeft(refused.join("; ")));
            }
            let soonest = self.members.iter().filter_map(Member::rests_until).min();
            match soonest.filter(|time| until.is_none_or(|until| *time <= until)) {
                Some(time) => sleep_until(time).await,
                None => return Err(self.none_left()),
            }
        }
    }

    /// What one node answers; `None` if it may not be asked now.
    async fn ask_member<T>(
        &self,
        member: &Member,
        subject: Subject,
        ask: &impl AsyncFn(&Upstream) -> Result<T, FetchError>,
    ) -> Option<Result<T, FetchError>> {
        let asking = async {
            if !self.is_ready(member).await {
                return None;
            }
            Some(ask(&member.upstream).await)
        };
        let limit = match subject {
            Subject::Blocks => None,
            Subject::Claims if member.is_failing() && self.is_any_well() => {
                Some(CLAIM_TIMEOUT_FAILED)
            }
            Subject::Claims => Some(CLAIM_TIMEOUT),
        };
        let answered = match limit {
            Some(limit) => {
                let late = |_| Some(Err(AskError::Late(limit).into()));
                timeout(limit, asking).await.unwrap_or_else(late)
            }
            None => asking.await,
        };
        if matches!(answered, Some(Ok(_))) {
            member.answered();
        }
        answered
    }

    fn is_any_well(&self) -> bool {
        self.members.iter().any(|member| member.is_rested() && !member.is_failing())
    }

    /// Whether a node may be asked now: it does not rest, and is known to follow this chain.
    async fn is_ready(&self, member: &Member) -> bool {
        if !member.is_rested() {
            return false;
        }
        if member.is_identified() {
            return true;
        }
        let name = member.upstream.name();
        match member.upstream.fetch_identity().await {
            Ok(identity) => match self.check_identity(name, identity, None) {
                Ok(()) => member.identified(),
                Err(cause) => {
                    error!(upstream = name, %cause, "set aside");
                    member.lied(&cause.to_string(), self.rest);
                    return false;
                }
            },
            Err(cause) => {
                member.failed(&cause.to_string(), self.rest);
                return false;
            }
        }
        true
    }

    /// What is needed to rebuild some blocks, and who told it.
    pub async fn fetch_blocks(
        &self,
        wanted: &[Which],
        patience: Duration,
    ) -> Result<(Place, Vec<Fetched>), UpstreamsError> {
        let ask = async |upstream: &Upstream| upstream.fetch_blocks(wanted).await;
        self.ask_any(wanted, patience, Subject::Blocks, ask).await
    }

    /// What the first node that is well says of the places of some blocks.
    pub async fn fetch_claims(
        &self,
        tags: &[BlockTag],
        patience: Duration,
    ) -> Result<(Place, Vec<Option<HeaderClaim>>), UpstreamsError> {
        let ask = async |upstream: &Upstream| upstream.fetch_claims(tags).await;
        self.ask_any(&[], patience, Subject::Claims, ask).await
    }

    /// The blocks below one, down to `first`, by the word of the first node that has them as its
    /// ancestors: others may be on other branches.
    pub async fn fetch_ancestors(
        &self,
        of: HeaderClaim,
        first: u64,
    ) -> Result<Vec<HeaderClaim>, UpstreamsError> {
        let tags: Vec<BlockTag> = (first..of.number).rev().map(BlockTag::Number).collect();
        let ask = async |upstream: &Upstream| {
            let mut above = of;
            let mut ancestors = Vec::with_capacity(tags.len());
            for claim in upstream.fetch_claims(&tags).await? {
                let number = above.number.saturating_sub(1);
                let linked = claim.filter(|claim| claim.hash == above.parent_hash);
                above = linked.ok_or(FetchError::Elsewhere { number })?;
                ancestors.push(above);
            }
            Ok(ancestors)
        };
        let told = self.ask_any(&[], Duration::ZERO, Subject::Claims, ask).await;
        told.map(|(_, ancestors)| ancestors)
    }

    /// The block of a number, or of a name, on which so many nodes as must agree do. `None` if they do
    /// not, or do not have it.
    pub async fn fetch_agreed(&self, tag: BlockTag) -> Result<Option<HeaderClaim>, UpstreamsError> {
        if self.quorum == 1 {
            let (_, claims) = self.fetch_claims(&[tag], Duration::ZERO).await?;
            return Ok(claims.into_iter().next().flatten());
        }
        let mut claims: Vec<HeaderClaim> =
            self.ask_all(tag).await.into_iter().map(|(_, claim)| claim).collect();
        // Names mean another block to each of them: the highest that the others have too counts.
        claims.sort_unstable();
        claims.dedup();
        while let Some(claim) = claims.pop() {
            if self.is_agreed(claim).await {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// The block that so many nodes as must agree call their tip, or have below it.
    pub async fn fetch_tip(&self) -> Result<HeaderClaim, UpstreamsError> {
        if self.quorum == 1 {
            let (_, claims) = self.fetch_claims(&[BlockTag::Latest], Duration::ZERO).await?;
            return claims.into_iter().next().flatten().ok_or_else(|| self.none_left());
        }
        let tips = self.ask_all(BlockTag::Latest).await;
        let mut numbers: Vec<u64> = tips.iter().map(|(_, claim)| claim.number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        // Higher than this only too few are; lower, each tip is where some may agree.
        let mut numbers = numbers.split_off(numbers.len().min(self.quorum.saturating_sub(1)));
        let lowest = numbers.last().copied().unwrap_or(0);
        numbers.extend((lowest.saturating_sub(QUORUM_DEPTH)..lowest).rev());
        numbers.dedup();
        for number in numbers {
            let claims = self.ask_all(BlockTag::Number(number)).await;
            if let Some(claim) = agreed(&claims, self.quorum) {
                return Ok(claim);
            }
        }
        Err(self.no_quorum(&tips))
    }

    /// Whether so many nodes as must agree have this block under its number.
    pub async fn is_agreed(&self, claim: HeaderClaim) -> bool {
        if self.quorum == 1 {
            return true;
        }
        let claims = self.ask_all(BlockTag::Number(claim.number)).await;
        claims.iter().filter(|(_, other)| other.hash == claim.hash).count() >= self.quorum
    }

    /// What every node that is well has under a name.
    pub async fn ask_all(&self, tag: BlockTag) -> Vec<(Place, HeaderClaim)> {
        let tags = [tag];
        let asked = self.members.iter().enumerate().map(|(place, member)| async move {
            let ask = async |upstream: &Upstream| upstream.fetch_claims(&tags).await;
            match self.ask_member(member, Subject::Claims, &ask).await? {
                Ok(claims) => Some((place, claims.into_iter().next().flatten()?)),
                Err(error) => {
                    member.failed(&error.to_string(), self.rest);
                    None
                }
            }
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// A node told what is not true: it is named, counted and not asked for long.
    pub fn lied(&self, place: Place, said: &str) {
        if let Some(member) = self.members.get(place)
            && member.lied(said, self.rest)
        {
            error!(upstream = member.upstream.name(), said, "set aside: it told what is not true");
        }
    }

    /// A node gave a block of a fork that this build does not know, which is no lie: it is named once
    /// and asked for other blocks. Tells what is to be said of it.
    pub fn left_known_forks(&self, place: Place, cause: &FetchError) -> String {
        let said = format!("upstream {}: {cause}", self.name(place));
        if let FetchError::UnknownFork { number, hash, .. } = cause
            && let Some(member) = self.members.get(place)
            && member.left_known_forks(*number, *hash, &said)
        {
            warn!(said, "not followed there; upgrade Quipu");
        }
        said
    }

    /// What is needed to rebuild some blocks, from this node and no other.
    pub async fn fetch_blocks_of(
        &self,
        place: Place,
        wanted: &[Which],
    ) -> Result<Vec<Fetched>, UpstreamsError> {
        let member = self.members.get(place).ok_or_else(|| self.none_left())?;
        let fetched = member.upstream.fetch_blocks(wanted).await;
        fetched.map_err(|cause| UpstreamsError::NoneLeft(cause.to_string()))
    }

    /// A node cannot give what is asked of it, though it does not lie: it is not asked for long.
    pub fn unable(&self, place: Place, said: &str) {
        if let Some(member) = self.members.get(place) {
            warn!(
                upstream = member.upstream.name(),
                said, "set aside: it cannot tell what is needed"
            );
            member.unable(said, self.rest);
        }
    }

    /// Subscribes to the tips of the first node that offers it, and tells how to hear of them.
    pub async fn subscribe(&self) -> Option<TipNews> {
        for (place, member) in self.members.iter().enumerate() {
            let Some(news) = member.upstream.news() else { continue };
            if !self.is_ready(member).await {
                continue;
            }
            match member.upstream.subscribe_tips().await {
                Ok(()) => {
                    info!(upstream = member.upstream.name(), "told of new tips by subscription");
                    let upstream = Arc::clone(&member.upstream);
                    let connection = upstream.connection();
                    return Some(TipNews { upstream, news, place, connection });
                }
                Err(error) => {
                    warn!(upstream = member.upstream.name(), %error, "offers no subscription");
                }
            }
        }
        None
    }

    fn none_left(&self) -> UpstreamsError {
        let said = self.statuses().into_iter().map(|it| it.to_string()).collect::<Vec<_>>();
        UpstreamsError::NoneLeft(said.join("; "))
    }

    fn no_quorum(&self, claims: &[(Place, HeaderClaim)]) -> UpstreamsError {
        let said = |(place, claim): &(Place, HeaderClaim)| {
            format!("{} has {}:{}", self.name(*place), claim.number, claim.hash)
        };
        let said: Vec<String> = claims.iter().map(said).collect();
        UpstreamsError::NoQuorum { quorum: self.quorum, said: said.join("; ") }
    }
}

/// The claim that at least so many make.
fn agreed(claims: &[(Place, HeaderClaim)], quorum: usize) -> Option<HeaderClaim> {
    let count = |claim: &HeaderClaim| claims.iter().filter(|(_, it)| it.hash == claim.hash).count();
    claims.iter().map(|(_, claim)| *claim).find(|claim| count(claim) >= quorum)
}

/// News of a node's tips. They say when to look: what the tip is, is asked of those that decide it.
#[derive(Debug)]
pub struct TipNews {
    upstream: Arc<Upstream>,
    news: tokio::sync::watch::Receiver<Option<hyper::body::Bytes>>,
    place: Place,
    /// The connection that was subscribed on.
    connection: u64,
}

impl TipNews {
    /// Waits for the next tip. Of what came between two waits only the newest counts.
    pub async fn next(&mut self) {
        // The other end lives as long as the node, which is kept here.
        let _ = self.news.changed().await;
    }

    /// Whether the preferred node tells them.
    #[must_use]
    pub fn is_of_preferred(&self) -> bool {
        self.place == 0
    }

    /// Whether news can still come. A connection that was made anew has no subscription.
    pub async fn is_alive(&self) -> bool {
        self.upstream.is_connected().await && self.upstream.connection() == self.connection
    }
}
