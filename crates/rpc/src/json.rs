//! JSON, written into the answer's buffer.

pub(crate) mod block;
pub(crate) mod log;
pub(crate) mod otterscan;
pub(crate) mod proof;
pub(crate) mod receipt;
pub(crate) mod transaction;

use std::convert::Infallible;

use alloy_primitives::{U256, hex};

/// What comes before the digits of a quantity or of data.
const PREFIX: &[u8; 3] = b"\"0x";
/// Digits of a number of 64 bits.
const DIGITS_U64: usize = 16;
/// Digits of data of 32 bytes.
const WORD_DIGITS: usize = 64;

/// Stored bytes that cannot be what a verified block had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotABlock;

/// Appends `"0x..."`: two lower-case digits a byte.
pub(crate) fn put_data(out: &mut Vec<u8>, bytes: &[u8]) {
    // Half of all members are hashes: of a length that is known, nothing is cleared first.
    if let Some(word) = bytes.as_array::<32>() {
        return put_word(out, word);
    }
    out.extend_from_slice(PREFIX);
    let begin = out.len();
    let end = begin.saturating_add(bytes.len().saturating_mul(2));
    out.resize(end, 0);
    if let Some(place) = out.get_mut(begin..) {
        // Exactly as long as it must be: it cannot fail.
        let _ = hex::encode_to_slice(bytes, place);
    }
    out.push(b'"');
}

fn put_word(out: &mut Vec<u8>, word: &[u8; 32]) {
    // Digits are written where they stay: copied from elsewhere, in pieces of other sizes than they
    // were written in, they would be waited for. The same holds for quantities.
    out.extend_from_slice(PREFIX);
    let begin = out.len();
    out.extend_from_slice(&[b'"'; WORD_DIGITS + 1]);
    let digits = out.get_mut(begin..).and_then(|text| text.first_chunk_mut::<WORD_DIGITS>());
    if let Some(digits) = digits {
        let _ = hex::encode_to_slice(word, digits);
    }
}

/// Appends a quantity: as few digits as it takes, and `0x0` for zero.
pub(crate) fn put_quantity(out: &mut Vec<u8>, value: u64) {
    let leading = (value | 1).leading_zeros() / 4;
    let [high, low] = [value << (4 * leading) >> 32, value << (4 * leading) & 0xffff_ffff];
    out.extend_from_slice(PREFIX);
    let digits = DIGITS_U64.saturating_sub(usize::try_from(leading).unwrap_or_default());
    let end = out.len().saturating_add(digits);
    // All of them, whatever is too much: a length that is known is written without a loop.
    out.extend_from_slice(&eight_digits(high));
    if digits > 8 {
        out.extend_from_slice(&eight_digits(low));
    }
    out.truncate(end);
    out.push(b'"');
}

/// The digits of the low 32 bits of a number, all at once: four bits go to a byte each, and those
/// above nine get what is between `9` and `a` on top.
fn eight_digits(value: u64) -> [u8; 8] {
    let halves = (value << 16 | value) & 0x0000_ffff_0000_ffff;
    let bytes = (halves << 8 | halves) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes << 4 | bytes) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + 0x3030_3030_3030_3030 + letters * 0x27).to_be_bytes()
}

/// Appends a quantity of up to 128 bits.
pub(crate) fn put_quantity_u128(out: &mut Vec<u8>, value: u128) {
    match u64::try_from(value) {
        Ok(value) => put_quantity(out, value),
        Err(_) => put_minimal(out, &value.to_be_bytes()),
    }
}

/// Appends a quantity of up to 256 bits.
pub(crate) fn put_quantity_u256(out: &mut Vec<u8>, value: &U256) {
    put_minimal(out, &value.to_be_bytes::<32>());
}

/// Appends a quantity that is given as big-endian bytes.
fn put_minimal(out: &mut Vec<u8>, bytes: &[u8]) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = bytes.get(zeros..).unwrap_or_default();
    if bytes.len() <= 8 {
        let value = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        return put_quantity(out, value);
    }
    // Two digits a byte, as data has them; of the first byte perhaps one.
    let first_digit = out.len().saturating_add(PREFIX.len());
    put_data(out, bytes);
    if bytes.first().is_some_and(|byte| *byte < 0x10) {
        out.remove(first_digit);
    }
}

