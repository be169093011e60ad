//! Removing what is superseded, after a grace period.
//!
//! A manifest goes when another one that holds all of it is older than the grace period. For files that
//! nothing lists nobody knows since when, so they are noted first: an *orphans* object names those that
//! were found, and its age is how long they have been orphans at least. Files that are orphans still when
//! their note is old enough go, and the note with them.
//!
//! Retractions stay: a publisher that was away may still list what they withdraw.
//!
//! In a folder, a writer that is killed leaves its half of a file beside the name that it would have got.
//! It goes when nobody has written to it for the grace period.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::B256;
use object_store::ObjectMeta;

use crate::bucket::{Bucket, BucketError};
use crate::object_names::{
    FILES, GENESIS, MANIFESTS, ORPHANS, RETRACTIONS, digest_in_name, digest_of,
};
use crate::published::{Published, read_published, write_index};
use crate::signed_text::{TEXT_BYTES_MAX, decode_lines, encode_lines};
use crate::supersede::superseded;

/// The first line of a note of orphans.
pub(crate) const ORPHANS_TITLE: &str = "quipu orphans 1";
/// Files that are removed before it is looked again whether somebody lists them now.
const BATCH: usize = 200;

/// What was removed, and what may be the next time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Manifests that others hold all of.
    pub manifests: Vec<B256>,
    /// Files that nothing lists, or that were withdrawn.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that are not listed or were withdrawn, and that were not found so long enough ago.
    pub files_noted: u64,
    /// In a folder, halves of files that killed publishers left.
    pub staged: u64,
    /// Their bytes.
    pub staged_bytes: u64,
}

/// Removes what was superseded for longer than `grace`, which has to be longer than any reader keeps what
/// it has listed, and than any publisher takes for what it has to send.
///
/// Nothing is removed that a damaged manifest could list: then it is an error that names it.
pub async fn prune(
    bucket: &Bucket,
    grace: Duration,
    now: SystemTime,
) -> Result<Pruning, BucketError> {
    bucket.check_writable()?;
    let bound = GracePeriod { grace, now };
    let mut pruning = Pruning::default();
    let published = read_whole(bucket, &Published::default()).await?;
    let going = old_superseded(bucket, &published, bound).await?;
    if !going.is_empty() {
        write_index(bucket, &going).await?;
        let paths = going.iter().map(|it| bucket.names().named_by_digest(MANIFESTS, *it));
        bucket.remove(&paths.collect::<Vec<_>>()).await?;
        pruning.manifests = going.into_iter().collect();
    }
    let published = read_whole(bucket, &published).await?;
    prune_files(bucket, published, bound, &mut pruning).await?;
    prune_staged(bucket, bound, &mut pruning).await?;
    Ok(pruning)
}

/// What is there, if all of it could be read: a manifest that cannot be read may list anything.
async fn read_whole(bucket: &Bucket, known: &Published) -> Result<Published, BucketError> {
    let published = read_published(bucket, known).await?;
    match published.faults.first() {
        None => Ok(published),
        Some(fault) => {
            let place = format!("{}: {}", bucket.place(), fault.object);
            let reason = format!("nothing is removed while it is damaged: {}", fault.reason);
            Err(BucketError::Damaged { place, reason })
        }
    }
}

/// How old something has to be.
#[derive(Clone, Copy)]
struct GracePeriod {
    grace: Duration,
    now: SystemTime,
}

impl GracePeriod {
    fn is_old(self, object: &ObjectMeta) -> bool {
        let written = u64::try_from(object.last_modified.timestamp_millis()).unwrap_or_default();
        let written = UNIX_EPOCH.checked_add(Duration::from_millis(written));
        written.is_some_and(|written| self.is_long_ago(written))
    }

    fn is_long_ago(self, written: SystemTime) -> bool {
        // What seems to be of the future is young.
        self.now.duration_since(written).is_ok_and(|age| age >= self.grace)
    }
}

/// The manifests that old ones hold all of.
async fn old_superseded(
    bucket: &Bucket,
    published: &Published,
    bound: GracePeriod,
) -> Result<BTreeSet<B256>, BucketError> {
    let objects = bucket.list(MANIFESTS).await?;
    let old = objects.iter().filter(|it| bound.is_old(it));
    let old: BTreeSet<B256> =
        old.filter_map(|it| digest_in_name(it.location.filename()?)).collect();
    let superseded = superseded(&published.manifests, &published.retracted);
    let is_going = |holders: &[B256]| holders.iter().any(|it| old.contains(it));
    let going = superseded.into_iter().filter(|(_, holders)| is_going(holders));
    Ok(going.map(|(name, _)| name).collect())
}

