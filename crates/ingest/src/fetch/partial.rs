//! Downloads on disk: a part that grows, and the whole file that it becomes.
//!
//! Knows: the names of parts, and that a part of one checksum is not continued with another's bytes.
//! Never knows: where bytes come from.
//!
//! A part is `NAME.CHECKSUM.partial`, with the first digits of the checksum that the file shall have.
//! A part is not made durable: after a power cut it may hold anything, which its checksum or the import
//! finds out, and it is downloaded anew. A file that stays is, before it gets its name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, hex};
use archive::ArchiveName;
use sha2::{Digest as _, Sha256};

use super::error::DownloadError;

/// What the name of a part ends with.
const PARTIAL_END: &str = ".partial";
/// The file of a user's folder that is locked by whoever downloads to it. It stays there, empty.
const LOCK_NAME: &str = ".quipu-fetch.lock";
/// Stands for the checksum of a file that has none.
const NO_SUM: &str = "unlisted";
/// Bytes of a checksum that are in the name of a part.
const SUM_BYTES: usize = 8;
/// Read at a time when a part is taken up again.
const CHUNK_BYTES: usize = 1 << 20;

/// Where downloads lie.
#[derive(Debug)]
pub struct DownloadFolder {
    path: PathBuf,
    /// If files stay when they have been taken: then the folder is the user's, what is in it is not
    /// removed, and this file is locked for as long as one process downloads to it. A folder that is
    /// temporary lies in a data folder, which has one writer.
    kept_lock: Option<File>,
}

impl DownloadFolder {
    /// A folder whose files go when they have been taken, made if it is not there.
    pub fn temporary(path: PathBuf) -> Result<Self, DownloadError> {
        on_disk(&path, fs::create_dir_all(&path))?;
        Ok(Self { path, kept_lock: None })
    }

    /// A folder of the user's, whose files stay, made if it is not there. One process at a time downloads
    /// to it, whatever its data folder.
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

    /// Removes what an earlier run left in a temporary folder, if there is one; what no download put
    /// there stays.
    pub fn discard(path: &Path) -> Result<(), DownloadError> {
        if path.is_dir() {
            let folder = Self { path: path.to_owned(), kept_lock: None };
            folder.clear_except(|_| false)?;
            folder.remove_if_empty();
        }
        Ok(())
    }

    /// Whether files stay when they have been taken.
    pub(super) fn is_kept(&self) -> bool {
        self.kept_lock.is_some()
    }

    /// Where a file is when it is whole.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Takes up the part of a file where it ended, or begins it.
    pub(super) fn begin(
        &self,
        name: &str,
        sha256: Option<B256>,
    ) -> Result<PartialFile, DownloadError> {
        let path = self.path.join(partial_name(name, sha256));
        for other in self.partials_of(name)?.into_iter().filter(|other| *other != path) {
            remove_file(&other)?;
        }
        PartialFile::open(path, sha256)
    }

    /// Gives a whole file its name. One that stays has all its bytes then, also after a power cut: a user
    /// goes by its name.
    pub(super) fn finish(
        &self,
        partial: &PartialFile,
        name: &str,
    ) -> Result<PathBuf, DownloadError> {
        let path = self.file(name);
        if self.is_kept() {
            on_disk(&partial.path, partial.file.sync_all())?; //     1. the bytes are durable
        }
        on_disk(&path, fs::rename(&partial.path, &path))?; //        2. the name appears
        if self.is_kept() {
            let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
            on_disk(&self.path, synced)?; //                         3. the name is durable
        }
        Ok(path)
    }

    /// Removes a whole file, unless files stay.
    pub(super) fn let_go(&self, path: &Path) -> Result<(), DownloadError> {
        if self.is_kept() { Ok(()) } else { remove_file(path) }
    }

