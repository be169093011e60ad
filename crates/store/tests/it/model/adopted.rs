//! Segments that are taken as somebody published them, and proven later.

use std::collections::BTreeSet;

use chain::BlockRange;
use chain::trust::{Anchor, Epoch, TrustStatus};
use segment::SLOT_BLOCKS;
use store::disk::Disk as _;
use store::manifest::{Manifest, ManifestConflict};
use store::names::is_segment_name;
use store::{AdoptedSegments, CommitFacts, Limits, RunSubject, StoreError};
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

use super::act::import;
use super::compare::check_all;
use super::shelf::{Image, Shelf, files, range, truth, whole};
use super::slots::slots_at_once;

const CRASH: Crash = Crash { may_tear_writes: true, may_keep_names: true };

/// A folder whose files others take.
fn source(blocks: BlockRange) -> (Manifest, Image) {
    let mut shelf = Shelf::new(blocks);
    shelf.bring(&[whole(blocks.first(), blocks.last())]).unwrap();
    (shelf.view().manifest().clone(), shelf.files())
}

/// What a manifest lists, of the blocks that are wanted.
fn adopted(manifest: &Manifest, is_wanted: impl Fn(BlockRange) -> bool) -> AdoptedSegments {
    let segments = manifest.segments().iter().filter(|it| is_wanted(it.range));
    AdoptedSegments {
        network: manifest.network().clone(),
        segments: segments.cloned().collect(),
        runs: manifest.runs().to_vec(),
        told_difficulties: Vec::new(),
    }
}

/// Copies the files into the folder, whose names and bytes nobody has made durable.
fn copy(shelf: &Shelf, files: &Image, adopted: &AdoptedSegments) {
    let segments = adopted.segments.iter().map(|it| &it.file_name);
    for name in segments.chain(adopted.runs.iter().map(|it| &it.file_name)) {
        shelf.disk.write(name, &files[name]).unwrap();
    }
}

/// Adopts what lies in the folder then.
fn adopt(shelf: &mut Shelf, files: &Image, adopted: AdoptedSegments) {
    copy(shelf, files, &adopted);
    shelf.writer.adopt_segments(adopted).unwrap();
}

fn all_names(manifest: &Manifest) -> BTreeSet<String> {
    manifest.segments().iter().map(|it| it.file_name.clone()).collect()
}

#[test]
fn what_is_adopted_is_digest_only_until_it_is_confirmed_and_then_as_if_imported() {
    let blocks = range(0, 600);
    let (manifest, image) = source(blocks);
    let mut shelf = Shelf::new(blocks);
    let given = adopted(&manifest, |_| true);
    adopt(&mut shelf, &image, given);
    let view = shelf.view();
    assert_eq!(view.statuses().unwrap(), [(blocks, TrustStatus::DigestOnly)]);
    assert_eq!(view.manifest().digest_only(), [blocks]);
    assert!(view.manifest().trust_runs().is_empty());
    assert_eq!(view.finalized(), None);
    check_all(&view).unwrap();
    assert_eq!(files(&shelf.disk, &view).unwrap(), image);
    // The mark lasts.
    drop(view);
    let mut shelf = shelf.crashed(CRASH);
    assert_eq!(shelf.view().manifest().digest_only(), [blocks]);
    assert!(shelf.writer.unaccounted().is_empty());
    assert_eq!(
        shelf.writer.confirm(&BTreeSet::new(), CommitFacts::default(), false).unwrap().blocks,
        []
    );
    let names = all_names(&manifest);
    assert_eq!(
        shelf.writer.confirm(&names, CommitFacts::default(), true).unwrap().blocks,
        [blocks]
    );
    assert_eq!(shelf.view().manifest().encode(), manifest.encode());
    shelf.crashed(CRASH).check();
}

