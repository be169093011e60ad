//! How the bytes of segments and runs are read, wherever they live.
//!
//! A warm read is answered by [`SegmentBytes::read_now`] and never leaves its thread; a cold one is
//! awaited, so that it never stalls its neighbours. The store starts no threads: those who read for
//! a [`ReadPool`] are the caller's, and [`Inline`] needs none.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::disk::{CachedRead, DataFile, DiskError, FileVersion};

mod pool;
#[cfg(test)]
mod tests;

pub use pool::ReadPool;

/// Bytes that are on their way.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, DiskError>> + Send + 'a>>;

/// The bytes of one immutable file: on a disk here, in a bucket elsewhere.
pub trait SegmentBytes: fmt::Debug + Send + Sync {
    /// How many there are.
    fn file_bytes(&self) -> u64;

    /// Which file they are of, whoever has its name now; `None` if that cannot be told.
    fn version(&self) -> Option<FileVersion> {
        None
    }

    /// Whether the file is far away, where a few bytes of it cost much less than all.
    fn is_far(&self) -> bool {
        false
    }

    /// Fills the buffer with exactly the range if that takes no waiting, or leaves it empty.
    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError>;

    /// The range where it lies, if that is in memory.
    fn resident(&self, _range: &Range<u64>) -> Option<&[u8]> {
        None
    }

    /// The range, later. Dropping the future gives it up.
    fn read(&self, range: Range<u64>) -> Reading<'_>;

    /// Some of what was read is wrong: whoever keeps copies of the file's bytes drops them, so that the
    /// next read gets them anew. Tells whether what was read may be of a copy of the whole file that
    /// nobody reads any more: then nothing is known of the file itself.
    fn discard_copies(&self) -> bool {
        false
    }
}

/// Who waits for the disk.
pub trait Blocking: fmt::Debug + Send + Sync {
    /// Reads the range of the file.
    fn read(&self, file: Arc<dyn DataFile>, range: Range<u64>) -> Reading<'_>;
}

/// Reads on the thread that polls, which waits. For programs that have nothing else to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Blocking for Inline {
    fn read(&self, file: Arc<dyn DataFile>, range: Range<u64>) -> Reading<'_> {
        Box::pin(async move { read_waiting(&*file, range) })
    }
}

/// The bytes of a file on a disk.
#[derive(Clone, Debug)]
pub struct LocalBytes {
    file: Arc<dyn DataFile>,
    pool: Arc<dyn Blocking>,
}

impl LocalBytes {
    /// The bytes of `file`; `pool` waits for those that are not in memory.
    #[must_use]
    pub fn new(file: Arc<dyn DataFile>, pool: Arc<dyn Blocking>) -> Self {
        Self { file, pool }
    }
}

impl SegmentBytes for LocalBytes {
    fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    fn version(&self) -> Option<FileVersion> {
        self.file.version()
    }

    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        self.file.read_now(range, buffer)
    }

    fn read(&self, range: Range<u64>) -> Reading<'_> {
        self.pool.read(Arc::clone(&self.file), range)
    }
}

/// Fills the buffer with the range, at once if it can be.
pub async fn fetch(
    bytes: &dyn SegmentBytes,
    range: Range<u64>,
    buffer: &mut Vec<u8>,
) -> Result<(), DiskError> {
    match bytes.read_now(range.clone(), buffer)? {
        CachedRead::Ready => {}
        CachedRead::WouldBlock => *buffer = bytes.read(range).await?,
    }
    Ok(())
}

/// Runs a future to its end; this thread sleeps whenever it has to wait.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    // Warm reads are ready at once: nobody is to be woken, and no waker is made. Who is not gets a
    // real one before anything is waited for.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // Woken before this line, it returns at once; woken for nothing, it polls for nothing.
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn read_waiting(file: &dyn DataFile, range: Range<u64>) -> Result<Vec<u8>, DiskError> {
    let mut buffer = Vec::new();
    file.read_at(range, &mut buffer)?;
    Ok(buffer)
}
