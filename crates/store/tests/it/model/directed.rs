//! What random runs reach only by luck, and what they found: each told as a test of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use chain::BlockNumber;
use chain::trust::Anchors;
use store::disk::Disk as _;
use store::genesis_file::read_recorded_genesis;
use store::head::HeadLimits;
use store::journal::unlisted_segments;
use store::layout::{HeldRange, plan_segments};
use store::manifest::{MANIFEST_NAME, Manifest, SegmentEntry};
use store::names::GENESIS_NAME;
use store::read::block_on;
use store::repair::{ChainFacts, ProvenSegment, Repair};
use store::{CommitFacts, Limits, Reader, StoreError};
use testing::blocks::spec;
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

use super::blocks::{Place, branch, get};
use super::shelf::{Shelf, bare, open_store, range, truth, whole};
use super::world::is_part;
use segment::{RowParts, TxIndex};

const NAMES: Crash = Crash { may_tear_writes: false, may_keep_names: true };

fn run_names(shelf: &Shelf) -> Vec<String> {
    shelf.view().manifest().runs().iter().map(|entry| entry.file_name.clone()).collect()
}

fn with_head(shelf: &mut Shelf) {
    let recovery = shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    assert!(!recovery.has_damage(), "{recovery:?}");
}

/// The final blocks of a range, for the head.
fn blocks(
    shelf: &Shelf,
    first: u64,
    last: u64,
    has_receipts: bool,
) -> Vec<chain::Verified<chain::Block>> {
    (first..=last).map(|number| get(shelf.truth[&number], has_receipts)).collect()
}

#[test]
fn blocks_that_come_below_others_of_their_slot_move_the_ordinals_of_those() {
    let mut shelf = Shelf::new(range(0, 700));
    shelf.bring(&[whole(600, 620)]).unwrap();
    let stays = shelf.view().manifest().segments()[0].file_name.clone();
    for held in [whole(300, 310), whole(0, 9), whole(650, 660), whole(311, 320), bare(10, 12)] {
        shelf.bring(&[held]).unwrap();
        shelf.check();
    }
    assert!(
        shelf.data_names().contains(&stays),
        "a segment that does not change is not built anew"
    );
}

#[test]
fn a_run_stays_when_no_block_of_its_slots_comes_or_only_receipts_do() {
    let mut shelf = Shelf::new(range(8000, 8400));
    shelf.bring(&[bare(8000, 8191)]).unwrap();
    let runs = run_names(&shelf);
    shelf.bring(&[whole(8192, 8300)]).unwrap();
    let both = run_names(&shelf);
    // Without receipts there is nothing to say of logs.
    assert_eq!((runs.len(), both.len()), (2, 5));
    assert!(runs.iter().all(|name| both.contains(name)));
    shelf.bring(&[whole(8000, 8191)]).unwrap();
    let with_receipts = run_names(&shelf);
    let changed: Vec<&String> = with_receipts.iter().filter(|it| !both.contains(it)).collect();
    assert!(changed.len() == 1 && changed[0].starts_with("lookup-logs-000000"), "{changed:?}");
    shelf.check();
}

#[test]
fn blocks_without_transactions_can_get_their_receipts_later() {
    // They have the same pages with receipts and without: only the footer tells.
    let mut shelf = Shelf::new(range(0, 12));
    shelf.bring(&[bare(3, 3)]).unwrap();
    let before = (shelf.view(), shelf.sealed.clone());
    shelf.bring(&[whole(3, 3)]).unwrap();
    shelf.check_view(&before.0, &before.1).unwrap();
    drop(before);
    shelf.check();
    shelf.bring(&[bare(0, 12)]).unwrap();
    shelf.check();
}

#[test]
fn blocks_that_arrive_without_receipts_leave_those_that_are_held() {
    let mut shelf = Shelf::new(range(0, 100));
    shelf.bring(&[whole(20, 40)]).unwrap();
    // The segment is built anew for its neighbours, and block 30 arrives again with less.
    shelf.bring(&[whole(41, 50), bare(10, 45)]).unwrap();
    shelf.check();
}

