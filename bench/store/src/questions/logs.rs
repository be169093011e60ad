//! How fast are logs found, and what does their index take?
//!
//! Every question goes through the JSON-RPC service without its cache and takes CPU time of the
//! thread, warm. A sparse filter asks for a topic that some ten logs of the chain have; the same
//! filter by a look at every log of the range, without an index, stands beside it. A dense filter asks
//! for the topic that most logs have, a range at a time that one answer holds, and stands beside the
//! receipts of the same blocks.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use anyhow::{Context as _, Result, ensure};
use chain::{BlockNumber, BlockRange};
use rpc::{Service, ServiceSettings};
use serde_json::{Value, json};
use store::disk::Folder;
use store::read::{Inline, block_on};
use store::{Limits, Reader, RowParts, Store, View};
use tokio::runtime::Runtime;

use crate::anatomy::Anatomy;
use crate::archives::{ArchiveFile, RELINKED, RELINKED_8K, find_real};
use crate::clock::{least_cpu, median, process_cpu};
use crate::figure::{Figure, FigureUnit, Goal, ratio};
use crate::folder::BenchFolder;
use crate::questions::cold_reads::reads_per_search;

/// How many logs a sparse filter finds.
const SPARSE: std::ops::RangeInclusive<u64> = 8..=12;
/// Sparse filters that are asked.
const SPARSE_FILTERS: usize = 20;
const ROUNDS: usize = 5;
/// Rounds of imports with an index and without.
const IMPORT_ROUNDS: usize = 5;
/// An answer is made well within it.
const ANSWER_TIME: Duration = Duration::from_mins(1);
/// Blocks whose receipts and logs are asked for.
const DENSE_BLOCKS: u64 = 200;

/// What the index takes for each log of the real chains that are at hand.
pub fn index_bytes_of_real_chains(data: &Path, work: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for name in [RELINKED, RELINKED_8K] {
        let Some(file) = find_real(data, name) else { continue };
        let folder = BenchFolder::at(work.join(format!("{name}-logs")));
        folder.import(&file, None, NonZeroUsize::MIN)?;
        figures.push(index_bytes(&file.title, &folder)?);
        folder.remove()?;
    }
    Ok(figures)
}

/// What the index of a folder takes for each log.
pub fn index_bytes(of: &str, folder: &BenchFolder) -> Result<Figure> {
    let bytes = Anatomy::of(folder)?.log_index;
    let logs: u64 = folder.view()?.manifest().segments().iter().map(|it| it.log_count).sum();
    Ok(Figure {
        name: "log_index_bytes",
        question: "log index, bytes a log".into(),
        of: of.to_owned(),
        value: ratio(bytes, logs),
        unit: FigureUnit::BytesPerLog,
        goal: Goal::at_most(4.0, 3.0),
        note: format!("{bytes} bytes for {logs} logs"),
    })
}

/// CPU time of an import with the index beside one without.
pub fn import_with_index(file: &ArchiveFile, work: &Path) -> Result<Figure> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..IMPORT_ROUNDS {
        for (times, is_without) in times.iter_mut().zip([false, true]) {
            let folder = BenchFolder::at(work.join("indexed"));
            let begun = process_cpu();
            folder.import_indexed(file, None, NonZeroUsize::MIN, is_without)?;
            times.push(process_cpu().saturating_sub(begun));
            folder.remove()?;
        }
    }
    let [with, without] = times.map(median);
    Ok(Figure {
        name: "import_with_log_index",
        question: "CPU of an import with the log index / without".into(),
        of: file.title.clone(),
        value: with.as_secs_f64() / without.as_secs_f64(),
        unit: FigureUnit::Ratio,
        goal: Goal::at_most(1.15, 1.08),
        note: format!("{with:.2?} and {without:.2?} by the median of {IMPORT_ROUNDS} rounds"),
    })
}

/// A store that is asked for logs.
#[derive(Debug)]
pub struct LogQuestions {
    of: String,
    service: Service,
    runtime: Runtime,
    view: Arc<View>,
    blocks: BlockRange,
}

