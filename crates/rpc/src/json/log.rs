//! Logs as JSON, in receipts and alone.

use alloy_primitives::keccak256;
use hyper::body::Bytes;
use store::{LogQuery, LogView, LoggedRows, ReceiptView, TxIndex};

use super::transaction::TransactionLocation;
use super::{Object, put_data, put_list};

/// Appends a log of a mined transaction, given its position among all logs of the block. One whose
/// block a reorg took away is removed.
pub(crate) fn put_log(
    out: &mut Vec<u8>,
    log: LogView<'_>,
    place: TransactionLocation<'_>,
    index: u64,
    is_removed: bool,
) {
    let mut object = Object::begin(out);
    object.data("address", log.address.as_slice());
    put_list(object.member("topics"), log.topics, |out, topic| put_data(out, topic));
    object.data("data", log.data);
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number.get());
    object.quantity("blockTimestamp", place.block.timestamp);
    object.data("transactionHash", place.hash.as_slice());
    object.quantity("transactionIndex", place.index.get());
    object.quantity("logIndex", index);
    object.raw("removed", if is_removed { "true" } else { "false" });
    object.end();
}

/// Appends those of some transactions' logs that are asked for, each after what `begin` appends.
pub(crate) fn put_matching_logs(
    out: &mut Vec<u8>,
    query: &LogQuery,
    piece: &LoggedRows,
    mut begin: impl FnMut(&mut Vec<u8>),
) {
    let mut log_index = piece.logs_before;
    for (row, index) in piece.rows.iter().zip(piece.first.get()..) {
        let mut hash = None;
        for log in row.receipt.iter().flat_map(ReceiptView::logs) {
            if query.matches(&log) {
                // Only transactions with such logs are hashed.
                let hash = *hash.get_or_insert_with(|| keccak256(row.encoded));
                let place =
                    TransactionLocation { block: &piece.block, index: TxIndex(index), hash };
                begin(out);
                put_log(out, log, place, log_index, false);
            }
            log_index = log_index.saturating_add(1);
        }
    }
}

/// Logs as JSON, one behind the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedLogs {
    bytes: Vec<u8>,
    begins: Vec<usize>,
}

impl EncodedLogs {
    /// Adds those of some transactions' logs that are asked for.
    pub(crate) fn push(&mut self, query: &LogQuery, piece: &LoggedRows) {
        let Self { bytes, begins } = self;
        put_matching_logs(bytes, query, piece, |out| begins.push(out.len()));
    }

    /// Each of them, in order.
    pub(crate) fn into_items(self) -> Vec<Bytes> {
        let ends = self.begins.iter().skip(1).copied().chain([self.bytes.len()]);
        let ends: Vec<usize> = ends.collect();
        let bytes = Bytes::from(self.bytes);
        self.begins.into_iter().zip(ends).map(|(begin, end)| bytes.slice(begin..end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, B256};
    use chain::BlockNumber;
    use serde_json::{Value, json};
    use store::BlockFacts;

    #[test]
    fn a_log_has_all_members_whether_it_is_removed_or_not() {
        let block = BlockFacts {
            number: BlockNumber(0x10),
            hash: B256::repeat_byte(1),
            timestamp: 0x6955_b90c,
            base_fee: None,
            excess_blob_gas: None,
        };
        let place =
            TransactionLocation { block: &block, index: TxIndex(2), hash: B256::repeat_byte(3) };
        let shown = |topics: &[[u8; 32]], data: &[u8], is_removed| {
            let mut out = Vec::new();
            let log = LogView { address: Address::repeat_byte(4), topics, data };
            put_log(&mut out, log, place, 0x1f, is_removed);
            serde_json::from_slice::<Value>(&out).unwrap()
        };
        let expected = json!({
            "address": format!("0x{}", "04".repeat(20)),
            "topics": [format!("0x{}", "05".repeat(32)), format!("0x{}", "06".repeat(32))],
            "data": "0x0007",
            "blockHash": format!("0x{}", "01".repeat(32)),
            "blockNumber": "0x10",
            "blockTimestamp": "0x6955b90c",
            "transactionHash": format!("0x{}", "03".repeat(32)),
            "transactionIndex": "0x2",
            "logIndex": "0x1f",
            "removed": false,
        });
        assert_eq!(shown(&[[5; 32], [6; 32]], &[0, 7], false), expected);
        let removed = shown(&[], &[], true);
        assert_eq!(removed["removed"], true);
        assert_eq!((&removed["topics"], &removed["data"]), (&json!([]), &json!("0x")));
        assert_eq!(removed.as_object().unwrap().len(), expected.as_object().unwrap().len());
    }
}
