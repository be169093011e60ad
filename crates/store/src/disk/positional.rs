//! An open file that is read at an offset: at once or not at all, or after waiting for the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a read that may not wait could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CachedRead {
    /// The buffer holds the whole range.
    Ready,
    /// The bytes are not in memory.
    WouldBlock,
}

/// A file that several threads read at offsets of their own.
#[derive(Debug)]
pub struct PositionalFile {
    file: File,
    /// Whether the file system answers reads that may not wait. Asked until it says no.
    can_read_now: AtomicBool,
}

impl PositionalFile {
    /// Reads this file from here on.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file, can_read_now: AtomicBool::new(cfg!(target_os = "linux")) }
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Fills the buffer from the offset on, and waits for the disk if need be.
    pub fn read_exact(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Fills the buffer from the offset on, if that takes no waiting. Otherwise it may hold any part of
    /// the bytes.
    pub fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<CachedRead> {
        if buffer.is_empty() {
            return Ok(CachedRead::Ready);
        }
        if self.can_read_now.load(Ordering::Relaxed) {
            self.try_read(buffer, offset)
        } else {
            Ok(CachedRead::WouldBlock)
        }
    }

    #[cfg(target_os = "linux")]
    fn try_read(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<CachedRead> {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};

        while !buffer.is_empty() {
            let slices = &mut [io::IoSliceMut::new(buffer)];
            match preadv2(&self.file, slices, offset, ReadWriteFlags::NOWAIT) {
                // The file's end, and on Linux 5.9 and 5.10 also what is not in memory: only a read
                // that waits tells them apart.
                Ok(0) | Err(Errno::AGAIN) => return Ok(CachedRead::WouldBlock),
                Ok(count) => {
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                    offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                }
                Err(Errno::INTR) => {}
                // The file system or the kernel knows no such read (before 4.14 the flag is invalid).
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.can_read_now.store(false, Ordering::Relaxed);
                    return Ok(CachedRead::WouldBlock);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(CachedRead::Ready)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "elsewhere it reads")]
    fn try_read(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<CachedRead> {
        Ok(CachedRead::WouldBlock)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_such_reads_is_asked_once() {
        // The files of /proc know no read that may not wait, and say so.
        let file = PositionalFile::new(File::open("/proc/self/status").unwrap());
        assert!(file.can_read_now.load(Ordering::Relaxed));
        let mut buffer = [0; 5];
        for _ in 0..2 {
            assert_eq!(file.read_now(&mut buffer, 0).unwrap(), CachedRead::WouldBlock);
            assert!(!file.can_read_now.load(Ordering::Relaxed));
        }
        file.read_exact(&mut buffer, 0).unwrap();
        assert_eq!(&buffer, b"Name:");
        assert_eq!(file.read_now(&mut [], 0).unwrap(), CachedRead::Ready);
    }
}
