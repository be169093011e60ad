//! Opening a bucket by its URL.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::{ParseError, Position, Url};

use super::error::whole_cause;
use super::folder_store::FolderStore;
use super::{Bucket, BucketError, BucketSettings};

/// To a client a request has no limit of time: whoever asks waits as long as the size of the answer or of
/// the upload allows, which a client cannot know. The clients have no word for "never".
const WHOLE_REQUEST: &str = "7days";

impl Bucket {
    /// The bucket of this URL: `s3://`, `gs://`, `az://` and their kin with credentials from the usual
    /// variables of the environment, `file:///`, `memory:///`, and `http(s)://` for a web server.
    pub fn open(url: &str, settings: BucketSettings) -> Result<Self, BucketError> {
        let shown = || shown_url(url);
        let refused = |reason: String| BucketError::Url { url: shown(), reason };
        let parsed = Url::parse(url).map_err(|error| {
            let is_path = error == ParseError::RelativeUrlWithoutBase;
            refused(if is_path { no_scheme(&shown()) } else { error.to_string() })
        })?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&parsed)
            .map_err(|error| refused(refusal_of(&parsed, &error)))?;
        // Libraries put the whole address into their errors. In those of Azure a container is before the @.
        let has_name = !parsed.username().is_empty() && scheme == ObjectStoreScheme::Http;
        if has_name || parsed.password().is_some() {
            let reason = "names and passwords are not taken from a URL".to_owned();
            return Err(refused(reason));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            let reason =
                "what follows a ? or a # has no meaning in the URL of a bucket; leave it out";
            return Err(refused(reason.to_owned()));
        }
        let is_folder = scheme == ObjectStoreScheme::Local;
        if is_folder && prefix.as_ref().is_empty() {
            let reason = "no folder is named: write file:///folder".to_owned();
            return Err(refused(reason));
        }
        let folder = is_folder.then(|| FolderStore::new(settings.is_synced));
        install_cryptography();
        let store = store_of(&scheme, &parsed, &settings);
        let store = store.map_err(|error| refused(whole_cause(&error)))?;
        let bucket = Self { folder, ..Self::of_store(store, prefix, &shown(), settings) };
        let is_web_server = scheme == ObjectStoreScheme::Http;
        Ok(if is_web_server { bucket.as_web_server() } else { bucket })
    }
}

/// What is said of a text without a scheme, which is most often a path.
fn no_scheme(shown: &str) -> String {
    let folder = std::path::absolute(shown).ok().and_then(|path| Url::from_file_path(path).ok());
    let folder = folder.map_or_else(|| "file:///folder".to_owned(), |url| url.to_string());
    format!("not a URL; write {folder} for a folder of this machine")
}

/// Why a URL is not that of a bucket.
fn refusal_of(url: &Url, error: &dyn StdError) -> String {
    let scheme = url.scheme();
    match (scheme, url.has_host()) {
        ("file", true) => {
            "a folder of this machine has no host: write file:///folder, with three slashes"
                .to_owned()
        }
        ("s3" | "s3a" | "gs" | "az" | "adl" | "azure" | "abfs" | "abfss", false) => {
            format!("no bucket is named: write {scheme}://bucket/prefix")
        }
        ("file" | "memory" | "http" | "https", _)
        | ("s3" | "s3a" | "gs" | "az" | "adl" | "azure" | "abfs" | "abfss", true) => {
            whole_cause(error)
        }
        _ => format!(
            "scheme {scheme} is not supported; use https://, http://, file://, s3://, gs:// or az://"
        ),
    }
}

