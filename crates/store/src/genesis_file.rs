//! The genesis.json that a data folder keeps: which forks its chain has, for whoever opens it next.

use alloy_primitives::B256;
use sha2::{Digest as _, Sha256};

use crate::disk::{Disk, DiskError, replace_file};
use crate::error::StoreError;
use crate::lock::WriterLock;
use crate::manifest::Manifest;
use crate::names::GENESIS_NAME;

/// The longest one that is kept. Mainnet's, with every account of its sale, is a hundredth of it.
pub const GENESIS_BYTES_MAX: u64 = 64 << 20;

/// The folder's genesis.json, if it keeps one.
pub fn read_genesis(disk: &dyn Disk) -> Result<Option<Vec<u8>>, DiskError> {
    match disk.read(GENESIS_NAME, GENESIS_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same, if it is the one that the manifest records. One of which nothing is recorded, as a crash
/// may leave it, is taken as it is.
pub fn read_recorded_genesis(
    disk: &dyn Disk,
    manifest: &Manifest,
) -> Result<Option<Vec<u8>>, StoreError> {
    let found = read_genesis(disk)?;
    let Some(recorded) = manifest.genesis_file() else { return Ok(found) };
    let digest = found.as_deref().map(genesis_digest);
    if digest == Some(recorded) {
        return Ok(found);
    }
    let found =
        digest.map_or_else(|| "it is missing".to_owned(), |it| format!("its SHA-256 is {it}"));
    Err(StoreError::GenesisFile { folder: disk.place(), found, recorded })
}

/// What the manifest records of a genesis.json.
pub(crate) fn genesis_digest(bytes: &[u8]) -> B256 {
    B256::from_slice(&Sha256::digest(bytes))
}

/// Keeps a genesis.json in the folder of `disk`, in place of one that is there. The lock is not
/// asked for anything: having it proves that nobody else changes the folder.
pub(crate) fn keep_genesis(
    disk: &dyn Disk,
    _lock: &WriterLock,
    bytes: &[u8],
) -> Result<(), DiskError> {
    let file_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if file_bytes > GENESIS_BYTES_MAX {
        let place = format!("{}/{GENESIS_NAME}", disk.place());
        return Err(DiskError::TooLarge { place, file_bytes, bytes_max: GENESIS_BYTES_MAX });
    }
    if read_genesis(disk)?.is_some_and(|held| held == bytes) {
        return Ok(());
    }
    replace_file(disk, GENESIS_NAME, bytes)
}

/// Keeps no genesis.json any more: the folder, which holds no block yet, gets another chain.
pub(crate) fn forget_genesis(disk: &dyn Disk, _lock: &WriterLock) -> Result<(), DiskError> {
    match disk.remove(GENESIS_NAME) {
        Err(error) if !error.is_missing() => Err(error),
        _ => disk.fsync_folder(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faulty::{Crash, FaultyDisk};

    /// A folder on a disk that fails at will, and its lock.
    fn folder() -> (FaultyDisk, WriterLock) {
        let disk = FaultyDisk::new(1);
        let lock = WriterLock::take(&disk).unwrap();
        (disk, lock)
    }

    #[test]
    fn what_was_kept_survives_a_crash() {
        let (disk, lock) = folder();
        assert_eq!(read_genesis(&disk).unwrap(), None);
        keep_genesis(&disk, &lock, b"{}").unwrap();
        disk.crash(Crash::default());
        assert_eq!(read_genesis(&disk).unwrap().as_deref(), Some(b"{}".as_slice()));
    }

    #[test]
    fn a_crash_while_it_is_replaced_leaves_the_old_one_or_the_new_one() {
        for step in 0..8 {
            let (disk, first) = folder();
            keep_genesis(&disk, &first, b"old").unwrap();
            disk.fail_after(step, crate::disk::faulty::DiskFailure::Io);
            let kept = keep_genesis(&disk, &first, b"new");
            disk.crash(Crash::default());
            let found = read_genesis(&disk).unwrap().unwrap();
            assert!(found == b"new" || (found == b"old" && kept.is_err()), "step {step}");
            let again = WriterLock::take(&disk).unwrap();
            keep_genesis(&disk, &again, b"new").unwrap();
            assert_eq!(read_genesis(&disk).unwrap().unwrap(), b"new", "step {step}");
        }
    }

    #[test]
    fn one_that_is_forgotten_is_gone_and_forgetting_none_is_no_failure() {
        let (disk, lock) = folder();
        forget_genesis(&disk, &lock).unwrap();
        keep_genesis(&disk, &lock, b"{}").unwrap();
        forget_genesis(&disk, &lock).unwrap();
        disk.crash(Crash::default());
        assert_eq!(read_genesis(&disk).unwrap(), None);
    }
}
