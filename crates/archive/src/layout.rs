//! Structure of an era1 or ere file: the order of its entries, and the block index.
//!
//! The entries are walked from the first byte and listed by kind; the index must then name
//! exactly those places. So neither a damaged index nor an entry that nothing points to can go
//! unnoticed.

use chain::BlockRange;

use super::ARCHIVE_BLOCKS_MAX;
use super::e2store::{E2storeEntry, HEAD_BYTES, ReadAt, Tag};
use super::error::ArchiveFault;
use crate::file_kind::FileBegin;

/// The two archive formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pre-merge: block after block, receipts with blooms, an accumulator.
    Era1,
    /// All of history: section after section, slim receipts.
    Ere,
}

impl Format {
    /// The file name's ending.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Era1 => "era1",
            Self::Ere => "ere",
        }
    }
}

/// A fault and its place, before the file's name is known.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) offset: u64,
    pub(super) block: Option<u64>,
    pub(super) fault: Box<ArchiveFault>,
}

impl Misfit {
    pub(super) fn at(offset: u64, fault: ArchiveFault) -> Self {
        Self { offset, block: None, fault: Box::new(fault) }
    }
}

/// Where everything in an archive lies. The lists run parallel to `range`.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) format: Format,
    pub(super) range: BlockRange,
    pub(super) headers: Vec<E2storeEntry>,
    pub(super) bodies: Vec<E2storeEntry>,
    pub(super) receipts: Option<Vec<E2storeEntry>>,
    pub(super) total_difficulties: Option<Vec<E2storeEntry>>,
    pub(super) proofs: Option<Vec<E2storeEntry>>,
    pub(super) accumulator: Option<E2storeEntry>,
    pub(super) index: E2storeEntry,
}

impl Layout {
    pub(super) fn read(source: &impl ReadAt) -> Result<Self, Misfit> {
        let scan = Scan::walk(source)?;
        let index = Index::read(source, scan.index)?;
        let (receipts, misplaced, expected) = match index.format {
            Format::Era1 => (scan.receipts, scan.slim_receipts, Tag::Receipts),
            Format::Ere => (scan.slim_receipts, scan.receipts, Tag::SlimReceipts),
        };
        if let Some(entry) = misplaced.first() {
            let fault =
                ArchiveFault::EntryOrder { found: entry.tag.name(), expected: expected.name() };
            return Err(Misfit::at(entry.offset, fault));
        }
        let layout = Self {
            format: index.format,
            range: index.range,
            headers: scan.headers,
            bodies: scan.bodies,
            receipts: Some(receipts).filter(|list| !list.is_empty()),
            total_difficulties: Some(scan.total_difficulties).filter(|list| !list.is_empty()),
            proofs: Some(scan.proofs).filter(|list| !list.is_empty()),
            accumulator: scan.accumulator,
            index: scan.index,
        };
        layout.check_counts(&index)?;
        layout.check_offsets(&index)?;
        if layout.format == Format::Era1 {
            layout.check_interleaved(&index)?;
        }
        Ok(layout)
    }

    /// The entry of one block in one of the lists.
    pub(super) fn entry(&self, list: &[E2storeEntry], number: u64) -> Option<E2storeEntry> {
        let position = usize::try_from(number.checked_sub(self.range.first())?).ok()?;
        list.get(position).copied()
    }

    pub(super) fn block_bytes(&self, number: u64) -> u64 {
        self.components()
            .into_iter()
            .filter_map(|(_, list)| self.entry(list, number))
            .map(|entry| HEAD_BYTES.saturating_add(entry.data_bytes.into()))
            .sum()
    }

    /// The lists that the archive has.
    fn components(&self) -> Vec<(&'static str, &[E2storeEntry])> {
        let optional = [
            ("receipts", self.receipts.as_deref()),
            ("total difficulty", self.total_difficulties.as_deref()),
            ("proof", self.proofs.as_deref()),
        ];
        let mut components = vec![("header", self.headers.as_slice()), ("body", &self.bodies)];
        components.extend(optional.into_iter().filter_map(|(what, list)| Some((what, list?))));
        components
    }

    fn check_counts(&self, index: &Index) -> Result<(), Misfit> {
        let refuse = |what, found, expected| {
            Misfit::at(index.entry.offset, ArchiveFault::EntryCount { what, found, expected })
        };
        let mut components = self.components();
        if self.format == Format::Era1 {
            // Every era1 block has all four, and the file its accumulator.
            for what in ["receipts", "total difficulty"] {
                if !components.iter().any(|(present, _)| *present == what) {
                    components.push((what, &[]));
                }
            }
            if self.accumulator.is_none() {
                return Err(refuse("accumulator", 0, 1));
            }
        }
        for (what, list) in &components {
            if list.len() != index.block_count {
                return Err(refuse(what, list.len(), index.block_count));
            }
        }
        if self.format == Format::Ere && components.len() != index.slot_count {
            return Err(refuse("kinds of", components.len(), index.slot_count));
        }
        Ok(())
    }

