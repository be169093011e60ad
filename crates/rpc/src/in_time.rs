//! A limit on time that costs nothing where nothing is waited for.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::time::{Instant, timeout_at};

/// What comes of a future, unless it is too late. The end is asked for when it has to wait; none is no
/// limit, as a time past the end of all clocks.
pub(crate) async fn in_time<F: Future>(
    future: F,
    end: impl FnOnce() -> Option<Instant>,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let at_once = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    if let Poll::Ready(output) = at_once {
        return Some(output);
    }
    match end() {
        Some(end) => timeout_at(end, future).await.ok(),
        None => Some(future.await),
    }
}
