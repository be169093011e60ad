//! A body in, a body out: one request or a batch, answered from one view.
//!
//! Knows: the envelope of answers, the limits of batches, and what the log is told.
//! Never knows: HTTP, or how a result is found.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chain::{BlockRange, ChainSpec};
use store::{Reader, Store, StoreError, View};
use tokio::time::{Instant, timeout_at};
use tracing::error;

use crate::answer::{Context, Failure, UnknownHash};
use crate::envelope::{Batch, Call, Id, Item, Request, parse};
use crate::json::{Object, put_list, put_text};
use crate::methods::find;
use crate::openrpc;
use crate::params::Params;
use crate::refusal::Refusal;

/// How calls are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What an unknown hash gets while history has gaps.
    pub unknown_hash: UnknownHash,
    /// Whether the store follows a tip.
    pub is_following: bool,
    /// Calls in a batch.
    pub batch_items_max: usize,
    /// Bytes of answers in a batch, after which the rest is refused.
    pub batch_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            unknown_hash: UnknownHash::default(),
            is_following: false,
            batch_items_max: 1000,
            batch_bytes_max: 25_000_000,
        }
    }
}

/// Answers JSON-RPC from a store.
#[derive(Debug)]
pub struct Service {
    store: Arc<Store>,
    spec: ChainSpec,
    settings: Settings,
    /// The `OpenRPC` document.
    document: Vec<u8>,
    /// Those that no call is using.
    readers: Mutex<Vec<Reader>>,
}

impl Service {
    /// A service over a store of this chain.
    #[must_use]
    pub fn new(store: Arc<Store>, spec: ChainSpec, settings: Settings) -> Self {
        let document = openrpc::document();
        Self { store, spec, settings, document, readers: Mutex::default() }
    }

    /// The `OpenRPC` document of all methods.
    #[must_use]
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// The store that is served.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Answers a body within `time`; calls that take longer are refused. `None` if nothing is to be
    /// said: all it holds are notifications.
    pub async fn respond(&self, body: &[u8], time: Duration) -> Option<Vec<u8>> {
        let until = Instant::now().checked_add(time);
        let mut out = Vec::with_capacity(2048);
        match parse(body) {
            Err(refusal) => put_refusal(&mut out, Id::NULL, &refusal),
            Ok(Request::Single(item)) => {
                let view = self.store.view();
                if !self.put_item(&view, &item, until, &mut out).await {
                    return None;
                }
            }
            Ok(Request::Batch(batch)) if batch.count() > self.settings.batch_items_max => {
                put_batch_refused(&mut out, batch)?;
            }
            Ok(Request::Batch(batch)) => self.put_batch(batch, until, &mut out).await?,
        }
        Some(out)
    }

    async fn put_batch(
        &self,
        batch: Batch<'_>,
        until: Option<Instant>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let view = self.store.view();
        out.push(b'[');
        for item in batch.items() {
            let before = out.len();
            if before > 1 {
                out.push(b',');
            }
            let is_answered = match &item {
                Item::Call(call) if before >= self.settings.batch_bytes_max => {
                    put_refusal(out, call.id, &Refusal::ResponseTooLarge);
                    true
                }
                Item::Call(_) | Item::Notification | Item::Invalid(..) => {
                    self.put_item(&view, &item, until, out).await
                }
            };
            if !is_answered {
                out.truncate(before);
            }
        }
        out.push(b']');
        (out.len() > 2).then_some(())
    }

    /// Appends the answer to one request; tells whether there is one.
    async fn put_item(
        &self,
        view: &Arc<View>,
        item: &Item<'_>,
        until: Option<Instant>,
        out: &mut Vec<u8>,
    ) -> bool {
        match item {
            Item::Notification => return false,
            Item::Invalid(id, refusal) => put_refusal(out, *id, refusal),
            Item::Call(call) => {
                let begin = out.len();
                let answering = self.put_call(view, call, out);
                // A time past the end of all clocks is no limit.
                let is_late = if let Some(until) = until {
                    timeout_at(until, answering).await.is_err()
                } else {
                    answering.await;
                    false
                };
                if is_late {
                    out.truncate(begin);
                    put_refusal(out, call.id, &Refusal::TimedOut);
                }
            }
        }
        true
    }

