//! Few file descriptors: less is open at once, and nothing is called damaged for it.

use std::process::Command;

use crate::harness::run::{Ran, quipu, ran, text};

/// `quipu` with so many descriptors at the most.
fn quipu_with(descriptors: u32, args: &[&str]) -> Ran {
    let script = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    ran(Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_quipu")]).args(args))
}

/// Seen: `check` said that 42 files are damaged.
#[test]
fn a_check_with_fewer_descriptors_than_files_finds_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (archives, data) = (folder.path().join("archives"), folder.path().join("data"));
    let size = ["--block-count", "3000", "--txs-per-block", "1"];
    quipu(&[&["sample", "--to", text(&archives)], &size[..]].concat()).ends_with(0);
    let genesis = archives.join("genesis.json");
    let import =
        ["import", "--data-dir", text(&data), "--genesis", text(&genesis), text(&archives)];
    quipu(&import).ends_with(0);
    // Twelve segments and two runs: beside some ten that the process itself needs they do not fit.
    let check = ["check", "--threads", "2", "--data-dir", text(&data)];
    let checked = quipu_with(19, &check).ends_with(0);
    assert!(checked.out.contains("all is as it should be: 3000 blocks"), "{}", checked.out);
    // Not even the manifest and a lock: that is told as what it is.
    let starved = quipu_with(4, &check).ends_with(1);
    assert!(!starved.out.contains("not what they should be"), "{}", starved.out);
}
