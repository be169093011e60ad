//! The store against a model: random changes on a disk that crashes, fills up, fails and lies, and
//! after each of them the question whether the store still holds what a list of blocks holds.
//!
//! One number decides everything that a run does. When a run fails, its number comes first, then
//! what was done, then what was wrong; `QUIPU_SEED=number` plays that run alone, and
//! `QUIPU_MODEL_SEEDS=count` plays more of them. What a number plays also follows from the code of
//! this module: a run that found something becomes a test with a name, in `directed`.

mod act;
mod blocks;
mod compare;
mod compare_logs;
mod dice;
mod directed;
mod log_index;
mod read_at_once;
mod remade;
mod rewinds;
mod script;
mod shelf;
mod slots;
mod stat_looks;
mod state;
mod unions;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use anyhow::{Context as _, Result, ensure};
use chain::BlockRange;

use compare::check_all;
use dice::Dice;
use shelf::build_at_once;
use world::{Scene, Trouble, World};

/// How many runs there are if nobody says otherwise.
const SEEDS: u64 = 320;
/// How many changes a run makes.
const ACTS: u64 = 24;

/// Where the runs of a kind take place.
type Stage = fn(&mut Dice) -> Scene;

/// Plays the runs whose number leaves this rest: each kind of run has a quarter of all numbers.
fn play_all(rest: u64, stage: Stage, play: fn(&mut World) -> Result<()>) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number("QUIPU_MODEL_SEEDS").unwrap_or(SEEDS);
    let seeds = number("QUIPU_SEED").map_or(0..count, |seed| seed..seed + 1);
    for seed in seeds.filter(|seed| seed % 4 == rest) {
        let scene = stage(&mut Dice::new(!seed));
        let mut world = World::new(seed, scene);
        let played =
            catch_unwind(AssertUnwindSafe(|| world.reopen().and_then(|()| play(&mut world))));
        let told = || format!("QUIPU_SEED={seed} plays this: {scene:?}\n{}", world.told.join("\n"));
        match played {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("{}\nwrong: {error:#}", told()),
            Err(panic) => {
                eprintln!("{}", told());
                resume_unwind(panic)
            }
        }
    }
}

fn window(first: u64, count: u64) -> BlockRange {
    BlockRange::from_count(first, count).unwrap()
}

/// Where two slots of 8192 blocks meet.
fn at_a_boundary(dice: &mut Dice) -> Scene {
    let window = window(8192 - 300, 600);
    // Shortly before a multiple of 256, so that seals come soon.
    let boundary = window.first() / 256 * 256 + 256 * dice.between(1, 2);
    Scene { window, head_from: Some((boundary - dice.below(80)).max(window.first())) }
}

/// A young chain, held from its first block.
fn at_genesis(dice: &mut Dice) -> Scene {
    let head_from = if dice.one_in(3) { 0 } else { dice.between(1, 256) };
    Scene { window: window(0, 560), head_from: Some(head_from) }
}

/// Archives alone.
fn without_a_head(_: &mut Dice) -> Scene {
    Scene { window: window(8192 - 200, 400), head_from: None }
}

fn play(world: &mut World) -> Result<()> {
    for _ in 0..ACTS {
        one_step(world, true)?;
    }
    finish(world)
}

/// The same, and then a disk that lies.
fn play_lies(world: &mut World) -> Result<()> {
    for _ in 0..world.dice.below(ACTS) {
        one_step(world, true)?;
    }
    world.begin_lies();
    for _ in 0..world.dice.between(1, 8) {
        one_step(world, false)?;
    }
    world.cut_after_lies()
}

/// A change, or a look.
fn one_step(world: &mut World, may_fail: bool) -> Result<()> {
    match world.dice.below(12) {
        0 => world.keep_view(),
        1 => world.drop_view()?,
        2 => world.look_as_reader()?,
        3 if world.dice.one_in(2) => world.compare()?,
        4 if may_fail && world.dice.one_in(3) => world.cut()?,
        _ => {
            let act = world.choose();
            let trouble = if may_fail { world.choose_trouble(&act) } else { Trouble::Nothing };
            let is_done = world.act(&act, trouble)?;
            // Whoever got an error tries again, soon if not at once.
            if !is_done && matches!(trouble, Trouble::Fail(..)) && !world.dice.one_in(3) {
                let trouble = if world.dice.one_in(2) {
                    world.choose_trouble(&act)
                } else {
                    Trouble::Nothing
                };
                world.act(&act, trouble)?;
            }
        }
    }
    Ok(())
}

/// Everything is as it would be if it had come at once.
fn finish(world: &mut World) -> Result<()> {
    world.compare().context("at the end")?;
    world.drop_view()?;
    check_all(&world.view())?;
    let (direct, files) = (build_at_once(&world.sealed.now)?, world.files()?);
    let (names, expected) = (files.keys(), direct.keys());
    ensure!(names.eq(expected), "{:?}, at once {:?}", files.keys(), direct.keys());
    ensure!(files == direct, "a file differs from the one that is built at once");
    Ok(())
}

#[test]
fn a_store_at_a_slot_boundary_follows_the_model() {
    play_all(0, at_a_boundary, play);
}

#[test]
fn a_store_from_genesis_on_follows_the_model() {
    play_all(1, at_genesis, play);
}

#[test]
fn a_store_filled_from_archives_follows_the_model() {
    play_all(2, without_a_head, play);
}

#[test]
fn a_store_on_a_disk_that_lies_gives_right_answers_or_errors() {
    play_all(3, at_a_boundary, play_lies);
}
