//! How fast archives are proven beside the bare recovery of the same senders, and the sample
//! chain made beside the bare signing of as many messages.
//!
//!     cargo bench -p quipu-ingest [-- ARCHIVE...]
//!
//! Without arguments it makes and proves a sample chain of full blocks with mainnet's payload
//! sizes. The contestants take turns in one run; the tables show ratios of medians, which mean
//! something on a noisy machine where seconds do not, and of the best rounds, which noise can only
//! make worse.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark reports and gives up")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U256};
use archive::{Archive, ArchiveError, ArchiveWriter, FileBytes, Format, WriteError};
use chain::ChainSpec;
use chain::trust::Anchors;
use ingest::prove::{NO_POINTS, NoProgress, Prover};
use pool::{map_in_order, threads_default};
use sample::{NETWORK_NAME, Payload, SampleSettings, generate};

const ROUNDS: usize = 11;
const SAMPLE_ROUNDS: usize = 3;
/// Signatures in one piece of work.
const SIGN_PIECE: usize = 100;

type Transactions = Vec<chain::Transaction>;

fn main() {
    let paths: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    println!("{ROUNDS} rounds, contestants alternating");
    if paths.is_empty() {
        let folder = std::env::temp_dir().join(format!("quipu-bench-{}", std::process::id()));
        let path = make_sample(&folder);
        measure(&path);
        let _ = std::fs::remove_dir_all(&folder);
    }
    for path in &paths {
        measure(path);
    }
}

/// Makes the sample chain in turns with bare signing; the last one stays.
fn make_sample(folder: &Path) -> PathBuf {
    let mut times: [Vec<Duration>; 2] = Default::default();
    let mut made = (PathBuf::new(), 0);
    for _ in 0..SAMPLE_ROUNDS {
        let begun = Instant::now();
        made = write_sample(folder);
        let [making, signing] = &mut times;
        making.push(begun.elapsed());
        let begun = Instant::now();
        sign(made.1);
        signing.push(begun.elapsed());
    }
    let (path, count) = made;
    let [making, signing] = times.map(Times::of);
    println!("sample chain of {count} transactions, {} threads", threads_default());
    println!("  bare signing              {:>8} signatures/s", rate(count, signing.median));
    println!("  made, written as ere      {:>8} transactions/s", rate(count, making.median));
    compare("made / bare signing", &making, &signing);
    path
}

fn write_sample(folder: &Path) -> (PathBuf, usize) {
    let settings = SampleSettings {
        seed: 1,
        block_count: 160,
        txs_per_block: 200,
        payload: Payload::Mainnet,
        ..SampleSettings::default()
    };
    let mut writer =
        ArchiveWriter::create(folder, NETWORK_NAME, Format::Ere).expect("a folder to write in");
    let mut transaction_count = 0;
    let made: Result<(), WriteError> = generate(&settings, threads_default(), |candidate| {
        transaction_count += candidate.body.transactions.len();
        writer.push(&candidate)
    });
    made.expect("the sample chain can be written");
    let written = writer.finish().expect("the archive can be written");
    (written.first().expect("one archive").path.clone(), transaction_count)
}

fn sign(count: usize) {
    let messages = 0..u64::try_from(count).unwrap_or(u64::MAX);
    let pieces: Vec<u64> = messages.step_by(SIGN_PIECE).collect();
    let ended: ControlFlow<()> = map_in_order(
        threads_default(),
        pieces.into_iter(),
        |first| {
            for message in (first..).take(SIGN_PIECE) {
                let hash = B256::from(U256::from(message));
                chain::sign(B256::repeat_byte(1), hash).expect("a valid key");
            }
        },
        |()| ControlFlow::Continue(()),
    );
    assert!(ended.is_continue());
}

fn measure(path: &Path) {
    let archive = Archive::open(path).expect("an archive");
    let spec = ChainSpec::bare("bench", None, None);
    let anchors = Anchors::none();
    let (progress, points) = (&NoProgress, NO_POINTS);
    let prover = |threads| Prover { spec: &spec, anchors: &anchors, threads, progress, points };
    let mut blocks: Vec<Transactions> = Vec::new();
    let report = prover(NonZeroUsize::MIN)
        .prove_each(
            &archive,
            |block| block.into_inner().transactions,
            |list| -> Result<(), ArchiveError> {
                blocks.push(list);
                Ok(())
            },
        )
        .expect("a true archive");
    println!(
        "{}: {} blocks, {} transactions, {} bytes",
        path.display(),
        blocks.len(),
        report.transaction_count,
        archive.bytes_count()
    );
    let two = NonZeroUsize::MIN.saturating_add(1);
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let contestants: [&dyn Fn(); 4] = [
            &|| recover(&blocks, NonZeroUsize::MIN),
            &|| prove(&archive, &prover(NonZeroUsize::MIN)),
            &|| recover(&blocks, two),
            &|| prove(&archive, &prover(two)),
        ];
        for (contestant, times) in contestants.iter().zip(&mut times) {
            let begun = Instant::now();
            contestant();
            times.push(begun.elapsed());
        }
    }
    let [bare_1, prove_1, bare_2, prove_2] = times.map(Times::of);
    let count = usize::try_from(report.transaction_count).unwrap_or(usize::MAX);
    for (what, times) in [
        ("bare recovery, 1 thread", &bare_1),
        ("proving, 1 thread", &prove_1),
        ("bare recovery, 2 threads", &bare_2),
        ("proving, 2 threads", &prove_2),
    ] {
        let (transactions, blocks) = (rate(count, times.median), rate(blocks.len(), times.median));
        println!("  {what:<25} {transactions:>8} transactions/s  {blocks:>6} blocks/s");
    }
    compare("proving / bare recovery, 1 thread", &prove_1, &bare_1);
    compare("proving / bare recovery, 2 threads", &prove_2, &bare_2);
    compare("proving, 2 threads / 1 thread", &prove_2, &prove_1);
    compare("bare recovery, 2 threads / 1 thread", &bare_2, &bare_1);
}

fn prove(archive: &Archive<FileBytes>, prover: &Prover<'_>) {
    prover.prove(archive).expect("a true archive");
}

fn recover(blocks: &[Transactions], threads: NonZeroUsize) {
    let ended: ControlFlow<()> = map_in_order(
        threads,
        blocks.iter(),
        |transactions| {
            for transaction in transactions {
                let envelope = &transaction.envelope;
                let hash = envelope.signature_hash();
                let sender = envelope.signature().recover_address_from_prehash(&hash);
                assert_eq!(sender.ok(), Some(transaction.sender));
            }
        },
        |()| ControlFlow::Continue(()),
    );
    assert!(ended.is_continue());
}

/// What the rounds of one contestant took.
struct Times {
    median: Duration,
    best: Duration,
}

impl Times {
    fn of(mut rounds: Vec<Duration>) -> Self {
        rounds.sort();
        let median = rounds.get(rounds.len() / 2).copied().unwrap_or_default();
        Self { median, best: rounds.first().copied().unwrap_or_default() }
    }
}

/// Prints how fast one contestant is as a share of another.
fn compare(what: &str, one: &Times, other: &Times) {
    let ratio = |one: Duration, other: Duration| other.as_secs_f64() / one.as_secs_f64();
    println!(
        "  {what:<36} median {:.2}  best {:.2}",
        ratio(one.median, other.median),
        ratio(one.best, other.best)
    );
}

fn rate(count: usize, time: Duration) -> u128 {
    u128::try_from(count).unwrap_or_default() * 1_000_000 / time.as_micros().max(1)
}
