//! What can be typed: the commands, and the flags that several of them share.

pub(crate) mod admission;
pub(crate) mod backfill;
pub(crate) mod bucket;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fetch;
pub(crate) mod given;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod man;
pub(crate) mod prove;
pub(crate) mod repair;
pub(crate) mod rewind;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod tls;
pub(crate) mod verify;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use alloy_primitives::B256;
use chain::BlockRange;
use chain::trust::Anchor;
use clap::{Parser, Subcommand};

use crate::amounts::{parse_hash, parse_number, parse_threads};
use crate::output::Verbosity;
use crate::version::VERSION;

const EXAMPLES: &str = "\
Examples:
  quipu demo
  quipu verify /archives/mainnet
  quipu import --data-dir data /archives/mainnet
  quipu stat --data-dir data
  quipu export --data-dir data --format ere --to out

Every flag is also a variable and a key of quipu.toml: see quipu config --help.

Exit codes: 0 done; 1 the data or the work failed, and it was said what and where; 2 the command \
line is wrong; 130 and 143 ended by Ctrl-C or SIGTERM.";

/// Ethereum history, proven: blocks, transactions and receipts from archive files.
#[derive(Debug, Parser)]
#[command(name = "quipu", version = VERSION, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The file with settings [default: quipu.toml in the data folder, if there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Say no more than results, warnings and errors: no progress, no notes
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more: a line for each file that is done, and logs of level debug
    #[arg(long, short, global = true)]
    verbose: bool,
}

