//! Whether a data folder is what it claims to be: every byte, every block, every lookup.
//!
//! - *layout*: the listed files are the ones that the coverage asks for, but for slots whose merge is
//!   pending, and link to each other;
//! - *digest*: every listed file has the length and the SHA-256 that the manifest says;
//! - *blocks*: every stored block proves itself and descends from the one before it: roots, bloom,
//!   gas, senders;
//! - *rows*: encoded again, the blocks give the very file that is stored, so nothing in it, such as a
//!   sender or a running sum, can differ from what the blocks say;
//! - *lookups*: every hash is found where it is, and the runs hold nothing else;
//! - *log index*: the addresses and topics of all logs, derived again, are what its runs hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::trust::Anchors;
use chain::{
    Block, BlockNumber, BlockRange, ChainSpec, Start, StepFields, Verified, Verifier,
    decode_header, keccak256_each,
};
use segment::index::{Position, PostingSum, PostingsBuilder, RunSubject};
use segment::{
    Census, EncodedGroup, Encoder, RowParts, SLOT_BLOCKS, SegmentWriter, count_block, groups,
    is_counted,
};
use sha2::{Digest, Sha256};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::{OpenSegment, SegmentFile, open_run_on};
use crate::layout::{plan_lookups, plan_unmerged, slot_of};
use crate::manifest::{RunEntry, SegmentEntry};
use crate::read::{Inline, LocalBytes, SegmentBytes, block_on, fetch};
use crate::reader::Reader;
use crate::view::View;

/// Bytes of a file that are hashed at a time.
const DIGEST_STEP_BYTES: u64 = 1 << 20;

/// Whether the listed files are the ones that the coverage asks for.
pub fn check_layout(view: &View) -> Result<(), StoreError> {
    let manifest = view.manifest();
    let held: Vec<_> = manifest.segments().iter().map(SegmentEntry::held).collect();
    let texts = |held: &[crate::layout::HeldRange]| {
        held.iter().map(|it| it.range.to_string()).collect::<Vec<_>>().join(" ")
    };
    let wanted = plan_unmerged(&held, &held);
    expect_equal("manifest", "list of segments", &texts(&held), &texts(&wanted))?;
    for subject in RunSubject::ALL {
        let runs: Vec<_> = manifest.runs_of(subject).collect();
        let is_indexed = |it: &&crate::layout::HeldRange| {
            // A slot may do without a log index, and has none without receipts.
            subject != RunSubject::Logs
                || (it.has_receipts
                    && runs.iter().any(|run| run.span.contains(slot_of(it.range.first()))))
        };
        let indexed: Vec<_> = held.iter().filter(is_indexed).copied().collect();
        let listed: Vec<String> = runs.iter().map(|run| run.span.to_string()).collect();
        let wanted: Vec<String> = plan_lookups(&indexed).iter().map(ToString::to_string).collect();
        expect_equal("manifest", "list of runs", &listed.join(" "), &wanted.join(" "))?;
    }
    let pairs = manifest.segments().iter().zip(manifest.segments().iter().skip(1));
    for (below, above) in pairs.filter(|(one, next)| one.range.end() == next.range.first()) {
        let (found, expected) = (above.parent_hash, below.last_hash);
        expect_equal(&above.file_name, "parent hash of the first block", &found, &expected)?;
    }
    Ok(())
}

/// Examines the groups of one segment, on any number of threads.
#[derive(Debug)]
pub struct SegmentCheck<'a> {
    view: &'a View,
    spec: &'a ChainSpec,
    file: Arc<SegmentFile>,
    open: Arc<OpenSegment>,
    encoder: Encoder,
    /// Ordinal, in its slot, of the segment's first transaction.
    first_ordinal: u64,
    /// Whether a manifest lists it, which tells its difficulty, and its runs, which can be asked.
    is_listed: bool,
}

