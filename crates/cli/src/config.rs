//! From what was typed, the environment and `quipu.toml` to arguments: a flag is stronger than its
//! variable, the variable than the key in the file, the key than the default.

pub(crate) mod document;
mod keys;
pub(crate) mod settings;
mod suggestion;
pub(crate) mod variables;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use ingest::fetch::MirrorUrl;
use rpc::ApiKey;

use crate::Failure;
use crate::args::Args;
use crate::args::given::{GivenSetting, GivenSettings};
use crate::data_folder::{CONFIG_NAME, default_folder, has_manifest};
use crate::hints::system_hint;
use crate::upstream_args::parse_node;

use document::{ConfigDocument, ConfigEntry, ConfigValue, DocumentError, read_document};
use keys::read_keys;
use settings::{NEEDS, NEEDS_OTHER, Setting, SettingKind, map_settings, settings};
use suggestion::suggest_by_ending;
use variables::{check_typed_variables, parse_switch, refuse_retired_variables};

/// Variables that help texts show; all of them would be half of what is shown.
const SHOWN: [&str; 7] = [
    "QUIPU_CONFIG",
    "QUIPU_DATA_DIR",
    "QUIPU_LISTEN",
    "QUIPU_NETWORK",
    "QUIPU_GENESIS",
    "QUIPU_ANCHOR",
    "QUIPU_UPSTREAM",
];
/// Keys that are this alike are suggested for each other.
const ALIKE_MIN: f64 = 0.9;

/// A `quipu.toml` whose keys are known and whose values are what they should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    /// Where it is; none if there is none.
    pub(crate) path: Option<PathBuf>,
    entries: Vec<ConfigEntry>,
    /// Who may ask a server.
    pub(crate) keys: Vec<ApiKey>,
}

/// Reads the command line with all that stands behind it. Ends the process where clap does: for help,
/// and for a command line that is wrong.
pub(crate) fn parse(line: &[OsString]) -> Result<Args, Failure> {
    let (args, unread) = try_parse(line)?.unwrap_or_else(|error| error.exit());
    if let Some(path) = unread {
        eprintln!("warning: {} is not read: another file is named", path.display());
    }
    Ok(args)
}

/// The same for a command that another one goes on as, or that is read once more: what is wrong with it is
/// told to whoever asked.
pub(crate) fn parse_inner(line: &[OsString]) -> Result<Args, Failure> {
    let parsed = try_parse(line)?.map(|(args, _)| args);
    parsed.map_err(|error| Failure::Usage(anyhow!("{error}")))
}

/// The arguments, and the file of the data folder that is not read because another one is named.
type ParsedLine = (Args, Option<PathBuf>);

fn try_parse(line: &[OsString]) -> Result<Result<ParsedLine, clap::Error>, Failure> {
    let known = settings(&command());
    let typed = match parse_typed(line) {
        Ok(typed) => typed,
        Err(error) => return Ok(Err(suggest_by_ending(error, &known, line))),
    };
    // Shells ask for completions whatever is set.
    if typed.subcommand_name() != Some("completions") {
        refuse_retired_variables()?;
    }
    let root = command_of(Some(&typed));
    let file = match locate(&typed)? {
        Some(path) => ConfigFile::read(&root, &path)?,
        None => ConfigFile::default(),
    };
    let matches = match file.apply(root.clone(), &typed).try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => {
            // clap blames the flag for what its variable says.
            if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
                check_typed_variables(&root, &known, &typed)?;
            }
            return Ok(Err(error));
        }
    };
    refuse_unused(&known, &matches)?;
    let unread = file.find_unread(&matches);
    Ok(file.args_from(&known, &matches, line).map(|args| (args, unread)))
}

/// The command and the flags on the command line, without variables, the file, and requirements that
/// these may meet. Help, the version, and what is wrong whatever these say, are errors.
pub(crate) fn parse_typed(line: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let root = map_settings(Args::command(), |_, arg| {
        arg.required(false).requires(Resettable::<clap::Id>::Reset)
    });
    let root = root.mut_subcommands(|command| {
        let groups: Vec<_> = command.get_groups().map(|group| group.get_id().clone()).collect();
        let optional = |command: Command, id| command.mut_group(id, |group| group.required(false));
        groups.into_iter().fold(command, optional)
    });
    root.try_get_matches_from(line).map_err(|error| {
        // The same, with what help and usage show of variables and requirements.
        let shown = command().try_get_matches_from(line).err();
        shown.filter(|shown| shown.kind() == error.kind()).unwrap_or(error)
    })
}

