//! What a server reads from a bucket: opened at the start, looked at again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use alloy_primitives::{hex, keccak256};
use anyhow::{Context as _, anyhow};
use chain::{BlockRange, ChainSpec};
use ingest::folder_chain::NamedChain;
use replica::{
    Bucket, BucketError, BucketFault, DiskCacheSettings, FileKind, Published, RangeCache,
    RangeCacheSettings, RangeReadSettings, RemoteCounts, RemoteFiles, SealedFile, listed_files,
    pin_files, pin_held, read_published, unpin_others,
};
use serde_json::{Value, json};
use store::disk::{Disk, DiskError, Folder, LockGuard};
use store::layout::overlap;
use store::manifest::Network;
use store::{FileSource, RunSubject, Store};
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::Failure;
use crate::args::bucket::{PinArg, SourceArgs};
use crate::bucket::{bucket_failure, open_bucket, published_history, read_bucket};

/// After so long without a look at the bucket a server is not ready: it may lack what is new.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// Below the cache: the data folder of a server that was given none.
const OWN_FOLDER: &str = "data";
/// Below the cache: files that are copied ahead.
const PINNED_FOLDER: &str = "pinned";
/// Before copies that failed are tried again.
const PIN_PAUSE: Duration = Duration::from_secs(30);
/// Below the cache: ranges that were read.
const RANGES_FOLDER: &str = "ranges";
/// In the cache: locked by the server that copies ahead or follows there.
const LOCK_NAME: &str = "lock";

/// A bucket that is read.
#[derive(Debug)]
pub(crate) struct BucketSource {
    bucket: Bucket,
    cache: Arc<RangeCache>,
    files: RemoteFiles,
    folder: PathBuf,
    /// Where files are copied ahead.
    pinned: Option<Arc<dyn Disk>>,
    /// Keeps others from what this server alone may write below the cache.
    _lock: Option<LockGuard>,
    pin: Vec<PinArg>,
    every: Duration,
    /// The genesis.json of a chain that is not built in.
    genesis: Option<Vec<u8>>,
    seen: Mutex<Seen>,
}

/// What was seen of the bucket.
#[derive(Debug)]
struct Seen {
    published: Published,
    /// When it was last listed.
    at: Instant,
    /// Why it could not be listed since.
    trouble: Option<String>,
}

impl BucketSource {
    /// Opens the bucket and reads what it lists. A server that `keeps_data` has it below the cache.
    pub(super) async fn open(
        args: &SourceArgs,
        url: &str,
        keeps_data: bool,
    ) -> Result<Self, Failure> {
        let bucket = open_bucket("--source", url)?;
        let folder = match &args.cache_dir {
            Some(folder) => folder.clone(),
            None => default_cache(url)?,
        };
        // Ranges have a lock of their own, and do without a folder that another has.
        let is_written = keeps_data || !args.pin.is_empty();
        let lock = is_written.then(|| lock_cache(&folder)).transpose()?;
        let published = read_bucket(&bucket).await?;
        let genesis =
            read_genesis(&bucket, &published).await.map_err(|error| bucket_failure(&error))?;
        let bytes_max = u64::try_from(args.cache_disk_bytes).unwrap_or(u64::MAX);
        let ranges = folder.join(RANGES_FOLDER);
        let cache = RangeCache::open(&RangeCacheSettings {
            memory_bytes_max: u64::try_from(args.cache_memory_bytes).unwrap_or(u64::MAX),
            disk: (bytes_max > 0).then_some(DiskCacheSettings { folder: ranges, bytes_max }),
        });
        if let Some(fault) = cache.disk_fault() {
            warn!(fault, "nothing is cached on disk");
        }
        let seen = Mutex::new(Seen { published, at: Instant::now(), trouble: None });
        let cache = Arc::new(cache);
        let (files, settings) = (Arc::clone(&cache), RangeReadSettings::default());
        let files = RemoteFiles::new(bucket.clone(), files, Handle::current(), settings);
        let pinned = match args.pin.as_slice() {
            [] => None,
            _ => Some(pinned_folder(&folder)?),
        };
        let (pin, every) = (args.pin.clone(), args.source_every);
        Ok(Self { bucket, cache, files, folder, pinned, _lock: lock, pin, every, genesis, seen })
    }

    /// Where a server keeps what it follows if it was given no data folder.
    pub(super) fn own_folder(&self) -> PathBuf {
        self.folder.join(OWN_FOLDER)
    }

    /// Opens its files.
    pub(super) fn files(&self) -> Arc<dyn FileSource> {
        Arc::new(self.files.clone())
    }

