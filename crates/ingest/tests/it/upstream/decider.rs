//! Who decides which block is the tip and what is final, while nodes fail, lag, stall or are exchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chain::{BlockNumber, BlockRange, ChainSpec};
use ingest::follow::FollowSettings;
use node::{AskLimits, MemberHealth, RestLimits, UpstreamUrl, Upstreams};
use store::notice::read_notice;

use crate::harness::folder::DataFolder;
use crate::harness::upstream::chains::{chain, forked, future, sample_spec};
use crate::harness::upstream::faults::Fault;
use crate::harness::upstream::fill::{self, stalling_upstreams, upstreams};
use crate::harness::upstream::followed::{Followed, alike, quick, runtime};
use crate::harness::upstream::node::Node;

/// Nodes that rest for other times than a test's.
fn resting(urls: Vec<UpstreamUrl>, ask: AskLimits, rest: RestLimits) -> Arc<Upstreams> {
    Arc::new(Upstreams::new(urls, &sample_spec(), 1, ask, rest).unwrap())
}

/// Waits until a node was asked so many questions more.
fn wait_asked(node: &Node, count: u64) {
    let before = node.count("eth_getBlockByNumber");
    node.wait_count("eth_getBlockByNumber", before + count);
}

/// Seen: ten seconds of silence of the preferred node let the next one finalise blocks.
#[test]
fn a_node_that_stands_in_for_the_preferred_one_decides_the_tip_and_not_what_is_final() {
    let (runtime, trunk) = (runtime(), chain(130));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    for finality_depth in [None, Some(5)] {
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![preferred.url(), other.url()], 1);
        let settings = FollowSettings { finality_depth, ..quick() };
        preferred.switch(trunk[..100].to_vec(), 90);
        let followed = Followed::start(runtime.handle(), &data, &nodes, settings, None);
        followed.wait_for("final", |_| followed.view().finalized() >= Some(BlockNumber(90)));
        let before = followed.view().finalized();
        preferred.spoil(|_| Some(Fault::Disconnect));
        other.switch(trunk[..120].to_vec(), 115);
        followed.wait_tip(trunk[119].hash());
        wait_asked(&other, 20);
        assert_eq!(followed.view().finalized(), before, "{finality_depth:?}");
        let status = followed.board.status();
        assert_eq!(status.last_error, None, "the tip is followed all the same");
        let (_, error) = status.finality_error.unwrap();
        assert!(error.contains("decides what is final and does not answer"), "{error}");
        preferred.mend();
        preferred.switch(trunk.clone(), 110);
        followed.wait_tip(trunk[129].hash());
        let finalized = if finality_depth.is_some() { 124 } else { 110 };
        followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(finalized)));
        assert_eq!(followed.board.status().finality_error, None);
        followed.check(&trunk);
        followed.end();
    }
}

#[test]
fn a_preferred_node_that_is_gone_for_long_leaves_its_say_to_the_next_one() {
    let (runtime, trunk) = (runtime(), chain(130));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let (ask, rest) = fill::quick();
    let rest = RestLimits { stand_in_after: Duration::from_millis(300), ..rest };
    let nodes = resting(vec![preferred.url(), other.url()], ask, rest);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(90)));
    preferred.spoil(|_| Some(Fault::Disconnect));
    other.switch(trunk[..120].to_vec(), 115);
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(115)));
    // As soon as it is back, it is asked again.
    preferred.mend();
    preferred.switch(trunk.clone(), 125);
    other.switch(trunk.clone(), 120);
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(125)));
    followed.check(&trunk);
    followed.end();
}