impl LogQuestions {
    fn open(of: &str, folder: &BenchFolder, file: &ArchiveFile) -> Result<Self> {
        let disk = Arc::new(Folder::open(folder.path())?);
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default())?);
        let view = store.view();
        let settings = ServiceSettings { cache_bytes_max: 0, ..ServiceSettings::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let blocks = *view.coverage().last().context("no block is held")?;
        let service = Service::new(store, file.spec.clone(), settings);
        Ok(Self { of: of.to_owned(), service, runtime, view, blocks })
    }

    /// Asks everything of one folder.
    pub fn ask_all(of: &str, folder: &BenchFolder, file: &ArchiveFile) -> Result<Vec<Figure>> {
        let questions = Self::open(of, folder, file)?;
        let (sparse, dense) = questions.choose_topics()?;
        let mut figures = questions.ask(&sparse, dense)?;
        figures.push(reads_per_search(of, folder, &sparse)?);
        Ok(figures)
    }

    fn ask(&self, sparse: &[B256], dense: B256) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        let goals = [(100, 2.0, 1.0), (10_000, 10.0, 4.0), (u64::MAX, 20.0, 8.0)];
        for (count, must, target) in goals {
            let Some(range) = self.last_blocks(count) else { continue };
            figures.push(self.sparse(sparse, range, Goal::at_most(must, target))?);
        }
        figures.push(self.dense(dense)?);
        Ok(figures)
    }

    /// The newest blocks; all of them if there are fewer. None if that was asked before.
    fn last_blocks(&self, count: u64) -> Option<BlockRange> {
        if count != u64::MAX && count > self.blocks.count() {
            return None;
        }
        let count = count.min(self.blocks.count());
        BlockRange::from_count(self.blocks.end().saturating_sub(count), count)
    }

    /// Topics at the third position that few logs have, and the first topic that most have.
    fn choose_topics(&self) -> Result<(Vec<B256>, B256)> {
        let mut counts: [HashMap<B256, u64>; 2] = [HashMap::new(), HashMap::new()];
        self.each_log(self.blocks, |topics| {
            for (counts, topic) in counts.iter_mut().zip([topics.get(2), topics.first()]) {
                if let Some(topic) = topic {
                    *counts.entry(B256::from(topic)).or_default() += 1;
                }
            }
        })?;
        let [third, first] = counts;
        let dense = first.into_iter().max_by_key(|(topic, count)| (*count, *topic));
        let (dense, _) = dense.context("no log has a topic")?;
        let mut sparse: Vec<B256> =
            third.into_iter().filter(|(_, count)| SPARSE.contains(count)).map(|it| it.0).collect();
        sparse.sort_unstable();
        sparse.truncate(SPARSE_FILTERS);
        ensure!(!sparse.is_empty(), "no topic has some ten logs");
        Ok((sparse, dense))
    }

    /// Looks at the topics of every log.
    fn each_log(&self, range: BlockRange, mut look: impl FnMut(&[[u8; 32]])) -> Result<()> {
        let mut reader = Reader::new()?;
        for number in range.first()..range.end() {
            let block = block_on(self.view.read_block(
                &mut reader,
                BlockNumber(number),
                RowParts::Receipt,
            ))?;
            let block = block.context("a block is not held")?;
            for log in block.rows.iter().filter_map(|row| row.receipt).flat_map(|it| it.logs()) {
                look(log.topics);
            }
        }
        Ok(())
    }

    fn respond(&self, method: &str, params: &Value) -> Result<Value> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.answer(&call.to_string())?;
        Ok(serde_json::from_slice(&answer)?)
    }

    fn answer(&self, body: &str) -> Result<Vec<u8>> {
        let answer = self.runtime.block_on(self.service.respond(body.as_bytes(), ANSWER_TIME));
        answer.context("nothing is answered")
    }

    /// CPU time of a sparse filter over a range, in milliseconds.
    fn sparse(&self, topics: &[B256], range: BlockRange, goal: Option<Goal>) -> Result<Figure> {
        let filter = |topic: &B256| {
            json!([{ "fromBlock": range.first(), "toBlock": range.last(),
                     "topics": [null, null, topic] }])
        };
        let mut found = 0_u64;
        for topic in topics {
            let answer = self.respond("eth_getLogs", &filter(topic))?;
            let logs = count_logs(&answer)?;
            let mut expected = 0_usize;
            if topic == topics.first().unwrap_or(topic) {
                self.each_log(range, |topics| {
                    expected += usize::from(topics.get(2) == Some(&topic.0));
                })?;
                ensure!(logs == expected, "{topic}: {logs} logs, expected {expected}");
            }
            found += u64::try_from(logs)?;
        }
        let bodies: Vec<String> = topics
            .iter()
            .map(|topic| {
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs",
                        "params": filter(topic) })
                .to_string()
            })
            .collect();
        let cpu =
            least_cpu(ROUNDS, || bodies.iter().try_for_each(|body| self.answer(body).map(drop)))?;
        let naive = least_cpu(1, || {
            self.each_log(range, |topics| {
                std::hint::black_box(topics);
            })
        })?;
        let count = u32::try_from(topics.len())?;
        let each = cpu / count;
        Ok(Figure {
            name: "sparse_logs",
            question: format!("sparse eth_getLogs over {} blocks, CPU", range.count()),
            of: self.of.clone(),
            value: each.as_secs_f64() * 1e3,
            unit: FigureUnit::Millis,
            goal,
            note: format!(
                "{found} logs found by {count} filters; a look at every log of the range takes \
                 {naive:.2?}, {:.0} times as long",
                naive.as_secs_f64() / each.as_secs_f64()
            ),
        })
    }

    /// Logs answered a second beside those of the receipts of the same blocks.
    fn dense(&self, topic: B256) -> Result<Figure> {
        let range = self.last_blocks(DENSE_BLOCKS).context("too few blocks")?;
        let (mut ranges, mut next, mut logs) = (Vec::new(), range.first(), 0_u64);
        while next < range.end() {
            let filter =
                |last: u64| json!([{ "fromBlock": next, "toBlock": last, "topics": [topic] }]);
            let mut last = range.last();
            let answer = self.respond("eth_getLogs", &filter(last))?;
            if let Some(fits) = answer.pointer("/error/data/to").and_then(Value::as_str) {
                last = u64::from_str_radix(fits.trim_start_matches("0x"), 16)?;
            }
            let params = filter(last);
            logs += u64::try_from(count_logs(&self.respond("eth_getLogs", &params)?)?)?;
            ranges.push(
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": params })
                    .to_string(),
            );
            next = last + 1;
        }
        let receipts: Vec<String> = (range.first()..range.end())
            .map(|number| {
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockReceipts",
                        "params": [number] })
                .to_string()
            })
            .collect();
        let mut all_logs = 0_u64;
        self.each_log(range, |_| all_logs += 1)?;
        let ask = |bodies: &[String]| {
            least_cpu(ROUNDS, || bodies.iter().try_for_each(|body| self.answer(body).map(drop)))
        };
        let (by_filter, by_receipts) = (ask(&ranges)?, ask(&receipts)?);
        let rate = |count: u64, time: Duration| {
            f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
        };
        let (filtered, received) = (rate(logs, by_filter), rate(all_logs, by_receipts));
        Ok(Figure {
            name: "dense_logs",
            question: "dense eth_getLogs / eth_getBlockReceipts, logs a second".into(),
            of: self.of.clone(),
            value: filtered / received,
            unit: FigureUnit::Ratio,
            goal: Goal::at_least(0.7, 1.0),
            note: format!(
                "{logs} of {all_logs} logs in {} answers; {filtered:.0} and {received:.0} logs a \
                 second of CPU",
                ranges.len()
            ),
        })
    }
}

