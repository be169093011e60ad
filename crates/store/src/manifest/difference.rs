//! Where two entries of one segment differ.

use super::SegmentEntry;

/// One thing that two entries say differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryDifference {
    /// What it is.
    pub(crate) what: &'static str,
    /// By the first entry.
    pub(crate) found: String,
    /// By the other one.
    pub(crate) expected: String,
}

impl SegmentEntry {
    /// The first thing that another entry says differently.
    pub(crate) fn find_difference(&self, other: &Self) -> Option<EntryDifference> {
        let (own, others) = (self.facts(), other.facts());
        let mut pairs = own.into_iter().zip(others);
        let ((what, found), (_, expected)) = pairs.find(|(own, other)| own != other)?;
        Some(EntryDifference { what, found, expected })
    }

    fn facts(&self) -> [(&'static str, String); 10] {
        let Self { range, file_name, bytes, digest, has_receipts, .. } = self;
        let Self { parent_hash, last_hash, transaction_count, log_count, difficulty, .. } = self;
        [
            ("name", file_name.clone()),
            ("range of blocks", range.to_string()),
            ("length", format!("{bytes} bytes")),
            ("digest", digest.to_string()),
            ("kind", format!("{} receipts", if *has_receipts { "with" } else { "without" })),
            ("parent hash of the first block", parent_hash.to_string()),
            ("hash of the last block", last_hash.to_string()),
            ("number of transactions", transaction_count.to_string()),
            ("number of logs", log_count.to_string()),
            ("sum of difficulties", difficulty.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};
    use chain::BlockRange;

    use super::*;
    use crate::manifest::tests::segment;

    /// Seen: a manifest that lied about a number of transactions was refused with two equal texts.
    #[test]
    fn entries_that_differ_never_read_the_same() {
        let entry = segment(0, 255);
        let changes: [fn(&mut SegmentEntry); 10] = [
            |it| it.range = BlockRange::from_ends(0, 254).unwrap(),
            |it| it.file_name.push('x'),
            |it| it.bytes += 1,
            |it| it.digest = B256::repeat_byte(0xdd),
            |it| it.has_receipts = !it.has_receipts,
            |it| it.parent_hash = B256::repeat_byte(0xdd),
            |it| it.last_hash = B256::repeat_byte(0xdd),
            |it| it.transaction_count += 1,
            |it| it.log_count += 1,
            |it| it.difficulty += U256::from(1),
        ];
        assert_eq!(entry.find_difference(&entry), None);
        for (position, change) in changes.into_iter().enumerate() {
            let mut other = entry.clone();
            change(&mut other);
            let difference = entry.find_difference(&other);
            let difference = difference.unwrap_or_else(|| panic!("{position}: nothing differs"));
            assert_ne!(difference.found, difference.expected, "{position}: {difference:?}");
        }
    }
}
