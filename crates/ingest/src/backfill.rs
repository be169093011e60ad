//! Ranges of blocks from upstream nodes, proven and sealed at once as imports are.
//!
//! Knows: which blocks are missing, in which order they find what they link to, and what to do when a
//! node lies.
//! Never knows: how a node is asked, or the bytes of a segment.
//!
//! Blocks are taken in units of a slot, each committed as a whole: killed at any moment, a backfill
//! leaves the folder as it was after the last unit, and the next one takes up there. All blocks must
//! be final: what is sealed is never reorganised.

mod source;
mod units;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use chain::trust::{Anchors, ProvenRun, TrustStatus};
use chain::{BlockNumber, BlockRange, ChainSpec, Fault, Mismatch, check_step, decode_header};
use store::layout::HeldRange;
use store::read::block_on;
use store::{Drafting, Reader, StoreError};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::info;

use crate::import::{Arrival, Commit, ImportError, ImportReport, Intake, Judge, Trust};
use crate::prove::{Facts, Progress, Prover};
use crate::stop::until_stopped;
use crate::upstream::{FetchError, SourceFault, Upstreams, UpstreamsError, WantedBlock};

use source::{Link, UpstreamBlocks, with_source};
pub use units::{Unit, plan_units};

/// What may be taken, and how.
#[derive(Clone, Copy, Debug)]
pub struct BackfillSettings {
    /// Take a range that links to nothing known.
    pub is_unanchored_allowed: bool,
    /// How many threads prove and encode.
    pub threads: NonZeroUsize,
    /// How long nodes that all fail are waited for.
    pub patience: Duration,
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
                    None => self.upstreams.lied(member_index, &error.to_string()),
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
        let statuses = view.manifest().statuses().into_iter();
        let anchored = statuses.filter(|(_, status)| matches!(status, TrustStatus::Anchored(_)));
        let anchored: Vec<BlockRange> = anchored.map(|(range, _)| range).collect();
        let prover = Prover {
            spec: self.spec,
            anchors: self.anchors,
            threads: self.settings.threads,
            progress: self.progress,
            points: &trust.points,
        };
        let order = units::reading_order(part, &targets);
        let (segments, run, transaction_count) = with_source(self, order, anchored, |source| {
            let mut gathered = Gathered::new(self.spec, source, part, &trust);
            let intake = Intake { drafting: &self.drafting, prover, source, part };
            let segments = intake.build_all(&targets, &mut |facts| gathered.add(facts))?;
            let transaction_count = gathered.transaction_count;
            Ok::<_, ImportError>((segments, gathered.finish(above)?, transaction_count))
        })?;
        let judge = Judge {
            source: &name,
            called: "the upstream",
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

/// The hash of the block before a range, if it is held.
fn hash_below(view: &store::View, part: BlockRange) -> Result<Option<B256>, StoreError> {
    let Some(number) = part.first().checked_sub(1) else { return Ok(None) };
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    block_on(view.read_hash(&mut reader, BlockNumber(number)))
}

/// The hash that the block after a range says its parent has, if that block is held.
fn parent_above(view: &store::View, part: BlockRange) -> Result<Option<B256>, StoreError> {
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let header = block_on(view.read_header(&mut reader, BlockNumber(part.end())))?;
    let header = header.and_then(|header| decode_header(&header.rlp).ok());
    Ok(header.map(|header| header.parent_hash))
}

/// What only the whole unit shows: that its blocks, read one by one, are one chain.
struct Gathered<'a> {
    spec: &'a ChainSpec,
    source: &'a UpstreamBlocks<'a>,
    part: BlockRange,
    trust: &'a Trust,
    before: Option<Facts>,
    parent_hash: Option<B256>,
    last_hash: B256,
    hashes: BTreeMap<u64, B256>,
    transaction_count: u64,
}

impl<'a> Gathered<'a> {
    fn new(
        spec: &'a ChainSpec,
        source: &'a UpstreamBlocks<'a>,
        part: BlockRange,
        trust: &'a Trust,
    ) -> Self {
        Self {
            spec,
            source,
            part,
            trust,
            before: None,
            parent_hash: None,
            last_hash: B256::ZERO,
            hashes: BTreeMap::new(),
            transaction_count: 0,
        }
    }

    fn add(&mut self, facts: Facts) -> Result<(), ImportError> {
        let before = self.before.filter(|it| it.number.saturating_add(1) == facts.number);
        if let Some(before) = before {
            if before.hash != facts.parent_hash {
                let (found, expected) = (facts.parent_hash, before.hash);
                let link = Link { number: facts.number, found, expected };
                return Err(self.source.refuse_link(link).into());
            }
            check_step(self.spec, &before.step, &facts.step)
                .map_err(|fault| self.source.refuse_step(facts.number, fault))?;
        }
        self.before = Some(facts);
        if let Some(lost) = self.trust.lost_instead_of(facts.number, facts.hash) {
            return Err(self.source.refuse_lost(facts.number, facts.hash, lost).into());
        }
        if self.part.contains(facts.number) {
            self.parent_hash.get_or_insert(facts.parent_hash);
            self.last_hash = facts.hash;
            self.transaction_count = self.transaction_count.saturating_add(facts.transaction_count);
            if self.trust.points.contains(&facts.number) {
                self.hashes.insert(facts.number, facts.hash);
            }
        }
        Ok(())
    }

    /// The unit as a run, if the block above it descends from it.
    fn finish(self, above: Option<B256>) -> Result<ProvenRun, ImportError> {
        if let Some(found) = above.filter(|hash| *hash != self.last_hash) {
            let link = Link { number: self.part.end(), found, expected: self.last_hash };
            return Err(self.source.refuse_link(link).into());
        }
        Ok(ProvenRun {
            range: self.part,
            parent_hash: self.parent_hash.unwrap_or_default(),
            last_hash: self.last_hash,
            hashes: self.hashes,
            epoch: None,
            difficulty: None,
        })
    }
}
