//! What a quorum of nodes says counts, and what fewer of them say, or do not say, changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chain::{BlockNumber, BlockRange};
use node::{AskLimits, BlockTag, MemberHealth, RestLimits, Upstreams};

use crate::harness::folder::DataFolder;
use crate::harness::upstream::chains::{chain, forked, sample_spec};
use crate::harness::upstream::faults::Fault;
use crate::harness::upstream::fill::upstreams;
use crate::harness::upstream::followed::{Followed, alike, quick, runtime};
use crate::harness::upstream::node::Node;

/// Seen: one node that still had our block made liars of the two that had agreed on another.
#[test]
fn a_quorum_that_contradicts_what_is_final_is_a_conflict_and_no_lie() {
    let (runtime, trunk) = (runtime(), chain(130));
    let branch = forked(140, 100, 1);
    let [one, two, three] = alike(runtime.handle(), &trunk[..120], 50);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[119].hash());
    for node in [&one, &two, &three] {
        node.set_finality(Some(110));
    }
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(110)));
    two.switch(branch.clone(), 110);
    three.switch(branch.clone(), 110);
    let lies = || nodes.statuses().iter().map(|it| it.invalid_count).collect::<Vec<_>>();
    let status = followed.wait_for("a conflict or a lie", |status| {
        status.conflict.is_some() || lies().iter().any(|count| *count > 0)
    });
    assert_eq!(lies(), [0, 0, 0], "{:?}", nodes.statuses());
    let conflict = status.conflict.unwrap();
    assert_eq!((conflict.number, conflict.ours), (110, trunk[110].hash()));
    assert_eq!(conflict.theirs, branch[110].hash());
    assert_eq!(
        (followed.view().tip(), followed.view().finalized()),
        (Some(BlockNumber(119)), Some(BlockNumber(110)))
    );
    followed.end();
}

/// As many nodes as must agree have our final block: those that contradict it are set aside.
#[test]
fn whoever_contradicts_a_final_block_that_a_quorum_has_is_set_aside() {
    let (runtime, trunk) = (runtime(), chain(130));
    let branch = forked(140, 100, 1);
    let [one, two, three, four] = alike(runtime.handle(), &trunk[..120], 50);
    let data = DataFolder::new(&sample_spec());
    let urls = [&one, &two, &three, &four].map(Node::url).to_vec();
    let nodes = upstreams(urls, 2);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[119].hash());
    for node in [&one, &two, &three, &four] {
        node.set_finality(Some(110));
    }
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(110)));
    three.switch(branch.clone(), 110);
    four.switch(branch, 110);
    let is_set_aside = |place: usize| nodes.statuses()[place].health == MemberHealth::Quarantined;
    followed.wait_for("quarantined", |_| is_set_aside(2) && is_set_aside(3));
    one.switch(trunk.clone(), 115);
    two.switch(trunk.clone(), 115);
    followed.wait_tip(trunk[129].hash());
    assert!(!is_set_aside(0) && !is_set_aside(1), "{:?}", nodes.statuses());
    // They may be right, for all that is known: what was outvoted is no lie.
    let lies: Vec<u64> = nodes.statuses().iter().map(|status| status.invalid_count).collect();
    assert_eq!(lies, [0; 4]);
    followed.end();
}

/// Seen: a node that refused to say what is final because it was asked too much was taken for one of a
/// chain without finality, and the folder began with its tip.
#[test]
fn a_refusal_that_says_nothing_of_the_block_does_not_begin_a_folder_with_the_tip() {
    let (runtime, trunk) = (runtime(), chain(120));
    let range = |first, last| BlockRange::from_ends(first, last).unwrap();
    for (code, message) in [(-32603, "internal error"), (-32005, "limit exceeded")] {
        let [node] = alike(runtime.handle(), &trunk[..100], 90);
        node.spoil(move |_| Some(Fault::RefusedNames(code, message)));
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        let is_told =
            |error: &Option<String>| error.as_ref().is_some_and(|it| it.contains(message));
        followed.wait_for("told or begun", |status| {
            status.tip.is_some() || is_told(&status.last_error)
        });
        assert_eq!(followed.view().tip(), None, "{code}: {:?}", followed.board.status());
        node.mend();
        followed.wait_tip(trunk[99].hash());
        assert_eq!(followed.view().coverage(), [range(90, 99)], "{code}");
        // Later it holds up what is final, which is told, and not the tip.
        node.spoil(move |_| Some(Fault::RefusedNames(code, message)));
        node.switch(trunk.clone(), 110);
        followed.wait_tip(trunk[119].hash());
        followed.wait_for("told", |status| {
            status.finality_error.as_ref().is_some_and(|(_, error)| error.contains(message))
        });
        assert_eq!(followed.view().finalized(), Some(BlockNumber(90)), "{code}");
        followed.end();
    }
    // Nodes of chains without finality.
    for (code, message) in [
        (-39001, "Unknown block"),
        (-32000, "finalized block not found"),
        (-32602, "invalid argument 0: hex string without 0x prefix"),
    ] {
        let [node] = alike(runtime.handle(), &trunk[..100], 90);
        node.spoil(move |_| Some(Fault::RefusedNames(code, message)));
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(trunk[99].hash());
        assert_eq!(followed.view().coverage(), [range(99, 99)], "{code}");
        followed.end();
    }
}

