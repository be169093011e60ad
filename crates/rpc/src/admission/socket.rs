//! The caller of a WebSocket: its key was sent once, and counts as long as it is admitted.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Caller, CallerHead, ClientId, Denial, KeyHash, SharedAdmission};

/// The caller of a WebSocket.
#[derive(Debug)]
pub(crate) struct SocketCaller {
    key: Option<KeyHash>,
    client: IpAddr,
    /// The rules that admitted it; none if every client was admitted.
    generation: Option<u64>,
    caller: Option<Arc<Caller>>,
}

impl SocketCaller {
    /// A caller that its handshake admitted, under the rules of this generation.
    pub(super) fn new(
        head: &CallerHead<'_>,
        client: IpAddr,
        generation: Option<u64>,
        caller: Option<Arc<Caller>>,
    ) -> Self {
        Self { key: head.key(), client, generation, caller }
    }

    /// The client, as it was admitted last.
    pub(crate) fn client(&self) -> ClientId {
        self.caller.as_ref().map_or_else(|| ClientId::at(self.client), |caller| caller.id())
    }

    /// Admits it again, by the rules in force. A rate refuses its calls, and never the connection.
    pub(crate) fn admit(
        &mut self,
        rules: &SharedAdmission,
    ) -> Result<Option<&Arc<Caller>>, Denial> {
        let generation = rules.generation();
        if self.generation != generation {
            self.caller = match generation {
                Some(_) => rules.admit(self.key, self.client)?,
                None => None,
            };
            self.generation = generation;
        }
        Ok(self.caller.as_ref())
    }
}
