//! Copying files out of a bucket ahead of whoever uses them.

use std::panic::resume_unwind;
use std::sync::Arc;

use futures_util::StreamExt as _;
use store::disk::Disk;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{LocalSet, spawn_local};

use crate::bucket::Bucket;
use crate::copy_files::{CopiedFiles, CopyError, copy_files};
use crate::progress::PublishProgress;
use crate::sealed_file::SealedFile;

/// Batches that are copied at a time; as many more wait for their user at the most.
const BATCHES_AHEAD: usize = 2;

/// What became of a batch.
pub type CopyOutcome = Result<CopiedFiles, CopyError>;

/// Copies batches of files into `dest`, in their order, as [`copy_files`] does: what became of each is told
/// as soon as it is there. Dropping the receiver ends the copying; a file that is not whole then is begun
/// anew the next time.
pub fn copy_ahead(
    bucket: &Bucket,
    batches: Vec<Vec<SealedFile>>,
    dest: &Arc<dyn Disk>,
    progress: Arc<dyn PublishProgress + Send>,
    runtime: &Handle,
) -> std::io::Result<Receiver<CopyOutcome>> {
    let (send, receive) = channel(1);
    let (bucket, dest, runtime) = (bucket.clone(), Arc::clone(dest), runtime.clone());
    let copy = move |batch: Vec<SealedFile>| {
        let (bucket, dest, progress) = (bucket.clone(), Arc::clone(&dest), Arc::clone(&progress));
        async move { copy_files(&bucket, &batch, &dest, &*progress, &|| false).await }
    };
    let copy_all = async move || {
        // Tasks of their own: a body that nobody reads while another batch is proven would be cut off.
        let tasks = batches.into_iter().map(|batch| spawn_local(copy(batch)));
        let mut under_way = futures_util::stream::iter(tasks).buffered(BATCHES_AHEAD);
        loop {
            // A copy on its way is given up as soon as nobody waits for it.
            let ended = tokio::select! {
                ended = under_way.next() => ended,
                () = send.closed() => return,
            };
            let outcome = match ended {
                Some(Ok(outcome)) => outcome,
                Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                None | Some(Err(_)) => return,
            };
            if send.send(outcome).await.is_err() {
                return;
            }
        }
    };
    let work = move || runtime.block_on(LocalSet::new().run_until(copy_all()));
    std::thread::Builder::new().name("copy-ahead".to_owned()).spawn(work)?;
    Ok(receive)
}
