//! The arguments of `quipu prove` and `quipu verify-proof`.

use std::path::PathBuf;

use alloy_primitives::B256;
use clap::ArgGroup;
use proof::ProofAnchor;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::DataArgs;
use crate::amounts::parse_hash;

pub(crate) const PROVE_EXAMPLES: &str = "\
Examples:
  quipu prove --data-dir data 0x5c50...2060 > bundle.json
  quipu prove --data-dir data --block 17000000 --to 17000100 > block.json
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
    #[arg(long, value_name = "BLOCK", value_parser = parse_block_or_hash, group = "subject")]
    pub(crate) block: Option<Value>,
    /// Prove a log: its block, a colon, and its index among the block's logs
    #[arg(long, value_name = "BLOCK:INDEX", value_parser = parse_log, group = "subject")]
    pub(crate) log: Option<LogSubject>,
    /// Prove which logs a filter asks for, as `eth_getLogs` takes it, and that there are no others; a
    /// bundle has at most 1,000 blocks, and a warning names what is left
    #[arg(long, value_name = "JSON", value_parser = parse_filter, group = "subject")]
    pub(crate) logs: Option<Box<RawValue>>,
    /// Lead to this block, at most 1,000 above: a number or a tag [default: the nearest anchor]
    #[arg(long, value_name = "BLOCK", value_parser = parse_block)]
    pub(crate) to: Option<Value>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyProofArgs {
    /// The bundle; - or nothing reads it from a pipe
    #[arg(value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
    /// An anchor that you trust: NUMBER:HASH, or accumulator:ROOT; may be repeated
    #[arg(long = "anchor", value_name = "NUMBER:HASH", value_delimiter = ',')]
    pub(crate) anchors: Vec<ProofAnchor>,
}

/// A log by its block, as a method takes it, and its index there.
#[derive(Clone, Debug)]
pub(crate) struct LogSubject {
    pub(crate) block: Value,
    pub(crate) index: u64,
}

const TAGS: [&str; 4] = ["latest", "finalized", "safe", "earliest"];
const HASH_DIGITS: usize = 64;

/// A number or a tag, as a method takes it.
fn parse_block(text: &str) -> Result<Value, String> {
    let hex = text.strip_prefix("0x").filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
    let is_number = hex.is_some() || text.bytes().all(|it| it.is_ascii_digit());
    let number = match hex {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match number {
        Some(number) if is_number => Ok(json!(number)),
        _ if TAGS.contains(&text) => Ok(json!(text)),
        _ if is_number && (1..HASH_DIGITS).contains(&hex.unwrap_or(text).len()) => {
            Err("no block has this number: it has more than 64 bits".to_owned())
        }
        _ => Err(format!("write a number or one of {}", TAGS.join(", "))),
    }
}

fn parse_block_or_hash(text: &str) -> Result<Value, String> {
    if text.strip_prefix("0x").is_some_and(|digits| digits.len() == HASH_DIGITS) {
        return parse_hash(text).map(|hash| json!(hash));
    }
    parse_block(text)
}

fn parse_log(text: &str) -> Result<LogSubject, String> {
    let wrong = || "write a block, a colon and an index, such as 17000000:12".to_owned();
    let (block, index) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_decimal = index.bytes().all(|it| it.is_ascii_digit());
    let index = index.parse().ok().filter(|_| is_decimal).ok_or_else(wrong)?;
    Ok(LogSubject { block: parse_block_or_hash(block)?, index })
}

/// As it is written: read into a map, a member that stands twice would be taken for one.
fn parse_filter(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a filter in JSON: {error}"))
}
