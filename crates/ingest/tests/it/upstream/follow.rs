//! The tip of nodes, followed through reorgs, faults and lies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U256};
use archive::Format;
use chain::{BlockNumber, BlockRange, Candidate};
use ingest::follow::FollowSettings;
use ingest::import::ImportError;
use node::{AskLimits, MemberHealth, RestLimits, UpstreamUrl, Upstreams};
use store::head::HeadLimits;
use store::names::is_head_file;
use store::{Store, Watcher, Writer};
use tokio::runtime::Runtime;

use crate::harness::folder::{DataFolder, settings};
use crate::harness::made::write;
use crate::harness::upstream::chains::{Chain, chain, forked, sample_spec};
use crate::harness::upstream::faults::{Fault, LIES};
use crate::harness::upstream::fill::{fill, stalling_upstreams, upstreams};
use crate::harness::upstream::followed::{Followed, alike, quick, runtime};
use crate::harness::upstream::node::Node;
use crate::harness::upstream::told::Told;

fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

#[test]
fn an_empty_folder_begins_at_what_is_final_and_follows_the_tip() {
    let (runtime, chain) = (runtime(), chain(130));
    for is_subscribed in [false, true] {
        let node = Node::start(runtime.handle(), chain[..100].to_vec());
        node.set_finality(Some(90));
        let url = if is_subscribed { node.websocket_url() } else { node.url() };
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![url], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        assert_eq!(followed.view().coverage(), [range(90, 99)]);
        assert_eq!(followed.view().finalized(), Some(BlockNumber(90)));
        for length in 101..=130 {
            node.switch(chain[..length].to_vec(), 92);
            followed.wait_tip(chain[length - 1].hash());
        }
        followed.check(&chain);
        followed.end();
    }
}

#[test]
fn reorgs_of_every_depth_down_to_what_is_final_are_followed() {
    let runtime = runtime();
    let trunk = chain(200);
    let node = Node::start(runtime.handle(), trunk.clone());
    node.set_finality(Some(120));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.websocket_url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[199].hash());
    for (letter, depth) in [(1, 1), (2, 2), (3, 7), (4, 30), (5, 60), (6, 79)] {
        let branch = forked(201, 199 - depth, letter);
        node.switch(branch.clone(), 120);
        followed.wait_tip(branch[200].hash());
        followed.check(&branch);
        // And back: the blocks of the trunk are known.
        let before = node.count("eth_getBlockByHash");
        node.switch(trunk.clone(), 120);
        followed.wait_tip(trunk[199].hash());
        followed.check(&trunk);
        assert_eq!(node.count("eth_getBlockByHash"), before, "known blocks are not asked for");
    }
    followed.end();
    // What was followed is there after a restart.
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    assert_eq!(writer.view().tip(), Some(BlockNumber(199)));
}

#[test]
fn what_is_final_is_sealed_while_the_tip_is_followed() {
    let (runtime, chain) = (runtime(), chain(800));
    let node = Node::start(runtime.handle(), chain[..1].to_vec());
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[0].hash());
    for (length, finalized) in [(300, 200), (600, 511), (800, 790)] {
        node.switch(chain[..length].to_vec(), finalized);
        followed.wait_tip(chain[length - 1].hash());
    }
    let is_sealed = || followed.view().manifest().coverage() == [range(0, 767)];
    followed.wait_for("sealed", |_| is_sealed());
    assert_eq!(followed.view().finalized(), Some(BlockNumber(790)));
    followed.check(&chain);
    followed.end();
    data.check_holds(&chain[..768].iter().map(|it| it.verified.clone()).collect::<Vec<_>>());
}

