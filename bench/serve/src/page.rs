//! Pages of the documentation that a run writes a section of.

use std::fmt::Write as _;

/// Columns of prose, as `cargo xtask tidy` wants them. Tables are as wide as they are.
const COLUMNS_MAX: usize = 100;

/// The page with this section between two lines; `None` if they are not there.
#[must_use]
pub fn replace_between(page: &str, [begin, end]: [&str; 2], section: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", section.trim()))
}

/// The text with its prose broken into lines. What continues an item of a list is indented as it is.
#[must_use]
pub fn wrap(text: &str) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut columns = 0_usize;
        for word in if line.starts_with('|') { vec![line.to_owned()] } else { words(line) } {
            let length = word.chars().count();
            if columns > 0 && columns.saturating_add(1).saturating_add(length) > COLUMNS_MAX {
                let _ = write!(wrapped, "\n{indent}{word}");
                columns = indent.len().saturating_add(length);
                continue;
            }
            let space = if columns > 0 { " " } else { "" };
            let _ = write!(wrapped, "{space}{word}");
            columns = columns.saturating_add(space.len()).saturating_add(length);
        }
        wrapped.push('\n');
    }
    wrapped
}

/// What a line may be broken between: its words, where a code span is part of one.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_in_code = false;
    for piece in line.split(' ') {
        match words.last_mut().filter(|_| is_in_code) {
            Some(word) => *word = format!("{word} {piece}"),
            None => words.push(piece.to_owned()),
        }
        is_in_code ^= piece.matches('`').count() % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_lines_is_replaced() {
        let lines = ["<!-- begin -->", "<!-- end -->"];
        let [begin, end] = lines;
        let page = format!("# A\n{begin}\nold\n{end}\nrest\n");
        let expected = format!("# A\n{begin}\nnew\n{end}\nrest\n");
        assert_eq!(replace_between(&page, lines, "new\n"), Some(expected));
        assert_eq!(replace_between("# A\n", lines, "new"), None);
        assert_eq!(replace_between(&format!("{end}\n{begin}\n"), lines, "new"), None);
    }

    /// Seen: what `--write` had written was refused by `cargo xtask tidy`.
    #[test]
    fn prose_is_wrapped_and_tables_and_code_are_not() {
        let row = format!("| {} |", "cell ".repeat(40));
        let code = "`quipu sample --payload small`";
        let text = format!(
            "{}{code}, rounds\n\n{row}\n- note: {}end\n![{}](plots/a.svg)\n",
            "word ".repeat(17),
            "1.00, ".repeat(20),
            "title ".repeat(20).trim()
        );
        let wrapped = wrap(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        let is_short = |line: &&str| line.starts_with('|') || line.chars().count() <= COLUMNS_MAX;
        assert!(lines.iter().all(is_short), "{wrapped}");
        assert!(lines.contains(&row.as_str()));
        assert_eq!(lines.get(1), Some(&format!("{code}, rounds").as_str()));
        assert!(lines.iter().any(|line| line.starts_with("  1.00,") && line.ends_with("end")));
        let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(joined(&wrapped), joined(&text));
    }
}
