//! Several folders read as one: whatever each of them holds, the sum is shown, and nothing else.

use std::collections::BTreeSet;
use std::env;
use std::sync::Arc;

use alloy_primitives::{B256, keccak256};
use anyhow::{Context as _, Result};
use chain::BlockNumber;
use chain::trust::{Anchor, Anchors, TrustStatus};
use segment::RowParts;
use store::disk::{Disk as _, DiskError, Operation};
use store::head::HeadLimits;
use store::manifest::{Edit, Manifest};
use store::read::{Inline, SegmentBytes, block_on};
use store::{FileSource, Limits, LocalFiles, PublishedHistory, Reader, Store, Writer};
use testing::blocks::spec;
use testing::disk::faulty::FaultyDisk;

use super::blocks::{Place, branch, get};
use super::compare::{Questions, compare_shown_chain, compare_union};
use super::dice::Dice;
use super::shelf::{Shelf, bare, range, truth, whole};
use super::state::Sealed;

/// How many random unions there are.
const SEEDS: u64 = 48;
/// Blocks on both sides of where a slot ends.
const BLOCKS: (u64, u64) = (7_600, 8_800);

/// Files of several folders, as a bucket has them.
#[derive(Debug)]
struct Folders(Vec<LocalFiles>);

impl FileSource for Folders {
    fn open(&self, file_name: &str, file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        let mut opened = self.0.iter().filter_map(|it| it.open(file_name, file_bytes).ok());
        let (place, operation) = (file_name.to_owned(), Operation::Read);
        opened.next().ok_or(DiskError::Missing { place, operation })
    }
}

/// A folder whose blocks are these, at random.
fn folder(dice: &mut Dice, letter: u8) -> Shelf {
    let truth = truth(range(BLOCKS.0, BLOCKS.1), letter);
    let mut shelf = Shelf::open(FaultyDisk::new(1), truth, Limits::default()).unwrap();
    for _ in 0..=dice.below(3) {
        let first = dice.between(BLOCKS.0, BLOCKS.1);
        let last = dice.between(first, BLOCKS.1.min(first + 500));
        let held = if dice.one_in(5) { bare(first, last) } else { whole(first, last) };
        shelf.bring(&[held]).unwrap();
    }
    shelf
}

fn published(folders: &[Shelf], withdrawn: &[String]) -> PublishedHistory {
    let named = |(index, shelf): (usize, &Shelf)| {
        let manifest = shelf.view().manifest().to_published();
        // As in a bucket: only the text travels.
        let manifest = Manifest::decode(&manifest.encode()).unwrap();
        (format!("manifests/{index}"), Arc::new(manifest))
    };
    let withdrawn = withdrawn.iter().cloned().collect();
    PublishedHistory::new(folders.iter().enumerate().map(named), withdrawn, [])
}

/// A store of a folder of its own beside what the others published.
fn reader(own: Option<&Shelf>, folders: &[Shelf]) -> Store {
    let empty = FaultyDisk::new(9);
    let disk = own.map_or(&empty, |shelf| &shelf.disk);
    let files =
        folders.iter().map(|shelf| LocalFiles::new(Arc::new(shelf.disk.clone()), Arc::new(Inline)));
    let remote = Arc::new(Folders(files.collect()));
    Store::open_beside(Arc::new(disk.clone()), Arc::new(Inline), remote, Limits::default()).unwrap()
}

fn sum<'a>(folders: impl Iterator<Item = &'a Shelf>) -> Sealed {
    let mut sum = Sealed::default();
    for shelf in folders {
        for (number, (hash, has_receipts)) in &shelf.sealed.blocks {
            sum.take(*number, *hash, *has_receipts);
        }
    }
    sum
}

fn questions() -> Questions {
    let hashes: BTreeSet<B256> = truth(range(BLOCKS.0, BLOCKS.1), b'a').into_values().collect();
    Questions { numbers: range(BLOCKS.0 - 2, BLOCKS.1 + 2), hashes }
}

