//! A data folder that is whole passes its check; one that is not is told from it, with the place.

use std::collections::BTreeSet;

use alloy_primitives::U256;
use archive::{Archive, Format};
use chain::accumulator::EpochRoots;
use chain::trust::{Anchor, AnchoredBy, Anchors, TrustStatus};
use chain::{BlockNumber, BlockRange, ChainSpec};
use ingest::check::{CheckedFolder, check_all, find_facts};
use ingest::export::{ExportFormat, Exporter, held_by, plan};
use ingest::import::ImportSettings;
use ingest::prove::NoProgress;
use sample::{NETWORK_NAME, Payload, SampleSettings};
use store::check::CheckCounts;
use store::read::block_on;
use store::{AdoptedSegments, CommitFacts, Reader, StoreError, Writer};

use crate::harness::folder::{DataFolder, settings};
use crate::harness::made::{blocks, relinked, spec, threads, write};

fn chain(block_count: u64) -> SampleSettings {
    SampleSettings {
        seed: 9,
        block_count,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

fn imported(block_count: u64) -> DataFolder {
    let chain = chain(block_count);
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&chain));
    let data = DataFolder::new(&spec(&chain));
    data.import_all(&files, settings());
    data
}

/// What the check says of a folder.
pub(crate) fn check(data: &DataFolder) -> (CheckCounts, Vec<StoreError>) {
    let mut refused = Vec::new();
    let view = data.store().view();
    let found = check_all(&view, &data.spec, threads(2), &NoProgress, |error| refused.push(error));
    (found.counts, refused)
}