/// Of young slots the runs are built, of complete ones those are taken that were given.
#[test]
fn runs_are_those_that_the_folder_asks_for_whatever_was_given() {
    let (truth, image, manifest) = slots_at_once();
    let first_slot = range(0, SLOT_BLOCKS - 1);
    let all_runs = manifest.runs().to_vec();
    for given_runs in [all_runs.clone(), Vec::new()] {
        let mut shelf = Shelf::open(FaultyDisk::new(1), truth.clone(), Limits::default()).unwrap();
        let given = AdoptedSegments { runs: given_runs, ..adopted(&manifest, |_| true) };
        adopt(&mut shelf, &image, given);
        assert!(shelf.files() == image, "{:?}", shelf.data_names());
        assert!(shelf.data_names().iter().eq(image.keys()), "{:?}", shelf.data_names());
    }
    // One slot after the other: the runs of both are of no use at first.
    let mut shelf = Shelf::open(FaultyDisk::new(1), truth, Limits::default()).unwrap();
    for wanted in [first_slot, range(SLOT_BLOCKS, 2 * SLOT_BLOCKS - 1)] {
        let given = adopted(&manifest, |it| it == wanted);
        adopt(&mut shelf, &image, given);
        let view = shelf.view();
        let listed: BTreeSet<String> =
            view.manifest().runs().iter().map(|it| it.file_name.clone()).collect();
        let runs: BTreeSet<String> =
            shelf.data_names().into_iter().filter(|name| !is_segment_name(name)).collect();
        assert_eq!(runs, listed, "what is of no use goes");
    }
    assert!(shelf.files() == image, "{:?}", shelf.data_names());
}

#[test]
fn a_folder_without_a_log_index_takes_none() {
    let blocks = range(0, 300);
    let (manifest, image) = source(blocks);
    let mut shelf = Shelf::new(blocks);
    shelf.writer.want_log_index(false).unwrap();
    let given = adopted(&manifest, |_| true);
    adopt(&mut shelf, &image, given);
    let view = shelf.view();
    assert_eq!(view.manifest().runs_of(RunSubject::Logs).count(), 0);
    assert_eq!(view.manifest().runs().len(), 2);
    assert_eq!(shelf.data_names().len(), 2 + 2, "{:?}", shelf.data_names());
    check_all(&view).unwrap();
}

/// Blocks that are adopted beside others of their slot, which has runs.
#[test]
fn pieces_beside_proven_ones_are_looked_up_and_nothing_rests_on_them() {
    let blocks = range(0, 1000);
    let (manifest, image) = source(blocks);
    for (proven, expected) in [(whole(0, 511), "512..1000"), (whole(512, 1000), "0..511")] {
        let mut shelf = Shelf::new(blocks);
        shelf.bring(&[proven]).unwrap();
        let before = shelf.view().statuses().unwrap();
        let given = adopted(&manifest, |it| {
            it.first() < proven.range.first() || it.first() > proven.range.last()
        });
        adopt(&mut shelf, &image, given);
        let view = shelf.view();
        check_all(&view).unwrap();
        assert_eq!(files(&shelf.disk, &view).unwrap(), image);
        let texts: Vec<String> =
            view.manifest().digest_only().iter().map(ToString::to_string).collect();
        assert_eq!(texts, [expected]);
        let mut after = view.statuses().unwrap();
        after.retain(|it| it.1 != TrustStatus::DigestOnly);
        assert_eq!(after, before, "what was proven stands where it stood");
        shelf.writer.confirm(&all_names(&manifest), CommitFacts::default(), true).unwrap();
        assert_eq!(shelf.view().manifest().encode(), manifest.encode());
    }
}

