//! What `doctor` finds out about nodes: whether they answer, of which chain, and whether what they give
//! can be proven.

use std::time::Duration;

use chain::trust::Anchors;
use chain::{ChainSpec, Start, Verifier};
use node::{
    AskLimits, BlockTag, FetchError, MethodUse, MissingMethod, Upstream, UpstreamUrl, WantedBlock,
};
use store::BlockId;

use crate::Failure;
use crate::args::doctor::DoctorArgs;

use super::DoctorFinding;

/// Nobody waits long for a doctor.
const LIMITS: AskLimits = AskLimits {
    connect_timeout: Duration::from_secs(5),
    answer_timeout: Duration::from_secs(10),
    answer_bytes_max: 64 << 20,
    tries_max: 2,
    pause_begin: Duration::from_millis(200),
    pause_max: Duration::from_secs(1),
    concurrency_max: 4,
};

/// Asks every node that is named.
pub(super) fn examine_nodes(
    args: &DoctorArgs,
    spec: Option<&ChainSpec>,
    tip: Option<BlockId>,
) -> Result<Vec<DoctorFinding>, Failure> {
    if args.upstream.upstreams.is_empty() {
        return Ok(Vec::new());
    }
    let urls = args.upstream.urls()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut findings = Vec::new();
    for url in urls {
        let name = url.name().to_owned();
        let examined = runtime.block_on(examine(url, args, spec, tip, &mut findings));
        if let Err(error) = examined {
            let todo = format!("see whether {name} is right and the node runs");
            findings.push(DoctorFinding::fix("node", format!("{name}: {error}"), todo));
        }
    }
    Ok(findings)
}

async fn examine(
    url: UpstreamUrl,
    args: &DoctorArgs,
    spec: Option<&ChainSpec>,
    tip: Option<BlockId>,
    findings: &mut Vec<DoctorFinding>,
) -> Result<(), FetchError> {
    let (name, is_websocket) = (url.name().to_owned(), url.is_websocket());
    let node = Upstream::new(url, LIMITS)?;
    let missing = judge_methods(&name, &node.find_missing_methods().await?);
    let is_enough = missing.iter().all(|finding| !finding.is_fix());
    findings.extend(missing);
    if !is_enough {
        return Ok(());
    }
    let identity = node.fetch_identity().await?;
    let difference =
        spec.and_then(|spec| identity.find_difference(spec.chain_id(), spec.genesis_hash()));
    if let Some(difference) = difference {
        let said = format!("{name}: follows another chain: {difference}");
        findings.push(DoctorFinding::fix(
            "node",
            said,
            "name a node of this chain, or another --data-dir",
        ));
        return Ok(());
    }
    let claims = node.fetch_claims(&[BlockTag::Latest, BlockTag::Finalized]).await?;
    let number =
        |position: usize| claims.get(position).copied().flatten().map(|claim| claim.number);
    let (latest, finalized) = (number(0).unwrap_or_default(), number(1));
    findings
        .push(DoctorFinding::well("node", format!("{name}: answers; {identity}, tip {latest}")));
    if finalized.is_none() {
        let said = format!("{name}: does not say which block is final");
        findings.push(match args.upstream.finality_depth {
            Some(depth) => DoctorFinding::well(
                "node",
                format!("{said}; blocks {depth} below the tip are by --finality-depth"),
            ),
            None => DoctorFinding::note("node", said)
                .with_todo("give --finality-depth N beside --upstream"),
        });
    }
    findings.push(prove(&node, &name, finalized.unwrap_or(latest), spec).await?);
    findings.extend(compare_tip(&node, &name, tip).await?);
    if is_websocket {
        findings.push(match node.subscribe_tips().await {
            Ok(()) => {
                DoctorFinding::well("node", format!("{name}: tells new heads by subscription"))
            }
            Err(error) => {
                DoctorFinding::note("node", format!("{name}: offers no subscription: {error}"))
            }
        });
    }
    Ok(())
}

