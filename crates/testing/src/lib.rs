//! Test doubles that tests of several crates share: a disk that fails, a mirror that misbehaves, and
//! real chain data where it is at hand. A dev-dependency only.

pub mod disk;
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]
pub mod mirror;
pub mod shared_data;
