//! A store for tests that does to each request what a script says.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use tokio::time::sleep;

use crate::bucket::{Bucket, BucketSettings};

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It is answered.
    Answer,
    /// It is answered after so long.
    After(Duration),
    /// It is never answered.
    Hang,
    /// The server fails.
    Fail,
    /// The store does not show the object.
    Miss,
    /// The caller may not.
    Refuse,
    /// The last byte is missing.
    Short,
    /// It has another range.
    Elsewhere,
    /// So many bytes come each time.
    Drip {
        /// How many.
        bytes: usize,
        /// How long they take.
        every: Duration,
    },
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store in memory, and what happens to the requests for ranges; when the script ends, they are
/// answered.
#[derive(Debug, Default)]
pub(crate) struct ScriptedStore {
    objects: InMemory,
    script: Mutex<VecDeque<Step>>,
    requests: Mutex<Vec<(String, Range<u64>)>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

/// A request that ends, in whatever way.
struct UnderWay<'a>(&'a ScriptedStore);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Display for ScriptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted")
    }
}

impl ScriptedStore {
    pub(crate) fn bucket(self: &Arc<Self>) -> Bucket {
        let store = Arc::clone(self);
        Bucket::of_store(store, Path::from("net"), "s3://bucket", BucketSettings::default())
    }

    /// Puts a file below the bucket's prefix.
    pub(crate) async fn put_file(self: &Arc<Self>, name: &str, bytes: &[u8]) {
        let path = self.bucket().file_path(name);
        self.objects.put(&path, PutPayload::from(Bytes::copy_from_slice(bytes))).await.unwrap();
    }

    pub(crate) fn script(&self, steps: &[Step]) {
        self.script.lock().unwrap().extend(steps);
    }

    /// The ranges that were requested since the last call.
    pub(crate) fn take_ranges(&self) -> Vec<Range<u64>> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().map(|(_, range)| range).collect()
    }

    /// How many requests are being answered.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    /// How many were being answered at the same time.
    pub(crate) fn most_under_way(&self) -> usize {
        self.most_under_way.load(Ordering::SeqCst)
    }

    async fn get(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let answer = self.objects.get_opts(path, options).await?;
        if is_head {
            return Ok(answer);
        }
        let name = path.filename().unwrap_or_default().to_owned();
        self.requests.lock().unwrap().push((name, answer.range.clone()));
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let _under_way = UnderWay(self);
        self.most_under_way.fetch_max(now, Ordering::SeqCst);
        let step = self.script.lock().unwrap().pop_front().unwrap_or(Step::Answer);
        let range = answer.range.clone();
        match step {
            Step::Answer => Ok(answer),
            Step::After(pause) => {
                sleep(pause).await;
                Ok(answer)
            }
            Step::Hang => std::future::pending().await,
            Step::Fail => Err(Error::Generic { store: "scripted", source: "status 503".into() }),
            Step::Miss => {
                Err(Error::NotFound { path: path.to_string(), source: "status 404".into() })
            }
            Step::Refuse => {
                Err(Error::PermissionDenied { path: path.to_string(), source: "status 403".into() })
            }
            Step::Short => {
                let meta = answer.meta.clone();
                let bytes = answer.bytes().await?;
                let short = bytes.slice(..bytes.len() - 1);
                let payload = stream::once(async move { Ok(short) }).boxed();
                let payload = GetResultPayload::Stream(payload);
                let (attributes, extensions) = (Attributes::default(), Extensions::default());
                Ok(GetResult { payload, meta, range, attributes, extensions })
            }
            Step::Drip { bytes, every } => {
                let meta = answer.meta.clone();
                let left = answer.bytes().await?;
                let payload = stream::unfold(left, move |mut left| async move {
                    sleep(every).await;
                    let piece = left.split_to(bytes.min(left.len()));
                    (!piece.is_empty()).then_some((Ok(piece), left))
                });
                let payload = GetResultPayload::Stream(payload.boxed());
                let (attributes, extensions) = (Attributes::default(), Extensions::default());
                Ok(GetResult { payload, meta, range, attributes, extensions })
            }
            Step::Elsewhere => {
                let range = range.start + 1..range.end + 1;
                Ok(GetResult { range, ..answer })
            }
        }
    }
}

impl ObjectStore for ScriptedStore {
    fn put_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Boxed<'t, PutResult>
    where
        'a: 't,
        'b: 't,
    {
        self.objects.put_opts(location, payload, opts)
    }

    fn put_multipart_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        opts: PutMultipartOptions,
    ) -> Boxed<'t, Box<dyn MultipartUpload>>
    where
        'a: 't,
        'b: 't,
    {
        self.objects.put_multipart_opts(location, opts)
    }

    fn get_opts<'a, 'b, 't>(
        &'a self,
        location: &'b Path,
        options: GetOptions,
    ) -> Boxed<'t, GetResult>
    where
        'a: 't,
        'b: 't,
    {
        Box::pin(self.get(location, options))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    fn list_with_delimiter<'a, 'b, 't>(&'a self, prefix: Option<&'b Path>) -> Boxed<'t, ListResult>
    where
        'a: 't,
        'b: 't,
    {
        self.objects.list_with_delimiter(prefix)
    }

    fn copy_opts<'a, 'b, 'c, 't>(
        &'a self,
        from: &'b Path,
        to: &'c Path,
        options: CopyOptions,
    ) -> Boxed<'t, ()>
    where
        'a: 't,
        'b: 't,
        'c: 't,
    {
        self.objects.copy_opts(from, to, options)
    }
}
