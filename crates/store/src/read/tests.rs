//! Reads that are warm, cold, queued, crowded out, given up and cut off.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::disk::Disk as _;
use crate::disk::faulty::FaultyDisk;

const CONTENT: &[u8] = b"0123456789";

fn disk() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    disk.write("a", CONTENT).unwrap();
    disk
}

fn file() -> Arc<dyn DataFile> {
    disk().open("a").unwrap()
}

fn pool(reads_max: usize) -> Arc<ReadPool> {
    Arc::new(ReadPool::new(NonZeroUsize::new(reads_max).unwrap()))
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that a test polls by hand.
struct Polled<'a> {
    future: Reading<'a>,
    wakes: Arc<Count>,
}

impl<'a> Polled<'a> {
    fn new(future: Reading<'a>) -> Self {
        Self { future, wakes: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Result<Vec<u8>, DiskError>> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    fn assert_pending(&mut self) {
        assert!(self.poll().is_pending());
    }

    fn assert_read(&mut self, expected: &[u8]) {
        match self.poll() {
            Poll::Ready(outcome) => assert_eq!(outcome.unwrap(), expected),
            Poll::Pending => panic!("it was woken {} times and waits", self.wakes()),
        }
    }
}

/// Does the reads that are queued now, on this thread.
fn work_off(pool: &ReadPool, count: usize) {
    for _ in 0..count {
        assert!(pool.work_once());
    }
}

#[test]
fn a_warm_read_never_suspends() {
    // Nobody works for this pool: what suspends stays so.
    let bytes = LocalBytes::new(file(), pool(1));
    assert_eq!(bytes.file_bytes(), 10);
    let mut buffer = Vec::new();
    {
        let future = pin!(fetch(&bytes, 2..5, &mut buffer));
        assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    assert_eq!(buffer, b"234");
}

#[test]
fn a_cold_read_suspends_and_is_woken() {
    let pool = pool(1);
    let bytes = LocalBytes::new(file(), pool.clone());
    let mut read = Polled::new(bytes.read(2..5));
    read.assert_pending();
    read.assert_pending();
    assert_eq!(read.wakes(), 0);
    work_off(&pool, 1);
    assert_eq!(read.wakes(), 1);
    read.assert_read(b"234");
}

#[test]
fn a_full_queue_makes_room_in_the_order_of_arrival() {
    let pool = pool(1);
    let mut reads: Vec<Polled> =
        (0..4).map(|start| Polled::new(pool.read(file(), start..start + 1))).collect();
    for read in &mut reads {
        read.assert_pending();
    }
    for (turn, expected) in [b"0", b"1", b"2", b"3"].into_iter().enumerate() {
        work_off(&pool, 1);
        let wakes: Vec<usize> = reads.iter().map(Polled::wakes).collect();
        reads[turn].assert_read(expected);
        if let Some(next) = reads.get_mut(turn + 1) {
            assert_eq!(next.wakes(), 1, "{wakes:?}");
            next.assert_pending();
        }
        assert!(reads.iter().skip(turn + 2).all(|read| read.wakes() == 0), "{wakes:?}");
    }
}

#[test]
fn who_is_overtaken_stays_first_in_the_row() {
    let pool = pool(1);
    let mut reads: Vec<Polled> =
        (0..4).map(|start| Polled::new(pool.read(file(), start..start + 1))).collect();
    for read in reads.iter_mut().take(3) {
        read.assert_pending();
    }
    work_off(&pool, 1); // wakes the second, but the fourth comes first
    reads[3].assert_pending();
    reads[1].assert_pending();
    work_off(&pool, 1);
    reads[3].assert_read(b"3");
    assert_eq!((reads[1].wakes(), reads[2].wakes()), (2, 0));
}

#[test]
fn a_read_given_up_harms_nobody() {
    let pool = pool(1);
    let mut reads: Vec<Polled> =
        (0..4).map(|start| Polled::new(pool.read(file(), start..start + 1))).collect();
    for read in &mut reads {
        read.assert_pending();
    }
    drop(reads.remove(0)); // queued: its room goes to the next
    assert_eq!(reads[0].wakes(), 1);
    drop(reads.remove(0)); // woken and not polled: passes it on
    assert_eq!(reads[0].wakes(), 1);
    drop(reads.remove(1)); // waits for room
    reads[0].assert_pending();
    work_off(&pool, 1);
    reads[0].assert_read(b"2");
    drop(pool.read(file(), 0..1)); // never polled
    let mut last = Polled::new(pool.read(file(), 9..10));
    last.assert_pending();
    work_off(&pool, 1);
    drop(last); // answered and not taken
}

#[test]
fn a_closed_pool_is_an_error_and_not_a_wait() {
    let pool = pool(1);
    let mut reads: Vec<Polled> = (0..3).map(|_| Polled::new(pool.read(file(), 0..1))).collect();
    for read in reads.iter_mut().take(2) {
        read.assert_pending();
    }
    pool.close();
    pool.work(); // returns
    assert_eq!(reads.iter().map(Polled::wakes).collect::<Vec<_>>(), [1, 1, 0]);
    for mut read in reads {
        match read.poll() {
            Poll::Ready(outcome) => assert_eq!(
                outcome.unwrap_err().to_string(),
                "memory/a: read: the reading threads have ended"
            ),
            Poll::Pending => panic!("it waits for nobody"),
        }
    }
}

/// A file whose reading panics.
#[derive(Debug)]
struct Broken;

impl DataFile for Broken {
    fn place(&self) -> &'static str {
        "broken"
    }

    fn file_bytes(&self) -> u64 {
        1
    }

    fn read_at(&self, _: Range<u64>, _: &mut Vec<u8>) -> Result<(), DiskError> {
        panic!("a mistake in this program");
    }

    fn read_now(&self, _: Range<u64>, _: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        Ok(CachedRead::WouldBlock)
    }
}

#[test]
fn a_thread_that_dies_leaves_an_error_behind() {
    let pool = pool(1);
    let mut read = Polled::new(pool.read(Arc::new(Broken), 0..1));
    read.assert_pending();
    let died = thread::scope(|scope| scope.spawn(|| pool.work()).join().is_err());
    assert!(died);
    assert!(matches!(read.poll(), Poll::Ready(Err(DiskError::PoolClosed { .. }))));
}

#[test]
fn many_readers_share_few_threads() {
    let disk = disk();
    disk.set_may_block(true);
    let pool = pool(2);
    let bytes = LocalBytes::new(disk.open("a").unwrap(), pool.clone());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| pool.work());
        }
        let readers: Vec<_> = (0..8)
            .map(|reader: u64| {
                let bytes = &bytes;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for turn in 0..200 {
                        let start = (reader + turn) % 10;
                        block_on(fetch(bytes, start..10, &mut buffer)).unwrap();
                        assert_eq!(buffer, CONTENT[usize::try_from(start).unwrap()..]);
                    }
                })
            })
            .collect();
        for reader in readers {
            reader.join().unwrap();
        }
        pool.close();
    });
}

#[test]
fn reading_inline_needs_no_thread() {
    let disk = disk();
    disk.set_may_block(true);
    let bytes = LocalBytes::new(disk.open("a").unwrap(), Arc::new(Inline));
    let mut buffer = Vec::new();
    for _ in 0..20 {
        block_on(fetch(&bytes, 3..6, &mut buffer)).unwrap();
        assert_eq!(buffer, b"345");
    }
    assert!(matches!(block_on(bytes.read(0..11)), Err(DiskError::Range { .. })));
}
