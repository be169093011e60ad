//! Reading and writing the small pieces that rows and directories are made of.

use std::ops::Range;

use crate::corrupt::RowFault;

/// A varint longer than this does not fit 64 bits.
const VARINT_BYTES_MAX: usize = 10;

/// The bytes of a range; none if the file ends before it, which is refused by its length.
#[must_use]
pub fn slice<'a>(file: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    file.get(start..end).unwrap_or_default()
}

/// A length as the number that files hold.
pub(crate) fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Bytes of memory that a list takes, with the room that it has left.
pub(crate) fn allocated<T>(list: &Vec<T>) -> usize {
    list.capacity().saturating_mul(size_of::<T>())
}

/// Appends a number, seven bits a byte, low bits first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        let [low, ..] = value.to_le_bytes();
        out.push(low | 0x80);
        value >>= 7;
    }
    let [low, ..] = value.to_le_bytes();
    out.push(low);
}

/// Appends a length.
pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    put_varint(out, u64::try_from(length).unwrap_or(u64::MAX));
}

/// Appends a length with marks below it: the first is the lowest bit.
pub(crate) fn put_marked<const N: usize>(out: &mut Vec<u8>, length: usize, marks: [bool; N]) {
    let marked = marks
        .iter()
        .rev()
        .fold(length, |sum, mark| sum.saturating_mul(2).saturating_add(usize::from(*mark)));
    put_length(out, marked);
}

/// Undoes [`put_marked`].
pub(crate) fn read_marked<const N: usize>(
    cursor: &mut Cursor<'_>,
    what: &'static str,
) -> Result<(usize, [bool; N]), RowFault> {
    let mut rest = cursor.length(what)?;
    let marks = std::array::from_fn(|_| {
        let mark = rest % 2 == 1;
        rest /= 2;
        mark
    });
    Ok((rest, marks))
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], RowFault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(RowFault::Ends {
            what,
            needed: count,
            left: self.rest.len(),
        })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], RowFault> {
        self.array_ref(what).copied()
    }

    pub(crate) fn array_ref<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<&'a [u8; N], RowFault> {
        let left = self.rest.len();
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(RowFault::Ends { what, needed: N, left })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, RowFault> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    // Rows and pages are mostly these: a call for each would be dearer than what it does.
    #[inline]
    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, RowFault> {
        // Whether a number takes one byte or three cannot be foretold, and a wrong guess is dearer
        // than all of this: up to four bytes without asking.
        if let Some(bytes) = self.rest.first_chunk::<4>() {
            let word = u32::from_le_bytes(*bytes);
            let ends = !word & 0x8080_8080;
            if ends != 0 {
                // All bits up to the highest of the byte that ends the number.
                let own = word & (ends ^ ends.wrapping_sub(1));
                let low = own & 0x7f | (own & 0x7f00) >> 1;
                let high = (own & 0x7f_0000) >> 2 | (own & 0x7f00_0000) >> 3;
                let length = usize::try_from(ends.trailing_zeros() / 8).unwrap_or_default();
                self.rest = self.rest.get(length.saturating_add(1)..).unwrap_or_default();
                return Ok((low | high).into());
            }
        }
        self.varint_long(what)
    }

    #[cold]
    #[inline(never)]
    fn varint_long(&mut self, what: &'static str) -> Result<u64, RowFault> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        for _ in 0..VARINT_BYTES_MAX {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            let placed = bits << shift;
            if placed >> shift != bits {
                return Err(RowFault::TooLarge { what });
            }
            value |= placed;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
        Err(RowFault::TooLarge { what })
    }

    /// Passes over so many varints; how large they are is not looked at.
    pub(crate) fn skip_varints(
        &mut self,
        count: usize,
        what: &'static str,
    ) -> Result<(), RowFault> {
        let mut left = count;
        // Eight bytes at a time, as long as not more than is left can end in them.
        while left >= 8
            && let Some((bytes, rest)) = self.rest.split_first_chunk::<8>()
        {
            let ends = !u64::from_le_bytes(*bytes) & 0x8080_8080_8080_8080;
            left = left.saturating_sub(usize::try_from(ends.count_ones()).unwrap_or_default());
            self.rest = rest;
        }
        while left > 0 {
            left = left.saturating_sub(usize::from(self.byte(what)? < 0x80));
        }
        Ok(())
    }

    /// A count of things that each take at least one byte: more than are left is damage, and
    /// nothing is allocated for it.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, RowFault> {
        let count = self.length(what)?;
        if count > self.rest.len() {
            return Err(RowFault::Ends { what, needed: count, left: self.rest.len() });
        }
        Ok(count)
    }

    pub(crate) fn length(&mut self, what: &'static str) -> Result<usize, RowFault> {
        usize::try_from(self.varint(what)?).map_err(|_| RowFault::TooLarge { what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_whatever_follows_and_take_no_more_bytes_than_they_need() {
        for (value, length) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (0x1f_ffff, 3),
            (0xabc_def0, 4),
            (1 << 28, 5),
            (u64::MAX, 10),
        ] {
            for left in 0..5 {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(out.len(), length);
                // What comes after it is not read.
                out.resize(length + left, 0xff);
                let mut cursor = Cursor::new(&out);
                assert_eq!(cursor.varint("number").unwrap(), value);
                assert_eq!(cursor.rest().len(), left);
            }
        }
    }

    #[test]
    fn numbers_that_are_passed_over_end_where_reading_them_ends() {
        let mut numbers = Vec::new();
        let values = [0, 300, 127, 1 << 20, 5, u64::MAX, 1, 2, 3, 1 << 28, 128];
        for value in values.iter().cycle().take(60) {
            put_varint(&mut numbers, *value);
        }
        for count in 0..=60 {
            let (mut read, mut skipped) = (Cursor::new(&numbers), Cursor::new(&numbers));
            for _ in 0..count {
                read.varint("number").unwrap();
            }
            skipped.skip_varints(count, "number").unwrap();
            assert_eq!(skipped.rest(), read.rest(), "{count}");
        }
        assert!(Cursor::new(&numbers).skip_varints(61, "number").is_err());
        assert!(Cursor::new(&[0x80; 9]).skip_varints(1, "number").is_err());
    }

    #[test]
    fn numbers_past_64_bits_and_cut_ones_are_refused() {
        let too_large = [0xff; 9].into_iter().chain([0x02]).collect::<Vec<u8>>();
        for bytes in [too_large, vec![0x80; 10], vec![0x80; 11], vec![0x80], vec![]] {
            assert!(Cursor::new(&bytes).varint("number").is_err(), "{bytes:02x?}");
        }
    }
}
