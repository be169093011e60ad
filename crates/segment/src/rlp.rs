//! RLP, written to the end of a buffer.
//!
//! alloy encodes values that exist; a row's fields exist only here, and are written as they are
//! read. Building transactions for alloy to encode took half the time of reading a block.

#![expect(
    clippy::inline_always,
    reason = "called for every field of every row: as calls they took 3 % of a block's time more"
)]

/// The longest head: a type, the head's first byte, and a length of eight bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 10;

const STRING: u8 = 0x80;
const LIST: u8 = 0xc0;
/// Payloads longer than this have their length in bytes of its own.
const SHORT_MAX: u8 = 55;

/// Appends a number.
#[inline(always)]
pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    if number < u64::from(STRING) {
        let [.., byte] = number.to_be_bytes();
        // Zero is the empty string.
        return out.push(if byte == 0 { STRING } else { byte });
    }
    // All eight bytes are written and those behind the number taken back: how many it has cannot be
    // foretold, and copying just those takes a call.
    let zeros = number.leading_zeros() / 8;
    let [.., count] = (8 - zeros).to_be_bytes();
    out.push(STRING + count);
    let end = out.len().saturating_add(count.into());
    out.extend_from_slice(&(number << (zeros * 8)).to_be_bytes());
    out.truncate(end);
}

/// The same of twice the width.
#[inline(always)]
pub(crate) fn put_u128(out: &mut Vec<u8>, number: u128) {
    if let Ok(number) = u64::try_from(number) {
        return put_u64(out, number);
    }
    let bytes = number.to_be_bytes();
    let zeros = usize::try_from(number.leading_zeros() / 8).unwrap_or_default();
    put_trimmed(out, bytes.get(zeros..).unwrap_or_default());
}

/// Appends a number of 32 bytes, which mostly has no fewer.
#[inline(always)]
pub(crate) fn put_word(out: &mut Vec<u8>, word: &[u8; 32]) {
    if word.first().is_some_and(|first| *first == 0) {
        return put_number(out, word);
    }
    out.push(STRING + 32);
    out.extend_from_slice(word);
}

/// Appends a number, given as big-endian bytes.
pub(crate) fn put_number(out: &mut Vec<u8>, bytes: &[u8]) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    put_trimmed(out, bytes.get(zeros..).unwrap_or_default());
}

/// Appends a number that begins with no zero.
fn put_trimmed(out: &mut Vec<u8>, number: &[u8]) {
    match number {
        [] => out.push(STRING),
        [byte] if *byte < STRING => out.push(*byte),
        number => {
            out.push(STRING | u8::try_from(number.len()).unwrap_or_default());
            out.extend_from_slice(number);
        }
    }
}

/// Appends the head of a string that is not a single small byte.
#[inline(always)]
pub(crate) fn put_string_head(out: &mut Vec<u8>, length: usize) {
    put_head(out, STRING, length);
}

/// Appends the head of a list.
#[inline(always)]
pub(crate) fn put_list_head(out: &mut Vec<u8>, length: usize) {
    put_head(out, LIST, length);
}

/// How many bytes the head of a list has.
pub(crate) fn list_head_bytes(length: usize) -> usize {
    let (_, count) = head(LIST, length);
    usize::try_from(count).unwrap_or_default()
}

#[inline(always)]
fn put_head(out: &mut Vec<u8>, kind: u8, length: usize) {
    // Nearly all heads have one byte or two, and are written without a call.
    match u8::try_from(length) {
        Ok(length) if length <= SHORT_MAX => return out.push(kind + length),
        Ok(length) => return out.extend_from_slice(&[kind + SHORT_MAX + 1, length]),
        Err(_) => {}
    }
    let (head, count) = head(kind, length);
    let skipped = 16_usize.saturating_sub(usize::try_from(count).unwrap_or_default());
    out.extend_from_slice(head.to_be_bytes().get(skipped..).unwrap_or_default());
}

