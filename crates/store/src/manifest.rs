//! The manifest: which segments and lookup runs are live, and what is known of their chain.
//!
//! A manifest is a value. What changes it makes another one, and [`Manifest::replace`] puts that in
//! the place of the old. What it promises: no two segments hold the same block, no two runs of a
//! subject hold the same slot, no file is listed twice, and the same content gives the same bytes,
//! whatever led to it.

mod difference;
mod difficulties;
mod error;
mod head_record;
mod log_index;
mod text;
mod trust;

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{B256, U256};
use chain::trust::{Anchor, Epoch};
use chain::{BlockNumber, BlockRange};
use segment::index::{RunSpan, RunSubject};

use crate::block_id::BlockId;
use crate::disk::{Disk, DiskError, STAGED_END, is_file_name, replace_file};
use crate::layout::{HeldRange, join_ranges, pending_merges, subtract};
use crate::lock::LOCK_NAME;
use crate::names::JOURNAL_NAME;

pub(crate) use difference::EntryDifference;
pub use error::{ManifestConflict, ManifestError, TextFault};
pub use head_record::HeadRecord;
pub(crate) use trust::statuses_of;

/// The manifest's file.
pub const MANIFEST_NAME: &str = "manifest";
/// The longest manifest that is read: some 200,000 files. All of mainnet is a few thousand.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// Which chain the folder holds, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// What the chain is called.
    pub name: Option<String>,
    /// EIP-155's number.
    pub chain_id: Option<u64>,
    /// The hash of block 0.
    pub genesis_hash: Option<B256>,
}

/// A live segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its blocks.
    pub range: BlockRange,
    /// Its file.
    pub file_name: String,
    /// The file's length.
    pub bytes: u64,
    /// The digest of its footer.
    pub digest: B256,
    /// Whether receipts are in it.
    pub has_receipts: bool,
    /// The parent hash of its first block.
    pub parent_hash: B256,
    /// The hash of its last block.
    pub last_hash: B256,
    /// How many transactions it holds.
    pub transaction_count: u64,
    /// How many logs it holds.
    pub log_count: u64,
    /// The difficulties of its blocks, added up.
    pub difficulty: U256,
}

impl SegmentEntry {
    /// Its blocks, and whether receipts are with them.
    #[must_use]
    pub fn held(&self) -> HeldRange {
        HeldRange { range: self.range, has_receipts: self.has_receipts }
    }
}

/// A live run: of a hash lookup, or of the log index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// What it is an index of.
    pub subject: RunSubject,
    /// Its slots.
    pub span: RunSpan,
    /// Its file.
    pub file_name: String,
    /// The file's length.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub digest: B256,
}

impl RunEntry {
    /// By subject, then by slot.
    fn order(&self) -> (RunSubject, u64) {
        (self.subject, self.span.first_slot())
    }

    fn shares_slots_with(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.span.first_slot() < other.span.end_slot()
            && other.span.first_slot() < self.span.end_slot()
    }
}

/// Which files are live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    network: Network,
    /// SHA-256 of the genesis.json that the folder keeps; `None` if it keeps none, or one that nobody
    /// has recorded yet.
    genesis_file: Option<B256>,
    /// What is known of the head's log; `None` if no head was ever recorded.
    head: Option<HeadRecord>,
    /// Hashes that somebody trusted beforehand and that held blocks have.
    anchors: BTreeMap<u64, B256>,
    /// The last block of every accumulator epoch whose root was recomputed from held blocks.
    epochs: BTreeMap<u64, u64>,
    /// Total difficulty before the first block of ranges that do not begin with block 0, where a
    /// source told it. No block commits to it.
    difficulties: BTreeMap<u64, U256>,
    /// Blocks that were held once and are not any more, joined: they are not absent from the chain.
    lost: Vec<BlockRange>,
    /// The hashes of some of them: another block in their place is of another chain.
    lost_hashes: BTreeMap<u64, B256>,
    /// By first block.
    segments: Vec<SegmentEntry>,
    /// By subject and first slot.
    runs: Vec<RunEntry>,
    /// Whether new blocks get no log index, because somebody wanted it so.
    is_without_log_index: bool,
}

/// A change of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// What has become known of the chain.
    pub network: Network,
    /// Trusted hashes that held blocks have now.
    pub anchors: Vec<Anchor>,
    /// Accumulator epochs that held blocks gave.
    pub epochs: Vec<Epoch>,
    /// Total difficulties before the first blocks of segments, where a source tells them.
    pub difficulties: Vec<(u64, U256)>,
    /// Segments that become live.
    pub segments: Vec<SegmentEntry>,
    /// Runs that become live.
    pub runs: Vec<RunEntry>,
    /// Files that leave.
    pub gone: BTreeSet<String>,
    /// What is above this number need not be held any more.
    pub cut: Option<BlockNumber>,
}

