//! A data folder that is whole passes its check; one that is not is told from it, with the place.

use archive::{Archive, Format};
use chain::{BlockNumber, BlockRange, ChainSpec};
use ingest::check::check_all;
use ingest::export::{ExportFormat, Exporter, held_by, plan};
use ingest::import::ImportSettings;
use ingest::prove::NoProgress;
use sample::{NETWORK_NAME, Payload, SampleSettings};
use store::check::CheckCounts;
use store::disk::Folder;
use store::manifest::{Edit, Network};
use store::read::block_on;
use store::{Reader, StoreError};

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

/// Whole and of another chain: block 0 shows it.
#[test]
fn a_folder_of_another_chain_is_refused() {
    let chain = chain(100);
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), Format::Ere, &blocks(&chain));
    let own = spec(&chain);
    let data = DataFolder::new(&ChainSpec::bare(NETWORK_NAME, own.chain_id(), None));
    data.import_all(&files, ImportSettings { is_unanchored_allowed: true, ..settings() });
    assert_eq!(check(&data).1.len(), 0);
    let genesis_hash = spec(&SampleSettings { seed: 10, ..chain }).genesis_hash();
    assert_ne!(genesis_hash, own.genesis_hash());
    let network = Network { genesis_hash, ..Network::default() };
    let edit = Edit { network, ..Edit::default() };
    let other = data.store().view().manifest().edited(edit).unwrap();
    other.replace(&Folder::open(data.folder.path()).unwrap()).unwrap();
    let (_, refused) = check(&data);
    let is_of_genesis =
        |it: &StoreError| matches!(it, StoreError::Block { mismatch, .. } if mismatch.number == 0);
    assert!(refused.iter().any(is_of_genesis), "{refused:?}");
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
