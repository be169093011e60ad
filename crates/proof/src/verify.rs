//! Verifying a bundle: every step from its bytes up to the anchor.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::anchor::{MAINNET_ACCUMULATOR, ProofAnchor};
use crate::bundle::{BundleContent, InclusionProof, IndexedProof, LogPlace, LogsProof};
use crate::bundle::{ProofBundle, SearchedBlock, WholeBlock};
use crate::filter::{LogMatcher, ProofFilter};
use crate::hash::{Hash32, keccak256};
use crate::header::HeaderParts;
use crate::path::value_at;
use crate::receipt::{LogParts, ProvenLog, logs_of};
use crate::root::ordered_root;
use crate::step::{ProofRefusal, ProofStep, ProofStepName};
use crate::verdict::{AnchorTrust, ProofVerdict, ProvenBlock, ProvenClaim};

/// Verifies all of a bundle. If `trusted` names any anchors, the bundle must lead to one of them; if
/// it names none, the verdict says what it leads to.
pub fn verify(bundle: &ProofBundle, trusted: &[ProofAnchor]) -> Result<ProofVerdict, ProofRefusal> {
    let mut steps = Vec::new();
    let (header, claim) = match &bundle.content {
        BundleContent::Inclusion(proof) => verify_inclusion(proof, &mut steps)?,
        BundleContent::Block(block) => verify_block(block, &mut steps)?,
        BundleContent::Logs(proof) => verify_logs(proof, &mut steps)?,
    };
    steps.extend(bundle.way.follow(&header)?);
    let anchor = bundle.way.anchor;
    let trust = if trusted.contains(&anchor) {
        AnchorTrust::Named
    } else if !trusted.is_empty() {
        let refused = format!("the proof leads to {anchor}, which is not an anchor that you trust");
        return Err(ProofStepName::Anchor.refuse(refused));
    } else if anchor == MAINNET_ACCUMULATOR {
        AnchorTrust::MainnetAccumulator
    } else {
        AnchorTrust::Untrusted
    };
    Ok(ProofVerdict { steps, claim, anchor, trust })
}

/// The header that the way to the anchor begins at, and what is proven of its block or the range
/// that ends with it.
type Proven = (HeaderParts, ProvenClaim);

fn verify_inclusion(
    proof: &InclusionProof,
    steps: &mut Vec<ProofStep>,
) -> Result<Proven, ProofRefusal> {
    let header = verify_header(&proof.header, steps)?;
    let block = ProvenBlock { number: header.number, hash: header.hash };
    let names = (ProofStepName::TransactionPath, ProofStepName::TransactionBytes);
    let hash = verify_path(&proof.transaction, &header.transactions_root, names, steps)?;
    let index = proof.transaction.index;
    if let Some(receipt) = &proof.receipt {
        let names = (ProofStepName::ReceiptPath, ProofStepName::ReceiptBytes);
        if receipt.index != index {
            let other = format!("index {}, the transaction's is {index}", receipt.index);
            return Err(names.0.refuse(other));
        }
        verify_path(receipt, &header.receipts_root, names, steps)?;
    }
    let log = match (&proof.receipt, proof.log) {
        (Some(receipt), Some(place)) => {
            let log = find_log(receipt, place, block)?;
            let what = format!("position {} of the receipt", place.position);
            steps.push(ProofStepName::Log.pass(what, keccak256(&receipt.rlp)));
            Some(log)
        }
        _ => None,
    };
    let claim = ProvenClaim::Transaction {
        block,
        index,
        hash,
        transaction: proof.transaction.rlp.clone(),
        receipt: proof.receipt.as_ref().map(|receipt| receipt.rlp.clone()),
        log,
    };
    Ok((header, claim))
}

fn verify_header(rlp: &[u8], steps: &mut Vec<ProofStep>) -> Result<HeaderParts, ProofRefusal> {
    let header = HeaderParts::read(rlp).map_err(|why| ProofStepName::HeaderHash.refuse(why))?;
    let what = format!("the header of block {}", header.number);
    steps.push(ProofStepName::HeaderHash.pass(what, header.hash));
    Ok(header)
}

