//! Ranges from nodes: what is stored is what the chain has, whatever the nodes do.

use std::time::Duration;

use chain::trust::Anchor;
use ingest::backfill::BackfillError;
use ingest::import::ImportError;
use node::{AskLimits, HeaderClaim, MemberHealth, Upstreams, UpstreamsError, WantedBlock};
use tokio::runtime::Runtime;

use crate::harness::folder::DataFolder;
use crate::harness::upstream::chains::{chain, forked, sample_spec};
use crate::harness::upstream::faults::{Fault, LIES};
use crate::harness::upstream::fill::{
    fill, fill_to, quick, stalling_upstreams, upstreams, verified,
};
use crate::harness::upstream::node::Node;

const BLOCKS: u64 = 700;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn every_block_of_a_node_is_stored_as_the_chain_has_it() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    let node = Node::start(runtime.handle(), chain.clone());
    for url in [node.url(), node.websocket_url()] {
        let data = DataFolder::new(&sample_spec());
        fill(&runtime, &data, &upstreams(vec![url], 1), (0, BLOCKS - 1), false).unwrap();
        data.check_holds(&verified(&chain, 0..BLOCKS as usize));
        let statuses = data.store().view().manifest().statuses().unwrap();
        assert!(
            statuses.iter().all(|(_, status)| *status != chain::trust::TrustStatus::Unanchored)
        );
    }
}

#[test]
fn nodes_without_batches_and_without_lists_of_receipts_give_the_same() {
    let (runtime, chain) = (runtime(), chain(120));
    let node = Node::start(runtime.handle(), chain.clone());
    node.refuse_batches();
    node.lack_block_receipts();
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &upstreams(vec![node.url()], 1), (0, 119), false).unwrap();
    data.check_holds(&verified(&chain, 0..120));
    assert!(node.count("eth_getTransactionReceipt") > 50);
}

#[test]
fn a_node_that_lies_is_named_and_another_is_asked() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    for lie in LIES {
        let (liar, honest) = (
            Node::start(runtime.handle(), chain.clone()),
            Node::start(runtime.handle(), chain.clone()),
        );
        // Late enough that much was true before.
        let mut messages = 0;
        liar.spoil(move |_| {
            messages += 1;
            (messages > 20).then_some(lie)
        });
        let upstreams = upstreams(vec![liar.url(), honest.url()], 1);
        let data = DataFolder::new(&sample_spec());
        fill(&runtime, &data, &upstreams, (0, BLOCKS - 1), false).unwrap();
        data.check_holds(&verified(&chain, 0..BLOCKS as usize));
        let statuses = upstreams.statuses();
        assert_eq!(
            (statuses[0].health, statuses[0].invalid_count),
            (MemberHealth::Quarantined, 1),
            "{lie:?}"
        );
        assert_eq!(
            (statuses[1].health, statuses[1].invalid_count),
            (MemberHealth::Healthy, 0),
            "{lie:?}"
        );
    }
}

#[test]
fn a_single_node_that_lies_leaves_nothing_behind() {
    let (runtime, chain) = (runtime(), chain(300));
    for lie in LIES {
        let node = Node::start(runtime.handle(), chain.clone());
        node.spoil(move |asked| {
            asked.methods.iter().any(|it| it == "eth_getBlockReceipts").then_some(lie)
        });
        let data = DataFolder::new(&sample_spec());
        let refused = fill(&runtime, &data, &upstreams(vec![node.url()], 1), (0, 299), false);
        let error = refused.unwrap_err();
        assert!(matches!(error, BackfillError::Upstreams(UpstreamsError::NoneLeft(_))), "{error}");
        assert!(error.to_string().contains(node.url().name()), "{error}");
        assert!(data.store().view().coverage().is_empty());
    }
}

#[test]
fn a_node_that_fails_now_and_then_is_asked_again_until_all_is_there() {
    let (runtime, chain) = (runtime(), chain(400));
    let failures = [
        Fault::Status(429, None),
        Fault::Status(503, None),
        Fault::Status(500, None),
        Fault::Stall(Duration::from_secs(3)),
        Fault::Disconnect,
        Fault::Truncated,
    ];
    let node = Node::start(runtime.handle(), chain.clone());
    let mut messages = 0;
    node.spoil(move |_| {
        messages += 1;
        (messages % 3 == 0).then(|| failures[messages / 3 % failures.len()])
    });
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &stalling_upstreams(vec![node.url()]), (0, 399), false).unwrap();
    data.check_holds(&verified(&chain, 0..400));
}

