//! Work beside the tip: slots are merged and gaps are filled while the server serves.
//!
//! One thread does both, one after the other. So what gathers the lookups of complete slots is built
//! here, never by the follower, and nobody else changes them meanwhile.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chain::trust::Anchors;
use chain::{BlockRange, ChainSpec};
use node::{PauseRange, Upstreams};
use store::layout::{HeldRange, join_ranges};
use store::{CommitFacts, Drafting, NewSegment, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::{CommitRequest, StatusBoard};
use crate::backfill::{BackfillError, BackfillSettings, Backfiller};
use crate::import::Merger;
use crate::import::{Unit, plan_units};
use crate::prove::NoProgress;
use crate::stop::is_stopped;

/// Before a unit that was not taken is asked for again. Twice as long after each further failure: what
/// is refused is fetched whole every time.
const UNIT_PAUSE: PauseRange =
    PauseRange { begin: Duration::from_secs(10), max: Duration::from_mins(10) };
/// How long nodes are waited for that all fail.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before a slot that could not be merged is tried again: what is wrong with it may pass, as a full disk
/// does.
const MERGE_PAUSE: PauseRange =
    PauseRange { begin: Duration::from_secs(30), max: Duration::from_hours(1) };

/// Merges slots and fills gaps.
#[derive(Debug)]
pub struct Background {
    pub(super) drafting: Drafting,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) spec: ChainSpec,
    pub(super) anchors: Anchors,
    pub(super) threads: NonZeroUsize,
    /// Gaps are filled down to this block; `None` fills none.
    pub(super) backfill_to: Option<u64>,
    /// Slots that could not be merged, and when they are tried again.
    pub(super) unmerged: BTreeMap<BlockRange, Retry>,
    /// When units are taken again, if the last one was not.
    pub(super) unit_retry: Option<Retry>,
    pub(super) commits: mpsc::Sender<CommitRequest>,
    pub(super) board: Arc<StatusBoard>,
}

/// When what failed is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    at: Instant,
    pause: Duration,
    failures: u32,
}

impl Retry {
    /// After one failure more.
    fn after(before: Option<&Self>, range: PauseRange) -> Self {
        let failures = before.map_or(0, |it| it.failures.saturating_add(1));
        let (pause, now) = (range.after(failures), Instant::now());
        Self { at: now.checked_add(pause).unwrap_or(now), pause, failures }
    }

    fn is_due(&self) -> bool {
        self.at <= Instant::now()
    }
}

impl Background {
    /// Works until `stop` says so. Occupies the calling thread.
    pub fn run(mut self, runtime: &Handle, mut stop: watch::Receiver<bool>) {
        let mut steps = self.board.watch();
        while !is_stopped(Some(&stop)) {
            if let Some(target) = self.next_merge() {
                self.merge(target, &stop);
                continue;
            }
            let is_unit_due = self.unit_retry.as_ref().is_none_or(Retry::is_due);
            let Some(unit) = self.next_unit().filter(|_| is_unit_due) else {
                // Whatever completes a slot, opens a gap, or makes blocks below it final, is a step of
                // the follower.
                let retries = self.unmerged.values().chain(&self.unit_retry);
                let retry_at =
                    retries.map(|retry| retry.at).filter(|at| *at > Instant::now()).min();
                runtime.block_on(async {
                    tokio::select! {
                        _ = stop.changed() => {}
                        _ = steps.changed() => {}
                        () = until(retry_at) => {}
                    }
                });
                continue;
            };
            let taken = self.take(&unit, runtime, &stop);
            if is_stopped(Some(&stop)) {
                return;
            }
            let error = taken.err().map(|error| error.to_string());
            let before = self.unit_retry.take();
            self.unit_retry = error.is_some().then(|| Retry::after(before.as_ref(), UNIT_PAUSE));
            if self.board.backfilled(error.clone()) {
                warn!(error, blocks = %unit.range, "the backfill is tried again until it goes on");
            }
        }
    }

