//! `quipu import`: what is taken, from which chain, and what is said of the rest.

use std::fs;

use crate::harness::data::{Data, files, write_part};
use crate::harness::run::{command, quipu, ran, text};

#[test]
fn a_chain_is_taken_and_a_second_import_changes_nothing() {
    let data = Data::new();
    let ran = data.import(&[]).ends_with(0);
    assert!(ran.out.contains("blocks 0..99"), "{}", ran.out);
    assert!(ran.out.contains("0..0 anchored by genesis; 1..99 consistent, linked"), "{}", ran.out);
    assert!(ran.out.contains("1 file imported: 100 blocks, "), "{}", ran.out);
    assert!(ran.out.contains("on disk: "), "{}", ran.out);
    let before = data.files();
    let ran = data.import(&[]).ends_with(0);
    assert!(ran.out.contains("blocks 0..99  held already"), "{}", ran.out);
    assert!(ran.out.contains("; 1 held already"), "{}", ran.out);
    assert!(data.files() == before);
}

#[test]
fn the_genesis_is_kept_so_that_later_imports_need_no_flag() {
    let data = Data::new();
    data.import(&["--blocks", "0..39"]).ends_with(0);
    let kept = fs::read(data.path().join("genesis.json")).unwrap();
    assert!(kept == fs::read(data.genesis()).unwrap());
    let archive = data.archive();
    let ran = data.run("import", &[text(&archive)]).ends_with(0);
    assert!(ran.out.contains("linked to genesis"), "{}", ran.out);
    let direct = Data::imported();
    assert!(direct.files() == data.files(), "in parts or at once");
}

#[test]
fn a_part_is_taken_and_a_file_without_a_wanted_block_is_passed_over() {
    let data = Data::new();
    let ran = data.import(&["--blocks", "10000..10001"]).ends_with(0);
    assert!(ran.out.contains("none of blocks 10000..10001"), "{}", ran.out);
    let ran = data.import(&["--blocks", "0..9", "--threads", "1"]).ends_with(0);
    assert!(ran.out.contains("blocks 0..9  "), "{}", ran.out);
}

#[test]
fn flags_that_contradict_the_folder_are_refused_and_change_nothing() {
    let data = Data::imported();
    let before = data.files();
    let archive = data.archive();
    let check = |flags: &[&str], said: &str| {
        let ran = data.run("import", &[flags, &[text(&archive)]].concat()).ends_with(2);
        assert!(ran.err.contains(said), "{}", ran.err);
        assert!(ran.err.contains(text(&data.path())), "{}", ran.err);
        assert!(data.files() == before);
    };
    check(&["--network", "sepolia"], "holds sample with chain id 20260101");
    check(&["--chain-id", "1"], "the flags name sample with chain id 1");
    let hash = format!("0x{}", "1".repeat(64));
    check(&["--chain-id", "20260101", "--genesis-hash", &hash], "genesis hash");
    // Another number of transactions is another genesis block with the same chain id.
    let other = tempfile::tempdir().unwrap();
    let args = ["sample", "--to", text(other.path()), "--block-count", "1", "--txs-per-block", "7"];
    quipu(&args).ends_with(0);
    let genesis = other.path().join("genesis.json");
    if fs::read(&genesis).unwrap() != fs::read(data.genesis()).unwrap() {
        check(&["--genesis", text(&genesis)], "genesis hash");
    }
}

#[test]
fn a_chain_id_that_the_folder_has_changes_nothing_of_what_it_knows() {
    let data = Data::imported();
    let before = data.files();
    let archive = data.archive();
    data.run("import", &["--chain-id", "20260101", text(&archive)]).ends_with(0);
    assert!(data.files() == before);
}

#[test]
fn a_genesis_that_blocks_held_without_one_contradict_is_refused() {
    let data = Data::new();
    let archive = data.archive();
    data.run("import", &["--unanchored", text(&archive)]).ends_with(0);
    let hash = format!("0x{}", "1".repeat(64));
    let args = ["--chain-id", "20260101", "--genesis-hash", &hash, text(&archive)];
    let ran = data.run("import", &args).ends_with(2);
    assert!(ran.err.contains("genesis hash"), "{}", ran.err);
    data.import(&[]).ends_with(0);
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!(stat["coverage"][1]["anchor"], "genesis");
}

