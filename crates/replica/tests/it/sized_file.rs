//! Files of buckets and a tail that are made when they are read, however long they would be.

use std::fmt;
use std::ops::Range;

use segment::index::RunSpan;

use crate::bit_writer::BitWriter;
use crate::counted_store::ObjectBytes;

/// A file whose buckets lie one after the other, before its tail.
pub(crate) trait SizedFile: fmt::Debug + Send + Sync {
    fn index_tail(&self) -> &IndexTail;

    fn bucket(&self, number: u64) -> Vec<u8>;
}

/// The tail of an index file, and where its buckets begin.
#[derive(Debug)]
pub(crate) struct IndexTail {
    /// After the last bucket, where the tail begins.
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

impl IndexTail {
    /// The tail of a file without long lists, whose keys have one value each. The slot table comes first;
    /// `sizes` are what the directory says of the buckets, `kind` is the width of a value and the code of the subject.
    pub(crate) fn new(
        slot_table: Vec<u8>,
        span: RunSpan,
        key_count: u64,
        lengths: &[u64],
        sizes: &[u64],
        kind: [u8; 2],
    ) -> Self {
        let min = sizes.iter().min().unwrap();
        let width = u64::BITS - (sizes.iter().max().unwrap() - min).leading_zeros();
        let mut directory = BitWriter::default();
        directory.push_all(sizes.iter().map(|size| size - min), width);
        let mut bytes = slot_table;
        bytes.extend(directory.into_bytes());
        for word in [span.first_slot(), key_count, key_count, *min, span.slot_count()] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.push(width as u8);
        bytes.extend(kind);
        bytes.push(1);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend(b"QuipuIdx");
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        Self { offsets: std::iter::once(0).chain(ends).collect(), bytes }
    }

    fn bucket_count(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }

    fn offset(&self, bucket: u64) -> u64 {
        self.offsets[bucket as usize]
    }
}

impl<T: SizedFile> ObjectBytes for T {
    fn file_bytes(&self) -> u64 {
        let tail = self.index_tail();
        tail.offset(tail.bucket_count()) + tail.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let tail = self.index_tail();
        let first = tail.offsets.partition_point(|offset| *offset <= range.start) as u64 - 1;
        let begin = tail.offset(first);
        let mut bytes = Vec::new();
        for number in first..=tail.bucket_count() {
            if begin + bytes.len() as u64 >= range.end {
                break;
            }
            if number < tail.bucket_count() {
                bytes.extend(self.bucket(number));
                assert_eq!(begin + bytes.len() as u64, tail.offset(number + 1), "bucket {number}");
            } else {
                bytes.extend(&tail.bytes);
            }
        }
        bytes[(range.start - begin) as usize..(range.end - begin) as usize].to_vec()
    }
}