/// Seen: a chain that the next node invented became the folder's while the preferred one was silent.
#[test]
fn a_node_that_stands_in_neither_leaves_a_gap_nor_begins_a_folder() {
    let (runtime, trunk) = (runtime(), chain(500));
    let invented = forked(500, 95, 1);
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let settings = FollowSettings { gap_max: 100, ..quick() };
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, settings, None);
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(90)));
    let held = followed.view().coverage().to_vec();
    preferred.spoil(|_| Some(Fault::Disconnect));
    let is_told = |error: &Option<String>| {
        error.as_ref().is_some_and(|it| it.contains("decides what is final and does not answer"))
    };
    // Whether what it calls final is far, or it says that it calls none so.
    for finalized in [Some(450), None] {
        other.switch(invented.clone(), 450);
        other.set_finality(finalized);
        followed.wait_for("told", |status| is_told(&status.last_error));
        wait_asked(&other, 20);
        assert_eq!(followed.view().coverage(), held, "{finalized:?}");
        let empty = DataFolder::new(&sample_spec());
        let fresh = upstreams(vec![preferred.url(), other.url()], 1);
        let begun = Followed::start(runtime.handle(), &empty, &fresh, settings, None);
        begun.wait_for("told", |status| is_told(&status.last_error));
        assert_eq!(begun.view().tip(), None, "{finalized:?}");
        begun.end();
    }
    preferred.mend();
    preferred.switch(trunk.clone(), 450);
    followed.wait_tip(trunk[499].hash());
    let range = |first, last| BlockRange::from_ends(first, last).unwrap();
    assert_eq!(followed.view().coverage()[1..], [range(450, 499)]);
    followed.end();
}

/// Behind one address, backends on two branches may answer for `latest` and for `finalized`.
#[test]
fn a_block_is_final_only_if_the_finalized_block_is_seen_to_descend_from_it() {
    let (runtime, trunk, losing) = (runtime(), chain(170), forked(121, 100, 1));
    for quorum in [1, 2] {
        let pair: [Node; 2] = alike(runtime.handle(), &trunk[..101], 90);
        let urls = pair.iter().take(quorum).map(Node::url).collect();
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(urls, quorum);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(90)));
        // Above the tip and below it.
        for finalized in [150, 110] {
            for node in &pair {
                node.split_finality(Some(&trunk[finalized]));
                node.switch(losing.clone(), 90);
            }
            followed.wait_tip(losing[120].hash());
            wait_asked(&pair[0], 200);
            let finality = (followed.view().finalized(), followed.view().safe());
            assert_eq!(finality, (Some(BlockNumber(90)), Some(BlockNumber(90))), "{quorum}");
        }
        for node in &pair {
            node.switch(trunk.clone(), 150);
            node.split_finality(None);
        }
        followed.wait_tip(trunk[169].hash());
        followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(150)));
        assert_eq!(followed.board.status().conflict, None);
        followed.check(&trunk);
        followed.end();
    }
}

#[test]
fn a_folder_begins_only_with_a_final_block_that_the_tip_descends_from() {
    let (runtime, trunk, losing) = (runtime(), chain(170), forked(121, 100, 1));
    // Above the tip and below it.
    for finalized in [150, 110] {
        let [node] = alike(runtime.handle(), &losing, 90);
        node.split_finality(Some(&trunk[finalized]));
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_for("an error", |status| status.last_error.is_some());
        wait_asked(&node, 30);
        assert_eq!(followed.view().tip(), None, "{finalized}");
        node.split_finality(None);
        node.switch(trunk.clone(), 150);
        followed.wait_tip(trunk[169].hash());
        followed.check(&trunk);
        followed.end();
    }
}

