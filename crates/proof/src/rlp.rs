//! RLP, read strictly: every item has one encoding.

use alloc::vec::Vec;

/// The first byte of an empty string and of an empty list.
const STRING_BASE: u8 = 0x80;
const LIST_BASE: u8 = 0xc0;
/// Payloads up to this length stand directly behind their first byte.
const SHORT_BYTES_MAX: usize = 55;

/// What bytes are not RLP for; `offset` counts from the first byte of what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RlpFault {
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
}

/// One item: its payload, and all of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RlpItem<'a> {
    pub(crate) is_list: bool,
    pub(crate) payload: &'a [u8],
    pub(crate) encoded: &'a [u8],
}

impl<'a> RlpItem<'a> {
    /// The payload of a string; `None` of a list.
    pub(crate) fn string(&self) -> Option<&'a [u8]> {
        (!self.is_list).then_some(self.payload)
    }

    /// A string of exactly this many bytes.
    pub(crate) fn array<const BYTES: usize>(&self) -> Option<[u8; BYTES]> {
        self.string()?.try_into().ok()
    }

    /// A number without leading zeros.
    pub(crate) fn number(&self) -> Option<u64> {
        let bytes = self.string()?;
        if bytes.len() > size_of::<u64>() || bytes.first() == Some(&0) {
            return None;
        }
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// The item that `bytes` begin with, and what follows it.
pub(crate) fn split_item(bytes: &[u8]) -> Result<(RlpItem<'_>, &[u8]), RlpFault> {
    let fault = |what| RlpFault { offset: 0, what };
    let first = *bytes.first().ok_or(fault("an item is missing"))?;
    let is_list = first >= LIST_BASE;
    let base = if is_list { LIST_BASE } else { STRING_BASE };
    let (head_bytes, payload_bytes) = match first.checked_sub(base).map(usize::from) {
        None => (0, 1),
        Some(length @ ..=SHORT_BYTES_MAX) => (1, length),
        Some(code) => {
            let length_bytes = code.saturating_sub(SHORT_BYTES_MAX);
            let length = bytes.get(1..).and_then(|rest| rest.get(..length_bytes));
            let length = length.ok_or(fault("a length is cut off"))?;
            (length_bytes.saturating_add(1), long_length(length).map_err(fault)?)
        }
    };
    let end = head_bytes.checked_add(payload_bytes).ok_or(fault("a length is too large"))?;
    let (encoded, rest) = bytes.split_at_checked(end).ok_or(fault("an item is cut off"))?;
    let payload = encoded.get(head_bytes..).unwrap_or_default();
    let is_short_byte = matches!(payload, [byte] if *byte < STRING_BASE);
    if !is_list && head_bytes == 1 && is_short_byte {
        return Err(fault("a byte below 0x80 has a length in front"));
    }
    Ok((RlpItem { is_list, payload, encoded }, rest))
}

fn long_length(bytes: &[u8]) -> Result<usize, &'static str> {
    if bytes.first() == Some(&0) {
        return Err("a length has leading zeros");
    }
    if bytes.len() > size_of::<u32>() {
        return Err("a length is too large");
    }
    let length = bytes.iter().fold(0_u32, |length, byte| length << 8 | u32::from(*byte));
    let length = usize::try_from(length).map_err(|_error| "a length is too large")?;
    if length <= SHORT_BYTES_MAX {
        Err("a short length is written as a long one")
    } else {
        Ok(length)
    }
}

/// The one item that `bytes` are, with nothing behind it.
pub(crate) fn whole_item(bytes: &[u8]) -> Result<RlpItem<'_>, RlpFault> {
    let (item, rest) = split_item(bytes)?;
    if rest.is_empty() {
        return Ok(item);
    }
    Err(RlpFault { offset: item.encoded.len(), what: "bytes are left over" })
}

/// The items of the one list that `bytes` are; at most `count_max` of them.
pub(crate) fn whole_list(bytes: &[u8], count_max: usize) -> Result<Vec<RlpItem<'_>>, RlpFault> {
    whole_item(bytes).and_then(|list| collect_items(&list, count_max))
}

/// The items of a list; at most `count_max` of them, because an item takes more memory than the one
/// byte that it may be.
pub(crate) fn collect_items<'a>(
    list: &RlpItem<'a>,
    count_max: usize,
) -> Result<Vec<RlpItem<'a>>, RlpFault> {
    let mut items = Vec::new();
    for item in list_items(list)? {
        if items.len() == count_max {
            return Err(RlpFault { offset: 0, what: "a list has too many items" });
        }
        items.push(item?);
    }
    Ok(items)
}

