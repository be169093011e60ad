//! What the repository promises about itself, held as tests.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod arrows;
mod fmt;
mod graph;
mod purity;
mod tidy;