fn count_logs(answer: &Value) -> Result<usize> {
    let logs = answer.get("result").and_then(Value::as_array);
    Ok(logs.with_context(|| answer.to_string())?.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;

    use super::*;
    use crate::archives::make_sample;

    /// How often the addresses and topics of a chain's logs repeat.
    #[derive(Debug)]
    struct LogShape {
        values_per_log: f64,
        /// Of the pairs of a value and a block that has it, so many a log.
        postings_per_log: f64,
        /// Of the values, so many are in one block only.
        singletons: f64,
    }

    impl LogShape {
        fn of(view: &View, blocks: BlockRange) -> Self {
            let mut reader = Reader::new().unwrap();
            let mut places: HashMap<(usize, Vec<u8>), u64> = HashMap::new();
            let (mut logs, mut values) = (0_u64, 0_u64);
            for number in (blocks.first()..blocks.end()).map(BlockNumber) {
                let read = view.read_block(&mut reader, number, RowParts::Receipt);
                let block = block_on(read).unwrap().unwrap();
                let mut of_block = BTreeSet::new();
                for log in block.rows.iter().filter_map(|row| row.receipt).flat_map(|it| it.logs())
                {
                    logs += 1;
                    values += 1 + u64::try_from(log.topics.len()).unwrap();
                    of_block.insert((4, log.address.to_vec()));
                    of_block.extend(log.topics.iter().map(|it| it.to_vec()).enumerate());
                }
                for value in of_block {
                    *places.entry(value).or_default() += 1;
                }
            }
            let single = places.values().filter(|count| **count == 1).count();
            Self {
                values_per_log: ratio(values, logs),
                postings_per_log: ratio(places.values().sum(), logs),
                singletons: ratio(
                    u64::try_from(single).unwrap(),
                    u64::try_from(places.len()).unwrap(),
                ),
            }
        }
    }

    #[test]
    fn the_logs_of_a_sample_repeat_as_often_as_real_ones() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let Some(file) = find_real(&data, RELINKED) else {
            let name = "the_logs_of_a_sample_repeat_as_often_as_real_ones";
            // Past the capture of a test's output: what was skipped is counted.
            let _ = writeln!(std::io::stderr(), "skipped: {name}: no ../shared/data");
            return;
        };
        let work = tempfile::tempdir().unwrap();
        let shape = |file: &ArchiveFile, name: &str| {
            let folder = BenchFolder::at(work.path().join(name));
            folder.import(file, None, NonZeroUsize::MIN).unwrap();
            let view = folder.view().unwrap();
            let blocks = *view.coverage().last().unwrap();
            let first = blocks.end().saturating_sub(20);
            LogShape::of(&view, BlockRange::from_count(first, 20).unwrap())
        };
        let real = shape(&file, "real");
        let sample = make_sample(&work.path().join("archive"), 21).unwrap();
        let sample = shape(&sample, "sample");
        let is_alike = [
            (real.values_per_log, sample.values_per_log, 0.2),
            (real.postings_per_log, sample.postings_per_log, 0.08),
            (real.singletons, sample.singletons, 0.05),
        ]
        .iter()
        .all(|(real, sample, tolerance)| (real - sample).abs() <= *tolerance);
        assert!(is_alike, "\nreal {real:?}\nmade {sample:?}");
    }
}
