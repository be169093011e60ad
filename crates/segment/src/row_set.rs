//! Rows that were read: their bytes in one buffer, their logs in another, however many rows.

use std::ops::Range;

use alloy_consensus::{Eip658Value, TxType};
use alloy_primitives::{Address, B256, Bloom, Bytes, Log, LogData};

/// Most transactions are shorter.
const ROW_BYTES_USUAL: usize = 1024;

/// Several rows: those of a block.
#[derive(Clone, Debug, Default)]
pub struct RowSet {
    buffers: RowBuffers,
    rows: Vec<RowEntry>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    buffers: RowBuffers,
    row: RowEntry,
}

/// What rows lie in.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBuffers {
    /// Encoded transactions, topics and log data, and the addresses of senders and logs.
    pub(crate) bytes: Vec<u8>,
    pub(crate) logs: Vec<LogEntry>,
}

/// Where a row goes that is read. It is not handed back instead: copied from result to result, an
/// entry took 2 % of a block's time.
#[derive(Debug)]
pub(crate) struct RowSlot<'r> {
    /// The row is added at their ends,
    pub(crate) buffers: &'r mut RowBuffers,
    /// and this is told where it lies.
    pub(crate) entry: &'r mut RowEntry,
}

/// Where a row lies.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowEntry {
    pub(crate) encoded: Range<usize>,
    /// Where the address is.
    pub(crate) sender: usize,
    pub(crate) receipt: Option<ReceiptEntry>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiptEntry {
    pub(crate) outcome: Eip658Value,
    pub(crate) gas_used: u64,
    pub(crate) logs: Range<usize>,
}

/// Where a log lies.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) address: usize,
    pub(crate) topics: Range<usize>,
    pub(crate) data: Range<usize>,
}

/// A transaction, its sender and its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowView<'a> {
    /// The transaction in its EIP-2718 form.
    pub encoded: &'a [u8],
    /// Who sent it.
    pub sender: Address,
    /// Its receipt; `None` where the segment holds none, or none was wanted.
    pub receipt: Option<ReceiptView<'a>>,
}

/// A receipt as far as one row tells it.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptView<'a> {
    /// Post-state root before Byzantium, success or failure from there on.
    pub outcome: Eip658Value,
    /// Gas that this transaction used, instead of the block's running sum.
    pub gas_used: u64,
    logs: &'a [LogEntry],
    bytes: &'a [u8],
}

/// What a transaction logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogView<'a> {
    /// Who logged it.
    pub address: Address,
    /// What it can be found by.
    pub topics: &'a [[u8; 32]],
    /// The rest.
    pub data: &'a [u8],
}

impl RowSet {
    /// Room for so many rows, and for so many bytes of theirs.
    pub(crate) fn with_capacity(row_count: usize, byte_count: usize) -> Self {
        let buffers = RowBuffers { bytes: Vec::with_capacity(byte_count), logs: Vec::new() };
        Self { buffers, rows: Vec::with_capacity(row_count) }
    }

    /// Makes room for one more row. A set whose rows could not all be read is of no use.
    pub(crate) fn add(&mut self) -> RowSlot<'_> {
        let entry = self.rows.push_mut(RowEntry::default());
        RowSlot { buffers: &mut self.buffers, entry }
    }

    /// Adds a row of a block that is not in any segment.
    pub fn push(&mut self, row: &Row) {
        let (logs, bytes) = (self.buffers.logs.len(), self.buffers.bytes.len());
        self.buffers.bytes.extend_from_slice(&row.buffers.bytes);
        let moved = row.buffers.logs.iter().map(|log| LogEntry {
            address: log.address.saturating_add(bytes),
            topics: shifted(&log.topics, bytes),
            data: shifted(&log.data, bytes),
        });
        self.buffers.logs.extend(moved);
        let RowEntry { encoded, sender, receipt } = row.row.clone();
        let receipt =
            receipt.map(|receipt| ReceiptEntry { logs: shifted(&receipt.logs, logs), ..receipt });
        let (encoded, sender) = (shifted(&encoded, bytes), sender.saturating_add(bytes));
        self.rows.push(RowEntry { encoded, sender, receipt });
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One of the rows.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<RowView<'_>> {
        self.rows.get(index).map(|row| self.buffers.view(row))
    }

    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> RowIter<'_> {
        RowIter { buffers: &self.buffers, rows: self.rows.iter() }
    }

    /// The hashes of the transactions, in order.
    #[must_use]
    pub fn hashes(&self) -> Vec<B256> {
        let encodings: Vec<&[u8]> = self.iter().map(|row| row.encoded).collect();
        chain::keccak256_each(&encodings)
    }

    /// The blooms of the receipts, in order; none for rows without one.
    #[must_use]
    pub fn blooms(&self) -> Vec<Bloom> {
        let receipts: Vec<_> = self.iter().filter_map(|row| row.receipt).collect();
        chain::bloom_each(receipts.iter().map(ReceiptView::bloom_items))
    }
}

/// The address that was put there.
fn address_at(bytes: &[u8], place: usize) -> &[u8; 20] {
    bytes.get(place..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; 20])
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start.saturating_add(by)..range.end.saturating_add(by)
}

impl<'a> IntoIterator for &'a RowSet {
    type Item = RowView<'a>;
    type IntoIter = RowIter<'a>;

    fn into_iter(self) -> RowIter<'a> {
        self.iter()
    }
}

