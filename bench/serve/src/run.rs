//! A run: the chain, the servers, the questions, the report.
//!
//! Knows: the order of things.
//! Never knows: how one of them is done.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bench_store::figure::Figure;
use bench_store::machine::load;

use crate::chain_keys::ChainKeys;
use crate::circumstances::{beside_import, cold, import_figures, memory_under_load};
use crate::contest::{Contest, Contestant, Driver, Rules};
use crate::http::ask;
use crate::load::Load;
use crate::machine::description;
use crate::nginx::{Fixed, Nginx};
use crate::plot::Line;
use crate::process::end_all_on_signal;
use crate::questions::{FIXED_RATE, Question, all, block_by_number, of_nodes};
use crate::quipu::{BLOCK_COUNT, BLOCK_COUNT_QUICK, Quipu, SampleChain, Served};
use crate::report::{Answered, Report};
use crate::request::Request;
use crate::rivals::{Kind, Rival};

/// Answers of a question that are looked at to find one of the usual length.
const LOOKED_AT: usize = 200;
/// Connections at which throughput is looked at.
const CONNECTIONS: [u32; 8] = [1, 4, 16, 64, 256, 1024, 4096, 10_000];
/// What is asked of Quipu alone, or in more than one way.
const OTHERS: [&str; 5] = ["cold", "import", "memory", "scaling", "rivals"];

/// Does what the arguments ask for, and gives what is to be printed.
pub fn run(arguments: &[String]) -> Result<String> {
    let request = Request::parse(arguments)?;
    let begun = Instant::now();
    let load_before = load();
    let work = tempfile::Builder::new().prefix("quipu-bench-").tempdir()?;
    end_all_on_signal(work.path())?;
    let quipu = Quipu::beside_this_program()?;
    eprintln!("making the chain, or looking at the one that is there");
    let data = request.data.clone().unwrap_or_else(|| work.path().join("data"));
    let block_count = if request.is_quick { BLOCK_COUNT_QUICK } else { BLOCK_COUNT };
    let chain = quipu.make_chain(&data, block_count)?;
    let served = quipu.serve(&chain.store, None)?;
    let keys = ChainKeys::read(&served.address)?;
    let questions = all(&keys, &served.address)?;
    let names: Vec<&str> = questions.iter().map(|it| it.name).chain(OTHERS).collect();
    request.check_names(&names)?;
    let mut asking = Asking {
        request: &request,
        work: work.path(),
        quipu: &quipu,
        chain: &chain,
        served: &served,
        questions: &questions,
        begun,
        report: Report::default(),
    };
    asking.of_nginx()?;
    asking.of_quipu_alone()?;
    if request.wants("rivals") {
        for kind in Kind::ALL {
            asking.of_rival(kind)?;
        }
    }
    let mut report = asking.report;
    let show = |load: Option<f64>| load.map_or_else(|| "?".into(), |load| format!("{load:.1}"));
    report.machine = format!(
        "{}, shared by the servers and the load generator; {} transactions in {} blocks; rounds of \
         {} s; load average {} before, {} after; {} s",
        description(),
        keys.transaction_count(),
        keys.blocks.len(),
        request.time.as_secs(),
        show(load_before),
        show(load()),
        begun.elapsed().as_secs()
    );
    if let Some(docs) = &request.write {
        report.write(docs)?;
    }
    Ok(if request.is_json { format!("{:#}\n", report.to_json()) } else { report.format() })
}

struct Asking<'a> {
    request: &'a Request,
    work: &'a Path,
    quipu: &'a Quipu,
    chain: &'a SampleChain,
    served: &'a Served,
    questions: &'a [Question],
    begun: Instant,
    report: Report,
}

