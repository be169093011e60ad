//! A process that reads beside one that writes: it sees the same, or the same a moment ago.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use alloy_primitives::B256;
use chain::trust::Anchors;
use chain::{Block, BlockNumber, BlockRange, Verified};
use testing::blocks::{BASE, id, run, spec};

use super::*;
use crate::disk::Folder;
use crate::disk::faulty::FaultyDisk;
use crate::files::LocalFiles;
use crate::head::{CutKind, HeadLimits};
use crate::limits::Limits;
use crate::manifest::{Manifest, Network};
use crate::names::is_head_file;
use crate::published::PublishedHistory;
use crate::read::Inline;
use crate::store::Store;
use crate::writer::{CommitFacts, Writer};

fn open(disk: &(impl Disk + Clone + 'static)) -> Store {
    Store::open(Arc::new(disk.clone()), Arc::new(Inline), Limits::default()).unwrap()
}

fn writer(disk: &(impl Disk + Clone + 'static)) -> Writer {
    let mut writer = Writer::open(Arc::new(open(disk)), spec()).unwrap();
    writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    writer
}

fn reader(disk: &(impl Disk + Clone + 'static)) -> Store {
    let store = open(disk);
    store.read_head(spec()).unwrap();
    store
}

/// A folder with a manifest that lists nothing, and this log.
fn disk_with(log: &str, bytes: &[u8]) -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    Manifest::new(Network::default()).replace(&disk).unwrap();
    disk.write(log, bytes).unwrap();
    disk
}

fn finality(safe: &Verified<Block>, finalized: &Verified<Block>) -> Finality {
    let id = |block: &Verified<Block>| BlockId {
        number: BlockNumber(block.header.number),
        hash: block.hash,
    };
    Finality { safe: Some(id(safe)), finalized: Some(id(finalized)) }
}

/// Every block that can be read, and what is safe and final.
type Picture = (Vec<(BlockNumber, B256)>, Option<BlockNumber>, Option<BlockNumber>);

fn picture(view: &View) -> Picture {
    let mut reader = Reader::new().unwrap();
    let numbers = view.coverage().iter().flat_map(|range| range.first()..range.end());
    let mut read = |number| block_on(view.read_hash(&mut reader, number)).unwrap().unwrap();
    (
        numbers.map(BlockNumber).map(|number| (number, read(number))).collect(),
        view.safe(),
        view.finalized(),
    )
}

type Step = Box<dyn Fn(&mut Writer)>;

/// One of everything that a follower and a human do.
fn script() -> Vec<Step> {
    let main = run(BASE, &"s".repeat(250));
    let branch = run(id(&main[239]), "bbbbbbbbbbbb");
    let other = run(id(&main[49]), "ccc");
    let first = main[..100].to_vec();
    let rest = main[100..].to_vec();
    let (low, high) = (finality(&main[120], &main[99]), finality(&main[230], &main[220]));
    let (fork, cut) = (main[239].hash, id(&main[49]));
    vec![
        Box::new(move |writer| writer.extend(first.clone()).unwrap()),
        Box::new(move |writer| writer.extend(rest.clone()).unwrap()),
        Box::new(move |writer| writer.set_finality(low).unwrap()),
        Box::new(move |writer| writer.reorg(fork, branch.clone()).unwrap()),
        Box::new(move |writer| writer.set_finality(high).unwrap()),
        Box::new(move |writer| {
            let sealed = writer.seal(BlockNumber(300), CommitFacts::default()).unwrap();
            assert_eq!(sealed, BlockRange::from_ends(101, 255));
        }),
        Box::new(move |writer| writer.rewind(fork).unwrap()),
        Box::new(move |writer| {
            writer.rewind_to(BlockNumber(cut.0.get()), cut.1).unwrap();
        }),
        Box::new(move |writer| writer.extend(other.clone()).unwrap()),
    ]
}

#[test]
fn a_reader_sees_what_the_writer_shows_after_every_change_and_changes_nothing() {
    let disk = FaultyDisk::new(1);
    let follower = reader(&disk);
    let mut writer = writer(&disk);
    for (number, step) in script().iter().enumerate() {
        step(&mut writer);
        let files = disk.list().unwrap();
        assert!(follower.refresh().unwrap(), "step {number} is seen");
        assert!(!follower.refresh().unwrap(), "step {number} is seen once");
        let expected = picture(&writer.view());
        // One that was there before, and one that opens the folder now.
        assert_eq!(picture(&follower.view()), expected, "step {number}");
        assert_eq!(picture(&reader(&disk).view()), expected, "step {number}, opened anew");
        assert_eq!(disk.list().unwrap(), files, "step {number}: looking changes nothing");
        assert!(follower.head_recovery().is_clean(), "{:?}", follower.head_recovery());
    }
    drop(writer);
    assert_eq!(reader(&disk).view().tip(), Some(BlockNumber(153)), "also when nobody writes");
}

#[test]
fn no_block_is_proven_twice_by_a_reader_that_follows() {
    let disk = FaultyDisk::new(1);
    let mut writer = writer(&disk);
    let blocks = run(BASE, &"s".repeat(200));
    writer.extend(blocks.clone()).unwrap();
    let follower = reader(&disk);
    let before = follower.view();
    writer.extend(run(id(&blocks[199]), "a")).unwrap();
    assert!(writer.seal(BlockNumber(290), CommitFacts::default()).unwrap().is_some());
    assert_eq!(
        disk.list().unwrap().iter().filter(|name| name.strip_suffix(".log").is_some()).count(),
        1
    );
    assert!(follower.refresh().unwrap());
    let after = follower.view();
    assert_eq!(after.head().blocks().len(), 46);
    for block in &after.head().blocks()[..45] {
        let known = before.head().find_block(block.number()).unwrap();
        assert!(Arc::ptr_eq(known, block), "block {} was proven again", block.number());
    }
}

#[test]
fn a_change_that_is_being_written_is_passed_over_until_it_is_whole() {
    let disk = FaultyDisk::new(1);
    let mut writer = writer(&disk);
    let blocks = run(BASE, "aaaa");
    writer.extend(blocks[..2].to_vec()).unwrap();
    let start = disk.read("head-1.log", 1 << 20).unwrap().len();
    writer.extend(blocks[2..].to_vec()).unwrap();
    let bytes = disk.read("head-1.log", 1 << 20).unwrap();
    let other = disk_with("head-1.log", &bytes[..start]);
    let follower = reader(&other);
    for end in start..bytes.len() {
        other.write("head-1.log", &bytes[..end]).unwrap();
        follower.refresh().unwrap();
        let recovery = follower.head_recovery();
        assert!(!recovery.has_damage(), "{end} bytes: {recovery:?}");
        assert_eq!(follower.view().tip(), Some(BlockNumber(102)), "{end} bytes");
    }
    other.write("head-1.log", &bytes).unwrap();
    assert!(follower.refresh().unwrap());
    assert_eq!(follower.view().tip(), Some(BlockNumber(104)));
    assert!(follower.head_recovery().is_clean());
}

#[test]
fn every_flipped_byte_is_told_and_takes_at_most_the_last_change_if_it_is_no_damage() {
    let disk = FaultyDisk::new(1);
    let blocks = run(BASE, "aaaaa");
    writer(&disk).extend(blocks[..2].to_vec()).unwrap();
    let mut writer = writer(&disk);
    writer.extend(blocks[2..3].to_vec()).unwrap();
    writer.set_finality(finality(&blocks[1], &blocks[0])).unwrap();
    writer.extend(blocks[3..4].to_vec()).unwrap();
    let before = picture(&writer.view());
    writer.extend(blocks[4..].to_vec()).unwrap();
    let whole = picture(&writer.view());
    let bytes = disk.read("head-2.log", 1 << 20).unwrap();
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        let store = open(&disk_with("head-2.log", &flipped));
        let recovery = store.read_head(spec()).unwrap();
        let found = picture(&store.view());
        assert_eq!(recovery.cuts.len(), 1, "byte {position}: {recovery:?}");
        let text = recovery.cuts[0].to_string();
        assert!(text.starts_with("memory/head-2.log: byte "), "byte {position}: {text}");
        assert!(whole.0.starts_with(&found.0), "byte {position}: {found:?}");
        if recovery.cuts[0].kind == CutKind::TornTail {
            assert_eq!(found, before, "byte {position}");
        }
    }
}

/// A chain that grows, is reorganised, becomes final and is sealed, as fast as it can; but now and then
/// it waits until somebody has looked.
fn write_all(folder: &Folder, main: &[Verified<Block>], looks: &AtomicU64) {
    let mut writer = writer(folder);
    for (number, blocks) in main.chunks(16).enumerate() {
        let seen = looks.load(Ordering::Acquire);
        while number % 8 == 7 && looks.load(Ordering::Acquire) < seen.saturating_add(2).min(1 << 62)
        {
            thread::yield_now();
        }
        let parent = writer
            .view()
            .head()
            .tip()
            .map_or(BASE, |tip| (BlockNumber(tip.number().get()), tip.hash()));
        if number % 3 == 1 {
            writer.extend(run(parent, "x")).unwrap();
            writer.reorg(parent.1, blocks.to_vec()).unwrap();
        } else {
            writer.extend(blocks.to_vec()).unwrap();
        }
        let (safe, finalized) = (&blocks[8], &main[(number * 16).saturating_sub(8)]);
        writer.set_finality(finality(safe, finalized)).unwrap();
        writer.seal(BlockNumber(finalized.header.number), CommitFacts::default()).unwrap();
    }
}

/// A log whose last batches tell of blocks that are final, and how long it was before them.
fn log_with_final_end(disk: &FaultyDisk) -> (String, usize) {
    let main = run(BASE, &"s".repeat(60));
    let mut writer = writer(disk);
    writer.extend(main[..40].to_vec()).unwrap();
    let names = disk.list().unwrap();
    let log = names.into_iter().find(|name| is_head_file(name)).unwrap();
    let before = disk.read(&log, 1 << 30).unwrap().len();
    writer.extend(main[40..].to_vec()).unwrap();
    writer.set_finality(finality(&main[55], &main[50])).unwrap();
    (log, before)
}

fn is_head_lost<T>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(error @ StoreError::HeadLost { .. }) if error.to_string().contains("quipu repair"))
}

