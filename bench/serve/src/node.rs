//! Nodes that answer the same questions, on a chain of their own that Quipu is filled from.
//!
//! No node can take in the sample chain, whose blocks nobody could have executed. So the node makes the
//! chain: blocks of 200 calls of a contract that logs as a token does. Quipu takes it from the node by
//! `backfill`, and both are asked about the same blocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::nginx::free_port;
use crate::process::Running;
use crate::server::{ServerProcess, result_of};

/// Transactions of a block.
const TXS_PER_BLOCK: usize = 200;
/// Wallets that are paid: of forty thousand logs ten have the same one.
const RECIPIENTS: usize = 4_000;
const SEAL_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const GAS: &str = "0xea60";
/// More than the transactions of a block: they come highest nonce first, and wait for the lowest.
const POOL_SLOTS: &str = "1000";

/// Deploys a contract that logs `Transfer(address,address,uint256)` with the caller and what it was
/// called with, and does nothing else.
const TOKEN: &str = "0x603180600b6000396000f3602435600052600435337fddf252ad1be2c89b69c2b068fc378daa\
                     952ba7f163c4a11628f55a4df523b3ef60206000a300";
/// The selector of `transfer(address,uint256)`.
const TRANSFER: &str = "a9059cbb";

/// A kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Foundry's.
    Anvil,
    /// Ethereum's oldest.
    Geth,
    /// The one in Rust.
    Reth,
}

impl NodeKind {
    /// What the table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anvil => "anvil",
            Self::Geth => "geth",
            Self::Reth => "reth",
        }
    }
}

/// A node's program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which it is.
    pub kind: NodeKind,
    path: PathBuf,
    /// What it calls its version.
    pub version: String,
}

impl Program {
    /// The one that lies there, or that is found by that name; `None` if it cannot be started.
    #[must_use]
    pub fn find(kind: NodeKind, path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = find_version(&said).unwrap_or("of an unknown version").to_owned();
        output.status.success().then(|| Self { kind, path: path.to_owned(), version })
    }

    fn command(&self, port: u16, folder: &Path) -> Command {
        let mut command = Command::new(&self.path);
        let port = port.to_string();
        match self.kind {
            NodeKind::Anvil => {
                command.args(["--silent", "--no-mining", "--host", "127.0.0.1", "--port", &port]);
            }
            NodeKind::Geth => {
                // Makes a block as soon as there is anything to put into it.
                command.args(["--dev", "--nodiscover", "--ipcdisable", "--verbosity", "1"]);
                command.args(["--port", "0", "--authrpc.port", "0", "--http", "--http.addr"]);
                command.args(["127.0.0.1", "--http.port", &port, "--http.api", "eth,net,web3"]);
                command.args(["--txpool.accountqueue", POOL_SLOTS, "--datadir"]).arg(folder);
            }
            NodeKind::Reth => {
                command.args(["node", "--dev", "--dev.block-time", "250ms", "--disable-discovery"]);
                command.args(["--port", "0", "--authrpc.port", "0", "--ipcdisable", "--http"]);
                command.args(["--http.addr", "127.0.0.1", "--http.port", &port, "--http.api"]);
                command.args(["eth,net,web3", "--txpool.max-account-slots", POOL_SLOTS]);
                command.arg("--datadir").arg(folder);
            }
        }
        command
    }
}

/// The first word with a dot that begins with a digit, or with a `v` and a digit.
fn find_version(said: &str) -> Option<&str> {
    let words = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    words
        .into_iter()
        .find(|word| word.starts_with(|it: char| it.is_ascii_digit()) && word.contains('.'))
}

/// A node that runs until this is dropped.
#[derive(Debug)]
pub struct RivalNode {
    kind: NodeKind,
    /// Where it is asked.
    pub server: ServerProcess,
}

impl RivalNode {
    /// Starts a node with an empty chain.
    pub fn start(program: &Program, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context("a node's folder")?;
        let port = free_port()?;
        let mut command = program.command(port, folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command)?;
        let mut server = ServerProcess::new(running, format!("127.0.0.1:{port}"));
        server.wait_until_it_answers().context(program.kind.name())?;
        Ok(Self { kind: program.kind, server })
    }

    /// What the table calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The flags that name its chain, by its own word.
    pub fn chain_flags(&self) -> Result<[String; 4]> {
        let id = number_of(&self.server.call("eth_chainId", &json!([]))?)?;
        let genesis = self.server.call("eth_getBlockByNumber", &json!(["0x0", false]))?;
        let hash = genesis.get("hash").and_then(Value::as_str).context("no genesis")?;
        let [name, hash_name] = ["--chain-id", "--genesis-hash"].map(str::to_owned);
        Ok([name, id.to_string(), hash_name, hash.to_owned()])
    }

    /// The number of its highest block.
    pub fn last(&self) -> Result<u64> {
        number_of(&self.server.call("eth_blockNumber", &json!([]))?)
    }

