//! How much of a file's end is fetched when it is opened.
//!
//! A reader of a file wants its footer first, which tells where the tail begins, then the tail: two
//! round trips that depend on each other. The first one brings so much that the second is not needed.
//! What is too much costs bytes, what is too little costs a round trip, and neither costs truth.

use std::ops::Range;

/// What files begin with, and how long their footers are.
const LOGS_BEGIN: &str = "lookup-logs-";
const RUN_BEGIN: &str = "lookup-";
const RUN_FOOTER_BYTES: u64 = 56;
const SEGMENT_FOOTER_BYTES: u64 = 184;

/// The hashes of 8192 blocks and full tables take 700 KB, which do not compress, what is said of the
/// blocks up to 100 KB and each page up to three bytes: 230 KB for 340 MB of pages of 4.5 KB.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// The eras with the most transactions have 1.3 GB.
const SEGMENT_BYTES: u64 = 640 << 10;
const SEGMENT_SHARE: u64 = 1024;
const SEGMENT_BYTES_MAX: u64 = 2 << 20;
/// The table of 4096 slots takes 16 KiB, whatever else is in a run.
const RUN_BYTES_MIN: u64 = 20 << 10;
/// A bucket has 1,300 bytes and a byte of the directory.
const RUN_SHARE: u64 = 1024;
/// The directory stops growing at 2^19 buckets: 640 KiB at 2 billion keys.
const RUN_BYTES_MAX: u64 = 704 << 10;
/// Lengths of buckets of postings take 12 bits, and some buckets have long lists to tell of.
const LOGS_SHARE: u64 = 512;
const LOGS_BYTES_MAX: u64 = 1536 << 10;
/// A segment that is no longer than this is fetched and kept as a whole.
const WHOLE_SEGMENT_BYTES_MAX: u64 = 128 << 10;

/// Where the parts of a file are that are read when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadAhead {
    file_bytes: u64,
    footer_bytes: u64,
    lead_bytes: u64,
    pub(crate) is_run: bool,
}

