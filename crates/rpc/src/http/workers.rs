//! Threads that serve connections, each with those it was given.
//!
//! Knows: how many there are, and whose turn it is.
//! Never knows: what a connection is.
//!
//! A connection stays on its thread: waking another one costs more than most answers.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::outbox;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Worker {
    handle: Handle,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// Starts so many threads.
    pub(super) fn start(count: NonZeroUsize) -> std::io::Result<Self> {
        let workers = (0..count.get()).map(|_| Worker::start()).collect::<Result<_, _>>()?;
        Ok(Self { workers, next: AtomicUsize::new(0) })
    }

    /// Runs a future on the next thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let place = turn.checked_rem(self.workers.len()).unwrap_or_default();
        if let Some(worker) = self.workers.get(place) {
            worker.handle.spawn(work);
        }
    }
}

impl Worker {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        handle.spawn(outbox::send_in_turns());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("serve".to_owned()).spawn(move || {
            // Nothing is ever sent: this ends when the sender goes.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself; one that panicked has told so.
            let _ = thread.join();
        }
    }
}
