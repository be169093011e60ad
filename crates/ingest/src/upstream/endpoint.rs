//! An endpoint that is asked in somebody else's words: one body there, one body back.
//!
//! Knows: when a question may be asked again.
//! Never knows: what is asked, or what the answer means.

use hyper::body::Bytes;

use super::address::{Scheme, UpstreamUrl};
use super::client::{AskLimits, pause};
use super::error::AskError;
use super::http::Http;

/// An endpoint over HTTP or HTTPS.
#[derive(Debug)]
pub struct Endpoint {
    http: Http,
    limits: AskLimits,
}

impl Endpoint {
    /// An endpoint at an address. Nothing is asked yet.
    pub fn new(url: UpstreamUrl, limits: AskLimits) -> Result<Self, AskError> {
        if url.scheme == Scheme::WebSocket {
            let name = url.name();
            return Err(AskError::Connect(format!("{name} is to be asked over http or https")));
        }
        Ok(Self { http: Http::new(url, limits)?, limits })
    }

    /// Asks a question that changes nothing: again, where a failure may pass.
    pub async fn ask(&self, body: Vec<u8>) -> Result<Bytes, AskError> {
        let body = Bytes::from(body);
        let mut tries: u32 = 1;
        loop {
            match self.ask_once(body.clone(), self.limits.answer_bytes_max).await {
                Err(error) if tries < self.limits.tries_max && error.is_passing() => {
                    tokio::time::sleep(pause(&self.limits, tries)).await;
                    tries = tries.saturating_add(1);
                }
                asked => return asked,
            }
        }
    }

    /// Asks once, for an answer of so many bytes at the most. Only what never left is sent again: a
    /// server may close a connection that was kept at any moment.
    pub async fn ask_once(&self, body: Bytes, answer_bytes_max: usize) -> Result<Bytes, AskError> {
        self.http.ask(body, answer_bytes_max).await
    }
}
