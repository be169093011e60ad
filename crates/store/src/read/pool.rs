//! A bounded queue of reads, and those who work it off.
//!
//! *Invariant:* whenever there is room and somebody waits for it, one of those who wait has been
//! woken and has neither been polled nor dropped since. So nobody waits for a wake-up that went to
//! somebody who had left.
//!
//! A waker is woken and dropped only when the queue is not locked: either may run code of the
//! runtime, which may drop another read of this pool.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{Blocking, Reading, read_waiting};
use crate::disk::{DataFile, DiskError};

/// Reads files on threads that the caller starts: each runs [`ReadPool::work`] until
/// [`ReadPool::close`]. Without any, whoever reads waits.
#[derive(Debug)]
pub struct ReadPool {
    reads_max: NonZeroUsize,
    queue: Mutex<Queue>,
    /// There is a read to do, or the pool was closed.
    changed: Condvar,
    read_count: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    reads: VecDeque<QueuedRead>,
    /// Who waits for room, first come first.
    waiting: BTreeMap<u64, Waker>,
    next_ticket: u64,
    is_closed: bool,
}

impl Queue {
    /// If there is room, who has waited longest for it and is to be woken now.
    fn offer_room(&mut self, reads_max: NonZeroUsize) -> Option<Waker> {
        let has_room = self.reads.len() < reads_max.get();
        let (_, waker) = has_room.then(|| self.waiting.pop_first())??;
        Some(waker)
    }
}

impl ReadPool {
    /// A pool in which at most `reads_max` reads wait for a thread; further ones wait for room.
    #[must_use]
    pub fn new(reads_max: NonZeroUsize) -> Self {
        let (queue, read_count) = Default::default();
        Self { reads_max, queue, changed: Condvar::new(), read_count }
    }

    /// How many reads waited for a disk so far.
    #[must_use]
    pub fn read_count(&self) -> u64 {
        self.read_count.load(Ordering::Relaxed)
    }

    /// How many reads wait for a thread now.
    #[must_use]
    pub fn queued_reads(&self) -> usize {
        self.queue().reads.len()
    }

    /// Does reads, one after the other, until the pool is closed.
    pub fn work(&self) {
        while self.work_once() {}
    }

    /// Does one read; false if the pool is closed.
    pub(super) fn work_once(&self) -> bool {
        let Some(read) = self.next_read() else {
            return false;
        };
        let outcome = read_waiting(&*read.file, read.range.clone());
        self.read_count.fetch_add(1, Ordering::Relaxed);
        read.reply.answer(outcome);
        true
    }

    /// Ends [`ReadPool::work`] in every thread, after the read that it is at. Reads that nobody has
    /// begun fail, and so do all that are asked for from now on.
    pub fn close(&self) {
        let (reads, waiting) = {
            let mut queue = self.queue();
            queue.is_closed = true;
            (std::mem::take(&mut queue.reads), std::mem::take(&mut queue.waiting))
        };
        self.changed.notify_all();
        drop(reads); // each answers that nobody will do it
        waiting.into_values().for_each(Waker::wake);
    }

