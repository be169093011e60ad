//! A data folder that is made for a run: imports into it, views of it, what it takes on the disk.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use chain::BlockRange;
use chain::trust::Anchors;
use ingest::import::{ImportReport, ImportSettings, Importer, Outcome};
use ingest::prove::NoProgress;
use store::disk::{Disk, Folder};
use store::read::Inline;
use store::{Limits, Store, View, Writer};

use crate::archives::ArchiveFile;

/// A data folder, open or not.
#[derive(Clone, Debug)]
pub struct BenchFolder(PathBuf);

impl BenchFolder {
    /// The folder at a path; it is made when something is imported.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Proves an archive, or some blocks of it, and takes it in.
    pub fn import(
        &self,
        file: &ArchiveFile,
        blocks: Option<BlockRange>,
        threads: NonZeroUsize,
    ) -> Result<ImportReport> {
        self.import_indexed(file, blocks, threads, false)
    }

    /// The same with the log index or without.
    pub fn import_indexed(
        &self,
        file: &ArchiveFile,
        blocks: Option<BlockRange>,
        threads: NonZeroUsize,
        is_without_log_index: bool,
    ) -> Result<ImportReport> {
        let disk = Arc::new(Folder::create(self.path())?);
        let mut writer = Writer::open(open(disk, Limits::default())?, file.spec.clone())?;
        let anchors = Anchors::of(&file.spec);
        if is_without_log_index {
            writer.want_log_index(false)?;
        }
        let settings = ImportSettings {
            is_unanchored_allowed: file.is_unanchored,
            is_without_receipts_allowed: false,
            is_without_log_index,
            blocks,
            threads,
        };
        let (spec, anchors, progress) = (&file.spec, &anchors, &NoProgress);
        let outcome = Importer { writer: &mut writer, spec, anchors, settings, progress }
            .import_file(&file.path)?;
        let Outcome::Imported(imported) = outcome else {
            bail!("{}: nothing was imported: {outcome:?}", file.title);
        };
        Ok(imported)
    }

    /// What can be read.
    pub fn view(&self) -> Result<Arc<View>> {
        Self::view_on(Arc::new(Folder::open(self.path())?), Limits::default())
    }

    /// What can be read through another disk, in as much memory.
    pub fn view_on(disk: Arc<dyn Disk>, limits: Limits) -> Result<Arc<View>> {
        Ok(open(disk, limits)?.view())
    }

    /// Bytes of all files, whatever they are for.
    pub fn bytes(&self) -> Result<u64> {
        let mut sum = 0_u64;
        for entry in fs::read_dir(self.path()).context("the data folder")? {
            sum = sum.saturating_add(entry?.metadata()?.len());
        }
        Ok(sum)
    }

    /// Removes it with all that is in it.
    pub fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.path())?)
    }
}

fn open(disk: Arc<dyn Disk>, limits: Limits) -> Result<Arc<Store>> {
    Ok(Arc::new(Store::open(disk, Arc::new(Inline), limits)?))
}
