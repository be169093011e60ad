//! A real folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::statvfs;

use super::file::{AppendFile, OpenFile};
use super::{
    DataFile, Disk, DiskError, FileVersion, Irregular, LockGuard, LockHolder, Operation,
    WritableFile, is_file_name, range_bytes,
};

/// Bytes of what is read about the holder of a lock.
const HOLDER_BYTES_MAX: usize = 200;
/// How often a lock is tried for that others only look at.
const LOOKS_MAX: u32 = 100;
/// Between two tries.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder that is there.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DiskError> {
        let folder = Self { path: path.into() };
        match fs::metadata(&folder.path) {
            Ok(metadata) if metadata.is_dir() => Ok(folder),
            Ok(_) => Err(folder.failed(Operation::Open, io::ErrorKind::NotADirectory.into())),
            Err(cause) => Err(folder.failed(Operation::Open, cause)),
        }
    }

    /// A folder that is made, with those above it, if it is not there; its own name is then durable.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, DiskError> {
        let folder = Self { path: path.into() };
        if folder.path.is_dir() {
            return Ok(folder);
        }
        let missing: Vec<&Path> = folder
            .path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && !above.is_dir())
            .collect();
        let made = fs::create_dir_all(&folder.path).and_then(|()| {
            missing.iter().try_for_each(|made| {
                let above = made.parent().filter(|above| !above.as_os_str().is_empty());
                File::open(above.unwrap_or(Path::new(".")))?.sync_all()
            })
        });
        made.map_err(|cause| folder.failed(Operation::Open, cause))?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, operation: Operation, cause: io::Error) -> DiskError {
        DiskError::from_system(self.place(), operation, cause)
    }

    /// Does something to the file of this name.
    fn with_file<T>(
        &self,
        name: &str,
        operation: Operation,
        act: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        if !is_file_name(name) {
            return Err(DiskError::Name { folder: self.place(), found: name.to_owned() });
        }
        let path = self.path.join(name);
        act(&path)
            .map_err(|cause| DiskError::from_system(path.display().to_string(), operation, cause))
    }

    /// Whether somebody holds the lock of a file, as [`Disk::lock`] takes it. Processes of other
    /// containers count too, whose numbers say nothing here.
    pub fn is_locked(&self, name: &str) -> Result<bool, DiskError> {
        let looked = self.with_regular_file(name, Operation::Lock, |path| {
            match File::open(path)?.try_lock_shared() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(cause)) => Err(cause),
            }
        });
        match looked {
            Err(error) if error.is_missing() => Ok(false),
            looked => looked,
        }
    }

    /// The same to what must be a regular file if it is there: to open a FIFO would wait for its other
    /// end forever, and a device may do anything.
    fn with_regular_file<T>(
        &self,
        name: &str,
        operation: Operation,
        act: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        let found = self.with_file(name, operation, |path| match fs::metadata(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(|it| irregular_kind(it.file_type())),
        });
        if let Some(kind) = found? {
            return Err(DiskError::NotAFile { place: self.file_place(name), operation, kind });
        }
        self.with_file(name, operation, act)
    }

    fn file_place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// The range of a file of `file_bytes`.
    fn read_open(
        &self,
        name: &str,
        file: &File,
        range: &Range<u64>,
        file_bytes: u64,
    ) -> Result<Vec<u8>, DiskError> {
        let mut bytes = vec![0; range_bytes(&self.file_place(name), range, file_bytes)?];
        self.with_file(name, Operation::Read, |_| file.read_exact_at(&mut bytes, range.start))?;
        Ok(bytes)
    }

    /// All names that files could have, sorted, with what is there if it is no regular file.
    fn entries(&self) -> Result<Vec<(String, Option<&'static str>)>, DiskError> {
        let read = || {
            let mut entries = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name().into_string().ok().filter(|name| is_file_name(name));
                let kind = entry.file_type()?;
                // A link is what it leads to. One that leads nowhere is a file that cannot be read.
                let kind = if kind.is_symlink() {
                    fs::metadata(entry.path()).ok().and_then(|it| irregular_kind(it.file_type()))
                } else {
                    irregular_kind(kind)
                };
                entries.extend(name.map(|name| (name, kind)));
            }
            entries.sort_unstable();
            Ok(entries)
        };
        read().map_err(|cause| self.failed(Operation::List, cause))
    }

    fn open_to_read(&self, name: &str) -> Result<(File, u64), DiskError> {
        self.with_regular_file(name, Operation::Read, |path| {
            let file = File::open(path)?;
            let file_bytes = file.metadata()?.len();
            Ok((file, file_bytes))
        })
    }
}

