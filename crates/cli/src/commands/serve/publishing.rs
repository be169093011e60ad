//! Continuous publishing: what a server seals is sent to a bucket.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use replica::{Bucket, Publication, PublishError, PublishTask, Published, publish};
use store::Store;
use store::disk::Disk;
use store::manifest::Manifest;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::Failure;
use crate::bucket::{open_bucket, refuse_place_in};

/// Between two looks whether something was sealed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Before a publication that failed is tried again; twice as long each time, up to the last.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// A bucket that gets what is sealed.
#[derive(Clone, Debug)]
pub(super) struct Publisher {
    bucket: Bucket,
}

impl Publisher {
    pub(super) fn open(url: &str) -> Result<Self, Failure> {
        let bucket = open_bucket("--publish", url)?;
        if !bucket.is_listable() {
            return Err(Failure::Usage(anyhow!(
                "--publish: {} is a web server, which can only be read",
                bucket.place()
            )));
        }
        Ok(Self { bucket })
    }

    /// Refuses a place in the data folder.
    pub(super) fn refuse_place_in(&self, folder: &Path) -> Result<(), Failure> {
        refuse_place_in(folder, "--publish", &self.bucket)
    }

    /// Publishes on a thread of its own: files are read there, and nothing else waits for them. The end
    /// of the process ends it wherever it is, and the next start goes on.
    pub(super) fn begin(self, store: Arc<Store>, disk: Arc<dyn Disk>) -> anyhow::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let publish = move || runtime.block_on(self.keep_publishing(store, disk));
        thread::Builder::new().name("publish".to_owned()).spawn(publish)?;
        Ok(())
    }

    /// Publishes whenever the folder lists other files, for as long as the process runs.
    async fn keep_publishing(self, store: Arc<Store>, disk: Arc<dyn Disk>) {
        let mut published: Option<Manifest> = None;
        let mut known = Published::default();
        let mut pause = PAUSE;
        loop {
            sleep(LOOK_EVERY).await;
            // Its files stay for as long as the view does.
            let view = store.view();
            let manifest = view.manifest().to_published();
            if manifest.segments().is_empty() || published.as_ref() == Some(&manifest) {
                continue;
            }
            match self.publish(&store, &disk, &manifest, &known).await {
                Ok(done) => {
                    self.tell(&done);
                    (published, known, pause) = (Some(manifest), done.before, PAUSE);
                }
                Err(error) => {
                    warn!(%error, seconds = pause.as_secs(), "nothing was published; trying again");
                    drop(view);
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn publish(
        &self,
        store: &Store,
        disk: &Arc<dyn Disk>,
        manifest: &Manifest,
        known: &Published,
    ) -> Result<Publication, PublishError> {
        let genesis = store.read_genesis().ok().flatten();
        let (genesis, stop) = (genesis.as_deref(), &|| false);
        let task = PublishTask { disk, manifest, genesis, progress: &(), stop };
        publish(&self.bucket, known, task).await
    }

    fn tell(&self, done: &Publication) {
        if done.files_put > 0 || done.is_new {
            let (to, files, bytes) = (self.bucket.place(), done.files_put, done.bytes_put);
            info!(to, files, bytes, "published");
        }
        for file in &done.withdrawn {
            warn!(file, "this segment was withdrawn from the bucket: no reader serves it");
        }
    }
}
