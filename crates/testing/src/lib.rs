//! What tests of several crates share: a disk that fails, a mirror that misbehaves, small valid blocks, and
//! real chain data where it is at hand. A dev-dependency only.

#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]
pub mod blocks;
pub mod disk;
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]
pub mod mirror;
pub mod shared_data;
