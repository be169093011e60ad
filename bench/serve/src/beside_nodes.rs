//! Quipu beside nodes: rivals that answer the same.
//!
//! Knows: which nodes there are, and what both sides are asked.
//! Never knows: how a node is started, or what it is told.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::chain_keys::ChainKeys;
use crate::node::{Kind, Node, Program};
use crate::questions::{all, block_by_number, of_nodes};
use crate::quipu::Serving;
use crate::run::Asking;

/// Blocks that a node makes: forty thousand transactions.
const BLOCK_COUNT: usize = 200;

impl Asking<'_> {
    /// All that needs a node.
    pub(crate) fn of_nodes(&mut self) {
        let named = [Kind::Anvil, Kind::Geth].map(|kind| (kind, Path::new(kind.name()).to_owned()));
        let reth = self.request.reth.clone().map(|path| (Kind::Reth, path));
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
    }

    /// The same chain served by a node, which made it, and by Quipu, which took it from there.
    fn of_rival(&mut self, program: &Program) -> Result<()> {
        let name = program.kind.name();
        let node = Node::start(program, &self.work.join(name))?;
        node.make_chain(BLOCK_COUNT).with_context(|| format!("{name}'s chain"))?;
        self.say(&format!("Quipu takes it from {name}"));
        let store = self.work.join(format!("from-{name}"));
        self.quipu.backfill(&node.server.url(), &node.chain_flags()?, node.last()?, &store)?;
        let served = self.quipu.serve(&Serving::of(&store))?;
        let keys = ChainKeys::read(&served.address)?;
        let last = keys.blocks.last().context("an empty chain")?;
        node.check_same(&served, &block_by_number(&last.number, true))?;
        let contestants = [served.contestant("Quipu"), node.server.contestant(node.name())];
        for question in of_nodes(all(&keys, &served.address)?) {
            self.say(&format!("{}, beside {name}", question.words));
            let contest = self.rules(&question)?.hold(&contestants, |_| Ok(()));
            self.add_figure(&question, contest.with_context(|| name.to_owned())?, 0);
        }
        Ok(())
    }
}
