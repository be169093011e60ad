//! How following goes: cheap to look at, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use chain::BlockRange;
use node::{AgreedTip, HeaderClaim, LogLimit, UpstreamStatus, Upstreams, UpstreamsError};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::FollowError;
use super::error::FinalityConflict;

/// The time between two blocks, where no headers tell it.
const BLOCK_TIME_DEFAULT: Duration = Duration::from_secs(12);
/// A tip that has been the same for so many times the time between two blocks stands still: an epoch,
/// in which networks that work have blocks.
const STILL_BLOCKS: u32 = 32;
/// And for so long at the least: chains with short times between blocks make pauses too.
const STILL_MIN: Duration = Duration::from_mins(2);
/// So many tips are remembered with the time at which they were told of. That many blocks behind is
/// not the tip, whatever the time.
const AWAITED_MAX: usize = 64;
/// So many blocks a node behind the same address may be behind another.
const LAG_MAX: u64 = 64;
/// So long it may be unknown what is final before that is told: for the same time the preferred node may
/// fail before the next one says it.
const FINALITY_SILENCE_MAX: Duration = Duration::from_mins(11);

/// How following goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowStatus {
    /// Our newest block.
    pub tip: Option<(u64, B256)>,
    /// The number of the newest block that nodes told of.
    pub upstream_tip: Option<u64>,
    /// The number that as many nodes have reached as must agree on a block, each on its own branch.
    pub upstream_reached: Option<u64>,
    /// The highest block that nodes told of lately, and when they first did.
    pub upstream_highest: Option<(u64, Instant)>,
    /// When the preferred node or the quorum last told its tip.
    pub heard_at: Option<Instant>,
    /// Why they did not the last time, if they did not.
    pub tip_error: Option<String>,
    /// Tips that were told of and are not here, lowest first, and when each was first told of.
    pub awaited: Vec<(u64, Instant)>,
    /// The time between two blocks, by the newest headers that are held.
    pub block_time: Option<Duration>,
    /// How often nodes without subscriptions are asked for their tip.
    pub poll_every: Duration,
    /// Whether the chain has blocks also when nobody sends a transaction, as all built-in networks do.
    /// Of other chains that is not known.
    pub has_regular_blocks: bool,
    /// How often blocks that were shown were replaced by those of another branch.
    pub reorg_count: u64,
    /// How many blocks each of those times took away.
    pub reorg_depths: ReorgDepths,
    /// How often blocks were sealed, and how many.
    pub seals: WorkCount,
    /// How often the segments of a slot were merged, and the blocks in them.
    pub merges: WorkCount,
    /// How often that failed.
    pub merge_failure_count: u64,
    /// What is final here is not what the nodes have: nothing is followed.
    pub conflict: Option<FinalityConflict>,
    /// Blocks that were left out because the tip was too far.
    pub gap: Option<BlockRange>,
    /// Why the tip could not be followed the last time, if it could not.
    pub last_error: Option<String>,
    /// Since when it cannot be followed.
    pub failing_since: Option<Instant>,
    /// Whether trying again does not help until a human acts or finality moves.
    pub is_failure_lasting: bool,
    /// Why the head's log could not be written the last time, if it could not.
    pub log_error: Option<String>,
    /// Why those that decide did not say what is final the last time, and since when.
    pub finality_error: Option<(Instant, String)>,
    /// Why the backfill in the background does not go on, if it does not.
    pub backfill_error: Option<String>,
    /// The nodes.
    pub upstreams: Vec<UpstreamStatus>,
}

/// Work on blocks since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCount {
    /// How often it was done.
    pub times: u64,
    /// How many blocks it was done to.
    pub blocks: u64,
}

impl WorkCount {
    fn add(&mut self, blocks: u64) {
        self.times = self.times.saturating_add(1);
        self.blocks = self.blocks.saturating_add(blocks);
    }
}

/// How deep reorgs were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorgDepths {
    /// Reorgs that took away so many blocks or fewer, and more than the bound before it.
    counts: [u64; Self::BOUNDS.len()],
    /// Blocks that were taken away in all.
    pub blocks: u64,
}

impl ReorgDepths {
    /// The bounds by which they are counted; what is deeper than the last has no bound.
    pub const BOUNDS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

