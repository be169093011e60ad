//! Proving that a bucket has what its manifests list.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;

use crate::bucket::{Bucket, BucketError};
use crate::download::Download;
use crate::progress::PublishProgress;
use crate::published::{BucketFault, Published, read_published};
use crate::sealed_file::SealedFile;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketReport {
    /// Manifests that were believed.
    pub manifests: u64,
    /// Files that are there and right.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is not, in the order of the objects' paths.
    pub faults: Vec<BucketFault>,
    /// Whether somebody asked to stop before all files were read.
    pub is_partial: bool,
}

/// Reads every object that a manifest lists, but for withdrawn segments, and holds it against its length
/// and digest. An error is of the store as a whole; what is wrong with one object is in the report.
pub async fn check(
    bucket: &Bucket,
    progress: &dyn PublishProgress,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<BucketReport, BucketError> {
    let published = read_published(bucket, &Published::default()).await?;
    let files = published.live_files();
    let mut report = BucketReport {
        manifests: u64::try_from(published.manifests.len()).unwrap_or(u64::MAX),
        ..BucketReport::default()
    };
    report.faults.extend(check_genesis(bucket, &published).await?);
    let file_count = u64::try_from(files.len()).unwrap_or(u64::MAX);
    progress.plan(file_count, files.values().map(|it| it.bytes).sum());
    let checks = futures_util::stream::iter(files.values().map(|file| async move {
        if stop() { (file, None) } else { (file, Some(check_file(bucket, file, progress).await)) }
    }));
    let mut checks = checks.buffer_unordered(bucket.concurrency());
    while let Some((file, checked)) = checks.next().await {
        match checked {
            None => report.is_partial = true,
            Some(Ok(())) => {
                report.files = report.files.saturating_add(1);
                report.bytes = report.bytes.saturating_add(file.bytes);
                progress.finish_file(&file.name);
            }
            Some(Err(error)) if error.is_of_object() => {
                let (object, reason) = (bucket.file_path(&file.name), error.reason());
                report.faults.push(BucketFault { object: object.to_string(), reason });
            }
            Some(Err(error)) => return Err(error),
        }
    }
    report.faults.extend(published.faults);
    report.faults.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(report)
}

async fn check_genesis(
    bucket: &Bucket,
    published: &Published,
) -> Result<Vec<BucketFault>, BucketError> {
    let mut faults = BTreeMap::new();
    let recorded = published.manifests.iter().filter_map(|it| it.manifest.genesis_file());
    for digest in recorded {
        match bucket.read_genesis(digest).await {
            Ok(_) => {}
            Err(error) if error.is_of_object() => {
                let object = bucket.names().genesis(digest).to_string();
                faults.insert(object, error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(faults.into_iter().map(|(object, reason)| BucketFault { object, reason }).collect())
}

async fn check_file(
    bucket: &Bucket,
    file: &SealedFile,
    progress: &dyn PublishProgress,
) -> Result<(), BucketError> {
    let read = || async {
        let mut download = Download::begin(bucket, file).await?;
        while let Some(bytes) = download.next().await? {
            progress.advance(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    };
    bucket.retried(read).await
}
