//! Nodes that answer the same questions, on a chain of their own that Quipu is filled from.
//!
//! Knows: how anvil and geth are started in their development modes, and given transactions.
//! Never knows: what is measured.
//!
//! No node can take in the sample chain, whose blocks nobody could have executed. So the node makes the
//! chain: blocks of 200 calls of a contract that logs as a token does. Quipu takes it from the node by
//! `backfill`, and both are asked about the same blocks.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::ask;
use crate::load::Target;
use crate::nginx::free_port;
use crate::process::Running;

/// Blocks of the chain.
const BLOCK_COUNT: usize = 40;
/// Transactions of each.
const TXS_PER_BLOCK: usize = 200;
const START_WITHIN: Duration = Duration::from_mins(1);
const SEAL_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const GAS: &str = "0xea60";

/// Deploys a contract that logs `Transfer(address,address,uint256)` with the caller and what it was
/// called with, and does nothing else.
const TOKEN: &str = "0x603180600b6000396000f3602435600052600435337fddf252ad1be2c89b69c2b068fc378daa\
                     952ba7f163c4a11628f55a4df523b3ef60206000a300";
/// The selector of `transfer(address,uint256)`.
const TRANSFER: &str = "a9059cbb";

/// A kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Foundry's.
    Anvil,
    /// Ethereum's oldest.
    Geth,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Anvil, Self::Geth];

    /// The program, which is also what the table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anvil => "anvil",
            Self::Geth => "geth",
        }
    }

    /// Whether the program is there.
    #[must_use]
    pub fn is_there(self) -> bool {
        let version = Command::new(self.name()).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    }

    fn command(self, port: u16, folder: &Path) -> Command {
        let mut command = Command::new(self.name());
        match self {
            Self::Anvil => {
                command.args(["--silent", "--no-mining", "--port", &port.to_string()]);
                command.args(["--host", "127.0.0.1"]);
            }
            Self::Geth => {
                // A block every second, if there is anything to put into it.
                command.args(["--dev", "--dev.period", "1", "--nodiscover", "--ipcdisable"]);
                command.args(["--port", "0", "--authrpc.port", "0", "--verbosity", "1"]);
                command.args(["--http", "--http.addr", "127.0.0.1", "--http.api", "eth,net,web3"]);
                command.args(["--http.port", &port.to_string(), "--datadir"]).arg(folder);
            }
        }
        command
    }
}

/// A node that runs until this is dropped.
#[derive(Debug)]
pub struct Rival {
    kind: Kind,
    running: Running,
    address: String,
}

impl Rival {
    /// Starts a node and lets it make its chain.
    pub fn start(kind: Kind, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context("a node's folder")?;
        let port = free_port()?;
        let mut command = kind.command(port, folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command)?;
        let mut rival = Self { kind, running, address: format!("127.0.0.1:{port}") };
        rival.wait_until_it_answers()?;
        rival.make_chain().with_context(|| format!("{}'s chain", kind.name()))?;
        Ok(rival)
    }

    /// What the table calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Where requests are sent.
    #[must_use]
    pub fn target(&self) -> Target {
        Target { url: format!("http://{}/", self.address), is_get: false }
    }

    /// Sees that a block is the same here as elsewhere, as far as its hash and the hashes of its
    /// transactions tell.
    pub fn check_same(&self, address: &str, body: &str) -> Result<()> {
        let [ours, theirs] = [address, &self.address].map(|address| {
            let answer = ask(address, "/", Some(body.as_bytes()), &[])?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let hash = answer.pointer("/result/hash").cloned().context("a block without hash")?;
            let transactions = answer.pointer("/result/transactions").and_then(Value::as_array);
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

    fn call(&self, method: &str, params: &Value) -> Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = ask(&self.address, "/", Some(request.to_string().as_bytes()), &[])?;
        result_of(&serde_json::from_slice(&answer)?).with_context(|| method.to_owned())
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.call("eth_blockNumber", &json!([])).is_err() {
            ensure!(self.running.is_running()?, "{} ended at once", self.name());
            ensure!(begun.elapsed() < START_WITHIN, "{} does not answer", self.name());
            // It does not tell when it is ready.
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn make_chain(&self) -> Result<()> {
        let accounts = self.call("eth_accounts", &json!([]))?;
        let from = accounts.get(0).context("no account")?.clone();
        let deploy = json!({"from": from, "data": TOKEN, "gas": "0x30d40", "nonce": "0x0"});
        let hash = self.call("eth_sendTransaction", &json!([deploy]))?;
        let token = self.sealed(&hash)?;
        let token = token.get("contractAddress").context("no contract")?.clone();
        let mut nonce = 1_usize;
        for _ in 0..BLOCK_COUNT {
            let calls: Vec<Value> = (nonce..nonce.saturating_add(TXS_PER_BLOCK))
                .map(|nonce| transfer(&from, &token, nonce))
                .collect();
            nonce = nonce.saturating_add(TXS_PER_BLOCK);
            let body = Value::Array(calls).to_string();
            let answers: Value =
                serde_json::from_slice(&ask(&self.address, "/", Some(body.as_bytes()), &[])?)?;
            let answers = answers.as_array().context("a batch gets a list")?;
            let hashes = answers.iter().map(result_of).collect::<Result<Vec<_>>>()?;
            self.sealed(hashes.last().context("no transaction was sent")?)?;
        }
        Ok(())
    }

    /// Waits until a transaction is in a block, and gives its receipt.
    fn sealed(&self, hash: &Value) -> Result<Value> {
        if self.kind == Kind::Anvil {
            self.call("evm_mine", &json!([]))?;
        }
        let begun = Instant::now();
        loop {
            let receipt = self.call("eth_getTransactionReceipt", &json!([hash]))?;
            if !receipt.is_null() {
                let status = receipt.get("status").and_then(Value::as_str);
                ensure!(status == Some("0x1"), "{hash} failed: {receipt}");
                return Ok(receipt);
            }
            ensure!(begun.elapsed() < SEAL_WITHIN, "{hash} is in no block");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn transfer(from: &Value, token: &Value, nonce: usize) -> Value {
    let data = format!("0x{TRANSFER}{:064x}{:064x}", nonce.saturating_mul(7919), nonce);
    let call = json!({
        "from": from, "to": token, "data": data, "gas": GAS, "nonce": format!("{nonce:#x}"),
    });
    json!({"jsonrpc": "2.0", "id": nonce, "method": "eth_sendTransaction", "params": [call]})
}

fn result_of(answer: &Value) -> Result<Value> {
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => bail!("{answer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_result_and_null_is_one() {
        assert_eq!(result_of(&json!({"result": null})).unwrap(), Value::Null);
        let error = result_of(&json!({"error": {"message": "nonce too low"}})).unwrap_err();
        assert!(error.to_string().contains("nonce too low"));
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
