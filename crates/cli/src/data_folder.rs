//! The data folder: where it is, and the way into it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use archive::ArchiveName;
use chain::ChainSpec;
use ingest::fetch::WORK_FOLDER_NAME;
use ingest::folder_chain::{held_spec, proving_spec};
use store::disk::{Disk, DiskError, EmptyDisk, Folder};
use store::head::Recovery;
use store::lock::LOCK_NAME;
use store::manifest::MANIFEST_NAME;
use store::names::{GENESIS_NAME, JOURNAL_NAME, is_head_file};
use store::notice::NOTICE_NAME;
use store::read::Inline;
use store::repair::{DAMAGED_NAME, is_data_folder};
use store::{FileSource, Limits, LocalFiles, Store, StoreError};

use crate::Failure;
use crate::args::DataArgs;
use crate::chain_choice::chain_failure;
use crate::descriptors::store_limits;

/// The configuration that goes with a data folder, if it lies in it.
pub(crate) const CONFIG_NAME: &str = "quipu.toml";

/// A data folder, open.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    pub(crate) path: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) store: Arc<Store>,
    /// The chain, where more is known of it than the folder tells.
    pub(crate) known_spec: Option<Arc<ChainSpec>>,
}

/// Where the data folder is by the flag, the variable or the default.
pub(crate) fn locate(args: &DataArgs) -> Result<PathBuf, Failure> {
    let found = args.data_dir.clone().filter(|path| !path.as_os_str().is_empty());
    let found = found.or_else(default_folder);
    found.ok_or_else(|| {
        Failure::Usage(anyhow!("neither HOME nor XDG_DATA_HOME is set: give --data-dir DIR"))
    })
}

/// Where the data folder is if nobody says it.
pub(crate) fn default_folder() -> Option<PathBuf> {
    default_path(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
}

/// Whether a folder is a data folder that something was put into.
pub(crate) fn has_manifest(folder: &Path) -> bool {
    folder.join(MANIFEST_NAME).is_file()
}

/// The default, by the XDG base directory specification: a relative `XDG_DATA_HOME` is passed over.
fn default_path(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let data_home = data_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
    let base = data_home.or_else(|| Some(home?.join(".local/share")))?;
    Some(base.join("quipu"))
}

impl DataFolder {
    /// Opens a folder if it is there.
    pub(crate) fn find(path: &Path) -> anyhow::Result<Option<Self>> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => {
                let folder = Folder::open(path)?;
                refuse_archives(&folder)?;
                Self::over(folder).map(Some)
            }
        }
    }

    /// Opens a folder that must be there, with its head: commands that only read make nothing.
    pub(crate) fn open(args: &DataArgs) -> Result<Self, Failure> {
        let (folder, head) = Self::open_without_head(args)?;
        head?;
        Ok(folder)
    }

    /// The same, also if its head cannot be shown: the error is returned beside it.
    pub(crate) fn open_without_head(
        args: &DataArgs,
    ) -> Result<(Self, Result<Recovery, StoreError>), Failure> {
        let path = locate(args)?;
        match Self::find(&path)? {
            Some(folder) => {
                refuse_other(&folder)?;
                let head = folder.store.read_head(proving_spec(&folder.store));
                Ok((folder, head))
            }
            None => Err(Failure::Work(anyhow!(
                "{0}: there is no data folder here\n  hint: make one with: quipu import --data-dir {0} ARCHIVES, \
                 or quipu fetch --data-dir {0} --from URL",
                path.display()
            ))),
        }
    }

    /// The chain that the folder holds, as far as the folder knows it.
    pub(crate) fn spec(&self) -> Result<ChainSpec, Failure> {
        if let Some(spec) = &self.known_spec {
            return Ok(ChainSpec::clone(spec));
        }
        held_spec(&self.store).map_err(chain_failure)
    }

    /// Opens a folder to write to it; it is made if it is not there.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        refuse_foreign(path)?;
        Self::over(Folder::create(path)?)
    }

    /// No folder, though one may lie here another time: for whoever keeps nothing. Nothing is made.
    pub(crate) fn without_files(path: &Path) -> anyhow::Result<Self> {
        Self::over_disk(path.to_owned(), Arc::new(EmptyDisk))
    }

    fn over(folder: Folder) -> anyhow::Result<Self> {
        let path = folder.path().to_owned();
        Self::over_disk(path, Arc::new(folder))
    }

    fn over_disk(path: PathBuf, disk: Arc<dyn Disk>) -> anyhow::Result<Self> {
        let store =
            Store::open(Arc::clone(&disk), Arc::new(Inline), store_limits(Limits::default()))?;
        Ok(Self { path, disk, store: Arc::new(store), known_spec: None })
    }

    /// The same folder, shown by a store that is served, of a chain that is known.
    pub(crate) fn shown_by(&self, store: Arc<Store>, spec: ChainSpec) -> Self {
        Self { store, known_spec: Some(Arc::new(spec)), ..self.clone() }
    }

    /// What readers ask.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Opens the files that the folder lists.
    pub(crate) fn source(&self) -> Arc<dyn FileSource> {
        Arc::new(LocalFiles::new(Arc::clone(&self.disk), Arc::new(Inline)))
    }
}

