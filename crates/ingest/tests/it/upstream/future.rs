//! Forks that this build does not know: followed where the header can be had as it is, else neither
//! believed nor called a lie.

use alloy_primitives::B256;
use archive::{Archive, Format};
use chain::BlockNumber;
use ingest::backfill::BackfillError;
use ingest::follow::FollowStatus;
use node::{MemberHealth, UpstreamsError};
use serde_json::json;
use store::Writer;
use store::head::HeadLimits;
use store::notice::read_notice;

use crate::check::check;
use crate::harness::folder::DataFolder;
use crate::harness::made::{read_all, write};
use crate::harness::upstream::chains::{Chain, chain, changed, future, sample_spec};
use crate::harness::upstream::faults::Fault;
use crate::harness::upstream::fill::{fill, upstreams, verified};
use crate::harness::upstream::followed::{Followed, alike, quick, runtime};
use crate::harness::upstream::node::Node;

const SAID: &str = "this node is on a fork that this build does not know: upgrade";

/// Follows a node that has blocks 0..139 of a chain and then all of it, of which 150 is not known.
/// Gives the status when following has stopped.
fn stop_below_150(chain: &Chain, has_raw_headers: bool) -> FollowStatus {
    let runtime = runtime();
    let node = Node::start(runtime.handle(), chain[..140].to_vec());
    node.set_finality(Some(130));
    if has_raw_headers {
        node.offer_raw_headers();
    }
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), Some(0));
    followed.wait_tip(chain[139].hash());
    node.switch(chain.clone(), 132);
    followed.wait_for("stopped", |status| status.last_error.is_some());
    followed.wait_tip(chain[149].hash());
    // Older blocks are asked of it all the same.
    followed.wait_for("whole", |_| followed.view().coverage()[0].first() == 0);
    // What cannot be taken is not asked for again and again; its place is.
    let (fetched, asked) = (node.count("eth_getBlockByHash"), node.message_count());
    followed.wait_for("polled", |_| node.message_count() > asked + 20);
    let again = node.count("eth_getBlockByHash") - fetched;
    // Once a minute it is, which may be now.
    assert!(again < 20, "{again} blocks were asked for in 20 polls");
    let status = followed.board.status();
    let [one] = status.upstreams.as_slice() else { panic!("{status:?}") };
    assert_eq!(
        (one.health, one.invalid_count, one.unknown_fork),
        (MemberHealth::Healthy, 0, Some(150))
    );
    let error = status.last_error.clone().unwrap();
    assert!(error.contains("block 150: ") && error.contains(SAID), "{error}");
    let disk = store::disk::Folder::open(data.folder.path()).unwrap();
    assert_eq!(read_notice(&disk).unwrap(), Some(error));
    followed.check(&chain[..150].to_vec());
    // Another block in that place is followed, and the notice goes.
    let known = crate::harness::upstream::chains::chain(170);
    node.switch(known.clone(), 132);
    followed.wait_tip(known[169].hash());
    followed.check(&known);
    assert_eq!(followed.board.status().last_error, None);
    assert_eq!(read_notice(&disk).unwrap(), None);
    followed.end();
    status
}

#[test]
fn a_header_with_an_unknown_field_makes_nobody_a_liar_and_following_stops_below_it() {
    let status = stop_below_150(&future(170, 150), false);
    let error = status.last_error.unwrap();
    assert!(error.contains("`futureRoot`"), "{error}");
}

#[test]
fn a_transaction_of_an_unknown_type_stops_following_and_makes_nobody_a_liar() {
    let chain = changed(170, 150, |header, told| {
        header.transactions_root = B256::repeat_byte(0x26);
        told.block["transactions"][0] = json!({ "type": "0x5", "payload": ["0x1"] });
    });
    let error = stop_below_150(&chain, false).last_error.unwrap();
    assert!(error.contains("transaction 0 has type 5"), "{error}");
}

#[test]
fn receipts_of_an_unknown_shape_stop_following_and_make_nobody_a_liar() {
    let typed = changed(170, 150, |header, told| {
        header.receipts_root = B256::repeat_byte(0x27);
        told.receipts[0]["type"] = json!("0x7");
        told.receipts[0].as_object_mut().unwrap().remove("cumulativeGasUsed");
    });
    let error = stop_below_150(&typed, false).last_error.unwrap();
    assert!(error.contains("receipt 0 has type 7"), "{error}");
    let longer = changed(170, 150, |header, told| {
        header.receipts_root = B256::repeat_byte(0x28);
        told.receipts[0]["gasBurnt"] = json!("0x1");
    });
    let error = stop_below_150(&longer, false).last_error.unwrap();
    assert!(error.contains("receipts give root") && error.contains("`gasBurnt`"), "{error}");
}

