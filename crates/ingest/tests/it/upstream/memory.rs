//! What is under way has a bound, and a head that is full keeps serving.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::B256;
use node::{AskLimits, RestLimits, Upstreams};
use store::Writer;
use store::head::HeadLimits;
use store::notice::read_notice;

use crate::harness::folder::DataFolder;
use crate::harness::upstream::chains::{chain, forked, sample_spec};
use crate::harness::upstream::fill::upstreams;
use crate::harness::upstream::followed::{Followed, quick, runtime};
use crate::harness::upstream::node::Node;

/// What is added to every block: sixty of them are more than may be under way.
const PADDING: usize = 2 << 20;
/// What may be under way: the budget of a chunk and the message that fills it.
const UNDER_WAY_MAX: u64 = (64 + 20) << 20;

/// What was seen while blocks were handed out.
#[derive(Default)]
struct Observations {
    log_bytes: u64,
    /// Bytes that were handed out since the head's log last changed.
    under_way: u64,
    most_under_way: u64,
    tips: Vec<Option<B256>>,
}

fn log_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let logs = entries.filter(|entry| entry.path().extension().is_some_and(|it| it == "log"));
    // A log may be replaced by another while we look.
    logs.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

#[test]
fn branches_of_large_blocks_are_stored_chunk_by_chunk_and_a_reorg_is_seen_as_a_whole() {
    let runtime = runtime();
    let (trunk, branch) = (chain(160), forked(161, 100, 1));
    let node = Node::start(runtime.handle(), trunk[..101].to_vec());
    node.set_finality(Some(90));
    let data = DataFolder::new(&sample_spec());
    // A message of many megabytes takes its time on a busy machine.
    let ask = AskLimits { answer_timeout: Duration::from_mins(1), ..AskLimits::default() };
    let nodes = Upstreams::new(vec![node.url()], &sample_spec(), 1, ask, RestLimits::default());
    let nodes = Arc::new(nodes.unwrap());
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[100].hash());
    node.pad_blocks(PADDING);
    for (target, old_tip) in [(&trunk, None), (&branch, Some(trunk[159].hash()))] {
        let seen = Arc::new(Mutex::new(Observations::default()));
        let (kept, store) = (Arc::clone(&seen), Arc::clone(&followed.store));
        let folder = data.folder.path().to_owned();
        node.observe(move |bytes| {
            let mut seen = kept.lock().unwrap();
            let log_bytes = log_bytes(&folder);
            if log_bytes != seen.log_bytes {
                (seen.log_bytes, seen.under_way) = (log_bytes, 0);
            }
            seen.under_way += bytes;
            seen.most_under_way = seen.most_under_way.max(seen.under_way);
            seen.tips.push(store.view().head().tip().map(|tip| tip.hash()));
        });
        node.switch(target.clone(), 90);
        followed.wait_tip(target.last().unwrap().hash());
        followed.check(target);
        node.observe(|_| ());
        let seen = seen.lock().unwrap();
        let most = seen.most_under_way;
        assert!(most > 32 << 20 && most <= UNDER_WAY_MAX, "{most} bytes under way");
        if let Some(old_tip) = old_tip {
            let new_tip = target.last().unwrap().hash();
            let is_whole = |tip: &Option<B256>| [Some(old_tip), Some(new_tip)].contains(tip);
            assert!(seen.tips.iter().all(is_whole), "{:?}", seen.tips);
        }
    }
    followed.end();
}

#[test]
fn a_full_head_keeps_serving_says_so_and_goes_on_when_finality_moves() {
    let (runtime, chain) = (runtime(), chain(600));
    let node = Node::start(runtime.handle(), chain[..300].to_vec());
    node.set_finality(Some(0));
    let data = DataFolder::new(&sample_spec());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[299].hash());
    followed.end();
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    let limits = HeadLimits { bytes_max: writer.head_bytes() + (1 << 10) };
    drop(writer);
    let followed = Followed::start_limited(runtime.handle(), &data, &nodes, quick(), None, limits);
    followed.wait_tip(chain[299].hash());
    node.switch(chain.clone(), 0);
    let status = followed.wait_for("full", |status| status.last_error.is_some());
    let error = status.last_error.unwrap();
    assert!(error.starts_with("the head would have "), "{error}");
    followed.check(&chain[..300].to_vec());
    let disk = store::disk::Folder::open(data.folder.path()).unwrap();
    assert_eq!(read_notice(&disk).unwrap(), Some(error));
    // What cannot be stored is not fetched again and again.
    let (fetched, asked) = (node.count("eth_getBlockByHash"), node.message_count());
    followed.wait_for("polled", |_| node.message_count() > asked + 20);
    let again = node.count("eth_getBlockByHash") - fetched;
    // Once a minute it is, which may be now.
    assert!(again < 20, "{again} blocks were asked for in 20 polls");
    node.set_finality(Some(550));
    followed.wait_tip(chain[599].hash());
    followed.check(&chain);
    assert_eq!(followed.board.status().last_error, None);
    assert_eq!(read_notice(&disk).unwrap(), None);
    followed.end();
}
