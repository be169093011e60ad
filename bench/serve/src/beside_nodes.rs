//! Quipu beside nodes: rivals that answer the same, and one that reorganises its chain all the time.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::call::{block_by_number, logs_to};
use crate::chain_keys::ChainKeys;
use crate::circumstances::beside_figures;
use crate::contest::Driver;
use crate::node::{NodeKind, Program, RivalNode, recipients};
use crate::questions::{FIXED_RATE, Question, all, of_logs, of_nodes};
use crate::quipu::Serving;
use crate::run::Asking;
use crate::storm::Storm;

/// Blocks that a node makes: forty thousand transactions.
const BLOCK_COUNT: usize = 200;
/// Below a storm.
const CALM_BLOCK_COUNT: usize = 40;

impl Asking<'_> {
    /// All that needs a node.
    pub(crate) fn of_nodes(&mut self) -> Result<()> {
        let named =
            [NodeKind::Anvil, NodeKind::Geth].map(|kind| (kind, Path::new(kind.name()).to_owned()));
        let reth = self.request.reth.clone().map(|path| (NodeKind::Reth, path));
        if self.request.wants("rivals") {
            if reth.is_none() {
                self.say("reth is left out: --reth PATH names its program");
            }
            for (kind, path) in named.into_iter().chain(reth) {
                let Some(program) = Program::find(kind, &path) else {
                    self.say(&format!("{} cannot be started: left out", path.display()));
                    continue;
                };
                let named = format!("{} {}", kind.name(), program.version);
                self.say(&format!("{named} makes a chain"));
                // A node that fails is not worth all that was measured before it.
                let outcome = self.of_rival(&program);
                self.report.rivals.push(match outcome {
                    Ok(()) => named,
                    Err(error) => format!("{named} broke off: {error:#}"),
                });
            }
        }
        if self.request.wants("reorgs") {
            match Program::find(NodeKind::Anvil, Path::new(NodeKind::Anvil.name())) {
                Some(anvil) => self.of_storm(&anvil)?,
                None => self.say("anvil cannot be started: no reorgs"),
            }
        }
        Ok(())
    }

    /// The same chain served by a node, which made it, and by Quipu, which took it from there.
    fn of_rival(&mut self, program: &Program) -> Result<()> {
        let name = program.kind.name();
        let node = RivalNode::start(program, &self.work.join(name))?;
        node.make_chain(BLOCK_COUNT).with_context(|| format!("{name}'s chain"))?;
        self.say(&format!("Quipu takes it from {name}"));
        let store = self.work.join(format!("from-{name}"));
        self.quipu.backfill(&node.server.url(), &node.chain_flags()?, node.last()?, &store)?;
        let served = self.quipu.serve(&Serving::of(&store))?;
        let keys = ChainKeys::read(&served.address)?;
        let last = keys.blocks.last().context("an empty chain")?;
        node.check_same(&served, &block_by_number(&last.number, true))?;
        let recipients = recipients();
        let one = recipients.first().context("nobody is paid")?;
        node.check_logs(&served, &logs_to(one))?;
        let contestants = [served.contestant("Quipu"), node.server.contestant(node.name())];
        let mut questions = of_nodes(all(&keys, &served.address)?);
        questions.extend(of_logs(&recipients, &keys));
        for question in questions {
            self.say(&format!("{}, beside {name}", question.words));
            let contest = self.rules(&question)?.hold(&contestants, |_| Ok(()));
            self.add_figure(&question, contest.with_context(|| name.to_owned())?, 0);
        }
        Ok(())
    }

    /// What Quipu answers while the chain that it follows is reorganised all the time, beside the same
    /// server while it is not.
    fn of_storm(&mut self, anvil: &Program) -> Result<()> {
        self.say("anvil makes a chain to reorganise");
        let node = RivalNode::start(anvil, &self.work.join("storm"))?;
        node.make_chain(CALM_BLOCK_COUNT).context("anvil's chain")?;
        let calm = Storm::prepare(&node)?;
        let mut flags = node.chain_flags()?.to_vec();
        flags.extend(["--upstream".to_owned(), format!("ws://{}/", node.server.address)]);
        flags.extend(["--backfill-to", "0"].map(str::to_owned));
        let folder = self.work.join("stormy");
        let served = self.quipu.serve(&Serving { flags: &flags, ..Serving::of(&folder) })?;
        let mut storm = Storm::new(node, served)?;
        let keys = ChainKeys::read_to(&storm.served().address, calm)?;
        let question = all(&keys, &storm.served().address)?
            .into_iter()
            .find(|question| question.name == "random-transaction")
            .context("no random transaction")?;
        let question = Question { driver: Driver::Oha(FIXED_RATE), ..question };
        self.say("beside a storm of reorgs");
        let contestants =
            ["Quipu, beside reorgs", "Quipu"].map(|name| storm.served().contestant(name));
        let contest = self.rules(&question)?.hold(&contestants, |place| storm.blow(place == 0))?;
        let seen = storm.end()?;
        self.say(&seen);
        let names = ["reorgs-p99", "reorgs-cpu"];
        let mut figures = beside_figures(names, "reorgs", &contest);
        for figure in &mut figures {
            figure.note.clone_from(&seen);
        }
        self.report.figures.extend(figures);
        let words = "random transaction at 10,000/s, beside reorgs";
        self.add("reorgs", words, contest, 0, question.driver);
        Ok(())
    }
}
