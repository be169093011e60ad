//! Paths of Rust sources: which names a file takes from where.

/// The code of a file: without comments that fill a line, and without the tests at its end.
pub(super) fn code_of(text: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().take(code_lines(text)).filter(is_code).collect::<Vec<_>>().join("\n")
}

/// Lines before the tests at the end of a file. A module of tests in a file of its own is one line, and
/// what comes after it is code.
pub(super) fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| {
        let [mark, module] = pair else { return false };
        is_test_mark(mark) && module.starts_with("mod ") && module.ends_with('{')
    };
    lines.windows(2).position(is_tests).unwrap_or(lines.len())
}

fn is_test_mark(line: &str) -> bool {
    line.trim().starts_with("#[cfg(") && line.contains("test")
}

/// The modules that only tests have.
pub(super) fn test_modules(code: &str) -> Vec<&str> {
    let mut lines = code.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let declared = lines.peek().filter(|_| is_test_mark(line)).and_then(|next| {
            next.trim().strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name)
        });
        found.extend(declared);
    }
    found
}

/// Every path that begins with `crate`, `super` or `self`, wherever it is, each with all of its ends.
pub(super) fn named_paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            let is_inside = before.is_some_and(|it| is_word(it) || it == ':');
            if !is_inside {
                UseTree { rest: code.get(at..).unwrap_or_default() }.read(&[], &mut found);
            }
        }
    }
    found
}

/// Every path of a `use`, each with all of its ends.
pub(super) fn used_paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ") {
        let line = code.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        let is_statement = line.trim().is_empty() || line.trim().starts_with("pub");
        if is_statement {
            let rest = code.get(at.saturating_add(word.len())..).unwrap_or_default();
            UseTree { rest }.read(&[], &mut found);
        }
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// A tree of paths, as far as it is not read yet.
struct UseTree<'a> {
    rest: &'a str,
}

impl<'a> UseTree<'a> {
    /// Reads one path, with all of its ends if it has several.
    fn read(&mut self, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) {
        let mut path = before.to_vec();
        loop {
            if self.takes("{") {
                return self.read_group(&path, found);
            }
            let name = self.word();
            if name.is_empty() {
                self.takes("*");
                return found.push(path);
            }
            path.push(name);
            if !self.takes("::") {
                if self.takes("as ") {
                    self.word();
                }
                return found.push(path);
            }
        }
    }

    fn read_group(&mut self, path: &[&'a str], found: &mut Vec<Vec<&'a str>>) {
        while !self.takes("}") {
            self.read(path, found);
            if !self.takes(",") {
                self.takes("}");
                return;
            }
        }
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = if word.is_empty() { self.rest } else { rest };
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(paths: Vec<Vec<&str>>) -> Vec<String> {
        paths.into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn every_end_of_a_path_is_found() {
        let code = "use crate::a::{\n    B, c::{self, D as E},\n};\nlet x = super::f::g(1);";
        let expected = ["crate::a::B", "crate::a::c::self", "crate::a::c::D", "super::f::g"];
        assert_eq!(joined(named_paths(code)), expected);
        let code = "pub(crate) use a::{B, C};\n    use d::*;\nreuse e;";
        assert_eq!(joined(used_paths(code)), ["a::B", "a::C", "d"]);
        assert_eq!(joined(named_paths("{crate::a::{B")), ["crate::a::B"]);
    }

    #[test]
    fn comments_and_tests_are_no_code() {
        let text =
            "//! crate::a\nuse crate::b;\n\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n";
        assert_eq!(code_of(text), "use crate::b;\n");
        let text = "#[cfg(test)]\nmod c;\n#[cfg(any(test, fuzzing))]\npub(crate) mod d;\nmod e;";
        assert_eq!(test_modules(&code_of(text)), ["c", "d"]);
    }
}
