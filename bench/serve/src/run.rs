//! A run: the chain, the servers, the questions, the report.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bench_store::figure::Figure;
use bench_store::machine::load;

use crate::certificate::CertificateFiles;
use crate::chain_keys::ChainKeys;
use crate::circumstances::{beside_figures, beside_import, cold, memory_under_load};
use crate::contest::{Contest, Contestant, Driver, Rules};
use crate::http::ask;
use crate::load::Load;
use crate::machine::description;
use crate::nginx::{Fixed, Nginx};
use crate::process::{end_all_on_signal, leave_core};
use crate::questions::{FIXED_RATE, Question, all};
use crate::quipu::{BLOCK_COUNT, BLOCK_COUNT_QUICK, BenchChain, Quipu, Serving};
use crate::report::{Answered, BenchReport};
use crate::request::LoadRequest;
use crate::server::ServerProcess;

/// Answers of a question that are looked at to find one of the usual length.
const LOOKED_AT: usize = 200;
/// Turns at a fixed rate are so many times as long as others: one wait in a hundred is what they
/// tell, and a second that went badly for the whole machine would be all of it.
const TURNS_OF_WAITS: u32 = 3;
/// The core of servers that share none with the load generator.
const SERVER_CORE: &str = "0";
/// What is asked of Quipu alone, or in more than one way.
const OTHERS: [&str; 7] = ["tls", "cold", "import", "memory", "scaling", "rivals", "reorgs"];
/// What is asked over TLS, and what that is called.
const OF_TLS: [(&str, &str); 3] = [
    ("hot-transaction", "hot transaction over TLS"),
    ("random-transaction", "random transaction over TLS"),
    ("hot-block", "hot full block over TLS"),
];

/// Does what the arguments ask for, and gives what is to be printed.
pub fn run(arguments: &[String]) -> Result<String> {
    let request = LoadRequest::parse(arguments)?;
    let begun = Instant::now();
    let load_before = load();
    let work = tempfile::Builder::new().prefix("quipu-bench-").tempdir()?;
    end_all_on_signal(work.path())?;
    let server_cores = request.is_apart.then_some(SERVER_CORE);
    if request.is_apart {
        leave_core(SERVER_CORE.parse()?)?;
    }
    let quipu = Quipu::beside_this_program(server_cores)?;
    eprintln!("making the chain, or looking at the one that is there");
    let data = request.data.as_deref().unwrap_or(work.path()).join(&request.payload);
    let block_count = if request.is_quick { BLOCK_COUNT_QUICK } else { BLOCK_COUNT };
    let chain = quipu.make_chain(&data, block_count, &request.payload)?;
    let served = quipu.serve(&Serving::of(&chain.store))?;
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
        uncached: None,
        keys: &keys,
        questions: &questions,
        begun,
        report: BenchReport::default(),
    };
    asking.of_nginx()?;
    asking.of_tls()?;
    asking.of_quipu_alone()?;
    asking.of_scale()?;
    asking.of_nodes()?;
    let mut report = asking.report;
    let show = |load: Option<f64>| load.map_or_else(|| "?".into(), |load| format!("{load:.1}"));
    report.machine = format!(
        "{}, {}; {} transactions in {} blocks, payloads as in \
         `quipu sample --payload {}`; rounds of {} s; nodes: {}; load average {} before, {} after; {} s",
        description(),
        if request.is_apart {
            "the first for the server that is asked, the others for all else"
        } else {
            "shared by the servers and the load generator"
        },
        keys.transaction_count(),
        keys.blocks.len(),
        request.payload,
        request.time.as_secs(),
        if report.rivals.is_empty() { "none".to_owned() } else { report.rivals.join(", ") },
        show(load_before),
        show(load()),
        begun.elapsed().as_secs()
    );
    if let Some(docs) = &request.write {
        report.write(docs)?;
    }
    Ok(if request.is_json { format!("{:#}\n", report.to_json()) } else { report.format() })
}

/// A run that is under way.
pub(crate) struct Asking<'a> {
    pub(crate) request: &'a LoadRequest,
    pub(crate) work: &'a Path,
    pub(crate) quipu: &'a Quipu,
    pub(crate) chain: &'a BenchChain,
    pub(crate) served: &'a ServerProcess,
    /// The same chain, served without keeping answers; started when it is wanted first.
    uncached: Option<ServerProcess>,
    pub(crate) keys: &'a ChainKeys,
    questions: &'a [Question],
    begun: Instant,
    pub(crate) report: BenchReport,
}