#[test]
fn a_storm_of_refusals_is_waited_out() {
    let (runtime, chain) = (runtime(), chain(200));
    let node = Node::start(runtime.handle(), chain.clone());
    let mut messages = 0;
    node.spoil(move |_| {
        messages += 1;
        let is_storm = (10..60).contains(&messages);
        is_storm.then_some(Fault::Status(429, (messages == 10).then_some(1)))
    });
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &upstreams(vec![node.url()], 1), (0, 199), false).unwrap();
    data.check_holds(&verified(&chain, 0..200));
    assert!(node.message_count() > 60);
}

#[test]
fn a_node_without_post_state_roots_is_told_apart_from_one_that_lies() {
    let (runtime, chain) = (runtime(), chain(60));
    let node = Node::start(runtime.handle(), chain);
    node.spoil(|_| Some(Fault::NoPostState));
    let upstreams = upstreams(vec![node.url()], 1);
    let data = DataFolder::new(&sample_spec());
    let refused = fill(&runtime, &data, &upstreams, (0, 59), false).unwrap_err();
    let expected = "this upstream cannot give post-state roots before Byzantium";
    assert!(refused.to_string().contains(expected), "{refused}");
    assert_eq!(upstreams.statuses()[0].invalid_count, 0);
}

#[test]
fn a_range_below_what_is_held_is_proven_by_it_and_one_that_links_to_nothing_is_refused() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    let node = Node::start(runtime.handle(), chain.clone());
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let refused = fill(&runtime, &data, &nodes, (500, 599), false).unwrap_err();
    assert!(matches!(refused, BackfillError::Import(ImportError::Unanchored { .. })), "{refused}");
    fill(&runtime, &data, &nodes, (500, 599), true).unwrap();
    // A chain that is true in itself, and another: only the child tells.
    let other = Node::start(runtime.handle(), forked(BLOCKS, 450, 1));
    let both = upstreams(vec![other.url(), node.url()], 1);
    fill(&runtime, &data, &both, (300, 699), false).unwrap();
    data.check_holds(&verified(&chain, 300..700));
}

/// Seen: a node was called a liar because blocks that are held were not of its chain, though nothing
/// proved them.
#[test]
fn a_node_whose_blocks_do_not_fit_those_that_are_held_is_passed_over_and_no_liar() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    let node = Node::start(runtime.handle(), chain.clone());
    let other = Node::start(runtime.handle(), forked(BLOCKS, 450, 1));
    // Below the blocks that are held, and above them.
    for blocks in [(300, 499), (600, 699)] {
        let data = DataFolder::new(&sample_spec());
        fill(&runtime, &data, &upstreams(vec![node.url()], 1), (500, 599), true).unwrap();
        let alone = upstreams(vec![other.url()], 1);
        let refused = fill(&runtime, &data, &alone, blocks, false).unwrap_err();
        let is_other = |error: &BackfillError| {
            matches!(error, BackfillError::Upstreams(UpstreamsError::OtherBranch { .. }))
        };
        assert!(is_other(&refused), "{refused}");
        for said in [other.url().name(), "one of them is of another branch"] {
            assert!(refused.to_string().contains(said), "{refused}");
        }
        // It is not fetched again in vain, and its word on all else counts on.
        let asked = other.count("eth_getBlockReceipts");
        assert!(is_other(&fill(&runtime, &data, &alone, blocks, false).unwrap_err()));
        assert_eq!(other.count("eth_getBlockReceipts"), asked);
        assert_eq!(runtime.block_on(alone.fetch_tip()).unwrap().claim.number, BLOCKS - 1);
        let both = upstreams(vec![other.url(), node.url()], 1);
        fill(&runtime, &data, &both, blocks, false).unwrap();
        let status = &both.statuses()[0];
        assert_eq!((status.health, status.invalid_count), (MemberHealth::Healthy, 0), "{status:?}");
    }
}

#[test]
fn a_node_whose_blocks_contradict_an_anchor_that_proves_what_is_held_lies() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    let node = Node::start(runtime.handle(), chain.clone());
    let other = Node::start(runtime.handle(), forked(BLOCKS, 450, 1));
    let mut data = DataFolder::new(&sample_spec());
    let anchor = Anchor { number: 550, hash: chain[550].hash() };
    data.anchors = data.anchors.clone().with_operator(anchor).unwrap();
    fill(&runtime, &data, &upstreams(vec![node.url()], 1), (500, 599), false).unwrap();
    let both = upstreams(vec![other.url(), node.url()], 1);
    fill(&runtime, &data, &both, (300, 499), false).unwrap();
    let status = &both.statuses()[0];
    assert_eq!((status.health, status.invalid_count), (MemberHealth::Quarantined, 1), "{status:?}");
    data.check_holds(&verified(&chain, 300..600));
}

