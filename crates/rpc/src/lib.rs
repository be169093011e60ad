//! JSON-RPC: requests in, answers out, written straight from stored bytes.
//!
//! Knows: the envelope, batches, the method table, parameters, JSON, refusals and their codes.
//! Never knows: archives, upstream protocols, how segments are laid out.

mod answer;
pub mod compare;
mod envelope;
mod heads;
pub mod http;
mod json;
mod methods;
mod openrpc;
mod params;
mod raw;
mod refusal;
mod reply;
mod scan;
mod service;
mod subscription;

pub use answer::UnknownHash;
pub use refusal::Refusal;
pub use reply::refusal_body;
pub use service::{Service, Settings};