/// Reads the items of a list one by one, up to the first that is none.
pub(crate) fn list_items<'a>(list: &RlpItem<'a>) -> Result<RlpListItems<'a>, RlpFault> {
    if !list.is_list {
        return Err(RlpFault { offset: 0, what: "a list was expected" });
    }
    let offset = list.encoded.len().saturating_sub(list.payload.len());
    Ok(RlpListItems { rest: list.payload, offset })
}

/// The rest of a list, and how far it begins behind the list's first byte.
#[derive(Clone, Debug)]
pub(crate) struct RlpListItems<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for RlpListItems<'a> {
    type Item = Result<RlpItem<'a>, RlpFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match split_item(self.rest) {
            Ok((item, rest)) => {
                self.rest = rest;
                self.offset = self.offset.saturating_add(item.encoded.len());
                Some(Ok(item))
            }
            Err(fault) => {
                self.rest = &[];
                Some(Err(RlpFault { offset: self.offset.saturating_add(fault.offset), ..fault }))
            }
        }
    }
}

/// Appends a string.
pub(crate) fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    if !matches!(bytes, [byte] if *byte < STRING_BASE) {
        put_head(STRING_BASE, bytes.len(), out);
    }
    out.extend_from_slice(bytes);
}

/// The list whose items are encoded in `payload`.
pub(crate) fn list_of(payload: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(payload.len().saturating_add(4));
    put_head(LIST_BASE, payload.len(), &mut list);
    list.extend_from_slice(payload);
    list
}

/// The RLP of a position in a list, which is its key in a trie.
pub(crate) fn position_key(position: u64) -> Vec<u8> {
    let mut key = Vec::new();
    put_string(without_leading_zeros(&position.to_be_bytes()), &mut key);
    key
}

fn put_head(base: u8, payload_bytes: usize, out: &mut Vec<u8>) {
    let short = u8::try_from(payload_bytes).ok().filter(|_| payload_bytes <= SHORT_BYTES_MAX);
    if let Some(short) = short {
        out.push(base.saturating_add(short));
        return;
    }
    let length = payload_bytes.to_be_bytes();
    let length = without_leading_zeros(&length);
    let length_bytes = u8::try_from(length.len()).unwrap_or(u8::MAX);
    // 0xb7 and 0xf7 for one byte of length less one.
    out.push(base.saturating_add(55).saturating_add(length_bytes));
    out.extend_from_slice(length);
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn every_length_is_written_in_one_way_and_read_in_that_alone() {
        for count in [0, 1, 2, 55, 56, 255, 256, 65_535, 65_536] {
            let bytes = vec![0x80; count];
            let mut encoded = Vec::new();
            put_string(&bytes, &mut encoded);
            assert_eq!(encoded, alloy_rlp::encode(bytes.as_slice()), "{count}");
            assert_eq!(whole_item(&encoded).unwrap().string(), Some(bytes.as_slice()), "{count}");
            let list = list_of(&encoded);
            assert_eq!(whole_list(&list, 1).unwrap()[0].payload, bytes, "{count}");
        }
        for position in [0, 1, 127, 128, 255, 256, 65_536, u64::MAX] {
            assert_eq!(position_key(position), alloy_rlp::encode(position));
        }
    }

    #[test]
    fn what_is_not_canonical_is_refused_with_its_place() {
        let check = |bytes: &[u8], offset: usize, what: &str| {
            let fault = whole_list(bytes, 2).unwrap_err();
            assert_eq!((fault.offset, fault.what), (offset, what), "{bytes:?}");
        };
        check(&[], 0, "an item is missing");
        check(&[0x80], 0, "a list was expected");
        check(&[0xc0, 0], 1, "bytes are left over");
        check(&[0xc2, 0x81, 0x7f], 1, "a byte below 0x80 has a length in front");
        check(&[0xc2, 0x01, 0x82], 2, "an item is cut off");
        check(&[0xc1, 0xb8], 1, "a length is cut off");
        check(&[0xf8, 0x01, 0x01], 0, "a short length is written as a long one");
        check(&[0xf9, 0x00, 0x40], 0, "a length has leading zeros");
        check(&[0xff; 9], 0, "a length is too large");
        check(&[0xfb, 0xff, 0xff, 0xff, 0xff], 0, "an item is cut off");
        check(&[0xc3, 1, 2, 3], 0, "a list has too many items");
    }
}