async fn prune_files(
    bucket: &Bucket,
    mut published: Published,
    bound: GracePeriod,
    pruning: &mut Pruning,
) -> Result<(), BucketError> {
    let lengths: BTreeMap<String, u64> = bucket
        .list(FILES)
        .await?
        .into_iter()
        .filter_map(|it| Some((it.location.filename()?.to_owned(), it.size)))
        .collect();
    let live = published.live_files();
    let orphans: BTreeSet<String> =
        lengths.keys().filter(|it| !live.contains_key(*it)).cloned().collect();
    let notes = Notes::read(bucket, bound).await?;
    let new: BTreeSet<String> = orphans.difference(&notes.all()).cloned().collect();
    let notes = if new.is_empty() {
        notes
    } else {
        let text = encode_lines(ORPHANS_TITLE, &new);
        let path = bucket.names().named_by_digest(ORPHANS, digest_of(&text));
        bucket.write(&path, text.into()).await?;
        Notes::read(bucket, bound).await?
    };
    let old = notes.old();
    let going: Vec<String> = orphans.iter().filter(|it| old.contains(*it)).cloned().collect();
    let staying = orphans.len().saturating_sub(going.len());
    pruning.files_noted = u64::try_from(staying).unwrap_or(u64::MAX);
    for batch in going.chunks(BATCH) {
        // Somebody may have published one of them since.
        published = read_whole(bucket, &published).await?;
        let live = published.live_files();
        let batch: Vec<&String> = batch.iter().filter(|it| !live.contains_key(*it)).collect();
        let paths: Vec<_> = batch.iter().map(|it| bucket.file_path(it)).collect();
        bucket.remove(&paths).await?;
        pruning.files =
            pruning.files.saturating_add(u64::try_from(batch.len()).unwrap_or(u64::MAX));
        let bytes: u64 = batch.iter().filter_map(|it| lengths.get(*it)).sum();
        pruning.bytes = pruning.bytes.saturating_add(bytes);
    }
    let left: BTreeSet<&String> = lengths.keys().filter(|it| !going.contains(it)).collect();
    prune_notes(bucket, &notes, &orphans, &left).await
}

/// Removes what nobody has written to for so long that its writer was killed.
async fn prune_staged(
    bucket: &Bucket,
    bound: GracePeriod,
    pruning: &mut Pruning,
) -> Result<(), BucketError> {
    for folder in [FILES, GENESIS, MANIFESTS, ORPHANS, RETRACTIONS] {
        let staged = bucket.staged(folder).await?;
        for staged in staged.iter().filter(|it| bound.is_long_ago(it.written)) {
            bucket.remove_staged(folder, staged).await?;
            pruning.staged = pruning.staged.saturating_add(1);
            pruning.staged_bytes = pruning.staged_bytes.saturating_add(staged.bytes);
        }
    }
    Ok(())
}

/// Removes notes of which no file is an orphan any more: those that are gone, and those that somebody lists
/// again, which would be removed at once when they become orphans another time.
async fn prune_notes(
    bucket: &Bucket,
    notes: &Notes,
    orphans: &BTreeSet<String>,
    left: &BTreeSet<&String>,
) -> Result<(), BucketError> {
    let is_done = |files: &BTreeSet<String>| {
        let is_orphan = |it: &String| orphans.contains(it) && left.contains(it);
        !files.iter().any(is_orphan) || files.iter().any(|it| !is_orphan(it) && left.contains(it))
    };
    let done = notes.0.iter().filter(|(_, _, files)| is_done(files));
    let paths = done.map(|(name, ..)| bucket.names().named_by_digest(ORPHANS, *name));
    bucket.remove(&paths.collect::<Vec<_>>()).await
}

/// Forgets what was noted of orphans: some of them are listed again, and when they become orphans another
/// time they have to be so for as long as others.
pub(crate) async fn forget_orphans(bucket: &Bucket) -> Result<(), BucketError> {
    let notes = bucket.list(ORPHANS).await?;
    bucket.remove(&notes.into_iter().map(|it| it.location).collect::<Vec<_>>()).await
}

/// What was noted as orphans: the name of each note, whether it is old enough, and its files.
struct Notes(Vec<(B256, bool, BTreeSet<String>)>);

impl Notes {
    async fn read(bucket: &Bucket, bound: GracePeriod) -> Result<Self, BucketError> {
        let mut notes = Vec::new();
        for object in bucket.list(ORPHANS).await? {
            let Some(name) = object.location.filename().and_then(digest_in_name) else { continue };
            let bytes = match bucket.read(&object.location, TEXT_BYTES_MAX).await {
                // Another one prunes at the same time.
                Err(BucketError::Missing { .. }) => continue,
                read => read?,
            };
            // A note that is damaged notes nothing: its files are noted anew.
            let files = decode_lines(ORPHANS_TITLE, &bytes).ok();
            let files = files.filter(|_| digest_of(&bytes) == name).unwrap_or_default();
            notes.push((name, bound.is_old(&object), files));
        }
        Ok(Self(notes))
    }

    fn all(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|(_, _, files)| files.iter().cloned()).collect()
    }

    fn old(&self) -> BTreeSet<String> {
        let old = self.0.iter().filter(|(_, is_old, _)| *is_old);
        old.flat_map(|(_, _, files)| files.iter().cloned()).collect()
    }
}
