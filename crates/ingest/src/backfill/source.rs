//! Blocks of upstream nodes, fetched ahead of whoever reads them.
//!
//! One thread asks, and as many questions are under way as the nodes take and memory allows. Readers
//! wait for the blocks that they want, which come in the order in which they are wanted: so the lowest
//! that anybody waits for is always under way, and nobody waits for ever.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use alloy_primitives::{B256, Bytes};
use chain::{BlockRange, Candidate, Fault, Mismatch, RuleFault};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use node::{NodeBlock, SourceFault, UpstreamsError, WantedBlock};
use tokio::sync::Notify;

use super::Backfiller;
use crate::import::{AccountableBlocks, Link};
use crate::prove::Blocks;
use crate::stop::{is_stopped, until_stopped};

/// Blocks that are asked for in one message, each with its receipts.
const BLOCKS_PER_MESSAGE: usize = 8;
/// Messages under way at the most; each node's own pace is below it.
const MESSAGES_MAX: usize = 64;
/// Messages under way before it is known how large an answer is.
const MESSAGES_BEGIN: usize = 4;
/// Bytes of answers that wait for their readers or are about to.
const WAITING_BYTES_MAX: u64 = 96 << 20;
/// What a block is taken to have before it is read. Groups of blocks are pieces of work: heavy blocks
/// must not be gathered into larger ones.
const BLOCK_BYTES_GUESSED: u64 = 1 << 16;

/// The blocks of one unit.
pub(super) struct UpstreamBlocks<'a> {
    backfiller: &'a Backfiller<'a>,
    /// Blocks that are held and proven by an anchor.
    anchored: Vec<BlockRange>,
    state: Mutex<SourceState>,
    arrived: Condvar,
    taken: Notify,
}

#[derive(Default)]
struct SourceState {
    /// Blocks that wait for their readers.
    ready: BTreeMap<u64, (usize, NodeBlock)>,
    bytes: u64,
    /// Who told which block.
    members: BTreeMap<u64, usize>,
    failure: Option<UpstreamsError>,
    /// No further block is delivered.
    is_ended: bool,
    is_closed: bool,
}

/// Lets `work` read the blocks of `order`, about in that order, while they are fetched. `anchored` are
/// held and proven by an anchor.
pub(super) fn with_source<T>(
    backfiller: &Backfiller<'_>,
    order: Vec<u64>,
    anchored: Vec<BlockRange>,
    work: impl FnOnce(&UpstreamBlocks<'_>) -> T,
) -> T {
    let source = UpstreamBlocks {
        backfiller,
        anchored,
        state: Mutex::default(),
        arrived: Condvar::new(),
        taken: Notify::new(),
    };
    let runtime = backfiller.runtime.clone();
    thread::scope(|scope| {
        // Dropped when the work is done, fails or panics: nobody wants the rest then.
        let close = CloseOnDrop(&source);
        let fetching = scope.spawn(|| {
            let _end = EndOnDrop(&source);
            runtime.block_on(source.fetch_all(order));
        });
        let done = work(&source);
        drop(close);
        // Where it panicked, the work has failed for want of a block, or had them all.
        let _ = fetching.join();
        done
    })
}

/// Dropped also when fetching panics: readers must not wait for its blocks for ever.
struct EndOnDrop<'a>(&'a UpstreamBlocks<'a>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.arrived.notify_all();
    }
}

struct CloseOnDrop<'a>(&'a UpstreamBlocks<'a>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.taken.notify_one();
    }
}

