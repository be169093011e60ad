//! `quipu config`: whether `quipu.toml` is as it should be, and what all settings come to.

use std::env;
use std::path;

use anyhow::anyhow;
use clap::ArgMatches;
use rpc::ApiKey;
use serde_json::Value;

use crate::Failure;
use crate::args::Command;
use crate::args::config::{ConfigAction, ConfigArgs};
use crate::config::document::ConfigValue;
use crate::config::settings::{Setting, SettingKind, TABLES, settings};
use crate::config::variables::{check_variables, from_variable, unknown_variables};
use crate::config::{self, ConfigFile, command, parse_typed};
use crate::data_folder::{CONFIG_NAME, locate};
use crate::output::{counted, print_lines};
use crate::upstream_args::parse_node;

pub(crate) fn run(args: &ConfigArgs) -> Result<(), Failure> {
    let root = command();
    let in_folder = locate(&args.data)?.join(CONFIG_NAME);
    // A file may name the data folder: then it is the one that counts, and not what lies there.
    let typed = parse_typed(&env::args_os().collect::<Vec<_>>())?;
    let file = match config::locate(&typed)? {
        Some(path) => ConfigFile::read(&root, &path)?,
        None => ConfigFile::default(),
    };
    let known = settings(&root);
    check_variables(&root, &known)?;
    if args.action == ConfigAction::Check {
        check_together(&file)?;
    }
    for said in unknown_variables(&known) {
        eprintln!("warning: {said}");
    }
    let lines = match args.action {
        ConfigAction::Check => vec![match &file.path {
            Some(path) => {
                let said = |count, what| counted(u64::try_from(count).unwrap_or(u64::MAX), what);
                let mut counts = said(file.len(), "setting");
                if !file.keys.is_empty() {
                    counts = format!("{counts}, {}", said(file.keys.len(), "API key"));
                }
                format!("{}: {counts}, no mistake", path.display())
            }
            None => format!(
                "{} does not exist: no file to check; defaults and variables apply",
                in_folder.display()
            ),
        }],
        ConfigAction::Dump => ConfigDump { root: &root, file: &file, known, typed }.lines()?,
    };
    Ok(print_lines(&lines)?)
}

/// Refuses what a server refuses when it starts.
fn check_together(file: &ConfigFile) -> Result<(), Failure> {
    let Command::Serve(serve) = file.serve_args()?.command else { return Ok(()) };
    serve.check()
}

/// Where a value comes from, from the weakest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SettingSource {
    Default,
    File { line: usize },
    Variable,
    Flag,
}

impl SettingSource {
    /// Whether somebody set it.
    fn is_given(self) -> bool {
        self != Self::Default
    }

    /// Whether it is stronger than another.
    fn is_above(self, other: Self) -> bool {
        let rank = |source| match source {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Variable => 2,
            Self::Flag => 3,
        };
        rank(self) > rank(other)
    }
}

/// All settings, and where their values are looked for.
struct ConfigDump<'a> {
    root: &'a clap::Command,
    file: &'a ConfigFile,
    known: Vec<Setting>,
    typed: ArgMatches,
}

