//! What every disk must do, checked on each of them, and what only the faulty one does.

use store::disk::{CachedRead, DataFile, Disk, DiskError, Folder, NAME_BYTES_MAX};
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

/// Runs a check against an empty folder of each kind.
fn check(act: impl Fn(&dyn Disk)) {
    let folder = tempfile::tempdir().unwrap();
    act(&Folder::open(folder.path()).unwrap());
    act(&FaultyDisk::new(1));
}

#[test]
fn what_is_written_is_read_and_listed() {
    check(|disk| {
        assert_eq!(disk.list().unwrap(), [""; 0]);
        disk.write("b", b"hello").unwrap();
        disk.write("a.seg", b"").unwrap();
        assert_eq!(disk.list().unwrap(), ["a.seg", "b"]);
        assert_eq!(disk.read("b", 5).unwrap(), b"hello");
        assert_eq!(disk.read("a.seg", 0).unwrap(), b"");
        assert_eq!(disk.file_bytes("b").unwrap(), 5);
    });
}

#[test]
fn writing_again_leaves_nothing_of_before_and_appending_leaves_all() {
    check(|disk| {
        disk.write("a", b"hello").unwrap();
        disk.write("a", b"no").unwrap();
        assert_eq!(disk.read("a", 9).unwrap(), b"no");
        disk.append("a", b"w").unwrap();
        disk.append("a", b"").unwrap();
        assert_eq!(disk.read("a", 9).unwrap(), b"now");
        // A file that went away is not begun anew in the middle.
        assert!(disk.append("new", b"x").unwrap_err().is_missing());
        assert!(disk.read("new", 9).unwrap_err().is_missing());
    });
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "a range that is none")]
fn a_range_is_read_whole_or_refused() {
    check(|disk| {
        disk.write("a", b"0123456789").unwrap();
        assert_eq!(disk.read_range("a", 0..10).unwrap(), b"0123456789");
        assert_eq!(disk.read_range("a", 3..5).unwrap(), b"34");
        assert_eq!(disk.read_range("a", 10..10).unwrap(), b"");
        for range in [0..11, 10..11, 11..11, 5..3, 0..u64::MAX] {
            let error = disk.read_range("a", range.clone()).unwrap_err();
            assert!(matches!(error, DiskError::Range { file_bytes: 10, .. }), "{range:?}: {error}");
            assert!(error.to_string().ends_with(" of a file of 10"), "{error}");
        }
    });
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "a range that is none")]
fn an_open_file_gives_a_range_whole_or_refuses_it() {
    check(|disk| {
        disk.write("a", b"0123456789").unwrap();
        let file = disk.open("a").unwrap();
        assert_eq!((file.file_bytes(), file.place()), (10, &*format!("{}/a", disk.place())));
        let mut buffer = b"before".to_vec();
        for (range, expected) in [(0..10, "0123456789"), (3..5, "34"), (10..10, "")] {
            file.read_at(range.clone(), &mut buffer).unwrap();
            assert_eq!(buffer, expected.as_bytes());
            // It was read a moment ago; a file system that knows no such read says so.
            let expected = match file.read_now(range, &mut buffer).unwrap() {
                CachedRead::Ready => expected,
                CachedRead::WouldBlock => "",
            };
            assert_eq!(buffer, expected.as_bytes());
        }
        for range in [0..11, 10..11, 11..11, 5..3, 0..u64::MAX] {
            buffer = b"before".to_vec();
            let errors = [
                file.read_at(range.clone(), &mut buffer).unwrap_err(),
                file.read_now(range, &mut buffer).unwrap_err(),
            ];
            for error in errors {
                assert!(matches!(error, DiskError::Range { file_bytes: 10, .. }), "{error}");
            }
            assert!(buffer.is_empty());
        }
    });
}

#[test]
fn an_open_file_outlives_its_name() {
    check(|disk| {
        let check_content = |file: &dyn DataFile| {
            let mut buffer = Vec::new();
            file.read_at(0..3, &mut buffer).unwrap();
            assert_eq!(buffer, b"old");
        };
        for name in ["removed", "replaced"] {
            disk.write(name, b"old").unwrap();
        }
        disk.fsync_folder().unwrap();
        let files = [disk.open("removed").unwrap(), disk.open("replaced").unwrap()];
        disk.remove("removed").unwrap();
        disk.write("new", b"other").unwrap();
        disk.rename("new", "replaced").unwrap();
        disk.fsync_folder().unwrap();
        for file in &files {
            check_content(&**file);
        }
        assert!(matches!(disk.open("removed"), Err(DiskError::Missing { .. })));
        assert_eq!(disk.read("replaced", 9).unwrap(), b"other");
    });
}

