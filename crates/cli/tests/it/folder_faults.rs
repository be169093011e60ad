//! Data folders that are missing, locked, somebody's own, full, or cannot be written.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use store::disk::Folder;
use store::lock::WriterLock;

use crate::harness::data::Data;
use crate::harness::run::{command, quipu, ran, text};

#[test]
fn a_missing_folder_is_named_with_the_way_to_make_one_and_is_not_made() {
    let data = Data::new();
    let path = data.path();
    let commands: [&[&str]; 3] =
        [&["stat"], &["stat", "--json"], &["export", "--format", "ere", "--to", "out"]];
    for given in commands {
        let ran = quipu(&[given, &["--data-dir", text(&path)]].concat()).ends_with(1);
        assert!(ran.err.contains(&format!("{}: there is no data folder", path.display())));
        assert!(ran.err.contains("quipu import --data-dir"), "{}", ran.err);
        assert!(!path.exists() && ran.out.is_empty());
    }
}

#[test]
fn a_folder_that_another_process_writes_is_left_alone_and_can_be_read() {
    let data = Data::imported();
    let before = data.files();
    let lock = WriterLock::take(&Folder::open(data.path()).unwrap()).unwrap();
    let refused = data.import(&[]).ends_with(1);
    assert!(refused.err.contains("another process writes to this data folder"), "{}", refused.err);
    assert!(refused.err.contains("hint: "), "{}", refused.err);
    assert!(data.files() == before);
    data.run("stat", &[]).ends_with(0);
    drop(lock);
    data.import(&[]).ends_with(0);
}

#[test]
fn a_second_import_is_refused_while_the_first_works() {
    let data = Data::new();
    // Nobody reads on after its first line, so the first waits for ever with the folder locked.
    let (genesis, archive, path) = (data.genesis(), data.archive(), data.path());
    let args = ["import", "--data-dir", text(&path), "--genesis", text(&genesis)];
    let files = [text(&archive)].repeat(4000);
    let mut first = command(&[&args[..], &files].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("blocks 0..99"), "{line}");
    let refused = data.import(&[]).ends_with(1);
    assert!(refused.err.contains("another process writes"), "{}", refused.err);
    let page = data.run("stat", &[]).ends_with(0).out;
    assert!(page.contains("100 blocks"), "{page}");
    // A reader that leaves is no failure: the first goes on to its end.
    drop(lines);
    assert!(first.wait().unwrap().success());
    data.import(&[]).ends_with(0);
}

#[test]
fn a_folder_of_somebody_elses_files_is_left_alone() {
    let data = Data::new();
    fs::create_dir(data.path()).unwrap();
    fs::write(data.path().join("film.part"), "half").unwrap();
    let ran = data.import(&[]).ends_with(1);
    assert!(ran.err.contains("not empty: film.part is in it"), "{}", ran.err);
    assert_eq!(data.files().len(), 1);
    fs::remove_file(data.path().join("film.part")).unwrap();
    data.import(&[]).ends_with(0);
}

#[test]
fn a_folder_that_cannot_be_made_or_written_is_named() {
    let data = Data::new();
    let file = data.folder.path().join("in the way");
    fs::write(&file, "").unwrap();
    let (genesis, archive) = (data.genesis(), data.archive());
    let within = file.join("data");
    for (path, code) in [(text(&file), 2), (text(&within), 1), ("/proc/quipu", 1)] {
        let args = ["import", "--data-dir", path, "--genesis", text(&genesis), text(&archive)];
        let ran = quipu(&args).ends_with(code);
        assert!(ran.err.contains(path), "{}", ran.err);
    }
}

/// Writing past a limit fails as it does on a full disk, with another word of the system.
#[test]
fn a_disk_that_takes_no_more_ends_the_import_and_the_next_one_completes_it() {
    let data = Data::new();
    let path = data.path();
    let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    let (genesis, archive) = (data.genesis(), data.archive());
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let args = ["import", "--data-dir", text(&path), "--genesis", text(&genesis), text(&archive)];
    // Blocks of 512 bytes: the genesis fits, no segment does.
    let mut limited = Command::new("sh");
    limited.args(["-c", script, "sh", "16", quipu]).args(args);
    let ran = ran(&mut limited).ends_with(1);
    assert!(ran.err.contains(text(&path)), "{}", ran.err);
    assert!(ran.err.contains("run the same command again; what is held stays"), "{}", ran.err);
    assert!(ran.out.contains("0 files imported"), "{}", ran.out);
    data.import(&[]).ends_with(0);
    assert!(data.files() == Data::imported().files());
}

/// On a file system of 64 KiB, where this user may make one.
#[test]
fn an_import_that_the_disk_has_no_space_for_is_not_begun() {
    let data = Data::new();
    fs::create_dir(data.path()).unwrap();
    let script = "mount -t tmpfs -o size=64k none \"$1\" || exit 77; shift; exec \"$@\"";
    let (genesis, archive, path) = (data.genesis(), data.archive(), data.path());
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let args = ["import", "--data-dir", text(&path), "--genesis", text(&genesis), text(&archive)];
    let mut small = Command::new("unshare");
    small.args(["--map-root-user", "--mount", "sh", "-c", script, "sh", text(&path), quipu]);
    let Ok(tried) = small.args(args).output() else {
        println!("skipped: there is no unshare");
        return;
    };
    let said = String::from_utf8_lossy(&tried.stderr);
    if tried.status.code() == Some(77) || said.contains("unshare: ") {
        println!("skipped: this user may mount nothing: {said}");
        return;
    }
    assert_eq!(tried.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{}: at least ", path.display())), "{said}");
    assert!(said.contains(" bytes are needed, ") && said.contains(" are free"), "{said}");
}

#[test]
fn a_damaged_manifest_or_segment_is_named() {
    let data = Data::imported();
    let whole = data.files();
    for (name, bytes) in &whole {
        if name == "genesis.json" {
            continue;
        }
        let path = data.path().join(name);
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let ran = data.run("stat", &[]).ends_with(1);
        assert!(ran.err.contains(name), "{}", ran.err);
        fs::write(&path, bytes).unwrap();
    }
    data.run("stat", &[]).ends_with(0);
    let archive = data.archive();
    // An empty object is the genesis of some chain, and not of this one.
    for genesis in ["nonsense", "{}"] {
        fs::write(data.path().join("genesis.json"), genesis).unwrap();
        let ran = data.run("import", &[text(&archive)]).ends_with(1);
        assert!(ran.err.contains("/genesis.json: "), "{}", ran.err);
    }
    data.import(&[]).ends_with(0);
    assert!(data.files() == whole, "the flag brings the right one back");
}
