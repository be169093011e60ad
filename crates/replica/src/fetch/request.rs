//! One range by as many requests as it takes: a second beside a slow one, and again after a failure.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{RangeFetchError, RangeReadSettings, RemoteObject};
use crate::bucket::{Bucket, BucketError};
use crate::range_cache::range_bytes;
use crate::remote_counts::RemoteCounters;

/// The longest pause between two attempts.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Sends requests for ranges.
#[derive(Debug)]
pub(super) struct RangeRequests {
    bucket: Bucket,
    settings: RangeReadSettings,
    counters: Arc<RemoteCounters>,
}

impl RangeRequests {
    pub(super) fn new(
        bucket: Bucket,
        settings: RangeReadSettings,
        counters: Arc<RemoteCounters>,
    ) -> Self {
        Self { bucket, settings, counters }
    }

    /// How messages call a file.
    pub(super) fn place_of(&self, name: &str) -> String {
        self.bucket.place_of(&self.bucket.file_path(name))
    }

    /// Exactly the bytes of the range, or why they do not come.
    pub(super) async fn get(
        &self,
        object: &RemoteObject,
        range: Range<u64>,
    ) -> Result<Bytes, RangeFetchError> {
        let RangeReadSettings { total_timeout, retry_pause, .. } = self.settings;
        let (deadline, mut pause) = (Instant::now() + total_timeout, retry_pause);
        let mut attempts = 1;
        loop {
            let failure = match timeout_at(deadline, self.hedged(object, &range)).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(failure)) => failure,
                Err(_) => self.timed_out(object, total_timeout),
            };
            let is_late = deadline.saturating_duration_since(Instant::now()) <= pause;
            if attempts > self.retries_after(&failure) || is_late {
                self.counters.failures.add(1);
                let failure = self.held_against_length(object, failure, deadline).await;
                return Err(failure.after(self.place_of(&object.name), range, attempts));
            }
            tracing::debug!(file = %object.name, attempts, %failure, "a range is asked for again");
            self.counters.retries.add(1);
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(RETRY_PAUSE_MAX);
            attempts = attempts.saturating_add(1);
        }
    }

    /// How often it is repeated what failed like this.
    fn retries_after(&self, failure: &AttemptFailure) -> u32 {
        match failure {
            AttemptFailure::Store(BucketError::Missing { .. }) => self.settings.missing_retries,
            failure if failure.may_pass() => self.settings.retries,
            AttemptFailure::Store(_) | AttemptFailure::Length { .. } => 0,
        }
    }

    fn timed_out(&self, object: &RemoteObject, timeout: Duration) -> AttemptFailure {
        let (place, operation) = (self.place_of(&object.name), "get");
        AttemptFailure::Store(BucketError::TimedOut { place, operation, timeout })
    }

    /// A store refuses a range beyond the end of an object in words of its own: the length tells whether
    /// the object is at fault.
    async fn held_against_length(
        &self,
        object: &RemoteObject,
        failure: AttemptFailure,
        deadline: Instant,
    ) -> AttemptFailure {
        if !matches!(failure, AttemptFailure::Store(BucketError::Failed { .. })) {
            return failure;
        }
        let path = self.bucket.file_path(&object.name);
        self.counters.requests.add(1);
        let deadline = deadline.min(Instant::now() + self.settings.attempt_timeout);
        let head = timeout_at(deadline, self.bucket.store().head(&path)).await;
        match head {
            Ok(Ok(meta)) if meta.size != object.file_bytes => {
                AttemptFailure::Length { found: meta.size, file_bytes: object.file_bytes }
            }
            Ok(Ok(_) | Err(_)) | Err(_) => failure,
        }
    }

    /// How long the first request for so many bytes is alone.
    fn hedge_after(&self, range: &Range<u64>) -> Duration {
        let millis = range_bytes(range).saturating_mul(1000);
        let millis = millis.checked_div(self.settings.hedge_bytes_per_second).unwrap_or(0);
        self.settings.hedge_after.saturating_add(Duration::from_millis(millis))
    }

    /// Asks once, and a second time beside it if that takes long. The first success counts.
    async fn hedged(
        &self,
        object: &RemoteObject,
        range: &Range<u64>,
    ) -> Result<Bytes, AttemptFailure> {
        let mut first = pin!(self.ask(object, range));
        let alone = pin!(sleep(self.hedge_after(range)));
        if let Either::Left((answer, _)) = select(first.as_mut(), alone).await {
            return answer;
        }
        self.counters.hedges.add(1);
        let second = pin!(self.ask(object, range));
        match select(first, second).await {
            Either::Left((Ok(bytes), _)) | Either::Right((Ok(bytes), _)) => Ok(bytes),
            Either::Left((Err(failure), _)) | Either::Right((Err(failure), _))
                if !failure.may_pass() =>
            {
                Err(failure)
            }
            Either::Left((Err(_), other)) | Either::Right((Err(_), other)) => other.await,
        }
    }

    /// Sends one request, and believes its answer if that is the range of the listed file.
    async fn ask(
        &self,
        object: &RemoteObject,
        range: &Range<u64>,
    ) -> Result<Bytes, AttemptFailure> {
        self.counters.requests.add(1);
        let path = self.bucket.file_path(&object.name);
        let place = || self.bucket.place_of(&path);
        let failed = |cause: object_store::Error| {
            AttemptFailure::Store(BucketError::from_store(place(), "get", &cause))
        };
        let asked = async {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range.clone())),
                ..GetOptions::default()
            };
            let answer = self.bucket.store().get_opts(&path, options).await.map_err(failed)?;
            let (found, came) = (answer.meta.size, answer.range.clone());
            if found != object.file_bytes {
                return Err(AttemptFailure::Length { found, file_bytes: object.file_bytes });
            }
            // Whatever the answer says of its length: no more is taken than was asked for.
            let bytes_max = range_bytes(range);
            let mut bytes = Vec::new();
            let mut parts = answer.into_stream();
            while let Some(part) = parts.next().await {
                bytes.extend_from_slice(&part.map_err(failed)?);
                if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
                    let reason =
                        format!("more than the {bytes_max} bytes that were asked for came");
                    return Err(AttemptFailure::Store(BucketError::Torn {
                        place: place(),
                        reason,
                    }));
                }
            }
            Ok((Bytes::from(bytes), came))
        };
        let attempt_timeout = self.settings.attempt_timeout;
        let Ok(answer) = timeout(attempt_timeout, asked).await else {
            return Err(self.timed_out(object, attempt_timeout));
        };
        let (bytes, came) = answer?;
        let byte_count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.counters.bytes_fetched.add(byte_count);
        if came != *range || byte_count != range_bytes(range) {
            let reason = format!("bytes {}..{} came, {byte_count} of them", came.start, came.end);
            return Err(AttemptFailure::Store(BucketError::Torn { place: place(), reason }));
        }
        Ok(bytes)
    }
}

/// Why one attempt failed.
#[derive(Debug, thiserror::Error)]
enum AttemptFailure {
    #[error("{0}")]
    Store(BucketError),
    #[error("the object has {found} bytes, {file_bytes} are listed")]
    Length { found: u64, file_bytes: u64 },
}

impl AttemptFailure {
    fn may_pass(&self) -> bool {
        match self {
            Self::Store(cause) => cause.may_pass(),
            Self::Length { .. } => false,
        }
    }

    fn after(self, place: String, range: Range<u64>, attempts: u32) -> RangeFetchError {
        match self {
            Self::Store(BucketError::Missing { .. }) => RangeFetchError::Missing { place },
            Self::Store(BucketError::NotAFile { kind, .. }) => {
                RangeFetchError::NotAFile { place, kind }
            }
            Self::Store(cause) => RangeFetchError::Failed { place, range, attempts, cause },
            Self::Length { found, file_bytes } => {
                RangeFetchError::Length { place, found, file_bytes }
            }
        }
    }
}
