//! A server that was started for a run: a process, and where it listens.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::contest::Contestant;
use crate::http::ask;
use crate::load::Target;
use crate::process::Running;

const START_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    running: Running,
    /// Where it listens.
    pub address: String,
    is_encrypted: bool,
}

impl ServerProcess {
    /// A program that was started, and listens there or soon will.
    #[must_use]
    pub fn new(running: Running, address: String) -> Self {
        Self { running, address, is_encrypted: false }
    }

    /// The same of one that speaks TLS, which only load generators can ask.
    #[must_use]
    pub fn encrypted(self) -> Self {
        Self { is_encrypted: true, ..self }
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> Result<bool> {
        self.running.is_running()
    }

    /// Tells it to stop; one that does not stop as it should is an error.
    pub fn stop(self) -> Result<()> {
        self.running.stop()
    }

    /// Where requests are sent.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// As one of a contest, under this name.
    #[must_use]
    pub fn contestant(&self, name: &str) -> Contestant {
        let target = Target { url: self.url(), is_get: false };
        Contestant { name: name.to_owned(), id: self.id(), target }
    }

    /// What one call is answered with; a refusal is an error.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        result_of(&self.ask(&request.to_string())?).with_context(|| method.to_owned())
    }

    /// What a body is answered with, a batch too.
    pub fn ask(&self, body: &str) -> Result<Value> {
        let answer = ask(&self.address, "/", Some(body.as_bytes()), &[])?;
        serde_json::from_slice(&answer).context("an answer that is no JSON")
    }

    /// For one that does not tell when it is ready.
    pub fn wait_until_it_answers(&mut self) -> Result<()> {
        let begun = Instant::now();
        while let Err(error) = self.call("eth_blockNumber", &json!([])) {
            ensure!(self.running.is_running()?, "it ended at once");
            if begun.elapsed() > START_WITHIN {
                return Err(error.context("it does not answer"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// The result in an answer; a refusal is an error.
pub fn result_of(answer: &Value) -> Result<Value> {
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
}