impl Asking<'_> {
    fn say(&self, what: &str) {
        eprintln!("[{:>4} s] {what}", self.begun.elapsed().as_secs());
    }

    /// What nginx is asked too.
    fn of_nginx(&mut self) -> Result<()> {
        let wanted: Vec<&Question> =
            self.questions.iter().filter(|it| self.request.wants(it.name)).collect();
        let mut answers =
            wanted.iter().map(|it| self.usual_answer(it)).collect::<Result<Vec<_>>>()?;
        let is_scaling = self.request.wants("scaling");
        if is_scaling && !self.request.wants("hot-transaction") {
            answers.push(self.usual_answer(self.question("hot-transaction")?)?);
        }
        if answers.is_empty() {
            return Ok(());
        }
        let nginx = Nginx::start(&self.work.join("nginx"), &answers)?;
        for (question, answer) in wanted.iter().zip(&answers) {
            self.say(question.words);
            let contest = self.contest(question, &nginx, self.request.rounds)?;
            let bytes = answer.body.len();
            self.add(question.name, question.words, contest, bytes, question.driver);
            let figure = self.report.answered.last().map(|it| it.figure(question));
            self.report.figures.extend(figure);
        }
        if is_scaling {
            self.of_connections(&nginx)?;
        }
        Ok(())
    }

    /// What only the server itself is compared with.
    fn of_quipu_alone(&mut self) -> Result<()> {
        let random = self.question("random-transaction")?.clone();
        if self.request.wants("cold") {
            self.say("a cold page cache");
            let contest = cold(&self.rules(&random)?, self.served, &self.chain.store)?;
            self.add("cold", "random transaction, cold page cache", contest, 0, random.driver);
        }
        if self.request.wants("import") {
            self.say("beside an import");
            let question = Question { driver: Driver::Oha(FIXED_RATE), ..random };
            let rules = self.rules(&question)?;
            let contest = beside_import(&rules, self.served, self.quipu, self.chain, self.work)?;
            self.report.figures.extend(import_figures(&contest));
            let words = "random transaction at 10,000/s, beside an import";
            self.add("import", words, contest, 0, question.driver);
        }
        if self.request.wants("memory") {
            self.say("memory");
            let loads = ["hot-transaction", "hot-block"]
                .map(|name| self.question(name).and_then(|question| self.rules(question)));
            let loads = loads.into_iter().collect::<Result<Vec<_>>>()?;
            // A fresh one: what was asked before does not count.
            let fresh = self.quipu.serve(&self.chain.store, None)?;
            let figure: Figure = memory_under_load(&fresh, &loads)?;
            self.report.figures.push(figure);
        }
        Ok(())
    }

    /// The same chain served by a node, which made it, and by Quipu, which took it from there.
    fn of_rival(&mut self, kind: Kind) -> Result<()> {
        if !kind.is_there() {
            self.say(&format!("{} is not there: left out", kind.name()));
            return Ok(());
        }
        if !self.quipu.has_backfill() {
            self.say("this binary cannot be filled from a node: rivals are left out");
            return Ok(());
        }
        self.say(&format!("{} makes a chain", kind.name()));
        let rival = Rival::start(kind, &self.work.join(kind.name()))?;
        let store = self.work.join(format!("from-{}", kind.name()));
        self.quipu.backfill(&rival.target().url, &store)?;
        let served = self.quipu.serve(&store, None)?;
        let keys = ChainKeys::read(&served.address)?;
        let last = keys.blocks.last().context("an empty chain")?;
        rival.check_same(&served.address, &block_by_number(&last.number, true))?;
        let contestants = [
            Contestant { name: "Quipu".to_owned(), id: served.id(), target: served.target() },
            Contestant { name: rival.name().to_owned(), id: rival.id(), target: rival.target() },
        ];
        for question in of_nodes(all(&keys, &served.address)?) {
            self.say(&format!("{}, beside {}", question.words, kind.name()));
            let contest = self.rules(&question)?.hold(&contestants, |_| Ok(()))?;
            self.add(question.name, question.words, contest, 0, question.driver);
            let figure = self.report.answered.last().map(|it| it.figure(&question));
            self.report.figures.extend(figure);
        }
        Ok(())
    }

    fn of_connections(&mut self, nginx: &Nginx) -> Result<()> {
        let hot = self.question("hot-transaction")?.clone();
        let mut lines =
            ["Quipu", "nginx"].map(|label| Line { label: label.to_owned(), points: Vec::new() });
        for connections in CONNECTIONS {
            self.say(&format!("{connections} connections"));
            let question = Question { connections, ..hot.clone() };
            let contest = self.contest(&question, nginx, self.request.rounds.min(3))?;
            for (place, line) in lines.iter_mut().enumerate() {
                let per_second = contest.median(place, |it| it.outcome.per_second);
                line.points.push((f64::from(connections), per_second));
            }
        }
        self.report.connections = lines.to_vec();
        Ok(())
    }

    fn question(&self, name: &str) -> Result<&Question> {
        let found = self.questions.iter().find(|it| it.name == name);
        found.with_context(|| format!("no question is called {name}"))
    }

    fn add(
        &mut self,
        name: &'static str,
        words: &str,
        contest: Contest,
        answer_bytes: usize,
        driver: Driver,
    ) {
        let words = words.to_owned();
        self.report.answered.push(Answered { name, words, driver, contest, answer_bytes });
    }

    /// The answer whose length is nearest to the mean, for nginx to return.
    fn usual_answer(&self, question: &Question) -> Result<Fixed> {
        let step = (question.bodies.len() / LOOKED_AT).max(1);
        let mut answers = Vec::new();
        for body in question.bodies.iter().step_by(step).take(LOOKED_AT) {
            let address = &self.served.address;
            let answer = ask(address, "/", Some(body.as_bytes()), &question.headers)
                .context(question.name)?;
            let text = || String::from_utf8_lossy(&answer);
            ensure!(!is_refusal(&answer), "{}: {}", question.name, text());
            answers.push(answer);
        }
        let mean = answers.iter().map(Vec::len).sum::<usize>() / answers.len().max(1);
        let usual = answers.into_iter().min_by_key(|answer| answer.len().abs_diff(mean));
        let body = usual.with_context(|| format!("{} asks nothing", question.name))?;
        Ok(Fixed { name: question.name.to_owned(), body, encoding: question.encoding() })
    }

    fn contest(&self, question: &Question, nginx: &Nginx, rounds: usize) -> Result<Contest> {
        let rules = Rules { rounds, ..self.rules(question)? };
        let is_h2 = question.driver == Driver::H2load;
        let contestants = [
            Contestant {
                name: "Quipu".to_owned(),
                id: self.served.id(),
                target: self.served.target(),
            },
            Contestant {
                name: "nginx".to_owned(),
                id: nginx.id(),
                target: nginx.target(question.name, is_h2),
            },
        ];
        rules.hold(&contestants, |_| Ok(())).context(question.name)
    }

    fn rules(&self, question: &Question) -> Result<Rules<'_>> {
        let bodies = self.work.join(format!("{}.bodies", question.name));
        fs::write(&bodies, question.bodies.join("\n")).context("a file of bodies")?;
        let load = Load {
            bodies,
            body_count: question.bodies.len(),
            headers: question.headers.clone(),
            connections: question.connections,
            threads: self.request.threads,
            time: self.request.time,
        };
        let (driver, rounds) = (question.driver, self.request.rounds);
        Ok(Rules { driver, load, rounds, folder: self.work })
    }
}

/// Whether an answer, single and not encoded, is an error.
fn is_refusal(answer: &[u8]) -> bool {
    let start = answer.get(..64).unwrap_or(answer);
    String::from_utf8_lossy(start).contains("\"error\":")
}
