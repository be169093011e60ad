//! What the files of a data folder are called.

use alloy_primitives::{B256, hex};
use chain::BlockRange;
use segment::index::{RunSpan, RunSubject};

use crate::layout::{HeldRange, slot_of};

/// The genesis.json that a folder keeps.
pub const GENESIS_NAME: &str = "genesis.json";
/// The commit journal: a title, one name a line, and a checksum of the lines before it.
pub const JOURNAL_NAME: &str = "journal";

const SEGMENT_BEGIN: &str = "blocks-";
const SEGMENT_END: &str = ".segment";
const RUN_BEGIN: &str = "lookup-";
const RUN_END: &str = ".run";
const BARE: &str = "-bare";
const PART_END: &str = ".part";
const HEAD_BEGIN: &str = "head-";
/// The head's next log, while it is written.
pub(crate) const HEAD_STAGED: &str = "head.staged";
const LOG_END: &str = ".log";
const DAMAGED_END: &str = ".damaged";
/// Bytes of a digest that a name tells: enough that two contents do not meet by chance.
const DIGEST_BYTES: usize = 8;

/// A segment's file: first and last block, the beginning of its digest, and whether it lacks
/// receipts: the digest does not tell that of blocks without transactions, which have none to lack.
#[must_use]
pub fn segment_name(held: HeldRange, digest: B256) -> String {
    let HeldRange { range, has_receipts } = held;
    let bare = if has_receipts { "" } else { BARE };
    let (first, last) = (range.first(), range.last());
    format!("{SEGMENT_BEGIN}{first:010}-{last:010}-{}{bare}{SEGMENT_END}", short(digest))
}

/// A lookup run's file.
#[must_use]
pub fn run_name(subject: RunSubject, span: RunSpan, digest: B256) -> String {
    let (first, last) = (span.first_slot(), span.end_slot().saturating_sub(1));
    format!("{RUN_BEGIN}{subject}-{first:06}-{last:06}-{}{RUN_END}", short(digest))
}

/// A file that is being written.
pub(crate) fn part_name(number: u64) -> String {
    format!("{number}{PART_END}")
}

/// Whether a file is a segment, a run or the beginning of one: if the manifest does not list it,
/// nobody will miss it.
#[must_use]
pub fn is_data_name(name: &str) -> bool {
    let is_between = |begin: &str, end: &str| {
        name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)).is_some_and(|inner| {
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            inner.bytes().all(is_plain)
        })
    };
    let is_part = || {
        let number = name.strip_suffix(PART_END);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_between(SEGMENT_BEGIN, SEGMENT_END) || is_between(RUN_BEGIN, RUN_END) || is_part()
}

/// Whether a file is a segment.
#[must_use]
pub fn is_segment_name(name: &str) -> bool {
    is_data_name(name) && name.ends_with(SEGMENT_END)
}

/// The blocks that the name of a segment tells. A segment has blocks of one slot: a name that says more
/// is none of ours.
pub(crate) fn segment_range(name: &str) -> Option<BlockRange> {
    let ends = name.strip_prefix(SEGMENT_BEGIN).filter(|_| is_segment_name(name))?;
    let mut ends = ends.split('-').map(|end| end.parse::<u64>().ok());
    let range = BlockRange::from_ends(ends.next()??, ends.next()??)?;
    (slot_of(range.first()) == slot_of(range.last())).then_some(range)
}

/// Whether only a folder that has, or had, a manifest holds a file of this name. What a crash leaves
/// unfinished and the lock say nothing.
pub(crate) fn is_lasting_name(name: &str) -> bool {
    let is_unfinished = name.ends_with(PART_END) || name == HEAD_STAGED;
    name == GENESIS_NAME || ((is_data_name(name) || is_head_file(name)) && !is_unfinished)
}

/// Whether a file of a folder belongs to the head: its log, an unfinished one, or one that was damaged.
#[must_use]
pub fn is_head_file(name: &str) -> bool {
    let is_log = |rest: &str| rest.ends_with(LOG_END) || rest.ends_with(DAMAGED_END);
    name == HEAD_STAGED || name.strip_prefix(HEAD_BEGIN).is_some_and(is_log)
}

fn short(digest: B256) -> String {
    hex::encode(digest.get(..DIGEST_BYTES).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let range = BlockRange::from_ends(8192, 16_383).unwrap();
        let named =
            |has_receipts| segment_name(HeldRange { range, has_receipts }, B256::repeat_byte(0xab));
        assert_eq!(named(true), "blocks-0000008192-0000016383-abababababababab.segment");
        assert_eq!(named(false), "blocks-0000008192-0000016383-abababababababab-bare.segment");
        let run = run_name(RunSubject::Blocks, RunSpan::new(2, 2).unwrap(), B256::ZERO);
        assert_eq!(run, "lookup-blocks-000002-000003-0000000000000000.run");
        assert_eq!(segment_range(&named(true)), Some(range));
        assert_eq!(segment_range(&named(false)), Some(range));
        for name in [
            run.as_str(),
            "blocks-9-1-ab.segment",
            "blocks-a-b.segment",
            "blocks-1.segment",
            "blocks-8000-8200-ab.segment",
        ] {
            assert_eq!(segment_range(name), None, "{name}");
        }
        for name in [named(true), named(false), run, part_name(7)] {
            assert!(is_data_name(&name), "{name}");
        }
        for name in ["film.part", "x.segment", "a.run", "blocks-A.segment", "manifest", "7.part.gz"]
        {
            assert!(!is_data_name(name), "{name}");
        }
    }
}