/// Seen: of a node that takes no batches, sixteen answers of the largest size were held at once.
#[test]
fn as_many_single_questions_are_asked_at_once_as_there_is_room_for() {
    let (runtime, chain) = (runtime(), chain(60));
    let node = Node::start(runtime.handle(), chain);
    node.refuse_batches();
    let nodes = upstreams(vec![node.url()], 1);
    let wanted: Vec<WantedBlock> = (30..38).map(WantedBlock::Number).collect();
    let fetch = || runtime.block_on(nodes.fetch_blocks(&wanted, Duration::ZERO)).unwrap().1.len();
    // Until the pace is no bound any more: sixteen at a time.
    for _ in 0..16 {
        assert_eq!(fetch(), 8);
    }
    node.spoil(|_| Some(Fault::Stall(Duration::from_millis(100))));
    node.most_under_way();
    // Five of the largest answers are as much as all of them may have. On a busy machine the pace falls
    // and rises again.
    let mut seen = Vec::new();
    while seen.len() < 50 && seen.iter().all(|most| *most < 2) {
        assert_eq!(fetch(), 8);
        seen.push(node.most_under_way());
    }
    assert!(seen.last().is_some_and(|most| (2..=5).contains(most)), "{seen:?} at once");
}

/// Seen: whatever a node refused block 0 with, it was taken for one without old history, and its chain
/// for ours.
#[test]
fn only_a_node_that_does_not_know_block_0_is_taken_to_lack_it() {
    let (runtime, chain) = (runtime(), chain(20));
    let node = Node::start(runtime.handle(), chain);
    let introduce = || runtime.block_on(upstreams(vec![node.url()], 1).introduce());
    node.spoil(|_| Some(Fault::RefusedGenesis(4444, "pruned history unavailable")));
    assert_eq!(introduce().unwrap().genesis_hash, None);
    node.spoil(|_| Some(Fault::RefusedGenesis(-32603, "internal error")));
    let refused = introduce().unwrap_err();
    assert!(refused.to_string().contains("internal error"), "{refused}");
    node.mend();
    assert_eq!(introduce().unwrap().genesis_hash, sample_spec().genesis_hash());
}

#[test]
fn the_files_are_those_that_an_import_of_the_same_blocks_gives() {
    let (runtime, chain) = (runtime(), chain(BLOCKS));
    let node = Node::start(runtime.handle(), chain);
    let nodes = upstreams(vec![node.url()], 1);
    let (whole, parts) = (DataFolder::new(&sample_spec()), DataFolder::new(&sample_spec()));
    fill(&runtime, &whole, &nodes, (0, BLOCKS - 1), false).unwrap();
    for blocks in [(0, 99), (400, 520), (250, 399), (0, BLOCKS - 1)] {
        fill(&runtime, &parts, &nodes, blocks, true).unwrap();
    }
    assert!(whole.files() == parts.files());
}

#[test]
fn a_node_of_another_chain_is_set_aside_and_the_others_are_asked() {
    let (runtime, chain) = (runtime(), chain(20));
    let (own, foreign) = (
        Node::start(runtime.handle(), chain.clone()),
        Node::start(runtime.handle(), chain.clone()),
    );
    foreign.set_chain_id(5);
    let nodes = upstreams(vec![foreign.url(), own.url()], 1);
    let told = runtime.block_on(nodes.introduce()).unwrap();
    assert_eq!(told.genesis_hash, sample_spec().genesis_hash());
    let status = &nodes.statuses()[0];
    assert_eq!(status.health, MemberHealth::Quarantined);
    let said = status.to_string();
    assert!(said.contains("another chain: it has chain id 5, expected 20260101"), "{said}");
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &nodes, (0, 19), false).unwrap();
    data.check_holds(&verified(&chain, 0..20));
    assert_eq!(foreign.count("eth_getBlockReceipts"), 0);
    // Where all are, that is an error.
    let nodes = upstreams(vec![foreign.url()], 1);
    let refused = runtime.block_on(nodes.introduce()).unwrap_err();
    assert!(refused.to_string().contains("chain id 5"), "{refused}");
}

