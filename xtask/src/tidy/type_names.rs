//! One name, one type: no two types of the repository have the same name.
//!
//! Knows: where types are defined. Code of tests is left alone.
//! Never knows: modules or visibility: a reader searches for a name, and finds what it stands for.

use std::collections::BTreeMap;

use super::paths::{code_of, test_modules};

/// Keywords after which a type's name is given.
const NAMING: &[&str] = &["struct", "enum", "trait", "union", "type"];

/// Reports every name that is given twice. `sources` are the Rust files of the repository, by path.
pub(super) fn check(sources: &[(String, String)], report: &mut impl FnMut(&str, String)) {
    let tests: Vec<String> =
        sources.iter().flat_map(|(path, text)| test_files(path, text)).collect();
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    for (path, text) in sources {
        let is_test = tests.iter().any(|test| path.starts_with(test));
        if is_test || !path.contains("/src/") {
            continue;
        }
        for name in code_of(text).lines().filter_map(defined_name) {
            if let Some(other) = first.get(name) {
                report(path, format!("`{name}` is defined in {other} already: name one anew"));
            } else {
                first.insert(name.to_owned(), path);
            }
        }
    }
}

/// Where the modules that a file declares for tests alone may be.
fn test_files(path: &str, text: &str) -> Vec<String> {
    let folder = match path.rsplit_once('/') {
        Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
        _ => path.trim_end_matches(".rs"),
    };
    let names = test_modules(text).into_iter();
    names.flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]).collect()
}

/// The type that a line defines, unless it is one inside of a trait or an implementation.
fn defined_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
    let keyword = words.next().filter(|word| NAMING.contains(word))?;
    if keyword == "type" && line.starts_with(' ') {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(name.get(..end.unwrap_or(name.len())).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sources: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<(String, String)> =
            sources.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let mut found = Vec::new();
        check(&sources, &mut |path, message| found.push(format!("{path}: {message}")));
        found
    }

    #[test]
    fn a_name_that_two_types_have_is_reported() {
        let told = found(&[
            ("crates/a/src/lib.rs", "pub struct Place<'a>(&'a u8);\nenum Other { Place }\n"),
            ("crates/b/src/lib.rs", "pub(crate) enum Place {\n    One,\n}\n"),
        ]);
        let expected = "crates/b/src/lib.rs: `Place` is defined in crates/a/src/lib.rs already: \
                        name one anew";
        assert_eq!(told, [expected]);
        assert_eq!(found(&[("a/src/x.rs", "type Place = u8;\ntrait Place: Sync {}\n")]).len(), 1);
    }

    #[test]
    fn tests_comments_and_associated_types_are_left_alone() {
        let lib = "#[cfg(test)]\nmod model;\nstruct Place;\nimpl Iterator for X {\n    type Item = u8;\n}\n";
        let inner = "impl Iterator for Y {\n    type Item = u8;\n}\n// struct Place;\n\
                     #[cfg(test)]\nmod tests {\n    struct Place;\n}\n";
        let told = found(&[
            ("a/src/lib.rs", lib),
            ("a/src/model.rs", "struct Place;"),
            ("a/src/model/deep.rs", "struct Place;"),
            ("a/src/inner.rs", inner),
            ("a/tests/it/main.rs", "struct Place;"),
        ]);
        assert!(told.is_empty(), "{told:?}");
    }
}