impl<'a> Asking<'a> {
    /// The cores that servers have to themselves.
    pub(crate) fn server_cores(&self) -> Option<&'static str> {
        self.request.is_apart.then_some(SERVER_CORE)
    }

    pub(crate) fn say(&self, what: &str) {
        eprintln!("[{:>4} s] {what}", self.begun.elapsed().as_secs());
    }

    /// What nginx is asked too.
    fn of_nginx(&mut self) -> Result<()> {
        let wanted: Vec<&Question> =
            self.questions.iter().filter(|it| self.request.wants(it.name)).collect();
        let answers = wanted.iter().map(|it| self.usual_answer(it)).collect::<Result<Vec<_>>>()?;
        if answers.is_empty() {
            return Ok(());
        }
        let nginx = Nginx::start(&self.work.join("nginx"), &answers, self.server_cores())?;
        for (question, answer) in wanted.iter().zip(&answers) {
            self.say(question.words);
            let contest = self.contest(question, &nginx, self.request.rounds)?;
            let bytes = answer.body.len();
            self.add_figure(question, contest, bytes);
        }
        Ok(())
    }

    /// What encryption costs, beside the same server without it and nginx with it.
    fn of_tls(&mut self) -> Result<()> {
        if !self.request.wants("tls") {
            return Ok(());
        }
        let files = CertificateFiles::write(self.work)?;
        let flags = files.flags();
        let serving = Serving { flags: &flags, ..Serving::of(&self.chain.store) };
        let encrypted = self.quipu.serve(&serving)?;
        for (name, words) in OF_TLS {
            self.say(words);
            let question = self.question(name)?.clone();
            let answer = self.usual_answer(&question)?;
            let (folder, cores) = (self.work.join("nginx-tls"), self.server_cores());
            let nginx = Nginx::start(&folder, std::slice::from_ref(&answer), cores)?;
            let contestants = [
                encrypted.contestant("Quipu over TLS"),
                self.served.contestant("Quipu"),
                Contestant {
                    name: "nginx over TLS".to_owned(),
                    id: nginx.id(),
                    target: nginx.encrypted_target(name),
                },
            ];
            let contest = self.rules(&question)?.hold(&contestants, |_| Ok(())).context(name)?;
            self.add("tls", words, contest, answer.body.len(), question.driver);
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
            let names = ["import-p99", "import-cpu"];
            self.report.figures.extend(beside_figures(names, "an import", &contest));
            let words = "random transaction at 10,000/s, beside an import";
            self.add("import", words, contest, 0, question.driver);
        }
        if self.request.wants("memory") {
            self.say("memory");
            let loads = ["hot-transaction", "hot-block"]
                .map(|name| self.question(name).and_then(|question| self.rules(question)));
            let loads = loads.into_iter().collect::<Result<Vec<_>>>()?;
            // A fresh one: what was asked before does not count.
            let fresh = self.quipu.serve(&Serving::of(&self.chain.store))?;
            let figure: Figure = memory_under_load(&fresh, &loads)?;
            self.report.figures.push(figure);
        }
        Ok(())
    }

    /// Who answers a question of the sample chain.
    pub(crate) fn server_for(&mut self, question: &Question) -> Result<&ServerProcess> {
        if !question.is_uncached {
            return Ok(self.served);
        }
        if self.uncached.is_none() {
            let serving = Serving { is_uncached: true, ..Serving::of(&self.chain.store) };
            self.uncached = Some(self.quipu.serve(&serving)?);
        }
        self.uncached.as_ref().context("just started")
    }

    pub(crate) fn question(&self, name: &str) -> Result<&Question> {
        let found = self.questions.iter().find(|it| it.name == name);
        found.with_context(|| format!("no question is called {name}"))
    }

    pub(crate) fn add(
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

    /// The same, and the figure that was promised of it.
    pub(crate) fn add_figure(&mut self, question: &Question, contest: Contest, bytes: usize) {
        self.add(question.name, question.words, contest, bytes, question.driver);
        let figure = self.report.answered.last().map(|it| it.figure(question));
        self.report.figures.extend(figure);
    }

    /// The answer whose length is nearest to the mean, for nginx to return.
    pub(crate) fn usual_answer(&self, question: &Question) -> Result<Fixed> {
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

    /// A question of the sample chain, asked of Quipu and of nginx.
    pub(crate) fn contest(
        &mut self,
        question: &Question,
        nginx: &Nginx,
        rounds: usize,
    ) -> Result<Contest> {
        let is_h2 = question.driver == Driver::H2load;
        let contestants = [
            self.server_for(question)?.contestant("Quipu"),
            Contestant {
                name: "nginx".to_owned(),
                id: nginx.id(),
                target: nginx.target(question.name, is_h2),
            },
        ];
        let rules = Rules { rounds, ..self.rules(question)? };
        rules.hold(&contestants, |_| Ok(())).context(question.name)
    }

    /// How a question is asked.
    pub(crate) fn rules(&self, question: &Question) -> Result<Rules<'a>> {
        let bodies = self.work.join(format!("{}.bodies", question.name));
        fs::write(&bodies, question.bodies.join("\n")).context("a file of bodies")?;
        let turns = if matches!(question.driver, Driver::Oha(_)) { TURNS_OF_WAITS } else { 1 };
        let load = Load {
            bodies,
            body_count: question.bodies.len(),
            headers: question.headers.clone(),
            connections: question.connections,
            threads: self.request.threads,
            time: self.request.time.saturating_mul(turns),
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
