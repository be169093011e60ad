//! Published history: the manifests of a bucket, held against what a folder has itself.
//!
//! The folder's own manifest stands firmest. Published ones are admitted in an order that depends on
//! nothing but their content, each if it contradicts nothing that was admitted before: so all readers
//! of a bucket come to the same verdict. What is not admitted is named, and hashes that only it may
//! tell are not called absent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockNumber;

use crate::head::HeadView;
use crate::manifest::{EntryDifference, Manifest, Network, SegmentEntry};
use crate::missing_file::MissingFile;

/// What a bucket says that it holds.
#[derive(Clone, Debug, Default)]
pub struct PublishedHistory {
    /// Manifests by the names of their objects.
    manifests: BTreeMap<String, Arc<Manifest>>,
    /// Names of segments that nobody may serve any more.
    withdrawn: BTreeSet<String>,
    /// Objects that could not be read.
    unread: Vec<MissingFile>,
}

impl PublishedHistory {
    /// Manifests by the names of their objects, the names of withdrawn segments, and the objects that
    /// could not be read, with the reasons.
    #[must_use]
    pub fn new(
        manifests: impl IntoIterator<Item = (String, Arc<Manifest>)>,
        withdrawn: BTreeSet<String>,
        unread: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let missing = |(file_name, reason)| MissingFile { file_name, blocks: None, reason };
        let unread = unread.into_iter().map(missing).collect();
        Self { manifests: manifests.into_iter().collect(), withdrawn, unread }
    }

    /// The part that can be read beside what is held: the folder's own manifest, and its head up to a
    /// block.
    pub(crate) fn admit(
        &self,
        own: &Manifest,
        head: &HeadView,
        last: Option<BlockNumber>,
    ) -> AdmittedHistory {
        let hash_in_head = |number: BlockNumber| {
            let is_held = last.is_some_and(|last| number <= last);
            head.find_block(number).filter(|_| is_held).map(|block| block.hash())
        };
        let mut admission = ManifestAdmission::beside(own, &self.withdrawn);
        let mut set_aside = self.unread.clone();
        let mut manifests = Vec::new();
        // Whoever holds most decides what a smaller one may not contradict.
        let mut ordered: Vec<(&String, &Arc<Manifest>)> = self.manifests.iter().collect();
        ordered.sort_by_key(|(name, manifest)| {
            let live = manifest.segments().iter();
            let live = live.filter(|entry| !self.withdrawn.contains(&entry.file_name));
            let counts = live.map(|entry| entry.range.count());
            (std::cmp::Reverse(counts.fold(0, u64::saturating_add)), *name)
        });
        for (name, manifest) in ordered {
            match admission.admit(manifest, &hash_in_head, &self.withdrawn) {
                Ok(()) => manifests.push(Arc::clone(manifest)),
                Err(reason) => {
                    let file_name = name.clone();
                    set_aside.push(MissingFile { file_name, blocks: None, reason });
                }
            }
        }
        let withdrawn = self.withdrawn.clone();
        AdmittedHistory { manifests, withdrawn, set_aside, network: admission.network }
    }
}

/// The published history that a view shows beside the folder's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmittedHistory {
    pub(crate) manifests: Vec<Arc<Manifest>>,
    pub(crate) withdrawn: BTreeSet<String>,
    /// What is not shown, and why.
    pub(crate) set_aside: Vec<MissingFile>,
    /// What is known of the chain by all of them.
    pub(crate) network: Network,
}

impl AdmittedHistory {
    /// Whether there is nothing beside the folder.
    pub(crate) fn is_none(&self) -> bool {
        self.manifests.is_empty() && self.withdrawn.is_empty()
    }

    /// Whether a manifest lists a block in a segment that was not withdrawn, where some may be.
    pub(crate) fn is_live(&self, manifest: &Manifest, number: BlockNumber) -> bool {
        let is_live = |entry: &SegmentEntry| !self.withdrawn.contains(&entry.file_name);
        self.is_none() || manifest.find_segment(number).is_some_and(|(_, entry)| is_live(entry))
    }
}

/// What is known of the chain by the manifests that were admitted.
#[derive(Debug)]
struct ManifestAdmission {
    network: Network,
    hashes: HashMap<u64, B256>,
    entries: HashMap<String, SegmentEntry>,
}

