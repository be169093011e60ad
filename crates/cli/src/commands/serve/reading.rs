//! How a server reads: the store of its folder, what lies beside it, and the threads that wait.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use store::read::{Blocking, ReadPool};
use store::{Limits, Store};

use super::source::BucketSource;
use crate::args::limits::LimitArgs;
use crate::args::serve::ServeArgs;
use crate::data_folder::DataFolder;
use crate::descriptors::store_limits;

/// How the folder is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadSettings {
    /// As many reads as a disk has under way with profit.
    pub(super) threads: NonZeroUsize,
    /// Cold reads that wait for one of them.
    pub(super) reads_max: NonZeroUsize,
    pub(super) limits: Limits,
}

impl ReadSettings {
    pub(super) fn of(args: &ServeArgs) -> Self {
        let LimitArgs { read_threads: threads, reads_max, .. } = args.limits;
        Self { threads, reads_max, limits: args.limits.store() }
    }
}

impl Default for ReadSettings {
    fn default() -> Self {
        let count = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self { threads: count(16), reads_max: count(1024), limits: Limits::default() }
    }
}

/// The folder's store, and the threads that wait for its disk.
pub(super) fn open_store(
    folder: &DataFolder,
    reading: ReadSettings,
    source: Option<&BucketSource>,
) -> anyhow::Result<(Arc<Store>, Arc<ReadPool>)> {
    let pool = Arc::new(ReadPool::new(reading.reads_max));
    for _ in 0..reading.threads.get() {
        let pool = Arc::clone(&pool);
        thread::Builder::new().name("disk".to_owned()).spawn(move || pool.work())?;
    }
    let blocking: Arc<dyn Blocking> = Arc::<ReadPool>::clone(&pool);
    let (disk, limits) = (Arc::clone(&folder.disk), store_limits(reading.limits));
    let Some(source) = source else {
        return Ok((Arc::new(Store::open(disk, blocking, limits)?), pool));
    };
    let store = Store::open_beside(disk, blocking, source.files(), limits)?;
    source.show(&store);
    source.use_pinned(&store)?;
    Ok((Arc::new(store), pool))
}
