//! Archives beside a head that nobody follows any more.

use archive::Format;
use chain::{BlockNumber, BlockRange};
use ingest::import::{ImportError, ImportSettings};
use store::BlockId;
use store::head::{HeadLimits, Recovery};
use store::{Finality, Store, Writer};

use crate::harness::folder::{DataFolder, check_view, settings};
use crate::harness::made::{blocks, write};
use crate::harness::upstream::chains::{
    Chain, chain, forked, sample_spec, settings as chain_settings,
};
use crate::harness::upstream::fill::upstreams;
use crate::harness::upstream::followed::{Followed, quick, runtime};
use crate::harness::upstream::node::Node;

/// A folder whose head holds blocks 0..120 of a chain, final up to one of them.
fn followed(chain: &Chain, finalized: usize) -> DataFolder {
    let data = DataFolder::new(&sample_spec());
    let mut writer = Writer::open(data.store(), data.spec.clone()).unwrap();
    writer.open_head(&data.anchors, HeadLimits::default()).unwrap();
    writer.extend(chain[..=120].iter().map(|told| told.verified.clone()).collect()).unwrap();
    let number = finalized as u64;
    let finalized = Some(BlockId { number: BlockNumber(number), hash: chain[finalized].hash() });
    writer.set_finality(Finality { safe: finalized, finalized }).unwrap();
    data
}

fn read(data: &DataFolder) -> (std::sync::Arc<Store>, Recovery) {
    let store = data.store();
    let recovery = store.read_head(data.spec.clone()).unwrap();
    (store, recovery)
}

fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

#[test]
fn an_import_never_contradicts_what_is_final_in_the_head_and_supersedes_what_is_not() {
    let (trunk, branch) = (chain(300), forked(300, 60, 1));
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&chain_settings(300)));
    let verified = |chain: &Chain| chain.iter().map(|it| it.verified.clone()).collect::<Vec<_>>();
    // The same blocks: they are taken over.
    let data = followed(&trunk, 100);
    assert_eq!(read(&data).0.view().finalized(), Some(BlockNumber(100)));
    data.import(&files[0], settings()).unwrap();
    let (store, recovery) = read(&data);
    assert!(recovery.is_clean(), "{recovery:?}");
    assert_eq!(
        (store.view().coverage(), store.view().head().tip().is_none()),
        (&[range(0, 299)][..], true)
    );
    check_view(&store.view(), &verified(&trunk));
    // Others in the place of final ones: refused, and nothing has changed.
    let data = followed(&branch, 100);
    let before = data.files();
    let refused = data.import(&files[0], settings()).unwrap_err();
    assert!(matches!(refused, ImportError::Contradiction { .. }), "{refused}");
    assert!(data.files() == before, "the folder has changed");
    check_view(&read(&data).0.view(), &verified(&branch)[..=120]);
    // Others in the place of such that were not final: archives count.
    let data = followed(&branch, 50);
    data.import(&files[0], settings()).unwrap();
    let (store, recovery) = read(&data);
    assert_eq!(recovery.superseded.map(|it| it.number), Some(BlockNumber(120)));
    assert_eq!(store.view().coverage(), [range(0, 299)]);
    check_view(&store.view(), &verified(&trunk));
}

/// Seen: where an import lay above a head that had stopped on a losing branch, the blocks that lost
/// were sealed.
#[test]
fn a_head_below_an_import_is_left_with_what_is_final_of_it_and_nothing_else() {
    let (runtime, trunk, branch) = (runtime(), chain(310), forked(300, 60, 1));
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&chain_settings(300)));
    let data = followed(&branch, 50);
    let blocks = Some(range(200, 299));
    let settings = ImportSettings { blocks, is_unanchored_allowed: true, ..settings() };
    data.import(&files[0], settings).unwrap();
    let node = Node::start(runtime.handle(), trunk.clone());
    let nodes = upstreams(vec![node.url()], 1);
    let followed = Followed::start(runtime.handle(), &data, &nodes, quick(), None);
    followed.wait_tip(trunk[309].hash());
    assert_eq!(followed.view().coverage(), [range(0, 50), range(200, 309)]);
    followed.check(&trunk);
    followed.end();
}