/// The path leads to the bytes; their hash.
fn verify_path(
    proof: &IndexedProof,
    root: &Hash32,
    (path, bytes): (ProofStepName, ProofStepName),
    steps: &mut Vec<ProofStep>,
) -> Result<Hash32, ProofRefusal> {
    let value = value_at(root, proof.index, &proof.nodes).map_err(|why| path.refuse(why))?;
    steps.push(path.pass(format!("{} nodes to index {}", proof.nodes.len(), proof.index), *root));
    if value != proof.rlp {
        let same = value.iter().zip(&proof.rlp).take_while(|(one, other)| one == other).count();
        let differ = format!(
            "`rlp` has {} bytes, the leaf {}; they differ from byte {same} on",
            proof.rlp.len(),
            value.len()
        );
        return Err(bytes.refuse(differ));
    }
    let hash = keccak256(value);
    steps.push(bytes.pass(format!("{} bytes in the leaf", value.len()), hash));
    Ok(hash)
}

fn find_log(
    receipt: &IndexedProof,
    place: LogPlace,
    block: ProvenBlock,
) -> Result<ProvenLog, ProofRefusal> {
    let logs = logs_of(&receipt.rlp)
        .map_err(|why| ProofStepName::Log.refuse(format!("the receipt: {why}")))?;
    let claimed = place.position.checked_add(place.after).and_then(|sum| sum.checked_add(1));
    if claimed.and_then(|count| usize::try_from(count).ok()) != Some(logs.len()) {
        return Err(ProofStepName::Log.refuse(format!(
            "{} logs before it and {} after it, but the receipt has {} logs",
            place.position,
            place.after,
            logs.len()
        )));
    }
    let position = usize::try_from(place.position).ok();
    let log = position.and_then(|position| logs.get(position));
    let log = log.ok_or_else(|| ProofStepName::Log.refuse("the receipt has no such log"))?;
    Ok(proven_log(log, block, (receipt.index, place.position, None)))
}

fn proven_log(
    log: &LogParts<'_>,
    block: ProvenBlock,
    (transaction_index, position, log_index): (u64, u64, Option<u64>),
) -> ProvenLog {
    ProvenLog {
        block_number: block.number,
        block_hash: block.hash,
        transaction_index,
        position,
        log_index,
        address: log.address,
        topics: log.topics.clone(),
        data: log.data.to_vec(),
    }
}

fn verify_block(block: &WholeBlock, steps: &mut Vec<ProofStep>) -> Result<Proven, ProofRefusal> {
    let header = verify_header(&block.header, steps)?;
    let (count, receipt_count) = (block.transactions.len(), block.receipts.len());
    let what = format!("{count} transactions");
    let root = ordered_root(&block.transactions);
    check_hash((ProofStepName::TransactionsRoot, what), root, header.transactions_root, steps)?;
    let what = format!("{receipt_count} receipts");
    let root = ordered_root(&block.receipts);
    check_hash((ProofStepName::ReceiptsRoot, what), root, header.receipts_root, steps)?;
    if count != receipt_count {
        let differ = format!("{receipt_count} receipts of {count} transactions");
        return Err(ProofStepName::ReceiptsRoot.refuse(differ));
    }
    let what = format!("a list of {} bytes", block.ommers.len());
    let hash = keccak256(&block.ommers);
    check_hash((ProofStepName::OmmersHash, what), hash, header.ommers_hash, steps)?;
    match (&block.withdrawals, header.withdrawals_root) {
        (Some(withdrawals), Some(expected)) => {
            let what = format!("{} withdrawals", withdrawals.len());
            let root = ordered_root(withdrawals);
            check_hash((ProofStepName::WithdrawalsRoot, what), root, expected, steps)?;
        }
        (None, None) => {}
        (Some(_), None) => {
            return Err(ProofStepName::WithdrawalsRoot.refuse("the header has no such root"));
        }
        (None, Some(_)) => {
            let missing = "the header has such a root, the bundle no withdrawals";
            return Err(ProofStepName::WithdrawalsRoot.refuse(missing));
        }
    }
    let claim = ProvenClaim::Block {
        block: ProvenBlock { number: header.number, hash: header.hash },
        transactions: block.transactions.clone(),
        receipts: block.receipts.clone(),
    };
    Ok((header, claim))
}

