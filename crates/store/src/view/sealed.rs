//! The sealed blocks that a view shows: those of its folder, and those that others published.
//!
//! A manifest is one *layer*. A view of a folder has one; beside a bucket there is one for each
//! published manifest. Layers agree on complete slots to the byte, but a slot in pieces may be cut
//! differently in each of them. So every block is shown by one file, and every file belongs to one
//! layer, whose runs count its transactions.

mod trust;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, U256};
use chain::{BlockNumber, BlockRange};

use crate::files::{Files, RunFile, SegmentFile};
use crate::head::HeadView;
use crate::layout::{join_ranges, slot_of, subtract};
use crate::manifest::{Manifest, RunEntry, SegmentEntry};
use crate::missing_file::MissingFile;
use crate::published::AdmittedHistory;
use segment::index::RunSubject;

/// All sealed blocks of a view.
#[derive(Debug)]
pub(super) struct Sealed {
    /// The folder's own first.
    layers: Vec<Layer>,
    /// Lowest block first, none of them twice.
    pieces: Vec<SealedPiece>,
    missing: Vec<MissingFile>,
    /// Whether more or less is shown than the folder lists.
    is_union: bool,
    blocks: Vec<BlockRange>,
    receipts: Vec<BlockRange>,
    /// Total difficulty before each piece, as soon as it is asked.
    difficulties: OnceLock<Vec<Option<U256>>>,
    /// Sealed blocks without a log index, as soon as that is asked.
    unindexed: OnceLock<Vec<BlockRange>>,
}

/// The files of one manifest.
#[derive(Debug)]
struct Layer {
    manifest: Arc<Manifest>,
    /// In the manifest's order.
    segments: Arc<[Arc<SegmentFile>]>,
    /// Where each of them begins: its slot, and the ordinal of its first transaction there.
    begins: Vec<(u64, u64)>,
    runs: Arc<[Arc<RunFile>]>,
    /// Which of the runs tell of files that this layer shows.
    is_needed: Vec<bool>,
    /// Which of the segments are shown by any layer; `None` if all that can be read are.
    is_shown: Option<Vec<bool>>,
}

/// Blocks that one file shows.
#[derive(Clone, Debug)]
pub(super) struct SealedPiece {
    pub(super) range: BlockRange,
    layer: usize,
    position: usize,
    /// What the hash of the block before the first of these must be, where the file begins below it and
    /// another file is shown up to there.
    foot: Option<B256>,
    /// What the hash of the last of these blocks must be, where the file goes on beyond it and another
    /// file is shown from there: else the two would be of two chains.
    seam: Option<B256>,
}

/// Where in which layer a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayerIndex(usize);

impl Layer {
    fn of(files: &Files, manifest: Arc<Manifest>) -> Self {
        let segments = files.listed_segments(manifest.segments());
        let runs = files.listed_runs(manifest.runs());
        let is_needed = vec![true; runs.len()];
        let begins = begins_of(&manifest);
        Self { manifest, segments, begins, runs, is_needed, is_shown: None }
    }

    /// How many slots the run of transactions has that tells of this slot.
    fn run_slots(&self, slot: u64) -> u64 {
        let spans = self.manifest.runs_of(RunSubject::Transactions).map(|run| run.span);
        spans.filter(|span| span.contains(slot)).map(|span| span.slot_count()).max().unwrap_or(0)
    }
}

/// Where each segment begins: its slot, and the ordinal of its first transaction there.
fn begins_of(manifest: &Manifest) -> Vec<(u64, u64)> {
    let mut next = (0, 0_u64);
    let mut begin = |entry: &SegmentEntry| {
        let slot = slot_of(entry.range.first());
        let first = if slot == next.0 { next.1 } else { 0 };
        next = (slot, first.saturating_add(entry.transaction_count));
        (slot, first)
    };
    manifest.segments().iter().map(&mut begin).collect()
}

