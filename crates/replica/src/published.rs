//! What a bucket holds, as its manifests and retractions tell it.

mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use futures_util::StreamExt as _;
use futures_util::future::try_join;
use store::manifest::{MANIFEST_BYTES_MAX, Manifest};

use crate::bucket::{Bucket, BucketError};
use crate::object_names::{MANIFESTS, RETRACTIONS, digest_of};
use crate::sealed_file::{SealedFile, find_misnamed, listed_files};
use crate::signed_text::{TEXT_BYTES_MAX, decode_lines};

use listing::{ListedManifests, retractions_after};
pub(crate) use listing::{Listing, write_index};

/// The first line of a retraction.
pub(crate) const RETRACTION_TITLE: &str = "quipu retraction 1";
/// How often the bucket is listed anew if what was listed is gone when it is read.
const LISTINGS_MAX: usize = 3;
/// Before it is listed anew.
const LISTING_PAUSE: Duration = Duration::from_millis(100);

/// What a bucket held at one moment.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Every manifest that could be believed, by name.
    pub manifests: Vec<PublishedManifest>,
    /// File names of segments that are withdrawn: whoever lists them, they are not to be served.
    pub retracted: BTreeSet<String>,
    /// What is damaged or gone; the rest is as good as ever.
    pub faults: Vec<BucketFault>,
    /// The retractions that `retracted` comes from, by name.
    pub(crate) retractions: Vec<Retraction>,
}

/// A manifest of a bucket.
#[derive(Clone, Debug)]
pub struct PublishedManifest {
    /// SHA-256 of its text.
    pub name: B256,
    /// What it says.
    pub manifest: Arc<Manifest>,
    /// How long its text is.
    pub bytes: u64,
}

/// Segments that one retraction withdraws.
#[derive(Clone, Debug)]
pub(crate) struct Retraction {
    pub(crate) name: B256,
    pub(crate) segments: Arc<BTreeSet<String>>,
    bytes: u64,
}

/// An object that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFault {
    /// Its path in the bucket.
    pub object: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Published {
    /// Whether both hold the same manifests and retractions.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let names = |it: &Self| it.manifests.iter().map(|it| it.name).collect::<Vec<_>>();
        names(self) == names(other) && self.retracted == other.retracted
    }

    /// The files that manifests list and nobody withdrew, by name.
    #[must_use]
    pub fn live_files(&self) -> BTreeMap<String, SealedFile> {
        let listed = self.manifests.iter().flat_map(|it| listed_files(&it.manifest));
        let live = listed.filter(|it| !self.retracted.contains(&it.name));
        live.map(|it| (it.name.clone(), it)).collect()
    }

    fn manifest(&self, name: B256) -> Option<PublishedManifest> {
        self.manifests.iter().find(|it| it.name == name).cloned()
    }

    fn retraction(&self, name: B256) -> Option<Retraction> {
        self.retractions.iter().find(|it| it.name == name).cloned()
    }

    /// A bucket that listed manifests and lists none any more is not a bucket without history: its folder is
    /// not mounted, or another answers in its place.
    fn refuse_emptied(self, bucket: &Bucket, known: &Self) -> Result<Self, BucketError> {
        if known.manifests.is_empty() || !self.manifests.is_empty() {
            return Ok(self);
        }
        let place = bucket.place().to_owned();
        let reason = format!("{} manifests were listed before, and none is", known.manifests.len());
        Err(BucketError::Damaged { place, reason })
    }

    /// Refuses to go on once this is more than is read of one bucket.
    fn check_bytes(&self, bucket: &Bucket) -> Result<(), BucketError> {
        let manifests = self.manifests.iter().map(|it| it.bytes);
        let bytes = manifests.chain(self.retractions.iter().map(|it| it.bytes));
        let max = bucket.settings().listed_bytes_max;
        if bytes.fold(0, u64::saturating_add) <= max {
            return Ok(());
        }
        let (place, what) = (bucket.place().to_owned(), "bytes of manifests and retractions");
        Err(BucketError::TooMany { place, what, max })
    }

    /// One object says nothing of the others; a store that fails says nothing of the object.
    fn note_fault(&mut self, object: String, error: BucketError) -> Result<(), BucketError> {
        if !error.is_of_object() {
            return Err(error);
        }
        self.faults.push(BucketFault { object, reason: error.reason() });
        Ok(())
    }

    /// Adds the manifests that are listed, read as far as they are not `known`. Tells whether one was gone:
    /// then the listing is older than the bucket.
    async fn add_manifests(
        &mut self,
        bucket: &Bucket,
        known: &Self,
        listed: &BTreeSet<B256>,
    ) -> Result<bool, BucketError> {
        let mut is_gone = false;
        let manifests = futures_util::stream::iter(listed.iter().copied());
        let manifests = manifests.map(|name| async move {
            match known.manifest(name) {
                Some(known) => (name, Ok(known)),
                None => (name, read_manifest(bucket, name).await),
            }
        });
        let mut manifests = manifests.buffered(bucket.concurrency());
        while let Some((name, read)) = manifests.next().await {
            match read {
                Ok(manifest) => self.manifests.push(manifest),
                Err(error) => {
                    is_gone |= error.is_missing();
                    self.note_fault(object(bucket, MANIFESTS, name), error)?;
                }
            }
            self.check_bytes(bucket)?;
        }
        // A listing may be stale: what was read stays until it is known to be gone.
        for manifest in known.manifests.iter().filter(|it| !listed.contains(&it.name)) {
            let path = bucket.names().named_by_digest(MANIFESTS, manifest.name);
            match bucket.look_up(&path).await {
                Ok(Some(_)) => self.manifests.push(manifest.clone()),
                Ok(None) => {}
                Err(error) => self.note_fault(path.to_string(), error)?,
            }
        }
        self.manifests.sort_by_key(|it| it.name);
        Ok(is_gone)
    }

    /// The same of retractions, which all must be there.
    async fn add_retractions(
        &mut self,
        bucket: &Bucket,
        known: &Self,
        listed: &BTreeSet<B256>,
    ) -> Result<bool, BucketError> {
        let mut is_gone = false;
        let retractions = futures_util::stream::iter(listed.iter().copied());
        let retractions = retractions.map(|name| async move {
            match known.retraction(name) {
                Some(known) => Ok(known),
                None => read_retraction(bucket, name).await,
            }
        });
        let mut retractions = retractions.buffered(bucket.concurrency());
        while let Some(read) = retractions.next().await {
            match read {
                Ok(retraction) => self.retractions.push(retraction),
                // What it withdraws must not be served because it cannot be read: nothing of this look
                // is used.
                Err(error) if error.is_missing() => is_gone = true,
                Err(error) => return Err(error),
            }
            self.check_bytes(bucket)?;
        }
        for retraction in &known.retractions {
            let path = bucket.names().named_by_digest(RETRACTIONS, retraction.name);
            let is_listed = listed.contains(&retraction.name);
            if !is_listed && bucket.look_up(&path).await?.is_some() {
                self.retractions.push(retraction.clone());
            }
        }
        self.retractions.sort_by_key(|it| it.name);
        let segments = self.retractions.iter().flat_map(|it| it.segments.iter().cloned());
        self.retracted = segments.collect();
        Ok(is_gone)
    }

    /// What is listed now, read as far as it is not `known`. Whether something was gone is told too: then
    /// the listing is older than the bucket.
    ///
    /// Retractions are listed after manifests, and while those are read: a reader that starts waits for two
    /// round trips and not for three.
    async fn read(bucket: &Bucket, known: &Self) -> Result<(Self, bool), BucketError> {
        let ListedManifests { manifests: listed, retractions } =
            ListedManifests::read(bucket).await?;
        let (mut published, mut withdrawn) = (Self::default(), Self::default());
        let manifests = published.add_manifests(bucket, known, &listed);
        let retractions = async {
            let listed = retractions_after(bucket, retractions).await?;
            withdrawn.add_retractions(bucket, known, &listed).await
        };
        let (is_manifest_gone, is_retraction_gone) = try_join(manifests, retractions).await?;
        let Self { retractions, retracted, .. } = withdrawn;
        let read = Self { retracted, retractions, ..published };
        read.check_bytes(bucket)?;
        Ok((read, is_manifest_gone || is_retraction_gone))
    }
}

