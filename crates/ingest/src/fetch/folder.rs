//! Downloads on disk: a part that grows, and the whole file that it becomes.
//!
//! A part is `NAME.CHECKSUM.part`, with the first digits of the checksum that the file shall have. It is
//! not durable: after a power cut its checksum or the import finds the damage, and it is downloaded
//! again. A file that stays is made durable before it gets its name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, hex};
use archive::ArchiveName;
use sha2::{Digest as _, Sha256};

use super::error::DownloadError;

const PART_END: &str = ".part";
/// The lock of a folder of the user. It stays there, empty.
const LOCK_NAME: &str = ".quipu-fetch.lock";
/// Stands for the checksum of a file that has none.
const NO_SUM: &str = "unlisted";
/// Bytes of a checksum in the name of a part.
const SUM_BYTES: usize = 8;
/// Read at a time when a part is resumed.
const CHUNK_BYTES: usize = 1 << 20;

/// The folder of downloads.
#[derive(Debug)]
pub struct DownloadFolder {
    path: PathBuf,
    /// The lock of a folder of the user, whose files stay. A temporary folder lies in a data folder,
    /// which has one writer.
    kept_lock: Option<File>,
}

impl DownloadFolder {
    /// A folder whose files are removed when they are imported.
    pub fn temporary(path: PathBuf) -> Result<Self, DownloadError> {
        on_disk(&path, fs::create_dir_all(&path))?;
        Ok(Self { path, kept_lock: None })
    }

    /// A folder of the user, whose files stay. One process at a time downloads to it.
    pub fn kept(path: PathBuf) -> Result<Self, DownloadError> {
        on_disk(&path, fs::create_dir_all(&path))?;
        let lock = path.join(LOCK_NAME);
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&lock);
        let file = on_disk(&lock, opened)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, kept_lock: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(DownloadError::Locked { path }),
            Err(TryLockError::Error(cause)) => Err(DownloadError::Disk { path: lock, cause }),
        }
    }

    /// Removes a temporary folder that an earlier run left; files that no download made stay.
    pub fn discard(path: &Path) -> Result<(), DownloadError> {
        if path.is_dir() {
            let folder = Self { path: path.to_owned(), kept_lock: None };
            folder.clear_except(|_| false)?;
            folder.remove_if_empty();
        }
        Ok(())
    }

    /// Whether files stay when they are imported.
    pub(super) fn is_kept(&self) -> bool {
        self.kept_lock.is_some()
    }

    /// The path of a whole file.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Resumes the part of a file, or begins it.
    pub(super) fn begin(&self, name: &str, sha256: Option<B256>) -> Result<Part, DownloadError> {
        let sum = sha256.and_then(|sum| sum.get(..SUM_BYTES).map(hex::encode));
        let sum = sum.as_deref().unwrap_or(NO_SUM);
        Part::open(self.path.join(format!("{name}.{sum}{PART_END}")), sha256)
    }

    /// Gives a whole file its name.
    pub(super) fn finish(&self, part: &Part, name: &str) -> Result<PathBuf, DownloadError> {
        let path = self.file(name);
        if self.is_kept() {
            on_disk(&part.path, part.file.sync_all())?; //         1. the bytes are durable
        }
        on_disk(&path, fs::rename(&part.path, &path))?; //         2. the name appears
        if self.is_kept() {
            let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
            on_disk(&self.path, synced)?; //                       3. the name is durable
        }
        Ok(path)
    }

    /// Removes what is left of a file that is held, unless files stay.
    pub(super) fn remove(&self, name: &str) -> Result<(), DownloadError> {
        if !self.is_kept() {
            remove_file(&self.file(name))?;
        }
        for found in self.names()? {
            if part_of(&found) == Some(name) {
                remove_file(&self.file(&found))?;
            }
        }
        Ok(())
    }

    /// Removes downloads of an earlier run that are not wanted any more.
    pub(super) fn clear_except(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), DownloadError> {
        if self.is_kept() {
            return Ok(());
        }
        for found in self.names()? {
            let name = part_of(&found).unwrap_or(&found);
            // Other files are the user's.
            if ArchiveName::parse(Path::new(name)).is_some() && !is_wanted(name) {
                remove_file(&self.file(&found))?;
            }
        }
        Ok(())
    }

    pub(super) fn remove_if_empty(&self) {
        if !self.is_kept() {
            // One that is not empty stays for the next run.
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// The names of regular files: a download makes nothing else.
    fn names(&self) -> Result<Vec<String>, DownloadError> {
        let read = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_type().is_ok_and(|found| found.is_file()) {
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
            Ok::<_, io::Error>(names)
        };
        on_disk(&self.path, read())
    }
}

/// The file that a part is of, by the part's name.
fn part_of(found: &str) -> Option<&str> {
    let (name, sum) = found.strip_suffix(PART_END)?.rsplit_once('.')?;
    let is_sum = sum == NO_SUM || hex::decode_to_array::<_, SUM_BYTES>(sum).is_ok();
    is_sum.then_some(name)
}

/// A part of a file.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    file: File,
    /// The checksum that the file shall have.
    pub(super) sha256: Option<B256>,
    hasher: Sha256,
    pub(super) bytes: u64,
    /// The mirror whose bytes came last, in this run.
    mirror: Option<usize>,
    /// Whether there are also bytes of other mirrors or of an earlier run.
    is_mixed: bool,
}

