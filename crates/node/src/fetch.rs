//! Requests for headers, blocks, receipts and ommers, with fallbacks where a node lacks a method.

use std::fmt::Display;

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use chain::{Candidate, ChainSpec, Fault, Mismatch};
use hyper::body::Bytes;
use serde::Deserialize;
use tracing::info;

use super::answers::{Answer, NodeCall, decode_answers};
use super::client::{ByteBudget, Upstream};
use super::error::{AskError, FetchError};
use super::fork_schedule::blob_schedule_of;
use super::headers::{HashedHeader, claimed_header};
use super::identity::Identity;
use super::rebuild::{Parts, RebuildFault, find_unknown, parse, rebuild};
use super::wanted_block::WantedBlock;

/// Receipts that are asked one by one in one message.
const RECEIPTS_PER_MESSAGE: usize = 100;
/// Ommers of a block at the most, by consensus.
const OMMERS_MAX: usize = 2;
/// Bytes of all answers of one [`Upstream::fetch_blocks`], in answers of the largest size. Eight blocks
/// with their receipts, each as large as a block can be, take some 280 MB as JSON.
const ANSWERS_MAX: usize = 5;

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

/// A node's claim about a block's position. It proves nothing; it says what to request next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderClaim {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// Its parent's hash.
    pub parent_hash: B256,
}

/// A block as a node sent it, not decoded yet.
#[derive(Clone, Debug)]
pub struct NodeBlock {
    which: WantedBlock,
    header: HashedHeader,
    block: Bytes,
    receipts: BlockReceipts,
    ommers: Vec<Bytes>,
}

impl NodeBlock {
    /// The block that a node's messages tell, for fuzzers: the answers to [`WantedBlock`]'s questions
    /// for a block and its receipts, and the answers for its ommers, if it has any. Nothing more is
    /// asked, as where a node gives neither raw headers nor receipts one by one.
    #[doc(hidden)]
    pub fn from_messages(
        which: WantedBlock,
        [block_and_receipts, ommers]: [Vec<u8>; 2],
    ) -> Result<Self, FetchError> {
        let number = which.number();
        let mut answers = decode_answers(&block_and_receipts.into(), 2)?.into_iter();
        let block = take_block(number, answers.next())?;
        let header = claimed_header(&which, &block)?;
        let receipts = BlockReceipts::from_list(number, answers.next().unwrap_or(Ok(None))?)?;
        receipts.check_block(number, header.hash)?;
        let count = count_ommers(number, &header)?;
        let ommers = match count {
            0 => Vec::new(),
            _ => decode_answers(&ommers.into(), count)?,
        };
        let ommers: Result<_, _> = ommers.into_iter().map(|it| take_ommer(number, it)).collect();
        Ok(Self { which, header, block, receipts, ommers: ommers? })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.which.number()
    }

    /// Bytes of all answers that make it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let parts = self.receipts.answers.iter().chain(&self.ommers).map(Bytes::len);
        u64::try_from(parts.sum::<usize>().saturating_add(self.block.len())).unwrap_or(u64::MAX)
    }

    /// Rebuilds the claimed block in consensus form.
    pub fn rebuild(&self, spec: &ChainSpec) -> Result<Candidate, FetchError> {
        let number = self.which.number();
        let rebuilt = rebuild(spec, number, &self.header.rlp, &self.parts());
        rebuilt.map_err(|fault| match fault {
            RebuildFault::UnknownType { .. } => self.unknown_fork(fault.to_string()),
            RebuildFault::NoPostState { index } => FetchError::NoPostState { number, index },
            RebuildFault::Invalid(reason) => {
                self.find_unknown_fork(&reason).unwrap_or(FetchError::Invalid { number, reason })
            }
        })
    }

    /// Why the block is not called a lie though it does not prove itself: it has what this build does
    /// not know. `None` if it has nothing of the kind, or is in the wrong place whatever it has.
    #[must_use]
    pub fn unknown_fork_of(&self, mismatch: &Mismatch) -> Option<FetchError> {
        let is_place = matches!(
            *mismatch.fault,
            Fault::Number { .. } | Fault::ParentHash { .. } | Fault::Anchor { .. }
        );
        if is_place { None } else { self.find_unknown_fork(&mismatch.fault) }
    }

    fn find_unknown_fork(&self, fault: &dyn Display) -> Option<FetchError> {
        let unknown = find_unknown(&self.header.rlp, &self.parts())?;
        Some(self.unknown_fork(format!("{fault}, and {unknown}")))
    }

    fn unknown_fork(&self, reason: String) -> FetchError {
        let (number, hash) = (self.which.number(), Some(self.header.hash));
        FetchError::UnknownFork { number, hash, reason }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            block: &self.block,
            receipts: &self.receipts.answers,
            is_receipt_list: self.receipts.is_list,
            ommers: &self.ommers,
        }
    }
}