#[test]
fn what_is_built_of_unproven_blocks_is_unproven() {
    let blocks = range(0, 8191);
    let (manifest, image) = source(range(0, 300));
    let mut shelf = Shelf::new(blocks);
    let given = adopted(&manifest, |_| true);
    adopt(&mut shelf, &image, given);
    // The piece of 256 that the first new block falls into is built again, of both.
    shelf.bring(&[whole(301, 600)]).unwrap();
    assert_eq!(shelf.view().manifest().digest_only(), [range(0, 511)]);
    check_all(&shelf.view()).unwrap();
    let names = all_names(shelf.view().manifest());
    assert_eq!(
        shelf.writer.confirm(&names, CommitFacts::default(), true).unwrap().blocks,
        [range(0, 511)]
    );
    assert_eq!(shelf.view().manifest().digest_only(), []);
}

/// Seen: what an archive had brought and proved stayed digest only, and could be dropped.
#[test]
fn what_is_built_of_arriving_blocks_alone_is_proven() {
    let (manifest, image) = source(range(0, 300));
    for (first, left) in [(256, range(0, 255)), (257, range(0, 511))] {
        let mut shelf = Shelf::new(range(0, 8191));
        let given = adopted(&manifest, |_| true);
        adopt(&mut shelf, &image, given);
        let arrived = Some(range(first, 600));
        let facts = CommitFacts { arrived, ..CommitFacts::default() };
        import(&mut shelf.writer, &[whole(first, 600)], &shelf.truth, facts).unwrap();
        assert_eq!(shelf.view().manifest().digest_only(), [left], "{first}");
        check_all(&shelf.view()).unwrap();
        let names = all_names(shelf.view().manifest());
        let dropped = shelf.writer.drop_unproven(&names, &BTreeSet::new()).unwrap();
        assert_eq!(dropped, [left], "{first}");
    }
}

/// Seen: blocks that came later in the place of dropped ones were told to be anchored.
#[test]
fn what_is_known_of_dropped_blocks_goes_with_them() {
    let (manifest, image) = source(range(0, 600));
    let mut shelf = Shelf::new(range(0, 600));
    adopt(&mut shelf, &image, adopted(&manifest, |_| true));
    let anchor = |number| Anchor { number, hash: shelf.truth[&number] };
    let anchors = [255, 256, 511, 512].map(anchor).to_vec();
    let epochs = vec![Epoch { number: 0, last: 400 }, Epoch { number: 1, last: 600 }];
    let facts = CommitFacts { anchors, epochs, ..CommitFacts::default() };
    shelf.writer.commit(Vec::new(), facts).unwrap();
    let name = manifest.segments()[1].file_name.clone();
    let dropped = shelf.writer.drop_unproven(&BTreeSet::from([name]), &BTreeSet::new()).unwrap();
    assert_eq!(dropped, [range(256, 511)]);
    let view = shelf.view();
    let anchors: Vec<u64> = view.manifest().anchors().map(|it| it.number).collect();
    assert_eq!(anchors, [255, 512]);
    let epochs: Vec<u64> = view.manifest().epochs().map(|it| it.number).collect();
    assert_eq!(epochs, [1]);
}

#[test]
fn a_slot_with_unproven_pieces_is_not_merged_before_it_is_proven() {
    let (truth, ..) = slots_at_once();
    let mut pieces = Shelf::open(FaultyDisk::new(1), truth.clone(), Limits::default()).unwrap();
    pieces.bring(&[whole(SLOT_BLOCKS, SLOT_BLOCKS + 255)]).unwrap();
    let given = adopted(pieces.view().manifest(), |_| true);
    let mut shelf = Shelf::open(FaultyDisk::new(1), truth, Limits::default()).unwrap();
    copy(&shelf, &pieces.files(), &given);
    shelf.writer.adopt_segments(given).unwrap();
    // As a follower seals them: each 256 of them by itself.
    let mut first = SLOT_BLOCKS + 256;
    while first < 2 * SLOT_BLOCKS {
        let target = whole(first, first + 255);
        let built = shelf
            .writer
            .build(target, &|number| Some(super::blocks::get(shelf.truth[&number.get()], true)));
        shelf.writer.commit(vec![built.unwrap()], CommitFacts::default()).unwrap();
        first += 256;
    }
    let slot = range(SLOT_BLOCKS, 2 * SLOT_BLOCKS - 1);
    assert_eq!(shelf.view().coverage(), [slot]);
    assert_eq!(shelf.view().manifest().pending_merges(), []);
    assert_eq!(shelf.writer.plan(&[]), []);
    let names = all_names(shelf.view().manifest());
    shelf.writer.confirm(&names, CommitFacts::default(), true).unwrap();
    let pending: Vec<_> =
        shelf.view().manifest().pending_merges().iter().map(|it| it.range).collect();
    assert_eq!(pending, [slot]);
}

