//! What all stores hold: rows in order, and for each hash the ordinal of its row.

use alloy_rlp::Header;
use anyhow::{Context as _, Result, ensure};
use bench_store::figure::count;
use bench_store::keys::Key;
use bench_store::rows::plain_rows;
use store::read::block_on;
use store::{Reader, RowParts, View};
use zstd::bulk::{Compressor, Decompressor};

/// The level at which our pages are compressed. Rivals get a dictionary too, trained on their very
/// rows: the best one can do row by row.
pub(crate) const ZSTD_LEVEL: i32 = 3;
const DICTIONARY_BYTES: usize = 112 << 10;
/// Rows that the dictionary is trained on; the trainer asks for some hundred times its size.
const SAMPLES: usize = 20_000;
/// Below this a first byte is the type of a transaction, from there on the head of a list (EIP-2718).
const LEGACY_FIRST_BYTE_MIN: u8 = 0x80;

/// Rows and keys, all in memory: loading is timed without what it takes to get them.
#[derive(Debug)]
pub(crate) struct Contents {
    keys: Vec<Key>,
    bytes: Vec<u8>,
    /// Where each row ends in the bytes.
    ends: Vec<usize>,
    dictionary: Vec<u8>,
}

impl Contents {
    /// Reads all that a view holds, whose keys these are.
    pub(crate) fn read(view: &View, keys: Vec<Key>) -> Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let mut reader = Reader::new()?;
        for range in view.coverage() {
            for number in range.numbers() {
                let block = block_on(view.read_block(&mut reader, number, RowParts::Receipt))?;
                let block = block.with_context(|| format!("block {number} is not there"))?;
                for row in plain_rows(&block) {
                    bytes.extend_from_slice(&row);
                    ends.push(bytes.len());
                }
            }
        }
        ensure!(ends.len() == keys.len(), "{} rows for {} hashes", ends.len(), keys.len());
        let mut contents = Self { keys, bytes, ends, dictionary: Vec::new() };
        let stride = contents.keys.len().div_ceil(SAMPLES).max(1);
        let samples: Vec<&[u8]> = contents.rows().step_by(stride).collect();
        contents.dictionary = zstd::dict::from_samples(&samples, DICTIONARY_BYTES)
            .with_context(|| format!("a dictionary of {} rows", samples.len()))?;
        Ok(contents)
    }

    /// Keys in order: the ordinal of a row is the position of its key.
    #[must_use]
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Hashes with their ordinals, sorted: the order that is kindest to whoever stores them.
    #[must_use]
    pub(crate) fn sorted_hashes(&self) -> Vec<([u8; 32], u64)> {
        let mut hashes: Vec<([u8; 32], u64)> =
            (0..).zip(&self.keys).map(|(ordinal, key)| (key.hash.0, ordinal)).collect();
        hashes.sort_unstable();
        hashes
    }

    /// Every row in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| self.bytes.get(begin..*end).unwrap_or_default())
    }

    /// Bytes of all rows as they are.
    #[must_use]
    pub(crate) fn plain_bytes(&self) -> u64 {
        count(&self.bytes)
    }

    /// Compresses single rows.
    pub(crate) fn compressor(&self) -> Result<Compressor<'static>> {
        Ok(Compressor::with_dictionary(ZSTD_LEVEL, &self.dictionary)?)
    }

    /// Gives single rows back.
    pub(crate) fn decompressor(&self) -> Result<Decompressor<'static>> {
        Ok(Decompressor::with_dictionary(&self.dictionary)?)
    }

    /// Bytes that a reader of compressed rows needs beside them.
    #[must_use]
    pub(crate) fn dictionary_bytes(&self) -> u64 {
        count(&self.dictionary)
    }
}

/// The transaction at the front of a row, whose hash proves the row to be the one that was asked for.
pub(crate) fn transaction_of(row: &[u8]) -> Result<&[u8]> {
    let first = *row.first().context("an empty row")?;
    let type_bytes = usize::from(first < LEGACY_FIRST_BYTE_MIN);
    let mut rest = row.get(type_bytes..).unwrap_or_default();
    let fields = Header::decode(&mut rest).context("the transaction of a row")?;
    let head_bytes = row.len().saturating_sub(rest.len());
    let end = head_bytes.saturating_add(fields.payload_length);
    row.get(..end).with_context(|| format!("a row of {} ends in its transaction", row.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ends_where_its_list_ends() {
        for (row, expected) in [
            (&[0xc2, 1, 2, 9, 9][..], Some(3)),
            (&[0x02, 0xc2, 1, 2, 9, 9][..], Some(4)),
            (&[0x04, 0xc0][..], Some(2)),
            (&[0xc2, 1][..], None),
            (&[0x02][..], None),
            (&[][..], None),
        ] {
            assert_eq!(transaction_of(row).ok().map(<[u8]>::len), expected, "{row:?}");
        }
    }
}
