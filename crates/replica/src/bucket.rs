//! A bucket: an object store, and the prefix below which the objects of one network lie.

mod error;
mod folder_store;
mod open;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::time::Instant;

use crate::object_names::{FILES, ObjectNames};

pub use error::BucketError;
use folder_store::FolderStore;
pub(crate) use folder_store::UploadRemnant;

/// The pause before the first repetition; each further one is twice as long.
const BACKOFF: Duration = Duration::from_millis(100);
/// The longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How many times as much is read by whoever makes it less. Finding what is superseded compares all with
/// all.
const UPKEEP_FACTOR: u32 = 4;

/// The slowest line that an upload is expected to have for itself.
const SLOWEST_BYTES_A_SECOND: u64 = 64 << 10;

/// How patient a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long a request may go without an answer, and the answer of a file without another 64 KiB.
    /// What is sent may take longer, by its length.
    pub request_timeout: Duration,
    /// How often a request is repeated that failed for a reason which may pass.
    pub retries: u32,
    /// How often a request is repeated for an object that is listed and not there: some stores list what
    /// they do not show everywhere yet.
    pub missing_retries: u32,
    /// After so long a request is not repeated any more, however often it may be.
    pub retry_timeout: Duration,
    /// How many requests are under way at once where many objects are read or written.
    pub concurrent_requests: usize,
    /// How many manifests may be listed, and how many retractions, for any of them to be read.
    pub listed_max: usize,
    /// Bytes of manifests and retractions that are read of one bucket.
    pub listed_bytes_max: u64,
    /// Whether what a folder's objects are made of is synced before it counts as written; for `file://`.
    pub is_synced: bool,
}

impl Default for BucketSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(20),
            retries: 3,
            missing_retries: 2,
            retry_timeout: Duration::from_mins(1),
            concurrent_requests: 8,
            listed_max: 1000,
            listed_bytes_max: 256 << 20,
            is_synced: true,
        }
    }
}

impl BucketSettings {
    /// For merging and pruning, which have to read what readers refuse for being too much.
    #[must_use]
    pub fn for_upkeep() -> Self {
        let usual = Self::default();
        Self {
            listed_max: usual
                .listed_max
                .saturating_mul(usize::try_from(UPKEEP_FACTOR).unwrap_or(1)),
            listed_bytes_max: usual.listed_bytes_max.saturating_mul(u64::from(UPKEEP_FACTOR)),
            ..usual
        }
    }
}