/// While a long gap is caught up with, the headers below the finalized block are fetched once.
#[test]
fn blocks_become_final_while_a_gap_is_caught_up_with() {
    let (runtime, trunk) = (runtime(), chain(1500));
    let [node] = alike(runtime.handle(), &trunk[..1], 0);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let settings = FollowSettings { poll_every: Duration::from_secs(1), ..quick() };
    let followed = Followed::start(runtime.handle(), &data, &nodes, settings, None);
    followed.wait_tip(trunk[0].hash());
    let most = Arc::new(AtomicUsize::new(0));
    let (store, seen) = (Arc::clone(&followed.store), Arc::clone(&most));
    node.observe(move |_| {
        seen.fetch_max(store.view().head().blocks().len(), Ordering::Relaxed);
    });
    let before = node.count("eth_getBlockByNumber");
    node.switch(trunk.clone(), 1450);
    followed.wait_tip(trunk[1499].hash());
    // Each header once to catch up and once for finality, and a few with every step.
    let asked = node.count("eth_getBlockByNumber") - before;
    assert!(asked < 2 * 1500 + 1000, "{asked}");
    let most = most.load(Ordering::Relaxed);
    assert!(most < 700, "{most} blocks waited for finality");
    followed.check(&trunk);
    followed.end();
}

/// Seen: a node that was exchanged for one of another chain was followed on.
#[test]
fn a_node_that_comes_back_as_another_chain_is_set_aside() {
    let (runtime, trunk) = (runtime(), chain(120));
    // Whether its absence was noticed or not.
    for fault in [Fault::Disconnect, Fault::LastOfConnection] {
        let [node] = alike(runtime.handle(), &trunk[..100], 90);
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(trunk[99].hash());
        node.spoil(move |_| Some(fault));
        if fault == Fault::Disconnect {
            followed.wait_for("silent", |status| status.tip_error.is_some());
        } else {
            node.wait_spoiled(2);
        }
        node.set_chain_id(5);
        if fault == Fault::Disconnect {
            node.switch(trunk.clone(), 110);
            node.mend();
        }
        followed
            .wait_for("quarantined", |_| nodes.statuses()[0].health == MemberHealth::Quarantined);
        let said = nodes.statuses()[0].to_string();
        assert!(said.contains("follows another chain: it has chain id 5"), "{said}");
        assert_eq!(
            (followed.view().tip(), followed.view().finalized()),
            (Some(BlockNumber(99)), Some(BlockNumber(90)))
        );
        followed.end();
    }
}

/// Behind one address, the next connection may lead to a node of another chain.
#[test]
fn a_new_connection_is_asked_which_chain_is_at_its_other_end() {
    let (runtime, trunk) = (runtime(), chain(100));
    let [node] = alike(runtime.handle(), &trunk, 90);
    node.be_foreign_beside_the_first_connection();
    let nodes = upstreams(vec![node.url()], 1);
    let own = sample_spec().chain_id().unwrap();
    assert_eq!(runtime.block_on(nodes.introduce()).unwrap().chain_id, own);
    node.spoil(|_| Some(Fault::LastOfConnection));
    // Its answer ends the first connection, and the next ones are made anew.
    assert!(runtime.block_on(nodes.fetch_tip()).is_ok());
    let refused = runtime.block_on(nodes.fetch_tip());
    assert!(refused.is_err(), "{refused:?}");
    let status = &nodes.statuses()[0];
    assert_eq!(status.health, MemberHealth::Quarantined, "{status:?}");
    assert!(status.to_string().contains("it has chain id 5"), "{status:?}");
}

/// Behind a kept connection to a proxy, a node may be exchanged for another.
#[test]
fn a_kept_connection_is_asked_again_which_chain_is_at_its_other_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let trunk = chain(100);
    for is_websocket in [false, true] {
        let [node] = alike(runtime.handle(), &trunk, 90);
        let url = if is_websocket { node.websocket_url() } else { node.url() };
        let nodes = upstreams(vec![url], 1);
        assert!(runtime.block_on(nodes.fetch_tip()).is_ok());
        node.set_chain_id(5);
        if is_websocket {
            assert!(runtime.block_on(nodes.fetch_tip()).is_ok());
            assert_eq!(node.count("eth_chainId"), 1, "not with every question");
        }
        runtime.block_on(async {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(31)).await;
            tokio::time::resume();
        });
        assert!(runtime.block_on(nodes.fetch_tip()).is_err());
        let status = &nodes.statuses()[0];
        assert_eq!(status.health, MemberHealth::Quarantined, "{status:?}");
        assert!(status.to_string().contains("it has chain id 5"), "{status:?}");
    }
}

