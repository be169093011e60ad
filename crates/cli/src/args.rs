//! What can be typed.

pub(crate) mod fetch;
pub(crate) mod repair;

use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use alloy_primitives::B256;
use chain::BlockRange;
use chain::trust::Anchor;
use clap::{Parser, Subcommand, ValueEnum};
use ingest::archive::Format;
use ingest::export::ExportFormat;
use ingest::sample::Payload;
use rpc::http::HttpSettings;
use rpc::{PassThroughMethod, ServiceSettings};

use crate::upstream_args::UpstreamArgs;

const EXAMPLES: &str = "\
Examples:
  quipu demo
  quipu verify /archives/mainnet
  quipu import --data-dir data /archives/mainnet
  quipu stat --data-dir data
  quipu export --data-dir data --format ere --to out

Exit codes: 0 done; 1 the data or the work failed, and it was said what and where; 2 the command
line is wrong.";

const DEMO_EXAMPLES: &str = "\
Examples:
  quipu demo
  quipu demo --listen 127.0.0.1:0 --block-count 200 --txs-per-block 3
  quipu demo --data-dir data";

const IMPORT_EXAMPLES: &str = "\
Examples:
  quipu import /archives/mainnet
  quipu import --data-dir data --blocks 0..999 mainnet-00000-5ec1ffb8.era1
  quipu import --data-dir data --genesis genesis.json my-chain/
  quipu import --data-dir data --unanchored --without-receipts slice.ere

A kill at any moment is harmless: the same command again takes up after the last whole file.";

const BACKFILL_EXAMPLES: &str = "\
Examples:
  quipu backfill --data-dir data --upstream http://localhost:8545 --blocks 0..99999
  quipu backfill --data-dir data --upstream https://node.example/key   # every gap
  quipu backfill --data-dir data --upstream wss://a.example --upstream https://b.example --quorum 2

A kill at any moment is harmless: the same command again takes up after the last whole segment.";

const STAT_EXAMPLES: &str = "\
Examples:
  quipu stat --data-dir data
  quipu stat --data-dir data --json | jq .coverage";

const CHECK_EXAMPLES: &str = "\
Examples:
  quipu check --data-dir data";

const SERVE_EXAMPLES: &str = "\
Examples:
  quipu serve --data-dir data
  quipu serve --data-dir data --listen 0.0.0.0:8545 --cors-origin https://app.example
  quipu serve --data-dir data --pass-through eth_*,net_* --pass-through-to http://localhost:8546
  quipu serve --data-dir data --upstream ws://localhost:8546 --backfill-to 0
  curl -s localhost:8545 -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\",\"params\":[]}'";

const REWIND_EXAMPLES: &str = "\
Examples:
  quipu rewind --data-dir data --to 100:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664";

const COMPARE_EXAMPLES: &str = "\
Examples:
  quipu compare --data-dir data --with http://localhost:8545
  quipu compare --data-dir data --with http://localhost:8545 --sample 1000 --seed 7
  quipu compare --data-dir data --with http://localhost:8545 --blocks 0..99 --every";

const EXPORT_EXAMPLES: &str = "\
Examples:
  quipu export --data-dir data --format ere --to out
  quipu export --data-dir data --format era1 --to out --blocks 0..8191
  quipu export --data-dir data --format ndjson --to out --blocks 100..199

Without --blocks all that is held is written, each range without a gap as archives of its own. With
--blocks, what is held of these blocks is written, and the exit code is 1 if some are missing. A file
that is there already is never replaced.";

