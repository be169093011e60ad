//! A bundle as its text has it: which members there are, and in which order.

use alloc::format;
use alloc::vec::Vec;

use crate::anchor::{ACCUMULATOR_SIBLINGS, AnchorPath, AnchorWay, ProofAnchor};
use crate::filter::ProofFilter;
use crate::hash::{Hash32, keccak256};
use crate::step::{ProofRefusal, ProofStepName};
use crate::text::CanonicalText;

/// A longer text is refused unread.
pub const BUNDLE_BYTES_MAX: usize = 64 << 20;

/// A key has at most 18 nibbles, of which every node takes one, and the leaf may take none.
const NODES_MAX: usize = 19;
/// As nodes limit a filter.
const TOPIC_POSITIONS_MAX: usize = 4;
const ALTERNATIVES_MAX: usize = 1000;

/// A bundle that was read, and that nothing has been proven of yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofBundle {
    pub(crate) content: BundleContent,
    pub(crate) way: AnchorWay,
}

/// What a bundle is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BundleContent {
    Inclusion(InclusionProof),
    Block(WholeBlock),
    Logs(LogsProof),
}

/// A transaction of a block, and perhaps its receipt and one of its logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InclusionProof {
    pub(crate) header: Vec<u8>,
    pub(crate) transaction: IndexedProof,
    pub(crate) receipt: Option<IndexedProof>,
    pub(crate) log: Option<LogPlace>,
}

/// An item of a block with its path from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedProof {
    pub(crate) index: u64,
    pub(crate) rlp: Vec<u8>,
    pub(crate) nodes: Vec<Vec<u8>>,
}

/// A log by its place in the receipt: behind so many, and so many behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPlace {
    pub(crate) position: u64,
    pub(crate) after: u64,
}

/// All of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WholeBlock {
    pub(crate) header: Vec<u8>,
    pub(crate) transactions: Vec<Vec<u8>>,
    pub(crate) receipts: Vec<Vec<u8>>,
    pub(crate) ommers: Vec<u8>,
    pub(crate) withdrawals: Option<Vec<Vec<u8>>>,
}

/// All logs of a range of blocks that match a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogsProof {
    pub(crate) filter: ProofFilter,
    /// The hash that is claimed, and that of the text.
    pub(crate) filter_hash: (Hash32, Hash32),
    pub(crate) blocks: Vec<SearchedBlock>,
}

/// A block of the range: with all its receipts, or with nothing but a header that excludes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchedBlock {
    pub(crate) header: Vec<u8>,
    pub(crate) receipts: Option<Vec<Vec<u8>>>,
}

impl ProofBundle {
    /// Reads the text of a bundle, which may end in a newline. The same bundle has one text: another
    /// order, whitespace, capital digits or further members are refused.
    pub fn parse(text: &[u8]) -> Result<Self, ProofRefusal> {
        if text.len() > BUNDLE_BYTES_MAX {
            return Err(ProofStepName::Text.refuse(format!(
                "{} bytes, more than {BUNDLE_BYTES_MAX}; ask for a smaller range",
                text.len()
            )));
        }
        let mut text = CanonicalText::new(text);
        text.expect("{\"version\":1,")?;
        let content = if text.either("\"header\":", "\"filter\":")? {
            let header = text.bytes()?;
            if text.either(",\"transaction\":", ",\"transactions\":")? {
                read_inclusion(header, &mut text)?
            } else {
                read_block(header, &mut text)?
            }
        } else {
            read_logs(&mut text)?
        };
        let way = read_way(&mut text)?;
        text.end()?;
        Ok(Self { content, way })
    }
}

fn read_inclusion(
    header: Vec<u8>,
    text: &mut CanonicalText<'_>,
) -> Result<BundleContent, ProofRefusal> {
    let transaction = read_indexed(text)?;
    let receipt = text.passes(",\"receipt\":").then(|| read_indexed(text)).transpose()?;
    let has_log = receipt.is_some() && text.passes(",\"log\":");
    let log = has_log.then(|| read_log_place(text)).transpose()?;
    Ok(BundleContent::Inclusion(InclusionProof { header, transaction, receipt, log }))
}

