//! What a node is asked about blocks.
//!
//! Knows: the methods that give headers, blocks, receipts and ommers, and what to ask instead where a
//! node lacks one.
//! Never knows: whether the answers are true, or who asks for them.

use std::sync::atomic::Ordering;

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use chain::{Candidate, ChainSpec};
use hyper::body::Bytes;
use serde::Deserialize;
use tracing::info;

use super::answers::{Answer, Call};
use super::client::Upstream;
use super::error::{AskError, FetchError};
use super::fork_schedule::blob_schedule_of;
use super::rebuild::{HeaderJson, Parts, RebuildFault, parse, rebuild};

/// Receipts that are asked one by one in one message.
const RECEIPTS_PER_MESSAGE: usize = 100;

/// Which block is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Whatever the node has under this number.
    Number(u64),
    /// This block and no other.
    Hash {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
    },
}

impl Which {
    /// The block's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) | Self::Hash { number, .. } => *number,
        }
    }

    /// The block's hash, if it is told.
    #[must_use]
    pub fn hash(&self) -> Option<B256> {
        match self {
            Self::Number(_) => None,
            Self::Hash { hash, .. } => Some(*hash),
        }
    }

    fn block_call(&self) -> Call {
        match self {
            Self::Number(number) => {
                Call::new("eth_getBlockByNumber", format!("[\"{number:#x}\",true]"))
            }
            Self::Hash { hash, .. } => {
                Call::new("eth_getBlockByHash", format!("[\"{hash}\",true]"))
            }
        }
    }

    fn receipts_call(&self) -> Call {
        let params = match self {
            Self::Number(number) => format!("[\"{number:#x}\"]"),
            Self::Hash { hash, .. } => format!("[\"{hash}\"]"),
        };
        Call::new("eth_getBlockReceipts", params)
    }
}

/// A block that nodes call by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTag {
    /// The tip.
    Latest,
    /// Safe from reorgs under honest majority assumptions.
    Safe,
    /// What will not change.
    Finalized,
    /// The one with this number.
    Number(u64),
}

impl BlockTag {
    fn text(self) -> String {
        match self {
            Self::Latest => "latest".to_owned(),
            Self::Safe => "safe".to_owned(),
            Self::Finalized => "finalized".to_owned(),
            Self::Number(number) => format!("{number:#x}"),
        }
    }
}

/// What a node says of a block's place. Nothing is proven by it; it tells what to ask for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderClaim {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// Its parent's hash.
    pub parent_hash: B256,
}

/// What tells one chain from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// EIP-155's number.
    pub chain_id: u64,
    /// The hash of block 0; `None` if the node does not have that block any more.
    pub genesis_hash: Option<B256>,
}

/// A block as a node told it, not taken apart yet.
#[derive(Clone, Debug)]
pub struct Fetched {
    which: Which,
    block: Bytes,
    receipts: Vec<Bytes>,
    is_receipt_list: bool,
    ommers: Vec<Bytes>,
}

impl Fetched {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.which.number()
    }

    /// Bytes of all answers that make it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let parts = self.receipts.iter().chain(&self.ommers).map(Bytes::len);
        u64::try_from(parts.sum::<usize>().saturating_add(self.block.len())).unwrap_or(u64::MAX)
    }

    /// What is claimed to be the block, in consensus form.
    pub fn rebuild(&self, spec: &ChainSpec) -> Result<Candidate, FetchError> {
        let parts = Parts {
            block: &self.block,
            receipts: &self.receipts,
            is_receipt_list: self.is_receipt_list,
            ommers: &self.ommers,
        };
        let (number, hash) = (self.which.number(), self.which.hash());
        rebuild(spec, number, hash, &parts).map_err(|fault| FetchError::Rebuild { number, fault })
    }
}

/// What must be known of a block before the rest of it can be asked for.
#[derive(Deserialize)]
struct ShapeJson {
    hash: B256,
    #[serde(default)]
    uncles: Vec<B256>,
}

#[derive(Deserialize)]
struct TxHashesJson {
    transactions: Vec<TxHashJson>,
}

#[derive(Deserialize)]
struct TxHashJson {
    hash: B256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptPlaceJson {
    block_hash: B256,
}

impl Upstream {
    /// Chain id and genesis hash.
    pub async fn fetch_identity(&self) -> Result<Identity, FetchError> {
        let calls =
            [Call::new("eth_chainId", "[]"), Call::new("eth_getBlockByNumber", "[\"0x0\",false]")];
        let mut answers = self.ask(&calls).await?.into_iter();
        let none = || Err(AskError::Malformed("no answer".to_owned()));
        identity_of(answers.next().unwrap_or_else(none), answers.next().unwrap_or_else(none))
    }