impl Args {
    /// How much is said beside results.
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Usual,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the sample chain and serve it: needs nothing
    ///
    /// The chain is made in a temporary folder, imported as any other archive is, and served until
    /// Ctrl-C or SIGTERM, which removes the folder. When it is ready, it says what is held, prints
    /// commands to try and, on a line of its own, where it listens. The same arguments
    /// give the same chain on every machine.
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Write the sample chain as archives
    ///
    /// The folder gets the archives, their checksum lists and the genesis.json that names the chain. One
    /// that has archives or a genesis.json already is left as it is.
    #[command(after_help = sample::EXAMPLES)]
    Sample(sample::SampleArgs),
    /// Prove archive files without storing them
    ///
    /// Every block of every file is proven: header hash and parent link, transactions root, ommers
    /// hash, withdrawals root, receipts root, logs bloom, gas used, and the sender of every
    /// transaction. Then the file's own index, accumulator, name and checksum. Prints for each file
    /// its range, transactions, root and verdict. Exits with 0 if all is true, with 1 if anything
    /// is false, naming file, block, byte and both values.
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::VerifyArgs),
    /// Take archives into the data folder, proven
    ///
    /// Every block is proven as `quipu verify` does it, and stored with its receipts so that every
    /// hash can be searched. Files whose blocks are held already are passed over. A file that is
    /// refused is named with the reason, and the others go on. It gives way to whatever else the
    /// machine does: a server beside it goes on answering.
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Download archives from mirrors into the data folder, proven
    ///
    /// Reads what the mirrors list, downloads what is not held, and imports it as `quipu import` does:
    /// one file is verified while the next two download. A mirror that fails is asked again later, one
    /// that is slow or sends false files comes after the others.
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(fetch::FetchArgs),
    /// Take blocks from a node into the data folder, proven
    ///
    /// Blocks, transactions and receipts are rebuilt into the form that consensus commits to and
    /// proven as those of archives are. A node whose answers do not prove each other is named and
    /// set aside, and another is asked. Only blocks that are final are taken. Without --blocks every
    /// gap below the highest block is filled.
    #[command(after_help = backfill::EXAMPLES)]
    Backfill(backfill::BackfillArgs),
    /// Tell what the data folder holds
    ///
    /// Ranges and how far they can be trusted, counts, bytes by part and bytes per transaction.
    #[command(after_help = stat::EXAMPLES)]
    Stat(stat::StatArgs),
    /// Prove everything that is stored again, bytes up to roots
    ///
    /// Every listed file has its digest, every block proves itself and descends from the one before
    /// it, its stored rows and senders are what its bytes give, and every hash is found by the
    /// lookups. Exits with 0 if all is true, with 1 if anything is not, naming file, page or block
    /// and both values. Nothing is changed.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Answer JSON-RPC over HTTP and WebSocket from the data folder, and follow a node
    ///
    /// The six reads of blocks, transactions and receipts and what clients need beside them: see
    /// docs/api.md, or ask rpc.discover. An import may run beside it: new blocks are seen within a
    /// second. With --upstream the tip of that node is followed, every block proven (docs/following.md).
    /// Ends on Ctrl-C or SIGTERM, after finishing what was asked; SIGHUP has settings, keys and
    /// certificates read again.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeArgs>),
    /// Build the log index of blocks that have none, and again what is damaged of it
    ///
    /// For a folder that was imported with --without-log-index, or by a version without one. From then on
    /// new blocks are indexed as they come. The index that is there is read through first, and files of it
    /// that are missing or damaged are built again from the blocks.
    #[command(after_help = index::EXAMPLES)]
    Index(index::IndexArgs),
    /// Rebuild the manifest of a damaged data folder from its segments
    ///
    /// For when the manifest was lost or cannot be read. Every segment is proven as `quipu check`
    /// does it, lookups are built anew, and what does not prove is left out and named. Nothing is
    /// removed, and a folder whose manifest is intact is left as it is. The name of a chain that is
    /// not built in, anchors and total difficulties above a gap are not in segments: give them again.
    #[command(after_help = repair::EXAMPLES)]
    Repair(repair::RepairArgs),
    /// Send what is sealed to a bucket, for readers without a data folder
    ///
    /// Segments, lookups and the log index of the data folder, then a manifest that lists them: no reader
    /// sees a name before its bytes. What is there already is not sent again, so it may be stopped and
    /// run again. Several machines may publish to one bucket; readers serve the sum (docs/scale-out.md).
    #[command(after_help = bucket::PUBLISH_EXAMPLES)]
    Publish(bucket::PublishArgs),
    /// Build the larger lookup runs of a bucket, after several machines have published to it
    ///
    /// A reader asks every run that may have a hash: the fewer, the quicker. What is merged stays there
    /// until `quipu prune` removes it.
    #[command(after_help = bucket::MERGE_EXAMPLES)]
    Merge(bucket::MergeArgs),
    /// Remove what is superseded from a bucket
    ///
    /// Manifests whose history others hold all of, and files that no manifest lists, once nobody has needed
    /// them for the given time: readers that began before go on.
    #[command(after_help = bucket::PRUNE_EXAMPLES)]
    Prune(bucket::PruneArgs),
    /// Drop the blocks above one, after a conflict with the node that is followed
    ///
    /// For when blocks were final by a node's word and turn out not to be: everything above the named
    /// block goes, from the head and from sealed segments. The folder must not be served meanwhile.
    #[command(after_help = rewind::EXAMPLES)]
    Rewind(rewind::RewindArgs),
    /// Ask another endpoint the same questions, show the differences
    ///
    /// All six reads are asked about some of the blocks that are held and some of their
    /// transactions, and about what is not there; our own answers come from the data folder as
    /// `quipu serve` would give them. Differences are told by method and place, with how often and
    /// one example. Exits with 0 if there is none, with 1 if there is any.
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Look at a data folder and at nodes: what is here, what is wrong, what to do next
    ///
    /// Which chain it is, what is held, gaps, tip, trust and writer; whether every listed file is there with
    /// its length; whether a node answers, is of the same chain, and gives what can be proven. Segments are
    /// not read: `quipu check` does that.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Make an API key for `quipu serve`
    ///
    /// Prints the key and, for quipu.toml, the table that lets it in. As soon as a server has one key, it
    /// answers only callers who send one (docs/admission.md).
    #[command(after_help = key::EXAMPLES)]
    Key(key::KeyArgs),
    /// Check quipu.toml, or show what all settings come to
    #[command(after_help = config::EXAMPLES)]
    Config(config::ConfigArgs),
    /// Write what the data folder holds as archives or as lines of JSON
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Print a bundle that proves a transaction, a receipt, a log, a block or a search for logs
    ///
    /// Whoever has the bundle can check it with quipu verify-proof, or without anything of ours, and need
    /// not trust whoever made it.
    #[command(after_help = prove::PROVE_EXAMPLES)]
    Prove(prove::ProveArgs),
    /// Check a bundle of quipu prove, step by step
    #[command(after_help = prove::VERIFY_EXAMPLES)]
    VerifyProof(prove::VerifyProofArgs),
    /// Ask a running server whether it is well
    ///
    /// Asks /healthz, or /readyz with --ready, of the server that listens where the settings say. For
    /// health checks of containers, which have no other program to ask with. Prints what the server
    /// says, and exits with 0 if that is good, with 1 if it is not or nobody answers within five seconds.
    #[command(after_help = health::EXAMPLES)]
    Health(health::HealthArgs),
    /// Print the completions of a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Write the manual pages, one for each command
    #[command(after_help = man::EXAMPLES)]
    Man(man::ManArgs),
}

/// Where the data is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DataArgs {
    /// Where the data lives [default: ~/.local/share/quipu, or as XDG says]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// How to do the work.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Threads to work with [default: one for each core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Which chain it is, and what is trusted.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArgs {
    /// A known network [default: told by the data folder, or else by the file's name]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(chain::ChainSpec::known_names()), conflicts_with_all = ["genesis", "chain_id"])]
    pub(crate) network: Option<String>,
    /// Any other chain: its genesis.json gives chain id, forks, blob schedule and genesis hash
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chain_id", "genesis_hash"])]
    pub(crate) genesis: Option<PathBuf>,
    /// A chain without its genesis.json; a known id brings that network's forks
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub(crate) chain_id: Option<u64>,
    /// The hash of that chain's genesis block
    #[arg(long, value_name = "HASH", requires = "chain_id", value_parser = parse_hash)]
    pub(crate) genesis_hash: Option<B256>,
    /// A block hash you trust: blocks at or below it by parent links are anchored; may be repeated
    #[arg(long = "anchor", value_name = "NUMBER:HASH", value_delimiter = ',')]
    pub(crate) anchors: Vec<Anchor>,
}

/// A range of blocks, `A..B` with both ends included.
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
