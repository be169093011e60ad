//! Ranges of a file that come by one request.

use std::ops::Range;

use bytes::Bytes;

use crate::range_cache::range_bytes;

/// One request, and what was asked for of it.
#[derive(Debug)]
pub(super) struct JoinedRange<T> {
    pub(super) range: Range<u64>,
    pub(super) parts: Vec<T>,
}

impl<T> JoinedRange<T> {
    /// The part `range` of the bytes that came.
    pub(super) fn part(&self, bytes: &Bytes, range: &Range<u64>) -> Option<Bytes> {
        let from = usize::try_from(range.start.checked_sub(self.range.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.range.start)?).ok()?;
        (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
    }
}

/// Joins ranges with at most `gap_max` bytes between them, up to `bytes_max` a request. A range that is
/// longer comes alone.
pub(super) fn join_neighbours<T>(
    mut wanted: Vec<T>,
    range_of: impl Fn(&T) -> &Range<u64>,
    gap_max: u64,
    bytes_max: u64,
) -> Vec<JoinedRange<T>> {
    wanted.sort_by_key(|it| (range_of(it).start, range_of(it).end));
    let mut joined: Vec<JoinedRange<T>> = Vec::new();
    for part in wanted {
        let range = range_of(&part).clone();
        if let Some(last) = joined.last_mut() {
            let both = last.range.start..last.range.end.max(range.end);
            let is_near = range.start <= last.range.end.saturating_add(gap_max);
            let is_within = last.range.end >= range.end;
            if is_within || (is_near && range_bytes(&both) <= bytes_max) {
                last.range = both;
                last.parts.push(part);
                continue;
            }
        }
        joined.push(JoinedRange { range, parts: vec![part] });
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &[Range<u64>], expected: &[(Range<u64>, usize)]) {
        let joined = join_neighbours(wanted.to_vec(), |it| it, 10, 100);
        let found: Vec<_> = joined.iter().map(|it| (it.range.clone(), it.parts.len())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn neighbours_are_joined_and_strangers_are_not() {
        check(&[], &[]);
        check(&[50..60, 0..10, 20..30], &[(0..30, 2), (50..60, 1)]);
        check(&[0..10, 21..30], &[(0..10, 1), (21..30, 1)]);
        check(&[0..40, 5..10, 8..50], &[(0..50, 3)]);
    }

    #[test]
    fn a_request_has_a_longest_length_unless_one_range_is_longer() {
        check(&[0..60, 60..100, 100..101], &[(0..100, 2), (100..101, 1)]);
        check(&[0..500, 100..200, 505..506], &[(0..500, 2), (505..506, 1)]);
    }

    #[test]
    fn each_part_gets_its_own_bytes() {
        let joined = JoinedRange::<()> { range: 100..110, parts: Vec::new() };
        let bytes = Bytes::from_static(b"0123456789");
        assert_eq!(joined.part(&bytes, &(103..105)).unwrap(), "34");
        assert_eq!(joined.part(&bytes, &(100..110)).unwrap(), bytes);
        assert_eq!(joined.part(&bytes, &(99..105)), None);
        assert_eq!(joined.part(&bytes, &(105..111)), None);
    }
}