/// Seen: a node that lacked roots of old receipts was not asked for its tip any more.
#[test]
fn a_node_without_post_state_roots_is_asked_for_all_other_blocks() {
    let (runtime, chain) = (runtime(), chain(60));
    let (lacking, whole) = (
        Node::start(runtime.handle(), chain.clone()),
        Node::start(runtime.handle(), chain.clone()),
    );
    lacking.spoil(|_| Some(Fault::NoPostState));
    let nodes = upstreams(vec![lacking.url(), whole.url()], 1);
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &nodes, (0, 59), false).unwrap();
    data.check_holds(&verified(&chain, 0..60));
    let status = &nodes.statuses()[0];
    assert_eq!((status.health, status.invalid_count), (MemberHealth::Healthy, 0), "{status:?}");
    let asked = |node: &Node| node.count("eth_getBlockReceipts");
    let (before, before_whole) = (asked(&lacking), asked(&whole));
    let wanted = |number| [WantedBlock::Number(number)];
    let ask = |number| {
        runtime
            .block_on(nodes.fetch_blocks(&wanted(number), Duration::ZERO))
            .map(|(place, _)| place)
    };
    // Byzantium begins with block 24.
    assert_eq!((ask(24).unwrap(), asked(&lacking)), (0, before + 1));
    assert_eq!((ask(23).unwrap(), asked(&whole)), (1, before_whole + 1));
    assert_eq!(asked(&lacking), before + 1);
}

/// Seen: without a method for ommers a backfill was tried again for ever, and receipts that are null
/// were told as a block that is not there.
#[test]
fn what_a_node_lacks_of_a_block_is_named_and_another_is_asked() {
    let (runtime, chain) = (runtime(), chain(60));
    let wanted: Vec<WantedBlock> = (0..60).map(WantedBlock::Number).collect();
    for (fault, said, patience) in [
        (
            Fault::NoOmmerMethod,
            "the node does not offer eth_getUncleByBlockHashAndIndex",
            // No waiting helps.
            Duration::from_hours(1),
        ),
        (Fault::NoReceipts, "is there, and its receipts are not", Duration::from_millis(300)),
        (Fault::NoBlock, "block 0 is not there", Duration::from_millis(300)),
    ] {
        let node = Node::start(runtime.handle(), chain.clone());
        node.spoil(move |_| Some(fault));
        let nodes = upstreams(vec![node.url()], 1);
        let refused = runtime.block_on(nodes.fetch_blocks(&wanted, patience)).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.starts_with("no upstream has block") && refused.contains(said),
            "{refused}"
        );
        assert_eq!(nodes.statuses()[0].invalid_count, 0);
        let data = DataFolder::new(&sample_spec());
        // Another node has it.
        let whole = Node::start(runtime.handle(), chain.clone());
        let nodes = upstreams(vec![node.url(), whole.url()], 1);
        fill(&runtime, &data, &nodes, (0, 59), false).unwrap();
        data.check_holds(&verified(&chain, 0..60));
    }
}

/// Behind one address, a backend may lag.
#[test]
fn a_block_that_the_only_node_lacks_is_requested_again() {
    let (runtime, chain) = (runtime(), chain(60));
    for fault in [Fault::NoBlock, Fault::NoReceipts] {
        let node = Node::start(runtime.handle(), chain.clone());
        let mut left = 12_u32;
        node.spoil(move |asked| {
            let is_spoiled = left > 0 && asked.is_about("eth_getBlockReceipts");
            left -= u32::from(is_spoiled);
            is_spoiled.then_some(fault)
        });
        let nodes = upstreams(vec![node.url()], 1);
        let data = DataFolder::new(&sample_spec());
        fill(&runtime, &data, &nodes, (0, 59), false).unwrap();
        data.check_holds(&verified(&chain, 0..60));
    }
}

/// Behind one address, another backend may have another block of its number.
#[test]
fn no_other_block_is_taken_in_the_place_of_the_final_one() {
    let (runtime, trunk, other) = (runtime(), chain(60), forked(60, 55, 1));
    for (finalized, is_taken) in [(&trunk[59], true), (&other[59], false)] {
        let node = Node::start(runtime.handle(), other.clone());
        node.switch(trunk.clone(), 59);
        let claim = HeaderClaim {
            number: 59,
            hash: finalized.hash(),
            parent_hash: finalized.verified.header.parent_hash,
        };
        let (data, nodes) = (DataFolder::new(&sample_spec()), upstreams(vec![node.url()], 1));
        let filled = fill_to(&runtime, &data, &nodes, (0, 59), false, Some(claim));
        assert_eq!(filled.is_ok(), is_taken, "{filled:?}");
        assert_eq!(data.store().view().coverage().is_empty(), !is_taken);
    }
}

