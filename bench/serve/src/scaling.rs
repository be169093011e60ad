//! What changes with connections, with the size of an answer, with the size of the store, with cores.

use std::num::NonZeroUsize;

use anyhow::{Context as _, Result};

use crate::chain_keys::ChainKeys;
use crate::contest::{Contest, ContestEntry, Measured, Rules, take_turns};
use crate::lookups::look;
use crate::nginx::{Fixed, Nginx};
use crate::plot::{Line, Panel};
use crate::questions::{Question, all, of_sizes};
use crate::quipu::{BLOCK_COUNT, BLOCK_COUNT_QUICK, Serving};
use crate::report::Scale;
use crate::run::Asking;

/// Connections at which throughput is looked at.
const CONNECTIONS: [u32; 8] = [1, 4, 16, 64, 256, 1024, 4096, 10_000];
/// Rounds of each point: a plot shows a trend, which needs fewer.
const ROUNDS_MAX: usize = 3;
/// Keys among which one is looked for without a chain; the last takes 1.4 GB of memory.
const KEY_COUNTS: [u32; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
/// The same where time is short.
const KEY_COUNTS_QUICK: [u32; 2] = [100_000, 1_000_000];
/// What is asked of servers with few cores and with many.
const OF_CORES: [(&str, &str); 3] = [
    ("hot-transaction", "hot transaction"),
    ("random-transaction", "random transaction"),
    ("random-block", "random block"),
];

fn per_second(measured: &Measured) -> f64 {
    measured.outcome.per_second
}

fn line(label: &str) -> Line {
    Line { label: label.to_owned(), points: Vec::new() }
}

impl Asking<'_> {
    /// All of it.
    pub(crate) fn of_scale(&mut self) -> Result<()> {
        if !self.request.wants("scaling") {
            return Ok(());
        }
        let hot = self.question("hot-transaction")?.clone();
        let sizes = of_sizes(self.keys, &self.served.address)?;
        let mut answers = vec![self.usual_answer(&hot)?];
        for question in &sizes {
            answers.push(self.usual_answer(question)?);
        }
        let nginx = Nginx::start(&self.work.join("nginx-scaling"), &answers, self.server_cores())?;
        self.of_connections(&hot, &nginx)?;
        self.of_sizes(&sizes, answers.get(1..).unwrap_or_default(), &nginx)?;
        drop(nginx);
        self.of_cores()?;
        self.of_store()
    }

    fn rounds_of_scale(&self) -> usize {
        self.request.rounds.min(ROUNDS_MAX)
    }

    fn of_connections(&mut self, hot: &Question, nginx: &Nginx) -> Result<()> {
        let mut lines = ["Quipu", "nginx"].map(line);
        for connections in CONNECTIONS {
            self.say(&format!("{connections} connections"));
            let question = Question { connections, ..hot.clone() };
            let contest = self.contest(&question, nginx, self.rounds_of_scale())?;
            for (place, line) in lines.iter_mut().enumerate() {
                line.points.push((f64::from(connections), contest.median(place, per_second)));
            }
        }
        self.report.scales.push(Scale {
            name: "serving-connections",
            title: "A hot transaction, by connections",
            across: "connections",
            panels: vec![Panel { up: "requests/s".into(), lines: lines.to_vec() }],
        });
        Ok(())
    }

    fn of_sizes(&mut self, questions: &[Question], answers: &[Fixed], nginx: &Nginx) -> Result<()> {
        let mut rates = ["Quipu", "nginx"].map(line);
        let mut bytes = ["Quipu", "nginx"].map(line);
        let mut sized: Vec<(u32, &Question)> = Vec::new();
        for (question, answer) in questions.iter().zip(answers) {
            sized.push((u32::try_from(answer.body.len())?, question));
        }
        sized.sort_unstable_by_key(|(size, _)| *size);
        for (size, question) in sized {
            self.say(&format!("{}: {size} bytes", question.words));
            let contest = self.contest(question, nginx, self.rounds_of_scale())?;
            for (place, (rate, bytes)) in rates.iter_mut().zip(&mut bytes).enumerate() {
                let value = contest.median(place, per_second);
                rate.points.push((f64::from(size), value));
                bytes.points.push((f64::from(size), value * f64::from(size) / 1e6));
            }
        }
        let panels = vec![
            Panel { up: "requests/s".into(), lines: rates.to_vec() },
            Panel { up: "MB/s".into(), lines: bytes.to_vec() },
        ];
        self.report.scales.push(Scale {
            name: "serving-sizes",
            title: "Hot answers, by their size",
            across: "bytes of the answer",
            panels,
        });
        Ok(())
    }

    /// The same server on the first core, on the first two, and so on to all of them.
    fn of_cores(&mut self) -> Result<()> {
        let cores_max = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let doublings = std::iter::successors(Some(1_usize), |cores| cores.checked_mul(2));
        let mut counts: Vec<usize> = doublings.take_while(|cores| *cores < cores_max).collect();
        counts.push(cores_max);
        let panel = |up: &str| Panel { up: up.into(), lines: Vec::new() };
        let mut panels = ["requests/s, one core = 1", "CPU a request, one core = 1"].map(panel);
        for (name, label) in OF_CORES {
            let question = self.question(name)?.clone();
            self.say(&format!("{} by cores", question.words));
            let contest = self.contest_of_cores(&question, &counts)?;
            let values = [per_second, |it: &Measured| it.cpu];
            for (panel, value) in panels.iter_mut().zip(values) {
                panel.lines.push(of_cores_line(label, &contest, &counts, value)?);
            }
            let words = format!("{}, by cores", question.words);
            self.add("cores", &words, contest, 0, question.driver);
        }
        self.report.scales.push(Scale {
            name: "serving-cores",
            title: "By cores that Quipu may use",
            across: "cores",
            panels: panels.to_vec(),
        });
        Ok(())
    }

    fn contest_of_cores(&self, question: &Question, counts: &[usize]) -> Result<Contest> {
        let mut servers = Vec::new();
        for count in counts {
            let cores = format!("0-{}", count.saturating_sub(1));
            servers.push(self.quipu.serve(&Serving {
                cores: Some(&cores),
                is_uncached: question.is_uncached,
                ..Serving::of(&self.chain.store)
            })?);
        }
        let name =
            |count: &usize| format!("Quipu on {count} core{}", if *count == 1 { "" } else { "s" });
        let contestants: Vec<_> = servers
            .iter()
            .zip(counts)
            .map(|(server, count)| server.contestant(&name(count)))
            .collect();
        let rules = Rules { rounds: self.rounds_of_scale(), ..self.rules(question)? };
        rules.hold(&contestants, |_| Ok(())).context(question.name)
    }

    /// Served as far as a chain is at hand, and by lookups alone beyond it.
    fn of_store(&mut self) -> Result<()> {
        let [rate, cpu] = self.of_stores_served()?;
        let mut lines = ["a hash that is there", "one that is not"].map(line);
        let mut bytes = line("bytes a key");
        let counts = if self.request.is_quick { &KEY_COUNTS_QUICK[..] } else { &KEY_COUNTS };
        for count in counts {
            let looked = look(u64::from(*count))?;
            self.say(&format!(
                "{count} keys in {} runs: {:.2} bytes a key, {:.0} ns to find one, {:.0} to miss one",
                looked.run_count, looked.bytes_per_key, looked.hit, looked.miss
            ));
            for (line, value) in lines.iter_mut().zip([looked.hit, looked.miss]) {
                line.points.push((f64::from(*count), value));
            }
            bytes.points.push((f64::from(*count), looked.bytes_per_key));
        }
        let panels = vec![
            Panel { up: "random transactions/s, served, nothing kept".into(), lines: vec![rate] },
            Panel { up: "us of CPU for each of them".into(), lines: vec![cpu] },
            Panel { up: "ns of CPU to look a hash up".into(), lines: lines.to_vec() },
            Panel { up: "bytes a key".into(), lines: vec![bytes] },
        ];
        self.report.scales.push(Scale {
            name: "serving-store",
            title: "By transactions in the store",
            across: "transactions",
            panels,
        });
        Ok(())
    }

    /// A store of a tenth of the transactions beside the one that is there.
    fn of_stores_served(&mut self) -> Result<[Line; 2]> {
        let block_count = if self.request.is_quick { BLOCK_COUNT_QUICK } else { BLOCK_COUNT };
        self.say("a store of a tenth of the transactions");
        let small = self.quipu.make_chain(
            &self.work.join("tenth"),
            block_count / 10,
            &self.request.payload,
        )?;
        let serve = |store| self.quipu.serve(&Serving { is_uncached: true, ..Serving::of(store) });
        let servers = [serve(&small.store)?, serve(&self.chain.store)?];
        let small_keys = ChainKeys::read(&servers[0].address)?;
        let small_questions = all(&small_keys, &servers[0].address)?;
        let name = "random-transaction";
        let question = small_questions.into_iter().find(|question| question.name == name);
        let question = Question { name: "random-of-a-tenth", ..question.context(name)? };
        let rules = [self.rules(&question)?, self.rules(self.question(name)?)?];
        let counts = [small_keys.transaction_count(), self.keys.transaction_count()];
        let contestants = [0, 1].map(|place: usize| {
            let count = counts.get(place).copied().unwrap_or_default();
            servers.get(place).map(|it| it.contestant(&format!("Quipu with {count}")))
        });
        let entries: Vec<ContestEntry<'_>> = contestants
            .iter()
            .flatten()
            .zip(&rules)
            .map(|(contestant, rules)| ContestEntry { contestant, rules })
            .collect();
        let contest = take_turns(&entries, self.rounds_of_scale(), |_| Ok(()))?;
        let mut lines = ["requests/s", "us of CPU"].map(line);
        for (place, count) in counts.into_iter().enumerate() {
            let count = f64::from(u32::try_from(count)?);
            let values = [contest.median(place, per_second), contest.median(place, |it| it.cpu)];
            for (line, value) in lines.iter_mut().zip(values) {
                line.points.push((count, value));
            }
        }
        let words = "random transaction, by transactions in the store, nothing kept";
        self.add("store", words, contest, 0, question.driver);
        Ok(lines)
    }
}

fn of_cores_line(
    label: &str,
    contest: &Contest,
    counts: &[usize],
    value: fn(&Measured) -> f64,
) -> Result<Line> {
    let mut line = line(label);
    let one = contest.median(0, value);
    for (place, count) in counts.iter().enumerate() {
        line.points.push((f64::from(u32::try_from(*count)?), contest.median(place, value) / one));
    }
    Ok(line)
}
