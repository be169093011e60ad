//! A data folder with as many segments and keys as mainnet's, grown from a small real one.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use anyhow::{Context as _, Result, ensure};
use chain::BlockRange;
use segment::index::{
    Entry, HASH_KEY_BITS, IndexKey, OrdinalsWriter, Position, Run, RunSpan, RunSubject, plan_runs,
};
use segment::{FOOTER_BYTES, Footer};
use store::disk::{Disk as _, Folder};
use store::layout::{HeldRange, slot_of, slot_range};
use store::manifest::{Edit, Manifest, RunEntry, SegmentEntry};
use store::names::{run_name, segment_name};
use store::{SLOT_BLOCKS, View};

use crate::folder::BenchFolder;
use crate::random::Random;

/// Length of a full segment of mainnet. The files are sparse and take no room.
const SEGMENT_BYTES: u64 = 250_000_000;
/// Bytes of a segment that has a directory beside it: its first pages of rows.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes of a run that are written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// How large the folder becomes.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Slots up to here are held, complete.
    pub slot_count: u64,
    /// Slots between the real ones and the sparse ones that hold nothing.
    pub gap_slots: u64,
    /// Transactions of every sparse slot.
    pub keys_per_slot: u32,
    /// Whether the sparse segments can be opened, and their first rows be read.
    pub is_openable: bool,
}

/// Makes `large` from a small folder, whose files it links to: all segments of that folder, sparse ones
/// above them, and the lookup runs of all.
pub fn grow(small: &BenchFolder, large: &Path, size: Size) -> Result<()> {
    let view = small.view()?;
    let before = view.manifest();
    fs::create_dir_all(large)?;
    for entry in before.segments() {
        fs::hard_link(small.path().join(&entry.file_name), large.join(&entry.file_name))?;
    }
    let real_end = slot_of(view.tip().context("an empty folder")?).saturating_add(1);
    let first_sparse = real_end.saturating_add(size.gap_slots);
    let mut segments = Vec::new();
    let mut whole = before.segments().iter().filter(|entry| entry.range.count() == SLOT_BLOCKS);
    let template = match whole.next_back().filter(|_| size.is_openable) {
        Some(entry) => Some(SegmentTemplate::read(&small.path().join(&entry.file_name))?),
        None => None,
    };
    let mut parent_hash = before.segments().last().map_or(B256::ZERO, |entry| entry.last_hash);
    for slot in first_sparse..size.slot_count {
        let entry = sparse_segment(slot, parent_hash, size.keys_per_slot)?;
        parent_hash = entry.last_hash;
        let file = File::create(large.join(&entry.file_name))?;
        file.set_len(entry.bytes)?;
        if let Some(template) = &template {
            template.write(&file, &entry)?;
        }
        segments.push(entry);
    }
    let is_complete = |slot: u64| {
        let whole = slot_range(slot);
        let held = before.segments().iter().any(|entry| Some(entry.range) == whole);
        slot >= first_sparse || held
    };
    let complete = (0..size.slot_count).filter(|slot| is_complete(*slot));
    let mut spans = plan_runs(complete.map(|slot| slot..slot.saturating_add(1)));
    for slot in (0..real_end).filter(|slot| !is_complete(*slot)) {
        spans.push(RunSpan::new(slot, 1)?);
    }
    let mut runs = Vec::new();
    for subject in [RunSubject::Transactions, RunSubject::Blocks] {
        let real = real_entries(small, &view, subject)?;
        for span in &spans {
            let made_up = match subject {
                RunSubject::Transactions => size.keys_per_slot,
                RunSubject::Blocks | RunSubject::Logs => u32::try_from(SLOT_BLOCKS)?,
            };
            let counts = |slot: u64| {
                if slot >= first_sparse { made_up } else { real_count(&real, slot) }
            };
            let counts: Vec<u32> = (span.first_slot()..span.end_slot()).map(counts).collect();
            runs.push(write_run(large, subject, *span, counts, first_sparse, &real)?);
        }
    }
    let gone = before.runs().iter().map(|entry| entry.file_name.clone()).collect();
    let edit = Edit { segments, runs, gone, ..Edit::default() };
    let manifest: Manifest = before.edited(edit)?;
    let disk = Arc::new(Folder::open(large)?);
    manifest.replace(&*disk)?;
    disk.fsync_folder()?;
    Ok(())
}

fn sparse_segment(slot: u64, parent_hash: B256, transactions: u32) -> Result<SegmentEntry> {
    let range: BlockRange = slot_range(slot).context("a slot past the last block")?;
    let digest = B256::from(U256::from(slot));
    let file_name = segment_name(HeldRange { range, has_receipts: true }, digest);
    Ok(SegmentEntry {
        range,
        file_name,
        bytes: SEGMENT_BYTES,
        digest,
        has_receipts: true,
        parent_hash,
        last_hash: B256::from(U256::from(range.last())),
        transaction_count: transactions.into(),
        log_count: u64::from(transactions).saturating_mul(2),
        difficulty: U256::ZERO,
    })
}