    async fn put_call(&self, view: &Arc<View>, call: &Call<'_>, out: &mut Vec<u8>) {
        let begin = out.len();
        let Some(row) = find(&call.method) else {
            let method = call.method.clone().into_owned();
            return put_refusal(out, call.id, &Refusal::UnknownMethod { method });
        };
        let mut view = Arc::clone(view);
        let mut is_retried = false;
        loop {
            put_envelope(out, call.id);
            out.extend_from_slice(b",\"result\":");
            let answered = self.run(&view, row.method, call, out).await;
            let Err(failure) = answered else {
                out.push(b'}');
                return;
            };
            out.truncate(begin);
            // Another process may have merged the file away: the folder's manifest tells.
            let is_gone =
                matches!(&failure, Failure::Store(StoreError::Disk(it)) if it.is_missing());
            if is_gone && !is_retried && self.store.refresh().unwrap_or(false) {
                is_retried = true;
                view = self.store.view();
                continue;
            }
            return put_refusal(out, call.id, &refusal_of(failure, row.name));
        }
    }

    async fn run(
        &self,
        view: &View,
        method: crate::methods::Method,
        call: &Call<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let context = Context {
            view,
            spec: &self.spec,
            unknown_hash: self.settings.unknown_hash,
            is_following: self.settings.is_following,
            document: &self.document,
        };
        let mut reader = self.take_reader()?;
        let mut params = Params::new(call.params);
        let answered = context.answer(method, &mut params, &mut reader, out).await;
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        answered
    }

    fn take_reader(&self) -> Result<Reader, Failure> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(reader) => Ok(reader),
            None => Reader::new().map_err(|error| Failure::Store(StoreError::Reader(error))),
        }
    }
}

/// Refuses a batch of too many: every call by its id, so that whoever waits for it is told. What is
/// no call is passed over, or a body of nothing but commas and digits would get an answer forty
/// times its size; if there is nothing else, one refusal stands for all.
fn put_batch_refused(out: &mut Vec<u8>, batch: Batch<'_>) -> Option<()> {
    let mut is_invalid = false;
    out.push(b'[');
    for item in batch.items() {
        match item {
            Item::Call(call) => {
                if out.len() > 1 {
                    out.push(b',');
                }
                put_refusal(out, call.id, &Refusal::BatchTooLarge);
            }
            Item::Invalid(..) => is_invalid = true,
            Item::Notification => {}
        }
    }
    if out.len() == 1 && is_invalid {
        put_refusal(out, Id::NULL, &Refusal::BatchTooLarge);
    }
    out.push(b']');
    (out.len() > 2).then_some(())
}

/// An answer that is only a refusal, for bodies that never reach the service.
#[must_use]
pub fn refusal_body(refusal: &Refusal) -> Vec<u8> {
    let mut out = Vec::new();
    put_refusal(&mut out, Id::NULL, refusal);
    out
}

fn refusal_of(failure: Failure, method: &str) -> Refusal {
    match failure {
        Failure::Refused(refusal) => refusal,
        Failure::Store(cause) => {
            error!(method, %cause, "cannot read what is stored");
            Refusal::Internal
        }
        Failure::NotABlock => {
            error!(method, "stored bytes are no block");
            Refusal::Internal
        }
    }
}

fn put_envelope(out: &mut Vec<u8>, id: Id<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.text().as_bytes());
}

fn put_refusal(out: &mut Vec<u8>, id: Id<'_>, refusal: &Refusal) {
    put_envelope(out, id);
    out.extend_from_slice(b",\"error\":");
    let mut error = Object::begin(out);
    error.raw("code", &refusal.code().to_string());
    put_text(error.member("message"), &refusal.message());
    if let Some(held) = refusal.held() {
        let mut data = Object::begin(error.member("data"));
        put_list(data.member("held"), held, put_range);
        data.end();
    }
    error.end();
    out.push(b'}');
}

fn put_range(out: &mut Vec<u8>, range: &BlockRange) {
    out.extend_from_slice(format!("[{},{}]", range.first(), range.last()).as_bytes());
}