fn read_indexed(text: &mut CanonicalText<'_>) -> Result<IndexedProof, ProofRefusal> {
    text.expect("{\"index\":")?;
    let index = text.number()?;
    text.expect(",\"rlp\":")?;
    let rlp = text.bytes()?;
    text.expect(",\"proof\":")?;
    let nodes = text.list(NODES_MAX, CanonicalText::bytes)?;
    text.expect("}")?;
    Ok(IndexedProof { index, rlp, nodes })
}

fn read_log_place(text: &mut CanonicalText<'_>) -> Result<LogPlace, ProofRefusal> {
    text.expect("{\"position\":")?;
    let position = text.number()?;
    text.expect(",\"after\":")?;
    let after = text.number()?;
    text.expect("}")?;
    Ok(LogPlace { position, after })
}

fn read_block(
    header: Vec<u8>,
    text: &mut CanonicalText<'_>,
) -> Result<BundleContent, ProofRefusal> {
    let transactions = text.long_list(CanonicalText::bytes)?;
    text.expect(",\"receipts\":")?;
    let receipts = text.long_list(CanonicalText::bytes)?;
    text.expect(",\"ommers\":")?;
    let ommers = text.bytes()?;
    let has_withdrawals = text.passes(",\"withdrawals\":");
    let withdrawals = has_withdrawals.then(|| text.long_list(CanonicalText::bytes)).transpose()?;
    Ok(BundleContent::Block(WholeBlock { header, transactions, receipts, ommers, withdrawals }))
}

fn read_logs(text: &mut CanonicalText<'_>) -> Result<BundleContent, ProofRefusal> {
    let start = text.offset();
    let filter = read_filter(text)?;
    let found = keccak256(text.since(start));
    text.expect(",\"filterHash\":")?;
    let filter_hash = (text.hash()?, found);
    text.expect(",\"blocks\":")?;
    let blocks = text.long_list(read_searched_block)?;
    Ok(BundleContent::Logs(LogsProof { filter, filter_hash, blocks }))
}

fn read_filter(text: &mut CanonicalText<'_>) -> Result<ProofFilter, ProofRefusal> {
    text.expect("{\"fromBlock\":")?;
    let from_block = text.number()?;
    text.expect(",\"toBlock\":")?;
    let to_block = text.number()?;
    text.expect(",\"address\":")?;
    let addresses = text.list(ALTERNATIVES_MAX, CanonicalText::array)?;
    text.expect(",\"topics\":")?;
    let topics =
        text.list(TOPIC_POSITIONS_MAX, |text| text.list(ALTERNATIVES_MAX, CanonicalText::hash))?;
    text.expect("}")?;
    Ok(ProofFilter { from_block, to_block, addresses, topics })
}

fn read_searched_block(text: &mut CanonicalText<'_>) -> Result<SearchedBlock, ProofRefusal> {
    text.expect("{\"header\":")?;
    let header = text.bytes()?;
    let has_receipts = text.passes(",\"receipts\":");
    let receipts = has_receipts.then(|| text.long_list(CanonicalText::bytes)).transpose()?;
    text.expect("}")?;
    Ok(SearchedBlock { header, receipts })
}

/// The status says what ends the way, and so must the way.
fn read_way(text: &mut CanonicalText<'_>) -> Result<AnchorWay, ProofRefusal> {
    text.expect(",\"status\":\"")?;
    let way = if text.either("linked\"", "anchored\"")? {
        text.expect(",\"anchor\":{\"number\":")?;
        let number = text.number()?;
        text.expect(",\"hash\":")?;
        let anchor = ProofAnchor::Block { number, hash: text.hash()? };
        text.expect(",\"by\":\"headers\",\"path\":")?;
        let headers = text.long_list(CanonicalText::bytes)?;
        AnchorWay { anchor, path: AnchorPath::Headers(headers) }
    } else {
        text.expect(",\"anchor\":{\"hash\":")?;
        let anchor = ProofAnchor::Accumulator { root: text.hash()? };
        text.expect(",\"by\":\"accumulator\",\"path\":")?;
        let siblings = text.list(ACCUMULATOR_SIBLINGS, CanonicalText::hash)?;
        AnchorWay { anchor, path: AnchorPath::Accumulator(siblings) }
    };
    text.expect("}}")?;
    Ok(way)
}
