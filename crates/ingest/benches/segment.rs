//! How many bytes a segment takes beside the archive it was made from, and what a warm read costs.
//!
//!     cargo bench -p quipu-ingest --bench segment [-- ARCHIVE...]
//!
//! Without arguments it takes a sample chain with mainnet's payload sizes, whose density says
//! little: its senders and amounts are random. Times are CPU time of one thread, on
//! average, with all bytes in memory.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark reports and gives up")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, keccak256};
use archive::{Archive, ArchiveError, ArchiveWriter, Format, WriteError};
use chain::trust::Anchors;
use chain::{Block, BlockNumber, BlockRange, ChainSpec, Verified, keccak256_each};
use ingest::prove::{NO_POINTS, NoProgress, Prover};
use pool::threads_default;
use sample::{NETWORK_NAME, Payload, SampleSettings, generate};
use segment::index::{
    IndexKey, KeyKind, OrdinalsBuilder, Position, PostingsBuilder, Run, RunSpan, RunSubject,
};
use segment::{
    Census, Encoder, FOOTER_BYTES, Footer, Inflater, PagePlace, RowParts, RowPlace, Rows, RowsRoom,
    SLOT_BLOCKS, Segment, SegmentWriter, Tables, TxOrdinal, count_block, groups, is_counted,
};

/// Long beside the steps in which CPU time is told.
const MEASURED_MIN: Duration = Duration::from_millis(400);
/// Reads in a round; a prime stride walks all rows in no order that caches like.
const READS: u64 = 4_000;
const STRIDE: u64 = 7_919;

fn main() {
    let paths: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    if paths.is_empty() {
        let folder = std::env::temp_dir().join(format!("quipu-bench-{}", std::process::id()));
        measure(&make_sample(&folder));
        let _ = std::fs::remove_dir_all(&folder);
    }
    for path in &paths {
        measure(path);
    }
}

fn make_sample(folder: &Path) -> PathBuf {
    let settings = SampleSettings {
        seed: 1,
        block_count: 200,
        txs_per_block: 200,
        payload: Payload::Mainnet,
        ..SampleSettings::default()
    };
    let mut writer = ArchiveWriter::create(folder, NETWORK_NAME, Format::Ere).expect("a folder");
    let made: Result<(), WriteError> =
        generate(&settings, threads_default(), |candidate| writer.push(&candidate));
    made.expect("the sample chain can be written");
    let written = writer.finish().expect("the archive can be written");
    written.first().expect("one archive").path.clone()
}

fn measure(path: &Path) {
    let archive = Archive::open(path).expect("an archive");
    let (spec, anchors) = (ChainSpec::bare("bench", None, None), Anchors::none());
    let (threads, progress, points) = (threads_default(), &NoProgress, NO_POINTS);
    let mut blocks: Vec<Verified<Block>> = Vec::new();
    Prover { spec: &spec, anchors: &anchors, threads, progress, points }
        .prove_each(
            &archive,
            |block| block,
            |block| -> Result<(), ArchiveError> {
                blocks.push(block);
                Ok(())
            },
        )
        .expect("a true archive");
    let bytes = write(&blocks);
    let counting = cost(|| {
        std::hint::black_box(count(&blocks));
    });
    let writing = cost(|| {
        std::hint::black_box(write(&blocks));
    });
    let recovery = cost(|| recover(&blocks));
    let stored = Stored::open(bytes, &blocks);
    let count = stored.segment.facts().transaction_count;
    println!("{}: {} blocks, {count} transactions", path.display(), blocks.len());
    report_bytes(&stored, archive.bytes_count(), count);
    println!("  encoding, both passes      {:>8.2} us a transaction", micros(writing, count));
    println!("  of which the first         {:>8.2} us a transaction", micros(counting, count));
    println!("  bare sender recovery       {:>8.2} us a transaction", micros(recovery, count));
    println!("  encoding / recovery        {:>8.2}", micros(writing, 1) / micros(recovery, 1));
    report_reads(&stored, count);
    report_blocks(&stored, &blocks);
    report_log_index(&blocks, count);
}

