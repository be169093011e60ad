//! The well-behaved client: a few connections that are kept, reads of every kind, a steady rate.
//!
//! A request has its time, and its wait counts from there if an earlier answer was late: a stall of the
//! server is seen by every request that it holds up. That this client's own thread woke late is not the
//! server's.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bench_serve::call;
use bench_serve::chain_keys::ChainKeys;
use bench_store::random::Random;

use crate::http1::{BROWSER, PLAIN, post, read_answer};
use crate::pace::AbusePace;

/// Connections; every other one goes through hyper.
const LANES: usize = 4;
/// Of one connection: 100 requests a second.
const PERIOD: Duration = Duration::from_millis(10);
/// For an answer. Nothing is measured by it: what takes longer is a failure.
const TIMEOUT: Duration = Duration::from_mins(1);
/// For the server to have room again.
const RECOVER_WITHIN: Duration = Duration::from_mins(1);
const RECOVER_EVERY: Duration = Duration::from_millis(50);
/// Shorter answers take nothing of the budget, whatever others hold.
const SHORT_BYTES_MAX: usize = 3500;
/// Faults that are kept: the first ones say what is wrong.
const FAULTS_MAX: usize = 5;
/// Bytes of an answer that a fault shows.
const SHOWN_BYTES_MAX: usize = 200;

/// A request and its answer.
#[derive(Debug)]
struct GoodQuestion {
    body: String,
    answer: Vec<u8>,
}

/// All that it asks.
#[derive(Debug)]
pub(crate) struct GoodClient {
    address: SocketAddr,
    questions: Vec<GoodQuestion>,
}

/// How it fared.
#[derive(Debug, Default)]
pub(crate) struct GoodOutcome {
    /// Of every right answer, in order of length once they are complete.
    waits: Vec<Duration>,
    /// Long answers that it was told to come again for.
    pub(crate) refused: u64,
    /// Answers that were wrong or did not come.
    pub(crate) fault_count: u64,
    /// The first of them.
    pub(crate) faults: Vec<String>,
}

/// A connection that is kept.
struct GoodLane<'a> {
    address: SocketAddr,
    /// Lines that are added to every head.
    fields: &'static str,
    source: Option<BufReader<TcpStream>>,
    answer: Vec<u8>,
    may_be_refused: bool,
    questions: &'a [GoodQuestion],
}

impl GoodClient {
    /// Asks everything once, while nobody else does.
    pub(crate) fn learn(address: SocketAddr, keys: &ChainKeys) -> Result<Self> {
        let mut random = Random::default();
        let mut bodies: Vec<String> = Vec::new();
        bodies.extend(keys.pick(&mut random, 80).into_iter().map(call::transaction_by_hash));
        bodies.extend(keys.pick(&mut random, 60).into_iter().map(call::receipt));
        for (count, is_full) in [(30, false), (10, true)] {
            let blocks = random.pick(&keys.blocks, count).into_iter();
            bodies.extend(blocks.map(|block| call::block_by_number(&block.number, is_full)));
        }
        let mut lane = GoodLane::new(address, 0, &[], false);
        let mut questions = Vec::new();
        for body in bodies {
            let status = lane.ask(&body)?;
            let text = String::from_utf8_lossy(&lane.answer);
            ensure!(status == 200 && text.contains("\"result\":"), "{body}: {status} {text}");
            questions.push(GoodQuestion { body, answer: lane.answer.clone() });
        }
        ensure!(questions.iter().any(GoodQuestion::is_short), "no answer is short");
        Ok(Self { address, questions })
    }

    /// Asks until the pace has ended. `beside` is what happens meanwhile; it begins when every connection
    /// is there.
    pub(crate) fn ask(
        &self,
        pace: &AbusePace,
        may_be_refused: bool,
        beside: impl FnOnce() -> Result<()>,
    ) -> Result<GoodOutcome> {
        let begun = &Barrier::new(LANES.saturating_add(1));
        let (outcomes, happened): (Vec<GoodOutcome>, Result<()>) = thread::scope(|scope| {
            let lane = |index| {
                let lane = GoodLane::new(self.address, index, &self.questions, may_be_refused);
                scope.spawn(move || lane.ask_on(index, pace, begun))
            };
            let lanes: Vec<_> = (0..LANES).map(lane).collect();
            begun.wait();
            let happened = beside();
            pace.end();
            let joined = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| panicked()));
            (joined.collect(), happened)
        });
        happened?;
        let mut sum = GoodOutcome::default();
        for outcome in outcomes {
            sum.add(outcome);
        }
        ensure!(!sum.waits.is_empty(), "nothing was answered: {}", sum.faults.join("; "));
        sum.waits.sort_unstable();
        Ok(sum)
    }

    /// Waits until everything is answered again, on more connections than are needed. Whatever others
    /// held must be free by then.
    pub(crate) fn recover(&self) -> Result<()> {
        let begun = Instant::now();
        let lane = |index| GoodLane::new(self.address, index, &self.questions, false);
        let mut lanes: Vec<GoodLane<'_>> = (0..2 * LANES).map(lane).collect();
        for question in &self.questions {
            for lane in &mut lanes {
                while let Err(error) = lane.check(question) {
                    if begun.elapsed() > RECOVER_WITHIN {
                        return Err(error.context("the server does not recover"));
                    }
                    thread::sleep(RECOVER_EVERY);
                }
            }
        }
        Ok(())
    }
}