impl Sealed {
    /// Without the files that cannot be read.
    pub(super) fn of(files: &Files, own: Arc<Manifest>, published: &AdmittedHistory) -> Self {
        let mut layers = vec![Layer::of(files, own)];
        layers.extend(published.manifests.iter().map(|it| Layer::of(files, Arc::clone(it))));
        let mut missing = find_missing(files, &layers);
        missing.retain(|it| !published.withdrawn.contains(&it.file_name));
        let pieces = if published.is_none() {
            own_pieces(&layers, &missing)
        } else {
            let pieces = Union::of(&layers, &missing, &published.withdrawn).into_pieces();
            let shown = shown_names(&layers, &pieces);
            let is_shown = |file: &Arc<SegmentFile>| shown.contains(&file.entry.file_name);
            for (index, layer) in layers.iter_mut().enumerate() {
                layer.is_needed = needed_runs(layer, index, &pieces);
                layer.is_shown = Some(layer.segments.iter().map(is_shown).collect());
            }
            pieces
        };
        missing.extend(published.set_aside.iter().cloned());
        let (difficulties, unindexed) = Default::default();
        let (blocks, receipts) = (Vec::new(), Vec::new());
        let is_union = !published.is_none();
        let sealed =
            Self { layers, pieces, missing, is_union, blocks, receipts, difficulties, unindexed };
        let blocks = join_ranges(sealed.pieces.iter().map(|piece| piece.range));
        let with_receipts = sealed.pieces.iter().filter(|it| sealed.has_receipts(it));
        let receipts = join_ranges(with_receipts.map(|piece| piece.range));
        Self { blocks, receipts, ..sealed }
    }

    /// The listed files that a view does without, and published manifests that were set aside.
    pub(super) fn missing(&self) -> &[MissingFile] {
        &self.missing
    }

    fn is_missing(&self, file_name: &str) -> bool {
        self.missing.iter().any(|it| it.file_name == file_name)
    }

    /// Whether something is shown, or withdrawn, beside what the folder has.
    pub(super) fn is_union(&self) -> bool {
        self.is_union
    }

    /// What is said of a listed segment, of whichever manifest.
    pub(super) fn find_listed_segment(&self, file_name: &str) -> Option<&SegmentEntry> {
        let mut listed = self.layers.iter().flat_map(|layer| layer.manifest.segments());
        listed.find(|entry| entry.file_name == file_name)
    }

    /// What is said of a listed run, of whichever manifest.
    pub(super) fn find_listed_run(&self, file_name: &str) -> Option<&RunEntry> {
        let mut listed = self.layers.iter().flat_map(|layer| layer.manifest.runs());
        listed.find(|entry| entry.file_name == file_name)
    }

    /// Whether a file is a segment or a run of any manifest.
    pub(super) fn lists(&self, file_name: &str) -> bool {
        self.layers.iter().any(|layer| layer.manifest.lists_file(file_name))
    }

    /// The folder's own segments, in the manifest's order.
    pub(super) fn own_segments(&self) -> &[Arc<SegmentFile>] {
        self.layers.first().map(|layer| &*layer.segments).unwrap_or_default()
    }

    /// The folder's own runs, in the manifest's order.
    pub(super) fn own_runs(&self) -> &[Arc<RunFile>] {
        self.layers.first().map(|layer| &*layer.runs).unwrap_or_default()
    }