#[test]
fn a_log_that_lost_what_the_manifest_records_is_refused_until_the_loss_is_accepted() {
    for is_removed in [false, true] {
        let disk = FaultyDisk::new(1);
        let (log, before) = log_with_final_end(&disk);
        let whole = disk.read(&log, 1 << 30).unwrap();
        if is_removed {
            disk.remove(&log).unwrap();
        } else {
            disk.write(&log, &whole[..before]).unwrap();
        }
        let names = disk.list().unwrap();
        assert!(is_head_lost(open(&disk).read_head(spec())), "removed: {is_removed}");
        let mut refused = Writer::open(Arc::new(open(&disk)), spec()).unwrap();
        let opened = refused.open_head(&Anchors::none(), HeadLimits::default());
        assert!(is_head_lost(opened), "removed: {is_removed}");
        assert_eq!(disk.list().unwrap(), names, "nothing is changed");
        refused.accept_head_loss().unwrap();
        drop(refused);
        assert_eq!(reader(&disk).view().tip(), (!is_removed).then_some(BlockNumber(140)));
        // The next follower goes on from there, and records what it has.
        writer(&disk).extend(run((BlockNumber(140), B256::ZERO), "")).unwrap();
        reader(&disk);
        disk.write(&log, &whole).unwrap();
        reader(&disk);
    }
}