#[test]
fn a_segment_that_was_built_before_others_came_is_refused() {
    let mut shelf = Shelf::new(range(0, 300));
    let block = |number: BlockNumber| Some(get(shelf.truth[&number.get()], true));
    let stale = shelf.writer.build(whole(100, 200), &block).unwrap();
    shelf.bring(&[whole(201, 255)]).unwrap();
    let before = shelf.files();
    let refusal = shelf.writer.commit(vec![stale], CommitFacts::default()).unwrap_err();
    assert!(matches!(refusal, StoreError::Outdated { .. }), "{refusal}");
    assert_eq!(shelf.files(), before);
    shelf.bring(&[whole(100, 200)]).unwrap();
    shelf.check_view(&shelf.view(), &shelf.sealed).unwrap();
}

#[test]
fn superseded_files_go_with_the_last_view_that_lists_them() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 50)]).unwrap();
    let first = (shelf.view(), shelf.sealed.clone(), shelf.files());
    shelf.bring(&[whole(51, 100)]).unwrap();
    let second = (shelf.view(), shelf.sealed.clone(), shelf.files());
    shelf.bring(&[whole(101, 255)]).unwrap();
    let third = shelf.files();
    let found = |shelf: &Shelf| shelf.data_names();
    assert_eq!(found(&shelf).len(), 12, "three states of a segment and three runs");
    shelf.check_view(&second.0, &second.1).unwrap();
    drop(second);
    let expected: BTreeSet<&String> = first.2.keys().chain(third.keys()).collect();
    assert!(found(&shelf).iter().eq(expected));
    // Not one of its files was open before they were superseded.
    shelf.check_view(&first.0, &first.1).unwrap();
    drop(first);
    shelf.check();
}

#[test]
fn tails_are_closed_when_memory_is_short_and_opened_again() {
    for tail_bytes_max in [0, 1, 6_000] {
        let limits = Limits { tail_bytes_max, run_bytes_max: tail_bytes_max, ..Limits::default() };
        let chain = truth(range(7900, 8500), b'a');
        let mut shelf = Shelf::open(FaultyDisk::new(1), chain, limits).unwrap();
        shelf.bring(&[whole(7900, 8100), bare(8101, 8300)]).unwrap();
        let before = (shelf.view(), shelf.sealed.clone());
        shelf.check_view(&before.0, &before.1).unwrap();
        shelf.bring(&[whole(8101, 8500)]).unwrap();
        shelf.check_view(&shelf.view(), &shelf.sealed).unwrap();
        // Files that are superseded and closed can still be opened.
        shelf.check_view(&before.0, &before.1).unwrap();
        drop(before);
        shelf.check();
    }
}

/// Seen: with more segments than descriptors half of the reads failed for good.
#[test]
fn segments_are_closed_when_descriptors_are_short_and_opened_again() {
    let mut shelf = Shelf::new(range(0, 2600));
    for first in (0..2560).step_by(512) {
        shelf.bring(&[whole(first, first + 9)]).unwrap();
    }
    let count = shelf.view().manifest().segments().len();
    assert_eq!(count, 5);
    let runs = shelf.view().manifest().runs().len();
    // By count, and where others took the descriptors that should be there.
    for (open_segments_max, descriptors) in [(1, 2), (2, 3), (512, 2), (512, 1)] {
        shelf.disk.set_open_files_max(descriptors + runs);
        let limits = Limits { open_segments_max, ..Limits::default() };
        let store = open_store(&shelf.disk, limits).unwrap();
        shelf.check_view(&store.view(), &shelf.sealed).unwrap();
    }
    shelf.disk.set_open_files_max(0);
    let store = open_store(&shelf.disk, Limits::default()).unwrap();
    let mut reader = Reader::new().unwrap();
    let refused = block_on(store.view().read_hash(&mut reader, BlockNumber(3))).unwrap_err();
    let is_told = matches!(&refused, StoreError::Disk(error) if error.is_out_of_descriptors());
    assert!(is_told, "{refused}");
}

