//! The cache on disk through restarts, damage and other processes.

use std::fs;

use super::*;

struct Fixture {
    folder: tempfile::TempDir,
    counters: Arc<RemoteCounters>,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), counters: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn open(&self, bytes_max: u64) -> DiskCache {
        DiskCache::open(&self.path(), bytes_max, Arc::clone(&self.counters))
    }

    /// The names of the cache's files.
    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "lock").collect();
        names.sort();
        names
    }
}

fn payload(seed: u64, bytes: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

const BYTES: u64 = 1000;

fn put(cache: &DiskCache, file: &str, number: u64, rank: CacheRank) {
    let start = number * BYTES;
    let bytes = payload(start, usize::try_from(BYTES).unwrap());
    if cache.enqueue(CacheWrite { key: (FileKey::of(file), start), rank, bytes }) {
        cache.write_queued();
    }
}

/// Whether the cache has the entry; if so, with its own bytes.
fn holds(cache: &DiskCache, file: &str, number: u64) -> bool {
    let mut buffer = vec![1, 2, 3];
    let start = number * BYTES;
    let found = cache.read(FileKey::of(file), &(start..start + BYTES), &mut buffer);
    if found == DiskLookup::Ready {
        assert_eq!(buffer, payload(start, usize::try_from(BYTES).unwrap()));
        return true;
    }
    assert_eq!(found, DiskLookup::Missing);
    assert!(buffer.is_empty());
    false
}

#[test]
fn a_part_of_an_entry_is_read_at_once_after_it_was_written() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    put(&cache, "a", 3, CacheRank::Page);
    let (mut buffer, whole) = (Vec::new(), payload(3000, 1000));
    // What was just written is in memory, where the system can tell.
    let read = cache.read_now(FileKey::of("a"), &(3100..3200), &mut buffer);
    assert!(read == DiskLookup::WouldBlock || buffer == whole[100..200]);
    assert_eq!(cache.read(FileKey::of("a"), &(3100..3200), &mut buffer), DiskLookup::Ready);
    assert_eq!(buffer, whole[100..200]);
    assert_eq!(cache.read(FileKey::of("a"), &(2999..3200), &mut buffer), DiskLookup::Missing);
    assert_eq!(cache.read(FileKey::of("a"), &(3900..4001), &mut buffer), DiskLookup::Missing);
    assert_eq!(cache.read(FileKey::of("b"), &(3100..3200), &mut buffer), DiskLookup::Missing);
}

#[test]
fn entries_survive_a_restart_with_tables_and_without() {
    for is_torn in [false, true] {
        let fixture = Fixture::new();
        let cache = fixture.open(1 << 20);
        (0..20).for_each(|number| put(&cache, "a", number, CacheRank::Page));
        (0..5).for_each(|number| put(&cache, "b", number, CacheRank::Lookup));
        drop(cache);
        if is_torn {
            // A crash leaves no table, and half a record.
            for name in fixture.files() {
                let path = fixture.path().join(name);
                let bytes = fs::read(&path).unwrap();
                let records = bytes.len() / (1000 + HEAD_BYTES) * (1000 + HEAD_BYTES);
                fs::write(&path, &bytes[..records - 500]).unwrap();
            }
        }
        let cache = fixture.open(1 << 20);
        let lost = u64::from(is_torn);
        assert!((0..20 - lost).all(|number| holds(&cache, "a", number)));
        assert!((0..5 - lost).all(|number| holds(&cache, "b", number)));
        assert_eq!(holds(&cache, "a", 19), !is_torn);
        put(&cache, "a", 19, CacheRank::Page);
        assert!(holds(&cache, "a", 19));
        assert_eq!(fixture.counters.damaged_entries.get(), 0);
    }
}

#[test]
fn a_damaged_entry_is_dropped_and_can_be_written_anew() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    (0..3).for_each(|number| put(&cache, "a", number, CacheRank::Page));
    let path = fixture.path().join(&fixture.files()[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[HEAD_BYTES + 1000 + HEAD_BYTES + 7] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    assert_eq!([0, 1, 2].map(|number| holds(&cache, "a", number)), [true, false, true]);
    assert_eq!(fixture.counters.damaged_entries.get(), 1);
    put(&cache, "a", 1, CacheRank::Page);
    assert!(holds(&cache, "a", 1));
}

#[test]
fn a_file_that_is_cut_while_it_is_open_costs_its_entries_and_nothing_else() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    (0..3).for_each(|number| put(&cache, "a", number, CacheRank::Page));
    let path = fixture.path().join(&fixture.files()[0]);
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1500).unwrap();
    assert_eq!([0, 1, 2].map(|number| holds(&cache, "a", number)), [true, false, false]);
    put(&cache, "a", 2, CacheRank::Page);
    assert_eq!([0, 1, 2].map(|number| holds(&cache, "a", number)), [true, false, true]);
}

#[test]
fn the_folder_may_be_removed_while_it_is_used() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    put(&cache, "a", 0, CacheRank::Page);
    fs::remove_dir_all(fixture.path()).unwrap();
    assert!(holds(&cache, "a", 0), "an open file is read on");
    put(&cache, "a", 1, CacheRank::Page);
    assert_eq!([0, 1].map(|number| holds(&cache, "a", number)), [false, true]);
    assert_eq!(fixture.files().len(), 1);
    assert_eq!(cache.fault(), None);
    assert_eq!(cache.bytes(), 1000 + super::super::record::HEAD_LENGTH);
}

