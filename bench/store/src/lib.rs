//! What the storage layer takes and costs, from real runs of the real store.
//!
//! Knows: archives and data folders, clocks of CPU time, memory of processes, and which figures
//! were promised.
//! Never knows: rivals; those are linked by `bench/compare` alone, which borrows the rest from here.
//!
//! Questions are named like `transaction_by_hash_warm`, and each answer is a [`figure::Figure`] with
//! what must hold and what is aimed at.
//!
//! ```
//! use bench_store::figure::{Figure, FigureUnit, Goal, Verdict};
//!
//! let figure = Figure {
//!     name: "bytes_per_transaction",
//!     question: "bytes of a transaction with its receipt".to_owned(),
//!     of: "a sample chain".to_owned(),
//!     value: 140.0,
//!     unit: FigureUnit::BytesPerTx,
//!     goal: Goal::at_most(150.0, 120.0),
//!     note: String::new(),
//! };
//! assert_eq!(figure.verdict(), Verdict::Must);
//! ```

pub mod anatomy;
pub mod archives;
pub mod clock;
pub mod era;
pub mod figure;
pub mod folder;
pub mod keys;
pub mod machine;
pub mod mainnet_size;
pub mod questions;
pub mod random;
pub mod rows;
