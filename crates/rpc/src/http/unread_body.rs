//! Bodies of requests over HTTP/2 that are answered before they are read.
//!
//! Whoever is refused before its body has come is told to send no more of it (`RST_STREAM` with
//! `NO_ERROR`, RFC 9113, 8.1.1). Some clients take that for a failure and drop the answer that came
//! before it, curl 7.88 among them. So a short body is waited for: nearly always it comes with the
//! head.

use std::pin::pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use tokio::time::timeout;

/// Bytes that are passed over at the most.
const PASSED_OVER_MAX: usize = 64 * 1024;
/// How long they are waited for.
const PASS_OVER_WITHIN: Duration = Duration::from_millis(200);

/// Reads a body and drops it, unless it is long or comes slowly.
pub(super) async fn pass_over<B: Body<Data = Bytes>>(body: B) {
    let mut body = pin!(body);
    let reading = async {
        let mut left = PASSED_OVER_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let count = frame.data_ref().map_or(0, Bytes::len);
            let Some(less) = left.checked_sub(count) else { return };
            left = less;
        }
    };
    // What does not come in time is refused without it.
    let _ = timeout(PASS_OVER_WITHIN, reading).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    /// So many parts of a thousand bytes, and then nothing more, or an end.
    struct Parts {
        left: usize,
        is_ending: bool,
    }

    impl Body for &mut Parts {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let parts = self.get_mut();
            match parts.left.checked_sub(1) {
                Some(left) => {
                    parts.left = left;
                    Poll::Ready(Some(Ok(Frame::data(vec![0; 1000].into()))))
                }
                None if parts.is_ending => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_body_is_read_and_nobody_waits_for_one_that_is_long_or_slow() {
        for (count, is_ending, left, time) in [
            (5, true, 0, Duration::ZERO),
            (5, false, 0, PASS_OVER_WITHIN),
            // The part beyond the limit has been read too.
            (1000, true, 1000 - 66, Duration::ZERO),
        ] {
            let begun = Instant::now();
            let mut parts = Parts { left: count, is_ending };
            pass_over(&mut parts).await;
            assert_eq!((parts.left, begun.elapsed()), (left, time));
        }
    }
}