/// One network's history in an object store. Clones share its connections.
#[derive(Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    names: ObjectNames,
    place: Arc<str>,
    settings: BucketSettings,
    is_web_server: bool,
    /// Its folder, if it is one.
    folder: Option<FolderStore>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The store's own text could have credentials in it.
        f.debug_struct("Bucket").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Bucket {
    /// The objects below `prefix` in a store that somebody else opened; `place` is how messages call it.
    #[must_use]
    pub fn of_store(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        place: &str,
        settings: BucketSettings,
    ) -> Self {
        let (names, place) = (ObjectNames::below(prefix), Arc::from(place));
        Self { store, names, place, settings, is_web_server: false, folder: None }
    }

    /// The same bucket as a web server shows it: its objects can be read by name, not listed or written.
    #[must_use]
    pub fn as_web_server(self) -> Self {
        Self { is_web_server: true, ..self }
    }

    /// How messages call it, without credentials.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether its objects can be listed. Those of a web server cannot: its index names the manifests.
    #[must_use]
    pub fn is_listable(&self) -> bool {
        !self.is_web_server
    }

    /// The folder of this machine that it is, if it is one.
    #[must_use]
    pub fn local_folder(&self) -> Option<PathBuf> {
        self.folder.as_ref()?.folder_of(&self.names.folder(FILES))
    }

    /// How patient it is.
    #[must_use]
    pub fn settings(&self) -> &BucketSettings {
        &self.settings
    }

    /// The store itself, for ranged reads. A request that fails at once is repeated twice within
    /// [`BucketSettings::request_timeout`]; how long one may take is for the caller to bound.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Where a segment or a run lies in [`Self::store`].
    #[must_use]
    pub fn file_path(&self, name: &str) -> Path {
        self.names.file(name)
    }

    /// How messages call an object: the bucket and its path.
    #[must_use]
    pub fn place_of(&self, path: &Path) -> String {
        format!("{}: {path}", self.place)
    }

    pub(crate) fn names(&self) -> &ObjectNames {
        &self.names
    }

    /// The genesis.json with this digest, as a manifest records it.
    pub async fn read_genesis(&self, digest: B256) -> Result<Vec<u8>, BucketError> {
        let path = self.names.genesis(digest);
        let read = || self.read(&path, store::genesis_file::GENESIS_BYTES_MAX);
        let bytes = self.retried_listed(read).await?;
        let found = crate::object_names::digest_of(&bytes);
        if found == digest {
            return Ok(bytes.into());
        }
        let reason = format!("its SHA-256 is {found}, its name says {digest}");
        Err(BucketError::Damaged { place: self.place_of(&path), reason })
    }

    /// A whole object, which must not be longer than `bytes_max`.
    pub(crate) async fn read(&self, path: &Path, bytes_max: u64) -> Result<Bytes, BucketError> {
        let read = || async {
            let found = self.in_time(path, "get", self.store.get(path)).await?;
            let bytes = found.meta.size;
            if bytes > bytes_max {
                let place = self.place_of(path);
                return Err(BucketError::TooLarge { place, bytes, bytes_max });
            }
            let read = self.in_time(path, "get", found.bytes()).await?;
            let found = u64::try_from(read.len()).unwrap_or(u64::MAX);
            if found == bytes {
                return Ok(read);
            }
            let reason = format!("{found} bytes came of {bytes}");
            Err(BucketError::Torn { place: self.place_of(path), reason })
        };
        self.retried(read).await
    }

    /// Writes a small object, whatever was there.
    pub(crate) async fn write(&self, path: &Path, bytes: Bytes) -> Result<(), BucketError> {
        self.check_writable()?;
        let write = || async {
            let payload = PutPayload::from_bytes(bytes.clone());
            let put = self.store.put(path, payload);
            self.in_time_of(bytes.len(), path, "put", put).await.map(drop)
        };
        self.retried(write).await
    }

    /// What is said of an object; `None` if it is not there.
    pub(crate) async fn look_up(&self, path: &Path) -> Result<Option<ObjectMeta>, BucketError> {
        let look = || async { self.in_time(path, "head", self.store.head(path)).await };
        match self.retried(look).await {
            Ok(found) => Ok(Some(found)),
            Err(BucketError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects directly in a folder, by name.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, BucketError> {
        self.list_at_most(folder, usize::MAX).await
    }

    /// The same, refused as soon as there are more objects than these below the folder.
    pub(crate) async fn list_at_most(
        &self,
        folder: &str,
        count_max: usize,
    ) -> Result<Vec<ObjectMeta>, BucketError> {
        let path = self.names.folder(folder);
        let list = || async {
            let mut objects = Vec::new();
            let mut listing = self.store.list(Some(&path));
            while let Some(found) = self.in_time(&path, "list", listing.try_next()).await? {
                if objects.len() >= count_max {
                    let (place, what) = (self.place_of(&path), "objects");
                    let max = u64::try_from(count_max).unwrap_or(u64::MAX);
                    return Err(BucketError::TooMany { place, what, max });
                }
                objects.push(found);
            }
            Ok(objects)
        };
        let mut objects: Vec<ObjectMeta> = self.retried(list).await?;
        objects.retain(|it| it.location.prefix_matches(&path));
        objects.retain(|it| it.location.parts_count() == path.parts_count().saturating_add(1));
        objects.sort_by(|one, other| one.location.cmp(&other.location));
        Ok(objects)
    }

    /// The names directly in a folder of what is there and no object can be: a FIFO, a folder. Only a bucket
    /// in a folder may have such, and its listings pass them over.
    pub(crate) async fn irregular(&self, folder: &str) -> Result<Vec<String>, BucketError> {
        let Some(store) = &self.folder else { return Ok(Vec::new()) };
        let path = self.names.folder(folder);
        let list = || async { self.in_time(&path, "list", store.irregular(&path)).await };
        self.retried(list).await
    }

    /// What writers have staged in a folder, or left there when they were killed. Only a bucket in a folder
    /// shows it to anybody.
    pub(crate) async fn staged(&self, folder: &str) -> Result<Vec<UploadRemnant>, BucketError> {
        let Some(store) = &self.folder else { return Ok(Vec::new()) };
        let path = self.names.folder(folder);
        let list = || async { self.in_time(&path, "list", store.staged(&path)).await };
        self.retried(list).await
    }

    /// Removes what is staged.
    pub(crate) async fn remove_staged(
        &self,
        folder: &str,
        staged: &UploadRemnant,
    ) -> Result<(), BucketError> {
        let Some(store) = &self.folder else { return Ok(()) };
        let path = self.names.folder(folder);
        let remove = || async { self.in_time(&path, "delete", store.remove_staged(staged)).await };
        self.retried(remove).await
    }

    /// Removes objects. One that is not there is no failure.
    pub(crate) async fn remove(&self, paths: &[Path]) -> Result<(), BucketError> {
        self.check_writable()?;
        let remove = |path: Path| async move {
            let remove = || async { self.in_time(&path, "delete", self.store.delete(&path)).await };
            match self.retried(remove).await {
                Ok(()) | Err(BucketError::Missing { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        let removals = futures_util::stream::iter(paths.iter().cloned().map(remove));
        removals.buffer_unordered(self.concurrency()).try_collect().await
    }

    /// How many requests are under way at once.
    pub(crate) fn concurrency(&self) -> usize {
        self.settings.concurrent_requests.max(1)
    }

    pub(crate) fn check_writable(&self) -> Result<(), BucketError> {
        if self.is_web_server {
            return Err(BucketError::ReadOnly { place: self.place.to_string() });
        }
        Ok(())
    }

    /// One step of a request, which fails if it takes too long.
    pub(crate) async fn in_time<T>(
        &self,
        path: &Path,
        operation: &'static str,
        step: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        self.in_time_of(0, path, operation, step).await
    }

    /// The same of a step that sends bytes, which a slow line may be long at.
    pub(crate) async fn in_time_of<T>(
        &self,
        sent_bytes: usize,
        path: &Path,
        operation: &'static str,
        step: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        let place = || self.place_of(path);
        let sent_bytes = u64::try_from(sent_bytes).unwrap_or(u64::MAX);
        let sending = Duration::from_secs(sent_bytes / SLOWEST_BYTES_A_SECOND);
        let timeout = self.settings.request_timeout.saturating_add(sending);
        match tokio::time::timeout(timeout, step).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => Err(BucketError::from_store(place(), operation, &cause)),
            Err(_) => Err(BucketError::TimedOut { place: place(), operation, timeout }),
        }
    }

    /// Repeats what failed for a reason that may pass.
    pub(crate) async fn retried<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, BucketError>
    where
        F: Future<Output = Result<T, BucketError>>,
    {
        self.retried_if(BucketError::may_pass, self.settings.retries, attempt).await
    }

    /// Repeats what asks for a listed object if that is not there. Other failures are for the caller to
    /// repeat.
    pub(crate) async fn retried_listed<T, F>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, BucketError>
    where
        F: Future<Output = Result<T, BucketError>>,
    {
        self.retried_if(BucketError::is_missing, self.settings.missing_retries, attempt).await
    }

    async fn retried_if<T, F>(
        &self,
        is_repeated: impl Fn(&BucketError) -> bool,
        retries: u32,
        attempt: impl Fn() -> F,
    ) -> Result<T, BucketError>
    where
        F: Future<Output = Result<T, BucketError>>,
    {
        let begun = Instant::now();
        let mut pause = BACKOFF;
        for _ in 0..retries {
            let left = || self.settings.retry_timeout.saturating_sub(begun.elapsed());
            match attempt().await {
                Err(error) if is_repeated(&error) && left() > pause => {
                    tracing::debug!(%error, "a request is repeated");
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2).min(BACKOFF_MAX);
                }
                ended => return ended,
            }
        }
        attempt().await
    }
}
