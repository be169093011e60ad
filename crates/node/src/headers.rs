//! The headers of blocks that a node sent: rebuilt from JSON or, where that gives another hash, raw.
//!
//! A header of a later fork has fields that this build cannot encode from JSON. `debug_getRawHeader`
//! gives it as it is. Where a node does not offer that, its block is refused; the keys that this
//! build does not know are why it does not count as invalid.

use alloy_primitives::{B256, Bytes};
use tracing::debug;

use super::answers::{Answer, NodeCall};
use super::client::{ByteBudget, Upstream};
use super::error::FetchError;
use super::rebuild::{HeaderJson, find_unknown_body, find_unknown_key, parse};
use super::wanted_block::WantedBlock;

/// A header whose hash is the one that is claimed.
#[derive(Clone, Debug)]
pub(super) struct HashedHeader {
    pub(super) rlp: Bytes,
    pub(super) hash: B256,
    /// The hashes of its block's ommers, by the node's word.
    pub(super) uncles: Vec<B256>,
}

/// A header that JSON gave, and the hash of its fields.
struct JsonHeader {
    header: HashedHeader,
    found: B256,
}

impl Upstream {
    /// The header of a block that the node gave. It has the hash that was requested or is claimed.
    pub(super) async fn fetch_header(
        &self,
        which: &WantedBlock,
        block: &[u8],
    ) -> Result<HashedHeader, FetchError> {
        let json = read_header(which, block)?;
        if json.found == json.header.hash {
            return Ok(json.header);
        }
        let raw = self.fetch_raw(which.number(), json.header.hash).await;
        take_raw(which.number(), block, json, raw)
    }

    /// The raw header of this hash, if the node offers raw headers. It is requested by number, which is
    /// the specified parameter, and by hash, which also finds a block that left the chain meanwhile.
    async fn fetch_raw(&self, number: u64, hash: B256) -> Option<Bytes> {
        let call = |params| NodeCall::new("debug_getRawHeader", params);
        let calls = [call(format!("[\"{number:#x}\"]")), call(format!("[\"{hash}\"]"))];
        let mut budget = ByteBudget::new(self.answer_bytes_max());
        let answers = self.ask_within(&calls, &mut budget).await;
        let answers = answers.inspect_err(|error| {
            debug!(upstream = self.name(), %error, "no raw headers");
        });
        let rlp = |answer: Answer| serde_json::from_slice::<Bytes>(&answer.ok()??).ok();
        answers.ok()?.into_iter().filter_map(rlp).find(|rlp| chain::hash_header(rlp) == hash)
    }
}

/// The header that a node claims for a block, if the block's JSON alone gives its hash.
pub(super) fn claimed_header(
    which: &WantedBlock,
    block: &[u8],
) -> Result<HashedHeader, FetchError> {
    let json = read_header(which, block)?;
    if json.found == json.header.hash {
        return Ok(json.header);
    }
    take_raw(which.number(), block, json, None)
}

fn read_header(which: &WantedBlock, block: &[u8]) -> Result<JsonHeader, FetchError> {
    let number = which.number();
    let json: HeaderJson = parse("header", block).map_err(|fault| {
        // A later fork may also have taken members away.
        match find_unknown_key(block) {
            Some(name) => unknown_fork(number, which.hash(), &fault.to_string(), &name),
            None => FetchError::Invalid { number, reason: fault.to_string() },
        }
    })?;
    let (hash, uncles) = (json.hash, json.uncles.clone());
    let header = json.into_header();
    if header.number != number {
        let reason = format!("the header is of block {}", header.number);
        return Err(FetchError::Invalid { number, reason });
    }
    if let Some(expected) = which.hash().filter(|expected| *expected != hash) {
        return Err(FetchError::Invalid { number, reason: wrong_hash(hash, expected) });
    }
    let rlp: Bytes = alloy_rlp::encode(&header).into();
    let found = chain::hash_header(&rlp);
    Ok(JsonHeader { header: HashedHeader { rlp, hash, uncles }, found })
}

/// The header of a block whose JSON gives another hash: the raw one, if it has the right hash.
fn take_raw(
    number: u64,
    block: &[u8],
    json: JsonHeader,
    raw: Option<Bytes>,
) -> Result<HashedHeader, FetchError> {
    let JsonHeader { header, found } = json;
    let Some(rlp) = raw else {
        let reason = wrong_hash(found, header.hash);
        return Err(match find_unknown_key(block) {
            Some(name) => unknown_fork(number, Some(header.hash), &reason, &name),
            None => FetchError::Invalid { number, reason },
        });
    };
    // The header would be right, but a block without this part of its body would not be whole.
    match find_unknown_body(block) {
        Some(name) => {
            Err(unknown_fork(number, Some(header.hash), "its body has another shape", &name))
        }
        None => Ok(HashedHeader { rlp, ..header }),
    }
}

fn wrong_hash(found: B256, expected: B256) -> String {
    format!("the header has hash {found}, expected {expected}")
}

fn unknown_fork(number: u64, hash: Option<B256>, fault: &str, name: &str) -> FetchError {
    let reason = format!("{fault}, and it has a key `{name}`, which this build does not know");
    FetchError::UnknownFork { number, hash, reason }
}
