//! Short answers of many connections, sent together when the thread has answered all who asked.
//!
//! Knows: which answers wait to be sent, when they go, and what a socket did not take of them.
//! Never knows: what is in an answer.
//!
//! A thread that sends each answer when it is made is interrupted by each: the client wakes, and on
//! the same machine it takes the core. What is told here as "together" is one entry into the kernel
//! (`ring`), or one send after the other where the system has no such entry.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tracing::debug;

use super::ring::{Message, Ring, Sent};

/// Answers that wait for each other at the most: nobody waits for long.
const TOGETHER_MAX: u32 = 32;
/// Bytes of an answer that is short: copying it costs less than sending it alone.
pub(super) const SHORT_BYTES_MAX: usize = 4096;

/// The side of a connection that answers go to.
#[derive(Debug)]
pub(super) struct Wire {
    half: OwnedWriteHalf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// An answer is in the outbox.
    is_waiting: bool,
    /// What the socket did not take of the last one.
    unsent: Vec<u8>,
    /// The connection, to be woken for that.
    waker: Option<Waker>,
}

impl Wire {
    pub(super) fn new(half: OwnedWriteHalf) -> Self {
        Self { half, state: Mutex::default() }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        self.half.as_ref()
    }

    pub(super) fn into_half(self) -> OwnedWriteHalf {
        self.half
    }

    /// Whether all that was put has been sent, as it nearly always has.
    pub(super) fn is_clear(&self) -> bool {
        let state = self.state();
        !state.is_waiting && state.unsent.is_empty()
    }

    /// Whether there is something that the connection has to send itself; it is woken when there is.
    pub(super) fn is_stuck(&self, context: &Context<'_>) -> bool {
        let mut state = self.state();
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            waker @ None => *waker = Some(context.waker().clone()),
        }
        !state.unsent.is_empty()
    }

    /// Sends what waits, and gives back what the socket did not take.
    pub(super) fn take_unsent(&self) -> Vec<u8> {
        let is_waiting = self.state().is_waiting;
        if is_waiting {
            flush();
        }
        std::mem::take(&mut self.state().unsent)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer has left the outbox, this much of it to the socket.
    fn left(&self, answer: &[u8], sent: usize) {
        let mut state = self.state();
        state.is_waiting = false;
        let unsent = answer.get(sent..).unwrap_or_default();
        if !unsent.is_empty() {
            state.unsent.extend_from_slice(unsent);
            if let Some(waker) = &state.waker {
                waker.wake_by_ref();
            }
        }
    }
}

/// An answer that waits.
#[derive(Debug)]
struct Parcel {
    wire: Arc<Wire>,
    bytes: Vec<u8>,
}

/// What waits on a thread.
#[derive(Debug, Default)]
struct Outbox {
    parcels: Vec<Parcel>,
    /// Buffers of parcels that have left.
    spares: Vec<Vec<u8>>,
    /// Runs when all have run who are ready now, and sends. Without it nothing may wait here.
    sender: Option<Waker>,
    way: Way,
    sent: Vec<Sent>,
}

/// How parcels are sent.
#[derive(Debug, Default)]
enum Way {
    /// Not asked for yet.
    #[default]
    Unknown,
    Ring(Box<Ring>),
    OneByOne,
}

impl Way {
    /// What is left where the other does not work, as in many containers.
    fn one_by_one(cause: &io::Error) -> Self {
        debug!(%cause, "no io_uring for us: answers are sent one by one");
        Self::OneByOne
    }
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = RefCell::default();
}

/// Sends what waits on this thread, each time that all who were ready have been served; `at_turn` is
/// called each time, too.
pub(super) async fn send_in_turns(at_turn: impl Fn()) -> Infallible {
    poll_fn(|context| {
        at_turn();
        OUTBOX.with_borrow_mut(|outbox| {
            outbox.flush();
            if !outbox.sender.as_ref().is_some_and(|sender| sender.will_wake(context.waker())) {
                outbox.sender = Some(context.waker().clone());
            }
        });
        Poll::Pending
    })
    .await
}

/// Takes a short answer, unless nobody would send it. What was put before must have been sent.
pub(super) fn put(wire: &Arc<Wire>, parts: &[&[u8]]) -> bool {
    OUTBOX.with_borrow_mut(|outbox| {
        let Some(sender) = &outbox.sender else { return false };
        if outbox.parcels.is_empty() {
            sender.wake_by_ref();
        }
        let mut bytes = outbox.spares.pop().unwrap_or_default();
        for part in parts {
            bytes.extend_from_slice(part);
        }
        wire.state().is_waiting = true;
        outbox.parcels.push(Parcel { wire: Arc::clone(wire), bytes });
        if outbox.parcels.len() >= usize::try_from(TOGETHER_MAX).unwrap_or_default() {
            outbox.flush();
        }
        true
    })
}

/// Sends what waits on this thread now.
pub(super) fn flush() {
    OUTBOX.with_borrow_mut(Outbox::flush);
}