#[test]
fn a_conflict_below_what_is_final_is_never_followed_and_a_rewind_resolves_it() {
    let (runtime, trunk) = (runtime(), chain(700));
    let branch = forked(710, 400, 1);
    let node = Node::start(runtime.handle(), trunk.clone());
    node.set_finality(Some(650));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    // From genesis, so that much is sealed.
    let early = Node::start(runtime.handle(), trunk[..1].to_vec());
    let first = upstreams(vec![early.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &first, quick(), None);
    followed.wait_tip(trunk[0].hash());
    followed.end();
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[699].hash());
    followed.wait_for("sealed", |_| followed.view().manifest().coverage() == [range(0, 511)]);
    node.switch(branch.clone(), 690);
    let status = followed.wait_for("conflict", |status| status.conflict.is_some());
    let conflict = status.conflict.unwrap();
    assert_eq!(conflict.ours, trunk[conflict.number as usize].hash());
    assert_eq!(conflict.theirs, branch[conflict.number as usize].hash());
    followed.check(&trunk);
    followed.end();
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    writer.rewind_to(BlockNumber(400), trunk[400].hash()).unwrap();
    drop(writer);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(branch[709].hash());
    assert_eq!(followed.board.status().conflict, None);
    followed.check(&branch);
    followed.end();
}

/// A folder that followed this node, whose chain has block 100 as final, and lost its head.
fn lost_at_100(runtime: &Runtime, node: &Node, trunk: &Chain) -> DataFolder {
    node.set_finality(Some(100));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[129].hash());
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(100)));
    followed.end();
    let log = data.files().into_keys().find(|name| is_head_file(name)).unwrap();
    std::fs::remove_file(data.folder.path().join(log)).unwrap();
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.accept_head_loss().unwrap();
    assert_eq!(writer.view().lost(), [range(100, 100)]);
    data
}

/// Seen: after a repair that accepted the loss of the head's log, a backfill and an import took another
/// chain, where the block that was lost lies in the middle of a segment.
#[test]
fn another_block_in_the_place_of_a_lost_one_is_neither_backfilled_nor_imported() {
    let (runtime, trunk) = (runtime(), chain(130));
    let branch = forked(130, 90, 1);
    let node = Node::start(runtime.handle(), trunk.clone());
    let data = lost_at_100(&runtime, &node, &trunk);
    let archives = tempfile::tempdir().unwrap();
    let [ours, theirs] = [("trunk", &trunk), ("branch", &branch)].map(|(name, chain)| {
        let mut difficulty = U256::ZERO;
        let candidate = |told: &Arc<Told>| {
            difficulty += told.verified.header.difficulty;
            let candidate = told.verified.to_candidate();
            Candidate { total_difficulty: Some(difficulty), ..candidate }
        };
        let blocks: Vec<_> = chain.iter().map(candidate).collect();
        write(&archives.path().join(name), Format::Ere, &blocks).remove(0)
    });
    let refused = data.import(&theirs, settings()).unwrap_err();
    assert!(matches!(refused, ImportError::Contradiction { .. }), "{refused}");
    assert!(refused.to_string().contains(&trunk[100].hash().to_string()), "{refused}");
    node.switch(branch, 120);
    fill(&runtime, &data, &upstreams(vec![node.url()], 1), (0, 129), false).unwrap_err();
    assert_eq!(data.store().view().coverage(), []);
    node.switch(trunk.clone(), 120);
    fill(&runtime, &data, &upstreams(vec![node.url()], 1), (0, 119), false).unwrap();
    data.import(&ours, settings()).unwrap();
    assert_eq!(data.store().view().coverage(), [range(0, 129)]);
    assert_eq!(data.store().view().lost(), []);
}

/// Seen: after a repair that accepted the loss of the head's log, another chain was followed in the
/// place of blocks that had been answered as final.
#[test]
fn another_block_in_the_place_of_a_lost_one_is_a_conflict() {
    let (runtime, trunk) = (runtime(), chain(130));
    let branch = forked(140, 90, 1);
    let node = Node::start(runtime.handle(), trunk.clone());
    let data = lost_at_100(&runtime, &node, &trunk);
    let nodes = upstreams(vec![node.url()], 1);
    // Below the lost block nothing tells which chain it is.
    node.switch(branch[..95].to_vec(), 92);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    let is_told = |said: &String| said.contains("tip is block 94, below block 100");
    followed.wait_for("below", |status| status.last_error.as_ref().is_some_and(is_told));
    assert_eq!(followed.view().tip(), None);
    node.switch(branch.clone(), 110);
    let status = followed.wait_for("conflict", |status| status.conflict.is_some());
    let conflict = status.conflict.unwrap();
    assert_eq!((conflict.number, conflict.ours), (100, trunk[100].hash()), "{conflict}");
    assert_eq!(followed.view().tip(), None, "nothing of the other chain is taken");
    node.switch(trunk.clone(), 110);
    followed.wait_tip(trunk[129].hash());
    assert_eq!(followed.board.status().conflict, None);
    followed.end();
}

