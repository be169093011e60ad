//! From a call to its result: what is asked is found in a view and written as JSON.

mod blocks;
mod fees;
mod filters;
mod logs;
mod otterscan;
mod proofs;
mod server;
mod subscriptions;
mod transactions;

use std::sync::{Arc, OnceLock};

use chain::{BlockNumber, BlockRange, ChainSpec};
use store::{Reader, Store, StoreError, View};
use tokio::time::Instant;

use crate::absence::{Absence, HeldHistory, Horizon, UnknownHash};
use crate::admission::ClientId;
use crate::answered_range::AnsweredRange;
use crate::budget::{Budget, ByteLease, LeasedFor, OutOfBudget};
use crate::cache::AnswerCache;
use crate::envelope::Call;
use crate::epoch_trees::EpochTrees;
use crate::filters::{FilterPolls, Filters};
use crate::health::Health;
use crate::json::NotABlock;
use crate::log_filter::LogFilter;
use crate::log_limits::LogLimits;
use crate::methods::{Method, method_table};
use crate::params::{BlockRef, BlockTagName, Params};
use crate::pass_through::Forwarding;
use crate::refusal::Refusal;
use crate::reply::CachedResult;
use crate::shared_logs::SharedLogs;
use crate::subscription::{Channel, SubscriptionIds};
use crate::suggested_tip::SuggestedTip;

pub(crate) use server::CLIENT_VERSION;

pub(crate) const NULL: &[u8] = b"null";

/// What answers depend on beside the parameters.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) view: &'a Arc<View>,
    /// For what is told of the chain as it is now, whatever else the call's batch was answered from.
    pub(crate) store: &'a Store,
    pub(crate) spec: &'a ChainSpec,
    pub(crate) unknown_hash: UnknownHash,
    pub(crate) is_following: bool,
    /// Whether the chain is one of the public networks.
    pub(crate) is_built_in: bool,
    /// The node that can be asked the same, where we know of nothing.
    pub(crate) node: Option<&'a Forwarding>,
    /// How following a node goes, if one is followed.
    pub(crate) health: Option<&'a dyn Health>,
    /// The subscriptions of the connection, if it carries notifications.
    pub(crate) channel: Option<&'a Channel>,
    pub(crate) subscription_ids: &'a SubscriptionIds,
    pub(crate) suggested_tip: &'a SuggestedTip,
    pub(crate) document: &'a [u8],
    pub(crate) cache: &'a AnswerCache,
    /// How much an answer with logs may be.
    pub(crate) log_limits: LogLimits,
    pub(crate) filters: &'a Filters,
    /// The client that its filters count for.
    pub(crate) client: ClientId,
    pub(crate) shared_logs: &'a SharedLogs,
    pub(crate) epoch_trees: &'a EpochTrees,
    /// The filters that were polled for the answer.
    pub(crate) filter_polls: &'a FilterPolls<'a>,
    /// When the call is to be answered.
    pub(crate) until: Option<Instant>,
    /// Where work is counted.
    pub(crate) budget: &'a Arc<Budget>,
    /// Whether the answer that this call is a part of is admitted beyond the limit.
    pub(crate) is_overdraft: bool,
    /// Which blocks the answer is of, where that is told.
    pub(crate) answered_range: &'a OnceLock<AnsweredRange>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// It is told to the client.
    Refused(Refusal),
    /// It is logged, and the client hears that something failed.
    Store(StoreError),
    /// Stored bytes are not what a block has.
    NotABlock,
    /// A hash that is not found here, where not all of history is: a node may have it.
    AskNode,
    /// There is no room for what the answer takes while it is made.
    NoRoom,
}

impl From<OutOfBudget> for CallFailure {
    fn from(_: OutOfBudget) -> Self {
        Self::NoRoom
    }
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NotABlock> for CallFailure {
    fn from(_: NotABlock) -> Self {
        Self::NotABlock
    }
}

/// A result was appended, or is one that the cache holds.
type CallResult = Result<Option<CachedResult>, CallFailure>;

/// Reads a parameter of the shape that a row of the method table says.
macro_rules! read_param {
    ($context:expr, $params:expr, BlockNumberOrTag) => {
        $params.block()?
    };
    ($context:expr, $params:expr, BlockHash) => {
        $params.block_hash()?
    };
    ($context:expr, $params:expr, BlockNumberTagOrHash) => {
        $params.block_or_hash()?
    };
    ($context:expr, $params:expr, OptionalBlock) => {
        $params.optional_block()?
    };
    ($context:expr, $params:expr, Hash) => {
        $params.hash()?
    };
    ($context:expr, $params:expr, Index) => {
        $params.index()?
    };
    ($context:expr, $params:expr, Count) => {
        $params.count()?
    };
    ($context:expr, $params:expr, Bytes) => {
        $params.bytes()?
    };
    ($context:expr, $params:expr, LogFilter) => {
        $params.take(LogFilter::parse)?
    };
    ($context:expr, $params:expr, Flag) => {
        $params.flag()?
    };
    ($context:expr, $params:expr, Percentiles) => {
        $params.percentiles()?
    };
    // What nothing can be sent to is told before what is asked.
    ($context:expr, $params:expr, SubscriptionKind) => {{ ($context.channel()?, $params.text()?) }};
    // What it is depends on the kind.
    ($context:expr, $params:expr, SubscriptionFilter) => {
        &mut $params
    };
    ($context:expr, $params:expr, FilterId) => {
        $params.text()?
    };
    ($context:expr, $params:expr, SubscriptionId) => {{ ($context.channel()?, $params.text()?) }};
}

macro_rules! dispatch {
    ($($method:ident = $name:literal $function:ident($($param:ident: $shape:ident),*) -> $result:ident,
        $summary:literal;)*) => {
        impl Context<'_> {
            /// Appends the result of a call, or tells of one that is kept. After an error, what was
            /// appended is to be taken back.
            pub(crate) async fn answer(
                &self,
                method: Method,
                call: &Call<'_>,
                reader: &mut Reader,
                out: &mut Vec<u8>,
            ) -> CallResult {
                let mut params = Params::new(call.params);
                let mut on = Answering { call, reader, out };
                match method {
                    $(Method::$method => {
                        $(let $param = read_param!(self, params, $shape);)*
                        self.$function(&mut on, $($param),*).await
                    })*
                }
            }
        }
    };
}
method_table!(dispatch);

