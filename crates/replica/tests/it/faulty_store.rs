//! A store in memory that fails, throttles, loses answers, tears and corrupts them, and lists what was.
//!
//! All that is left to chance follows from one seed. What was written is never lost: that is what object
//! stores promise.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use chain::SplitMix64;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};

/// How many of a hundred requests go wrong in each way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// The server fails, and did nothing.
    pub(crate) fail: u64,
    /// The server wants to be asked more slowly, and did nothing.
    pub(crate) throttle: u64,
    /// The server did what it was asked, and its answer is lost.
    pub(crate) lose_answer: u64,
    /// The answer takes seconds.
    pub(crate) slow: u64,
    /// A body ends early.
    pub(crate) tear: u64,
    /// A body has a wrong bit.
    pub(crate) corrupt: u64,
    /// A listing is one that was true some time ago.
    pub(crate) stale: u64,
}

impl Faults {
    /// Some of everything that passes.
    pub(crate) const PASSING: Self =
        Self { fail: 5, throttle: 5, lose_answer: 5, slow: 5, tear: 5, corrupt: 0, stale: 0 };
}

/// The store. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct FaultyStore {
    objects: Arc<InMemory>,
    state: Arc<Mutex<FaultState>>,
}

#[derive(Debug)]
struct FaultState {
    chance: SplitMix64,
    faults: Faults,
    /// Writes that are left before everything is refused.
    writes_left: Option<u64>,
    /// Requests that were made, for whoever counts them.
    requests: Vec<String>,
    /// What an older listing had.
    listed: Vec<ObjectMeta>,
    /// The store's clock.
    now: SystemTime,
    /// When each object was written.
    written: BTreeMap<Path, SystemTime>,
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl FaultyStore {
    /// An empty store that works until it is told otherwise.
    pub(crate) fn new(seed: u64) -> Self {
        let state = FaultState {
            chance: SplitMix64::new(seed),
            faults: Faults::default(),
            writes_left: None,
            requests: Vec::new(),
            listed: Vec::new(),
            now: UNIX_EPOCH + Duration::from_hours(500_000),
            written: BTreeMap::new(),
        };
        Self { objects: Arc::default(), state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn set(&self, faults: Faults) {
        self.state.lock().unwrap().faults = faults;
    }

    /// After so many writes everything is refused, as if whoever writes had been killed.
    pub(crate) fn stop_after(&self, writes: Option<u64>) {
        self.state.lock().unwrap().writes_left = writes;
    }

    /// The store's clock, which stands still.
    pub(crate) fn now(&self) -> SystemTime {
        self.state.lock().unwrap().now
    }

    /// Moves the clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.state.lock().unwrap().now += time;
    }

    fn note_written(&self, path: &Path) {
        let mut state = self.state.lock().unwrap();
        let now = state.now;
        state.written.insert(path.clone(), now);
    }

    /// The requests since the last time, each as its operation and its path.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }

    /// All objects, whatever goes wrong with requests.
    pub(crate) async fn contents(&self) -> Vec<(String, Bytes)> {
        let listed: Vec<ObjectMeta> = self.objects.list(None).try_collect().await.unwrap();
        let mut contents = Vec::new();
        for object in listed {
            let bytes = self.objects.get(&object.location).await.unwrap().bytes().await.unwrap();
            contents.push((object.location.to_string(), bytes));
        }
        contents.sort();
        contents
    }

    /// Puts other bytes in the place of an object, behind everybody's back.
    pub(crate) async fn overwrite(&self, path: &str, bytes: Vec<u8>) {
        self.objects.put(&Path::from(path), bytes.into()).await.unwrap();
    }

    /// Removes an object, behind everybody's back.
    pub(crate) async fn lose(&self, path: &str) {
        self.objects.delete(&Path::from(path)).await.unwrap();
    }

    /// Notes a request, and fails it as the faults say. Tells whether its answer is lost after it is done.
    async fn begin(&self, operation: &str, path: &Path, is_write: bool) -> Result<bool> {
        let (turns, pause, failure, is_lost) = {
            let mut state = self.state.lock().unwrap();
            state.requests.push(format!("{operation} {path}"));
            if is_write && let Some(left) = &mut state.writes_left {
                if *left == 0 {
                    let source = "the publisher was killed".into();
                    return Err(Error::PermissionDenied { path: path.to_string(), source });
                }
                *left -= 1;
            }
            let faults = state.faults;
            // Others get their turn, sometimes more than once.
            let turns = state.chance.below(4);
            let pause = state.happens(faults.slow);
            let failure = if state.happens(faults.fail) {
                Some("500 Internal Server Error")
            } else if state.happens(faults.throttle) {
                Some("503 Slow Down")
            } else {
                None
            };
            (turns, pause, failure, state.happens(faults.lose_answer))
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        if pause {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        failure.map_or(Ok(is_lost), |said| Err(generic(said)))
    }

    fn happens(&self, percent: impl Fn(&Faults) -> u64) -> bool {
        let mut state = self.state.lock().unwrap();
        let percent = percent(&state.faults);
        state.happens(percent)
    }
}

impl FaultState {
    fn happens(&mut self, percent: u64) -> bool {
        percent > 0 && self.chance.below(100) < percent
    }
}

fn generic(said: &'static str) -> Error {
    Error::Generic { store: "faulty", source: said.into() }
}

/// The answer, if it is not lost.
fn answer<T>(is_lost: bool, done: Result<T>) -> Result<T> {
    if is_lost { Err(generic("the connection was closed before the answer")) } else { done }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let is_lost = self.begin("put", location, true).await?;
        self.note_written(location);
        answer(is_lost, self.objects.put_opts(location, payload, opts).await)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.begin("begin", location, true).await?;
        let upload = self.objects.put_multipart_opts(location, opts).await?;
        Ok(Box::new(FaultyUpload { store: self.clone(), location: location.clone(), upload }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let operation = if options.head { "head" } else { "get" };
        let is_lost = self.begin(operation, location, false).await?;
        let is_head = options.head;
        let found = answer(is_lost, self.objects.get_opts(location, options).await)?;
        if is_head {
            return Ok(found);
        }
        let GetResult { meta, range, attributes, extensions, .. } = found;
        let mut bytes = Vec::new();
        if !range.is_empty() {
            bytes.extend(self.objects.get_range(location, range.clone()).await?);
        }
        if self.happens(|it| it.tear) {
            bytes.truncate(bytes.len() / 2);
        }
        if self.happens(|it| it.corrupt) && !bytes.is_empty() {
            let place = bytes.len() / 3;
            bytes[place] ^= 4;
        }
        // As it comes from a network: in pieces.
        let pieces: Vec<Result<Bytes>> =
            bytes.chunks(5000).map(|it| Ok(Bytes::copy_from_slice(it))).collect();
        let payload = GetResultPayload::Stream(stream::iter(pieces).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |location: Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                let is_lost = store.begin("delete", &location, true).await?;
                let deleted = store.objects.delete(&location).await;
                answer(is_lost, deleted.map(|()| location))
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let list = async move {
            let is_lost = store.begin("list", &prefix, false).await?;
            let mut all: Vec<ObjectMeta> = store.objects.list(None).try_collect().await?;
            for object in &mut all {
                if let Some(written) = store.state.lock().unwrap().written.get(&object.location) {
                    object.last_modified = (*written).into();
                }
            }
            let is_stale = store.happens(|it| it.stale);
            let listed = {
                let mut state = store.state.lock().unwrap();
                if !is_stale {
                    state.listed = all;
                }
                state.listed.clone()
            };
            let listed: Vec<Result<ObjectMeta>> = listed
                .into_iter()
                .filter(|it| it.location.prefix_matches(&prefix))
                .map(Ok)
                .collect();
            answer(is_lost, Ok(stream::iter(listed)))
        };
        stream::once(list).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.begin("copy", to, true).await?;
        self.objects.copy_opts(from, to, options).await
    }
}

/// A file that comes in parts.
#[derive(Debug)]
struct FaultyUpload {
    store: FaultyStore,
    location: Path,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.upload.put_part(data);
        let (store, location) = (self.store.clone(), self.location.clone());
        Box::pin(async move {
            let is_lost = store.begin("part", &location, true).await?;
            answer(is_lost, part.await)
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let is_lost = self.store.begin("complete", &self.location, true).await?;
        self.store.note_written(&self.location);
        answer(is_lost, self.upload.complete().await)
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