/// What is said of methods that a node does not offer.
fn judge_methods(name: &str, missing: &[MissingMethod]) -> Vec<DoctorFinding> {
    let lacks = |purpose: MethodUse| missing.iter().any(|method| method.purpose == purpose);
    let has_receipts = !lacks(MethodUse::Receipts) || !lacks(MethodUse::ReceiptsOneByOne);
    let judge = |method: &MissingMethod| {
        let said = |what: &str| format!("{name}: does not offer {}: {what}", method.name);
        let todo = "use a node that offers it, or turn it on there";
        match method.purpose {
            MethodUse::Everything => Some(DoctorFinding::fix(
                "node",
                said("nothing can be followed or filled from it"),
                todo,
            )),
            MethodUse::Receipts if has_receipts => Some(DoctorFinding::note(
                "node",
                said("receipts are asked one by one, which takes longer"),
            )),
            MethodUse::Receipts => Some(DoctorFinding::fix(
                "node",
                said(
                    "receipts cannot be had, because it does not offer eth_getTransactionReceipt either",
                ),
                "use a node that offers one of the two, or turn one on there",
            )),
            // It is asked only where there is no list.
            MethodUse::ReceiptsOneByOne => None,
            MethodUse::Ommers => Some(DoctorFinding::note(
                "node",
                said("blocks with ommers, which are before the merge, cannot be had from it"),
            )),
            MethodUse::ForkSchedule => Some(DoctorFinding::note(
                "node",
                said("blob prices of a chain that is not built in need --genesis FILE"),
            )),
        }
    };
    if missing.is_empty() {
        let said = format!("{name}: offers every method that blocks are asked with");
        return vec![DoctorFinding::well("node", said)];
    }
    missing.iter().filter_map(judge).collect()
}

/// Rebuilds a block from what the node tells, with every method that this takes, and proves it.
async fn prove(
    node: &Upstream,
    name: &str,
    number: u64,
    spec: Option<&ChainSpec>,
) -> Result<DoctorFinding, FetchError> {
    let unknown = ChainSpec::bare("unknown", None, None);
    let spec = spec.unwrap_or(&unknown);
    let fetched = match node.fetch_blocks(&[WantedBlock::Number(number)]).await {
        Ok(fetched) => fetched,
        Err(error) => {
            let todo = "use a node that gives blocks and receipts: eth_getBlockByNumber, and \
                        eth_getBlockReceipts or eth_getTransactionReceipt";
            return Ok(DoctorFinding::fix(
                "node",
                format!("{name}: block {number}: {error}"),
                todo,
            ));
        }
    };
    let Some(fetched) = fetched.first() else {
        let todo = "use a node that has the blocks that it tells of";
        return Ok(DoctorFinding::fix(
            "node",
            format!("{name}: does not give block {number}"),
            todo,
        ));
    };
    let anchors = Anchors::none();
    let proven = fetched.rebuild(spec).map_err(|error| error.to_string()).and_then(|candidate| {
        let mut verifier = Verifier::new(spec, &anchors, Start::At(number));
        verifier.verify(candidate).map_err(|error| error.to_string())
    });
    Ok(match proven {
        Ok(block) => {
            let count = block.transactions.len();
            DoctorFinding::well(
                "node",
                format!("{name}: block {number} with {count} transactions and receipts is proven"),
            )
        }
        Err(said) => DoctorFinding::fix(
            "node",
            format!("{name}: what it tells of block {number} cannot be proven: {said}"),
            "use another node; upgrade Quipu if the block is of a fork that it does not know",
        ),
    })
}

/// Whether the node has our newest block.
async fn compare_tip(
    node: &Upstream,
    name: &str,
    tip: Option<BlockId>,
) -> Result<Option<DoctorFinding>, FetchError> {
    let Some(BlockId { number, hash }) = tip else { return Ok(None) };
    let claims = node.fetch_claims(&[BlockTag::Number(number.get())]).await?;
    Ok(Some(match claims.first().copied().flatten() {
        Some(claim) if claim.hash == hash => {
            DoctorFinding::well("node", format!("{name}: has our newest block, {number}"))
        }
        Some(claim) => DoctorFinding::note(
            "node",
            format!("{name}: has {} as block {number}, and {hash} is held here", claim.hash),
        ),
        None => {
            DoctorFinding::note("node", format!("{name}: does not have our newest block, {number}"))
        }
    }))
}
