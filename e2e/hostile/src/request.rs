//! What a run was asked to do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

/// Seconds of an abuse in the long form.
const SECONDS: u64 = 20;

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostileArgs {
    /// Whether it is the form that every change must pass.
    pub(crate) is_short: bool,
    /// How long an abuse goes on.
    pub(crate) time: Duration,
    /// Names of abuses; all if there is none.
    pub(crate) only: Vec<String>,
    /// The program, if it is not the one beside this.
    pub(crate) quipu: Option<PathBuf>,
    /// Where the sample chain is kept.
    pub(crate) data: Option<PathBuf>,
    /// The folder of the documentation, if the table is to be written there.
    pub(crate) write: Option<PathBuf>,
}

/// What the two forms differ in, beside time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuiteForm {
    /// Blocks of the sample chain.
    pub(crate) block_count: u64,
    /// `--bytes-under-way-max`; none for the default.
    pub(crate) bytes_under_way_max: Option<u64>,
    /// `--connections-max`; none for the default.
    pub(crate) connections_max: Option<usize>,
    /// Bytes of the longest answer that is asked for.
    pub(crate) answer_bytes_max: usize,
    /// Right answers that the well-behaved client has beside an abuse at the least.
    pub(crate) answers_min: u64,
    /// Whether the waits of the well-behaved client are compared.
    pub(crate) is_timed: bool,
}

/// The default of `--bytes-under-way-max`.
pub(crate) const BYTES_UNDER_WAY_MAX: u64 = 256 << 20;

impl HostileArgs {
    /// Reads the arguments.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut request = Self {
            is_short: false,
            time: Duration::from_secs(SECONDS),
            only: Vec::new(),
            quipu: None,
            data: None,
            write: None,
        };
        let mut seconds = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--short" => request.is_short = true,
                "--seconds" => seconds = Some(value()?.parse::<u64>().context("--seconds")?),
                "--only" => request.only.push(value()?.clone()),
                "--quipu" => request.quipu = Some(PathBuf::from(value()?)),
                "--data" => request.data = Some(PathBuf::from(value()?)),
                "--write" => request.write = Some(PathBuf::from("docs")),
                unknown => bail!("unexpected argument {unknown}"),
            }
        }
        let seconds = seconds.unwrap_or(if request.is_short { 1 } else { SECONDS });
        ensure!((1..=60).contains(&seconds), "an abuse takes 1 to 60 seconds");
        request.time = Duration::from_secs(seconds);
        let is_whole = !request.is_short && request.only.is_empty();
        ensure!(request.write.is_none() || is_whole, "--write is for the long form of all");
        Ok(request)
    }

    /// What the form means.
    pub(crate) fn form(&self) -> SuiteForm {
        if self.is_short {
            SuiteForm {
                block_count: 64,
                bytes_under_way_max: Some(64 << 20),
                connections_max: Some(900),
                answer_bytes_max: 8_000_000,
                answers_min: 100,
                is_timed: false,
            }
        } else {
            SuiteForm {
                block_count: 256,
                bytes_under_way_max: None,
                connections_max: None,
                answer_bytes_max: 20_000_000,
                answers_min: 1000,
                is_timed: true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<HostileArgs> {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        HostileArgs::parse(&arguments)
    }

    #[test]
    fn arguments_are_read_or_refused_by_name() {
        let request = parse("--short --only a --only b --quipu x").unwrap();
        assert_eq!((request.time, request.only.len()), (Duration::from_secs(1), 2));
        assert!(!request.form().is_timed);
        assert_eq!(parse("").unwrap().time, Duration::from_secs(SECONDS));
        assert!(parse("--write").unwrap().form().is_timed);
        for (arguments, expected) in [
            ("--seconds", "--seconds needs a value"),
            ("--seconds 0", "an abuse takes 1 to 60 seconds"),
            ("--fast", "unexpected argument --fast"),
            ("--short --write", "--write is for the long form of all"),
            ("--only pipelined --write", "--write is for the long form of all"),
        ] {
            assert_eq!(parse(arguments).unwrap_err().to_string(), expected);
        }
    }
}