/// The posting lists of all logs, as the one file of their slot; with those of senders and recipients
/// if they are wanted.
fn log_index(blocks: &[Verified<Block>], has_accounts: bool) -> Vec<u8> {
    let first = blocks.first().expect("blocks").header.number;
    let mut builder = PostingsBuilder::new(first / SLOT_BLOCKS);
    for block in blocks {
        builder.push_logs(block).expect("blocks of one slot");
        let number = block.header.number;
        for (transaction, index) in block.transactions.iter().zip(0..).filter(|_| has_accounts) {
            let sender = IndexKey::of(KeyKind::Sender, transaction.sender.as_slice());
            builder.push(sender, number, index).expect("blocks of one slot");
            if let Some(to) = alloy_consensus::Transaction::to(&transaction.envelope) {
                let recipient = IndexKey::of(KeyKind::Recipient, to.as_slice());
                builder.push(recipient, number, index).expect("blocks of one slot");
            }
        }
    }
    builder.finish().expect("few postings")
}

fn report_log_index(blocks: &[Verified<Block>], transaction_count: u64) {
    let receipts = blocks.iter().flat_map(|block| block.receipts.iter().flatten());
    let log_count: u64 = receipts.map(|receipt| length(&receipt.fields.logs)).sum();
    let file = log_index(blocks, false);
    let bytes = length(&file);
    let run = Run::from_file(&file).expect("sound");
    let building = cost(|| {
        std::hint::black_box(log_index(blocks, false));
    });
    let a_log = |count: u64| per(count, log_count);
    println!(
        "  log index                  {:>8.2} bytes a log: {log_count} logs, {:.2} postings and \
         {:.2} keys a log",
        a_log(bytes),
        a_log(run.item_count()),
        a_log(run.key_count()),
    );
    let with_accounts = length(&log_index(blocks, true));
    println!("  with senders, recipients   {:>8.2} bytes a log", a_log(with_accounts));
    println!(
        "  building it                {:>8.2} us a transaction",
        micros(building, transaction_count)
    );
}

/// The senders of all transactions: the limit beside which importing is measured.
fn recover(blocks: &[Verified<Block>]) {
    for transaction in blocks.iter().flat_map(|block| &block.transactions) {
        let envelope = &transaction.envelope;
        let hash = envelope.signature_hash();
        let sender = envelope.signature().recover_address_from_prehash(&hash);
        assert!(sender.is_ok_and(|sender| sender == transaction.sender), "proven before");
    }
}

fn range_of(blocks: &[Verified<Block>]) -> BlockRange {
    let first = blocks.first().expect("blocks").header.number;
    BlockRange::from_count(first, length(blocks)).expect("blocks")
}

fn count(blocks: &[Verified<Block>]) -> Tables {
    let (range, mut census) = (range_of(blocks), Census::default());
    for block in blocks.iter().filter(|block| is_counted(range, BlockNumber(block.header.number))) {
        count_block(&mut census, block);
    }
    census.into_tables()
}

fn write(blocks: &[Verified<Block>]) -> Vec<u8> {
    let (range, tables) = (range_of(blocks), Arc::new(count(blocks)));
    let encoder = Encoder::new(tables, true);
    let mut writer = SegmentWriter::new(range, &encoder).expect("a segment's blocks");
    let mut bytes = Vec::new();
    let mut rest = blocks;
    for group in groups(range) {
        let (own, after) = rest.split_at(usize::try_from(group.count()).expect("few"));
        rest = after;
        let group = encoder.encode_group(own).expect("blocks in order");
        bytes.extend(writer.push(group).expect("groups in order"));
    }
    bytes.extend(writer.finish().expect("zstd").0);
    bytes
}

