//! A well-formed "no": every way in which a call is not answered with a result.

use std::fmt;

use chain::BlockRange;

use crate::heads::BrokenLink;

// Messages that take more than a line.
const CHAIN_ID_UNKNOWN: &str = "chain id not known: no block held names it, and no flag does";
const BLOCK_RANGE_BEYOND_HEAD: &str = "block range extends beyond current head block";
const FILTER_NOT_FOUND: &str = "filter not found";
const FILTERS_TOO_LARGE: &str = "too many addresses and topics in the filters of all clients: \
    ask for fewer, or try again later";
const FORKS_UNKNOWN: &str =
    "forks of this chain not known: the operator names them with --genesis FILE";
const ISSUANCE_UNKNOWN: &str = "block rewards of this chain not known: the operator describes it \
    with --genesis FILE, unless its consensus is not Ethereum's";
const NOT_AT_TIP: &str =
    "no gas price without the tip: no node is followed, or its tip is not reached; ask a node";

/// Why a call gets an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The body is not JSON.
    ParseError,
    /// Not a request.
    InvalidRequest,
    /// A batch of nothing.
    EmptyBatch,
    /// A batch of more than is allowed.
    BatchTooLarge,
    /// Nobody has a method of that length.
    MethodTooLong {
        /// Its length.
        bytes: usize,
        /// How long one may be.
        bytes_max: usize,
    },
    /// A method that is not served here.
    UnknownMethod {
        /// Its name.
        method: String,
        /// Whether a node needs the state of accounts for it.
        needs_state: bool,
    },
    /// Parameters by name.
    NotPositional,
    /// A parameter that is not there.
    MissingParam {
        /// Which one, from 0.
        index: usize,
    },
    /// A parameter that its place does not allow.
    BadParam {
        /// Which one, from 0.
        index: usize,
        /// Why.
        reason: String,
    },
    /// The answers of a batch have become too long.
    ResponseTooLarge,
    /// It took too long.
    TimedOut,
    /// A block that is not held.
    BlockNotHeld {
        /// Which one.
        number: u64,
        /// What is held.
        held: Vec<BlockRange>,
    },
    /// A hash that is not held, while not all of history is.
    HashNotHeld {
        /// What is held.
        held: Vec<BlockRange>,
    },
    /// A hash that is not found, while a lookup run that may tell it cannot be read.
    LookupMissing {
        /// What is held.
        held: Vec<BlockRange>,
        /// The file of the run.
        file_name: String,
    },
    /// Receipts of a block that was taken without them.
    ReceiptsNotHeld {
        /// Which block.
        number: u64,
        /// The blocks whose receipts are held.
        held: Vec<BlockRange>,
    },
    /// The access list of a block that has one: none is stored.
    AccessListNotHeld {
        /// Which block.
        number: u64,
    },
    /// Something that no node has: the access list of a block that has none.
    ResourceNotFound {
        /// Of what.
        reason: String,
    },
    /// A range of blocks whose first comes after its last.
    InvalidBlockRange,
    /// A range of blocks that ends above the newest.
    BlockRangeBeyondHead,
    /// More logs, or more work to find them, than one answer has.
    LogLimit {
        /// Which limit.
        exceeded: ExceededLogLimit,
        /// Blocks from the first that was asked for that one answer can be of.
        fits: BlockRange,
    },
    /// A proof that is to end at an anchor to which no way leads.
    NoWayToAnchor {
        /// Why.
        reason: String,
    },
    /// Logs of a block that is not mined.
    PendingLogs,
    /// Logs of a block that does not exist.
    UnknownBlock,
    /// A method that the caller's key does not allow.
    MethodNotAllowed {
        /// Its name.
        method: String,
    },
    /// More than may be asked in a second.
    RateLimited(ExceededRate),
    /// The request was not taken by the transport.
    Transport {
        /// Why.
        reason: String,
    },
    /// The chain id that is asked for is not known.
    ChainIdUnknown,
    /// No block is held, and the question is about the newest.
    NothingHeld,
    /// A range that ends above the newest block.
    BeyondHead {
        /// Its end.
        requested: u64,
        /// The newest block.
        head: u64,
    },
    /// A tag that names no block here.
    TagUnknown {
        /// Which one.
        tag: &'static str,
    },
    /// The answer depends on forks that nobody told.
    ForksUnknown,
    /// The answer depends on a blob schedule that nobody told.
    BlobPriceUnknown {
        /// The time of the block whose price is asked for.
        timestamp: u64,
    },
    /// The answer depends on block rewards that nobody told.
    IssuanceUnknown,
    /// A price is suggested only at the tip of a chain that is followed.
    NotAtTip,
    /// A subscription over a transport that carries answers only.
    NoNotifications,
    /// Nobody can subscribe to that.
    UnknownSubscription {
        /// What was asked for.
        kind: String,
    },
    /// No subscription of this connection has that id.
    SubscriptionNotFound,
    /// A connection has as many subscriptions as it may.
    TooManySubscriptions {
        /// So many.
        count_max: usize,
        /// Whose they are.
        of: &'static str,
    },
    /// No filter has that id: none ever had, or it was not polled for long.
    FilterNotFound,
    /// A filter whose changes cannot be told, and that is dropped.
    FilterDropped {
        /// Why.
        reason: &'static str,
    },
    /// There are as many filters as there may be.
    TooManyFilters {
        /// So many.
        count_max: usize,
    },
    /// The filters that are kept have more addresses and topics than there is room for.
    FiltersTooLarge,
    /// The node's own refusal of what was asked of it in our place.
    ByNode {
        /// Its code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// The node that would be asked in our place is not of our chain, or contradicts us.
    NotPassed {
        /// Why.
        reason: String,
    },
    /// The node that was asked in our place gave no answer. The log says why.
    UpstreamFailed,
    /// Something failed here. The client sees no detail; the log does.
    Internal,
}

