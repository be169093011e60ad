//! Whether a data folder is there: a manifest that is missing is damage, never emptiness.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::disk::{Disk, DiskError};
use crate::error::StoreError;
use crate::manifest::{MANIFEST_NAME, Manifest, Network};
use crate::names::is_lasting_name;

/// Names of files that an error lists before it only counts them.
const NAMES_MAX: usize = 3;

/// What is known of the folder's presence.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// This process has read or written the folder's manifest.
    is_seen: AtomicBool,
    /// Why the folder could not be looked at the last time, if it could not.
    trouble: Mutex<Option<String>>,
}

impl Presence {
    /// The folder's manifest; that of an empty folder if there never was one.
    pub(crate) fn load(&self, disk: &dyn Disk) -> Result<Manifest, StoreError> {
        let loaded = self.load_seen(disk);
        self.note(loaded.as_ref().err());
        loaded
    }

    fn load_seen(&self, disk: &dyn Disk) -> Result<Manifest, StoreError> {
        let loaded = load_or_empty(disk).map_err(|error| {
            // Nothing is there any more, not even the folder.
            let is_gone = matches!(&error, StoreError::Disk(DiskError::Missing { .. }));
            if is_gone && self.is_seen() {
                return StoreError::FolderGone { folder: disk.place() };
            }
            error
        });
        match loaded? {
            Some(manifest) => {
                self.is_seen.store(true, Ordering::Release);
                Ok(manifest)
            }
            // An empty folder in the place of ours, such as the place where its disk was mounted.
            None if self.is_seen() => Err(StoreError::FolderGone { folder: disk.place() }),
            None => Ok(Manifest::new(Network::default())),
        }
    }

    /// Whether the manifest is still there, without reading it: for whoever knows what it says.
    pub(crate) fn look(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        match disk.file_bytes(MANIFEST_NAME) {
            Ok(_) => {
                self.note(None);
                Ok(())
            }
            Err(error) if error.is_missing() => self.load(disk).map(drop),
            Err(error) => {
                let error = error.into();
                self.note(Some(&error));
                Err(error)
            }
        }
    }

    /// Writes the manifest of an empty folder if there is none: before any other file of ours, so
    /// that no crash leaves one without a manifest.
    pub(crate) fn begin(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        if !self.is_seen() {
            Manifest::new(Network::default()).replace(disk)?;
            self.is_seen.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Why the folder could not be looked at the last time.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Acquire)
    }

    pub(crate) fn note(&self, error: Option<&StoreError>) {
        let trouble = error.map(ToString::to_string);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The folder's manifest; `None` if the folder holds no file that only a manifest's folder has.
fn load_or_empty(disk: &dyn Disk) -> Result<Option<Manifest>, StoreError> {
    if let Some(manifest) = Manifest::load(disk)? {
        return Ok(Some(manifest));
    }
    let mut found: Vec<String> = disk.list()?;
    found.retain(|name| is_lasting_name(name));
    if found.is_empty() {
        return Ok(None);
    }
    // A writer may have begun meanwhile: then its manifest is there, because it came first.
    match Manifest::load(disk)? {
        Some(manifest) => Ok(Some(manifest)),
        None => Err(StoreError::ManifestMissing { folder: disk.place(), found: text(&found) }),
    }
}

/// The first of some names, and how many more there are.
fn text(names: &[String]) -> String {
    let shown = names.get(..NAMES_MAX).unwrap_or(names).join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faulty::FaultyDisk;

    #[test]
    fn a_folder_without_a_manifest_is_empty_only_while_nothing_of_ours_is_there() {
        for name in ["lock", "manifest.staged", "genesis.json.staged", "head.staged", "7.part"] {
            let (disk, presence) = (FaultyDisk::new(1), Presence::default());
            disk.write(name, b"").unwrap();
            assert_eq!(presence.load(&disk).unwrap(), Manifest::new(Network::default()), "{name}");
        }
        for name in [
            "blocks-0000000000-0000000099-0011223344556677.segment",
            "blocks-0000000000-0000000099-0011223344556677-bare.segment",
            "lookup-blocks-000000-000000-0011223344556677.run",
            "head-7.log",
            "head-7.damaged",
            "genesis.json",
        ] {
            let (disk, presence) = (FaultyDisk::new(1), Presence::default());
            disk.write(name, b"").unwrap();
            let refused = presence.load(&disk).unwrap_err();
            assert!(matches!(refused, StoreError::ManifestMissing { .. }), "{name}: {refused}");
            let told = refused.to_string();
            assert!(told.contains(name) && told.contains("quipu repair"), "{told}");
            assert_eq!(presence.trouble(), Some(told));
        }
    }

    #[test]
    fn many_files_are_counted() {
        let names: Vec<String> = (0..5).map(|number| format!("head-{number}.log")).collect();
        assert_eq!(text(&names), "head-0.log, head-1.log, head-2.log and 2 more");
        assert_eq!(text(names.get(..2).unwrap()), "head-0.log, head-1.log");
    }

    #[test]
    fn a_manifest_that_was_seen_and_is_gone_is_told_until_it_is_back() {
        let (disk, presence) = (FaultyDisk::new(1), Presence::default());
        presence.load(&disk).unwrap();
        presence.begin(&disk).unwrap();
        disk.rename(MANIFEST_NAME, "elsewhere").unwrap();
        for refused in [presence.look(&disk).unwrap_err(), presence.load(&disk).unwrap_err()] {
            assert!(matches!(refused, StoreError::FolderGone { .. }), "{refused}");
        }
        assert!(presence.trouble().is_some());
        disk.rename("elsewhere", MANIFEST_NAME).unwrap();
        presence.look(&disk).unwrap();
        assert_eq!(presence.trouble(), None);
    }
}