    /// The blob parameters that the node goes by, each with the time from which on it does (EIP-7910);
    /// none if it does not tell.
    pub async fn fetch_blob_params(&self) -> Vec<(u64, BlobParams)> {
        let told = self.ask_one(Call::new("eth_config", "[]")).await.ok().flatten();
        told.map(|text| blob_schedule_of(&text)).unwrap_or_default()
    }

    /// What the node says of the places of some blocks; `None` for those that it does not have, or
    /// whose names it does not know.
    pub async fn fetch_claims(
        &self,
        tags: &[BlockTag],
    ) -> Result<Vec<Option<HeaderClaim>>, FetchError> {
        let call = |tag: &BlockTag| {
            Call::new("eth_getBlockByNumber", format!("[\"{}\",false]", tag.text()))
        };
        let calls: Vec<Call> = tags.iter().map(call).collect();
        let mut claims = Vec::with_capacity(tags.len());
        for (tag, answer) in tags.iter().zip(self.ask(&calls).await?) {
            let claim = match answer {
                Ok(Some(text)) => Some(claim_by_tag(*tag, &text)?),
                // Chains without finality refuse its names.
                Ok(None) | Err(AskError::Refused { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            claims.push(claim);
        }
        Ok(claims)
    }

    /// What is needed to rebuild some blocks, in their order.
    pub async fn fetch_blocks(&self, wanted: &[Which]) -> Result<Vec<Fetched>, FetchError> {
        let has_block_receipts = !self.lacks_block_receipts.load(Ordering::Relaxed);
        let mut calls: Vec<Call> = wanted.iter().map(Which::block_call).collect();
        if has_block_receipts {
            calls.extend(wanted.iter().map(Which::receipts_call));
        }
        let mut blocks = self.ask(&calls).await?;
        let receipts = blocks.split_off(wanted.len());
        let mut receipts = receipts.into_iter();
        let mut fetched = Vec::with_capacity(wanted.len());
        for (which, block) in wanted.iter().zip(blocks) {
            let number = which.number();
            let block = block?.ok_or(FetchError::NotThere { number })?;
            let shape: ShapeJson =
                parse("block", &block).map_err(|fault| FetchError::Rebuild { number, fault })?;
            let told = self.receipts(number, &block, receipts.next()).await?;
            let (receipts, is_receipt_list) = told;
            check_same_block(number, &shape, &receipts, is_receipt_list)?;
            let ommers = self.fetch_ommers(number, &shape).await?;
            fetched.push(Fetched { which: *which, block, receipts, is_receipt_list, ommers });
        }
        Ok(fetched)
    }

    /// A block's receipts, as a list or, where the node cannot, one by one.
    async fn receipts(
        &self,
        number: u64,
        block: &Bytes,
        listed: Option<Answer>,
    ) -> Result<(Vec<Bytes>, bool), FetchError> {
        match listed {
            Some(Ok(Some(list))) => return Ok((vec![list], true)),
            Some(Ok(None)) => return Err(FetchError::NotThere { number }),
            Some(Err(error)) if !error.is_unknown_method() => return Err(error.into()),
            Some(Err(error)) => {
                info!(upstream = self.name(), %error, "receipts are asked one by one");
                self.lacks_block_receipts.store(true, Ordering::Relaxed);
            }
            None => {}
        }
        let hashes: TxHashesJson =
            parse("block", block).map_err(|fault| FetchError::Rebuild { number, fault })?;
        let call =
            |tx: &TxHashJson| Call::new("eth_getTransactionReceipt", format!("[\"{}\"]", tx.hash));
        let calls: Vec<Call> = hashes.transactions.iter().map(call).collect();
        let mut receipts = Vec::with_capacity(calls.len());
        for calls in calls.chunks(RECEIPTS_PER_MESSAGE) {
            for answer in self.ask(calls).await? {
                receipts.push(answer?.ok_or(FetchError::NotThere { number })?);
            }
        }
        Ok((receipts, false))
    }

    async fn fetch_ommers(&self, number: u64, shape: &ShapeJson) -> Result<Vec<Bytes>, FetchError> {
        if shape.uncles.is_empty() {
            return Ok(Vec::new());
        }
        let call = |index: usize| {
            let params = format!("[\"{}\",\"{index:#x}\"]", shape.hash);
            Call::new("eth_getUncleByBlockHashAndIndex", params)
        };
        let calls: Vec<Call> = (0..shape.uncles.len()).map(call).collect();
        let mut ommers = Vec::with_capacity(calls.len());
        for answer in self.ask(&calls).await? {
            ommers.push(answer?.ok_or(FetchError::NotThere { number })?);
        }
        Ok(ommers)
    }

    /// Subscribes to new tips, if the node speaks over a WebSocket.
    pub async fn subscribe_tips(&self) -> Result<(), FetchError> {
        self.ask_one(Call::new("eth_subscribe", "[\"newHeads\"]")).await?;
        Ok(())
    }
}

/// Chain id and genesis hash, of the answers to `eth_chainId` and to a question for block 0.
pub(super) fn identity_of(chain_id: Answer, genesis: Answer) -> Result<Identity, FetchError> {
    let chain_id =
        chain_id?.and_then(|text| serde_json::from_slice::<&str>(&text).ok().and_then(from_hex));
    let chain_id =
        chain_id.ok_or_else(|| AskError::Malformed("eth_chainId is no number".to_owned()))?;
    // A node without old history refuses block 0, or says that there is none.
    let genesis = genesis.ok().flatten().map(|text| claim_of(0, &text)).transpose()?;
    Ok(Identity { chain_id, genesis_hash: genesis.map(|claim| claim.hash) })
}

/// What news of a subscription says, if it is a header.
pub(super) fn claim_of_news(news: &[u8]) -> Option<HeaderClaim> {
    claim_by_tag(BlockTag::Latest, news).ok()
}

fn claim_by_tag(tag: BlockTag, text: &[u8]) -> Result<HeaderClaim, FetchError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ClaimJson<'a> {
        #[serde(borrow)]
        number: &'a str,
        hash: B256,
        parent_hash: B256,
    }
    let asked = match tag {
        BlockTag::Number(number) => Some(number),
        BlockTag::Latest | BlockTag::Safe | BlockTag::Finalized => None,
    };
    let fault = |fault| FetchError::Rebuild { number: asked.unwrap_or_default(), fault };
    let json: ClaimJson<'_> = serde_json::from_slice(text)
        .map_err(|error| fault(RebuildFault::Json { what: "header", reason: error.to_string() }))?;
    let number = from_hex(json.number).ok_or_else(|| {
        fault(RebuildFault::Json { what: "header", reason: "number is no number".to_owned() })
    })?;
    if asked.is_some_and(|asked| asked != number) {
        return Err(fault(RebuildFault::Number { found: number }));
    }
    Ok(HeaderClaim { number, hash: json.hash, parent_hash: json.parent_hash })
}

/// What a node says of a block of this number, proven to be of that hash.
fn claim_of(number: u64, text: &[u8]) -> Result<HeaderClaim, FetchError> {
    let fault = |fault| FetchError::Rebuild { number, fault };
    let json: HeaderJson = parse("header", text).map_err(fault)?;
    let expected = json.hash;
    let header = json.into_header();
    let found = chain::hash_header(&alloy_rlp::encode(&header));
    if found != expected {
        return Err(fault(RebuildFault::Hash { found, expected }));
    }
    Ok(HeaderClaim { number: header.number, hash: found, parent_hash: header.parent_hash })
}

/// Blocks that are asked for by number may change between two answers, which is nobody's lie.
fn check_same_block(
    number: u64,
    shape: &ShapeJson,
    receipts: &[Bytes],
    is_list: bool,
) -> Result<(), FetchError> {
    let Some(text) = receipts.first() else { return Ok(()) };
    let found = if is_list {
        let found = serde_json::from_slice::<FirstReceipt>(text).ok();
        found.and_then(|first| first.0)
    } else {
        serde_json::from_slice::<ReceiptPlaceJson>(text).ok()
    };
    match found {
        Some(place) if place.block_hash != shape.hash => {
            Err(FetchError::Moved { number, one: shape.hash, other: place.block_hash })
        }
        // What does not parse is told when it is rebuilt.
        Some(_) | None => Ok(()),
    }
}

/// The first element of a list; the others are passed over.
struct FirstReceipt(Option<ReceiptPlaceJson>);

impl<'de> Deserialize<'de> for FirstReceipt {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;
        impl<'de> serde::de::Visitor<'de> for First {
            type Value = FirstReceipt;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of receipts")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<FirstReceipt, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                Ok(FirstReceipt(first))
            }
        }
        deserializer.deserialize_seq(First)
    }
}

fn from_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