impl Outbox {
    fn flush(&mut self) {
        self.sent.clear();
        if self.parcels.len() > 1 {
            self.send_together();
        }
        let mut sent = self.sent.drain(..);
        for Parcel { wire, mut bytes } in self.parcels.drain(..) {
            let outcome = sent.next().flatten().unwrap_or_else(|| wire.stream().try_write(&bytes));
            // Whatever is wrong with a socket, its connection will find it when it sends the rest.
            wire.left(&bytes, outcome.unwrap_or_default());
            bytes.clear();
            self.spares.push(bytes);
        }
    }

    fn send_together(&mut self) {
        if let Way::Unknown = self.way {
            self.way = match Ring::open(TOGETHER_MAX) {
                Ok(ring) => Way::Ring(ring.into()),
                Err(cause) => Way::one_by_one(&cause),
            };
        }
        let Way::Ring(ring) = &mut self.way else { return };
        let messages = self.parcels.iter().map(|Parcel { wire, bytes }| {
            let socket = wire.stream().as_fd();
            Message { socket, bytes }
        });
        if let Err(cause) = ring.send(messages, &mut self.sent) {
            self.way = Way::one_by_one(&cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;

    use super::*;

    /// More than a socket takes at once.
    const LONG: usize = 32 << 20;

    /// Runs a test on a thread whose outbox sends by the ring, where there is one, and one by one.
    fn either_way<F: Future<Output = ()>>(test: impl Fn() -> F) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        for way in [Way::Unknown, Way::OneByOne] {
            OUTBOX.with_borrow_mut(|outbox| outbox.way = way);
            runtime.block_on(async {
                let sender = tokio::spawn(send_in_turns(|| ()));
                turn().await;
                test().await;
                sender.abort();
            });
        }
    }

    /// All who are ready run.
    async fn turn() {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }

    async fn pair() -> (Arc<Wire>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_, half) = listener.accept().await.unwrap().0.into_split();
        (Arc::new(Wire::new(half)), client)
    }

    async fn read(client: &mut TcpStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        client.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    #[test]
    fn each_client_gets_its_own_answer_at_the_end_of_the_turn() {
        either_way(async || {
            // One more than wait for each other.
            let mut pairs = Vec::new();
            for _ in 0..=TOGETHER_MAX {
                pairs.push(pair().await);
            }
            for (place, (wire, _)) in pairs.iter().enumerate() {
                assert!(wire.is_clear());
                assert!(put(wire, &[b"answer ", format!("{place:02}").as_bytes()]));
            }
            let waiting = pairs.iter().filter(|(wire, _)| !wire.is_clear());
            assert_eq!(waiting.count(), 1);
            turn().await;
            for (place, (wire, client)) in pairs.iter_mut().enumerate() {
                assert!(wire.is_clear());
                assert_eq!(read(client, 9).await, format!("answer {place:02}").as_bytes());
            }
        });
    }

    #[test]
    fn what_a_socket_does_not_take_goes_back_to_its_connection_and_nothing_is_lost() {
        either_way(async || {
            let ((slow, mut slow_client), (quick, mut quick_client)) = (pair().await, pair().await);
            let long: Vec<u8> = (0..LONG).map(|place| (place % 251).to_le_bytes()[0]).collect();
            let stuck = tokio::spawn({
                let slow = Arc::clone(&slow);
                poll_fn(
                    move |context| {
                        if slow.is_stuck(context) { Poll::Ready(()) } else { Poll::Pending }
                    },
                )
            });
            turn().await;
            assert!(put(&slow, &[&long]) && put(&quick, &[b"short"]));
            // Woken, though nothing came on its connection.
            stuck.await.unwrap();
            assert_eq!(read(&mut quick_client, 5).await, b"short");
            let unsent = slow.take_unsent();
            assert!(!unsent.is_empty() && slow.is_clear());
            let mut found = read(&mut slow_client, LONG - unsent.len()).await;
            found.extend_from_slice(&unsent);
            assert!(found == long);
        });
    }

    #[test]
    fn a_client_that_is_gone_is_left_to_its_connection() {
        either_way(async || {
            let ((gone, gone_client), (here, mut client)) = (pair().await, pair().await);
            drop(gone_client);
            for answer in [b"one", b"two"] {
                assert!(put(&gone, &[answer]) && put(&here, &[answer]));
                turn().await;
                assert_eq!(read(&mut client, 3).await, answer);
            }
            // The first one told the system; the second could not be sent.
            assert_eq!(gone.take_unsent(), b"two");
        });
    }

    #[test]
    fn nothing_waits_where_nobody_sends() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (wire, _client) = pair().await;
            assert!(!put(&wire, &[b"answer"]));
            assert!(wire.is_clear());
        });
    }

    #[test]
    fn what_waits_is_sent_when_its_connection_cannot_wait() {
        either_way(async || {
            let ((wire, mut client), (other, mut other_client)) = (pair().await, pair().await);
            assert!(put(&wire, &[b"one"]) && put(&other, &[b"two"]));
            assert_eq!(wire.take_unsent(), b"");
            assert_eq!(read(&mut client, 3).await, b"one");
            assert_eq!(read(&mut other_client, 3).await, b"two");
        });
    }
}