/// Ethereum history, proven: blocks, transactions and receipts from archive files.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the sample chain and serve it: needs nothing
    ///
    /// The chain is made in a temporary folder, imported as any other archive is, and served until
    /// Ctrl-C or SIGTERM, which removes the folder. When it is ready, it says what is held, prints
    /// commands to try and, on a line of its own, where it listens. The same arguments
    /// give the same chain on every machine.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Write the sample chain as archives
    Sample(SampleArgs),
    /// Prove archive files without storing them
    ///
    /// Every block of every file is proven: header hash and parent link, transactions root, ommers
    /// hash, withdrawals root, receipts root, logs bloom, gas used, and the sender of every
    /// transaction. Then the file's own index, accumulator, name and checksum. Prints for each file
    /// its range, transactions, root and verdict. Exits with 0 if all is true, with 1 if anything
    /// is false, naming file, block, byte and both values.
    Verify(VerifyArgs),
    /// Take archives into the data folder, proven
    ///
    /// Every block is proven as `quipu verify` does it, and stored with its receipts so that every
    /// hash can be searched. Files whose blocks are held already are passed over. A file that is
    /// refused is named with the reason, and the others go on. It gives way to whatever else the
    /// machine does: a server beside it goes on answering.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Download archives from mirrors into the data folder, proven
    ///
    /// Reads what the mirrors list, downloads what is not held, and imports it as `quipu import` does:
    /// one file is proven while the next one downloads. A mirror that fails is asked again later, one
    /// that is slow or sends false files is set aside. `quipu import URL` does the same.
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(fetch::FetchArgs),
    /// Take blocks from a node into the data folder, proven
    ///
    /// Blocks, transactions and receipts are rebuilt into the form that consensus commits to and
    /// proven as those of archives are. A node whose answers do not prove each other is named and
    /// set aside, and another is asked. Only blocks that are final are taken. Without --blocks every
    /// gap below the highest block is filled.
    #[command(after_help = BACKFILL_EXAMPLES)]
    Backfill(BackfillArgs),
    /// Tell what the data folder holds
    ///
    /// Ranges and how far they can be trusted, counts, bytes by part and bytes per transaction.
    #[command(after_help = STAT_EXAMPLES)]
    Stat(StatArgs),
    /// Prove everything that is stored again, bytes up to roots
    ///
    /// Every listed file has its digest, every block proves itself and descends from the one before
    /// it, its stored rows and senders are what its bytes give, and every hash is found by the
    /// lookups. Exits with 0 if all is true, with 1 if anything is not, naming file, page or block
    /// and both values. Nothing is changed.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Answer JSON-RPC over HTTP and WebSocket from the data folder, and follow a node
    ///
    /// The six reads of blocks, transactions and receipts and what clients need beside them: see
    /// docs/api.md, or ask rpc.discover. An import may run beside it: new blocks are seen within a
    /// second. With --upstream the tip of that node is followed, every block proven (docs/following.md).
    /// Ends on Ctrl-C or SIGTERM, after finishing what was asked.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Rebuild the manifest of a damaged data folder from its segments
    ///
    /// For when the manifest was lost or cannot be read. Every segment is proven as `quipu check`
    /// does it, lookups are built anew, and what does not prove is left out and named. Nothing is
    /// removed, and a folder whose manifest is intact is left as it is. The name of a chain that is
    /// not built in, anchors and total difficulties above a gap are not in segments: give them again.
    #[command(after_help = repair::EXAMPLES)]
    Repair(repair::RepairArgs),
    /// Drop the blocks above one, after a conflict with the node that is followed
    ///
    /// For when blocks were final by a node's word and turn out not to be: everything above the named
    /// block goes, from the head and from sealed segments. The folder must not be served meanwhile.
    #[command(after_help = REWIND_EXAMPLES)]
    Rewind(RewindArgs),
    /// Ask another endpoint the same questions, show the differences
    ///
    /// All six reads are asked about some of the blocks that are held and some of their
    /// transactions, and about what is not there; our own answers come from the data folder as
    /// `quipu serve` would give them. Differences are told by method and place, with how often and
    /// one example. Exits with 0 if there is none, with 1 if there is any.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Write what the data folder holds as archives or as lines of JSON
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    // No variable gives it: whoever has QUIPU_DATA_DIR set wants no sample chain in it.
    /// Keep the data here instead of in a temporary folder; held already, it is only served
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "QUIPU_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8545")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) chain: SampleChainArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SampleArgs {
    /// Folder for the archives, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Archive format; era1 ends at the merge
    #[arg(long, value_enum, default_value_t = FormatArg::Ere)]
    pub(crate) format: FormatArg,
    #[command(flatten)]
    pub(crate) chain: SampleChainArgs,
}