/// Nothing is listed, and the segments stay for the next time.
fn expect_refused(shelf: &mut Shelf, given: AdoptedSegments, said: &str) {
    let before = shelf.view().manifest().clone();
    let segments = |shelf: &Shelf| -> BTreeSet<String> {
        shelf.data_names().into_iter().filter(|name| is_segment_name(name)).collect()
    };
    let there = segments(shelf);
    let error = shelf.writer.adopt_segments(given).unwrap_err();
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(*shelf.view().manifest(), before, "{said}");
    assert_eq!(segments(shelf), there, "{said}");
}

#[test]
fn what_does_not_fit_is_refused_and_stays() {
    let blocks = range(0, 600);
    let (manifest, image) = source(blocks);
    let all = adopted(&manifest, |_| true);
    let name = all.segments[1].file_name.clone();
    let mut shelf = Shelf::new(blocks);
    copy(&shelf, &image, &all);
    shelf.disk.write(&name, &image[&name][..100]).unwrap();
    expect_refused(&mut shelf, all.clone(), &name);
    shelf.disk.remove(&name).unwrap();
    expect_refused(&mut shelf, all.clone(), &name);
    copy(&shelf, &image, &all);
    for false_name in ["../manifest", "manifest", &all.segments[0].file_name] {
        let mut other = all.clone();
        other.segments[1].file_name = false_name.to_owned();
        expect_refused(&mut shelf, other, "name");
    }
    let mut other = all.clone();
    other.segments[1].parent_hash.0[3] ^= 1;
    expect_refused(&mut shelf, other, "parent hash");
    let mut other = all.clone();
    other.segments[1].transaction_count += 1;
    expect_refused(&mut shelf, other, &name);
    let mut other = all.clone();
    other.runs[0].bytes += 1;
    copy(&shelf, &image, &all);
    expect_refused(&mut shelf, other, &all.runs[0].file_name);
    // A folder of these blocks would have cut them elsewhere.
    let (odd, odd_image) = source(range(0, 100));
    let mut held = Shelf::new(blocks);
    held.bring(&[whole(101, 600)]).unwrap();
    let odd = adopted(&odd, |_| true);
    copy(&held, &odd_image, &odd);
    expect_refused(&mut held, odd, "blocks 0..255 are to be one segment");
    // What is held is not taken again.
    let mut held = Shelf::new(blocks);
    held.bring(&[whole(0, 255)]).unwrap();
    copy(&held, &image, &all);
    let error = held.writer.adopt_segments(all.clone()).unwrap_err();
    assert!(matches!(error, StoreError::Conflict(ManifestConflict::Blocks { .. })), "{error}");
    // Another chain beside what is held.
    let mut held = Shelf::open(FaultyDisk::new(1), truth(blocks, b'b'), Limits::default()).unwrap();
    held.bring(&[whole(0, 255)]).unwrap();
    let rest = adopted(&manifest, |it| it.first() > 255);
    copy(&held, &image, &rest);
    expect_refused(&mut held, rest, "parent hash of the first block");
    assert_eq!(held.sealed.blocks.len(), 256);
}