/// A segment and its lookup run in memory.
struct Stored {
    bytes: Vec<u8>,
    segment: Segment,
    run_bytes: Vec<u8>,
    run: Run,
    hashes: Vec<B256>,
}

impl Stored {
    fn open(bytes: Vec<u8>, blocks: &[Verified<Block>]) -> Self {
        let footer_start = bytes.len() - FOOTER_BYTES;
        let footer = Footer::parse(bytes.get(footer_start..).expect("a footer")).expect("sound");
        let tail = footer.tail_range(length(&bytes)).expect("a tail");
        let mut inflater = Inflater::new().expect("zstd");
        let segment =
            Segment::open(footer, &mut inflater, slice(&bytes, &tail)).expect("a sound tail");
        let hashes: Vec<B256> = blocks
            .iter()
            .flat_map(|block| &block.transactions)
            .map(|transaction| keccak256(&transaction.encoded))
            .collect();
        let span = RunSpan::new(0, 1).expect("a slot");
        let mut builder = OrdinalsBuilder::new(RunSubject::Transactions, span);
        for (ordinal, hash) in (0..).zip(&hashes) {
            builder.push(hash, Position { slot: 0, ordinal }).expect("an ordinal");
        }
        let run_bytes = builder.finish().expect("a run");
        let run = Run::from_file(&run_bytes).expect("a sound run");
        Self { bytes, segment, run_bytes, run, hashes }
    }

    fn rows<'a>(
        &'a self,
        inflater: &mut Inflater,
        place: &PagePlace,
        room: &'a mut RowsRoom,
        wanted: RowParts,
    ) -> Rows<'a> {
        let bytes = slice(&self.bytes, &place.range);
        self.segment.open_rows(inflater, place, bytes, room, wanted).expect("a sound page")
    }

    fn row(&self, inflater: &mut Inflater, place: &RowPlace, rows: &Rows<'_>) -> segment::Row {
        let payloads = slice(&self.bytes, &self.segment.find_payloads(place, rows));
        self.segment.read_row(inflater, place, rows, payloads).expect("a sound row")
    }

    fn place(&self, ordinal: u64) -> RowPlace {
        self.segment.find_row(TxOrdinal(ordinal)).expect("an ordinal")
    }
}

fn report_bytes(stored: &Stored, archive_bytes: u64, count: u64) {
    let parts = stored.segment.part_bytes();
    let lookups = length(&stored.run_bytes);
    let total = length(&stored.bytes) + lookups;
    for (what, bytes) in [
        ("transactions", parts.transactions),
        ("receipts", parts.receipts),
        ("long call data", parts.transaction_payloads),
        ("long log data", parts.receipt_payloads),
        ("headers", parts.headers),
        ("ommers and withdrawals", parts.others),
        ("directory and tables", parts.tail),
        ("lookup by hash", lookups),
        ("all", total),
    ] {
        println!("  {what:<26} {bytes:>9} bytes  {:>7.1} a transaction", per(bytes, count));
    }
    println!("  archive                    {archive_bytes:>9} bytes");
    println!("  all / archive              {:>13.3}", per(total, archive_bytes));
}

