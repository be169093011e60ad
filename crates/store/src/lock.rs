//! One writer per data folder.

use thiserror::Error;

use crate::disk::{Disk, DiskError, LockGuard};

/// The file that is locked. It stays when the lock is given back, empty then: a file that is there says
/// nothing, only the lock on it does. While it is locked it names the process that holds it.
pub const LOCK_NAME: &str = "lock";

/// The right to write to one data folder. Dropping it gives it back, and so does the end of the
/// process, `kill -9` included.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct WriterLock {
    guard: LockGuard,
}

/// Why this process may not write.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another writer is at work.
    #[error(
        "{folder}: another process writes to this data folder{}; it holds {folder}/{LOCK_NAME}",
        .holder.as_ref().map_or(String::new(), |holder| format!(": {holder}"))
    )]
    Held {
        /// The data folder.
        folder: String,
        /// Its process and command, if they can be told.
        holder: Option<String>,
    },
    /// The lock could not be asked for.
    #[error(transparent)]
    Disk(DiskError),
}

impl WriterLock {
    /// Takes the lock of the folder, at once or not at all.
    pub fn take(disk: &dyn Disk) -> Result<Self, LockError> {
        match disk.lock(LOCK_NAME) {
            Ok(guard) => Ok(Self { guard }),
            Err(DiskError::Locked { holder, .. }) => {
                Err(LockError::Held { folder: disk.place(), holder })
            }
            Err(error) => Err(LockError::Disk(error)),
        }
    }

    /// Whether the folder still has the file that is locked: if not, it was moved or another is in its
    /// place, and its lock is somebody else's to take.
    pub(crate) fn is_in_place(&self) -> bool {
        self.guard.is_in_place()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::disk::Folder;
    use crate::disk::faulty::{Crash, DiskFailure, FaultyDisk};

    fn check_refused(disk: &dyn Disk) {
        let first = WriterLock::take(disk).unwrap();
        let refusal = WriterLock::take(disk).unwrap_err();
        assert!(matches!(&refusal, LockError::Held { folder, .. } if *folder == disk.place()));
        assert!(refusal.to_string().starts_with(&disk.place()), "{refusal}");
        drop(first);
        let _second = WriterLock::take(disk).unwrap();
    }

    #[test]
    fn a_second_writer_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        check_refused(&Folder::open(folder.path()).unwrap());
        check_refused(&FaultyDisk::new(1));
    }

    /// The test runs itself again as the other process, which is told its folder by this variable.
    #[test]
    fn a_killed_writer_holds_the_lock_until_it_is_dead_and_no_longer() {
        const VARIABLE: &str = "QUIPU_TEST_LOCK_FOLDER";
        const NAME: &str =
            "lock::tests::a_killed_writer_holds_the_lock_until_it_is_dead_and_no_longer";
        if let Some(path) = std::env::var_os(VARIABLE) {
            let _lock = WriterLock::take(&Folder::open(path).unwrap()).unwrap();
            println!("the lock is held");
            let _ = std::io::stdin().read_line(&mut String::new());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(VARIABLE, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(other.stdout.take().unwrap()).lines();
        let is_held = lines.map_while(Result::ok).any(|line| line.ends_with("the lock is held"));
        assert!(is_held, "the other process took the lock");
        assert!(matches!(WriterLock::take(&disk), Err(LockError::Held { .. })));
        other.kill().unwrap();
        other.wait().unwrap();
        let _lock = WriterLock::take(&disk).unwrap();
    }

    #[test]
    fn two_folders_have_two_writers() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let disks = folders.each_ref().map(|folder| Folder::open(folder.path()).unwrap());
        let _locks = disks.each_ref().map(|disk| WriterLock::take(disk).unwrap());
    }

    #[test]
    fn a_lock_dies_with_its_process_and_its_guard_frees_no_other() {
        let disk = FaultyDisk::new(1);
        let before = WriterLock::take(&disk).unwrap();
        disk.crash(Crash::default());
        let after = WriterLock::take(&disk).unwrap();
        drop(before);
        WriterLock::take(&disk).unwrap_err();
        drop(after);
    }

    #[test]
    fn a_disk_that_fails_is_not_taken_for_another_writer() {
        let disk = FaultyDisk::new(1);
        disk.fail_after(0, DiskFailure::Io);
        assert!(matches!(WriterLock::take(&disk), Err(LockError::Disk(_))));
        let _lock = WriterLock::take(&disk).unwrap();
    }
}
