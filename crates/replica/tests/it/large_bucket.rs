//! A bucket with all of mainnet by its numbers: some 3,000 segments, and runs of their true lengths.
//!
//! Three segments are there, the others are listed and never read. Runs are those of a folder with these
//! slots, each as long as mainnet's.

use std::sync::Arc;

use alloy_primitives::{B256, U256, hex};
use chain::BlockRange;
use segment::SLOT_BLOCKS;
use segment::index::{IndexKey, Position, RunSpan, RunSubject};
use store::layout::{HeldRange, plan_lookups, slot_of};
use store::manifest::{Edit, Manifest, Network, RunEntry, SegmentEntry};
use store::names::{run_name, segment_name};

use crate::counted_store::{ObjectBytes, Objects};
use crate::history::{MAIN, network, sha};
use crate::sized_postings::{BUCKET_POSTINGS, PlacedValue, SizedPostings};
use crate::sized_run::{BUCKET_KEYS, SizedRun};
use crate::true_segment::{FIRST_WITH_TRANSACTION, RARE, TrueSegment};

/// 3 billion transactions in 2,993 slots are a million a slot; this is 5 % more.
const SLOT_TRANSACTIONS: u64 = BUCKET_KEYS << 12;
/// At four bytes and more each, the log index of all slots is as long as docs/scale-out.md has it.
const SLOT_POSTINGS: u64 = BUCKET_POSTINGS << 12;
/// What the segment of an average slot has.
const SEGMENT_BYTES: u64 = 340_000_000;

/// A bucket that is to be read.
#[derive(Debug)]
pub(crate) struct LargeBucket {
    pub(crate) objects: Arc<Objects>,
    pub(crate) manifest: Manifest,
    /// Those that are there.
    pub(crate) segments: Vec<TrueSegment>,
}

impl LargeBucket {
    /// A bucket with so many complete slots, of which these are there, and the begin of one more, which
    /// has runs of its own.
    pub(crate) fn new(slot_count: u64, true_slots: &[u64]) -> Self {
        let of_slot = |slot: &u64| TrueSegment::of_slot(*slot, made_up_hash(slot * SLOT_BLOCKS));
        let segments: Vec<TrueSegment> = true_slots.iter().map(of_slot).collect();
        let mut objects = Objects::new();
        let mut edit = Edit { network: network(), ..Edit::default() };
        for slot in 0..slot_count {
            edit.segments.push(
                match segments.iter().find(|it| slot_of(it.entry.range.first()) == slot) {
                    Some(segment) => segment.entry.clone(),
                    None => listed_segment(slot * SLOT_BLOCKS, SLOT_BLOCKS, &segments),
                },
            );
        }
        edit.segments.push(listed_segment(slot_count * SLOT_BLOCKS, 256, &segments));
        for segment in &segments {
            put(&mut objects, &segment.entry.file_name, Arc::new(segment.bytes.clone()));
        }
        let held: Vec<HeldRange> = edit.segments.iter().map(SegmentEntry::held).collect();
        let places = Places::of(&segments);
        for span in plan_lookups(&held) {
            // The young slot has a 32th of a complete one.
            let share = if span.first_slot() == slot_count { 32 } else { 1 };
            for (subject, run) in places.runs(span, share) {
                let bytes = run.file_bytes();
                // Those of a single slot are short enough to be copied.
                let is_copied = slot_count == 1 && subject == RunSubject::Transactions;
                let made_up = || format!("{subject} {span}").into_bytes();
                let digest = sha(&if is_copied { run.read(0..bytes) } else { made_up() });
                let file_name = run_name(subject, span, digest);
                put(&mut objects, &file_name, run);
                edit.runs.push(RunEntry { subject, span, file_name, bytes, digest });
            }
        }
        let manifest = Manifest::new(Network::default()).edited(edit).unwrap();
        let text = manifest.to_published().encode();
        let name = format!("net/manifests/{}", hex::encode(sha(&text)));
        objects.insert(name, Arc::new(text));
        Self { objects: Arc::new(objects), manifest, segments }
    }
}

fn put(objects: &mut Objects, name: &str, object: Arc<dyn ObjectBytes>) {
    objects.insert(format!("net/files/{name}"), object);
}

/// The hash of the block before a made-up one.
fn made_up_hash(number: u64) -> B256 {
    number.checked_sub(1).map_or(B256::ZERO, |parent| MAIN.hash(parent))
}

/// A segment that is listed and not there, between those that are.
fn listed_segment(first: u64, count: u64, there: &[TrueSegment]) -> SegmentEntry {
    let range = BlockRange::from_count(first, count).unwrap();
    let before = there.iter().find(|it| it.entry.range.end() == first);
    let held = HeldRange { range, has_receipts: true };
    let digest = sha(&first.to_le_bytes());
    SegmentEntry {
        range,
        file_name: segment_name(held, digest),
        bytes: SEGMENT_BYTES,
        digest,
        has_receipts: true,
        parent_hash: before.map_or_else(|| made_up_hash(first), |it| it.entry.last_hash),
        last_hash: MAIN.hash(range.last()),
        transaction_count: SLOT_TRANSACTIONS * count / SLOT_BLOCKS,
        log_count: SLOT_TRANSACTIONS * count / SLOT_BLOCKS,
        difficulty: U256::ZERO,
    }
}

/// Where what is there can be found.
struct Places {
    transactions: Vec<(B256, Position)>,
    blocks: Vec<(B256, Position)>,
    logs: Vec<PlacedValue>,
}

impl Places {
    /// Of the first transactions and blocks of each segment.
    fn of(segments: &[TrueSegment]) -> Self {
        let of_each = |hashes: fn(&TrueSegment) -> &Vec<B256>| {
            let mut places = Vec::new();
            for segment in segments {
                let slot = slot_of(segment.entry.range.first());
                let hashes = (0..).zip(hashes(segment).iter().take(8));
                places.extend(hashes.map(|(ordinal, it)| (*it, Position { slot, ordinal })));
            }
            places
        };
        let rare = |segment: &TrueSegment| {
            let slot = slot_of(segment.entry.range.first());
            (0..).zip(RARE).map(move |(ordinal, address)| PlacedValue {
                key: IndexKey::of_address(&address),
                slot,
                block: FIRST_WITH_TRANSACTION + 16 * ordinal,
            })
        };
        Self {
            transactions: of_each(|it| &it.transaction_hashes),
            blocks: of_each(|it| &it.block_hashes),
            logs: segments.iter().flat_map(rare).collect(),
        }
    }

    /// The three runs of a span, each slot with so many times less than a complete one.
    fn runs(&self, span: RunSpan, share: u64) -> [(RunSubject, Arc<dyn ObjectBytes>); 3] {
        let hashes = |subject, keys, wanted| -> (RunSubject, Arc<dyn ObjectBytes>) {
            (subject, Arc::new(SizedRun::new(subject, span, keys, wanted)))
        };
        [
            hashes(RunSubject::Transactions, SLOT_TRANSACTIONS / share, &self.transactions),
            hashes(RunSubject::Blocks, SLOT_BLOCKS / share, &self.blocks),
            (
                RunSubject::Logs,
                Arc::new(SizedPostings::new(span, SLOT_POSTINGS / share, &self.logs)),
            ),
        ]
    }
}
