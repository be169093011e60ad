//! Several nodes in order of preference. The first healthy one is asked; every one must follow our chain.

mod claims;
mod error;
mod member;
mod news;
mod verdicts;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use chain::{Activation, ChainSpec, Fork};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until, timeout};

use super::address::UpstreamUrl;
use super::ask_limits::AskLimits;
use super::client::Upstream;
use super::error::{AskError, FetchError};
use super::fetch::NodeBlock;
use super::identity::Identity;
use super::wanted_block::WantedBlock;
use crate::backoff::PauseRange;

pub use claims::AgreedTip;
pub use claims::{CLAIMS_MAX, CLAIMS_PER_STEP};
pub use error::UpstreamsError;
use member::ExcludedBlocks;
pub use member::{Member, MemberHealth, UpstreamStatus};
pub use news::TipNews;

/// For short requests about positions of blocks, retries included.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a node that failed the last time, while another is healthy.
const CLAIM_TIMEOUT_FAILED: Duration = Duration::from_secs(2);

/// For a block that a node lacks: another backend of the same address may have it. What is still absent
/// after this is pruned.
const ABSENT_PATIENCE: Duration = Duration::from_secs(30);

/// How long nodes are not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestLimits {
    /// After a first failure; twice as long after each further one.
    pub failure_begin: Duration,
    /// The longest pause after failures.
    pub failure_max: Duration,
    /// After an invalid response, or where a node follows another chain.
    pub quarantine: Duration,
    /// A node that has failed for less than this still decides what is final, where there is no quorum.
    /// A restart or a short outage of the preferred node must not let another one finalise blocks, which
    /// is irreversible; an outage of minutes only delays sealing.
    pub stand_in_after: Duration,
}

impl Default for RestLimits {
    fn default() -> Self {
        Self {
            failure_begin: Duration::from_secs(1),
            failure_max: Duration::from_mins(1),
            quarantine: Duration::from_hours(1),
            stand_in_after: Duration::from_mins(10),
        }
    }
}

impl RestLimits {
    /// The pause after one more failure.
    fn failure_pause(&self, failures: u32) -> Duration {
        PauseRange { begin: self.failure_begin, max: self.failure_max }.after(failures)
    }
}

/// The nodes.
#[derive(Debug)]
pub struct Upstreams {
    members: Vec<Member>,
    quorum: usize,
    rest: RestLimits,
    /// For an answer.
    answer_timeout: Duration,
    chain_id: Option<u64>,
    genesis_hash: Option<B256>,
    /// The last block before Byzantium, if the chain has one.
    pre_byzantium: Option<u64>,
    /// The node that last decided what is final.
    decider: AtomicUsize,
}

/// A node by its place in the order of preference.
pub(crate) type MemberIndex = usize;

/// The subject of a request: which node may answer, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuestionSubject {
    /// Positions of blocks, from any node: short.
    Claims,
    /// The same, from the node that decides.
    Decided,
    /// Blocks, which may be large.
    Blocks,
}

/// The outcome of one round of requests without an answer.
#[derive(Debug, Default)]
struct Refusals {
    missing: Option<(u64, Vec<String>)>,
    unknown: Option<(u64, String)>,
    /// Nodes that refused, or were late.
    refused: Vec<String>,
    /// Nodes whose blocks do not fit.
    differing: Vec<String>,
    /// Whether a node that gave no answer now may give it soon.
    may_come: bool,
}