/// The segment as its blocks give it, group by group in order.
#[derive(Debug)]
pub struct Rebuild {
    range: BlockRange,
    logs: PostingSum,
    difficulty: U256,
    writer: SegmentWriter,
    census: Census,
    found: CheckCounts,
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Blocks.
    pub block_count: u64,
    /// Transactions.
    pub transaction_count: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// What the blocks of a segment say that the log index should keep of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedLogs {
    slot: u64,
    sum: PostingSum,
}

/// A group whose blocks are proven and whose hashes were found.
#[derive(Debug)]
pub struct CheckedGroup {
    blocks: Vec<Verified<Block>>,
    encoded: EncodedGroup,
    logs: PostingSum,
}

impl CheckedGroup {
    pub(crate) fn blocks(&self) -> &[Verified<Block>] {
        &self.blocks
    }

    /// How many transactions each of its blocks has.
    pub fn transaction_counts(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().map(|block| u64::try_from(block.transactions.len()).unwrap_or(u64::MAX))
    }
}

impl CheckCounts {
    /// Adds what was checked elsewhere.
    pub fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.block_count, other.block_count),
            (&mut self.transaction_count, other.transaction_count),
            (&mut self.bytes, other.bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl<'a> SegmentCheck<'a> {
    /// Begins to check the segment at a position of the manifest; `None` past the last.
    pub fn begin(
        view: &'a View,
        spec: &'a ChainSpec,
        position: usize,
    ) -> Result<Option<(Self, Rebuild)>, StoreError> {
        let Some(file) = view.segment_file(position) else { return Ok(None) };
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let open = block_on(view.files().segment(&mut reader, file))?;
        let entry = &file.entry;
        let tables = Arc::new(open.segment.tables().clone());
        let encoder = Encoder::new(tables, entry.has_receipts);
        let range = entry.range;
        let refused = |cause| StoreError::Write { range, cause };
        let before = view.manifest().segments().iter().take(position);
        let in_slot = before.filter(|it| slot_of(it.range.first()) == slot_of(range.first()));
        let rebuild = Rebuild {
            range,
            logs: PostingSum::default(),
            difficulty: U256::ZERO,
            writer: SegmentWriter::new(range, &encoder).map_err(refused)?,
            census: Census::default(),
            found: CheckCounts { bytes: entry.bytes, ..CheckCounts::default() },
        };
        let check = Self {
            view,
            spec,
            file: Arc::clone(file),
            encoder,
            first_ordinal: in_slot.map(|it| it.transaction_count).sum(),
            is_listed: true,
            open,
        };
        Ok(Some((check, rebuild)))
    }

    /// The same check where no manifest lists the segment and its lookups yet.
    pub(crate) fn unlisted(self) -> Self {
        Self { is_listed: false, ..self }
    }

    /// The segment's file.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.file.entry.file_name
    }

    /// How long the file is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.entry.bytes
    }

    /// How many blocks it holds.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        self.file.entry.range.count()
    }

    /// What to examine, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<BlockRange> {
        groups(self.file.entry.range).collect()
    }

    /// Proves the blocks of a group and finds all their hashes.
    pub fn examine(&self, group: BlockRange) -> Result<CheckedGroup, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let trusted = self.view.manifest().trusted()?;
        let mut verifier = self.begin_group(&mut reader, &trusted, group)?;
        let mut blocks = Vec::new();
        for number in group.numbers() {
            blocks.push(self.prove(&mut reader, &mut verifier, number)?);
        }
        let encoded = self
            .encoder
            .encode_group(&blocks)
            .map_err(|cause| StoreError::Write { range: self.file.entry.range, cause })?;
        let mut logs = PostingsBuilder::new(slot_of(group.first()));
        blocks.iter().try_for_each(|block| logs.push_logs(block))?;
        Ok(CheckedGroup { blocks, encoded, logs: logs.sum() })
    }

    /// Begins to prove a group: its first block is held against the header before it, as each of the
    /// others is, and follows its rules.
    fn begin_group<'v>(
        &'v self,
        reader: &mut Reader,
        trusted: &'v Anchors,
        group: BlockRange,
    ) -> Result<Verifier<'v>, StoreError> {
        let verifier = |start| Verifier::new(self.spec, trusted, start);
        let from_here = Start::At(group.first());
        let Some(before) = BlockNumber(group.first()).parent() else {
            return Ok(verifier(from_here));
        };
        let after = |hash| Start::After { number: before.get(), hash };
        match block_on(self.view.read_header(reader, before)) {
            Ok(Some(header)) => {
                let verifier = verifier(after(header.hash));
                Ok(match decode_header(&header.rlp) {
                    Ok(fields) => verifier.with_parent(StepFields::of(&fields, &header.rlp)),
                    // Whoever proves that block refuses it.
                    Err(_) => verifier,
                })
            }
            Ok(None) => Ok(verifier(from_here)),
            // A file that is damaged is told by its own name; the hash at its end is listed.
            Err(error) if error.is_of_file() && before.get() < self.file.entry.range.first() => {
                let hash = block_on(self.view.read_hash(reader, before))?;
                Ok(verifier(hash.map_or(from_here, after)))
            }
            Err(error) => Err(error),
        }
    }

    fn prove(
        &self,
        reader: &mut Reader,
        verifier: &mut Verifier<'_>,
        number: BlockNumber,
    ) -> Result<Verified<Block>, StoreError> {
        let stored = block_on(self.view.read_block(reader, number, RowParts::Receipt))?;
        let stored = stored.ok_or(StoreError::NotHeld { number })?;
        let senders: Vec<_> = stored.rows.iter().map(|row| row.sender).collect();
        let block = verifier.verify(stored.into_candidate(self.file.entry.has_receipts)).map_err(
            |mismatch| StoreError::Block { file: self.file_name().to_owned(), mismatch },
        )?;
        for (index, (transaction, stored)) in block.transactions.iter().zip(senders).enumerate() {
            let what = || format!("sender of transaction {index} of block {number}");
            if transaction.sender != stored {
                expect_equal(self.file_name(), &what(), &stored, &transaction.sender)?;
            }
        }
        if self.is_listed {
            self.find_hashes(reader, &block)?;
        }
        Ok(block)
    }

    /// Finds the block's hash and those of its transactions in the runs.
    fn find_hashes(&self, reader: &mut Reader, block: &Block) -> Result<(), StoreError> {
        let number = block.header.number;
        let slot = slot_of(number);
        let position =
            |ordinal: u64| Position { slot, ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX) };
        let encodings: Vec<&[u8]> =
            block.transactions.iter().map(|tx| tx.encoded.as_ref()).collect();
        let ordinals = self.open.segment.find_ordinals(BlockNumber(number)).unwrap_or_default();
        let first = self.first_ordinal.saturating_add(ordinals.start.get());
        let transactions = keccak256_each(&encodings).into_iter().zip(first..);
        let transactions = transactions.map(|(hash, at)| (RunSubject::Transactions, hash, at));
        let own = (RunSubject::Blocks, block.hash, number % SLOT_BLOCKS);
        for (subject, hash, ordinal) in transactions.chain([own]) {
            let found = block_on(self.view.probe_slot(reader, subject, slot, hash))?;
            if found.into_iter().all(|found| found != position(ordinal)) {
                let what = format!("place of {hash}, a hash of block {number},");
                let mut runs = self.view.manifest().runs_of(subject);
                let run = runs.find(|it| it.span.contains(slot));
                let file =
                    run.map_or_else(|| format!("lookup of {subject}"), |it| it.file_name.clone());
                expect_equal(
                    &file,
                    &what,
                    &"not told".to_owned(),
                    &format!("{ordinal} in slot {slot}"),
                )?;
            }
        }
        Ok(())
    }
}

