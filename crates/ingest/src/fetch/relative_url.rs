//! The whole address that a redirect's `Location` stands for.
//!
//! Knows: the resolution of references in RFC 3986, section 5.2.
//! Never knows: whether it is wise to go there.

use hyper::Uri;

/// The address that `reference` means in an answer from `base`. What names another protocol, or none
/// that has hosts, comes back as it is.
pub(super) fn resolve(base: &Uri, reference: &str) -> String {
    // What follows a `#` is for the reader, not for the server.
    let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
    let (place, query) = split_before(reference, '?');
    let (scheme, place) = match split_scheme(place) {
        Some((scheme, rest)) if rest.starts_with("//") => (scheme, rest),
        Some(_) => return reference.to_owned(),
        None => (base.scheme_str().unwrap_or("http"), place),
    };
    if let Some(rest) = place.strip_prefix("//") {
        let (host, path) = split_before(rest, '/');
        return format!("{scheme}://{host}{}{query}", remove_dot_segments(path));
    }
    let host = base.authority().map(ToString::to_string).unwrap_or_default();
    let (folder, _) = base.path().rsplit_once('/').unwrap_or_default();
    let path = match place {
        "" => base.path().to_owned(),
        place if place.starts_with('/') => place.to_owned(),
        place => format!("{folder}/{place}"),
    };
    let own_query = base.query().filter(|_| place.is_empty() && query.is_empty());
    let own_query = own_query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{host}{}{query}{own_query}", remove_dot_segments(&path))
}

/// What comes before a letter, and the rest with it.
fn split_before(text: &str, letter: char) -> (&str, &str) {
    text.split_at_checked(text.find(letter).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// The scheme, if there is one, and what follows its colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(is_letter);
    is_scheme.then_some((scheme, rest))
}

/// A path from the root without `.` and `..` (section 5.2.4). One that ends in either is a folder's.
fn remove_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, table: &[(&str, &str)]) {
        let base: Uri = base.parse().unwrap();
        for (reference, expected) in table {
            assert_eq!(resolve(&base, reference), *expected, "{reference:?} from {base}");
        }
    }

    #[test]
    fn references_mean_what_the_examples_of_the_rfc_say() {
        // Sections 5.4.1 and 5.4.2, without fragments, which are not sent.
        check(
            "http://a/b/c/d;p?q",
            &[
                ("g:h", "g:h"),
                ("g", "http://a/b/c/g"),
                ("./g", "http://a/b/c/g"),
                ("g/", "http://a/b/c/g/"),
                ("/g", "http://a/g"),
                ("//g", "http://g/"),
                ("?y", "http://a/b/c/d;p?y"),
                ("g?y", "http://a/b/c/g?y"),
                ("#s", "http://a/b/c/d;p?q"),
                ("g#s", "http://a/b/c/g"),
                ("g?y#s", "http://a/b/c/g?y"),
                (";x", "http://a/b/c/;x"),
                ("g;x", "http://a/b/c/g;x"),
                ("g;x?y#s", "http://a/b/c/g;x?y"),
                ("", "http://a/b/c/d;p?q"),
                (".", "http://a/b/c/"),
                ("./", "http://a/b/c/"),
                ("..", "http://a/b/"),
                ("../", "http://a/b/"),
                ("../g", "http://a/b/g"),
                ("../..", "http://a/"),
                ("../../", "http://a/"),
                ("../../g", "http://a/g"),
                ("../../../g", "http://a/g"),
                ("../../../../g", "http://a/g"),
                ("/./g", "http://a/g"),
                ("/../g", "http://a/g"),
                ("g.", "http://a/b/c/g."),
                (".g", "http://a/b/c/.g"),
                ("g..", "http://a/b/c/g.."),
                ("..g", "http://a/b/c/..g"),
                ("./../g", "http://a/b/g"),
                ("./g/.", "http://a/b/c/g/"),
                ("g/./h", "http://a/b/c/g/h"),
                ("g/../h", "http://a/b/c/h"),
                ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
                ("g;x=1/../y", "http://a/b/c/y"),
                ("g?y/./x", "http://a/b/c/g?y/./x"),
                ("g?y/../x", "http://a/b/c/g?y/../x"),
                ("g#s/../x", "http://a/b/c/g"),
                ("http:g", "http:g"),
            ],
        );
    }

    #[test]
    fn what_the_rfc_has_no_example_of_is_resolved_by_its_rules() {
        check(
            "https://a:81/f.ere",
            &[
                ("..", "https://a:81/"),
                ("../..", "https://a:81/"),
                ("?", "https://a:81/f.ere?"),
                ("//b/x/../y/..", "https://b/"),
                ("http://b/x/./../y", "http://b/y"),
                ("http://b?k=1", "http://b/?k=1"),
                ("HTTP://b/.", "HTTP://b/"),
                ("x//../y", "https://a:81/x/y"),
                ("./g:h", "https://a:81/g:h"),
                ("1:2", "https://a:81/1:2"),
                ("%2e%2e/g", "https://a:81/%2e%2e/g"),
            ],
        );
        check("http://a", &[("g", "http://a/g"), ("", "http://a/"), ("..", "http://a/")]);
    }
}
