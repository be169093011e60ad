//! Made-up history: folders in memory whose files have the right names, footers and digests.
//!
//! What is in a segment is noise, which nobody here reads; runs are real ones of a few made-up hashes.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::{BlockRange, SplitMix64};
use segment::index::{
    IndexKey, KeyKind, Merge, MergeStep, OrdinalsBuilder, Position, PostingsBuilder, Run, RunSpan,
    RunSubject, Side,
};
use segment::{FOOTER_BYTES, Footer, SLOT_BLOCKS, SegmentFacts, slice};
use sha2::{Digest as _, Sha256};
use store::disk::Disk;
use store::layout::{HeldRange, plan_lookups, plan_segments};
use store::manifest::{Edit, Manifest, Network, RunEntry, SegmentEntry};
use store::names::{run_name, segment_name};
use testing::disk::faulty::FaultyDisk;

/// Bytes of a segment before its footer, but for those that are asked to be longer.
const BODY_BYTES: usize = 700;

/// A branch of a made-up chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    /// Tells its blocks from those of others, above `fork`.
    pub(crate) letter: u8,
    /// The first block that is its own.
    pub(crate) fork: u64,
}

/// The chain of which all of it is.
pub(crate) fn network() -> Network {
    Network {
        name: Some("made-up".to_owned()),
        chain_id: Some(77),
        genesis_hash: Some(MAIN.hash(0)),
    }
}

/// The branch that all others fork from.
pub(crate) const MAIN: Branch = Branch { letter: b'a', fork: 0 };

impl Branch {
    pub(crate) fn hash(self, number: u64) -> B256 {
        let letter = if number >= self.fork { self.letter } else { MAIN.letter };
        sha(&[&[letter], &number.to_le_bytes()[..]].concat())
    }

    fn parent_hash(self, number: u64) -> B256 {
        number.checked_sub(1).map_or(B256::ZERO, |parent| self.hash(parent))
    }
}

pub(crate) fn sha(bytes: &[u8]) -> B256 {
    B256::from_slice(&Sha256::digest(bytes))
}

pub(crate) fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

/// Blocks with receipts.
pub(crate) fn whole(first: u64, last: u64) -> HeldRange {
    HeldRange { range: range(first, last), has_receipts: true }
}

/// Blocks without.
pub(crate) fn bare(first: u64, last: u64) -> HeldRange {
    HeldRange { range: range(first, last), has_receipts: false }
}

/// A slot.
pub(crate) fn slots(first: u64, last: u64) -> HeldRange {
    whole(first * SLOT_BLOCKS, (last + 1) * SLOT_BLOCKS - 1)
}

/// A segment's bytes, and what a manifest says of it.
pub(crate) fn segment(
    branch: Branch,
    held: HeldRange,
    body_bytes: usize,
) -> (SegmentEntry, Vec<u8>) {
    let HeldRange { range, has_receipts } = held;
    let (parent_hash, last_hash) = (branch.parent_hash(range.first()), branch.hash(range.last()));
    let seed = u64::from_le_bytes(last_hash[..8].try_into().unwrap()) ^ range.first();
    let mut noise = SplitMix64::new(seed ^ u64::from(has_receipts));
    let numbers = std::iter::repeat_with(|| noise.next_number().to_le_bytes());
    let mut bytes: Vec<u8> = numbers.flatten().take(body_bytes).collect();
    let digest = sha(&bytes);
    let facts = SegmentFacts {
        range,
        parent_hash,
        last_hash,
        has_receipts,
        transaction_count: range.count(),
        log_count: 0,
        token_bytes: 0,
        receipt_token_bytes: 0,
        receipt_payload_bytes: 0,
    };
    bytes.extend(footer(facts, digest));
    let entry = SegmentEntry {
        range,
        file_name: segment_name(held, digest),
        bytes: bytes.len() as u64,
        digest,
        has_receipts,
        parent_hash,
        last_hash,
        transaction_count: range.count(),
        log_count: 0,
        difficulty: U256::from(range.count()),
    };
    (entry, bytes)
}

