//! `quipu sample`.

use crate::harness::run::{archive, quipu, quipu_unread, sample, text};

#[test]
fn era1_ends_at_the_merge_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sample", "--to", text(folder.path()), "--format", "era1", "--block-count", "80"];
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains("blocks 0..63"), "{}", ran.out);
    assert!(ran.out.contains("era1 ends before block 64, the merge"), "{}", ran.out);
}

#[test]
fn the_same_arguments_give_the_same_file_on_any_number_of_threads() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, threads) in folders.iter().zip(["1", "3"]) {
        let args = ["sample", "--to", text(folder.path()), "--block-count", "90"];
        quipu(&[&args[..], &["--threads", threads]].concat()).ends_with(0);
    }
    let files = folders.map(|folder| std::fs::read(archive(folder.path())).unwrap());
    assert!(files[0] == files[1]);
}

#[test]
fn a_sample_is_made_though_nobody_reads_what_is_said_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sample", "--to", text(folder.path()), "--block-count", "10"];
    assert_eq!(quipu_unread(&args), Some(0));
    assert!(archive(folder.path()).is_file());
}

#[test]
fn wrong_arguments_end_with_2() {
    quipu(&["sample"]).ends_with(2);
    quipu(&["sample", "--to", "x", "--format", "zip"]).ends_with(2);
    quipu(&["sample", "--to", "x", "--block-count", "0"]).ends_with(2);
    quipu(&["frobnicate"]).ends_with(2);
}

#[test]
fn a_folder_that_cannot_be_written_ends_with_1_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in the way");
    std::fs::write(&file, "").unwrap();
    let ran = quipu(&["sample", "--to", text(&file), "--block-count", "1"]).ends_with(1);
    assert!(ran.err.contains("in the way"), "{}", ran.err);
}

#[test]
fn a_sample_brings_the_genesis_that_names_its_chain() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let genesis = folder.path().join("genesis.json");
    let args = ["verify", "--genesis", text(&genesis), text(folder.path())];
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains("linked to genesis"), "{}", ran.out);
}