#[test]
fn another_process_sees_files_gone_and_then_the_new_ones() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 50)]).unwrap();
    let reader = open_store(&shelf.disk, Limits::default()).unwrap();
    assert!(!reader.refresh().unwrap());
    let before = (reader.view(), shelf.sealed.clone());
    let open = open_store(&shelf.disk, Limits::default()).unwrap();
    shelf.check_view(&open.view(), &before.1).unwrap();
    shelf.bring(&[whole(51, 100)]).unwrap();
    // What was open stays open; what was not is gone, and that is an error and not an answer.
    shelf.check_view(&open.view(), &before.1).unwrap();
    let mut buffers = Reader::new().unwrap();
    let hash = shelf.truth[&20];
    for outcome in [
        block_on(before.0.read_block(&mut buffers, BlockNumber(20), RowParts::Receipt)).map(|_| ()),
        block_on(before.0.find_block(&mut buffers, hash)).map(|_| ()),
    ] {
        assert!(matches!(outcome, Err(StoreError::Disk(error)) if error.is_missing()));
    }
    assert!(reader.refresh().unwrap());
    shelf.check_view(&reader.view(), &shelf.sealed).unwrap();
}

#[test]
fn a_file_whose_writing_failed_is_removed() {
    let mut failed = 0;
    for at in 0..6 {
        for failure in [DiskFailure::NoSpace, DiskFailure::Io] {
            let mut shelf = Shelf::new(range(0, 20));
            shelf.disk.fail_after(at, failure);
            failed += u32::from(shelf.bring(&[whole(0, 20)]).is_err());
            let names = shelf.data_names();
            assert!(names.iter().all(|name| !is_part(name)), "{at}: {names:?}");
        }
    }
    assert_eq!(failed, 12, "every one of six operations");
}

/// A folder whose manifest was exchanged, but the name of the new one was not made durable.
fn after_a_failed_commit() -> Shelf {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 50)]).unwrap();
    let begun = shelf.disk.operation_count();
    let mut other = Shelf::new(range(0, 300));
    other.bring(&[whole(0, 50)]).unwrap();
    other.bring(&[whole(51, 100)]).unwrap();
    // The last operations are the fsync of the folder, the removal of a segment and three runs, and
    // three that settle the journal.
    shelf.disk.fail_after(other.disk.operation_count() - begun - 8, DiskFailure::Io);
    let error = shelf.bring(&[whole(51, 100)]).unwrap_err().to_string();
    assert!(error.contains("fsync of the folder"), "{error}");
    assert_eq!(shelf.view().coverage(), [range(0, 100)], "it is the manifest of the folder");
    shelf
}

#[test]
fn what_is_tried_again_after_a_failed_fsync_is_made_durable() {
    let mut shelf = after_a_failed_commit();
    shelf.bring(&[whole(51, 100)]).unwrap();
    let shelf = shelf.crashed(Crash::default());
    assert_eq!(shelf.view().coverage(), [range(0, 100)]);
    shelf.check();
}

#[test]
fn opening_makes_the_manifest_durable_before_it_removes_what_is_not_listed() {
    for seed in 0..8 {
        let shelf = after_a_failed_commit();
        let (disk, chain) = (shelf.disk.clone(), shelf.truth.clone());
        drop(shelf);
        for at in 0..8 {
            disk.stop_after(at + seed % 2);
            drop(Shelf::open(disk.clone(), chain.clone(), Limits::default()));
            disk.crash(NAMES);
            // Whichever manifest it is, its files are there.
            let shelf = Shelf::open(disk.clone(), chain.clone(), Limits::default()).unwrap();
            shelf.check();
        }
    }
}

/// Takes the manifest back to what it was, as somebody does who restores it from a backup.
fn restore_manifest(disk: &FaultyDisk, bytes: &[u8]) {
    disk.write(MANIFEST_NAME, bytes).unwrap().fsync().unwrap();
}

fn segment_names(shelf: &Shelf) -> Vec<String> {
    shelf.view().manifest().segments().iter().map(|entry| entry.file_name.clone()).collect()
}