impl ReadAhead {
    pub(crate) fn of(file_name: &str, file_bytes: u64) -> Self {
        let of_share = |share: u64, max: u64| {
            file_bytes.checked_div(share).unwrap_or(0).saturating_add(RUN_BYTES_MIN).min(max)
        };
        let (is_run, footer_bytes, lead_bytes) = if file_name.starts_with(LOGS_BEGIN) {
            (true, RUN_FOOTER_BYTES, of_share(LOGS_SHARE, LOGS_BYTES_MAX))
        } else if file_name.starts_with(RUN_BEGIN) {
            (true, RUN_FOOTER_BYTES, of_share(RUN_SHARE, RUN_BYTES_MAX))
        } else {
            let share = file_bytes.checked_div(SEGMENT_SHARE).unwrap_or(0);
            let bytes = share.saturating_add(SEGMENT_BYTES);
            (false, SEGMENT_FOOTER_BYTES, bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX))
        };
        Self { file_bytes, footer_bytes, lead_bytes: lead_bytes.min(file_bytes), is_run }
    }

    /// What is fetched first.
    pub(crate) fn lead(&self) -> Range<u64> {
        self.file_bytes.saturating_sub(self.lead_bytes)..self.file_bytes
    }

    /// Where a range that is read begins the tail, if it is the tail.
    pub(crate) fn tail_start(&self, range: &Range<u64>) -> Option<u64> {
        let footer = self.file_bytes.saturating_sub(self.footer_bytes)..self.file_bytes;
        (range.end >= footer.start && *range != footer && !range.is_empty()).then_some(range.start)
    }

    /// Whether the whole file comes at once, and is kept as one range.
    pub(crate) fn is_whole(&self) -> bool {
        self.lead_bytes == self.file_bytes
            && (self.is_run || self.file_bytes <= WHOLE_SEGMENT_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use chain::BlockRange;
    use segment::index::{RunOpening, RunSpan};
    use store::RunSubject;
    use store::layout::HeldRange;
    use store::names::{run_name, segment_name};

    use super::*;

    fn run(subject: RunSubject) -> String {
        run_name(subject, RunSpan::new(0, 2048).unwrap(), B256::ZERO)
    }

    #[test]
    fn kinds_are_told_by_the_names_that_files_have() {
        let range = BlockRange::from_ends(0, 8191).unwrap();
        let segment = segment_name(HeldRange { range, has_receipts: true }, B256::ZERO);
        let footer = |name: &str| ReadAhead::of(name, 1 << 40).footer_bytes;
        assert_eq!(footer(&segment), u64::try_from(segment::FOOTER_BYTES).unwrap());
        for subject in RunSubject::ALL {
            let footer_range = RunOpening::new(1000).needed();
            assert_eq!(footer(&run(subject)), footer_range.end - footer_range.start);
        }
    }

    #[test]
    fn the_first_read_of_a_run_brings_the_whole_tail() {
        let name = run(RunSubject::Transactions);
        // Keys, slots, and bits of a size in the directory, as docs/format-index.md has them.
        for (keys, slots, size_bits) in [
            (3000_u64, 1_u64, 8_u64),
            (1_600_000, 1, 8),
            (1 << 27, 128, 8),
            (1_999_938_337, 2048, 10),
            (1 << 31, 2048, 10),
        ] {
            let buckets = keys.div_ceil(256).min(1 << 19);
            let tail = 4 * slots + (buckets * size_bits).div_ceil(8) + RUN_FOOTER_BYTES;
            let file_bytes = keys * 5136 / 1000 + tail;
            let lead = ReadAhead::of(&name, file_bytes).lead();
            let lead_bytes = lead.end - lead.start;
            assert!(lead_bytes >= tail, "{keys} keys: {lead_bytes} for a tail of {tail}");
            assert!(lead_bytes <= 2 * tail + RUN_BYTES_MIN, "{keys} keys: {lead_bytes} for {tail}");
        }
    }

    #[test]
    fn the_first_read_of_a_segment_brings_the_whole_tail() {
        // Hashes of blocks, and tables that are full.
        let incompressible = 8192 * 32 + 12_288 * 20 + 6144 * 32 + 255 * 4;
        for file_bytes in [20_000_000_u64, 340_000_000, 675_000_000, 1_300_000_000] {
            // Twelve bytes of each block, kind and size of each page, as if they did not compress.
            let tail = incompressible + 8192 * 12 + file_bytes / 4500 * 3 + SEGMENT_FOOTER_BYTES;
            let lead = ReadAhead::of("blocks-", file_bytes).lead();
            let lead_bytes = lead.end - lead.start;
            assert!(lead_bytes >= tail, "{file_bytes} bytes: {lead_bytes} for a tail of {tail}");
        }
    }

    #[test]
    fn opening_twelve_runs_and_a_segment_stays_within_the_budget() {
        let name = run(RunSubject::Transactions);
        let lead = |name: &str, bytes| {
            let lead = ReadAhead::of(name, bytes).lead();
            lead.end - lead.start
        };
        // 4095 slots of a million transactions each are twelve runs, and more than there will be.
        let runs: u64 = (0..12).map(|bit| lead(&name, (1_000_000 * 5136 / 1000) << bit)).sum();
        // The bucket of each, of which the largest have 20 KB.
        let all = runs + 12 * (20 << 10) + lead("blocks-", 1300 << 20) + (16 << 10);
        assert!(all < 7 << 20, "{all} bytes");
    }

    #[test]
    fn the_tail_is_told_from_the_footer_and_from_pages() {
        let ahead = ReadAhead::of("blocks-", 10_000_000);
        assert_eq!(ahead.lead(), 10_000_000 - (1 << 20)..10_000_000);
        assert_eq!(ahead.tail_start(&(9_999_816..10_000_000)), None);
        assert_eq!(ahead.tail_start(&(9_300_000..9_999_816)), Some(9_300_000));
        assert_eq!(ahead.tail_start(&(9_200_000..9_300_000)), None);
        assert!(!ahead.is_whole());
        assert!(ReadAhead::of("lookup-", 5000).is_whole());
        assert_eq!(ReadAhead::of("lookup-", 5000).lead(), 0..5000);
        assert!(!ReadAhead::of("blocks-", 500_000).is_whole());
        assert!(ReadAhead::of("blocks-", 100_000).is_whole());
    }
}
