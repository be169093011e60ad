//! Reading whole files of a bucket, held against their digests.
//!
//! Knows: that bytes are believed when the last of them has come.
//! Never knows: where they go.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::ObjectStoreExt as _;

use crate::bucket::{Bucket, BucketError};
use crate::sealed_file::{DigestCheck, SealedFile};

/// What comes of a file that was begun to be read.
pub(crate) struct Download<'a> {
    bucket: &'a Bucket,
    file: &'a SealedFile,
    pieces: futures_util::stream::BoxStream<'static, object_store::Result<Bytes>>,
    check: Option<DigestCheck>,
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
        Ok(Self { bucket, file, pieces: found.into_stream(), check })
    }

    /// The bytes that follow; `None` when all of them have come and are those of the file.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BucketError> {
        let path = self.bucket.file_path(&self.file.name);
        let place = || self.bucket.place_of(&path);
        let next = self.bucket.in_time(&path, "get", self.pieces.try_next()).await?;
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
}
