//! Buckets, as commands open them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alloy_primitives::hex;
use anyhow::anyhow;
use indicatif::HumanBytes;
use replica::{Bucket, BucketError, BucketSettings, PublishProgress, Published, read_published};
use store::PublishedHistory;
use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::hints::system_hint;
use crate::output::{clock, counted, grouped};
use crate::progress::ProgressLine;

/// Opens the bucket that a flag names. Nothing is asked yet.
pub(crate) fn open_bucket(flag: &str, url: &str) -> Result<Bucket, Failure> {
    Bucket::open(url, BucketSettings::default())
        .map_err(|error| Failure::Usage(anyhow!("{flag}: {error}")))
}

/// The same for a command that makes less of what a bucket has: it reads what readers refuse for being too
/// much.
pub(crate) fn open_bucket_for_upkeep(url: &str) -> Result<Bucket, Failure> {
    Bucket::open(url, BucketSettings::for_upkeep())
        .map_err(|error| Failure::Usage(anyhow!("--at: {error}")))
}

/// What is published in a bucket, all of it read anew.
pub(crate) async fn read_bucket(bucket: &Bucket) -> Result<Published, Failure> {
    let published = read_published(bucket, &Published::default()).await;
    published.map_err(|error| bucket_failure(&error))
}

/// Refuses a bucket that is not there, or in which nobody has published: its address was mistyped.
pub(crate) fn refuse_unpublished(bucket: &Bucket, published: &Published) -> Result<(), Failure> {
    if published.manifests.is_empty() && published.faults.is_empty() {
        return Err(nothing_published(bucket, "--at"));
    }
    Ok(())
}

/// Nothing is published in the bucket that a flag names.
pub(crate) fn nothing_published(bucket: &Bucket, flag: &str) -> Failure {
    Failure::Work(anyhow!(
        "{}: nothing is published here\n  hint: see whether {flag} is right",
        bucket.place()
    ))
}

/// Refuses to publish into a data folder: it is flat, and its files are its own.
pub(crate) fn refuse_place_in(folder: &Path, flag: &str, bucket: &Bucket) -> Result<(), Failure> {
    let Some(place) = bucket.local_folder() else { return Ok(()) };
    // It need not be there yet.
    let above = place.ancestors().find_map(|path| path.canonicalize().ok());
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if above.is_none_or(|above| !above.starts_with(&folder)) {
        return Ok(());
    }
    Err(Failure::Usage(anyhow!(
        "{flag}: {} is in the data folder {}: name another folder",
        bucket.place(),
        folder.display()
    )))
}

/// Where a command asks a bucket.
pub(crate) fn bucket_runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Why a bucket could not be used, and what to do about it.
pub(crate) fn bucket_failure(error: &BucketError) -> Failure {
    let hint = bucket_hint(error).map_or(String::new(), |hint| format!("\n  hint: {hint}"));
    Failure::Work(anyhow!("{error}{hint}"))
}

fn bucket_hint(error: &BucketError) -> Option<&'static str> {
    if let Some(hint) = error.system_kind().and_then(system_hint) {
        return Some(hint);
    }
    if !error.may_pass() && !error.is_denied() {
        return None;
    }
    match error.place().split_once(':')?.0 {
        "s3" | "s3a" => Some(
            "check the network, and the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and \
             AWS_REGION; AWS_ENDPOINT_URL names a store other than Amazon's",
        ),
        "gs" => Some(
            "check the network, and the variable GOOGLE_APPLICATION_CREDENTIALS, which names a file \
             of credentials",
        ),
        "az" | "adl" | "azure" | "abfs" | "abfss" => Some(
            "check the network, and the variables AZURE_STORAGE_ACCOUNT_NAME and \
             AZURE_STORAGE_ACCOUNT_KEY",
        ),
        "http" | "https" => Some("check the address and whether its server runs"),
        _ => None,
    }
}

/// What was read of a bucket, as a store takes it.
pub(crate) fn published_history(published: &Published) -> PublishedHistory {
    let manifests = published
        .manifests
        .iter()
        .map(|it| (format!("manifests/{}", hex::encode(it.name)), Arc::clone(&it.manifest)));
    let unread = published.faults.iter().map(|it| (it.object.clone(), it.reason.clone()));
    PublishedHistory::new(manifests, published.retracted.clone(), unread)
}

/// Draws how far files are on their way, to a bucket or from one.
#[derive(Debug)]
pub(crate) struct TransferProgress {
    what: &'static str,
    line: ProgressLine,
    begun: Instant,
    files: AtomicU64,
    bytes: AtomicU64,
    done: AtomicU64,
}

impl TransferProgress {
    pub(crate) fn new(what: &'static str) -> Self {
        let (line, begun) = (ProgressLine::default(), Instant::now());
        let [files, bytes, done] = [const { AtomicU64::new(0) }; 3];
        Self { what, line, begun, files, bytes, done }
    }

    /// Ends the line; tells how long it took.
    pub(crate) fn finish(&self) -> Duration {
        self.line.finish();
        self.begun.elapsed()
    }

    fn show_if_due(&self) {
        if !self.line.is_due(self.begun.elapsed()) {
            return;
        }
        let order = Ordering::Relaxed;
        let (done, total) = (self.done.load(order), self.bytes.load(order));
        let percent = done.saturating_mul(100) / total.max(1);
        let files = counted(self.files.load(order), "file");
        if !self.line.is_terminal {
            let amount = format!("{} of {} bytes", grouped(done), grouped(total));
            self.line.say(&format!("{}: {percent} %, {amount}, {files} left", self.what));
            return;
        }
        let pace = self.line.pace(done);
        let parts = [
            format!("{percent} %"),
            format!("eta {}", clock(pace.left.as_secs())),
            format!("{} of {}", HumanBytes(done), HumanBytes(total)),
            format!("{}/s", HumanBytes(pace.per_second)),
            format!("{files} left"),
        ];
        self.line.show(self.what, done, total, &parts);
    }
}

impl PublishProgress for TransferProgress {
    fn plan(&self, files: u64, bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.line.set_total(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.show_if_due();
    }

    fn finish_file(&self, _name: &str) {
        let less = |files: u64| Some(files.saturating_sub(1));
        let _ = self.files.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}
