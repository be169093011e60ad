//! The node that is asked what is not served here, so many questions at a time.
//!
//! Knows: how an endpoint becomes what `rpc` passes calls through to.
//! Never knows: what may be asked of it; `rpc` decides.

use ingest::upstream::{AskError, AskLimits, Endpoint, UpstreamUrl};
use rpc::{PassThrough, PassThroughError, Passing};
use tokio::sync::Semaphore;

/// Requests on their way to the node at a time; more wait, as long as their callers do.
const REQUESTS_MAX: usize = 64;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    endpoint: Endpoint,
    places: Semaphore,
}

impl Node {
    pub(crate) fn at(url: UpstreamUrl) -> Result<Self, AskError> {
        let endpoint = Endpoint::new(url, AskLimits::default())?;
        Ok(Self { endpoint, places: Semaphore::new(REQUESTS_MAX) })
    }
}

impl PassThrough for Node {
    fn ask(&self, request: Vec<u8>, answer_bytes_max: usize) -> Passing<'_> {
        Box::pin(async move {
            let failed = |error: String| PassThroughError::Failed(error);
            let _place =
                self.places.acquire().await.map_err(|closed| failed(closed.to_string()))?;
            // Once only: what changes something, as a raw transaction does, is not sent twice.
            match self.endpoint.ask_once(request.into(), answer_bytes_max).await {
                Ok(answer) => Ok(answer.into()),
                Err(AskError::TooLarge { .. }) => Err(PassThroughError::TooLarge),
                Err(error) => Err(failed(error.to_string())),
            }
        })
    }
}
