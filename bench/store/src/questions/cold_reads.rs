//! How many reads from the disk does an answer take, when only tails are in memory?
//!
//! A disk that never answers at once stands for one whose data pages are cold: every page that is
//! needed becomes one read, and each is counted. Tails are resident: one read of every segment and
//! run goes before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use anyhow::{Context as _, Result};
use store::disk::{
    CachedRead, DataFile, Disk, DiskError, FileVersion, Folder, LockGuard, WritableFile,
};
use store::read::block_on;
use store::{Limits, LogQuery, LoggedRows, Reader, RowParts, RunSubject, View};

use crate::figure::{Figure, FigureUnit, Goal, count, ratio};
use crate::folder::BenchFolder;
use crate::keys::Key;
use crate::random::Random;

/// Reads that are counted.
const READS: usize = 1000;

/// A view none of whose data is in memory, and the counts of what is read for it.
fn open_cold(folder: &BenchFolder) -> Result<(Arc<View>, Arc<Counts>)> {
    let counts = Arc::new(Counts::default());
    let disk = ColdDisk { folder: Folder::open(folder.path())?, counts: Arc::clone(&counts) };
    // The runs of a large store do not fit the memory that small ones stay in.
    let limits = Limits { run_bytes_max: 0, ..Limits::default() };
    Ok((BenchFolder::view_on(Arc::new(disk), limits)?, counts))
}

/// Counts the reads of a search for the third topic of logs in all blocks, beside one of every run and
/// one of every place that has such a log.
pub fn reads_per_search(of: &str, folder: &BenchFolder, topics: &[B256]) -> Result<Figure> {
    let (view, counts) = open_cold(folder)?;
    let mut reader = Reader::new()?;
    let queries: Vec<LogQuery> = topics
        .iter()
        .map(|topic| LogQuery::new(Vec::new(), vec![Vec::new(), Vec::new(), vec![*topic]]))
        .collect();
    // The tails become resident.
    for query in &queries {
        count_places(&view, &mut reader, query)?;
    }
    counts.reset();
    let mut places = 0_u64;
    for query in &queries {
        places += count_places(&view, &mut reader, query)?;
    }
    let runs = u64::try_from(view.manifest().runs_of(RunSubject::Logs).count())?;
    let [reads, bytes] = [&counts.reads, &counts.bytes].map(|it| it.load(Ordering::Relaxed));
    let searches = count(&queries);
    Ok(Figure {
        name: "sparse_logs_cold",
        question: "disk reads of a sparse search / (runs + places with such logs)".into(),
        of: of.to_owned(),
        value: ratio(reads, runs * searches + places),
        unit: FigureUnit::Ratio,
        goal: Goal::at_most(1.0, 1.0),
        note: format!(
            "{searches} searches of all blocks, tails resident: {:.1} reads each for {runs} runs and \
             {:.1} places, {:.0} bytes",
            ratio(reads, searches),
            ratio(places, searches),
            ratio(bytes, searches)
        ),
    })
}

/// Places of all blocks that have logs which are asked for, each of which is read at once.
fn count_places(view: &View, reader: &mut Reader, query: &LogQuery) -> Result<u64> {
    let has_such_logs = |place: &&LoggedRows| {
        let receipts = place.rows.iter().filter_map(|row| row.receipt);
        receipts.flat_map(|it| it.logs()).any(|log| query.matches(&log))
    };
    let mut sum = 0_u64;
    for range in view.coverage_receipts() {
        let mut search = view.search_logs(query, *range, u64::MAX);
        while let Some(found) = block_on(search.next_rows(reader))? {
            sum += u64::try_from(found.iter().filter(has_such_logs).count())?;
        }
    }
    Ok(sum)
}

/// Counts the reads of random transactions by hash and by place.
pub fn reads_per_answer(of: &str, folder: &BenchFolder, keys: &[Key]) -> Result<[Figure; 2]> {
    let (view, counts) = open_cold(folder)?;
    let mut reader = Reader::new()?;
    // One transaction of every segment is enough to make all tails resident.
    for segment in view.manifest().segments() {
        let inside = |key: &&Key| segment.range.contains(key.number);
        if let Some(key) = keys.iter().find(inside) {
            block_on(view.find_transaction(&mut reader, key.hash, RowParts::Receipt))?
                .context("not found")?;
        }
    }
    let picks = Random::default().pick(keys, READS);
    let mut by_hash = ReadTally::default();
    let mut by_place = ReadTally::default();
    for key in picks {
        counts.reset();
        block_on(view.find_transaction(&mut reader, key.hash, RowParts::Receipt))?
            .context("not found")?;
        by_hash.add(&counts);
        counts.reset();
        let read = view.read_transaction(&mut reader, key.number, key.index, RowParts::Receipt);
        block_on(read)?.context("not there")?;
        by_place.add(&counts);
    }
    Ok([
        by_hash.figure("transaction_by_hash_cold", "by hash", of, Goal::at_most(2.0, 2.0)),
        by_place.figure("transaction_by_place_cold", "by place", of, Goal::at_most(1.0, 1.0)),
    ])
}

/// How often how many reads were needed.
#[derive(Debug, Default)]
struct ReadTally {
    times: BTreeMap<u64, u64>,
    bytes: Vec<u64>,
}

