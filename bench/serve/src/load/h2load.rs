//! h2load: as many requests as there can be over HTTP/2 without TLS.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Load, LoadOutcome, SLACK, Target, flawless};
use crate::process::output_of;

/// Requests of one connection under way at a time.
const STREAMS: u32 = 8;

/// Sends the first body again and again, for h2load knows one only.
pub fn run(load: &Load, target: &Target) -> Result<LoadOutcome> {
    let mut h2load = Command::new("h2load");
    h2load.arg(format!("-t{}", load.threads)).arg(format!("-c{}", load.connections));
    h2load.arg(format!("-m{STREAMS}")).arg(format!("-D{}", load.time.as_secs().max(1)));
    h2load.args(["-H", "content-type: application/json"]);
    for (name, value) in &load.headers {
        h2load.args(["-H", &format!("{}: {value}", name.to_lowercase())]);
    }
    if !target.is_get {
        h2load.arg("-d").arg(&load.bodies);
    }
    let output = output_of(h2load.arg(&target.url), load.time.saturating_add(SLACK))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (outcome, errors) =
        parse(&said, load.time).with_context(|| format!("h2load said: {said}"))?;
    flawless(errors, outcome.requests, &target.url)?;
    Ok(outcome)
}

/// `requests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed, 0 errored, 0 timeout`, and the
/// mean time of a request, which stands for its median; the 99th of a hundred is not told.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
fn parse(said: &str, time: Duration) -> Option<(LoadOutcome, u64)> {
    let line = said.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let count = |name: &str| -> Option<u64> {
        let word = line.split(',').find_map(|part| part.trim().strip_suffix(name))?;
        word.trim().parse().ok()
    };
    let requests = count(" succeeded")?;
    let errors = count(" failed")?;
    let line = said.lines().find_map(|line| line.strip_prefix("traffic: "))?;
    let bytes: f64 = line.split_once('(')?.1.split_once(')')?.0.parse().ok()?;
    let line = said.lines().find_map(|line| line.strip_prefix("time for request:"))?;
    let mean = micros(line.split_whitespace().nth(2)?)?;
    let per_second = requests as f64 / time.as_secs_f64();
    let bytes = bytes / requests.max(1) as f64;
    Some((LoadOutcome { requests, per_second, bytes, p50: mean, p99: f64::NAN }, errors))
}

/// `291us`, `2.53ms` or `1.20s`.
fn micros(text: &str) -> Option<f64> {
    let parse = |suffix: &str, factor: f64| {
        text.strip_suffix(suffix).and_then(|it| it.parse::<f64>().ok()).map(|it| it * factor)
    };
    parse("us", 1.0).or_else(|| parse("ms", 1e3)).or_else(|| parse("s", 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_prints_is_read() {
        let said = "\
finished in 2.00s, 52341.50 req/s, 38.85MB/s
requests: 104683 total, 104939 started, 104683 done, 104683 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 104683 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 77.70MB (81475014) total, 512.34KB (524636) headers (space savings 94.44%), 75.63MB (79305622) data
                     min         max         mean         sd        +/- sd
time for request:      102us     15.10ms      4.88ms      1.21ms    75.00%
";
        let (outcome, errors) = parse(said, Duration::from_secs(2)).unwrap();
        assert_eq!((outcome.requests, errors), (104_683, 0));
        assert!((outcome.per_second - 52_341.5).abs() < 0.1);
        assert!((outcome.p50 - 4880.0).abs() < 1e-6);
        assert!((outcome.bytes - 778.302_627).abs() < 1e-3);
        assert_eq!(parse("", Duration::from_secs(2)), None);
        assert_eq!(micros("291us"), Some(291.0));
        assert_eq!(micros("1.5s"), Some(1_500_000.0));
        assert_eq!(micros("fast"), None);
    }
}
