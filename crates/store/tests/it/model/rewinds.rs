//! What a human drops goes, from the head and from segments, and leaves the files of a folder that
//! never had it; and a head finds its place again after others have changed what it stands on.

use chain::BlockNumber;
use chain::trust::Anchors;
use store::head::{HeadError, HeadLimits};
use store::{BlockId, CommitFacts, Finality, Limits, StoreError, View};
use testing::blocks::{SPARSE, spec};
use testing::disk::faulty::{Crash, FaultyDisk};

use super::blocks::{Place, branch, get};
use super::shelf::{Shelf, open_store, range, truth, whole};

fn with_head(shelf: &mut Shelf) {
    let recovery = shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    assert!(recovery.is_clean(), "{recovery:?}");
}

fn rewind(shelf: &mut Shelf, number: u64) {
    shelf.writer.rewind_to(BlockNumber(number), shelf.truth[&number]).unwrap();
    shelf.sealed.blocks.retain(|held, _| *held <= number);
    shelf.check();
}

#[test]
fn sealed_blocks_above_a_number_go_and_the_files_are_those_of_a_folder_that_never_had_them() {
    let mut shelf = Shelf::new(range(0, 800));
    shelf.bring(&[whole(0, 600), whole(700, 800)]).unwrap();
    with_head(&mut shelf);
    for number in [750, 600, 511, 300, 256, 255, 0] {
        rewind(&mut shelf, number);
        assert_eq!(shelf.view().tip(), Some(BlockNumber(number)));
    }
    shelf.bring(&[whole(0, 800)]).unwrap();
    shelf.check();
}

#[test]
fn complete_slots_and_their_common_runs_are_taken_apart() {
    let truth = truth(range(0, 16_390), SPARSE);
    let mut shelf = Shelf::open(FaultyDisk::new(1), truth, Limits::default()).unwrap();
    shelf.bring(&[whole(0, 16_390)]).unwrap();
    with_head(&mut shelf);
    rewind(&mut shelf, 9000);
}

#[test]
fn the_head_goes_before_what_it_stands_on() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let above = (256..=300).map(|number| get(shelf.truth[&number], true)).collect();
    shelf.writer.extend(above).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(300)));
    shelf.writer.rewind_to(BlockNumber(280), shelf.truth[&280]).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(280)));
    rewind(&mut shelf, 200);
    let mut shelf = shelf.crashed(Crash::default());
    with_head(&mut shelf);
    shelf.check();
    // And goes on from there.
    shelf.writer.extend(vec![get(shelf.truth[&201], true)]).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(201)));
}

#[test]
fn blocks_of_the_head_stay_below_a_rewind_whatever_is_sealed_above_them() {
    let kept = [(450, vec![range(0, 400), range(443, 450)]), (400, vec![range(0, 400)])];
    for (number, coverage) in kept.into_iter().chain([
        (350, vec![range(0, 350)]),
        (300, vec![range(0, 300)]),
        (299, vec![range(0, 299)]),
    ]) {
        let mut shelf = Shelf::new(range(0, 600));
        shelf.bring(&[whole(0, 299)]).unwrap();
        with_head(&mut shelf);
        let head = (300..=400).map(|number| get(shelf.truth[&number], true)).collect();
        shelf.writer.extend(head).unwrap();
        shelf.bring(&[whole(443, 599)]).unwrap();
        let gone = shelf.writer.rewind_to(BlockNumber(number), shelf.truth[&number]).unwrap();
        assert_eq!(gone, Some(range(443.max(number + 1), 599)), "to {number}");
        assert_eq!(shelf.view().coverage(), coverage, "to {number}");
        let mut shelf = shelf.crashed(Crash::default());
        with_head(&mut shelf);
        assert_eq!(shelf.view().coverage(), coverage, "to {number}, opened again");
        // The chain goes on above the block.
        if number <= 400 {
            shelf.writer.extend(vec![get(shelf.truth[&(number + 1)], true)]).unwrap();
            assert_eq!(shelf.view().tip(), Some(BlockNumber(number + 1)));
        }
    }
}

