//! One abuse that is under way: its connections, its threads, and what is counted of them.
//!
//! An attacker has processors of its own; here it shares them with the server. So its threads run at a
//! lower priority than the server and the well-behaved client.

mod connection;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::largest::Largest;
use crate::pace::AbusePace;

pub(crate) use connection::{RawConnection, Socket};

/// Between two rounds of one who takes its time.
const STEP_EVERY: Duration = Duration::from_millis(50);
/// After a connection failed.
const FAILED_PAUSE: Duration = Duration::from_millis(10);
/// As `nice` counts: others get nine times as much where there is too little.
const PRIORITY: i32 = 10;
/// Complaints that are kept: the first ones say what is wrong.
const COMPLAINTS_MAX: usize = 5;

/// An abuse that is under way.
#[derive(Debug)]
pub(crate) struct Attack<'a> {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    pub(crate) pace: &'a AbusePace,
    /// What has the longest answers.
    pub(crate) largest: &'a Largest,
    /// Connections at a time.
    pub(crate) connections: usize,
    pub(crate) tally: AttackTally,
}

/// What was done, and what came back.
#[derive(Debug, Default)]
pub(crate) struct AttackTally {
    connected: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// Connections that the server ended.
    closed: AtomicU64,
    statuses: Mutex<BTreeMap<u16, u64>>,
    complaints: Mutex<Vec<String>>,
}

impl<'a> Attack<'a> {
    /// Does a round after the other on each of so many threads. That a connection fails is as the server
    /// likes.
    pub(crate) fn repeat(&self, round: impl Fn(usize) -> io::Result<()> + Sync) -> Result<()> {
        let work = &|lane| {
            yield_to_others();
            loop {
                if round(lane).is_err() {
                    thread::sleep(FAILED_PAUSE);
                }
                if !self.pace.goes_on() {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            let lanes = 0..self.connections;
            let lanes: Vec<_> = lanes.map(|lane| scope.spawn(move || work(lane))).collect();
            lanes.into_iter().try_for_each(joined)
        })
    }

    /// Keeps so many connections on one thread and does a step on each, again and again. One that fails
    /// is opened again.
    pub(crate) fn keep(
        &'a self,
        open: impl Fn(usize) -> io::Result<RawConnection<'a>> + Sync,
        step: impl Fn(&mut RawConnection<'a>) -> io::Result<()> + Sync,
    ) -> Result<()> {
        let work = || {
            yield_to_others();
            let mut kept: Vec<Option<RawConnection<'a>>> = Vec::new();
            kept.resize_with(self.connections, || None);
            loop {
                for (index, place) in kept.iter_mut().enumerate() {
                    let outcome = match place {
                        Some(connection) => step(connection),
                        None => open(index).map(|connection| *place = Some(connection)),
                    };
                    if outcome.is_err() {
                        *place = None;
                    }
                    if self.pace.is_late() {
                        return;
                    }
                }
                if !self.pace.goes_on() {
                    return;
                }
                thread::sleep(STEP_EVERY);
            }
        };
        thread::scope(|scope| joined(scope.spawn(work)))
    }

    /// A connection like any other.
    pub(crate) fn connect(&self) -> io::Result<RawConnection<'_>> {
        RawConnection::open(self, Socket::Usual)
    }

    /// One that takes very little at a time.
    pub(crate) fn connect_narrow(&self) -> io::Result<RawConnection<'_>> {
        RawConnection::open(self, Socket::Narrow)
    }
}

/// Sends on a connection while this thread receives on it; the connection ends with the receiver.
pub(crate) fn send_and_receive<T>(
    mut connection: RawConnection<'_>,
    send: impl FnOnce(&mut RawConnection<'_>) -> io::Result<()> + Send,
    receive: impl FnOnce(&mut RawConnection<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let mut second = connection.second()?;
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            yield_to_others();
            // That it could not send all is seen by the receiver too, if it matters.
            let _ = send(&mut second);
            second.finish();
        });
        let outcome = receive(&mut connection);
        connection.end();
        let _ = sending.join();
        outcome
    })
}

impl AttackTally {
    pub(crate) fn count_connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(crate) fn count_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_status(&self, status: u16) {
        let mut statuses = self.statuses();
        let count = statuses.entry(status).or_default();
        *count = count.saturating_add(1);
    }

    /// Something that the server must not do.
    pub(crate) fn complain(&self, what: String) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.len() < COMPLAINTS_MAX {
            complaints.push(what);
        }
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn has_status(&self, status: u16) -> bool {
        self.statuses().contains_key(&status)
    }

    fn statuses(&self) -> MutexGuard<'_, BTreeMap<u16, u64>> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In one line.
    pub(crate) fn format(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let statuses: Vec<String> =
            self.statuses().iter().map(|(status, count)| format!("{count} x {status}")).collect();
        format!(
            "{} connections, {} ended by the server; {} KB sent, {} KB received; answers: {}",
            of(&self.connected),
            of(&self.closed),
            of(&self.sent_bytes) / 1000,
            of(&self.received_bytes) / 1000,
            if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }
        )
    }
}

/// Lets the server and the well-behaved client go before this thread. Linux does this by thread.
fn yield_to_others() {
    // Where it is not allowed, the abuse is only worse.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
}

fn joined(thread: ScopedJoinHandle<'_, ()>) -> Result<()> {
    thread.join().map_err(|_| anyhow!("a thread of the abuse panicked"))
}