/// Seen: two nodes agreed that nothing is final yet, and a third one that claimed a block of its own
/// kept them from saying so.
#[test]
fn fewer_nodes_than_must_agree_neither_hold_up_finality_nor_move_it() {
    let (runtime, trunk) = (runtime(), chain(100));
    let [one, two, three] = alike(runtime.handle(), &trunk, 50);
    let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
    let decided = || {
        let asked = nodes.fetch_decided(BlockTag::Finalized, Duration::ZERO);
        runtime.block_on(asked).map(|claim| claim.map(|claim| claim.number))
    };
    assert_eq!(decided(), Ok(Some(50)));
    // One alone calls a block final that all have.
    three.set_finality(Some(99));
    assert_eq!(decided(), Ok(Some(50)));
    // And one that it alone has.
    three.switch(forked(100, 40, 1), 90);
    assert_eq!(decided(), Ok(Some(50)));
    one.set_finality(None);
    two.set_finality(None);
    assert_eq!(decided(), Ok(None));
    // None for one and a block for each of two: nothing that a quorum says.
    two.set_finality(Some(60));
    assert!(decided().is_err(), "{:?}", decided());
}

/// A node of several backends that has a block under its number does not call it final by that.
#[test]
fn a_node_agrees_on_a_final_block_only_if_its_own_descends_from_it() {
    let (runtime, trunk, losing) = (runtime(), chain(170), forked(121, 100, 1));
    let [one, two] = alike(runtime.handle(), &losing, 110);
    one.split_finality(Some(&trunk[150]));
    let nodes = upstreams(vec![one.url(), two.url()], 2);
    let decided = || runtime.block_on(nodes.fetch_decided(BlockTag::Finalized, Duration::ZERO));
    assert!(decided().is_err(), "{:?}", decided());
    one.split_finality(None);
    one.switch(losing.clone(), 115);
    assert_eq!(decided().map(|claim| claim.map(|claim| claim.number)), Ok(Some(110)));
}

/// Seen: a node whose final block was far above the tip was asked for its ancestors for ever.
#[test]
fn a_node_that_invents_headers_without_end_holds_up_nothing() {
    let (runtime, trunk) = (runtime(), chain(120));
    for highest in [1 << 62, 40_000] {
        let [one, two, three] = alike(runtime.handle(), &trunk[..100], 50);
        three.spoil(move |_| Some(Fault::InventedFinal(highest)));
        let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
        let data = DataFolder::new(&sample_spec());
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(trunk[99].hash());
        for node in [&one, &two, &three] {
            node.switch(trunk.clone(), 60);
        }
        followed.wait_tip(trunk[119].hash());
        followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(60)));
        followed.end();
    }
    // One alone that decides is not followed there.
    let node = Node::start(runtime.handle(), trunk[..100].to_vec());
    node.spoil(|_| Some(Fault::InventedFinal(1 << 62)));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_for("told", |status| status.last_error.is_some());
    followed.end();
}

/// Seen: the tip that two nodes agreed on waited ten seconds for a third one.
#[test]
fn a_node_that_a_quorum_can_do_without_holds_up_nothing() {
    let (runtime, trunk) = (runtime(), chain(120));
    let [one, two, three] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let (ask, rest) = (AskLimits::default(), RestLimits::default());
    let urls = vec![one.url(), two.url(), three.url()];
    let nodes = Arc::new(Upstreams::new(urls, &sample_spec(), 2, ask, rest).unwrap());
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    let hour = Duration::from_hours(1);
    three.spoil(move |_| Some(Fault::Stall(hour)));
    three.wait_spoiled(1);
    let begun = Instant::now();
    one.switch(trunk.clone(), 90);
    two.switch(trunk.clone(), 90);
    followed.wait_tip(trunk[119].hash());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    followed.wait_for("resting", |_| nodes.statuses()[2].health == MemberHealth::BackingOff);
    let said = nodes.statuses()[2].to_string();
    assert!(said.contains("no answer"), "{said}");
    followed.end();
}

/// Seen: a quorum of which a node was just restarting ended a backfill that would have waited for one
/// node.
#[test]
fn a_quorum_is_waited_for_as_one_node_is() {
    let (runtime, trunk) = (runtime(), chain(100));
    let [one, two, three] = alike(runtime.handle(), &trunk, 90);
    let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
    for node in [&one, &two] {
        let mut left = 12_u32;
        node.spoil(move |_| {
            let is_spoiled = left > 0;
            left = left.saturating_sub(1);
            is_spoiled.then_some(Fault::Disconnect)
        });
    }
    let patience = Duration::from_mins(1);
    let decided = runtime.block_on(nodes.fetch_decided(BlockTag::Finalized, patience));
    assert_eq!(decided.map(|claim| claim.map(|claim| claim.number)), Ok(Some(90)));
    // Patience ends where nobody comes back.
    for node in [&one, &two] {
        node.spoil(|_| Some(Fault::Disconnect));
    }
    let patience = Duration::from_millis(300);
    let decided = runtime.block_on(nodes.fetch_decided(BlockTag::Finalized, patience));
    assert!(decided.is_err(), "{decided:?}");
}