#[test]
fn a_segment_that_an_older_manifest_does_not_list_is_left_alone_and_told() {
    let mut shelf = Shelf::new(range(8000, 8500));
    shelf.bring(&[whole(8000, 8100)]).unwrap();
    let older = shelf.disk.read(MANIFEST_NAME, 1 << 20).unwrap();
    shelf.bring(&[whole(8192, 8300)]).unwrap();
    let newest = segment_names(&shelf).pop().unwrap();
    let (disk, chain) = (shelf.disk.clone(), shelf.truth.clone());
    drop(shelf);
    let bytes = disk.read(&newest, 1 << 30).unwrap();
    restore_manifest(&disk, &older);
    // Whoever opens the folder, changes it, and crashes on the way, leaves the only copy where it is.
    let mut shelf = Shelf::open(disk.clone(), chain.clone(), Limits::default()).unwrap();
    assert_eq!(shelf.writer.unaccounted(), [newest.as_str()]);
    assert_eq!(unlisted_segments(&disk).unwrap(), [newest.as_str()]);
    shelf.bring(&[whole(8101, 8120)]).unwrap();
    let shelf = shelf.crashed(NAMES);
    assert_eq!(shelf.writer.unaccounted(), [newest.as_str()]);
    assert_eq!(disk.read(&newest, 1 << 30).unwrap(), bytes);
}

#[test]
fn a_crash_while_the_genesis_file_is_replaced_never_leaves_one_that_is_refused() {
    let kept = |disk: &FaultyDisk| {
        let manifest = Manifest::load(disk).unwrap().unwrap();
        (read_recorded_genesis(disk, &manifest).unwrap().unwrap(), manifest.genesis_file())
    };
    for step in 0.. {
        let disk = FaultyDisk::new(step);
        let chain = truth(range(0, 10), b'a');
        let mut shelf = Shelf::open(disk.clone(), chain.clone(), Limits::default()).unwrap();
        shelf.writer.keep_genesis(b"old").unwrap();
        disk.stop_after(step);
        let is_done = shelf.writer.keep_genesis(b"new").is_ok();
        let shelf = shelf.crashed(NAMES);
        let (found, _) = kept(&disk);
        assert!(found == b"new" || (found == b"old" && !is_done), "step {step}");
        drop(shelf);
        // The next writer records what is there.
        let mut shelf = Shelf::open(disk.clone(), chain, Limits::default()).unwrap();
        shelf.writer.adopt_genesis().unwrap();
        assert!(kept(&disk).1.is_some(), "step {step}");
        disk.write(GENESIS_NAME, b"other").unwrap();
        let refused = read_recorded_genesis(&disk, shelf.view().manifest()).unwrap_err();
        assert!(matches!(refused, StoreError::GenesisFile { .. }), "{refused}");
        if is_done {
            assert!(step > 8, "three files are replaced");
            return;
        }
    }
}

#[test]
fn a_repair_leaves_out_a_segment_of_another_chain_id() {
    let mut shelf = Shelf::new(range(8000, 8500));
    shelf.bring(&[whole(8000, 8100), whole(8192, 8300)]).unwrap();
    let (disk, names) = (shelf.disk.clone(), segment_names(&shelf));
    drop(shelf);
    disk.remove(MANIFEST_NAME).unwrap();
    let mut repair = Repair::begin(Arc::new(disk.clone())).unwrap().unwrap();
    for (position, chain_id) in [(0, Some(1)), (1, Some(2))] {
        repair.take(position, Ok(ProvenSegment { difficulty: U256::ZERO, chain_id })).unwrap();
    }
    let left_out = repair.left_out();
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!((&left_out[0].file_name, left_out[0].is_superseded), (&names[1], false));
    assert!(left_out[0].reason.contains("chain id is 2"), "{left_out:?}");
    let repaired = repair.finish(&spec(), &ChainFacts::default()).unwrap();
    assert_eq!(repaired.manifest.coverage(), [range(8000, 8100)]);
    assert!(disk.list().unwrap().contains(&names[1]));
}