#[test]
fn only_a_held_block_with_its_own_hash_can_be_rewound_to() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let refused = shelf.writer.rewind_to(BlockNumber(100), shelf.truth[&101]).unwrap_err();
    assert!(matches!(refused, StoreError::Head(HeadError::NotCanonical { .. })), "{refused}");
    let refused = shelf.writer.rewind_to(BlockNumber(256), shelf.truth[&256]).unwrap_err();
    assert!(matches!(refused, StoreError::NotHeld { number: BlockNumber(256) }), "{refused}");
    shelf.check();
}

#[test]
fn the_first_block_of_a_fresh_head_is_held_against_what_is_sealed() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let stranger = branch(Place::above(255, shelf.truth[&200]), b'x', 1);
    let refused = shelf.writer.extend(vec![get(stranger[0], true)]).unwrap_err();
    assert!(matches!(refused, StoreError::Seam { number: BlockNumber(255), .. }), "{refused}");
    shelf.writer.extend(vec![get(shelf.truth[&256], true)]).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(256)));
}

#[test]
fn an_empty_head_moves_up_when_others_pass_it() {
    let mut shelf = Shelf::new(range(0, 600));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    shelf.writer.begin_head(BlockNumber(255), shelf.truth[&255]).unwrap();
    let mut shelf = shelf.crashed(Crash::default());
    shelf.bring(&[whole(256, 511)]).unwrap();
    with_head(&mut shelf);
    shelf.writer.extend(vec![get(shelf.truth[&512], true)]).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(512)));
}

#[test]
fn a_head_in_whose_place_another_chain_was_sealed_is_left_and_told() {
    let mut shelf = Shelf::new(range(0, 400));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let stale = branch(Place::above(255, shelf.truth[&255]), b'x', 20);
    shelf.writer.extend(stale.iter().map(|hash| get(*hash, true)).collect()).unwrap();
    let mut shelf = shelf.crashed(Crash::default());
    // A writer that does not follow sees the head, and that it is not of the chain that it brings.
    shelf.store.read_head(spec()).unwrap();
    assert_eq!(shelf.view().tip(), Some(BlockNumber(275)));
    shelf.bring(&[whole(256, 300)]).unwrap();
    assert_eq!(
        (shelf.view().tip(), shelf.view().head().tip().is_none()),
        (Some(BlockNumber(300)), true)
    );
    let reader = open_store(&shelf.disk, Limits::default()).unwrap();
    let superseded = reader.read_head(spec()).unwrap().superseded.unwrap();
    assert_eq!((superseded.number, superseded.found), (BlockNumber(275), stale[19]));
    assert_eq!(reader.view().coverage(), [range(0, 300)]);
    let recovery = shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    let superseded = recovery.superseded.unwrap();
    assert_eq!((superseded.number, superseded.sealed), (BlockNumber(275), shelf.truth[&275]));
    shelf.check();
    shelf.writer.extend(vec![get(shelf.truth[&301], true)]).unwrap();
}

