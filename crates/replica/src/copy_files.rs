//! Copying whole files out of a bucket, for mirrors and for what is kept near.

use std::sync::Arc;

use futures_util::StreamExt as _;
use store::disk::{Disk, DiskError, WritableFile};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::bucket::{Bucket, BucketError};
use crate::download::Download;
use crate::progress::PublishProgress;
use crate::published::BucketFault;
use crate::sealed_file::SealedFile;

/// What the name of a file ends with while it comes. What an end in the middle leaves means nothing.
const PARTIAL_END: &str = ".partial";
/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedFiles {
    /// Files that came.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already.
    pub files_there: u64,
    /// Files that the bucket has not, or has damaged: they were passed over.
    pub faults: Vec<BucketFault>,
}

/// Why files could not be copied. Those that came are there and whole.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The bucket refused or failed.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The folder could not be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A thread that writes files died.
    #[error("{file}: the thread that was writing it has ended")]
    Writing {
        /// The folder and the file.
        file: String,
    },
    /// Somebody asked to stop.
    #[error("stopped; the files that came are there for the next time")]
    Stopped,
}

/// Copies files into a folder, each held against its digest while it comes. A file that is there with its
/// listed length is not copied again; their names are durable at the end.
pub async fn copy_files(
    bucket: &Bucket,
    files: &[SealedFile],
    dest: &Arc<dyn Disk>,
    progress: &dyn PublishProgress,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<CopiedFiles, CopyError> {
    let mut copied = CopiedFiles::default();
    let mut wanted = Vec::new();
    for file in files {
        match dest.file_bytes(&file.name) {
            Ok(bytes) if bytes == file.bytes => {
                copied.files_there = copied.files_there.saturating_add(1);
            }
            Err(error) if !error.is_of_file() => return Err(error.into()),
            Ok(_) | Err(_) => wanted.push(file),
        }
    }
    let file_count = u64::try_from(wanted.len()).unwrap_or(u64::MAX);
    progress.plan(file_count, wanted.iter().map(|it| it.bytes).sum());
    let under_way = futures_util::stream::iter(wanted.into_iter().map(|file| async move {
        (file, FileCopy { bucket, file, dest, progress, stop }.make().await)
    }));
    let mut under_way = under_way.buffer_unordered(bucket.concurrency());
    while let Some((file, made)) = under_way.next().await {
        match made {
            Ok(()) => {
                copied.files = copied.files.saturating_add(1);
                copied.bytes = copied.bytes.saturating_add(file.bytes);
                progress.finish_file(&file.name);
            }
            Err(CopyError::Bucket(error)) if error.is_of_object() => {
                let (object, reason) = (bucket.file_path(&file.name), error.reason());
                copied.faults.push(BucketFault { object: object.to_string(), reason });
            }
            Err(error) => return Err(error),
        }
    }
    drop(under_way);
    dest.fsync_folder()?;
    copied.faults.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(copied)
}

/// One file on its way.
struct FileCopy<'a> {
    bucket: &'a Bucket,
    file: &'a SealedFile,
    dest: &'a Arc<dyn Disk>,
    progress: &'a dyn PublishProgress,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl FileCopy<'_> {
    async fn make(&self) -> Result<(), CopyError> {
        let mut left = self.bucket.settings().retries;
        loop {
            match self.try_to_make().await {
                Err(CopyError::Bucket(error)) if left > 0 && error.may_pass() => {
                    tracing::debug!(%error, file = self.file.name, "a copy is begun anew");
                    left = left.saturating_sub(1);
                }
                Err(error) => {
                    // The next copy writes over what cannot be removed now.
                    let name = self.partial_name();
                    let _ = self.on_disk(move |disk| disk.remove(&name)).await;
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn try_to_make(&self) -> Result<(), CopyError> {
        let mut download = Download::begin(self.bucket, self.file).await?;
        let mut buffer = Vec::new();
        let mut file: Option<Box<dyn WritableFile>> = None;
        loop {
            if (self.stop)() {
                return Err(CopyError::Stopped);
            }
            let next = download.next().await?;
            let is_last = next.is_none();
            if let Some(bytes) = next {
                self.progress.advance(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                buffer.extend_from_slice(&bytes);
            }
            if buffer.len() >= BUFFER_BYTES || is_last {
                let (partial, name) = (self.partial_name(), self.file.name.clone());
                let (begun, bytes) = (file.take(), std::mem::take(&mut buffer));
                let written = self.on_disk(move |disk| {
                    let mut file = match begun {
                        Some(mut file) => file.append(&bytes).map(|()| file)?,
                        None => disk.write(&partial, &bytes)?,
                    };
                    if is_last {
                        file.fsync()?;
                        disk.rename(&partial, &name)?;
                    }
                    Ok(file)
                });
                file = Some(written.await?);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn partial_name(&self) -> String {
        format!("{}{PARTIAL_END}", self.file.name)
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn Disk) -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, CopyError> {
        let disk = Arc::clone(self.dest);
        let acted = spawn_blocking(move || act(&*disk)).await;
        let file = || format!("{}/{}", self.dest.place(), self.file.name);
        Ok(acted.map_err(|_| CopyError::Writing { file: file() })??)
    }
}
