//! The commit journal: the segments that a commit creates and retires, recorded before it does either.
//!
//! A crash in the middle of a commit leaves segments that the manifest does not list, and so does a
//! reader that still holds a retired one when its process ends. The next writer removes those that
//! the journal names, if the manifest is the one before the commit or the one after it. Any other
//! unlisted segment may be the only copy of its blocks (an older manifest was restored, a repair left
//! it out): no writer removes it. Lookup runs and unfinished files need no record, because they can
//! always be made again from the segments.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use alloy_primitives::{B256, keccak256};

use crate::disk::{Disk, DiskError, replace_file};
use crate::error::StoreError;
use crate::manifest::{MANIFEST_BYTES_MAX, Manifest};
use crate::names::{JOURNAL_NAME, is_segment_name};

const TITLE: &str = "quipu journal 1";
/// What a line with the digest of a manifest begins with.
const MANIFEST: &str = "manifest ";

/// The journal of a folder's one writer.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    /// What the file says, or may say after a failed write.
    record: JournalRecord,
    /// Whether the file is known to say exactly this.
    is_durable: bool,
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct JournalRecord {
    /// The segments that were created or retired.
    names: BTreeSet<String>,
    /// By which segments they list, the manifests with which that counts.
    manifests: BTreeSet<B256>,
}

impl JournalRecord {
    fn accounts_for(&self, name: &str, manifest: &Manifest) -> bool {
        self.names.contains(name) && self.manifests.contains(&digest_of(manifest))
    }
}

/// Tells manifests that list other segments apart.
fn digest_of(manifest: &Manifest) -> B256 {
    let mut names = String::new();
    for entry in manifest.segments() {
        let _ = writeln!(names, "{}", entry.file_name); // writing to a string cannot fail
    }
    keccak256(names)
}

impl Journal {
    /// The journal that the folder has.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Self, DiskError> {
        let record = read_record(&*disk)?;
        Ok(Self { disk, record, is_durable: true })
    }

    /// Whether a commit has created or retired this segment, and the manifest is one of that commit's.
    pub(crate) fn accounts_for(&self, name: &str, manifest: &Manifest) -> bool {
        self.record.accounts_for(name, manifest)
    }

    /// Makes durable that a commit, which puts one manifest in the place of another, is about to create
    /// or retire these segments. Where the first of the two may not be durable, those of the commit
    /// before count too.
    pub(crate) fn record(
        &mut self,
        names: BTreeSet<String>,
        manifests: [&Manifest; 2],
        is_first_durable: bool,
    ) -> Result<(), DiskError> {
        let mut record = self.record.clone();
        record.names.extend(names);
        if record.names.is_empty() {
            return Ok(());
        }
        if is_first_durable {
            record.manifests.clear();
        }
        record.manifests.extend(manifests.map(digest_of));
        self.write(record)
    }

    /// Forgets the segments that the manifest, which must be durable, lists, and those that are gone.
    pub(crate) fn settle(&mut self, manifest: &Manifest) -> Result<(), DiskError> {
        if self.record.names.is_empty() && self.is_durable {
            return Ok(());
        }
        let present: BTreeSet<String> = self.disk.list()?.into_iter().collect();
        let mut record = self.record.clone();
        record.names.retain(|name| present.contains(name) && !manifest.lists_segment(name));
        record.manifests = [digest_of(manifest)].into();
        if record == self.record && self.is_durable {
            return Ok(());
        }
        // A removal that a crash takes back must find the name in the journal.
        self.disk.fsync_folder()?;
        if !record.names.is_empty() {
            return self.write(record);
        }
        self.is_durable = false;
        forget(&*self.disk)?;
        (self.record, self.is_durable) = (record, true);
        Ok(())
    }

    fn write(&mut self, record: JournalRecord) -> Result<(), DiskError> {
        if self.is_durable && record == self.record {
            return Ok(());
        }
        self.is_durable = false;
        self.record = record;
        let mut text = format!("{TITLE}\n");
        for digest in &self.record.manifests {
            let _ = writeln!(text, "{MANIFEST}{digest}"); // writing to a string cannot fail
        }
        for name in &self.record.names {
            let _ = writeln!(text, "{name}"); // writing to a string cannot fail
        }
        let checksum = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "checksum {checksum:08x}");
        replace_file(&*self.disk, JOURNAL_NAME, text.as_bytes())?;
        self.is_durable = true;
        Ok(())
    }
}

