//! Threads that serve connections, and which of them serves which.
//!
//! Knows: how many connections each has, and where each ran last.
//! Never knows: what is asked on a connection.
//!
//! Waking another core costs more than most answers: a connection stays on its thread, rather on one
//! that runs where its packets come in. But the threads have about as many connections each, or a
//! client with one thread of its own would be served by one of ours. See "A connection is served
//! where its packets come in" in ARCHITECTURE.md for what that measured.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tracing::debug;

use super::{cores, outbox};

/// Requests of a connection between two looks at where its packets come in: a look takes less than a
/// hundredth of an answer.
const REQUESTS_A_LOOK: u32 = 16;
/// Looks in a row that must have found the same core: a client whose connections change threads all the
/// time is left alone, and one that stays on its cores is followed within milliseconds.
const LOOKS_ALIKE: u32 = 4;
/// A thread may take a connection from one that has as many, and then has up to this part of them more.
/// With so few that one more would be a larger part, none is moved but to make the threads even.
const UNEVEN_PART: usize = 8;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Workers {
    crew: Arc<Crew>,
    /// Kept for what happens when they are dropped.
    _threads: Vec<Thread>,
}

/// What connections know of the threads.
#[derive(Debug)]
struct Crew {
    first: Arc<Worker>,
    others: Vec<Arc<Worker>>,
}

/// What connections know of a thread.
#[derive(Debug)]
struct Worker {
    handle: Handle,
    connections: AtomicUsize,
    /// Where it ran when it last had answered all who had asked.
    core: AtomicUsize,
}

#[derive(Debug)]
struct Thread {
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A connection's place on a thread.
#[derive(Debug)]
pub(super) struct Seat {
    crew: Arc<Crew>,
    worker: Arc<Worker>,
    /// Since the last look.
    requests: u32,
    /// What the last looks found, and how many of them in a row.
    found: (usize, u32),
}

impl Workers {
    /// Starts so many threads.
    pub(super) fn start(count: NonZeroUsize) -> std::io::Result<Self> {
        let (first, thread) = Worker::start()?;
        let (mut others, mut threads) = (Vec::new(), vec![thread]);
        for _ in 1..count.get() {
            let (worker, thread) = Worker::start()?;
            others.push(worker);
            threads.push(thread);
        }
        Ok(Self { crew: Arc::new(Crew { first, others }), _threads: threads })
    }

    /// A place on the thread that has the fewest connections.
    pub(super) fn seat(&self) -> Seat {
        Crew::seat(&self.crew)
    }
}

impl Crew {
    fn seat(self: &Arc<Self>) -> Seat {
        let mut fewest = &self.first;
        for other in &self.others {
            if other.has() < fewest.has() {
                fewest = other;
            }
        }
        self.take(fewest)
    }

    fn take(self: &Arc<Self>, worker: &Arc<Worker>) -> Seat {
        worker.connections.fetch_add(1, Ordering::Relaxed);
        let found = (cores::NOWHERE, 0);
        Seat { crew: Arc::clone(self), worker: Arc::clone(worker), requests: 0, found }
    }
}

impl Seat {
    /// The thread that it is on.
    pub(super) fn thread(&self) -> Handle {
        self.worker.handle.clone()
    }

    /// A place that is better for the connection, if there is one. To be asked at every request: it
    /// looks now and then.
    pub(super) fn better(&mut self, stream: &TcpStream) -> Option<Self> {
        self.requests = self.requests.saturating_add(1);
        if self.requests < REQUESTS_A_LOOK {
            return None;
        }
        self.requests = 0;
        let core = cores::of_packets(stream)?;
        let better = self.better_after(core)?;
        debug!(core, "a connection goes to the thread where its packets come in");
        Some(better)
    }

    /// The same, after a look that found packets to come in there.
    fn better_after(&mut self, core: usize) -> Option<Self> {
        let (before, looks) = self.found;
        let looks = if core == before { looks.saturating_add(1) } else { 1 };
        self.found = (core, looks);
        if looks < LOOKS_ALIKE { None } else { self.better_at(core) }
    }

