//! JSON, written into the answer's buffer.
//!
//! Knows: how quantities, data and members are written.
//! Never knows: which members an answer has; `json::*` does.

pub(crate) mod block;
pub(crate) mod receipt;
pub(crate) mod transaction;

use std::convert::Infallible;

use alloy_primitives::{U256, hex};

/// Appends `"0x..."`: two lower-case digits a byte.
pub(crate) fn put_data(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"\"0x");
    let begin = out.len();
    let end = begin.saturating_add(bytes.len().saturating_mul(2));
    out.resize(end, 0);
    if let Some(place) = out.get_mut(begin..) {
        // Exactly as long as it must be: it cannot fail.
        let _ = hex::encode_to_slice(bytes, place);
    }
    out.push(b'"');
}

/// What comes before the digits of a quantity.
const PREFIX: &[u8; 3] = b"\"0x";

/// Appends a quantity: as few digits as it takes, and `0x0` for zero.
pub(crate) fn put_quantity(out: &mut Vec<u8>, value: u64) {
    put_minimal(out, &value.to_be_bytes());
}

/// Appends a quantity of up to 128 bits.
pub(crate) fn put_quantity_u128(out: &mut Vec<u8>, value: u128) {
    put_minimal(out, &value.to_be_bytes());
}

/// Appends a quantity of up to 256 bits.
pub(crate) fn put_quantity_u256(out: &mut Vec<u8>, value: &U256) {
    put_minimal(out, &value.to_be_bytes::<32>());
}

fn put_minimal(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = if bytes.is_empty() { &[0] } else { bytes };
    // All digits first; then what comes before them takes the place of leading zeros.
    let mut text = [0; PREFIX.len() + 2 * U256::BYTES + 1];
    let end = PREFIX.len().saturating_add(bytes.len().saturating_mul(2));
    let digits = text.get_mut(PREFIX.len()..end);
    let Some(Ok(())) = digits.map(|place| hex::encode_to_slice(bytes, place)) else {
        // Wider than any number of the chain.
        return put_data(out, bytes);
    };
    let digits = text.iter().take(end.saturating_sub(1)).skip(PREFIX.len());
    let begin = digits.take_while(|digit| **digit == b'0').count();
    for (place, byte) in text.iter_mut().skip(begin).zip(PREFIX) {
        *place = *byte;
    }
    if let Some(place) = text.get_mut(end) {
        *place = b'"';
    }
    out.extend_from_slice(text.get(begin..=end).unwrap_or_default());
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
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    /// Begins a member; its value is to be written next.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.is_empty { b"\"" } else { b",\"" });
        self.is_empty = false;
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
    }

    #[test]
    fn data_has_two_digits_a_byte() {
        assert_eq!(written(|out| put_data(out, &[])), "\"0x\"");
        assert_eq!(written(|out| put_data(out, &[0, 0x0f, 0xff])), "\"0x000fff\"");
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