/// What the settings of a command came to.
fn given_settings(
    command: &str,
    known: &[Setting],
    matches: &ArgMatches,
    line: &[OsString],
) -> GivenSettings {
    let own = known.iter().filter(|it| it.command.as_deref().is_none_or(|name| name == command));
    let given = |setting: &Setting| {
        let values = matches.subcommand_matches(command)?.try_get_raw(&setting.id).ok().flatten();
        let values = values.into_iter().flatten().map(ToOwned::to_owned).collect();
        let name = setting.path().unwrap_or_else(|| format!("--{}", setting.flag));
        Some((setting.flag.clone(), GivenSetting { name, values }))
    };
    let settings = own.filter_map(given).collect();
    GivenSettings { typed: line.to_vec(), file: None, settings }
}

/// Refuses flags that were typed and that nothing would come of.
fn refuse_unused(known: &[Setting], matches: &ArgMatches) -> Result<(), Failure> {
    for (command, needed, flags) in NEEDS_OTHER {
        let Some(own_matches) = matches.subcommand_matches(command) else { continue };
        let own = || known.iter().filter(|it| it.command.as_deref() == Some(command));
        let is_on = |setting: &Setting| match setting.kind {
            SettingKind::Switch => own_matches.get_flag(&setting.id),
            SettingKind::One | SettingKind::List => own_matches.contains_id(&setting.id),
        };
        if own().any(|setting| setting.flag == needed && is_on(setting)) {
            continue;
        }
        let is_unused = |it: &&Setting| flags.contains(&it.flag.as_str()) && it.is_typed(matches);
        if let Some(Setting { flag, .. }) = own().find(is_unused) {
            return Err(Failure::Usage(anyhow!(
                "--{flag} means nothing here without --{needed}: add --{needed}, or leave --{flag} \
                 out"
            )));
        }
    }
    Ok(())
}

/// The command line, with a variable for every flag.
pub(crate) fn command() -> Command {
    command_of(None)
}

/// The same for what was typed, which is stronger than a variable that leaves no room for it.
fn command_of(typed: Option<&ArgMatches>) -> Command {
    let known = settings(&Args::command());
    let is_typed = |setting: &Setting| typed.is_some_and(|typed| setting.is_typed(typed));
    let is_overruled = |setting: &Setting| {
        let mut others = known.iter().filter(|other| other.command == setting.command);
        !is_typed(setting) && others.any(|other| setting.gives_way_to(other) && is_typed(other))
    };
    map_settings(Args::command(), |setting, arg| {
        let arg = match setting.kind {
            SettingKind::Switch => arg.value_parser(parse_switch),
            SettingKind::One | SettingKind::List => arg,
        };
        // A variable that is set to nothing is one that is not set.
        match env::var_os(&setting.variable) {
            Some(value) if value.is_empty() => arg,
            Some(_) if is_overruled(setting) => arg,
            _ => {
                let is_shown = SHOWN.contains(&setting.variable.as_str());
                arg.env(setting.variable.clone()).hide_env_values(true).hide_env(!is_shown)
            }
        }
    })
}

/// Where the file is: as the flag or the variable says, or else in the data folder. A file there that
/// cannot be read is an error: without it a server would have no keys, no rates and no TLS.
pub(crate) fn locate(typed: &ArgMatches) -> Result<Option<PathBuf>, Failure> {
    let Some((command, own)) = typed.subcommand() else { return Ok(None) };
    // Shells ask for completions whenever they start.
    if command == "completions" {
        return Ok(None);
    }
    let given = |id: &str, variable: &str| {
        let flag = own.try_get_one::<PathBuf>(id).ok().flatten().cloned();
        let variable = || env::var_os(variable).filter(|value| !value.is_empty());
        flag.or_else(|| variable().map(PathBuf::from))
    };
    if let Some(path) = given("config", "QUIPU_CONFIG") {
        return Ok(Some(path));
    }
    // The demo has a data folder of its own, which is new.
    if command == "demo" {
        return Ok(None);
    }
    let folder = given("data_dir", "QUIPU_DATA_DIR").or_else(default_folder);
    folder.map_or(Ok(None), |folder| find_in(&folder))
}