#[test]
fn what_contradicts_a_trusted_hash_is_not_confirmed() {
    let blocks = range(0, 600);
    let (manifest, image) = source(blocks);
    let mut shelf = Shelf::new(blocks);
    let given = adopted(&manifest, |_| true);
    adopt(&mut shelf, &image, given);
    let mut hash = manifest.segments()[1].last_hash;
    hash.0[0] ^= 1;
    let facts =
        || CommitFacts { anchors: vec![Anchor { number: 511, hash }], ..CommitFacts::default() };
    // The segment above says that it stands on the other block.
    let confirmed = shelf.writer.confirm(&all_names(&manifest), facts(), true).unwrap().blocks;
    assert_eq!(confirmed, [range(0, 255)]);
    assert_eq!(shelf.view().manifest().digest_only(), [range(256, 600)]);
}

/// Seen: an island of another chain was called proven, and then nothing could drop it.
#[test]
fn what_links_to_nothing_trusted_is_not_confirmed_unless_that_is_allowed() {
    let blocks = range(0, 1023);
    let (manifest, image) = source(blocks);
    let mut shelf = Shelf::new(blocks);
    // The third piece stands alone.
    let given = adopted(&manifest, |range| [0, 512].contains(&range.first()));
    adopt(&mut shelf, &image, given);
    let digest_only = shelf.view().manifest().digest_only();
    let [linked, island] = digest_only[..] else { panic!("{digest_only:?}") };
    let names = all_names(&manifest);
    let anchored_at_end_of = |range: BlockRange| {
        let entry = manifest.segments().iter().find(|it| it.range == range).unwrap();
        let anchor = Anchor { number: range.last(), hash: entry.last_hash };
        CommitFacts { anchors: vec![anchor], ..CommitFacts::default() }
    };
    let facts = anchored_at_end_of(linked);
    let confirmed = shelf.writer.confirm(&names, facts, false).unwrap();
    assert_eq!(confirmed.blocks, [linked]);
    assert_eq!(confirmed.unanchored.len(), 1);
    assert_eq!(shelf.view().manifest().digest_only(), [island]);
    // Nothing is left that could be recorded, and that is said again.
    let again = shelf.writer.confirm(&names, CommitFacts::default(), false).unwrap();
    assert_eq!((again.blocks, again.unanchored), (Vec::new(), confirmed.unanchored));
    let anchored = shelf.writer.confirm(&names, anchored_at_end_of(island), false).unwrap();
    assert_eq!(anchored.blocks, [island]);
    check_all(&shelf.view()).unwrap();
}

#[test]
fn adopting_and_confirming_go_on_after_an_error_and_after_a_crash_at_any_operation() {
    let blocks = range(8150, 8250);
    let (manifest, image) = source(blocks);
    let given = adopted(&manifest, |_| true);
    let names = all_names(&manifest);
    let mut ended = 0;
    for at in 0.. {
        let mut shelf = Shelf::new(blocks);
        copy(&shelf, &image, &given);
        shelf.disk.fail_after(at, DiskFailure::Io);
        let done = shelf.writer.adopt_segments(given.clone()).is_ok()
            && shelf.writer.confirm(&names, CommitFacts::default(), true).is_ok();
        if done {
            ended = at;
            break;
        }
        let mut shelf = if at % 2 == 0 { shelf.crashed(CRASH) } else { shelf };
        let listed = shelf.view().manifest().segments().len();
        assert!(listed == 0 || listed == given.segments.len(), "{listed}");
        if listed == 0 {
            // What the crash left is there, or is copied again.
            copy(&shelf, &image, &given);
            shelf.writer.adopt_segments(given.clone()).unwrap();
        }
        shelf.writer.confirm(&names, CommitFacts::default(), true).unwrap();
        assert_eq!(shelf.view().manifest().encode(), manifest.encode(), "{at}");
        assert_eq!(shelf.files(), image, "{at}");
        let shelf = shelf.crashed(CRASH);
        assert_eq!(shelf.view().manifest().encode(), manifest.encode(), "{at}, durable");
        assert_eq!(shelf.files(), image, "{at}, durable");
    }
    assert!(ended > 10, "{ended}");
}