/// Seen: a node that was far behind was told as a conflict with a block that nobody holds.
#[test]
fn a_tip_below_all_that_is_held_is_no_conflict() {
    let (runtime, trunk) = (runtime(), chain(130));
    let node = Node::start(runtime.handle(), trunk[..100].to_vec());
    node.set_finality(Some(90));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    assert_eq!(followed.view().coverage(), [range(90, 99)]);
    for length in [51, 1] {
        node.switch(trunk[..length].to_vec(), 0);
        let number = length - 1;
        let expected = format!("tip is block {number}, below block 90 that is held here");
        let is_told =
            |error: &Option<String>| error.as_ref().is_some_and(|it| it.contains(&expected));
        let status = followed
            .wait_for("told", |status| status.conflict.is_some() || is_told(&status.last_error));
        assert_eq!(status.conflict, None);
        assert!(!status.is_failure_lasting);
    }
    assert_eq!(nodes.statuses()[0].invalid_count, 0);
    node.switch(trunk.clone(), 92);
    followed.wait_tip(trunk[129].hash());
    assert_eq!(followed.board.status().last_error, None);
    followed.check(&trunk);
    followed.end();
}

/// A tip at or below what is final here contradicts the block that is held under its own number.
#[test]
fn a_low_tip_of_another_branch_is_a_conflict_at_its_own_number() {
    let (runtime, trunk) = (runtime(), chain(100));
    let node = Node::start(runtime.handle(), trunk.clone());
    node.set_finality(Some(80));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    node.set_finality(Some(98));
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(98)));
    // With a parent that both have, and with another one.
    for (fork_point, letter) in [(94, 1), (85, 2)] {
        let branch = forked(96, fork_point, letter);
        node.switch(branch.clone(), 80);
        let is_it = |status: &ingest::follow::FollowStatus| {
            status.conflict.is_some_and(|it| it.theirs == branch[95].hash())
        };
        let conflict = followed.wait_for("conflict", is_it).conflict.unwrap();
        assert_eq!((conflict.number, conflict.ours), (95, trunk[95].hash()));
    }
    assert_eq!(nodes.statuses()[0].invalid_count, 0);
    followed.check(&trunk);
    followed.end();
}

/// Seen: while there was a conflict, all headers down to it were asked for with every poll.
#[test]
fn of_a_conflict_that_is_known_only_its_block_is_asked_for() {
    let (runtime, trunk) = (runtime(), chain(300));
    let branch = forked(310, 90, 1);
    let node = Node::start(runtime.handle(), trunk.clone());
    node.set_finality(Some(100));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[299].hash());
    node.switch(branch, 100);
    followed.wait_for("conflict", |status| status.conflict.is_some());
    let (messages, headers) = (node.message_count(), node.count("eth_getBlockByNumber"));
    followed.wait_for("polled", |_| node.message_count() > messages + 200);
    let messages = node.message_count() - messages;
    let headers = node.count("eth_getBlockByNumber") - headers;
    // The tip and that block; and once a minute, which may be now, all of them.
    assert!(headers <= messages + 250, "{headers} headers in {messages} messages");
    // It is noticed at once when it is resolved.
    node.switch(trunk.clone(), 100);
    followed.wait_for("resolved", |status| status.conflict.is_none());
    followed.check(&trunk);
    followed.end();
}

/// Seen: a notice that could not be read counted as none, and stayed for ever.
#[test]
fn a_notice_that_cannot_be_read_is_replaced() {
    let (runtime, trunk) = (runtime(), chain(100));
    let node = Node::start(runtime.handle(), trunk.clone());
    node.set_finality(Some(90));
    let data = DataFolder::new(&sample_spec());
    let path = data.folder.path().join(store::notice::NOTICE_NAME);
    // Whoever reads it follows it for ever.
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    followed.wait_for("removed", |_| std::fs::symlink_metadata(&path).is_err());
    followed.end();
}