fn check_hash(
    (step, what): (ProofStepName, String),
    found: Hash32,
    expected: Hash32,
    steps: &mut Vec<ProofStep>,
) -> Result<(), ProofRefusal> {
    if found != expected {
        return Err(step.refuse(format!("{what} give {found}, the header says {expected}")));
    }
    steps.push(step.pass(what, found));
    Ok(())
}

fn verify_logs(proof: &LogsProof, steps: &mut Vec<ProofStep>) -> Result<Proven, ProofRefusal> {
    let (claimed, found) = proof.filter_hash;
    if claimed != found {
        let why = format!("the filter's text has hash {found}, `filterHash` is {claimed}");
        return Err(ProofStepName::Filter.refuse(why));
    }
    steps.push(ProofStepName::Filter.pass("the question", found));
    let matcher = LogMatcher::new(&proof.filter);
    let mut search = LogScan { matcher: &matcher, logs: Vec::new(), excluded: 0 };
    let (mut before, mut parent): (Option<HeaderParts>, Option<Hash32>) = (None, None);
    for (place, block) in proof.blocks.iter().enumerate() {
        let link =
            |why: String| ProofStepName::HeaderLinks.refuse(format!("header {place}: {why}"));
        let header = HeaderParts::read(&block.header).map_err(link)?;
        if let Some(why) = before.as_ref().and_then(|before| header.unlinked(before)) {
            return Err(link(why));
        }
        if before.is_none() && header.number != proof.filter.from_block {
            return Err(range_refusal(&proof.filter, "begins", header.number));
        }
        search.scan(block, &header, steps)?;
        parent = parent.or(Some(header.parent));
        before = Some(header);
    }
    let (Some(last), Some(parent)) = (before, parent) else {
        return Err(ProofStepName::HeaderLinks.refuse("no blocks"));
    };
    if last.number != proof.filter.to_block {
        return Err(range_refusal(&proof.filter, "ends", last.number));
    }
    let what = format!("{} blocks have no log that matches", search.excluded);
    steps.push(ProofStepName::Bloom.pass(what, last.hash));
    let what = format!("{} headers name each other as parents", proof.blocks.len());
    steps.push(ProofStepName::HeaderLinks.pass(what, last.hash));
    let claim = ProvenClaim::Logs {
        filter: proof.filter.clone(),
        parent,
        last: ProvenBlock { number: last.number, hash: last.hash },
        logs: search.logs,
    };
    Ok((last, claim))
}

fn range_refusal(filter: &ProofFilter, what: &str, number: u64) -> ProofRefusal {
    ProofStepName::Filter.refuse(format!(
        "the filter asks for blocks {}..{}, the list of blocks {what} with {number}",
        filter.from_block, filter.to_block
    ))
}

/// What was found so far in a range of blocks.
struct LogScan<'a> {
    matcher: &'a LogMatcher,
    logs: Vec<ProvenLog>,
    excluded: u64,
}

impl LogScan<'_> {
    fn scan(
        &mut self,
        block: &SearchedBlock,
        header: &HeaderParts,
        steps: &mut Vec<ProofStep>,
    ) -> Result<(), ProofRefusal> {
        let place = ProvenBlock { number: header.number, hash: header.hash };
        let Some(receipts) = &block.receipts else {
            if !self.matcher.is_excluded_by(&header.bloom) {
                let why =
                    format!("block {} may have logs that match, but no receipts", place.number);
                return Err(ProofStepName::Bloom.refuse(why));
            }
            self.excluded = self.excluded.saturating_add(1);
            return Ok(());
        };
        let what = format!("{} receipts of block {}", receipts.len(), place.number);
        let root = ordered_root(receipts);
        check_hash((ProofStepName::ReceiptsRoot, what), root, header.receipts_root, steps)?;
        let mut log_index: u64 = 0;
        for (transaction_index, receipt) in (0..).zip(receipts) {
            let logs = logs_of(receipt).map_err(|why| {
                let number = place.number;
                let why = format!("receipt {transaction_index} of block {number}: {why}");
                ProofStepName::Log.refuse(why)
            })?;
            for (position, log) in (0..).zip(&logs) {
                if self.matcher.matches(log) {
                    let at = (transaction_index, position, Some(log_index));
                    self.logs.push(proven_log(log, place, at));
                }
                log_index = log_index.saturating_add(1);
            }
        }
        Ok(())
    }
}
