//! Ranges of blocks from upstream nodes, proven and sealed at once as imports are.
//!
//! Blocks are taken in units of a slot, each committed as a whole: killed at any moment, a backfill
//! leaves the folder as it was after the last unit, and the next one takes up there. All blocks must
//! be final: what is sealed is never reorganised.

mod source;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chain::trust::{Anchors, TrustStatus};
use chain::{BlockRange, ChainSpec, Fault, Mismatch};
use node::{FetchError, HeaderClaim, SourceFault, Upstreams, UpstreamsError, WantedBlock};
use store::layout::HeldRange;
use store::{Drafting, StoreError};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::info;

use crate::import::{
    Arrival, Commit, Gathered, ImportError, ImportReport, Intake, Judge, Trust, Unit, hash_below,
    parent_above, reading_order,
};
use crate::prove::{Progress, Prover};
use crate::stop::until_stopped;

use source::with_source;

/// What may be taken, and how.
#[derive(Clone, Copy, Debug)]
pub struct BackfillSettings {
    /// Take a range that links to nothing known.
    pub is_unanchored_allowed: bool,
    /// How many threads prove and encode.
    pub threads: NonZeroUsize,
    /// How long nodes that all fail are waited for.
    pub patience: Duration,
    /// The block that the nodes call final, if no other may be taken in its place.
    pub finalized: Option<HeaderClaim>,
}

/// Why blocks were not taken. What was committed before stays.
#[derive(Debug, Error)]
pub enum BackfillError {
    /// The unit is refused, or the folder failed.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// No node answers.
    #[error(transparent)]
    Upstreams(#[from] UpstreamsError),
}

/// Takes blocks of nodes into one data folder.
pub struct Backfiller<'a> {
    /// The folder, as far as building needs it.
    pub drafting: Drafting,
    /// The nodes.
    pub upstreams: Arc<Upstreams>,
    /// Where the nodes are asked.
    pub runtime: Handle,
    /// The chain's facts.
    pub spec: &'a ChainSpec,
    /// What is trusted beforehand.
    pub anchors: &'a Anchors,
    /// What may be taken.
    pub settings: BackfillSettings,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
    /// Says when to stop before a unit is done; `None` never does.
    pub stop: Option<watch::Receiver<bool>>,
}

impl std::fmt::Debug for Backfiller<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backfiller")
            .field("upstreams", &self.upstreams)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Backfiller<'_> {
    /// Takes one unit. A node that lies is set aside, one whose blocks do not fit those that are held
    /// is passed over, and the unit is asked of the others; the nodes are left one after the other, so
    /// this ends.
    pub fn take(
        &self,
        unit: &Unit,
        commit: &mut Commit<'_>,
    ) -> Result<ImportReport, BackfillError> {
        loop {
            let error = match self.take_once(unit, commit) {
                Ok(imported) => return Ok(imported),
                Err(error) => error,
            };
            match error {
                // The tip was sealed meanwhile, and made the plan an old one.
                ImportError::Store(StoreError::Outdated { .. }) => {}
                ImportError::Upstream(SourceFault::False {
                    member_index, ref mismatch, ..
                }) => match self.find_unknown_fork(member_index, mismatch) {
                    Some(cause) => self.upstreams.blame(member_index, &cause),
                    None => self.upstreams.quarantine(member_index, &error.to_string()),
                },
                ImportError::Upstream(SourceFault::Fetch { member_index, cause, .. }) => {
                    self.upstreams.blame(member_index, &cause);
                }
                ImportError::Upstream(SourceFault::Differs {
                    member_index, against, said, ..
                }) => {
                    self.upstreams.differs(member_index, against, &said);
                }
                ImportError::Upstream(SourceFault::Upstreams(cause)) => return Err(cause.into()),
                ImportError::Archive(_)
                | ImportError::Store(_)
                | ImportError::Unanchored { .. }
                | ImportError::Published { .. }
                | ImportError::NoReceipts { .. }
                | ImportError::Contradiction { .. } => return Err(error.into()),
            }
        }
    }

    /// Why a block that does not prove itself is no lie, if it is of a fork that this build does not
    /// know. What its node said of it is gone by then, so the node is asked once more.
    fn find_unknown_fork(&self, member_index: usize, mismatch: &Mismatch) -> Option<FetchError> {
        let number = mismatch.number;
        if let Fault::Rule(rule) = &*mismatch.fault
            && rule.may_be_later_fork()
        {
            return Some(FetchError::UnknownFork { number, hash: None, reason: rule.to_string() });
        }
        let wanted = [WantedBlock::Number(number)];
        let again = self.runtime.block_on(async {
            tokio::select! {
                again = self.upstreams.fetch_blocks_of(member_index, &wanted) => again.ok(),
                () = until_stopped(self.stop.clone()) => None,
            }
        });
        again?.first()?.unknown_fork_of(mismatch)
    }

    fn take_once(&self, unit: &Unit, commit: &mut Commit<'_>) -> Result<ImportReport, ImportError> {
        let part = unit.range;
        let view = self.drafting.view();
        let name = format!("upstream blocks {part}");
        let trust = Trust::gather(&name, &view, part, self.anchors)?;
        let targets = self.drafting.plan(&[HeldRange { range: part, has_receipts: true }]);
        let below = hash_below(&view, part)?;
        let above = parent_above(&view, part)?;
        let is_linked = below.is_some() || above.is_some();
        let statuses = view.manifest().statuses().map_err(StoreError::from)?.into_iter();
        let anchored = statuses.filter(|(_, status)| matches!(status, TrustStatus::Anchored(_)));
        let anchored: Vec<BlockRange> = anchored.map(|(range, _)| range).collect();
        let prover = Prover {
            spec: self.spec,
            anchors: self.anchors,
            threads: self.settings.threads,
            progress: self.progress,
            points: &trust.points,
        };
        let order = reading_order(part, &targets);
        let (segments, run, transaction_count) = with_source(self, order, anchored, |source| {
            let mut gathered = Gathered::new(self.spec, source, part, &trust);
            let intake = Intake { drafting: &self.drafting, prover, source, part };
            let segments = intake.build_all(&targets, &mut |facts| gathered.add(facts))?;
            let transaction_count = gathered.transaction_count;
            let run = gathered.finish(above, self.anchors)?;
            Ok::<_, ImportError>((segments, run, transaction_count))
        })?;
        let judge = Judge {
            source: &name,
            called: &|_| "the upstream".to_owned(),
            spec: self.spec,
            anchors: self.anchors,
            trust,
            is_unanchored_allowed: self.settings.is_unanchored_allowed || is_linked,
        };
        let arrival = Arrival { run, segments, transaction_count, difficulty: None };
        let imported = judge.commit(arrival, commit)?;
        info!(blocks = %part, transactions = transaction_count, "blocks were taken from an upstream");
        Ok(imported)
    }
}
