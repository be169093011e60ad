//! Quipu as its users have it: the binary as it ships, a data folder, a port.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::process::{Running, command_on, output_of};
use crate::server::ServerProcess;

/// Long enough for a machine that is busy with other things.
const MAKE_WITHIN: std::time::Duration = std::time::Duration::from_hours(1);
/// Blocks of the sample chain: a million transactions.
pub const BLOCK_COUNT: u64 = 5184;
/// Of the chain that is quick to make.
pub const BLOCK_COUNT_QUICK: u64 = 256;
const TXS_PER_BLOCK: &str = "200";
/// Connections of the largest load, and some more.
const CONNECTIONS_MAX: usize = 16_000;

/// The program.
#[derive(Clone, Debug)]
pub struct Quipu {
    path: PathBuf,
    /// The cores of its servers, if none are named for one.
    server_cores: Option<&'static str>,
}

/// A sample chain: its archives, and the data folder that holds it.
#[derive(Clone, Debug)]
pub struct BenchChain {
    archives: PathBuf,
    /// The data folder.
    pub store: PathBuf,
}

/// How a data folder is served.
#[derive(Clone, Copy, Debug)]
pub struct Serving<'a> {
    /// The data folder.
    pub store: &'a Path,
    /// The cores that it may use, as `taskset` names them; those of all servers if none is named.
    pub cores: Option<&'a str>,
    /// Whether no answer is kept.
    pub is_uncached: bool,
    /// Connections at a time, if it is not as many as users have.
    pub connections_max: Option<usize>,
    /// Flags beside these.
    pub flags: &'a [String],
}

impl<'a> Serving<'a> {
    /// As its users have it, but for as many connections as the largest load has.
    #[must_use]
    pub fn of(store: &'a Path) -> Self {
        let connections_max = Some(CONNECTIONS_MAX);
        Self { store, cores: None, is_uncached: false, connections_max, flags: &[] }
    }
}

impl Quipu {
    /// The binary that was built beside this one.
    pub fn beside_this_program(server_cores: Option<&'static str>) -> Result<Self> {
        let here = std::env::current_exe().context("where this program is")?;
        Self::at(here.with_file_name("quipu"), server_cores)
    }

    /// A binary of one's choice.
    pub fn at(path: PathBuf, server_cores: Option<&'static str>) -> Result<Self> {
        ensure!(
            path.is_file(),
            "{} is not there: cargo build --profile dist -p quipu-cli",
            path.display()
        );
        Ok(Self { path, server_cores })
    }

    /// Makes a sample chain of so many blocks with payloads of these sizes and imports it, unless the
    /// folder has one already.
    pub fn make_chain(&self, folder: &Path, block_count: u64, payload: &str) -> Result<BenchChain> {
        let chain = BenchChain { archives: folder.join("archives"), store: folder.join("store") };
        if !chain.archives.join("genesis.json").is_file() {
            let mut sample = Command::new(&self.path);
            sample.arg("sample").arg("--to").arg(&chain.archives);
            sample.args(["--block-count", &block_count.to_string()]);
            sample.args(["--txs-per-block", TXS_PER_BLOCK, "--payload", payload]);
            output_of(&mut sample, MAKE_WITHIN)?;
        }
        // One that is there already is gone over quickly; one that was broken off goes on.
        output_of(&mut self.import_command(&chain, &chain.store), MAKE_WITHIN)?;
        Ok(chain)
    }

    /// Fills a data folder from a node, up to its block `last`. `chain` are the flags that name its chain.
    pub fn backfill(&self, url: &str, chain: &[String], last: u64, to: &Path) -> Result<()> {
        let mut backfill = Command::new(&self.path);
        backfill.arg("backfill").arg("--data-dir").arg(to).args(["--upstream", url]).args(chain);
        backfill.args(["--blocks", &format!("0..{last}")]);
        // A node of one's own reorganises nothing.
        backfill.args(["--finality-depth", "0"]);
        output_of(&mut backfill, MAKE_WITHIN).map(drop)
    }

    fn import_command(&self, chain: &BenchChain, to: &Path) -> Command {
        let mut import = Command::new(&self.path);
        import.arg("import").arg("--data-dir").arg(to);
        import.arg("--genesis").arg(chain.archives.join("genesis.json")).arg(&chain.archives);
        import
    }

    /// Starts an import of the same archives into another folder,.
    pub fn import_beside(&self, chain: &BenchChain, to: &Path) -> Result<Running> {
        let _ = fs::remove_dir_all(to);
        let mut import = self.import_command(chain, to);
        import.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running::start(&mut import)
    }

    /// Serves a data folder on a free port; the first line that it says tells which.
    pub fn serve(&self, serving: &Serving<'_>) -> Result<ServerProcess> {
        let mut serve = command_on(serving.cores.or(self.server_cores), &self.path);
        serve.arg("serve").arg("--data-dir").arg(serving.store).args(["--listen", "127.0.0.1:0"]);
        serve.args(serving.flags).env("RUST_LOG", "warn,h2=error");
        if let Some(count) = serving.connections_max {
            serve.args(["--connections-max", &count.to_string()]);
        }
        if serving.is_uncached {
            serve.args(["--cache-bytes", "0"]);
        }
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::start(&mut serve)?;
        let stderr = running.child().stderr.take().context("no pipe")?;
        let mut lines = BufReader::new(stderr).lines();
        let (scheme, address) = loop {
            let line = lines.next().context("quipu serve ended before it listened")??;
            let url = line.strip_prefix("listening on ").and_then(|url| url.split_once("://"));
            if let Some((scheme, address)) = url {
                break (scheme.to_owned(), address.to_owned());
            }
            eprintln!("quipu serve: {line}");
        };
        // Whatever it says later must not fill the pipe, and is for people to see.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| eprintln!("quipu serve: {line}"));
        });
        let served = ServerProcess::new(running, address);
        Ok(if scheme == "https" { served.encrypted() } else { served })
    }
}