impl ReadTally {
    fn add(&mut self, counts: &Counts) {
        *self.times.entry(counts.reads.load(Ordering::Relaxed)).or_default() += 1;
        self.bytes.push(counts.bytes.load(Ordering::Relaxed));
    }

    fn figure(mut self, name: &'static str, how: &str, of: &str, goal: Option<Goal>) -> Figure {
        self.bytes.sort_unstable();
        let percentile = |percent: usize| {
            self.bytes.get(self.bytes.len().saturating_sub(1) * percent / 100).copied()
        };
        let sum = count(&self.bytes);
        let shares = self
            .times
            .iter()
            .map(|(reads, times)| format!("{reads} in {:.1} %", ratio(*times, sum) * 100.0));
        let shares: Vec<String> = shares.collect();
        Figure {
            name,
            question: format!("disk reads of a transaction {how}, tails resident, 99 of 100"),
            of: of.to_owned(),
            value: ratio(self.reads_of_percent(99), 1),
            unit: FigureUnit::Reads,
            goal,
            note: format!(
                "{}; together {} bytes (median), {} (99 of 100), {} (most)",
                shares.join(", "),
                percentile(50).unwrap_or_default(),
                percentile(99).unwrap_or_default(),
                percentile(100).unwrap_or_default()
            ),
        }
    }

    /// The reads that so many of a hundred answers need at the most.
    fn reads_of_percent(&self, percent: u64) -> u64 {
        let sum: u64 = self.times.values().sum();
        let mut seen = 0_u64;
        for (reads, times) in &self.times {
            seen = seen.saturating_add(*times);
            if seen.saturating_mul(100) >= sum.saturating_mul(percent) {
                return *reads;
            }
        }
        0
    }
}

/// What a disk was asked for.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn reset(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

/// A folder none of whose data is ever in memory.
#[derive(Debug)]
struct ColdDisk {
    folder: Folder,
    counts: Arc<Counts>,
}

/// A file none of whose data is ever in memory.
#[derive(Debug)]
struct ColdFile {
    file: Arc<dyn DataFile>,
    counts: Arc<Counts>,
}

impl DataFile for ColdFile {
    fn place(&self) -> &str {
        self.file.place()
    }

    fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    fn read_at(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<(), DiskError> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = range.end.saturating_sub(range.start);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.file.read_at(range, buffer)
    }

    fn read_now(&self, _range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        buffer.clear();
        Ok(CachedRead::WouldBlock)
    }
}

impl Disk for ColdDisk {
    fn place(&self) -> String {
        self.folder.place()
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.folder.list()
    }

    fn file_bytes(&self, name: &str) -> Result<u64, DiskError> {
        self.folder.file_bytes(name)
    }

    fn version(&self, name: &str) -> Result<FileVersion, DiskError> {
        self.folder.version(name)
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.folder.read(name, bytes_max)
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, DiskError> {
        self.folder.read_range(name, range)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError> {
        Ok(Arc::new(ColdFile { file: self.folder.open(name)?, counts: Arc::clone(&self.counts) }))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.folder.write(name, bytes)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.folder.append(name, bytes)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.folder.rename(from, to)
    }

    fn fsync_folder(&self) -> Result<(), DiskError> {
        self.folder.fsync_folder()
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.folder.remove(name)
    }

    fn lock(&self, name: &str) -> Result<LockGuard, DiskError> {
        self.folder.lock(name)
    }
}

#[cfg(test)]
mod tests {
    use pool::threads_default;

    use super::*;
    use crate::anatomy::Anatomy;
    use crate::archives::make_sample;
    use crate::keys::read_keys;

    #[test]
    fn a_small_store_is_weighed_whole_and_answers_with_few_reads() {
        let work = tempfile::tempdir().unwrap();
        let file = make_sample(&work.path().join("archive"), 20).unwrap();
        let (range, keys) = read_keys(&file, 1000).unwrap();
        assert!(range.count() < 20 && keys.len() >= 1000);
        let folder = BenchFolder::at(work.path().join("data"));
        folder.import(&file, Some(range), threads_default()).unwrap();
        let anatomy = Anatomy::of(&folder).unwrap();
        assert_eq!(anatomy.bytes(), folder.bytes().unwrap());
        assert_eq!(anatomy.transaction_count, count(&keys));
        let [by_hash, by_place] = reads_per_answer("sample", &folder, &keys).unwrap();
        assert!(by_hash.value >= 2.0 && by_hash.value <= 3.0, "{by_hash:?}");
        assert!(by_place.value >= 1.0 && by_place.value <= 2.0, "{by_place:?}");
    }

    #[test]
    fn the_reads_of_nearly_all_answers_are_told() {
        let tally = |times: &[(u64, u64)]| ReadTally {
            times: times.iter().copied().collect(),
            bytes: Vec::new(),
        };
        assert_eq!(tally(&[(2, 990), (3, 10)]).reads_of_percent(99), 2);
        assert_eq!(tally(&[(2, 989), (3, 11)]).reads_of_percent(99), 3);
        assert_eq!(tally(&[]).reads_of_percent(99), 0);
    }
}