/// The file in a data folder; none only if there is nothing of that name, in a folder that can be found or
/// is not there.
fn find_in(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut links = folder.ancestors().filter(|path| path.is_symlink() && !path.exists());
    let reason = if let Some(link) = links.next() {
        format!("{} is a symbolic link to nothing", link.display())
    } else if folder.exists() && !folder.is_dir() {
        "this is not a folder".to_owned()
    } else {
        return find_in_folder(folder);
    };
    Err(Failure::Usage(anyhow!(
        "{}: cannot look for settings: {reason}\n  hint: see whether --data-dir is right",
        folder.display()
    )))
}

fn find_in_folder(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let path = folder.join(CONFIG_NAME);
    let mut hint = "remove it, put a file in its place, or name another one with --config FILE";
    let reason = match fs::metadata(&path) {
        Ok(found) if found.is_file() => return Ok(Some(path)),
        Ok(_) => "not a regular file".to_owned(),
        Err(_) if path.is_symlink() => "a symbolic link to a file that cannot be found".to_owned(),
        Err(error) => {
            let kind = error.kind();
            if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                return Ok(None);
            }
            hint = system_hint(kind).unwrap_or(hint);
            error.to_string()
        }
    };
    Err(Failure::Usage(anyhow!(
        "{}: cannot read the settings: {reason}\n  hint: {hint}",
        path.display()
    )))
}

impl ConfigFile {
    /// Reads a file, and refuses what is unknown or wrong in it, whichever command it is for.
    pub(crate) fn read(root: &Command, path: &Path) -> Result<Self, Failure> {
        let place = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            if path.is_dir() {
                anyhow!("{place}: this is a folder: name the file in it, such as {CONFIG_NAME}")
            } else if error.kind() == io::ErrorKind::InvalidData {
                anyhow!("{place}: this is no text in UTF-8")
            } else {
                let hint = system_hint(error.kind()).map(|hint| format!("\n  hint: {hint}"));
                anyhow!("{place}: {error}{}", hint.unwrap_or_default())
            }
        });
        let wrong = |error: DocumentError| Failure::Usage(anyhow!("{place}: {error}"));
        let document = read_document(&text.map_err(Failure::Usage)?).map_err(wrong)?;
        let ConfigDocument { mut entries, repeated } = document;
        let keys = read_keys(&repeated).map_err(wrong)?;
        let known = settings(root);
        for entry in &mut entries {
            let line = entry.line;
            check(root, &known, path, entry)
                .map_err(|said| Failure::Usage(anyhow!("{place}: line {line}: {said}")))?;
        }
        let file = Self { path: Some(path.to_owned()), entries, keys };
        file.refuse_exclusive(&known)?;
        Ok(file)
    }

    /// What the file says of a setting.
    pub(crate) fn find(&self, setting: &Setting) -> Option<&ConfigEntry> {
        let key = setting.key.as_ref()?;
        self.entries.iter().find(|entry| entry.key == *key && entry.table == setting.table)
    }

    /// What the file, the variables and the defaults come to for `quipu serve`, whose settings are the
    /// ones that can contradict each other.
    pub(crate) fn serve_args(&self) -> Result<Args, Failure> {
        let line = ["quipu", "serve"].map(OsString::from);
        let known = settings(&command());
        let args = parse_typed(&line).and_then(|typed| {
            let root = self.apply(command_of(Some(&typed)), &typed);
            self.args_from(&known, &root.try_get_matches_from(&line)?, &line)
        });
        args.map_err(|error| Failure::Usage(anyhow!("{}", said_by(&error))))
    }

    /// Arguments, with what no flag says.
    fn args_from(
        &self,
        known: &[Setting],
        matches: &ArgMatches,
        line: &[OsString],
    ) -> Result<Args, clap::Error> {
        let mut args = Args::from_arg_matches(matches)?;
        if let crate::args::Command::Serve(serve) = &mut args.command {
            serve.admission.keys.clone_from(&self.keys);
            serve.given = given_settings("serve", known, matches, line);
            serve.given.file.clone_from(&self.path);
        }
        if let crate::args::Command::Health(health) = &mut args.command {
            let is_typed = |flag: &str| {
                let is_own = |it: &&Setting| it.command.as_deref() == Some("health");
                known.iter().filter(is_own).any(|it| it.flag == flag && it.is_typed(matches))
            };
            // Whoever types an address means that one, whatever a file says of metrics.
            if is_typed("listen") && !is_typed("metrics-listen") {
                health.metrics_listen = None;
            }
        }
        Ok(args)
    }

    /// The file of the data folder where this one is another.
    fn find_unread(&self, matches: &ArgMatches) -> Option<PathBuf> {
        let (own, (_, matches)) = (self.path.as_ref()?, matches.subcommand()?);
        let given = matches.try_get_one::<PathBuf>("data_dir").ok()?.cloned();
        let other = given.or_else(default_folder)?.join(CONFIG_NAME);
        let is_same = other.canonicalize().ok() == own.canonicalize().ok();
        (!is_same && other.symlink_metadata().is_ok()).then_some(other)
    }

    /// How many settings it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Two keys that leave no room for each other.
    fn refuse_exclusive(&self, known: &[Setting]) -> Result<(), Failure> {
        // A switch that is off leaves room for everything.
        let is_on = |entry: &&ConfigEntry| entry.value != ConfigValue::Switch(false);
        let given: Vec<(&Setting, &ConfigEntry)> = known
            .iter()
            .filter_map(|setting| Some((setting, self.find(setting).filter(is_on)?)))
            .collect();
        for (setting, entry) in &given {
            let other = given.iter().find(|(other, second)| {
                setting.command == other.command
                    && setting.excludes(other)
                    && second.line >= entry.line
            });
            if let Some((other, second)) = other {
                let place = self.path.as_deref().unwrap_or(Path::new(CONFIG_NAME)).display();
                let [first, later] = [setting.path(), other.path()].map(Option::unwrap_or_default);
                return Err(Failure::Usage(anyhow!(
                    "{place}: line {}: {later} leaves no room for {first} of line {}: remove one of \
                     the two",
                    second.line,
                    entry.line
                )));
            }
        }
        Ok(())
    }

    /// The command line with what the file says as defaults, unless something stronger leaves no room.
    fn apply(&self, root: Command, typed: &ArgMatches) -> Command {
        let known = settings(&root);
        let is_given = |setting: &Setting| {
            setting.is_typed(typed)
                || env::var_os(&setting.variable).is_some_and(|value| !value.is_empty())
        };
        let is_excluded = |setting: &Setting| {
            let others = known.iter().filter(|it| it.command == setting.command);
            others.filter(|other| setting.gives_way_to(other)).any(is_given)
        };
        let is_needed_here = |setting: &Setting| {
            let needed = NEEDS.iter().find(|(flag, _)| *flag == setting.flag).map(|(_, it)| *it);
            let of_command = known.iter().filter(|it| it.command == setting.command);
            of_command
                .filter(|it| needed == Some(it.flag.as_str()))
                .any(|it| self.find(it).is_some())
        };
        map_settings(root, |setting, arg| {
            // clap looks for what a flag needs among flags and variables only.
            let arg = if is_needed_here(setting) {
                arg.requires(Resettable::<clap::Id>::Reset)
            } else {
                arg
            };
            match self.find(setting) {
                Some(entry) if !is_excluded(setting) => {
                    // Where help is shown in spite of all, it shows no key of a node.
                    with_default(arg, entry).hide_default_value(setting.is_secret)
                }
                _ => arg,
            }
        })
    }
}