    /// How many were no deeper than each bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut sum = 0_u64;
        Self::BOUNDS.into_iter().zip(self.counts).map(move |(bound, count)| {
            sum = sum.saturating_add(count);
            (bound, sum)
        })
    }

    fn add(&mut self, depth: u64) {
        let place = Self::BOUNDS.partition_point(|bound| *bound < depth);
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        self.blocks = self.blocks.saturating_add(depth);
    }
}

impl FollowStatus {
    /// How many blocks are told of and not here.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        Some(self.upstream_tip?.saturating_sub(self.tip?.0))
    }

    /// How many blocks nodes have above the newest that as many as must agree have in common.
    #[must_use]
    pub fn disagreement(&self) -> u64 {
        self.upstream_reached
            .zip(self.upstream_tip)
            .map_or(0, |(reached, tip)| reached.saturating_sub(tip))
    }

    /// How long the nodes have been silent, if that is longer than two blocks take.
    #[must_use]
    pub fn silence(&self) -> Option<Duration> {
        self.late(self.heard_at?)
    }

    /// How long a block is awaited that was told of, if that is longer than two blocks take.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.late(self.awaited.first()?.1)
    }

    /// How long the nodes' tip has been the same block, if that is far longer than blocks take. A
    /// chain that makes blocks on demand may rest for as long as it likes.
    #[must_use]
    pub fn stillness(&self) -> Option<Duration> {
        let elapsed = self.upstream_highest?.1.elapsed();
        Some(elapsed).filter(|elapsed| self.has_regular_blocks && *elapsed > self.still_time())
    }

    /// A tip that has been the same for longer stands still.
    fn still_time(&self) -> Duration {
        let time = self.block_time.unwrap_or(BLOCK_TIME_DEFAULT).saturating_mul(STILL_BLOCKS);
        time.max(STILL_MIN)
    }

    /// Why the nodes do not tell their tip, if that has lasted for longer than one block takes: a
    /// single question that fails says little.
    #[must_use]
    pub fn lasting_tip_error(&self) -> Option<&String> {
        let error = self.tip_error.as_ref()?;
        let is_recent =
            self.heard_at.is_some_and(|heard| heard.elapsed() <= self.block_time_or_default());
        Some(error).filter(|_| !is_recent)
    }

    /// Why the tip cannot be followed, if it could not for longer than two blocks take, or if trying
    /// again does not help.
    #[must_use]
    pub fn lasting_error(&self) -> Option<&String> {
        let is_long = self.failing_since.is_some_and(|since| self.late(since).is_some());
        self.last_error.as_ref().filter(|_| is_long || self.is_failure_lasting)
    }

    /// Why it is not known what is final, if it has not been for long.
    #[must_use]
    pub fn lasting_finality_error(&self) -> Option<&String> {
        let (since, error) = self.finality_error.as_ref()?;
        Some(error).filter(|_| since.elapsed() > FINALITY_SILENCE_MAX)
    }

    fn late(&self, since: Instant) -> Option<Duration> {
        let time = self.block_time_or_default().saturating_mul(2);
        Some(since.elapsed()).filter(|elapsed| *elapsed > time)
    }

    fn block_time_or_default(&self) -> Duration {
        self.block_time.unwrap_or(BLOCK_TIME_DEFAULT).max(self.poll_every)
    }

    fn set_tip(&mut self, tip: Option<(u64, B256)>) {
        self.tip = tip;
        if let Some((reached, _)) = tip {
            self.awaited.retain(|(number, _)| *number > reached);
        }
    }

    /// Awaits a tip that was told of now, if it is not here. One that was told of before counts from
    /// then on, and so does one below another: its node went back.
    fn await_tip(&mut self, number: u64) {
        let told_before = self.awaited.iter().find(|(awaited, _)| *awaited >= number);
        let since = told_before.map_or_else(Instant::now, |(_, since)| *since);
        self.awaited.retain(|(awaited, _)| *awaited < number);
        let is_here = self.tip.is_some_and(|(tip, _)| number <= tip);
        if is_here {
            self.awaited.clear();
        } else if self.awaited.len() < AWAITED_MAX {
            self.awaited.push((number, since));
        }
    }
}