/// The head of a string or a list as one number, and how many bytes it has. Put together byte by byte
/// in memory, it would be waited for when it is copied as a whole.
fn head(kind: u8, length: usize) -> (u128, u32) {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if length <= SHORT_MAX.into() {
        return (u128::from(kind) + u128::from(length), 1);
    }
    let count = 8 - length.leading_zeros() / 8;
    let first = u128::from(kind) + u128::from(SHORT_MAX) + u128::from(count);
    (first << (count * 8) | u128::from(length), count + 1)
}

/// Puts the head of a list into the room before it, and the type before that. The list is all that
/// comes from `begin` on. Gives back where it begins with its head.
pub(crate) fn fill_list_head(out: &mut [u8], begin: usize, tx_type: Option<u8>) -> usize {
    let (mut head, mut count) = head(LIST, out.len().saturating_sub(begin));
    if let Some(tx_type) = tx_type {
        head |= u128::from(tx_type) << (count * 8);
        count += 1;
    }
    // The room is as long as the longest head: all of it is written, which takes no call.
    let bytes = head.to_be_bytes();
    let room = out.get_mut(..begin).and_then(|before| before.last_chunk_mut::<HEAD_BYTES_MAX>());
    if let (Some(room), Some(bytes)) = (room, bytes.last_chunk()) {
        *room = *bytes;
    }
    begin.saturating_sub(usize::try_from(count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use alloy_rlp::{Encodable as _, Header};

    use super::*;

    #[test]
    fn numbers_are_what_alloy_writes() {
        for value in [0, 1, 0x7f, 0x80, 0xff, 0x100, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, &value.to_be_bytes());
            assert_eq!(out, alloy_rlp::encode(value));
            let mut out = Vec::new();
            put_u64(&mut out, value);
            assert_eq!(out, alloy_rlp::encode(value));
        }
        for value in [0, 0x7f, 0x80, u128::from(u64::MAX), 1 << 64, 0xff << 64, u128::MAX] {
            let mut out = Vec::new();
            put_u128(&mut out, value);
            assert_eq!(out, alloy_rlp::encode(value));
        }
        for value in [U256::ZERO, U256::from(0x80), U256::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, &value.to_be_bytes::<32>());
            assert_eq!(out, alloy_rlp::encode(value));
            let mut out = Vec::new();
            put_word(&mut out, &value.to_be_bytes());
            assert_eq!(out, alloy_rlp::encode(value));
        }
        for bytes in 0..64 {
            let value = u64::MAX >> bytes;
            let mut out = vec![7];
            put_u64(&mut out, value);
            assert_eq!(out[1..], alloy_rlp::encode(value));
        }
    }

    #[test]
    fn heads_are_what_alloy_writes() {
        for payload_length in [0, 1, 55, 56, 255, 256, 65_535, 65_536, 1 << 24, usize::MAX / 2] {
            for list in [false, true] {
                let mut expected = Vec::new();
                Header { list, payload_length }.encode(&mut expected);
                let mut out = Vec::new();
                if list {
                    put_list_head(&mut out, payload_length);
                } else {
                    put_string_head(&mut out, payload_length);
                }
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn a_head_goes_into_the_room_before_its_list() {
        for length in [0, 55, 56, 300, 70_000] {
            let list = vec![7_u8; length];
            for tx_type in [None, Some(4)] {
                let mut out = [vec![0xee; 3 + HEAD_BYTES_MAX], list.clone()].concat();
                let start = fill_list_head(&mut out, 3 + HEAD_BYTES_MAX, tx_type);
                let mut expected: Vec<u8> = tx_type.into_iter().collect();
                Header { list: true, payload_length: length }.encode(&mut expected);
                expected.extend_from_slice(&list);
                assert_eq!(out[start..], expected);
                assert_eq!(out[..3], [0xee; 3]);
            }
        }
        // A string in a list, as alloy has it.
        let mut out = vec![0; HEAD_BYTES_MAX];
        "dog".encode(&mut out);
        let start = fill_list_head(&mut out, HEAD_BYTES_MAX, None);
        assert_eq!(out[start..], alloy_rlp::encode(vec!["dog".to_owned()]));
    }
}
