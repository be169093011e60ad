//! The address of a mirror, and which addresses of a list are its own.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use archive::ArchiveName;
use reqwest::Url;
use thiserror::Error;

/// The list with names and checksums.
pub(super) const SUMS_NAME: &str = "checksums_sha256.txt";
/// The list with addresses alone.
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
    /// With a slash at its end, and with the credentials.
    folder: Url,
    named: Option<NamedPart>,
}

/// A file that an address names inside a mirror's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedPart {
    SumList,
    UrlList,
    /// It needs no list.
    Archive(String),
}

impl FromStr for MirrorUrl {
    type Err = MirrorUrlError;

    fn from_str(text: &str) -> Result<Self, MirrorUrlError> {
        let url = Url::parse(text).map_err(|_| MirrorUrlError("it is no URL of http or https"))?;
        if !is_http(&url) {
            return Err(MirrorUrlError("its scheme is another"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(MirrorUrlError("it has a query"));
        }
        let mut folder = url.clone();
        let last = url.path().rsplit('/').next().unwrap_or_default();
        let named = match last {
            SUMS_NAME => Some(NamedPart::SumList),
            URLS_NAME => Some(NamedPart::UrlList),
            _ => ArchiveName::parse(Path::new(last)).map(|_| NamedPart::Archive(last.to_owned())),
        };
        let path = url.path().strip_suffix(last).filter(|_| named.is_some());
        let path = path.unwrap_or(url.path());
        folder.set_path(&format!("{}/", path.trim_end_matches('/')));
        Ok(Self { folder, named })
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

    pub(super) fn is_secure(&self) -> bool {
        self.folder.scheme() == "https"
    }

    pub(super) fn named(&self) -> Option<&NamedPart> {
        self.named.as_ref()
    }

    /// A file of the folder; its name needs no escapes.
    pub(super) fn file(&self, name: &str) -> Url {
        self.with_path(&format!("{}{name}", self.folder.path()))
    }

    /// The target of a line of a list of addresses: a path below the folder, a path of the host, or a
    /// whole address. `Err` has the host if it is not the mirror's: the operator decides which hosts
    /// are asked.
    pub(super) fn resolve(&self, line: &str) -> Result<Option<Url>, String> {
        let url = self.folder.join(line).ok().filter(is_http);
        let Some(url) = url.filter(|url| url.query().is_none()) else { return Ok(None) };
        if (url.host_str(), url.port()) != (self.folder.host_str(), self.folder.port()) {
            return Err(url.host_str().unwrap_or_default().to_owned());
        }
        Ok(Some(self.with_path(url.path())))
    }

    fn with_path(&self, path: &str) -> Url {
        let mut url = self.folder.clone();
        url.set_path(path);
        url
    }
}

/// An address without its credentials.
pub(super) fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither can fail: the address has a host.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.to_string()
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

impl fmt::Display for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.folder))
    }
}

impl fmt::Debug for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MirrorUrl({self})")
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
        let archive = || Some(NamedPart::Archive("mainnet-00000-5ec1ffb8.era1".to_owned()));
        for (text, folder, named) in [
            ("http://a.example", "http://a.example/", None),
            ("https://a.example/era1/mainnet", "https://a.example/era1/mainnet/", None),
            ("https://a.example/era1/mainnet/", "https://a.example/era1/mainnet/", None),
            ("http://a.example:81/x/urls.txt", "http://a.example:81/x/", Some(NamedPart::UrlList)),
            (
                "http://a.example/checksums_sha256.txt",
                "http://a.example/",
                Some(NamedPart::SumList),
            ),
            ("http://a.example/x/mainnet-00000-5ec1ffb8.era1", "http://a.example/x/", archive()),
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
        let shown = format!("{url} {url:?} {}", redacted(&url.file("f")));
        assert!(!shown.contains("secret") && !shown.contains("user"), "{shown}");
        assert_eq!(url.file("f").password(), Some("secret"));
    }

    #[test]
    fn lines_lead_into_the_mirror_and_nowhere_else() {
        let url = parsed("https://a.example/era1/");
        let found = |line: &str| url.resolve(line).map(|to| to.map(|to| to.to_string()));
        let file = |path: &str| Ok(Some(format!("https://a.example{path}")));
        assert_eq!(found("x.era1"), file("/era1/x.era1"));
        assert_eq!(found("./x.era1"), file("/era1/x.era1"));
        assert_eq!(found("/other/x.era1"), file("/other/x.era1"));
        assert_eq!(found("../x.era1"), file("/x.era1"));
        // The scheme that the operator gave counts.
        assert_eq!(found("http://A.example/era1/x.era1"), file("/era1/x.era1"));
        assert_eq!(found("x.era1?key=1"), Ok(None));
        assert_eq!(found("mailto:a@b.example"), Ok(None));
        assert_eq!(found("https://b.example/x.era1"), Err("b.example".to_owned()));
        assert_eq!(found("//b.example/x.era1"), Err("b.example".to_owned()));
        assert_eq!(found("https://a.example:8443/x.era1"), Err("a.example".to_owned()));
    }
}
