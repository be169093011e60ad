//! The store from outside, as other crates see it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

mod disk_conformance;
mod head_crashes;
mod model;
