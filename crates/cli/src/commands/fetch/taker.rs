//! Downloaded files go the way of every archive: proven, and taken into the data folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use archive::Remedy;
use chain::trust::Anchors;
use chain::{BlockRange, ChainSpec};
use ingest::fetch::{FileTaker, MirrorFile, TakeVerdict, is_file_held};
use ingest::import::{ImportError, ImportSettings, Importer};
use store::layout::overlap;
use store::{StoreError, Writer};
use tokio::sync::watch;

use super::progress::FetchProgress;
use crate::Failure;
use crate::commands::import::report::{self, Tally};
use crate::commands::import::to_failure;
use crate::priority::give_way;

/// Takes files into a data folder.
#[derive(Debug)]
pub(super) struct StoreTaker<'a> {
    pub(super) writer: &'a mut Writer,
    pub(super) spec: &'a ChainSpec,
    pub(super) anchors: &'a Anchors,
    pub(super) settings: ImportSettings,
    pub(super) progress: &'a FetchProgress,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) tally: Tally,
    /// Blocks of the files that were taken or passed over, as the total counts them.
    pub(super) reached: u64,
    /// Eras of which a file contradicts what is trusted. If no mirror has another one, what is trusted
    /// may be wrong.
    pub(super) distrusted: BTreeSet<u64>,
}

impl StoreTaker<'_> {
    /// Blocks that are wanted of a file's era.
    pub(super) fn wanted_blocks(&self, file: &MirrorFile) -> u64 {
        let named = file.named_range();
        let wanted = named.and_then(|named| overlap(named, self.settings.blocks.unwrap_or(named)));
        wanted.map_or(0, |wanted| wanted.count())
    }

    /// Whether the file is false, so that another mirror may have a true one.
    fn is_false(&self, file: &MirrorFile, error: &ImportError) -> bool {
        match error {
            ImportError::Archive(error) => match error.remedy() {
                Remedy::ReplaceFile
                | Remedy::Relabel
                | Remedy::AskElsewhere
                | Remedy::CompareTrust
                | Remedy::NameArchive
                | Remedy::Unpack => true,
                Remedy::Retry | Remedy::FixPath | Remedy::FixRequest | Remedy::MendList => false,
            },
            ImportError::Store(_) | ImportError::Contradiction { .. } => true,
            ImportError::Upstream(_) | ImportError::Published { .. } => false,
            ImportError::Unanchored { range, .. } => self.begins_late(file, *range),
            // A name that does not say so promises receipts.
            ImportError::NoReceipts { .. } => !file.archive.is_without_receipts,
        }
    }

    /// Whether blocks that link to nothing would link to what is held, if their file began where its
    /// name says.
    fn begins_late(&self, file: &MirrorFile, range: BlockRange) -> bool {
        let Some(named) = file.named_range() else { return false };
        let due = self.settings.blocks.map_or(0, |wanted| wanted.first()).max(named.first());
        let view = self.writer.view();
        let links = |first: u64| match first.checked_sub(1) {
            Some(before) => view.coverage().iter().any(|held| held.contains(before)),
            None => self.spec.genesis_hash().is_some(),
        };
        range.first() > due && links(due) && !links(range.first())
    }

    /// Why a file is not taken that no other mirror can replace.
    fn refuse(&self, path: &Path, error: &ImportError) -> Failure {
        let is_genesis_known = self.spec.genesis_hash().is_some();
        let mut said = report::refusal(path, error, is_genesis_known);
        if !is_genesis_known && matches!(error, ImportError::Unanchored { .. }) {
            said += "\n  hint: mirrors are not asked for the genesis; name yours: --genesis FILE";
        }
        self.progress.say(&said);
        Failure::Told
    }
}

impl FileTaker for StoreTaker<'_> {
    type Error = Failure;

    fn is_held(&mut self, file: &MirrorFile) -> Result<bool, Failure> {
        let held = is_file_held(&self.writer.view(), &file.archive, self.settings.blocks);
        held.map_err(|error| to_failure(&error))
    }

    fn pass_over(&mut self, _file: &MirrorFile) {
        self.tally.held_count += 1;
    }

    fn take(&mut self, file: &MirrorFile, path: &Path) -> Result<TakeVerdict, Failure> {
        let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let mut importer = Importer {
            writer: self.writer,
            spec: self.spec,
            anchors: self.anchors,
            settings: self.settings,
            progress: self.progress,
        };
        let taken = give_way(|| importer.import_until(path, Some(&self.stop)));
        match taken {
            Ok(outcome) => {
                let line = report::line(Path::new(&file.name), &outcome, self.settings.blocks);
                self.progress.print(line)?;
                self.tally.add(&outcome, bytes);
                self.reached += self.wanted_blocks(file);
                self.progress.reach(self.reached);
                Ok(TakeVerdict::Taken)
            }
            Err(ImportError::Store(StoreError::Stopped)) => Ok(TakeVerdict::Stopped),
            Err(ImportError::Store(error)) if report::is_of_folder(&error) => {
                Err(to_failure(&error))
            }
            Err(error) if self.is_false(file, &error) => {
                self.progress.reach(self.reached);
                let is_of_trust = matches!(
                    &error,
                    ImportError::Archive(error) if error.remedy() == Remedy::CompareTrust
                );
                if is_of_trust {
                    self.distrusted.insert(file.archive.era);
                }
                Ok(TakeVerdict::Refused(error.to_string()))
            }
            Err(error) => Err(self.refuse(path, &error)),
        }
    }
}
