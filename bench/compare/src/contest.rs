//! The contest: the same rows and hashes in all stores, the same keys asked by turns.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy_primitives::keccak256;
use anyhow::{Context as _, Result, ensure};
use bench_store::anatomy::Anatomy;
use bench_store::archives::ArchiveFile;
use bench_store::clock::thread_cpu;
use bench_store::figure::{Figure, FigureUnit, Goal, ratio};
use bench_store::folder::BenchFolder;
use bench_store::keys::{Key, read_keys};
use bench_store::questions::warm_reads::micros;
use bench_store::random::Random;
use store::read::block_on;
use store::{Reader, RowParts, View};

use crate::contents::{Contents, transaction_of};
use crate::rival::{Loaded, Rival, timed};
use crate::rival_rocksdb::Compression;
use crate::{ours, rival_redb, rival_rocksdb};

/// Rounds of which the quickest counts; the stores take turns.
const ROUNDS: usize = 7;
/// Reads in a round.
const READS: usize = 20_000;
/// Rows that are compared byte for byte before anything is timed.
const CHECKED: usize = 1_000;
/// Bytes of a whole hash: no index that holds them can be smaller.
const HASH_BYTES: u64 = 32;

/// What a read begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Hash,
    Place,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Hash => "row_by_hash_cpu",
            Self::Place => "row_by_place_cpu",
        }
    }

    fn question(self) -> &'static str {
        match self {
            Self::Hash => "CPU of a row by hash, proven",
            Self::Place => "CPU of a row by place",
        }
    }
}

/// Fills all stores with one archive, asks them, and gives the figures.
pub(crate) fn hold(file: &ArchiveFile, work: &Path, say: &dyn Fn(&str)) -> Result<Vec<Figure>> {
    let (_, keys) = read_keys(file, u64::MAX)?;
    let of = format!("{}, {} tx", file.title, keys.len());
    say("proving blocks and building ours");
    let folder = BenchFolder::at(work.join("ours"));
    let our_time = ours::build(file, &folder)?;
    let view = folder.view()?;
    let contents = Contents::read(&view, keys)?;
    let place = |name: &str| -> Result<PathBuf> {
        let path = work.join(name);
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(path)
    };
    say("loading redb");
    let redb = rival_redb::load(&contents, &place("redb")?)?;
    say("loading RocksDB");
    let rocks = rival_rocksdb::load(&contents, &place("rocks")?, Compression::Rows)?;
    say("loading RocksDB with compressed blocks");
    let blocks = rival_rocksdb::load(&contents, &place("blocks")?, Compression::Blocks)?;
    let mut rivals = [redb, rocks, blocks];
    for rival in &mut rivals {
        check(&contents, rival)?;
    }
    say("loading indexes of eight bytes of each hash");
    let short = [
        ("redb", rival_redb::short_index_bytes(&contents, &place("redb")?)?),
        (
            "RocksDB, its own zstd",
            rival_rocksdb::short_index_bytes(&contents, &place("blocks")?, Compression::Blocks)?,
        ),
    ];
    let bench = Bench { of, anatomy: Anatomy::of(&folder)?, contents, view };
    let mut figures = bench.index_bytes(&rivals, &short);
    figures.extend(bench.row_bytes(&rivals));
    figures.extend(bench.build_times(our_time, &rivals));
    say("asking all of them by turns");
    figures.extend(bench.read_times(&mut rivals)?);
    drop((bench, rivals));
    for name in ["ours", "redb", "rocks", "blocks"] {
        std::fs::remove_dir_all(work.join(name)).with_context(|| name)?;
    }
    Ok(figures)
}

/// Whether a rival has what we have.
fn check(contents: &Contents, rival: &mut Loaded) -> Result<()> {
    let rows: Vec<(&Key, &[u8])> = contents.keys().iter().zip(contents.rows()).collect();
    let mut row = Vec::new();
    for (key, expected) in Random::default().pick(&rows, CHECKED) {
        let ordinal = rival.store.find(&key.hash.0)?;
        let ordinal = ordinal.with_context(|| format!("{} has no {}", rival.title, key.hash))?;
        rival.store.read(ordinal, &mut row)?;
        ensure!(row == *expected, "{} gives another row for {}", rival.title, key.hash);
    }
    ensure!(rival.store.find(&[7; 32])?.is_none(), "{} finds what is not there", rival.title);
    Ok(())
}

/// Our store filled, and what the others were filled with.
struct Bench {
    of: String,
    anatomy: Anatomy,
    contents: Contents,
    view: std::sync::Arc<View>,
}

impl Bench {
    fn index_bytes(&self, rivals: &[Loaded], short: &[(&str, u64)]) -> Vec<Figure> {
        let ours = self.anatomy.transaction_lookups;
        let mut figures = vec![self.bytes("index_bytes", "index: ours", ours)];
        for rival in rivals {
            let question = format!("index: {}", rival.title);
            figures.push(self.bytes("index_bytes", &question, rival.index.bytes));
        }
        for (title, bytes) in short {
            let question = format!("index of 8 bytes of each hash: {title}");
            figures.push(self.bytes("short_index_bytes", &question, *bytes));
        }
        let beside = |name, question: &str, theirs: Option<u64>, goal, note: String| Figure {
            name,
            question: question.to_owned(),
            of: self.of.clone(),
            value: ratio(ours, theirs.unwrap_or_default()),
            unit: FigureUnit::Ratio,
            goal,
            note,
        };
        let bare = ratio(ours, HASH_BYTES.saturating_mul(self.anatomy.transaction_count));
        figures.push(beside(
            "index_bytes_beside_rivals",
            "our index / the smallest of theirs",
            rivals.iter().map(|rival| rival.index.bytes).min(),
            Goal::at_most(0.2, 0.2),
            format!(
                "theirs hold whole hashes, ours proves each find by hashing the row; beside a bare \
                 list of hashes {bare:.4}"
            ),
        ));
        figures.push(beside(
            "index_bytes_beside_short",
            "our index / the smallest of 8 bytes of each hash",
            short.iter().map(|(_, bytes)| *bytes).min(),
            None,
            "a rival that leaves the proof to the row too".to_owned(),
        ));
        figures
    }

