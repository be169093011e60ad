//! Slots of 8192 blocks that become complete, and runs that are merged because of it. All but the
//! last 256 blocks of two slots are built once, for all tests.

use std::sync::OnceLock;

use chain::BlockNumber;
use chain::trust::Anchors;
use segment::{RowParts, SLOT_BLOCKS, TxIndex, YOUNG_SLOT_BLOCKS};
use store::disk::Disk as _;
use store::head::HeadLimits;
use store::layout::HeldRange;
use store::manifest::MANIFEST_NAME;
use store::read::block_on;
use store::{CommitFacts, Limits, NewSegment, Reader, StoreError, View};
use testing::blocks::SPARSE;
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

use super::act::Truth;
use super::blocks::get;
use super::compare::{check_all, lists};
use super::dice::Dice;
use super::shelf::{Image, Shelf, build_at_once, range, truth, whole};
use super::state::Sealed;
use super::world::listed;

const END: u64 = 2 * SLOT_BLOCKS;
/// The first of the blocks that are still to come.
const LAST_FIRST: u64 = END - YOUNG_SLOT_BLOCKS;

/// What all tests begin with, and what all must end with.
struct Prepared {
    truth: Truth,
    /// The folder before the last blocks come.
    before: Image,
    /// Its files after that.
    after: Image,
}

fn prepared() -> &'static Prepared {
    static PREPARED: OnceLock<Prepared> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let truth = truth(range(0, END - 1), SPARSE);
        let disk = FaultyDisk::new(1);
        let mut shelf = Shelf::open(disk.clone(), truth.clone(), Limits::default()).unwrap();
        shelf.bring(&[whole(0, LAST_FIRST - 1)]).unwrap();
        assert_eq!(shelf.view().manifest().segments().len(), 1 + 31);
        let mut before = shelf.files();
        before.insert(MANIFEST_NAME.to_owned(), disk.read(MANIFEST_NAME, 1 << 20).unwrap());
        let after = build_at_once(&all_of(&truth)).unwrap();
        let names: Vec<String> = after.keys().map(|name| name[..24].to_owned()).collect();
        assert_eq!(
            names,
            [
                "blocks-0000000000-000000",
                "blocks-0000008192-000001",
                "lookup-blocks-000000-000",
                "lookup-logs-000000-00000",
                "lookup-transactions-0000"
            ]
        );
        Prepared { truth, before, after }
    })
}

/// All blocks, with receipts.
fn all_of(truth: &Truth) -> Sealed {
    let blocks = truth.iter().map(|(number, hash)| (*number, (*hash, true))).collect();
    Sealed { blocks, ..Sealed::default() }
}

/// A disk that has the folder, all of it durable.
fn disk_before(seed: u64) -> FaultyDisk {
    disk_of(&prepared().before, seed)
}

fn open(disk: &FaultyDisk) -> Shelf {
    Shelf::open(disk.clone(), prepared().truth.clone(), Limits::default()).unwrap()
}

/// The folder is the one that a direct build gives, and finds what it holds.
fn check_complete(shelf: &Shelf) {
    assert!(shelf.files() == prepared().after, "{:?}", shelf.data_names());
    assert!(shelf.data_names().iter().eq(prepared().after.keys()), "{:?}", shelf.data_names());
    let view = shelf.view();
    let mut reader = Reader::new().unwrap();
    for number in (0..END).step_by(97).chain([SLOT_BLOCKS - 1, SLOT_BLOCKS, END - 1]) {
        let block = get(prepared().truth[&number], true);
        assert_eq!(
            block_on(view.find_block(&mut reader, block.hash)).unwrap(),
            Some(BlockNumber(number))
        );
    }
    for number in (3..END).step_by(16 * 13) {
        let block = get(prepared().truth[&number], true);
        let hash = alloy_primitives::keccak256(&block.transactions[0].encoded);
        let found =
            block_on(view.find_transaction(&mut reader, hash, RowParts::Receipt)).unwrap().unwrap();
        assert_eq!((found.block.number, found.index), (BlockNumber(number), TxIndex(0)));
    }
}