/// Seen: a follower took a log that was damaged below what had been answered as final, and followed
/// another chain.
#[test]
fn a_log_that_is_damaged_below_what_is_final_is_refused_by_readers_and_writers() {
    for part in 1..8 {
        let disk = FaultyDisk::new(1);
        let (log, before) = log_with_final_end(&disk);
        let mut bytes = disk.read(&log, 1 << 30).unwrap();
        bytes[before * part / 8] ^= 1;
        disk.write(&log, &bytes).unwrap();
        assert!(is_head_lost(open(&disk).read_head(spec())), "part {part}");
        let mut writer = Writer::open(Arc::new(open(&disk)), spec()).unwrap();
        let opened = writer.open_head(&Anchors::none(), HeadLimits::default());
        assert!(is_head_lost(opened), "part {part}");
    }
}

#[test]
fn a_reader_keeps_its_view_when_the_log_vanishes_or_shrinks() {
    let disk = FaultyDisk::new(1);
    let (log, before) = log_with_final_end(&disk);
    let whole = disk.read(&log, 1 << 30).unwrap();
    let follower = reader(&disk);
    let expected = picture(&follower.view());
    assert_eq!(expected.2, Some(BlockNumber(151)));
    for is_removed in [false, true] {
        if is_removed {
            disk.remove(&log).unwrap();
        } else {
            disk.write(&log, &whole[..before]).unwrap();
        }
        let said = follower.refresh().unwrap_err().to_string();
        assert!(said.contains(&log) && said.contains("quipu repair"), "{said}");
        assert_eq!(picture(&follower.view()), expected);
        assert!(follower.trouble().is_some());
        disk.write(&log, &whole).unwrap();
        follower.refresh().unwrap();
        assert_eq!((picture(&follower.view()), follower.trouble()), (expected.clone(), None));
    }
}

