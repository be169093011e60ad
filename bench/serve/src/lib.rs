//! How fast answers are served, beside nginx returning the same bytes and beside nodes.
//!
//! Knows: servers as programs and addresses, load generators, and which figures were promised.
//! Never knows: how an answer is found.
//!
//! Everything runs on one machine, the load generator on the same cores as the server: what one takes
//! the other lacks, for every contestant alike. They take turns in short rounds, and what counts is
//! the ratio of each round, since the speed of a shared machine changes from minute to minute.
//!
//! ```
//! use bench_serve::call::{batch, block_by_number};
//! use bench_serve::contest::median;
//!
//! let calls = [block_by_number("0x1", false), block_by_number("0x2", true)];
//! assert!(batch(&calls).starts_with(r#"[{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber""#));
//! // Of rounds in which the server had so many answers for each of nginx.
//! assert_eq!(median(vec![0.9, 0.5, 0.8]), 0.8);
//! ```

mod beside_nodes;
pub mod call;
pub mod certificate;
pub mod chain_keys;
pub mod circumstances;
pub mod contest;
pub mod http;
pub mod load;
pub mod lookups;
pub mod machine;
pub mod nginx;
pub mod node;
pub mod page;
pub mod plot;
pub mod process;
pub mod questions;
pub mod quipu;
pub mod report;
pub mod request;
pub mod run;
mod scaling;
pub mod server;
pub mod storm;
