//! A store of fixed objects that counts requests, bytes and round trips that depend on each other.
//!
//! Every answer takes the same time by the runtime's clock, which stands still while anything can go
//! on: so all requests that do not wait for each other are under way together.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
use replica::{Bucket, BucketSettings};

/// What a request takes: less than what a second one is sent beside the first for.
const LATENCY: Duration = Duration::from_millis(45);

/// An object, which need not be held as a whole.
pub(crate) trait ObjectBytes: fmt::Debug + Send + Sync {
    fn file_bytes(&self) -> u64;

    fn read(&self, range: Range<u64>) -> Vec<u8>;
}

impl ObjectBytes for Vec<u8> {
    fn file_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Vec<u8> {
        self[range.start as usize..range.end as usize].to_vec()
    }
}

/// Objects by their paths.
pub(crate) type Objects = BTreeMap<String, Arc<dyn ObjectBytes>>;

/// A request and what it waited for.
#[derive(Clone, Debug)]
pub(crate) struct CountedRequest {
    operation: &'static str,
    path: String,
    range: Range<u64>,
    /// How many round trips there were up to its answer, each of which began after the one before had
    /// ended.
    depth: usize,
}

/// The requests of one act.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCount {
    requests: Vec<CountedRequest>,
}

impl RequestCount {
    pub(crate) fn round_trips(&self) -> usize {
        self.requests.iter().map(|it| it.depth).max().unwrap_or(0)
    }

    /// Requests for bytes of objects.
    pub(crate) fn reads(&self) -> usize {
        self.requests.iter().filter(|it| it.operation == "get").count()
    }

    /// All requests, listings among them.
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.requests.iter().map(|it| it.range.end - it.range.start).sum()
    }

    /// Those for objects whose names begin so.
    pub(crate) fn of(&self, name_begin: &str) -> Self {
        let is_of =
            |path: &str| path.rsplit('/').next().is_some_and(|it| it.starts_with(name_begin));
        let requests = self.requests.iter().filter(|it| is_of(&it.path)).cloned().collect();
        Self { requests }
    }

    /// Fails with the list of requests if there were more round trips, requests for bytes, or bytes.
    #[track_caller]
    pub(crate) fn assert_at_most(&self, what: &str, (trips, reads, bytes): (usize, usize, u64)) {
        eprintln!("{what}: {}", self.summary());
        let is_kept = self.round_trips() <= trips && self.reads() <= reads && self.bytes() <= bytes;
        assert!(
            is_kept,
            "{what}: at most {trips} round trips, {reads} reads and {bytes} bytes are allowed\n{self}"
        );
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} round trips, {} requests, {} of them reads, {} bytes",
            self.round_trips(),
            self.requests(),
            self.reads(),
            self.bytes()
        )
    }
}

impl fmt::Display for RequestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.summary())?;
        for CountedRequest { operation, path, range, depth } in &self.requests {
            let bytes = range.end - range.start;
            writeln!(f, "{depth:>3} {operation} {path} {}..{} ({bytes})", range.start, range.end)?;
        }
        Ok(())
    }
}

/// The store. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct CountedStore {
    objects: Arc<Objects>,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Debug, Default)]
struct Counted {
    requests: Vec<CountedRequest>,
    /// The depth of the deepest request that has been answered.
    answered: usize,
}

impl fmt::Display for CountedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CountedStore")
    }
}

impl CountedStore {
    pub(crate) fn new(objects: &Arc<Objects>) -> Self {
        Self { objects: Arc::clone(objects), counted: Arc::default() }
    }

    /// The objects below `net`.
    pub(crate) fn bucket(&self) -> Bucket {
        let store = Arc::new(self.clone());
        Bucket::of_store(store, Path::from("net"), "counted:///net", BucketSettings::default())
    }

    /// The requests since the last time. What follows depends on nothing before.
    pub(crate) fn take(&self) -> RequestCount {
        let Counted { requests, .. } = std::mem::take(&mut *self.counted.lock().unwrap());
        RequestCount { requests }
    }

    /// Notes a request, and waits for as long as its answer takes.
    async fn answer(&self, operation: &'static str, path: &Path, range: Range<u64>) {
        let depth = {
            let mut counted = self.counted.lock().unwrap();
            let depth = counted.answered + 1;
            let path = path.to_string();
            counted.requests.push(CountedRequest { operation, path, range, depth });
            depth
        };
        tokio::time::sleep(LATENCY).await;
        let mut counted = self.counted.lock().unwrap();
        counted.answered = counted.answered.max(depth);
    }

    fn find(&self, location: &Path) -> Result<(ObjectMeta, Arc<dyn ObjectBytes>)> {
        let found = self.objects.get(location.as_ref()).ok_or_else(|| Error::NotFound {
            path: location.to_string(),
            source: "no test was meant to read it".into(),
        })?;
        Ok((meta(location.clone(), found.file_bytes()), Arc::clone(found)))
    }
}

fn meta(location: Path, size: u64) -> ObjectMeta {
    ObjectMeta { location, last_modified: UNIX_EPOCH.into(), size, e_tag: None, version: None }
}

fn read_only<T>() -> Result<T> {
    Err(Error::NotImplemented { operation: "write".into(), implementer: "CountedStore".into() })
}

#[async_trait]
impl ObjectStore for CountedStore {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        read_only()
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let found = self.find(location);
        let size = found.as_ref().map_or(0, |(meta, _)| meta.size);
        let range = match &options.range {
            _ if options.head || found.is_err() => 0..0,
            None => 0..size,
            Some(range) => {
                let source = |error| Error::Generic { store: "counted", source: Box::new(error) };
                range.as_range(size).map_err(source)?
            }
        };
        let operation = if options.head { "head" } else { "get" };
        self.answer(operation, location, range.clone()).await;
        let (meta, object) = found?;
        let bytes = Bytes::from(object.read(range.clone()));
        let payload = GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed());
        let (attributes, extensions) = (Attributes::default(), Extensions::default());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        locations.and_then(|_| async { read_only() }).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let list = async move {
            store.answer("list", &prefix, 0..0).await;
            let all = store.objects.iter().map(|(path, object)| {
                let path = Path::from(path.as_str());
                meta(path, object.file_bytes())
            });
            let listed = all.filter(|it| it.location.prefix_matches(&prefix)).map(Ok);
            stream::iter(listed.collect::<Vec<_>>())
        };
        list.into_stream().flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        read_only()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only()
    }
}
