//! That every flag has a variable and a key, and that the documentation lists them all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::{Arg, CommandFactory as _};

use super::settings::{Setting, SettingKind, TABLES, settings};
use super::{command, parse_typed};
use crate::args::Args;

/// Between these lines of the page stands what is made here.
const MARKS: [&str; 2] = ["<!-- settings: made by a test -->", "<!-- end of settings -->"];

#[test]
fn every_flag_has_a_variable_and_every_flag_but_two_a_key() {
    let root = command();
    let known = settings(&root);
    let is_flag = |flag: &str| !["help", "version"].contains(&flag);
    let of_all = root.get_arguments();
    let of_each = root.get_subcommands().flat_map(clap::Command::get_arguments);
    let flags = of_all.chain(of_each).filter(|arg| arg.get_long().is_some_and(is_flag));
    let variables: Vec<_> = flags.map(|arg| arg.get_env().unwrap_or_default().to_owned()).collect();
    let expected: Vec<&str> = known.iter().map(|setting| setting.variable.as_str()).collect();
    assert_eq!(variables, expected);
    let without_key: Vec<&str> =
        known.iter().filter(|it| it.key.is_none()).map(|it| it.flag.as_str()).collect();
    assert_eq!(without_key, ["config", "name"]);
    // One name, one thing: a key and a variable stand for one flag.
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for setting in &known {
        for name in setting.path().into_iter().chain([setting.variable.clone()]) {
            let other = *names.entry(name.clone()).or_insert(&setting.flag);
            assert_eq!(other, setting.flag, "{name}");
        }
    }
    // A table that names a flag that nobody has was forgotten.
    for flag in TABLES.iter().flat_map(|(_, flags)| flags.iter()) {
        assert!(known.iter().any(|setting| setting.flag == *flag), "{flag}");
    }
}

#[test]
fn values_are_found_as_they_were_typed_whatever_their_encoding() {
    let odd = OsStr::from_bytes(b"d\xff");
    let joined = OsStr::from_bytes(b"--data-dir=d\xff");
    for line in [&["--data-dir".as_ref(), odd][..], &[joined]] {
        let line = [&["quipu".as_ref(), "serve".as_ref()], line].concat();
        let line: Vec<OsString> = line.into_iter().map(OsStr::to_owned).collect();
        let typed = parse_typed(&line).unwrap();
        let found = typed.subcommand_matches("serve").unwrap().get_one::<PathBuf>("data_dir");
        assert_eq!(found.map(|path| path.as_os_str()), Some(odd));
    }
}

#[test]
fn the_command_line_holds_together() {
    command().debug_assert();
}

/// A flag as its command declares it.
fn declared(setting: &Setting) -> Arg {
    let root = Args::command();
    let owner = match &setting.command {
        Some(command) => root.find_subcommand(command).unwrap(),
        None => &root,
    };
    owner.get_arguments().find(|arg| arg.get_id() == setting.id.as_str()).unwrap().clone()
}

/// What a flag's help says it means, and what it says is its default.
fn help(arg: &Arg) -> (String, Option<String>) {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let help = help.replace('|', "\\|").replace('*', "\\*");
    match help.split_once(" [default: ") {
        Some((meaning, default)) => {
            (meaning.to_owned(), Some(default.trim_end_matches(']').to_owned()))
        }
        None => (help, None),
    }
}

/// What counts where a flag of one command is given nowhere. Flags without a value of their own, whose
/// default depends on something else, say it in their help.
fn default(setting: &Setting) -> Option<String> {
    let arg = declared(setting);
    if setting.kind == SettingKind::Switch {
        return Some("`false`".to_owned());
    }
    if arg.is_required_set() {
        return Some("required".to_owned());
    }
    let values: Vec<_> = arg.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
    if !values.is_empty() {
        return Some(format!("`{}`", values.join(", ")));
    }
    let (_, said) = help(&arg);
    said.map(|text| if text.parse::<u64>().is_ok() { format!("`{text}`") } else { text })
}

/// The same for all commands that have the setting: one default, or those that differ, each with its
/// command.
fn defaults(setting: &Setting, known: &[Setting]) -> String {
    let mut found: Vec<(String, &str)> = Vec::new();
    for same in known.iter().filter(|it| it.path() == setting.path()) {
        if let Some(default) = default(same)
            && found.iter().all(|(other, _)| *other != default)
        {
            found.push((default, same.command.as_deref().unwrap_or_default()));
        }
    }
    match found.as_slice() {
        [] => "none".to_owned(),
        [(default, _)] => default.clone(),
        several => {
            let each = several.iter().map(|(default, command)| format!("{command}: {default}"));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// The tables of the page.
fn tables() -> String {
    let known = settings(&command());
    let mut out = String::new();
    let mut listed = BTreeSet::new();
    let commands: Vec<String> =
        command().get_subcommands().map(|it| it.get_name().replace('-', "_")).collect();
    let shared = TABLES.iter().map(|(table, _)| (*table).to_owned());
    for table in shared.chain(commands) {
        let is_here = |setting: &&Setting| setting.table.as_deref().unwrap_or_default() == table;
        let here: Vec<&Setting> = known
            .iter()
            .filter(is_here)
            .filter(|it| it.path().is_some_and(|path| listed.insert(path)))
            .collect();
        if here.is_empty() {
            continue;
        }
        let title =
            if table.is_empty() { "Top of the file".to_owned() } else { format!("`[{table}]`") };
        writeln!(
            out,
            "\n### {title}\n\n| key | flag | variable | default | meaning |\n|---|---|---|---|---|"
        )
        .unwrap();
        for setting in here {
            let Setting { key, flag, variable, .. } = setting;
            let key = key.as_deref().unwrap_or_default();
            let (defaults, (meaning, _)) = (defaults(setting, &known), help(&declared(setting)));
            writeln!(out, "| `{key}` | `--{flag}` | `{variable}` | {defaults} | {meaning} |")
                .unwrap();
        }
    }
    out + "\n"
}

/// `QUIPU_BLESS=1` writes the page anew.
#[test]
fn the_page_lists_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (found, after) = rest.split_once(MARKS[1]).unwrap();
    let expected = format!("\n{}", tables());
    if std::env::var_os("QUIPU_BLESS").is_some_and(|value| value == "1") {
        let page = [before, MARKS[0], expected.as_str(), MARKS[1], after].concat();
        fs::write(&path, page).unwrap();
        return;
    }
    assert!(found == expected, "docs/configuration.md is not what the flags say: {expected}");
}
