//! The log index: not wanted, built later, damaged.

use alloy_primitives::{Address, B256};
use chain::BlockNumber;
use segment::index::{IndexKey, KeyKind, PostingsBuilder, RunSpan};
use sha2::{Digest as _, Sha256};
use store::disk::Disk as _;
use store::manifest::{Edit, MANIFEST_NAME, RunEntry};
use store::names::run_name;
use store::read::block_on;
use store::{Limits, LogQuery, Reader, RunSubject, StoreError, View};
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

use super::blocks::get;
use super::compare::check_all;
use super::shelf::{Shelf, open_store, range, whole};

const CRASH: Crash = Crash { may_tear_writes: true, may_keep_names: true };

fn log_runs(shelf: &Shelf) -> Vec<String> {
    let view = shelf.view();
    view.manifest().runs_of(RunSubject::Logs).map(|run| run.file_name.clone()).collect()
}

/// A folder of three slots without a log index.
fn unindexed() -> Shelf {
    let mut shelf = Shelf::new(range(8100, 16_500));
    shelf.writer.want_log_index(false).unwrap();
    shelf.bring(&[whole(8100, 8300), whole(16_300, 16_500)]).unwrap();
    shelf
}

#[test]
fn blocks_without_an_index_are_searched_by_reading_and_indexed_later_as_if_at_once() {
    let shelf = unindexed();
    assert!(log_runs(&shelf).is_empty());
    shelf.check_view(&shelf.view(), &shelf.sealed).unwrap();
    // The wish lasts, until somebody has another one.
    let mut shelf = shelf.crashed(CRASH);
    shelf.bring(&[whole(8301, 8310)]).unwrap();
    assert!(log_runs(&shelf).is_empty());
    assert_eq!(shelf.view().manifest().blocks_without_log_index().len(), 2);
    check_all(&shelf.view()).unwrap();
    shelf.writer.want_log_index(true).unwrap();
    for slot in [Some(0), Some(1), Some(2), None] {
        assert_eq!(shelf.writer.index_next_slot().unwrap(), slot);
        check_all(&shelf.view()).unwrap();
    }
    shelf.check();
}

#[test]
fn a_slot_that_changes_gets_an_index_of_all_its_blocks() {
    let mut shelf = unindexed();
    shelf.writer.want_log_index(true).unwrap();
    shelf.bring(&[whole(8311, 8400)]).unwrap();
    let missing = shelf.view().manifest().blocks_without_log_index();
    assert_eq!(missing, [range(8100, 8191), range(16_384, 16_500)]);
    check_all(&shelf.view()).unwrap();
    shelf.check_view(&shelf.view(), &shelf.sealed).unwrap();
    while shelf.writer.index_next_slot().unwrap().is_some() {}
    shelf.check();
}

#[test]
fn a_folder_with_an_index_does_not_leave_blocks_out_of_it() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 100)]).unwrap();
    let refused = shelf.writer.want_log_index(false).unwrap_err();
    assert!(matches!(refused, StoreError::HasLogIndex { .. }), "{refused}");
    shelf.bring(&[whole(101, 300)]).unwrap();
    shelf.check();
}

#[test]
fn indexing_goes_on_after_an_error_and_after_a_crash_at_any_operation() {
    let mut ended = 0;
    for at in 0.. {
        let mut shelf = unindexed();
        shelf.writer.want_log_index(true).unwrap();
        shelf.disk.fail_after(at, DiskFailure::Io);
        if shelf.writer.index_next_slot().is_ok() {
            ended = at;
            break;
        }
        let mut shelf = if at % 2 == 0 { shelf.crashed(CRASH) } else { shelf };
        while shelf.writer.index_next_slot().unwrap().is_some() {}
        shelf.check();
    }
    assert!(ended > 5, "{ended}");
}