fn with_default(arg: Arg, entry: &ConfigEntry) -> Arg {
    // What has a value is not asked for any more.
    let arg = arg.required(false);
    match &entry.value {
        ConfigValue::Switch(value) => arg.default_value(value.to_string()),
        ConfigValue::One(value) => arg.default_value(value.clone()),
        ConfigValue::List(values) => arg.default_values(values.clone()),
    }
}

/// Finds the setting of a key and holds its value against it. A relative path counts from the folder of
/// the file.
fn check(
    root: &Command,
    known: &[Setting],
    path: &Path,
    entry: &mut ConfigEntry,
) -> Result<(), String> {
    let is_meant = |setting: &&Setting| {
        setting.key.as_ref() == Some(&entry.key) && setting.table == entry.table
    };
    let Some(setting) = known.iter().find(is_meant) else { return Err(unknown(known, entry)) };
    let name = setting.path().unwrap_or_default();
    match &entry.value {
        ConfigValue::Switch(_) if setting.kind != SettingKind::Switch => {
            return Err(format!("{name}: true and false are for switches, and this is none"));
        }
        ConfigValue::One(_) | ConfigValue::List(_) if setting.kind == SettingKind::Switch => {
            return Err(format!("{name}: a switch is true or false"));
        }
        ConfigValue::List(values) if values.is_empty() && setting.kind == SettingKind::List => {
            return Err(format!("{name}: the list is empty: give a value, or remove the line"));
        }
        ConfigValue::List(_) if setting.kind != SettingKind::List => {
            return Err(format!("{name}: one value is wanted, and not a list"));
        }
        ConfigValue::Switch(_) | ConfigValue::One(_) | ConfigValue::List(_) => {}
    }
    if setting.is_path {
        let folder = path.parent().unwrap_or(Path::new(""));
        let absolute = |text: &String| folder.join(text).to_string_lossy().into_owned();
        entry.value = match &entry.value {
            ConfigValue::One(text) => ConfigValue::One(absolute(text)),
            ConfigValue::List(texts) => ConfigValue::List(texts.iter().map(absolute).collect()),
            ConfigValue::Switch(value) => ConfigValue::Switch(*value),
        };
    }
    let moves_folder = setting.flag == "data-dir" && setting.table.is_none();
    if moves_folder && path.file_name() == Some(OsStr::new(CONFIG_NAME)) {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if has_manifest(folder) && !is_same_folder(folder, &entry.value) {
            return Err(format!("{name}: this file lies in a data folder, which it cannot move"));
        }
    }
    let values: &[String] = match &entry.value {
        ConfigValue::Switch(_) => &[],
        ConfigValue::One(text) => std::slice::from_ref(text),
        ConfigValue::List(texts) => texts,
    };
    values.iter().try_for_each(|value| check_value(root, setting, &name, value))
}

