//! Archives and the sample chain from outside, as other crates see them.

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

mod amsterdam;
mod check;
mod damage;
mod fetch;
mod fixtures;
mod import;
mod layouts;
mod round_trip;
mod rules;
mod segments;
mod shared_data;
mod survey;
mod upstream;