/// A call on its way to its result.
struct Answering<'a> {
    call: &'a Call<'a>,
    reader: &'a mut Reader,
    /// Where the result is appended.
    out: &'a mut Vec<u8>,
}

impl Context<'_> {
    /// Counts what an answer in the making holds. One that is admitted beyond the limit goes on.
    fn count_held(&self, lease: &mut ByteLease, held: usize) -> Result<(), OutOfBudget> {
        let counted = lease.resize(self.budget, held, LeasedFor::Answer);
        if self.is_overdraft { Ok(()) } else { counted }
    }

    /// The block that a parameter names.
    async fn requested(
        &self,
        reader: &mut Reader,
        block: BlockRef,
    ) -> Result<RequestedBlock, CallFailure> {
        let number = match block {
            BlockRef::Number(number) => Some(BlockNumber(number)),
            BlockRef::Tag(tag) => self.tagged(tag),
            BlockRef::Hash(hash) => {
                return match self.view.find_block(reader, hash).await? {
                    Some(number) => Ok(RequestedBlock::Held(BlockNumber(number.get()))),
                    None => self.unknown_hash(),
                };
            }
        };
        Ok(number.map_or(RequestedBlock::Absent, |number| self.numbered(number)))
    }

    fn tagged(&self, tag: BlockTagName) -> Option<BlockNumber> {
        match tag {
            BlockTagName::Latest => self.view.tip(),
            BlockTagName::Earliest => {
                self.view.coverage().first().map(|range| BlockNumber(range.first()))
            }
            BlockTagName::Safe => self.view.safe(),
            BlockTagName::Finalized => self.view.finalized(),
            BlockTagName::Pending => None,
        }
    }

    fn numbered(&self, number: BlockNumber) -> RequestedBlock {
        let coverage = self.view.coverage();
        let highest = coverage.last();
        if coverage.iter().any(|range| range.contains(number)) {
            RequestedBlock::Held(number)
        } else if highest.is_none_or(|range| number.get() > range.last())
            && self.view.lost().last().is_none_or(|range| number.get() > range.last())
            && self.horizon(coverage).above_tip() == Absence::Absent
        {
            RequestedBlock::Absent
        } else {
            RequestedBlock::Refused(Refusal::BlockNotHeld {
                number: number.get(),
                held: coverage.to_vec(),
            })
        }
    }

    /// What is known of the chain beyond these blocks, which are all that are held.
    fn horizon(&self, held: &[BlockRange]) -> Horizon {
        Horizon {
            history: HeldHistory::of(held, !self.view.lost().is_empty()),
            is_following: self.is_following,
            is_built_in: self.is_built_in,
        }
    }

    /// What becomes of a hash that is not found.
    fn unknown_hash(&self) -> Result<RequestedBlock, CallFailure> {
        let held = self.view.coverage();
        let horizon = self.horizon(held);
        // What is listed and cannot be read is not denied, whoever polls for what is not mined.
        let may_be_missing = !self.view.missing().is_empty();
        if self.node.is_some() && (horizon.may_be_elsewhere() || may_be_missing) {
            return Err(CallFailure::AskNode);
        }
        if let Some(run) = self.view.missing_runs().next() {
            let (held, file_name) = (held.to_vec(), run.file_name.clone());
            return Ok(RequestedBlock::Refused(Refusal::LookupMissing { held, file_name }));
        }
        let absence = horizon.unknown_hash(self.unknown_hash);
        Ok(match absence {
            Absence::Absent if !may_be_missing => RequestedBlock::Absent,
            Absence::Absent | Absence::NotHeld => {
                RequestedBlock::Refused(Refusal::HashNotHeld { held: held.to_vec() })
            }
        })
    }

    /// What is not known here may be a node's to know.
    fn unknown(&self, refusal: Refusal) -> CallFailure {
        if self.node.is_some() { CallFailure::AskNode } else { CallFailure::Refused(refusal) }
    }

    fn receipts_not_held(&self, number: BlockNumber) -> CallFailure {
        let held = self.view.coverage_receipts().to_vec();
        CallFailure::Refused(Refusal::ReceiptsNotHeld { number: number.get(), held })
    }
}

/// What became of the block that was asked for.
enum RequestedBlock {
    Held(BlockNumber),
    Absent,
    Refused(Refusal),
}

impl RequestedBlock {
    fn found(self) -> Result<Option<BlockNumber>, Refusal> {
        match self {
            Self::Held(number) => Ok(Some(number)),
            Self::Absent => Ok(None),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what every way to an answer returns")]
fn null(out: &mut Vec<u8>) -> CallResult {
    out.extend_from_slice(NULL);
    Ok(None)
}

fn put_or_null<T>(
    out: &mut Vec<u8>,
    found: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T) -> Result<(), CallFailure>,
) -> CallResult {
    match found {
        Some(found) => put(out, found).map(|()| None),
        None => null(out),
    }
}