/// The sample chain's parameters.
#[derive(Debug, clap::Args)]
pub(crate) struct SampleChainArgs {
    /// Blocks, genesis included
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block_count: u64,
    /// Transactions in an ordinary block; some blocks are empty, some hold 200 whatever this says
    #[arg(long, value_name = "M", default_value_t = 20)]
    pub(crate) txs_per_block: u32,
    /// Another seed, another chain
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sizes of call data and logs
    #[arg(long, value_enum, default_value_t = PayloadArg::Small)]
    pub(crate) payload: PayloadArg,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Archive files (.era1, .ere, .erae) or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print one JSON object for each file instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Archive files (.era1, .ere, .erae) or folders of them, or mirrors as `quipu fetch` has them
    #[arg(required = true, value_name = "PATH|URL")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only these blocks, both ends included
    #[arg(long, value_name = "A..B", value_parser = parse_blocks)]
    pub(crate) blocks: Option<BlockRange>,
    /// Take ranges that link to nothing known: they are proven inside, and reported as unanchored
    #[arg(long)]
    pub(crate) unanchored: bool,
    /// Take archives of the noreceipts profile; the same range with receipts replaces it later
    #[arg(long)]
    pub(crate) without_receipts: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackfillArgs {
    /// Only these blocks, both ends included [default: every gap]
    #[arg(long, value_name = "A..B", value_parser = parse_blocks, conflicts_with = "backfill_to")]
    pub(crate) blocks: Option<BlockRange>,
    /// Fill gaps no further down than to this block [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) backfill_to: Option<u64>,
    /// Take ranges that link to nothing known: they are proven inside, and reported as unanchored
    #[arg(long)]
    pub(crate) unanchored: bool,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "QUIPU_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8545")]
    pub(crate) listen: SocketAddr,
    /// What an unknown hash gets that may exist and not be held [default: refuse; null while a node
    /// is followed]
    #[arg(long, value_enum)]
    pub(crate) unknown_hash: Option<UnknownHashArg>,
    /// Methods that are not served here and go to the upstream node: names, or beginnings such as
    /// eth_*; may be repeated. What signs with a node's keys or manages it never goes. Where history
    /// has gaps, reads that are named here go there too if a hash is not found [default: none]
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) pass_through: Vec<PassThroughMethod>,
    /// The node that they go to, over http or https; it need not be followed. A second address of it,
    /// over ws or wss, is where subscriptions go that are not served here, if --pass-through covers
    /// them [default: the first --upstream of each]
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "pass_through")]
    pub(crate) pass_through_to: Vec<String>,
    /// Bytes of results that are kept because they are asked for again and again; 0 keeps none
    #[arg(
        long,
        env = "QUIPU_CACHE_BYTES",
        value_name = "BYTES",
        default_value_t = ServiceSettings::default().cache_bytes_max
    )]
    pub(crate) cache_bytes: usize,
    /// Bytes of request bodies and answers in memory at a time, over all connections; beyond it
    /// requests get 503 with Retry-After. One answer of any size is always admitted. At least 16 MiB
    #[arg(
        long,
        env = "QUIPU_BYTES_UNDER_WAY_MAX",
        value_name = "BYTES",
        default_value_t = HttpSettings::default().bytes_under_way_max,
        value_parser = parse_bytes_under_way
    )]
    pub(crate) bytes_under_way_max: usize,
    /// Connections at a time; one more is told to come again
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) connections_max: NonZeroUsize,
    /// Connections of one address at a time; one more is told to come again [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) connections_per_client_max: Option<NonZeroUsize>,
    /// Origins whose pages may ask; may be repeated
    #[arg(long = "cors-origin", value_name = "ORIGIN", default_value = "*")]
    pub(crate) cors_origins: Vec<String>,
    /// Host names that requests may name; may be repeated [default: any]
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// How logs are written to standard error; the variable `RUST_LOG` says what
    #[arg(long, value_enum, default_value_t = LogFormatArg::Text)]
    pub(crate) log_format: LogFormatArg,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
}

