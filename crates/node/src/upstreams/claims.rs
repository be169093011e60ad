//! Which block is the tip, and what is final: according to one node, or to a quorum. Another node may
//! stand in for the preferred one for the tip; what is final only the preferred one says, until it has
//! failed for long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{join_all, ready};
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::warn;

use super::{Member, MemberIndex, QuestionSubject, Upstreams, UpstreamsError};
use crate::client::Upstream;
use crate::error::FetchError;
use crate::fetch::{BlockTag, HeaderClaim};

/// How far below the tips of as many nodes as must agree a block that they share is looked for. Branches
/// of honest nodes part by a few blocks; those that share nothing within two epochs follow two chains.
const QUORUM_DEPTH: u64 = 64;
/// So much later than a quorum the other nodes may answer. Then they are late, and rest: a node that the
/// quorum can do without holds up nothing, and one that is a little slower is still heard.
const QUORUM_GRACE: Duration = Duration::from_secs(1);

/// Headers that are requested in one message on the way down a branch.
pub const CLAIMS_PER_STEP: u64 = 32;
/// Headers that are followed down a branch at most: linked headers cost a misbehaving node nothing.
pub const CLAIMS_MAX: u64 = 1 << 16;
/// Longest time for the walk from the block of one node down to that of another.
const WALK_TIMEOUT: Duration = Duration::from_mins(1);

/// What nodes have under a name or a number, and how many answered, also those that have none.
type TagAnswers = (Vec<(MemberIndex, HeaderClaim)>, usize);

/// The tip that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedTip {
    /// The block.
    pub claim: HeaderClaim,
    /// The highest number that a quorum has reached, each node on its own branch.
    pub reached: u64,
    /// The node that said so, by its place in the order of preference; 0 for a quorum.
    pub member_index: usize,
}

impl Upstreams {
    /// Positions of some blocks according to the first healthy node.
    pub async fn fetch_claims(
        &self,
        tags: &[BlockTag],
        patience: Duration,
    ) -> Result<(MemberIndex, Vec<Option<HeaderClaim>>), UpstreamsError> {
        let ask = async |upstream: &Upstream| upstream.fetch_claims(tags).await;
        self.ask_any(&[], patience, QuestionSubject::Claims, ask).await
    }

    /// The blocks below one, down to `first`, according to the first node that has them as its
    /// ancestors: others may be on other branches.
    pub async fn fetch_ancestors(
        &self,
        of: HeaderClaim,
        first: u64,
    ) -> Result<Vec<HeaderClaim>, UpstreamsError> {
        let ask = async |upstream: &Upstream| fetch_linked(upstream, of, first).await;
        let told = self.ask_any(&[], Duration::ZERO, QuestionSubject::Claims, ask).await;
        told.map(|(_, ancestors)| ancestors)
    }

    /// The blocks below one, down to `first`, according to this node alone. `None` if it does not
    /// answer, or has other blocks in their places.
    pub async fn fetch_ancestors_of(
        &self,
        member_index: MemberIndex,
        of: HeaderClaim,
        first: u64,
    ) -> Option<Vec<HeaderClaim>> {
        let member = self.members.get(member_index)?;
        let ask = async |upstream: &Upstream| fetch_linked(upstream, of, first).await;
        match self.ask_member(member, Some(self.claim_timeout(member)), &ask).await? {
            Ok(ancestors) => Some(ancestors),
            // Another node behind the same address may have answered.
            Err(FetchError::Elsewhere { .. }) => None,
            Err(error) => {
                self.note_unanswered(member, &error, true);
                None
            }
        }
    }

    /// The block of a number on the way to the tip on which a quorum agrees. `None` if there is none.
    pub async fn fetch_agreed(&self, tag: BlockTag) -> Result<Option<HeaderClaim>, UpstreamsError> {
        if self.quorum == 1 {
            let (_, claims) = self.fetch_claims(&[tag], Duration::ZERO).await?;
            return Ok(claims.into_iter().next().flatten());
        }
        let (claims, _) = self.ask_quorum(tag, Duration::ZERO).await;
        Ok(self.highest_agreed(claims).await)
    }

    /// The block that each node whose word on finality counts has under a name: the decider alone, or
    /// every node that answers where a quorum decides. Nodes without such a block are left out.
    pub async fn fetch_words(
        &self,
        tag: BlockTag,
    ) -> Result<Vec<(MemberIndex, HeaderClaim)>, UpstreamsError> {
        if self.quorum == 1 {
            let ask = async |upstream: &Upstream| upstream.fetch_claims(&[tag]).await;
            let asked = self.ask_any(&[], Duration::ZERO, QuestionSubject::Decided, ask).await;
            let (member_index, claims) = asked?;
            return Ok(claims.into_iter().flatten().map(|claim| (member_index, claim)).collect());
        }
        let (claims, answer_count) = self.ask_quorum(tag, Duration::ZERO).await;
        if answer_count < self.quorum {
            return Err(self.no_quorum(&claims));
        }
        Ok(claims)
    }