impl Part {
    fn open(path: PathBuf, sha256: Option<B256>) -> Result<Self, DownloadError> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = on_disk(&path, opened)?;
        let mut hasher = Sha256::new();
        let bytes = on_disk(&path, hash_all(&mut file, &mut hasher))?;
        Ok(Self { path, file, sha256, hasher, bytes, mirror: None, is_mixed: bytes > 0 })
    }

    /// Whether some bytes came from others than this mirror in this run.
    pub(super) fn is_mixed_for(&self, mirror: usize) -> bool {
        self.is_mixed || self.mirror.is_some_and(|other| other != mirror)
    }

    /// Adds bytes of a mirror.
    pub(super) fn append(&mut self, mirror: usize, bytes: &[u8]) -> Result<(), DownloadError> {
        if let Err(cause) = self.file.write_all(bytes) {
            // A half-written piece must not be resumed.
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::Start(self.bytes));
            return Err(DownloadError::Disk { path: self.path.clone(), cause });
        }
        self.is_mixed = self.is_mixed_for(mirror);
        self.mirror = Some(mirror);
        self.hasher.update(bytes);
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Discards all bytes.
    pub(super) fn restart(&mut self) -> Result<(), DownloadError> {
        on_disk(&self.path, self.file.set_len(0).and_then(|()| self.file.rewind()))?;
        (self.bytes, self.mirror, self.is_mixed) = (0, None, false);
        self.hasher = Sha256::new();
        Ok(())
    }

    /// The checksum of the bytes.
    pub(super) fn sum(&self) -> B256 {
        B256::from_slice(&self.hasher.clone().finalize())
    }
}

/// Hashes a file from its beginning and leaves it at its end.
fn hash_all(file: &mut File, hasher: &mut Sha256) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0_u64;
    loop {
        let count = file.read(&mut chunk)?;
        let Some(filled) = chunk.get(..count).filter(|filled| !filled.is_empty()) else {
            return Ok(bytes);
        };
        hasher.update(filled);
        bytes = bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

/// Removes a file, if it is there.
pub(super) fn remove_file(path: &Path) -> Result<(), DownloadError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        done => on_disk(path, done),
    }
}

pub(super) fn on_disk<T>(path: &Path, done: io::Result<T>) -> Result<T, DownloadError> {
    done.map_err(|cause| DownloadError::Disk { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "x-00000-00000000.ere";

    fn folder() -> (tempfile::TempDir, DownloadFolder) {
        let made = tempfile::tempdir().unwrap();
        let folder = DownloadFolder::temporary(made.path().join("fetch")).unwrap();
        (made, folder)
    }

    fn names(folder: &DownloadFolder) -> Vec<String> {
        let mut names = folder.names().unwrap();
        names.sort();
        names
    }

    #[test]
    fn a_part_is_resumed_with_its_checksum_and_a_restart_forgets_it() {
        let (_made, folder) = folder();
        let sum = B256::from_slice(&Sha256::digest(b"abcdef"));
        let mut part = folder.begin(NAME, Some(sum)).unwrap();
        part.append(0, b"abc").unwrap();
        assert!(!part.is_mixed_for(0) && part.is_mixed_for(1));
        drop(part);
        // A part with another checksum is another one.
        assert_eq!(folder.begin(NAME, Some(B256::repeat_byte(7))).unwrap().bytes, 0);
        let mut part = folder.begin(NAME, Some(sum)).unwrap();
        assert_eq!((part.bytes, part.is_mixed_for(0)), (3, true));
        part.append(0, b"def").unwrap();
        assert_eq!(part.sum(), sum);
        part.restart().unwrap();
        part.append(1, b"abc").unwrap();
        part.append(1, b"def").unwrap();
        assert!(!part.is_mixed_for(1) && part.sum() == sum);
        let path = folder.finish(&part, NAME).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdef");
        folder.remove(NAME).unwrap();
        folder.remove_if_empty();
        assert!(!folder.path.exists());
    }

    #[test]
    fn unwanted_downloads_go_and_files_of_the_user_stay() {
        let (made, folder) = folder();
        drop(folder.begin(NAME, None).unwrap());
        drop(folder.begin("y-00000-00000000.ere", None).unwrap());
        fs::write(folder.file("z-00000-00000000.ere"), "").unwrap();
        folder.clear_except(|name| name == NAME).unwrap();
        assert_eq!(names(&folder), [format!("{NAME}.unlisted.part")]);
        let own = ["my.part", "my.unlisted.part", "notes", "x-00000-00000000.ere.mine.part"];
        for name in own {
            fs::write(folder.file(name), "").unwrap();
        }
        DownloadFolder::discard(&folder.path).unwrap();
        assert_eq!(names(&folder), own);
        let kept = DownloadFolder::kept(made.path().to_owned()).unwrap();
        fs::write(made.path().join(NAME), "").unwrap();
        kept.clear_except(|_| false).unwrap();
        kept.remove(NAME).unwrap();
        assert!(made.path().join(NAME).exists());
        let second = DownloadFolder::kept(made.path().to_owned());
        assert!(matches!(second, Err(DownloadError::Locked { .. })), "{second:?}");
        drop(kept);
        DownloadFolder::kept(made.path().to_owned()).unwrap();
    }
}
