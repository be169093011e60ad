//! wrk: as many requests as there can be.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Load, LoadOutcome, SLACK, Target, flawless};
use crate::process::output_of;

/// Requests are made once, before the clock runs. Every thread has its own order of them.
const SCRIPT: &str = r#"
local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("seed", threads)
end

local prepared = {}
function init(args)
  wrk.method = METHOD
  for name, value in pairs(HEADERS) do wrk.headers[name] = value end
  math.randomseed(seed * 7919)
  for line in io.lines(BODIES) do
    if wrk.method == "POST" then wrk.body = line end
    prepared[#prepared + 1] = wrk.format()
  end
end

PICK

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("measured %d %d %d %d %d %d\n",
    summary.requests, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"#;

/// With one request there is nothing to pick, and wrk sends it without asking the script.
const PICK: &str = "function request() return prepared[math.random(#prepared)] end";

/// Sends as many requests as are answered. `folder` is for the script.
pub fn run(load: &Load, target: &Target, folder: &Path) -> Result<LoadOutcome> {
    let path = folder.join("wrk.lua");
    fs::write(&path, script(load, target)).context("the script for wrk")?;
    let mut wrk = Command::new("wrk");
    wrk.arg(format!("-t{}", load.threads.min(load.connections)));
    wrk.arg(format!("-c{}", load.connections));
    wrk.arg(format!("-d{}s", load.time.as_secs().max(1)));
    wrk.args(["--timeout", "20s", "-s"]).arg(&path).arg(&target.url);
    let output = output_of(&mut wrk, load.time.saturating_add(SLACK))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (outcome, errors) = parse(&said).with_context(|| format!("wrk said: {said}"))?;
    flawless(errors, outcome.requests, &target.url)?;
    Ok(outcome)
}

fn script(load: &Load, target: &Target) -> String {
    let headers: Vec<String> = [("Content-Type", "application/json")]
        .iter()
        .chain(&load.headers)
        .map(|(name, value)| format!("[\"{name}\"] = \"{value}\""))
        .collect();
    SCRIPT
        .replace("METHOD", if target.is_get { "\"GET\"" } else { "\"POST\"" })
        .replace("HEADERS", &format!("{{{}}}", headers.join(", ")))
        .replace("BODIES", &format!("{:?}", load.bodies.display().to_string()))
        .replace("PICK", if load.body_count > 1 { PICK } else { "" })
}

/// What the script printed, and how many requests failed.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
fn parse(said: &str) -> Option<(LoadOutcome, u64)> {
    let line = said.lines().find_map(|line| line.strip_prefix("measured "))?;
    let numbers: Vec<u64> =
        line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [requests, micros, bytes, errors, p50, p99] = *numbers.as_slice() else { return None };
    let per_second = requests as f64 * 1e6 / micros.max(1) as f64;
    let bytes = bytes as f64 / requests.max(1) as f64;
    Some((LoadOutcome { requests, per_second, bytes, p50: p50 as f64, p99: p99 as f64 }, errors))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_the_script_prints_is_read() {
        let said = "Running 2s test\n  2 threads\nmeasured 200000 2000000 140000000 3 290 1500\n";
        let (outcome, errors) = parse(said).unwrap();
        assert_eq!(errors, 3);
        let expected = LoadOutcome {
            requests: 200_000,
            per_second: 1e5,
            bytes: 700.0,
            p50: 290.0,
            p99: 1500.0,
        };
        assert_eq!(outcome, expected);
        assert_eq!(parse("Running 2s test\nunable to connect\n"), None);
        assert_eq!(parse("measured 1 2 3\n"), None);
    }

    #[test]
    fn one_body_is_sent_without_a_pick_and_a_file_is_asked_for_without_a_body() {
        let mut load = Load {
            bodies: PathBuf::from("/x/bodies"),
            body_count: 1,
            headers: vec![("Accept-Encoding", "gzip")],
            connections: 32,
            threads: 2,
            time: Duration::from_secs(2),
        };
        let mut target = Target { url: "http://127.0.0.1:1/".into(), is_get: false };
        let text = script(&load, &target);
        assert!(text.contains("wrk.method = \"POST\"") && !text.contains("function request"));
        assert!(
            text.contains(r#"["Content-Type"] = "application/json", ["Accept-Encoding"] = "gzip""#)
        );
        assert!(text.contains(r#"io.lines("/x/bodies")"#));
        load.body_count = 2;
        target.is_get = true;
        let text = script(&load, &target);
        assert!(text.contains("wrk.method = \"GET\"") && text.contains("function request"));
    }
}