/// Seen: block 608, which had been answered as `finalized`, was reorganised away after a restart.
#[test]
fn what_was_final_before_a_restart_is_not_reorganised_away_after_it() {
    let (runtime, trunk) = (runtime(), chain(640));
    let branch = forked(650, 550, 1);
    let data = DataFolder::new(&sample_spec());
    // From genesis, so that the final block lies inside the head.
    let early = Node::start(runtime.handle(), trunk[..1].to_vec());
    let first = upstreams(vec![early.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &first, quick(), None);
    followed.wait_tip(trunk[0].hash());
    early.switch(trunk.clone(), 608);
    followed.wait_tip(trunk[639].hash());
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(608)));
    followed.end();
    let later = Node::start(runtime.handle(), branch.clone());
    later.set_finality(Some(540));
    let second = upstreams(vec![later.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &second, quick(), None);
    assert_eq!(followed.view().finalized(), Some(BlockNumber(608)), "before any node said a word");
    let is_decided = |status: &ingest::follow::FollowStatus| {
        status.conflict.is_some() || status.tip.is_some_and(|tip| tip.1 == branch[649].hash())
    };
    let status = followed.wait_for("a conflict or a reorg", is_decided);
    let conflict = status.conflict.unwrap_or_else(|| panic!("was reorganised: {status:?}"));
    assert_eq!((conflict.number, conflict.ours), (608, trunk[608].hash()));
    assert_eq!(
        (followed.view().tip(), followed.view().finalized()),
        (Some(BlockNumber(639)), Some(BlockNumber(608)))
    );
    followed.end();
}

#[test]
fn gaps_are_filled_in_the_background_and_the_whole_chain_is_served() {
    let (runtime, chain) = (runtime(), chain(700));
    let node = Node::start(runtime.handle(), chain.clone());
    node.set_finality(Some(600));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0));
    followed.wait_for("whole", |_| followed.view().coverage() == [range(0, 699)]);
    followed.check(&chain);
    followed.end();
}

#[test]
fn a_tip_that_is_too_far_leaves_a_gap_that_is_told() {
    let (runtime, chain) = (runtime(), chain(700));
    let node = Node::start(runtime.handle(), chain[..300].to_vec());
    node.set_finality(Some(0));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[299].hash());
    node.set_finality(Some(299));
    followed.wait_for("sealed", |_| followed.view().manifest().coverage() == [range(0, 255)]);
    followed.end();
    node.switch(chain.clone(), 650);
    let settings = FollowSettings { gap_max: 100, ..quick() };
    let followed = Followed::start(runtime.handle(), &data, &nodes, settings, None);
    followed.wait_tip(chain[699].hash());
    // All that was final is kept, also what is no whole segment.
    assert_eq!(followed.board.status().gap, Some(range(300, 649)));
    assert_eq!(followed.view().coverage(), [range(0, 299), range(650, 699)]);
    followed.check(&chain);
    followed.end();
}

#[test]
fn a_tip_that_moves_backwards_takes_nothing_away() {
    let (runtime, chain) = (runtime(), chain(120));
    let node = Node::start(runtime.handle(), chain[..110].to_vec());
    node.set_finality(Some(50));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[109].hash());
    node.switch(chain[..80].to_vec(), 50);
    followed.wait_for("heard", |status| status.upstream_tip == Some(79));
    assert_eq!(followed.view().tip(), Some(BlockNumber(109)));
    node.switch(chain.clone(), 50);
    followed.wait_tip(chain[119].hash());
    followed.check(&chain);
    followed.end();
}

#[test]
fn a_node_that_lies_about_the_tip_is_set_aside_and_nothing_of_it_is_shown() {
    let (runtime, chain) = (runtime(), chain(120));
    for lie in LIES {
        let [liar, honest] = alike(runtime.handle(), &chain[..100], 90);
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![liar.url(), honest.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        liar.spoil(move |_| Some(lie));
        for node in [&liar, &honest] {
            node.switch(chain.clone(), 92);
        }
        followed.wait_tip(chain[119].hash());
        followed.check(&chain);
        let statuses = followed.nodes.statuses();
        assert_eq!(statuses[0].health, MemberHealth::Quarantined, "{lie:?}");
        assert_eq!(statuses[1].invalid_count, 0, "{lie:?}");
        followed.end();
    }
}

#[test]
fn a_tip_counts_when_a_quorum_agrees_on_it() {
    let (runtime, trunk) = (runtime(), chain(120));
    let branch = forked(125, 105, 1);
    let [one, two, three] = alike(runtime.handle(), &trunk[..110], 100);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![one.url(), two.url(), three.url()], 2);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[109].hash());
    // The preferred one alone goes elsewhere: nobody follows.
    one.switch(branch.clone(), 100);
    two.switch(trunk[..115].to_vec(), 100);
    followed.wait_tip(trunk[109].hash());
    three.switch(trunk.clone(), 100);
    followed.wait_tip(trunk[114].hash());
    two.switch(branch.clone(), 100);
    followed.wait_tip(branch[124].hash());
    followed.check(&branch);
    followed.end();
}