impl Refusal {
    /// The code of the error.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest
            | Self::EmptyBatch
            | Self::BatchTooLarge
            | Self::MethodTooLong { .. } => -32600,
            Self::UnknownMethod { .. }
            | Self::NoNotifications
            | Self::UnknownSubscription { .. } => -32601,
            Self::NotPositional
            | Self::MissingParam { .. }
            | Self::BadParam { .. }
            | Self::InvalidBlockRange
            | Self::BlockRangeBeyondHead
            | Self::NoWayToAnchor { .. }
            | Self::PendingLogs => -32602,
            Self::ResponseTooLarge => -32003,
            // EIP-1474: a limit is exceeded; providers answer it for logs and for rates.
            Self::LogLimit { .. }
            | Self::TooManyFilters { .. }
            | Self::FiltersTooLarge
            | Self::RateLimited(_) => -32005,
            // Besu's code for a method that is there and not open to the caller.
            Self::MethodNotAllowed { .. } => -32604,
            Self::TimedOut => -32002,
            // EIP-1474.
            Self::ResourceNotFound { .. } => -32001,
            // EIP-4444: history that is not available here.
            Self::BlockNotHeld { .. }
            | Self::HashNotHeld { .. }
            | Self::LookupMissing { .. }
            | Self::ReceiptsNotHeld { .. }
            | Self::AccessListNotHeld { .. } => 4444,
            Self::UnknownBlock
            | Self::ChainIdUnknown
            | Self::NothingHeld
            | Self::BeyondHead { .. }
            | Self::TagUnknown { .. }
            | Self::ForksUnknown
            | Self::IssuanceUnknown
            | Self::BlobPriceUnknown { .. }
            | Self::NotAtTip
            | Self::NotPassed { .. }
            | Self::Transport { .. }
            | Self::SubscriptionNotFound
            | Self::FilterNotFound
            | Self::FilterDropped { .. }
            | Self::TooManySubscriptions { .. } => -32000,
            Self::UpstreamFailed | Self::Internal => -32603,
            Self::ByNode { code, .. } => *code,
        }
    }

    /// The message of the error, in geth's words where it has some.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::ParseError => "parse error".to_owned(),
            Self::InvalidRequest => "invalid request".to_owned(),
            Self::EmptyBatch => "empty batch".to_owned(),
            Self::BatchTooLarge => "batch too large".to_owned(),
            Self::MethodTooLong { bytes, bytes_max } => {
                format!("method name too long: {bytes} > {bytes_max}")
            }
            Self::UnknownMethod { method, needs_state } => not_served(method, *needs_state),
            Self::MethodNotAllowed { method } => not_allowed(method),
            Self::RateLimited(exceeded) => exceeded.to_string(),
            Self::NotPositional => "non-array args".to_owned(),
            Self::MissingParam { index } => format!("missing value for required argument {index}"),
            Self::BadParam { index, reason } => format!("invalid argument {index}: {reason}"),
            Self::ResponseTooLarge => "response too large".to_owned(),
            Self::TimedOut => "request timed out".to_owned(),
            Self::BlockNotHeld { number, held } => {
                format!("pruned history unavailable: block {number} not found in {}", blocks(held))
            }
            Self::HashNotHeld { held } => {
                format!("pruned history unavailable: hash not found in {}", blocks(held))
            }
            Self::LookupMissing { held, file_name } => not_looked_up(held, file_name),
            Self::ReceiptsNotHeld { number, .. } => {
                format!("receipts not found: block {number} is held without them")
            }
            Self::AccessListNotHeld { number } => access_list_not_held(*number),
            Self::ResourceNotFound { reason } => format!("resource not found: {reason}"),
            Self::InvalidBlockRange => "invalid block range params".to_owned(),
            Self::BlockRangeBeyondHead => BLOCK_RANGE_BEYOND_HEAD.to_owned(),
            Self::LogLimit { exceeded, fits } => split_range(&exceeded.to_string(), *fits),
            Self::NoWayToAnchor { reason } => format!("no way to the anchor: {reason}"),
            Self::PendingLogs => "pending logs are not supported".to_owned(),
            Self::UnknownBlock => "unknown block".to_owned(),
            Self::Transport { reason } => reason.clone(),
            Self::ChainIdUnknown => CHAIN_ID_UNKNOWN.to_owned(),
            Self::NothingHeld => "no block is held yet".to_owned(),
            Self::BeyondHead { requested, head } => {
                format!("request beyond head block: requested {requested}, head {head}")
            }
            Self::TagUnknown { tag } => format!("{tag} block not found"),
            Self::ForksUnknown => FORKS_UNKNOWN.to_owned(),
            Self::IssuanceUnknown => ISSUANCE_UNKNOWN.to_owned(),
            Self::BlobPriceUnknown { timestamp } => {
                format!(
                    "blob schedule of this chain not known at time {timestamp}: the operator names \
                     it with --genesis FILE, or follows a node that answers eth_config"
                )
            }
            Self::NotAtTip => NOT_AT_TIP.to_owned(),
            Self::NoNotifications => "notifications not supported".to_owned(),
            Self::UnknownSubscription { kind } => {
                format!("no \"{kind}\" subscription in eth namespace")
            }
            Self::SubscriptionNotFound => "subscription not found".to_owned(),
            Self::TooManySubscriptions { count_max, of } => {
                format!("too many subscriptions: {count_max} on {of}")
            }
            Self::FilterNotFound => FILTER_NOT_FOUND.to_owned(),
            Self::FilterDropped { reason } => {
                format!("{FILTER_NOT_FOUND}: dropped, {reason}")
            }
            Self::TooManyFilters { count_max } => too_many_filters(*count_max),
            Self::FiltersTooLarge => FILTERS_TOO_LARGE.to_owned(),
            Self::ByNode { message, .. } => message.clone(),
            Self::NotPassed { reason } => format!("not passed to the upstream node: {reason}"),
            Self::UpstreamFailed => "upstream node gave no answer".to_owned(),
            Self::Internal => "internal error".to_owned(),
        }
    }

    /// The ranges that are held, where the refusal is about them.
    #[must_use]
    pub fn held(&self) -> Option<&[BlockRange]> {
        match self {
            Self::BlockNotHeld { held, .. }
            | Self::HashNotHeld { held }
            | Self::LookupMissing { held, .. }
            | Self::ReceiptsNotHeld { held, .. } => Some(held),
            Self::AccessListNotHeld { .. } => Some(&[]),
            Self::ParseError
            | Self::InvalidRequest
            | Self::EmptyBatch
            | Self::BatchTooLarge
            | Self::MethodTooLong { .. }
            | Self::UnknownMethod { .. }
            | Self::MethodNotAllowed { .. }
            | Self::RateLimited(_)
            | Self::NotPositional
            | Self::MissingParam { .. }
            | Self::BadParam { .. }
            | Self::ResponseTooLarge
            | Self::TimedOut
            | Self::ResourceNotFound { .. }
            | Self::InvalidBlockRange
            | Self::BlockRangeBeyondHead
            | Self::LogLimit { .. }
            | Self::NoWayToAnchor { .. }
            | Self::PendingLogs
            | Self::UnknownBlock
            | Self::Transport { .. }
            | Self::ChainIdUnknown
            | Self::NothingHeld
            | Self::BeyondHead { .. }
            | Self::TagUnknown { .. }
            | Self::ForksUnknown
            | Self::IssuanceUnknown
            | Self::BlobPriceUnknown { .. }
            | Self::NotAtTip
            | Self::NoNotifications
            | Self::UnknownSubscription { .. }
            | Self::SubscriptionNotFound
            | Self::TooManySubscriptions { .. }
            | Self::FilterNotFound
            | Self::FilterDropped { .. }
            | Self::TooManyFilters { .. }
            | Self::FiltersTooLarge
            | Self::ByNode { .. }
            | Self::NotPassed { .. }
            | Self::UpstreamFailed
            | Self::Internal => None,
        }
    }
}