/// Seen: one node that lagged while two others were on two branches held everybody back.
#[test]
fn the_tip_is_the_highest_block_on_which_a_quorum_agrees() {
    let (runtime, trunk) = (runtime(), chain(120));
    let [one, two, three] = alike(runtime.handle(), &trunk[..100], 50);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    three.switch(trunk[..81].to_vec(), 50);
    one.switch(forked(119, 102, 1), 50);
    two.switch(trunk[..118].to_vec(), 50);
    followed.wait_tip(trunk[102].hash());
    // Each of the ways down and up again.
    for (fork_point, letter) in [(116, 2), (109, 3), (105, 4), (103, 5)] {
        one.switch(forked(119, fork_point, letter), 50);
        let tip = runtime.block_on(nodes.fetch_tip()).unwrap();
        let expected = (fork_point, trunk[fork_point as usize].hash(), 117);
        assert_eq!((tip.claim.number, tip.claim.hash, tip.reached), expected);
    }
    // Far below, because only the one that lags agrees with another.
    one.switch(forked(119, 60, 6), 50);
    followed.wait_for("apart", |status| status.disagreement() == 117 - 80);
    assert!(followed.view().tip() >= Some(BlockNumber(103)), "nothing is taken away");
    // Nodes that share no block for long have no common tip, which is said.
    let low = forked(119, 40, 7);
    three.switch(forked(119, 30, 8), 30);
    one.switch(low.clone(), 30);
    let hash = low[118].hash().to_string();
    let is_told = |error: &Option<String>| error.as_ref().is_some_and(|it| it.contains(&hash));
    let status = followed.wait_for("told", |status| is_told(&status.tip_error));
    let told = status.tip_error.unwrap();
    assert!(told.starts_with("2 upstreams must agree on a block, and they do not"), "{told}");
    two.switch(trunk[..119].to_vec(), 50);
    one.switch(trunk.clone(), 50);
    followed.wait_tip(trunk[118].hash());
    followed.end();
}

/// Seen: every block was asked of the stalling node first, five times.
#[test]
fn blocks_are_asked_of_a_node_that_is_well_while_the_preferred_one_stalls() {
    let (runtime, trunk) = (runtime(), chain(120));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let rest = RestLimits { failure_begin: Duration::from_mins(1), ..RestLimits::default() };
    let nodes = resting(vec![preferred.url(), other.url()], fill::stalling().0, rest);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    let hour = Duration::from_hours(1);
    preferred
        .spoil(move |asked| asked.is_about("eth_getBlockByHash").then_some(Fault::Stall(hour)));
    let before = preferred.count("eth_getBlockByHash");
    // Its word on the tip counts on.
    other.switch(forked(121, 104, 1), 90);
    for length in 101..=105 {
        preferred.switch(trunk[..length].to_vec(), 90);
        followed.wait_tip(trunk[length - 1].hash());
    }
    assert_eq!(preferred.count("eth_getBlockByHash") - before, 1);
    assert_eq!(nodes.statuses()[0].health, MemberHealth::Healthy);
    followed.end();
}

/// Seen: a node on an unknown fork stopped following for a minute, though another one had the block a
/// moment later.
#[test]
fn an_unknown_fork_of_one_node_is_no_standstill_while_another_may_give_the_block() {
    let (runtime, chain) = (runtime(), future(170, 150));
    let [bare, raw] = alike(runtime.handle(), &chain[..140], 130);
    raw.offer_raw_headers();
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![bare.url(), raw.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[139].hash());
    bare.switch(chain.clone(), 132);
    followed.wait_tip(chain[149].hash());
    let status = followed.wait_for("told", |status| status.last_error.is_some());
    assert!(status.last_error.as_ref().unwrap().contains("does not know: upgrade"), "{status:?}");
    assert!(!status.is_failure_lasting);
    let disk = store::disk::Folder::open(data.folder.path()).unwrap();
    assert_eq!(read_notice(&disk).unwrap(), None);
    let begun = Instant::now();
    raw.switch(chain.clone(), 132);
    followed.wait_tip(chain[169].hash());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    followed.check(&chain);
    followed.end();
}