impl Rebuild {
    /// Takes the next group.
    pub fn take(&mut self, examined: CheckedGroup) -> Result<(), StoreError> {
        let range = self.range;
        for (block, transaction_count) in examined.blocks.iter().zip(examined.transaction_counts())
        {
            if is_counted(range, BlockNumber(block.header.number)) {
                count_block(&mut self.census, block);
            }
            self.difficulty = self.difficulty.saturating_add(block.header.difficulty);
            self.found.add(CheckCounts { block_count: 1, transaction_count, bytes: 0 });
        }
        self.logs = self.logs.joined(examined.logs);
        let pushed = self.writer.push(examined.encoded);
        pushed.map(drop).map_err(|cause| StoreError::Write { range, cause })
    }

    /// Holds the file against what its blocks give. What the log index should have is told, for
    /// [`check_run`].
    pub fn finish(
        self,
        check: &SegmentCheck<'_>,
    ) -> Result<(CheckCounts, CheckedLogs), StoreError> {
        let (range, entry) = (self.range, &check.file.entry);
        let name = entry.file_name.as_str();
        if *check.open.segment.tables() != self.census.into_tables() {
            expect_equal(name, "set of tables", &"another one", &"what its blocks give")?;
        }
        let finished = self.writer.finish();
        let (_, footer) = finished.map_err(|cause| StoreError::Write { range, cause })?;
        expect_equal(name, "digest", &entry.digest, &B256::from(footer.digest))?;
        expect_equal(name, "parent hash", &entry.parent_hash, &footer.facts.parent_hash)?;
        expect_equal(name, "last hash", &entry.last_hash, &footer.facts.last_hash)?;
        let listed = (entry.transaction_count, entry.log_count);
        let facts = footer.facts;
        let found = (facts.transaction_count, facts.log_count);
        let text = |(transactions, logs)| format!("{transactions} transactions and {logs} logs");
        expect_equal(name, "content", &text(listed), &text(found))?;
        if check.is_listed {
            expect_equal(name, "difficulty", &entry.difficulty, &self.difficulty)?;
        }
        let footer_bytes = u64::try_from(segment::FOOTER_BYTES).unwrap_or(u64::MAX);
        let digested = 0..entry.bytes.saturating_sub(footer_bytes);
        let digest = block_on(digest_of(&*check.open.bytes, digested))?;
        expect_equal(name, "SHA-256 of the file", &digest, &entry.digest)?;
        Ok((self.found, CheckedLogs { slot: slot_of(range.first()), sum: self.logs }))
    }
}

