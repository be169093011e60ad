//! oha: so many requests in a second and no more, and how long each took.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Load, LoadOutcome, SLACK, Target};
use crate::process::output_of;

/// Sends `rate` requests in a second. A request that could not be sent in time waits from when it
/// was due: a server that stalls does not hide behind a load generator that stalls with it.
pub fn run(load: &Load, target: &Target, rate: u32) -> Result<LoadOutcome> {
    let mut oha = Command::new("oha");
    oha.args(["--no-tui", "--output-format", "json", "--latency-correction"]);
    oha.args(["--wait-ongoing-requests-after-deadline"]);
    oha.args(["-z", &format!("{}s", load.time.as_secs().max(1))]);
    oha.args(["-c", &load.connections.to_string(), "-q", &rate.to_string()]);
    if !target.is_get {
        oha.args(["-m", "POST", "-Z"]).arg(&load.bodies);
    }
    // It would ask for compressed answers by itself, which no other load generator does.
    oha.args(["-T", "application/json", "--disable-compression"]);
    for (name, value) in &load.headers {
        oha.args(["-H", &format!("{name}: {value}")]);
    }
    let output = output_of(oha.arg(&target.url), load.time.saturating_add(SLACK))?;
    let said = serde_json::from_slice(&output.stdout).context("what oha prints is no JSON")?;
    parse(&said).with_context(|| format!("{}: oha said: {said}", target.url))
}

/// Seconds become microseconds. Any answer but 200 is an error.
fn parse(said: &Value) -> Result<LoadOutcome> {
    let number = |path: &str| {
        said.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
    };
    let codes = said.pointer("/statusCodeDistribution").and_then(Value::as_object);
    let codes = codes.context("no status codes")?;
    let requests = codes.get("200").and_then(Value::as_u64).unwrap_or_default();
    ensure!(requests > 0 && codes.len() == 1, "not all answers are 200");
    let errors = said.pointer("/errorDistribution").and_then(Value::as_object);
    ensure!(errors.is_none_or(serde_json::Map::is_empty), "some requests failed");
    Ok(LoadOutcome {
        requests,
        per_second: number("/summary/requestsPerSec")?,
        bytes: number("/summary/sizePerRequest")?,
        p50: number("/latencyPercentiles/p50")? * 1e6,
        p99: number("/latencyPercentiles/p99")? * 1e6,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(codes: &Value, errors: &Value) -> Value {
        json!({
            "summary": {"requestsPerSec": 9990.5, "sizePerRequest": 700},
            "latencyPercentiles": {"p50": 0.000_25, "p99": 0.001_5},
            "statusCodeDistribution": codes,
            "errorDistribution": errors,
        })
    }

    #[test]
    fn what_oha_prints_is_read_and_failures_are_errors() {
        let outcome = parse(&said(&json!({"200": 20_000}), &json!({}))).unwrap();
        assert_eq!(outcome.requests, 20_000);
        assert!((outcome.p50 - 250.0).abs() < 1e-6 && (outcome.p99 - 1500.0).abs() < 1e-6);
        for (codes, errors) in [
            (json!({"200": 19_999, "503": 1}), json!({})),
            (json!({"200": 20_000}), json!({"connection closed": 1})),
            (json!({}), json!({})),
        ] {
            assert!(parse(&said(&codes, &errors)).is_err(), "{codes} {errors}");
        }
        assert!(parse(&json!({"statusCodeDistribution": {"200": 1}})).is_err());
    }
}
