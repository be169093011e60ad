//! Numbers of fixed width, packed from the lowest bit of each byte upwards.

/// The widest number: with the seven bits that may precede it in its byte, it fits into one load
/// of eight bytes.
pub(crate) const WIDTH_MAX: u32 = 57;

/// A number's width in bits; 0 has none.
pub(crate) fn width_of(number: u64) -> u32 {
    u64::BITS.saturating_sub(number.leading_zeros())
}

/// All ones in the lowest `width` bits.
pub(crate) fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS.saturating_sub(width)).unwrap_or(0)
}

/// The number of `width` bits that begins at bit `at`; `None` where `bytes` end before it.
#[inline]
pub(crate) fn read(bytes: &[u8], at: u64, width: u32) -> Option<u64> {
    let rest = bytes.get(usize::try_from(at / 8).ok()?..)?;
    let word = rest.first_chunk().copied().or_else(|| {
        let needed = at.checked_add(u64::from(width))?.div_ceil(8);
        (usize::try_from(needed).ok()? <= bytes.len()).then(|| pad(rest))
    })?;
    Some((u64::from_le_bytes(word) >> (at % 8)) & mask(width))
}

/// The 64-bit words of `bytes`, the last one filled up with zeros.
#[inline]
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| pad(rest));
    whole.iter().copied().chain(last).map(u64::from_le_bytes)
}

fn pad(bytes: &[u8]) -> [u8; 8] {
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    padded
}

/// Where the zero of this rank is: rank 0 is the first. `None` if there are fewer.
#[inline]
pub(crate) fn find_zero(bytes: &[u8], rank: u64) -> Option<u64> {
    let mut remaining = rank;
    let mut at = 0_u64;
    for word in words(bytes) {
        let count = u64::from(word.count_zeros());
        if remaining < count {
            return Some(at.saturating_add(find_one_in_word(!word, remaining)));
        }
        remaining = remaining.saturating_sub(count);
        at = at.saturating_add(u64::from(u64::BITS));
    }
    None
}

/// Where the one of this rank is in a word that has more ones than `rank`: by halving.
#[inline]
fn find_one_in_word(word: u64, rank: u64) -> u64 {
    let mut rest = word;
    let mut remaining = rank;
    let mut at = 0;
    for half in [32_u32, 16, 8, 4, 2, 1] {
        let count = u64::from((rest & mask(half)).count_ones());
        if remaining >= count {
            remaining = remaining.saturating_sub(count);
            rest = rest.checked_shr(half).unwrap_or(0);
            at |= u64::from(half);
        }
    }
    at
}

/// Appends packed numbers to bytes.
#[derive(Debug)]
pub(crate) struct Packer<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bits that do not fill a word yet: fewer than 64 between calls.
    pending: u64,
    pending_bits: u32,
}

impl<'a> Packer<'a> {
    /// Begins at the next whole byte of `bytes`.
    pub(crate) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, pending: 0, pending_bits: 0 }
    }

    /// Appends the lowest `width` bits of `number`.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, width: u32) {
        debug_assert!(width <= WIDTH_MAX, "a number of {width} bits");
        let number = number & mask(width);
        self.pending |= number.checked_shl(self.pending_bits).unwrap_or(0);
        let bits = self.pending_bits.saturating_add(width);
        self.pending_bits = bits % u64::BITS;
        if bits >= u64::BITS {
            self.bytes.extend_from_slice(&self.pending.to_le_bytes());
            let taken = width.saturating_sub(self.pending_bits);
            self.pending = number.checked_shr(taken).unwrap_or(0);
        }
    }

    /// Appends `count` zeros, and then a one.
    #[inline]
    pub(crate) fn push_unary(&mut self, count: u64) {
        let rest = self.push_zeros_below(count, WIDTH_MAX);
        self.push(1_u64.checked_shl(rest).unwrap_or(0), rest.saturating_add(1));
    }

    /// Appends `count` zeros.
    pub(crate) fn push_zeros(&mut self, count: u64) {
        let rest = self.push_zeros_below(count, WIDTH_MAX);
        self.push(0, rest);
    }

    /// Appends whole `step`s of zeros and returns how many, fewer than a step, are left.
    #[inline]
    fn push_zeros_below(&mut self, count: u64, step: u32) -> u32 {
        let mut rest = count;
        while let Some(less) = rest.checked_sub(u64::from(step)) {
            self.push(0, step);
            rest = less;
        }
        u32::try_from(rest).unwrap_or(0)
    }

    /// Fills the last byte up with zeros.
    pub(crate) fn finish(self) {
        let count = usize::try_from(self.pending_bits.div_ceil(8)).unwrap_or(0);
        self.bytes.extend(self.pending.to_le_bytes().iter().take(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_come_back_at_every_width_and_place() {
        for width in 0..=WIDTH_MAX {
            let numbers: Vec<u64> =
                (1..40).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask(width)).collect();
            let mut bytes = Vec::new();
            let mut packer = Packer::new(&mut bytes);
            for number in &numbers {
                packer.push(*number, width);
            }
            packer.finish();
            assert_eq!(bytes.len(), (numbers.len() * usize::try_from(width).unwrap()).div_ceil(8));
            for (number, place) in numbers.iter().zip(0..) {
                assert_eq!(read(&bytes, place * u64::from(width), width), Some(*number));
            }
        }
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let bytes = [0xff; 9];
        assert_eq!(read(&bytes, 64, 8), Some(0xff));
        assert_eq!(read(&bytes, 65, 8), None);
        assert_eq!(read(&bytes, 15, 57), Some(mask(57)));
        assert_eq!(read(&bytes, 16, 57), None);
        assert_eq!(read(&bytes, 72, 1), None);
        assert_eq!(read(&bytes, u64::MAX, 57), None);
        assert_eq!(read(&[], 0, 0), Some(0));
    }

    #[test]
    fn zeros_are_found_by_rank() {
        let gaps: Vec<u64> = (0..200).map(|n| n * n % 131).collect();
        let mut bytes = Vec::new();
        let mut packer = Packer::new(&mut bytes);
        for gap in &gaps {
            packer.push_unary(*gap);
        }
        packer.push_zeros(100);
        packer.finish();
        let mut rank = 0;
        for at in 0..u64::try_from(bytes.len()).unwrap() * 8 {
            if read(&bytes, at, 1) == Some(0) {
                assert_eq!(find_zero(&bytes, rank), Some(at));
                rank += 1;
            }
        }
        assert!(rank >= gaps.iter().sum::<u64>() + 100);
    }

    #[test]
    fn widths_are_the_bits_that_a_number_needs() {
        let widths = [0, 1, 2, 3, 4, u64::MAX].map(width_of);
        assert_eq!(widths, [0, 1, 2, 2, 3, 64]);
    }
}
