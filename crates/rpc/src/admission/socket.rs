//! Who asks over a WebSocket: its key was sent once, and counts for as long as it is let in.
//!
//! Knows: that rules may have changed since.
//! Never knows: what is asked.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Caller, CallerHead, Denial, KeyHash, SharedAdmission};

/// The caller of a WebSocket.
#[derive(Debug)]
pub(crate) struct SocketCaller {
    secret: Option<KeyHash>,
    client: IpAddr,
    /// The rules that it was let in by; none if everybody was.
    generation: Option<u64>,
    caller: Option<Arc<Caller>>,
}

impl SocketCaller {
    /// Whoever a handshake names, on a connection of `peer`. It is not let in yet.
    pub(super) fn new(rules: &SharedAdmission, peer: IpAddr, head: &CallerHead<'_>) -> Self {
        let (secret, client) = (head.secret_hash(), rules.client_address(peer, head));
        Self { secret, client, generation: None, caller: None }
    }

    /// Lets it in once more, by the rules in force.
    pub(crate) fn admit(
        &mut self,
        rules: &SharedAdmission,
    ) -> Result<Option<&Arc<Caller>>, Denial> {
        let generation = rules.generation();
        if self.generation != generation {
            self.caller = match generation {
                Some(_) => rules.admit(self.secret, self.client)?,
                None => None,
            };
            self.generation = generation;
        }
        Ok(self.caller.as_ref())
    }
}