impl From<BrokenLink> for Refusal {
    fn from(link: BrokenLink) -> Self {
        let reason = match link {
            BrokenLink::RemovedUnknown => "blocks that left the chain are not known any more",
            BrokenLink::AddedNotHeld => "new blocks below the tip are not held",
        };
        Self::FilterDropped { reason }
    }
}

fn not_served(method: &str, needs_state: bool) -> String {
    if needs_state {
        return format!(
            "the method {method} is not available: it needs state, which Quipu does not store; the \
             operator can forward it to a node with --pass-through {method}"
        );
    }
    format!("the method {method} does not exist/is not available")
}

fn access_list_not_held(number: u64) -> String {
    format!("pruned history unavailable: access list of block {number} not found")
}

fn not_allowed(method: &str) -> String {
    format!("the method {method} is not allowed for this key")
}

fn too_many_filters(count_max: usize) -> String {
    format!("too many filters: {count_max}, all polled lately; try again later")
}

fn not_looked_up(held: &[BlockRange], file_name: &str) -> String {
    let held = blocks(held);
    format!("pruned history unavailable: hash not found in {held}, and {file_name} cannot be read")
}

/// A rate that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededRate {
    /// How much may be asked in a second.
    pub per_second: u32,
    /// Of what.
    pub unit: &'static str,
    /// Whose limit it is.
    pub whose: &'static str,
    /// After which there is room again.
    pub seconds: u64,
}