/// Appends a text in quotes, with what JSON does not allow in it escaped.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// An object that is being written. Names are plain words and written as they are.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    /// What comes before the next member.
    before: u8,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        Self { out, before: b'{' }
    }

    pub(crate) fn end(self) {
        if self.before == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }

    /// Begins a member; its value is to be written next.
    #[expect(clippy::inline_always, reason = "names are known: each is a move, not a call")]
    #[inline(always)]
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(&[std::mem::replace(&mut self.before, b','), b'"']);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(crate) fn data(&mut self, name: &str, bytes: &[u8]) {
        put_data(self.member(name), bytes);
    }

    pub(crate) fn quantity(&mut self, name: &str, value: u64) {
        put_quantity(self.member(name), value);
    }

    pub(crate) fn quantity_u128(&mut self, name: &str, value: u128) {
        put_quantity_u128(self.member(name), value);
    }

    pub(crate) fn quantity_u256(&mut self, name: &str, value: &U256) {
        put_quantity_u256(self.member(name), value);
    }

    /// A quantity given as big-endian bytes.
    pub(crate) fn quantity_bytes(&mut self, name: &str, value: &[u8]) {
        put_minimal(self.member(name), value);
    }

    /// A value that is written as it stands: `null`, `true`, `[]`.
    pub(crate) fn raw(&mut self, name: &str, value: &str) {
        self.member(name).extend_from_slice(value.as_bytes());
    }
}

/// Appends a list, each item written by `put`.
pub(crate) fn put_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    let always = |out: &mut Vec<u8>, item: T| {
        put(out, item);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = try_put_list(out, items, always);
}

/// Appends a list whose items may turn out not to be what was stored.
pub(crate) fn try_put_list<T, E>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T) -> Result<(), E>,
) -> Result<(), E> {
    out.push(b'[');
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        put(out, item)?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quantities_have_no_leading_zeros() {
        for (value, expected) in [
            (0, "\"0x0\""),
            (1, "\"0x1\""),
            (15, "\"0xf\""),
            (16, "\"0x10\""),
            (0xabc, "\"0xabc\""),
            (u64::MAX, "\"0xffffffffffffffff\""),
        ] {
            assert_eq!(written(|out| put_quantity(out, value)), expected);
            assert_eq!(written(|out| put_quantity_u128(out, value.into())), expected);
            assert_eq!(written(|out| put_quantity_u256(out, &U256::from(value))), expected);
        }
        for bits in 0..256 {
            let value = (U256::MAX >> bits) / U256::from(3_u64);
            let expected = format!("\"{value:#x}\"");
            assert_eq!(written(|out| put_quantity_u256(out, &value)), expected);
            assert_eq!(written(|out| put_minimal(out, &value.to_be_bytes_trimmed_vec())), expected);
            if let Ok(value) = u128::try_from(value) {
                assert_eq!(written(|out| put_quantity_u128(out, value)), expected);
            }
            if let Ok(value) = u64::try_from(value) {
                assert_eq!(written(|out| put_quantity(out, value)), expected);
            }
        }
    }

    #[test]
    fn data_has_two_digits_a_byte() {
        assert_eq!(written(|out| put_data(out, &[])), "\"0x\"");
        assert_eq!(written(|out| put_data(out, &[0, 0x0f, 0xff])), "\"0x000fff\"");
        for length in [20, 31, 32, 33, 256] {
            let bytes: Vec<u8> = (0..=u8::MAX).cycle().skip(250).take(length).collect();
            let expected = format!("\"0x{}\"", hex::encode(&bytes));
            assert_eq!(written(|out| put_data(out, &bytes)), expected);
        }
    }

    #[test]
    fn texts_are_escaped_as_serde_json_reads_them() {
        for text in ["plain", "a\"b\\c", "line\nbreak\ttab\u{1}", "\u{e9}\u{1f600}", ""] {
            let json = written(|out| put_text(out, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
        }
    }

    #[test]
    fn objects_and_lists_put_commas_between() {
        let json = written(|out| {
            let mut object = Object::begin(out);
            object.quantity("a", 1);
            put_list(object.member("b"), [1, 2], put_quantity);
            object.raw("c", "null");
            object.end();
        });
        assert_eq!(json, "{\"a\":\"0x1\",\"b\":[\"0x1\",\"0x2\"],\"c\":null}");
        assert_eq!(written(|out| Object::begin(out).end()), "{}");
    }
}