#[test]
fn a_repair_without_a_manifest_remembers_what_the_journal_names_and_nobody_has() {
    let mut shelf = Shelf::new(range(8000, 8500));
    shelf.bring(&[whole(8000, 8100)]).unwrap();
    let disk = shelf.disk.clone();
    drop(shelf);
    disk.remove(MANIFEST_NAME).unwrap();
    let gone = "blocks-0000008050-0000008191-0011223344556677.segment";
    let text = format!("quipu journal 1\n{gone}\n");
    let checksum = crc32fast::hash(text.as_bytes());
    disk.write("journal", format!("{text}checksum {checksum:08x}\n").as_bytes()).unwrap();
    let mut repair = Repair::begin(Arc::new(disk.clone())).unwrap().unwrap();
    repair.take(0, Ok(ProvenSegment::default())).unwrap();
    let repaired = repair.finish(&spec(), &ChainFacts::default()).unwrap();
    assert_eq!(repaired.manifest.coverage(), [range(8000, 8100)]);
    assert_eq!(repaired.manifest.lost(), [range(8101, 8191)]);
}

#[test]
fn a_commit_over_an_unaccounted_segment_keeps_it_at_every_crash() {
    let prepare = |seed| {
        let chain = truth(range(0, 300), b'a');
        let mut shelf = Shelf::open(FaultyDisk::new(seed), chain, Limits::default()).unwrap();
        let older = shelf.disk.read(MANIFEST_NAME, 1 << 20).unwrap();
        shelf.bring(&[whole(0, 255)]).unwrap();
        let name = segment_names(&shelf).pop().unwrap();
        let (disk, chain) = (shelf.disk.clone(), shelf.truth.clone());
        drop(shelf);
        restore_manifest(&disk, &older);
        (Shelf::open(disk, chain, Limits::default()).unwrap(), name)
    };
    let (mut shelf, name) = prepare(1);
    let begun = shelf.disk.operation_count();
    shelf.bring(&[whole(0, 255)]).unwrap();
    for at in 0..shelf.disk.operation_count() - begun {
        let (mut shelf, _) = prepare(at);
        shelf.disk.stop_after(at);
        let _ = shelf.bring(&[whole(0, 255)]);
        let mut shelf = shelf.crashed(Crash { may_tear_writes: true, may_keep_names: true });
        assert!(shelf.data_names().contains(&name), "stopped after {at}");
        shelf.bring(&[whole(0, 255)]).unwrap();
        shelf.check();
        assert_eq!(unlisted_segments(&shelf.disk).unwrap(), [""; 0], "stopped after {at}");
    }
}

#[test]
fn a_retired_segment_that_a_reader_held_until_its_end_goes_with_the_next_writer() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 50)]).unwrap();
    let (retired, kept) = (segment_names(&shelf), shelf.view());
    shelf.bring(&[whole(51, 100)]).unwrap();
    assert!(shelf.data_names().contains(&retired[0]));
    assert_eq!(unlisted_segments(&shelf.disk).unwrap(), [""; 0], "it is accounted for");
    shelf.disk.stop_after(0); // the process is killed with the view
    drop(kept);
    let shelf = shelf.crashed(NAMES);
    assert_eq!(shelf.writer.unaccounted(), [""; 0]);
    shelf.check();
}

#[test]
fn a_seal_takes_what_is_held_when_finality_is_ahead_of_it() {
    let mut shelf = Shelf::new(range(0, 700));
    with_head(&mut shelf);
    let blocks = blocks(&shelf, 0, 300, true);
    shelf.writer.extend(blocks).unwrap();
    assert_eq!(shelf.writer.seal(BlockNumber(254), CommitFacts::default()).unwrap(), None);
    assert_eq!(
        shelf.writer.seal(BlockNumber(600), CommitFacts::default()).unwrap(),
        Some(range(0, 255))
    );
    assert_eq!(shelf.writer.seal(BlockNumber(600), CommitFacts::default()).unwrap(), None);
    assert_eq!(shelf.view().coverage(), [range(0, 300)]);
    assert_eq!(shelf.view().head().blocks().len(), 45);
}