    /// All segments that are shown, lowest block first; one that is cut may come more than once.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<SegmentFile>> {
        self.pieces.iter().filter_map(|piece| self.file(piece))
    }

    /// All runs that are asked, those of the folder first.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Arc<RunFile>> {
        self.layers.iter().flat_map(|layer| needed(layer).map(|(_, run)| run))
    }

    /// The blocks around this one that one file shows.
    pub(super) fn find(&self, number: BlockNumber) -> Option<&SealedPiece> {
        let after = self.pieces.partition_point(|piece| piece.range.first() <= number.get());
        self.pieces.get(after.checked_sub(1)?).filter(|piece| piece.range.contains(number))
    }

    /// The file of a piece.
    pub(super) fn file(&self, piece: &SealedPiece) -> Option<&Arc<SegmentFile>> {
        self.layers.get(piece.layer)?.segments.get(piece.position)
    }

    /// What its manifest says of it.
    pub(super) fn entry(&self, piece: &SealedPiece) -> Option<&SegmentEntry> {
        self.layers.get(piece.layer)?.manifest.segments().get(piece.position)
    }

    /// What is known of the file with a block.
    pub(super) fn find_entry(&self, number: BlockNumber) -> Option<&SegmentEntry> {
        self.entry(self.find(number)?)
    }

    fn has_receipts(&self, piece: &SealedPiece) -> bool {
        self.entry(piece).is_some_and(|entry| entry.has_receipts)
    }

    /// The runs of a subject that tell of files which are shown, with their layers.
    pub(super) fn runs_of(
        &self,
        subject: RunSubject,
    ) -> impl Iterator<Item = (LayerIndex, &Arc<RunFile>)> {
        let layers = self.layers.iter().enumerate();
        let runs = layers
            .flat_map(|(index, layer)| needed(layer).map(move |(_, run)| (LayerIndex(index), run)));
        runs.filter(move |(_, run)| run.entry.subject == subject)
            .filter(|(_, run)| self.missing.is_empty() || !self.is_missing(&run.entry.file_name))
    }

    /// The run of a subject that tells of a block.
    pub(super) fn run_at(&self, subject: RunSubject, piece: &SealedPiece) -> Option<&Arc<RunFile>> {
        let slot = slot_of(piece.range.first());
        let mut runs = self.runs_of(subject);
        runs.find(|it| it.0.0 == piece.layer && it.1.entry.span.contains(slot)).map(|(_, run)| run)
    }

    /// The block before which another layer's files are shown than from here on.
    pub(super) fn layer_end(&self, number: BlockNumber) -> u64 {
        if !self.is_union() {
            return u64::MAX;
        }
        let after = self.pieces.partition_point(|piece| piece.range.end() <= number.get());
        let rest = self.pieces.get(after..).unwrap_or_default();
        let layer = rest.first().map(|piece| piece.layer);
        let other = rest.iter().find(|piece| Some(piece.layer) != layer);
        other.map_or(u64::MAX, |piece| piece.range.first())
    }

    /// The segment with an ordinal of a slot, as the runs of a layer count, and the ordinal inside that
    /// segment.
    pub(super) fn locate(
        &self,
        LayerIndex(layer): LayerIndex,
        slot: u64,
        ordinal: u64,
    ) -> Option<(&Arc<SegmentFile>, u64)> {
        let layer = self.layers.get(layer)?;
        let after = layer.begins.partition_point(|begin| *begin <= (slot, ordinal));
        // Segments without transactions begin where the next one does: the last has it.
        let place = after.checked_sub(1)?;
        let (begin_slot, first) = *layer.begins.get(place)?;
        let file = layer.segments.get(place).filter(|_| begin_slot == slot)?;
        let is_shown = |shown: &Vec<bool>| shown.get(place).copied().unwrap_or_default();
        if !layer.is_shown.as_ref().is_none_or(is_shown)
            || (!self.missing.is_empty() && self.is_missing(&file.entry.file_name))
        {
            return None;
        }
        let ordinal = ordinal.checked_sub(first)?;
        (ordinal < file.entry.transaction_count).then_some((file, ordinal))
    }

    /// Whether a block is shown by this file, or by one with the same content.
    pub(super) fn shows(&self, number: BlockNumber, file: &SegmentFile) -> bool {
        !self.is_union()
            || self.find_entry(number).is_some_and(|it| it.file_name == file.entry.file_name)
    }

    /// The range with a block whose receipts are held.
    pub(super) fn find_receipts(&self, number: BlockNumber) -> Option<&BlockRange> {
        self.receipts.iter().find(|range| range.contains(number))
    }

    /// The blocks of the segments and of a head above them.
    pub(super) fn with_head(&self, head: &HeadView) -> Vec<BlockRange> {
        let blocks = head.blocks();
        let ends = blocks.first().zip(blocks.last());
        let head =
            ends.and_then(|(first, last)| BlockRange::from_ends(first.number(), last.number()));
        join_ranges(self.blocks.iter().copied().chain(head))
    }

    /// The ranges of sealed blocks, lowest first. Those of a segment of the folder that cannot be read are
    /// sealed all the same.
    pub(super) fn ranges_held(&self) -> Vec<BlockRange> {
        let own = self.layers.first().map(|layer| &layer.manifest);
        let is_own = |it: &&MissingFile| own.is_some_and(|own| own.lists_file(&it.file_name));
        let unread = self.missing.iter().filter(is_own).filter_map(|it| it.blocks);
        join_ranges(self.blocks.iter().copied().chain(unread))
    }

    /// Those of them whose receipts are held too.
    pub(super) fn receipts_with_head(&self, head: &HeadView) -> Vec<BlockRange> {
        let head = head.blocks().iter().filter(|block| block.block().receipts.is_some());
        let head = head.filter_map(|block| BlockRange::from_count(block.number(), 1));
        join_ranges(self.receipts.iter().copied().chain(head))
    }

    /// The sealed blocks with receipts that no log index tells of, lowest first.
    pub(super) fn unindexed(&self) -> &[BlockRange] {
        self.unindexed.get_or_init(|| {
            let with_receipts = self.pieces.iter().filter(|it| self.has_receipts(it));
            let is_without = |it: &&SealedPiece| self.run_at(RunSubject::Logs, it).is_none();
            join_ranges(with_receipts.filter(is_without).map(|piece| piece.range))
        })
    }

    /// Total difficulty before the first block of a piece, if somebody knows it, and that block.
    pub(super) fn difficulty_before(&self, number: BlockNumber) -> Option<(BlockNumber, U256)> {
        let own = self.find(number);
        let piece = own.or_else(|| self.find(number.saturating_sub(1)))?;
        let entry = self.entry(piece)?;
        let sum = if self.is_union() {
            let index = self.pieces.partition_point(|it| it.range.first() < piece.range.first());
            *self.difficulties.get_or_init(|| self.add_up_difficulties()).get(index)?
        } else {
            self.layers.first()?.manifest.difficulty_before(entry)
        };
        sum.map(|sum| (BlockNumber(piece.range.first()), sum))
    }

    fn add_up_difficulties(&self) -> Vec<Option<U256>> {
        let mut next: Option<(u64, U256)> = Some((0, U256::ZERO));
        let mut sums = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let first = piece.range.first();
            let layer = self.layers.get(piece.layer);
            let entry = self.entry(piece);
            let added = next.filter(|(number, _)| *number == first).map(|(_, sum)| sum);
            let whole = entry.filter(|entry| entry.range.first() == first);
            let told =
                || layer.zip(whole).and_then(|(it, entry)| it.manifest.difficulty_before(entry));
            let sum = added.or_else(told);
            sums.push(sum);
            next = sum
                .zip(whole)
                .filter(|_| piece.seam.is_none())
                .map(|(sum, entry)| (piece.range.end(), sum.saturating_add(entry.difficulty)));
        }
        sums
    }

    /// The blocks that the file of a piece must have where other files are shown beside it.
    pub(super) fn seams(piece: &SealedPiece) -> impl Iterator<Item = (BlockNumber, B256)> {
        let below = piece.range.first().checked_sub(1).zip(piece.foot);
        let above = piece.seam.map(|hash| (piece.range.last(), hash));
        below.into_iter().chain(above).map(|(number, hash)| (BlockNumber(number), hash))
    }
}

