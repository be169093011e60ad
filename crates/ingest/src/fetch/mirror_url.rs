//! Where a mirror is, and what of its address may be shown.
//!
//! Knows: web folders, lists and single archives by their addresses, and which addresses of a list
//! are the mirror's own.
//! Never knows: how to connect.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use archive::ArchiveName;
use hyper::Uri;
use hyper::header::HeaderValue;
use thiserror::Error;

use crate::upstream::UpstreamUrl;

/// The list that has names and checksums.
pub(super) const SUMS_NAME: &str = "checksums_sha256.txt";
/// The list that has addresses alone.
pub(super) const URLS_NAME: &str = "urls.txt";

/// Why a text is not the address of a mirror. The text is not repeated: it may hold a password.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "not the address of a mirror: {0}; write http or https, then ://HOST[:PORT]/FOLDER, such as \
     https://mirror.example/era1/mainnet"
)]
pub struct MirrorUrlError(&'static str);

/// The address of a mirror: a folder of archives, its list, or one archive.
#[derive(Clone, PartialEq, Eq)]
pub struct MirrorUrl {
    /// The folder, with a slash at its end and without credentials.
    folder: Uri,
    authorization: Option<HeaderValue>,
    /// What of the folder is meant, if not all of it.
    named: Option<NamedPart>,
}

/// What an address names inside a mirror's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedPart {
    /// This list and no other.
    List(String),
    /// One archive, which needs no list.
    Archive(String),
}

/// One thing to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpTarget {
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

impl FromStr for MirrorUrl {
    type Err = MirrorUrlError;

    fn from_str(text: &str) -> Result<Self, MirrorUrlError> {
        let parsed: UpstreamUrl =
            text.parse().map_err(|_| MirrorUrlError("it is no URL of http or https"))?;
        if !parsed.is_http() {
            return Err(MirrorUrlError("its scheme is another"));
        }
        let uri = parsed.uri;
        if uri.query().is_some() {
            return Err(MirrorUrlError("it has a query"));
        }
        let (above, last) = uri.path().rsplit_once('/').unwrap_or_default();
        let named = if last == SUMS_NAME || last == URLS_NAME {
            Some(NamedPart::List(last.to_owned()))
        } else {
            ArchiveName::parse(Path::new(last)).map(|_| NamedPart::Archive(last.to_owned()))
        };
        let path = match (&named, last) {
            (Some(_), _) | (None, "") => format!("{above}/"),
            (None, last) => format!("{above}/{last}/"),
        };
        let folder = with_path(&uri, &path).ok_or(MirrorUrlError("it is no URL"))?;
        Ok(Self { folder, authorization: parsed.authorization, named })
    }
}

impl MirrorUrl {
    /// Whether a text is meant as an address, not as a path.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        text.starts_with("http://") || text.starts_with("https://")
    }

    /// Whether one file is meant, a list or an archive, and not a folder.
    #[must_use]
    pub fn names_file(&self) -> bool {
        self.named.is_some()
    }

    /// Whether it is asked over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.folder.scheme_str() == Some("https")
    }

    /// What is named inside the folder.
    pub(super) fn named(&self) -> Option<&NamedPart> {
        self.named.as_ref()
    }

    /// A file of the folder; its name needs no escapes.
    pub(super) fn file(&self, name: &str) -> Option<HttpTarget> {
        let uri = with_path(&self.folder, &format!("{}{name}", self.folder.path()))?;
        Some(self.target(uri))
    }

    /// What a line of a list of addresses leads to: a path below the folder, a path of the host, or a
    /// whole address. `Err` names the host if it is another than the mirror's: where to download from
    /// is for the operator to say.
    pub(super) fn resolve(&self, line: &str) -> Result<Option<HttpTarget>, String> {
        let path = if line.contains("://") {
            let Ok(uri) = line.parse::<Uri>() else { return Ok(None) };
            let Some(authority) = uri.authority() else { return Ok(None) };
            let own = self.folder.authority().map(|own| own.as_str().to_ascii_lowercase());
            if own != Some(authority.as_str().to_ascii_lowercase()) {
                return Err(authority.host().to_owned());
            }
            uri.path().to_owned()
        } else if line.starts_with('/') {
            line.to_owned()
        } else {
            format!("{}{}", self.folder.path(), line.strip_prefix("./").unwrap_or(line))
        };
        let is_plain = path.split('/').all(|part| part != ".." && part != ".");
        let uri = if is_plain { with_path(&self.folder, &path) } else { None };
        Ok(uri.filter(|uri| uri.query().is_none()).map(|uri| self.target(uri)))
    }

    fn target(&self, uri: Uri) -> HttpTarget {
        HttpTarget { uri, authorization: self.authorization.clone() }
    }
}

/// The same host with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

impl fmt::Display for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder)
    }
}

impl fmt::Debug for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MirrorUrl({})", self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> MirrorUrl {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_names_a_folder_a_list_or_one_archive() {
        let archive = "mainnet-00000-5ec1ffb8.era1";
        for (text, folder, named) in [
            ("http://a.example", "http://a.example/", None),
            ("https://a.example/era1/mainnet", "https://a.example/era1/mainnet/", None),
            ("https://a.example/era1/mainnet/", "https://a.example/era1/mainnet/", None),
            (
                "http://a.example:81/x/urls.txt",
                "http://a.example:81/x/",
                Some(NamedPart::List(URLS_NAME.to_owned())),
            ),
            (
                "http://a.example/checksums_sha256.txt",
                "http://a.example/",
                Some(NamedPart::List(SUMS_NAME.to_owned())),
            ),
            (
                "http://a.example/x/mainnet-00000-5ec1ffb8.era1",
                "http://a.example/x/",
                Some(NamedPart::Archive(archive.to_owned())),
            ),
        ] {
            let url = parsed(text);
            assert_eq!((url.to_string().as_str(), url.named), (folder, named), "{text}");
        }
        for text in ["", "a.example/era1", "ftp://a.example/", "ws://a.example/", "http://a/?k=1"] {
            assert!(text.parse::<MirrorUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let url = parsed("https://user:secret@a.example/x");
        let shown = format!("{url} {url:?}");
        assert!(!shown.contains("secret") && !shown.contains("user"), "{shown}");
        assert!(url.file("f").unwrap().authorization.is_some());
    }

    #[test]
    fn lines_lead_into_the_mirror_and_nowhere_else() {
        let url = parsed("https://a.example/era1/");
        let found = |line: &str| url.resolve(line).map(|to| to.map(|to| to.uri.to_string()));
        let file = |path: &str| Ok(Some(format!("https://a.example{path}")));
        assert_eq!(found("x.era1"), file("/era1/x.era1"));
        assert_eq!(found("./x.era1"), file("/era1/x.era1"));
        assert_eq!(found("/other/x.era1"), file("/other/x.era1"));
        // The scheme that the operator gave counts.
        assert_eq!(found("http://A.example/era1/x.era1"), file("/era1/x.era1"));
        assert_eq!(found("../x.era1"), Ok(None));
        assert_eq!(found("x.era1?key=1"), Ok(None));
        assert_eq!(found("https://b.example/x.era1"), Err("b.example".to_owned()));
        assert_eq!(found("https://a.example:8443/x.era1"), Err("a.example".to_owned()));
    }
}