#[test]
fn receipts_of_a_segment_are_read_where_the_head_has_none() {
    let mut shelf = Shelf::new(range(0, 300));
    with_head(&mut shelf);
    let bare_blocks = blocks(&shelf, 0, 299, false);
    shelf.writer.extend(bare_blocks).unwrap();
    shelf.bring(&[whole(100, 120)]).unwrap();
    let view = shelf.view();
    assert_eq!(view.coverage_receipts(), [range(100, 120)]);
    let mut reader = Reader::new().unwrap();
    for (number, has_receipts) in [(98, false), (100, true), (119, true), (121, false)] {
        let found = block_on(view.read_transaction(
            &mut reader,
            BlockNumber(number),
            TxIndex(0),
            RowParts::Receipt,
        ))
        .unwrap()
        .unwrap();
        assert_eq!(found.row.view().receipt.is_some(), has_receipts, "block {number}");
        let hash = keccak256(found.row.view().encoded);
        let by_hash =
            block_on(view.find_transaction(&mut reader, hash, RowParts::Receipt)).unwrap();
        assert_eq!(by_hash, Some(found));
        let candidate =
            block_on(view.read_candidate(&mut reader, BlockNumber(number))).unwrap().unwrap();
        assert_eq!(candidate.receipts.is_some(), has_receipts, "block {number}");
    }
    // And they stay when the rest is sealed beside them, some of it with receipts.
    let again = blocks(&shelf, 121, 299, true);
    shelf.writer.reorg(shelf.truth[&120], again).unwrap();
    assert_eq!(
        shelf.writer.seal(BlockNumber(255), CommitFacts::default()).unwrap(),
        Some(range(0, 255))
    );
    assert_eq!(shelf.view().coverage_receipts(), [range(100, 299)]);
}

/// A head of blocks 200 to 300, whose log has a reorg to other blocks that failed.
fn after_a_failed_reorg() -> Shelf {
    let mut shelf = Shelf::new(range(200, 300));
    with_head(&mut shelf);
    let main = blocks(&shelf, 200, 300, true);
    shelf.writer.extend(main).unwrap();
    let fork_point = shelf.truth[&219];
    let other = branch(Place::above(219, fork_point), b'b', 60);
    let other = other.into_iter().map(|hash| get(hash, true)).collect();
    // The folder is looked at, and two reads compare the log with what was written. Then the log is
    // opened, the batch is appended, and its fsync fails.
    shelf.disk.fail_after(5, DiskFailure::NoSpace);
    let error = shelf.writer.reorg(fork_point, other).unwrap_err().to_string();
    assert!(error.contains("fsync"), "{error}");
    shelf
}

#[test]
fn a_reorg_that_failed_cannot_come_back_against_what_was_sealed_after_it() {
    let mut shelf = after_a_failed_reorg();
    let begun = shelf.disk.operation_count();
    shelf.writer.seal(BlockNumber(300), CommitFacts::default()).unwrap();
    let operations = shelf.disk.operation_count() - begun;
    for at in 0..=operations {
        let mut shelf = after_a_failed_reorg();
        shelf.disk.stop_after(at);
        let is_done = shelf.writer.seal(BlockNumber(300), CommitFacts::default()).is_ok();
        let mut shelf = shelf.crashed(Crash { may_tear_writes: true, may_keep_names: true });
        with_head(&mut shelf);
        let view = shelf.view();
        if is_done || !view.manifest().segments().is_empty() {
            assert_eq!(view.coverage(), [range(200, 300)], "stopped after {at}");
            let hashes: Vec<B256> = view.head().blocks().iter().map(|block| block.hash()).collect();
            assert!(hashes.iter().eq(shelf.truth.range(256..).map(|(_, hash)| hash)));
        }
    }
}