/// Every tip that was ever shown.
#[derive(Debug)]
struct ShownTips {
    store: Arc<Store>,
    tips: Mutex<BTreeSet<B256>>,
}

impl ShownTips {
    fn of(followed: &Followed) -> Arc<Self> {
        let shown = Self { store: Arc::clone(&followed.store), tips: Mutex::default() };
        let shown = Arc::new(shown);
        followed.store.watch(Arc::<Self>::clone(&shown));
        shown
    }
}

impl Watcher for ShownTips {
    fn view_changed(&self) {
        let tip = self.store.view().head().tip().map(|tip| tip.hash());
        self.tips.lock().unwrap().extend(tip);
    }
}

#[test]
fn the_preferred_node_decides_the_tip_whatever_others_tell_by_subscription() {
    let (runtime, trunk) = (runtime(), chain(130));
    let invented = forked(102, 99, 1);
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.websocket_url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    other.wait_count("eth_subscribe", 1);
    let shown = ShownTips::of(&followed);
    let before = preferred.count("eth_getBlockByNumber");
    other.switch(invented.clone(), 90);
    // More often than news needs to arrive.
    preferred.wait_count("eth_getBlockByNumber", before + 10);
    assert_eq!(followed.view().tip(), Some(BlockNumber(99)));
    // What it has itself counts, however low it is.
    preferred.switch(trunk[..101].to_vec(), 90);
    followed.wait_tip(trunk[100].hash());
    preferred.switch(trunk.clone(), 90);
    followed.wait_tip(trunk[129].hash());
    followed.check(&trunk);
    let shown = shown.tips.lock().unwrap().clone();
    assert!(invented[100..].iter().all(|block| !shown.contains(&block.hash())), "{shown:?}");
    assert_eq!(other.count("eth_getBlockByHash"), 0, "nothing of the other's was asked for");
    followed.end();
}

