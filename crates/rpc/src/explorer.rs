//! The explorer: the page that a browser gets at `/`, and its files, which are part of the executable.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The path below which the files of the page are, beside the page itself.
const FOLDER: &str = "/explorer/";
/// Hexadecimal digits of an entity tag.
const TAG_DIGITS: usize = 16;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What a browser may let the page do: run and show its own files, and ask this server. No file has a
/// script or a style inside of markup, and no script makes markup of text.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; \
    style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";

/// A file of the explorer.
#[derive(Debug)]
pub(crate) struct ExplorerFile {
    /// Its name in the folder; none for the page itself.
    name: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
    /// The text as gzip, which is made once: what answers are packed with is quicker and packs a fifth
    /// less.
    pub(crate) gzip: Vec<u8>,
    /// A weak entity tag: it names the text, in whichever encoding that is sent.
    pub(crate) tag: String,
}

macro_rules! files {
    ($($name:literal: $content_type:expr,)*) => {
        [$(($name, $content_type, include_str!(concat!("explorer/", $name))),)*]
    };
}

static FILES: LazyLock<Vec<ExplorerFile>> = LazyLock::new(|| {
    let page = [("", HTML, include_str!("explorer/index.html"))];
    let parts = files! {
        "address.js": SCRIPT,
        "answers.js": SCRIPT,
        "block.js": SCRIPT,
        "bundle.js": SCRIPT,
        "chain.js": SCRIPT,
        "chart.js": SCRIPT,
        "consensus.js": SCRIPT,
        "format.js": SCRIPT,
        "keccak.js": SCRIPT,
        "logs.js": SCRIPT,
        "main.js": SCRIPT,
        "overview.js": SCRIPT,
        "parameters.js": SCRIPT,
        "playground.js": SCRIPT,
        "prove.js": SCRIPT,
        "proven.js": SCRIPT,
        "raw.js": SCRIPT,
        "rlp.js": SCRIPT,
        "rpc.js": SCRIPT,
        "search.js": SCRIPT,
        "snippets.js": SCRIPT,
        "style.css": STYLE,
        "tip_state.js": SCRIPT,
        "tools.css": STYLE,
        "transaction.js": SCRIPT,
        "trie.js": SCRIPT,
        "verify.js": SCRIPT,
    };
    let file = |(name, content_type, text): (_, _, &'static str)| ExplorerFile {
        name,
        content_type,
        text,
        gzip: gzip_of(text),
        tag: tag_of(text),
    };
    page.into_iter().chain(parts).map(file).collect()
});

/// The page itself.
pub(crate) fn page() -> Option<&'static ExplorerFile> {
    FILES.first()
}

/// The file that a path names.
pub(crate) fn find(path: &str) -> Option<&'static ExplorerFile> {
    let name = path.strip_prefix(FOLDER).filter(|name| !name.is_empty())?;
    FILES.iter().find(|file| file.name == name)
}

/// Whether a path is that of a file of the explorer, also of one that there is not.
pub(crate) fn is_file_path(path: &str) -> bool {
    path.starts_with(FOLDER)
}

/// Whether whoever sent this `Accept` field wants a page to look at: browsers name HTML, programs do
/// not, and what takes anything gets what programs get.
pub(crate) fn wants_page(accept: &str) -> bool {
    accept.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html"));
        is_html && !parts.any(is_zero_weight)
    })
}

fn is_zero_weight(parameter: &str) -> bool {
    let weight =
        parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, value)| value.trim().parse::<f32>().is_ok_and(|it| it <= 0.0))
}

/// Whether one of the tags of an `If-None-Match` field is this one (RFC 9110, 13.1.2: compared weakly).
pub(crate) fn is_tag_named(field: &str, tag: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    let own = opaque(tag);
    field.split(',').map(str::trim).any(|it| it == "*" || opaque(it) == own)
}

fn gzip_of(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}

fn tag_of(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut digits = digest.iter().fold(String::new(), |mut out, byte| {
        // Writing to a text cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    });
    digits.truncate(TAG_DIGITS);
    format!("W/\"{digits}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_want_the_page_and_programs_do_not() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("Text/HTML", true),
            ("application/json, text/html;q=0.1", true),
            ("text/html; q=0", false),
            ("text/html;level=1;Q=0.000", false),
            ("*/*", false),
            ("text/*", false),
            ("application/json", false),
            ("text/htmlx", false),
            ("", false),
        ] {
            assert_eq!(wants_page(accept), expected, "{accept}");
        }
    }

    #[test]
    fn files_are_found_by_their_names_and_nothing_else_is() {
        for file in FILES.iter().skip(1) {
            let found = find(&format!("/explorer/{}", file.name)).map(|it| it.name);
            assert_eq!(found, Some(file.name));
        }
        for path in
            ["/", "/explorer", "/explorer/", "/explorer/x.js", "/explorer/../main.js", "/main.js"]
        {
            assert!(find(path).is_none(), "{path}");
        }
        assert_eq!(page().map(|it| it.content_type), Some(HTML));
    }

    #[test]
    fn a_tag_names_a_text_however_it_is_sent() {
        let [one, other] = ["a", "b"].map(tag_of);
        assert_ne!(one, other);
        assert_eq!(one, tag_of("a"));
        let strong = one.trim_start_matches("W/");
        for field in [one.clone(), strong.to_owned(), format!("{other}, {one}"), "*".to_owned()] {
            assert!(is_tag_named(&field, &one), "{field}");
        }
        for field in [other.as_str(), "", "W/", strong.trim_matches('"')] {
            assert!(!is_tag_named(field, &one), "{field}");
        }
    }

    /// A file that is not listed would be missed by the page that imports it.
    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/explorer");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "index.html")
            .collect();
        names.sort();
        let served: Vec<&str> = FILES.iter().skip(1).map(|file| file.name).collect();
        assert_eq!(served, names);
    }

    /// Whatever a page names with an address of its own would be asked of somebody else.
    #[test]
    fn no_file_names_anybody_else() {
        for file in FILES.iter() {
            for begin in ["http://", "https://", "@import", ": url("] {
                let found = file.text.find(begin).map(|at| &file.text[at..]);
                let found = found.map(|rest| rest.chars().take(60).collect::<String>());
                assert_eq!(found, None, "{}", file.name);
            }
        }
    }

    /// The policy forbids all of these; a browser would show a page without them.
    #[test]
    fn no_file_has_what_the_policy_forbids() {
        for file in FILES.iter() {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                " style=",
                "onclick=\"",
                "<style",
            ] {
                assert!(!file.text.contains(forbidden), "{}: {forbidden}", file.name);
            }
        }
    }
}