    /// Sees that a block is the same here as elsewhere, as far as its hash and the hashes of its
    /// transactions tell.
    pub fn check_same(&self, other: &ServerProcess, body: &str) -> Result<()> {
        let [ours, theirs] = [other, &self.server].map(|server| {
            let block = result_of(&server.ask(body)?)?;
            let hash = block.get("hash").cloned().context("a block without hash")?;
            let transactions = block.get("transactions").and_then(Value::as_array);
            let hashes: Vec<Value> = transactions
                .context("a block without transactions")?
                .iter()
                .filter_map(|it| it.get("hash").cloned())
                .collect();
            anyhow::Ok((hash, hashes))
        });
        ensure!(ours? == theirs?, "{} and Quipu answer {body} differently", self.name());
        Ok(())
    }

    /// Sees that a search finds as many logs here as elsewhere.
    pub fn check_logs(&self, other: &ServerProcess, body: &str) -> Result<()> {
        let [ours, theirs] = [other, &self.server].map(|server| {
            let logs = result_of(&server.ask(body)?)?;
            let count = logs.as_array().context("no list of logs")?.len();
            ensure!(count > 0, "no log is found");
            Ok(count)
        });
        let (ours, theirs) = (ours?, theirs?);
        ensure!(ours == theirs, "{} finds {theirs} logs, Quipu {ours}: {body}", self.name());
        Ok(())
    }

    /// Accounts that the node signs for.
    pub fn accounts(&self) -> Result<Vec<Value>> {
        let accounts = self.server.call("eth_accounts", &json!([]))?;
        Ok(accounts.as_array().context("no list of accounts")?.clone())
    }

    /// Lets the node make so many blocks, beside those for the contract and between.
    pub fn make_chain(&self, block_count: usize) -> Result<()> {
        let from = self.accounts()?.first().context("no account")?.clone();
        let deploy = json!({"from": from, "data": TOKEN, "gas": "0x30d40", "nonce": "0x0"});
        let hash = self.server.call("eth_sendTransaction", &json!([deploy]))?;
        let token = self.sealed(&hash)?;
        let token = token.get("contractAddress").context("no contract")?.clone();
        let mut nonce = 1_usize;
        for _ in 0..block_count {
            let next = nonce.saturating_add(TXS_PER_BLOCK);
            // The lowest comes last: until then all wait, and then they go into one block.
            let calls: Vec<Value> =
                (nonce..next).rev().map(|nonce| transfer(&from, &token, nonce)).collect();
            let answers = self.server.ask(&Value::Array(calls).to_string())?;
            let answers = answers.as_array().context("a batch gets a list")?;
            let hashes = answers.iter().map(result_of).collect::<Result<Vec<_>>>()?;
            self.sealed(hashes.first().context("no transaction was sent")?)?;
            nonce = next;
        }
        Ok(())
    }

    /// Waits until a transaction is in a block, and gives its receipt.
    fn sealed(&self, hash: &Value) -> Result<Value> {
        if self.kind == NodeKind::Anvil {
            self.server.call("evm_mine", &json!([]))?;
        }
        let begun = Instant::now();
        loop {
            // A node may refuse to tell while its index is on the way.
            let receipt = self.server.call("eth_getTransactionReceipt", &json!([hash]));
            if let Ok(receipt) = receipt
                && !receipt.is_null()
            {
                let status = receipt.get("status").and_then(Value::as_str);
                ensure!(status == Some("0x1"), "{hash} failed: {receipt}");
                return Ok(receipt);
            }
            ensure!(begun.elapsed() < SEAL_WITHIN, "{hash} is in no block");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whom a transaction pays: each of [`RECIPIENTS`] in turn.
fn recipient(nonce: usize) -> String {
    format!("{:064x}", (nonce % RECIPIENTS).saturating_mul(7919))
}

/// The third topic of every log of the chains that nodes make.
#[must_use]
pub fn recipients() -> Vec<String> {
    (0..RECIPIENTS).map(|nonce| format!("0x{}", recipient(nonce))).collect()
}

fn number_of(quantity: &Value) -> Result<u64> {
    let digits = quantity.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(digits.context("no quantity")?, 16).context("no quantity")
}

fn transfer(from: &Value, token: &Value, nonce: usize) -> Value {
    let data = format!("0x{TRANSFER}{}{nonce:064x}", recipient(nonce));
    let call = json!({
        "from": from, "to": token, "data": data, "gas": GAS, "nonce": format!("{nonce:#x}"),
    });
    json!({"jsonrpc": "2.0", "id": nonce, "method": "eth_sendTransaction", "params": [call]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, expected) in [
            (
                "anvil Version: 1.7.1-v1.7.1
Commit SHA: 4072e48",
                Some("1.7.1-v1.7.1"),
            ),
            ("geth version 1.17.7-stable", Some("1.17.7-stable")),
            ("reth-ethereum-cli Version: 2.1.0", Some("2.1.0")),
            ("unknown", None),
        ] {
            assert_eq!(find_version(said), expected);
        }
    }

    #[test]
    fn a_transfer_is_a_call_of_the_token() {
        let call = transfer(&json!("0xa"), &json!("0xb"), 255);
        let data = call.pointer("/params/0/data").and_then(Value::as_str).unwrap();
        assert_eq!(data.len(), 2 + 8 + 64 + 64);
        assert!(data.ends_with("ff"));
        assert_eq!(call.pointer("/params/0/nonce"), Some(&json!("0xff")));
    }
}