/// Seen: every notification was followed by a question.
#[test]
fn any_number_of_notifications_cause_few_questions() {
    let (runtime, trunk) = (runtime(), chain(100));
    let [node] = alike(runtime.handle(), &trunk, 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.websocket_url()], 1);
    let settings = FollowSettings { poll_every: Duration::from_secs(1), ..quick() };
    let followed = Followed::start(runtime.handle(), &data, &nodes, settings, None);
    followed.wait_tip(trunk[99].hash());
    node.wait_count("eth_subscribe", 1);
    let (begun, before) = (Instant::now(), node.count("eth_getBlockByNumber"));
    let mut sent = node.news_count();
    while begun.elapsed() < Duration::from_secs(2) {
        node.switch(trunk.clone(), 90);
        sent += 1;
        node.wait_news(sent);
    }
    // Twenty tips, and what is safe and final once in two polls.
    let (asked, took) = (node.count("eth_getBlockByNumber") - before, begun.elapsed());
    let most = 10 + 15 * u64::try_from(took.as_millis()).unwrap() / 1000;
    assert!(asked <= most, "{asked} questions after {sent} notifications in {took:?}");
    assert!(sent > 2 * most, "{sent} notifications in {took:?}");
    followed.end();
}

/// Seen: a node that did not answer a subscription held up the tip of another for ten seconds.
#[test]
fn a_node_that_is_silent_about_a_subscription_holds_up_nothing() {
    let (runtime, trunk) = (runtime(), chain(120));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let hour = Duration::from_hours(1);
    other.spoil(move |asked| asked.is_about("eth_subscribe").then_some(Fault::Stall(hour)));
    let data = DataFolder::new(&sample_spec());
    let (ask, rest) = (AskLimits::default(), RestLimits::default());
    let urls = vec![preferred.url(), other.websocket_url()];
    let nodes = Arc::new(Upstreams::new(urls, &sample_spec(), 1, ask, rest).unwrap());
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    other.wait_spoiled(1);
    let begun = Instant::now();
    preferred.switch(trunk.clone(), 90);
    followed.wait_tip(trunk[119].hash());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    followed.end();
}

/// Seen: a backfill sealed what the next node invented above genesis, though the preferred node's final
/// block was held above the gap.
#[test]
fn a_backfill_of_an_empty_folder_takes_nothing_that_the_preferred_nodes_final_block_disproves() {
    let (runtime, trunk) = (runtime(), chain(8230));
    let [preferred, other] = alike(runtime.handle(), &trunk, 8210);
    other.switch(forked(8230, 0, 1), 8210);
    // Blocks by number are asked for by the backfill alone. Its word on the tip counts on.
    preferred.spoil(|asked| {
        let is_backfill = asked.is_about("eth_getBlockByNumber") && asked.is_about("true");
        is_backfill.then_some(Fault::Stall(Duration::from_hours(1)))
    });
    let data = DataFolder::new(&sample_spec());
    let nodes = stalling_upstreams(vec![preferred.url(), other.url()]);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0));
    followed.wait_tip(trunk[8229].hash());
    let is_other = |error: &Option<String>| error.as_ref().is_some_and(|it| it.contains("branch"));
    followed.wait_for("passed over", |_| is_other(&nodes.statuses()[1].last_error));
    let held = followed.view().coverage().to_vec();
    assert_eq!(held.first().map(BlockRange::first), Some(8210), "{held:?}");
    preferred.mend();
    followed.wait_for("filled", |_| followed.view().coverage().len() == 1);
    followed.wait_for("whole", |_| followed.view().coverage()[0].first() == 0);
    followed.check(&trunk);
    let lies: Vec<u64> = nodes.statuses().iter().map(|status| status.invalid_count).collect();
    assert_eq!(lies, [0, 0]);
    followed.end();
}

