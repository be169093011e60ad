//! Golden files: what is sent to the server and what comes back, to the byte.
//!
//! The format is described in `crates/cli/tests/golden/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::served::Served;
use crate::harness::stores;

pub(crate) mod case;

use case::Case;

/// Rewrites the answers in the files with those that were found.
const BLESS: &str = "QUIPU_BLESS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every golden file, by its path in the folder.
pub(crate) fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for area in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        for entry in area.is_dir().then(|| fs::read_dir(&area).unwrap()).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned();
            let is_golden = path.extension().is_some_and(|extension| extension == "io");
            assert!(is_golden, "{name}: only golden files belong here");
            names.insert(name);
        }
    }
    names
}

#[test]
fn every_golden_file_is_answered_to_the_byte() {
    let is_blessing = std::env::var_os(BLESS).is_some_and(|value| value == "1");
    let mut servers: BTreeMap<(String, Vec<String>), Served> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut count = 0;
    for name in names() {
        let path = folder().join(&name);
        let text = fs::read_to_string(&path).unwrap();
        let case = Case::parse(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let key = (case.store.clone(), case.args.clone());
        let served = servers.entry(key).or_insert_with(|| {
            let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
            stores::serve(&case.store, &args)
        });
        let mut blessed = String::new();
        for exchange in &case.exchanges {
            let answer = served.send(&exchange.request());
            count += 1;
            blessed.push_str(&exchange.blessed(&answer));
            let fault = if is_blessing {
                exchange.find_fault_of_kept(&answer)
            } else {
                exchange.find_fault(&answer)
            };
            if let Some(fault) = fault {
                faults.push(format!("{name}:{}: {fault}", exchange.line));
            }
        }
        if is_blessing {
            fs::write(&path, blessed + &case.end).unwrap();
        }
    }
    assert!(faults.is_empty(), "\n{}\n{} of {count} differ", faults.join("\n"), faults.len());
}

/// The decisions of the wire, each with the files and tests that show it.
#[test]
fn every_decision_of_the_wire_is_shown_and_every_golden_file_shows_one() {
    let index = fs::read_to_string(folder().join("index.txt")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let page = fs::read_to_string(page).unwrap();
    let headings: BTreeSet<&str> = page.lines().filter_map(heading).collect();
    let names = names();
    let (mut rows, mut shown, mut part) = (BTreeMap::new(), BTreeSet::new(), "");
    for line in index.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(named) = heading(line) {
            assert!(headings.contains(named), "docs/api.md has no heading {named}");
            assert!(rows.insert(named, BTreeSet::new()).is_none(), "{named}: twice");
            part = named;
            continue;
        }
        let (row, places) = line.split_once(" => ").unwrap_or_else(|| panic!("{line}"));
        let of_part = rows.get_mut(part).unwrap_or_else(|| panic!("{line}: below no heading"));
        assert!(of_part.insert(row), "{part}: {row}: twice");
        for place in places.split(", ") {
            let is_there = if place.contains("::") {
                is_test(place)
            } else {
                shown.insert(place.to_owned());
                names.contains(place)
            };
            assert!(is_there, "{row}: there is no {place}");
        }
    }
    let silent: Vec<&String> = names.difference(&shown).collect();
    assert!(silent.is_empty(), "not in index.txt: {silent:?}");
    let empty: Vec<_> = rows.iter().filter(|(_, rows)| rows.is_empty()).collect();
    assert!(empty.is_empty(), "headings that nothing shows: {empty:?}");
}

/// The text of a heading.
fn heading(line: &str) -> Option<&str> {
    line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
}

/// Whether `path/of/file.rs::name` is a test.
pub(crate) fn is_test(place: &str) -> bool {
    let Some((path, name)) = place.split_once("::") else { return false };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(text) = fs::read_to_string(root.join(path)) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_named = |line: &&str| line.starts_with(&format!("fn {name}("));
    let Some(at) = lines.iter().position(is_named) else {
        let is_async = |line: &&str| line.starts_with(&format!("async fn {name}("));
        return lines.iter().any(is_async);
    };
    lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#["))
        .any(|line| *line == "#[test]")
}
