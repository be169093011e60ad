//! Scripts of faults, reorgs and restarts, each played from one number.
//!
//! `QUIPU_SEED=number` plays one again. What is held is at every moment a chain that a node had, and
//! when the faults end, it is the one that it has.

use std::env;

use crate::harness::upstream::chains::{Chain, chain, forked, sample_spec};
use crate::harness::upstream::fill::upstreams;
use chain::SplitMix64;

use crate::harness::folder::{DataFolder, check_view};
use crate::harness::upstream::faults::{Fault, LIES};
use crate::harness::upstream::followed::{Followed, alike, quick, runtime};

const SEEDS: u64 = 4;
const ACTS: u64 = 20;
const FINAL: u64 = 60;

#[test]
fn whatever_nodes_do_what_is_held_is_a_chain_that_one_had_and_in_the_end_the_right_one() {
    let seeds = match env::var("QUIPU_SEED").ok().map(|text| text.parse::<u64>().unwrap()) {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    // Made once: signing takes longer than everything else.
    let mut chains: Vec<Chain> = vec![chain(160)];
    for (letter, fork_point) in [(1, 158), (2, 150), (3, 130), (4, 99), (5, 70)] {
        chains.push(forked(162, fork_point, letter));
    }
    for seed in seeds {
        println!("QUIPU_SEED={seed} plays this again");
        play(seed, &chains);
    }
}

fn play(seed: u64, chains: &[Chain]) {
    let mut dice = SplitMix64::new(seed);
    let runtime = runtime();
    let [liar, honest] = alike(runtime.handle(), &chains[0][..80], FINAL);
    let data = DataFolder::new(&sample_spec());
    let follow = || {
        // Every time with the same nodes as if nothing had happened: a liar may begin anew.
        let nodes = upstreams(vec![liar.url(), honest.websocket_url()], 1);
        Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0))
    };
    let mut followed = follow();
    for _ in 0..ACTS {
        match dice.below(5) {
            0 => {
                let fault = fault(&mut dice);
                let one_in = 1 + dice.below(4);
                let mut chance = SplitMix64::new(dice.below(u64::MAX));
                liar.spoil(move |_| (chance.below(one_in) == 0).then_some(fault));
            }
            1 => {
                let one_in = 2 + dice.below(4);
                let mut chance = SplitMix64::new(dice.below(u64::MAX));
                honest.spoil(move |_| (chance.below(one_in) == 0).then_some(Fault::Disconnect));
            }
            2 => {
                followed.end();
                followed = follow();
            }
            _ => {
                let chain = &chains[dice.below(chains.len() as u64) as usize];
                let length = 100 + dice.below(chain.len() as u64 - 100) as usize + 1;
                for node in [&liar, &honest] {
                    node.switch(chain[..length].to_vec(), FINAL);
                }
            }
        }
        check_is_one_of(&followed, chains);
    }
    liar.mend();
    honest.mend();
    let last = forked(170, 120, 9);
    for node in [&liar, &honest] {
        node.switch(last.clone(), FINAL);
    }
    followed.wait_tip(last[169].hash());
    followed.wait_for("whole", |_| followed.view().coverage().len() == 1);
    followed.check(&last);
    followed.end();
}

fn fault(dice: &mut SplitMix64) -> Fault {
    let passing = [Fault::Status(429, None), Fault::Disconnect, Fault::Truncated];
    let all: Vec<Fault> = LIES.into_iter().chain(passing).collect();
    all[dice.below(all.len() as u64) as usize]
}

/// What a view shows is the beginning of one of the chains.
fn check_is_one_of(followed: &Followed, chains: &[Chain]) {
    let view = followed.view();
    let Some(tip) = view.head().tip() else { return };
    let chain = chains.iter().find(|chain| {
        chain.get(tip.number().get() as usize).is_some_and(|told| told.hash() == tip.hash())
    });
    let chain = chain.unwrap_or_else(|| panic!("{} is nobody's", tip.hash()));
    let held = view.coverage();
    let held = chain.iter().filter(|told| held.iter().any(|it| it.contains(told.number())));
    check_view(&view, &held.map(|told| told.verified.clone()).collect::<Vec<_>>());
}