/// A preferred node that tells its tip and refuses a block is asked for the tip on, and the other one
/// only for that block.
#[test]
fn a_refused_block_does_not_let_another_node_decide_the_tip() {
    let (runtime, trunk) = (runtime(), chain(130));
    let invented = forked(120, 104, 1);
    let [preferred, other] = alike(runtime.handle(), &trunk[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[99].hash());
    preferred.spoil(|_| Some(Fault::Refused));
    other.switch(invented.clone(), 115);
    preferred.switch(trunk[..103].to_vec(), 90);
    followed.wait_tip(trunk[102].hash());
    let before = preferred.count("eth_getBlockByNumber");
    preferred.wait_count("eth_getBlockByNumber", before + 20);
    assert_eq!(
        (followed.view().tip(), followed.view().finalized()),
        (Some(BlockNumber(102)), Some(BlockNumber(90)))
    );
    let status = &nodes.statuses()[0];
    assert_eq!((status.health, status.failure_count), (MemberHealth::Healthy, 0), "{status:?}");
    // A block that nobody gives is waited for, and told.
    preferred.switch(trunk[..110].to_vec(), 90);
    followed.wait_for("told", |status| status.last_error.is_some());
    assert_eq!(followed.view().finalized(), Some(BlockNumber(90)));
    preferred.mend();
    followed.wait_tip(trunk[109].hash());
    followed.check(&trunk[..110].to_vec());
    followed.end();
}

/// What is final here may be so by the word of the less preferred node.
#[test]
fn no_less_preferred_node_bears_witness_against_the_preferred_one() {
    let (runtime, trunk) = (runtime(), chain(120));
    let branch = forked(125, 80, 1);
    let [preferred, other] = alike(runtime.handle(), &trunk, 100);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![preferred.url(), other.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[119].hash());
    followed.wait_for("final", |_| followed.view().finalized() == Some(BlockNumber(100)));
    preferred.switch(branch, 110);
    followed.wait_for("conflict", |status| status.conflict.is_some());
    assert_eq!(nodes.statuses()[0].invalid_count, 0);
    assert_eq!(followed.view().tip(), Some(BlockNumber(119)));
    // The other way round the one that is less preferred is not believed.
    preferred.switch(trunk.clone(), 100);
    followed.wait_for("following again", |status| status.conflict.is_none());
    followed.check(&trunk);
    followed.end();
}

/// Nodes that are waited for as long as the program does by itself.
fn patient(urls: Vec<UpstreamUrl>) -> Arc<Upstreams> {
    let (ask, rest) = (AskLimits::default(), RestLimits::default());
    Arc::new(Upstreams::new(urls, &sample_spec(), 1, ask, rest).unwrap())
}

/// Two seconds are promised, and a busy machine is given more. It took 35 to 152 s to wait for a node.
const STOP_MAX: Duration = Duration::from_secs(15);

#[test]
fn following_ends_at_once_whatever_a_node_does() {
    let (runtime, chain) = (runtime(), chain(140));
    let hour = Duration::from_hours(1);
    for fault in [Fault::Stall(hour), Fault::Status(429, Some(3600)), Fault::Truncated] {
        // Silent about everything, about blocks, about what is final.
        for method in ["", "eth_getBlockByHash", "finalized"] {
            let node = Node::start(runtime.handle(), chain[..100].to_vec());
            node.set_finality(Some(90));
            let data = DataFolder::new(&sample_spec());
            let nodes = patient(vec![node.url()]);
            let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0));
            followed.wait_tip(chain[99].hash());
            node.spoil(move |asked| asked.is_about(method).then_some(fault));
            node.switch(chain.clone(), 92);
            node.wait_spoiled(1);
            let begun = Instant::now();
            followed.end();
            let took = begun.elapsed();
            assert!(took < STOP_MAX, "{fault:?} of {method:?}: {took:?}");
        }
    }
}

#[test]
fn a_node_that_is_silent_is_told_and_its_return_too() {
    let (runtime, chain) = (runtime(), chain(120));
    let node = Node::start(runtime.handle(), chain[..100].to_vec());
    for url in [node.url(), node.websocket_url()] {
        node.switch(chain[..100].to_vec(), 90);
        let data = DataFolder::new(&sample_spec());
        let nodes = stalling_upstreams(vec![url]);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        let heard_at = followed.board.status().heard_at.unwrap();
        node.spoil(|_| Some(Fault::Stall(Duration::from_mins(1))));
        let status = followed.wait_for("silent", |status| status.tip_error.is_some());
        assert!(status.tip_error.unwrap().contains("no answer within"));
        assert_eq!(status.tip.unwrap().0, 99);
        node.mend();
        node.switch(chain.clone(), 90);
        followed.wait_tip(chain[119].hash());
        let status = followed.board.status();
        assert_eq!(status.tip_error, None);
        assert!(status.heard_at.unwrap() > heard_at);
        followed.end();
    }
}

#[test]
fn a_follower_that_is_held_up_shows_as_behind_what_is_heard_meanwhile() {
    let (runtime, chain) = (runtime(), chain(120));
    let node = Node::start(runtime.handle(), chain[..100].to_vec());
    node.set_finality(Some(90));
    let data = DataFolder::new(&sample_spec());
    let nodes = patient(vec![node.url()]);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[99].hash());
    let hour = Duration::from_hours(1);
    node.spoil(move |asked| asked.is_about("eth_getBlockByHash").then_some(Fault::Stall(hour)));
    for length in [101, 105, 120] {
        node.switch(chain[..length].to_vec(), 90);
        let heard =
            followed.wait_for("heard", |status| status.upstream_tip == Some(length as u64 - 1));
        assert_eq!(heard.lag(), Some(length as u64 - 100));
        // The first that is not here counts, and not the newest.
        assert_eq!(heard.awaited.first().unwrap().0, 100);
    }
    followed.end();
}