impl Upstreams {
    /// Nodes of a chain, the preferred one first. Nothing is requested yet.
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
        Ok(Self {
            members,
            quorum: quorum.max(1),
            rest,
            answer_timeout: ask.answer_timeout,
            chain_id: spec.chain_id(),
            genesis_hash: spec.genesis_hash(),
            pre_byzantium: last_before_byzantium(spec),
            decider: AtomicUsize::new(0),
        })
    }

    /// How many must agree on which block is canonical.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// The current status of every node.
    #[must_use]
    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        self.members.iter().map(Member::status).collect()
    }

    /// The name of a node.
    #[must_use]
    pub fn name(&self, member_index: usize) -> &str {
        self.members.get(member_index).map_or("unknown", |member| member.upstream.name())
    }

    /// Which chain the nodes follow, according to those that decide what is final: an empty folder
    /// keeps it.
    pub async fn introduce(&self) -> Result<Identity, UpstreamsError> {
        if self.quorum > 1 {
            return self.agree_on_chain().await;
        }
        loop {
            let decider = self.decider();
            // Those before it failed for long: one that is back decides again.
            let asked = self.members.iter().take(decider.saturating_add(1));
            let asked = asked.filter(|member| !member.is_quarantined());
            let identities = join_all(asked.map(|member| self.identify(member))).await;
            if let Some(identity) = identities.into_iter().flatten().next() {
                return Ok(identity);
            }
            // If it was quarantined just now, the next one decides.
            if self.decider() == decider {
                return Err(self.none_left_for(QuestionSubject::Decided));
            }
        }
    }

    /// The chain that a quorum follows.
    async fn agree_on_chain(&self) -> Result<Identity, UpstreamsError> {
        let asked = self.members.iter().map(|member| async move {
            let is_asked = !member.is_quarantined();
            (member, if is_asked { self.identify(member).await } else { None })
        });
        let identities = join_all(asked).await;
        let count = |identity: &Identity| {
            identities.iter().filter(|(_, other)| other.as_ref() == Some(identity)).count()
        };
        let mut told = identities.iter().filter_map(|(_, identity)| *identity);
        told.find(|identity| count(identity) >= self.quorum).ok_or_else(|| {
            let said = |(member, identity): &(&Member, Option<Identity>)| match identity {
                Some(identity) => format!("{} has {identity}", member.upstream.name()),
                None => member.status().to_string(),
            };
            let said: Vec<String> = identities.iter().map(said).collect();
            UpstreamsError::NoCommonChain { quorum: self.quorum, said: said.join("; ") }
        })
    }

    /// Asks every node which chain it follows, so that one of another chain is named at once.
    pub async fn identify_all(&self) {
        join_all(self.members.iter().map(|member| self.is_ready(member))).await;
    }

    /// The blob parameters of the first node that reports any, with their activation times.
    pub async fn fetch_blob_params(&self) -> Vec<(u64, BlobParams)> {
        for member in &self.members {
            if !self.is_ready(member).await {
                continue;
            }
            let told = member.upstream.fetch_blob_params().await;
            if !told.is_empty() {
                return told;
            }
        }
        Vec::new()
    }

    /// Asks the nodes in their order until one answers. When all rest, waits for the first of them
    /// until `patience` is over, and asks again for a block that none of them has. A node that cannot
    /// give a block that is wanted is passed over.
    async fn ask_any<T>(
        &self,
        wanted: &[WantedBlock],
        patience: Duration,
        subject: QuestionSubject,
        ask: impl AsyncFn(&Upstream) -> Result<T, FetchError>,
    ) -> Result<(MemberIndex, T), UpstreamsError> {
        let until = Instant::now().checked_add(patience);
        let mut absent_until = None;
        let mut round = 0_u32;
        loop {
            let mut refusals = Refusals::default();
            let order = self.order(subject);
            let mut asked = Vec::new();
            for (index, member_index) in order.iter().enumerate() {
                let Some(member) = self.members.get(*member_index) else { continue };
                if refusals.pass_over(member, wanted) {
                    continue;
                }
                asked.push(*member_index);
                let others = order.get(index.saturating_add(1)..).unwrap_or_default();
                let limit = self.time_limit(member, subject, wanted, others);
                match self.ask_member(member, limit, &ask).await {
                    None => refusals.may_come |= self.may_return(member),
                    Some(Ok(answer)) => {
                        if subject == QuestionSubject::Blocks {
                            member.gave_blocks();
                        }
                        return Ok((*member_index, answer));
                    }
                    Some(Err(error)) => {
                        self.note_failure(*member_index, subject, patience, &error, &mut refusals);
                    }
                }
            }
            let may_come = refusals.may_come && subject == QuestionSubject::Blocks;
            let (error, soonest, until) = match refusals.into_error() {
                Some(error @ UpstreamsError::NotThere { .. }) if may_come => {
                    let now = Instant::now();
                    let again = now.checked_add(self.rest.failure_pause(round));
                    let end = || now.checked_add(patience.min(ABSENT_PATIENCE));
                    (error, again, *absent_until.get_or_insert_with(end))
                }
                Some(error) => return Err(error),
                None => {
                    // A node that is passed over is not waited for: its time may be long over.
                    let rests = asked.iter().filter_map(|it| self.rests_until(*it, subject));
                    let soonest = rests.filter(|time| *time > Instant::now()).min();
                    (self.none_left_for(subject), soonest, until)
                }
            };
            match soonest.filter(|time| until.is_none_or(|until| *time <= until)) {
                Some(time) => sleep_until(time).await,
                None => return Err(error),
            }
            round = round.saturating_add(1);
        }
    }

    /// Who is asked, one after the other.
    fn order(&self, subject: QuestionSubject) -> Vec<MemberIndex> {
        let indices = 0..self.members.len();
        match subject {
            QuestionSubject::Claims => indices.collect(),
            QuestionSubject::Decided => vec![self.decider()],
            QuestionSubject::Blocks => {
                let is_late = |member_index: &MemberIndex| {
                    self.members.get(*member_index).is_some_and(Member::is_late_with_blocks)
                };
                let (late, others): (Vec<_>, Vec<_>) = indices.partition(is_late);
                others.into_iter().chain(late).collect()
            }
        }
    }

    fn rests_until(&self, member_index: MemberIndex, subject: QuestionSubject) -> Option<Instant> {
        let member = self.members.get(member_index)?;
        match subject {
            QuestionSubject::Claims | QuestionSubject::Decided => member.rests_until(),
            QuestionSubject::Blocks => member.blocks_rest_until(),
        }
    }

    /// How long a node may take to answer, if that has a limit beside that of each try: it has where
    /// another one can be asked.
    fn time_limit(
        &self,
        member: &Member,
        subject: QuestionSubject,
        wanted: &[WantedBlock],
        others: &[MemberIndex],
    ) -> Option<Duration> {
        let can_give = |member_index: &MemberIndex| {
            self.members.get(*member_index).is_some_and(|other| {
                other.is_available()
                    && !other.is_failing()
                    && !other.is_late_with_blocks()
                    && other.excluded_among(wanted).is_none()
            })
        };
        match subject {
            QuestionSubject::Blocks => others.iter().any(can_give).then_some(self.answer_timeout),
            QuestionSubject::Claims | QuestionSubject::Decided => Some(self.claim_timeout(member)),
        }
    }

    fn claim_timeout(&self, member: &Member) -> Duration {
        let is_healthy = |member: &Member| member.is_available() && !member.is_failing();
        // A quorum waits for no node that it can do without, and may need a slow one.
        if self.quorum == 1 && member.is_failing() && self.members.iter().any(is_healthy) {
            CLAIM_TIMEOUT_FAILED
        } else {
            CLAIM_TIMEOUT
        }
    }

    /// Remembers why a node did not answer, and of whom that says something.
    fn note_failure(
        &self,
        member_index: MemberIndex,
        subject: QuestionSubject,
        patience: Duration,
        error: &FetchError,
        refusals: &mut Refusals,
    ) {
        let Some(member) = self.members.get(member_index) else { return };
        let said = format!("{}: {error}", member.upstream.name());
        let is_of_blocks = subject == QuestionSubject::Blocks;
        if let FetchError::NotThere { number, .. } | FetchError::Elsewhere { number } = error {
            refusals.missing.get_or_insert((*number, Vec::new())).1.push(said);
            let is_lasting = matches!(error, FetchError::NotThere { is_lasting: true, .. });
            refusals.may_come |= !is_lasting;
            if is_of_blocks && !is_lasting && !patience.is_zero() {
                member.late_with_blocks(&error.to_string(), self.rest);
            }
        } else if let FetchError::UnknownFork { number, .. } = error {
            let said = self.left_known_forks(member_index, error);
            refusals.unknown.get_or_insert((*number, said));
        } else if matches!(error, FetchError::Invalid { .. }) {
            self.quarantine(member_index, &error.to_string());
        } else if is_of_blocks
            && (matches!(error, FetchError::Ask(AskError::Late(_)))
                || (error.is_refusal() && !patience.is_zero()))
        {
            // Its tip still counts: old blocks that a node refuses say nothing about new ones.
            member.late_with_blocks(&error.to_string(), self.rest);
            refusals.may_come = true;
            if patience.is_zero() {
                refusals.refused.push(said);
            }
        } else if error.is_refusal() && patience.is_zero() && subject != QuestionSubject::Claims {
            // It answers: another is asked for this block, and its tip still counts.
            member.refused(&error.to_string());
            refusals.refused.push(said);
        } else {
            member.failed(&error.to_string(), self.rest);
            refusals.may_come |= self.may_return(member);
        }
    }

    /// Whether a node that does not answer now is expected to answer soon.
    fn may_return(&self, member: &Member) -> bool {
        !member.is_quarantined() && !member.has_failed_for(self.rest.stand_in_after)
    }

    /// What one node answers; `None` if it may not be asked now, or turns out to be of another chain.
    async fn ask_member<T>(
        &self,
        member: &Member,
        limit: Option<Duration>,
        ask: &impl AsyncFn(&Upstream) -> Result<T, FetchError>,
    ) -> Option<Result<T, FetchError>> {
        let asking = async {
            if !self.is_ready(member).await {
                return None;
            }
            let answered = ask(&member.upstream).await;
            // An answer that came over a new connection may be of another node.
            if answered.is_ok() && !self.is_ready(member).await {
                return None;
            }
            Some(answered)
        };
        let answered = match limit {
            Some(limit) => {
                let late = |_| Some(Err(member.upstream.late(limit).into()));
                timeout(limit, asking).await.unwrap_or_else(late)
            }
            None => asking.await,
        };
        if matches!(answered, Some(Ok(_))) {
            member.answered();
        }
        answered
    }

    /// Whether a node may be asked now: it does not rest, and is known to follow this chain.
    async fn is_ready(&self, member: &Member) -> bool {
        if !member.is_available() {
            return false;
        }
        if member.is_identified() {
            return true;
        }
        let _identifying = member.identifying.lock().await;
        member.is_identified() || self.identify(member).await.is_some()
    }

    /// Asks a node which chain it follows. One of another chain is quarantined, one that does not answer
    /// backs off.
    async fn identify(&self, member: &Member) -> Option<Identity> {
        let time = self.claim_timeout(member);
        let asked = timeout(time, member.upstream.fetch_identity()).await;
        let asked = asked.unwrap_or_else(|_| Err(member.upstream.late(time).into()));
        match asked {
            Ok(identity) => {
                if let Some(difference) = identity.find_difference(self.chain_id, self.genesis_hash)
                {
                    let reason = format!("it follows another chain: {difference}");
                    member.quarantine(&reason, false, self.rest);
                    return None;
                }
                member.identified();
                Some(identity)
            }
            Err(cause) => {
                member.failed(&cause.to_string(), self.rest);
                None
            }
        }
    }

    /// Fetches what is needed to rebuild some blocks, and says from which node.
    pub async fn fetch_blocks(
        &self,
        wanted: &[WantedBlock],
        patience: Duration,
    ) -> Result<(MemberIndex, Vec<NodeBlock>), UpstreamsError> {
        let ask = async |upstream: &Upstream| upstream.fetch_blocks(wanted).await;
        self.ask_any(wanted, patience, QuestionSubject::Blocks, ask).await
    }

    /// Fetches what is needed to rebuild some blocks from this node.
    pub async fn fetch_blocks_of(
        &self,
        member_index: MemberIndex,
        wanted: &[WantedBlock],
    ) -> Result<Vec<NodeBlock>, UpstreamsError> {
        let member = self.members.get(member_index).ok_or_else(|| self.none_left())?;
        let fetched = member.upstream.fetch_blocks(wanted).await;
        fetched.map_err(|cause| UpstreamsError::NoneLeft(cause.to_string()))
    }

    fn none_left_for(&self, subject: QuestionSubject) -> UpstreamsError {
        match self.members.get(self.decider()) {
            Some(member) if subject == QuestionSubject::Decided && self.members.len() > 1 => {
                UpstreamsError::Undecided {
                    name: member.upstream.name().to_owned(),
                    said: member.status().to_string(),
                    stand_in_after: self.rest.stand_in_after,
                }
            }
            Some(_) | None => self.none_left(),
        }
    }

    fn none_left(&self) -> UpstreamsError {
        let said = self.statuses().into_iter().map(|it| it.to_string()).collect::<Vec<_>>();
        UpstreamsError::NoneLeft(said.join("; "))
    }
}

