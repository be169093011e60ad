//! The tables `[[keys]]` of a `quipu.toml`: API keys, each by its hash.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::str::FromStr;

use rpc::{ApiKey, KeyHash, MethodPattern, Rates};

use super::document::{ConfigEntry, ConfigValue, DocumentError, RepeatedTable};
use crate::amounts::parse_some;

/// How the tables are called.
pub(super) const NAME: &str = "keys";

/// What stands in a table, until it is whole.
#[derive(Debug, Default)]
struct KeyEntries {
    name: Option<String>,
    hash: Option<KeyHash>,
    methods: Option<Vec<MethodPattern>>,
    rate: Option<NonZeroU32>,
    weight: Option<NonZeroU32>,
}

/// The keys of all tables.
pub(super) fn read_keys(tables: &[RepeatedTable]) -> Result<Vec<ApiKey>, DocumentError> {
    let mut keys = Vec::with_capacity(tables.len());
    let (mut names, mut hashes) = (BTreeSet::new(), BTreeMap::new());
    for table in tables {
        let wrong = |said| DocumentError { line: table.line, said };
        if table.name != NAME {
            return Err(wrong(format!("[[{}]] is not known; there is [[{NAME}]]", table.name)));
        }
        let key = read_key(table)?;
        if !names.insert(key.name.clone()) {
            return Err(wrong(format!("keys.name: {:?} stands there twice", key.name)));
        }
        if let Some(other) = hashes.insert(key.hash, key.name.clone()) {
            let said = format!("keys.hash: {other:?} and {:?} have the same", key.name);
            return Err(wrong(said));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn read_key(table: &RepeatedTable) -> Result<ApiKey, DocumentError> {
    let mut found = KeyEntries::default();
    for entry in &table.entries {
        let read = match entry.key.as_str() {
            "name" => text(entry).map(|name| found.name = Some(name.to_owned())),
            "hash" => parsed(entry).map(|hash| found.hash = Some(hash)),
            "methods" => methods(entry).map(|methods| found.methods = Some(methods)),
            "rate" => number(entry).map(|rate| found.rate = Some(rate)),
            "weight" => number(entry).map(|weight| found.weight = Some(weight)),
            _ => Err("there is no such key; there are name, hash, methods, rate and weight".into()),
        };
        read.map_err(|said| DocumentError {
            line: entry.line,
            said: format!("{NAME}.{}: {said}", entry.key),
        })?;
    }
    let missing = |key: &str| DocumentError {
        line: table.line,
        said: format!("[[{NAME}]] needs a {key}: `quipu key new` makes both name and hash"),
    };
    let KeyEntries { name, hash, methods, rate, weight } = found;
    Ok(ApiKey {
        name: name.filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?,
        hash: hash.ok_or_else(|| missing("hash"))?,
        methods,
        rates: Rates { calls: rate, weight },
    })
}

fn text(entry: &ConfigEntry) -> Result<&str, String> {
    match &entry.value {
        ConfigValue::One(text) => Ok(text),
        ConfigValue::Switch(_) | ConfigValue::List(_) => Err("one text is wanted".to_owned()),
    }
}

fn parsed<T: FromStr<Err: ToString>>(entry: &ConfigEntry) -> Result<T, String> {
    text(entry)?.parse().map_err(|error: T::Err| error.to_string())
}

fn number(entry: &ConfigEntry) -> Result<NonZeroU32, String> {
    parse_some(text(entry)?)
}

fn methods(entry: &ConfigEntry) -> Result<Vec<MethodPattern>, String> {
    let texts: &[String] = match &entry.value {
        ConfigValue::One(text) => std::slice::from_ref(text),
        ConfigValue::List(texts) => texts,
        ConfigValue::Switch(_) => &[],
    };
    if texts.is_empty() {
        return Err("name the methods, or leave this out to allow all".to_owned());
    }
    let parse = |text: &String| text.parse().map_err(|error| format!("{text}: {error}"));
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::super::document::read_document;
    use super::*;

    const HASH: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(text: &str) -> Result<Vec<ApiKey>, DocumentError> {
        read_keys(&read_document(&text.replace("HASH", HASH)).unwrap().repeated)
    }

    #[test]
    fn a_key_has_a_name_and_a_hash_and_the_rest_may_be_left_out() {
        let keys = read(
            "[log]\n\n[[keys]]\nname = \"a\"\nhash = \"HASH\"\n\n[[keys]]\nname = \"b\"\n\
             hash = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\n\
             methods = [\"eth_*\", \"net_version\"]\nrate = 5\nweight = 100\n",
        )
        .unwrap();
        let [a, b] = keys.as_slice() else { panic!("{keys:?}") };
        assert_eq!((a.name.as_str(), a.hash.to_string().as_str()), ("a", HASH));
        assert!(a.methods.is_none() && a.rates.is_unlimited());
        let methods = b.methods.as_ref().unwrap().iter().map(ToString::to_string);
        assert_eq!(methods.collect::<Vec<_>>(), ["eth_*", "net_version"]);
        assert_eq!((b.rates.calls, b.rates.weight), (NonZeroU32::new(5), NonZeroU32::new(100)));
    }

    /// 10,000 keys took 21 seconds, and twice as many four times as long.
    #[test]
    fn the_work_of_reading_keys_grows_with_their_number_and_not_with_its_square() {
        let work = |count: usize| {
            let table = |index| {
                let hash = KeyHash::of(&format!("{index}"));
                format!("[[keys]]\nname = \"{index}\"\nhash = \"{hash}\"\n")
            };
            let text: String = (0..count).map(table).collect();
            let begun = clock_gettime(ClockId::ThreadCPUTime);
            assert_eq!(read(&text).unwrap().len(), count);
            let ended = clock_gettime(ClockId::ThreadCPUTime);
            (ended.tv_sec - begun.tv_sec) * 1_000_000_000 + ended.tv_nsec - begun.tv_nsec
        };
        // Its square would be 256 times as much.
        let (few, many) = (work(1000), work(16_000));
        assert!(many < few * 80, "{many} ns for 16,000, {few} ns for 1,000");
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_line_and_without_its_text() {
        for (text, line, part) in [
            ("\n[[key]]\n", 2, "[[key]] is not known; there is [[keys]]"),
            ("[[keys]]\nname = \"a\"\n", 1, "needs a hash: `quipu key new` makes"),
            ("[[keys]]\nhash = \"HASH\"\n", 1, "needs a name"),
            ("[[keys]]\nname = \"\"\nhash = \"HASH\"\n", 1, "needs a name"),
            (
                "[[keys]]\nname = \"a\"\nhash = \"qk_secret\"\n",
                3,
                "keys.hash: write sha256: and 64",
            ),
            ("[[keys]]\nname = \"a\"\nkey = \"secret\"\n", 3, "keys.key: there is no such key"),
            ("[[keys]]\nrate = 0\n", 2, "keys.rate: 0 is too small"),
            ("[[keys]]\nrate = [1]\n", 2, "keys.rate: one text is wanted"),
            ("[[keys]]\nmethods = []\n", 2, "keys.methods: name the methods"),
            ("[[keys]]\nmethods = [\"eth call\"]\n", 2, "keys.methods: eth call: write a method"),
            (
                "[[keys]]\nname = \"a\"\nhash = \"HASH\"\n[[keys]]\nname = \"a\"\nhash = \"HASH\"\n",
                4,
                "keys.name: \"a\" stands there twice",
            ),
            (
                "[[keys]]\nname = \"a\"\nhash = \"HASH\"\n[[keys]]\nname = \"b\"\nhash = \"HASH\"\n",
                4,
                "keys.hash: \"a\" and \"b\" have the same",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.line == line && error.said.contains(part), "{text}: {error:?}");
            assert!(!error.said.contains("secret"), "{text}: {error:?}");
        }
    }
}