impl GoodQuestion {
    fn is_short(&self) -> bool {
        self.answer.len() <= SHORT_BYTES_MAX
    }
}

impl<'a> GoodLane<'a> {
    fn new(
        address: SocketAddr,
        index: usize,
        questions: &'a [GoodQuestion],
        may_be_refused: bool,
    ) -> Self {
        let fields = if index.is_multiple_of(2) { PLAIN } else { BROWSER };
        Self { address, fields, source: None, answer: Vec::new(), may_be_refused, questions }
    }

    fn ask_on(mut self, index: usize, pace: &AbusePace, begun: &Barrier) -> GoodOutcome {
        let mut outcome = GoodOutcome::default();
        let mut random = Random::default();
        // Every connection has an order of its own.
        for _ in 0..index {
            random.next_number();
        }
        if let Some(Err(error)) = self.questions.first().map(|question| self.check(question)) {
            outcome.fault(format!("before the abuse: {error:#}"));
        }
        begun.wait();
        let mut due = Instant::now();
        while !pace.has_ended() {
            let now = Instant::now();
            let begun = if due > now {
                thread::sleep(due.saturating_duration_since(now));
                Instant::now()
            } else {
                due
            };
            due = due.checked_add(PERIOD).unwrap_or(due);
            let Some(question) = self.questions.get(random.below(self.questions.len())) else {
                break;
            };
            match self.check(question) {
                Ok(true) => {
                    outcome.waits.push(begun.elapsed());
                    pace.count_answer();
                }
                Ok(false) => outcome.refused = outcome.refused.saturating_add(1),
                Err(error) => {
                    outcome.fault(format!("{error:#}"));
                    // A server that is gone is not asked thousands of times.
                    thread::sleep(RECOVER_EVERY);
                }
            }
        }
        outcome
    }

    /// Whether a question is answered as it should be; `false` if it is told to come again, and may be.
    fn check(&mut self, question: &GoodQuestion) -> Result<bool> {
        let status = self.ask(&question.body).with_context(|| question.body.clone())?;
        if status == 503 && self.may_be_refused && !question.is_short() {
            return Ok(false);
        }
        if (status, &self.answer) != (200, &question.answer) {
            let shown = self.answer.get(..SHOWN_BYTES_MAX).unwrap_or(&self.answer);
            let (found, length) = (String::from_utf8_lossy(shown), self.answer.len());
            bail!("{}: status {status}, {length} bytes: {found}", question.body);
        }
        Ok(true)
    }

    /// One request; its status, with the answer in `answer`. A connection that failed is not kept.
    fn ask(&mut self, body: &str) -> Result<u16> {
        let asked = self.ask_on_kept(body);
        if asked.is_err() {
            self.source = None;
        }
        asked
    }

    fn ask_on_kept(&mut self, body: &str) -> Result<u16> {
        if self.source.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            self.source = Some(BufReader::with_capacity(64 * 1024, stream));
        }
        let source = self.source.as_mut().context("just opened")?;
        source.get_mut().write_all(&post(self.fields, body.as_bytes()))?;
        read_answer(source, &mut self.answer)?.context("the server closed")
    }
}

impl GoodOutcome {
    /// The wait that so many of a hundred were not longer than.
    pub(crate) fn percentile(&self, hundredths: usize) -> Duration {
        let at = self.waits.len().saturating_mul(hundredths) / 100;
        self.waits.get(at).or(self.waits.last()).copied().unwrap_or_default()
    }

    pub(crate) fn answer_count(&self) -> usize {
        self.waits.len()
    }

    fn fault(&mut self, what: String) {
        self.fault_count = self.fault_count.saturating_add(1);
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(what);
        }
    }

    fn add(&mut self, other: Self) {
        self.waits.extend(other.waits);
        self.refused = self.refused.saturating_add(other.refused);
        self.fault_count = self.fault_count.saturating_add(other.fault_count);
        let room = FAULTS_MAX.saturating_sub(self.faults.len());
        self.faults.extend(other.faults.into_iter().take(room));
    }
}

fn panicked() -> GoodOutcome {
    let mut outcome = GoodOutcome::default();
    outcome.fault("a thread of the well-behaved client panicked".to_owned());
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_waits() {
        let waits = (0..200).map(Duration::from_millis).collect();
        let outcome = GoodOutcome { waits, ..GoodOutcome::default() };
        assert_eq!(outcome.percentile(50), Duration::from_millis(100));
        assert_eq!(outcome.percentile(99), Duration::from_millis(198));
        assert_eq!(GoodOutcome::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn faults_are_counted_and_the_first_are_kept() {
        let mut sum = GoodOutcome::default();
        for _ in 0..3 {
            let mut other = GoodOutcome::default();
            (0..4).for_each(|index| other.fault(index.to_string()));
            sum.add(other);
        }
        assert_eq!((sum.fault_count, sum.faults.len()), (12, FAULTS_MAX));
    }
}