/// How a tip is followed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,
    /// Fill gaps down to this block while serving (0 = genesis) [default: off]
    #[arg(long, value_name = "N", help_heading = "Upstream")]
    pub(crate) backfill_to: Option<u64>,
    /// Blocks to catch up with before a gap is left and reported instead
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Upstream")]
    pub(crate) gap_max: u64,
    /// Milliseconds between two looks at a node that offers no subscription (ws, wss)
    #[arg(long, value_name = "MS", default_value = "1000", help_heading = "Upstream")]
    pub(crate) poll_every: NonZeroU64,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// The last block that stays, with the hash that it has here
    #[arg(long, value_name = "NUMBER:HASH")]
    pub(crate) to: Anchor,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// The other endpoint: http or https
    #[arg(long, value_name = "URL")]
    pub(crate) with: String,
    /// All of these blocks, both ends included
    #[arg(long, value_name = "A..B", value_parser = parse_blocks, conflicts_with = "sample")]
    pub(crate) blocks: Option<BlockRange>,
    /// So many blocks out of all that are held, evenly spread, the first and the last among them
    #[arg(long, value_name = "N", default_value = "64")]
    pub(crate) sample: NonZeroU64,
    /// Another seed, other blocks and transactions
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Transactions of a block to ask about, the first and the last among them
    #[arg(long, value_name = "M", default_value_t = 4)]
    pub(crate) txs_per_block: u64,
    /// Print every difference, too, as it is found
    #[arg(long)]
    pub(crate) every: bool,
    /// Connections to ask on
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) concurrency: NonZeroUsize,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnknownHashArg {
    /// As if it did not exist
    Null,
    /// Error 4444 with the ranges that are held
    Refuse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArg {
    /// For people
    Text,
    /// One object a line
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// What to write
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormatArg,
    /// Folder for the files, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Only these blocks, both ends included [default: all that are held]
    #[arg(long, value_name = "A..B", value_parser = parse_blocks)]
    pub(crate) blocks: Option<BlockRange>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Where the data is.
#[derive(Debug, clap::Args)]
pub(crate) struct DataArgs {
    /// Where the data lives [default: ~/.local/share/quipu, or as XDG says]
    #[arg(long, env = "QUIPU_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// How to do the work.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Threads to work with [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Which chain it is, and what is trusted.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArgs {
    /// A known network [default: told by the data folder, or else by the file's name]
    #[arg(long, env = "QUIPU_NETWORK", value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(chain::ChainSpec::known_names()), conflicts_with_all = ["genesis", "chain_id"])]
    pub(crate) network: Option<String>,
    /// Any other chain: its genesis.json gives chain id, forks, blob schedule and genesis hash
    #[arg(long, env = "QUIPU_GENESIS", value_name = "FILE", conflicts_with_all = ["chain_id", "genesis_hash"])]
    pub(crate) genesis: Option<PathBuf>,
    /// A chain without its genesis.json; a known id brings that network's forks
    #[arg(long, value_name = "N")]
    pub(crate) chain_id: Option<u64>,
    /// The hash of that chain's genesis block
    #[arg(long, value_name = "HASH", requires = "chain_id")]
    pub(crate) genesis_hash: Option<B256>,
    /// A block hash you trust: blocks at or below it by parent links are anchored; may be repeated
    #[arg(
        long = "anchor",
        env = "QUIPU_ANCHOR",
        value_name = "NUMBER:HASH",
        value_delimiter = ','
    )]
    pub(crate) anchors: Vec<Anchor>,
    /// The pre-merge epoch roots of mainnet, believed only if they hash to EIP-7643's root
    /// [default: mainnet-accumulators.bin beside the archives, if there]
    #[arg(long, value_name = "FILE")]
    pub(crate) accumulators: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArg {
    /// Pre-merge only: block after block with an accumulator
    Era1,
    /// All of history: section after section with slim receipts
    Ere,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Era1 => Self::Era1,
            FormatArg::Ere => Self::Ere,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormatArg {
    /// Pre-merge only: block after block with an accumulator; needs receipts
    Era1,
    /// All of history: section after section with slim receipts
    Ere,
    /// One JSON object for each block, with consensus bytes in hex
    Ndjson,
}

impl From<ExportFormatArg> for ExportFormat {
    fn from(format: ExportFormatArg) -> Self {
        match format {
            ExportFormatArg::Era1 => Self::Archive(Format::Era1),
            ExportFormatArg::Ere => Self::Archive(Format::Ere),
            ExportFormatArg::Ndjson => Self::Ndjson,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PayloadArg {
    /// Short call data: many transactions in little space
    Small,
    /// Sizes and repetitions as mainnet has them
    Mainnet,
}

impl From<PayloadArg> for Payload {
    fn from(payload: PayloadArg) -> Self {
        match payload {
            PayloadArg::Small => Self::Small,
            PayloadArg::Mainnet => Self::Mainnet,
        }
    }
}

/// A range of blocks, `A..B` with both ends included.
/// Half of it is for bodies, of which the largest has 5 MiB and twice that while it grows.
fn parse_bytes_under_way(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|error| format!("{error}"))?;
    let least = 16 << 20;
    if bytes < least { Err(format!("at least {least} are needed")) } else { Ok(bytes) }
}

fn parse_blocks(text: &str) -> Result<BlockRange, String> {
    let number = |part: &str| {
        // Rust's own parser would let a plus sign through.
        let is_decimal = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| is_decimal)
    };
    let ends =
        text.split_once("..").and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = ends else {
        return Err("write A..B, such as 0..8191, both ends included".to_owned());
    };
    BlockRange::from_ends(first, last).ok_or_else(|| format!("block {last} is not after {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u64, u64)>) {
        let parsed = parse_blocks(text).ok().map(|range| (range.first(), range.last()));
        assert_eq!(parsed, expected, "{text}");
    }

    #[test]
    fn a_range_of_blocks_has_two_ends_and_both_are_in_it() {
        check("0..8191", Some((0, 8191)));
        check("7..7", Some((7, 7)));
        let wrong = ["8..7", "7", "..7", "7..", "+1..2", "1..2..3", "1...2", "a..b", " 1..2", ""];
        for text in wrong {
            check(text, None);
        }
        check(&format!("0..{}", u64::MAX), None);
    }
}
