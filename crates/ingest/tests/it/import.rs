//! Archives into data folders: whatever the way, the same files.

use std::path::PathBuf;

use archive::{Archive, Format};
use chain::{BlockNumber, BlockRange, ChainSpec};
use ingest::import::{ImportError, Outcome};
use sample::{Payload, SampleSettings};
use store::read::block_on;
use store::{Reader, RowParts};
use testing::shared_data::shared_data;

use crate::check::check;
use crate::harness::folder::{DataFolder, settings};
use crate::harness::made::{blocks, proven_blocks, spec, threads, write};

/// 300 blocks: more than one segment, and more than one group in each.
fn chain() -> SampleSettings {
    SampleSettings {
        seed: 3,
        block_count: 300,
        txs_per_block: 2,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// The chain in archives of these blocks each.
fn archives(ranges: &[(usize, usize)]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let made = blocks(&chain());
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (place, (first, last)) in ranges.iter().enumerate() {
        let part = folder.path().join(place.to_string());
        files.extend(write(&part, Format::Ere, &made[*first..=*last]));
    }
    (folder, files)
}

#[test]
fn what_is_imported_comes_back_by_number_hash_and_position() {
    let (_folder, files) = archives(&[(0, 299)]);
    let data = DataFolder::new(&spec(&chain()));
    let outcome = data.import(&files[0], settings()).unwrap();
    let Outcome::Imported(imported) = outcome else { panic!("{outcome:?}") };
    assert_eq!(imported.segment_count, 2);
    let archive = Archive::open(&files[0]).unwrap();
    data.check_holds(&proven_blocks(&archive, &data.spec));
    let view = data.store().view();
    let mut reader = Reader::new().unwrap();
    assert_eq!(
        block_on(view.read_block(&mut reader, BlockNumber(300), RowParts::Receipt)).unwrap(),
        None
    );
    let absent = alloy_primitives::B256::repeat_byte(1);
    assert_eq!(block_on(view.find_block(&mut reader, absent)).unwrap(), None);
    assert_eq!(
        block_on(view.find_transaction(&mut reader, absent, RowParts::Receipt)).unwrap(),
        None
    );
}

#[test]
fn threads_order_and_gaps_change_no_byte() {
    let ranges = [(0, 99), (100, 129), (130, 255), (256, 299)];
    let (_folder, parts) = archives(&ranges);
    let (_whole_folder, whole) = archives(&[(0, 299)]);
    let data = |files: &[PathBuf], thread_count| {
        let data = DataFolder::new(&spec(&chain()));
        let mut settings = settings();
        settings.is_unanchored_allowed = true;
        settings.threads = threads(thread_count);
        data.import_all(files, settings);
        data.files()
    };
    let expected = data(&whole, 1);
    assert_eq!(expected.len(), 6, "a manifest, two segments, three runs");
    assert!(data(&whole, 3) == expected, "three threads");
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1]] {
        let files = order.map(|place: usize| parts[place].clone());
        assert!(data(&files, 2) == expected, "{order:?}");
    }
}

#[test]
fn an_import_again_changes_nothing_and_a_part_is_continued() {
    let (_folder, files) = archives(&[(0, 299)]);
    let data = DataFolder::new(&spec(&chain()));
    let mut part = settings();
    part.blocks = BlockRange::from_ends(0, 40);
    let outcome = data.import(&files[0], part).unwrap();
    assert!(matches!(outcome, Outcome::Imported(_)), "{outcome:?}");
    data.import(&files[0], settings()).unwrap();
    let before = data.files();
    for again in [settings(), part] {
        let outcome = data.import(&files[0], again).unwrap();
        assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
        assert!(data.files() == before);
    }
    let direct = DataFolder::new(&data.spec);
    direct.import(&files[0], settings()).unwrap();
    assert!(direct.files() == before);
}

