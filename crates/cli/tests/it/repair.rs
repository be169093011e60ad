//! What `quipu repair` refuses, and what it leaves to the next import.

use std::fs;

use crate::data::{Data, files};
use crate::run::{quipu, text};

#[test]
fn a_folder_of_archives_is_not_repaired_and_nothing_is_written() {
    let data = Data::new();
    let archives = data.folder.path().join("archives");
    let before = files(&archives);
    assert!(before.contains_key("genesis.json"));
    let ran = quipu(&["repair", "--data-dir", text(&archives)]).ends_with(1);
    assert!(ran.err.contains("no file of a data folder"), "{}", ran.err);
    assert!(files(&archives) == before && !archives.join("lock").exists());
}

#[test]
fn a_folder_without_a_segment_is_not_repaired() {
    let data = Data::imported();
    for name in data.files().keys().filter(|name| name.ends_with(".segment") || *name == "manifest")
    {
        fs::remove_file(data.path().join(name)).unwrap();
    }
    let before = data.files();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(1);
    assert!(ran.err.contains("nothing to rebuild a manifest from"), "{}", ran.err);
    assert!(data.files() == before);
}

#[test]
fn a_name_of_another_network_is_refused() {
    let data = Data::imported();
    fs::remove_file(data.path().join("manifest")).unwrap();
    let before = data.files();
    let ran = data.run("repair", &["--name", "mainnet"]).ends_with(2);
    assert!(ran.err.contains("--name mainnet"), "{}", ran.err);
    assert!(data.files() == before);
}

#[test]
fn a_name_that_was_not_given_is_learned_from_the_next_import() {
    let data = Data::imported();
    let before = data.files();
    fs::remove_file(data.path().join("manifest")).unwrap();
    data.run("repair", &[]).ends_with(0);
    let archive = data.archive();
    data.run("import", &[text(&archive)]).ends_with(0);
    assert!(data.files() == before);
}

#[test]
fn a_total_difficulty_that_a_repair_forgets_is_told_by_the_next_import() {
    let data = Data::new();
    let args = ["--blocks", "10..30", "--unanchored"];
    data.import(&args).ends_with(0);
    let before = data.files();
    let manifest = String::from_utf8(before["manifest"].clone()).unwrap();
    assert!(manifest.contains("\ndifficulty 10 "), "{manifest}");
    fs::remove_file(data.path().join("manifest")).unwrap();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(0);
    let said = "the total difficulty before block 10 is not known any more";
    assert!(ran.out.contains(said), "{}", ran.out);
    data.export("era1", "lost", &[]).ends_with(1);
    let ran = data.import(&args).ends_with(0);
    assert!(ran.out.contains("held already"), "{}", ran.out);
    assert!(data.files() == before);
    data.export("era1", "told", &[]).ends_with(0);
}
