//! Files of buckets and a tail that are made when they are read, however long they would be.

use std::fmt;
use std::ops::Range;

use crate::counted_store::ObjectBytes;

/// A file whose buckets lie one after the other, before its tail.
pub(crate) trait SizedFile: fmt::Debug + Send + Sync {
    fn bucket_count(&self) -> u64;

    /// Where a bucket begins; after the last one, the tail.
    fn offset(&self, bucket: u64) -> u64;

    fn bucket(&self, number: u64) -> Vec<u8>;

    fn tail(&self) -> &[u8];
}

impl<T: SizedFile> ObjectBytes for T {
    fn file_bytes(&self) -> u64 {
        self.offset(self.bucket_count()) + self.tail().len() as u64
    }

    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let first = first_after(range.start, self) - 1;
        let begin = self.offset(first);
        let mut bytes = Vec::new();
        for number in first..=self.bucket_count() {
            if begin + bytes.len() as u64 >= range.end {
                break;
            }
            if number < self.bucket_count() {
                bytes.extend(self.bucket(number));
                assert_eq!(begin + bytes.len() as u64, self.offset(number + 1), "bucket {number}");
            } else {
                bytes.extend(self.tail());
            }
        }
        bytes[(range.start - begin) as usize..(range.end - begin) as usize].to_vec()
    }
}

/// The first bucket that begins after a byte.
fn first_after(byte: u64, file: &impl SizedFile) -> u64 {
    let (mut low, mut high) = (1, file.bucket_count() + 1);
    while low < high {
        let middle = low.midpoint(high);
        if middle <= file.bucket_count() && file.offset(middle) <= byte {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