    /// The lowest slot to merge.
    fn next_merge(&mut self) -> Option<HeldRange> {
        let pending = self.drafting.view().manifest().pending_merges();
        self.unmerged.retain(|range, _| pending.iter().any(|target| target.range == *range));
        let is_due = |target: &HeldRange| {
            let retry = self.unmerged.get(&target.range);
            retry.is_none_or(Retry::is_due)
        };
        pending.into_iter().find(is_due)
    }

    /// Makes one segment of a slot. Until it is live its pieces are.
    fn merge(&mut self, target: HeldRange, stop: &watch::Receiver<bool>) {
        let merger = Merger {
            drafting: &self.drafting,
            spec: &self.spec,
            threads: self.merge_threads(),
            progress: &NoProgress,
            stop: Some(stop.clone()),
        };
        let built = merger.build(target);
        let outcome = built
            .and_then(|segment| Ok(self.commit(vec![segment], CommitFacts::default(), stop)?));
        match outcome {
            Ok(()) => {
                self.unmerged.remove(&target.range);
                self.board.merged(target.range.count());
                info!(blocks = %target.range, "segments were merged");
            }
            Err(_) if *stop.borrow() => {}
            Err(error) => {
                self.board.failed_to_merge();
                let retry = Retry::after(self.unmerged.get(&target.range), MERGE_PAUSE);
                let seconds = retry.pause.as_secs();
                error!(%error, blocks = %target.range, retry_seconds = seconds, "cannot merge: its \
                    pieces stay as they are; `quipu check` tells more");
                self.unmerged.insert(target.range, retry);
            }
        }
    }

    /// Half of the threads: the tip comes first.
    fn merge_threads(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.threads.get() / 2).unwrap_or(NonZeroUsize::MIN)
    }

    /// What to fill next: the tip may have moved, and what was final then is more now.
    fn next_unit(&self) -> Option<Unit> {
        let view = self.drafting.view();
        let last = view.finalized()?.min(view.tip()?);
        let wanted = BlockRange::from_ends(self.backfill_to?, last)?;
        // A segment that is listed and cannot be read is not filled over: `quipu repair` is for that.
        let listed = view.manifest().coverage_receipts();
        let held = join_ranges(view.coverage_receipts().iter().copied().chain(listed));
        plan_units(wanted, &held, &self.anchors).into_iter().next()
    }

    fn take(
        &self,
        unit: &Unit,
        runtime: &Handle,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), BackfillError> {
        let backfiller = Backfiller {
            drafting: self.drafting.clone(),
            upstreams: Arc::clone(&self.upstreams),
            runtime: runtime.clone(),
            spec: &self.spec,
            anchors: &self.anchors,
            settings: BackfillSettings {
                is_unanchored_allowed: false,
                threads: self.threads,
                patience: PATIENCE,
                finalized: None,
            },
            progress: &NoProgress,
            stop: Some(stop.clone()),
        };
        backfiller.take(unit, &mut |segments, facts| self.commit(segments, facts, stop)).map(drop)
    }

    /// Hands segments to the thread that has the writer, with as little as possible left to do.
    fn commit(
        &self,
        segments: Vec<NewSegment>,
        facts: CommitFacts,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), StoreError> {
        let (done, committed) = oneshot::channel();
        let segments = self.drafting.prepare(segments, &|| is_stopped(Some(stop)))?;
        let request = CommitRequest { segments, facts, done };
        self.commits.blocking_send(request).map_err(|_| StoreError::WriterGone)?;
        committed.blocking_recv().map_err(|_| StoreError::WriterGone)?
    }
}

/// Waits until a time; for ever, if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen: a unit that was refused was fetched again every ten seconds for ever.
    #[tokio::test(start_paused = true)]
    async fn what_fails_again_is_tried_less_and_less_often() {
        let mut retry = None;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            let next = Retry::after(retry.as_ref(), UNIT_PAUSE);
            assert!(!next.is_due());
            until(Some(next.at)).await;
            assert!(next.is_due());
            pauses.push(begun.elapsed().as_secs());
            retry = Some(next);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
    }
}
