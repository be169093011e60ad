//! The notice that a follower leaves in a data folder while it stands still for a lasting reason, so
//! that `stat` of another process can show it.

use crate::disk::{Disk, DiskError, replace_file};
use crate::lock::WriterLock;

/// The file: one line of text.
pub const NOTICE_NAME: &str = "notice.txt";
/// The longest notice.
pub const NOTICE_BYTES_MAX: u64 = 4096;

/// The folder's notice, if there is one. Whatever is in the file is shown on one line.
pub fn read_notice(disk: &dyn Disk) -> Result<Option<String>, DiskError> {
    match disk.read(NOTICE_NAME, NOTICE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(one_line(&String::from_utf8_lossy(&bytes)))),
        Err(error) if error.is_missing() => Ok(None),
        // Nobody of ours wrote it: its beginning is shown.
        Err(DiskError::TooLarge { .. }) => {
            let bytes = disk.read_range(NOTICE_NAME, 0..NOTICE_BYTES_MAX)?;
            Ok(Some(one_line(&String::from_utf8_lossy(&bytes))))
        }
        Err(error) => Err(error),
    }
}

/// Leaves a notice in the folder, in place of one that is there; `None` removes it. The lock is not
/// asked for anything: having it proves that nobody else changes the folder.
pub(crate) fn keep_notice(
    disk: &dyn Disk,
    _lock: &WriterLock,
    notice: Option<&str>,
) -> Result<(), DiskError> {
    let Some(notice) = notice else {
        return match disk.remove(NOTICE_NAME) {
            Err(error) if !error.is_missing() => Err(error),
            _ => Ok(()), // one that a crash brings back is removed again
        };
    };
    let mut text = one_line(notice);
    let bytes_max = usize::try_from(NOTICE_BYTES_MAX).unwrap_or(usize::MAX).saturating_sub(1);
    text.truncate(text.floor_char_boundary(bytes_max));
    text.push('\n');
    replace_file(disk, NOTICE_NAME, text.as_bytes())
}

fn one_line(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faulty::{Crash, DiskFailure, FaultyDisk};

    /// A folder on a disk that fails at will, and its lock.
    fn folder() -> (FaultyDisk, WriterLock) {
        let disk = FaultyDisk::new(1);
        let lock = WriterLock::take(&disk).unwrap();
        (disk, lock)
    }

    #[test]
    fn a_notice_is_one_line_that_survives_a_crash_until_it_is_removed() {
        let (disk, lock) = folder();
        assert_eq!(read_notice(&disk).unwrap(), None);
        keep_notice(&disk, &lock, None).unwrap();
        keep_notice(&disk, &lock, Some("block 7\nis of\u{7}a later fork")).unwrap();
        disk.crash(Crash::default());
        let found = read_notice(&disk).unwrap();
        assert_eq!(found.as_deref(), Some("block 7 is of a later fork"));
        keep_notice(&disk, &lock, None).unwrap();
        assert_eq!(read_notice(&disk).unwrap(), None);
    }

    #[test]
    fn a_notice_that_is_too_long_is_cut_and_still_read() {
        let (disk, lock) = folder();
        keep_notice(&disk, &lock, Some(&"\u{e9}".repeat(5000))).unwrap();
        assert_eq!(read_notice(&disk).unwrap().unwrap().chars().count(), 2047);
    }

    #[test]
    fn of_a_file_that_is_too_long_the_beginning_is_shown() {
        let (disk, _lock) = folder();
        disk.write(NOTICE_NAME, &[b'a'; 5000]).unwrap();
        assert_eq!(read_notice(&disk).unwrap().unwrap().len(), 4096);
    }

    #[test]
    fn a_crash_while_it_is_replaced_leaves_the_old_one_or_the_new_one() {
        for step in 0..8 {
            let (disk, lock) = folder();
            keep_notice(&disk, &lock, Some("old")).unwrap();
            disk.fail_after(step, DiskFailure::Io);
            let kept = keep_notice(&disk, &lock, Some("new"));
            disk.crash(Crash::default());
            let found = read_notice(&disk).unwrap().unwrap();
            assert!(found == "new" || (found == "old" && kept.is_err()), "step {step}: {found}");
        }
    }
}
