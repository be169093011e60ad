//! `quipu config`: whether `quipu.toml` is as it should be, and what all settings come to.

use std::env;

use ingest::upstream::UpstreamUrl;
use serde_json::Value;

use crate::Failure;
use crate::args::config::{ConfigAction, ConfigArgs};
use crate::config::document::ConfigValue;
use crate::config::settings::{Setting, SettingKind, TABLES, settings};
use crate::config::{self, ConfigFile, command};
use crate::data_folder::{CONFIG_NAME, locate};
use crate::output::{counted, print_lines};

pub(crate) fn run(args: &ConfigArgs, path: Option<&std::path::Path>) -> Result<(), Failure> {
    let root = command();
    let in_folder = locate(&args.data)?.join(CONFIG_NAME);
    // A file may name the data folder: then it is the one that counts, and not what lies there.
    let typed: Vec<_> = env::args_os().collect();
    let path = path.map(ToOwned::to_owned).or_else(|| config::locate(&root, &typed));
    let file = match &path {
        Some(path) => ConfigFile::read(&root, path)?,
        None => ConfigFile::default(),
    };
    let lines = match args.action {
        ConfigAction::Check => vec![match &file.path {
            Some(path) => {
                let count = counted(u64::try_from(file.len()).unwrap_or(u64::MAX), "setting");
                format!("{}: {count}, no mistake", path.display())
            }
            None => format!("no file is used: there is no {}", in_folder.display()),
        }],
        ConfigAction::Dump => dump(&root, &file),
    };
    Ok(print_lines(&lines)?)
}

/// Every setting as a line of TOML, with where its value comes from.
fn dump(root: &clap::Command, file: &ConfigFile) -> Vec<String> {
    let known = settings(root);
    let mut lines = Vec::new();
    for (table, flags) in TABLES {
        if !table.is_empty() {
            lines.extend([String::new(), format!("[{table}]")]);
        }
        let is_here = |setting: &&Setting, flag: &str| {
            setting.flag == flag && setting.table.as_deref().unwrap_or_default() == table
        };
        let here = flags.iter().filter_map(|flag| known.iter().find(|it| is_here(it, flag)));
        lines.extend(here.map(|setting| line(root, file, setting)));
    }
    // Settings of one command, where somebody has set them.
    for command in root.get_subcommands().map(clap::Command::get_name) {
        let is_set =
            |setting: &&Setting| from_variable(setting).is_some() || file.find(setting).is_some();
        let own = known.iter().filter(|it| it.table.as_deref() == Some(command)).filter(is_set);
        let own: Vec<String> = own.map(|setting| line(root, file, setting)).collect();
        if !own.is_empty() {
            lines.extend([String::new(), format!("[{command}]")]);
            lines.extend(own);
        }
    }
    lines
}

fn line(root: &clap::Command, file: &ConfigFile, setting: &Setting) -> String {
    let key = setting.key.as_deref().unwrap_or_default();
    let in_file = || {
        let entry = file.find(setting)?;
        let values = match &entry.value {
            ConfigValue::Switch(value) => vec![value.to_string()],
            ConfigValue::One(text) => vec![text.clone()],
            ConfigValue::List(texts) => texts.clone(),
        };
        Some((values, format!("line {} of the file", entry.line)))
    };
    let by_default = || {
        let values = default_values(root, setting);
        (!values.is_empty()).then(|| (values, "default".to_owned()))
    };
    let found = from_variable(setting).map(|values| (values, setting.variable.clone()));
    match found.or_else(in_file).or_else(by_default) {
        None => format!("# {key} is not set (--{}, {})", setting.flag, setting.variable),
        Some((values, from)) if setting.is_secret => {
            let names: Vec<String> = values.iter().map(|text| name_of(text)).collect();
            format!("# {key} = {}  # {from}; shown without keys", toml(setting, &names))
        }
        Some((values, from)) => format!("{key} = {}  # {from}", toml(setting, &values)),
    }
}

fn from_variable(setting: &Setting) -> Option<Vec<String>> {
    let value = env::var(&setting.variable).ok().filter(|value| !value.is_empty())?;
    Some(if setting.kind == SettingKind::List {
        value.split(',').map(str::to_owned).collect()
    } else {
        vec![value]
    })
}

fn default_values(root: &clap::Command, setting: &Setting) -> Vec<String> {
    let owner = match &setting.command {
        Some(command) => root.find_subcommand(command),
        None => Some(root),
    };
    let arg =
        owner.and_then(|it| it.get_arguments().find(|arg| arg.get_id() == setting.id.as_str()));
    let values = arg.map(clap::Arg::get_default_values).unwrap_or_default();
    let values: Vec<String> =
        values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    // A switch is off unless somebody sets it.
    if values.is_empty() && setting.kind == SettingKind::Switch {
        vec!["false".to_owned()]
    } else {
        values
    }
}

/// An address without what may be a key.
fn name_of(text: &str) -> String {
    text.parse::<UpstreamUrl>().map_or_else(|_| "...".to_owned(), |url| url.name().to_owned())
}

/// Values as TOML has them, whose texts are written as those of JSON.
fn toml(setting: &Setting, values: &[String]) -> String {
    let one = |text: &String| {
        let is_number = text.parse::<u64>().is_ok_and(|number| number.to_string() == *text);
        if setting.kind == SettingKind::Switch || is_number {
            text.clone()
        } else {
            Value::from(text.as_str()).to_string()
        }
    };
    match values {
        [only] if setting.kind != SettingKind::List => one(only),
        several => format!("[{}]", several.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
