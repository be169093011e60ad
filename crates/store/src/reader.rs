//! What one read needs at hand: kept from read to read, because it is dearer to make than to use.

use segment::{Inflater, PageFault, RowsRoom};

/// Buffers and a decompressor for one read at a time.
#[derive(Debug)]
pub struct Reader {
    pub(crate) inflater: Inflater,
    pub(crate) page: Vec<u8>,
    pub(crate) rows: RowsRoom,
    /// Long bytes of a row.
    pub(crate) payloads: Vec<u8>,
    pub(crate) bucket: Vec<u8>,
}

impl Reader {
    /// One for as many reads as you like, one after the other.
    pub fn new() -> Result<Self, PageFault> {
        let inflater = Inflater::new()?;
        let [page, payloads, bucket] = [const { Vec::new() }; 3];
        Ok(Self { inflater, page, rows: RowsRoom::default(), payloads, bucket })
    }

    /// Bytes of its buffers, which are as long as the longest that was read.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        [&self.page, &self.payloads, &self.bucket].iter().map(|buffer| buffer.capacity()).sum()
    }
}