/// A footer whose tail is empty: its length is private to the format, and taken from one that was written.
fn footer(facts: SegmentFacts, digest: B256) -> Vec<u8> {
    let mut bytes = b"QuipuSeg".to_vec();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(u32::from(facts.has_receipts).to_le_bytes());
    let range = facts.range;
    for number in [range.first(), range.count(), facts.transaction_count, 0, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(facts.parent_hash);
    bytes.extend(facts.last_hash);
    bytes.extend(digest);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend([0; 4]);
    assert_eq!(bytes.len(), FOOTER_BYTES);
    assert_eq!(Footer::parse(&bytes).unwrap().facts, facts);
    bytes
}

/// The bytes of the run that a folder has of these slots.
fn run_bytes(branch: Branch, subject: RunSubject, span: RunSpan) -> Vec<u8> {
    if span.slot_count() > 1 {
        let half = span.slot_count() / 2;
        let left = RunSpan::new(span.first_slot(), half).unwrap();
        let right = RunSpan::new(span.first_slot() + half, half).unwrap();
        return merged(&run_bytes(branch, subject, left), &run_bytes(branch, subject, right));
    }
    let slot = span.first_slot();
    let first = slot * SLOT_BLOCKS;
    let hashes = |subject| {
        let mut builder = OrdinalsBuilder::new(subject, span);
        for ordinal in 0..5 {
            let hash = sha(branch.hash(first + u64::from(ordinal)).as_slice());
            builder.push(&hash, Position { slot, ordinal }).unwrap();
        }
        builder.finish().unwrap()
    };
    match subject {
        RunSubject::Blocks | RunSubject::Transactions => hashes(subject),
        RunSubject::Logs => {
            let mut builder = PostingsBuilder::new(slot);
            let key = IndexKey::of(KeyKind::LogAddress, branch.hash(first).as_slice());
            builder.push(key, first, 3).unwrap();
            builder.finish().unwrap()
        }
    }
}

fn merged(left: &[u8], right: &[u8]) -> Vec<u8> {
    let [left_run, right_run] = [left, right].map(|file| Run::from_file(file).unwrap());
    let mut merge = Merge::new(left_run, right_run).unwrap();
    let mut bytes = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut bytes).unwrap() {
        let file = if side == Side::Left { left } else { right };
        merge.supply(side, slice(file, &range)).unwrap();
    }
    bytes
}

pub(crate) fn run(branch: Branch, subject: RunSubject, span: RunSpan) -> (RunEntry, Vec<u8>) {
    let bytes = run_bytes(branch, subject, span);
    let digest = sha(&bytes);
    let file_name = run_name(subject, span, digest);
    (RunEntry { subject, span, file_name, bytes: bytes.len() as u64, digest }, bytes)
}

/// A data folder in memory.
#[derive(Clone, Debug)]
pub(crate) struct MadeFolder {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) manifest: Manifest,
    pub(crate) genesis: Option<Vec<u8>>,
}

impl MadeFolder {
    /// What a folder has that holds these blocks.
    pub(crate) fn of(branch: Branch, held: &[HeldRange]) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
        let planned = plan_segments(held);
        let mut edit = Edit { network: network(), ..Edit::default() };
        for held in &planned {
            let (entry, bytes) = segment(branch, *held, BODY_BYTES);
            disk.write(&entry.file_name, &bytes).unwrap();
            edit.segments.push(entry);
        }
        let with_receipts: Vec<HeldRange> =
            planned.iter().filter(|it| it.has_receipts).copied().collect();
        for subject in RunSubject::ALL {
            let told = if subject == RunSubject::Logs { &with_receipts } else { &planned };
            for span in plan_lookups(told) {
                let (entry, bytes) = run(branch, subject, span);
                disk.write(&entry.file_name, &bytes).unwrap();
                edit.runs.push(entry);
            }
        }
        let manifest = Manifest::new(Network::default()).edited(edit).unwrap();
        Self { disk, manifest, genesis: None }
    }

    /// The same folder, of a chain that is not built in.
    pub(crate) fn with_genesis(self, genesis: &[u8]) -> Self {
        let manifest = self.manifest.with_genesis_file(Some(sha(genesis)));
        Self { manifest, genesis: Some(genesis.to_vec()), ..self }
    }

    /// The name of the segment of a block.
    pub(crate) fn segment_of(&self, number: u64) -> String {
        let (_, entry) = self.manifest.find_segment(chain::BlockNumber(number)).unwrap();
        entry.file_name.clone()
    }

    /// All names that the manifest lists.
    pub(crate) fn file_names(&self) -> Vec<String> {
        replica::listed_files(&self.manifest).into_iter().map(|it| it.name).collect()
    }
}
