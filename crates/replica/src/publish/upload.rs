//! Sending one file.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};
use tokio::task::spawn_blocking;

use super::{PublishError, PublishTask};
use crate::bucket::{Bucket, BucketError};
use crate::sealed_file::{DigestCheck, FileMismatch, SealedFile};

/// Larger files are sent in parts.
const WHOLE_BYTES_MAX: u64 = 16 << 20;
/// What is sent at once of a larger one; all stores take it, and 10,000 of them are 80 GiB.
const PART_BYTES: u64 = 8 << 20;
/// Parts of one file that are under way at once.
const PARTS_AT_ONCE: usize = 2;

/// A file that is to be sent.
#[derive(Clone, Copy)]
pub(super) struct Upload<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) task: PublishTask<'a>,
    pub(super) file: &'a SealedFile,
    pub(super) is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Upload<'_> {
    pub(super) async fn send(&self) -> Result<(), PublishError> {
        self.check_stop()?;
        if self.file.bytes <= WHOLE_BYTES_MAX {
            return self.send_whole().await;
        }
        let mut left = self.bucket.settings().retries;
        loop {
            match self.send_in_parts().await {
                // A part that was lost cannot be sent again under its number.
                Err(PublishError::Bucket(error)) if left > 0 && error.may_pass() => {
                    tracing::warn!(%error, file = self.file.name, "an upload is begun anew");
                    left = left.saturating_sub(1);
                }
                ended => return ended,
            }
        }
    }

    async fn send_whole(&self) -> Result<(), PublishError> {
        let (bytes, check) = self.read(0, DigestCheck::new(self.file)).await?;
        check.finish().map_err(|mismatch| self.damaged(mismatch))?;
        self.bucket.write(&self.path(), bytes).await?;
        self.task.progress.advance(self.file.bytes);
        Ok(())
    }

    async fn send_in_parts(&self) -> Result<(), PublishError> {
        let path = self.path();
        let begin = || async {
            self.bucket.in_time(&path, "put", self.bucket.store().put_multipart(&path)).await
        };
        let mut parts = self.bucket.retried(begin).await?;
        let sent = self.send_parts(&mut *parts, &path).await;
        if sent.is_err() {
            // What was sent lies there unseen and costs; a store that fails at this has its own rules for it.
            let _ = self.bucket.in_time(&path, "abort", parts.abort()).await;
        }
        sent
    }

    async fn send_parts(
        &self,
        parts: &mut dyn MultipartUpload,
        path: &Path,
    ) -> Result<(), PublishError> {
        let mut check = DigestCheck::new(self.file);
        let mut under_way = FuturesUnordered::new();
        let mut at = 0_u64;
        while at < self.file.bytes {
            self.check_stop()?;
            let bytes;
            (bytes, check) = self.read(at, check).await?;
            let count = bytes.len();
            at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            let part = parts.put_part(PutPayload::from_bytes(bytes));
            under_way.push(async move {
                self.bucket.in_time_of(count, path, "put of a part", part).await.map(|()| count)
            });
            while under_way.len() >= PARTS_AT_ONCE {
                self.note_sent(under_way.next().await)?;
            }
        }
        while !under_way.is_empty() {
            self.note_sent(under_way.next().await)?;
        }
        drop(under_way);
        // Only now it gets its name.
        check.finish().map_err(|mismatch| self.damaged(mismatch))?;
        self.bucket.in_time(path, "put", parts.complete()).await?;
        Ok(())
    }

    fn note_sent(&self, sent: Option<Result<usize, BucketError>>) -> Result<(), PublishError> {
        if let Some(count) = sent.transpose()? {
            self.task.progress.advance(u64::try_from(count).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// The part of the file that begins here: all of a short one. It is digested as it is read.
    async fn read(
        &self,
        at: u64,
        mut check: DigestCheck,
    ) -> Result<(Bytes, DigestCheck), PublishError> {
        let file_bytes = self.file.bytes;
        let part_bytes = if file_bytes <= WHOLE_BYTES_MAX { file_bytes } else { PART_BYTES };
        let range = at..at.saturating_add(part_bytes).min(file_bytes);
        let (disk, name) = (Arc::clone(self.task.disk), self.file.name.clone());
        let read = spawn_blocking(move || {
            let found = disk.file_bytes(&name)?;
            if found != file_bytes {
                return Ok(Err(FileMismatch::Length { found, expected: file_bytes }));
            }
            let bytes = disk.read_range(&name, range)?;
            Ok::<_, PublishError>(check.take(&bytes).map(|()| (Bytes::from(bytes), check)))
        });
        let read = read.await.map_err(|_| PublishError::Reading { file: self.place() })?;
        read?.map_err(|mismatch| self.damaged(mismatch))
    }

    fn check_stop(&self) -> Result<(), PublishError> {
        if (self.is_stopped)() { Err(PublishError::Stopped) } else { Ok(()) }
    }

    fn path(&self) -> Path {
        self.bucket.file_path(&self.file.name)
    }

    fn place(&self) -> String {
        format!("{}/{}", self.task.disk.place(), self.file.name)
    }

    fn damaged(&self, mismatch: FileMismatch) -> PublishError {
        PublishError::Damaged { file: self.place(), mismatch }
    }
}