#[test]
fn what_is_dropped_leaves_the_folder_of_the_rest_after_a_crash_at_any_operation() {
    let blocks = range(0, 600);
    let (manifest, image) = source(blocks);
    let middle = range(256, 511);
    let mut alone = Shelf::new(blocks);
    adopt(&mut alone, &image, adopted(&manifest, |it| it != middle));
    let expected = (alone.view().manifest().encode(), alone.files());
    let names = BTreeSet::from([manifest.segments()[1].file_name.clone()]);
    let mut ended = 0;
    for at in 0.. {
        let mut shelf = Shelf::new(blocks);
        adopt(&mut shelf, &image, adopted(&manifest, |_| true));
        shelf.disk.fail_after(at, DiskFailure::Io);
        let done = shelf.writer.drop_unproven(&names, &BTreeSet::new());
        let is_done = done.is_ok_and(|dropped| dropped == [middle]);
        let mut shelf = if at % 2 == 0 { shelf.crashed(CRASH) } else { shelf };
        if !is_done {
            let dropped = shelf.writer.drop_unproven(&names, &BTreeSet::new()).unwrap();
            assert!(dropped.is_empty() || dropped == [middle], "{at}: {dropped:?}");
        }
        let shelf = shelf.crashed(CRASH);
        assert_eq!(shelf.view().manifest().encode(), expected.0, "{at}");
        assert!(shelf.files() == expected.1, "{at}: {:?}", shelf.data_names());
        assert!(shelf.data_names().iter().eq(expected.1.keys()), "{at}: {:?}", shelf.data_names());
        if is_done {
            ended = at;
            break;
        }
    }
    assert!(ended > 5, "{ended}");
}

/// Both slots share their runs: those of the slot that stays are made anew, as if it had come alone.
#[test]
fn a_slot_that_is_dropped_takes_its_part_of_shared_runs_along() {
    let (truth, image, manifest) = slots_at_once();
    let second = range(SLOT_BLOCKS, 2 * SLOT_BLOCKS - 1);
    let open = || Shelf::open(FaultyDisk::new(1), truth.clone(), Limits::default()).unwrap();
    let mut alone = open();
    adopt(&mut alone, &image, adopted(&manifest, |it| it != second));
    let name = manifest.segments().iter().find(|it| it.range == second).unwrap().file_name.clone();
    let names = BTreeSet::from([name]);
    let run = manifest.runs()[0].clone();
    assert!(run.span.slot_count() > 1, "{run:?}");
    let mut shelf = open();
    adopt(&mut shelf, &image, adopted(&manifest, |_| true));
    assert_eq!(shelf.writer.drop_unproven(&names, &BTreeSet::new()).unwrap(), [second]);
    let shelf = shelf.crashed(CRASH);
    assert_eq!(shelf.view().manifest().encode(), alone.view().manifest().encode());
    assert!(shelf.files() == alone.files(), "{:?}", shelf.data_names());
    // A run that is false goes without any segment, and is the one that it should be then.
    let mut shelf = open();
    adopt(&mut shelf, &image, adopted(&manifest, |_| true));
    let mut bytes = image[&run.file_name].clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    shelf.disk.write(&run.file_name, &bytes).unwrap();
    let runs = BTreeSet::from([run.file_name]);
    assert_eq!(shelf.writer.drop_unproven(&BTreeSet::new(), &runs).unwrap(), []);
    assert!(shelf.files() == image, "{:?}", shelf.data_names());
    // What is proven stays, whatever is said of it.
    shelf.writer.confirm(&all_names(&manifest), CommitFacts::default(), true).unwrap();
    assert_eq!(shelf.writer.drop_unproven(&names, &runs).unwrap(), []);
    assert!(shelf.files() == image, "{:?}", shelf.data_names());
}