#[test]
fn what_links_to_nothing_is_refused_and_leaves_nothing() {
    let (_folder, files) = archives(&[(100, 129)]);
    let data = DataFolder::new(&spec(&chain()));
    let refusal = data.import(&files[0], settings()).unwrap_err();
    assert!(matches!(refusal, ImportError::Unanchored { .. }), "{refusal}");
    // A folder that a writer has opened has a manifest, which lists nothing.
    assert_eq!(data.files().into_keys().collect::<Vec<_>>(), ["manifest"]);
    assert!(data.store().view().manifest().segments().is_empty());
}

#[test]
fn another_chain_is_refused_where_it_meets_what_is_held() {
    let (_folder, files) = archives(&[(0, 99)]);
    let other = SampleSettings { seed: 4, ..chain() };
    let other_folder = tempfile::tempdir().unwrap();
    let other_files = write(other_folder.path(), Format::Ere, &blocks(&other)[100..200]);
    let data = DataFolder::new(&spec(&chain()));
    data.import(&files[0], settings()).unwrap();
    let before = data.files();
    let mut lenient = settings();
    lenient.is_unanchored_allowed = true;
    let refusal = data.import(&other_files[0], lenient).unwrap_err();
    assert!(refusal.to_string().contains("block 100"), "{refusal}");
    assert!(data.files() == before);
}

#[test]
fn archives_without_receipts_are_taken_only_if_asked_and_replaced_when_receipts_come() {
    let Some(folder) = shared_data() else { return };
    let bare = folder.join("ere/hivechain-00000-d226371d-noproofs-noreceipts.ere");
    let full = folder.join("ere/hivechain-00000-d226371d-noproofs.ere");
    let early = folder.join("ere/hivechain-00000-7c27d1f9.era1");
    let spec = ChainSpec::bare("hivechain", None, None);
    let data = DataFolder::new(&spec);
    let mut lenient = settings();
    lenient.is_unanchored_allowed = true;
    let refusal = data.import(&bare, lenient).unwrap_err();
    assert!(matches!(refusal, ImportError::NoReceipts { .. }), "{refusal}");
    lenient.is_without_receipts_allowed = true;
    data.import(&bare, lenient).unwrap();
    data.check_holds(&proven_blocks(&Archive::open(&bare).unwrap(), &spec));
    assert_eq!(data.store().view().manifest().coverage_receipts(), []);
    // The era1 brings receipts of the blocks before the merge: the rest stays without.
    data.import(&early, lenient).unwrap();
    let receipts = data.store().view().manifest().coverage_receipts();
    assert_eq!(receipts, [BlockRange::from_ends(0, 35).unwrap()]);
    data.import(&full, lenient).unwrap();
    data.check_holds(&proven_blocks(&Archive::open(&full).unwrap(), &spec));
    let direct = DataFolder::new(&spec);
    direct.import(&full, lenient).unwrap();
    let segments = |data: &DataFolder| data.store().view().manifest().segments().to_vec();
    assert_eq!(segments(&direct), segments(&data));
}

#[test]
fn every_real_archive_is_imported_and_comes_back() {
    let Some(folder) = shared_data() else { return };
    for file in ingest::survey::find_archives(&[folder]).unwrap() {
        let name = archive::ArchiveName::parse(&file).unwrap().network;
        if file.to_string_lossy().contains("deadbeef") {
            continue;
        }
        let spec = ChainSpec::known(&name).unwrap_or_else(|| ChainSpec::bare(&name, None, None));
        let data = DataFolder::new(&spec);
        let mut lenient = settings();
        lenient.is_unanchored_allowed = true;
        lenient.is_without_receipts_allowed = true;
        data.import(&file, lenient).unwrap_or_else(|error| panic!("{error}"));
        data.check_holds(&proven_blocks(&Archive::open(&file).unwrap(), &spec));
        let (_, refused) = check(&data);
        assert!(refused.is_empty(), "{}: {refused:?}", file.display());
    }
}