#[test]
fn a_body_of_an_unknown_shape_is_not_taken_even_with_its_raw_header() {
    let mut chain = future(170, 150);
    for told in &mut chain[150..] {
        std::sync::Arc::make_mut(told).block["inclusionList"] = json!([]);
    }
    let error = stop_below_150(&chain, true).last_error.unwrap();
    assert!(error.contains("`inclusionList`"), "{error}");
}

#[test]
fn raw_headers_of_an_unknown_fork_are_followed_sealed_and_kept_to_the_byte() {
    let (runtime, chain) = (runtime(), future(300, 150));
    let node = Node::start(runtime.handle(), chain[..1].to_vec());
    node.offer_raw_headers();
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[0].hash());
    node.switch(chain.clone(), 100);
    followed.wait_tip(chain[299].hash());
    followed.check(&chain);
    followed.end();
    // The head's log gives them back,
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    let recovery = writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    assert!(
        !recovery.has_damage() && writer.view().tip() == Some(BlockNumber(299)),
        "{recovery:?}"
    );
    drop(writer);
    // and so does a segment.
    node.switch(chain.clone(), 290);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_for("sealed", |_| !followed.view().manifest().coverage().is_empty());
    followed.check(&chain);
    assert_eq!(nodes.statuses()[0].unknown_fork, None);
    followed.end();
    data.check_holds(&verified(&chain, 0..256));
    let (found, refused) = check(&data);
    assert!(refused.is_empty() && found.block_count == 256, "{refused:?}");
    // An archive of them, too.
    let blocks: Vec<_> = chain[150..].iter().map(|told| told.verified.to_candidate()).collect();
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks);
    assert_eq!(read_all(&Archive::open(&files[0]).unwrap()).unwrap(), blocks);
    assert!(chain[255].verified.header_rlp != alloy_rlp::encode(&chain[255].verified.header));
}

#[test]
fn a_node_on_an_unknown_fork_is_passed_over_for_one_that_gives_raw_headers() {
    let (runtime, chain) = (runtime(), future(170, 150));
    let [bare, raw] = alike(runtime.handle(), &chain[..140], 130);
    raw.offer_raw_headers();
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![bare.url(), raw.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[139].hash());
    for node in [&raw, &bare] {
        node.switch(chain.clone(), 132);
    }
    followed.wait_tip(chain[169].hash());
    followed.check(&chain);
    let statuses = nodes.statuses();
    assert_eq!((statuses[0].invalid_count, statuses[1].invalid_count), (0, 0));
    assert!(statuses[0].unknown_fork >= Some(150) && statuses[1].unknown_fork.is_none());
    followed.end();
}

#[test]
fn a_lie_with_an_unknown_member_is_not_stored_and_gains_nothing() {
    let (runtime, chain) = (runtime(), chain(120));
    let [liar, honest] = alike(runtime.handle(), &chain[..100], 90);
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![liar.url(), honest.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[99].hash());
    liar.spoil(|_| Some(Fault::ExcusedHash));
    for node in [&honest, &liar] {
        node.switch(chain.clone(), 92);
    }
    followed.wait_tip(chain[119].hash());
    followed.check(&chain);
    let statuses = nodes.statuses();
    assert!(statuses[0].unknown_fork.is_some(), "{statuses:?}");
    assert_eq!((statuses[0].invalid_count, statuses[1].invalid_count), (0, 0));
    followed.end();
}

#[test]
fn a_backfill_refuses_blocks_of_an_unknown_fork_and_takes_those_below() {
    let runtime = runtime();
    let receipts = changed(170, 150, |header, told| {
        header.receipts_root = B256::repeat_byte(0x28);
        told.receipts[0]["gasBurnt"] = json!("0x1");
    });
    for chain in [future(170, 150), receipts] {
        let node = Node::start(runtime.handle(), chain.clone());
        let data = DataFolder::new(&sample_spec());
        let nodes = upstreams(vec![node.url()], 1);
        let refused = fill(&runtime, &data, &nodes, (0, 169), false).unwrap_err();
        let is_unknown =
            matches!(refused, BackfillError::Upstreams(UpstreamsError::UnknownFork { .. }));
        assert!(is_unknown && refused.to_string().contains(SAID), "{refused}");
        assert_eq!(nodes.statuses()[0].invalid_count, 0);
        assert!(data.store().view().coverage().is_empty());
        fill(&runtime, &data, &nodes, (0, 149), false).unwrap();
        data.check_holds(&verified(&chain, 0..150));
        if chain[150].block.get("futureRoot").is_some() {
            node.offer_raw_headers();
            let again = upstreams(vec![node.url()], 1);
            fill(&runtime, &data, &again, (150, 169), false).unwrap();
            data.check_holds(&verified(&chain, 0..170));
        }
    }
}