fn needed(layer: &Layer) -> impl Iterator<Item = (usize, &Arc<RunFile>)> {
    let runs = layer.runs.iter().zip(&layer.is_needed).enumerate();
    runs.filter(|(_, (_, is_needed))| **is_needed).map(|(position, (run, _))| (position, run))
}

/// The listed files that cannot be read.
fn find_missing(files: &Files, layers: &[Layer]) -> Vec<MissingFile> {
    let listed = |(file_name, reason): (String, String)| {
        let mut entries = layers.iter().flat_map(|layer| layer.manifest.segments());
        let blocks = entries.find(|entry| entry.file_name == file_name).map(|entry| entry.range);
        let is_listed = layers.iter().any(|layer| layer.manifest.lists_file(&file_name));
        is_listed.then_some(MissingFile { file_name, blocks, reason })
    };
    files.faults().passed_over().into_iter().filter_map(listed).collect()
}

/// What a folder shows that nobody publishes beside.
fn own_pieces(layers: &[Layer], missing: &[MissingFile]) -> Vec<SealedPiece> {
    let own = layers.first().map(|layer| layer.manifest.segments()).unwrap_or_default();
    let is_there = |entry: &SegmentEntry| !missing.iter().any(|it| it.file_name == entry.file_name);
    let there = own.iter().enumerate().filter(|(_, entry)| missing.is_empty() || is_there(entry));
    there
        .map(|(position, entry)| SealedPiece {
            range: entry.range,
            layer: 0,
            position,
            foot: None,
            seam: None,
        })
        .collect()
}

