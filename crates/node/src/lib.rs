//! JSON-RPC clients of upstream nodes, over HTTP and WebSocket.
//!
//! Knows: transports, addresses, limits of size and time, pace, peer health, quorum, and how JSON
//! becomes a candidate block.
//! Never knows: whether a block is valid (the verifier decides), what it is used for, or a data folder.
//!
//! Responses are untrusted: their size is bounded before they are parsed, and the blocks they contain
//! become candidates, which the verifier checks like those of archives.

mod address;
mod answer_body;
mod answers;
mod ask_limits;
mod backoff;
mod client;
mod error;
mod fetch;
mod fork_schedule;
mod headers;
mod http;
mod identity;
mod log_limit;
mod methods;
mod pace;
mod rebuild;
mod retry;
mod source_fault;
mod subscription;
mod tls;
mod upstreams;
mod wanted_block;
mod websocket;

pub use address::{AddressError, UpstreamUrl};
pub use answer_body::HasRoom;
pub use ask_limits::AskLimits;
pub use backoff::{PauseRange, with_jitter};
pub use client::Upstream;
pub use error::{AskError, FetchError};
pub use fetch::{BlockTag, HeaderClaim, NodeBlock};
pub use identity::Identity;
pub use log_limit::LogLimit;
pub use methods::{MethodUse, MissingMethod};
pub use source_fault::SourceFault;
pub use subscription::{Subscription, SubscriptionLink};
pub use upstreams::{
    AgreedTip, CLAIMS_MAX, CLAIMS_PER_STEP, Member, MemberHealth, RestLimits, TipNews,
    UpstreamStatus, Upstreams, UpstreamsError,
};
pub use wanted_block::WantedBlock;