fn report_reads(stored: &Stored, count: u64) {
    let mut room = RowsRoom::default();
    let inflater = &mut Inflater::new().expect("zstd");
    let ordinals = || (0..READS).map(|read| read * STRIDE % count);
    let by_position = cost(|| {
        for ordinal in ordinals() {
            let place = stored.place(ordinal);
            let rows = stored.rows(inflater, &place.page, &mut room, RowParts::Transaction);
            std::hint::black_box(stored.row(inflater, &place, &rows));
        }
    });
    println!("  read by position           {:>8.2} us", micros(by_position, READS));
    let by_hash = cost(|| {
        for ordinal in ordinals() {
            let position = usize::try_from(ordinal).expect("a position");
            let hash = stored.hashes.get(position).expect("a hash");
            let bucket =
                slice(&stored.run_bytes, &stored.run.bucket_range(IndexKey::of_hash(hash)));
            let found = stored.run.probe(IndexKey::of_hash(hash), bucket).expect("a sound bucket");
            let is_proven = found.into_iter().any(|position| {
                let place = stored.place(position.ordinal.into());
                let rows = stored.rows(inflater, &place.page, &mut room, RowParts::Transaction);
                let row = stored.row(inflater, &place, &rows);
                keccak256(row.view().encoded) == *hash
            });
            assert!(is_proven, "every hash is found");
        }
    });
    println!("  read by hash, proven       {:>8.2} us", micros(by_hash, READS));
    let with_bloom = cost(|| {
        for ordinal in ordinals() {
            let place = stored.place(ordinal);
            let rows = stored.rows(inflater, &place.page, &mut room, RowParts::Receipt);
            let row = stored.row(inflater, &place, &rows);
            std::hint::black_box(stored.segment.position_of(&place, &rows).expect("a row"));
            std::hint::black_box(row.view().receipt.expect("a receipt").bloom());
        }
    });
    println!("  receipt with bloom         {:>8.2} us", micros(with_bloom, READS));
}

/// Whole blocks, page after page, with the hash of every transaction.
fn report_blocks(stored: &Stored, blocks: &[Verified<Block>]) {
    let inflater = &mut Inflater::new().expect("zstd");
    let largest = blocks.iter().max_by_key(|block| block.transactions.len()).expect("blocks");
    let number = largest.header.number;
    let mut read = |has_blooms: bool| {
        let place = stored.segment.find_block(BlockNumber(number)).expect("a block");
        let bytes = slice(&stored.bytes, &place.range);
        let wanted = if has_blooms { RowParts::Receipt } else { RowParts::Transaction };
        let rows = stored.segment.read_block(inflater, &place, bytes, wanted).expect("sound pages");
        if has_blooms {
            std::hint::black_box(rows.blooms());
        }
        let encoded: Vec<_> = rows.iter().map(|row| row.encoded).collect();
        std::hint::black_box(keccak256_each(&encoded));
    };
    let count = largest.transactions.len();
    let plain = cost(|| read(false));
    println!("  block of {count:<4} transactions {:>8.2} us", micros(plain, 1));
    let with_blooms = cost(|| read(true));
    println!("  the same with blooms       {:>8.2} us", micros(with_blooms, 1));
    let encoded: Vec<_> = largest.transactions.iter().map(|tx| tx.encoded.clone()).collect();
    let one_by_one = cost(|| {
        for transaction in &encoded {
            std::hint::black_box(keccak256(transaction));
        }
    });
    let together = cost(|| {
        std::hint::black_box(keccak256_each(&encoded));
    });
    println!("  their hashes one by one    {:>8.2} us", micros(one_by_one, 1));
    println!("  their hashes side by side  {:>8.2} us", micros(together, 1));
}

/// What a round costs on average.
fn cost(mut round: impl FnMut()) -> Duration {
    round();
    let begun = on_cpu();
    for count in 1_u32.. {
        round();
        let passed = on_cpu().saturating_sub(begun);
        if passed >= MEASURED_MIN {
            return passed / count;
        }
    }
    Duration::ZERO
}

/// How long this thread has run, where Linux tells: others on the machine do not count. It is
/// told in steps of a few milliseconds.
fn on_cpu() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn micros(time: Duration, count: u64) -> f64 {
    per(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), count) / 1000.0
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
fn per(amount: u64, count: u64) -> f64 {
    amount as f64 / count.max(1) as f64
}

fn length<T>(bytes: &[T]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn slice<'a>(bytes: &'a [u8], range: &std::ops::Range<u64>) -> &'a [u8] {
    let start = usize::try_from(range.start).expect("an offset");
    let end = usize::try_from(range.end).expect("an offset");
    bytes.get(start..end).expect("inside the file")
}