    /// The chain that its manifests name, for whoever was not told another.
    pub(super) fn chain(&self) -> Option<NamedChain> {
        if let Some(text) = &self.genesis {
            let place = format!("the genesis.json of {}", self.bucket.place());
            return Some(NamedChain::Genesis { text: text.clone(), place });
        }
        let seen = self.lock();
        let mut networks = seen.published.manifests.iter().map(|it| it.manifest.network());
        let Network { chain_id, genesis_hash, .. } = networks.find(|it| it.chain_id.is_some())?;
        let chain_id = (*chain_id)?;
        let genesis_hash = *genesis_hash;
        Some(match ChainSpec::known_by_chain_id(chain_id) {
            Some(spec) => NamedChain::Known(Box::new(spec)),
            None => NamedChain::Id { chain_id, genesis_hash },
        })
    }

    /// Whether nothing is published there.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().published.manifests.is_empty()
    }

    /// What is wrong with the first object that could not be read, if there is one.
    pub(super) fn first_fault(&self) -> Option<String> {
        let seen = self.lock();
        let fault = seen.published.faults.first()?;
        Some(format!("{}: {}", fault.object, fault.reason))
    }

    /// How messages call it.
    pub(super) fn place(&self) -> &str {
        self.bucket.place()
    }

    /// Shows what was seen last.
    pub(super) fn show(&self, store: &Store) -> bool {
        let history = published_history(&self.lock().published);
        store.show_published(&history)
    }

    /// Reads pinned files from the copies that an earlier process left.
    pub(super) fn use_pinned(&self, store: &Store) -> Result<(), DiskError> {
        let Some(folder) = &self.pinned else { return Ok(()) };
        pin_held(&self.files, &self.wanted(store), folder).map(drop)
    }

    /// The files that are to be copied ahead, lookups first.
    fn wanted(&self, store: &Store) -> Vec<SealedFile> {
        let view = store.view();
        let of_blocks = |range: BlockRange| {
            self.pin.iter().any(|pin| match pin {
                PinArg::All => true,
                PinArg::Blocks(blocks) => overlap(*blocks, range).is_some(),
                PinArg::Lookups | PinArg::Logs => false,
            })
        };
        let is_wanted = |subject: RunSubject| {
            let own = if subject == RunSubject::Logs { PinArg::Logs } else { PinArg::Lookups };
            self.pin.iter().any(|pin| *pin == PinArg::All || *pin == own)
        };
        let runs = view.runs().filter(|run| is_wanted(run.subject));
        let mut names: BTreeSet<&str> = runs.map(|run| &*run.file_name).collect();
        let segments = view.segments().filter(|entry| of_blocks(entry.range));
        names.extend(segments.map(|entry| &*entry.file_name));
        let seen = self.lock();
        let mut listed: BTreeMap<String, SealedFile> = BTreeMap::new();
        for published in &seen.published.manifests {
            let files = listed_files(&published.manifest).into_iter();
            let files = files.filter(|file| names.contains(&*file.name));
            listed.extend(files.map(|file| (file.name.clone(), file)));
        }
        let (runs, segments): (Vec<_>, Vec<_>) =
            listed.into_values().partition(|file| file.kind == FileKind::Run);
        runs.into_iter().chain(segments).collect()
    }

    /// Copies ahead what is to be, on a thread of its own, for as long as the process runs.
    pub(super) fn begin_pinning(self: &Arc<Self>, store: Arc<Store>) -> anyhow::Result<()> {
        if self.pinned.is_none() {
            return Ok(());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let source = Arc::clone(self);
        let pin = move || runtime.block_on(source.keep_pinning(store));
        thread::Builder::new().name("pin".to_owned()).spawn(pin)?;
        Ok(())
    }

    /// Copies what is to be, and removes copies of what is not published any more.
    async fn keep_pinning(self: Arc<Self>, store: Arc<Store>) {
        let Some(folder) = &self.pinned else { return };
        let mut held: Option<Vec<SealedFile>> = None;
        loop {
            let wanted = self.wanted(&store);
            if self.files.take_lost_copies() {
                held = None;
            }
            if held.as_ref() != Some(&wanted) {
                match self.pin_all(&wanted, folder).await {
                    Ok(()) => held = Some(wanted),
                    Err(error) => {
                        warn!(error, "not all that is pinned could be copied; trying again");
                        sleep(PIN_PAUSE).await;
                    }
                }
            }
            sleep(self.every).await;
        }
    }

    async fn pin_all(&self, wanted: &[SealedFile], folder: &Arc<dyn Disk>) -> Result<(), String> {
        let (bucket, files) = (&self.bucket, &self.files);
        let copied = pin_files(bucket, files, wanted, folder, &(), &|| false).await;
        let copied = copied.map_err(|error| error.to_string())?;
        if let Some(BucketFault { object, reason }) = copied.faults.first() {
            return Err(format!("{object}: {reason}"));
        }
        unpin_others(wanted, &**folder).map_err(|error| error.to_string())?;
        if copied.files > 0 {
            info!(files = copied.files, bytes = copied.bytes, "copied ahead");
        }
        Ok(())
    }

    /// Looks at the bucket now and then, for as long as the process runs, and shows what is new.
    pub(super) async fn keep_looking(self: Arc<Self>, store: Arc<Store>) {
        loop {
            sleep(self.every).await;
            let known = self.lock().published.clone();
            let looked = read_published(&self.bucket, &known).await;
            let is_heard = looked.is_ok();
            self.note(looked);
            let is_new = tokio::task::block_in_place(|| {
                if is_heard {
                    store.look_at_far_faults();
                }
                // Also what the folder sealed since may contradict what is published.
                self.show(&store)
            });
            if is_new {
                let tip = store.view().tip().map(chain::BlockNumber::get);
                info!(source = self.place(), tip, "what is published has changed");
            }
        }
    }

    fn note(&self, looked: Result<Published, BucketError>) {
        let mut seen = self.lock();
        match looked {
            Ok(published) => {
                if seen.trouble.take().is_some() {
                    info!(source = self.place(), "the source answers again");
                }
                seen.published = published;
                seen.at = Instant::now();
            }
            Err(error) => {
                let error = error.to_string();
                if seen.trouble.as_ref() != Some(&error) {
                    warn!(error, "the source cannot be listed; serving what was there");
                }
                seen.trouble = Some(error);
            }
        }
    }

    /// Why a server that reads it is not ready, if it is not.
    pub(super) fn trouble(&self) -> Option<String> {
        let seen = self.lock();
        let silence = seen.at.elapsed();
        let trouble = seen.trouble.as_ref().filter(|_| silence > SILENCE_MAX)?;
        Some(format!("the source could not be listed for {} s: {trouble}", silence.as_secs()))
    }

    /// What was read, from where, and what the caches take.
    pub(super) fn counts(&self) -> RemoteCounts {
        self.cache.counts()
    }

    /// How many manifests were read, and how long ago the bucket was listed.
    pub(super) fn listing(&self) -> (usize, Duration) {
        let seen = self.lock();
        (seen.published.manifests.len(), seen.at.elapsed())
    }

    /// The same for programs.
    pub(super) fn page(&self, store: &Store) -> Value {
        let counts = self.counts();
        let view = store.view();
        let seen = self.lock();
        let set_aside: Vec<Value> = view
            .missing()
            .iter()
            .filter(|it| !view.lists(&it.file_name))
            .map(|it| json!({ "object": it.file_name, "reason": it.reason }))
            .collect();
        let segments = view.segments().count();
        let bytes = view.segments().map(|it| it.bytes).chain(view.runs().map(|it| it.bytes));
        json!({
            "place": self.place(),
            "manifests": seen.published.manifests.len(),
            "withdrawn_segments": seen.published.retracted.len(),
            "set_aside": set_aside,
            "segments_shown": segments,
            "bytes_shown": bytes.fold(0, u64::saturating_add),
            "seconds_since_listing": seen.at.elapsed().as_secs(),
            "trouble": seen.trouble,
            "requests": counts.requests,
            "bytes_fetched": counts.bytes_fetched,
            "bytes_asked": counts.bytes_asked,
            "failures": counts.failures,
            "cache": {
                "folder": self.cache.folder().map(|it| it.display().to_string()),
                "memory_bytes": counts.memory_bytes,
                "disk_bytes": counts.disk_bytes,
                "memory_hits": counts.memory_hits,
                "disk_hits": counts.disk_hits,
                "misses": counts.misses,
            },
        })
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two servers would write over each other's copies, and remove those that the other wants.
fn lock_cache(folder: &Path) -> Result<LockGuard, Failure> {
    let locked = Folder::create(folder).and_then(|folder| folder.lock(LOCK_NAME));
    locked.map_err(|error| {
        let DiskError::Locked { holder, .. } = &error else { return error.into() };
        let holder = holder.as_ref().map_or(String::new(), |holder| format!(": {holder}"));
        Failure::Work(anyhow!(
            "{0}: another server copies ahead or follows in this cache folder{holder}; it holds \
             {0}/{LOCK_NAME}\n  hint: give each server with --pin, or with --upstream and no --data-dir, a \
             --cache-dir of its own",
            folder.display()
        ))
    })
}

fn pinned_folder(cache: &Path) -> Result<Arc<dyn Disk>, DiskError> {
    Ok(Arc::new(Folder::create(cache.join(PINNED_FOLDER))?))
}

/// The genesis.json that the first manifest with one records.
async fn read_genesis(
    bucket: &Bucket,
    published: &Published,
) -> Result<Option<Vec<u8>>, BucketError> {
    let mut recorded = published.manifests.iter().filter_map(|it| it.manifest.genesis_file());
    match recorded.next() {
        Some(digest) => bucket.read_genesis(digest).await.map(Some),
        None => Ok(None),
    }
}

/// The cache of a source if nobody says where it is, by the XDG base directory specification.
fn default_cache(url: &str) -> Result<PathBuf, Failure> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let base = base.ok_or_else(|| anyhow!("neither HOME nor XDG_CACHE_HOME is set"));
    let base = base.context("give --cache-dir DIR").map_err(Failure::Usage)?;
    let digest = keccak256(url);
    Ok(base.join("quipu").join(hex::encode(digest.get(..8).unwrap_or_default())))
}
