//! The headers of blocks that a node gave: rebuilt from JSON or, where that gives another hash, raw.
//!
//! Knows: that the hash which is claimed decides, and what tells a node on a later fork from one that
//! lies about a header.
//! Never knows: bodies, receipts, or where a header stands in a chain.
//!
//! A header of a later fork has fields that this build cannot encode from JSON. `debug_getRawHeader`
//! gives it as it is. Where a node does not offer that, its block is refused; the keys that this
//! build does not know are why it does not count as invalid.

use alloy_primitives::{B256, Bytes};
use hyper::body::Bytes as Answered;
use tracing::debug;

use super::answers::NodeCall;
use super::client::{ByteBudget, Upstream};
use super::error::FetchError;
use super::rebuild::{HeaderJson, RebuildFault, find_unknown_body, find_unknown_key, parse};
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
    /// The headers of these blocks in their order; each has the hash that was asked for, or that the
    /// node claims.
    pub(super) async fn fetch_headers(
        &self,
        blocks: &[(WantedBlock, Answered)],
    ) -> Result<Vec<HashedHeader>, FetchError> {
        let mut headers = Vec::with_capacity(blocks.len());
        for (which, block) in blocks {
            headers.push(read_header(which, block)?);
        }
        let is_other = |it: &JsonHeader| it.found != it.header.hash;
        let others = blocks.iter().zip(&headers).filter(|(_, header)| is_other(header));
        let calls: Vec<NodeCall> =
            others.flat_map(|((which, _), it)| raw_calls(which.number(), it.header.hash)).collect();
        let mut raw = self.fetch_raw(&calls).await.into_iter();
        let mut hashed = Vec::with_capacity(headers.len());
        for ((which, block), json) in blocks.iter().zip(headers) {
            if !is_other(&json) {
                hashed.push(json.header);
                continue;
            }
            let told = [raw.next().flatten(), raw.next().flatten()].into_iter().flatten();
            let hash = json.header.hash;
            let own = told.into_iter().find(|rlp| chain::hash_header(rlp) == hash);
            hashed.push(take_raw(which.number(), block, json, own)?);
        }
        Ok(hashed)
    }

    /// What the node answers as raw headers. One that does not know the question gives none.
    async fn fetch_raw(&self, calls: &[NodeCall]) -> Vec<Option<Bytes>> {
        if calls.is_empty() {
            return Vec::new();
        }
        let mut budget = ByteBudget::new(self.answer_bytes_max());
        match self.ask_within(calls, &mut budget).await {
            Ok(answers) => {
                let rlp = |text: Answered| serde_json::from_slice::<Bytes>(&text).ok();
                answers.into_iter().map(|answer| answer.ok().flatten().and_then(rlp)).collect()
            }
            Err(error) => {
                debug!(upstream = self.name(), %error, "the node gives no raw headers");
                Vec::new()
            }
        }
    }
}

/// A raw header is asked for by number, as the specification has it, and by hash, which finds also a
/// block that left the chain meanwhile.
fn raw_calls(number: u64, hash: B256) -> [NodeCall; 2] {
    let call = |params| NodeCall::new("debug_getRawHeader", params);
    [call(format!("[\"{number:#x}\"]")), call(format!("[\"{hash}\"]"))]
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
    let lie = |fault| FetchError::Rebuild { number, fault };
    let json: HeaderJson = parse("header", block).map_err(|fault| {
        // A later fork may also have taken members away.
        match find_unknown_key(block) {
            Some(name) => unknown_fork(number, which.hash(), &fault.to_string(), &name),
            None => lie(fault),
        }
    })?;
    let (hash, uncles) = (json.hash, json.uncles.clone());
    let header = json.into_header();
    if header.number != number {
        return Err(lie(RebuildFault::Number { found: header.number }));
    }
    if let Some(expected) = which.hash().filter(|expected| *expected != hash) {
        return Err(lie(RebuildFault::Hash { found: hash, expected }));
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
        let fault = RebuildFault::Hash { found, expected: header.hash };
        return Err(match find_unknown_key(block) {
            Some(name) => unknown_fork(number, Some(header.hash), &fault.to_string(), &name),
            None => FetchError::Rebuild { number, fault },
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

fn unknown_fork(number: u64, hash: Option<B256>, fault: &str, name: &str) -> FetchError {
    let reason = format!("{fault}, and it has a key `{name}`, which this build does not know");
    FetchError::UnknownFork { number, hash, reason }
}
