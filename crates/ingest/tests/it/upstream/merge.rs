//! Slots that become complete at the tip: the follower goes on, and they are merged beside it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chain::BlockNumber;
use ingest::import::merge_next;
use ingest::prove::NoProgress;
use store::head::HeadLimits;
use store::{CommitFacts, Store, Watcher, Writer};

use crate::check::check;
use crate::harness::folder::DataFolder;
use crate::harness::made::threads;
use crate::harness::upstream::chains::{Chain, chain, sample_spec};
use crate::harness::upstream::fill::upstreams;
use crate::harness::upstream::followed::{Followed, quick, runtime};
use crate::harness::upstream::node::Node;

/// Blocks of a slot.
const SLOT: usize = 8192;
/// Blocks of a young segment.
const YOUNG: usize = 256;

/// A folder that followed a chain up to a block and sealed it piece after piece.
fn sealed_up_to(chain: &Chain, end: usize) -> DataFolder {
    let data = DataFolder::new(&sample_spec());
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    let network = store::manifest::Network {
        name: Some(data.spec.name().to_owned()),
        chain_id: data.spec.chain_id(),
        genesis_hash: data.spec.genesis_hash(),
    };
    for piece in chain[..end].chunks(YOUNG) {
        writer.extend(piece.iter().map(|told| told.verified.clone()).collect()).unwrap();
        let last = piece.last().unwrap().number();
        writer
            .seal(
                BlockNumber(last),
                CommitFacts { network: network.clone(), ..CommitFacts::default() },
            )
            .unwrap();
    }
    data
}

/// Segments and lookups, and what lists them. What a manifest records of the head, which may stand
/// anywhere, is left out.
fn files(data: &DataFolder) -> BTreeMap<String, Vec<u8>> {
    let mut files = data.files();
    files.retain(|name, _| !name.starts_with("head"));
    let manifest = String::from_utf8(files["manifest"].clone()).unwrap();
    let is_of_files = |line: &&str| !line.starts_with("head ") && !line.starts_with("checksum ");
    let manifest: Vec<&str> = manifest.lines().filter(is_of_files).collect();
    files.insert("manifest".to_owned(), manifest.join("\n").into_bytes());
    files
}

/// How many segments every view listed that held a whole slot.
#[derive(Debug)]
struct Shown {
    store: Arc<Store>,
    counts: Mutex<Vec<usize>>,
}

impl Watcher for Shown {
    fn view_changed(&self) {
        let view = self.store.view();
        let held: u64 = view.manifest().coverage().iter().map(chain::BlockRange::count).sum();
        if held == SLOT as u64 {
            self.counts.lock().unwrap().push(view.manifest().segments().len());
        }
    }
}

#[test]
fn a_slot_that_is_completed_at_the_tip_is_merged_beside_it_and_after_a_restart() {
    let (runtime, chain) = (runtime(), chain(SLOT as u64 + 40));
    // Merged by whoever writes next, without a node.
    let direct = sealed_up_to(&chain, SLOT);
    let mut writer = Writer::open(direct.store(), direct.spec.clone()).unwrap();
    assert_eq!(writer.view().manifest().segments().len(), SLOT / YOUNG);
    let mut merge = || merge_next(&mut writer, &direct.spec, threads(2), &NoProgress, &|_| ());
    assert_eq!((merge().unwrap(), merge().unwrap()), (true, false));
    assert_eq!(writer.view().manifest().segments().len(), 1);
    drop(writer);
    let expected = files(&direct);

    let data = sealed_up_to(&chain, SLOT - YOUNG);
    let node = Node::start(runtime.handle(), chain[..SLOT].to_vec());
    node.set_finality(Some(SLOT as u64 - YOUNG as u64));
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(chain[SLOT - 1].hash());
    let store = Arc::clone(&followed.store);
    let shown = Arc::new(Shown { store, counts: Mutex::default() });
    followed.store.watch(Arc::<Shown>::clone(&shown));
    // The last blocks of the slot become final, and the tip goes on.
    node.switch(chain[..SLOT + 20].to_vec(), SLOT as u64 + 1);
    followed.wait_tip(chain[SLOT + 19].hash());
    let is_sealed = || followed.view().manifest().coverage().iter().any(|it| it.contains(8191));
    followed.wait_for("sealed", |_| is_sealed());
    // Ended at any moment of the merge, soon.
    followed.end();
    assert_eq!(shown.counts.lock().unwrap().first(), Some(&(SLOT / YOUNG)), "{shown:?}");
    let (_, refused) = check(&data);
    assert!(refused.is_empty(), "{refused:?}");

    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    node.switch(chain.clone(), SLOT as u64 + 1);
    followed.wait_tip(chain[SLOT + 39].hash());
    followed.wait_for("merged", |_| followed.view().manifest().segments().len() == 1);
    followed.check(&chain);
    followed.end();
    let (_, refused) = check(&data);
    assert!(refused.is_empty(), "{refused:?}");
    assert!(files(&data) == expected, "{:?}", files(&data).keys());
}
