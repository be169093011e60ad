//! A run: the chain, the server, every abuse beside the well-behaved client, the table.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bench_serve::chain_keys::ChainKeys;
use bench_serve::http::ask;
use bench_serve::machine::description;
use bench_serve::process::end_all_on_signal;
use bench_serve::quipu::{Quipu, Serving};
use bench_serve::server::ServerProcess;
use bench_store::machine::load;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::abuse::{ABUSES, Abuse};
use crate::attack::{Attack, AttackTally};
use crate::ceiling::Ceiling;
use crate::good_client::GoodClient;
use crate::largest::Largest;
use crate::pace::AbusePace;
use crate::request::{BYTES_UNDER_WAY_MAX, HostileArgs, SuiteForm};
use crate::resident::{forget_peak, peak_bytes, resident_bytes};
use crate::table::{AbuseRow, format_rows, megabytes, write};

/// Long blocks, as long answers need them.
const PAYLOAD: &str = "mainnet";
/// Descriptors of this program that are not connections.
const DESCRIPTORS_KEPT: usize = 200;
/// How often everything that is abused is asked for before anything is measured.
const WARM_UP_ROUNDS: usize = 3;
/// For memory to go back to the system after an abuse, before it is looked at.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);
/// For the same after the last, which must hold.
const SETTLE_AT_LAST_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Memory after the suite: a tenth more than before, and some of what the heap of each thread may keep.
const AFTER_SLACK_BYTES: u64 = 12 << 20;

/// Does what the arguments ask for, and gives what is to be printed.
pub fn run(arguments: &[String]) -> Result<String> {
    let request = HostileArgs::parse(arguments)?;
    let wanted = wanted(&request)?;
    let form = request.form();
    let begun = Instant::now();
    let load_before = load();
    let work = tempfile::Builder::new().prefix("quipu-hostile-").tempdir()?;
    end_all_on_signal(work.path())?;
    let quipu = match &request.quipu {
        Some(path) => Quipu::at(path.clone(), None)?,
        None => Quipu::beside_this_program(None)?,
    };
    eprintln!("making the chain, or looking at the one that is there");
    let data = request.data.as_deref().unwrap_or(work.path()).join(PAYLOAD);
    let chain = quipu.make_chain(&data, form.block_count, PAYLOAD)?;
    let flags = form
        .bytes_under_way_max
        .map_or_else(Vec::new, |bytes| vec!["--bytes-under-way-max".to_owned(), bytes.to_string()]);
    let connections_max = form.connections_max;
    let serving = Serving { connections_max, flags: &flags, ..Serving::of(&chain.store) };
    let mut suite = Suite::begin(quipu.serve(&serving)?, form, request.time)?;
    let before = resident_bytes(suite.served.id())?;
    let mut rows = Vec::new();
    for abuse in wanted {
        let row = suite.measure(abuse).with_context(|| format!("beside {}", abuse.name))?;
        eprintln!("[{:>4} s] {}", begun.elapsed().as_secs(), row.format());
        row.problems.iter().for_each(|problem| eprintln!("  FAILED: {problem}"));
        rows.push(row);
    }
    suite.client.recover()?;
    let bound = (before.saturating_mul(11) / 10).saturating_add(AFTER_SLACK_BYTES);
    let after = settle(suite.served.id(), bound, SETTLE_AT_LAST_WITHIN)?;
    let connections = suite.connections_max;
    suite.served.stop()?;
    let show = |load: Option<f64>| load.map_or_else(|| "?".into(), |load| format!("{load:.1}"));
    let section = format!(
        "{}, shared by the server and all clients; {} s each, `--bytes-under-way-max` {}; RSS {} MB \
         before the first and {} MB after the last; load average {} before, {} after; at most {} \
         connections; {} s.\n\n{}",
        description(),
        request.time.as_secs(),
        form.bytes_under_way_max.unwrap_or(BYTES_UNDER_WAY_MAX),
        megabytes(before),
        megabytes(after),
        show(load_before),
        show(load()),
        connections,
        begun.elapsed().as_secs(),
        format_rows(&rows)
    );
    // What was found is told, whether it is as it must be or not.
    if let Some(docs) = &request.write {
        write(docs, &section)?;
    }
    let problem = |row: &AbuseRow| {
        let name = row.name;
        row.problems.iter().map(|it| format!("{name}: {it}")).collect::<Vec<_>>()
    };
    let mut problems: Vec<String> = rows.iter().flat_map(problem).collect();
    if after > bound {
        let [before, after, bound] = [before, after, bound].map(megabytes);
        problems.push(format!("{before} MB before all, {after} MB after, at most {bound} MB"));
    }
    if !problems.is_empty() {
        bail!("{section}\n{}", problems.join("\n"));
    }
    Ok(format!("{section}\n{} abuses, no fault\n", rows.len()))
}

/// The abuses that are asked for.
fn wanted(request: &HostileArgs) -> Result<Vec<&'static Abuse>> {
    let names: Vec<&str> = ABUSES.iter().map(|abuse| abuse.name).collect();
    for name in &request.only {
        let is_known = names.contains(&name.as_str());
        ensure!(is_known, "no abuse is called {name}; there are {}", names.join(", "));
    }
    let is_wanted = |abuse: &&Abuse| {
        request.only.is_empty() || request.only.iter().any(|name| name == abuse.name)
    };
    Ok(ABUSES.iter().filter(is_wanted).collect())
}

/// A server that is abused.
struct Suite {
    served: ServerProcess,
    address: SocketAddr,
    client: GoodClient,
    largest: Largest,
    form: SuiteForm,
    time: Duration,
    /// Connections that this program may have at a time.
    connections_max: usize,
}