/// Where the follower writes how it goes.
#[derive(Debug)]
pub struct StatusBoard {
    upstreams: Arc<Upstreams>,
    status: watch::Sender<FollowStatus>,
    /// Lines that nodes can cause by doing one thing and then another.
    log: Mutex<BoardLog>,
    recent_tips: Mutex<RecentTips>,
}

/// Which failures that last were logged. One that the limit kept out of the log is logged when it is
/// met again.
#[derive(Debug, Default)]
struct BoardLog {
    limit: LogLimit,
    /// Reorgs are no failures, and do not keep those out of the log.
    reorg_limit: LogLimit,
    has_silence: bool,
    has_finality: bool,
    has_backfill: bool,
    /// That the head's log cannot be written.
    log_error: Option<String>,
    failure: Option<String>,
    conflict: Option<FinalityConflict>,
}

/// Logs a failure once, when the limit lets it. Tells whether now.
fn log_once(limit: &mut LogLimit, is_logged: &mut bool) -> bool {
    let is_allowed = !*is_logged && limit.allow();
    *is_logged |= is_allowed;
    is_allowed
}

/// The tips that were told within a while, but for those that a higher one followed.
#[derive(Debug, Default)]
struct RecentTips(Vec<(u64, Instant)>);

impl RecentTips {
    /// Notes a tip. Tells whether it is above all others of the last `time`, of which there are some.
    fn note(&mut self, number: u64, time: Duration) -> bool {
        self.0.retain(|(_, told_at)| told_at.elapsed() < time);
        let highest = self.0.iter().map(|(told, _)| *told).max();
        self.0.retain(|(told, _)| *told > number);
        self.0.push((number, Instant::now()));
        highest.is_some_and(|highest| number > highest)
    }
}

impl StatusBoard {
    pub(super) fn new(upstreams: Arc<Upstreams>) -> Self {
        let (status, log, recent_tips) = Default::default();
        Self { upstreams, status, log, recent_tips }
    }

    /// How it goes now.
    #[must_use]
    pub fn status(&self) -> FollowStatus {
        let status = self.status.borrow().clone();
        FollowStatus { upstreams: self.upstreams.statuses(), ..status }
    }

    /// Hears of every change, but for those of the nodes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<FollowStatus> {
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

    pub(super) fn begun(
        &self,
        tip: Option<(u64, B256)>,
        poll_every: Duration,
        has_regular_blocks: bool,
    ) {
        self.status.send_modify(|status| {
            (status.tip, status.poll_every) = (tip, poll_every);
            status.has_regular_blocks = has_regular_blocks;
        });
    }

    /// Blocks were replaced by those of another branch. Tells how often that has happened if it is to
    /// be logged: a node can make it happen with every block.
    pub(super) fn reorganised(&self, dropped: u64) -> Option<u64> {
        self.status.send_modify(|status| {
            status.reorg_count = status.reorg_count.saturating_add(1);
            status.reorg_depths.add(dropped);
        });
        let count = self.status.borrow().reorg_count;
        self.log().reorg_limit.allow().then_some(count)
    }

    /// So many blocks were sealed.
    pub(super) fn sealed(&self, blocks: u64) {
        self.count(|status| status.seals.add(blocks));
    }

    /// The segments of so many blocks were merged.
    pub(super) fn merged(&self, blocks: u64) {
        self.count(|status| status.merges.add(blocks));
    }

    /// Segments could not be merged.
    pub(super) fn failed_to_merge(&self) {
        self.count(|status| {
            status.merge_failure_count = status.merge_failure_count.saturating_add(1);
        });
    }

    /// Changes a count, for which nobody is woken.
    fn count(&self, add: impl FnOnce(&mut FollowStatus)) {
        self.status.send_if_modified(|status| {
            add(status);
            false
        });
    }

