//! What a server reads from a bucket: opened at the start, looked at again and again.
//!
//! Knows: where the cache lies, what is said when a bucket cannot be listed, what is copied ahead.
//! Never knows: which objects a bucket has, or how ranges are fetched.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::{hex, keccak256};
use anyhow::{Context as _, anyhow};
use chain::ChainSpec;
use ingest::folder_chain::NamedChain;
use replica::{
    Bucket, BucketError, DiskCacheSettings, Published, RangeCache, RangeCacheSettings,
    ReadSettings, RemoteCounts, RemoteFiles, read_published,
};
use serde_json::{Value, json};
use store::manifest::Network;
use store::{FileSource, Store};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::Failure;
use crate::args::bucket::SourceArgs;
use crate::bucket::{bucket_failure, open_bucket, published_history};

/// After so long without a look at the bucket a server is not ready: it may lack what is new.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Below the cache: the data folder of a server that was given none.
const OWN_FOLDER: &str = "data";
/// Below the cache: ranges that were read.
const RANGES_FOLDER: &str = "ranges";

/// A bucket that is read.
#[derive(Debug)]
pub(crate) struct Source {
    bucket: Bucket,
    cache: Arc<RangeCache>,
    folder: PathBuf,
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

impl Source {
    /// Opens the bucket and reads what it lists.
    pub(super) async fn open(args: &SourceArgs, url: &str) -> Result<Self, Failure> {
        let bucket = open_bucket("--source", url)?;
        let folder = match &args.cache_dir {
            Some(folder) => folder.clone(),
            None => default_cache(url)?,
        };
        let published = read_published(&bucket, &Published::default()).await;
        let published = published.map_err(|error| bucket_failure(&error))?;
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
        Ok(Self { bucket, cache, folder, every: args.source_every, genesis, seen })
    }

    /// Where a server keeps what it follows if it was given no data folder.
    pub(super) fn own_folder(&self) -> PathBuf {
        self.folder.join(OWN_FOLDER)
    }

    /// Opens its files; requests run on `runtime`.
    pub(super) fn files(&self, runtime: Handle) -> Arc<dyn FileSource> {
        let (bucket, cache) = (self.bucket.clone(), Arc::clone(&self.cache));
        Arc::new(RemoteFiles::new(bucket, cache, runtime, ReadSettings::default()))
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

    /// How messages call it.
    pub(super) fn place(&self) -> &str {
        self.bucket.place()
    }

    /// Shows what was seen last.
    pub(super) fn show(&self, store: &Store) -> bool {
        let history = published_history(&self.lock().published);
        store.show_published(&history)
    }

    /// Looks at the bucket now and then, for as long as the process runs, and shows what is new.
    pub(super) async fn keep_looking(self: Arc<Self>, store: Arc<Store>) {
        loop {
            sleep(self.every).await;
            let known = self.lock().published.clone();
            let looked = read_published(&self.bucket, &known).await;
            self.note(looked);
            // Also what the folder sealed since may contradict what is published.
            let is_new = tokio::task::block_in_place(|| self.show(&store));
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
            .filter(|it| it.blocks.is_none())
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