#[test]
fn an_open_file_that_lost_its_end_is_an_error_that_names_it() {
    check(|disk| {
        disk.write("a", b"0123456789").unwrap();
        let file = disk.open("a").unwrap();
        disk.write("a", b"xyz").unwrap();
        let mut buffer = Vec::new();
        let error = file.read_at(2..8, &mut buffer).unwrap_err().to_string();
        let place = disk.place();
        let text = "read: the file has 3 bytes, it had 10 when it was opened";
        assert_eq!(error, format!("{place}/a: {text}"));
        assert!(!matches!(file.read_now(2..8, &mut buffer), Ok(CachedRead::Ready)));
        assert!(buffer.is_empty());
        file.read_at(0..3, &mut buffer).unwrap();
        assert_eq!(buffer, b"xyz");
    });
}

#[test]
fn a_file_longer_than_its_reader_takes_is_refused() {
    check(|disk| {
        disk.write("a", b"hello").unwrap();
        let error = disk.read("a", 4).unwrap_err();
        assert_eq!(error.to_string(), format!("{}/a: 5 bytes, at most 4 are read", disk.place()));
    });
}

#[test]
fn a_rename_takes_the_place_of_the_other_file() {
    check(|disk| {
        disk.write("a", b"new").unwrap();
        disk.write("b", b"old").unwrap();
        disk.rename("a", "b").unwrap();
        disk.rename("b", "b").unwrap();
        assert_eq!(disk.list().unwrap(), ["b"]);
        assert_eq!(disk.read("b", 9).unwrap(), b"new");
    });
}

#[test]
fn a_removed_file_is_gone() {
    check(|disk| {
        disk.write("a", b"x").unwrap();
        disk.remove("a").unwrap();
        assert_eq!(disk.list().unwrap(), [""; 0]);
        disk.write("a", b"y").unwrap();
        assert_eq!(disk.read("a", 9).unwrap(), b"y");
    });
}

#[test]
fn a_file_that_is_changed_or_replaced_has_another_version() {
    check(|disk| {
        disk.write("a", b"first").unwrap();
        let first = disk.version("a").unwrap();
        assert_eq!(disk.version("a").unwrap(), first);
        disk.write("b", b"first").unwrap();
        disk.rename("b", "a").unwrap();
        let second = disk.version("a").unwrap();
        assert_ne!(second, first);
        disk.append("a", b"!").unwrap();
        assert_ne!(disk.version("a").unwrap(), second);
        disk.remove("a").unwrap();
        assert!(disk.version("a").unwrap_err().is_missing());
    });
}

#[test]
fn a_missing_file_is_missing_to_every_operation() {
    check(|disk| {
        let errors = [
            disk.read("a", 9).err(),
            disk.read_range("a", 0..0).err(),
            disk.open("a").err(),
            disk.file_bytes("a").err(),
            disk.append("a", b"").err(),
            disk.rename("a", "b").err(),
            disk.remove("a").err(),
        ];
        for error in errors {
            assert!(matches!(error, Some(DiskError::Missing { .. })), "{error:?}");
        }
        assert_eq!(disk.list().unwrap(), [""; 0]);
    });
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let long = "a".repeat(NAME_BYTES_MAX + 1);
    check(|disk| {
        disk.write("a", b"x").unwrap();
        for name in ["", ".", "..", "../a", "/a", "a/b", ".a", "a b", "a\n", "a\0", "ä", &long] {
            let errors = [
                disk.read(name, 9).err(),
                disk.open(name).err(),
                disk.write(name, b"").err(),
                disk.append(name, b"").err(),
                disk.remove(name).err(),
                disk.rename("a", name).err(),
                disk.rename(name, "a").err(),
                disk.lock(name).err(),
            ];
            for error in errors {
                assert!(matches!(error, Some(DiskError::Name { .. })), "{name:?}: {error:?}");
            }
        }
        disk.write(&long[1..], b"").unwrap();
    });
}

#[test]
fn fsync_changes_nothing_that_is_read() {
    check(|disk| {
        disk.write("a", b"x").unwrap().fsync().unwrap();
        disk.fsync_folder().unwrap();
        assert_eq!(disk.read("a", 9).unwrap(), b"x");
        assert_eq!(disk.list().unwrap(), ["a"]);
    });
}