/// The rows of a set in order.
#[derive(Clone, Debug)]
pub struct RowIter<'a> {
    buffers: &'a RowBuffers,
    rows: std::slice::Iter<'a, RowEntry>,
}

impl<'a> Iterator for RowIter<'a> {
    type Item = RowView<'a>;

    fn next(&mut self) -> Option<RowView<'a>> {
        self.rows.next().map(|row| self.buffers.view(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for RowIter<'_> {}

impl PartialEq for RowSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RowSet {}

impl Row {
    /// A row, which `read` puts where it is told.
    pub(crate) fn read<E>(read: impl FnOnce(RowSlot<'_>) -> Result<(), E>) -> Result<Self, E> {
        let mut buffers =
            RowBuffers { bytes: Vec::with_capacity(ROW_BYTES_USUAL), logs: Vec::new() };
        let mut row = RowEntry::default();
        read(RowSlot { buffers: &mut buffers, entry: &mut row })?;
        Ok(Self { buffers, row })
    }

    /// A row of a block that is not in any segment.
    #[must_use]
    pub fn new(
        encoded: &[u8],
        sender: Address,
        receipt: Option<(Eip658Value, u64, &[Log])>,
    ) -> Self {
        let bytes = [encoded, sender.as_slice()].concat();
        let (mut buffers, sender) = (RowBuffers { bytes, logs: Vec::new() }, encoded.len());
        let receipt = receipt.map(|(outcome, gas_used, logs)| {
            for log in logs {
                buffers.put_log(log);
            }
            ReceiptEntry { outcome, gas_used, logs: 0..logs.len() }
        });
        Self { buffers, row: RowEntry { encoded: 0..encoded.len(), sender, receipt } }
    }

    /// What is in it.
    #[must_use]
    pub fn view(&self) -> RowView<'_> {
        self.buffers.view(&self.row)
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for Row {}

impl RowBuffers {
    fn view<'a>(&'a self, row: &'a RowEntry) -> RowView<'a> {
        let receipt = row.receipt.as_ref().map(|receipt| ReceiptView {
            outcome: receipt.outcome,
            gas_used: receipt.gas_used,
            logs: self.logs.get(receipt.logs.clone()).unwrap_or_default(),
            bytes: &self.bytes,
        });
        let encoded = self.bytes.get(row.encoded.clone()).unwrap_or_default();
        RowView { encoded, sender: address_at(&self.bytes, row.sender).into(), receipt }
    }

    fn put_log(&mut self, log: &Log) {
        let address = self.bytes.len();
        self.bytes.extend_from_slice(log.address.as_slice());
        let begin = self.bytes.len();
        for topic in log.data.topics() {
            self.bytes.extend_from_slice(topic.as_slice());
        }
        let topics_end = self.bytes.len();
        self.bytes.extend_from_slice(&log.data.data);
        let (topics, data) = (begin..topics_end, topics_end..self.bytes.len());
        self.logs.push(LogEntry { address, topics, data });
    }
}

impl RowView<'_> {
    /// The transaction's type; `None` for bytes that are no transaction.
    #[must_use]
    pub fn tx_type(&self) -> Option<TxType> {
        // A legacy transaction is a list, and a list begins above any type.
        match *self.encoded.first()? {
            first if first >= 0xc0 => Some(TxType::Legacy),
            first => TxType::try_from(first).ok(),
        }
    }
}

impl<'a> ReceiptView<'a> {
    /// How many logs there are.
    #[must_use]
    pub fn log_count(&self) -> usize {
        self.logs.len()
    }

    /// What the transaction logged.
    #[must_use]
    pub fn logs(&self) -> impl ExactSizeIterator<Item = LogView<'a>> + use<'a> {
        let bytes = self.bytes;
        self.logs.iter().map(move |log| LogView {
            address: address_at(bytes, log.address).into(),
            topics: bytes.get(log.topics.clone()).unwrap_or_default().as_chunks().0,
            data: bytes.get(log.data.clone()).unwrap_or_default(),
        })
    }

    /// The bloom of the logs.
    #[must_use]
    pub fn bloom(&self) -> Bloom {
        chain::bloom_of(self.bloom_items())
    }

    /// What the bloom is of: every log's address and topics.
    fn bloom_items(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.logs.iter().flat_map(move |log| {
            let topics = bytes.get(log.topics.clone()).unwrap_or_default().as_chunks::<32>().0;
            let address = address_at(bytes, log.address).as_slice();
            std::iter::once(address).chain(topics.iter().map(<[u8; 32]>::as_slice))
        })
    }

    /// The receipt's consensus fields, given the gas used in the block before it.
    #[must_use]
    pub fn to_fields(&self, gas_before: u64) -> alloy_consensus::Receipt {
        // It wraps as the writer's difference did, so that any sum comes back.
        let cumulative_gas_used = gas_before.wrapping_add(self.gas_used);
        let logs = self.logs().map(|log| {
            let topics = log.topics.iter().map(B256::from).collect();
            let data = LogData::new_unchecked(topics, Bytes::copy_from_slice(log.data));
            Log { address: log.address, data }
        });
        let logs = logs.collect();
        alloy_consensus::Receipt { status: self.outcome, cumulative_gas_used, logs }
    }
}

impl PartialEq for ReceiptView<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.outcome, self.gas_used) == (other.outcome, other.gas_used)
            && self.logs().eq(other.logs())
    }
}

impl Eq for ReceiptView<'_> {}
