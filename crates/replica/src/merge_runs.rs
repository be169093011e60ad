//! Building the large runs of a bucket that several publishers filled, each with its own range.

mod union;

use std::sync::Arc;

use segment::index::RunSpan;
use store::disk::Disk;
use store::manifest::{ManifestConflict, RunEntry};
use store::{RunSubject, StoreError, merge_run_files};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::bucket::{Bucket, BucketError};
use crate::copy_files::{CopyError, copy_files};
use crate::progress::PublishProgress;
use crate::publish::{Publication, PublishError, PublishTask, publish};
use crate::published::{Published, read_published};
use crate::sealed_file::SealedFile;

use union::SlotUnion;

/// What merging came to.
#[derive(Clone, Debug, Default)]
pub struct MergedRuns {
    /// The runs that were built, with those on the way to them.
    pub built: Vec<String>,
    /// The manifest that lists the complete slots and their runs; `None` if all runs were there.
    pub publication: Option<Publication>,
}

/// Why runs were not merged. The bucket is as it was, but for files that nothing lists.
#[derive(Debug, Error)]
pub enum RunMergeError {
    /// The bucket refused or failed.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Runs could not be fetched.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A run that is to be merged is not there, or damaged.
    #[error("{object}: {reason}; nothing was merged")]
    Damaged {
        /// Its path.
        object: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two runs could not be made one.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The publishers' slots cannot be of one chain.
    #[error("the manifests contradict each other: {0}")]
    Conflict(#[from] ManifestConflict),
    /// The result could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The thread that merges died.
    #[error("the thread that was merging runs has ended")]
    Merging,
}

/// Fetches the runs of complete slots that were published apart, merges them as one folder would, and
/// publishes a manifest of these slots with the large runs. The scratch folder is for this alone, and may be
/// thrown away afterwards.
pub async fn merge_runs(
    bucket: &Bucket,
    scratch: &Arc<dyn Disk>,
    progress: &dyn PublishProgress,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<MergedRuns, RunMergeError> {
    bucket.check_writable()?;
    let published = read_published(bucket, &Published::default()).await?;
    let mut union = SlotUnion::of(&published)?;
    let mut merging = Merging { bucket, scratch, progress, stop, built: Vec::new() };
    for subject in RunSubject::ALL {
        for span in union.wanted(subject) {
            let run = merging.build(&union, subject, span).await?;
            union.choose(run);
        }
    }
    let built = merging.built;
    if built.is_empty() {
        return Ok(MergedRuns::default());
    }
    let manifest = union.into_manifest()?;
    let genesis = match manifest.genesis_file() {
        Some(digest) => Some(bucket.read_genesis(digest).await?),
        None => None,
    };
    let task = PublishTask {
        disk: scratch,
        manifest: &manifest,
        genesis: genesis.as_deref(),
        progress,
        stop,
    };
    let publication = publish(bucket, &published, task).await?;
    Ok(MergedRuns { built, publication: Some(publication) })
}

/// Runs in the making.
struct Merging<'a> {
    bucket: &'a Bucket,
    scratch: &'a Arc<dyn Disk>,
    progress: &'a dyn PublishProgress,
    stop: &'a (dyn Fn() -> bool + Sync),
    built: Vec<String>,
}

/// What remains to be done for a run.
enum MergeWork {
    /// Make sure that it is there, in halves if nobody has published it.
    Build(RunSpan),
    /// Make one of the last two.
    Merge(RunSpan),
}

impl Merging<'_> {
    /// The run of these slots: one that is published, or one that is built of those.
    async fn build(
        &mut self,
        union: &SlotUnion<'_>,
        subject: RunSubject,
        wanted: RunSpan,
    ) -> Result<RunEntry, RunMergeError> {
        if let Some(published) = union.run(subject, wanted) {
            return Ok(published.clone());
        }
        let mut work = vec![MergeWork::Build(wanted)];
        let mut done: Vec<RunEntry> = Vec::new();
        while let Some(next) = work.pop() {
            match next {
                MergeWork::Build(span) => match (union.run(subject, span), halves_of(span)) {
                    (Some(run), _) => {
                        self.fetch(run).await?;
                        done.push(run.clone());
                    }
                    (None, Some((left, right))) => {
                        work.extend([
                            MergeWork::Merge(span),
                            MergeWork::Build(right),
                            MergeWork::Build(left),
                        ]);
                    }
                    // Only slots that have a run are wanted.
                    (None, None) => return Err(Self::missing(subject, span)),
                },
                MergeWork::Merge(span) => {
                    let (right, left) = (done.pop(), done.pop());
                    let halves = left.zip(right);
                    let halves = halves.ok_or_else(|| Self::missing(subject, span))?;
                    done.push(self.merge(span, halves).await?);
                }
            }
        }
        done.pop().ok_or_else(|| Self::missing(subject, wanted))
    }

    fn missing(subject: RunSubject, span: RunSpan) -> RunMergeError {
        let (object, reason) = (format!("the run of {subject} of {span}"), "it is not published");
        RunMergeError::Damaged { object, reason: reason.to_owned() }
    }

    async fn fetch(&self, run: &RunEntry) -> Result<(), RunMergeError> {
        let files = [SealedFile::from(run)];
        let copied = copy_files(self.bucket, &files, self.scratch, self.progress, self.stop);
        match copied.await?.faults.pop() {
            None => Ok(()),
            Some(fault) => {
                Err(RunMergeError::Damaged { object: fault.object, reason: fault.reason })
            }
        }
    }

    async fn merge(
        &mut self,
        span: RunSpan,
        (left, right): (RunEntry, RunEntry),
    ) -> Result<RunEntry, RunMergeError> {
        if (self.stop)() {
            return Err(CopyError::Stopped.into());
        }
        let scratch = Arc::clone(self.scratch);
        let merge = move || merge_run_files(&scratch, span, (&left, &right), &|| false);
        let merged = spawn_blocking(merge).await.map_err(|_| RunMergeError::Merging)??;
        self.built.push(merged.file_name.clone());
        Ok(merged)
    }
}

/// The two halves of a span of more than one slot.
fn halves_of(span: RunSpan) -> Option<(RunSpan, RunSpan)> {
    let half = span.slot_count() / 2;
    let left = RunSpan::new(span.first_slot(), half).ok()?;
    let right = RunSpan::new(span.first_slot().checked_add(half)?, half).ok()?;
    Some((left, right))
}