impl Manifest {
    /// The manifest of a folder that holds nothing yet.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self {
            network,
            genesis_file: None,
            head: None,
            anchors: BTreeMap::new(),
            epochs: BTreeMap::new(),
            difficulties: BTreeMap::new(),
            lost: Vec::new(),
            lost_hashes: BTreeMap::new(),
            segments: Vec::new(),
            runs: Vec::new(),
            is_without_log_index: false,
        }
    }

    /// The folder's manifest, or `None` if it has none yet.
    pub fn load(disk: &dyn Disk) -> Result<Option<Self>, ManifestError> {
        let bytes = match disk.read(MANIFEST_NAME, MANIFEST_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(DiskError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let decoded = Self::decode(&bytes);
        decoded.map(Some).map_err(|fault| ManifestError::Corrupt { folder: disk.place(), fault })
    }

    /// Puts this manifest in the place of the folder's. The files that it names must be durable.
    ///
    /// After a crash or an error the folder has the old manifest or this one, whole, and the caller
    /// loads it to learn which.
    pub fn replace(&self, disk: &dyn Disk) -> Result<(), ManifestError> {
        let bytes = self.encode();
        if u64::try_from(bytes.len()).map_or(true, |count| count > MANIFEST_BYTES_MAX) {
            return Err(ManifestError::TooLarge { folder: disk.place(), bytes: bytes.len() });
        }
        Ok(replace_file(disk, MANIFEST_NAME, &bytes)?)
    }

    /// What of this manifest others may read: its sealed files and what is known of their chain, nothing
    /// of the folder's head or of what the folder has lost. So equal history gives equal bytes.
    #[must_use]
    pub fn to_published(&self) -> Self {
        let (lost, lost_hashes) = Default::default();
        Self { head: None, lost, lost_hashes, ..self.clone() }
    }

    /// Which chain it is.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// SHA-256 of the genesis.json that the folder keeps, if it was recorded.
    #[must_use]
    pub fn genesis_file(&self) -> Option<B256> {
        self.genesis_file
    }

    /// The same manifest with another word on the folder's genesis.json.
    #[must_use]
    pub fn with_genesis_file(self, genesis_file: Option<B256>) -> Self {
        Self { genesis_file, ..self }
    }

    /// The blocks that were held once, that no repair found again, and that nobody brought since.
    #[must_use]
    pub fn lost(&self) -> &[BlockRange] {
        &self.lost
    }

    /// The same manifest, which knows that these blocks were held too. Those that it holds are not lost.
    #[must_use]
    pub fn with_lost(mut self, more: impl IntoIterator<Item = BlockRange>) -> Self {
        self.lost.extend(more);
        self.settle_lost();
        self
    }

    /// The hashes of lost blocks, as far as they are known, lowest number first.
    #[must_use]
    pub fn lost_hashes(&self) -> impl DoubleEndedIterator<Item = BlockId> {
        self.lost_hashes.iter().map(|(it, hash)| BlockId { number: BlockNumber(*it), hash: *hash })
    }

    /// The same manifest, which knows the hashes of these blocks too, as far as they are lost.
    pub(crate) fn with_lost_hashes(mut self, more: impl IntoIterator<Item = BlockId>) -> Self {
        self.lost_hashes.extend(more.into_iter().map(|it| (it.number.get(), it.hash)));
        self.settle_lost();
        self
    }

    fn settle_lost(&mut self) {
        let lost = subtract(&join_ranges(std::mem::take(&mut self.lost)), &self.coverage());
        self.lost_hashes.retain(|number, _| lost.iter().any(|range| range.contains(*number)));
        self.lost = lost;
    }

    /// Refuses a segment that has another block in the place of one that was lost.
    fn refuse_other_than_lost(&self, entry: &SegmentEntry) -> Result<(), ManifestConflict> {
        let parent = entry.range.first().checked_sub(1).map(|number| (number, entry.parent_hash));
        for (number, found) in parent.into_iter().chain([(entry.range.last(), entry.last_hash)]) {
            if let Some(held) = self.lost_hashes.get(&number).copied().filter(|it| *it != found) {
                let file_name = entry.file_name.clone();
                return Err(ManifestConflict::LostBlock { file_name, number, found, held });
            }
        }
        Ok(())
    }

    /// What is known of the head's log.
    #[must_use]
    pub fn head(&self) -> Option<HeadRecord> {
        self.head
    }

    /// The same manifest with another word on the head's log.
    pub(crate) fn with_head(self, head: Option<HeadRecord>) -> Self {
        Self { head, ..self }
    }

    /// The trusted hashes that held blocks have.
    pub fn anchors(&self) -> impl Iterator<Item = Anchor> {
        self.anchors.iter().map(|(number, hash)| Anchor { number: *number, hash: *hash })
    }

    /// The trusted blocks from a number on, the nearest first.
    pub(crate) fn anchors_from(&self, number: BlockNumber) -> impl Iterator<Item = BlockNumber> {
        self.anchors.range(number.get()..).map(|(anchor, _)| BlockNumber(*anchor))
    }

    /// The accumulator epochs that held blocks gave.
    pub fn epochs(&self) -> impl Iterator<Item = Epoch> {
        self.epochs.iter().map(|(number, last)| Epoch { number: *number, last: *last })
    }

    /// Total difficulties before the first blocks of ranges, where a source told them.
    pub fn difficulties(&self) -> impl Iterator<Item = (u64, U256)> {
        self.difficulties.iter().map(|(number, before)| (*number, *before))
    }

    /// The live segments, lowest block first.
    #[must_use]
    pub fn segments(&self) -> &[SegmentEntry] {
        &self.segments
    }

    /// Whether a file is one of the live segments.
    #[must_use]
    pub fn lists_segment(&self, file_name: &str) -> bool {
        self.segments.iter().any(|entry| entry.file_name == file_name)
    }

    /// Whether a file is one of the live segments or runs.
    #[must_use]
    pub fn lists_file(&self, file_name: &str) -> bool {
        let is_run = || self.runs.iter().any(|entry| entry.file_name == file_name);
        self.lists_segment(file_name) || is_run()
    }

    /// The live runs, those of transactions first, each subject's lowest slot first.
    #[must_use]
    pub fn runs(&self) -> &[RunEntry] {
        &self.runs
    }

    /// The live runs of one subject, lowest slot first.
    pub fn runs_of(&self, subject: RunSubject) -> impl Iterator<Item = &RunEntry> {
        self.runs.iter().filter(move |entry| entry.subject == subject)
    }

    /// The ranges of blocks that are held, lowest first. Between two of them is a gap.
    #[must_use]
    pub fn coverage(&self) -> Vec<BlockRange> {
        join_ranges(self.segments.iter().map(|entry| entry.range))
    }

    /// The ranges whose receipts are held too.
    #[must_use]
    pub fn coverage_receipts(&self) -> Vec<BlockRange> {
        let with_receipts = self.segments.iter().filter(|entry| entry.has_receipts);
        join_ranges(with_receipts.map(|entry| entry.range))
    }

    /// The slots that are held whole and still in pieces, as the segments that are to be made of
    /// them.
    #[must_use]
    pub fn pending_merges(&self) -> Vec<HeldRange> {
        pending_merges(&self.held())
    }

    /// What the segments hold, lowest block first.
    pub(crate) fn held(&self) -> Vec<HeldRange> {
        self.segments.iter().map(SegmentEntry::held).collect()
    }

    /// The segment that holds a block.
    #[must_use]
    pub fn find_segment(&self, number: BlockNumber) -> Option<(usize, &SegmentEntry)> {
        let after = self.segments.partition_point(|entry| entry.range.first() <= number.get());
        let position = after.checked_sub(1)?;
        let entry = self.segments.get(position)?;
        entry.range.contains(number).then_some((position, entry))
    }

    /// This manifest with a change. What it holds it keeps holding, receipts included.
    pub fn edited(&self, edit: Edit) -> Result<Self, ManifestConflict> {
        let mut next = self.clone();
        next.learn(edit.network)?;
        for anchor in edit.anchors {
            let trusted = *next.anchors.entry(anchor.number).or_insert(anchor.hash);
            if trusted != anchor.hash {
                return Err(ManifestConflict::Anchor { refused: anchor, trusted });
            }
        }
        if let Some(cut) = edit.cut {
            next.anchors.retain(|number, _| *number <= cut.get());
            next.epochs.retain(|_, last| *last <= cut.get());
            let below = |range: &BlockRange| {
                BlockRange::from_ends(range.first(), range.last().min(cut.get()))
            };
            next.lost = next.lost.iter().filter_map(below).collect();
            next.settle_lost();
        }
        edit.segments.iter().try_for_each(|entry| next.refuse_other_than_lost(entry))?;
        next.epochs.extend(edit.epochs.into_iter().map(|epoch| (epoch.number, epoch.last)));
        next.segments.retain(|held| !edit.gone.contains(&held.file_name));
        next.runs.retain(|held| !edit.gone.contains(&held.file_name));
        // Files are named by their content: what is there already is the same.
        edit.segments.into_iter().for_each(|entry| {
            if !next.segments.contains(&entry) {
                next.segments.push(entry);
            }
        });
        edit.runs.into_iter().for_each(|entry| {
            if !next.runs.contains(&entry) {
                next.runs.push(entry);
            }
        });
        let mut next = next.sorted()?;
        next.settle_difficulties(edit.difficulties)?;
        for with_receipts in [false, true] {
            let (before, after) = if with_receipts {
                (self.coverage_receipts(), next.coverage_receipts())
            } else {
                (self.coverage(), next.coverage())
            };
            let is_kept = |range: &BlockRange| {
                after.iter().any(|held| held.first() <= range.first() && range.end() <= held.end())
            };
            let below = |range: BlockRange| match edit.cut {
                Some(cut) => BlockRange::from_ends(range.first(), range.last().min(cut.get())),
                None => Some(range),
            };
            if let Some(lost) = before.into_iter().filter_map(below).find(|it| !is_kept(it)) {
                return Err(ManifestConflict::Lost { lost, with_receipts });
            }
        }
        Ok(next)
    }

    /// Refuses a chain that is not the one whose segments are listed here.
    pub(crate) fn refuse_other_chain(&self, told: &Network) -> Result<(), ManifestConflict> {
        if self.segments.is_empty() {
            return Ok(());
        }
        self.clone().learn(Network { name: None, ..told.clone() })
    }

    /// Takes over what is known of the chain and was not before.
    fn learn(&mut self, told: Network) -> Result<(), ManifestConflict> {
        fn take<T: PartialEq + ToString>(
            what: &'static str,
            held: &mut Option<T>,
            told: Option<T>,
        ) -> Result<(), ManifestConflict> {
            match (&*held, told) {
                (Some(held), Some(found)) if *held != found => {
                    let (found, held) = (found.to_string(), held.to_string());
                    Err(ManifestConflict::Network { what, found, held })
                }
                (None, Some(found)) => {
                    *held = Some(found);
                    Ok(())
                }
                _ => Ok(()),
            }
        }
        // Where nothing is sealed, the chain that is remembered may be named anew.
        let is_other_id = told.chain_id.is_some() && told.chain_id != self.network.chain_id;
        let is_other_genesis =
            told.genesis_hash.is_some() && told.genesis_hash != self.network.genesis_hash;
        if self.segments.is_empty() && (is_other_id || is_other_genesis) {
            self.network = Network::default();
            self.lost.clear();
            self.lost_hashes.clear();
        }
        take("chain id", &mut self.network.chain_id, told.chain_id)?;
        take("genesis hash", &mut self.network.genesis_hash, told.genesis_hash)?;
        if self.network.name.is_none() {
            self.network.name = told.name.map(|name| one_word(&name));
        }
        Ok(())
    }

    /// The same files in their order, if they can be live together.
    fn sorted(mut self) -> Result<Self, ManifestConflict> {
        self.segments.sort_by_key(|entry| entry.range.first());
        self.runs.sort_by_key(RunEntry::order);
        for (held, entry) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            if share_blocks(held, entry) {
                return Err(ManifestConflict::Blocks {
                    file_name: entry.file_name.clone(),
                    range: entry.range,
                    held_name: held.file_name.clone(),
                    held: held.range,
                });
            }
        }
        for (held, entry) in self.runs.iter().zip(self.runs.iter().skip(1)) {
            if held.shares_slots_with(entry) {
                return Err(ManifestConflict::Slots {
                    subject: entry.subject,
                    file_name: entry.file_name.clone(),
                    span: entry.span,
                    held_name: held.file_name.clone(),
                    held: held.span,
                });
            }
        }
        self.check_names()?;
        self.settle_lost();
        Ok(self)
    }

    fn check_names(&self) -> Result<(), ManifestConflict> {
        let mut names: Vec<&str> = self.segments.iter().map(|entry| &*entry.file_name).collect();
        names.extend(self.runs.iter().map(|entry| &*entry.file_name));
        names.sort_unstable();
        // Segments and runs are never called so.
        let is_ours = |name: &str| {
            [MANIFEST_NAME, LOCK_NAME, JOURNAL_NAME].contains(&name)
                || name.starts_with("head")
                || name.ends_with(STAGED_END)
        };
        if let Some(name) = names.iter().find(|name| !is_file_name(name) || is_ours(name)) {
            return Err(ManifestConflict::Name { file_name: (*name).to_owned() });
        }
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(name, next)| name == next) {
            Some((name, _)) => Err(ManifestConflict::Twice { file_name: (*name).to_owned() }),
            None => Ok(()),
        }
    }
}

/// A name as one word of the manifest's text.
fn one_word(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    name.chars().map(|letter| if is_plain(&letter) { letter } else { '-' }).collect()
}

fn share_blocks(left: &SegmentEntry, right: &SegmentEntry) -> bool {
    left.range.first() < right.range.end() && right.range.first() < left.range.end()
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
pub(crate) mod tests;