#[test]
fn a_genesis_left_by_an_import_that_took_nothing_binds_nobody() {
    let data = Data::new();
    data.import(&["--blocks", "500..600"]).ends_with(0);
    let kept = data.path().join("genesis.json");
    assert!(!kept.exists(), "nothing was taken");
    // As a kill leaves it.
    fs::copy(data.genesis(), &kept).unwrap();
    let archive = data.archive();
    data.run("import", &["--chain-id", "20260101", "--unanchored", text(&archive)]).ends_with(0);
    assert!(!kept.exists());
}

#[test]
fn archives_of_several_networks_or_of_none_are_a_wrong_command_line() {
    let data = Data::new();
    let archive = data.archive();
    let other = archive.with_file_name("other-00000-00000000.ere");
    fs::copy(&archive, &other).unwrap();
    let ran = data.run("import", &[text(&archive), text(&other)]).ends_with(2);
    assert!(ran.err.contains("several networks: other, sample"), "{}", ran.err);
    let nameless = archive.with_file_name("blocks.ere");
    fs::copy(&archive, &nameless).unwrap();
    let ran = data.run("import", &[text(&nameless)]).ends_with(2);
    assert!(ran.err.contains("no archive's name says its network"), "{}", ran.err);
    assert!(!data.path().exists(), "a wrong command line makes nothing");
    // A flag says what a name does not.
    let genesis = data.genesis();
    data.run("import", &["--genesis", text(&genesis), text(&nameless)]).ends_with(0);
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!(stat["network"], "chain-20260101");
}

#[test]
fn archives_of_another_network_than_the_folders_are_refused() {
    let data = Data::imported();
    let before = data.files();
    let archive = data.archive();
    let other = archive.with_file_name("other-00000-00000000.ere");
    fs::copy(&archive, &other).unwrap();
    let ran = data.run("import", &[text(&other)]).ends_with(2);
    assert!(ran.err.contains("holds sample, the archives say other"), "{}", ran.err);
    assert!(data.files() == before);
}

#[test]
fn a_damaged_archive_is_named_and_the_others_are_taken() {
    let data = Data::new();
    let archive = data.archive();
    let parts = data.folder.path().join("parts");
    let good = write_part(&archive, 0..=49, true, &parts.join("0"));
    let bad = write_part(&archive, 50..=99, true, &parts.join("1"));
    for list in ["checksums.txt", "checksums_sha256.txt"] {
        let _ = fs::remove_file(parts.join("1").join(list));
    }
    let mut bytes = fs::read(&bad).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&bad, bytes).unwrap();
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), text(&parts), "/no/such/sample-00000-00000000.ere"];
    let ran = data.run("import", &args).ends_with(1);
    assert!(ran.err.contains(&format!("error: {}: block ", bad.display())), "{}", ran.err);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert!(ran.err.contains("error: /no/such/sample-00000-00000000.ere"), "{}", ran.err);
    assert!(ran.out.contains(&format!("{}  blocks 0..49", good.display())), "{}", ran.out);
    assert!(ran.out.contains("1 file imported: 50 blocks"), "{}", ran.out);
    assert!(ran.out.contains("; 2 REFUSED"), "{}", ran.out);
}

#[test]
fn what_links_to_nothing_is_taken_only_if_asked_and_is_never_final() {
    let data = Data::new();
    let part = write_part(&data.archive(), 50..=99, true, &data.folder.path().join("part"));
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), text(&part)];
    let ran = data.run("import", &args).ends_with(1);
    assert!(ran.err.contains("link to nothing known"), "{}", ran.err);
    assert!(ran.err.contains("--unanchored"), "{}", ran.err);
    let args = ["--genesis", text(&genesis), "--unanchored", text(&part)];
    let ran = data.run("import", &args).ends_with(0);
    assert!(ran.out.contains("consistent but not anchored"), "{}", ran.out);
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!(stat["coverage"][0]["status"], "unanchored");
    assert!(stat["coverage"][0]["anchor"].is_null() && stat["finalized"].is_null());
    // The blocks between genesis and it link it, and then all is as if it had come at once.
    data.import(&[]).ends_with(0);
    assert!(data.files() == Data::imported().files());
}

