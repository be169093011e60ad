//! Real chain data, where it is at hand: a folder `shared/data` beside the checkout. It is public and
//! too large to commit; without it these tests say so and pass.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ingest::archive::{Archive, ArchiveName};
use ingest::survey::find_archives;

use crate::run::{quipu, text};

pub(crate) fn shared_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let is_there = folder.is_dir();
    // Past the test harness, which keeps what passing tests print.
    let word = if is_there { "reading" } else { "skipped: no" };
    let _ = writeln!(std::io::stderr(), "{word} ../shared/data");
    is_there.then_some(folder)
}

/// Archives of other writers come out to the byte: their blocks, their order, their compression.
#[test]
fn every_real_archive_is_exported_as_the_file_that_was_imported() {
    let Some(folder) = shared_data() else { return };
    let mut count = 0;
    for path in find_archives(&[folder]).unwrap() {
        let work = tempfile::tempdir().unwrap();
        let (data, out) = (work.path().join("data"), work.path().join("out"));
        let import = ["import", "--data-dir", text(&data), "--unanchored", "--without-receipts"];
        let imported = quipu(&[&import[..], &[text(&path)]].concat());
        if path.to_string_lossy().contains("deadbeef") {
            let imported = imported.ends_with(1);
            assert!(imported.err.contains("block 0, byte 8"), "{}", imported.err);
            continue;
        }
        imported.ends_with(0);
        let format = ArchiveName::parse(&path).unwrap().format.extension();
        let export = ["export", "--data-dir", text(&data), "--format", format];
        quipu(&[&export[..], &["--to", text(&out)]].concat()).ends_with(0);
        let written = out.join(path.file_name().unwrap());
        check_blocks(&written, &path);
        assert!(fs::read(&written).unwrap() == fs::read(&path).unwrap(), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 13);
}

fn check_blocks(written: &Path, original: &Path) {
    let (written, original) = (Archive::open(written).unwrap(), Archive::open(original).unwrap());
    assert_eq!(written.range(), original.range());
    for number in original.range().first()..original.range().end() {
        let (found, expected) = (written.read_block(number), original.read_block(number));
        assert!(found.unwrap() == expected.unwrap(), "{}: block {number}", original.file());
    }
}

#[test]
fn mainnet_from_the_middle_is_anchored_by_its_accumulator_and_stays_so() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let (data, out) = (work.path().join("data"), work.path().join("out"));
    let roots = folder.join("mainnet-accumulators.bin");
    let file = folder.join("era1/mainnet-00001-a5364e9a.era1");
    let import = ["import", "--data-dir", text(&data), text(&file)];
    quipu(&import).ends_with(1);
    let ran = quipu(&[&import[..], &["--accumulators", text(&roots)]].concat()).ends_with(0);
    assert!(ran.out.contains("anchored by accumulator epoch 1"), "{}", ran.out);
    let stat = quipu(&["stat", "--json", "--data-dir", text(&data)]).ends_with(0).json();
    assert_eq!(stat["coverage"][0]["anchor"], "accumulator epoch 1");
    assert_eq!(stat["finalized"]["number"], 16383);
    // Total difficulty was told by the archive, so that era1 can be written from the middle too.
    let export = ["export", "--data-dir", text(&data), "--format", "era1", "--to", text(&out)];
    quipu(&[&export[..], &["--blocks", "9000..9099"]].concat()).ends_with(0);
    quipu(&["verify", "--network", "mainnet", text(&out)]).ends_with(0);
}

#[test]
fn the_conformance_chain_keeps_its_genesis_and_refuses_another() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("data");
    let genesis = folder.join("execution-apis/genesis.json");
    let early = folder.join("ere/hivechain-00000-7c27d1f9.era1");
    let full = folder.join("ere/hivechain-00000-d226371d-noproofs.ere");
    let import = ["import", "--data-dir", text(&data)];
    let with_genesis = ["--genesis", text(&genesis), text(&early)];
    quipu(&[&import[..], &with_genesis].concat()).ends_with(0);
    let ran = quipu(&[&import[..], &[text(&full)]].concat()).ends_with(0);
    assert!(ran.out.contains("linked to genesis"), "{}", ran.out);
    let mainnet = folder.join("era1/mainnet-00000-5ec1ffb8.era1");
    let ran = quipu(&[&import[..], &[text(&mainnet)]].concat()).ends_with(2);
    assert!(ran.err.contains("holds hivechain, the archives say mainnet"), "{}", ran.err);
}