impl ManifestAdmission {
    /// What was withdrawn says nothing, also of the folder's own.
    fn beside(own: &Manifest, withdrawn: &BTreeSet<String>) -> Self {
        let live: Vec<&SegmentEntry> = live_entries(own, withdrawn).collect();
        let mut hashes: HashMap<u64, B256> = anchors_of(own, &live).collect();
        hashes.extend(live.iter().copied().flat_map(known_hashes));
        let network = own.network().clone();
        hashes.extend(network.genesis_hash.map(|hash| (0, hash)));
        let named = |entry: &SegmentEntry| (entry.file_name.clone(), entry.clone());
        let entries = live.iter().copied().map(named).collect();
        Self { network, hashes, entries }
    }

    /// Takes over what a manifest says, or tells what it contradicts.
    fn admit(
        &mut self,
        manifest: &Manifest,
        of_head: &dyn Fn(BlockNumber) -> Option<B256>,
        withdrawn: &BTreeSet<String>,
    ) -> Result<(), String> {
        self.check_network(manifest.network())?;
        let entries: Vec<&SegmentEntry> = live_entries(manifest, withdrawn).collect();
        let live = || entries.iter().copied();
        for entry in live() {
            let known = self.entries.get(&entry.file_name);
            if let Some(EntryDifference { what, found, expected }) =
                known.and_then(|known| entry.find_difference(known))
            {
                let file_name = &entry.file_name;
                return Err(format!(
                    "it lists {file_name} with {found} as the {what}, others with {expected}"
                ));
            }
        }
        let anchors = || anchors_of(manifest, &entries);
        let genesis = manifest.network().genesis_hash.map(|hash| (0, hash));
        let told = || live().flat_map(known_hashes).chain(anchors()).chain(genesis);
        for (number, found) in told() {
            let known = self.hashes.get(&number).copied();
            let known = known.or_else(|| of_head(BlockNumber(number)));
            if let Some(known) = known.filter(|known| *known != found) {
                return Err(format!(
                    "it has block {number} {found}, what is held has {known}: one of them is of \
                     another chain"
                ));
            }
        }
        self.hashes.extend(live().flat_map(known_hashes).chain(anchors()).chain(genesis));
        self.entries.extend(live().map(|entry| (entry.file_name.clone(), entry.clone())));
        let Network { name, chain_id, genesis_hash } = manifest.network().clone();
        self.network.name = self.network.name.take().or(name);
        self.network.chain_id = self.network.chain_id.or(chain_id);
        self.network.genesis_hash = self.network.genesis_hash.or(genesis_hash);
        Ok(())
    }

    fn check_network(&self, told: &Network) -> Result<(), String> {
        let known = &self.network;
        if let Some((found, known)) =
            told.chain_id.zip(known.chain_id).filter(|(found, known)| found != known)
        {
            return Err(format!("it is of chain {found}, what is held of chain {known}"));
        }
        if let Some((found, known)) =
            told.genesis_hash.zip(known.genesis_hash).filter(|(found, known)| found != known)
        {
            return Err(format!("its genesis is {found}, that of what is held {known}"));
        }
        Ok(())
    }
}

/// What is not withdrawn of a manifest.
fn live_entries<'a>(
    manifest: &'a Manifest,
    withdrawn: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a SegmentEntry> {
    manifest.segments().iter().filter(|entry| !withdrawn.contains(&entry.file_name))
}

/// The anchors that these of its segments hold.
fn anchors_of<'a>(
    manifest: &'a Manifest,
    live: &'a [&SegmentEntry],
) -> impl Iterator<Item = (u64, B256)> + 'a {
    let is_held = |number: u64| live.iter().any(|entry| entry.range.contains(number));
    let held = manifest.anchors().filter(move |anchor| is_held(anchor.number));
    held.map(|anchor| (anchor.number, anchor.hash))
}

/// The hashes that an entry tells: of its last block, and of the block before its first.
fn known_hashes(entry: &SegmentEntry) -> impl Iterator<Item = (u64, B256)> {
    let parent = entry.range.first().checked_sub(1).map(|number| (number, entry.parent_hash));
    parent.into_iter().chain([(entry.range.last(), entry.last_hash)])
}
