//! What a bucket promises, over stores that work and stores that fail.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should fail at once"
)]

mod bit_writer;
mod conformance;
mod counted_store;
mod faulty_store;
mod folder;
mod history;
mod key_buckets;
mod large_bucket;
mod looks;
mod model;
mod publish;
mod round_trips;
mod sized_file;
mod sized_postings;
mod sized_run;
mod true_segment;
mod upkeep;
mod web_server;