/// The files that are shown.
fn shown_names(layers: &[Layer], pieces: &[SealedPiece]) -> BTreeSet<String> {
    let file = |piece: &SealedPiece| layers.get(piece.layer)?.segments.get(piece.position);
    pieces.iter().filter_map(file).map(|file| file.entry.file_name.clone()).collect()
}

/// Which runs of a layer tell of files that it shows.
fn needed_runs(layer: &Layer, index: usize, pieces: &[SealedPiece]) -> Vec<bool> {
    let own = pieces.iter().filter(|piece| piece.layer == index);
    let slots: BTreeSet<u64> = own.map(|piece| slot_of(piece.range.first())).collect();
    let is_needed = |run: &Arc<RunFile>| {
        let span = run.entry.span;
        slots.range(span.first_slot()..span.end_slot()).next().is_some()
    };
    layer.runs.iter().map(is_needed).collect()
}

/// A file that can show blocks, and where it is listed.
#[derive(Debug)]
struct UnionFile<'a> {
    entry: &'a SegmentEntry,
    /// Layers, and its positions in them.
    places: Vec<(usize, usize)>,
    /// What it shows.
    shown: Vec<BlockRange>,
}

/// Several layers on the way to be shown as one.
#[derive(Debug)]
struct Union<'a> {
    layers: &'a [Layer],
    files: Vec<UnionFile<'a>>,
}

impl<'a> Union<'a> {
    fn of(layers: &'a [Layer], missing: &[MissingFile], withdrawn: &BTreeSet<String>) -> Self {
        let missing: BTreeSet<&str> = missing.iter().map(|it| &*it.file_name).collect();
        let mut by_name: BTreeMap<&str, UnionFile<'a>> = BTreeMap::new();
        for (index, layer) in layers.iter().enumerate() {
            for (position, entry) in layer.manifest.segments().iter().enumerate() {
                let name = &*entry.file_name;
                if missing.contains(name) || withdrawn.contains(name) {
                    continue;
                }
                let new = || UnionFile { entry, places: Vec::new(), shown: Vec::new() };
                by_name.entry(name).or_insert_with(new).places.push((index, position));
            }
        }
        let mut files: Vec<UnionFile<'a>> = by_name.into_values().collect();
        files.sort_by_key(|file| {
            let range = file.entry.range;
            (range.first(), Reverse(range.last()), &file.entry.file_name)
        });
        let mut union = Self { layers, files };
        union.share_out();
        union
    }