    /// Removes what an earlier run left of files that are not wanted any more.
    pub(super) fn clear_except(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), DownloadError> {
        if self.is_kept() {
            return Ok(());
        }
        for (name, path) in self.list()? {
            let of = name.strip_suffix(PARTIAL_END).and_then(|part| part.rsplit_once('.'));
            if is_of_download(&name) && !is_wanted(of.map_or(name.as_str(), |(file, _)| file)) {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what came of a file that is not wanted any more.
    pub(super) fn remove_parts(&self, name: &str) -> Result<(), DownloadError> {
        self.partials_of(name)?.iter().try_for_each(|part| remove_file(part))
    }

    /// Removes the folder if it is ours and nothing is left in it.
    pub(super) fn remove_if_empty(&self) {
        if !self.is_kept() {
            // One that is not empty stays for the next run.
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// The parts of a file, whatever its checksum.
    fn partials_of(&self, name: &str) -> Result<Vec<PathBuf>, DownloadError> {
        let files = self.list()?.into_iter();
        let is_part = |found: &str| {
            let part = found.strip_suffix(PARTIAL_END).and_then(|part| part.rsplit_once('.'));
            part.is_some_and(|(of, _)| of == name)
        };
        Ok(files.filter(|(found, _)| is_part(found)).map(|(_, path)| path).collect())
    }

    /// The regular files, by their names: a download makes nothing else.
    fn list(&self) -> Result<Vec<(String, PathBuf)>, DownloadError> {
        let read = || {
            let mut named = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_type().is_ok_and(|found| found.is_file()) {
                    named.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
                }
            }
            Ok::<_, io::Error>(named)
        };
        on_disk(&self.path, read())
    }
}

/// Who a part's bytes came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartOrigin {
    /// It has none.
    Nobody,
    /// All from this mirror, in this run.
    Mirror(usize),
    /// From several, or from an earlier run.
    Mixed,
}

/// A part of a file. No other process writes to it meanwhile.
#[derive(Debug)]
pub(super) struct PartialFile {
    path: PathBuf,
    file: File,
    sha256: Option<B256>,
    hasher: Sha256,
    bytes: u64,
    origin: PartOrigin,
}

impl PartialFile {
    fn open(path: PathBuf, sha256: Option<B256>) -> Result<Self, DownloadError> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = on_disk(&path, opened)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DownloadError::Locked { path }),
            Err(TryLockError::Error(cause)) => return Err(DownloadError::Disk { path, cause }),
        }
        let mut hasher = Sha256::new();
        let bytes = on_disk(&path, hash_all(&mut file, &mut hasher))?;
        let origin = if bytes == 0 { PartOrigin::Nobody } else { PartOrigin::Mixed };
        Ok(Self { path, file, sha256, hasher, bytes, origin })
    }

    /// The checksum that the file shall have.
    pub(super) fn expected(&self) -> Option<B256> {
        self.sha256
    }

    /// How much is there.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether what is there came from others than this mirror in this run.
    pub(super) fn is_mixed_for(&self, mirror: usize) -> bool {
        match self.origin {
            PartOrigin::Nobody => false,
            PartOrigin::Mirror(of) => of != mirror,
            PartOrigin::Mixed => true,
        }
    }

    /// Adds bytes of this mirror.
    pub(super) fn append(&mut self, mirror: usize, bytes: &[u8]) -> Result<(), DownloadError> {
        let written = self.file.write_all(bytes);
        if written.is_err() {
            // What was written of them counts for nothing, also when the disk has room again.
            let _ = self
                .file
                .set_len(self.bytes)
                .and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)).map(drop));
        }
        on_disk(&self.path, written)?;
        self.origin = match self.origin {
            PartOrigin::Nobody => PartOrigin::Mirror(mirror),
            PartOrigin::Mirror(of) if of == mirror => PartOrigin::Mirror(of),
            PartOrigin::Mirror(_) | PartOrigin::Mixed => PartOrigin::Mixed,
        };
        self.hasher.update(bytes);
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Throws away what is there.
    pub(super) fn restart(&mut self) -> Result<(), DownloadError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        on_disk(&self.path, emptied)?;
        (self.bytes, self.origin) = (0, PartOrigin::Nobody);
        self.hasher = Sha256::new();
        Ok(())
    }

    /// The checksum of what is there.
    pub(super) fn sum(&self) -> B256 {
        B256::from_slice(&self.hasher.clone().finalize())
    }

    /// Removes it.
    pub(super) fn discard(self) -> Result<(), DownloadError> {
        remove_file(&self.path)
    }
}

/// Hashes a file from its beginning; leaves it at its end.
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

fn partial_name(name: &str, sha256: Option<B256>) -> String {
    let sum = sha256.and_then(|sum| sum.get(..SUM_BYTES).map(hex::encode));
    format!("{name}.{}{PARTIAL_END}", sum.as_deref().unwrap_or(NO_SUM))
}

/// Whether a download may have put a file of this name into our folder. Others are not ours to remove.
fn is_of_download(name: &str) -> bool {
    let is_archive = |name: &str| ArchiveName::parse(Path::new(name)).is_some();
    let is_sum = |sum: &str| sum == NO_SUM || hex::decode_to_array::<_, SUM_BYTES>(sum).is_ok();
    match name.strip_suffix(PARTIAL_END) {
        Some(part) => {
            part.rsplit_once('.').is_some_and(|(file, sum)| is_archive(file) && is_sum(sum))
        }
        None => is_archive(name),
    }
}

