//! The node that is asked what is not served here: connections that are kept, and so many at a time.
//!
//! Knows: how an endpoint is asked on several connections at once.
//! Never knows: what may be asked of it; `rpc` decides.

use std::sync::{Mutex, PoisonError};

use rpc::{PassThrough, PassThroughError, Passing};
use tokio::sync::Semaphore;

use crate::endpoint::{Connection, Endpoint, EndpointError};

/// Requests on their way to the node at a time; more wait, as long as their callers do.
const REQUESTS_MAX: usize = 64;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    endpoint: Endpoint,
    places: Semaphore,
    /// Connections that nobody uses now; never more than there are places.
    idle: Mutex<Vec<Connection>>,
}

impl Node {
    pub(crate) fn at(endpoint: Endpoint) -> Self {
        Self { endpoint, places: Semaphore::new(REQUESTS_MAX), idle: Mutex::default() }
    }
}

impl PassThrough for Node {
    fn ask(&self, request: Vec<u8>, answer_bytes_max: usize) -> Passing<'_> {
        Box::pin(async move {
            let place = self.places.acquire().await;
            let _place = place.map_err(|closed| PassThroughError::Failed(closed.to_string()))?;
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = kept.unwrap_or_else(|| Connection::to(self.endpoint.clone()));
            // Once only: what changes something, as a raw transaction does, is not sent twice.
            let answer = connection.ask_once(request.into(), answer_bytes_max).await;
            let answer = answer.map_err(|error| match error {
                EndpointError::TooLarge { .. } => PassThroughError::TooLarge,
                error @ (EndpointError::Connect(_)
                | EndpointError::Late(_)
                | EndpointError::Broken(_)
                | EndpointError::Status { .. }) => PassThroughError::Failed(error.to_string()),
            })?;
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(answer.into())
        })
    }
}