impl Disk for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let names = self.entries()?.into_iter().filter(|(_, kind)| kind.is_none());
        Ok(names.map(|(name, _)| name).collect())
    }

    fn irregular(&self) -> Result<Vec<Irregular>, DiskError> {
        let entries = self.entries()?.into_iter();
        Ok(entries.filter_map(|(name, kind)| Some(Irregular { name, kind: kind? })).collect())
    }

    fn free_bytes(&self) -> Result<Option<u64>, DiskError> {
        let found = statvfs(&self.path).map_err(|it| self.failed(Operation::Open, it.into()))?;
        Ok(Some(found.f_bavail.saturating_mul(found.f_frsize)))
    }

    fn file_bytes(&self, name: &str) -> Result<u64, DiskError> {
        self.with_regular_file(name, Operation::Read, |path| Ok(fs::metadata(path)?.len()))
    }

    fn version(&self, name: &str) -> Result<FileVersion, DiskError> {
        self.with_file(name, Operation::Read, |path| Ok(FileVersion::of(&fs::metadata(path)?)))
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        let (file, file_bytes) = self.open_to_read(name)?;
        if file_bytes > bytes_max {
            return Err(DiskError::TooLarge {
                place: self.file_place(name),
                file_bytes,
                bytes_max,
            });
        }
        self.read_open(name, &file, &(0..file_bytes), file_bytes)
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, DiskError> {
        let (file, file_bytes) = self.open_to_read(name)?;
        self.read_open(name, &file, &range, file_bytes)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError> {
        let (file, file_bytes) = self.open_to_read(name)?;
        Ok(Arc::new(OpenFile::new(self.file_place(name), file, file_bytes)))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        let file = self.with_regular_file(name, Operation::Write, |path| {
            let mut file = File::create(path)?;
            file.write_all(bytes).map(|()| file)
        })?;
        Ok(Box::new(AppendFile::new(self.file_place(name), file)))
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        let file = self.with_regular_file(name, Operation::Append, |path| {
            let mut file = OpenOptions::new().append(true).open(path)?;
            file.write_all(bytes).map(|()| file)
        })?;
        Ok(Box::new(AppendFile::new(self.file_place(name), file)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let to = self.with_file(to, Operation::Rename, |path| Ok(path.to_owned()))?;
        self.with_file(from, Operation::Rename, |path| fs::rename(path, to))
    }

    fn fsync_folder(&self) -> Result<(), DiskError> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|cause| self.failed(Operation::FsyncFolder, cause))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.with_file(name, Operation::Remove, |path| fs::remove_file(path))
    }

    fn lock(&self, name: &str) -> Result<LockGuard, DiskError> {
        let attempt = self.with_regular_file(name, Operation::Lock, |path| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            match take_lock(&file) {
                Ok(()) => Ok(Ok(file)),
                Err(TryLockError::WouldBlock) => Ok(Err(read_holder(&file))),
                Err(TryLockError::Error(cause)) => Err(cause),
            }
        })?;
        match attempt {
            Ok(file) => Ok(LockGuard::new(LockedFile::sign(file, self.path.join(name)))),
            Err(holder) => Err(DiskError::Locked { place: self.file_place(name), holder }),
        }
    }
}

/// Locks a file at once or not at all. Whoever looks whether it is locked ([`Folder::is_locked`]) shares
/// the lock for a moment, and holds nobody up for longer.
fn take_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOOKS_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            taken => return taken,
        }
        // A holder shares it with nobody.
        file.try_lock_shared()?;
        file.unlock().map_err(TryLockError::Error)?;
        thread::sleep(LOOK_PAUSE);
    }
    file.try_lock()
}