impl fmt::Display for ExceededRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, unit, whose, seconds } = self;
        write!(
            f,
            "rate limit exceeded: {per_second} {unit} per second for {whose}; retry in {seconds} s"
        )
    }
}

/// A limit of an answer with logs, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLogLimit {
    /// Logs.
    Logs(u64),
    /// Bytes of the result.
    Bytes(u64),
    /// Blocks without a log index.
    UnindexedBlocks(u64),
    /// Bytes of blocks that are read.
    ReadBytes(u64),
}

impl ExceededLogLimit {
    /// The value of the limit.
    pub(crate) fn value(self) -> u64 {
        let (Self::Logs(value)
        | Self::Bytes(value)
        | Self::UnindexedBlocks(value)
        | Self::ReadBytes(value)) = self;
        value
    }
}

/// Names the flag of the limit. All begin with the words by which squid and ponder know that a range is
/// to be split.
impl fmt::Display for ExceededLogLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Logs(count) => write!(f, "query returned more than {count} results (--logs-max)"),
            Self::Bytes(bytes) => {
                write!(f, "query returned more than {bytes} bytes of results (--logs-bytes-max)")
            }
            Self::UnindexedBlocks(count) => write!(
                f,
                "query returned more than can be searched: over {count} blocks have no log index \
                 (--logs-unindexed-blocks-max), which the operator builds with quipu index"
            ),
            Self::ReadBytes(bytes) => write!(
                f,
                "query returned more than can be read for one answer: over {bytes} bytes of stored \
                 blocks (--logs-read-bytes-max)"
            ),
        }
    }
}

/// The sentence by which ponder, rindexer and graph-node split a range, and that of
/// `HyperIndex`.
fn split_range(reason: &str, fits: BlockRange) -> String {
    let (first, last) = (fits.first(), fits.last());
    format!(
        "{reason}. Try with this block range [{first:#x}, {last:#x}]. In decimal: retry with the \
         range {first}-{last}."
    )
}

fn blocks(held: &[BlockRange]) -> String {
    let ranges: Vec<String> = held.iter().map(ToString::to_string).collect();
    if ranges.is_empty() {
        "held blocks (none)".to_owned()
    } else {
        format!("held blocks {}", ranges.join(", "))
    }
}
