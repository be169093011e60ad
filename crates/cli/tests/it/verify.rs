//! `quipu verify`: verdicts, exit codes, and what is said about what is false.

use crate::harness::run::{archive, quipu, quipu_unread, sample, text};

#[test]
fn a_true_archive_of_an_unknown_chain_is_consistent_but_not_anchored() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let ran = quipu(&["verify", text(folder.path())]).ends_with(0);
    assert!(ran.out.contains("blocks 0..99"), "{}", ran.out);
    assert!(ran.out.contains("consistent but not anchored"), "{}", ran.out);
    assert!(ran.out.contains("1 file proven: 100 blocks"), "{}", ran.out);
}

#[test]
fn json_has_one_object_for_each_file() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "era1");
    let ran = quipu(&["verify", "--json", text(folder.path())]).ends_with(0);
    let object: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
    assert_eq!((object["first"].as_u64(), object["last"].as_u64()), (Some(0), Some(63)));
    assert_eq!(object["proven"], true);
    assert_eq!(object["status"][0]["status"], "unanchored");
}

#[test]
fn an_anchor_anchors_what_is_below_it_and_refuses_another_hash() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let ran = quipu(&["verify", "--json", text(folder.path())]).ends_with(0);
    let object: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
    let last_hash = object["last_hash"].as_str().unwrap();
    let anchor = format!("99:{last_hash}");
    let ran = quipu(&["verify", "--anchor", &anchor, text(folder.path())]).ends_with(0);
    assert!(ran.out.contains(&format!("anchored by {anchor}")), "{}", ran.out);

    let false_anchor = format!("98:{last_hash}");
    let ran = quipu(&["verify", "--anchor", &false_anchor, text(folder.path())]).ends_with(1);
    assert!(ran.err.contains("block 98, byte "), "{}", ran.err);
    assert!(ran.err.contains(last_hash), "{}", ran.err);
}

#[test]
fn a_damaged_archive_ends_with_1_and_names_file_block_and_byte() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let path = archive(folder.path());
    // Without their lists the damage itself must be found.
    for list in ["checksums.txt", "checksums_sha256.txt"] {
        std::fs::remove_file(folder.path().join(list)).unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let ran = quipu(&["verify", text(&path)]).ends_with(1);
    assert!(ran.err.contains(&format!("error: {}: block ", path.display())), "{}", ran.err);
    assert!(ran.err.contains(", byte "), "{}", ran.err);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert!(ran.out.contains("FALSE"), "{}", ran.out);
}

#[test]
fn a_reader_that_leaves_early_does_not_turn_false_into_true() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("false.ere");
    std::fs::write(&path, "not an archive").unwrap();
    assert_eq!(quipu_unread(&["verify", text(&path)]), Some(1));
}

#[test]
fn what_cannot_be_read_is_not_called_false_and_the_rest_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let ran = quipu(&["verify", "/no/such/file.ere", text(folder.path())]).ends_with(1);
    assert!(ran.out.contains("1 file proven"), "{}", ran.out);
    assert!(ran.out.contains("/no/such/file.ere  UNREADABLE"), "{}", ran.out);
    assert!(ran.out.contains("; 1 UNREADABLE") && !ran.out.contains("FALSE"), "{}", ran.out);
}

#[test]
fn a_file_of_another_network_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let ran = quipu(&["verify", "--network", "mainnet", text(folder.path())]).ends_with(1);
    assert!(ran.err.contains("genesis says 0xd4e56740f876aef8"), "{}", ran.err);
}

#[test]
fn wrong_flags_end_with_2_and_missing_files_with_1() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), "ere");
    let here = text(folder.path());
    quipu(&["verify"]).ends_with(2);
    quipu(&["verify", "--network", "atlantis", here]).ends_with(2);
    quipu(&["verify", "--anchor", "12", here]).ends_with(2);
    quipu(&["verify", "--genesis", "/no/such/genesis.json", here]).ends_with(2);
    let archive = archive(folder.path());
    let ran = quipu(&["verify", "--genesis", text(&archive), here]).ends_with(2);
    assert!(ran.err.contains(text(&archive)), "{}", ran.err);
    let ran = quipu(&["verify", "/no/such/file.era1"]).ends_with(1);
    assert!(ran.err.contains("/no/such/file.era1"), "{}", ran.err);
}

#[test]
fn anchors_need_one_network() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for folder in &folders {
        sample(folder.path(), "ere");
    }
    let path = archive(folders[1].path());
    let other = path.with_file_name("other-00000-00000000.ere");
    std::fs::rename(&path, &other).unwrap();
    let anchor = format!("1:0x{}", "0".repeat(64));
    let args = ["verify", "--anchor", &anchor, text(folders[0].path()), text(&other)];
    let ran = quipu(&args).ends_with(2);
    assert!(ran.err.contains("--anchor with files of several networks"), "{}", ran.err);
}
