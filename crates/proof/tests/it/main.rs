//! Bundles that another implementation of tries and headers makes, and what becomes of them.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

mod builder;
mod changes;
mod fixtures;
mod inclusion;
mod logs;
mod roots;
mod ways;
mod whole_block;
