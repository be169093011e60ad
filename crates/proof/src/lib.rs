//! Verifies a proof bundle: that a transaction, a receipt, a log, a block or a complete list of logs
//! belongs to the history that ends in a block hash.
//!
//! Knows: the text of a bundle (`docs/proofs.md`), and what a header commits to.
//! Never knows: the server's code, files, sockets, clocks, or which chain is canonical: whoever calls
//! says which anchors they trust.
//!
//! ```
//! use proof::{ProofAnchor, ProofBundle, verify};
//!
//! # fn check(text: &[u8]) -> Result<(), Box<dyn core::error::Error>> {
//! let anchor = "12:0x6d1e0a8ff9fe8f2bb7a8ed2e6dca1e1a1f4e3c2b1a0f9e8d7c6b5a4938271605";
//! let bundle = ProofBundle::parse(text)?;
//! let verdict = verify(&bundle, &[anchor.parse::<ProofAnchor>()?])?;
//! println!("{verdict}");
//! # Ok(())
//! # }
//! # assert!(check(b"{}").is_err());
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod anchor;
mod bundle;
mod filter;
mod hash;
mod header;
mod path;
mod receipt;
mod rlp;
mod root;
mod step;
mod text;
mod verdict;
mod verify;

pub use anchor::{MAINNET_ACCUMULATOR, ProofAnchor, ProofAnchorError};
pub use bundle::{BUNDLE_BYTES_MAX, ProofBundle};
pub use filter::ProofFilter;
pub use hash::Hash32;
pub use receipt::ProvenLog;
pub use step::{ProofRefusal, ProofStep, ProofStepName};
pub use verdict::{AnchorTrust, ProofVerdict, ProvenBlock, ProvenClaim};
pub use verify::verify;