/// Checks a run: digest and every bucket. A run of hashes has as many hashes as the segments; a run of the
/// log index has what the segments say, whose checks gave `logs`, one for each.
pub fn check_run(
    view: &View,
    position: usize,
    logs: &[CheckedLogs],
) -> Result<Option<CheckCounts>, StoreError> {
    let Some(file) = view.run_file(position) else { return Ok(None) };
    let RunEntry { subject, span, bytes, .. } = file.entry;
    let segments = view.manifest().segments().iter();
    let covered = segments.filter(|it| span.contains(slot_of(it.range.first())));
    let open = block_on(file.opened(view.files()))?;
    check_digest(&file.entry, &*open.bytes)?;
    let hash_count: u64 = match subject {
        RunSubject::Transactions => covered.clone().map(|it| it.transaction_count).sum(),
        RunSubject::Blocks => covered.clone().map(|it| it.range.count()).sum(),
        RunSubject::Logs => 0,
    };
    let mut entry_count = 0_usize;
    let mut found: BTreeMap<u64, PostingSum> = BTreeMap::new();
    let mut buffer = Vec::new();
    for (bucket, range) in open.run.buckets() {
        block_on(fetch(&*open.bytes, range, &mut buffer))?;
        let corrupt = |cause| file.corrupt(cause);
        if subject == RunSubject::Logs {
            for entry in open.run.posting_entries(bucket, &buffer).map_err(corrupt)? {
                for (slot, parts) in &entry.slots {
                    let slot = span.first_slot().saturating_add(*slot);
                    found.entry(slot).or_default().add_slot(&entry, parts);
                }
            }
        } else {
            let entries = open.run.entries(bucket, &buffer).map_err(corrupt)?;
            entry_count = entry_count.saturating_add(entries.len());
        }
    }
    if subject == RunSubject::Logs {
        let slots: Vec<u64> = covered.map(|it| slot_of(it.range.first())).collect();
        compare_logs(&file.entry, &found, &slots, logs)?;
    } else {
        let entry_count = u64::try_from(entry_count).unwrap_or(u64::MAX);
        expect_equal(&file.entry.file_name, "number of hashes", &entry_count, &hash_count)?;
    }
    Ok(Some(CheckCounts { bytes, ..CheckCounts::default() }))
}

