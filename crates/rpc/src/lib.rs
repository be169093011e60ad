//! JSON-RPC: requests in, answers out, written straight from stored bytes.
//!
//! Knows: the envelope, batches, the method table, parameters, JSON, refusals and their codes.
//! Never knows: archives, upstream protocols, how segments are laid out.

mod absence;
mod answer;
mod cache;
pub mod compare;
mod envelope;
mod heads;
mod health;
pub mod http;
mod in_time;
mod json;
mod methods;
mod openrpc;
mod params;
mod pass_through;
mod raw;
mod refusal;
mod reply;
mod scan;
mod service;
mod spare;
mod subscription;
mod suggested_tip;

pub use absence::UnknownHash;
pub use health::{CatchingUp, Health};
pub use pass_through::{
    NextMessage, NodeSubscription, PassThrough, PassThroughError, PassThroughMethod,
    PassThroughMethodError, Passing, Subscribing,
};
pub use refusal::Refusal;
pub use reply::refusal_body;
pub use service::{Service, Settings};
