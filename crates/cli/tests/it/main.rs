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

#[path = "../harness/mod.rs"]
mod harness;

mod admission;
mod api_docs;
mod bucket;
mod command_line;
mod compare;
mod config;
mod demo;
mod descriptors;
mod doctor;
mod explorer;
mod export;
mod fetch;
mod filters;
mod folder_faults;
mod follow;
mod future_fork;
mod generated;
mod golden;
mod health;
mod health_command;
mod hostile;
mod import;
mod interrupt;
mod kill;
mod limits;
mod logs;
mod lost_manifest;
mod metrics;
mod missing_segments;
mod new_heads;
mod new_logs;
mod node_faults;
mod node_subscriptions;
mod openrpc;
mod packed;
mod pass_through;
mod proofs;
mod raw_requests;
mod recompute;
mod reloading;
mod repair;
mod sample;
mod serve;
mod service;
mod shared_data;
mod stat;
mod stat_page;
mod stopping;
mod supervisor;
mod tls;
#[cfg(target_os = "linux")]
mod unsealed;
mod verify;
mod websocket;
