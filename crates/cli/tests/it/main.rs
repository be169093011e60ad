//! The real executable on temporary folders.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

mod api_docs;
mod compare;
mod data;
mod demo;
mod export;
mod folder_faults;
mod follow;
mod future_fork;
mod golden;
mod health;
mod hosted;
mod hostile;
mod http2;
mod import;
mod kill;
mod limits;
mod live;
mod lost_manifest;
mod new_heads;
mod node_faults;
mod node_socket;
mod node_subscriptions;
mod openrpc;
mod packed;
mod pass_through;
mod raw_requests;
mod recompute;
mod repair;
mod run;
mod sample;
mod serve;
mod served;
mod service;
mod shared_data;
mod socket;
mod stat;
mod stopping;
mod stores;
#[cfg(target_os = "linux")]
mod unsealed;
mod upstream;
mod verify;
mod websocket;