/// Seen: the block above a head was sealed with another parent, and its final blocks were gone.
#[test]
fn what_is_final_of_a_head_stays_where_only_its_last_block_is_of_another_branch() {
    let mut shelf = Shelf::new(range(0, 800));
    shelf.bring(&[whole(0, 299)]).unwrap();
    with_head(&mut shelf);
    let losing = branch(Place::above(510, shelf.truth[&510]), b'x', 1);
    let head = (300..511).map(|number| shelf.truth[&number]).chain(losing.clone());
    shelf.writer.extend(head.map(|hash| get(hash, true)).collect()).unwrap();
    let finalized = Some(BlockId { number: BlockNumber(420), hash: shelf.truth[&420] });
    shelf.writer.set_finality(Finality { safe: finalized, finalized }).unwrap();
    shelf.bring(&[whole(512, 767)]).unwrap();
    let coverage = [range(0, 420), range(512, 767)];
    let shown = |view: &View| (view.coverage().to_vec(), view.superseded().map(|it| it.found));
    assert_eq!(shown(&shelf.view()), (coverage.to_vec(), Some(losing[0])));
    let trouble = shelf.store.trouble().unwrap();
    assert!(trouble.contains(&losing[0].to_string()), "{trouble}");
    let above = shelf.truth[&767];
    let refused = shelf.writer.begin_head(BlockNumber(767), above).unwrap_err();
    assert!(matches!(refused, StoreError::HeadInUse), "{refused}");
    // The same to a reader, and after the next start of a follower, which drops the others.
    let mut shelf = shelf.crashed(Crash::default());
    let reader = open_store(&shelf.disk, Limits::default()).unwrap();
    let superseded = reader.read_head(spec()).unwrap().superseded;
    assert_eq!(superseded.map(|it| it.number), Some(BlockNumber(511)));
    assert_eq!((reader.view().coverage(), reader.trouble()), (&coverage[..], None));
    let recovery = shelf.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    assert_eq!(recovery.superseded, superseded);
    assert_eq!(shown(&shelf.view()), (coverage.to_vec(), None));
    let last = shelf.view().final_in_head().unwrap();
    let sealed = shelf.writer.seal_all(last, CommitFacts::default()).unwrap();
    assert_eq!(sealed, Some(range(300, 420)));
    shelf.writer.begin_head(BlockNumber(767), above).unwrap();
    shelf.writer.extend(vec![get(shelf.truth[&768], true)]).unwrap();
    assert_eq!(shelf.view().coverage(), [range(0, 420), range(512, 768)]);
}

#[test]
fn a_rewind_takes_finality_back_to_the_block_that_stays() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let above = (256..=300).map(|number| get(shelf.truth[&number], true)).collect();
    shelf.writer.extend(above).unwrap();
    let id = |shelf: &Shelf, number: u64| BlockId {
        number: BlockNumber(number),
        hash: shelf.truth[&number],
    };
    let told = Finality { safe: Some(id(&shelf, 299)), finalized: Some(id(&shelf, 290)) };
    shelf.writer.set_finality(told).unwrap();
    // Above what is final, below it in the head, and among what is sealed.
    for (number, expected) in [(295, (295, 290)), (280, (280, 280)), (200, (200, 200))] {
        shelf.writer.rewind_to(BlockNumber(number), shelf.truth[&number]).unwrap();
        let (safe, finalized) = (id(&shelf, expected.0), id(&shelf, expected.1));
        let expected = Finality { safe: Some(safe), finalized: Some(finalized) };
        assert_eq!(shelf.writer.finality(), expected);
        shelf = shelf.crashed(Crash::default());
        with_head(&mut shelf);
        assert_eq!(
            (shelf.writer.finality(), shelf.view().tip()),
            (expected, Some(BlockNumber(number)))
        );
    }
    // Another chain may be followed from there.
    let branch = branch(Place::above(200, shelf.truth[&200]), b'x', 5);
    shelf.writer.extend(branch.iter().map(|hash| get(*hash, true)).collect()).unwrap();
}

#[test]
fn what_is_final_counts_for_the_canonical_chain_and_never_for_less_than_is_sealed() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 255)]).unwrap();
    with_head(&mut shelf);
    let above = (256..=270).map(|number| get(shelf.truth[&number], true)).collect();
    shelf.writer.extend(above).unwrap();
    let id =
        |number: u64| Some(BlockId { number: BlockNumber(number), hash: shelf.truth[&number] });
    let of = |safe, finalized| Finality { safe: id(safe), finalized: id(finalized) };
    // What was final once stays so, whatever is told later.
    let finalities = [of(258, 100), of(265, 260), of(258, 100)];
    let other = Finality {
        safe: id(265).map(|it| BlockId { number: BlockNumber(264), ..it }),
        ..of(0, 260)
    };
    let expected = [(258, 255), (265, 260), (260, 260), (260, 260)];
    for (finality, expected) in finalities.into_iter().chain([other]).zip(expected) {
        shelf.writer.set_finality(finality).unwrap();
        let view = shelf.view();
        assert_eq!(
            (view.safe(), view.finalized()),
            (Some(BlockNumber(expected.0)), Some(BlockNumber(expected.1)))
        );
    }
}