#[test]
fn what_fails_now_is_served_when_the_fault_ends() {
    let (runtime, chain) = (runtime(), chain(140));
    let node = Node::start(runtime.handle(), chain[..100].to_vec());
    node.set_finality(Some(60));
    for url in [node.url(), node.websocket_url()] {
        let data = DataFolder::new(&sample_spec());
        let nodes = stalling_upstreams(vec![url]);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        for (length, fault) in [
            (110, Fault::Status(429, None)),
            (115, Fault::Disconnect),
            (120, Fault::Truncated),
            (125, Fault::Stall(Duration::from_secs(2))),
            (140, Fault::Status(500, None)),
        ] {
            node.spoil(move |_| Some(fault));
            node.switch(chain[..length].to_vec(), 60);
            let is_http_only = matches!(fault, Fault::Status(..));
            if !is_http_only || followed.nodes.name(0) == node.url().name() {
                followed.wait_for("failing", |status| {
                    status.last_error.is_some() || status.tip_error.is_some()
                });
            }
            node.mend();
            followed.wait_tip(chain[length - 1].hash());
        }
        followed.check(&chain);
        followed.end();
        node.switch(chain[..100].to_vec(), 60);
    }
}

/// Seen: what came after the cut was acknowledged, and lost at the next start; and where nothing came
/// after it, all that was answered as final was.
#[test]
fn a_follower_whose_log_is_cut_or_removed_beneath_it_loses_nothing() {
    let (runtime, chain) = (runtime(), chain(110));
    for (is_removed, lengths) in
        [(false, &[105, 110][..]), (true, &[105, 110]), (false, &[]), (true, &[])]
    {
        let node = Node::start(runtime.handle(), chain[..100].to_vec());
        node.set_finality(Some(90));
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
        followed.wait_tip(chain[99].hash());
        let log = data.files().into_keys().find(|name| is_head_file(name)).unwrap();
        let log = data.folder.path().join(log);
        if is_removed {
            std::fs::remove_file(&log).unwrap();
        } else {
            let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }
        for length in lengths {
            node.switch(chain[..*length].to_vec(), 92);
            followed.wait_tip(chain[length - 1].hash());
        }
        followed.end();
        let store = data.store();
        let recovery = store.read_head(data.spec.clone()).unwrap();
        assert!(!recovery.has_damage(), "{recovery:?}");
        let last = lengths.last().map_or(99, |length| *length as u64 - 1);
        assert_eq!(store.view().coverage(), [range(90, last)]);
        let is_kept = data.files().keys().any(|name| name.ends_with(".damaged"));
        assert_eq!(is_kept, !is_removed);
    }
}

/// Seen: with a directory in the place of the log, every poll left a WARN, the server was ready, and the
/// head was lost when it stopped.
#[test]
fn a_follower_whose_log_cannot_be_written_says_so_until_it_can() {
    let (runtime, chain) = (runtime(), chain(110));
    let node = Node::start(runtime.handle(), chain[..100].to_vec());
    node.set_finality(Some(90));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[99].hash());
    let find_log = || {
        std::fs::read_dir(data.folder.path()).unwrap().find_map(|entry| {
            let entry = entry.unwrap();
            let is_log = entry.file_name().into_string().is_ok_and(|name| is_head_file(&name));
            (is_log && entry.file_type().unwrap().is_file()).then(|| entry.path())
        })
    };
    let replace = |path: &std::path::Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    // No new log either: it cannot be staged.
    let staged = data.folder.path().join("head.staged");
    std::fs::create_dir(&staged).unwrap();
    replace(&find_log().unwrap());
    followed.wait_for("told", |status| status.log_error.is_some());
    std::fs::remove_dir(&staged).unwrap();
    followed.wait_for("written again", |status| status.log_error.is_none());
    // A directory in the place of the log alone keeps nobody from writing another.
    replace(&find_log().unwrap());
    followed.wait_for("written anew", |_| find_log().is_some());
    followed.end();
    let store = data.store();
    let recovery = store.read_head(data.spec.clone()).unwrap();
    assert!(!recovery.has_damage(), "{recovery:?}");
    assert_eq!(store.view().coverage(), [range(90, 99)]);
}