#[test]
fn archives_without_receipts_are_taken_only_if_asked() {
    let data = Data::new();
    let part = write_part(&data.archive(), 0..=99, false, &data.folder.path().join("bare"));
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), text(&part)];
    let ran = data.run("import", &args).ends_with(1);
    assert!(ran.err.contains("holds no receipts"), "{}", ran.err);
    assert!(ran.err.contains("--without-receipts"), "{}", ran.err);
    data.run("import", &[&args[..], &["--without-receipts"]].concat()).ends_with(0);
    let page = data.run("stat", &[]).ends_with(0).out;
    assert!(page.contains("receipts   of no block"), "{page}");
    data.import(&[]).ends_with(0);
    assert!(data.files() == Data::imported().files(), "receipts replace what had none");
}

#[test]
fn an_anchor_is_remembered_by_the_folder() {
    let data = Data::new();
    let archive = data.archive();
    let verified = quipu(&["verify", "--json", text(&archive)]).ends_with(0).json();
    let anchor = format!("99:{}", verified["last_hash"].as_str().unwrap());
    data.import(&["--anchor", &anchor]).ends_with(0);
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!(stat["coverage"][0]["anchor"], anchor.as_str());
    // One that a held block contradicts is an error, not a warning.
    let wrong = format!("98:{}", verified["last_hash"].as_str().unwrap());
    let before = data.files();
    let ran = data.import(&["--anchor", &wrong]).ends_with(1);
    assert!(ran.err.contains(&format!("anchor {wrong} contradicts")), "{}", ran.err);
    assert!(data.files() == before);
}

#[test]
fn the_folder_is_told_by_flag_variable_or_default() {
    let data = Data::new();
    let (genesis, archive) = (data.genesis(), data.archive());
    let args = ["import", "--genesis", text(&genesis), text(&archive)];
    let home = data.folder.path().join("home");
    ran(command(&args).env("HOME", &home).env_remove("XDG_DATA_HOME")).ends_with(0);
    let by_home = files(&home.join(".local/share/quipu"));
    let xdg = data.folder.path().join("xdg");
    ran(command(&args).env("HOME", &home).env("XDG_DATA_HOME", &xdg)).ends_with(0);
    let named = data.folder.path().join("named");
    ran(command(&args).env("HOME", &home).env("QUIPU_DATA_DIR", &named)).ends_with(0);
    assert!(files(&xdg.join("quipu")) == by_home && files(&named) == by_home);
    let nowhere = ran(command(&args).env_remove("HOME").env_remove("XDG_DATA_HOME")).ends_with(2);
    assert!(nowhere.err.contains("--data-dir"), "{}", nowhere.err);
}

#[test]
fn wrong_flags_end_with_2_and_make_nothing() {
    let data = Data::new();
    let archive = data.archive();
    let path = text(&archive);
    let check = |args: &[&str]| {
        data.run("import", args).ends_with(2);
        assert!(!data.path().exists());
    };
    check(&[]);
    check(&["--blocks", "9..3", path]);
    check(&["--blocks", "9", path]);
    check(&["--threads", "0", path]);
    check(&["--network", "atlantis", path]);
    check(&["--genesis", "/no/such/genesis.json", path]);
    check(&["--genesis", path, path]);
    check(&["--anchor", "7", path]);
    quipu(&["import", "--help"]).ends_with(0);
}

#[test]
fn a_folder_without_archives_ends_with_1_and_is_named() {
    let data = Data::new();
    let empty = tempfile::tempdir().unwrap();
    let ran = data.run("import", &[text(empty.path())]).ends_with(1);
    assert!(ran.err.contains(text(empty.path())), "{}", ran.err);
    assert!(!data.path().exists());
}