/// A folder without a manifest, in which no writer has begun either, is somebody's, or a place where
/// nothing was put yet: most often its name was mistyped.
fn refuse_other(folder: &DataFolder) -> anyhow::Result<()> {
    let names = folder.disk.list()?;
    if names.iter().any(|name| name == LOCK_NAME) || is_data_folder(&*folder.disk)? {
        return Ok(());
    }
    let place = folder.path.display();
    let found = match names.as_slice() {
        [] => "this folder is empty, and no data folder".to_owned(),
        [name] => format!("this is no data folder: only {name} is in it"),
        [name, ..] => format!("this is no data folder: {name} and other files are in it"),
    };
    Err(anyhow!(
        "{place}: {found}\n  hint: see whether --data-dir is right; a data folder is made with: quipu \
         import --data-dir {place} ARCHIVES"
    ))
}

/// A folder of archives, which may have a genesis.json of its own, holds no block and lost nothing: it is
/// the wrong folder.
fn refuse_archives(folder: &Folder) -> anyhow::Result<()> {
    if is_data_folder(folder)? {
        return Ok(());
    }
    let names = folder.list()?;
    let is_archive = |name: &&String| ArchiveName::is_archive(Path::new(name));
    let archives: Vec<&String> = names.iter().filter(is_archive).collect();
    let Some(first) = archives.first() else { return Ok(()) };
    let place = folder.path().display();
    Err(anyhow!(
        "{place}: this is a folder of archives ({first}{}), not a data folder\n  hint: take them into \
         a data folder with: quipu import --data-dir DATA {place}",
        match archives.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        }
    ))
}

/// A writer removes files that look like unfinished ones of its own. So a folder that is no data
/// folder yet must not be somebody's.
fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    if !path.is_dir() || path.join(MANIFEST_NAME).exists() {
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
        let name = entry.with_context(|| path.display().to_string())?.file_name();
        // The work folder of a fetch that was killed before its first commit.
        let is_own = |name: &str| is_own_name(name) || name == WORK_FOLDER_NAME;
        if !name.to_str().is_some_and(is_own) {
            return Err(anyhow!(
                "{}: no data folder, and not empty: {} is in it\n  hint: give an empty folder, or one that is not there yet",
                path.display(),
                name.display()
            ));
        }
    }
    Ok(())
}

/// What lies in a data folder under the name of a file of its own, and is none.
pub(crate) fn irregular_files(disk: &dyn Disk) -> Result<Vec<String>, DiskError> {
    let found = disk.irregular()?.into_iter().filter(|it| is_own_name(&it.name));
    Ok(found.map(|it| format!("{}: this is {}, not a file", it.name, it.kind)).collect())
}

/// Whether a data folder may have a file of this name, also one that a writer was killed over.
fn is_own_name(name: &str) -> bool {
    let is_named = |begin: &str, end: &str| name.starts_with(begin) && name.ends_with(end);
    let is_part = name
        .strip_suffix(".part")
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let staged = name.strip_suffix(".staged").unwrap_or(name);
    is_part
        || name == CONFIG_NAME
        || [LOCK_NAME, GENESIS_NAME, MANIFEST_NAME, NOTICE_NAME, JOURNAL_NAME].contains(&staged)
        || name.starts_with(DAMAGED_NAME)
        || is_named("blocks-", ".segment")
        || is_named("lookup-", ".run")
        || is_head_file(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data_home: Option<&str>, home: Option<&str>, expected: Option<&str>) {
        let found = default_path(data_home.map(OsString::from), home.map(OsString::from));
        assert_eq!(found.as_deref(), expected.map(Path::new));
    }

    #[test]
    fn the_default_follows_the_xdg_specification() {
        check(Some("/data"), Some("/home/a"), Some("/data/quipu"));
        check(None, Some("/home/a"), Some("/home/a/.local/share/quipu"));
        check(Some("relative"), Some("/home/a"), Some("/home/a/.local/share/quipu"));
        check(Some(""), Some(""), None);
        check(None, None, None);
    }

    #[test]
    fn only_what_a_killed_import_leaves_is_taken_for_ours() {
        for name in ["lock", "0.part", "17.part", "manifest.staged", "genesis.json", "lock.staged"]
        {
            assert!(is_own_name(name), "{name}");
        }
        assert!(is_own_name("blocks-0000000000-0000000099-0011223344556677.segment"));
        assert!(is_own_name("lookup-blocks-000000-000000-0011223344556677.run"));
        for name in ["film.part", "notes.txt", "x.segment", "manifest.bak", ".hidden", "a.run"] {
            assert!(!is_own_name(name), "{name}");
        }
    }
}