    /// The preferred node or the quorum told its tip.
    pub(super) fn heard_of(&self, tip: AgreedTip) {
        let AgreedTip { claim: HeaderClaim { number, .. }, reached, .. } = tip;
        self.status.send_modify(|status| {
            let now = Instant::now();
            // One that goes back, as behind a load balancer, is no new block; one that goes back far is
            // another node's.
            let is_lag =
                |highest: u64| number <= highest && highest.saturating_sub(number) <= LAG_MAX;
            // Half of the time, so that a tip that moves below an older one is noticed before that
            // one is old enough to stand still.
            let mut recent = self.recent_tips.lock().unwrap_or_else(PoisonError::into_inner);
            let is_rise = recent.note(number, status.still_time() / 2);
            if is_rise || !status.upstream_highest.is_some_and(|(highest, _)| is_lag(highest)) {
                status.upstream_highest = Some((number, now));
            }
            (status.upstream_tip, status.upstream_reached) = (Some(number), Some(reached));
            status.heard_at = Some(now);
            status.await_tip(number);
            status.tip_error = None;
            if std::mem::take(&mut self.log().has_silence) {
                info!(number, "the upstream reports its tip again");
            }
        });
    }

    /// Nobody told a tip. Tells whether that is to be logged.
    pub(super) fn silent(&self, error: &UpstreamsError) -> bool {
        self.status.send_modify(|status| status.tip_error = Some(error.to_string()));
        let BoardLog { limit, has_silence, .. } = &mut *self.log();
        log_once(limit, has_silence)
    }

    /// Those that decide said what is final.
    pub(super) fn told_finality(&self) {
        self.status.send_if_modified(|status| status.finality_error.take().is_some());
        self.log().has_finality = false;
    }

    /// Those that decide did not say what is final. Tells whether that is to be logged.
    pub(super) fn silent_about_finality(&self, error: &UpstreamsError) -> bool {
        self.status.send_modify(|status| {
            let since = status.finality_error.as_ref().map(|(since, _)| *since);
            let since = since.unwrap_or_else(Instant::now);
            status.finality_error = Some((since, error.to_string()));
        });
        let BoardLog { limit, has_finality, .. } = &mut *self.log();
        log_once(limit, has_finality)
    }

    fn log(&self) -> MutexGuard<'_, BoardLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn left_gap(&self, gap: Option<BlockRange>) {
        self.status.send_modify(|status| status.gap = gap);
    }

    /// A unit was taken, or was not. Tells whether that it was not is to be logged.
    pub(super) fn backfilled(&self, error: Option<String>) -> bool {
        let has_failed = error.is_some();
        self.status.send_modify(|status| status.backfill_error = error);
        let BoardLog { limit, has_backfill, .. } = &mut *self.log();
        *has_backfill &= has_failed;
        has_failed && log_once(limit, has_backfill)
    }

    /// The head's log has all that is here, or could not be written. Tells whether that is to be logged.
    pub(super) fn kept_log(&self, error: Option<&str>) -> bool {
        self.status.send_if_modified(|status| {
            let is_changed = status.log_error.as_deref() != error;
            status.log_error = error.map(str::to_owned);
            is_changed
        });
        let mut log = self.log();
        let Some(error) = error else {
            if log.log_error.take().is_some() {
                info!("the head's log is written again");
            }
            return false;
        };
        let is_logged = log.log_error.is_none() && log.limit.allow();
        if is_logged {
            log.log_error = Some(error.to_owned());
        }
        is_logged
    }

    pub(super) fn stepped(&self, tip: Option<(u64, B256)>) {
        self.status.send_modify(|status| {
            status.set_tip(tip);
            (status.failing_since, status.is_failure_lasting) = (None, false);
            (status.conflict, status.last_error) = (None, None);
            let mut log = self.log();
            let (conflict, failure) = (log.conflict.take(), log.failure.take());
            if conflict.is_some() || failure.is_some() {
                info!("following again");
            }
        });
    }

    /// Tells whether that is to be logged.
    pub(super) fn failed(&self, tip: Option<(u64, B256)>, error: &FollowError) -> bool {
        let said = error.to_string();
        self.status.send_modify(|status| {
            status.set_tip(tip);
            status.last_error = Some(said.clone());
            status.failing_since.get_or_insert_with(Instant::now);
            status.is_failure_lasting = error.is_lasting();
        });
        let mut log = self.log();
        let is_logged = log.failure.as_ref() != Some(&said) && log.limit.allow();
        if is_logged {
            log.failure = Some(said);
        }
        is_logged
    }

    /// Tells whether that is to be logged.
    pub(super) fn conflicted(&self, conflict: FinalityConflict) -> bool {
        self.status.send_modify(|status| status.conflict = Some(conflict));
        let mut log = self.log();
        let is_logged = log.conflict != Some(conflict) && log.limit.allow();
        if is_logged {
            log.conflict = Some(conflict);
        }
        is_logged
    }
}

