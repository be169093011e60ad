//! Upstream nodes: what they are asked over HTTP or WebSocket, and what becomes of their answers.
//!
//! Knows: JSON-RPC as a client, addresses, limits of size and time, how fast a node may be asked, who
//! of several is asked, and how JSON becomes a candidate block.
//! Never knows: whether a block is true, which is the verifier's to say, or what it is wanted for.
//!
//! Nothing that a node says is believed. Its answers are bounded before they are parsed, and become
//! candidates that pass the same door as those of archives.

mod address;
mod answer_body;
mod answers;
mod ask_limits;
mod client;
mod connections;
mod endpoint;
mod error;
mod fetch;
mod fork_schedule;
mod headers;
mod http;
mod identity;
mod keep_alive;
mod methods;
mod pace;
mod rebuild;
mod retry;
mod source_fault;
mod subscription;
mod tip_doubt;
mod tls;
mod upstreams;
mod wanted_block;
mod websocket;

pub use address::{AddressError, UpstreamUrl};
pub use answer_body::HasRoom;
pub use ask_limits::AskLimits;
pub use client::Upstream;
pub use endpoint::Endpoint;
pub use error::{AbsentPart, AskError, FetchError};
pub use fetch::{BlockTag, HeaderClaim, NodeBlock};
pub use identity::{Identity, IdentityDifference};
pub use methods::{MethodUse, MissingMethod};
pub use rebuild::{FalseSender, RebuildFault, ToldSenders};
pub use source_fault::SourceFault;
pub use subscription::{Subscription, SubscriptionLink};
pub use upstreams::{
    AgreedTip, Member, MemberHealth, RestLimits, TipNews, UpstreamStatus, Upstreams, UpstreamsError,
};
pub(crate) use upstreams::{CLAIMS_MAX, CLAIMS_PER_STEP};
pub use wanted_block::WantedBlock;
