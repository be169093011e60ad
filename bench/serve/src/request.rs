//! What a run was asked to do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

/// Rounds that count: enough for a median that one bad round does not move.
const ROUNDS: usize = 5;
/// Seconds of a turn.
const SECONDS: u64 = 2;
/// Threads of the load generator.
const THREADS: u32 = 2;

/// As `quipu sample` makes it unless told.
const PAYLOAD: &str = "small";
const PAYLOADS: [&str; 2] = ["small", "mainnet"];

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    /// Whether the output is for programs.
    pub is_json: bool,
    /// Whether the chain is a short one.
    pub is_quick: bool,
    /// Sizes of call data and logs, by the name that `quipu sample` gives them.
    pub payload: String,
    /// Where the chains are kept, each in a folder of its payload's name.
    pub data: Option<PathBuf>,
    /// Names of questions; all if there is none.
    pub only: Vec<String>,
    /// Rounds that count.
    pub rounds: usize,
    /// How long a turn is.
    pub time: Duration,
    /// Threads of the load generator.
    pub threads: u32,
    /// Whether the server has the first core to itself, and all else the others.
    pub is_apart: bool,
    /// The program of a reth, if one is given.
    pub reth: Option<PathBuf>,
    /// The folder of the documentation, if the figures are to be written there.
    pub write: Option<PathBuf>,
}

impl LoadRequest {
    /// Reads the arguments.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut request = Self {
            is_json: false,
            is_quick: false,
            payload: PAYLOAD.to_owned(),
            data: None,
            only: Vec::new(),
            rounds: ROUNDS,
            time: Duration::from_secs(SECONDS),
            threads: THREADS,
            is_apart: false,
            reth: None,
            write: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--json" => request.is_json = true,
                "--quick" => request.is_quick = true,
                "--payload" => request.payload.clone_from(value()?),
                "--data" => request.data = Some(PathBuf::from(value()?)),
                "--only" => request.only.push(value()?.clone()),
                "--rounds" => request.rounds = value()?.parse().context("--rounds")?,
                "--seconds" => {
                    request.time = Duration::from_secs(value()?.parse().context("--seconds")?);
                }
                "--threads" => request.threads = value()?.parse().context("--threads")?,
                "--apart" => request.is_apart = true,
                "--reth" => request.reth = Some(PathBuf::from(value()?)),
                "--write" => request.write = Some(PathBuf::from("docs")),
                unknown => bail!("unexpected argument {unknown}"),
            }
        }
        let is_known = PAYLOADS.contains(&request.payload.as_str());
        ensure!(is_known, "--payload is one of {}", PAYLOADS.join(", "));
        ensure!(request.rounds > 0 && request.threads > 0, "none is too few");
        ensure!((1..=600).contains(&request.time.as_secs()), "a turn takes 1 to 600 seconds");
        Ok(request)
    }

    /// Whether a question is to be asked.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    /// Every wanted name must be one of these.
    pub fn check_names(&self, known: &[&str]) -> Result<()> {
        for name in &self.only {
            ensure!(
                known.contains(&name.as_str()),
                "no question is called {name}; there are {}",
                known.join(", ")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<LoadRequest> {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        LoadRequest::parse(&arguments)
    }

    #[test]
    fn arguments_are_read_or_refused_by_name() {
        let request = parse("--quick --rounds 7 --seconds 3 --only a --only b --data x").unwrap();
        assert_eq!((request.rounds, request.time), (7, Duration::from_secs(3)));
        assert!(request.is_quick && !request.is_json && !request.is_apart);
        assert!(parse("--apart").unwrap().is_apart);
        assert!(request.wants("a") && request.wants("b") && !request.wants("c"));
        assert!(parse("").unwrap().wants("c"));
        request.check_names(&["a", "b", "c"]).unwrap();
        let error = request.check_names(&["a", "c"]).unwrap_err().to_string();
        assert_eq!(error, "no question is called b; there are a, c");
        for (arguments, expected) in [
            ("--rounds", "--rounds needs a value"),
            ("--rounds 0", "none is too few"),
            ("--seconds 0", "a turn takes 1 to 600 seconds"),
            ("--fast", "unexpected argument --fast"),
        ] {
            assert_eq!(parse(arguments).unwrap_err().to_string(), expected);
        }
    }
}
