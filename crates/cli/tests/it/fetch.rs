//! `quipu fetch`: the real executable beside mirrors that serve well and badly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;

use archive::hash_file;
use tempfile::TempDir;
use testing::mirror::{Manner, Mirror, Wish};

use crate::harness::data::{files, names, write_part};
use crate::harness::run::{Ran, command, quipu, ran, text};
use crate::harness::served::signal;
use crate::harness::stores::own_folder;
use crate::harness::wait::wait_for;

const SUMS: &str = "checksums_sha256.txt";

/// The first blocks of two eras, as two archives with their lists, made once for all tests of a run. What
/// lies between them is left out, which takes less time: the second links to nothing.
static ARCHIVES: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = own_folder("fetch");
    let whole = folder.join("whole");
    let size = ["--block-count", "8232", "--txs-per-block", "1"];
    quipu(&[&["sample", "--to", text(&whole)], &size[..]].concat()).ends_with(0);
    let [first, second] = archives(&whole);
    let parts = folder.join("parts");
    write_part(&whole.join(first), 0..=41, true, &parts);
    write_part(&whole.join(second), 8192..=8231, true, &parts);
    fs::copy(whole.join("genesis.json"), parts.join("genesis.json")).unwrap();
    assert!(parts.join(SUMS).is_file());
    parts
});

/// The two archives of a folder.
fn archives(folder: &Path) -> [String; 2] {
    names(folder, ".ere").try_into().unwrap()
}

/// A copy of the archives that a test may damage.
fn copy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&*ARCHIVES).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// Writes the list of a folder anew, as somebody does who wants to be believed.
fn write_sums(folder: &Path) {
    let line = |name: String| {
        let sum = hash_file(&folder.join(&name)).unwrap().to_string();
        format!("{}  {name}\n", sum.trim_start_matches("0x"))
    };
    let lines: String = archives(folder).into_iter().map(line).collect();
    fs::write(folder.join(SUMS), lines).unwrap();
}

/// The arguments of a fetch.
fn arguments(data: &Path, urls: &[&str]) -> Vec<String> {
    let genesis = ARCHIVES.join("genesis.json");
    let fixed = ["fetch", "--unanchored", "--data-dir", text(data)];
    let fixed = [&fixed[..], &["--genesis", text(&genesis), "--from"]].concat();
    fixed.into_iter().map(str::to_owned).chain([urls.join(",")]).collect()
}

fn fetch(data: &Path, mirrors: &[&Mirror], args: &[&str]) -> Ran {
    let urls: Vec<&str> = mirrors.iter().map(|mirror| mirror.url.as_str()).collect();
    let own = arguments(data, &urls);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    quipu(&[&own[..], args].concat())
}

fn start(data: &Path, mirror: &Mirror) -> Child {
    let args = arguments(data, &[&mirror.url]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What an import of the local files gives.
static EXPECTED: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let genesis = ARCHIVES.join("genesis.json");
    let args = ["import", "--unanchored", "--data-dir", text(&data), "--genesis", text(&genesis)];
    quipu(&[&args[..], &[text(&ARCHIVES)]].concat()).ends_with(0);
    files(&data)
});

/// A data folder that is not there yet.
fn data() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    (folder, path)
}

#[test]
fn a_fetch_gives_the_folder_of_an_import_and_a_second_one_downloads_nothing() {
    let mirror = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let ran = fetch(&data, &[&mirror], &[]).ends_with(0);
    assert!(ran.out.contains("2 files imported: 82 blocks"), "{}", ran.out);
    assert!(files(&data) == *EXPECTED);
    let ran = fetch(&data, &[&mirror], &[]).ends_with(0);
    assert!(ran.out.contains("2 files held already"), "{}", ran.out);
    assert_eq!((mirror.count(".ere"), mirror.count(SUMS)), (2, 2));
    assert!(files(&data) == *EXPECTED);
}