    fn check_offsets(&self, index: &Index) -> Result<(), Misfit> {
        let lists = match self.format {
            Format::Era1 => vec![("header", self.headers.as_slice())],
            Format::Ere => index.slot_lists(&self.components())?,
        };
        for (position, number) in (self.range.first()..self.range.end()).enumerate() {
            for (slot, (what, list)) in lists.iter().enumerate() {
                let Some(entry) = list.get(position) else { continue };
                let word = position.saturating_mul(index.slot_count).saturating_add(slot);
                let expected = index.target(word);
                if expected != i128::from(entry.offset) {
                    let found = entry.offset;
                    let fault = Box::new(ArchiveFault::IndexOffset { what, found, expected });
                    let offset = index.word_offset(word);
                    return Err(Misfit { offset, block: Some(number), fault });
                }
            }
        }
        Ok(())
    }

    /// In era1 a block's entries follow each other, and only the header is in the index.
    fn check_interleaved(&self, index: &Index) -> Result<(), Misfit> {
        let mut last: Option<E2storeEntry> = None;
        let order = [
            Some(self.headers.as_slice()),
            Some(&self.bodies),
            self.receipts.as_deref(),
            self.total_difficulties.as_deref(),
        ];
        for (position, number) in (index.range.first()..index.range.end()).enumerate() {
            for entry in order.into_iter().flatten().filter_map(|list| list.get(position)) {
                if let Some(before) = last
                    && before.offset > entry.offset
                {
                    let (found, expected) = (before.tag.name(), entry.tag.name());
                    let fault = Box::new(ArchiveFault::EntryOrder { found, expected });
                    return Err(Misfit { offset: before.offset, block: Some(number), fault });
                }
                last = Some(*entry);
            }
        }
        Ok(())
    }
}

/// Entries in a file at the most: all that a full era can have, and as many again that nobody
/// knows.
const ENTRIES_MAX: u64 = 2 * SLOTS_MAX * ARCHIVE_BLOCKS_MAX;

/// Every entry of the file by kind, in file order.
struct Scan {
    headers: Vec<E2storeEntry>,
    bodies: Vec<E2storeEntry>,
    receipts: Vec<E2storeEntry>,
    slim_receipts: Vec<E2storeEntry>,
    total_difficulties: Vec<E2storeEntry>,
    proofs: Vec<E2storeEntry>,
    accumulator: Option<E2storeEntry>,
    index: E2storeEntry,
}

impl Scan {
    fn walk(source: &impl ReadAt) -> Result<Self, Misfit> {
        let mut last = first_entry(source)?;
        let mut scan = Self {
            headers: Vec::new(),
            bodies: Vec::new(),
            receipts: Vec::new(),
            slim_receipts: Vec::new(),
            total_difficulties: Vec::new(),
            proofs: Vec::new(),
            accumulator: None,
            index: last,
        };
        let mut entry_count = 1_u64;
        while last.end() < source.bytes_count() {
            entry_count = entry_count.saturating_add(1);
            if entry_count > ENTRIES_MAX {
                let fault = ArchiveFault::TooManyEntries { what: "e2store", limit: ENTRIES_MAX };
                return Err(Misfit::at(last.end(), fault));
            }
            if matches!(last.tag, Tag::BlockIndex | Tag::DynamicBlockIndex) {
                return Err(Misfit::at(last.end(), ArchiveFault::AfterIndex));
            }
            let offset = last.end();
            last = E2storeEntry::read(source, offset).map_err(|fault| Misfit::at(offset, fault))?;
            scan.note(last).map_err(|fault| Misfit::at(offset, fault))?;
        }
        if !matches!(last.tag, Tag::BlockIndex | Tag::DynamicBlockIndex) {
            return Err(Misfit::at(last.offset, ArchiveFault::NoIndex { last: last.tag.name() }));
        }
        scan.index = last;
        Ok(scan)
    }

    fn note(&mut self, entry: E2storeEntry) -> Result<(), ArchiveFault> {
        let list = match entry.tag {
            Tag::Header => &mut self.headers,
            Tag::Body => &mut self.bodies,
            Tag::Receipts => &mut self.receipts,
            Tag::SlimReceipts => &mut self.slim_receipts,
            Tag::TotalDifficulty => &mut self.total_difficulties,
            Tag::Proof => &mut self.proofs,
            Tag::Accumulator => {
                return match self.accumulator.replace(entry) {
                    None => Ok(()),
                    Some(_) => {
                        Err(ArchiveFault::TooManyEntries { what: entry.tag.name(), limit: 1 })
                    }
                };
            }
            Tag::Version | Tag::BlockIndex | Tag::DynamicBlockIndex | Tag::Other(_) => {
                return Ok(());
            }
        };
        list.push(entry);
        if u64::try_from(list.len()).is_ok_and(|count| count <= ARCHIVE_BLOCKS_MAX) {
            Ok(())
        } else {
            Err(ArchiveFault::TooManyEntries { what: entry.tag.name(), limit: ARCHIVE_BLOCKS_MAX })
        }
    }
}