/// Seen: a node that refused old blocks to the backfill was left alone, and its tip with it.
#[test]
fn a_node_that_refuses_old_blocks_is_followed_on() {
    let (runtime, trunk) = (runtime(), chain(340));
    let [node] = alike(runtime.handle(), &trunk[..300], 290);
    node.spoil(|asked| {
        let is_backfill = asked.is_about("eth_getBlockByNumber") && asked.is_about("true");
        is_backfill.then_some(Fault::Refused)
    });
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0));
    followed.wait_tip(trunk[299].hash());
    let is_refused =
        |error: &Option<String>| error.as_ref().is_some_and(|it| it.contains("refused"));
    followed.wait_for("refused", |_| is_refused(&nodes.statuses()[0].last_error));
    assert_eq!(nodes.statuses()[0].health, MemberHealth::Healthy);
    for length in [310, 320, 340] {
        node.switch(trunk[..length].to_vec(), 290);
        followed.wait_tip(trunk[length - 1].hash());
        assert_eq!(nodes.statuses()[0].health, MemberHealth::Healthy);
    }
    node.mend();
    followed.wait_for("filled", |_| followed.view().coverage()[0].first() == 0);
    followed.end();
}

/// Seen: blocks that the next node invented while the preferred one was silent for a moment stayed the
/// tip when that answered again and had none in their place yet.
#[test]
fn what_a_node_that_stood_in_added_is_taken_back_when_the_preferred_one_tells_a_lower_tip() {
    let (runtime, trunk) = (runtime(), chain(110));
    let invented = forked(102, 99, 1);
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    other.switch(invented.clone(), 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    preferred.spoil(|_| Some(Fault::Disconnect));
    followed.wait_tip(invented[101].hash());
    preferred.mend();
    followed.wait_tip(trunk[99].hash());
    followed.check(&trunk[..100].to_vec());
    // A node that lags behind itself takes nothing away, and neither does one that stands in for it.
    preferred.switch(trunk[..105].to_vec(), 90);
    followed.wait_tip(trunk[104].hash());
    preferred.switch(trunk[..103].to_vec(), 90);
    wait_asked(&preferred, 20);
    assert_eq!(followed.view().tip(), Some(BlockNumber(104)));
    other.switch(trunk[..102].to_vec(), 90);
    preferred.spoil(|_| Some(Fault::Disconnect));
    wait_asked(&other, 20);
    assert_eq!(followed.view().tip(), Some(BlockNumber(104)));
    followed.end();
}

/// Seen: one header without a hash set the preferred node aside, and the next one finalised blocks at
/// once.
#[test]
fn a_header_that_cannot_be_parsed_is_a_failure_and_no_lie() {
    let (runtime, trunk) = (runtime(), chain(130));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    other.switch(trunk[..120].to_vec(), 115);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(90)));
    for tag in ["latest", "finalized"] {
        let mut is_first = true;
        preferred.spoil(move |asked| {
            let is_it = asked.is_about(tag) && std::mem::take(&mut is_first);
            is_it.then_some(Fault::NoHash)
        });
        wait_asked(&preferred, 10);
    }
    preferred.switch(trunk[..110].to_vec(), 95);
    followed.wait_for("final", |_| followed.view().finalized() >= Some(BlockNumber(95)));
    assert_eq!(followed.view().finalized(), Some(BlockNumber(95)));
    let status = &nodes.statuses()[0];
    assert_eq!(status.invalid_count, 0, "{status:?}");
    assert!(status.failure_count > 0, "{status:?}");
    followed.end();
}