/// What something is that is no regular file.
fn irregular_kind(found: fs::FileType) -> Option<&'static str> {
    let kinds = [
        (found.is_file(), None),
        (found.is_dir(), Some("a directory")),
        (found.is_fifo(), Some("a FIFO")),
        (found.is_socket(), Some("a socket")),
    ];
    let known = kinds.into_iter().find(|(is_kind, _)| *is_kind).map(|(_, kind)| kind);
    known.unwrap_or(Some("a device"))
}

/// A file whose lock is held, and which names its holder for as long.
#[derive(Debug)]
struct LockedFile {
    file: File,
    path: PathBuf,
}

impl LockedFile {
    /// Names this process in the file. One that cannot be named holds the lock all the same.
    fn sign(file: File, path: PathBuf) -> Self {
        let holder = format!("pid {}, {}\n", std::process::id(), command());
        let _ = file.set_len(0).and_then(|()| file.write_all_at(holder.as_bytes(), 0));
        Self { file, path }
    }
}

impl LockHolder for LockedFile {
    fn is_in_place(&self) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let named = fs::metadata(&self.path).map(identity);
        matches!((self.file.metadata().map(identity), named), (Ok(own), Ok(named)) if own == named)
    }
}

/// The program and its first argument, if that is a word. What else was typed may hold keys.
fn command() -> String {
    let mut typed = std::env::args_os();
    let program = typed.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let word = typed.next().and_then(|word| word.into_string().ok());
    let word = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    word.map_or_else(|| program.to_string(), |word| format!("{program} {word}"))
}

/// What a file says of the holder of its lock.
fn read_holder(file: &File) -> Option<String> {
    let mut bytes = [0; HOLDER_BYTES_MAX];
    let count = file.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(bytes.get(..count)?);
    let holder: String = text.chars().filter(|letter| !letter.is_control()).collect();
    Some(holder).filter(|holder| !holder.is_empty())
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // A file of which nobody holds the lock says nothing.
        let _ = self.file.set_len(0);
        // Closing gives the lock back only when nobody else has the file open, and a process that
        // is being started has it for a moment.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn whoever_looks_at_a_lock_sees_its_holder_and_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        assert!(!disk.is_locked("lock").unwrap(), "it is not there");
        let guard = disk.lock("lock").unwrap();
        assert!(disk.is_locked("lock").unwrap());
        drop(guard);
        assert!(!disk.is_locked("lock").unwrap());
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    disk.is_locked("lock").unwrap();
                }
            });
            let refused = (0..1000).filter(|_| disk.lock("lock").is_err()).count();
            is_done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn links_to_files_and_links_that_lead_nowhere_are_listed_as_files() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("far.segment"), "far").unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        for (to, name) in [
            (elsewhere.path().join("far.segment"), "linked.segment"),
            (elsewhere.path().join("not there"), "dangling.segment"),
            (elsewhere.path().to_owned(), "folder.segment"),
        ] {
            symlink(to, folder.path().join(name)).unwrap();
        }
        let disk = Folder::open(folder.path()).unwrap();
        assert_eq!(disk.list().unwrap(), ["dangling.segment", "linked.segment"]);
        assert_eq!(disk.read("linked.segment", 10).unwrap(), b"far");
        assert!(disk.read("dangling.segment", 10).unwrap_err().is_missing());
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink(at("pipe"), at("linked")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        fs::write(at("file"), "file").unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        assert_eq!(disk.list().unwrap(), ["file"]);
        let found = disk.irregular().unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.kind)).collect();
        let kinds = [
            ("inner", "a directory"),
            ("linked", "a FIFO"),
            ("null", "a device"),
            ("pipe", "a FIFO"),
        ];
        assert_eq!(found, kinds);
        for (name, kind) in kinds {
            for refused in [
                disk.read(name, 9).map(drop),
                disk.read_range(name, 0..1).map(drop),
                disk.file_bytes(name).map(drop),
                disk.open(name).map(drop),
                disk.write(name, b"x").map(drop),
                disk.append(name, b"x").map(drop),
                disk.lock(name).map(drop),
            ] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains(&format!("/{name}: ")), "{refused}");
                assert!(refused.ends_with(&format!("this is {kind}, not a file")), "{refused}");
            }
        }
    }
}