/// The last blocks come in pieces, some twice, some first without receipts, or through the head.
fn play(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut shelf = open(&disk_before(seed));
    let through_head = LAST_FIRST + dice.below(YOUNG_SLOT_BLOCKS);
    let mut pieces = Vec::new();
    let mut first = LAST_FIRST;
    while first < through_head {
        let last = (first + dice.below(150)).min(through_head - 1);
        pieces.push(HeldRange { range: range(first, last), has_receipts: !dice.one_in(4) });
        pieces.push(whole(first, last));
        first = last + 1;
    }
    shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    let rest = (through_head..END).map(|number| get(prepared().truth[&number], true));
    shelf.writer.extend(rest.collect()).unwrap();
    // The head is sealed before, between or after what is imported; the last to come completes.
    let mut seal_at = usize::try_from(dice.below(5)).unwrap();
    while !pieces.is_empty() {
        if seal_at == 0 {
            shelf.writer.seal(BlockNumber(END + 5), CommitFacts::default()).unwrap();
        }
        seal_at = seal_at.wrapping_sub(1);
        let position = dice.below(u64::try_from(pieces.len()).unwrap());
        shelf.bring(&[pieces.swap_remove(usize::try_from(position).unwrap())]).unwrap();
    }
    shelf.writer.seal(BlockNumber(END - 1), CommitFacts::default()).unwrap();
    assert!(shelf.view().head().blocks().is_empty());
    // Sealed last, the slot is still in pieces; the merge survives a restart, and may come after it.
    if dice.one_in(2) {
        shelf = shelf.crashed(Crash::default());
    }
    merge_pending(&mut shelf);
    check_complete(&shelf);
    check_complete(&shelf.crashed(Crash::default()));
}

/// Merges what is to be merged, as somebody beside the writer does.
fn merge_pending(shelf: &mut Shelf) {
    for target in shelf.view().manifest().pending_merges() {
        let built = shelf.writer.build(target, &|_| None).unwrap();
        let prepared = shelf.writer.drafting().prepare(vec![built], &|| false).unwrap();
        shelf.writer.commit_prepared(prepared, CommitFacts::default()).unwrap();
    }
    assert_eq!(shelf.view().manifest().pending_merges(), []);
}

/// A folder whose second slot is held whole and in pieces, as a seal leaves it.
fn pending_image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut shelf = open(&disk_before(1));
        shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        let last = (LAST_FIRST..END).map(|number| get(prepared().truth[&number], true));
        shelf.writer.extend(last.collect()).unwrap();
        shelf.writer.seal(BlockNumber(END - 1), CommitFacts::default()).unwrap();
        check_pending(&shelf.view());
        check_all(&shelf.view()).unwrap();
        let mut image = shelf.files();
        let manifest = shelf.disk.read(MANIFEST_NAME, 1 << 20).unwrap();
        image.insert(MANIFEST_NAME.to_owned(), manifest);
        image
    })
}

/// The second slot is in its 32 pieces, with lookups of its own.
fn check_pending(view: &View) {
    let manifest = view.manifest();
    assert_eq!(manifest.pending_merges(), [whole(SLOT_BLOCKS, END - 1)]);
    assert_eq!(manifest.segments().len(), 1 + 32);
    let spans: Vec<String> = manifest.runs().iter().map(|run| run.span.to_string()).collect();
    assert_eq!(spans, ["slots 0..0", "slots 1..1"].repeat(3));
    assert!(is_after(view));
}

fn disk_of(image: &Image, seed: u64) -> FaultyDisk {
    let disk = FaultyDisk::new(seed);
    for (name, bytes) in image {
        disk.write(name, bytes).unwrap().fsync().unwrap();
    }
    disk.fsync_folder().unwrap();
    disk
}

#[test]
fn a_seal_that_completes_a_slot_builds_one_young_segment_and_leaves_the_merge_to_others() {
    let mut shelf = open(&disk_of(pending_image(), 1));
    check_pending(&shelf.view());
    // Whoever writes meanwhile leaves the pieces as they are.
    shelf.writer.commit(Vec::new(), CommitFacts::default()).unwrap();
    check_pending(&shelf.view());
    assert_eq!(shelf.writer.plan(&[]), []);
    let names = |image: &Image| image.keys().cloned().collect::<Vec<_>>();
    let mut found = shelf.files();
    found.insert(MANIFEST_NAME.to_owned(), shelf.disk.read(MANIFEST_NAME, 1 << 20).unwrap());
    assert!(found == *pending_image(), "{:?}", names(&found));
    merge_pending(&mut shelf);
    check_complete(&shelf);
}

