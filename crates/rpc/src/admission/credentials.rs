//! What the head of a request says of who asks: a key, and through whom it came.

use super::key_hash::KeyHash;

/// How a path begins that has a key in it.
const KEY_PATH: &str = "/v1/";

/// How a field begins that has a key in it, whatever its case.
const BEARER: &str = "bearer ";

/// What a head says. Nothing of it is shown: it has a key.
#[derive(Default)]
pub(crate) struct CallerHead<'a> {
    bearer: Option<&'a str>,
    api_key: Option<&'a str>,
    path_key: Option<&'a str>,
    /// In the order in which they stand, as bytes: a client may have written what is no text before what
    /// a proxy added.
    forwarded: Vec<&'a [u8]>,
}

impl<'a> CallerHead<'a> {
    /// A head with this path, and with these fields.
    pub(crate) fn read(path: &'a str, fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let path_key = split_key(path).map(|(key, _)| key);
        let mut head = Self { path_key, ..Self::default() };
        for (name, value) in fields {
            head.read_field(name, value);
        }
        head
    }

    fn read_field(&mut self, name: &str, value: &'a [u8]) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let text = || std::str::from_utf8(value).ok().map(str::trim);
        // By length first: most fields are none of these.
        match name.len() {
            9 if is("x-api-key") => self.api_key = self.api_key.or_else(text),
            13 if is("authorization") => {
                self.bearer = self.bearer.or_else(|| {
                    let (scheme, key) = text()?.split_at_checked(BEARER.len())?;
                    scheme.eq_ignore_ascii_case(BEARER).then_some(key.trim())
                });
            }
            15 if is("x-forwarded-for") => self.forwarded.push(value),
            _ => {}
        }
    }

    /// The key of the first place that has one, as its hash.
    pub(crate) fn key(&self) -> Option<KeyHash> {
        let mut places = [self.bearer, self.api_key, self.path_key].into_iter().flatten();
        places.find(|text| !text.is_empty()).map(KeyHash::of)
    }

    pub(super) fn forwarded(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.forwarded.iter().copied()
    }
}

/// The key in a path, and what follows it: `/v1/KEY/stat.json`.
fn split_key(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(KEY_PATH)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    rest.split_at_checked(end).filter(|(key, _)| !key.is_empty())
}

/// The page that a path names, without a key before it.
pub(crate) fn strip_key(path: &str) -> &str {
    match split_key(path) {
        Some((_, "")) => "/",
        Some((_, page)) => page,
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, fields: &[(&str, &str)], expected: Option<&str>) {
        let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
        let found = CallerHead::read(path, fields).key();
        assert!(found == expected.map(KeyHash::of), "{path}: {expected:?}");
    }

    #[test]
    fn a_key_is_sent_in_one_of_three_places() {
        check("/", &[], None);
        check("/", &[("Authorization", "Bearer a")], Some("a"));
        check("/", &[("authorization", "bearer  a ")], Some("a"));
        check("/", &[("authorization", "Basic a"), ("x-api-key", "b")], Some("b"));
        check("/v1/c", &[("X-API-Key", "b"), ("x-api-key", "d")], Some("b"));
        check("/v1/c", &[("authorization", "Bearer "), ("x-api-key", "")], Some("c"));
        check("/v1/c?x=1", &[], Some("c"));
        check("/v1/c/stat.json", &[], Some("c"));
        for path in ["/v1/", "/v1", "/v1//x", "/v2/c", "/x/v1/c", "/v1/?c"] {
            check(path, &[], None);
        }
        check("/", &[("x-api-key", "\u{e9}")], Some("\u{e9}"));
    }

    #[test]
    fn the_page_behind_a_key_is_the_page() {
        for (path, page) in [
            ("/stat.json", "/stat.json"),
            ("/v1/c", "/"),
            ("/v1/c/", "/"),
            ("/v1/c/stat.json", "/stat.json"),
            ("/v1/", "/v1/"),
        ] {
            assert_eq!(strip_key(path), page, "{path}");
        }
    }
}
