//! What `quipu repair` refuses, and what it leaves to the next import.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::data::{Data, files, names};
use crate::harness::long::{Long, refused_code};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

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

/// Seen: the segment was dropped with exit code 0, and its blocks were answered with null.
#[test]
fn blocks_of_a_lost_segment_are_named_and_never_denied() {
    for (place, lost, first_lost) in [(2, "512..599", 512), (1, "256..511", 256)] {
        let long = Long::new();
        let before = files(&long.path());
        long.lose(&long.segments()[place]);
        let said = format!("blocks {lost} are lost: this folder knew them");
        let ran = long.run(&["repair"]).ends_with(1);
        assert!(ran.out.contains(&said), "{}", ran.out);
        assert!(ran.err.contains("cannot be repaired\n  hint: "), "{}", ran.err);
        let checked = long.run(&["check"]).ends_with(0);
        assert!(checked.err.contains(&said), "{}", checked.err);
        let stat = long.run(&["stat"]).ends_with(0);
        assert!(stat.out.contains(&said), "{}", stat.out);
        let served = Served::start(&long.path(), &[]);
        assert_eq!(refused_code(&served, first_lost - 1), None);
        assert_eq!(refused_code(&served, first_lost), Some(4444));
        assert_eq!(refused_code(&served, first_lost + 80), Some(4444));
        assert_eq!(refused_code(&served, 600), None, "nobody ever had it");
        let unknown = json!([format!("0x{}", "ab".repeat(32))]);
        let answer = served.call("eth_getTransactionByHash", &unknown);
        assert_eq!(answer["error"]["code"], 4444, "it may be in a lost block: {answer}");
        served.stop();
        long.run(&["repair"]).ends_with(0);
        // Whoever brings the blocks back has the folder as it was.
        long.import().ends_with(0);
        assert!(files(&long.path()) == before);
    }
}

#[test]
fn a_listed_segment_that_cannot_be_read_is_lost_too() {
    let long = Long::new();
    let last = long.path().join(&long.segments()[2]);
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() - 1]).unwrap();
    let ran = long.run(&["repair"]).ends_with(1);
    assert!(ran.out.contains(&format!("left out {}", long.segments()[2])), "{}", ran.out);
    assert!(ran.out.contains("blocks 512..599 are lost: this folder knew them"), "{}", ran.out);
    // So it is if the manifest is gone as well: the file's name tells.
    long.lose("manifest");
    let ran = long.run(&["repair", "--name", "sample"]).ends_with(1);
    assert!(ran.out.contains("blocks 512..599 are lost: this folder knew them"), "{}", ran.out);
}

#[test]
fn a_directory_in_the_place_of_a_segment_is_named() {
    let long = Long::new();
    let name = long.segments().pop().unwrap();
    long.lose(&name);
    fs::create_dir(long.path().join(&name)).unwrap();
    let ran = long.run(&["check"]).ends_with(1);
    assert!(ran.err.contains(&format!("{name}: this is a directory")), "{}", ran.err);
    let ran = long.run(&["repair"]).ends_with(1);
    let said = format!("left out {name}: it is a directory, not a file");
    assert!(ran.out.contains(&said), "{}", ran.out);
    assert!(ran.out.contains("blocks 512..599 are lost: this folder knew them"), "{}", ran.out);
    // The manifest lists it no longer, and still it is told.
    let ran = long.run(&["repair"]).ends_with(1);
    assert!(ran.out.contains(&format!("{name}: this is a directory")), "{}", ran.out);
}

/// Seen: two chains with a gap between them were listed together.
#[test]
fn ranges_that_nothing_links_are_not_listed_together_unless_told_so() {
    let long = Long::new();
    let segments = long.segments();
    long.lose(&segments[1]);
    long.lose("manifest");
    let before = files(&long.path());
    let ran = long.run(&["repair", "--name", "sample"]).ends_with(1);
    for said in [&segments[0], &segments[2], "may be of different chains", "--unanchored"] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert!(files(&long.path()) == before, "nothing was changed");
    let ran = long.run(&["repair", "--name", "sample", "--unanchored"]).ends_with(0);
    assert!(ran.out.contains("blocks 0..255, 512..599"), "{}", ran.out);
    long.run(&["check"]).ends_with(0);
}

/// Seen: a smaller file of another chain was called superseded.
#[test]
fn a_smaller_file_of_another_chain_is_refused_with_both_names() {
    let data = Data::imported();
    let own = names(&data.path(), ".segment").pop().unwrap();
    let elsewhere = data.folder.path().join("elsewhere");
    let (to, other) = (elsewhere.join("archives"), elsewhere.join("data"));
    let size = ["--block-count", "50", "--txs-per-block", "1", "--seed", "2"];
    quipu(&[&["sample", "--to", text(&to)], &size[..]].concat()).ends_with(0);
    let genesis = to.join("genesis.json");
    let import = ["import", "--data-dir", text(&other), "--genesis", text(&genesis), text(&to)];
    quipu(&import).ends_with(0);
    let foreign = names(&other, ".segment").pop().unwrap();
    fs::copy(other.join(&foreign), data.path().join(&foreign)).unwrap();
    fs::remove_file(data.path().join("manifest")).unwrap();
    let before = data.files();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(1);
    for said in [&own, &foreign, "hash of block 49"] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert!(data.files() == before, "nothing was changed");
}