    fn next_read(&self) -> Option<QueuedRead> {
        let mut queue = self.queue();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(read) = queue.reads.pop_front() {
                let woken = queue.offer_room(self.reads_max);
                drop(queue);
                woken.into_iter().for_each(Waker::wake);
                return Some(read);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocking for ReadPool {
    fn read(&self, file: Arc<dyn DataFile>, range: Range<u64>) -> Reading<'_> {
        Box::pin(PoolRead { pool: self, stage: ReadStage::New { file, range, ticket: None } })
    }
}

/// A read in the queue. Dropped unanswered, because the pool is closed or its thread panicked, it
/// answers that nobody will do it: the other side never waits in vain.
#[derive(Debug)]
struct QueuedRead {
    file: Arc<dyn DataFile>,
    range: Range<u64>,
    reply: Arc<ReadReply>,
}

impl Drop for QueuedRead {
    fn drop(&mut self) {
        self.reply.answer(Err(closed(&*self.file)));
    }
}

fn closed(file: &dyn DataFile) -> DiskError {
    DiskError::PoolClosed { place: file.place().to_owned() }
}

/// Where the thread leaves what it read.
#[derive(Debug, Default)]
struct ReadReply(Mutex<ReplyState>);

#[derive(Debug, Default)]
enum ReplyState {
    #[default]
    Asked,
    Awaited(Waker),
    Answered(Result<Vec<u8>, DiskError>),
    Taken,
}

impl ReadReply {
    /// Only the first answer counts.
    fn answer(&self, outcome: Result<Vec<u8>, DiskError>) {
        let mut state = self.state();
        if matches!(*state, ReplyState::Asked | ReplyState::Awaited(_)) {
            let before = std::mem::replace(&mut *state, ReplyState::Answered(outcome));
            drop(state);
            if let ReplyState::Awaited(waker) = before {
                waker.wake();
            }
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<Vec<u8>, DiskError>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, ReplyState::Taken) {
            ReplyState::Answered(outcome) => Poll::Ready(outcome),
            // A future that gave its answer is not polled again.
            ReplyState::Taken => Poll::Pending,
            ReplyState::Asked | ReplyState::Awaited(_) => {
                *state = ReplyState::Awaited(waker.clone());
                Poll::Pending
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ReplyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One read, from its asker's side.
struct PoolRead<'a> {
    pool: &'a ReadPool,
    stage: ReadStage,
}

enum ReadStage {
    /// Not yet in the queue; with a ticket, it waits for room there.
    New {
        file: Arc<dyn DataFile>,
        range: Range<u64>,
        ticket: Option<u64>,
    },
    Queued(Arc<ReadReply>),
}

impl Future for PoolRead<'_> {
    type Output = Result<Vec<u8>, DiskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let pool = self.pool;
        let (file, range, ticket) = match &mut self.stage {
            ReadStage::Queued(reply) => return reply.poll(context.waker()),
            ReadStage::New { file, range, ticket } => (file, range, ticket),
        };
        let _before; // dropped after the lock
        let mut queue = pool.queue();
        _before = ticket.and_then(|ticket| queue.waiting.remove(&ticket));
        if queue.is_closed {
            return Poll::Ready(Err(closed(&**file)));
        }
        if queue.reads.len() >= pool.reads_max.get() {
            // The ticket is kept: who is overtaken stays first in the row.
            let ticket = *ticket.get_or_insert_with(|| {
                let ticket = queue.next_ticket;
                queue.next_ticket = ticket.saturating_add(1);
                ticket
            });
            queue.waiting.insert(ticket, context.waker().clone());
            return Poll::Pending;
        }
        let reply = Arc::new(ReadReply(Mutex::new(ReplyState::Awaited(context.waker().clone()))));
        queue.reads.push_back(QueuedRead {
            file: Arc::clone(file),
            range: range.clone(),
            reply: Arc::clone(&reply),
        });
        let woken = queue.offer_room(pool.reads_max);
        drop(queue);
        pool.changed.notify_one();
        woken.into_iter().for_each(Waker::wake);
        self.stage = ReadStage::Queued(reply);
        Poll::Pending
    }
}

impl Drop for PoolRead<'_> {
    /// Leaves the queue, so that nobody reads what nobody wants, and passes the room on.
    fn drop(&mut self) {
        let mut queue = self.pool.queue();
        let (mut left, mut waited) = (None, None);
        match &self.stage {
            ReadStage::New { ticket: None, .. } => return,
            ReadStage::New { ticket: Some(ticket), .. } => waited = queue.waiting.remove(ticket),
            ReadStage::Queued(reply) => {
                let is_own = |read: &QueuedRead| Arc::ptr_eq(&read.reply, reply);
                let position = queue.reads.iter().position(is_own);
                left = position.and_then(|position| queue.reads.remove(position));
            }
        }
        let woken = queue.offer_room(self.pool.reads_max);
        drop(queue);
        drop((left, waited));
        woken.into_iter().for_each(Waker::wake);
    }
}