impl Suite {
    /// Learns what the server answers, and asks everything a few times.
    fn begin(served: ServerProcess, form: SuiteForm, time: Duration) -> Result<Self> {
        let address: SocketAddr = served.address.parse().context("the server's address")?;
        let keys = ChainKeys::read(&served.address)?;
        let largest = Largest::find(&served.address, &keys, form.answer_bytes_max)?;
        let client = GoodClient::learn(address, &keys)?;
        let encodings = ["identity", "br", "gzip", "zstd"];
        for encoding in encodings.repeat(WARM_UP_ROUNDS) {
            for body in [&largest.block, &largest.batch] {
                let fields = [("accept-encoding", encoding)];
                ask(&served.address, "/", Some(body.as_bytes()), &fields)?;
            }
        }
        (0..WARM_UP_ROUNDS).try_for_each(|_| client.recover())?;
        let connections_max = raise_descriptors()?.saturating_sub(DESCRIPTORS_KEPT);
        Ok(Self { served, address, client, largest, form, time, connections_max })
    }

    /// One abuse.
    fn measure(&mut self, abuse: &Abuse) -> Result<AbuseRow> {
        let id = self.served.id();
        self.client.recover()?;
        let alone = self.form.is_timed.then(|| {
            let pace = AbusePace::begin(self.time / 2, self.form.answers_min);
            let wait = || {
                while pace.goes_on() {
                    thread::sleep(LOOK_EVERY);
                }
                Ok(())
            };
            self.client.ask(&pace, false, wait)
        });
        let alone = alone.transpose()?;
        let before = resident_bytes(id)?;
        forget_peak(id)?;
        let [long, short] = abuse.connections;
        let wanted = if self.form.is_timed { long } else { short };
        let connections = wanted.min(self.connections_max);
        if connections < wanted {
            eprintln!("{connections} connections instead of {wanted}: `ulimit -n` has no more");
        }
        let pace = AbusePace::begin(self.time, self.form.answers_min);
        let attack = Attack {
            address: self.address,
            pace: &pace,
            largest: &self.largest,
            connections,
            tally: AttackTally::default(),
        };
        let beside = self.client.ask(&pace, abuse.fills_budget, || (abuse.run)(&attack));
        ensure!(self.served.is_running()?, "the server has ended");
        let beside = beside?;
        let during = peak_bytes(id)?;
        let ceiling = self.ceiling(abuse, before, connections)?;
        let after = if self.form.is_timed {
            settle(id, before.saturating_mul(11) / 10, SETTLE_WITHIN)?
        } else {
            resident_bytes(id)?
        };
        let mut problems = attack.tally.complaints();
        problems.extend(beside.faults.iter().cloned());
        problems.extend(unseen(abuse, &attack.tally));
        if pace.is_late() {
            problems.push("it did not come to its end".to_owned());
        }
        if during > ceiling {
            problems.push(format!("{} MB, at most {}", megabytes(during), megabytes(ceiling)));
        }
        let Abuse { name, words, .. } = *abuse;
        let done = attack.tally.format();
        Ok(AbuseRow {
            name,
            words,
            connections,
            alone,
            beside,
            before,
            during,
            after,
            ceiling,
            done,
            problems,
        })
    }

    fn ceiling(&self, abuse: &Abuse, before: u64, connections: usize) -> Result<u64> {
        let ceiling = Ceiling {
            before,
            bytes_under_way_max: self.form.bytes_under_way_max.unwrap_or(BYTES_UNDER_WAY_MAX),
            answer_bytes_max: u64::try_from(self.largest.batch_bytes)?,
            threads: u64::try_from(thread::available_parallelism()?.get())?,
            spoken: abuse.spoken,
            connections: u64::try_from(connections)?,
        };
        Ok(ceiling.bytes())
    }
}

/// What must have been seen of an abuse and was not: then it has not reached what it is for.
fn unseen(abuse: &Abuse, tally: &AttackTally) -> Vec<String> {
    let missed = abuse.statuses.iter().filter(|status| !tally.has_status(**status));
    let mut unseen: Vec<String> = missed.map(|it| format!("nothing was answered {it}")).collect();
    if abuse.is_ended && !tally.has_closed() {
        unseen.push("the server ended no connection".to_owned());
    }
    unseen
}

/// Memory once it is within a bound, or what it is when that is not waited for any more.
fn settle(id: u32, bound: u64, limit: Duration) -> Result<u64> {
    let begun = Instant::now();
    loop {
        let resident = resident_bytes(id)?;
        if resident <= bound || begun.elapsed() >= limit {
            return Ok(resident);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// As many descriptors as this program may have.
fn raise_descriptors() -> Result<usize> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("descriptors")?;
    let count = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abuses_that_there_are_can_be_asked_for() {
        let of = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&it| it.to_owned()).collect();
            wanted(&HostileArgs::parse(&arguments).unwrap())
        };
        assert_eq!(of(&[]).unwrap().len(), ABUSES.len());
        assert_eq!(of(&["--only", "gzip-bombs"]).unwrap().len(), 1);
        assert!(of(&["--only", "kindness"]).unwrap_err().to_string().contains("pipelined, "));
    }

    #[test]
    fn an_abuse_that_reached_nothing_is_noticed() {
        let tally = AttackTally::default();
        let malformed = ABUSES.iter().find(|it| it.name == "malformed").unwrap();
        assert_eq!(unseen(malformed, &tally).len(), malformed.statuses.len() + 1);
        malformed.statuses.iter().for_each(|status| tally.count_status(*status));
        tally.count_closed();
        assert!(unseen(malformed, &tally).is_empty());
    }
}
