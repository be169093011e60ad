//! Who wants which file of a folder: one that is superseded is removed when nobody does.
//!
//! A file is named by its content, so one that was superseded may be made anew while an old view still
//! holds it. A name is given and removed under the same lock, and removed only when no claim on it is
//! left: whoever drops an old claim cannot remove the new file. Nothing is removed without a writer,
//! because only a writer has the folder's lock, and another process may give the same names without it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskError};

/// The names of a store's files.
#[derive(Debug, Default)]
pub(crate) struct FileClaims {
    names: Mutex<ClaimedNames>,
}

#[derive(Debug, Default)]
struct ClaimedNames {
    claimed: BTreeMap<String, ClaimedName>,
    /// Where files are removed; `None` while nobody may.
    disk: Option<Arc<dyn Disk>>,
}

#[derive(Debug)]
struct ClaimedName {
    holder_count: usize,
    /// Whether the file goes with the last holder.
    is_superseded: bool,
}

/// A file that somebody wants: it is not removed before this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Arc<FileClaims>,
    file_name: String,
}

/// The time in which files are removed.
#[derive(Debug)]
#[must_use = "nothing is removed after this is dropped"]
pub(crate) struct Removal {
    claims: Arc<FileClaims>,
}

impl Drop for Removal {
    fn drop(&mut self) {
        let mut names = self.claims.lock();
        names.disk = None;
        // The next writer decides anew: somebody else may list these files meanwhile.
        names.claimed.values_mut().for_each(|name| name.is_superseded = false);
    }
}

impl FileClaims {
    fn lock(&self) -> MutexGuard<'_, ClaimedNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever has the folder's lock removes what nobody wants, for as long as the answer lives. What is
    /// still wanted then is left to the next writer.
    pub(crate) fn begin_removal(self: &Arc<Self>, disk: Arc<dyn Disk>) -> Removal {
        self.lock().disk = Some(disk);
        Removal { claims: Arc::clone(self) }
    }

    /// Claims a file that is listed: it stays until it is superseded.
    pub(crate) fn claim_listed(self: &Arc<Self>, file_name: &str) -> Claim {
        let mut names = self.lock();
        let claim = self.claim(&mut names, file_name);
        names.supersede(file_name, false);
        claim
    }

    /// Gives a new file its name, which `rename` does. It goes with its last holder, unless it is listed
    /// or [kept](Claim::keep).
    pub(crate) fn claim_new(
        self: &Arc<Self>,
        file_name: &str,
        rename: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<Claim, DiskError> {
        let mut names = self.lock();
        rename()?;
        Ok(self.claim(&mut names, file_name))
    }

    fn claim(self: &Arc<Self>, names: &mut ClaimedNames, file_name: &str) -> Claim {
        let fresh = || ClaimedName { holder_count: 0, is_superseded: true };
        let name = names.claimed.entry(file_name.to_owned()).or_insert_with(fresh);
        name.holder_count = name.holder_count.saturating_add(1);
        Claim { claims: Arc::clone(self), file_name: file_name.to_owned() }
    }

    /// Removes a file that is not listed: now, or when its last holder is gone.
    pub(crate) fn remove(&self, file_name: &str) -> Result<(), DiskError> {
        let mut names = self.lock();
        names.supersede(file_name, true);
        if names.claimed.contains_key(file_name) { Ok(()) } else { names.remove(file_name) }
    }
}

impl ClaimedNames {
    fn supersede(&mut self, file_name: &str, is_superseded: bool) {
        if let Some(name) = self.claimed.get_mut(file_name) {
            name.is_superseded = is_superseded;
        }
    }

    fn remove(&self, file_name: &str) -> Result<(), DiskError> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.remove(file_name))
    }
}

impl Claim {
    pub(crate) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The file stays, whoever drops it: a manifest lists it, or may list it after a crash.
    pub(crate) fn keep(&self) {
        self.claims.lock().supersede(&self.file_name, false);
    }

    /// The file goes with its last holder.
    pub(crate) fn supersede(&self) {
        self.claims.lock().supersede(&self.file_name, true);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut names = self.claims.lock();
        let Some(name) = names.claimed.get_mut(&self.file_name) else { return };
        name.holder_count = name.holder_count.saturating_sub(1);
        if name.holder_count > 0 {
            return;
        }
        let name = names.claimed.remove(&self.file_name);
        if name.is_some_and(|name| name.is_superseded) {
            // What cannot be removed now is left to the next writer.
            let _ = names.remove(&self.file_name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::disk::faulty::FaultyDisk;

    fn claims_on(disk: &FaultyDisk) -> (Arc<FileClaims>, Removal) {
        let claims = Arc::<FileClaims>::default();
        let removal = claims.begin_removal(Arc::new(disk.clone()));
        (claims, removal)
    }

    fn make(claims: &Arc<FileClaims>, disk: &FaultyDisk) -> Claim {
        disk.write("new", b"x").unwrap();
        claims.claim_new("file", || disk.rename("new", "file")).unwrap()
    }

    fn is_there(disk: &FaultyDisk) -> bool {
        disk.file_bytes("file").is_ok()
    }

    #[test]
    fn a_file_goes_with_its_last_holder_unless_it_is_listed_or_kept() {
        let disk = FaultyDisk::new(1);
        let (claims, _removal) = claims_on(&disk);
        drop(make(&claims, &disk));
        assert!(!is_there(&disk));
        let made = make(&claims, &disk);
        let listed = claims.claim_listed("file");
        drop(made);
        drop(listed);
        assert!(is_there(&disk), "the manifest lists it");
        let listed = claims.claim_listed("file");
        listed.supersede();
        let again = make(&claims, &disk);
        drop(listed);
        assert!(is_there(&disk), "whoever made it anew wants it");
        again.keep();
        drop(again);
        assert!(is_there(&disk));
        let listed = claims.claim_listed("file");
        claims.remove("file").unwrap();
        assert!(is_there(&disk), "a view has it");
        drop(listed);
        assert!(!is_there(&disk));
    }

    #[test]
    fn nothing_is_removed_without_a_writer() {
        let disk = FaultyDisk::new(1);
        let (claims, removal) = claims_on(&disk);
        let made = make(&claims, &disk);
        drop(removal);
        drop(made);
        assert!(is_there(&disk), "the folder may be another writer's");
        // What was superseded then may be wanted now.
        let removal = claims.begin_removal(Arc::new(disk.clone()));
        let listed = claims.claim_listed("file");
        listed.supersede();
        drop(removal);
        let _removal = claims.begin_removal(Arc::new(disk.clone()));
        drop(listed);
        assert!(is_there(&disk), "the next writer did not say that it goes");
    }

    /// One thread makes the file anew while another drops the last claim on the old one.
    #[test]
    fn a_file_that_is_made_anew_is_there_whatever_is_dropped_meanwhile() {
        let disk = FaultyDisk::new(1);
        let (claims, _removal) = claims_on(&disk);
        for _ in 0..500 {
            let old = make(&claims, &disk);
            let new = thread::scope(|scope| {
                scope.spawn(move || drop(old));
                make(&claims, &disk)
            });
            assert!(is_there(&disk));
            drop(new);
        }
    }
}
