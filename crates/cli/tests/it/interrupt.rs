//! Ctrl-C during long work: what stays is said, and nothing unfinished is left.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::harness::run::{command, text};
use crate::harness::served::signal;
use crate::harness::stores::data_folder;
use crate::harness::wait::wait_for;

/// Waits until something is there, as long as the process runs.
fn await_sight(child: &mut Child, what: &str, mut is_there: impl FnMut() -> bool) {
    let look = || {
        let is_seen = is_there();
        assert!(is_seen || child.try_wait().unwrap().is_none(), "ended before {what}");
        is_seen.then_some(())
    };
    wait_for(look, || what.to_owned());
}

fn interrupted(mut child: Child, name: &str) -> (Option<i32>, String) {
    signal(&child, name);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

fn start(args: &[&str]) -> Child {
    command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_import_that_is_interrupted_says_what_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (archives, data) = (data_folder("sample").join("../archives"), folder.path().join("data"));
    let genesis = archives.join("genesis.json");
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        // Some 22,000 signatures on one thread: the signal comes long before the last.
        let args = ["import", "--threads", "1", "--data-dir", text(&data), "--genesis"];
        let mut child = start(&[&args[..], &[text(&genesis), text(&archives)]].concat());
        let lock = data.join("lock");
        let holder = format!("pid {}, ", child.id());
        await_sight(&mut child, "the lock", || {
            fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&holder))
        });
        let (found, said) = interrupted(child, name);
        assert_eq!(found, Some(code), "{said}");
        let expected =
            "stopped: files that were taken stay; the same command again takes up after them";
        assert!(said.contains(expected), "{said}");
    }
}

/// How often a proof may end before it is interrupted.
#[cfg(target_os = "linux")]
const ATTEMPTS: usize = 50;

#[cfg(target_os = "linux")]
#[test]
fn a_proof_that_is_interrupted_says_what_was_changed() {
    let (archives, data) = (data_folder("sample").join("../archives"), data_folder("sample"));
    let verify = ["verify", "--verbose", "--threads", "2", text(&archives)];
    let check = ["check", "--verbose", "--threads", "2", "--data-dir", text(&data)];
    for args in [&verify[..], &check[..]] {
        let (mut code, mut said) = (Some(0), String::new());
        for _ in 0..ATTEMPTS {
            let mut child = start(args);
            let id = child.id();
            // The thread for signals is the first that is made, and the next one after it listens.
            let has_begun =
                || fs::read_dir(format!("/proc/{id}/task")).is_ok_and(|tasks| tasks.count() > 2);
            let look = || (has_begun() || child.try_wait().unwrap().is_some()).then_some(());
            wait_for(look, || "a third thread, or the end".to_owned());
            // It may have ended before the signal comes.
            if child.try_wait().unwrap().is_some() {
                continue;
            }
            (code, said) = interrupted(child, "INT");
            if code != Some(0) {
                break;
            }
        }
        assert_eq!(code, Some(130), "{args:?}: {said}");
        assert!(said.contains("stopped: not every") && said.contains(" was changed"), "{said}");
    }
}

fn unfinished(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".unfinished-")).count()
}

#[test]
fn a_sample_that_is_interrupted_leaves_nothing_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("archives");
    let mut child = start(&["sample", "--to", text(&to), "--block-count", "1000000"]);
    await_sight(&mut child, "an unfinished file", || unfinished(&to) > 0);
    let (code, said) = interrupted(child, "INT");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("stopped: archives that were finished stay"), "{said}");
    assert_eq!(unfinished(&to), 0);
}