/// Forgets what a folder's journal says: whoever replaces the manifest by another that no commit made
/// leaves nothing that it could account for.
pub(crate) fn forget(disk: &dyn Disk) -> Result<(), DiskError> {
    match disk.remove(JOURNAL_NAME) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// The segments that a folder's journal names: a commit that was not settled created or retired them.
pub(crate) fn recorded_segments(disk: &dyn Disk) -> Result<BTreeSet<String>, DiskError> {
    Ok(read_record(disk)?.names)
}

/// What a folder's journal says. One that is not whole accounts for nothing.
fn read_record(disk: &dyn Disk) -> Result<JournalRecord, DiskError> {
    match disk.read(JOURNAL_NAME, MANIFEST_BYTES_MAX) {
        Ok(bytes) => Ok(decode(&bytes).unwrap_or_default()),
        Err(error) if error.is_missing() => Ok(JournalRecord::default()),
        Err(DiskError::TooLarge { .. }) => Ok(JournalRecord::default()),
        Err(error) => Err(error),
    }
}

fn decode(bytes: &[u8]) -> Option<JournalRecord> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = text.get(..body.len().checked_add(1)?)?;
    if checksum != format!("checksum {:08x}", crc32fast::hash(body.as_bytes())) {
        return None;
    }
    let mut lines = body.lines();
    (lines.next() == Some(TITLE)).then_some(())?;
    let mut record = JournalRecord::default();
    for line in lines {
        match line.strip_prefix(MANIFEST) {
            Some(digest) => drop(record.manifests.insert(digest.parse().ok()?)),
            None if is_segment_name(line) => drop(record.names.insert(line.to_owned())),
            None => return None,
        }
    }
    Some(record)
}

