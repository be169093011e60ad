//! `quipu demo`.

use crate::run::{quipu, quipu_unread, text};

#[test]
fn the_demo_goes_on_to_its_verdict_though_nobody_reads_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--to", text(folder.path()), "--block-count", "20"];
    assert_eq!(quipu_unread(&args), Some(0));
    // What goes wrong is still told by the exit code: here a list that cannot be renewed.
    std::fs::write(folder.path().join("checksums_sha256.txt"), "nonsense\n").unwrap();
    assert_eq!(quipu_unread(&args), Some(1));
}

#[test]
fn the_demo_makes_and_proves_a_chain_and_says_how_to_do_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["demo", "--to", text(folder.path()), "--block-count", "140", "--txs-per-block", "2"];
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains("made 140 blocks"), "{}", ran.out);
    assert!(ran.out.contains("1..139 consistent, linked to genesis"), "{}", ran.out);
    let again = ran.out.lines().find_map(|line| line.split_once("quipu verify ")).unwrap().1;
    let args: Vec<&str> = std::iter::once("verify").chain(again.split_whitespace()).collect();
    quipu(&args).ends_with(0);
    let again = ran.out.lines().find_map(|line| line.split_once("quipu stat ")).unwrap().1;
    let args: Vec<&str> = std::iter::once("stat").chain(again.split_whitespace()).collect();
    let page = quipu(&args).ends_with(0).out;
    assert!(page.starts_with("sample, chain id "), "{page}");
    assert!(ran.out.contains(&page), "{}", ran.out);
}

#[test]
fn the_demo_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--to", text(folder.path()), "--block-count", "20"];
    quipu(&args).ends_with(0);
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains("blocks 0..19  held already"), "{}", ran.out);
}