#[test]
fn a_writer_changes_nothing_in_a_folder_that_took_the_place_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (path, away) = (directory.path().join("data"), directory.path().join("away"));
    let folder = Folder::create(&path).unwrap();
    let mut writer = writer(&folder);
    let main = run(BASE, "ssss");
    writer.extend(main[..2].to_vec()).unwrap();
    std::fs::rename(&path, &away).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::copy(away.join("manifest"), path.join("manifest")).unwrap();
    for outcome in [
        writer.set_finality(finality(&main[1], &main[1])),
        writer.set_notice(Some("stands still")),
        writer.extend(main[2..].to_vec()),
        writer.commit(Vec::new(), CommitFacts::default()),
    ] {
        assert!(matches!(outcome, Err(StoreError::FolderGone { .. })), "{outcome:?}");
    }
    assert_eq!(folder.list().unwrap(), ["manifest"]);
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::rename(&away, &path).unwrap();
    writer.extend(main[2..].to_vec()).unwrap();
}

/// Lets the writer go on when the one who looks has failed.
struct Leaves<'a>(&'a AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.store(1 << 62, Ordering::Release);
    }
}

#[test]
fn a_reader_beside_a_busy_writer_never_sees_a_hole_or_two_chains() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::open(directory.path()).unwrap();
    let main = run(BASE, &"s".repeat(1500));
    let last = main[1499].header.number;
    let (is_done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let follower = reader(&folder);
    let view_count = thread::scope(|scope| {
        scope.spawn(|| {
            write_all(&folder, &main, &looks);
            is_done.store(true, Ordering::Release);
        });
        let _leaves = Leaves(&looks);
        let (mut view_count, mut finalized) = (0, None);
        loop {
            let was_done = is_done.load(Ordering::Acquire);
            if follower.refresh().unwrap() {
                let view = follower.view();
                view_count += 1;
                check_whole(&view, &main);
                assert!(view.finalized() >= finalized, "{:?}, {finalized:?}", view.finalized());
                finalized = view.finalized();
            }
            looks.fetch_add(1, Ordering::Release);
            if was_done {
                break view_count;
            }
        }
    });
    let view = follower.view();
    assert_eq!((view.tip(), view.coverage().len()), (Some(BlockNumber(last)), 1));
    assert!(!view.manifest().segments().is_empty() && view_count > 10, "{view_count} views");
    assert!(follower.head_recovery().is_clean());
}

/// All from the first block on is there once, and links.
fn check_whole(view: &View, main: &[Verified<Block>]) {
    let coverage = view.coverage();
    assert!(coverage.len() == 1 && coverage[0].first() == 101, "{coverage:?}");
    let head = view.head().blocks();
    if let (Some(entry), Some(first)) = (view.manifest().segments().last(), head.first()) {
        assert_eq!(BlockNumber(entry.range.end()), first.number());
        assert_eq!(entry.last_hash, first.parent_hash());
    }
    for block in head.iter().filter(|block| Some(block.number()) <= view.finalized()) {
        let place = usize::try_from(block.number().get() - 101).unwrap();
        assert_eq!(block.hash(), main[place].hash);
    }
}

