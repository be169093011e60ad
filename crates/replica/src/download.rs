//! Reading whole files of a bucket, held against their digests.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use tokio::time::Instant;

use crate::bucket::{Bucket, BucketError};
use crate::sealed_file::{DigestCheck, SealedFile};

/// Less than so much while it was waited for [`BucketSettings::request_timeout`] counts for nothing, as it
/// does of a mirror of archives: a file would take for ever.
///
/// [`BucketSettings::request_timeout`]: crate::BucketSettings::request_timeout
const PROGRESS_BYTES_MIN: u64 = 64 << 10;

/// What comes of a file that was begun to be read.
pub(crate) struct Download<'a> {
    bucket: &'a Bucket,
    file: &'a SealedFile,
    pieces: futures_util::stream::BoxStream<'static, object_store::Result<Bytes>>,
    check: Option<DigestCheck>,
    /// What came since that much had come last, and how long it was waited for it.
    bytes_since: u64,
    waited: Duration,
}

impl<'a> Download<'a> {
    /// Asks for all of a file. Nothing is repeated but the question for one that is not there: whoever keeps
    /// the pieces has to begin anew.
    pub(crate) async fn begin(
        bucket: &'a Bucket,
        file: &'a SealedFile,
    ) -> Result<Self, BucketError> {
        let path = bucket.file_path(&file.name);
        let get = || bucket.in_time(&path, "get", bucket.store().get(&path));
        let found = bucket.retried_listed(get).await?;
        let (bytes, expected) = (found.meta.size, file.bytes);
        if bytes != expected {
            let reason = format!("it has {bytes} bytes, {expected} are listed");
            return Err(BucketError::Damaged { place: bucket.place_of(&path), reason });
        }
        let check = Some(DigestCheck::new(file));
        let (pieces, waited) = (found.into_stream(), Duration::ZERO);
        Ok(Self { bucket, file, pieces, check, bytes_since: 0, waited })
    }

    /// The bytes that follow; `None` when all of them have come and are those of the file.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BucketError> {
        let path = self.bucket.file_path(&self.file.name);
        let place = || self.bucket.place_of(&path);
        let next = self.next_piece(&path).await?;
        let Some(check) = &mut self.check else { return Ok(None) };
        if let Some(bytes) = next {
            let taken = check.take(&bytes);
            let torn = |mismatch: crate::FileMismatch| mismatch.to_string();
            taken.map_err(|it| BucketError::Torn { place: place(), reason: torn(it) })?;
            return Ok(Some(bytes));
        }
        match self.check.take().map(DigestCheck::finish) {
            None | Some(Ok(())) => Ok(None),
            // The answer ended early: another one may be whole.
            Some(Err(mismatch @ crate::FileMismatch::Length { .. })) => {
                Err(BucketError::Torn { place: place(), reason: mismatch.to_string() })
            }
            Some(Err(mismatch)) => {
                Err(BucketError::Damaged { place: place(), reason: mismatch.to_string() })
            }
        }
    }

    /// The next piece. Whoever takes the pieces may take his time: only what it was waited for counts.
    async fn next_piece(&mut self, path: &Path) -> Result<Option<Bytes>, BucketError> {
        let begun = Instant::now();
        let timeout = self.bucket.settings().request_timeout;
        let left = timeout.saturating_sub(self.waited);
        let Ok(next) = tokio::time::timeout(left, self.pieces.try_next()).await else {
            let (place, operation) = (self.bucket.place_of(path), "get");
            return Err(match self.bytes_since {
                0 => BucketError::TimedOut { place, operation, timeout },
                bytes => BucketError::TooSlow { place, operation, bytes, timeout },
            });
        };
        let store = |cause| BucketError::from_store(self.bucket.place_of(path), "get", &cause);
        let next = next.map_err(store)?;
        self.waited = self.waited.saturating_add(begun.elapsed());
        let bytes = next.as_ref().map_or(0, Bytes::len);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes_since = self.bytes_since.saturating_add(bytes);
        if self.bytes_since >= PROGRESS_BYTES_MIN {
            (self.bytes_since, self.waited) = (0, Duration::ZERO);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::B256;
    use sha2::{Digest as _, Sha256};
    use tokio::time::sleep;

    use super::*;
    use crate::scripted_store::{ScriptedStore, Step};
    use crate::sealed_file::FileKind;

    const SECOND: Duration = Duration::from_secs(1);
    const FILE_BYTES: usize = 200_000;

    /// Reads a file whose bytes come as `step` says to somebody who takes so long over each piece.
    async fn read(step: Step, pause: Duration) -> Result<(), BucketError> {
        let store = Arc::<ScriptedStore>::default();
        let bytes = vec![7; FILE_BYTES];
        store.put_file("a.run", &bytes).await;
        let digest = B256::from_slice(&Sha256::digest(&bytes));
        let (name, bytes) = ("a.run".to_owned(), u64::try_from(FILE_BYTES).unwrap());
        let file = SealedFile { name, bytes, digest, kind: FileKind::Run };
        store.script(&[step]);
        let bucket = store.bucket();
        let mut download = Download::begin(&bucket, &file).await?;
        while download.next().await?.is_some() {
            sleep(pause).await;
        }
        Ok(())
    }

    /// Seen: a server that sent a byte a second had a fetch wait for days.
    #[tokio::test(start_paused = true)]
    async fn a_drip_is_a_failure_and_a_slow_line_is_none() {
        let begun = Instant::now();
        let refused = read(Step::Drip { bytes: 1, every: SECOND }, Duration::ZERO).await;
        let refused = refused.unwrap_err();
        assert!(refused.may_pass() && !refused.is_of_object());
        let refused = refused.to_string();
        assert!(refused.contains("bytes within 20 s"), "{refused}");
        assert_eq!(begun.elapsed(), SECOND * 20);
        read(Step::Drip { bytes: 3000, every: SECOND }, Duration::ZERO).await.unwrap_err();
        read(Step::Drip { bytes: 4000, every: SECOND }, Duration::ZERO).await.unwrap();
        // Whoever is slow to take what has come does not make the server slow.
        read(Step::Drip { bytes: 4000, every: SECOND }, SECOND * 60).await.unwrap();
        let refused = read(Step::Drip { bytes: 1, every: SECOND * 30 }, Duration::ZERO).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("no answer within 20 s"), "{refused}");
    }
}
