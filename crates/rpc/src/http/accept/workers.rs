//! Thread-per-core serving: a connection stays on one thread for its whole life.
//!
//! One more thread has no connections: long bodies are worked on there.
//!
//! Waking another core costs more than most answers, so a connection never changes its thread. A new
//! one comes to the thread that has the fewest.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads beside each that wait for what it must not: long answers are compressed there. More would
/// only share the cores, and each holds what it makes uncounted.
const BLOCKING_THREADS_MAX: usize = 2;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Workers {
    first: Arc<Worker>,
    others: Vec<Arc<Worker>>,
    /// It has no connections: what takes long is done here.
    bulk: Arc<Worker>,
    /// Kept for what happens when they are dropped.
    _threads: Vec<WorkerThread>,
}

/// What connections know of a thread.
#[derive(Debug)]
struct Worker {
    handle: Handle,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct WorkerThread {
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A connection's place on a thread.
#[derive(Debug)]
pub(super) struct WorkerAssignment {
    worker: Arc<Worker>,
}

impl Workers {
    /// Starts so many threads.
    pub(super) fn start(count: NonZeroUsize) -> std::io::Result<Self> {
        let (first, thread) = Worker::start("serve")?;
        let (mut others, mut threads) = (Vec::new(), vec![thread]);
        for _ in 1..count.get() {
            let (worker, thread) = Worker::start("serve")?;
            others.push(worker);
            threads.push(thread);
        }
        let (bulk, thread) = Worker::start("bulk")?;
        threads.push(thread);
        Ok(Self { first, others, bulk, _threads: threads })
    }

    /// The thread that serves no connection.
    pub(super) fn bulk_thread(&self) -> Handle {
        self.bulk.handle.clone()
    }

    /// A place on the thread that has the fewest connections.
    pub(super) fn seat(&self) -> WorkerAssignment {
        WorkerAssignment::on_idlest(&self.first, &self.others)
    }
}

impl WorkerAssignment {
    fn on_idlest(first: &Arc<Worker>, others: &[Arc<Worker>]) -> Self {
        let mut fewest = first;
        for other in others {
            if other.has() < fewest.has() {
                fewest = other;
            }
        }
        fewest.connections.fetch_add(1, Ordering::Relaxed);
        Self { worker: Arc::clone(fewest) }
    }

    /// The thread that it is on.
    pub(super) fn thread(&self) -> Handle {
        self.worker.handle.clone()
    }
}

impl Drop for WorkerAssignment {
    fn drop(&mut self) {
        self.worker.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Worker {
    fn new(handle: Handle) -> Arc<Self> {
        Arc::new(Self { handle, connections: AtomicUsize::new(0) })
    }

    fn start(name: &str) -> std::io::Result<(Arc<Self>, WorkerThread)> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()?;
        let worker = Self::new(runtime.handle().clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Nothing is ever sent: this ends when the sender goes.
            let _ = runtime.block_on(stopped);
        })?;
        Ok((worker, WorkerThread { stop: Some(stop), thread: Some(thread) }))
    }

    fn has(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself; one that panicked has told so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_comes_to_the_thread_with_the_fewest() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let [first, second, third] = [(); 3].map(|()| Worker::new(runtime.handle().clone()));
        let others = [Arc::clone(&second), third];
        let seat = || WorkerAssignment::on_idlest(&first, &others);
        let shares =
            || std::iter::once(&first).chain(&others).map(|it| it.has()).collect::<Vec<_>>();
        let mut seats: Vec<WorkerAssignment> = (0..9).map(|_| seat()).collect();
        assert_eq!(shares(), [3, 3, 3]);
        seats.retain(|seat| !Arc::ptr_eq(&seat.worker, &second));
        assert_eq!(shares(), [3, 0, 3]);
        seats.extend((0..4).map(|_| seat()));
        assert_eq!(shares().iter().max(), Some(&4));
        drop(seats);
        assert_eq!(shares(), [0, 0, 0]);
    }
}
