//! Nodes that invent blocks: what breaks a rule of its chain is neither followed nor stored.

use chain::BlockNumber;
use node::MemberHealth;

use crate::harness::folder::DataFolder;
use crate::harness::upstream::chains::{chain, invented, sample_spec};
use crate::harness::upstream::fill::{fill, upstreams, verified};
use crate::harness::upstream::followed::{Followed, quick, runtime};
use crate::harness::upstream::node::Node;

/// A change of a header, and what is said of it.
type Invention = (&'static str, fn(&mut alloy_consensus::Header));

const INVENTIONS: [Invention; 5] = [
    ("it must be above", |it| it.timestamp -= 12),
    ("base fee is", |it| it.base_fee_per_gas = it.base_fee_per_gas.map(|fee| fee + 1)),
    ("gas limit is", |it| it.gas_limit += it.gas_limit / 1024),
    ("excess blob gas is", |it| it.excess_blob_gas = Some(1)),
    ("header has 20 fields", |it| it.requests_hash = None),
];

#[test]
fn an_invented_tip_is_refused_and_its_inventor_set_aside() {
    let (runtime, chain) = (runtime(), chain(105));
    for (said, change) in INVENTIONS {
        let fake = invented(104, 101, change);
        let [liar, honest] = [(); 2].map(|()| {
            let node = Node::start(runtime.handle(), chain[..100].to_vec());
            node.set_finality(Some(90));
            node
        });
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![liar.url(), honest.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        liar.switch(fake.clone(), 90);
        followed.wait_for(said, |_| nodes.statuses()[0].health == MemberHealth::Quarantined);
        let status = &nodes.statuses()[0];
        assert!(status.last_error.as_ref().is_some_and(|it| it.contains(said)), "{status:?}");
        assert_eq!((status.invalid_count, nodes.statuses()[1].invalid_count), (1, 0), "{said}");
        honest.switch(chain.clone(), 90);
        followed.wait_tip(chain[104].hash());
        followed.check(&chain);
        followed.end();
    }
}

#[test]
fn a_step_that_a_later_fork_may_explain_makes_nobody_a_liar() {
    let steps = INVENTIONS
        .iter()
        .filter(|(said, _)| ["base fee is", "gas limit is", "excess blob gas is"].contains(said));
    for (said, change) in steps {
        check_later_fork(said, *change);
    }
}

fn check_later_fork(said: &str, change: fn(&mut alloy_consensus::Header)) {
    let (runtime, chain) = (runtime(), chain(150));
    let fake = invented(150, 145, change);
    let node = Node::start(runtime.handle(), chain[..140].to_vec());
    node.set_finality(Some(130));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[139].hash());
    node.switch(fake, 130);
    // Blocks below it are followed, and the node is asked for them.
    followed.wait_tip(chain[144].hash());
    followed.wait_for("refused", |status| status.last_error.is_some());
    let status = &nodes.statuses()[0];
    assert_eq!(status.unknown_fork, Some(145), "{status:?}");
    assert_eq!((status.health, status.invalid_count), (MemberHealth::Healthy, 0), "{status:?}");
    let error = followed.board.status().last_error.unwrap();
    assert!(error.contains(said) && error.contains("does not know; then upgrade"), "{error}");
    assert_eq!(followed.view().tip(), Some(BlockNumber(144)));
    followed.end();
}

/// Blocks are proven in pieces of work: where one ends, nobody has the parent's header.
#[test]
fn a_backfill_takes_no_block_that_does_not_follow_from_the_one_before() {
    let (runtime, chain) = (runtime(), chain(140));
    for number in [63, 64, 65, 127, 128, 129] {
        let fake = invented(140, number, |it| it.timestamp -= 12);
        let (liar, honest) =
            (Node::start(runtime.handle(), fake), Node::start(runtime.handle(), chain.clone()));
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![liar.url(), honest.url()], 1);
        fill(&runtime, &data, &nodes, (0, 139), false).unwrap();
        data.check_holds(&verified(&chain, 0..140));
        let status = &nodes.statuses()[0];
        let is_named = |it: &String| it.contains("it must be above");
        assert!(status.last_error.as_ref().is_some_and(is_named), "{number}: {status:?}");
    }
}