/// It said that every block has its index, and nothing but removing the file by hand helped.
#[test]
fn what_is_damaged_or_missing_of_the_index_is_made_anew() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let name = log_runs(&shelf).remove(0);
    let bytes = shelf.disk.read(&name, 1 << 20).unwrap();
    assert!(shelf.writer.give_up_damaged_log_runs(|_| ()).unwrap().is_empty());
    let mut flipped = bytes.clone();
    flipped[40] ^= 1;
    let longer = [&bytes[..], &[0]].concat();
    for damaged in [&flipped[..], &bytes[..bytes.len() - 1], &[], &longer] {
        shelf.disk.write(&name, damaged).unwrap();
        expect_made_anew(&mut shelf, &name, &bytes);
    }
    shelf.disk.remove(&name).unwrap();
    expect_made_anew(&mut shelf, &name, &bytes);
}

fn expect_made_anew(shelf: &mut Shelf, name: &str, bytes: &[u8]) {
    let mut seen = 0;
    let given_up = shelf.writer.give_up_damaged_log_runs(|bytes| seen += bytes).unwrap();
    let expected = u64::try_from(bytes.len()).unwrap();
    assert_eq!((given_up, seen), (vec![name.to_owned()], expected));
    assert_eq!(shelf.view().manifest().blocks_without_log_index(), [range(0, 300)]);
    index_all(shelf);
    assert_eq!(log_runs(shelf), [name]);
    assert_eq!(shelf.disk.read(name, 1 << 20).unwrap(), bytes);
    shelf.check();
}

fn index_all(shelf: &mut Shelf) {
    while shelf.writer.index_next_slot().unwrap().is_some() {}
}

/// At every operation of giving a file up and of making it anew, after an error and after a crash.
#[test]
fn a_damaged_index_is_made_anew_after_an_error_and_after_a_crash_at_any_operation() {
    let mut ended = 0;
    for at in 0.. {
        let mut shelf = Shelf::new(range(0, 300));
        shelf.bring(&[whole(0, 300)]).unwrap();
        let name = log_runs(&shelf).remove(0);
        let bytes = shelf.disk.read(&name, 1 << 20).unwrap();
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 3] ^= 1;
        shelf.disk.write(&name, &damaged).unwrap().fsync().unwrap();
        shelf.disk.fail_after(at, DiskFailure::Io);
        let given_up = shelf.writer.give_up_damaged_log_runs(|_| ());
        if given_up.and_then(|_| shelf.writer.index_next_slot()).is_ok() {
            ended = at;
            break;
        }
        let mut shelf = if at % 2 == 0 { shelf.crashed(CRASH) } else { shelf };
        shelf.writer.give_up_damaged_log_runs(|_| ()).unwrap();
        index_all(&mut shelf);
        assert_eq!(log_runs(&shelf), [name.as_str()], "at {at}");
        assert_eq!(shelf.disk.read(&name, 1 << 20).unwrap(), bytes, "at {at}");
        shelf.check();
    }
    assert!(ended > 10, "{ended}");
}

/// A disk that fails says nothing of a file: the index stays listed.
#[test]
fn no_file_of_the_index_is_given_up_where_the_disk_fails() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let listed = log_runs(&shelf);
    shelf.disk.fail_after(0, DiskFailure::Io);
    shelf.writer.give_up_damaged_log_runs(|_| ()).unwrap_err();
    assert_eq!(log_runs(&shelf), listed);
    shelf.check();
}

/// A thousand values were asked for, and the places of all of them combined, in one go.
#[test]
fn a_search_for_many_values_goes_on_in_steps_and_tells_what_it_holds() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let view = shelf.view();
    let values: Vec<B256> =
        (0..1000_u64).map(|it| B256::left_padding_from(&it.to_be_bytes())).collect();
    let addresses = (0..=255).map(Address::repeat_byte).collect();
    let query = LogQuery::new(addresses, vec![values.clone(), values]);
    let mut search = view.search_logs(&query, range(0, 300), u64::MAX);
    let mut reader = Reader::new().unwrap();
    let (mut steps, mut held) = (0, 0);
    while search.searched_to() == BlockNumber(0)
        && block_on(search.next_rows(&mut reader)).unwrap().is_some_and(|rows| rows.is_empty())
    {
        (steps, held) = (steps + 1, held.max(search.held_bytes()));
    }
    // Eight for the addresses, and 32 for the values of each topic.
    assert!(steps >= 8 + 32, "{steps}");
    assert!(held > 1000, "{held}");
}