#[test]
fn one_archive_is_fetched_by_its_address_and_an_import_names_the_command() {
    let mirror = Mirror::good(&ARCHIVES);
    let [_, second] = archives(&ARCHIVES);
    let url = format!("{}{second}", mirror.url);
    let (_folder, data) = data();
    let args = arguments(&data, &[&url]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains("1 file imported: 40 blocks"), "{}", ran.out);
    let ran = quipu(&["import", &mirror.url]).ends_with(2);
    assert!(ran.err.contains("quipu fetch --from"), "{}", ran.err);
}

/// A mirror that behaves so for archives, beside one that serves well: the folder is the same.
fn check_beside_good(manner: impl Fn(&Wish) -> Manner + Send + Sync + 'static) -> (Ran, Mirror) {
    let bad = Mirror::of(&ARCHIVES, move |wish| {
        if wish.path.starts_with("sample-") { manner(wish) } else { Manner::Well }
    });
    let good = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let ran = fetch(&data, &[&bad, &good], &["--file-bytes-max", "1000000"]).ends_with(0);
    assert!(files(&data) == *EXPECTED, "{}{}", ran.out, ran.err);
    (ran, bad)
}

#[test]
fn whatever_one_mirror_does_another_one_makes_good() {
    let (ran, _) = check_beside_good(|_| Manner::Status(404, ""));
    assert!(ran.err.contains("not there (HTTP 404)"), "{}", ran.err);
    let (ran, _) = check_beside_good(|_| Manner::Status(503, "retry-after: 60\r\n"));
    assert!(ran.err.contains("HTTP 503"), "{}", ran.err);
    let (ran, _) = check_beside_good(|_| Manner::Cut(1000));
    assert!(ran.err.contains("warning: mirror http://127.0.0.1:"), "{}", ran.err);
    let (ran, _) = check_beside_good(|_| Manner::Instead(vec![7; 5000]));
    assert_eq!(ran.err.matches("other mirrors come first").count(), 1, "{}", ran.err);
    let (ran, _) = check_beside_good(|_| Manner::Endless);
    assert!(ran.err.contains("sends more than 1000000 bytes"), "{}", ran.err);
}

#[test]
fn archives_that_the_disk_has_no_space_for_are_not_begun() {
    let mirror = Mirror::of(&ARCHIVES, |wish| {
        if wish.path.contains("-noproofs") { Manner::Endless } else { Manner::Well }
    });
    let (_folder, data) = data();
    let ran = fetch(&data, &[&mirror], &["--file-bytes-max", "9223372036854775807"]).ends_with(1);
    assert!(ran.err.contains(&format!("{}: at least ", data.display())), "{}", ran.err);
    assert!(
        ran.err.contains(" bytes are needed, ") && ran.err.contains(" are free"),
        "{}",
        ran.err
    );
    assert_eq!(mirror.count(".ere"), 0);
}

#[test]
fn servers_of_every_habit_do_alone() {
    let check = |manner: fn(&Wish) -> Manner| {
        let mirror = Mirror::of(&ARCHIVES, manner);
        let (_folder, data) = data();
        let ran = fetch(&data, &[&mirror], &[]).ends_with(0);
        assert!(files(&data) == *EXPECTED, "{}{}", ran.out, ran.err);
    };
    check(|_| Manner::NoLength);
    check(|_| Manner::Chunked);
    check(|wish| if wish.nth == 0 { Manner::Cut(2000) } else { Manner::NoRanges });
    check(|wish| if wish.nth == 0 { Manner::NoLengthCut(2000) } else { Manner::Well });
    check(|wish| if wish.nth == 0 { Manner::Status(500, "") } else { Manner::Well });
    check(|wish| match wish.nth {
        0 => Manner::Cut(2000),
        1 => Manner::OtherPart,
        _ => Manner::Well,
    });
}