#[test]
fn a_second_process_works_without_the_folder_until_the_first_has_ended() {
    let fixture = Fixture::new();
    let first = fixture.open(1 << 20);
    put(&first, "a", 0, CacheRank::Page);
    let second = fixture.open(1 << 20);
    assert!(second.fault().unwrap().contains("lock"), "{:?}", second.fault());
    put(&second, "a", 1, CacheRank::Page);
    assert!(!holds(&second, "a", 0) && !holds(&second, "a", 1));
    assert!(holds(&first, "a", 0) && !holds(&first, "a", 1));
    drop(first);
    put(&second, "a", 2, CacheRank::Page);
    assert_eq!([0, 1, 2].map(|number| holds(&second, "a", number)), [true, false, true]);
    assert_eq!(second.fault(), None);
}

#[test]
fn a_folder_that_cannot_be_made_is_told_and_nothing_is_cached() {
    let fixture = Fixture::new();
    fs::write(fixture.path(), b"a file").unwrap();
    let cache = fixture.open(1 << 20);
    assert!(cache.fault().is_some());
    put(&cache, "a", 0, CacheRank::Page);
    assert!(!holds(&cache, "a", 0));
}

#[test]
fn the_oldest_go_and_what_was_used_is_carried_over() {
    let fixture = Fixture::new();
    let bytes_max = 200_000;
    let cache = fixture.open(bytes_max);
    for number in 0..1000 {
        put(&cache, "a", number, CacheRank::Page);
        assert!(cache.bytes() <= bytes_max, "{} bytes after entry {number}", cache.bytes());
        assert!(holds(&cache, "a", 0), "it is used all the time: entry {number}");
    }
    let held = (1..1000).filter(|number| holds(&cache, "a", *number)).count();
    assert!((140..195).contains(&held), "{held} entries");
    assert!((900..1000).all(|number| holds(&cache, "a", number)), "the newest are there");
    let sizes = fixture.files().into_iter().map(|name| fs::metadata(fixture.path().join(name)));
    let on_disk: u64 = sizes.map(|found| found.unwrap().len()).sum();
    assert_eq!(on_disk, cache.bytes());
}

#[test]
fn lookups_outlast_pages() {
    let fixture = Fixture::new();
    let cache = fixture.open(200_000);
    (0..100).for_each(|number| put(&cache, "run", number, CacheRank::Lookup));
    (0..1000).for_each(|number| put(&cache, "segment", number, CacheRank::Page));
    assert!((0..100).all(|number| holds(&cache, "run", number)));
    (100..1000).for_each(|number| put(&cache, "run", number, CacheRank::Lookup));
    let count = |file| (0..1000).filter(|number| holds(&cache, file, *number)).count();
    assert!((100..180).contains(&count("run")), "{} of lookups", count("run"));
    assert!((1..30).contains(&count("segment")), "{} of pages", count("segment"));
}

#[test]
fn a_smaller_bound_at_a_start_evicts_the_oldest() {
    let fixture = Fixture::new();
    let cache = fixture.open(200_000);
    (0..150).for_each(|number| put(&cache, "a", number, CacheRank::Page));
    drop(cache);
    let cache = fixture.open(100_000);
    assert!(cache.bytes() <= 100_000);
    assert!(!holds(&cache, "a", 0) && holds(&cache, "a", 149));
}

#[test]
fn strange_files_are_left_alone_and_useless_ones_are_removed() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path()).unwrap();
    for name in ["notes.txt", "pages-x.cache", "pages-0000000007.cache"] {
        fs::write(fixture.path().join(name), b"nothing of ours").unwrap();
    }
    let cache = fixture.open(1 << 20);
    put(&cache, "a", 0, CacheRank::Page);
    let files = ["notes.txt", "pages-0000000008.cache", "pages-x.cache"];
    assert_eq!(fixture.files(), files);
}

#[test]
fn a_discarded_file_leaves_nothing_written_or_queued() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    (0..3).for_each(|number| put(&cache, "a", number, CacheRank::Page));
    put(&cache, "b", 0, CacheRank::Page);
    let queued = |file: &str| CacheWrite {
        key: (FileKey::of(file), 5000),
        rank: CacheRank::Page,
        bytes: payload(5000, 1000),
    };
    assert!(cache.enqueue(queued("a")));
    assert!(!cache.enqueue(queued("b")), "one writes for all");
    cache.discard(FileKey::of("a"));
    cache.write_queued();
    assert_eq!([0, 1, 2, 5].map(|number| holds(&cache, "a", number)), [false; 4]);
    assert_eq!([0, 5].map(|number| holds(&cache, "b", number)), [true; 2]);
}

#[test]
fn a_queue_that_is_full_takes_nothing_more() {
    let fixture = Fixture::new();
    let cache = fixture.open(1 << 20);
    let big = |start| CacheWrite {
        key: (FileKey::of("a"), start),
        rank: CacheRank::Page,
        bytes: Bytes::from(vec![0; QUEUE_BYTES_MAX / 2]),
    };
    assert!(cache.enqueue(big(0)));
    assert!(!cache.enqueue(big(1)));
    assert!(!cache.enqueue(big(2)));
    assert_eq!(fixture.counters.skipped_writes.get(), 1);
    cache.write_queued();
    assert_eq!(fixture.counters.skipped_writes.get(), 3, "each is longer than a file may be");
    put(&cache, "a", 7, CacheRank::Page);
    assert!(holds(&cache, "a", 7));
}
