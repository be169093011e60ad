//! Variables of the environment as settings: whether their values are ones that their flags take, and
//! whether anybody knows their names.

use std::env;

use anyhow::anyhow;
use clap::{ArgMatches, Command};
use tracing::warn;

use crate::Failure;

use super::settings::{Setting, SettingKind, settings};
use super::{ALIKE_MIN, check_value, command};

/// How every variable begins.
const PREFIX: &str = "QUIPU_";

/// Variables that kept others out once, and what takes their place. A server that passed over one would
/// be open to everybody.
const RETIRED: [(&str, &str); 3] = [
    ("QUIPU_HOST", "QUIPU_ALLOWED_HOST takes its place"),
    ("QUIPU_JWT_SECRET_FILE", NO_TOKENS),
    ("QUIPU_JWT_PUBLIC_KEY_FILE", NO_TOKENS),
];
const NO_TOKENS: &str =
    "JSON Web Tokens are not taken any more; API keys of quipu.toml are (`quipu key`)";

/// The value of a switch that a variable sets.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("write true or false, or 1 or 0".to_owned()),
    }
}

/// The values of a setting's variable, one that is set to nothing being none; switches as a file has
/// them.
pub(crate) fn from_variable(setting: &Setting) -> Option<Vec<String>> {
    let value = env::var(&setting.variable).ok().filter(|value| !value.is_empty())?;
    Some(match setting.kind {
        SettingKind::Switch => vec![parse_switch(&value).map_or(value, |it| it.to_string())],
        SettingKind::List => value.split(',').map(str::to_owned).collect(),
        SettingKind::One => vec![value],
    })
}

/// Refuses a value that its flag would refuse, in whichever command's variable it is.
pub(crate) fn check_variables(root: &Command, known: &[Setting]) -> Result<(), Failure> {
    known.iter().try_for_each(|setting| check_variable(root, setting))
}

/// The same for the variables that count for the command that was typed.
pub(super) fn check_typed_variables(
    root: &Command,
    known: &[Setting],
    typed: &ArgMatches,
) -> Result<(), Failure> {
    let command = typed.subcommand_name();
    let is_meant = |it: &&Setting| it.command.is_none() || it.command.as_deref() == command;
    let mut counting = known.iter().filter(is_meant).filter(|it| !it.is_typed(typed));
    counting.try_for_each(|setting| check_variable(root, setting))
}

fn check_variable(root: &Command, setting: &Setting) -> Result<(), Failure> {
    let name = &setting.variable;
    let refuse = |said: String| Failure::Usage(anyhow!("{said}"));
    match env::var(name) {
        Ok(value) if !value.is_empty() => check_value(root, setting, name, &value).map_err(refuse),
        // A path need not be.
        Err(env::VarError::NotUnicode(_)) if !setting.is_path => {
            Err(refuse(format!("{name}: its value is not UTF-8")))
        }
        _ => Ok(()),
    }
}

/// Refuses a variable that does nothing any more, and that somebody relies on.
pub(super) fn refuse_retired_variables() -> Result<(), Failure> {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    match RETIRED.iter().find(|(name, _)| is_set(name)) {
        Some((name, said)) => Err(Failure::Usage(anyhow!("{name} does nothing: {said}"))),
        None => Ok(()),
    }
}

/// Tells the log of every variable that a server passes over.
pub(crate) fn warn_of_unknown_variables() {
    for said in unknown_variables(&settings(&command())) {
        warn!("{said}");
    }
}

/// What is said of each variable that bears our prefix and that nobody knows. It may be somebody
/// else's: orchestrators set such names for a service that is called as we are.
pub(crate) fn unknown_variables(known: &[Setting]) -> Vec<String> {
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    let names = set.filter_map(|(name, _)| name.into_string().ok());
    let is_unknown = |name: &String| {
        name.starts_with(PREFIX) && known.iter().all(|setting| setting.variable != *name)
    };
    let mut names: Vec<String> = names.filter(is_unknown).collect();
    names.sort();
    names.into_iter().map(|name| unknown_text(known, &name)).collect()
}

fn unknown_text(known: &[Setting], name: &str) -> String {
    let likeness = |variable: &str| {
        // The prefix is alike in all of them.
        let without = |text: &str| text.strip_prefix(PREFIX).unwrap_or(text).to_owned();
        strsim::jaro_winkler(&without(variable), &without(name))
    };
    let alike = known.iter().map(|it| (likeness(&it.variable), &it.variable));
    let best = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    match best.filter(|(likeness, _)| *likeness >= ALIKE_MIN) {
        Some((_, variable)) => {
            format!("{name} is no setting and does nothing; did you mean {variable}?")
        }
        None => format!("{name} is no setting and does nothing"),
    }
}
