//! New heads for subscribers: what leads one from what it has seen to the tip.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use chain::{BlockNumber, BlockRange};
use hyper::body::Bytes;
use store::{BlockId, Reader, StoredHeader};

use super::feed::FeedPortion;
use super::{CallFailure, Service};
use crate::heads::{BrokenLink, ChainChange, ChainCursor, PORTION_BLOCKS_MAX};
use crate::json::NotABlock;
use crate::json::block::put_header;
use crate::refusal::Refusal;

/// The newest heads as JSON. Nearly all subscribers are told of the same ones at the same time.
#[derive(Debug, Default)]
pub(super) struct EncodedHeads(Mutex<VecDeque<(B256, Bytes)>>);

impl EncodedHeads {
    /// A head as JSON, written now if it is not kept.
    fn find_or_encode(&self, header: &StoredHeader) -> Result<Bytes, NotABlock> {
        if let Some((_, head)) = self.list().iter().rev().find(|(hash, _)| *hash == header.hash) {
            return Ok(head.clone());
        }
        let mut out = Vec::new();
        put_header(&mut out, header)?;
        let head = Bytes::from(out);
        let mut list = self.list();
        // As many as a subscriber is told of at once.
        if u64::try_from(list.len()).is_ok_and(|count| count >= PORTION_BLOCKS_MAX) {
            list.pop_front();
        }
        list.push_back((header.hash, head.clone()));
        Ok(head)
    }

    pub(super) fn list(&self) -> MutexGuard<'_, VecDeque<(B256, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// The heads that lead a subscriber from what it has seen towards the newest view. Where the tip went
    /// down, it is told again; where nothing leads to it, as over a gap, it is told alone.
    pub(super) async fn read_heads(
        &self,
        reader: &mut Reader,
        seen: &mut ChainCursor,
    ) -> Result<FeedPortion, CallFailure> {
        let view = self.store.view();
        let tip = view.tip().map(BlockNumber::get);
        let tip_alone = tip.and_then(|tip| BlockRange::from_ends(tip, tip));
        let due = match seen.change_to(reader, &view).await? {
            ChainChange::Linked { .. } if seen.is_nothing() => tip_alone,
            ChainChange::Linked { removed, added: None } if removed.is_empty() => None,
            ChainChange::Linked { added: Some(added), .. } => {
                BlockRange::from_count(added.first(), added.count().min(PORTION_BLOCKS_MAX))
            }
            ChainChange::Linked { added: None, .. }
            | ChainChange::Unlinked(BrokenLink::AddedNotHeld) => tip_alone,
            // Whoever knows a branch that left cannot be told from where on it is wrong.
            ChainChange::Unlinked(link @ BrokenLink::RemovedUnknown) => {
                return Err(Refusal::from(link).into());
            }
        };
        let (mut portion, mut told) = (FeedPortion::default(), *seen);
        for number in due.iter().flat_map(BlockRange::numbers) {
            let header = view.read_header(reader, number).await?.ok_or(CallFailure::NotABlock)?;
            portion.items.push(self.encoded_heads.find_or_encode(&header)?);
            told = ChainCursor::up_to(BlockId { number, hash: header.hash });
        }
        // After a failure nothing of the portion is sent.
        *seen = told;
        portion.has_more = due.map(|due| due.last()) < tip && due.is_some();
        Ok(portion)
    }
}
