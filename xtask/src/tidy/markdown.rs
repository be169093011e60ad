//! Rules for documents: what they point at is there, and their lines are short.

/// What builds and runs leave behind is rightly absent from a fresh checkout.
const GENERATED: &[&str] = &["target", "fuzz/target", "fuzz/artifacts"];

/// Columns of a line of prose. Tables and code are as wide as they are.
const COLUMNS_MAX: usize = 100;

/// The changelog may name what a later change removed.
const HISTORY: &str = "CHANGELOG.md";

/// The repository, as far as documents point into it.
pub(super) trait LinkTargets {
    /// Whether a file or folder is there.
    fn exists(&self, path: &str) -> bool;
    /// A document's text.
    fn document(&self, path: &str) -> Option<String>;
}

pub(super) fn check(
    path: &str,
    text: &str,
    targets: &impl LinkTargets,
    report: &mut impl FnMut(usize, String),
) {
    let exists = &|path: &str| targets.exists(path);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut is_fenced = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        if is_span_broken(line) {
            report(number, "a code span is broken over lines: keep it on one".to_owned());
        }
        if is_overlong(line) {
            report(number, format!("more than {COLUMNS_MAX} columns of prose: wrap it"));
        }
        for link in find_links(line) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let resolved = if target.is_empty() {
                Some(path.to_owned())
            } else {
                resolve(folder, target).filter(|resolved| exists(resolved))
            };
            let Some(resolved) = resolved else {
                report(number, format!("dead link: {target}"));
                continue;
            };
            if anchor.is_empty() {
                continue;
            }
            let document = targets.document(&resolved);
            if document.is_some_and(|text| !has_heading(&text, anchor)) {
                report(number, format!("no such heading: {link}"));
            }
        }
        if path == HISTORY {
            continue;
        }
        for code in line.split('`').skip(1).step_by(2) {
            let is_dead = is_path(code, exists) && !exists(code.trim_end_matches('/'));
            if is_dead {
                report(number, format!("dead path: {code}"));
            }
        }
    }
}

/// Whether a code span begins on a line and does not end there: what it names could not be checked.
fn is_span_broken(line: &str) -> bool {
    !line.trim_start().starts_with("```") && line.matches('`').count() % 2 == 1
}

/// Whether a line of prose could be broken and is too long. Headings cannot be.
fn is_overlong(line: &str) -> bool {
    let is_prose = !line.starts_with(['|', '#']);
    let columns = line.chars().count();
    // A long word that begins a line cannot be broken.
    let words = line.trim_start_matches([' ', '-', '(', '`']);
    is_prose && columns > COLUMNS_MAX && words.contains(' ')
}

/// Whether a heading of a document has this anchor.
fn has_heading(text: &str, anchor: &str) -> bool {
    let mut is_fenced = false;
    text.lines().any(|line| {
        is_fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        !is_fenced && title.len() < line.len() && anchor_of(title.trim()) == anchor
    })
}

/// The anchor of a heading: its letters and digits in lower case, with hyphens for blanks.
fn anchor_of(title: &str) -> String {
    let is_kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    title.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")
}

/// Targets of `[text](target)` and `[text]: target` that point into the repository.
fn find_links(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let reference =
        line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    let outside = ["http://", "https://", "mailto:"];
    inline
        .chain(reference)
        .filter(|target| !outside.iter().any(|prefix| target.starts_with(prefix)))
        .filter_map(|target| target.split(' ').next())
        .collect()
}

/// The path from the root of a link in a file of `folder`, or `None` if it leaves the repository.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a piece of code claims to be a path of the repository: it has a folder of the root in
/// front and no character of a pattern, placeholder or command in it.
fn is_path(code: &str, exists: &impl Fn(&str) -> bool) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    let is_generated = |code: &str| {
        GENERATED.iter().any(|folder| {
            code.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let Some((first, _)) = code.split_once('/') else { return false };
    !first.is_empty()
        && !first.starts_with("..")
        && code.chars().all(is_plain)
        && !is_generated(code)
        && exists(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One document, and beside it another with one heading.
    struct TwoDocuments<'a>(&'a str, &'a str);

    impl LinkTargets for TwoDocuments<'_> {
        fn exists(&self, path: &str) -> bool {
            ["docs", "docs/format.md", "crates", "crates/chain", "README.md"].contains(&path)
        }

        fn document(&self, path: &str) -> Option<String> {
            let Self(own, text) = self;
            (path == *own).then(|| (*text).to_owned()).or_else(|| Some("## The `pages`: 1".into()))
        }
    }

    fn check_reports(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut reports = Vec::new();
        check(path, text, &TwoDocuments(path, text), &mut |line, message| {
            reports.push((line, message));
        });
        let expected: Vec<(usize, String)> =
            expected.iter().map(|(line, message)| (*line, (*message).to_owned())).collect();
        assert_eq!(reports, expected);
    }

    #[test]
    fn links_are_resolved_from_their_file() {
        check_reports("README.md", "[a](docs/format.md#the-pages-1) [b](https://example.org)", &[]);
        let gone = "no such heading: docs/format.md#pages";
        check_reports("README.md", "[a](docs/format.md#pages)", &[(1, gone)]);
        check_reports(
            "README.md",
            "# A, b\n[a](#a-b)\n[c](#c)\n```\n# c\n```",
            &[(3, "no such heading: #c")],
        );
        check_reports("docs/format.md", "[a](../README.md) [b](format.md)\n[c]: ./format.md", &[]);
        check_reports("README.md", "\n[a](format.md)", &[(2, "dead link: format.md")]);
        check_reports("README.md", "[a]: gone.md", &[(1, "dead link: gone.md")]);
        check_reports("README.md", "[a](../beside)", &[(1, "dead link: ../beside")]);
    }

    #[test]
    fn paths_in_code_are_looked_up_from_the_root() {
        check_reports("docs/format.md", "`crates/chain`, `docs/`, `a/b`, `crates/*/src`", &[]);
        check_reports("README.md", "see `crates/chian`", &[(1, "dead path: crates/chian")]);
        check_reports("CHANGELOG.md", "removed `crates/chian`", &[]);
        check_reports("README.md", "```\n`crates/chian` [a](b)\n```", &[]);
    }

    #[test]
    fn a_code_span_that_is_broken_over_lines_is_reported() {
        let told = "a code span is broken over lines: keep it on one";
        check_reports("README.md", "run `cargo\ntest` now", &[(1, told), (2, told)]);
        check_reports("README.md", "```\n` is a letter here\n```\nrun `cargo test`", &[]);
    }

    #[test]
    fn lines_of_prose_are_at_most_100_columns() {
        let (long, word) = ("word ".repeat(21), "w".repeat(110));
        let told = [(1, "more than 100 columns of prose: wrap it")];
        check_reports("README.md", long.trim_end(), &told);
        check_reports("README.md", &format!("- {}", long.trim_end()), &told);
        check_reports("README.md", &format!("```\n{long}\n```\n| {long} |\n## {long}"), &[]);
        check_reports("README.md", &format!("{word}\n- {word}\n(`{word}`)."), &[]);
    }
}
