//! Lookup runs of complete slots, built and merged without the blocks of the slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use chain::BlockRange;
use segment::index::{IndexKey, KeyKind, PostingsBuilder, RunSubject};

use crate::disk::Disk as _;
use crate::disk::faulty::FaultyDisk;
use crate::error::StoreError;
use crate::files::{Claim, FileClaims};
use crate::lookups::{RunSources, SegmentKeys, build_runs};
use crate::manifest::{Edit, Manifest, Network, RunEntry, SegmentEntry};
use crate::part::StagingArea;

/// A segment of a slot that is complete, as far as lookups are concerned.
fn slot_segment(slot: u64) -> (SegmentEntry, SegmentKeys) {
    let prefix = |what: u8, index: u64| {
        let seed = [&[what][..], &slot.to_be_bytes(), &index.to_be_bytes()].concat();
        IndexKey::of_hash(&keccak256(seed))
    };
    let mut logs = PostingsBuilder::new(slot);
    for index in 0..1000 + slot {
        let value = IndexKey::of(KeyKind::Topic1, &(index / 3).to_be_bytes());
        logs.push(value, slot * 8192 + index * 7, index % 300).unwrap();
    }
    let keys = SegmentKeys {
        transactions: (0..300 + slot).map(|index| prefix(b't', index)).collect(),
        blocks: (0..8192).map(|index| prefix(b'b', index)).collect(),
        logs: Some(logs),
    };
    let entry = SegmentEntry {
        range: BlockRange::from_count(slot * 8192, 8192).unwrap(),
        file_name: format!("slot-{slot}.segment"),
        bytes: 1,
        digest: B256::ZERO,
        has_receipts: true,
        parent_hash: B256::ZERO,
        last_hash: B256::ZERO,
        transaction_count: 300 + slot,
        log_count: 0,
        difficulty: U256::ZERO,
    };
    (entry, keys)
}

fn sources<'a>(
    before: &'a Manifest,
    segments: &'a [SegmentEntry],
    keys: &'a BTreeMap<String, SegmentKeys>,
) -> RunSources<'a> {
    let read_logs = &|_| panic!("all segments are new, or have runs");
    RunSources { before, segments, keys, read_logs, indexed_now: &[] }
}

/// The runs after complete slots come one after the other.
fn runs_of(order: &[u64]) -> (Vec<RunEntry>, usize) {
    let disk = FaultyDisk::new(1);
    let claims = Arc::<FileClaims>::default();
    let _removal = claims.begin_removal(Arc::new(disk.clone()));
    let workshop = StagingArea::new(Arc::new(disk.clone()), claims);
    let mut files: Vec<Claim> = Vec::new();
    let mut manifest = Manifest::new(Network::default());
    for slot in order {
        let (entry, keys) = slot_segment(*slot);
        let mut segments = manifest.segments().to_vec();
        segments.push(entry.clone());
        segments.sort_by_key(|entry| entry.range.first());
        let keys = BTreeMap::from([(entry.file_name.clone(), keys)]);
        let change = build_runs(&workshop, sources(&manifest, &segments, &keys), &[]).unwrap();
        files.extend(change.files);
        let gone = change.gone.into_iter().collect();
        let edit = Edit { segments: vec![entry], runs: change.built, gone, ..Edit::default() };
        manifest = manifest.edited(edit).unwrap();
        files.retain(|file| manifest.runs().iter().any(|run| run.file_name == file.file_name()));
    }
    (manifest.runs().to_vec(), disk.list().unwrap().len())
}

#[test]
fn runs_of_complete_slots_are_merged_in_whatever_order_they_come() {
    let (direct, _) = runs_of(&[0, 1, 2, 3, 4]);
    let spans: Vec<String> = direct.iter().map(|run| run.span.to_string()).collect();
    assert_eq!(spans, ["slots 0..3", "slots 4..4"].repeat(3));
    for order in [[4, 3, 2, 1, 0], [1, 2, 0, 4, 3], [3, 0, 1, 4, 2], [2, 0, 3, 1, 4]] {
        let (runs, file_count) = runs_of(&order);
        assert_eq!(runs, direct, "{order:?}");
        assert_eq!(file_count, 6, "{order:?}: steps on the way are not left behind");
    }
    assert_eq!(runs_of(&[0, 1]).0.len(), 3);
    assert_eq!(runs_of(&[1, 2]).0.len(), 6);
}

#[test]
fn a_run_that_is_not_the_listed_one_is_named_and_not_merged() {
    let disk = FaultyDisk::new(1);
    let workshop = StagingArea::new(Arc::new(disk.clone()), Arc::default());
    let empty = Manifest::new(Network::default());
    let (first, keys) = slot_segment(0);
    let keys = BTreeMap::from([(first.file_name.clone(), keys)]);
    let built = build_runs(&workshop, sources(&empty, std::slice::from_ref(&first), &keys), &[]);
    let built = built.unwrap().built;
    let of = |subject| built.iter().find(|run| run.subject == subject).unwrap().clone();
    let (transactions, blocks) = (of(RunSubject::Transactions), of(RunSubject::Blocks));
    // The run of blocks lies under the name of the other, with its length.
    disk.write(&transactions.file_name, &disk.read(&blocks.file_name, 1 << 20).unwrap()).unwrap();
    let swapped = RunEntry { bytes: blocks.bytes, ..transactions.clone() };
    let listed =
        Edit { segments: vec![first.clone()], runs: vec![swapped, blocks], ..Edit::default() };
    let manifest = empty.edited(listed).unwrap();
    let (second, keys) = slot_segment(1);
    let keys = BTreeMap::from([(second.file_name.clone(), keys)]);
    let segments = [first, second];
    let refused = build_runs(&workshop, sources(&manifest, &segments, &keys), &[]).unwrap_err();
    let StoreError::NotListed { file, what, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((file, what), (transactions.file_name, "content"));
}
