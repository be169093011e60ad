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
    pub(crate) counts: ReadCounts,
}

/// What reads have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Times that a lookup run was asked for a hash, or for where a log's address or topic is.
    pub lookups: u64,
    /// Pages of segments, and long bytes of rows, that were read and checked.
    pub pages: u64,
}

impl ReadCounts {
    pub(crate) fn count_lookup(&mut self) {
        self.lookups = self.lookups.saturating_add(1);
    }

    pub(crate) fn count_page(&mut self) {
        self.pages = self.pages.saturating_add(1);
    }
}

impl Reader {
    /// One for as many reads as you like, one after the other.
    pub fn new() -> Result<Self, PageFault> {
        let inflater = Inflater::new()?;
        let [page, payloads, bucket] = [const { Vec::new() }; 3];
        let (rows, counts) = Default::default();
        Ok(Self { inflater, page, rows, payloads, bucket, counts })
    }

    /// What its reads took since this was last asked.
    pub fn take_counts(&mut self) -> ReadCounts {
        std::mem::take(&mut self.counts)
    }

    /// Bytes of its buffers, which are as long as the longest that was read.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        [&self.page, &self.payloads, &self.bucket].iter().map(|buffer| buffer.capacity()).sum()
    }
}
