//! The arguments of `quipu export`.

use std::path::PathBuf;

use archive::Format;
use chain::BlockRange;
use clap::ValueEnum;
use ingest::export::ExportFormat;

use super::{DataArgs, WorkArgs, parse_blocks};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu export --data-dir data --format ere --to out
  quipu export --data-dir data --format era1 --to out --blocks 0..8191
  quipu export --data-dir data --format ndjson --to out --blocks 100..199

Without --blocks all that is held is written, each range without a gap as archives of its own. With \
--blocks, what is held of these blocks is written, and the exit code is 1 if some are missing. A file \
that is there already is never replaced.";

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
