//! Whether the other end of a connection is still there.
//!
//! Knows: when a byte last came, when to ask for a sign of life, and after how long the other end counts
//! as gone.
//! Never knows: what the bytes mean, or how a sign of life is asked for.
//!
//! Bytes count, and not messages: a large one may take longer than the other end may be silent.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// After so long without a byte the other end is asked for a sign of life.
pub(super) const PING_AFTER: Duration = Duration::from_secs(10);
/// So long it may take to give one.
pub(super) const PONG_MAX: Duration = Duration::from_secs(10);

/// When a byte last came.
#[derive(Clone, Debug)]
struct LastHeard(Arc<Mutex<Instant>>);

impl LastHeard {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that notes when bytes come.
#[derive(Debug)]
pub(super) struct HeardStream<S> {
    stream: S,
    last: LastHeard,
}

/// Says when to ask for a sign of life, and when there was none.
#[derive(Debug)]
pub(super) struct KeepAlive {
    last: LastHeard,
    pinged_at: Option<Instant>,
}

/// What is to be done about a silent connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Ask for a sign of life.
    Ping,
    /// There was none: end it.
    Gone,
}

impl KeepAlive {
    /// Watches a stream.
    pub(super) fn of<S>(stream: S) -> (HeardStream<S>, Self) {
        let last = LastHeard(Arc::new(Mutex::new(Instant::now())));
        let keep_alive = Self { last: last.clone(), pinged_at: None };
        (HeardStream { stream, last }, keep_alive)
    }

    /// Waits until something is to be done. May be dropped and called again at any time; whoever reads
    /// the stream meanwhile must do so first.
    pub(super) async fn next(&mut self) -> Silence {
        loop {
            let heard_at = self.last.get();
            let pinged_at = self.pinged_at.filter(|pinged_at| *pinged_at > heard_at);
            let (from, time, silence) = match pinged_at {
                Some(pinged_at) => (pinged_at, PONG_MAX, Silence::Gone),
                None => (heard_at, PING_AFTER, Silence::Ping),
            };
            let now = Instant::now();
            let Some(due) = from.checked_add(time).filter(|due| *due > now) else {
                self.pinged_at = Some(now);
                return silence;
            };
            // It may be heard meanwhile.
            sleep_until(due).await;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeardStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.last.note();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeardStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_byte_is_a_sign_of_life_and_none_for_twenty_seconds_is_the_end() {
        let (own, mut other) = tokio::io::duplex(64);
        let (mut stream, mut keep_alive) = KeepAlive::of(own);
        let begun = Instant::now();
        assert_eq!(keep_alive.next().await, Silence::Ping);
        assert_eq!(begun.elapsed(), PING_AFTER);
        // A byte before the end, of whatever it is a part.
        tokio::time::advance(PONG_MAX / 2).await;
        other.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
        let heard_at = Instant::now();
        assert_eq!(keep_alive.next().await, Silence::Ping);
        assert_eq!(heard_at.elapsed(), PING_AFTER);
        assert_eq!(keep_alive.next().await, Silence::Gone);
        assert_eq!(heard_at.elapsed(), Duration::from_secs(20));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_did_not_look_for_long_asks_for_a_sign_of_life_first() {
        let (own, _other) = tokio::io::duplex(64);
        let (_stream, mut keep_alive) = KeepAlive::of(own);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(keep_alive.next().await, Silence::Ping);
        let asked_at = Instant::now();
        assert_eq!(keep_alive.next().await, Silence::Gone);
        assert_eq!(asked_at.elapsed(), PONG_MAX);
    }
}