impl UpstreamBlocks<'_> {
    async fn fetch_all(&self, order: Vec<u64>) {
        let mut messages = order.chunks(BLOCKS_PER_MESSAGE).peekable();
        let mut under_way = FuturesUnordered::new();
        let (mut bytes_heard, mut heard) = (0_u64, 0_u64);
        let stopped = until_stopped(self.backfiller.stop.clone());
        tokio::pin!(stopped);
        loop {
            let (waiting_bytes, is_closed) = {
                let state = self.lock();
                (state.bytes, state.is_closed)
            };
            if is_closed || (messages.peek().is_none() && under_way.is_empty()) {
                return;
            }
            let message_bytes = bytes_heard / heard.max(1);
            let expected = message_bytes.saturating_mul(to_u64(under_way.len()).saturating_add(1));
            let messages_max = if heard == 0 { MESSAGES_BEGIN } else { MESSAGES_MAX };
            let has_room = waiting_bytes.saturating_add(expected) <= WAITING_BYTES_MAX
                && under_way.len() < messages_max;
            // One may always be under way: a single answer may be larger than all that may wait.
            if (has_room || (under_way.is_empty() && waiting_bytes == 0))
                && let Some(numbers) = messages.next()
            {
                under_way.push(self.fetch(numbers));
                continue;
            }
            tokio::select! {
                Some(fetched) = under_way.next() => {
                    heard = heard.saturating_add(1);
                    bytes_heard = bytes_heard.saturating_add(self.deliver(fetched));
                }
                () = self.taken.notified() => {}
                () = &mut stopped => {
                    self.deliver(Err(UpstreamsError::Stopped));
                    return;
                }
            }
        }
    }

    async fn fetch(&self, numbers: &[u64]) -> Result<(usize, Vec<NodeBlock>), UpstreamsError> {
        let Backfiller { upstreams, settings, .. } = self.backfiller;
        // Behind one address, another node may have another block of this number.
        let wanted = numbers.iter().map(|&number| match settings.finalized {
            Some(it) if it.number == number => WantedBlock::Hash { number, hash: it.hash },
            Some(_) | None => WantedBlock::Number(number),
        });
        let wanted: Vec<WantedBlock> = wanted.collect();
        upstreams.fetch_blocks(&wanted, settings.patience).await
    }

    /// Hands blocks to their readers; tells how many bytes they have.
    fn deliver(&self, fetched: Result<(usize, Vec<NodeBlock>), UpstreamsError>) -> u64 {
        let mut state = self.lock();
        let mut bytes = 0_u64;
        match fetched {
            Ok((member_index, blocks)) => {
                for block in blocks {
                    bytes = bytes.saturating_add(block.bytes());
                    state.members.insert(block.number(), member_index);
                    state.ready.insert(block.number(), (member_index, block));
                }
                state.bytes = state.bytes.saturating_add(bytes);
            }
            Err(error) => {
                state.failure.get_or_insert(error);
                state.is_closed = true;
            }
        }
        self.arrived.notify_all();
        bytes
    }

    /// Waits for a block.
    fn take(&self, number: u64) -> Result<(usize, NodeBlock), SourceFault> {
        let mut state = self.lock();
        loop {
            if let Some((member_index, block)) = state.ready.remove(&number) {
                state.bytes = state.bytes.saturating_sub(block.bytes());
                drop(state);
                self.taken.notify_one();
                return Ok((member_index, block));
            }
            if let Some(error) = &state.failure {
                return Err(SourceFault::Upstreams(error.clone()));
            }
            if state.is_ended {
                let said = "fetching ended before it came".to_owned();
                return Err(SourceFault::Upstreams(UpstreamsError::NotThere { number, said }));
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Who told a block or, if it is held, the one before it; of two the less preferred.
    fn member_of(&self, number: u64) -> Option<usize> {
        let state = self.lock();
        let own = state.members.get(&number).copied();
        own.max(number.checked_sub(1).and_then(|below| state.members.get(&below)).copied())
    }

    fn refuse_at(&self, member_index: usize, mismatch: Mismatch) -> SourceFault {
        let name = self.backfiller.upstreams.name(member_index).to_owned();
        SourceFault::False { name, member_index, mismatch }
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountableBlocks for UpstreamBlocks<'_> {
    /// Says who told what does not fit. It is a lie only where something proves it: a node's own block
    /// beside it, or an anchor above the block that is held. Else one of two is of another branch, and
    /// nobody knows which. Of two nodes the less preferred one is passed over: if the other is wrong,
    /// what it tells will not fit either.
    fn refuse_link(&self, link: Link) -> SourceFault {
        let Link { number, found, expected } = link;
        let below = number.saturating_sub(1);
        let members = |state: &SourceState| {
            (state.members.get(&below).copied(), state.members.get(&number).copied())
        };
        let (lower, upper) = members(&self.lock());
        let (held, against) = match (lower, upper) {
            (Some(lower), Some(upper)) => (None, Some(lower.min(upper))),
            (None, _) => (Some(below), None),
            (Some(_), None) => (Some(number), None),
        };
        let member_index = lower.max(upper).unwrap_or_default();
        let is_anchored = held.is_some_and(|held| self.anchored.iter().any(|it| it.contains(held)));
        if is_anchored || against == Some(member_index) {
            let fault = Box::new(Fault::ParentHash { found, expected });
            return self.refuse_at(member_index, Mismatch { number, fault });
        }
        let upstreams = &self.backfiller.upstreams;
        let by = against.map_or("the data folder", |other| upstreams.name(other));
        let (lower_by, upper_by) =
            if upper.is_some_and(|upper| upper == member_index) { (by, "it") } else { ("it", by) };
        let said = format!(
            "block {number} by {upper_by} has the parent {found}, and block {below} by {lower_by} \
            is {expected}: one of them is of another branch"
        );
        SourceFault::Differs {
            name: upstreams.name(member_index).to_owned(),
            member_index,
            against,
            said,
        }
    }

    /// Says who told another block than the one that the folder held under this number and lost.
    fn refuse_lost(&self, number: u64, found: B256, lost: B256) -> SourceFault {
        let member_index = self.member_of(number).unwrap_or_default();
        let said = format!(
            "block {number} is {found} by it, and the data folder held {lost} before it lost it: one \
            of them is of another branch"
        );
        let name = self.backfiller.upstreams.name(member_index).to_owned();
        SourceFault::Differs { name, member_index, against: None, said }
    }

    fn refuse_step(&self, number: u64, fault: RuleFault) -> SourceFault {
        let member_index = self.member_of(number).unwrap_or_default();
        self.refuse_at(member_index, Mismatch { number, fault: Box::new(Fault::Rule(fault)) })
    }
}

impl Blocks for UpstreamBlocks<'_> {
    type Error = SourceFault;

    fn read_block(&self, number: u64) -> Result<Candidate, SourceFault> {
        // Also where blocks wait: proving those takes long enough.
        if is_stopped(self.backfiller.stop.as_ref()) {
            return Err(SourceFault::Upstreams(UpstreamsError::Stopped));
        }
        let (member_index, block) = self.take(number)?;
        block.rebuild(self.backfiller.spec).map_err(|cause| {
            let name = self.backfiller.upstreams.name(member_index).to_owned();
            SourceFault::Fetch { name, member_index, cause }
        })
    }

    /// Links are checked when the pieces are joined: a block is fetched once.
    fn find_header(&self, _number: u64) -> Result<Option<Bytes>, SourceFault> {
        Ok(None)
    }

    fn block_bytes(&self, _number: u64) -> u64 {
        BLOCK_BYTES_GUESSED
    }

    fn refuse(&self, mismatch: Mismatch) -> SourceFault {
        if let Fault::ParentHash { found, expected } = *mismatch.fault {
            return self.refuse_link(Link { number: mismatch.number, found, expected });
        }
        let member_index = self.member_of(mismatch.number);
        self.refuse_at(member_index.unwrap_or_default(), mismatch)
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::time::Duration;

    use chain::ChainSpec;
    use chain::trust::Anchors;
    use store::disk::Folder;
    use store::read::Inline;
    use store::{Limits, Store, Writer};

    use super::*;
    use crate::backfill::BackfillSettings;
    use crate::prove::NoProgress;
    use node::{AskLimits, RestLimits, Upstreams};

    /// Why a reader of block 7 gets none from a source that fetches `order`.
    fn read_in_vain(order: Vec<u64>, runtime: &tokio::runtime::Runtime) -> String {
        let folder = tempfile::tempdir().unwrap();
        let spec = ChainSpec::bare("test", None, None);
        let disk = Arc::new(Folder::open(folder.path()).unwrap());
        let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
        let writer = Writer::open(Arc::new(store), spec.clone()).unwrap();
        let urls = vec!["http://127.0.0.1:1".parse().unwrap()];
        let (ask, rest) = (AskLimits::default(), RestLimits::default());
        let backfiller = Backfiller {
            drafting: writer.drafting(),
            upstreams: Arc::new(Upstreams::new(urls, &spec, 1, ask, rest).unwrap()),
            runtime: runtime.handle().clone(),
            spec: &spec,
            anchors: &Anchors::of(&spec),
            settings: BackfillSettings {
                is_unanchored_allowed: false,
                threads: NonZeroUsize::MIN,
                patience: Duration::from_hours(1),
                finalized: None,
            },
            progress: &NoProgress,
            stop: None,
        };
        let read = |source: &UpstreamBlocks<'_>| source.read_block(7).map(drop).unwrap_err();
        with_source(&backfiller, order, Vec::new(), read).to_string()
    }

    #[test]
    fn a_reader_of_a_block_that_is_not_fetched_any_more_gets_an_error() {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let ended = "no upstream has block 7: fetching ended before it came";
        // Asking a node needs a clock: without one it panics.
        assert_eq!(read_in_vain(vec![7], &builder.build().unwrap()), ended);
        let runtime = builder.enable_all().build().unwrap();
        assert_eq!(read_in_vain(Vec::new(), &runtime), ended);
    }
}
