//! Answers about the server and its chain, and not about a block.

use alloy_primitives::keccak256;
use chain::{BlockNumber, BlockRange};

use super::{Answering, CallFailure, CallResult, Context};
use crate::health::Health;
use crate::json::{Object, put_data, put_quantity, put_text};
use crate::methods::namespaces;
use crate::refusal::Refusal;

/// Name and version, as `web3_clientVersion` tells them.
pub(crate) const CLIENT_VERSION: &str = concat!("quipu/", env!("CARGO_PKG_VERSION"));

/// The version that go-ethereum gives every namespace.
const MODULE_VERSION: &str = "1.0";

#[expect(clippy::unused_async, reason = "the functions of all methods have one form")]
impl Context<'_> {
    pub(super) async fn chain_id(&self, on: &mut Answering<'_>) -> CallResult {
        put_quantity(on.out, self.known_chain_id()?);
        Ok(None)
    }

    pub(super) async fn net_version(&self, on: &mut Answering<'_>) -> CallResult {
        put_text(on.out, &self.known_chain_id()?.to_string());
        Ok(None)
    }

    /// As go-ethereum has it: whoever is answered has been listened to.
    pub(super) async fn net_listening(&self, on: &mut Answering<'_>) -> CallResult {
        on.out.extend_from_slice(b"true");
        Ok(None)
    }

    /// Blocks come from archives and nodes, and from no peer.
    pub(super) async fn net_peer_count(&self, on: &mut Answering<'_>) -> CallResult {
        put_quantity(on.out, 0);
        Ok(None)
    }

    fn known_chain_id(&self) -> Result<u64, CallFailure> {
        let known = self.view.network().chain_id.or(self.spec.chain_id());
        known.ok_or(CallFailure::Refused(Refusal::ChainIdUnknown))
    }

    pub(super) async fn block_number(&self, on: &mut Answering<'_>) -> CallResult {
        put_quantity(on.out, self.view.tip().unwrap_or_default().get());
        Ok(None)
    }

    pub(super) async fn client_version(&self, on: &mut Answering<'_>) -> CallResult {
        put_text(on.out, CLIENT_VERSION);
        Ok(None)
    }

    pub(super) async fn sha3(&self, on: &mut Answering<'_>, bytes: Vec<u8>) -> CallResult {
        put_data(on.out, keccak256(bytes).as_slice());
        Ok(None)
    }

    pub(super) async fn modules(&self, on: &mut Answering<'_>) -> CallResult {
        let mut object = Object::begin(on.out);
        for namespace in namespaces() {
            put_text(object.member(namespace), MODULE_VERSION);
        }
        object.end();
        Ok(None)
    }

    pub(super) async fn discover(&self, on: &mut Answering<'_>) -> CallResult {
        on.out.extend_from_slice(self.document);
        Ok(None)
    }

    /// A block is shown only when it is whole: only whoever is behind a tip has something to tell.
    pub(super) async fn syncing(&self, on: &mut Answering<'_>) -> CallResult {
        let current = self.view.tip().unwrap_or_default();
        let catching_up = self.health.and_then(Health::catching_up);
        let Some(way) = catching_up.filter(|way| way.highest > current.get()) else {
            on.out.extend_from_slice(b"false");
            return Ok(None);
        };
        let mut object = Object::begin(on.out);
        object.quantity("startingBlock", way.starting);
        object.quantity("currentBlock", current.get());
        object.quantity("highestBlock", way.highest);
        object.end();
        Ok(None)
    }

    pub(super) async fn capabilities(&self, on: &mut Answering<'_>) -> CallResult {
        let oldest = |ranges: &[BlockRange]| {
            let newest = ranges
                .last()
                .copied()
                .filter(|range| self.view.tip() == Some(BlockNumber(range.last())));
            newest.map(|range| range.first())
        };
        let mut object = Object::begin(on.out);
        let tip = self.view.tip();
        let hash = match tip {
            Some(number) => self.view.read_hash(on.reader, number).await?,
            None => None,
        };
        let mut head = Object::begin(object.member("head"));
        head.quantity("number", tip.unwrap_or_default().get());
        head.data("hash", hash.unwrap_or_default().as_slice());
        head.end();
        let blocks = oldest(self.view.coverage());
        let receipts = oldest(self.view.coverage_receipts());
        let logs = oldest(&self.view.coverage_logs());
        for (name, oldest) in [
            ("state", None),
            ("tx", blocks),
            ("logs", logs),
            ("receipts", receipts),
            ("blocks", blocks),
            ("stateproofs", None),
        ] {
            let mut part = Object::begin(object.member(name));
            part.raw("disabled", if oldest.is_some() { "false" } else { "true" });
            if let Some(oldest) = oldest {
                part.quantity("oldestBlock", oldest);
            }
            part.end();
        }
        object.end();
        Ok(None)
    }
}
