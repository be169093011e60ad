//! Who asks on a connection: most requests of one are from the same caller, who is looked up once.

use std::net::IpAddr;
use std::sync::Arc;

use tracing::debug;

use super::{Caller, CallerHead, ClientId, Denial, KeyHash, SharedAdmission, SocketCaller};

/// The last caller of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionCaller {
    /// The other end of the connection, be it a client or a proxy.
    peer: IpAddr,
    /// Boxed: without rules nobody is remembered.
    last: Option<Box<LastCaller>>,
}

#[derive(Debug)]
struct LastCaller {
    /// The rules that it was let in by.
    generation: u64,
    /// The head that it was read from, where heads are numbered.
    head_number: Option<u64>,
    key: Option<KeyHash>,
    client: IpAddr,
    caller: Option<Arc<Caller>>,
}

impl ConnectionCaller {
    pub(crate) fn new(peer: IpAddr) -> Self {
        Self { peer, last: None }
    }

    /// The caller of the last request; none if everybody is let in.
    pub(crate) fn last(&self) -> Option<&Arc<Caller>> {
        self.last.as_ref()?.caller.as_ref()
    }

    /// The client of the last request.
    pub(crate) fn client(&self) -> ClientId {
        self.last().map_or_else(|| ClientId::at(self.peer), |caller| caller.id())
    }

    /// The caller of the last request, which was a handshake with this head.
    pub(crate) fn socket(&self, rules: &SharedAdmission, head: &CallerHead<'_>) -> SocketCaller {
        match &self.last {
            Some(last) => {
                let caller = last.caller.clone();
                SocketCaller::new(head, last.client, Some(last.generation), caller)
            }
            None => SocketCaller::new(head, rules.client_address(self.peer, head), None, None),
        }
    }

    /// Lets the caller in whose head has this number, as long as that is the head of the last request,
    /// and tells whether it is. Nothing is looked up for it.
    pub(crate) fn admit_again(&mut self, rules: &SharedAdmission, head_number: u64) -> bool {
        let Some(generation) = rules.generation() else {
            self.last = None;
            return true;
        };
        let is_same = |last: &LastCaller| {
            last.generation == generation && last.head_number == Some(head_number)
        };
        self.last.as_deref().is_some_and(is_same)
    }

    /// Lets in whoever the head of this number names, if it may ask. Whoever may not is told by
    /// `admit`, which counts that.
    pub(crate) fn admit_head(
        &mut self,
        rules: &SharedAdmission,
        head: &CallerHead<'_>,
        head_number: u64,
    ) -> bool {
        let is_admitted = self.find(rules, head).is_ok();
        if let Some(last) = &mut self.last {
            last.head_number = Some(head_number);
        }
        is_admitted
    }

    /// Lets in whoever a head names, or tells why not.
    pub(crate) fn admit(
        &mut self,
        rules: &SharedAdmission,
        head: &CallerHead<'_>,
    ) -> Result<Option<Arc<Caller>>, Denial> {
        self.find(rules, head).map_err(|denial| {
            let client = rules.client_address(self.peer, head);
            debug!(%client, ?denial, "not let in");
            rules.count_denied(denial, client)
        })?;
        Ok(self.last().cloned())
    }

    /// Looks a caller up, unless it is the last one.
    fn find(&mut self, rules: &SharedAdmission, head: &CallerHead<'_>) -> Result<(), Denial> {
        let Some(generation) = rules.generation() else {
            self.last = None;
            return Ok(());
        };
        let (key, client) = (head.key(), rules.client_address(self.peer, head));
        let is_same = |last: &LastCaller| {
            last.generation == generation && last.key == key && last.client == client
        };
        if self.last.as_deref().is_some_and(is_same) {
            return Ok(());
        }
        self.last = None;
        let caller = rules.admit(key, client)?;
        let last = LastCaller { generation, head_number: None, key, client, caller };
        self.last = Some(Box::new(last));
        Ok(())
    }
}
