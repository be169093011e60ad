//! Publishing what a folder holds.
//!
//! A publisher that ends in the middle leaves files that nothing lists; the next one finds them there. No
//! publisher asks another, and none relies on conditional writes: all names come from content.

mod error;
mod upload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alloy_primitives::{B256, hex};
use futures_util::StreamExt as _;
use store::disk::Disk;
use store::manifest::Manifest;

use crate::bucket::Bucket;
use crate::object_names::{FILES, MANIFESTS, digest_of};
use crate::progress::PublishProgress;
use crate::prune::forget_orphans;
use crate::published::{Published, PublishedManifest, read_published, write_index};
use crate::sealed_file::{SealedFile, listed_files};
use crate::supersede::{find_other_branch, find_other_chain, superseded};

pub use error::PublishError;
use upload::Upload;

/// How often files are sent that are not there afterwards.
const ROUNDS_MAX: usize = 3;

/// What was published.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Files that were sent.
    pub files_put: u64,
    /// Their bytes.
    pub bytes_put: u64,
    /// Files that were there already.
    pub files_there: u64,
    /// The name of the manifest.
    pub manifest: B256,
    /// Whether it is new.
    pub is_new: bool,
    /// Manifests that others hold all of, and that were removed.
    pub removed: Vec<B256>,
    /// Segments of the folder that somebody has withdrawn: no reader serves them.
    pub withdrawn: Vec<String>,
    /// What the bucket held before; the next publication may be told of it.
    pub before: Published,
}

/// What is to be published, and who watches.
#[derive(Clone, Copy)]
pub struct PublishTask<'a> {
    /// Where the files are. Nobody may remove them meanwhile.
    pub disk: &'a Arc<dyn Disk>,
    /// What is live there.
    pub manifest: &'a Manifest,
    /// The genesis.json that the manifest records, if it records one.
    pub genesis: Option<&'a [u8]>,
    /// Is told how far it is.
    pub progress: &'a dyn PublishProgress,
    /// Whether it is to end early.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for PublishTask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishTask").field("disk", self.disk).finish_non_exhaustive()
    }
}

/// Publishes the sealed files of a manifest. What is there already is not sent again.
///
/// Of what is `known` of the bucket nothing is read again.
pub async fn publish(
    bucket: &Bucket,
    known: &Published,
    task: PublishTask<'_>,
) -> Result<Publication, PublishError> {
    bucket.check_writable()?;
    let manifest = Arc::new(task.manifest.to_published());
    if manifest.segments().is_empty() {
        return Err(PublishError::Empty { folder: task.disk.place() });
    }
    let genesis = check_genesis(&manifest, task)?;
    let before = read_published(bucket, known).await?;
    refuse_others(&manifest, &before)?;
    let is_withdrawn = |it: &SealedFile| before.retracted.contains(&it.name);
    let files = listed_files(&manifest);
    let (withdrawn, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_withdrawn);
    let mut sending = Sending { bucket, task, files: &files, sent: BTreeMap::new() };
    sending.send_all().await?;
    if let Some((digest, bytes)) = genesis {
        let path = bucket.names().genesis(digest);
        if bucket.look_up(&path).await?.is_none() {
            bucket.write(&path, bytes.to_vec().into()).await?;
        }
    }
    let text = manifest.encode();
    let name = digest_of(&text);
    let is_new = before.manifests.iter().all(|it| it.name != name);
    if is_new {
        let path = bucket.names().named_by_digest(MANIFESTS, name);
        bucket.write(&path, text.into()).await?;
        // Whoever prunes may have removed a file that nothing listed until now.
        sending.send_all().await?;
    }
    let sent = sending.sent;
    let live = before.live_files();
    if files.iter().any(|it| !sent.contains_key(&it.name) && !live.contains_key(&it.name)) {
        forget_orphans(bucket).await?;
    }
    let removed = remove_superseded(bucket, &before, name).await?;
    let files_put = u64::try_from(sent.len()).unwrap_or(u64::MAX);
    let file_count = u64::try_from(files.len()).unwrap_or(u64::MAX);
    Ok(Publication {
        files_put,
        bytes_put: sent.values().sum(),
        files_there: file_count.saturating_sub(files_put),
        manifest: name,
        is_new,
        removed,
        withdrawn: withdrawn.into_iter().map(|it| it.name).collect(),
        before,
    })
}

