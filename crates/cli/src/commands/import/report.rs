//! What `import` prints: a line for each file, then a sum.

use std::path::Path;
use std::time::Duration;

use archive::shown;
use chain::BlockRange;
use ingest::import::{ImportError, ImportReport, Outcome};
use store::manifest::ManifestConflict;
use store::{StoreError, View};

use crate::chain_choice::genesis_beside;
use crate::commands::verify::hint as archive_hint;
use crate::output::{counted, grouped, rate};
use crate::trust_text::verdict;

/// What was taken.
pub(crate) fn imported_line(imported: &ImportReport) -> String {
    format!(
        "blocks {}  {}  {}, {} bytes  {}",
        imported.range,
        counted(imported.transaction_count, "transaction"),
        counted(u64::try_from(imported.segment_count).unwrap_or(u64::MAX), "segment"),
        imported.bytes,
        verdict(&imported.statuses)
    )
}

/// What became of a file.
pub(crate) fn line(path: &Path, outcome: &Outcome, wanted: Option<BlockRange>) -> String {
    let file = shown(path);
    match outcome {
        Outcome::Imported(imported) => format!("{file}  {}", imported_line(imported)),
        Outcome::Held { range } => format!("{file}  blocks {range}  held already"),
        Outcome::Outside => match wanted {
            Some(wanted) => format!("{file}  none of blocks {wanted}"),
            None => format!("{file}  no blocks"),
        },
    }
}

/// Which file begins, for whoever wants to hear more.
pub(crate) fn begin(path: &Path, bytes: u64, number: usize, count: usize) -> String {
    format!("file {number} of {count}: {}, {} bytes", shown(path), grouped(bytes))
}

/// How long a file took, for whoever wants to hear more.
pub(crate) fn pace(path: &Path, transaction_count: u64, elapsed: Duration) -> String {
    let rate = rate(transaction_count, "transaction", elapsed);
    format!("taken: {} in {:.1} s{rate}", shown(path), elapsed.as_secs_f64())
}

/// Why a file was not taken, and what to do about it. Where no genesis is known, one that lies beside
/// the file is pointed at: it is for the user to trust.
pub(crate) fn refusal(path: &Path, error: &ImportError, is_genesis_known: bool) -> String {
    let genesis = genesis_beside(path).filter(|_| !is_genesis_known);
    let by_genesis = genesis.map(|it| {
        format!("if you trust the genesis.json beside it, name it: --genesis {}", shown(&it))
    });
    let hint = match error {
        ImportError::Archive(error) => match archive_hint(error) {
            Some(hint) => hint,
            None => return format!("error: {error}"),
        },
        ImportError::Unanchored { .. } => by_genesis.as_deref().unwrap_or(
            "import what lies between it and what is known, give --anchor NUMBER:HASH, or take it \
             as it is with --unanchored",
        ),
        ImportError::NoReceipts { .. } => {
            "take it without them with --without-receipts, or get the archive that has them"
        }
        ImportError::Contradiction { .. } => {
            "one of the two is not of this chain: get the file again, or give another --data-dir"
        }
        ImportError::Store(_) | ImportError::Upstream(_) | ImportError::Published { .. } => {
            "nothing of this file was taken"
        }
    };
    // An error of the store names a file of the folder, if any: the archive is to be named too.
    let file =
        if matches!(error, ImportError::Store(_)) { shown(path) + ": " } else { String::new() };
    format!("error: {file}{error}\n  hint: {hint}")
}

/// Whether a failure is the data folder's own, and not that of what was to be added.
pub(crate) fn is_of_folder(error: &StoreError) -> bool {
    match error {
        StoreError::Write { .. }
        | StoreError::Outdated { .. }
        | StoreError::Conflict(
            ManifestConflict::Network { .. }
            | ManifestConflict::Difficulty { .. }
            | ManifestConflict::LostBlock { .. }
            | ManifestConflict::Anchor { .. },
        ) => false,
        StoreError::Disk(_)
        | StoreError::Manifest(_)
        | StoreError::Lock(_)
        | StoreError::Segment { .. }
        | StoreError::Index { .. }
        | StoreError::HasLogIndex { .. }
        | StoreError::NotListed { .. }
        | StoreError::Differs { .. }
        | StoreError::Block { .. }
        | StoreError::Reader(_)
        | StoreError::NotHeld { .. }
        | StoreError::NothingProven { .. }
        | StoreError::NoSegment { .. }
        | StoreError::Head(_)
        | StoreError::Changing
        | StoreError::NoHead
        | StoreError::HeadInUse
        | StoreError::WriterGone
        | StoreError::Stopped
        | StoreError::Seam { .. }
        | StoreError::Build(_)
        | StoreError::Merge { .. }
        | StoreError::ManifestMissing { .. }
        | StoreError::HeadLost { .. }
        | StoreError::GenesisFile { .. }
        | StoreError::Unlinked { .. }
        | StoreError::FolderGone { .. }
        | StoreError::Conflict(
            ManifestConflict::Blocks { .. }
            | ManifestConflict::Lost { .. }
            | ManifestConflict::Slots { .. }
            | ManifestConflict::Twice { .. }
            | ManifestConflict::Name { .. },
        ) => true,
    }
}

/// What became of all files.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) imported_count: u64,
    pub(crate) held_count: u64,
    pub(crate) outside_count: u64,
    pub(crate) refused_count: u64,
    pub(crate) block_count: u64,
    pub(crate) transaction_count: u64,
    /// Of the files whose blocks are held now.
    pub(crate) archive_bytes: u64,
}

impl Tally {
    /// The sum, and what it takes beside what the archives take.
    pub(crate) fn lines(&self, view: &View, elapsed: Duration) -> Vec<String> {
        let mut line = format!(
            "{} imported: {}, {} in {:.1} s{}",
            counted(self.imported_count, "file"),
            counted(self.block_count, "block"),
            counted(self.transaction_count, "transaction"),
            elapsed.as_secs_f64(),
            rate(self.transaction_count, "transaction", elapsed)
        );
        for (count, what) in [
            (
                self.held_count,
                "held already (of their segments only length and footer were looked at: `quipu check` proves them)",
            ),
            (self.outside_count, "without a wanted block"),
            (self.refused_count, "REFUSED"),
        ] {
            if count > 0 {
                line = format!("{line}; {count} {what}");
            }
        }
        let manifest = view.manifest();
        let segments = manifest.segments().iter().map(|entry| entry.bytes);
        let listed: u64 = segments.chain(manifest.runs().iter().map(|entry| entry.bytes)).sum();
        let held: u64 = view.coverage().iter().map(BlockRange::count).sum();
        let blocks = match held {
            1 => "the 1 block that is held".to_owned(),
            _ => format!("all {} blocks that are held", grouped(held)),
        };
        let on_disk = format!(
            "on disk: {} bytes for {blocks}; these archives: {} bytes",
            grouped(listed),
            grouped(self.archive_bytes)
        );
        let on_disk = Some(on_disk).filter(|_| held > 0);
        [line].into_iter().chain(on_disk).collect()
    }
}