#[test]
fn a_whole_folder_passes() {
    let data = imported(300);
    let (found, refused) = check(&data);
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(found.block_count, 300);
    let files = data.files();
    let listed = files.iter().filter(|(name, _)| *name != "manifest");
    assert_eq!(found.bytes, listed.map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
}

/// Flips every byte of every segment and run in turn: the check names the file, and no read gives
/// another answer.
#[test]
fn every_flipped_byte_is_found_and_no_answer_is_another() {
    let data = imported(4);
    let files = data.files();
    let answers = |data: &DataFolder| {
        let view = data.store().view();
        let mut reader = Reader::new().unwrap();
        let read = |number| block_on(view.read_candidate(&mut reader, number));
        (0..4).map(BlockNumber).map(read).collect::<Vec<Result<_, StoreError>>>()
    };
    let expected: Vec<_> = answers(&data).into_iter().map(Result::unwrap).collect();
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "manifest") {
        let path = data.folder.path().join(name);
        for place in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << (place % 8);
            std::fs::write(&path, &flipped).unwrap();
            let (_, refused) = check(&data);
            let text = refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(text.contains(name), "{name}, byte {place}: {text}");
            for (answer, expected) in answers(&data).iter().zip(&expected) {
                match answer {
                    Ok(answer) => assert!(answer == expected, "{name}, byte {place}"),
                    Err(error) => assert!(error.to_string().contains(name), "{error}"),
                }
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn cut_and_missing_files_are_found() {
    let data = imported(20);
    for (name, bytes) in data.files().iter().filter(|(name, _)| *name != "manifest") {
        let path = data.folder.path().join(name);
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let (_, refused) = check(&data);
            assert!(refused.iter().any(|error| error.to_string().contains(name)), "{name} {cut}");
        }
        std::fs::remove_file(&path).unwrap();
        let (_, refused) = check(&data);
        assert!(refused.iter().any(|error| error.to_string().contains(name)), "{name}");
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(check(&data).1.is_empty());
}

#[test]
fn an_export_goes_on_when_a_writer_retires_the_files_of_its_view() {
    let chain = chain(60);
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = write(folder.path(), Format::Ere, &blocks(&chain));
    let data = DataFolder::new(&spec(&chain));
    let first = ImportSettings { blocks: BlockRange::from_ends(0, 29), ..settings() };
    data.import_all(&files, first);
    let store = data.store();
    let view = store.view();
    let retired = data.folder.path().join(&view.manifest().segments()[0].file_name);
    data.import_all(&files, settings());
    assert!(!retired.exists());
    let exporter = Exporter {
        view: &view,
        store: &store,
        network: "sample",
        kind: ExportFormat::Archive(Format::Ere),
        folder: to.path(),
        threads: threads(2),
        progress: &NoProgress,
    };
    let written = exporter.export(&plan(&held_by(&view, None), None)).unwrap();
    let archive = Archive::open(&written.files[0].path).unwrap();
    assert_eq!(Some(archive.range()), BlockRange::from_ends(0, 29));
}

/// A folder that takes some of another one's segments as they are, and proves none of them.
fn adopting(from: &DataFolder, is_wanted: impl Fn(BlockRange) -> bool) -> DataFolder {
    let to = DataFolder::new(&from.spec);
    let view = from.store().view();
    let manifest = view.manifest();
    let segments = manifest.segments().iter().filter(|it| is_wanted(it.range)).cloned();
    let network = manifest.network().clone();
    let (segments, runs) = (segments.collect::<Vec<_>>(), manifest.runs().to_vec());
    let mut writer = Writer::open(to.store(), to.spec.clone()).unwrap();
    let names = segments.iter().map(|it| &it.file_name);
    for name in names.chain(runs.iter().map(|it| &it.file_name)) {
        std::fs::copy(from.folder.path().join(name), to.folder.path().join(name)).unwrap();
    }
    let told_difficulties = Vec::new();
    let adopted = AdoptedSegments { network, segments, runs, told_difficulties };
    writer.adopt_segments(adopted).unwrap();
    to
}

/// What `quipu check` does: what was refused, and which blocks are not digest only any more.
fn check_and_confirm(data: &DataFolder) -> (Vec<String>, Vec<BlockRange>) {
    let (refused, confirmed, _) = settle(data);
    (refused, confirmed)
}

/// The same, and what the check found.
fn settle(data: &DataFolder) -> (Vec<String>, Vec<BlockRange>, CheckedFolder) {
    let mut refused = Vec::new();
    let store = data.store();
    let view = store.view();
    let mut checked =
        check_all(&view, &data.spec, threads(2), &NoProgress, |it| refused.push(it.to_string()));
    let facts = find_facts(&view, &data.anchors, &mut checked, |it| refused.push(it)).unwrap();
    let mut writer = Writer::open(store, data.spec.clone()).unwrap();
    let confirmed = writer.confirm(&checked.proven, facts, true).unwrap().blocks;
    (refused, confirmed, checked)
}

/// Flips a bit in the middle of the first file whose name begins so; gives its name and what it held.
fn damage(data: &DataFolder, begins: &str) -> (String, Vec<u8>) {
    let files = data.files();
    let (name, bytes) = files.into_iter().find(|(name, _)| name.starts_with(begins)).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    std::fs::write(data.folder.path().join(&name), flipped).unwrap();
    (name, bytes)
}

fn blocks_from(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

fn statuses(data: &DataFolder) -> Vec<(BlockRange, TrustStatus)> {
    data.store().view().statuses().unwrap()
}

#[test]
fn adopted_segments_that_are_checked_are_those_of_an_import() {
    let imported = imported(300);
    let adopted = adopting(&imported, |_| true);
    assert_eq!(statuses(&adopted), [(blocks_from(0, 299), TrustStatus::DigestOnly)]);
    let files = imported.files();
    let own = adopted.files();
    let differ = files.keys().filter(|name| files.get(*name) != own.get(*name));
    assert_eq!(differ.collect::<Vec<_>>(), ["manifest"]);
    assert_eq!(check_and_confirm(&adopted), (Vec::new(), vec![blocks_from(0, 299)]));
    assert!(adopted.files() == files, "{:?}", adopted.files().keys());
    assert_eq!(statuses(&adopted), statuses(&imported));
    // There is nothing left to confirm.
    assert_eq!(check_and_confirm(&adopted), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_false_stays_digest_only_and_the_rest_does_not() {
    let imported = imported(600);
    for (damaged, confirmed) in [
        ("blocks-0000000000", vec![blocks_from(256, 599)]),
        ("blocks-0000000256", vec![blocks_from(0, 255), blocks_from(512, 599)]),
        ("blocks-0000000512", vec![blocks_from(0, 511)]),
        ("lookup-logs", Vec::new()),
        ("lookup-transactions", Vec::new()),
    ] {
        let adopted = adopting(&imported, |_| true);
        let (name, bytes) = damage(&adopted, damaged);
        let (refused, found) = check_and_confirm(&adopted);
        assert!(refused.iter().any(|it| it.contains(&name)), "{name}: {refused:?}");
        let allowed: BTreeSet<u64> = confirmed.iter().flat_map(|it| it.first()..it.end()).collect();
        let found: BTreeSet<u64> = found.iter().flat_map(|it| it.first()..it.end()).collect();
        // Damage at a seam is damage to the one above it too.
        assert!(found.is_subset(&allowed), "{name}: {:?}", found.first().zip(found.last()));
        let marked = adopted.store().view().manifest().digest_only();
        let marked: u64 = marked.iter().map(BlockRange::count).sum();
        assert_eq!(marked, 600 - found.len() as u64, "{name}");
        std::fs::write(adopted.folder.path().join(&name), bytes).unwrap();
        check_and_confirm(&adopted);
        assert!(adopted.files() == imported.files(), "{name}");
    }
}

/// Whatever is damaged: what is false can be dropped and comes again, and the folder is that of an import.
#[test]
fn what_is_false_is_dropped_and_can_be_had_again() {
    let imported = imported(600);
    for (damaged, dropped) in [
        ("blocks-0000000000", vec![blocks_from(0, 255)]),
        ("blocks-0000000256", vec![blocks_from(256, 511)]),
        ("blocks-0000000512", vec![blocks_from(512, 599)]),
        ("lookup-logs", Vec::new()),
        ("lookup-transactions", Vec::new()),
    ] {
        let adopted = adopting(&imported, |_| true);
        let (name, _) = damage(&adopted, damaged);
        let (refused, _, checked) = settle(&adopted);
        let mut writer = Writer::open(adopted.store(), adopted.spec.clone()).unwrap();
        let found = writer.drop_unproven(&checked.false_segments, &checked.false_runs).unwrap();
        drop(writer);
        assert_eq!(found, dropped, "{name}: {refused:?}, {checked:?}");
        // What is left is whole, also its lookups.
        let (refused, ..) = settle(&adopted);
        assert_eq!(refused, Vec::<String>::new(), "{name}");
        assert_eq!(adopted.store().view().manifest().digest_only(), [], "{name}");
        let folder = tempfile::tempdir().unwrap();
        let archives = write(folder.path(), Format::Ere, &blocks(&chain(600)));
        adopted.import_all(&archives, settings());
        assert!(adopted.files() == imported.files(), "{name}: {:?}", adopted.files().keys());
        assert_eq!(statuses(&adopted), statuses(&imported), "{name}");
    }
}

/// An anchor that comes with a check is recorded where its block is held and true, and nowhere else.
#[test]
fn an_anchor_that_a_check_is_given_is_recorded_where_it_is_true() {
    let imported = imported(600);
    let hash = imported.store().view().manifest().segments()[1].last_hash;
    let mut adopted = adopting(&imported, |it| it.first() > 0);
    adopted.anchors = adopted.anchors.with_operator(Anchor { number: 511, hash }).unwrap();
    assert_eq!(settle(&adopted).1, [blocks_from(256, 599)]);
    let told = statuses(&adopted);
    let by = AnchoredBy::Operator(Anchor { number: 511, hash });
    assert_eq!(told[0], (blocks_from(256, 511), TrustStatus::Anchored(by)), "{told:?}");
    let is_recorded = |data: &DataFolder| data.store().view().manifest().anchors().next().is_some();
    // Of a segment that is false nothing is recorded.
    let mut damaged = adopting(&imported, |it| it.first() > 0);
    damaged.anchors = adopted.anchors.clone();
    damage(&damaged, &imported.store().view().manifest().segments()[1].file_name);
    assert!(!settle(&damaged).0.is_empty());
    assert!(!is_recorded(&damaged), "{:?}", statuses(&damaged));
    assert!(is_recorded(&adopted));
}

/// Roots of accumulator epochs are known of mainnet alone, which this chain is taken for.
#[test]
fn blocks_of_another_root_are_false_with_all_that_descends_from_them() {
    let small = SampleSettings { txs_per_block: 0, ..chain(2 * 8192 + 300) };
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&small));
    let mut imported = DataFolder::new(&spec(&small));
    imported.import_all(&files, settings());
    let mainnet = ChainSpec::known("mainnet").unwrap();
    imported.anchors = Anchors::of(&mainnet).with_epoch_roots(EpochRoots::mainnet());
    let mut adopted = adopting(&imported, |_| true);
    adopted.anchors = imported.anchors.clone();
    let (refused, confirmed, checked) = settle(&adopted);
    assert!(refused.iter().any(|it| it.contains("of another chain")), "{refused:?}");
    // Seen: what lies above counted as proven.
    assert_eq!((confirmed, checked.false_segments.len()), (Vec::new(), 4), "{checked:?}");
    // Seen: so it did where the total difficulty before them was no more than a source's word.
    let mut upper = adopting(&imported, |it| it.first() >= 8192);
    upper.anchors = imported.anchors.clone();
    let difficulties = vec![(8192, U256::from(5))];
    let mut writer = Writer::open(upper.store(), upper.spec.clone()).unwrap();
    writer.commit(Vec::new(), CommitFacts { difficulties, ..CommitFacts::default() }).unwrap();
    drop(writer);
    assert_eq!(check_and_confirm(&upper), (Vec::new(), vec![blocks_from(8192, 16683)]));
}

/// Whole and true to every digest, and of another chain: block 0 tells.
#[test]
fn another_chain_with_right_digests_is_not_confirmed() {
    let other = SampleSettings { seed: 10, ..chain(100) };
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&other));
    let mut false_one = DataFolder::new(&spec(&other));
    false_one.import_all(&files, settings());
    assert_ne!(spec(&other).genesis_hash(), spec(&chain(100)).genesis_hash());
    let view = false_one.store().view();
    false_one.spec = spec(&chain(100));
    let to = DataFolder::new(&false_one.spec);
    let mut writer = Writer::open(to.store(), to.spec.clone()).unwrap();
    let mut network = view.manifest().network().clone();
    network.genesis_hash = to.spec.genesis_hash();
    let segments = view.manifest().segments().to_vec();
    for entry in &segments {
        let name = &entry.file_name;
        std::fs::copy(false_one.folder.path().join(name), to.folder.path().join(name)).unwrap();
    }
    let adopted = AdoptedSegments { network, segments, ..AdoptedSegments::default() };
    writer.adopt_segments(adopted).unwrap();
    drop(writer);
    let (refused, confirmed) = check_and_confirm(&to);
    assert!(refused.iter().any(|it| it.contains("block 0")), "{refused:?}");
    assert_eq!(confirmed, []);
}

/// Seen: the first block of every sixteen was held against the hash of the one before it alone.
#[test]
fn every_block_is_held_against_the_header_before_it_also_where_files_meet() {
    let chain = chain(300);
    for number in [15, 16, 256] {
        let twice = relinked(blocks(&chain), number, |header| header.timestamp -= 12);
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), Format::Ere, &twice);
        // Where nothing is known of forks, no rule of headers is.
        let known = spec(&chain);
        let bare = ChainSpec::bare(NETWORK_NAME, known.chain_id(), known.genesis_hash());
        let mut data = DataFolder::new(&bare);
        data.import_all(&files, settings());
        assert_eq!(check(&data).1.len(), 0);
        data.spec = known;
        let refused: Vec<_> = check(&data).1.iter().map(ToString::to_string).collect();
        let is_told =
            |it: &String| it.contains(&format!("block {number}")) && it.contains("timestamp");
        assert!(refused.iter().any(is_told), "{number}: {refused:?}");
    }
}