#[cfg(test)]
mod tests {
    use chain::ChainSpec;

    use super::*;
    use node::{AskLimits, RestLimits};

    /// Lets something fail, and tells whether it is to be logged.
    type Failure<'a> = &'a dyn Fn(&StatusBoard) -> bool;

    fn board() -> StatusBoard {
        let (urls, spec) =
            (vec!["http://127.0.0.1:1".parse().unwrap()], ChainSpec::bare("x", None, None));
        let nodes = Upstreams::new(urls, &spec, 1, AskLimits::default(), RestLimits::default());
        StatusBoard::new(Arc::new(nodes.unwrap()))
    }

    fn tip(number: u64) -> AgreedTip {
        let (hash, parent_hash) = (B256::ZERO, B256::ZERO);
        AgreedTip {
            claim: HeaderClaim { number, hash, parent_hash },
            reached: number,
            member_index: 0,
        }
    }

    /// Seen: a follower that was always a few blocks behind was called late only after minutes, since
    /// every block that it reached began the time anew.
    #[tokio::test(start_paused = true)]
    async fn a_block_counts_as_late_from_when_it_was_told_of() {
        let board = board();
        board.begun(Some((100, B256::ZERO)), Duration::from_secs(1), true);
        // A block every twelve seconds, each of which takes forty to be reached.
        for number in 101..=103 {
            board.heard_of(tip(number));
            tokio::time::advance(Duration::from_secs(12)).await;
        }
        assert_eq!(board.status().delay(), Some(Duration::from_secs(36)));
        board.heard_of(tip(104));
        board.stepped(Some((101, B256::ZERO)));
        assert_eq!(
            board.status().delay(),
            None,
            "the next was told of 24 s ago, which is two blocks"
        );
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(board.status().delay(), Some(Duration::from_secs(28)));
        // A tip that goes back was told of no later than what is above it.
        board.heard_of(tip(102));
        assert_eq!(board.status().delay(), Some(Duration::from_secs(28)));
        board.stepped(Some((102, B256::ZERO)));
        assert_eq!(board.status().delay(), None);
        for number in 103..1000 {
            board.heard_of(tip(number));
        }
        assert_eq!(board.status().awaited.len(), AWAITED_MAX);
        board.stepped(Some((999, B256::ZERO)));
        assert!(board.status().awaited.is_empty());
    }

    /// Seen: the server of a chain that makes blocks on demand was not ready after two quiet minutes.
    #[tokio::test(start_paused = true)]
    async fn a_chain_that_is_not_built_in_may_rest() {
        let board = board();
        board.begun(None, Duration::from_secs(1), false);
        board.heard_of(tip(100));
        tokio::time::advance(Duration::from_hours(10)).await;
        board.heard_of(tip(100));
        assert_eq!(board.status().stillness(), None);
    }

    /// Seen: a node that switched between two branches with every block filled the log.
    #[tokio::test(start_paused = true)]
    async fn reorgs_are_counted_and_logged_a_few_times() {
        let board = board();
        let logged: Vec<u64> = (0..100).filter_map(|_| board.reorganised(1)).collect();
        assert_eq!(logged, [1, 2, 3, 4, 5, 6]);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(board.reorganised(3), Some(101));
        board.reorganised(64);
        board.reorganised(65);
        let depths = board.status().reorg_depths;
        let below: Vec<u64> = depths.cumulative().map(|(_, count)| count).collect();
        assert_eq!((below, depths.blocks), (vec![100, 100, 101, 101, 101, 101, 102], 232));
    }