#[test]
fn a_crash_at_any_operation_of_a_merge_leaves_the_pieces_or_the_whole() {
    let merge = |shelf: &mut Shelf, segment: NewSegment| -> Result<(), StoreError> {
        let prepared = shelf.writer.drafting().prepare(vec![segment], &|| false)?;
        shelf.writer.commit_prepared(prepared, CommitFacts::default())
    };
    let begin = |seed: u64| {
        let disk = disk_of(pending_image(), seed);
        let shelf = open(&disk);
        let segment = last_segment(&shelf);
        (shelf, segment)
    };
    let (mut shelf, segment) = begin(1);
    let operations_before = shelf.disk.operation_count();
    merge(&mut shelf, segment).unwrap();
    let operations = shelf.disk.operation_count() - operations_before;
    check_complete(&shelf);
    let mut counts = [0; 2];
    for at in 0..=operations {
        for may in [false, true] {
            let (mut shelf, segment) = begin(at);
            shelf.disk.stop_after(at);
            let is_done = merge(&mut shelf, segment).is_ok();
            let shelf = shelf.crashed(Crash { may_tear_writes: may, may_keep_names: may });
            let is_merged = shelf.view().manifest().pending_merges().is_empty();
            assert!(is_merged || !is_done, "acknowledged and lost, stopped after {at}");
            counts[usize::from(is_merged)] += 1;
            let view = shelf.view();
            if is_merged {
                check_complete(&shelf);
            } else {
                check_pending(&view);
            }
            let listed: Vec<String> = listed(&view).collect();
            assert_eq!(shelf.data_names(), listed.into_iter().collect(), "stopped after {at}");
        }
    }
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

#[test]
fn an_error_at_any_operation_of_a_merge_leaves_the_pieces_and_can_be_tried_again() {
    let disk = disk_of(pending_image(), 1);
    let mut shelf = open(&disk);
    let segment = last_segment(&shelf);
    let begun = shelf.disk.operation_count();
    let prepared = shelf.writer.drafting().prepare(vec![segment], &|| false).unwrap();
    shelf.writer.commit_prepared(prepared, CommitFacts::default()).unwrap();
    for at in 0..shelf.disk.operation_count() - begun {
        let disk = disk_of(pending_image(), at);
        let mut shelf = open(&disk);
        let segment = last_segment(&shelf);
        disk.fail_after(at, if at % 2 == 0 { DiskFailure::NoSpace } else { DiskFailure::Io });
        let prepared = shelf.writer.drafting().prepare(vec![segment], &|| false);
        let merged =
            prepared.and_then(|it| shelf.writer.commit_prepared(it, CommitFacts::default()));
        if merged.is_err() {
            assert!(is_after(&shelf.view()), "stopped after {at}");
            let prepared =
                shelf.writer.drafting().prepare(vec![last_segment(&shelf)], &|| false).unwrap();
            shelf.writer.commit_prepared(prepared, CommitFacts::default()).unwrap();
        }
        check_complete(&shelf.crashed(Crash::default()));
    }
}

/// Seen: runs that were prepared for nothing were removed by name, also those that another commit had
/// made and listed meanwhile.
#[test]
fn runs_that_were_prepared_for_nothing_leave_those_that_another_commit_made() {
    let mut shelf = open(&disk_of(pending_image(), 1));
    let drafting = shelf.writer.drafting();
    let unused = drafting.prepare(vec![last_segment(&shelf)], &|| false).unwrap();
    let segment = last_segment(&shelf);
    shelf.writer.commit(vec![segment], CommitFacts::default()).unwrap();
    drop(unused);
    check_complete(&shelf);
}

#[test]
fn a_merge_that_is_told_to_stop_leaves_the_pieces_and_can_be_tried_again() {
    let mut stops = 0;
    for at in 0.. {
        let disk = disk_of(pending_image(), at);
        let mut shelf = open(&disk);
        let asked = std::cell::Cell::new(0);
        let is_stopped = || asked.replace(asked.get() + 1) >= at;
        let segment = last_segment(&shelf);
        match shelf.writer.drafting().prepare(vec![segment], &is_stopped) {
            Err(StoreError::Stopped) => stops += 1,
            Err(error) => panic!("{error}"),
            Ok(_) => break,
        }
        assert_eq!(asked.get(), at + 1, "it ended when it was told to");
        check_pending(&shelf.view());
        merge_pending(&mut shelf);
        check_complete(&shelf.crashed(Crash::default()));
    }
    // Between the steps of a run too, and not only between runs.
    assert!(stops > 6, "{stops} places to stop");
}

#[test]
fn a_rewind_into_a_slot_whose_merge_is_pending_leaves_a_folder_that_never_had_it() {
    let mut shelf = open(&disk_of(pending_image(), 1));
    shelf.writer.accept_head_loss().unwrap(); // the image has no log
    shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    let number = LAST_FIRST - 1000;
    shelf.writer.rewind_to(BlockNumber(number), prepared().truth[&number]).unwrap();
    let mut sealed = all_of(&prepared().truth);
    sealed.blocks.retain(|held, _| *held <= number);
    assert!(shelf.files() == build_at_once(&sealed).unwrap(), "{:?}", shelf.data_names());
}

#[test]
fn a_slot_that_becomes_complete_in_any_way_is_the_one_that_is_built_at_once() {
    let given = std::env::var("QUIPU_SLOT_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in given.map_or(0..5, |seed: u64| seed..seed + 1) {
        std::panic::catch_unwind(|| play(seed)).unwrap_or_else(|panic| {
            println!("QUIPU_SLOT_SEED={seed} plays this again");
            std::panic::resume_unwind(panic)
        });
    }
}

#[test]
fn complete_slots_pass_every_check() {
    let mut shelf = open(&FaultyDisk::new(1));
    // The higher slot comes first: its lookups have none below to be merged with.
    shelf.bring(&[whole(SLOT_BLOCKS, END - 1)]).unwrap();
    shelf.bring(&[whole(0, SLOT_BLOCKS - 1)]).unwrap();
    check_complete(&shelf);
    check_all(&shelf.view()).unwrap();
}

/// The segment that completes the second slot, built and not yet listed.
fn last_segment(shelf: &Shelf) -> NewSegment {
    let arriving = |number: BlockNumber| {
        (number.get() >= LAST_FIRST).then(|| get(prepared().truth[&number.get()], true))
    };
    shelf.writer.build(whole(SLOT_BLOCKS, END - 1), &arriving).unwrap()
}

/// A folder in which that segment is built and not yet listed.
fn shelf_with(seed: u64) -> (Shelf, NewSegment) {
    let shelf = open(&disk_before(seed));
    assert_eq!(shelf.writer.plan(&[whole(LAST_FIRST, END - 1)]), [whole(SLOT_BLOCKS, END - 1)]);
    let segment = last_segment(&shelf);
    (shelf, segment)
}

/// Whether the view lists all blocks, or none of the last; anything else is refused.
fn is_after(view: &View) -> bool {
    let mut sealed = all_of(&prepared().truth);
    let is_after = lists(view, &sealed);
    sealed.blocks.retain(|number, _| *number < LAST_FIRST);
    assert!(is_after || lists(view, &sealed), "{:?}", view.manifest().coverage());
    is_after
}

#[test]
fn a_crash_at_any_operation_of_the_commit_that_completes_a_slot_is_harmless() {
    let (mut shelf, segment) = shelf_with(1);
    let begun = shelf.disk.operation_count();
    shelf.writer.commit(vec![segment], CommitFacts::default()).unwrap();
    let operations = shelf.disk.operation_count() - begun;
    check_complete(&shelf);
    let mut counts = [0; 2];
    for at in 0..=operations {
        for may in [false, true] {
            let (mut shelf, segment) = shelf_with(at);
            shelf.disk.stop_after(at);
            let is_done = shelf.writer.commit(vec![segment], CommitFacts::default()).is_ok();
            let shelf = shelf.crashed(Crash { may_tear_writes: may, may_keep_names: may });
            let is_after = is_after(&shelf.view());
            assert!(is_after || !is_done, "acknowledged and lost, stopped after {at}");
            counts[usize::from(is_after)] += 1;
            if is_after {
                check_complete(&shelf);
            } else {
                let listed: Vec<String> = listed(&shelf.view()).collect();
                assert_eq!(shelf.data_names(), listed.into_iter().collect());
                let mut found = shelf.files();
                found.insert(
                    MANIFEST_NAME.to_owned(),
                    shelf.disk.read(MANIFEST_NAME, 1 << 20).unwrap(),
                );
                assert!(found == prepared().before, "stopped after {at}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

#[test]
fn an_error_at_any_operation_of_the_commit_that_completes_a_slot_can_be_tried_again() {
    let (mut shelf, segment) = shelf_with(1);
    let begun = shelf.disk.operation_count();
    shelf.writer.commit(vec![segment], CommitFacts::default()).unwrap();
    for at in 0..shelf.disk.operation_count() - begun {
        let failure = if at % 2 == 0 { DiskFailure::NoSpace } else { DiskFailure::Io };
        let (mut shelf, segment) = shelf_with(at);
        shelf.disk.fail_after(at, failure);
        if shelf.writer.commit(vec![segment], CommitFacts::default()).is_err() {
            is_after(&shelf.view());
            let again = last_segment(&shelf);
            shelf.writer.commit(vec![again], CommitFacts::default()).unwrap();
        }
        check_complete(&shelf.crashed(Crash::default()));
    }
}