    /// Says which blocks each file shows: receipts win, then what the folder has itself. Of two others
    /// that overlap the later one is shown from its first block on, which tells the hash of the block
    /// before it: so the two can be held against each other.
    fn share_out(&mut self) {
        let mut covered: Vec<BlockRange> = Vec::new();
        for class in [(true, true), (true, false), (false, true), (false, false)] {
            let mut shown: Vec<(usize, BlockRange)> = Vec::new();
            for (index, file) in self.files.iter().enumerate() {
                let range = file.entry.range;
                let is_own = file.places.first().is_some_and(|(layer, _)| *layer == 0);
                if (file.entry.has_receipts, is_own) != class {
                    continue;
                }
                if let Some((_, before)) = shown.last_mut() {
                    if range.last() <= before.last() {
                        continue;
                    }
                    let last = before.last().min(range.first().saturating_sub(1));
                    *before = BlockRange::from_ends(before.first(), last).unwrap_or(*before);
                }
                shown.push((index, range));
            }
            for (index, range) in &shown {
                if let Some(file) = self.files.get_mut(*index) {
                    file.shown = subtract(&[*range], &covered);
                }
            }
            let all = shown.into_iter().map(|(_, range)| range);
            covered = join_ranges(covered.into_iter().chain(all));
        }
    }