/// A node's answers to a request for a block's receipts.
#[derive(Clone, Debug)]
struct BlockReceipts {
    /// One with all of them, or one for each.
    answers: Vec<Bytes>,
    is_list: bool,
}

impl BlockReceipts {
    fn from_list(number: u64, list: Option<Bytes>) -> Result<Self, FetchError> {
        let list = list.ok_or(absent(number, NO_RECEIPTS))?;
        Ok(Self { answers: vec![list], is_list: true })
    }

    /// Blocks that are requested by number may change between two responses.
    fn check_block(&self, number: u64, hash: B256) -> Result<(), FetchError> {
        let Some(text) = self.answers.first() else { return Ok(()) };
        // Of a list the first receipt alone.
        let text = text.trim_ascii_start();
        let text = text.strip_prefix(b"[").filter(|_| self.is_list).unwrap_or(text);
        let mut receipts = serde_json::Deserializer::from_slice(text).into_iter();
        match receipts.next() {
            Some(Ok(ReceiptPlaceJson { block_hash })) if block_hash != hash => {
                Err(FetchError::Elsewhere { number })
            }
            // What does not parse is found when the block is rebuilt.
            Some(_) | None => Ok(()),
        }
    }
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
        let mut answers = self.ask_together(&identity_calls()).await?.into_iter();
        let chain_id = chain_id_of(answers.next())?;
        let genesis = genesis_of(answers.next())?;
        let genesis_hash = match genesis {
            Some(text) => Some(self.fetch_header(&WantedBlock::Number(0), &text).await?.hash),
            None => None,
        };
        Ok(Identity { chain_id, genesis_hash })
    }

    /// The blob parameters that the node goes by, each with the time from which on it does (EIP-7910);
    /// none if it does not tell.
    pub async fn fetch_blob_params(&self) -> Vec<(u64, BlobParams)> {
        let told = self.ask_one(NodeCall::new("eth_config", "[]")).await.ok().flatten();
        told.map(|text| blob_schedule_of(&text)).unwrap_or_default()
    }

    /// What the node says of the places of some blocks; `None` for those that it does not have, or
    /// whose names it does not know.
    pub async fn fetch_claims(
        &self,
        tags: &[BlockTag],
    ) -> Result<Vec<Option<HeaderClaim>>, FetchError> {
        let call = |tag: &BlockTag| {
            NodeCall::new("eth_getBlockByNumber", format!("[\"{}\",false]", tag.text()))
        };
        let calls: Vec<NodeCall> = tags.iter().map(call).collect();
        let mut claims = Vec::with_capacity(tags.len());
        for (tag, answer) in tags.iter().zip(self.ask_soon(&calls).await?) {
            let claim = match answer {
                Ok(Some(text)) => Some(claim_by_tag(*tag, &text)?),
                // Every node has a tip: one that refuses it, or says that there is none, is not well.
                Err(error) if *tag == BlockTag::Latest => return Err(error.into()),
                Ok(None) if *tag == BlockTag::Latest => {
                    return Err(AskError::Malformed("its latest block is null".to_owned()).into());
                }
                Ok(None) => None,
                // Chains without finality refuse its names.
                Err(error) if error.is_unknown_block() => None,
                Err(error) => return Err(error.into()),
            };
            claims.push(claim);
        }
        Ok(claims)
    }

    /// What is needed to rebuild some blocks, in their order.
    pub async fn fetch_blocks(&self, wanted: &[WantedBlock]) -> Result<Vec<NodeBlock>, FetchError> {
        let has_block_receipts = self.block_receipts.is_open();
        let mut calls: Vec<NodeCall> = wanted.iter().map(WantedBlock::block_call).collect();
        if has_block_receipts {
            calls.extend(wanted.iter().map(WantedBlock::receipts_call));
        }
        let mut budget = ByteBudget::new(self.answer_bytes_max().saturating_mul(ANSWERS_MAX));
        let mut blocks = self.ask_within(&calls, &mut budget).await?;
        let receipts = blocks.split_off(wanted.len());
        let mut receipts = receipts.into_iter();
        let mut fetched = Vec::with_capacity(wanted.len());
        for (which, block) in wanted.iter().copied().zip(blocks) {
            let number = which.number();
            let block = take_block(number, Some(block))?;
            let header = self.fetch_header(&which, &block).await?;
            let receipts = self.receipts(number, &block, receipts.next(), &mut budget).await?;
            receipts.check_block(number, header.hash)?;
            let ommers = self.fetch_ommers(number, &header, &mut budget).await?;
            fetched.push(NodeBlock { which, header, block, receipts, ommers });
        }
        Ok(fetched)
    }

    /// A block's receipts, as a list or, where the node cannot, one by one.
    async fn receipts(
        &self,
        number: u64,
        block: &Bytes,
        listed: Option<Answer>,
        budget: &mut ByteBudget,
    ) -> Result<BlockReceipts, FetchError> {
        match listed {
            Some(Ok(list)) => return BlockReceipts::from_list(number, list),
            Some(Err(error)) if !error.is_unknown_method() => return Err(error.into()),
            Some(Err(error)) if self.block_receipts.refuse() => {
                info!(upstream = self.name(), %error, "requesting receipts one by one");
            }
            Some(Err(_)) | None => {}
        }
        let hashes: TxHashesJson =
            parse("block", block).map_err(|fault| invalid(number, &fault))?;
        let call = |tx: &TxHashJson| {
            NodeCall::new("eth_getTransactionReceipt", format!("[\"{}\"]", tx.hash))
        };
        let calls: Vec<NodeCall> = hashes.transactions.iter().map(call).collect();
        let mut receipts = Vec::with_capacity(calls.len());
        for calls in calls.chunks(RECEIPTS_PER_MESSAGE) {
            for answer in self.ask_within(calls, budget).await? {
                receipts.push(answer?.ok_or(absent(number, NO_RECEIPTS))?);
            }
        }
        Ok(BlockReceipts { answers: receipts, is_list: false })
    }

    async fn fetch_ommers(
        &self,
        number: u64,
        header: &HashedHeader,
        budget: &mut ByteBudget,
    ) -> Result<Vec<Bytes>, FetchError> {
        let count = count_ommers(number, header)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let call = |index: usize| {
            let params = format!("[\"{}\",\"{index:#x}\"]", header.hash);
            NodeCall::new("eth_getUncleByBlockHashAndIndex", params)
        };
        let calls: Vec<NodeCall> = (0..count).map(call).collect();
        let answers = self.ask_within(&calls, budget).await?;
        answers.into_iter().map(|answer| take_ommer(number, answer)).collect()
    }

    /// Subscribes to new tips, if the node speaks over a WebSocket.
    pub async fn subscribe_tips(&self) -> Result<(), FetchError> {
        self.ask_one(NodeCall::new("eth_subscribe", "[\"newHeads\"]")).await?;
        Ok(())
    }
}

