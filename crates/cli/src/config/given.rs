//! What the settings of a server came to when it was started, and how to read them once more.
//!
//! Knows: what was typed, and the value of every setting as text.
//! Never knows: what a setting means, or whether a change of it can be followed.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::ArgMatches;

use super::settings::Setting;
use super::{Args, parse_inner};
use crate::Failure;

/// The settings of `quipu serve`, as somebody gave them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSettings {
    typed: Vec<OsString>,
    values: BTreeMap<String, Vec<OsString>>,
    /// What each is called in a file, by its flag.
    names: BTreeMap<String, String>,
}

impl GivenSettings {
    /// What clap found of a command.
    pub(super) fn of(
        command: &str,
        known: &[Setting],
        matches: &ArgMatches,
        typed: &[OsString],
    ) -> Self {
        let mut given = Self { typed: typed.to_vec(), ..Self::default() };
        let is_own = |it: &&Setting| it.command.as_deref().is_none_or(|name| name == command);
        let Some(matches) = matches.subcommand_matches(command) else { return given };
        for setting in known.iter().filter(is_own) {
            let values = matches.try_get_raw(&setting.id).ok().flatten();
            let values = values.into_iter().flatten().map(ToOwned::to_owned).collect();
            given.values.insert(setting.flag.clone(), values);
            let name = setting.path().unwrap_or_else(|| format!("--{}", setting.flag));
            given.names.insert(setting.flag.clone(), name);
        }
        given
    }

    /// Reads the variables and the file once more, for what was typed.
    pub(crate) fn parse_again(&self) -> Result<Args, Failure> {
        parse_inner(&self.typed)
    }

    /// Flags whose values another has changed, with the names of their keys.
    pub(crate) fn changed_in<'a>(
        &self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_changed = |(flag, values): &(&String, &Vec<OsString>)| {
            self.values.get(*flag).is_none_or(|before| before != *values)
        };
        let names = |flag: &'a String| Some((flag.as_str(), other.names.get(flag)?.as_str()));
        other.values.iter().filter(is_changed).filter_map(move |(flag, _)| names(flag))
    }

    /// Every flag.
    #[cfg(test)]
    pub(crate) fn flags(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}
