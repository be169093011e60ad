//! Variables of the environment as settings: whether their values are ones that their flags take, and
//! whether anybody knows their names.
//!
//! Knows: that a mistake in a variable is told with the variable's name, and not with its flag's.
//! Never knows: what a setting means.

use std::env;
use std::ffi::OsString;

use anyhow::anyhow;
use clap::Command;

use crate::Failure;

use super::settings::{Setting, SettingKind};
use super::{ALIKE_MIN, check_value, typed_command};

/// How every variable begins.
const PREFIX: &str = "QUIPU_";

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
    typed: &[OsString],
) -> Result<(), Failure> {
    let command = typed_command(root, typed);
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

/// What is said of each variable that bears our prefix and that nobody knows. It may be somebody
/// else's: orchestrators set such names for a service that is called as we are.
pub(crate) fn unknown_variables(known: &[Setting]) -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
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
