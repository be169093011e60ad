//! Backfills of tests: the nodes, their limits, and a folder that takes a range of them.

use std::sync::Arc;
use std::time::Duration;

use chain::{Block, BlockRange, Verified};
use ingest::backfill::{BackfillError, BackfillSettings, Backfiller};
use ingest::import::plan_units;
use ingest::prove::NoProgress;
use node::{AskLimits, HeaderClaim, RestLimits, UpstreamUrl, Upstreams};
use store::Writer;
use tokio::runtime::Runtime;

use super::chains::{Chain, sample_spec};
use crate::harness::folder::DataFolder;
use crate::harness::made::threads;

/// Limits as they are used, but with the times of a test. Answers have the time that a busy machine
/// may take for them.
pub(crate) fn quick() -> (AskLimits, RestLimits) {
    let ask = AskLimits {
        answer_timeout: Duration::from_secs(10),
        pause_begin: Duration::from_millis(5),
        pause_max: Duration::from_millis(40),
        ..AskLimits::default()
    };
    let rest = RestLimits {
        failure_begin: Duration::from_millis(20),
        failure_max: Duration::from_millis(100),
        ..RestLimits::default()
    };
    (ask, rest)
}

/// The same for nodes that stall, whose answers a test need not wait for.
pub(crate) fn stalling() -> (AskLimits, RestLimits) {
    let (ask, rest) = quick();
    (AskLimits { answer_timeout: Duration::from_millis(500), ..ask }, rest)
}

pub(crate) fn upstreams(urls: Vec<UpstreamUrl>, quorum: usize) -> Arc<Upstreams> {
    let (ask, rest) = quick();
    Arc::new(Upstreams::new(urls, &sample_spec(), quorum, ask, rest).unwrap())
}

/// Nodes of which one stalls; one is enough.
pub(crate) fn stalling_upstreams(urls: Vec<UpstreamUrl>) -> Arc<Upstreams> {
    let (ask, rest) = stalling();
    Arc::new(Upstreams::new(urls, &sample_spec(), 1, ask, rest).unwrap())
}

pub(crate) fn verified(chain: &Chain, range: std::ops::Range<usize>) -> Vec<Verified<Block>> {
    chain[range].iter().map(|told| told.verified.clone()).collect()
}

/// Takes a range into a folder.
pub(crate) fn fill(
    runtime: &Runtime,
    data: &DataFolder,
    upstreams: &Arc<Upstreams>,
    blocks: (u64, u64),
    is_unanchored_allowed: bool,
) -> Result<(), BackfillError> {
    fill_to(runtime, data, upstreams, blocks, is_unanchored_allowed, None)
}

/// The same with this block, if it is in the range, and no other of its number.
pub(crate) fn fill_to(
    runtime: &Runtime,
    data: &DataFolder,
    upstreams: &Arc<Upstreams>,
    blocks: (u64, u64),
    is_unanchored_allowed: bool,
    finalized: Option<HeaderClaim>,
) -> Result<(), BackfillError> {
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    let backfiller = Backfiller {
        drafting: writer.drafting(),
        upstreams: Arc::clone(upstreams),
        runtime: runtime.handle().clone(),
        spec: &data.spec,
        anchors: &data.anchors,
        settings: BackfillSettings {
            is_unanchored_allowed,
            threads: threads(2),
            patience: Duration::from_secs(20),
            finalized,
        },
        progress: &NoProgress,
        stop: None,
    };
    let wanted = BlockRange::from_ends(blocks.0, blocks.1).unwrap();
    let held = writer.view().coverage().to_vec();
    for unit in plan_units(wanted, &held, &data.anchors) {
        backfiller.take(&unit, &mut |segments, facts| writer.commit(segments, facts))?;
    }
    Ok(())
}