    /// Seen: a node whose tip stood still for hours left the server ready.
    #[tokio::test(start_paused = true)]
    async fn a_tip_that_is_told_again_and_again_and_never_moves_stands_still() {
        let board = board();
        board.begun(None, Duration::from_secs(1), true);
        board.heard_of(tip(100));
        for _ in 0..50 {
            tokio::time::advance(Duration::from_secs(12)).await;
            // Also where a load balancer asks one that lags now and then.
            board.heard_of(tip(99));
            board.heard_of(tip(100));
        }
        assert_eq!(board.status().stillness(), Some(Duration::from_mins(10)));
        board.heard_of(tip(101));
        assert_eq!(board.status().stillness(), None);
        // A node that told of far more does not make the next one stand still.
        board.heard_of(tip(1000));
        board.heard_of(tip(102));
        tokio::time::advance(Duration::from_mins(5)).await;
        board.heard_of(tip(103));
        tokio::time::advance(Duration::from_mins(5)).await;
        assert_eq!(board.status().stillness(), None);
    }

    /// Seen: a node that stood in for the preferred one once told of a block far above, and for as long
    /// as the preferred one was below that, its tip counted as one that does not move.
    #[tokio::test(start_paused = true)]
    async fn a_tip_that_moves_below_one_that_was_told_of_once_does_not_stand_still() {
        let board = board();
        board.begun(None, Duration::from_secs(1), true);
        board.heard_of(tip(100));
        board.heard_of(tip(150));
        for number in 101..=160 {
            board.heard_of(tip(number));
            // And again, as it is asked more often than it moves.
            tokio::time::advance(Duration::from_secs(6)).await;
            board.heard_of(tip(number));
            tokio::time::advance(Duration::from_secs(6)).await;
            assert_eq!(board.status().stillness(), None, "block {number}");
        }
        // As soon as it stops, it stands still.
        for _ in 0..80 {
            tokio::time::advance(Duration::from_secs(6)).await;
            board.heard_of(tip(160));
        }
        let stillness = board.status().stillness();
        assert!(stillness >= Some(Duration::from_mins(8)), "{stillness:?}");
    }

    /// Seen: an outage that began while the log was limited never left a line, however long it lasted.
    #[tokio::test(start_paused = true)]
    async fn what_the_limit_kept_out_of_the_log_is_logged_when_it_lasts() {
        let conflict = FinalityConflict { number: 1, ours: B256::ZERO, theirs: B256::ZERO };
        let silence = UpstreamsError::NoneLeft("x".to_owned());
        let failures: [(&str, Failure<'_>); 6] = [
            ("tip", &|board| board.silent(&silence)),
            ("finality", &|board| board.silent_about_finality(&silence)),
            ("backfill", &|board| board.backfilled(Some("x".to_owned()))),
            ("log", &|board| board.kept_log(Some("x"))),
            ("step", &|board| board.failed(None, &FollowError::Moved { number: 9 })),
            ("conflict", &|board| board.conflicted(conflict)),
        ];
        for (name, fail) in failures {
            let board = board();
            while board.log().limit.allow() {}
            assert!(!fail(&board), "{name}: the limit holds");
            tokio::time::advance(Duration::from_secs(61)).await;
            assert!(fail(&board), "{name}: it lasts, and nothing was logged of it");
            assert!(!fail(&board), "{name}: once");
        }
    }

    /// Seen: nodes that failed in turns, each in its own way, filled the log.
    #[tokio::test(start_paused = true)]
    async fn failures_that_alternate_are_logged_a_few_times() {
        let board = board();
        let failures = [1, 2].map(|number| FollowError::Moved { number });
        let conflict = FinalityConflict { number: 1, ours: B256::ZERO, theirs: B256::ZERO };
        let mut lines = 0_u32;
        for _ in 0..300 {
            for error in &failures {
                lines += u32::from(board.failed(None, error));
            }
            lines += u32::from(board.conflicted(conflict));
            board.stepped(None);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((3..=12).contains(&lines), "{lines} lines in five minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_backfill_that_fails_again_is_logged_once() {
        let board = board();
        let failed = |error: &str| board.backfilled(Some(error.to_owned()));
        assert!(failed("no upstream answers"));
        assert!(!failed("no upstream answers") && !failed("for another reason"));
        assert!(!board.backfilled(None));
        assert!(failed("no upstream answers"));
    }
}