/// Checks that a run is as it was written.
pub(crate) fn check_run_file(disk: &dyn Disk, entry: &RunEntry) -> Result<(), StoreError> {
    open_run_on(disk, entry)?;
    check_digest(entry, &LocalBytes::new(disk.open(&entry.file_name)?, Arc::new(Inline)))
}

fn check_digest(entry: &RunEntry, bytes: &dyn SegmentBytes) -> Result<(), StoreError> {
    let digest = block_on(digest_of(bytes, 0..entry.bytes))?;
    expect_equal(&entry.file_name, "SHA-256 of the file", &digest, &entry.digest)
}

/// Compares a run of the log index with the segments whose check passed, by their slots. A slot with a
/// damaged segment, which the check reports, is left out.
fn compare_logs(
    entry: &RunEntry,
    found: &BTreeMap<u64, PostingSum>,
    segment_slots: &[u64],
    logs: &[CheckedLogs],
) -> Result<(), StoreError> {
    let name = entry.file_name.as_str();
    let own = logs.iter().filter(|it| entry.span.contains(it.slot));
    let mut checked: BTreeMap<u64, usize> = BTreeMap::new();
    own.clone().for_each(|it| *checked.entry(it.slot).or_default() += 1);
    let mut listed: BTreeMap<u64, usize> = BTreeMap::new();
    for slot in segment_slots {
        *listed.entry(*slot).or_default() += 1;
    }
    let is_uncompared = |slot: &u64| listed.get(slot) != checked.get(slot);
    let uncompared: BTreeSet<u64> = listed.keys().copied().filter(is_uncompared).collect();
    let mut expected: BTreeMap<u64, PostingSum> = BTreeMap::new();
    for CheckedLogs { slot, sum } in own {
        let held = expected.entry(*slot).or_default();
        *held = held.joined(*sum);
    }
    let slots = entry.span.first_slot()..entry.span.end_slot();
    for slot in slots.filter(|slot| !uncompared.contains(slot)) {
        let of = |sums: &BTreeMap<u64, PostingSum>| sums.get(&slot).copied().unwrap_or_default();
        let (found, expected) = (of(found), of(&expected));
        let what = format!("number of postings of slot {slot}");
        expect_equal(name, &what, &found.count, &expected.count)?;
        if found != expected {
            let what = format!("set of the postings of slot {slot}");
            expect_equal(name, &what, &"another one", &"what its blocks give")?;
        }
    }
    Ok(())
}

async fn digest_of(
    bytes: &dyn SegmentBytes,
    range: std::ops::Range<u64>,
) -> Result<B256, StoreError> {
    let mut hasher = Sha256::new();
    let mut buffer = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = at.saturating_add(DIGEST_STEP_BYTES).min(range.end);
        fetch(bytes, at..end, &mut buffer).await?;
        hasher.update(&buffer);
        at = end;
    }
    Ok(B256::from_slice(&hasher.finalize()))
}

fn expect_equal<T: PartialEq + ToString>(
    file: &str,
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), StoreError> {
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Differs {
        file: file.to_owned(),
        what: what.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
    })
}
