//! What a node is asked about blocks.
//!
//! Knows: the methods that give headers, blocks, receipts and ommers, and what to ask instead where a
//! node lacks one.
//! Never knows: whether the answers are true, or who asks for them.

use std::fmt::Display;

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use chain::{Candidate, ChainSpec, Fault, Mismatch};
use hyper::body::Bytes;
use serde::Deserialize;
use tracing::info;

use super::answers::{Answer, Message, NodeCall, decode_message, in_order};
use super::client::{ByteBudget, Upstream};
use super::connections::{ToldIdentities, identity_calls};
use super::error::{AbsentPart, AskError, FetchError};
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

/// A block as a node told it, not taken apart yet.
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
        let mut answers = read_answers(block_and_receipts, 2)?.into_iter();
        let block = take_block(number, answers.next())?;
        let header = claimed_header(&which, &block)?;
        let receipts = BlockReceipts::from_list(number, answers.next().unwrap_or(Ok(None))?)?;
        receipts.check_block(number, header.hash)?;
        let count = count_ommers(number, &header)?;
        let ommers = match count {
            0 => Vec::new(),
            _ => read_answers(ommers, count)?,
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
        rebuild(spec, number, &self.header.rlp, &self.parts()).map_err(|fault| {
            let unknown = if fault.is_unknown_type() {
                Some(self.unknown_fork(fault.to_string()))
            } else if fault.is_lie() {
                self.find_unknown_fork(&fault)
            } else {
                None
            };
            unknown.unwrap_or(FetchError::Rebuild { number, fault })
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

/// What a node answered when it was asked for a block's receipts.
#[derive(Clone, Debug)]
struct BlockReceipts {
    /// One with all of them, or one for each.
    answers: Vec<Bytes>,
    is_list: bool,
}

impl BlockReceipts {
    fn from_list(number: u64, list: Option<Bytes>) -> Result<Self, FetchError> {
        let absent = FetchError::NotThere { number, part: AbsentPart::Receipts };
        Ok(Self { answers: vec![list.ok_or(absent)?], is_list: true })
    }

    /// Blocks that are asked for by number may change between two answers, which is nobody's lie.
    fn check_block(&self, number: u64, hash: B256) -> Result<(), FetchError> {
        let Some(text) = self.answers.first() else { return Ok(()) };
        let found = if self.is_list {
            let found = serde_json::from_slice::<FirstReceipt>(text).ok();
            found.and_then(|first| first.0)
        } else {
            serde_json::from_slice::<ReceiptPlaceJson>(text).ok()
        };
        match found {
            Some(place) if place.block_hash != hash => {
                Err(FetchError::Moved { number, one: hash, other: place.block_hash })
            }
            // What does not parse is told when it is rebuilt.
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
        let genesis: Vec<_> =
            genesis.map(|text| (WantedBlock::Number(0), text)).into_iter().collect();
        let genesis = self.fetch_headers(&genesis).await?;
        Ok(Identity { chain_id, genesis_hash: genesis.first().map(|header| header.hash) })
    }

    /// Which chain the node follows, by every connection that carried an answer.
    pub(super) async fn fetch_identities(&self) -> Result<ToldIdentities, FetchError> {
        if let Some(connections) = self.connections() {
            return connections.identify(|| self.fetch_identity()).await;
        }
        let identities = vec![self.fetch_identity().await?];
        Ok(ToldIdentities { identities, is_complete: true })
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
            if let Some(claim) = claim.filter(|_| *tag == BlockTag::Latest) {
                self.check_tip(claim.number).await?;
            }
            claims.push(claim);
        }
        Ok(claims)
    }

    /// An error if the node is known to tell tips that it does not have, and lacks a block below this
    /// one still.
    async fn check_tip(&self, number: u64) -> Result<(), FetchError> {
        let Some(missing) = self.tip_doubt.find_missing(number) else { return Ok(()) };
        let call = NodeCall::new("eth_getBlockByNumber", format!("[\"{missing:#x}\",false]"));
        match self.ask_one(call).await {
            Ok(Some(_)) => {
                self.tip_doubt.clear();
                Ok(())
            }
            Ok(None) => Err(FetchError::UnservedTip { number, missing }),
            Err(error) if error.is_unknown_block() => {
                Err(FetchError::UnservedTip { number, missing })
            }
            Err(error) => Err(error.into()),
        }
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
        let mut there = Vec::with_capacity(wanted.len());
        for (which, block) in wanted.iter().zip(blocks) {
            there.push((*which, take_block(which.number(), Some(block))?));
        }
        let headers = self.fetch_headers(&there).await?;
        let mut receipts = receipts.into_iter();
        let mut fetched = Vec::with_capacity(wanted.len());
        for ((which, block), header) in there.into_iter().zip(headers) {
            let number = which.number();
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
            parse("block", block).map_err(|fault| FetchError::Rebuild { number, fault })?;
        let call = |tx: &TxHashJson| {
            NodeCall::new("eth_getTransactionReceipt", format!("[\"{}\"]", tx.hash))
        };
        let calls: Vec<NodeCall> = hashes.transactions.iter().map(call).collect();
        let mut receipts = Vec::with_capacity(calls.len());
        for calls in calls.chunks(RECEIPTS_PER_MESSAGE) {
            for answer in self.ask_within(calls, budget).await? {
                let absent = FetchError::NotThere { number, part: AbsentPart::Receipts };
                receipts.push(answer?.ok_or(absent)?);
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

/// The answers of a message to so many calls, whose ids count up from 1.
fn read_answers(message: Vec<u8>, count: usize) -> Result<Vec<Answer>, AskError> {
    match decode_message(&Bytes::from(message), count)? {
        Message::Answers(answers) => in_order(answers, 1, count),
        Message::Refusal(refusal) => Err(refusal),
        Message::News(_) => Err(AskError::Malformed("news, and no answer".to_owned())),
    }
}

fn take_block(number: u64, answer: Option<Answer>) -> Result<Bytes, FetchError> {
    let absent = FetchError::NotThere { number, part: AbsentPart::Block };
    answer.transpose()?.flatten().ok_or(absent)
}

/// How many ommers a block has by its node's word, if it may have so many.
fn count_ommers(number: u64, header: &HashedHeader) -> Result<usize, FetchError> {
    let found = header.uncles.len();
    if found > OMMERS_MAX {
        let fault = RebuildFault::Ommers { found, count_max: OMMERS_MAX };
        return Err(FetchError::Rebuild { number, fault });
    }
    Ok(found)
}

fn take_ommer(number: u64, answer: Answer) -> Result<Bytes, FetchError> {
    let absent = |part| FetchError::NotThere { number, part };
    match answer {
        Err(error) if error.is_unknown_method() => Err(absent(AbsentPart::OmmerMethod)),
        answer => answer?.ok_or_else(|| absent(AbsentPart::Ommers)),
    }
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