    fn row_bytes(&self, rivals: &[Loaded]) -> Vec<Figure> {
        let parts = &self.anatomy;
        let ours = [parts.rows, parts.payloads, parts.tails, parts.footers].iter().sum();
        let plain = ratio(self.contents.plain_bytes(), parts.transaction_count);
        let mut figures = vec![Figure {
            note: format!(
                "with long payloads, directories and tables; not compressed {plain:.1} bytes a row"
            ),
            ..self.bytes("row_bytes", "rows: ours", ours)
        }];
        for rival in rivals {
            let question = format!("rows: {}", rival.title);
            figures.push(self.bytes("row_bytes", &question, rival.rows.bytes));
        }
        figures
    }

    fn build_times(&self, ours: Duration, rivals: &[Loaded]) -> Vec<Figure> {
        let name = "build_cpu";
        let note = "one thread, from proven blocks, hashing each transaction; durable";
        let mut figures = vec![self.time(name, "CPU of building: ours", ours, note.to_owned())];
        for rival in rivals {
            let question = format!("CPU of building: {}", rival.title);
            let spent = rival.index.spent.saturating_add(rival.rows.spent);
            let note = format!("of which the index {:.2} us", self.each(rival.index.spent));
            figures.push(self.time(name, &question, spent, note));
        }
        figures
    }

    /// The least CPU time of each, in rounds by turns.
    fn read_times(&self, rivals: &mut [Loaded]) -> Result<Vec<Figure>> {
        let ordinals: Vec<(u64, Key)> = (0..).zip(self.contents.keys().iter().copied()).collect();
        let picks = Random::default().pick(&ordinals, READS);
        let mut reader = Reader::new()?;
        let mut least: BTreeMap<(By, usize), (&'static str, Duration)> = BTreeMap::new();
        // The first round only warms up.
        for round in 0..=ROUNDS {
            let mut note = |by, place, title, time: Duration| {
                let (_, known) = least.entry((by, place)).or_insert((title, Duration::MAX));
                *known = if round == 0 { *known } else { time.min(*known) };
            };
            for by in [By::Hash, By::Place] {
                let mut ask = |wanted| {
                    timed(thread_cpu, || ask_ours(&self.view, &mut reader, by, wanted, &picks))
                };
                note(by, 0, "ours", ask(RowParts::Receipt)?);
                note(by, 1, "ours, without receipt", ask(RowParts::Transaction)?);
                for (place, rival) in (2..).zip(&mut *rivals) {
                    let store = &mut *rival.store;
                    let time = timed(thread_cpu, || ask_rival(store, by, &picks))?;
                    note(by, place, rival.title, time);
                }
            }
        }
        let figures = least.into_iter().map(|((by, _), (title, time))| Figure {
            name: by.name(),
            question: format!("{}: {title}", by.question()),
            of: self.of.clone(),
            value: micros(time, picks.len()),
            unit: FigureUnit::Micros,
            goal: None,
            note: String::new(),
        });
        Ok(figures.collect())
    }

    fn bytes(&self, name: &'static str, question: &str, bytes: u64) -> Figure {
        Figure {
            name,
            question: question.to_owned(),
            of: self.of.clone(),
            value: ratio(bytes, self.anatomy.transaction_count),
            unit: FigureUnit::BytesPerTx,
            goal: None,
            note: String::new(),
        }
    }

    fn time(&self, name: &'static str, question: &str, spent: Duration, note: String) -> Figure {
        let value = self.each(spent);
        let (question, of) = (question.to_owned(), self.of.clone());
        Figure { name, question, of, value, unit: FigureUnit::Micros, goal: None, note }
    }

    fn each(&self, spent: Duration) -> f64 {
        micros(spent, self.contents.keys().len())
    }
}

/// Ours gives a row taken apart, with or without its receipt; by hash, it proves it itself.
fn ask_ours(
    view: &View,
    reader: &mut Reader,
    by: By,
    wanted: RowParts,
    picks: &[&(u64, Key)],
) -> Result<()> {
    for (_, key) in picks {
        let found = match by {
            By::Hash => block_on(view.find_transaction(reader, key.hash, wanted))?,
            By::Place => block_on(view.read_transaction(reader, key.number, key.index, wanted))?,
        };
        let found = found.with_context(|| format!("{} is not found", key.hash))?;
        let is_right = (found.block.number, found.index) == (key.number, key.index);
        ensure!(is_right, "{} is elsewhere", key.hash);
        black_box(found);
    }
    Ok(())
}

/// Rivals give the bytes of a row, not taken apart; by hash, they are proven as ours are.
fn ask_rival(store: &mut dyn Rival, by: By, picks: &[&(u64, Key)]) -> Result<()> {
    let mut row = Vec::new();
    for (place, key) in picks {
        let ordinal = match by {
            By::Hash => store.find(&key.hash.0)?,
            By::Place => Some(*place),
        };
        let ordinal = ordinal.with_context(|| format!("{} is not found", key.hash))?;
        store.read(ordinal, &mut row)?;
        if by == By::Hash {
            ensure!(keccak256(transaction_of(&row)?) == key.hash, "{} is elsewhere", key.hash);
        }
        black_box(&row);
    }
    Ok(())
}