#[test]
fn what_arrives_beside_unproven_blocks_must_fit_and_does_not_rest_on_them() {
    let all = imported(600);
    let chain = chain(600);
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&chain));
    let above = ImportSettings { blocks: BlockRange::from_ends(256, 599), ..settings() };
    let adopted = adopting(&all, |it| it.first() == 0);
    adopted.import(&files[0], above).unwrap_or_else(|error| panic!("{error}"));
    let expected = [
        (blocks_from(0, 255), TrustStatus::DigestOnly),
        (blocks_from(256, 599), TrustStatus::Unanchored),
    ];
    assert_eq!(statuses(&adopted), expected);
    assert_eq!(adopted.store().view().finalized(), None);
    assert_eq!(check_and_confirm(&adopted), (Vec::new(), vec![blocks_from(0, 255)]));
    assert_eq!(statuses(&adopted), statuses(&all));
    assert!(adopted.files() == all.files());
    // Another chain does not fit, at whichever end it comes.
    let other = SampleSettings { seed: 10, ..chain };
    let other_folder = tempfile::tempdir().unwrap();
    let other_files = write(other_folder.path(), Format::Ere, &blocks(&other));
    let expect_refused = |held: u64, brought: BlockRange, said: &str| {
        let mut adopted = adopting(&all, |it| it.first() == held);
        adopted.anchors = Anchors::none();
        let brought = ImportSettings { blocks: Some(brought), ..settings() };
        let refused = adopted.import(&other_files[0], brought).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
        assert_eq!(adopted.store().view().coverage().len(), 1, "{said}");
    };
    let last = all.store().view().manifest().segments()[0].last_hash;
    expect_refused(0, blocks_from(256, 599), &format!("the block before has hash {last}"));
    let said = format!("{last} by the data folder, which holds it as it was published");
    expect_refused(256, blocks_from(100, 255), &said);
}
