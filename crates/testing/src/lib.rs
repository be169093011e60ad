//! What tests of several crates share: a disk that fails, a mirror that misbehaves, small valid blocks, and
//! real chain data where it is present. A dev-dependency only.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

pub mod blocks;
pub mod disk;
pub mod mirror;
pub mod shared_data;
