//! The connections to one node, and on which of them it said which chain it follows.
//!
//! Knows: our ends of the connections that carried an answer, and what was said on each.
//! Never knows: how connections are made, or which chain is ours; whoever asked compares.
//!
//! Behind one name there may be several nodes: what is said on one connection says nothing of another.
//! Nobody can choose the connection that a question goes over, so all that are there are asked together,
//! each of which is then busy with one question.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::answers::NodeCall;
use super::identity::Identity;

/// A connection that nobody uses is closed after so long.
pub(super) const IDLE_MAX: Duration = Duration::from_mins(1);
/// Connections that are remembered; so many are never open at a time.
const CONNECTIONS_MAX: usize = 1024;
/// How often those are asked for that did not say it. One that was closed cannot say it any more.
const ROUNDS_MAX: u32 = 2;
/// Connections that are asked at once.
const ASKED_MAX: usize = 16;

/// The connections to a node.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<BTreeMap<SocketAddr, ConnectionAnswers>>);

/// What was said on a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionAnswers {
    has_chain_id: bool,
    has_genesis: bool,
    /// When it last carried an answer.
    used_at: Instant,
}

/// What tells one chain from another, as many times as it was told.
#[derive(Clone, Debug)]
pub(super) struct ToldIdentities {
    pub(super) identities: Vec<Identity>,
    /// Whether it was told on every connection.
    pub(super) is_complete: bool,
}

impl ConnectionAnswers {
    fn is_complete(self) -> bool {
        self.has_chain_id && self.has_genesis
    }
}

/// What is asked to know a node's chain: its chain id, and block 0.
pub(super) fn identity_calls() -> [NodeCall; 2] {
    [NodeCall::new("eth_chainId", "[]"), NodeCall::new("eth_getBlockByNumber", "[\"0x0\",false]")]
}

impl Connections {
    /// A connection carried an answer.
    pub(super) fn note(&self, connection: SocketAddr) {
        let (mut known, used_at) = (self.lock(), Instant::now());
        // One that nobody used for so long is closed, and its address may be another's.
        known.retain(|_, said| used_at.duration_since(said.used_at) < IDLE_MAX);
        if known.len() >= CONNECTIONS_MAX && !known.contains_key(&connection) {
            known.clear();
        }
        let unsaid = ConnectionAnswers { has_chain_id: false, has_genesis: false, used_at };
        known.entry(connection).or_insert(unsaid).used_at = used_at;
    }

    /// These were answered on a connection.
    pub(super) fn answered(&self, connection: SocketAddr, calls: &[NodeCall]) {
        let [chain_id, genesis] = identity_calls();
        let mut known = self.lock();
        if let Some(said) = known.get_mut(&connection) {
            said.has_chain_id |= calls.contains(&chain_id);
            said.has_genesis |= calls.contains(&genesis);
        }
    }

    /// Whether the node said on this connection which chain it follows.
    pub(super) fn has_said(&self, connection: SocketAddr) -> bool {
        self.lock().get(&connection).is_some_and(|said| said.is_complete())
    }

    /// How many carried answers, and nobody said which chain is at their other ends.
    pub(super) fn unsaid_count(&self) -> usize {
        self.lock().values().filter(|said| !said.is_complete()).count()
    }

    /// Whoever is at the other ends may have been exchanged.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// Lets `ask` ask which chain the node follows: once, and if there are connections that carried an
    /// answer and did not say it, on those, as far as they can be asked.
    pub(super) async fn identify<E, F>(&self, ask: impl Fn() -> F) -> Result<ToldIdentities, E>
    where
        F: Future<Output = Result<Identity, E>>,
    {
        let mut identities = vec![ask().await?];
        for _ in 0..ROUNDS_MAX {
            if self.unsaid_count() == 0 {
                break;
            }
            // All of them: alone, the one that was asked last would be asked again.
            let count = self.lock().len().min(ASKED_MAX);
            for identity in join_all((0..count).map(|_| ask())).await {
                identities.push(identity?);
            }
        }
        let is_complete = self.unsaid_count() == 0;
        // They are closed, or busy: those that answer later are met again.
        self.lock().retain(|_, said| said.is_complete());
        Ok(ToldIdentities { identities, is_complete })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, ConnectionAnswers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Which chain a node follows, asked over these connections one after the other while three others
    /// carried answers: whether all of those said it, how often it was asked, and whether the third did.
    async fn identify_over(ports: &[u16]) -> (bool, usize, bool) {
        let connections = Connections::default();
        for port in 1..=3 {
            connections.note(at(port));
        }
        let asked = Cell::new(0);
        let ask = || async {
            let connection = at(ports[asked.replace(asked.get() + 1)]);
            connections.note(connection);
            connections.answered(connection, &identity_calls());
            Ok::<_, Infallible>(Identity { chain_id: 7, genesis_hash: None })
        };
        let told = connections.identify(ask).await.unwrap();
        assert_eq!(told.identities.len(), asked.get());
        assert_eq!(connections.unsaid_count(), 0);
        (told.is_complete, asked.get(), connections.has_said(at(3)))
    }

    /// Seen: which chain a node follows was asked on one connection and believed of another.
    #[tokio::test]
    async fn every_connection_is_asked_and_one_that_cannot_be_is_told() {
        assert_eq!(identify_over(&[1, 1, 2, 3]).await, (true, 4, true));
        assert_eq!(identify_over(&[2, 2, 2, 1, 1, 2, 3]).await, (true, 7, true));
        // The third is closed: others are asked in its place, and not for ever.
        assert_eq!(identify_over(&[1, 1, 2, 8, 1, 2, 8, 9]).await, (false, 8, false));
    }

    #[test]
    fn a_connection_says_its_chain_by_chain_id_and_genesis_both() {
        let connections = Connections::default();
        let [chain_id, genesis] = identity_calls();
        connections.answered(at(1), std::slice::from_ref(&chain_id));
        assert_eq!(connections.unsaid_count(), 0, "it carried no answer");
        connections.note(at(1));
        connections.answered(at(1), &[chain_id]);
        assert!(!connections.has_said(at(1)) && connections.unsaid_count() == 1);
        connections.answered(at(1), &[genesis]);
        assert!(connections.has_said(at(1)) && connections.unsaid_count() == 0);
        connections.note(at(1));
        assert!(connections.has_said(at(1)));
        connections.forget();
        assert!(!connections.has_said(at(1)));
    }
}