#[test]
fn a_head_that_nobody_follows_gives_way_to_what_is_published_unless_it_is_of_the_same_chain() {
    let other_folder = FaultyDisk::new(1);
    let main = run(BASE, &"s".repeat(250));
    let mut publishing = writer(&other_folder);
    publishing.extend(main.clone()).unwrap();
    publishing.set_finality(finality(&main[230], &main[220])).unwrap();
    let sealed = publishing.seal(BlockNumber(300), CommitFacts::default()).unwrap().unwrap();
    let manifest = Arc::new(publishing.view().manifest().to_published());
    let published = PublishedHistory::new([("all".to_owned(), manifest)], BTreeSet::new(), []);
    let branch = |count: usize| {
        let fork = id(&main[119]);
        [&main[..120], &run(fork, &"b".repeat(count))].concat()
    };
    let last = usize::try_from(sealed.count()).unwrap();
    let final_at = |block: &Verified<Block>| finality(block, block);
    for (what, own, is_final, expected) in [
        ("it stopped below, on another branch", branch(3), None, &main[..last]),
        ("it is of another branch and longer", branch(120), None, &main[..last]),
        ("it stopped below, on the same branch", main[..140].to_vec(), None, &main[..last]),
        ("it is of the same branch and longer", main.clone(), None, &main[..]),
        ("what is final of it is the same", main.clone(), Some(&main[130]), &main[..]),
    ] {
        let disk = FaultyDisk::new(2);
        let mut own_writer = writer(&disk);
        own_writer.extend(own.clone()).unwrap();
        if let Some(block) = is_final {
            own_writer.set_finality(final_at(block)).unwrap();
        }
        drop(own_writer);
        let expected: Vec<_> =
            expected.iter().map(|block| (BlockNumber(block.header.number), block.hash)).collect();
        let far = LocalFiles::new(Arc::new(other_folder.clone()), Arc::new(Inline));
        let (own_disk, inline) = (Arc::new(disk.clone()), Arc::new(Inline));
        let store = Store::open_beside(own_disk, inline, Arc::new(far), Limits::default()).unwrap();
        store.read_head(spec()).unwrap();
        assert!(store.show_published(&published), "{what}");
        assert_eq!(picture(&store.view()).0, expected, "{what}");
        assert!(!store.show_published(&published), "{what}: the second look shows the same");
        store.refresh().unwrap();
        assert_eq!(picture(&store.view()).0, expected, "{what}: after a look at the folder");
        assert!(store.view().missing().is_empty(), "{what}: {:?}", store.view().missing());
    }
    // What is final of another chain is no mistake of the head's.
    let disk = FaultyDisk::new(2);
    let mut own_writer = writer(&disk);
    let own = branch(120);
    own_writer.extend(own.clone()).unwrap();
    own_writer.set_finality(final_at(&own[200])).unwrap();
    drop(own_writer);
    let far = LocalFiles::new(Arc::new(other_folder.clone()), Arc::new(Inline));
    let (own_disk, inline) = (Arc::new(disk.clone()), Arc::new(Inline));
    let store = Store::open_beside(own_disk, inline, Arc::new(far), Limits::default()).unwrap();
    store.read_head(spec()).unwrap();
    store.show_published(&published);
    assert_eq!(store.view().missing().len(), 1, "the manifest is set aside");
    assert_eq!(store.view().tip().map(BlockNumber::get), Some(own[239].header.number));
}

#[test]
fn trust_is_assessed_before_a_view_is_shown_and_not_by_a_request() {
    let disk = FaultyDisk::new(1);
    let reader = open(&disk);
    assert!(reader.view().is_trust_assessed());
    let mut writer = writer(&disk);
    writer.extend(run(BASE, &"s".repeat(200))).unwrap();
    let sealed = writer.seal(BlockNumber(290), CommitFacts::default()).unwrap().unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.view().coverage(), [sealed]);
    assert!(reader.view().is_trust_assessed());
}