fn check(seed: u64) -> Result<()> {
    let mut dice = Dice::new(seed);
    let own = dice.one_in(2).then(|| folder(&mut dice, b'a'));
    let folders: Vec<Shelf> = (0..=dice.below(3)).map(|_| folder(&mut dice, b'a')).collect();
    let store = reader(own.as_ref(), &folders);
    store.show_published(&published(&folders, &[]));
    let all = sum(own.iter().chain(&folders));
    compare_union(&store.view(), &all, &questions()).context("all of it")?;
    // What a publisher takes back is not shown any more, whoever lists it.
    let withdrawn = folders.iter().flat_map(|shelf| shelf.view().manifest().segments().to_vec());
    let Some(gone) = dice.pick(&withdrawn.collect::<Vec<_>>()).cloned() else { return Ok(()) };
    store.show_published(&published(&folders, std::slice::from_ref(&gone.file_name)));
    let view = store.view();
    let is_listed = view.segments().any(|entry| entry.file_name == gone.file_name);
    anyhow::ensure!(!is_listed, "{} is shown though it was withdrawn", gone.file_name);
    // With nothing published the folder stands alone again.
    store.show_published(&PublishedHistory::default());
    let alone = own.as_ref().map(|shelf| shelf.sealed.clone()).unwrap_or_default();
    compare_union(&store.view(), &alone, &questions()).context("the folder alone")
}

#[test]
fn random_unions_equal_their_sum() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = number("QUIPU_SEED").map_or(0..SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(error) = check(seed) {
            panic!("QUIPU_SEED={seed} plays this: {error:#}");
        }
    }
}

/// Seen: a followed head ended on a losing branch inside a segment that was published later, and two
/// branches were served as one chain.
#[test]
fn a_followed_head_is_shown_beside_published_blocks_as_far_as_it_is_of_their_chain() {
    let chain = truth(range(0, 700), b'a');
    let shelf = |blocks| {
        let disk = FaultyDisk::new(1);
        let mut shelf = Shelf::open(disk, chain.clone(), Limits::default()).unwrap();
        shelf.bring(&[blocks]).unwrap();
        shelf
    };
    let folders = [shelf(whole(0, 442)), shelf(whole(443, 599)), shelf(whole(460, 699))];
    let (main, losing) = (b'a', b'b');
    // What the head holds above block 442, what is published, and the end of what is shown of the head.
    for (what, letter, count, newest, shown_to) in [
        ("ends inside, of another branch", losing, 2, 1, None),
        ("reaches further, of another branch", losing, 200, 1, None),
        ("ends below it, of another branch", losing, 17, 2, None),
        ("ends inside, of the same branch", main, 2, 1, Some(444)),
        ("reaches further, of the same branch", main, 200, 1, Some(642)),
        ("ends below it, of the same branch", main, 17, 2, Some(459)),
    ] {
        let store = Arc::new(reader(None, &folders));
        store.show_published(&published(&folders[..1], &[]));
        let mut writer = Writer::open(Arc::clone(&store), spec()).unwrap();
        writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        writer.begin_head(BlockNumber(442), chain[&442]).unwrap();
        let head = branch(Place::above(442, chain[&442]), letter, count);
        writer.extend(head.iter().map(|hash| get(*hash, true)).collect()).unwrap();
        let named = [("low".to_owned(), 0), ("new".to_owned(), newest)];
        let named = named
            .map(|(name, index)| (name, Arc::new(folders[index].view().manifest().to_published())));
        store.show_published(&PublishedHistory::new(named, BTreeSet::new(), []));
        let view = store.view();
        let tip = view.head().tip().map(|block| block.number().get());
        assert_eq!(tip, shown_to, "{what}");
        let mut all = sum([&folders[0], &folders[newest]].into_iter());
        let shown = view.head().blocks().iter();
        shown.for_each(|block| all.take(block.number().get(), block.hash(), true));
        let hashes = chain.values().chain(&head).copied().collect();
        let questions = Questions { numbers: range(0, 702), hashes };
        compare_shown_chain(&view, &all, &questions).context(what).unwrap();
        // It goes on where the node does.
        let next = view.tip().unwrap().get() + 1;
        if shown_to.is_none() && next <= 700 {
            writer.begin_head(BlockNumber(next - 1), chain[&(next - 1)]).unwrap();
            writer.extend(vec![get(chain[&next], true)]).unwrap();
            assert_eq!(store.view().tip(), Some(BlockNumber(next)), "{what}");
        }
    }
}

