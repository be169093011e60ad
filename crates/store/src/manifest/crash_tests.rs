//! The manifest on disks that crash, fill up, fail and lie.

use super::tests::{sample, segment, with_segment};
use super::*;
use crate::disk::Folder;
use crate::disk::faulty::{Crash, DiskFailure, FaultyDisk};

const SEEDS: u64 = 200;
/// What replacing a manifest takes.
const STEPS: u64 = 4;
const CRASHES: [Crash; 4] = [
    Crash { may_tear_writes: false, may_keep_names: false },
    Crash { may_tear_writes: true, may_keep_names: false },
    Crash { may_tear_writes: false, may_keep_names: true },
    Crash { may_tear_writes: true, may_keep_names: true },
];

/// A way to replace a manifest.
type Order<'a> = dyn Fn(&FaultyDisk) -> Result<(), DiskError> + 'a;

/// The old manifest and the new one.
fn old_and_new() -> (Manifest, Manifest) {
    let new = with_segment(&sample(), segment(8448, 8703)).unwrap();
    (sample(), new)
}

fn disk_with(old: Option<&Manifest>, seed: u64) -> FaultyDisk {
    let disk = FaultyDisk::new(seed);
    if let Some(old) = old {
        old.replace(&disk).unwrap();
    }
    disk
}

/// Every kind of crash after every operation, each with many seeds.
fn for_each_crash(mut check: impl FnMut(u64, u64, Crash)) {
    for seed in 0..SEEDS {
        for count in 0..=STEPS {
            for crash in CRASHES {
                check(seed, count, crash);
            }
        }
    }
}

#[test]
fn a_folder_without_a_manifest_has_none() {
    assert_eq!(Manifest::load(&FaultyDisk::new(1)).unwrap(), None);
}

#[test]
fn a_manifest_in_a_real_folder_is_replaced_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Folder::open(folder.path()).unwrap();
    let (old, new) = old_and_new();
    for manifest in [old, new] {
        manifest.replace(&disk).unwrap();
        assert_eq!(Manifest::load(&disk).unwrap(), Some(manifest));
        assert_eq!(disk.list().unwrap(), [MANIFEST_NAME]);
    }
}

#[test]
fn a_damaged_file_is_named_with_its_folder() {
    let disk = FaultyDisk::new(1);
    disk.write(MANIFEST_NAME, b"quipu manifest 1\nchecksum 00000000\n").unwrap();
    let error = Manifest::load(&disk).unwrap_err().to_string();
    assert_eq!(
        error,
        "memory/manifest: checksum e4ded85d, the last line says \"checksum 00000000\"; the file is \
         damaged: bring it back from a copy, or rebuild it from the segments with `quipu repair`"
    );
}

#[test]
fn a_crash_at_any_point_leaves_the_old_manifest_or_the_new_one() {
    let (old, new) = old_and_new();
    for before in [None, Some(old)] {
        let mut kept = [0_u32; 2];
        for_each_crash(|seed, count, crash| {
            let disk = disk_with(before.as_ref(), seed);
            let operation_count = disk.operation_count();
            disk.stop_after(count);
            let outcome = new.replace(&disk);
            assert_eq!(outcome.is_ok(), count == STEPS, "{STEPS} operations replace a manifest");
            assert!(disk.operation_count() - operation_count <= STEPS);
            disk.crash(crash);
            let found = Manifest::load(&disk).unwrap();
            let is_new = found.as_ref() == Some(&new);
            assert!(is_new || found == before, "seed {seed}, after {count}, {crash:?}: {found:?}");
            assert!(is_new || outcome.is_err(), "seed {seed}, {crash:?}: success was not durable");
            kept[usize::from(is_new)] += 1;
            // And the folder goes on from there, whatever lies about.
            new.replace(&disk).unwrap();
            disk.crash(crash);
            assert_eq!(Manifest::load(&disk).unwrap().as_ref(), Some(&new));
        });
        assert!(kept.iter().all(|count| *count > 0), "both outcomes are tried: {kept:?}");
    }
}

#[test]
fn a_failure_at_any_operation_leaves_a_whole_manifest_and_can_be_tried_again() {
    let (old, new) = old_and_new();
    for failure in [DiskFailure::NoSpace, DiskFailure::Io] {
        for_each_crash(|seed, count, crash| {
            let disk = disk_with(Some(&old), seed);
            disk.fail_after(count, failure);
            let outcome = new.replace(&disk);
            assert_eq!(outcome.is_ok(), count == STEPS);
            let is_full = |error| matches!(error, ManifestError::Disk(error) if error.is_full());
            assert_eq!(
                outcome.is_err_and(is_full),
                count < STEPS && failure == DiskFailure::NoSpace
            );
            if count == STEPS {
                return;
            }
            // The name appears with the rename: only the step after it fails with the new one there.
            let expected = if count < STEPS - 1 { &old } else { &new };
            assert_eq!(Manifest::load(&disk).unwrap().as_ref(), Some(expected), "after {count}");
            new.replace(&disk).unwrap();
            disk.crash(crash);
            assert_eq!(Manifest::load(&disk).unwrap().as_ref(), Some(&new), "seed {seed}");
        });
    }
}

#[test]
fn a_failure_and_then_a_crash_leaves_the_old_manifest_or_the_new_one() {
    let (old, new) = old_and_new();
    for failure in [DiskFailure::NoSpace, DiskFailure::Io, DiskFailure::WriteBack] {
        for_each_crash(|seed, count, crash| {
            let disk = disk_with(Some(&old), seed);
            disk.fail_after(count, failure);
            let is_replaced = new.replace(&disk).is_ok();
            disk.crash(crash);
            let found = Manifest::load(&disk).unwrap().unwrap();
            assert!(found == new || (found == old && !is_replaced), "seed {seed}, after {count}");
        });
    }
}

#[test]
fn an_fsync_that_lies_may_cost_the_manifest_but_never_gives_another() {
    let (old, new) = old_and_new();
    let mut damaged = 0;
    for_each_crash(|seed, count, crash| {
        let disk = disk_with(Some(&old), seed);
        disk.set_lying(true);
        disk.stop_after(count);
        let _ = new.replace(&disk);
        disk.crash(crash);
        match Manifest::load(&disk) {
            Ok(found) => assert!([Some(&old), Some(&new)].contains(&found.as_ref())),
            Err(error) => {
                assert!(matches!(error, ManifestError::Corrupt { .. }), "{error}");
                damaged += 1;
            }
        }
    });
    assert!(damaged > 0, "a disk that lies does harm, or it does not lie");
}

#[test]
fn the_wrong_order_would_be_caught() {
    let (old, new) = old_and_new();
    let without_fsync = |disk: &FaultyDisk| {
        disk.write("manifest.staged", &new.encode())?;
        disk.rename("manifest.staged", MANIFEST_NAME)?;
        disk.fsync_folder()
    };
    let in_place = |disk: &FaultyDisk| disk.write(MANIFEST_NAME, &new.encode())?.fsync();
    let orders: [&Order<'_>; 2] = [&without_fsync, &in_place];
    for order in orders {
        let mut damaged = 0;
        for_each_crash(|seed, count, crash| {
            let disk = disk_with(Some(&old), seed);
            disk.stop_after(count);
            let _ = order(&disk);
            disk.crash(crash);
            damaged += u32::from(Manifest::load(&disk).is_err());
        });
        assert!(damaged > 0);
    }
}
