//! Transcripts of the command line: what is typed, what is said, and the exit code, to the letter.
//!
//! The format is described in `crates/cli/tests/command-line/README.md`.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::run::without_settings;
use crate::harness::served::signal;

/// Rewrites what is said in the files with what was found.
const BLESS: &str = "QUIPU_BLESS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command-line")
}

#[test]
fn every_transcript_is_what_is_said() {
    let is_blessing = std::env::var_os(BLESS).is_some_and(|value| value == "1");
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_transcript = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "txt");
    let mut paths: Vec<PathBuf> = entries.filter(is_transcript).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut faults = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let found = replay(&text);
        if is_blessing {
            fs::write(&path, found).unwrap();
        } else if found != text {
            let name = path.file_name().unwrap().to_str().unwrap();
            faults.push(format!("{name}:\n{}", first_difference(&text, &found)));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn first_difference(expected: &str, found: &str) -> String {
    let mut lines = expected.lines().zip(found.lines()).zip(1..);
    let line = match lines.find(|((expected, found), _)| expected != found) {
        Some(((expected, found), line)) => {
            format!("line {line}:\n  expected {expected}\n  found    {found}")
        }
        None => "one of the two goes on after the other has ended".to_owned(),
    };
    format!("{line}\nall that was found:\n{found}")
}

/// Runs the commands of a transcript one after the other in a folder of their own, and writes it anew.
fn replay(text: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let is_said = ["< ", "! ", "= ", "<", "!"]
            .iter()
            .any(|mark| line.starts_with(mark) && (mark.len() == 2 || line.len() == 1));
        if is_said {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if let Some(command) = line.strip_prefix("$ ") {
            out.push_str(&run(command, place.path()));
        } else if let Some(command) = line.strip_prefix("& ") {
            out.push_str(&run_until_listening(command, place.path()));
        }
    }
    out
}

/// A shell that knows `quipu` by its name, and none of the settings around it.
fn shell(command: &str, place: &Path) -> Command {
    let quipu = Path::new(env!("CARGO_BIN_EXE_quipu"));
    let mut paths = vec![quipu.parent().unwrap().to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(place)
        .env("PATH", std::env::join_paths(paths).unwrap());
    shell.env("HOME", place.join("home")).env("NO_COLOR", "1");
    without_settings(&mut shell);
    shell.env_remove("XDG_DATA_HOME").env_remove("COLUMNS");
    shell
}

fn run(command: &str, place: &Path) -> String {
    let output = shell(command, place).stdin(Stdio::null()).output().unwrap();
    let mut said = String::new();
    for (mark, bytes) in [('<', &output.stdout), ('!', &output.stderr)] {
        for line in normal(&String::from_utf8_lossy(bytes), place).lines() {
            writeln!(said, "{}", format!("{mark} {line}").trim_end()).unwrap();
        }
    }
    writeln!(
        said,
        "= {}",
        output.status.code().map_or("killed".to_owned(), |code| code.to_string())
    )
    .unwrap();
    said
}

/// Runs a server until it says where it listens or ends, and stops it.
fn run_until_listening(command: &str, place: &Path) -> String {
    let mut shell = shell(&format!("exec {command}"), place);
    shell.env("RUST_LOG", "off").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (mut said, mut line) = (String::new(), String::new());
    while stderr.read_line(&mut line).unwrap() > 0 {
        said.push_str(&line);
        if line.starts_with("listening on ") {
            signal(&child, "TERM");
            break;
        }
        line.clear();
    }
    stderr.read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    let said = normal(&said, place);
    let lines = said.lines().map(|line| format!("{}\n", format!("! {line}").trim_end()));
    lines.collect::<String>() + &format!("= {code}\n")
}

/// Without what is another every time or on other systems: the folder, times and rates, free ports, numbers
/// of errors.
fn normal(text: &str, place: &Path) -> String {
    let text = text.replace(place.to_str().unwrap(), "DIR");
    let text = replace_after(&text, " in ", |rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let after = rest[end..].strip_prefix(" s").filter(|_| end > 0)?;
        let rate = after.strip_prefix(" (").and_then(|it| it.split_once("/s)"));
        let is_rate = |(rate, _): &(&str, &str)| !rate.contains('\n');
        let after = rate.filter(is_rate).map_or(after, |(_, after)| after);
        Some(("TIME", after))
    });
    let digits_end = |rest: &str| rest.find(|letter: char| !letter.is_ascii_digit());
    let text = replace_after(&text, "(os error ", |rest| {
        Some(("NUMBER", &rest[digits_end(rest).filter(|end| *end > 0)?..]))
    });
    replace_after(&text, "listening on http://127.0.0.1:", |rest| {
        Some(("PORT", &rest[digits_end(rest)?..]))
    })
}

/// Replaces what follows each mark as `change` says: by what, and what is left after it.
fn replace_after<'a>(
    text: &'a str,
    mark: &str,
    change: impl Fn(&'a str) -> Option<(&'static str, &'a str)>,
) -> String {
    let (mut out, mut left) = (String::new(), text);
    while let Some(at) = left.find(mark) {
        let (before, rest) = left.split_at(at + mark.len());
        out.push_str(before);
        left = match change(rest) {
            Some((replaced, after)) => {
                out.push_str(replaced);
                after
            }
            None => rest,
        };
    }
    out + left
}

#[test]
fn times_and_ports_are_taken_out_and_nothing_else_is() {
    let place = Path::new("/tmp/x");
    for (text, expected) in [
        ("done in 0.1 s (5 blocks/s)", "done in TIME"),
        ("done in 12.5 s; 1 REFUSED", "done in TIME; 1 REFUSED"),
        ("held in /tmp/x/data in 3 parts", "held in DIR/data in 3 parts"),
        ("listening on http://127.0.0.1:4711\n", "listening on http://127.0.0.1:PORT\n"),
        ("refused (os error 111)", "refused (os error NUMBER)"),
    ] {
        assert_eq!(normal(text, place), expected);
    }
}