#[test]
fn a_manifest_of_another_chain_is_set_aside_by_name_and_the_larger_one_is_shown() {
    let mut one =
        Shelf::open(FaultyDisk::new(1), truth(range(0, 700), b'a'), Limits::default()).unwrap();
    one.bring(&[whole(0, 600)]).unwrap();
    let mut other =
        Shelf::open(FaultyDisk::new(1), truth(range(0, 700), b'b'), Limits::default()).unwrap();
    other.bring(&[whole(200, 400)]).unwrap();
    let folders = [other, one];
    let store = reader(None, &folders);
    assert!(store.show_published(&published(&folders, &[])));
    assert!(!store.show_published(&published(&folders, &[])), "nothing has changed");
    let view = store.view();
    assert_eq!(view.coverage(), [range(0, 600)]);
    let missing: Vec<&str> = view.missing().iter().map(|it| &*it.file_name).collect();
    assert_eq!(missing, ["manifests/0"], "{:?}", view.missing());
    assert!(view.missing()[0].reason.contains("another chain"), "{:?}", view.missing());
    assert_eq!(view.missing_runs().count(), 1, "a hash may be in what was set aside");
}

#[test]
fn two_pieces_that_hide_two_chains_are_found_where_they_meet() {
    let mut one =
        Shelf::open(FaultyDisk::new(1), truth(range(0, 700), b'a'), Limits::default()).unwrap();
    one.bring(&[whole(0, 99)]).unwrap();
    let mut other =
        Shelf::open(FaultyDisk::new(1), truth(range(0, 700), b'b'), Limits::default()).unwrap();
    other.bring(&[whole(50, 180)]).unwrap();
    let folders = [one, other];
    let store = reader(None, &folders);
    store.show_published(&published(&folders, &[]));
    let view = store.view();
    let mut reader = Reader::new().unwrap();
    // No boundary that both tell shows it: the first read does.
    assert_eq!(view.coverage(), [range(0, 180)]);
    let error = block_on(view.read_hash(&mut reader, BlockNumber(20))).unwrap_err();
    assert!(error.to_string().contains("where another segment meets it"), "{error}");
    let hash = keccak256(&get(folders[0].truth[&20], true).transactions[0].encoded);
    let found = block_on(view.find_transaction(&mut reader, hash, RowParts::Receipt));
    let error = found.unwrap_err();
    assert!(error.to_string().contains("where another segment meets it"), "{error}");
}

#[test]
fn a_damaged_local_file_is_read_from_the_bucket() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 300)]).unwrap();
    let copy = FaultyDisk::new(3);
    for name in shelf.disk.list().unwrap() {
        copy.write(&name, &shelf.disk.read(&name, 1 << 30).unwrap()).unwrap();
    }
    let folders = [shelf];
    let name = folders[0].view().manifest().segments()[0].file_name.clone();
    let files = vec![LocalFiles::new(Arc::new(folders[0].disk.clone()), Arc::new(Inline))];
    let store = Store::open_beside(
        Arc::new(copy.clone()),
        Arc::new(Inline),
        Arc::new(Folders(files)),
        Limits::default(),
    )
    .unwrap();
    store.show_published(&published(&folders, &[]));
    copy.remove(&name).unwrap();
    store.pass_over_missing().unwrap();
    compare_union(
        &store.view(),
        &folders[0].sealed,
        &Questions { numbers: range(0, 302), hashes: folders[0].truth.values().copied().collect() },
    )
    .unwrap();
}