    /// A place on a thread that runs there, if this one does not and it has room.
    fn better_at(&self, core: usize) -> Option<Self> {
        if self.worker.is_at(core) {
            return None;
        }
        let Crew { first, others } = &*self.crew;
        let there = std::iter::once(first).chain(others).find(|worker| worker.is_at(core))?;
        let own = self.worker.has();
        // What it would have more than this thread then, and what it may.
        let more = there.has().saturating_add(2).saturating_sub(own);
        (more <= own / UNEVEN_PART).then(|| self.crew.take(there))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.worker.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Worker {
    fn new(handle: Handle) -> Arc<Self> {
        let (connections, core) = (AtomicUsize::new(0), AtomicUsize::new(cores::NOWHERE));
        Arc::new(Self { handle, connections, core })
    }

    fn start() -> std::io::Result<(Arc<Self>, Thread)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let worker = Self::new(runtime.handle().clone());
        let seen = Arc::clone(&worker);
        let look = move || seen.core.store(cores::here(), Ordering::Relaxed);
        worker.handle.spawn(outbox::send_in_turns(look));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("serve".to_owned()).spawn(move || {
            // Nothing is ever sent: this ends when the sender goes.
            let _ = runtime.block_on(stopped);
        })?;
        Ok((worker, Thread { stop: Some(stop), thread: Some(thread) }))
    }

    fn has(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn is_at(&self, core: usize) -> bool {
        self.core.load(Ordering::Relaxed) == core
    }
}

impl Drop for Thread {
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
    use tokio::runtime::Runtime;

    use super::*;

    /// Threads that are said to run on cores 0, 1 and so on. None of them does anything.
    fn crew(runtime: &Runtime, count: usize) -> Arc<Crew> {
        let mut workers = (0..count).map(|core| {
            let worker = Worker::new(runtime.handle().clone());
            worker.core.store(core, Ordering::Relaxed);
            worker
        });
        let first = workers.next().unwrap();
        Arc::new(Crew { first, others: workers.collect() })
    }

    /// How many connections each thread has.
    fn shares(crew: &Crew) -> Vec<usize> {
        std::iter::once(&crew.first).chain(&crew.others).map(|worker| worker.has()).collect()
    }

    /// Every connection looks, so often that it may move that many times, with its packets at the core
    /// that it is given.
    fn look(seats: &mut [Seat], times: usize, core: impl Fn(usize) -> usize) {
        for _ in 0..times {
            for (place, seat) in seats.iter_mut().enumerate() {
                if let Some(better) = seat.better_at(core(place)) {
                    *seat = better;
                }
            }
        }
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn a_connection_comes_to_the_thread_with_the_fewest() {
        let runtime = runtime();
        let crew = crew(&runtime, 3);
        let mut seats: Vec<Seat> = (0..9).map(|_| crew.seat()).collect();
        assert_eq!(shares(&crew), [3, 3, 3]);
        seats.retain(|seat| !Arc::ptr_eq(&seat.worker, &crew.others[0]));
        assert_eq!(shares(&crew), [3, 0, 3]);
        seats.extend((0..4).map(|_| crew.seat()));
        assert_eq!(shares(&crew).iter().max(), Some(&4));
        drop(seats);
        assert_eq!(shares(&crew), [0, 0, 0]);
    }

    #[test]
    fn connections_find_the_threads_where_their_packets_come_in() {
        let runtime = runtime();
        for (threads, connections) in [(2, 32), (2, 31), (4, 64), (3, 1000)] {
            let crew = crew(&runtime, threads);
            let mut seats: Vec<Seat> = (0..connections).map(|_| crew.seat()).collect();
            // As a client with as many threads opens them: all of one thread, then those of the next.
            let core = |place: usize| place * threads / connections;
            look(&mut seats, connections, core);
            let at_home =
                seats.iter().enumerate().filter(|(place, it)| it.worker.is_at(core(*place)));
            let at_home = at_home.count();
            assert!(at_home * 20 >= connections * 19, "{at_home} of {connections} on {threads}");
            // Where all is well nobody moves.
            let before = shares(&crew);
            look(&mut seats, 1, |place| if place == 0 { 99 } else { core(place) });
            assert_eq!(shares(&crew), before);
        }
    }

    #[test]
    fn packets_that_come_in_here_and_there_move_nothing() {
        let runtime = runtime();
        let crew = crew(&runtime, 2);
        let mut seats: Vec<Seat> = (0..32).map(|_| crew.seat()).collect();
        let seat = &mut seats[0];
        for look in 0..100 {
            // Three times there, once here.
            assert!(seat.better_after(usize::from(look % 4 > 0)).is_none(), "{look}");
        }
        assert!((0..4).any(|_| seat.better_after(1).is_some()));
    }

    #[test]
    fn threads_stay_even_wherever_packets_come_in() {
        let runtime = runtime();
        for (threads, connections) in [(1, 8), (2, 2), (2, 8), (2, 9), (2, 32), (4, 64), (3, 1000)]
        {
            let crew = crew(&runtime, threads);
            let mut seats: Vec<Seat> = (0..connections).map(|_| crew.seat()).collect();
            for core in [0, threads - 1, 0, 99] {
                look(&mut seats, connections, |_| core);
                let shares = shares(&crew);
                let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                assert_eq!(shares.iter().sum::<usize>(), connections);
                assert!(most - least <= (most / UNEVEN_PART).max(1), "{shares:?}");
            }
        }
    }
}
