//! A bucket in a folder: what the library's store does, for regular files alone.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use store::disk::{Disk as _, DiskError, Folder};
use tokio::task::spawn_blocking;

type StoreAnswer<'a, T> = BoxFuture<'a, Result<T>>;

/// Folders of the system as an object store.
#[derive(Clone, Debug)]
pub(super) struct FolderStore {
    files: LocalFileSystem,
}

/// What a writer that was killed left beside a file, or one that still writes has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UploadRemnant {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// When it was last written to.
    pub(crate) written: SystemTime,
}

impl FolderStore {
    pub(super) fn new(is_synced: bool) -> Self {
        Self { files: LocalFileSystem::new().with_fsync(is_synced) }
    }

    /// The folder in which an object lies.
    pub(super) fn folder_of(&self, location: &Path) -> Option<PathBuf> {
        self.files.path_to_filesystem(location).ok()?.parent().map(FilePath::to_owned)
    }

    /// Refuses what is there and is no regular file.
    async fn check(&self, location: &Path) -> Result<()> {
        let path = self.files.path_to_filesystem(location)?;
        on_disk(move || match refuse_irregular(&path) {
            Ok(()) => Ok(()),
            Err(source) => Err(Error::NotSupported { source: source.into() }),
        })
        .await
    }

    /// The names in a folder of what is no regular file. Listings pass it over.
    pub(super) async fn irregular(&self, folder: &Path) -> Result<Vec<String>> {
        let path = self.files.path_to_filesystem(folder)?;
        on_disk(move || {
            if !path.is_dir() {
                return Ok(Vec::new());
            }
            let found = Folder::open(path).and_then(|folder| folder.irregular());
            let found = found.map_err(|error| failed(error.into()))?;
            Ok(found.into_iter().map(|it| it.name).collect())
        })
        .await
    }

    /// What lies staged in a folder. No listing shows it.
    pub(super) async fn staged(&self, folder: &Path) -> Result<Vec<UploadRemnant>> {
        let path = self.files.path_to_filesystem(folder)?;
        on_disk(move || find_staged(&path).map_err(|cause| failed(cause.into()))).await
    }

    /// Removes what lies staged. Whoever still writes there fails, and begins anew.
    pub(super) async fn remove_staged(&self, staged: &UploadRemnant) -> Result<()> {
        let path = staged.path.clone();
        on_disk(move || match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(cause.into())),
            Ok(()) | Err(_) => Ok(()),
        })
        .await
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work).await?
}

fn failed(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Generic { store: "folder", source }
}

/// What is not there, or cannot be looked at, is left to whoever opens it.
fn refuse_irregular(path: &FilePath) -> Result<(), DiskError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((folder, name)) = path.parent().zip(name) else { return Ok(()) };
    match Folder::open(folder).and_then(|folder| folder.file_bytes(name)) {
        Err(error @ DiskError::NotAFile { .. }) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn find_staged(folder: &FilePath) -> io::Result<Vec<UploadRemnant>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(is_staged_name) {
            continue;
        }
        match entry.metadata() {
            Ok(it) if it.is_file() => {
                let (bytes, written) = (it.len(), it.modified()?);
                found.push(UploadRemnant { path: entry.path(), bytes, written });
            }
            // Its writer has given it its name since.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Ok(_) => {}
            Err(cause) => return Err(cause),
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The library writes a file as `NAME#N`, with the first number that is free.
fn is_staged_name(name: &str) -> bool {
    name.split_once('#').is_some_and(|(name, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
        !name.is_empty() && is_number
    })
}

impl fmt::Display for FolderStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

impl ObjectStore for FolderStore {
    fn put_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> StoreAnswer<'t, PutResult>
    where
        'a: 't,
        'b: 't,
    {
        Box::pin(async move {
            self.check(location).await?;
            self.files.put_opts(location, payload, opts).await
        })
    }

    fn put_multipart_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        opts: PutMultipartOptions,
    ) -> StoreAnswer<'t, Box<dyn MultipartUpload>>
    where
        'a: 't,
        'b: 't,
    {
        Box::pin(async move {
            self.check(location).await?;
            self.files.put_multipart_opts(location, opts).await
        })
    }

    fn get_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        options: GetOptions,
    ) -> StoreAnswer<'t, GetResult>
    where
        'a: 't,
        'b: 't,
    {
        Box::pin(async move {
            self.check(location).await?;
            self.files.get_opts(location, options).await
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_delimiter<'a, 'b, 't>(
        &'a self,
        prefix: Option<&'b Path>,
    ) -> StoreAnswer<'t, ListResult>
    where
        'a: 't,
        'b: 't,
    {
        self.files.list_with_delimiter(prefix)
    }

    fn copy_opts<'a, 'b, 'c, 't>(
        &'a self,
        from: &'b Path,
        to: &'c Path,
        options: CopyOptions,
    ) -> StoreAnswer<'t, ()>
    where
        'a: 't,
        'b: 't,
        'c: 't,
    {
        self.files.copy_opts(from, to, options)
    }

    fn rename_opts<'a, 'b, 'c, 't>(
        &'a self,
        from: &'b Path,
        to: &'c Path,
        options: RenameOptions,
    ) -> StoreAnswer<'t, ()>
    where
        'a: 't,
        'b: 't,
        'c: 't,
    {
        self.files.rename_opts(from, to, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_a_number_is_staged() {
        for name in ["a.seg#1", "index#12", "a b#0"] {
            assert!(is_staged_name(name), "{name}");
        }
        for name in ["a.seg", "#1", "a#", "a#1x", "a#1#2", ""] {
            assert!(!is_staged_name(name), "{name}");
        }
    }
}
