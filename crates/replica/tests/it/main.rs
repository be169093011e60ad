//! What a bucket promises, over stores that work and stores that fail.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

mod conformance;
mod faulty_store;
mod history;
mod looks;
mod model;
mod publish;
mod upkeep;
mod web_server;
