//! Addresses and words that are copied later, many at a time.
//!
//! Knows: where in a buffer each goes, and where it is to be copied from.
//! Never knows: what it is a part of.
//!
//! A segment's tables are larger than what the processor keeps at hand, so an entry is waited for
//! when it is copied, longer than it takes to read the rest of a row. What is copied together is
//! waited for together. *Measured:* blocks take 0.97 of the time.

#![expect(
    clippy::inline_always,
    reason = "called for every field of every row: as calls they took 3 % of a block's time more"
)]

use arrayvec::ArrayVec;

/// Addresses that wait at the most: some of every row of a page.
const ADDRESSES_MAX: usize = 64;
/// Words, the same: few rows have any.
const WORDS_MAX: usize = 16;

/// What is still to be copied to a buffer.
#[derive(Debug, Default)]
pub(crate) struct Late<'a> {
    addresses: ArrayVec<(usize, &'a [u8; 20]), ADDRESSES_MAX>,
    words: ArrayVec<(usize, &'a [u8; 32]), WORDS_MAX>,
}

impl<'a> Late<'a> {
    /// Leaves room for an address, and gives back where.
    #[inline(always)]
    pub(crate) fn put_address(&mut self, out: &mut Vec<u8>, address: &'a [u8; 20]) -> usize {
        put(&mut self.addresses, out, address)
    }

    /// Leaves room for a word.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, out: &mut Vec<u8>, word: &'a [u8; 32]) {
        put(&mut self.words, out, word);
    }

    /// Tells that two neighbours in the buffer have changed places: what lay from `begin` to `middle`
    /// now ends at `end`, and what lay from there to `end` now begins at `begin`. Nothing that was put
    /// later lies before `begin`.
    pub(crate) fn swap(&mut self, begin: usize, middle: usize, end: usize) {
        swap(&mut self.addresses, begin, middle, end);
        swap(&mut self.words, begin, middle, end);
    }

    /// Copies all that waits. Nothing in the buffer may have moved since, but for what was told.
    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        fill(&mut self.addresses, out);
        fill(&mut self.words, out);
    }
}

#[inline(always)]
fn put<'a, const N: usize, const MAX: usize>(
    late: &mut ArrayVec<(usize, &'a [u8; N]), MAX>,
    out: &mut Vec<u8>,
    value: &'a [u8; N],
) -> usize {
    let place = out.len();
    out.extend_from_slice(&[0; N]);
    if late.is_full() {
        fill(late, out);
    }
    late.push((place, value));
    place
}

fn swap<T>(late: &mut [(usize, T)], begin: usize, middle: usize, end: usize) {
    for (place, _) in late.iter_mut().rev().take_while(|(place, _)| *place >= begin) {
        *place = if *place < middle {
            place.saturating_add(end.saturating_sub(middle))
        } else {
            place.saturating_sub(middle.saturating_sub(begin))
        };
    }
}

fn fill<const N: usize, const MAX: usize>(
    late: &mut ArrayVec<(usize, &[u8; N]), MAX>,
    out: &mut [u8],
) {
    for (place, value) in late.drain(..) {
        if let Some(room) = out.get_mut(place..).and_then(|rest| rest.first_chunk_mut()) {
            *room = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_to_its_place_however_much_there_is() {
        let addresses: Vec<[u8; 20]> = (0..200).map(|byte| [byte; 20]).collect();
        let words: Vec<[u8; 32]> = (0..200).map(|byte| [byte; 32]).collect();
        let (mut late, mut out, mut expected) = (Late::default(), Vec::new(), Vec::new());
        for (place, (address, word)) in addresses.iter().zip(&words).enumerate() {
            assert_eq!(late.put_address(&mut out, address), place * 53);
            out.push(0xee);
            late.put_word(&mut out, word);
            expected.extend_from_slice(&[&address[..], &[0xee], word].concat());
        }
        late.fill(&mut out);
        assert_eq!(out, expected);
        // Nothing is copied twice.
        out.fill(0);
        late.fill(&mut out);
        assert_eq!(out, vec![0; expected.len()]);
    }

    #[test]
    fn what_changes_places_before_it_is_copied_comes_to_its_new_one() {
        let words: Vec<[u8; 32]> = (1..6).map(|byte| [byte; 32]).collect();
        let [before, one, two, three, after] = words.as_slice() else { unreachable!() };
        let (mut late, mut out) = (Late::default(), Vec::new());
        late.put_word(&mut out, before);
        let begin = out.len();
        late.put_word(&mut out, one);
        out.push(0xaa);
        late.put_word(&mut out, two);
        let middle = out.len();
        out.push(0xbb);
        late.put_word(&mut out, three);
        let end = out.len();
        out[begin..].rotate_left(middle - begin);
        late.swap(begin, middle, end);
        late.put_word(&mut out, after);
        late.fill(&mut out);
        let expected = [&before[..], &[0xbb], three, one, &[0xaa], two, after].concat();
        assert_eq!(out, expected);
    }
}