/// Seen by reading: a chain id that contradicted the manifest's was taken over.
#[test]
fn a_chain_that_is_not_the_manifests_is_refused() {
    let long = Long::new();
    let segments = long.segments();
    long.lose(&segments[2]);
    let before = files(&long.path());
    for flags in [&["--chain-id", "5"][..], &["--genesis-hash", &format!("0x{}", "11".repeat(32))]]
    {
        let ran = long.run(&[&["repair"], flags].concat());
        assert_ne!(ran.code, Some(0), "{flags:?}: {}", ran.err);
        assert_eq!(files(&long.path()), before, "{flags:?}");
    }
}

/// Seen by reading: a file that only its name made a segment of ours kept its numbers from being `null`.
#[test]
fn a_stray_name_is_no_lost_block() {
    let long = Long::new();
    let segments = long.segments();
    long.lose(&segments[2]);
    let stray = long.path().join("blocks-0000000000-9999999999-abababababababab.segment");
    fs::copy(long.path().join(&segments[0]), &stray).unwrap();
    let garbage = long.path().join("blocks-0000000600-0000099999-abababababababab.segment");
    fs::write(garbage, "not a segment").unwrap();
    long.run(&["repair"]).ends_with(1);
    let stat = long.run(&["stat", "--json"]).ends_with(0);
    let stat: serde_json::Value = serde_json::from_str(&stat.out).unwrap();
    assert_eq!(stat["lost"], json!([{ "first": 512, "last": 599 }]), "{stat}");
}

#[test]
fn a_name_must_be_a_word() {
    let data = Data::imported();
    fs::remove_file(data.path().join("manifest")).unwrap();
    for name in ["", "-", "two words"] {
        let ran = data.run("repair", &[&format!("--name={name}")]).ends_with(2);
        assert!(ran.err.contains("a name is made of letters"), "{}", ran.err);
    }
    assert!(!data.path().join("manifest").exists());
}

/// Seen: `check` passed in both cases.
#[test]
fn a_genesis_that_was_removed_or_changed_is_told_and_mended_with_the_right_one() {
    let data = Data::imported();
    let (kept, whole) = (data.path().join("genesis.json"), data.files());
    // A fork's time or an account's balance: it is the same chain as far as its hash tells.
    let place = whole["genesis.json"].iter().rposition(|byte| *byte == b'}').unwrap();
    let changes: [&dyn Fn(); 2] = [&|| fs::remove_file(&kept).unwrap(), &|| {
        fs::write(&kept, [&whole["genesis.json"][..place], b" }"].concat()).unwrap();
    }];
    for change in changes {
        change();
        for command in
            [&["check"][..], &["stat"], &["serve", "--listen", "127.0.0.1:0"], &["repair"]]
        {
            let ran = data.run(command[0], &command[1..]).ends_with(1);
            assert!(ran.err.contains("genesis.json: it"), "{command:?}: {}", ran.err);
            assert!(ran.err.contains("quipu repair --genesis FILE"), "{command:?}: {}", ran.err);
        }
        let genesis = data.genesis();
        let ran = data.run("repair", &["--genesis", text(&genesis)]).ends_with(0);
        assert!(ran.out.contains("genesis.json: the given one is kept"), "{}", ran.out);
        assert!(data.files() == whole);
        data.run("check", &[]).ends_with(0);
    }
}

/// Seen: `check` waited for the other end of a FIFO.
#[test]
fn a_fifo_is_refused_by_name() {
    let data = Data::imported();
    for name in ["journal", "notice.txt", "head-7.log", "manifest"] {
        let place = data.path().join(name);
        let before = fs::read(&place).ok();
        let _ = fs::remove_file(&place);
        assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
        let ran = data.run("check", &[]).ends_with(1);
        assert!(ran.err.contains(name) && ran.err.contains("a FIFO, not a file"), "{}", ran.err);
        fs::remove_file(&place).unwrap();
        if let Some(bytes) = before {
            fs::write(&place, bytes).unwrap();
        }
    }
    data.run("check", &[]).ends_with(0);
}

/// Seen: "held already", exit code 0.
#[test]
fn an_import_does_not_say_held_of_a_segment_that_is_cut_or_has_another_footer() {
    let data = Data::imported();
    let name = names(&data.path(), ".segment").pop().unwrap();
    let (path, whole) = (data.path().join(&name), data.files());
    let bytes = &whole[&name];
    let changes: [&dyn Fn(); 3] = [
        &|| fs::write(&path, &bytes[..bytes.len() - 1]).unwrap(),
        &|| flip(&path, bytes.len() - 60),
        &|| fs::remove_file(&path).unwrap(),
    ];
    for change in changes {
        change();
        let ran = data.import(&[]).ends_with(1);
        assert!(ran.err.contains(&name) && !ran.out.contains("held already"), "{}", ran.err);
        fs::write(&path, bytes).unwrap();
    }
    // What is in it is not read, and that is said.
    let ran = data.import(&[]).ends_with(0);
    assert!(ran.out.contains("only length and footer were looked at"), "{}", ran.out);
}

#[test]
fn a_folder_of_archives_is_told_from_a_data_folder() {
    let data = Data::new();
    let archives = data.folder.path().join("archives");
    for with_genesis in [true, false] {
        if !with_genesis {
            fs::remove_file(archives.join("genesis.json")).unwrap();
        }
        for command in [&["check"][..], &["stat"], &["serve", "--listen", "127.0.0.1:0"]] {
            let given = [command, &["--data-dir", text(&archives)]].concat();
            let ran = quipu(&given).ends_with(1);
            for said in ["folder of archives", "quipu import --data-dir"] {
                assert!(ran.err.contains(said), "{command:?}: {}", ran.err);
            }
        }
    }
    assert!(!archives.join("lock").exists() && !archives.join("manifest").exists());
}