fn last_before_byzantium(spec: &ChainSpec) -> Option<u64> {
    let mut forks = spec.forks()?.iter();
    let (_, begins) = forks.find(|(fork, _)| *fork == Fork::Byzantium)?;
    match begins {
        Activation::Block(first) => first.checked_sub(1),
        Activation::Time(_) => None,
    }
}

impl Refusals {
    /// Whether a node is known to be unable to give these blocks; if so, why is noted.
    fn pass_over(&mut self, member: &Member, wanted: &[WantedBlock]) -> bool {
        if !member.is_available() {
            return false;
        }
        let Some((blocks, number, reason)) = member.excluded_among(wanted) else { return false };
        let named = || format!("{}: {reason}", member.upstream.name());
        match blocks {
            ExcludedBlocks::UpTo(_) => self.refused.push(named()),
            ExcludedBlocks::ByNumber { .. } => self.differing.push(named()),
            ExcludedBlocks::UnknownFork { .. } => {
                self.unknown.get_or_insert((number, reason));
            }
        }
        true
    }

    /// Why there is no answer, if waiting does not help.
    fn into_error(self) -> Option<UpstreamsError> {
        let Self { missing, unknown, refused, differing, may_come } = self;
        if let Some((number, said)) = unknown {
            return Some(UpstreamsError::UnknownFork { number, said, is_settled: !may_come });
        }
        if let Some((number, said)) = missing {
            return Some(UpstreamsError::NotThere { number, said: said.join("; ") });
        }
        if !refused.is_empty() {
            return Some(UpstreamsError::NoneLeft(refused.join("; ")));
        }
        let said = differing.join("; ");
        (!differing.is_empty() && !may_come).then_some(UpstreamsError::OtherBranch { said })
    }
}
