//! Rules for Rust sources.

use std::path::Path;

/// A file beyond this is several files. The test module at its end does not count.
const LINES_MAX: usize = 600;

/// Words that say nothing about what a module or type is for.
const BANNED: &[&str] =
    &["util", "utils", "common", "misc", "types", "helper", "helpers", "manager", "info", "v2"];

/// Keywords after which a name is given.
const NAMING: &[&str] = &["mod", "struct", "enum", "trait", "union", "type"];

pub(super) fn check(path: &str, text: &str, report: &mut impl FnMut(usize, String)) {
    for name in Path::new(path).iter().filter_map(|name| name.to_str()) {
        if let Some(word) = find_banned(name.trim_end_matches(".rs")) {
            report(1, format!("`{name}`: `{word}` says nothing; name what it is for"));
        }
    }
    let count = count_lines(path, text);
    if count > LINES_MAX {
        report(LINES_MAX, format!("{count} lines besides tests, at most {LINES_MAX}: split it"));
    }
    for (line, number) in text.lines().zip(1..) {
        if line.contains('\t') {
            report(number, "a tab; write spaces, or \\t in a string".to_owned());
        }
        if line.ends_with(char::is_whitespace) {
            report(number, "whitespace at the end of the line".to_owned());
        }
        if let Some((name, word)) = find_banned_definition(line) {
            report(number, format!("`{name}`: `{word}` says nothing; name what it is for"));
        }
    }
}

/// Lines before the test module; files of tests have none.
fn count_lines(path: &str, text: &str) -> usize {
    let is_test = path.ends_with("/tests.rs") || path.split('/').any(|part| part == "tests");
    if is_test {
        return 0;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_test_module =
        |pair: &[&str]| matches!(pair, ["#[cfg(test)]", next] if next.starts_with("mod "));
    lines.windows(2).position(is_test_module).unwrap_or(lines.len())
}

/// A banned word in a definition, with the name that has it.
fn find_banned_definition(line: &str) -> Option<(&str, &'static str)> {
    let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
    let keyword = words.next()?;
    if !NAMING.contains(&keyword) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (name, _) = name.split_at(end.unwrap_or(name.len()));
    find_banned(name).map(|word| (name, word))
}

/// A banned word among the parts of a `snake_case` or `CamelCase` name.
fn find_banned(name: &str) -> Option<&'static str> {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    let mut parts = snake.split(['_', '-', '.']);
    parts.find_map(|part| BANNED.iter().copied().find(|banned| part == *banned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected` has one `line: word` for each report, where `word` occurs in its message.
    fn check_reports(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut reports = Vec::new();
        check(path, text, &mut |line, message| reports.push((line, message)));
        assert_eq!(reports.len(), expected.len(), "{reports:?}");
        for ((line, message), (line_expected, word)) in reports.iter().zip(expected) {
            assert_eq!(line, line_expected, "{message}");
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        let text =
            "//! K.\npub(crate) struct BlockInfo;\nmod string_utils {}\ntype Information = u8;";
        check_reports("src/a.rs", text, &[(2, "info"), (3, "utils")]);
        check_reports("src/types/a.rs", "//! K.", &[(1, "types")]);
        check_reports("src/hash_util.rs", "//! K.", &[(1, "util")]);
        check_reports("src/v2.rs", "//! K.", &[(1, "v2")]);
        check_reports("src/typed.rs", "//! K.\nstruct Common<T>(T);", &[(2, "common")]);
    }

    #[test]
    fn white_space_that_nobody_sees_is_refused() {
        check_reports("src/a.rs", "//! K.\nmod a; \nmod\tb;", &[(2, "end of"), (3, "tab")]);
    }

    #[test]
    fn a_long_file_is_refused_unless_it_is_tests() {
        let long = |count| format!("//! K.\n{}", "fn a() {}\n".repeat(count));
        check_reports("src/a.rs", &long(LINES_MAX - 1), &[]);
        check_reports("src/a.rs", &long(LINES_MAX), &[(LINES_MAX, "601 lines")]);
        check_reports("src/a/tests.rs", &long(LINES_MAX), &[]);
        check_reports("tests/it/a.rs", &long(LINES_MAX), &[]);
        let tested = format!("//! K.\n#[cfg(test)]\nmod tests {{\n{}}}", "\n".repeat(LINES_MAX));
        check_reports("src/a.rs", &tested, &[]);
    }
}
