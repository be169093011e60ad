//! The arguments of commands that work with a bucket, and of a server that reads one.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chain::BlockRange;

use crate::amounts::{parse_bytes, parse_some_bytes, parse_some_time, parse_time};

use super::{DataArgs, parse_blocks};

pub(crate) const PUBLISH_EXAMPLES: &str = "\
Examples:
  quipu publish --data-dir data --to s3://bucket/mainnet
  quipu publish --data-dir data --to file:///mnt/share/mainnet
  AWS_ENDPOINT_URL=http://localhost:3900 AWS_ALLOW_HTTP=true quipu publish --to s3://bucket/mainnet

Credentials and regions are taken from the usual variables of each store: AWS_*, GOOGLE_*, AZURE_*.";

pub(crate) const MERGE_EXAMPLES: &str = "\
Examples:
  quipu merge --at s3://bucket/mainnet";

pub(crate) const PRUNE_EXAMPLES: &str = "\
Examples:
  quipu prune --at s3://bucket/mainnet
  quipu prune --at s3://bucket/mainnet --older-than 168h";

/// `quipu publish`.
#[derive(Debug, clap::Args)]
pub(crate) struct PublishArgs {
    /// The bucket and a prefix in it: s3://, gs://, az:// or file://
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// `quipu merge`.
#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    /// The bucket and a prefix in it: s3://, gs://, az:// or file://
    #[arg(long, value_name = "URL")]
    pub(crate) at: String,
    /// Where runs are built; needs room for the largest of them twice [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
}

/// `quipu prune`.
#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// The bucket and a prefix in it: s3://, gs://, az:// or file://
    #[arg(long, value_name = "URL")]
    pub(crate) at: String,
    /// How long superseded objects stay for readers that began before
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    pub(crate) older_than: Duration,
}

/// What a server reads beside its folder, and where it sends what is sealed.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Bucket")]
pub(crate) struct SourceArgs {
    /// Serve what is published here: s3://, gs:// or az:// with a prefix, file://, or the http(s)://
    /// address of a web server with a copy. Without --data-dir the server keeps nothing but a cache
    #[arg(long, value_name = "URL")]
    pub(crate) source: Option<String>,
    /// Where ranges of published files are cached, and without --data-dir what is followed is kept
    /// [default: ~/.cache/quipu, or as XDG says, with a folder for each source]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Bytes of the cache on disk; 0 keeps none there
    #[arg(long, value_name = "BYTES", default_value = "10GiB", value_parser = parse_bytes)]
    pub(crate) cache_disk_bytes: usize,
    /// Bytes of the cache in memory
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_some_bytes)]
    pub(crate) cache_memory_bytes: usize,
    /// Files that are copied ahead and then read locally: lookups, logs, all, or those with blocks A..B;
    /// may be repeated [default: none]
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) pin: Vec<PinArg>,
    /// Between two looks at what is published, at most 2m; what was withdrawn is served until the next
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_source_every)]
    pub(crate) source_every: Duration,
    /// Publish to this bucket what the data folder seals, as it is sealed: s3://, gs://, az:// or
    /// file:// [default: none]
    #[arg(long, value_name = "URL")]
    pub(crate) publish: Option<String>,
}

/// The longest pause between two looks. Readiness says when a bucket could not be listed for a minute, and
/// a server that looks less often would learn of that, and of what is withdrawn, too late to say it.
const SOURCE_EVERY_MAX: Duration = Duration::from_mins(2);

fn parse_source_every(text: &str) -> Result<Duration, String> {
    let every = parse_some_time(text)?;
    if every > SOURCE_EVERY_MAX {
        let most = SOURCE_EVERY_MAX.as_secs() / 60;
        return Err(format!(
            "at most {most}m: what was withdrawn is served until the next look, and /readyz tells of a \
             bucket that does not answer only after one"
        ));
    }
    Ok(every)
}

/// What is copied ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinArg {
    /// The runs of hash lookups.
    Lookups,
    /// The runs of the log index.
    Logs,
    /// Everything.
    All,
    /// Segments with some of these blocks.
    Blocks(BlockRange),
}

impl FromStr for PinArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "lookups" => Ok(Self::Lookups),
            "logs" => Ok(Self::Logs),
            "all" => Ok(Self::All),
            _ if text.contains("..") => parse_blocks(text).map(Self::Blocks),
            _ => Err("lookups, logs, all, or a range of blocks A..B".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_looked_at_every_two_minutes_at_least() {
        assert_eq!(parse_source_every("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse_source_every("2m"), Ok(SOURCE_EVERY_MAX));
        for (text, said) in
            [("121s", "at most 2m"), ("24h", "/readyz"), ("0s", "longer than 0"), ("", "")]
        {
            let refused = parse_source_every(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_pinned_has_a_name_or_is_a_range() {
        assert_eq!("lookups".parse(), Ok(PinArg::Lookups));
        assert_eq!("all".parse(), Ok(PinArg::All));
        let range = BlockRange::from_ends(5, 9).unwrap();
        assert_eq!("5..9".parse(), Ok(PinArg::Blocks(range)));
        for text in ["", "log", "9..5", "5..", "5"] {
            assert!(text.parse::<PinArg>().is_err(), "{text}");
        }
    }
}