#[test]
fn a_slow_mirror_is_left_for_another_in_the_middle_of_a_file() {
    // Ten bytes every ten milliseconds: no file is whole within the ten seconds of a measurement.
    let slow = Mirror::of(&ARCHIVES, |wish| {
        if wish.path.starts_with("sample-") { Manner::Slow(10) } else { Manner::Well }
    });
    let good = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let ran = fetch(&data, &[&slow, &good], &[]).ends_with(0);
    assert!(files(&data) == *EXPECTED, "{}{}", ran.out, ran.err);
    let wishes = good.wishes().into_iter().filter(|wish| wish.path.starts_with("sample-"));
    let begins: Vec<Option<usize>> = wishes.map(|wish| wish.from).collect();
    assert!(begins[0].is_some(), "it went on where the slow one was left: {begins:?}");
}

#[test]
fn a_false_archive_is_refused_though_its_list_says_it_is_right() {
    let lying = copy();
    let [first, _] = archives(lying.path());
    let path = lying.path().join(&first);
    let mut bytes = fs::read(&path).unwrap();
    // Inside the blocks, not in the index at the end.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    write_sums(lying.path());
    let lying = Mirror::good(lying.path());
    let (_folder, data) = data();
    let ran = fetch(&data, &[&lying], &[]).ends_with(1);
    assert!(
        ran.err.contains(&format!("error: {first}: no mirror gives one that can be taken")),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("other mirrors come first"), "{}", ran.err);
    assert!(ran.err.contains("hint: give another mirror"), "{}", ran.err);
    let good = Mirror::good(&ARCHIVES);
    fetch(&data, &[&lying, &good], &[]).ends_with(0);
    assert!(files(&data) == *EXPECTED);
}

#[test]
fn what_is_no_list_is_refused_and_makes_nothing() {
    let said = |content: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SUMS), content).unwrap();
        let mirror = Mirror::good(folder.path());
        let (_folder, data) = data();
        let ran = fetch(&data, &[&mirror], &[]).ends_with(1);
        assert!(!data.exists(), "{}", ran.err);
        ran.err
    };
    let sum = "1".repeat(64);
    for (content, expected) in [
        ("<html>".to_owned(), "checksums_sha256.txt is a web page, not a list"),
        (format!("0x{sum}\n"), "checksums_sha256.txt has checksums without file names"),
        ("what".to_owned(), "checksums_sha256.txt: line 1"),
        (format!("{sum}  notes.txt\n"), "checksums_sha256.txt names no archive"),
    ] {
        let err = said(content.as_bytes());
        assert!(err.contains(expected), "{expected}: {err}");
        assert!(err.contains("hint: give the address of a folder"), "{err}");
    }
}