/// What nodes lack, for the text of [`FetchError::NotThere`].
const NO_BLOCK: &str = " is not there";
const NO_RECEIPTS: &str = " is there, and its receipts are not: the node answers null for them";
const NO_OMMERS: &str = " is there, and its ommers are not: the node answers null for them";
const NO_OMMER_METHOD: &str = " has ommers, and the node does not offer \
    eth_getUncleByBlockHashAndIndex: take such blocks from archives or from another node";

fn absent(number: u64, what: &'static str) -> FetchError {
    FetchError::NotThere { number, what, is_lasting: false }
}

fn invalid(number: u64, reason: &dyn Display) -> FetchError {
    FetchError::Invalid { number, reason: reason.to_string() }
}

fn take_block(number: u64, answer: Option<Answer>) -> Result<Bytes, FetchError> {
    answer.transpose()?.flatten().ok_or(absent(number, NO_BLOCK))
}

/// How many ommers a block has according to its node, if that many are allowed.
fn count_ommers(number: u64, header: &HashedHeader) -> Result<usize, FetchError> {
    let found = header.uncles.len();
    if found > OMMERS_MAX {
        let reason = format!("the block lists {found} ommers, the maximum is {OMMERS_MAX}");
        return Err(invalid(number, &reason));
    }
    Ok(found)
}