#[test]
fn a_plan_of_everything_that_is_held_builds_nothing() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 100), bare(101, 300)]).unwrap();
    let held: Vec<HeldRange> =
        shelf.view().manifest().segments().iter().map(SegmentEntry::held).collect();
    assert_eq!(plan_segments(&held), held);
    assert_eq!(shelf.writer.plan(&held), []);
    assert_eq!(shelf.writer.plan(&[bare(0, 300)]), []);
    assert_eq!(shelf.writer.plan(&[whole(90, 100)]), []);
    assert_eq!(shelf.writer.plan(&[whole(101, 101)]), [whole(0, 101), bare(102, 255)]);
}

#[test]
fn a_folder_in_which_any_segment_is_of_a_development_build_is_refused() {
    let mut shelf = Shelf::new(range(0, 600));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let (disk, name) = (shelf.disk.clone(), segment_names(&shelf).pop().unwrap());
    drop(shelf);
    let mut bytes = disk.read(&name, 1 << 30).unwrap();
    let footer = bytes.len() - segment::FOOTER_BYTES;
    bytes[footer..footer + 8].copy_from_slice(b"QUIPUSEG");
    disk.write(&name, &bytes).unwrap();
    let refused = open_store(&disk, Limits::default()).unwrap_err();
    let StoreError::Segment { file, cause: segment::Corrupt::Unreleased } = refused else {
        panic!("{refused}");
    };
    assert!(file.ends_with(&name), "{file}");
}

/// The operations of the disk that something takes.
fn operations(disk: &FaultyDisk, act: impl FnOnce()) -> u64 {
    let before = disk.operation_count();
    act();
    disk.operation_count() - before
}

/// Seen: the footer of every segment was read twice when a server started.
#[test]
fn what_was_looked_at_when_the_folder_was_opened_is_not_looked_at_again() {
    let counts = [1, 5].map(|count: u64| {
        let mut shelf = Shelf::new(range(0, 2600));
        for number in 0..count {
            shelf.bring(&[whole(512 * number, 512 * number + 9)]).unwrap();
        }
        let store = open_store(&shelf.disk, Limits::default()).unwrap();
        operations(&shelf.disk, || store.pass_over_missing().unwrap())
    });
    assert_eq!(counts[0], counts[1], "the runs, however many segments there are");
}

/// A view of a file that is gone is taken over by one without it, also while a writer shows others.
#[test]
fn files_that_cannot_be_read_are_passed_over_while_a_writer_goes_on() {
    let mut shelf = Shelf::new(range(0, 700));
    shelf.bring(&[whole(0, 511)]).unwrap();
    let gone = shelf.view().manifest().segments()[0].clone();
    let bytes = shelf.disk.read(&gone.file_name, 1 << 30).unwrap();
    shelf.store.pass_over_missing().unwrap();
    let mut reader = Reader::new().unwrap();
    let mut read = |shelf: &Shelf, number| {
        let header = block_on(shelf.view().read_header(&mut reader, BlockNumber(number)));
        header.map(|header| header.is_some())
    };
    shelf.disk.remove(&gone.file_name).unwrap();
    assert!(read(&shelf, 3).is_err());
    assert!(shelf.store.pass_over_faulty());
    assert_eq!((read(&shelf, 3).unwrap(), read(&shelf, 300).unwrap()), (false, true));
    let faults = shelf.store.faulty_files();
    assert!(faults.len() == 1 && faults[0].text.contains(&gone.file_name), "{faults:?}");
    assert_eq!(shelf.view().coverage(), [range(256, 511)]);
    // Blocks that come meanwhile do not bring it back, nor does looking again.
    shelf.bring(&[whole(512, 700)]).unwrap();
    shelf.store.look_at_faulty();
    assert_eq!(shelf.view().coverage(), [range(256, 700)]);
    shelf.disk.write(&gone.file_name, &bytes[..bytes.len() - 1]).unwrap();
    shelf.store.look_at_faulty();
    assert_eq!(shelf.view().coverage(), [range(256, 700)]);
    shelf.disk.write(&gone.file_name, &bytes).unwrap();
    shelf.store.look_at_faulty();
    assert!(shelf.store.faulty_files().is_empty());
    shelf.check();
}