/// What a bucket holds now. What is `known` from the last time is not read again.
///
/// A manifest that is damaged is told by name, and the rest is used. A store that does not answer is an
/// error, and so is a retraction that cannot be read: nothing follows from such a look.
pub async fn read_published(bucket: &Bucket, known: &Published) -> Result<Published, BucketError> {
    let mut left = LISTINGS_MAX;
    loop {
        let (published, is_gone) = Published::read(bucket, known).await?;
        left = left.saturating_sub(1);
        // A publisher replaced a manifest between the listing and the reading: the next listing has its
        // successor.
        if !is_gone || left == 0 {
            return published.refuse_emptied(bucket, known);
        }
        // Or the store lists it and does not show it everywhere yet.
        tokio::time::sleep(LISTING_PAUSE).await;
    }
}

fn object(bucket: &Bucket, folder: &str, name: B256) -> String {
    bucket.names().named_by_digest(folder, name).to_string()
}

/// Reads a manifest, and believes it if it is the one that its name says and lists files as they are
/// published.
async fn read_manifest(bucket: &Bucket, name: B256) -> Result<PublishedManifest, BucketError> {
    let path = bucket.names().named_by_digest(MANIFESTS, name);
    let bytes = bucket.read(&path, MANIFEST_BYTES_MAX).await?;
    let damaged = |reason| BucketError::Damaged { place: bucket.place_of(&path), reason };
    check_digest(&bytes, name).map_err(damaged)?;
    let manifest = decode_published_manifest(&bytes).map_err(damaged)?;
    Ok(PublishedManifest { name, manifest: Arc::new(manifest), bytes: count_bytes(&bytes) })
}

/// A manifest that lists files as they are published; public for fuzzers.
#[doc(hidden)]
pub fn decode_published_manifest(bytes: &[u8]) -> Result<Manifest, String> {
    let manifest = Manifest::decode(bytes).map_err(|fault| fault.to_string())?;
    if let Some((name, expected)) = find_misnamed(&manifest) {
        return Err(format!("it lists a file as {name}, whose name would be {expected}"));
    }
    if manifest != manifest.to_published() {
        return Err("it tells of a folder's head or of lost blocks".to_owned());
    }
    Ok(manifest)
}

async fn read_retraction(bucket: &Bucket, name: B256) -> Result<Retraction, BucketError> {
    let path = bucket.names().named_by_digest(RETRACTIONS, name);
    let bytes = bucket.read(&path, TEXT_BYTES_MAX).await?;
    let damaged = |reason| BucketError::Damaged { place: bucket.place_of(&path), reason };
    check_digest(&bytes, name).map_err(damaged)?;
    let segments = decode_lines(RETRACTION_TITLE, &bytes).map_err(damaged)?;
    Ok(Retraction { name, segments: Arc::new(segments), bytes: count_bytes(&bytes) })
}

fn count_bytes(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn check_digest(bytes: &[u8], name: B256) -> Result<(), String> {
    let found = digest_of(bytes);
    if found == name { Ok(()) } else { Err(format!("its SHA-256 is {found}")) }
}