/// Seen: a node that was away for half a minute, and then lagged once, ended a backfill.
#[test]
fn the_wait_for_a_block_that_a_node_lacks_begins_when_the_node_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let node = Node::start(runtime.handle(), chain(60));
    let nodes = upstreams(vec![node.url()], 1);
    let wanted = [WantedBlock::Number(30)];
    runtime.block_on(nodes.fetch_blocks(&wanted, Duration::ZERO)).unwrap();
    let before = node.message_count();
    node.spoil(|_| Some(Fault::Disconnect));
    let away = async {
        while node.message_count() == before {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
        let mut left = 3_u32;
        node.spoil(move |_| {
            left = left.saturating_sub(1);
            (left > 0).then_some(Fault::NoBlock)
        });
    };
    let fetched = nodes.fetch_blocks(&wanted, Duration::from_mins(10));
    let (fetched, ()) = runtime.block_on(async { tokio::join!(fetched, away) });
    fetched.unwrap();
}

/// Seen: one refusal made a node be asked many times as often for as long as the process ran.
#[test]
fn a_faster_way_that_a_node_refused_is_tried_again_after_minutes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let node = Node::start(runtime.handle(), chain(60));
    node.refuse_batches();
    node.lack_block_receipts();
    let nodes = upstreams(vec![node.url()], 1);
    let wanted: Vec<WantedBlock> = (30..38).map(WantedBlock::Number).collect();
    let messages = || {
        let before = node.message_count();
        runtime.block_on(nodes.fetch_blocks(&wanted, Duration::ZERO)).unwrap();
        node.message_count() - before
    };
    messages();
    node.be_upgraded();
    let slow = messages();
    runtime.block_on(async {
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(5)).await;
        tokio::time::resume();
    });
    let receipts = node.count("eth_getTransactionReceipt");
    let fast = messages();
    assert!(slow > 16 && fast < slow / 2, "{slow} messages, and later {fast}");
    assert_eq!(node.count("eth_getTransactionReceipt"), receipts);
}

/// Seen: a node could make us ask for any number of ommers.
#[test]
fn a_block_that_lists_more_ommers_than_a_block_has_is_a_lie() {
    let (runtime, chain) = (runtime(), chain(60));
    let (liar, honest) = (
        Node::start(runtime.handle(), chain.clone()),
        Node::start(runtime.handle(), chain.clone()),
    );
    liar.spoil(|_| Some(Fault::ManyOmmers));
    let nodes = upstreams(vec![liar.url(), honest.url()], 1);
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &nodes, (0, 59), false).unwrap();
    data.check_holds(&verified(&chain, 0..60));
    assert_eq!(liar.count("eth_getUncleByBlockHashAndIndex"), 0);
    let status = &nodes.statuses()[0];
    assert_eq!((status.health, status.invalid_count), (MemberHealth::Quarantined, 1), "{status:?}");
}

/// Seen: what one message was refused for, its halves brought, without any bound.
#[test]
fn all_answers_about_some_blocks_have_one_bound() {
    let (runtime, chain) = (runtime(), chain(60));
    let node = Node::start(runtime.handle(), chain);
    let (ask, rest) = quick();
    let ask = AskLimits { answer_bytes_max: 256 << 10, ..ask };
    let nodes = Upstreams::new(vec![node.url()], &sample_spec(), 1, ask, rest).unwrap();
    let wanted: Vec<WantedBlock> = (30..38).map(WantedBlock::Number).collect();
    let fetch = || runtime.block_on(nodes.fetch_blocks(&wanted, Duration::ZERO));
    // Each alone is small enough, and so are all of them together.
    node.pad_blocks(100 << 10);
    assert_eq!(fetch().unwrap().1.len(), 8);
    node.pad_blocks(200 << 10);
    let refused = fetch().unwrap_err();
    let expected = format!("larger than {} bytes", 5 * (256 << 10));
    assert!(refused.to_string().contains(&expected), "{refused}");
}

#[test]
fn senders_are_recovered_from_signatures_whatever_the_node_answers() {
    let (runtime, chain) = (runtime(), chain(120));
    let node = Node::start(runtime.handle(), chain.clone());
    let upstreams = upstreams(vec![node.url()], 1);
    let data = DataFolder::new(&sample_spec());
    fill(&runtime, &data, &upstreams, (0, 59), false).unwrap();
    node.spoil(|_| Some(Fault::WrongSender));
    fill(&runtime, &data, &upstreams, (60, 119), false).unwrap();
    data.check_holds(&verified(&chain, 0..120));
    let status = &upstreams.statuses()[0];
    assert_eq!((status.health, status.invalid_count), (MemberHealth::Healthy, 0), "{status}");
}
