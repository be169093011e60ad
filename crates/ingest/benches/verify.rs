//! How fast archives are proven beside the bare recovery of the same senders, and the sample
//! chain made beside the bare signing of as many messages.
//!
//!     cargo bench -p ingest [-- ARCHIVE...]
//!
//! Without arguments it makes and proves a sample chain of full blocks with mainnet's payload
//! sizes. The contestants take turns in one run; the tables show medians and their ratios, which
//! mean something on a noisy machine where seconds do not.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark reports and gives up")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_primitives::{B256, U256};
use chain::ChainSpec;
use chain::trust::Anchors;
use ingest::archive::{Archive, ArchiveWriter, FileBytes, Format, WriteError};
use ingest::pool::{map_in_order, threads_default};
use ingest::prove::{Prover, Unwatched};
use ingest::sample::{NETWORK_NAME, Payload, Settings, generate};

const ROUNDS: usize = 7;
const SAMPLE_ROUNDS: usize = 3;
/// Signatures in one piece of work.
const SIGN_PIECE: usize = 100;

type Transactions = Vec<chain::Transaction>;

fn main() {
    let paths: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    println!("{ROUNDS} rounds, contestants alternating, medians");
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
    let [making, signing] = times.map(median);
    println!("sample chain of {count} transactions, {} threads", threads_default());
    println!("  bare signing              {:>8} signatures/s", rate(count, signing));
    println!("  made, written as ere      {:>8} transactions/s", rate(count, making));
    println!("  made / bare signing                 {:.2}", ratio(signing, making));
    path
}

fn write_sample(folder: &Path) -> (PathBuf, usize) {
    let settings =
        Settings { seed: 1, block_count: 300, txs_per_block: 200, payload: Payload::Mainnet };
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
                sign_message(B256::repeat_byte(1), hash).expect("a valid key");
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
    let prover = |threads| Prover { spec: &spec, anchors: &anchors, threads, progress: &Unwatched };
    let mut blocks: Vec<Transactions> = Vec::new();
    let report = prover(NonZeroUsize::MIN)
        .prove_each(&archive, |block| block.into_inner().transactions, |list| blocks.push(list))
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
    let [bare_1, prove_1, bare_2, prove_2] = times.map(median);
    let count = usize::try_from(report.transaction_count).unwrap_or(usize::MAX);
    for (what, time) in [
        ("bare recovery, 1 thread", bare_1),
        ("proving,       1 thread", prove_1),
        ("bare recovery, 2 threads", bare_2),
        ("proving,       2 threads", prove_2),
    ] {
        println!(
            "  {what:<25} {:>8} transactions/s  {:>6} blocks/s",
            rate(count, time),
            rate(blocks.len(), time)
        );
    }
    println!("  proving / bare recovery, 1 thread   {:.2}", ratio(bare_1, prove_1));
    println!("  proving / bare recovery, 2 threads  {:.2}", ratio(bare_2, prove_2));
    println!("  proving, 2 threads / 1 thread       {:.2}", ratio(prove_1, prove_2));
    println!("  bare recovery, 2 threads / 1 thread {:.2}", ratio(bare_1, bare_2));
}

fn prove(archive: &Archive<FileBytes>, prover: &Prover<'_>) {
    prover.prove(archive).expect("a true archive");
}

fn recover(blocks: &[Transactions], threads: NonZeroUsize) {
    let ended: ControlFlow<()> = map_in_order(
        threads,
        blocks.iter(),
        |transactions| {
            let mut buffer = Vec::new();
            for transaction in transactions {
                let sender = transaction.envelope.recover_unchecked_with_buf(&mut buffer);
                assert_eq!(sender.ok(), Some(transaction.sender));
            }
        },
        |()| ControlFlow::Continue(()),
    );
    assert!(ended.is_continue());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ratio(numerator: Duration, denominator: Duration) -> f64 {
    numerator.as_secs_f64() / denominator.as_secs_f64()
}

fn rate(count: usize, time: Duration) -> u128 {
    u128::try_from(count).unwrap_or_default() * 1_000_000 / time.as_micros().max(1)
}