/// A server that had the damaged file open noted the damage of the file that had taken its place, and
/// told of it for as long as it ran.
#[test]
fn damage_of_a_file_that_was_built_again_meanwhile_is_not_told_of_the_new_one() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let name = log_runs(&shelf).remove(0);
    let store = open_store(&shelf.disk, Limits::default()).unwrap();
    store.pass_over_missing().unwrap();
    let query = LogQuery::new((0..=255).map(Address::repeat_byte).collect(), Vec::new());
    let mut reader = Reader::new().unwrap();
    let mut search_all = || {
        let view = store.view();
        let mut search = view.search_logs(&query, range(0, 300), u64::MAX);
        while block_on(search.next_rows(&mut reader))?.is_some() {}
        Ok::<(), StoreError>(())
    };
    search_all().unwrap();
    let mut damaged = shelf.disk.read(&name, 1 << 20).unwrap();
    let third = damaged.len() / 3;
    damaged[..third].iter_mut().for_each(|byte| *byte ^= 1);
    shelf.disk.write(&name, &damaged).unwrap();
    assert_eq!(shelf.writer.give_up_damaged_log_runs(|_| ()).unwrap(), [name]);
    index_all(&mut shelf);
    // It saw nothing of what happened in between.
    assert!(!store.refresh().unwrap());
    search_all().unwrap_err();
    assert!(store.pass_over_faulty());
    assert_eq!(store.faulty_files(), []);
    search_all().unwrap();
    store.look_at_faulty();
    assert_eq!(store.faulty_files(), []);
}

/// Ten thousand blocks were read before the answer was that there are too many.
#[test]
fn that_too_many_blocks_have_no_index_is_known_before_anything_is_read() {
    let shelf = unindexed();
    let ends = |view: &View, first, last, unindexed_max| {
        let query = LogQuery::new(vec![Address::ZERO], Vec::new());
        let search = view.search_logs(&query, range(first, last), unindexed_max);
        search.unindexed_end().map(BlockNumber::get)
    };
    let view = shelf.view();
    assert_eq!(ends(&view, 8100, 8300, 200), Some(8300));
    assert_eq!(ends(&view, 8100, 8300, 201), None);
    assert_eq!(ends(&view, 8250, 8300, 0), Some(8250));
    // The ranges are not counted as one.
    assert_eq!(ends(&view, 8200, 16_500, 150), Some(16_349));
    let all = LogQuery::new(Vec::new(), Vec::new());
    assert_eq!(view.search_logs(&all, range(8100, 8300), 0).unindexed_end(), None);
    // A file that is passed over tells of no block.
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    assert_eq!(ends(&shelf.view(), 0, 300, 0), None);
    shelf.disk.remove(&log_runs(&shelf)[0]).unwrap();
    let store = open_store(&shelf.disk, Limits::default()).unwrap();
    store.pass_over_missing().unwrap();
    assert_eq!(ends(&store.view(), 0, 300, 7), Some(7));
}