#[test]
fn a_file_that_is_held_open_is_written_under_any_name() {
    check(|disk| {
        let mut file = disk.write("a", b"one").unwrap();
        disk.rename("a", "b").unwrap();
        disk.write("a", b"other").unwrap();
        file.append(b"two").unwrap();
        file.fsync().unwrap();
        assert_eq!(disk.read("b", 9).unwrap(), b"onetwo");
        assert_eq!(disk.read("a", 9).unwrap(), b"other");
        disk.remove("b").unwrap();
        file.append(b"three").unwrap();
        file.fsync().unwrap();
        assert_eq!(disk.list().unwrap(), ["a"]);
    });
}

#[test]
fn a_lock_is_held_once_and_leaves_other_locks_free() {
    check(|disk| {
        let first = disk.lock("one").unwrap();
        assert!(matches!(disk.lock("one"), Err(DiskError::Locked { .. })));
        let _other = disk.lock("two").unwrap();
        drop(first);
        let _again = disk.lock("one").unwrap();
        assert_eq!(disk.list().unwrap(), ["one", "two"]);
    });
}

#[test]
fn a_locked_file_names_its_holder_for_as_long_as_it_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Folder::open(folder.path()).unwrap();
    // A process that was killed leaves its name, which says nothing.
    disk.write("lock", b"pid 1, another\n").unwrap();
    let guard = disk.lock("lock").unwrap();
    let Err(DiskError::Locked { holder: Some(holder), .. }) = disk.lock("lock") else {
        panic!("no holder");
    };
    assert!(holder.starts_with(&format!("pid {}, ", std::process::id())), "{holder}");
    drop(guard);
    assert_eq!(disk.read("lock", 9).unwrap(), b"");
    // Whatever is there is shown without what a terminal would obey.
    let _guard = disk.lock("lock").unwrap();
    disk.write("lock", &[b"\x1b[31m\xff", [b'a'; 300].as_slice()].concat()).unwrap();
    let Err(DiskError::Locked { holder: Some(holder), .. }) = disk.lock("lock") else {
        panic!("no holder");
    };
    assert!(holder.starts_with("[31m") && holder.len() < 210, "{holder}");
}

#[test]
fn a_folder_is_made_with_those_above_it_and_lists_only_its_files() {
    let above = tempfile::tempdir().unwrap();
    let path = above.path().join("x/y");
    Folder::open(&path).unwrap_err();
    let folder = Folder::create(&path).unwrap();
    Folder::create(&path).unwrap().write("a", b"x").unwrap();
    std::fs::create_dir(path.join("folder")).unwrap();
    std::fs::write(path.join(".hidden"), b"").unwrap();
    assert_eq!(folder.list().unwrap(), ["a"]);
    assert_eq!(folder.path(), path);
    let error = Folder::open(path.join("a")).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}/a: open: ", path.display())), "{error}");
    Folder::create(path.join("a")).unwrap_err();
}

#[test]
fn a_crash_keeps_what_was_fsynced_and_nothing_else() {
    let disk = FaultyDisk::new(1);
    disk.write("kept", b"one").unwrap().fsync().unwrap();
    disk.write("nameless", b"x").unwrap();
    disk.fsync_folder().unwrap();
    disk.append("kept", b"two").unwrap();
    disk.write("late", b"x").unwrap().fsync().unwrap();
    disk.rename("kept", "renamed").unwrap();
    disk.crash(Crash::default());
    assert_eq!(disk.list().unwrap(), ["kept", "nameless"]);
    assert_eq!(disk.read("kept", 9).unwrap(), b"one");
    assert_eq!(disk.read("nameless", 9).unwrap(), b"");
}

#[test]
fn a_torn_append_keeps_what_was_durable_before_it() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = FaultyDisk::new(seed);
        disk.write("log", b"durable").unwrap().fsync().unwrap();
        disk.fsync_folder().unwrap();
        disk.append("log", b"abc").unwrap();
        disk.append("log", b"def").unwrap();
        disk.crash(Crash { may_tear_writes: true, may_keep_names: true });
        let content = disk.read("log", 99).unwrap();
        let rest = content.strip_prefix(b"durable").unwrap();
        let torn =
            rest.iter().zip(b"abcdef").all(|(found, written)| found == written || *found == 0);
        assert!(torn && rest.len() <= 6, "seed {seed}: {rest:?}");
        lengths.insert(rest.len());
    }
    assert_eq!(lengths.len(), 7, "a write is torn everywhere: {lengths:?}");
}

