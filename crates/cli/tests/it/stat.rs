//! `quipu stat`: what is held, for people and for programs.

use std::fs;

use serde_json::Value;

use crate::harness::data::{Data, write_part};
use crate::harness::run::{quipu, quipu_unread, text};

#[test]
fn the_object_has_everything_that_programs_were_promised() {
    let data = Data::imported();
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    let verified = quipu(&["verify", "--json", text(&data.archive())]).ends_with(0).json();
    assert_eq!(stat["network"], "sample");
    assert_eq!(stat["chain_id"], 20_260_101);
    assert_eq!(
        stat["coverage"],
        serde_json::json!([
            { "first": 0, "last": 0, "status": "anchored", "anchor": "genesis" },
            { "first": 1, "last": 99, "status": "linked", "anchor": "genesis" },
        ])
    );
    assert_eq!(stat["coverage_receipts"], serde_json::json!([{ "first": 0, "last": 99 }]));
    assert_eq!(stat["tip"]["number"], 99);
    assert_eq!(stat["tip"]["hash"], verified["last_hash"]);
    assert_eq!(stat["finalized"], stat["tip"]);
    assert_eq!((&stat["blocks"], &stat["gaps"]), (&100.into(), &Value::Array(Vec::new())));
    assert_eq!(stat["transactions"], verified["transactions"]);
    assert!(stat["logs"].as_u64().unwrap() > 0);
    let segment = &stat["segments"][0];
    assert_eq!((&segment["first"], &segment["last"]), (&0.into(), &99.into()));
    let file = data.path().join(segment["file"].as_str().unwrap());
    assert_eq!(segment["bytes"], fs::metadata(file).unwrap().len());
    assert!(segment["digest"].as_str().unwrap().starts_with("0x"));
}

#[test]
fn the_parts_add_up_to_all_files_of_the_folder() {
    let data = Data::new();
    let check = || {
        let stat = data.run("stat", &["--json"]).ends_with(0).json();
        let bytes = &stat["bytes"];
        let on_disk: u64 = data.files().values().map(|file| file.len() as u64).sum();
        assert_eq!(bytes["total"].as_u64().unwrap(), on_disk);
        let parts = ["headers", "transactions", "receipts", "lookups", "log_index", "other"];
        let sum: u64 = parts.iter().map(|part| bytes[part].as_u64().unwrap()).sum();
        assert_eq!(sum, on_disk);
        assert!(parts.iter().all(|part| bytes[part].as_u64().unwrap() > 0), "{bytes}");
    };
    data.import(&["--blocks", "0..49"]).ends_with(0);
    check();
    data.import(&[]).ends_with(0);
    check();
}

#[test]
fn the_page_for_people_tells_ranges_counts_and_bytes() {
    let data = Data::new();
    let part = write_part(&data.archive(), 60..=99, true, &data.folder.path().join("part"));
    data.import(&["--blocks", "0..49"]).ends_with(0);
    data.run("import", &["--unanchored", text(&part)]).ends_with(0);
    let page = data.run("stat", &[]).ends_with(0).out;
    for said in [
        &format!("sample, chain id 20260101 in {}", data.path().display()),
        "90 blocks, ",
        "  0..0    anchored by genesis",
        "  1..49   consistent, linked to genesis",
        "  50..59  not held",
        "  60..99  consistent but not anchored",
        "receipts   of all blocks",
        "tip        99 0x",
        "finalized  none",
        "per transaction",
        "  total ",
        "2 segments, 3 lookup runs",
    ] {
        assert!(page.contains(said), "{said}:\n{page}");
    }
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!(stat["gaps"], serde_json::json!([{ "first": 50, "last": 59 }]));
}

#[test]
fn a_folder_that_holds_nothing_says_so() {
    let data = Data::new();
    // Nothing of it is taken: no genesis is named.
    let archive = data.archive();
    data.run("import", &[text(&archive)]).ends_with(1);
    let before = data.files();
    let page = data.run("stat", &[]).ends_with(0).out;
    assert!(page.contains("holds no block yet"), "{page}");
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert!(stat["tip"].is_null() && stat["finalized"].is_null() && stat["network"].is_null());
    let on_disk: u64 = before.values().map(|file| file.len() as u64).sum();
    assert_eq!((&stat["blocks"], &stat["bytes"]["total"]), (&0.into(), &on_disk.into()));
    assert!(data.files() == before, "looking changes nothing");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let data = Data::imported();
    let path = data.path();
    assert_eq!(quipu_unread(&["stat", "--data-dir", text(&path)]), Some(0));
    quipu(&["stat", "--data-dir", text(&path), "surplus"]).ends_with(2);
}