/// What makes a sparse file a segment: a real one's first pages, its directory and its footer.
struct SegmentTemplate {
    first: Vec<u8>,
    tail: Vec<u8>,
    footer: Footer,
}

impl SegmentTemplate {
    fn read(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let file_bytes = file.metadata()?.len();
        let read = |range: std::ops::Range<u64>| -> Result<Vec<u8>> {
            let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start))?];
            file.read_exact_at(&mut bytes, range.start)?;
            Ok(bytes)
        };
        let footer = read(file_bytes.saturating_sub(u64::try_from(FOOTER_BYTES)?)..file_bytes)?;
        let footer = Footer::parse(&footer)?;
        let (first, tail) = (read(0..FIRST_BYTES)?, read(footer.tail_range(file_bytes)?)?);
        Ok(Self { first, tail, footer })
    }

    /// The digest is the entry's, and of nothing: only a check would compute it.
    fn write(&self, file: &File, entry: &SegmentEntry) -> Result<()> {
        let mut footer = self.footer;
        footer.facts.range = entry.range;
        footer.digest = entry.digest.0;
        let end = [&*self.tail, &*footer.encode()].concat();
        file.write_all_at(&self.first, 0)?;
        Ok(file.write_all_at(&end, entry.bytes.saturating_sub(u64::try_from(end.len())?))?)
    }
}

/// What the runs of the small folder hold, by prefix.
fn real_entries(small: &BenchFolder, view: &View, subject: RunSubject) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for listed in view.manifest().runs_of(subject) {
        let file = fs::read(small.path().join(&listed.file_name))?;
        let run = Run::from_file(&file)?;
        for (bucket, range) in run.buckets() {
            entries.extend(run.entries(bucket, part(&file, range)?)?);
        }
    }
    entries.sort_unstable();
    Ok(entries)
}

fn real_count(real: &[Entry], slot: u64) -> u32 {
    let own = real.iter().filter(|entry| entry.position.slot == slot);
    own.map(|entry| entry.position.ordinal.saturating_add(1)).max().unwrap_or_default()
}

fn part(file: &[u8], range: std::ops::Range<u64>) -> Result<&[u8]> {
    let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
    file.get(range).context("a range outside of the file")
}

/// Writes a run: the real entries of its slots, and made-up ones for those above, spread evenly.
fn write_run(
    folder: &Path,
    subject: RunSubject,
    span: RunSpan,
    counts: Vec<u32>,
    first_sparse: u64,
    real: &[Entry],
) -> Result<RunEntry> {
    let mut real = real.iter().filter(|entry| span.contains(entry.position.slot)).peekable();
    let real_count = u64::try_from(real.clone().count())?;
    let sparse_slots = span.first_slot().max(first_sparse)..span.end_slot();
    let slot_count = sparse_slots.end.saturating_sub(sparse_slots.start);
    let per_slot = if slot_count == 0 { 0 } else { counts.last().copied().unwrap_or_default() };
    let made_up = slot_count.saturating_mul(per_slot.into());
    let key_count = real_count.saturating_add(made_up);
    let mut writer = OrdinalsWriter::new(subject, span, counts, key_count)?;
    let digest = B256::from(U256::from(span.first_slot()));
    let file_name = run_name(subject, span, digest);
    let mut file = BufWriter::new(File::create(folder.join(&file_name))?);
    let (mut bytes, mut length) = (Vec::with_capacity(CHUNK_BYTES), 0_u64);
    let mut random = Random::default();
    let step = (1_u64 << HASH_KEY_BITS).checked_div(made_up).unwrap_or_default();
    let mut next_real = |below: Option<u64>| {
        real.next_if(|entry| below.is_none_or(|below| entry.key.number() <= below)).copied()
    };
    for index in 0..made_up {
        let noise = random.next_number();
        let prefix = index.saturating_mul(step).saturating_add(noise % step.max(1));
        // Real slots are the lower ones: of two equal prefixes the real one comes first.
        while let Some(entry) = next_real(Some(prefix)) {
            writer.push(entry, &mut bytes)?;
        }
        let slot = sparse_slots.start.saturating_add((noise >> 40) % slot_count.max(1));
        let ordinal = u32::try_from((noise >> 8) % u64::from(per_slot.max(1)))?;
        let position = Position { slot, ordinal };
        writer.push(Entry { key: IndexKey::from_number(prefix), position }, &mut bytes)?;
        if bytes.len() >= CHUNK_BYTES {
            length = length.saturating_add(u64::try_from(bytes.len())?);
            file.write_all(&bytes)?;
            bytes.clear();
        }
    }
    while let Some(entry) = next_real(None) {
        writer.push(entry, &mut bytes)?;
    }
    writer.finish(&mut bytes)?;
    length = length.saturating_add(u64::try_from(bytes.len())?);
    file.write_all(&bytes)?;
    file.flush()?;
    ensure!(length > 0, "an empty run");
    Ok(RunEntry { subject, span, file_name, bytes: length, digest })
}