/// Removes manifests that were superseded before this publication by others that were there, after the
/// index that does not name them. One that is superseded only now stays until the next time, so that
/// whoever lists the bucket at this moment finds it or its successor.
async fn remove_superseded(
    bucket: &Bucket,
    before: &Published,
    own: B256,
) -> Result<Vec<B256>, PublishError> {
    let superseded = superseded(&before.manifests, &before.retracted);
    let going: BTreeSet<B256> = superseded.into_keys().filter(|it| *it != own).collect();
    write_index(bucket, &going).await?;
    let names = going.iter().map(|it| bucket.names().named_by_digest(MANIFESTS, *it));
    bucket.remove(&names.collect::<Vec<_>>()).await?;
    Ok(going.into_iter().collect())
}

/// The genesis.json that is to be published.
fn check_genesis<'a>(
    manifest: &Manifest,
    task: PublishTask<'a>,
) -> Result<Option<(B256, &'a [u8])>, PublishError> {
    let Some(recorded) = manifest.genesis_file() else { return Ok(None) };
    let found = task.genesis.map(digest_of);
    if found == Some(recorded) {
        return Ok(Some(recorded).zip(task.genesis));
    }
    let found = found.map_or_else(|| "it was not given".to_owned(), |it| format!("it is {it}"));
    Err(PublishError::Genesis { folder: task.disk.place(), found, recorded })
}

/// Refuses a chain, or a branch of it, that is not the one that the bucket holds.
fn refuse_others(manifest: &Manifest, before: &Published) -> Result<(), PublishError> {
    for PublishedManifest { name, manifest: other, .. } in &before.manifests {
        let held_by = || hex::encode(name);
        if let Some((what, found, held)) = find_other_chain(manifest, other) {
            return Err(PublishError::OtherChain { what, found, held, held_by: held_by() });
        }
        if let Some((number, found, held)) = find_other_branch(manifest, other, &before.retracted) {
            return Err(PublishError::OtherBranch { number, found, held, held_by: held_by() });
        }
    }
    Ok(())
}

/// Files on their way.
struct Sending<'a> {
    bucket: &'a Bucket,
    task: PublishTask<'a>,
    files: &'a [SealedFile],
    /// What was sent, with its length.
    sent: BTreeMap<String, u64>,
}

impl Sending<'_> {
    /// Sends what is not there, and looks whether all is there then.
    async fn send_all(&mut self) -> Result<(), PublishError> {
        for _ in 0..ROUNDS_MAX {
            let missing = self.missing().await?;
            if missing.is_empty() {
                return Ok(());
            }
            self.send(&missing).await?;
        }
        match self.missing().await?.first() {
            None => Ok(()),
            Some(file) => {
                let object = self.bucket.place_of(&self.bucket.file_path(&file.name));
                Err(PublishError::NotThere { object, bytes: file.bytes })
            }
        }
    }

    /// The files that are not there with the length that they should have.
    async fn missing(&self) -> Result<Vec<SealedFile>, PublishError> {
        let there = file_lengths(self.bucket).await?;
        let mut missing = Vec::new();
        for file in self.files {
            let mut found = there.get(&file.name).copied();
            // A listing may be older than what was sent a moment ago.
            if found != Some(file.bytes) && self.sent.contains_key(&file.name) {
                let path = self.bucket.file_path(&file.name);
                found = self.bucket.look_up(&path).await?.map(|it| it.size);
            }
            if found != Some(file.bytes) {
                missing.push(file.clone());
            }
        }
        Ok(missing)
    }

    async fn send(&mut self, files: &[SealedFile]) -> Result<(), PublishError> {
        let Self { bucket, task, .. } = *self;
        let file_count = u64::try_from(files.len()).unwrap_or(u64::MAX);
        task.progress.plan(file_count, files.iter().map(|it| it.bytes).sum());
        // After a failure the others end too, each giving up what it has begun.
        let has_failed = AtomicBool::new(false);
        let is_stopped = || has_failed.load(Ordering::Relaxed) || (task.stop)();
        let uploads = futures_util::stream::iter(files.iter().map(|file| {
            let upload = Upload { bucket, task, file, is_stopped: &is_stopped };
            async move { (file, upload.send().await) }
        }));
        // Each of them has several parts under way.
        let mut uploads = uploads.buffer_unordered(bucket.concurrency().div_ceil(2));
        let mut failure = None;
        while let Some((file, sent)) = uploads.next().await {
            match sent {
                Ok(()) => {
                    task.progress.finish_file(&file.name);
                    self.sent.insert(file.name.clone(), file.bytes);
                }
                Err(error) => {
                    has_failed.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// The lengths of the files that a bucket has, by name.
async fn file_lengths(bucket: &Bucket) -> Result<HashMap<String, u64>, PublishError> {
    let objects = bucket.list(FILES).await?;
    let named = objects.iter().filter_map(|it| Some((it.location.filename()?.to_owned(), it.size)));
    Ok(named.collect())
}