#[test]
fn a_list_that_names_what_is_not_there_or_something_else_is_told() {
    let folder = copy();
    let list = fs::read_to_string(folder.path().join(SUMS)).unwrap();
    // Checksums that no file has.
    let digits = |line: &str| format!("{}{}\n", "0".repeat(64), &line[64..]);
    fs::write(folder.path().join(SUMS), list.lines().map(digits).collect::<String>()).unwrap();
    let wrong = Mirror::good(folder.path());
    let (_folder, data) = data();
    let ran = fetch(&data, &[&wrong], &[]).ends_with(1);
    assert!(ran.err.contains("its list says 0x0000"), "{}", ran.err);
    // A name of another network, and one that no file has.
    let other = list.replace("sample-", "mainnet-");
    fs::write(folder.path().join(SUMS), other).unwrap();
    let own = arguments(&data, &[&wrong.url]);
    let own: Vec<&str> = own.iter().map(String::as_str).filter(|it| *it != "--genesis").collect();
    let genesis = ARCHIVES.join("genesis.json");
    let own: Vec<&str> = own.into_iter().filter(|it| *it != text(&genesis)).collect();
    let ran = quipu(&[&own[..], &["--network", "sepolia"]].concat()).ends_with(2);
    let said = "no mirror lists an archive of sepolia; they list archives of mainnet";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn a_genesis_that_is_wrong_or_missing_is_not_the_mirrors_fault() {
    let mirror = Mirror::good(&ARCHIVES);
    let lacking = Mirror::of(&ARCHIVES, |wish| match wish.path.as_str() {
        SUMS => Manner::Well,
        _ => Manner::Status(404, ""),
    });
    let (folder, data) = data();
    let genesis = fs::read_to_string(ARCHIVES.join("genesis.json")).unwrap();
    let wrong = folder.path().join("wrong.json");
    let other = genesis.replacen("\"gasLimit\": \"0x", "\"gasLimit\": \"0x1", 1);
    assert_ne!(genesis, other);
    fs::write(&wrong, other).unwrap();
    let both = format!("{},{}", lacking.url, mirror.url);
    let own = ["fetch", "--data-dir", text(&data), "--from", &both, "--blocks", "0..9"];
    let ran = quipu(&[&own[..], &["--genesis", text(&wrong)]].concat()).ends_with(1);
    let [first, _] = archives(&ARCHIVES);
    // What became of each mirror, and that the genesis may be the one that is wrong.
    let (_, said) = ran.err.split_once(&format!("error: {first}: no mirror gives")).unwrap();
    for expected in [
        format!("\n  {}: not there (HTTP 404)\n", lacking.url),
        format!("\n  {}: ", mirror.url),
        "genesis says".to_owned(),
        "hint: the file is of another chain than --network, --genesis, --anchor or the data folder"
            .to_owned(),
        "hint: give another mirror with --from".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected}:\n{}", ran.err);
    }
    let ran = quipu(&own).ends_with(1);
    assert!(ran.err.contains("name yours: --genesis FILE"), "{}", ran.err);
}

#[test]
fn wrong_command_lines_say_what_is_wrong_and_show_no_password() {
    let ran = quipu(&["fetch", "--from", "ftp://user:secret@a.example/"]).ends_with(2);
    let said = "--from: ftp://a.example: scheme ftp is not supported; use https://";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    let ran = quipu(&["fetch", "--from", "a.example/era1"]).ends_with(2);
    assert!(ran.err.contains("mirror 1: not the address of a mirror"), "{}", ran.err);
    let ran = quipu(&["fetch"]).ends_with(2);
    assert!(ran.err.contains("--from <URL>"), "{}", ran.err);
}

#[test]
fn a_file_of_other_blocks_than_its_name_says_is_false_and_not_outside_of_those_wanted() {
    let lying = copy();
    let [first, second] = archives(lying.path());
    fs::copy(lying.path().join(&first), lying.path().join(&second)).unwrap();
    write_sums(lying.path());
    let lying = Mirror::good(lying.path());
    let good = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let ran = fetch(&data, &[&lying, &good], &["--blocks", "8200..8209"]).ends_with(0);
    assert!(ran.err.contains("other mirrors come first"), "{}", ran.err);
    assert!(ran.out.contains("1 file imported: 10 blocks"), "{}", ran.out);
    assert_eq!(good.count(&second), 1);
}

#[test]
fn parts_that_are_held_are_not_downloaded_again() {
    let (folder, data) = data();
    let (held, parts) = (folder.path().join("held"), folder.path().join("parts"));
    let genesis = ARCHIVES.join("genesis.json");
    let import = ["import", "--data-dir", text(&held), "--genesis", text(&genesis)];
    quipu(&[&import[..], &[text(&ARCHIVES.join(&archives(&ARCHIVES)[0]))]].concat()).ends_with(0);
    for blocks in ["0..4", "5..19", "20..29"] {
        let export = ["export", "--data-dir", text(&held), "--format", "ere", "--blocks", blocks];
        quipu(&[&export[..], &["--to", text(&parts)]].concat()).ends_with(0);
    }
    let [first, second, third] = names(&parts, ".ere").try_into().unwrap();
    assert!(first.contains("-part-"), "{first}");
    let sum = |name: &String| hash_file(&parts.join(name)).unwrap().to_string();
    let line = |name: &String| format!("{}  {name}\n", sum(name).trim_start_matches("0x"));
    fs::write(parts.join(SUMS), [&first, &second, &third].map(line).concat()).unwrap();
    let mirror = Mirror::good(&parts);
    let ran = fetch(&data, &[&mirror], &[]).ends_with(0);
    assert!(ran.out.contains("3 files imported: 30 blocks"), "{}", ran.out);
    let ran = fetch(&data, &[&mirror], &[]).ends_with(0);
    assert!(ran.out.contains("3 files held already"), "{}", ran.out);
    assert_eq!(mirror.count(".ere"), 3);
    // Of parts, those are asked for that have a wanted block.
    let (_folder, data) = self::data();
    fetch(&data, &[&mirror], &["--blocks", "0..9"]).ends_with(0);
    assert_eq!(mirror.count(".ere"), 5);
}