/// The segments of a folder that neither the manifest nor the journal accounts for, also while a
/// writer is at work. Nobody reads or removes them.
pub fn unlisted_segments(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    // A commit names a segment in the journal before it creates or retires the file, and forgets the
    // name when the manifest lists it or the file is gone: so the journal is read before the manifest
    // and after it, and the files are looked at last.
    let mut names = disk.list()?;
    names.retain(|name| is_segment_name(name));
    if names.is_empty() {
        return Ok(names);
    }
    let before = read_record(disk)?;
    let Some(manifest) = Manifest::load(disk)? else { return Ok(Vec::new()) };
    let after = read_record(disk)?;
    names.retain(|name| {
        let is_known = before.accounts_for(name, &manifest)
            || after.accounts_for(name, &manifest)
            || manifest.lists_segment(name);
        !is_known && disk.file_bytes(name).is_ok()
    });
    Ok(names)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use chain::BlockRange;

    use super::*;
    use crate::disk::faulty::{Crash, DiskFailure, FaultyDisk};
    use crate::manifest::{Edit, Network, SegmentEntry};

    fn name(number: u8) -> String {
        format!("blocks-{number}.segment")
    }

    fn set(numbers: &[u8]) -> BTreeSet<String> {
        numbers.iter().map(|number| name(*number)).collect()
    }

    #[test]
    fn what_was_recorded_survives_a_failure_and_a_crash_at_any_step() {
        for step in 0..6 {
            let disk = FaultyDisk::new(step);
            let shared: Arc<dyn Disk> = Arc::new(disk.clone());
            let mut journal = Journal::open(Arc::clone(&shared)).unwrap();
            let manifest = Manifest::new(Network::default());
            let record = |journal: &mut Journal, number: u8| {
                journal.record(set(&[number]), [&manifest, &manifest], true)
            };
            record(&mut journal, 1).unwrap();
            disk.fail_after(step, DiskFailure::Io);
            let recorded = record(&mut journal, 2);
            assert_eq!(recorded.is_err(), step < 4, "step {step}");
            disk.crash(Crash { may_tear_writes: true, may_keep_names: true });
            let found = read_record(&disk).unwrap().names;
            assert!(found.is_superset(&set(&[1])), "step {step}: {found:?}");
            assert!(found.contains(&name(2)) || recorded.is_err(), "step {step}: {found:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_whole_accounts_for_nothing() {
        let disk = FaultyDisk::new(1);
        let mut journal = Journal::open(Arc::new(disk.clone())).unwrap();
        let manifest = Manifest::new(Network::default());
        journal.record(set(&[1, 2]), [&manifest, &manifest], true).unwrap();
        let whole = disk.read(JOURNAL_NAME, 1 << 20).unwrap();
        assert_eq!(decode(&whole).unwrap().names, set(&[1, 2]));
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert_eq!(decode(&flipped), None, "byte {at}");
            assert_eq!(decode(&whole[..at]), None, "the first {at} bytes");
        }
    }

    #[test]
    fn a_name_is_forgotten_when_its_file_is_gone_for_good() {
        let disk = FaultyDisk::new(1);
        let mut journal = Journal::open(Arc::new(disk.clone())).unwrap();
        let manifest = Manifest::new(Network::default());
        for number in [1, 2] {
            disk.write(&name(number), b"").unwrap();
        }
        disk.fsync_folder().unwrap();
        journal.record(set(&[1, 2, 3]), [&manifest, &manifest], true).unwrap();
        disk.remove(&name(1)).unwrap();
        journal.settle(&manifest).unwrap();
        assert_eq!(read_record(&disk).unwrap().names, set(&[2]));
        disk.remove(&name(2)).unwrap();
        journal.settle(&manifest).unwrap();
        assert!(!disk.list().unwrap().contains(&JOURNAL_NAME.to_owned()));
        disk.crash(Crash::default());
        // The journal may come back, the segments may not.
        assert!(disk.list().unwrap().iter().all(|name| !is_segment_name(name)));
    }

    #[test]
    fn a_journal_counts_with_the_manifests_of_its_commit_and_no_other() {
        let listing = |numbers: &[u8]| {
            let entry = |number: &u8| SegmentEntry {
                range: BlockRange::from_count(u64::from(*number), 1).unwrap(),
                file_name: name(*number),
                bytes: 1,
                digest: B256::ZERO,
                has_receipts: true,
                parent_hash: B256::ZERO,
                last_hash: B256::ZERO,
                transaction_count: 0,
                log_count: 0,
                difficulty: U256::ZERO,
            };
            let segments = numbers.iter().map(entry).collect();
            Manifest::new(Network::default()).edited(Edit { segments, ..Edit::default() }).unwrap()
        };
        let (older, before, after) = (listing(&[]), listing(&[1]), listing(&[1, 2]));
        let disk = FaultyDisk::new(1);
        let mut journal = Journal::open(Arc::new(disk.clone())).unwrap();
        journal.record(set(&[2]), [&before, &after], true).unwrap();
        let again = Journal::open(Arc::new(disk.clone())).unwrap();
        assert!(again.accounts_for(&name(2), &before) && again.accounts_for(&name(2), &after));
        // Somebody has restored it: what the commit made may be the only copy.
        assert!(!again.accounts_for(&name(2), &older));
        // A commit whose first manifest may not be durable counts with the one before it too.
        journal.record(set(&[3]), [&after, &listing(&[1, 2, 3])], false).unwrap();
        assert!(journal.accounts_for(&name(3), &before));
        journal.record(set(&[3]), [&after, &listing(&[1, 2, 3])], true).unwrap();
        assert!(!journal.accounts_for(&name(3), &before));
    }
}
