//! The two readings of RLP lists that alloy leaves to its users.

use alloy_rlp::{Error, Header, Result};

/// The payload of a list that is the whole input: bytes after it are refused.
pub fn whole_list(rlp: &[u8]) -> Result<&[u8]> {
    let mut rest = rlp;
    let payload = Header::decode_bytes(&mut rest, true)?;
    if rest.is_empty() { Ok(payload) } else { Err(Error::UnexpectedLength) }
}

/// Takes one list, head included, off the front.
pub(crate) fn take_list<'a>(input: &mut &'a [u8]) -> Result<&'a [u8]> {
    let whole = *input;
    Header::decode_bytes(input, true)?;
    let (list, _) = whole.split_at(whole.len() - input.len());
    Ok(list)
}