#[test]
fn without_a_run_blocks_are_read_and_with_a_damaged_one_it_is_named() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let name = log_runs(&shelf).remove(0);
    let bytes = shelf.disk.read(&name, 1 << 20).unwrap();
    // Of the head of the file: a bucket.
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3] ^= 1;
    shelf.disk.write(&name, &damaged).unwrap();
    let store = open_store(&shelf.disk, Limits::default()).unwrap();
    let view = store.view();
    let query = LogQuery::new((0..=255).map(Address::repeat_byte).collect(), Vec::new());
    let mut search = view.search_logs(&query, range(0, 300), u64::MAX);
    let mut reader = Reader::new().unwrap();
    let error = loop {
        let found = block_on(search.next_rows(&mut reader));
        match found.map(|rows| rows.is_some()) {
            Ok(true) => {}
            Ok(false) => panic!("one of all buckets is damaged, and nothing was found to be"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains(&name), "{error}");
    assert!(check_all(&view).unwrap_err().to_string().contains(&name));
    shelf.disk.remove(&name).unwrap();
    let store = open_store(&shelf.disk, Limits::default()).unwrap();
    store.pass_over_missing().unwrap();
    let faults = store.faulty_files();
    assert!(faults.len() == 1 && faults[0].text.contains("block by block"), "{faults:?}");
    assert_eq!(store.view().missing_runs().count(), 0, "no hash is missing");
    shelf.check_view(&store.view(), &shelf.sealed).unwrap();
}

#[test]
fn a_run_that_is_damaged_or_gone_is_derived_again_when_its_slot_changes() {
    for is_gone in [false, true] {
        let mut shelf = Shelf::new(range(0, 300));
        shelf.bring(&[whole(0, 200)]).unwrap();
        let name = log_runs(&shelf).remove(0);
        if is_gone {
            shelf.disk.remove(&name).unwrap();
        } else {
            let mut bytes = shelf.disk.read(&name, 1 << 20).unwrap();
            bytes[0] ^= 1;
            shelf.disk.write(&name, &bytes).unwrap();
        }
        shelf.bring(&[whole(201, 300)]).unwrap();
        shelf.check();
    }
}

/// A run whose bytes are in order, but not what the blocks give.
#[test]
fn a_false_index_does_not_pass_the_check() {
    let mut shelf = Shelf::new(range(0, 60));
    shelf.bring(&[whole(0, 60)]).unwrap();
    let held = shelf.view().manifest().runs_of(RunSubject::Logs).next().cloned().unwrap();
    let logs_of = |numbers: &[u64]| {
        let mut builder = PostingsBuilder::new(0);
        for number in numbers {
            builder.push_logs(&get(shelf.truth[number], true)).unwrap();
        }
        builder
    };
    let all: Vec<u64> = (0..=60).collect();
    let less: Vec<u64> = (0..=60).filter(|number| *number != 31).collect();
    let mut moved = logs_of(&less);
    for index in 0..logs_of(&all).sum().count - logs_of(&less).sum().count {
        let key = IndexKey::of(KeyKind::Topic3, &index.to_be_bytes());
        moved.push(key, 30, 0).unwrap();
    }
    for (false_logs, expected) in
        [(logs_of(&less), "number of postings"), (moved, "set of the postings")]
    {
        let bytes = false_logs.finish().unwrap();
        let digest = B256::from_slice(&Sha256::digest(&bytes));
        let span = RunSpan::new(0, 1).unwrap();
        let file_name = run_name(RunSubject::Logs, span, digest);
        shelf.disk.write(&file_name, &bytes).unwrap();
        let length = u64::try_from(bytes.len()).unwrap();
        let entry = RunEntry { subject: RunSubject::Logs, span, file_name, bytes: length, digest };
        let view = shelf.view();
        let edit =
            Edit { runs: vec![entry], gone: [held.file_name.clone()].into(), ..Edit::default() };
        let disk = FaultyDisk::new(1);
        for name in shelf.disk.list().unwrap() {
            disk.write(&name, &shelf.disk.read(&name, 1 << 20).unwrap()).unwrap();
        }
        disk.write(MANIFEST_NAME, &view.manifest().edited(edit).unwrap().encode()).unwrap();
        let store = open_store(&disk, Limits::default()).unwrap();
        let error = check_all(&store.view()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    check_all(&shelf.view()).unwrap();
}
