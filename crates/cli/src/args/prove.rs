//! The arguments of `quipu prove` and `quipu verify-proof`.
//!
//! Knows: flags and their help.
//! Never knows: what a bundle is.

use std::path::PathBuf;

use alloy_primitives::B256;
use clap::ArgGroup;
use proof::ProofAnchor;

use super::DataArgs;
use crate::amounts::parse_hash;

pub(crate) const PROVE_EXAMPLES: &str = "\
Examples:
  quipu prove --data-dir data 0x5c50...2060 > bundle.json
  quipu prove --data-dir data --block 17000000 --to finalized > block.json
  quipu prove --data-dir data --log 17000000:12 | quipu verify-proof
  quipu prove --data-dir data --logs '{\"fromBlock\":\"0x1\",\"toBlock\":\"0x9\",\"address\":\"0x...\"}'

A server answers the same bundles: quipu_proveReceipt and its kin, see docs/proofs.md.";

pub(crate) const VERIFY_EXAMPLES: &str = "\
Examples:
  quipu verify-proof bundle.json --anchor 17000100:0x9b83...c9f2
  quipu prove --data-dir data 0x5c50...2060 | quipu verify-proof

Without --anchor a bundle must lead to mainnet's accumulator of blocks before the merge (EIP-7643), or \
it is proven only as far as the anchor is canonical, which is said. Exits with 1 if it is refused.";

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("subject").required(true))]
pub(crate) struct ProveArgs {
    /// The transaction to prove, with its receipt
    #[arg(value_name = "HASH", value_parser = parse_hash, group = "subject")]
    pub(crate) hash: Option<B256>,
    /// Leave the receipt out
    #[arg(long, conflicts_with_all = ["block", "log", "logs"])]
    pub(crate) without_receipt: bool,
    /// Prove all of a block: a number, a hash or a tag such as finalized
    #[arg(long, value_name = "BLOCK", group = "subject")]
    pub(crate) block: Option<String>,
    /// Prove a log: its block, a colon, and its index among the block's logs
    #[arg(long, value_name = "BLOCK:INDEX", group = "subject")]
    pub(crate) log: Option<String>,
    /// Prove which logs a filter asks for, and that there are no others: as `eth_getLogs` takes it
    #[arg(long, value_name = "JSON", group = "subject")]
    pub(crate) logs: Option<String>,
    /// Lead to this block, at most 1,000 above: a number or a tag [default: the nearest anchor]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyProofArgs {
    /// The bundle; - or nothing reads it from a pipe
    #[arg(value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
    /// An anchor that you trust: NUMBER:HASH, or accumulator:ROOT; may be repeated
    #[arg(long = "anchor", value_name = "NUMBER:HASH")]
    pub(crate) anchors: Vec<ProofAnchor>,
}