/// An e2store file is told by its first entry, an empty version.
fn first_entry(source: &impl ReadAt) -> Result<E2storeEntry, Misfit> {
    let length = usize::try_from(source.bytes_count().min(HEAD_BYTES)).unwrap_or_default();
    let mut found = vec![0; length];
    source.read_exact_at(&mut found, 0).map_err(|error| Misfit::at(0, error.into()))?;
    let begin = FileBegin::of(&found);
    if !begin.is_e2store() {
        return Err(Misfit::at(0, ArchiveFault::NotE2store { begin }));
    }
    E2storeEntry::read(source, 0).map_err(|fault| Misfit::at(0, fault))
}

/// The block index: what the archive says about itself.
struct Index {
    format: Format,
    entry: E2storeEntry,
    range: BlockRange,
    block_count: usize,
    /// Offsets for each block.
    slot_count: usize,
    /// Relative to the index entry's head, block after block.
    offsets: Vec<i64>,
}

/// Slots of one block in an ere index: header, body, receipts, total difficulty, proof.
const SLOTS_MAX: u64 = 5;

impl Index {
    fn read(source: &impl ReadAt, entry: E2storeEntry) -> Result<Self, Misfit> {
        Self::parse(source, entry).map_err(|fault| Misfit::at(entry.offset, fault))
    }

    fn parse(source: &impl ReadAt, entry: E2storeEntry) -> Result<Self, ArchiveFault> {
        let found = u64::from(entry.data_bytes);
        let bytes_max = 8 * (ARCHIVE_BLOCKS_MAX * SLOTS_MAX + 3);
        if !found.is_multiple_of(8) || !(24..=bytes_max).contains(&found) {
            let expected = format!("a multiple of 8 from 24 to {bytes_max}");
            return Err(ArchiveFault::IndexLength { found, expected });
        }
        let data = entry.read_data(source)?;
        let (words, _) = data.as_chunks::<8>();
        let words: Vec<u64> = words.iter().copied().map(u64::from_le_bytes).collect();
        let word_count = u128::from(found / 8);
        let (format, first, offsets, slot_count, block_count) = match *words.as_slice() {
            // An early draft of ere used era1's tag for its own index: the counts tell them apart.
            [first, ref offsets @ .., block_count]
                if entry.tag == Tag::BlockIndex && word_count == u128::from(block_count) + 2 =>
            {
                (Format::Era1, first, offsets, 1, block_count)
            }
            [first, ref offsets @ .., slot_count, block_count] => {
                let expected =
                    u128::from(block_count).saturating_mul(slot_count.into()).saturating_add(3);
                if expected != word_count {
                    let expected = (expected.saturating_mul(8)).to_string();
                    return Err(ArchiveFault::IndexLength { found, expected });
                }
                if !(2..=SLOTS_MAX).contains(&slot_count) {
                    return Err(ArchiveFault::IndexSlots { found: slot_count, limit: SLOTS_MAX });
                }
                (Format::Ere, first, offsets, slot_count, block_count)
            }
            _ => {
                return Err(ArchiveFault::IndexLength {
                    found,
                    expected: "at least 24".to_owned(),
                });
            }
        };
        let range = BlockRange::from_count(first, block_count)
            .filter(|range| range.count() <= ARCHIVE_BLOCKS_MAX)
            .ok_or(ArchiveFault::IndexRange { first, count: block_count })?;
        Ok(Self {
            format,
            entry,
            range,
            block_count: usize::try_from(block_count).map_err(std::io::Error::other)?,
            slot_count: usize::try_from(slot_count).map_err(std::io::Error::other)?,
            offsets: offsets.iter().map(|offset| offset.cast_signed()).collect(),
        })
    }

    /// The byte that an offset of the index points to.
    fn target(&self, word: usize) -> i128 {
        let relative = self.offsets.get(word).copied().unwrap_or_default();
        i128::from(self.entry.offset).saturating_add(relative.into())
    }

    /// Where an offset of the index itself lies.
    fn word_offset(&self, word: usize) -> u64 {
        let bytes_before = u64::try_from(word).unwrap_or(u64::MAX).saturating_add(1);
        self.entry.data_offset().saturating_add(bytes_before.saturating_mul(8))
    }

    /// Which list each slot points into. An ere index does not say: the first block's entries
    /// tell.
    fn slot_lists<'a>(
        &self,
        components: &[(&'static str, &'a [E2storeEntry])],
    ) -> Result<Vec<(&'static str, &'a [E2storeEntry])>, Misfit> {
        let mut lists: Vec<(&'static str, &[E2storeEntry])> = Vec::new();
        for slot in 0..self.slot_count {
            let target = self.target(slot);
            let component = components.iter().find(|(what, list)| {
                list.first().is_some_and(|entry| i128::from(entry.offset) == target)
                    && !lists.iter().any(|(taken, _)| taken == what)
            });
            let Some(component) = component else {
                let fault = Box::new(ArchiveFault::IndexTarget { slot, found: target });
                let (offset, block) = (self.word_offset(slot), Some(self.range.first()));
                return Err(Misfit { offset, block, fault });
            };
            lists.push(*component);
        }
        Ok(lists)
    }
}
