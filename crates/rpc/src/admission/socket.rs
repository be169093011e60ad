//! Who asks over a WebSocket: its key was sent once, and counts for as long as it is let in.
//!
//! Knows: that rules may have changed since, and that a token ends.
//! Never knows: what is asked.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::credentials::Secret;
use super::{Caller, CallerHead, Denial, SharedAdmission, TokenFault};

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
    /// Whoever was let in by its handshake, under rules of a number.
    pub(super) fn new(
        head: &CallerHead<'_>,
        client: IpAddr,
        generation: Option<u64>,
        caller: Option<Arc<Caller>>,
    ) -> Self {
        let secret = head.secret().map(|secret| KeptSecret(secret.text.into()));
        Self { secret, client, generation, caller }
    }

    /// Lets it in once more, by the rules in force. It is never refused for what it has asked.
    pub(crate) fn admit(
        &mut self,
        rules: &SharedAdmission,
    ) -> Result<Option<&Arc<Caller>>, Denial> {
        let generation = rules.generation();
        if self.generation != generation {
            let secret = self.secret.as_ref().map(|KeptSecret(text)| Secret::new(text));
            self.caller = match generation {
                Some(_) => rules.admit_again(secret, self.client)?,
                None => None,
            };
            self.generation = generation;
        }
        if self.caller.as_ref().is_some_and(|caller| caller.is_expired()) {
            return Err(Denial::BadToken(TokenFault::Expired));
        }
        Ok(self.caller.as_ref())
    }
}
