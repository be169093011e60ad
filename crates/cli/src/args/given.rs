//! What the settings of a server came to, to be compared with what they come to later.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The settings of `quipu serve`, as somebody gave them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSettings {
    /// The command line.
    pub(crate) typed: Vec<OsString>,
    /// The file with settings, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// By flag.
    pub(crate) settings: BTreeMap<String, GivenSetting>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenSetting {
    /// What it is called in a file.
    pub(crate) name: String,
    pub(crate) values: Vec<OsString>,
}

impl GivenSettings {
    /// Flags whose values are others by now, with the names of their keys.
    pub(crate) fn changed_in<'a>(
        &self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_changed =
            |(flag, setting): &(&String, &GivenSetting)| self.settings.get(*flag) != Some(*setting);
        let changed = other.settings.iter().filter(is_changed);
        changed.map(|(flag, setting)| (flag.as_str(), setting.name.as_str()))
    }
}