/// Whether a value names a folder, whatever links lead there.
fn is_same_folder(folder: &Path, value: &ConfigValue) -> bool {
    let ConfigValue::One(text) = value else { return false };
    let found = folder.canonicalize().ok();
    found.is_some() && found == Path::new(text).canonicalize().ok()
}

/// Lets clap read a value as it would read the flag's.
fn check_value(root: &Command, setting: &Setting, name: &str, value: &str) -> Result<(), String> {
    let owner = match &setting.command {
        Some(command) => root.find_subcommand(command),
        None => Some(root),
    };
    let found =
        owner.and_then(|it| it.get_arguments().find(|arg| arg.get_id() == setting.id.as_str()));
    let Some(found) = found else { return Ok(()) };
    let mut arg =
        Arg::new("value").long("value").action(ArgAction::Append).allow_hyphen_values(true);
    arg = arg.value_parser(found.get_value_parser().clone());
    if let Some(delimiter) = found.get_value_delimiter() {
        arg = arg.value_delimiter(delimiter);
    }
    let alone = Command::new("value").no_binary_name(true).disable_help_flag(true).arg(arg);
    let text = OsString::from(format!("--value={value}"));
    alone.try_get_matches_from([text]).map_err(|error| {
        // What clap says of a flag, without the flag that it was dressed up as.
        format!("{name}: {}", said_by(&error).replace(" for '--value <value>'", ""))
    })?;
    // Addresses are texts to clap, which would show the keys in them.
    let mut texts = value.split(',');
    let parsed = match setting.flag.as_str() {
        "upstream" | "pass-through-to" | "with" => {
            texts.try_for_each(|text| parse_node(text).map(drop))
        }
        "from" => texts.try_for_each(|text| Ok(text.trim().parse::<MirrorUrl>().map(drop)?)),
        _ => Ok(()),
    };
    parsed.map_err(|error| format!("{name}: {error}"))
}

/// What clap says, on one line.
fn said_by(error: &clap::Error) -> String {
    let said = error.to_string();
    let said = said.lines().take_while(|line| !line.starts_with("For more")).map(str::trim);
    let said = said.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    said.strip_prefix("error: ").unwrap_or(&said).to_owned()
}

/// What is said of a key that nobody knows.
fn unknown(known: &[Setting], entry: &ConfigEntry) -> String {
    let name = match &entry.table {
        Some(table) => format!("{table}.{}", entry.key),
        None => entry.key.clone(),
    };
    let likeness = |path: &str| {
        let key = path.rsplit('.').next().unwrap_or(path);
        let same_key = key == entry.key.replace('-', "_");
        if same_key { 2.0 } else { strsim::jaro_winkler(path, &name) }
    };
    let paths = known.iter().filter_map(Setting::path).map(|path| (likeness(&path), path));
    let best = paths.max_by(|(one, _), (other, _)| one.total_cmp(other));
    match best.filter(|(likeness, _)| *likeness >= ALIKE_MIN) {
        Some((_, path)) => format!("there is no key {name}; did you mean {path}?"),
        None => format!("there is no key {name}; `quipu config dump` shows them all"),
    }
}

#[cfg(test)]
mod tests;