#[test]
fn what_was_withdrawn_says_nothing_also_where_the_folder_has_it_itself() {
    let open =
        |letter| Shelf::open(FaultyDisk::new(1), truth(range(0, 700), letter), Limits::default());
    let (mut wrong, mut right) = (open(b'b').unwrap(), open(b'a').unwrap());
    wrong.bring(&[whole(256, 511)]).unwrap();
    right.bring(&[whole(0, 600)]).unwrap();
    let name = wrong.view().manifest().segments()[0].file_name.clone();
    let folders = [right];
    let store = reader(Some(&wrong), &folders);
    store.show_published(&published(&folders, &[]));
    assert_eq!(store.view().coverage(), [range(256, 511)], "the folder's own stands firmest");
    store.show_published(&published(&folders, &[name]));
    compare_union(
        &store.view(),
        &folders[0].sealed,
        &Questions { numbers: range(0, 602), hashes: folders[0].truth.values().copied().collect() },
    )
    .unwrap();
}

/// Seen: anchors in withdrawn blocks contradicted those of others, and nothing was final any more.
#[test]
fn anchors_of_withdrawn_blocks_are_not_trusted() {
    let open =
        |letter| Shelf::open(FaultyDisk::new(1), truth(range(0, 700), letter), Limits::default());
    let (mut wrong, mut right) = (open(b'b').unwrap(), open(b'a').unwrap());
    wrong.bring(&[whole(256, 511)]).unwrap();
    right.bring(&[whole(0, 600)]).unwrap();
    let name = wrong.view().manifest().segments()[0].file_name.clone();
    let folders = [right, wrong];
    let anchored = folders.iter().enumerate().map(|(index, shelf)| {
        let anchors = vec![Anchor { number: 300, hash: shelf.truth[&300] }];
        let manifest = shelf.view().manifest().to_published();
        let manifest = manifest.edited(Edit { anchors, ..Edit::default() }).unwrap();
        (format!("manifests/{index}"), Arc::new(manifest))
    });
    let store = reader(None, &folders);
    store.show_published(&PublishedHistory::new(anchored, BTreeSet::from([name]), []));
    let view = store.view();
    assert!(view.missing().is_empty(), "{:?}", view.missing());
    let statuses = view.statuses().unwrap();
    assert!(statuses.iter().any(|(_, it)| matches!(it, TrustStatus::Anchored(_))), "{statuses:?}");
    assert_eq!(view.finalized(), Some(BlockNumber(600)));
    assert_eq!(view.trusted_from(BlockNumber(300)), Some(BlockNumber(300)));
    // Alone it has nothing to be trusted.
    let withdrawn = [folders[1].view().manifest().segments()[0].file_name.clone()];
    store.show_published(&published(&folders[1..], &withdrawn));
    assert_eq!(store.view().trusted_from(BlockNumber(1)), None);
}

#[test]
fn a_piece_that_begins_inside_its_file_is_held_against_what_is_shown_below() {
    let open =
        |letter| Shelf::open(FaultyDisk::new(1), truth(range(0, 700), letter), Limits::default());
    let (mut own, mut other) = (open(b'a').unwrap(), open(b'b').unwrap());
    own.bring(&[whole(50, 99)]).unwrap();
    other.bring(&[whole(0, 180)]).unwrap();
    let folders = [other];
    let store = reader(Some(&own), &folders);
    store.show_published(&published(&folders, &[]));
    let view = store.view();
    let mut reader = Reader::new().unwrap();
    assert_eq!(view.coverage(), [range(0, 180)]);
    let error = block_on(view.read_hash(&mut reader, BlockNumber(150))).unwrap_err();
    assert!(error.to_string().contains("where another segment meets it"), "{error}");
}