    /// The block of a name or a number according to those that decide what is final: the preferred
    /// node, the next one if that has failed for long, or a quorum. `None` if they have no such block.
    /// Nodes that rest are waited for until `patience` is over, if those that do not are too few.
    pub async fn fetch_decided(
        &self,
        tag: BlockTag,
        patience: Duration,
    ) -> Result<Option<HeaderClaim>, UpstreamsError> {
        if self.quorum == 1 {
            let ask = async |upstream: &Upstream| upstream.fetch_claims(&[tag]).await;
            let (_, claims) = self.ask_any(&[], patience, QuestionSubject::Decided, ask).await?;
            return Ok(claims.into_iter().next().flatten());
        }
        let until = Instant::now().checked_add(patience);
        loop {
            let decided = self.decide_by_quorum(tag, patience).await;
            let is_awaited = |member: &&Member| member.is_failing() || !member.is_available();
            let awaited = self.members.iter().filter(is_awaited);
            let soonest = awaited.filter_map(Member::rests_until).min();
            match soonest.filter(|time| until.is_none_or(|until| *time <= until)) {
                Some(time) if decided.is_err() => sleep_until(time).await,
                Some(_) | None => return decided,
            }
        }
    }

    async fn decide_by_quorum(
        &self,
        tag: BlockTag,
        patience: Duration,
    ) -> Result<Option<HeaderClaim>, UpstreamsError> {
        let (claims, answer_count) = self.ask_quorum(tag, patience).await;
        let absent_count = answer_count.saturating_sub(claims.len());
        let no_quorum = self.no_quorum(&claims);
        match self.highest_agreed(claims).await {
            Some(claim) => Ok(Some(claim)),
            // That there is none is what they agree on.
            None if absent_count >= self.quorum => Ok(None),
            None => Err(no_quorum),
        }
    }

    /// The node whose word on what is final counts where one is enough.
    pub(super) fn decider(&self) -> MemberIndex {
        let time = self.rest.stand_in_after;
        let position = |is_it: &dyn Fn(&Member) -> bool| self.members.iter().position(is_it);
        let member_index =
            position(&|member| !member.is_quarantined() && !member.has_failed_for(time))
                .or_else(|| position(&|member| !member.is_quarantined()))
                .unwrap_or(0);
        if self.decider.swap(member_index, Ordering::Relaxed) != member_index {
            let (upstream, seconds) = (self.name(member_index), time.as_secs());
            if member_index == 0 {
                warn!(upstream, "the preferred upstream decides again what is final");
            } else {
                warn!(
                    upstream,
                    seconds,
                    "this upstream decides what is final: those before it failed for so long or were \
                     set aside"
                );
            }
        }
        member_index
    }

