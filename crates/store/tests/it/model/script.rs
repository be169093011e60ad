//! One of everything that a store does, with trouble at every single operation of the disk: what
//! random runs reach only by luck.

use anyhow::{Result, ensure};
use chain::{BlockNumber, BlockRange};
use store::BlockId;
use store::layout::HeldRange;
use testing::disk::faulty::{Crash, DiskFailure};

use super::act::{Act, Learned};
use super::blocks::{Place, branch, first_place};
use super::world::{Scene, Trouble, World};

const FIRST: u64 = 8192 - 20;
const EVERYTHING: Crash = Crash { may_tear_writes: true, may_keep_names: true };
const NOTHING: Crash = Crash { may_tear_writes: false, may_keep_names: false };
const NAMES: Crash = Crash { may_tear_writes: false, may_keep_names: true };

/// The changes: the head grows, is reorganised and gets receipts, final blocks come below it in two
/// pieces that touch, and those of the head are sealed beside them. At last, blocks are sealed above the
/// head, and all is taken back step by step.
fn script() -> Vec<Act> {
    let below = branch(first_place(FIRST), b'a', 12);
    let main = branch(Place::above(FIRST + 11, below[11]), b'a', 12);
    let other = branch(Place::above(FIRST + 17, main[5]), b'b', 8);
    let held = |first: u64, count, has_receipts| HeldRange {
        range: BlockRange::from_count(FIRST + first, count).unwrap(),
        has_receipts,
    };
    let at = |above, hash| BlockId { number: BlockNumber(FIRST + above), hash };
    let import = |held| Act::Import { held: vec![held], told: Learned::default() };
    vec![
        Act::Extend { blocks: main.clone(), has_receipts: true },
        import(held(8, 4, true)),
        Act::Reorg { kept: 6, blocks: other, has_receipts: false },
        import(held(0, 8, false)),
        Act::Switch { tip: main[11] },
        Act::Seal { finalized: BlockNumber(FIRST + 23), told: Learned::default() },
        import(held(0, 8, true)),
        Act::Rewind { kept: 1 },
        Act::SealAbove { blocks: branch(Place::above(FIRST + 20, main[8]), b'c', 6), skipped: 2 },
        Act::RewindTo { block: at(20, main[8]) },
        Act::RewindTo { block: at(5, below[5]) },
    ]
}

/// A store after the first changes of the script, none of which met trouble.
fn world_before(step: usize) -> World {
    let window = BlockRange::from_count(FIRST, 40).unwrap();
    let scene = Scene { window, head_from: Some(FIRST + 12) };
    let mut world = World::new(u64::try_from(step).unwrap(), scene);
    world.reopen().unwrap();
    for act in script().iter().take(step) {
        assert!(world.act(act, Trouble::Nothing).unwrap());
    }
    world
}

/// Plays the script once for every operation of every change, with that trouble there. If the
/// change was not done, it is done again; and at the end the power is cut.
fn check(trouble: impl Fn(u64) -> Trouble, end: Crash) {
    for (step, act) in script().iter().enumerate() {
        let mut untroubled = world_before(step);
        let operations = untroubled.count_operations(|world| {
            world.act(act, Trouble::Nothing).unwrap();
        });
        for at in 0..=operations {
            let mut world = world_before(step);
            let trouble = trouble(at);
            let played = || -> Result<()> {
                let expected = world.expected(act);
                let mut is_done = world.act(act, trouble)?;
                // A process that was killed may have done more than anybody was told.
                let is_kept = matches!(trouble, Trouble::Fail(..));
                if !is_done && (is_kept || !world.is_at(&expected)) {
                    is_done = world.act(act, Trouble::Nothing)?;
                }
                world.cut_with(end)?;
                ensure!(!is_done || world.is_at(&expected), "not there after the last cut");
                Ok(())
            };
            if let Err(error) = { played }() {
                panic!("{act}, {trouble:?}\n{}\nwrong: {error:#}", world.told.join("\n"));
            }
        }
    }
}

#[test]
fn a_crash_at_any_operation_leaves_the_state_before_a_change_or_the_one_after_it() {
    for crash in [NOTHING, EVERYTHING] {
        check(|at| Trouble::Cut(at, crash), NOTHING);
    }
}

#[test]
fn an_error_at_any_operation_can_be_tried_again_and_is_done_for_good() {
    check(|at| Trouble::Fail(at, DiskFailure::NoSpace), NOTHING);
    check(|at| Trouble::Fail(at, DiskFailure::Io), EVERYTHING);
}

#[test]
fn a_process_killed_at_any_operation_leaves_a_folder_that_a_crash_cannot_harm() {
    for end in [NOTHING, NAMES] {
        check(Trouble::Kill, end);
    }
}
