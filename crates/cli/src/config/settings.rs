//! Every flag as a setting: the variable and the key of `quipu.toml` that stand for it.

use std::any::TypeId;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Flags about a node that is followed.
const FOLLOW: [&str; 9] = [
    "upstream",
    "quorum",
    "finality-depth",
    "upstream-concurrency",
    "upstream-timeout",
    "backfill-to",
    "gap-max",
    "poll-every",
    "heartbeat-every",
];

/// Flags that several commands have or that a server lives by, with the table of their keys; the first
/// table is the top of the file. Every other flag is of one command, whose name its table and its
/// variable bear.
pub(crate) const TABLES: [(&str, &[&str]); 8] = [
    ("", &["data-dir", "network", "genesis", "chain-id", "genesis-hash", "anchor", "threads"]),
    (
        "server",
        &[
            "listen",
            "cors-origin",
            "allowed-host",
            "no-explorer",
            "unknown-hash",
            "pass-through",
            "pass-through-to",
            "source",
            "source-every",
            "publish",
            "trusted-proxy",
            "require-key",
        ],
    ),
    ("tls", &["tls-cert", "tls-key", "tls-client-ca"]),
    (
        "limits",
        &[
            "body-bytes-max",
            "batch-items-max",
            "batch-bytes-max",
            "logs-max",
            "logs-bytes-max",
            "logs-read-bytes-max",
            "logs-unindexed-blocks-max",
            "filters-max",
            "filter-timeout",
            "bytes-under-way-max",
            "connections-max",
            "connections-per-client-max",
            "rate-per-address",
            "weight-per-address",
            "streams-max",
            "socket-requests-max",
            "subscriptions-max",
            "header-timeout",
            "body-timeout",
            "answer-timeout",
            "write-timeout",
            "write-bytes-min",
            "idle-timeout",
            "ping-interval",
            "stop-timeout",
            "serve-threads",
            "read-threads",
            "reads-max",
            "open-segments-max",
            "tail-bytes-max",
            "run-bytes-max",
            "pass-through-requests-max",
            "pass-through-subscriptions-max",
        ],
    ),
    ("cache", &["cache-bytes", "cache-dir", "cache-disk-bytes", "cache-memory-bytes", "pin"]),
    ("follow", &FOLLOW),
    ("metrics", &["metrics-listen"]),
    ("log", &["log-format", "slow-request", "quiet", "verbose"]),
];

/// Flags that bear the name of a shared one and mean something of their own: whoever has a data folder
/// configured wants no sample chain in it, and the anchors of a folder are not what a bundle from
/// elsewhere has to lead to.
const OWN: [(&str, &str); 2] = [("demo", "data-dir"), ("verify-proof", "anchor")];

/// Flags that have no key, each with its command: a file cannot say where it is, and `[key]` would be
/// taken for `[[keys]]`.
const WITHOUT_KEY: [(Option<&str>, &str); 2] = [(None, "config"), (Some("key"), "name")];

/// Flags that name a chain.
const CHAINS: [&str; 3] = ["network", "genesis", "chain-id"];

/// Flags of which one leaves no room for the others. A stronger source that gives one takes the place of
/// all of them in a weaker one.
const EXCLUSIVE: [&[&str]; 5] = [
    &CHAINS,
    &["quiet", "verbose"],
    &["blocks", "backfill-to"],
    &["blocks", "sample"],
    &["at", "anchor"],
];

/// Flags that mean nothing without another.
pub(crate) const NEEDS: [(&str, &str); 5] = [
    ("pass-through-to", "pass-through"),
    ("genesis-hash", "chain-id"),
    ("tls-cert", "tls-key"),
    ("tls-key", "tls-cert"),
    ("tls-client-ca", "tls-cert"),
];

/// Flags of a command that mean nothing unless another of its flags is given: the command, that flag,
/// the others. In a file or a variable they may be meant for another command; typed, they are a
/// mistake.
pub(crate) const NEEDS_OTHER: [(&str, &str, &[&str]); 1] = [("serve", "upstream", &FOLLOW)];

/// Flags whose values may hold keys of their own.
const SECRET: [&str; 7] =
    ["at", "from", "publish", "source", "upstream", "pass-through-to", "with"];

