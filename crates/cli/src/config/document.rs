//! A `quipu.toml` as it stands: which keys it has, with what values, on which lines.
//!
//! Knows: TOML, and that a configuration is tables of plain values and lists of them.
//! Never knows: which keys there are.

use std::ops::Range;

use thiserror::Error;
use toml_edit::{Document, Item, Key, Value};

/// One key and what it is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The table that it stands in; none at the top of the file.
    pub(crate) table: Option<String>,
    pub(crate) key: String,
    pub(crate) value: ConfigValue,
    /// Where it stands, from 1.
    pub(crate) line: usize,
}

/// A value, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigValue {
    Switch(bool),
    One(String),
    List(Vec<String>),
}

/// Why a text is no configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {said}")]
pub(crate) struct DocumentError {
    pub(crate) line: usize,
    pub(crate) said: String,
}

/// Takes a file apart.
pub(crate) fn read_entries(text: &str) -> Result<Vec<ConfigEntry>, DocumentError> {
    let line = |span: Option<Range<usize>>| line_of(text, span.map_or(0, |span| span.start));
    let document = Document::parse(text).map_err(|error| DocumentError {
        line: line(error.span()),
        said: error.message().trim_end().replace('\n', "; "),
    })?;
    let mut entries = Vec::new();
    for (key, item) in document.as_table() {
        let at = line(document.key(key).and_then(Key::span).or_else(|| item.span()));
        match item {
            Item::None => {}
            Item::Value(Value::InlineTable(table)) => {
                for (inner, value) in table {
                    entries.push(entry(Some(key), inner, value, at)?);
                }
            }
            Item::Value(value) => entries.push(entry(None, key, value, at)?),
            Item::Table(table) => {
                for (inner, item) in table {
                    let at = line(table.key(inner).and_then(Key::span).or_else(|| item.span()));
                    let Item::Value(value) = item else {
                        let said =
                            format!("{key}.{inner} is a table, and tables have none in them");
                        return Err(DocumentError { line: at, said });
                    };
                    entries.push(entry(Some(key), inner, value, at)?);
                }
            }
            Item::ArrayOfTables(_) => {
                return Err(DocumentError { line: at, said: format!("[[{key}]] is not known") });
            }
        }
    }
    Ok(entries)
}

fn entry(
    table: Option<&str>,
    key: &str,
    value: &Value,
    line: usize,
) -> Result<ConfigEntry, DocumentError> {
    let wrong = || DocumentError {
        line,
        said: format!(
            "{key}: a value is a text, a number, true or false, or a list of texts or numbers"
        ),
    };
    let value = match value {
        Value::Boolean(value) => ConfigValue::Switch(*value.value()),
        Value::Array(list) => {
            ConfigValue::List(list.iter().map(scalar).collect::<Option<_>>().ok_or_else(wrong)?)
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Datetime(_)
        | Value::InlineTable(_) => ConfigValue::One(scalar(value).ok_or_else(wrong)?),
    };
    Ok(ConfigEntry { table: table.map(str::to_owned), key: key.to_owned(), value, line })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

/// The line of a byte, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let entries = read_entries(text).unwrap();
        let shown = entries.into_iter().map(|ConfigEntry { table, key, value, line }| {
            format!("{line} {}.{key} {value:?}", table.unwrap_or_default())
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{text}");
    }

    fn check_refused(text: &str, line: usize, part: &str) {
        let error = read_entries(text).unwrap_err();
        assert!(error.line == line && error.said.contains(part), "{text}: {error:?}");
    }

    #[test]
    fn entries_have_their_table_and_their_line() {
        check("", &[]);
        let text = "# said\ndata_dir = \"x\"\n\n[limits]\nstreams_max = 7\nidle_timeout = 1.5\n";
        check(
            text,
            &[
                "2 .data_dir One(\"x\")",
                "5 limits.streams_max One(\"7\")",
                "6 limits.idle_timeout One(\"1.5\")",
            ],
        );
        check(
            "follow.upstream = [\"a\", \"b\"]\nlog = { quiet = true }\n",
            &["1 follow.upstream List([\"a\", \"b\"])", "2 log.quiet Switch(true)"],
        );
    }

    #[test]
    fn what_is_no_configuration_is_refused_with_its_line() {
        check_refused("a = 1\na = 2\n", 2, "duplicate");
        check_refused("x = \n", 1, "");
        check_refused("[a]\n[a.b]\nc = 1\n", 2, "tables have none in them");
        check_refused("\n[[keys]]\nname = \"x\"\n", 2, "[[keys]] is not known");
        check_refused("a = 2020-01-01\n", 1, "a value is a text");
        check_refused("a = [[1]]\n", 1, "a value is a text");
    }
}
