//! Places in order, as bits: Elias-Fano.
//!
//! A place is cut in two. The high bits never fall from place to place: they are written in unary, as
//! zeros counted up before each place's one, and filled up with zeros to a length that the count alone
//! tells. Then come the low bits of all places. A single place is written as it is.

use super::bits::{Packer, WIDTH_MAX, mask, read};

/// The shape of a list of `count` places below 2^`place_bits`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListShape {
    count: u64,
    low_bits: u32,
    /// Zeros in the unary part; none if there is no unary part.
    zero_count: u64,
}

impl ListShape {
    pub(super) fn new(count: u64, place_bits: u32) -> Self {
        if count == 1 {
            return Self { count, low_bits: place_bits, zero_count: 0 };
        }
        let high_bits = count.next_power_of_two().trailing_zeros().min(place_bits);
        let zero_count = mask(high_bits);
        Self { count, low_bits: place_bits.saturating_sub(high_bits), zero_count }
    }

    fn unary_bits(&self) -> u64 {
        if self.count == 1 { 0 } else { self.count.saturating_add(self.zero_count) }
    }

    /// How many bits the list takes.
    pub(super) fn bits(&self) -> u64 {
        let low = self.count.saturating_mul(self.low_bits.into());
        self.unary_bits().saturating_add(low)
    }

    /// Appends the places, as many as the shape counts, in order.
    pub(super) fn put(&self, places: &[u64], packer: &mut Packer<'_>) {
        if self.count != 1 {
            let mut zeros = 0;
            for place in places {
                let high = place.checked_shr(self.low_bits).unwrap_or(0);
                packer.push_unary(high.saturating_sub(zeros));
                zeros = high;
            }
            packer.push_zeros(self.zero_count.saturating_sub(zeros));
        }
        for place in places {
            packer.push(*place, self.low_bits);
        }
    }

    /// The places of the list that begins at bit `at`; `None` if no writer wrote it.
    pub(super) fn read(&self, bytes: &[u8], at: u64) -> Option<Vec<u64>> {
        // Before room is made for what a damaged count promises.
        let end = at.checked_add(self.bits())?;
        if end > u64::try_from(bytes.len()).ok()?.checked_mul(8)? {
            return None;
        }
        if self.count == 1 {
            return Some(vec![read(bytes, at, self.low_bits)?]);
        }
        let mut places = Vec::with_capacity(usize::try_from(self.count).ok()?);
        let low_at = at.checked_add(self.unary_bits())?;
        let mut word_at = at;
        while word_at < low_at {
            let left = low_at.saturating_sub(word_at);
            let width = u32::try_from(left).unwrap_or(u32::MAX).min(WIDTH_MAX);
            let mut ones = read(bytes, word_at, width)?;
            while ones != 0 {
                let index = u64::try_from(places.len()).ok()?;
                let one_at = word_at.checked_add(ones.trailing_zeros().into())?;
                let high = one_at.checked_sub(at)?.checked_sub(index)?;
                ones &= ones.wrapping_sub(1);
                let low = self.low(bytes, low_at, index)?;
                let place = high.checked_shl(self.low_bits)? | low;
                if places.last().is_some_and(|last| *last >= place) {
                    return None;
                }
                places.push(place);
            }
            word_at = word_at.saturating_add(width.into());
        }
        (u64::try_from(places.len()) == Ok(self.count)).then_some(places)
    }

    fn low(&self, bytes: &[u8], low_at: u64, index: u64) -> Option<u64> {
        if index >= self.count {
            return None;
        }
        let at = low_at.checked_add(index.checked_mul(self.low_bits.into())?)?;
        read(bytes, at, self.low_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::wide;

    #[test]
    fn lists_come_back_wherever_they_begin() {
        for place_bits in [1, 5, 18, 30] {
            for count in [1, 2, 3, 7, 64, 200] {
                let universe = 1_u64 << place_bits;
                let mut places: Vec<u64> = (0..count)
                    .map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % universe)
                    .collect();
                places.sort_unstable();
                places.dedup();
                let shape = ListShape::new(wide(places.len()), place_bits);
                for offset in [0, 3, 61] {
                    let mut bytes = Vec::new();
                    let mut packer = Packer::new(&mut bytes);
                    packer.push_zeros(offset);
                    shape.put(&places, &mut packer);
                    packer.finish();
                    assert_eq!(wide(bytes.len()), (offset + shape.bits()).div_ceil(8));
                    assert_eq!(shape.read(&bytes, offset).as_ref(), Some(&places));
                    bytes.pop();
                    assert_eq!(shape.read(&bytes, offset), None, "cut short");
                }
            }
        }
    }
}