/// A flag of a command, and what else it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The command; none if all have it.
    pub(crate) command: Option<String>,
    /// What clap calls it.
    pub(crate) id: String,
    /// Without its dashes.
    pub(crate) flag: String,
    pub(crate) variable: String,
    /// The table of its key; none at the top of the file.
    pub(crate) table: Option<String>,
    /// None for what cannot stand in a file.
    pub(crate) key: Option<String>,
    pub(crate) kind: SettingKind,
    pub(crate) is_path: bool,
    pub(crate) is_secret: bool,
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingKind {
    /// True or false.
    Switch,
    /// One value.
    One,
    /// Any number of values.
    List,
}

impl SettingKind {
    fn of(arg: &Arg) -> Self {
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            Self::Switch
        } else if matches!(arg.get_action(), ArgAction::Append) {
            Self::List
        } else {
            Self::One
        }
    }
}

impl Setting {
    fn of(command: Option<&str>, arg: &Arg) -> Option<Self> {
        let flag = arg.get_long().filter(|flag| !["help", "version"].contains(flag))?;
        let is_own = command.is_some_and(|command| OWN.contains(&(command, flag)));
        let shared = TABLES.iter().find(|(_, flags)| flags.contains(&flag) && !is_own);
        let snake = flag.replace('-', "_");
        let command_table = command.map(|command| command.replace('-', "_"));
        let (table, variable) = match (shared, command_table) {
            (Some((table, _)), _) => ((*table).to_owned(), snake.clone()),
            (None, Some(table)) => {
                let variable = format!("{table}_{snake}");
                (table, variable)
            }
            (None, None) => (String::new(), snake.clone()),
        };
        let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        Some(Self {
            command: command.map(str::to_owned),
            id: arg.get_id().to_string(),
            flag: flag.to_owned(),
            variable: format!("QUIPU_{}", variable.to_ascii_uppercase()),
            table: Some(table).filter(|table| !table.is_empty()),
            key: Some(snake).filter(|_| !WITHOUT_KEY.contains(&(command, flag))),
            kind: SettingKind::of(arg),
            is_path,
            is_secret: SECRET.contains(&flag),
        })
    }

    /// Its key with its table; none if it has none.
    pub(crate) fn path(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(self.table.as_ref().map_or_else(|| key.clone(), |table| format!("{table}.{key}")))
    }

    /// Whether its flag is on the command line.
    pub(crate) fn is_typed(&self, matches: &ArgMatches) -> bool {
        matches.subcommand().is_some_and(|(command, own)| {
            self.command.as_deref().is_none_or(|it| it == command)
                && own.value_source(&self.id) == Some(ValueSource::CommandLine)
        })
    }

    /// Whether a value of this one counts for nothing if a stronger source has one of the other. The
    /// hash of a genesis is that of the chain which its own source names.
    pub(crate) fn gives_way_to(&self, other: &Self) -> bool {
        let is_of_chain = CHAINS.contains(&other.flag.as_str());
        self.excludes(other) || (self.flag == "genesis-hash" && is_of_chain)
    }

    /// Whether a value of the other leaves no room for one of this.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let has = |flags: &&[&str], flag: &str| flags.contains(&flag);
        self.flag != other.flag
            && EXCLUSIVE.iter().any(|flags| has(flags, &self.flag) && has(flags, &other.flag))
    }
}

/// Every flag of every command, in the order in which they are declared.
pub(crate) fn settings(root: &Command) -> Vec<Setting> {
    let of_all = root.get_arguments().filter_map(|arg| Setting::of(None, arg));
    let of_each = root.get_subcommands().flat_map(|command| {
        let flags = command.get_arguments();
        flags.filter_map(|arg| Setting::of(Some(command.get_name()), arg))
    });
    of_all.chain(of_each).collect()
}

/// Changes every argument that is a setting.
pub(crate) fn map_settings(root: Command, mut change: impl FnMut(&Setting, Arg) -> Arg) -> Command {
    let mut of = |command: Option<&str>, arg: Arg| match Setting::of(command, &arg) {
        Some(setting) => change(&setting, arg),
        None => arg,
    };
    let root = root.mut_args(|arg| of(None, arg));
    root.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| of(Some(&name), arg))
    })
}