impl ConfigDump<'_> {
    /// Every setting as a line of TOML, with where its value comes from.
    fn lines(&self) -> Result<Vec<String>, Failure> {
        self.refuse_exclusive()?;
        let mut lines = Vec::new();
        for (table, flags) in TABLES {
            if !table.is_empty() {
                lines.extend([String::new(), format!("[{table}]")]);
            }
            let is_here = |setting: &&Setting, flag: &str| {
                setting.flag == flag && setting.table.as_deref().unwrap_or_default() == table
            };
            let here =
                flags.iter().filter_map(|flag| self.known.iter().find(|it| is_here(it, flag)));
            lines.extend(here.map(|setting| self.line(setting)));
        }
        // Settings of one command, where somebody has set them.
        for command in self.root.get_subcommands().map(clap::Command::get_name) {
            let is_set = |it: &&Setting| self.find(it).is_some_and(|(_, from)| from.is_given());
            let is_own = |it: &&Setting| it.table.as_deref() == Some(command) && it.key.is_some();
            let own = self.known.iter().filter(is_own);
            let own: Vec<String> = own.filter(is_set).map(|setting| self.line(setting)).collect();
            if !own.is_empty() {
                lines.extend([String::new(), format!("[{command}]")]);
                lines.extend(own);
            }
        }
        lines.extend(self.file.keys.iter().flat_map(key_lines));
        Ok(lines)
    }

    /// Two variables that leave no room for each other: no command would take both.
    fn refuse_exclusive(&self) -> Result<(), Failure> {
        let is_on =
            |setting: &&Setting| from_variable(setting).is_some_and(|values| values != ["false"]);
        let given: Vec<&Setting> = self.known.iter().filter(is_on).collect();
        for setting in &given {
            let is_other = |it: &&&Setting| it.command == setting.command && it.excludes(setting);
            if let Some(other) = given.iter().find(is_other) {
                return Err(Failure::Usage(anyhow!(
                    "{} leaves no room for {}: unset one of the two",
                    other.variable,
                    setting.variable
                )));
            }
        }
        Ok(())
    }

    /// The values of a setting, and where they come from.
    fn find(&self, setting: &Setting) -> Option<(Vec<String>, SettingSource)> {
        let in_file = || {
            let entry = self.file.find(setting)?;
            let values = match &entry.value {
                ConfigValue::Switch(value) => vec![value.to_string()],
                ConfigValue::One(text) => vec![text.clone()],
                ConfigValue::List(texts) => texts.clone(),
            };
            Some((values, SettingSource::File { line: entry.line }))
        };
        let by_default = || {
            let values = default_values(self.root, setting);
            (!values.is_empty()).then_some((values, SettingSource::Default))
        };
        let by_flag = self.typed_values(setting).map(|values| (values, SettingSource::Flag));
        let by_variable = || from_variable(setting).map(|it| (it, SettingSource::Variable));
        by_flag.or_else(by_variable).or_else(in_file).or_else(by_default)
    }

    /// The values of a flag that was typed: this command has some of those that others have.
    fn typed_values(&self, setting: &Setting) -> Option<Vec<String>> {
        let is_ours = |it: &Setting| it.command.as_deref().is_none_or(|name| name == "config");
        let mut ours = self.known.iter().filter(|it| is_ours(it));
        let typed = ours.find(|it| it.path() == setting.path())?;
        if !typed.is_typed(&self.typed) {
            return None;
        }
        if setting.kind == SettingKind::Switch {
            return Some(vec!["true".to_owned()]);
        }
        let values = self.typed.subcommand_matches("config")?.get_raw(&typed.id)?;
        Some(values.map(|value| value.to_string_lossy().into_owned()).collect())
    }

    /// The setting of a stronger source that takes the place of this one, by the name that it has there.
    fn overruling(&self, setting: &Setting, from: SettingSource) -> Option<String> {
        let others = self.known.iter().filter(|it| it.command == setting.command);
        let mut others = others.filter(|other| setting.gives_way_to(other));
        others.find_map(|other| {
            let is_on = |values: &[String]| values != ["false"];
            let (_, source) = self.find(other).filter(|(values, _)| is_on(values))?;
            let is_stronger = from.is_given() && source.is_above(from);
            is_stronger.then(|| match source {
                SettingSource::Flag => format!("--{}", other.flag),
                SettingSource::Variable | SettingSource::File { .. } | SettingSource::Default => {
                    other.variable.clone()
                }
            })
        })
    }

    fn line(&self, setting: &Setting) -> String {
        let Setting { flag, variable, .. } = setting;
        let key = setting.key.as_deref().unwrap_or_default();
        let Some((values, source)) = self.find(setting) else {
            return format!("# {key} is not set (--{flag}, {variable})");
        };
        let from = match source {
            SettingSource::Flag => format!("--{flag}"),
            SettingSource::Variable => variable.clone(),
            SettingSource::File { line } => format!("line {line} of the file"),
            SettingSource::Default => "default".to_owned(),
        };
        if setting.is_secret {
            let names: Vec<String> = values.iter().map(|text| name_of(text)).collect();
            return format!("# {key} = {}  # {from}; shown without keys", toml(setting, &names));
        }
        // What is dumped may be put anywhere, and a relative path counts from the folder of its file.
        let values: Vec<String> =
            if setting.is_path { values.iter().map(absolute).collect() } else { values };
        let line = format!("{key} = {}  # {from}", toml(setting, &values));
        match self.overruling(setting, source) {
            Some(other) => format!("# {line}; {other} takes its place"),
            None => line,
        }
    }
}

/// An API key as a table. Its hash is no secret: nobody finds 256 random bits by it.
fn key_lines(key: &ApiKey) -> Vec<String> {
    let ApiKey { name, hash, methods, rates } = key;
    let methods = methods.as_ref().map(|methods| {
        let texts: Vec<String> = methods.iter().map(ToString::to_string).collect();
        format!("methods = {}", Value::from(texts))
    });
    let head = [
        String::new(),
        "[[keys]]".to_owned(),
        format!("name = {}", Value::from(name.as_str())),
        format!("hash = \"{hash}\""),
    ];
    let rate = rates.calls.map(|rate| format!("rate = {rate}"));
    let weight = rates.weight.map(|weight| format!("weight = {weight}"));
    head.into_iter().chain(methods).chain(rate).chain(weight).collect()
}

/// A path from the root, which need not be there.
fn absolute(text: &String) -> String {
    path::absolute(text).map_or_else(|_| text.clone(), |path| path.to_string_lossy().into_owned())
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
    parse_node(text).map_or_else(|_| "...".to_owned(), |url| url.name().to_owned())
}

/// Values as TOML has them, whose texts are written as those of JSON, but for one control character. Its
/// numbers have a sign.
fn toml(setting: &Setting, values: &[String]) -> String {
    let one = |text: &String| {
        let is_number = text.parse::<i64>().is_ok_and(|number| number.to_string() == *text);
        if setting.kind == SettingKind::Switch || is_number {
            text.clone()
        } else {
            Value::from(text.as_str()).to_string().replace('\u{7f}', "\\u007F")
        }
    };
    match values {
        [only] if setting.kind != SettingKind::List => one(only),
        several => format!("[{}]", several.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
