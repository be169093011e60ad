//! Files that stay in memory as a whole, as long as there is room for them.
//!
//! A probe of a lookup run reads some 1,300 bytes: asking the kernel for them takes longer than
//! finding the hash in them. The runs of the newest slots are small and the most asked.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{CachedRead, DiskError, FileVersion};
use crate::read::{Reading, SegmentBytes, fetch};

/// Files that are far away and longer than this are read in place.
const FAR_BYTES_MAX: u64 = 256 << 10;

/// Room for files in memory.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    bytes_left: AtomicU64,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
struct MemoryLease {
    room: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_left: AtomicU64::new(bytes_max) }
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Option<MemoryLease> {
        let less = |left: u64| left.checked_sub(bytes);
        self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(MemoryLease { room: Arc::clone(self), bytes })
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        self.room.bytes_left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A file whose bytes are in memory.
#[derive(Debug)]
struct Resident {
    file: Arc<dyn SegmentBytes>,
    bytes: Vec<u8>,
    _taken: MemoryLease,
}

/// The file with its bytes in memory, if there is room for them; the file itself if not.
pub(super) async fn reside(
    room: &Arc<MemoryBudget>,
    file: Arc<dyn SegmentBytes>,
) -> Result<Arc<dyn SegmentBytes>, DiskError> {
    if file.is_far() && file.file_bytes() > FAR_BYTES_MAX {
        return Ok(file);
    }
    let Some(taken) = room.take(file.file_bytes()) else { return Ok(file) };
    let mut bytes = Vec::new();
    fetch(&*file, 0..file.file_bytes(), &mut bytes).await?;
    Ok(Arc::new(Resident { file, bytes, _taken: taken }))
}

impl SegmentBytes for Resident {
    fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    fn version(&self) -> Option<FileVersion> {
        self.file.version()
    }

    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        let Some(bytes) = self.resident(&range) else {
            // Not in the file: it says so as any file does.
            return self.file.read_now(range, buffer);
        };
        buffer.clear();
        buffer.extend_from_slice(bytes);
        Ok(CachedRead::Ready)
    }

    fn resident(&self, range: &Range<u64>) -> Option<&[u8]> {
        let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        self.bytes.get(start..end)
    }

    fn read(&self, range: Range<u64>) -> Reading<'_> {
        self.file.read(range)
    }

    fn discard_copies(&self) -> bool {
        self.file.discard_copies()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk as _;
    use crate::disk::faulty::FaultyDisk;
    use crate::read::{Inline, LocalBytes, block_on};

    fn file(disk: &FaultyDisk) -> Arc<dyn SegmentBytes> {
        Arc::new(LocalBytes::new(disk.open("a").unwrap(), Arc::new(Inline)))
    }

    #[test]
    fn a_file_resides_while_there_is_room_and_gives_it_back() {
        let disk = FaultyDisk::new(1);
        disk.write("a", b"0123456789").unwrap();
        let room = Arc::new(MemoryBudget::new(15));
        let first = block_on(reside(&room, file(&disk))).unwrap();
        assert_eq!(room.bytes_left.load(Ordering::Relaxed), 5);
        let second = block_on(reside(&room, file(&disk))).unwrap();
        assert_eq!(room.bytes_left.load(Ordering::Relaxed), 5);
        let mut buffer = Vec::new();
        for file in [&first, &second] {
            assert_eq!(file.file_bytes(), 10);
            block_on(fetch(&**file, 3..6, &mut buffer)).unwrap();
            assert_eq!(buffer, b"345");
            assert_eq!(file.resident(&(8..11)), None);
            block_on(fetch(&**file, 0..10, &mut buffer)).unwrap();
            assert_eq!(buffer, b"0123456789");
            assert!(block_on(fetch(&**file, 8..11, &mut buffer)).is_err());
        }
        assert_eq!(first.resident(&(3..6)), Some(&b"345"[..]));
        assert_eq!(second.resident(&(3..6)), None);
        drop(first);
        assert_eq!(room.bytes_left.load(Ordering::Relaxed), 15);
    }
}
