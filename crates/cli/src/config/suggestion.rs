//! What is suggested for a flag that nobody knows.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::settings::Setting;

/// The same error, with the flags of the command that was typed which end as the unknown one, if there
/// are any.
pub(super) fn suggest_by_ending(
    mut error: clap::Error,
    known: &[Setting],
    typed: &[OsString],
) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if error.kind() == ErrorKind::UnknownArgument => text,
        Some(_) | None => return error,
    };
    let Some(name) = unknown.strip_prefix("--") else { return error };
    let ending = format!("-{name}");
    let is_command =
        |text: &&OsString| known.iter().any(|it| it.command.as_deref() == text.to_str());
    let command = typed.iter().skip(1).find(is_command).and_then(|text| text.to_str());
    let own = known.iter().filter(|it| it.command.is_none() || it.command.as_deref() == command);
    let is_meant = |it: &&Setting| match name {
        "port" => it.flag == "listen",
        "host" => it.flag == "listen" || it.flag.ends_with(&ending),
        _ => it.flag.ends_with(&ending),
    };
    let alike = own.filter(is_meant).map(|it| format!("--{}", it.flag));
    let alike: Vec<String> = alike.collect();
    if !alike.is_empty() {
        error.insert(ContextKind::SuggestedArg, ContextValue::Strings(alike));
        // It is written for the flag that clap would have suggested.
        error.remove(ContextKind::Usage);
    }
    error
}
