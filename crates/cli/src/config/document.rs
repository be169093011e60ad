//! A `quipu.toml` as it stands: which keys it has, with what values, on which lines.

use std::ops::Range;

use thiserror::Error;
use toml_edit::{Document, Item, Key, Table, Value};

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

/// A file taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigDocument {
    pub(crate) entries: Vec<ConfigEntry>,
    /// Tables that may stand there several times: `[[keys]]`.
    pub(crate) repeated: Vec<RepeatedTable>,
}

/// One of several tables of the same name.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedTable {
    pub(crate) name: String,
    pub(crate) entries: Vec<ConfigEntry>,
    /// Where it begins, from 1.
    pub(crate) line: usize,
}

/// Takes a file apart.
pub(crate) fn read_document(text: &str) -> Result<ConfigDocument, DocumentError> {
    // Found once: to count the lines before each of many entries takes the square of the file's length.
    let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |span: Option<Range<usize>>| {
        let begin = span.map_or(0, |span| span.start);
        breaks.partition_point(|at| *at < begin).saturating_add(1)
    };
    let document = Document::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let said = error.message().trim_end().replace('\n', "; ");
        DocumentError { line: line_of(text, span.start), said: explain(text, span, &said) }
    })?;
    let ConfigDocument { mut entries, mut repeated } = ConfigDocument::default();
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
            Item::Table(table) => entries.extend(table_entries(key, table, line)?),
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    let (name, entries) = (key.to_owned(), table_entries(key, table, line)?);
                    repeated.push(RepeatedTable { name, entries, line: line(table.span()) });
                }
            }
        }
    }
    Ok(ConfigDocument { entries, repeated })
}

fn table_entries(
    name: &str,
    table: &Table,
    line: impl Fn(Option<Range<usize>>) -> usize,
) -> Result<Vec<ConfigEntry>, DocumentError> {
    let entries = table.iter().map(|(key, item)| {
        let at = line(table.key(key).and_then(Key::span).or_else(|| item.span()));
        let Item::Value(value) = item else {
            let said = format!("{name}.{key} is a table, and tables have none in them");
            return Err(DocumentError { line: at, said });
        };
        entry(Some(name), key, value, at)
    });
    entries.collect()
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

/// What is wrong where the parser stopped: its words, the key, and what is wanted. Values are not shown:
/// addresses hold keys.
fn explain(text: &str, span: Range<usize>, said: &str) -> String {
    let line = text.lines().nth(line_of(text, span.start).saturating_sub(1)).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| format!("{}: ", key.trim())).unwrap_or_default();
    match said {
        "duplicate key" => explain_twice(text, span),
        "integer number overflowed" => format!(
            "{key}the number is too large without quotes: write it in quotes, such as seed = \
             \"18446744073709551615\""
        ),
        _ => format!(
            "{key}{said}; write KEY = VALUE, such as threads = 4 or network = \"mainnet\", and \
             [TABLE] above the keys of a table"
        ),
    }
}

/// A key or a table that stands there twice, and where it stood first, if that is on another line.
fn explain_twice(text: &str, span: Range<usize>) -> String {
    let name = text.get(span.clone()).unwrap_or_default().trim();
    let last = line_of(text, span.start);
    let line = text.lines().nth(last.saturating_sub(1)).unwrap_or_default();
    let before: Vec<&str> = text.lines().take(last.saturating_sub(1)).map(str::trim).collect();
    let (what, first) = if line.trim_start().starts_with('[') {
        let header = format!("[{name}]");
        (header.clone(), before.iter().position(|line| line.starts_with(&header)))
    } else {
        let table = before.iter().rposition(|line| line.starts_with('[')).unwrap_or_default();
        let is_same = |line: &&str| line.split_once('=').is_some_and(|(key, _)| key.trim() == name);
        let first = before.iter().skip(table).position(is_same);
        (name.to_owned(), first.map(|position| position.saturating_add(table)))
    };
    let first = first.map(|position| format!(", first in line {}", position.saturating_add(1)));
    format!("{what} stands there twice{}: remove one of the two", first.unwrap_or_default())
}

/// The line of a byte, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let entries = read_document(text).unwrap().entries;
        let shown = entries.into_iter().map(|ConfigEntry { table, key, value, line }| {
            format!("{line} {}.{key} {value:?}", table.unwrap_or_default())
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{text}");
    }

    fn check_refused(text: &str, line: usize, part: &str) {
        let error = read_document(text).unwrap_err();
        assert!(error.line == line && error.said.contains(part), "{text}: {error:?}");
        assert!(!error.said.contains("secret"), "{text}: {error:?}");
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
    fn tables_may_stand_there_several_times() {
        let text = "[[keys]]\nname = \"x\"\n[log]\nquiet = true\n\n[[keys]]\n[[other]]\na = 1\n";
        let document = read_document(text).unwrap();
        let shown = document.repeated.iter().map(|it| (it.line, &*it.name, it.entries.len()));
        let expected = [(1, "keys", 1), (6, "keys", 0), (7, "other", 1)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(document.entries.len(), 1);
    }

    #[test]
    fn what_is_no_configuration_is_refused_with_its_line() {
        check_refused("a = 1\na = 2\n", 2, "a stands there twice, first in line 1: remove one");
        let text = "a = 1\n[log]\n# a\nb = 2\n a= 3\n\na = 4\n";
        check_refused(text, 7, "a stands there twice, first in line 5: remove one");
        let text = "[log]\na = 1\n[server]\n[log] # again\n";
        check_refused(text, 4, "[log] stands there twice, first in line 1: remove one");
        check_refused("log = { a = 1, a = 2 }\n", 1, "a stands there twice: remove one");
        check_refused("x = \n", 1, "x: string values must be quoted");
        check_refused("x = secret\n", 1, "write KEY = VALUE, such as threads = 4");
        check_refused("x = 18446744073709551615\n", 1, "x: the number is too large without quotes");
        check_refused("a = 1\nsecret\n", 2, "[TABLE] above the keys of a table");
        check_refused("[a]\n[a.b]\nc = 1\n", 2, "tables have none in them");
        check_refused("[[a]]\n[a.b]\nc = 1\n", 2, "tables have none in them");
        check_refused("a = 2020-01-01\n", 1, "a value is a text");
        check_refused("a = [[1]]\n", 1, "a value is a text");
    }
}
