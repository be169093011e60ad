//! The arguments of `quipu fetch`.

use std::path::PathBuf;

use super::import::SelectionArgs;
use super::{ChainArgs, DataArgs, WorkArgs};
use crate::amounts::parse_some_bytes;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu fetch --network mainnet --from https://mirror.example/era1/mainnet
  quipu fetch --data-dir data --from https://a.example/era1,https://b.example/era1 --blocks 0..99999
  quipu fetch --data-dir data --from https://mirror.example/ere --keep /archives/mainnet
  quipu fetch --data-dir data --from s3://bucket/mainnet

A kill at any moment is harmless: the same command again goes on where the download ended.";

#[derive(Debug, clap::Args)]
pub(crate) struct FetchArgs {
    // Texts, because what cannot be parsed would be shown whole, and addresses may hold a password.
    /// A mirror: the address of a web folder with archives and `checksums_sha256.txt` or `urls.txt`,
    /// of such a list, or of one archive; or a published bucket: s3://, gs://, az://, file:// or a web
    /// folder with a copy; may be repeated, and the first is preferred
    #[arg(long, required = true, value_name = "URL", value_delimiter = ',')]
    pub(crate) from: Vec<String>,
    /// Keep the archives here, where files that are there already are not downloaded again [default:
    /// each is removed when its blocks are held]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Maximum bytes of one archive or segment; three archives are on disk at a time, or the segments of
    /// four slots of a bucket
    #[arg(long, value_name = "BYTES", default_value = "8GiB", value_parser = parse_some_bytes)]
    pub(crate) file_bytes_max: usize,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}
