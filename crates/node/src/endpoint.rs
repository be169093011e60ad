//! An endpoint that is asked in somebody else's words: one body there, one body back.
//!
//! Knows: when a question may be asked again, and which chain the other side follows.
//! Never knows: what is asked, or what the answer means.

use std::net::SocketAddr;

use hyper::body::Bytes;

use super::address::{Scheme, UpstreamUrl};
use super::answer_body::HasRoom;
use super::answers::{
    Answer, Message, NodeCall, decode_message, encode_calls, hide_address, in_order,
};
use super::ask_limits::AskLimits;
use super::client::SHORT_BYTES_MAX;
use super::connections::identity_calls;
use super::error::{AskError, FetchError};
use super::fetch::identity_of;
use super::http::Http;
use super::identity::Identity;
use super::retry::Tries;

/// An endpoint over HTTP or HTTPS.
#[derive(Debug)]
pub struct Endpoint {
    name: String,
    http: Http,
    limits: AskLimits,
}

impl Endpoint {
    /// An endpoint at an address. Nothing is asked yet.
    pub fn new(url: UpstreamUrl, limits: AskLimits) -> Result<Self, AskError> {
        let name = url.name().to_owned();
        if url.scheme != Scheme::Http {
            return Err(AskError::Connect(format!("{name} is to be asked over http or https")));
        }
        Ok(Self { name, http: Http::new(url, limits)?, limits })
    }

    /// Asks a question that changes nothing: again, where a failure may pass.
    pub async fn ask(&self, body: Vec<u8>) -> Result<Bytes, AskError> {
        let body = Bytes::from(body);
        let bytes_max = self.limits.answer_bytes_max;
        let mut tries = Tries::new(&self.limits, &self.name);
        loop {
            match self.http.ask_on(body.clone(), bytes_max).await {
                Ok((answer, _)) => return Ok(answer),
                Err(error) => tries.wait_after(error).await?,
            }
        }
    }

    /// Asks once, for an answer of so many bytes at the most that are counted while they come. Only what
    /// never left is sent again: a server may close a connection that was kept at any moment. Gives
    /// back our end of the connection that carried it too: another one may lead to another node.
    pub async fn ask_with_room(
        &self,
        body: Bytes,
        answer_bytes_max: usize,
        has_room: HasRoom<'_>,
    ) -> Result<(Vec<u8>, Option<SocketAddr>), AskError> {
        self.http.ask_with_room(body, answer_bytes_max, has_room).await
    }

    /// Which chain the node follows, by every connection that carried an answer and can still be
    /// asked; and whether all of them could be.
    pub async fn fetch_identities(&self) -> Result<(Vec<Identity>, bool), FetchError> {
        let ask = || async {
            let calls = identity_calls();
            // Together, so that one connection carries both. Some nodes take no batches.
            let answers = match self.ask_calls(&calls).await {
                Ok(answers) => answers,
                Err(error @ (AskError::Connect(_) | AskError::Late(_) | AskError::Broken(_))) => {
                    return Err(error.into());
                }
                Err(_) => {
                    let [chain_id, genesis] = &calls;
                    let mut answers = self.ask_calls(std::slice::from_ref(chain_id)).await?;
                    answers.extend(self.ask_calls(std::slice::from_ref(genesis)).await?);
                    answers
                }
            };
            let mut answers = answers.into_iter();
            let mut next = || {
                answers.next().unwrap_or_else(|| Err(AskError::Malformed("no answer".to_owned())))
            };
            let chain_id = next();
            identity_of(chain_id, next())
        };
        let told = self.http.connections.identify(ask).await?;
        Ok((told.identities, told.is_complete))
    }

    /// Whether the node said on this connection which chain it follows.
    #[must_use]
    pub fn is_identified_on(&self, connection: SocketAddr) -> bool {
        self.http.connections.has_said(connection)
    }

    /// Whoever answers next may be another.
    pub fn forget_identity(&self) {
        self.http.connections.forget();
    }

    async fn ask_calls(&self, calls: &[NodeCall]) -> Result<Vec<Answer>, AskError> {
        hide_address(self.send(calls).await, &self.http.url)
    }

    async fn send(&self, calls: &[NodeCall]) -> Result<Vec<Answer>, AskError> {
        let body = Bytes::from(encode_calls(calls, 1));
        let (body, connection) = match self.http.ask_on(body.clone(), SHORT_BYTES_MAX).await {
            // The connection was closed under the question, which may be asked any number of times.
            Err(AskError::Broken(_)) => self.http.ask_on(body, SHORT_BYTES_MAX).await?,
            asked => asked?,
        };
        let answers = match decode_message(&body, calls.len())? {
            Message::Answers(answers) => in_order(answers, 1, calls.len())?,
            Message::Refusal(error) => return Err(error),
            Message::News(_) => return Err(AskError::Malformed("news".to_owned())),
        };
        if let Some(connection) = connection {
            self.http.connections.answered(connection, calls);
        }
        Ok(answers)
    }
}
