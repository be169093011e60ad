//! New heads for subscribers: what leads one from what it has seen to the tip, and its notifications.
//!
//! Knows: their form, and that a head is written once for all subscribers.
//! Never knows: sockets, or when a subscriber is sent something.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use chain::BlockNumber;
use hyper::body::Bytes;
use store::{Reader, StoredHeader};
use tracing::{debug, error};

use super::{CallFailure, Service, give_reader, take_reader};
use crate::heads::{HEADS_MAX, HeadCursor};
use crate::json::block::put_header;
use crate::json::{NotABlock, Object, put_text};

/// What a notification has around its head, and room to spare.
const AROUND_BYTES: usize = 128;

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
        if u64::try_from(list.len()).is_ok_and(|count| count >= HEADS_MAX) {
            list.pop_front();
        }
        list.push_back((header.hash, head.clone()));
        Ok(head)
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<(B256, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notification of a head for one subscriber.
pub(crate) fn head_notification(id: &str, head: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len().saturating_add(AROUND_BYTES));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":");
    let mut params = Object::begin(&mut out);
    put_text(params.member("subscription"), id);
    params.member("result").extend_from_slice(head);
    params.end();
    out.push(b'}');
    out
}

impl Service {
    /// The heads that lead a subscriber from what it has seen to the newest view, as JSON and as many
    /// as are sent at once; and whether there are more.
    pub(crate) async fn new_heads(
        &self,
        seen: &mut HeadCursor,
    ) -> Result<(Vec<Bytes>, bool), HeadsFailed> {
        let mut reader = take_reader().map_err(|failure| heads_failed(&failure))?;
        let told = self.read_heads(&mut reader, seen).await;
        give_reader(reader);
        match told {
            Ok(told) => Ok(told),
            // The newer view is announced as every other is.
            Err(failure) if self.passes_over(&failure) => Ok((Vec::new(), true)),
            Err(failure) => Err(heads_failed(&failure)),
        }
    }

    async fn read_heads(
        &self,
        reader: &mut Reader,
        seen: &mut HeadCursor,
    ) -> Result<(Vec<Bytes>, bool), CallFailure> {
        let view = self.store.view();
        let Some(due) = seen.due(reader, &view).await? else {
            *seen = HeadCursor::all_of(view);
            return Ok((Vec::new(), false));
        };
        let last = *due.numbers.end();
        let mut heads = Vec::new();
        for number in due.numbers {
            let header = view
                .read_header(reader, BlockNumber(number))
                .await?
                .ok_or(CallFailure::NotABlock)?;
            heads.push(self.encoded_heads.find_or_encode(&header)?);
        }
        *seen = HeadCursor::up_to(view, BlockNumber(last));
        Ok((heads, !due.is_all))
    }
}

/// New heads cannot be read; the log says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadsFailed;

fn heads_failed(failure: &CallFailure) -> HeadsFailed {
    if matches!(failure, CallFailure::Store(error) if error.is_of_file()) {
        // The store has noted the file: that is told once.
        debug!(?failure, "cannot read new heads");
    } else {
        error!(?failure, "cannot read new heads");
    }
    HeadsFailed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_consensus::Header;
    use chain::trust::Anchors;
    use chain::{Block, Body, Candidate, ChainSpec, Start, Verified, Verifier};
    use store::disk::faulty::FaultyDisk;
    use store::head::HeadLimits;
    use store::read::Inline;
    use store::{Limits, Store, Writer};

    use super::*;
    use crate::ServiceSettings;

    fn spec() -> ChainSpec {
        ChainSpec::bare("live", Some(7), None)
    }

    fn block(number: u64, parent_hash: B256) -> Verified<Block> {
        let header = Header { number, parent_hash, ..Header::default() };
        let ommers = alloy_primitives::Bytes::from_static(&[0xc0]);
        let candidate = Candidate {
            header: alloy_rlp::encode(&header).into(),
            body: Body { transactions: vec![], ommers, withdrawals: None },
            receipts: Some(vec![]),
            total_difficulty: None,
        };
        Verifier::new(&spec(), &Anchors::none(), Start::At(number)).verify(candidate).unwrap()
    }

    /// A head was read and written anew for each of them.
    #[tokio::test]
    async fn a_head_is_written_once_for_all_subscribers() {
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
        let mut writer = Writer::open(Arc::clone(&store), spec()).unwrap();
        writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        let mut parent = B256::repeat_byte(0xba);
        let mut extend = |number: u64| {
            let block = block(number, parent);
            parent = block.hash;
            writer.extend(vec![block]).unwrap();
        };
        extend(1000);
        let service = Service::new(Arc::clone(&store), spec(), ServiceSettings::default());
        let mut subscribers = vec![HeadCursor::all_of(store.view()); 3];
        // More events than heads are kept for.
        for number in 1001..1001 + 2 * HEADS_MAX {
            extend(number);
            let mut told = Vec::new();
            for seen in &mut subscribers {
                let (heads, has_more) = service.new_heads(seen).await.unwrap();
                assert!(heads.len() == 1 && !has_more, "{number}: {} heads", heads.len());
                told.extend(heads);
            }
            let text = String::from_utf8(told[0].to_vec()).unwrap();
            assert!(text.contains(&format!(r#""number":"{number:#x}""#)), "{text}");
            // The same memory, not only the same letters.
            assert!(told.iter().all(|head| head.as_ptr() == told[0].as_ptr()), "{told:?}");
        }
        let kept = service.encoded_heads.list().len();
        assert_eq!(u64::try_from(kept).unwrap(), HEADS_MAX);
    }

    #[test]
    fn a_notification_names_its_subscription() {
        let expected = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x7","result":{"number":"0x1"}}}"#;
        let notification = head_notification("0x7", br#"{"number":"0x1"}"#);
        assert_eq!(String::from_utf8(notification).unwrap(), expected);
    }
}