    /// The highest block on which a quorum agrees; without a quorum, the tip of the first healthy node.
    pub async fn fetch_tip(&self) -> Result<AgreedTip, UpstreamsError> {
        if self.quorum == 1 {
            let (member_index, claims) =
                self.fetch_claims(&[BlockTag::Latest], Duration::ZERO).await?;
            let claim = claims.into_iter().next().flatten().ok_or_else(|| self.none_left())?;
            return Ok(AgreedTip { claim, reached: claim.number, member_index });
        }
        let (tips, _) = self.ask_quorum(BlockTag::Latest, Duration::ZERO).await;
        let mut numbers: Vec<u64> = tips.iter().map(|(_, claim)| claim.number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        // Higher than this are too few.
        let Some(highest) = numbers.get(self.quorum.saturating_sub(1)).copied() else {
            return Err(self.no_quorum(&tips));
        };
        // Nodes that share a block share all below it: the way down doubles, and the way up halves.
        let mut depth = 0_u64;
        let mut not_agreed = highest.saturating_add(1);
        let mut found = loop {
            let number = highest.saturating_sub(depth);
            if let Some(claim) = self.agreed_at(number).await {
                break claim;
            }
            not_agreed = number;
            if number == 0 || depth >= QUORUM_DEPTH {
                return Err(self.no_quorum(&tips));
            }
            depth = depth.saturating_mul(2).max(1);
        };
        while not_agreed.saturating_sub(found.number) > 1 {
            let middle = found.number.midpoint(not_agreed);
            match self.agreed_at(middle).await {
                Some(claim) => found = claim,
                None => not_agreed = middle,
            }
        }
        Ok(AgreedTip { claim: found, reached: highest, member_index: 0 })
    }

    /// A tip could not be reached because this block is missing. If the node that reported the tip lacks the
    /// block too, time and again, it counts as failing for as long as it does, and another may stand in.
    /// A quorum reports no tip that its nodes lack.
    pub async fn doubt_tip(&self, tip: AgreedTip, missing: u64) {
        let number = tip.claim.number;
        let Some(member) = self.members.get(tip.member_index) else { return };
        if self.quorum > 1 || missing > number {
            return;
        }
        let ask = async |it: &Upstream| it.fetch_claims(&[BlockTag::Number(missing)]).await;
        let asked = self.ask_member(member, Some(self.claim_timeout(member)), &ask).await;
        let Some(Ok(claims)) = asked else { return };
        if claims.iter().any(Option::is_some) {
            member.served_tip();
        } else if member.missed_below_tip() {
            let reason = format!("it tells block {number} as its tip and has no block {missing}");
            member.failed(&reason, self.rest);
        }
    }

    /// A tip was reached: what its node lacked before, it has now.
    pub fn reached_tip(&self, tip: AgreedTip) {
        if let Some(member) = self.members.get(tip.member_index) {
            member.served_tip();
        }
    }

    /// Whether a quorum has this block under its number.
    pub async fn is_agreed(&self, claim: HeaderClaim) -> bool {
        if self.quorum == 1 {
            return true;
        }
        let (claims, _) = self.ask_quorum(BlockTag::Number(claim.number), Duration::ZERO).await;
        claims.iter().filter(|(_, other)| other.hash == claim.hash).count() >= self.quorum
    }

    /// What every available node has under a name.
    pub async fn ask_all(&self, tag: BlockTag) -> Vec<(MemberIndex, HeaderClaim)> {
        let asked = self.members.iter().enumerate().map(|(member_index, member)| async move {
            Some((member_index, self.ask_tag(member, tag, Duration::ZERO).await??))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// What nodes have under a name: those that answer within [`QUORUM_GRACE`] after a quorum did. Later
    /// ones back off.
    async fn ask_quorum(&self, tag: BlockTag, patience: Duration) -> TagAnswers {
        let asked = self.members.iter().enumerate().map(|(member_index, member)| async move {
            (member_index, self.ask_tag(member, tag, patience).await)
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let mut heard: Vec<MemberIndex> = Vec::with_capacity(self.members.len());
        let (mut claims, mut answer_count) = (Vec::new(), 0_usize);
        let mut late_at: Option<Instant> = None;
        loop {
            let next = match late_at {
                Some(time) => timeout_at(time, asked.next()).await,
                None => Ok(asked.next().await),
            };
            let Ok(next) = next else {
                self.note_late(&heard);
                break;
            };
            let Some((member_index, answer)) = next else { break };
            heard.push(member_index);
            if let Some(claim) = answer {
                answer_count = answer_count.saturating_add(1);
                claims.extend(claim.map(|claim| (member_index, claim)));
            }
            if late_at.is_none() && self.is_enough(tag, &claims, answer_count, asked.len()) {
                late_at = Instant::now().checked_add(QUORUM_GRACE);
            }
        }
        // In the order of preference, however fast each of them was.
        claims.sort_unstable();
        (claims, answer_count)
    }

    /// Whether the answers that are still awaited need not be: as many nodes answered as must agree,
    /// and where one block is requested, they agree on it or cannot any more.
    fn is_enough(
        &self,
        tag: BlockTag,
        claims: &[(MemberIndex, HeaderClaim)],
        answer_count: usize,
        awaited_count: usize,
    ) -> bool {
        let alike = |claim: &HeaderClaim| {
            claims.iter().filter(|(_, other)| other.hash == claim.hash).count()
        };
        match tag {
            BlockTag::Latest | BlockTag::Safe | BlockTag::Finalized => answer_count >= self.quorum,
            BlockTag::Number(_) => {
                let most = claims.iter().map(|(_, claim)| alike(claim)).max().unwrap_or(0);
                most >= self.quorum || most.saturating_add(awaited_count) < self.quorum
            }
        }
    }

    /// All but those that were heard are late.
    fn note_late(&self, heard: &[MemberIndex]) {
        let (millis, quorum) = (QUORUM_GRACE.as_millis(), self.quorum);
        let said = format!("no answer within {millis} ms after those of {quorum} others");
        let late = self
            .members
            .iter()
            .enumerate()
            .filter(|(member_index, _)| !heard.contains(member_index));
        late.for_each(|(_, member)| member.failed(&said, self.rest));
    }

    /// What one node has under a name; `None` if it does not say.
    async fn ask_tag(
        &self,
        member: &Member,
        tag: BlockTag,
        patience: Duration,
    ) -> Option<Option<HeaderClaim>> {
        let ask = async |upstream: &Upstream| upstream.fetch_claims(&[tag]).await;
        match self.ask_member(member, Some(self.claim_timeout(member)), &ask).await? {
            Ok(claims) => Some(claims.into_iter().next().flatten()),
            Err(error) => {
                let is_optional = patience.is_zero() && tag != BlockTag::Latest;
                self.note_unanswered(member, &error, is_optional);
                None
            }
        }
    }

    /// A node that refuses what it need not give answers all the same: its word of the tip counts on.
    fn note_unanswered(&self, member: &Member, error: &FetchError, is_optional: bool) {
        if is_optional && error.is_refusal() {
            member.refused(&error.to_string());
        } else {
            member.failed(&error.to_string(), self.rest);
        }
    }

    /// The block of this number that enough nodes have.
    async fn agreed_at(&self, number: u64) -> Option<HeaderClaim> {
        let (claims, _) = self.ask_quorum(BlockTag::Number(number), Duration::ZERO).await;
        let count =
            |claim: &HeaderClaim| claims.iter().filter(|(_, it)| it.hash == claim.hash).count();
        claims.iter().map(|(_, claim)| *claim).find(|claim| count(claim) >= self.quorum)
    }

    /// Names mean another block to each node: the highest counts that as many nodes as must agree gave
    /// the name to, or to a descendant of it.
    async fn highest_agreed(&self, claims: Vec<(MemberIndex, HeaderClaim)>) -> Option<HeaderClaim> {
        let mut candidates: Vec<HeaderClaim> = claims.iter().map(|(_, claim)| *claim).collect();
        candidates.sort_unstable();
        candidates.dedup();
        while let Some(candidate) = candidates.pop() {
            let reaching = || claims.iter().filter(|(_, claim)| claim.number >= candidate.number);
            if reaching().count() < self.quorum {
                continue;
            }
            let asked = reaching()
                .map(|(member_index, claim)| self.is_descendant(*member_index, *claim, candidate));
            let asked: FuturesUnordered<_> = asked.map(|it| timeout(WALK_TIMEOUT, it)).collect();
            // No node is waited for that the others can do without.
            let agreeing = asked.filter(|agrees| ready(*agrees == Ok(true))).take(self.quorum);
            if agreeing.count().await == self.quorum {
                return Some(candidate);
            }
        }
        None
    }

    /// Whether a node's headers lead from a block down to another. The number alone is no evidence:
    /// behind one address, nodes of several branches may answer.
    async fn is_descendant(
        &self,
        member_index: MemberIndex,
        mut claim: HeaderClaim,
        ancestor: HeaderClaim,
    ) -> bool {
        if claim.number.saturating_sub(ancestor.number) > CLAIMS_MAX {
            return false;
        }
        while claim.number > ancestor.number {
            let first = claim.number.saturating_sub(CLAIMS_PER_STEP).max(ancestor.number);
            let below = self.fetch_ancestors_of(member_index, claim, first).await;
            let Some(lowest) = below.and_then(|below| below.last().copied()) else { return false };
            claim = lowest;
        }
        claim.hash == ancestor.hash
    }

    fn no_quorum(&self, claims: &[(MemberIndex, HeaderClaim)]) -> UpstreamsError {
        let said = |(member_index, claim): &(MemberIndex, HeaderClaim)| {
            format!("{} has {}:{}", self.name(*member_index), claim.number, claim.hash)
        };
        let mut said: Vec<String> = claims.iter().map(said).collect();
        let silent = self.statuses().into_iter().enumerate();
        let silent =
            silent.filter(|(member_index, _)| claims.iter().all(|(told, _)| told != member_index));
        said.extend(silent.map(|(_, status)| status.to_string()));
        UpstreamsError::NoQuorum { quorum: self.quorum, said: said.join("; ") }
    }
}

/// A node's blocks below one, down to `first`, if each is the parent of the one above it.
async fn fetch_linked(
    upstream: &Upstream,
    of: HeaderClaim,
    first: u64,
) -> Result<Vec<HeaderClaim>, FetchError> {
    let tags: Vec<BlockTag> = (first..of.number).rev().map(BlockTag::Number).collect();
    let mut above = of;
    let mut ancestors = Vec::with_capacity(tags.len());
    for claim in upstream.fetch_claims(&tags).await? {
        let number = above.number.saturating_sub(1);
        let linked = claim.filter(|claim| claim.hash == above.parent_hash);
        above = linked.ok_or(FetchError::Elsewhere { number })?;
        ancestors.push(above);
    }
    Ok(ancestors)
}