fn store_of(
    scheme: &ObjectStoreScheme,
    url: &Url,
    settings: &BucketSettings,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let text = url.to_string();
    let options = client_options(settings);
    // For the parts of an upload, which can only be repeated here. Whoever asks repeats too, and
    // repetitions of repetitions take long.
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(1), ..BackoffConfig::default() };
    let retry_timeout = settings.request_timeout;
    let retry = RetryConfig { backoff, max_retries: 2, retry_timeout };
    Ok(match scheme {
        ObjectStoreScheme::Local => Arc::new(FolderStore::new(settings.is_synced)),
        ObjectStoreScheme::Memory => Arc::new(InMemory::new()),
        ObjectStoreScheme::AmazonS3 => {
            let builder = AmazonS3Builder::from_env().with_url(text).with_retry(retry);
            let builder = options.into_iter().fold(builder, |builder, (key, value)| {
                builder.with_config(AmazonS3ConfigKey::Client(key), value)
            });
            Arc::new(builder.build()?)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(text).with_retry(retry);
            let builder = options.into_iter().fold(builder, |builder, (key, value)| {
                builder.with_config(GoogleConfigKey::Client(key), value)
            });
            Arc::new(builder.build()?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(text).with_retry(retry);
            let builder = options.into_iter().fold(builder, |builder, (key, value)| {
                builder.with_config(AzureConfigKey::Client(key), value)
            });
            Arc::new(builder.build()?)
        }
        ObjectStoreScheme::Http => {
            let server = &url[..Position::BeforePath];
            let builder = HttpBuilder::new().with_url(server).with_retry(retry);
            let is_plain = url.scheme() == "http";
            let builder = builder.with_config(ClientConfigKey::AllowHttp, is_plain.to_string());
            let builder = options
                .into_iter()
                .fold(builder, |builder, (key, value)| builder.with_config(key, value));
            Arc::new(builder.build()?)
        }
        // The list of schemes may grow with the library; none of them was chosen here.
        other => {
            let source = format!("{other:?} is not supported").into();
            return Err(object_store::Error::NotSupported { source });
        }
    })
}

fn client_options(settings: &BucketSettings) -> [(ClientConfigKey, String); 2] {
    let connect_timeout = format!("{}ms", settings.connect_timeout.as_millis());
    [
        (ClientConfigKey::ConnectTimeout, connect_timeout),
        (ClientConfigKey::Timeout, WHOLE_REQUEST.to_owned()),
    ]
}

/// The URL without a password, a token or what a signature was put into.
fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return url.split(['?', '@']).next().unwrap_or_default().to_owned();
    };
    parsed.set_query(None);
    parsed.set_fragment(None);
    let is_azure = parsed.scheme().starts_with("abfs");
    // There the part before the @ is the container.
    if !is_azure {
        let _ = parsed.set_username("");
    }
    let _ = parsed.set_password(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

fn install_cryptography() {
    // Whoever was first has chosen for the process, which is no failure.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_opens_its_store_and_no_message_has_a_password() {
        let open = |url: &str| Bucket::open(url, BucketSettings::default());
        for (url, place, file) in [
            ("file:///srv/history", "file:///srv/history", "srv/history/files/a"),
            ("memory:///", "memory:", "files/a"),
            ("https://mirror.example/eth", "https://mirror.example/eth", "eth/files/a"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080", "files/a"),
        ] {
            let bucket = open(url).unwrap();
            assert_eq!(bucket.place(), place);
            assert_eq!(bucket.file_path("a").as_ref(), file);
            assert_eq!(bucket.is_listable(), !url.starts_with("http"), "{url}");
            assert!(!format!("{bucket:?}").contains("secret"));
        }
        for (url, said) in [
            ("ftp://host/a", "scheme ftp is not supported; use https://"),
            ("https://me:secret@mirror.example/eth", "passwords are not taken from a URL"),
            ("https://me@mirror.example/eth", "passwords are not taken from a URL"),
            ("/srv/history", "write file:///srv/history for a folder"),
            ("history?key=secret", "/history for a folder"),
            ("s3://", "no bucket is named: write s3://bucket/prefix"),
            ("file:", "no folder is named"),
            ("file://", "no folder is named"),
            ("file:///", "no folder is named"),
            ("file:///srv/..", "no folder is named"),
            ("file://host/history", "has no host: write file:///folder"),
            ("file:///srv/%00", "srv/\0"),
            ("s3://bucket/%00", "\0"),
            ("memory://host/", "memory://host"),
            ("file:///srv/history?key=secret", "what follows a ? or a #"),
            ("https://mirror.example/eth?key=secret", "what follows a ? or a #"),
            ("s3://bucket/eth#secret", "what follows a ? or a #"),
        ] {
            let refused = open(url).unwrap_err().to_string();
            assert!(refused.contains(said) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
