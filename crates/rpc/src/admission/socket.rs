//! Who asks over a WebSocket: its key was sent once, and counts for as long as it is let in.
//!
//! Knows: that rules may have changed since, and that a token ends.
//! Never knows: what is asked.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::credentials::Secret;
use super::{Caller, CallerHead, Denial, SharedAdmission};

/// The caller of a WebSocket.
#[derive(Debug)]
pub(crate) struct SocketCaller {
    secret: Option<KeptSecret>,
    client: IpAddr,
    /// The rules that it was let in by; none if everybody was.
    generation: Option<u64>,
    caller: Option<Arc<Caller>>,
}

/// A key or a token that is kept as it was sent, for rules that come later. It is not shown.
struct KeptSecret(Box<str>);

impl fmt::Debug for KeptSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptSecret(..)")
    }
}

impl SocketCaller {
    /// Whoever a handshake names, on a connection of `peer`. It is not let in yet.
    pub(super) fn new(rules: &SharedAdmission, peer: IpAddr, head: &CallerHead<'_>) -> Self {
        let secret = head.secret().map(|secret| KeptSecret(secret.text.into()));
        let client = rules.client_address(peer, head);
        Self { secret, client, generation: None, caller: None }
    }

    /// Lets it in once more, by the rules in force.
    pub(crate) fn admit(
        &mut self,
        rules: &SharedAdmission,
    ) -> Result<Option<&Arc<Caller>>, Denial> {
        let generation = rules.generation();
        let is_expired = self.caller.as_ref().is_some_and(|caller| caller.is_expired());
        if self.generation != generation || is_expired {
            let secret = self.secret.as_ref().map(|KeptSecret(text)| Secret::new(text));
            self.caller = match generation {
                Some(_) => rules.admit(secret, self.client)?,
                None => None,
            };
            self.generation = generation;
        }
        Ok(self.caller.as_ref())
    }
}