/// Removes a file that is taken, or not what it should be. One that is gone already is what was wanted.
pub(super) fn remove_file(path: &Path) -> Result<(), DownloadError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        done => on_disk(path, done),
    }
}

/// What the system said of a file or folder.
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
        let mut names: Vec<String> = folder.list().unwrap().into_iter().map(|it| it.0).collect();
        names.sort();
        names
    }

    #[test]
    fn a_part_is_taken_up_where_it_ended_with_its_checksum() {
        let (_made, folder) = folder();
        let sum = B256::from_slice(&Sha256::digest(b"abcdef"));
        let mut part = folder.begin(NAME, Some(sum)).unwrap();
        part.append(0, b"abc").unwrap();
        assert!(!part.is_mixed_for(0) && part.is_mixed_for(1));
        drop(part);
        let mut part = folder.begin(NAME, Some(sum)).unwrap();
        assert_eq!(part.bytes(), 3);
        assert!(part.is_mixed_for(0), "of an earlier run");
        part.append(0, b"def").unwrap();
        assert_eq!(part.sum(), sum);
        let path = folder.finish(&part, NAME).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdef");
        assert_eq!(names(&folder), [NAME]);
        folder.let_go(&path).unwrap();
        folder.remove_if_empty();
        assert!(!folder.path.exists());
    }

    #[test]
    fn a_part_that_is_begun_anew_has_nothing_of_the_old_one() {
        let (_made, folder) = folder();
        let mut part = folder.begin(NAME, None).unwrap();
        part.append(0, b"something long").unwrap();
        part.append(1, b"else").unwrap();
        assert!(part.is_mixed_for(0) && part.is_mixed_for(1));
        part.restart().unwrap();
        part.append(1, b"abc").unwrap();
        assert!(!part.is_mixed_for(1));
        assert_eq!(part.sum(), B256::from_slice(&Sha256::digest(b"abc")));
        let path = folder.finish(&part, NAME).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"abc");
    }

    #[test]
    fn a_part_with_another_checksum_is_another_one_and_takes_its_place() {
        let (_made, folder) = folder();
        folder.begin(NAME, None).unwrap().append(0, b"abc").unwrap();
        let part = folder.begin(NAME, Some(B256::repeat_byte(7))).unwrap();
        assert_eq!(part.bytes(), 0);
        assert_eq!(names(&folder), [format!("{NAME}.0707070707070707.partial")]);
        let again = folder.begin(NAME, Some(B256::repeat_byte(7)));
        assert!(matches!(again, Err(DownloadError::Locked { .. })), "{again:?}");
    }

    #[test]
    fn what_is_not_wanted_any_more_goes_and_a_folder_of_the_users_is_left_alone() {
        let (made, folder) = folder();
        drop(folder.begin(NAME, None).unwrap());
        drop(folder.begin("y-00000-00000000.ere", None).unwrap());
        fs::write(folder.file("z-00000-00000000.ere"), "").unwrap();
        fs::create_dir(folder.file("z-00001-00000000.ere")).unwrap();
        folder.clear_except(|name| name == NAME).unwrap();
        assert_eq!(names(&folder), [format!("{NAME}.unlisted.partial")]);
        fs::remove_dir(folder.file("z-00001-00000000.ere")).unwrap();
        let kept = DownloadFolder::kept(made.path().to_owned()).unwrap();
        let film = made.path().join("film");
        fs::write(&film, "").unwrap();
        kept.clear_except(|_| false).unwrap();
        let notes = folder.file("notes");
        fs::write(&notes, "").unwrap();
        let own = ["my.partial", "my.unlisted.partial", "x-00000-00000000.ere.mine.partial"];
        for name in own {
            fs::write(folder.file(name), "").unwrap();
        }
        DownloadFolder::discard(&folder.path).unwrap();
        assert_eq!(names(&folder), [own[0], own[1], "notes", own[2]], "no download made them");
        for name in own {
            fs::remove_file(folder.file(name)).unwrap();
        }
        fs::remove_file(notes).unwrap();
        DownloadFolder::discard(&folder.path).unwrap();
        DownloadFolder::discard(&folder.path).unwrap();
        assert!(!folder.path.exists());
        kept.let_go(&film).unwrap();
        assert!(film.exists());
    }

    #[test]
    fn one_process_at_a_time_downloads_to_a_folder_of_the_users() {
        let made = tempfile::tempdir().unwrap();
        let first = DownloadFolder::kept(made.path().to_owned()).unwrap();
        let second = DownloadFolder::kept(made.path().to_owned());
        assert!(matches!(second, Err(DownloadError::Locked { .. })), "{second:?}");
        drop(first);
        DownloadFolder::kept(made.path().to_owned()).unwrap();
    }
}
