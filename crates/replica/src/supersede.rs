//! Which manifests say nothing that another one does not say.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alloy_primitives::B256;
use chain::BlockRange;
use store::RunSubject;
use store::layout::{join_ranges, slot_of, subtract};
use store::manifest::{Manifest, SegmentEntry};

use crate::published::PublishedManifest;

/// The manifests that could go, each with one that stays and holds all of it.
///
/// Two manifests may hold the same; of these the one of the lowest name stays, so that publishers
/// who decide at the same time never remove each other's.
pub(crate) fn superseded(
    manifests: &[PublishedManifest],
    retracted: &BTreeSet<String>,
) -> BTreeMap<B256, Vec<B256>> {
    let contents: Vec<(B256, ManifestContent<'_>)> = manifests
        .iter()
        .map(|it| (it.name, ManifestContent::of(&it.manifest, retracted)))
        .collect();
    let mut superseded = BTreeMap::new();
    for (name, content) in &contents {
        let holders = contents.iter().filter(|(other_name, other)| {
            other_name != name
                && other.contains(content)
                && (other_name < name || !content.contains(other))
        });
        let holders: Vec<B256> = holders.map(|(name, _)| *name).collect();
        if !holders.is_empty() {
            superseded.insert(*name, holders);
        }
    }
    superseded
}

/// What a manifest holds that is not withdrawn.
struct ManifestContent<'a> {
    manifest: &'a Manifest,
    live: Vec<&'a SegmentEntry>,
    names: HashSet<&'a str>,
    coverage: Vec<BlockRange>,
    coverage_receipts: Vec<BlockRange>,
    /// The last hash of every segment, by its last block, and the parent hash by its first.
    last_hashes: HashMap<u64, B256>,
    parent_hashes: HashMap<u64, B256>,
    /// The slots that each subject's runs cover.
    indexed: BTreeMap<RunSubject, HashSet<u64>>,
}

impl<'a> ManifestContent<'a> {
    fn of(manifest: &'a Manifest, retracted: &BTreeSet<String>) -> Self {
        let segments = manifest.segments().iter();
        let live: Vec<&SegmentEntry> =
            segments.filter(|it| !retracted.contains(&it.file_name)).collect();
        let slots: HashSet<u64> = live.iter().map(|it| slot_of(it.range.first())).collect();
        let indexed = RunSubject::ALL.into_iter().map(|subject| {
            let spans = manifest.runs_of(subject).map(|it| it.span);
            let indexed = spans.flat_map(|span| span.first_slot()..span.end_slot());
            (subject, indexed.filter(|it| slots.contains(it)).collect())
        });
        let with_receipts = live.iter().filter(|it| it.has_receipts);
        Self {
            manifest,
            names: live.iter().map(|it| &*it.file_name).collect(),
            coverage: join_ranges(live.iter().map(|it| it.range)),
            coverage_receipts: join_ranges(with_receipts.map(|it| it.range)),
            last_hashes: live.iter().map(|it| (it.range.last(), it.last_hash)).collect(),
            parent_hashes: live.iter().map(|it| (it.range.first(), it.parent_hash)).collect(),
            indexed: indexed.collect(),
            live,
        }
    }

    /// Whether nothing would be lost if only this were there.
    fn contains(&self, other: &Self) -> bool {
        other.live.iter().all(|entry| self.holds(entry))
            && self.knows_chain_of(other)
            && other.indexed.iter().all(|(subject, slots)| {
                self.indexed.get(subject).is_some_and(|own| slots.is_subset(own))
            })
    }

    /// Whether the blocks of a segment are here, in whichever files, as far as the hashes at their ends tell.
    fn holds(&self, entry: &SegmentEntry) -> bool {
        if self.names.contains(&*entry.file_name) {
            return true;
        }
        let coverage = if entry.has_receipts { &self.coverage_receipts } else { &self.coverage };
        let agrees = |held: Option<&B256>, hash: B256| held.is_none_or(|held| *held == hash);
        subtract(&[entry.range], coverage).is_empty()
            && agrees(self.last_hashes.get(&entry.range.last()), entry.last_hash)
            && agrees(self.parent_hashes.get(&entry.range.first()), entry.parent_hash)
    }

    fn knows_chain_of(&self, other: &Self) -> bool {
        fn knows<T: PartialEq>(own: Option<&T>, told: Option<&T>) -> bool {
            told.is_none() || told == own
        }
        let (own, told) = (self.manifest.network(), other.manifest.network());
        let is_live = |number: u64| other.coverage.iter().any(|range| range.contains(number));
        let anchors: HashSet<_> = self.manifest.anchors().map(|it| (it.number, it.hash)).collect();
        let mut told_anchors = other.manifest.anchors().filter(|it| is_live(it.number));
        let epochs: HashSet<_> = self.manifest.epochs().map(|it| it.number).collect();
        let mut told_epochs = other.manifest.epochs().filter(|it| is_live(it.last));
        let (genesis, told_genesis) = (self.manifest.genesis_file(), other.manifest.genesis_file());
        knows(own.name.as_ref(), told.name.as_ref())
            && knows(own.chain_id.as_ref(), told.chain_id.as_ref())
            && knows(own.genesis_hash.as_ref(), told.genesis_hash.as_ref())
            && knows(genesis.as_ref(), told_genesis.as_ref())
            && told_anchors.all(|it| anchors.contains(&(it.number, it.hash)))
            && told_epochs.all(|it| epochs.contains(&it.number))
            && other
                .manifest
                .difficulties()
                .all(|(number, _)| !is_live(number) || self.knows_difficulty_at(number))
    }

    /// Whether a total difficulty is known from which that before a block can be added up.
    fn knows_difficulty_at(&self, number: u64) -> bool {
        let range = self.coverage.iter().find(|range| range.contains(number));
        let Some(first) = range.map(BlockRange::first) else { return false };
        first == 0 || self.manifest.difficulties().any(|(told, _)| told == first)
    }
}

/// Whether two manifests tell of the same chain as far as both say which, or what they differ in: the
/// subject, what the one says and what the other says.
pub(crate) fn find_other_chain(
    one: &Manifest,
    other: &Manifest,
) -> Option<(&'static str, String, String)> {
    let (left, right) = (one.network(), other.network());
    let ids = left.chain_id.zip(right.chain_id).filter(|(left, right)| left != right);
    let ids = ids.map(|(left, right)| ("chain id", left.to_string(), right.to_string()));
    let genesis = left.genesis_hash.zip(right.genesis_hash).filter(|(left, right)| left != right);
    ids.or(genesis.map(|(left, right)| ("genesis hash", left.to_string(), right.to_string())))
}

/// Blocks of which two manifests list different ones, neither of them withdrawn: the hash of the number
/// by each.
pub(crate) fn find_other_branch(
    one: &Manifest,
    other: &Manifest,
    retracted: &BTreeSet<String>,
) -> Option<(u64, B256, B256)> {
    let ends = |manifest: &Manifest| {
        let mut hashes = BTreeMap::new();
        let live = manifest.segments().iter().filter(|it| !retracted.contains(&it.file_name));
        for entry in live {
            hashes.insert(entry.range.last(), entry.last_hash);
            if let Some(parent) = entry.range.first().checked_sub(1) {
                hashes.insert(parent, entry.parent_hash);
            }
        }
        hashes
    };
    let (left, right) = (ends(one), ends(other));
    let both = left.iter().filter_map(|(number, hash)| Some((*number, *hash, *right.get(number)?)));
    both.filter(|(_, left, right)| left != right).min()
}