#[test]
fn one_seed_gives_one_history() {
    let history = |seed| {
        let disk = FaultyDisk::new(seed);
        for name in ["a", "b", "c", "d", "e", "f"] {
            disk.write(name, &[7; 1000]).unwrap();
        }
        disk.crash(Crash { may_tear_writes: true, may_keep_names: true });
        let names = disk.list().unwrap();
        names.into_iter().map(|name| (disk.read(&name, 1000).unwrap(), name)).collect::<Vec<_>>()
    };
    assert_eq!(history(5), history(5));
    assert_ne!(history(5), history(6));
}

#[test]
fn a_failed_fsync_forgets_what_the_next_one_cannot_bring_back() {
    let disk = FaultyDisk::new(1);
    let mut log = disk.write("log", b"one").unwrap();
    disk.fail_after(0, DiskFailure::Io);
    log.fsync().unwrap_err();
    log.append(b"two").unwrap();
    log.fsync().unwrap();
    disk.fsync_folder().unwrap();
    assert_eq!(disk.read("log", 9).unwrap(), b"onetwo");
    disk.crash(Crash::default());
    assert_eq!(disk.read("log", 9).unwrap(), b"\0\0\0two");
}

#[test]
fn a_failed_write_back_is_reported_to_a_file_that_stayed_open_and_to_no_other() {
    let disk = FaultyDisk::new(1);
    let mut log = disk.write("log", b"one").unwrap();
    disk.fsync_folder().unwrap();
    disk.fail_after(0, DiskFailure::WriteBack);
    log.append(b"two").unwrap();
    // What the file system lost before the append is lost; nothing else is.
    disk.append("log", b"").unwrap().fsync().unwrap();
    log.fsync().unwrap_err();
    log.fsync().unwrap();
    assert_eq!(disk.read("log", 9).unwrap(), b"onetwo");
    disk.crash(Crash::default());
    assert_eq!(disk.read("log", 9).unwrap(), b"\0\0\0two");
}

#[test]
fn a_full_disk_fails_once_and_keeps_a_part_of_the_write() {
    let disk = FaultyDisk::new(3);
    disk.fail_after(1, DiskFailure::NoSpace);
    disk.write("log", b"one").unwrap();
    assert!(disk.append("log", &[7; 1000]).unwrap_err().is_full());
    let file_bytes = disk.file_bytes("log").unwrap();
    assert!((3..=1003).contains(&file_bytes), "{file_bytes}");
    disk.append("log", b"x").unwrap();
    assert_eq!(disk.file_bytes("log").unwrap(), file_bytes + 1);
}

#[test]
fn a_disk_that_stopped_does_nothing_until_it_comes_back() {
    let disk = FaultyDisk::new(1);
    disk.stop_after(1);
    disk.write("a", b"x").unwrap();
    disk.fsync_folder().unwrap_err();
    disk.list().unwrap_err();
    disk.crash(Crash::default());
    assert_eq!(disk.list().unwrap(), [""; 0]);
}

#[test]
fn an_open_file_dies_with_its_process() {
    let disk = FaultyDisk::new(1);
    disk.write("a", b"x").unwrap().fsync().unwrap();
    disk.fsync_folder().unwrap();
    let file = disk.open("a").unwrap();
    disk.crash(Crash::default());
    let error = file.read_at(0..1, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "memory/a: read: opened before the power was cut");
    disk.open("a").unwrap().read_at(0..1, &mut Vec::new()).unwrap();
}

#[test]
fn a_read_that_may_not_wait_is_refused_at_chance_when_asked_to() {
    let disk = FaultyDisk::new(1);
    disk.write("a", b"x").unwrap();
    let file = disk.open("a").unwrap();
    let refused = |disk: &FaultyDisk, may_block| {
        disk.set_may_block(may_block);
        let answers = (0..100).map(|_| file.read_now(0..1, &mut Vec::new()).unwrap());
        answers.filter(|now| *now == CachedRead::WouldBlock).count()
    };
    assert_eq!(refused(&disk, false), 0);
    assert!((20..80).contains(&refused(&disk, true)));
    disk.fail_after(0, DiskFailure::Io);
    file.read_now(0..1, &mut Vec::new()).unwrap_err();
    file.read_at(0..1, &mut Vec::new()).unwrap();
}