    /// The layer of each file that shows something: of every slot as few layers as can be, the folder's
    /// own first, then those whose runs tell of most slots.
    fn owners(&self) -> BTreeMap<usize, (usize, usize)> {
        let mut by_slot: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, file) in self.files.iter().enumerate() {
            if !file.shown.is_empty() {
                by_slot.entry(slot_of(file.entry.range.first())).or_default().push(index);
            }
        }
        let mut owners = BTreeMap::new();
        for (slot, mut files) in by_slot {
            while !files.is_empty() {
                let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
                let places = files.iter().filter_map(|index| self.files.get(*index));
                for (layer, _) in places.flat_map(|file| &file.places) {
                    let count = counts.entry(*layer).or_default();
                    *count = count.saturating_add(1);
                }
                let best = counts.into_iter().min_by_key(|(layer, count)| {
                    let run_slots = self.layers.get(*layer).map_or(0, |it| it.run_slots(slot));
                    (*layer != 0, Reverse(*count), Reverse(run_slots), *layer)
                });
                let Some((best, _)) = best else { break };
                files.retain(|index| {
                    let places = self.files.get(*index).map(|file| &*file.places);
                    let mut places = places.unwrap_or_default().iter();
                    let place = places.find(|(layer, _)| *layer == best);
                    place.map(|place| owners.insert(*index, *place)).is_none()
                });
            }
        }
        owners
    }

    fn into_pieces(self) -> Vec<SealedPiece> {
        let mut pieces = Vec::new();
        for (index, (layer, position)) in self.owners() {
            let Some(file) = self.files.get(index) else { continue };
            let shown = file.shown.iter().map(|range| (*range, file.entry));
            pieces.extend(shown.map(|(range, entry)| {
                (SealedPiece { range, layer, position, foot: None, seam: None }, entry)
            }));
        }
        pieces.sort_by_key(|(piece, _)| piece.range.first());
        let begins: Vec<Option<(u64, B256)>> = pieces
            .iter()
            .map(|(piece, entry)| {
                let is_whole = piece.range.first() == entry.range.first();
                is_whole.then_some((piece.range.first(), entry.parent_hash))
            })
            .collect();
        let mut next = begins.into_iter().skip(1);
        let mut before: Option<(u64, B256)> = None;
        let settle = |(mut piece, entry): (SealedPiece, &SegmentEntry)| {
            let next = next.next().flatten();
            if piece.range.first() > entry.range.first() {
                let known = before.filter(|(end, _)| *end == piece.range.first());
                piece.foot = known.map(|(_, hash)| hash);
            }
            if piece.range.last() < entry.range.last() {
                let known = next.filter(|(first, _)| *first == piece.range.end());
                piece.seam = known.map(|(_, hash)| hash);
            }
            let is_whole = piece.range.last() == entry.range.last();
            let last_hash = piece.seam.or(is_whole.then_some(entry.last_hash));
            before = last_hash.map(|hash| (piece.range.end(), hash));
            piece
        };
        pieces.into_iter().map(settle).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faulty::FaultyDisk;
    use crate::files::LocalFiles;
    use crate::limits::Limits;
    use crate::manifest::tests::{run, segment};
    use crate::manifest::{Edit, Network};
    use crate::read::Inline;

    fn manifest(segments: &[(u64, u64)], runs: &[(u64, u64)]) -> Arc<Manifest> {
        let edit = Edit {
            segments: segments.iter().map(|(first, last)| segment(*first, *last)).collect(),
            runs: runs.iter().map(|it| run(RunSubject::Transactions, it.0, it.1)).collect(),
            ..Edit::default()
        };
        Arc::new(Manifest::new(Network::default()).edited(edit).unwrap())
    }

    /// What each file shows, with its layer and a `|` where the next one stands on it, then the runs that
    /// are asked.
    fn check(own: &Arc<Manifest>, others: &[Arc<Manifest>], withdrawn: &[&str], expected: &str) {
        let files = LocalFiles::new(Arc::new(FaultyDisk::new(1)), Arc::new(Inline));
        let files = Files::new(Arc::new(files), Limits::default());
        let withdrawn = withdrawn.iter().map(|name| (*name).to_owned()).collect();
        let manifests = others.to_vec();
        let published = AdmittedHistory { manifests, withdrawn, ..AdmittedHistory::default() };
        let sealed = Sealed::of(&files, Arc::clone(own), &published);
        let piece = |piece: &SealedPiece| {
            let entry = sealed.entry(piece).unwrap();
            let seam = if piece.seam.is_some() { "|" } else { "" };
            format!("{} of {} in {}{seam}", piece.range, entry.file_name, piece.layer)
        };
        let shown: Vec<String> = sealed.pieces.iter().map(piece).collect();
        let runs = sealed.runs_of(RunSubject::Transactions);
        let runs: Vec<String> =
            runs.map(|(layer, run)| format!("{} in {}", run.entry.span, layer.0)).collect();
        assert_eq!(format!("{}; {}", shown.join(", "), runs.join(", ")), expected);
    }

    #[test]
    fn complete_slots_are_asked_of_the_fewest_runs() {
        let none = manifest(&[], &[]);
        let slot = |slot: u64| (slot * 8192, slot * 8192 + 8191);
        let large = manifest(&[slot(0), slot(1), slot(2), slot(3)], &[(0, 4)]);
        let small = manifest(&[slot(2), slot(3), slot(4)], &[(2, 2), (4, 1)]);
        check(
            &none,
            &[small.clone(), large.clone()],
            &[],
            "0..8191 of 0-8191.seg in 2, 8192..16383 of 8192-16383.seg in 2, \
             16384..24575 of 16384-24575.seg in 2, 24576..32767 of 24576-32767.seg in 2, \
             32768..40959 of 32768-40959.seg in 1; slots 4..4 in 1, slots 0..3 in 2",
        );
        // What the folder has itself is read there.
        let own = manifest(&[slot(2)], &[(2, 1)]);
        check(
            &own,
            &[large],
            &["24576-32767.seg"],
            "0..8191 of 0-8191.seg in 1, 8192..16383 of 8192-16383.seg in 1, \
             16384..24575 of 16384-24575.seg in 0; slots 2..2 in 0, slots 0..3 in 1",
        );
    }

    #[test]
    fn pieces_that_overlap_are_cut_where_the_next_one_tells_what_it_stands_on() {
        let none = manifest(&[], &[]);
        let one = manifest(&[(0, 99), (300, 400)], &[(0, 1)]);
        let other = manifest(&[(50, 180), (350, 380)], &[(0, 1)]);
        check(
            &none,
            &[one.clone(), other.clone()],
            &[],
            "0..49 of 0-99.seg in 1|, 50..180 of 50-180.seg in 2, 300..400 of 300-400.seg in 1; \
             slots 0..0 in 1, slots 0..0 in 2",
        );
        check(
            &one,
            &[other],
            &[],
            "0..99 of 0-99.seg in 0, 100..180 of 50-180.seg in 1, 300..400 of 300-400.seg in 0; \
             slots 0..0 in 0, slots 0..0 in 1",
        );
    }
}