#[test]
fn two_fetches_do_not_share_a_folder_of_kept_archives() {
    let [first, _] = archives(&ARCHIVES);
    let path = first.clone();
    let holding =
        Mirror::of(
            &ARCHIVES,
            move |wish| {
                if wish.path == path { Manner::Held(3000) } else { Manner::Well }
            },
        );
    let (folder, data) = data();
    let keep = folder.path().join("keep");
    let args = [arguments(&data, &[&holding.url]), vec!["--keep".into(), text(&keep).into()]];
    let args = args.concat();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(|| (holding.count(&first) > 0).then_some(()), || format!("{:?}", holding.wishes()));
    let good = Mirror::good(&ARCHIVES);
    let (_folder, other) = self::data();
    let ran = fetch(&other, &[&good], &["--keep", text(&keep)]).ends_with(1);
    assert!(ran.err.contains("keep: another process downloads to it"), "{}", ran.err);
    assert!(ran.err.contains("hint: wait for the other one, or give another"), "{}", ran.err);
    assert_eq!(good.count(".ere"), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    holding.let_go_on();
}

#[test]
fn only_wanted_blocks_are_downloaded_and_what_no_mirror_has_is_told() {
    let mirror = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let ran = fetch(&data, &[&mirror], &["--blocks", "8200..8299"]).ends_with(0);
    assert_eq!(mirror.count(".ere"), 1);
    assert!(ran.out.contains("left: blocks 8232..8299, which are not held"), "{}", ran.out);
    let ran = fetch(&data, &[&mirror], &["--blocks", "20000..20001"]).ends_with(1);
    assert!(ran.err.contains("no mirror lists an archive of blocks 20000..20001"), "{}", ran.err);
}

#[test]
fn kept_archives_are_those_of_the_mirror() {
    let mirror = Mirror::good(&ARCHIVES);
    let (folder, data) = data();
    let keep = folder.path().join("keep");
    // What a run left that kept nothing goes.
    fs::create_dir_all(data.join("fetch")).unwrap();
    fs::write(data.join("fetch/sample-00000-00000000.ere.unlisted.part"), "old").unwrap();
    fetch(&data, &[&mirror], &["--keep", text(&keep)]).ends_with(0);
    assert!(files(&data) == *EXPECTED);
    let names = archives(&keep);
    assert_eq!(names, archives(&ARCHIVES));
    for name in &names {
        assert!(fs::read(keep.join(name)).unwrap() == fs::read(ARCHIVES.join(name)).unwrap());
    }
    // A user's file is not replaced.
    fs::remove_dir_all(&data).unwrap();
    fs::write(keep.join(&names[0]), "mine").unwrap();
    let ran = fetch(&data, &[&mirror], &["--keep", text(&keep)]).ends_with(1);
    assert!(ran.err.contains("is there already, and is not what the mirrors have"), "{}", ran.err);
    assert_eq!(fs::read(keep.join(&names[0])).unwrap(), b"mine");
}

#[test]
fn archives_are_not_kept_where_fetch_works_and_none_is_removed() {
    let mirror = Mirror::good(&ARCHIVES);
    let (folder, data) = data();
    let work = data.join("fetch");
    let mine = work.join("mine");
    fs::create_dir_all(&mine).unwrap();
    let [first, _] = archives(&ARCHIVES);
    let kept = [work.join("notes"), mine.join(&first), mine.join("old.part")];
    for path in &kept {
        fs::write(path, "mine").unwrap();
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&mine, &link).unwrap();
    for keep in [&work, &mine, &link, &work.join("new")] {
        let ran = fetch(&data, &[&mirror], &["--keep", text(keep)]).ends_with(2);
        let said = "--keep: this is where fetch works; give another folder";
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    // What no download has made stays, whatever is kept elsewhere, or nowhere.
    assert!(!work.join("new").exists());
    let other = folder.path().join("other");
    let inside = other.join("fetch");
    let ran = fetch(&other, &[&mirror], &["--keep", text(&inside)]).ends_with(2);
    assert!(ran.err.contains("--keep: this is where fetch works"), "{}", ran.err);
    let elsewhere = folder.path().join("keep");
    fetch(&data, &[&mirror], &["--keep", text(&elsewhere)]).ends_with(0);
    fetch(&data, &[&mirror], &[]).ends_with(0);
    for path in &kept {
        assert_eq!(fs::read(path).unwrap(), b"mine");
    }
}

/// Waits until so many bytes of a file are on disk.
fn wait_for_part(data: &Path, bytes: u64) {
    let work = data.join("fetch");
    let parts = || {
        let entries = fs::read_dir(&work).into_iter().flatten().map_while(Result::ok);
        let parts = entries.filter(|it| it.file_name().to_string_lossy().ends_with(".part"));
        parts.filter_map(|it| it.metadata().ok()).map(|it| it.len()).collect::<Vec<_>>()
    };
    wait_for(|| parts().contains(&bytes).then_some(()), || format!("{:?}", parts()));
}

#[test]
fn ctrl_c_ends_it_cleanly_and_a_kill_loses_nothing() {
    let [first, _] = archives(&ARCHIVES);
    for (name, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let path = first.clone();
        let holding = Mirror::of(&ARCHIVES, move |wish| {
            if wish.path == path { Manner::Held(3000) } else { Manner::Well }
        });
        let (_folder, data) = data();
        let child = start(&data, &holding);
        wait_for_part(&data, 3000);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        holding.let_go_on();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), code, "{name}: {err}");
        if code.is_some() {
            let said = "stopped: the same command again goes on where this one ended";
            assert!(err.contains(said), "{err}");
        }
        let good = Mirror::good(&ARCHIVES);
        fetch(&data, &[&good], &[]).ends_with(0);
        let wishes = good.wishes().into_iter().filter(|wish| wish.path == first);
        let begins: Vec<Option<usize>> = wishes.map(|wish| wish.from).collect();
        assert_eq!(begins, [Some(3000)], "{name}");
        assert!(files(&data) == *EXPECTED, "{name}");
    }
}

#[test]
fn a_second_writer_is_told_at_once() {
    let [first, _] = archives(&ARCHIVES);
    let holding =
        Mirror::of(
            &ARCHIVES,
            move |wish| {
                if wish.path == first { Manner::Held(3000) } else { Manner::Well }
            },
        );
    let (_folder, data) = data();
    let mut child = start(&data, &holding);
    wait_for_part(&data, 3000);
    let ran = fetch(&data, &[&holding], &[]).ends_with(1);
    assert!(ran.err.contains("one process writes at a time"), "{}", ran.err);
    child.kill().unwrap();
    child.wait().unwrap();
    holding.let_go_on();
}

#[test]
fn what_it_says_goes_to_a_reader_who_may_leave() {
    let mirror = Mirror::good(&ARCHIVES);
    let (_folder, data) = data();
    let args = arguments(&data, &[&mirror.url]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut unread = command(&args);
    let mut child = unread.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let ran = ran(&mut command(&["stat", "--json", "--data-dir", text(&data)])).ends_with(0);
    assert_eq!(ran.json()["blocks"], 82);
}