fn take_ommer(number: u64, answer: Answer) -> Result<Bytes, FetchError> {
    match answer {
        Err(error) if error.is_unknown_method() => {
            Err(FetchError::NotThere { number, what: NO_OMMER_METHOD, is_lasting: true })
        }
        answer => answer?.ok_or(absent(number, NO_OMMERS)),
    }
}

/// The calls that identify a node's chain.
pub(super) fn identity_calls() -> [NodeCall; 2] {
    [NodeCall::new("eth_chainId", "[]"), NodeCall::new("eth_getBlockByNumber", "[\"0x0\",false]")]
}

/// Chain id and genesis hash, of the answers to `eth_chainId` and to a question for block 0.
pub(super) fn identity_of(chain_id: Answer, genesis: Answer) -> Result<Identity, FetchError> {
    let chain_id = chain_id_of(Some(chain_id))?;
    let genesis = genesis_of(Some(genesis))?;
    let genesis = genesis.map(|text| claimed_header(&WantedBlock::Number(0), &text)).transpose()?;
    Ok(Identity { chain_id, genesis_hash: genesis.map(|header| header.hash) })
}

fn chain_id_of(answer: Option<Answer>) -> Result<u64, FetchError> {
    let text = answer.transpose()?.flatten();
    let chain_id =
        text.and_then(|text| serde_json::from_slice::<&str>(&text).ok().and_then(from_hex));
    let no_number = || AskError::Malformed("eth_chainId is no number".to_owned());
    Ok(chain_id.ok_or_else(no_number)?)
}

/// Block 0 as a node tells it. One without old history says that there is none, or that it does not
/// know the block. Any other refusal says nothing of its chain.
fn genesis_of(answer: Option<Answer>) -> Result<Option<Bytes>, AskError> {
    match answer.unwrap_or(Ok(None)) {
        Err(error) if error.is_unknown_block() => Ok(None),
        told => told,
    }
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
    // What cannot be read says nothing that could be wrong.
    let malformed = |reason: &dyn Display| AskError::Malformed(format!("header: {reason}"));
    let json: ClaimJson<'_> = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
    let number = from_hex(json.number).ok_or_else(|| malformed(&"invalid number"))?;
    if let Some(asked) = asked.filter(|asked| *asked != number) {
        return Err(invalid(asked, &format!("the header is of block {number}")));
    }
    Ok(HeaderClaim { number, hash: json.hash, parent_hash: json.parent_hash })
}

fn from_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