/// Seen: while the preferred node was silent, the next one named the chain of an empty folder for good;
/// and one node named it where a quorum was asked for.
#[test]
fn the_chain_is_named_by_the_node_that_decides_or_by_a_quorum() {
    let (runtime, trunk) = (runtime(), chain(5));
    let unknown = ChainSpec::bare("unknown", None, None);
    let [one, two, foreign] = alike(runtime.handle(), &trunk, 4);
    foreign.set_chain_id(5);
    let (ask, rest) = fill::quick();
    let nodes = |nodes: &[&Node], quorum, rest| {
        let urls = nodes.iter().map(|node| node.url()).collect();
        Upstreams::new(urls, &unknown, quorum, ask, rest).unwrap()
    };
    let introduce =
        |nodes: &Upstreams| runtime.block_on(nodes.introduce()).map(|identity| identity.chain_id);
    let own = sample_spec().chain_id().unwrap();
    one.spoil(|_| Some(Fault::Disconnect));
    let refused = introduce(&nodes(&[&one, &foreign], 1, rest)).unwrap_err().to_string();
    assert!(refused.contains(one.url().name()), "{refused}");
    // Until it has been silent for long.
    let stand_in_after = Duration::from_millis(200);
    let patient = nodes(&[&one, &foreign], 1, RestLimits { stand_in_after, ..rest });
    let begun = Instant::now();
    while introduce(&patient).is_err() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", patient.statuses());
    }
    assert!(begun.elapsed() >= stand_in_after);
    assert_eq!(introduce(&patient), Ok(5));
    one.mend();
    assert_eq!(introduce(&patient), Ok(own));
    assert_eq!(introduce(&nodes(&[&foreign, &one, &two], 2, rest)), Ok(own));
    let refused = introduce(&nodes(&[&foreign, &one], 2, rest)).unwrap_err().to_string();
    for said in ["2 upstreams must agree", "chain id 5", &format!("chain id {own}")] {
        assert!(refused.contains(said), "{refused}");
    }
}

/// Seen: a preferred node that told of block 2^64 - 2 as its tip was asked for blocks on the way there for
/// ever, and nobody else was followed.
#[test]
fn a_node_that_tells_a_tip_which_it_does_not_have_is_told_and_another_stands_in() {
    let (runtime, trunk) = (runtime(), chain(130));
    // Far above, and so near that the headers down from it are asked for.
    for number in [u64::MAX - 1, 125] {
        let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![preferred.url(), other.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(trunk[99].hash());
        preferred.spoil(move |_| Some(Fault::TipNumber(number)));
        for length in [110, 120] {
            other.switch(trunk[..length].to_vec(), 90);
            followed.wait_tip(trunk[length - 1].hash());
        }
        let said = nodes.statuses()[0].to_string();
        assert!(
            said.contains(&format!("tells block {number} as its tip and has no block")),
            "{said}"
        );
        assert_eq!(nodes.statuses()[0].invalid_count, 0);
        // Its word counts again as soon as it has what it tells.
        preferred.switch(trunk.clone(), 90);
        preferred.mend();
        followed.wait_tip(trunk[129].hash());
        followed.check(&trunk);
        followed.end();
    }
}

/// Seen: a node that answered `null` for its tip counted as well.
#[test]
fn a_node_without_a_tip_is_not_well_and_another_stands_in() {
    let (runtime, trunk) = (runtime(), chain(120));
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    preferred.spoil(|_| Some(Fault::NoTip));
    other.switch(trunk.clone(), 90);
    followed.wait_tip(trunk[119].hash());
    let status = &nodes.statuses()[0];
    assert!(status.failure_count > 0, "{status:?}");
    assert!(status.to_string().contains("its latest block is null"), "{status:?}");
    followed.end();
}
