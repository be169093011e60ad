//! Headers: decoded as far as we know their fields, hashed as they came.

use alloy_consensus::Header;
use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, Encodable};
use thiserror::Error;

use crate::rlp::whole_list;

/// How many fields [`Header`] can hold: 15 of Frontier and 8 that forks appended. A header with
/// more is from a fork newer than this build; what follows is kept in its raw RLP.
pub(crate) const FIELDS_KNOWN: usize = 23;

/// Why bytes are not a header.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a header: {0}")]
pub struct HeaderError(#[from] alloy_rlp::Error);

/// The hash that names a block: keccak of its header's raw RLP.
#[must_use]
pub fn hash_header(rlp: &[u8]) -> B256 {
    keccak256(rlp)
}

/// Reads the fields that this build knows out of a header's raw RLP. Fields appended by a newer
/// fork must be well-formed and are passed over: the raw bytes stay the truth.
pub fn decode_header(rlp: &[u8]) -> Result<Header, HeaderError> {
    let whole_payload = whole_list(rlp)?;
    let mut payload = whole_payload;
    let mut known_bytes = 0;
    let mut field_count = 0_usize;
    while !payload.is_empty() {
        alloy_rlp::Header::decode_raw(&mut payload)?;
        field_count += 1;
        if field_count == FIELDS_KNOWN {
            known_bytes = whole_payload.len() - payload.len();
        }
    }
    if field_count <= FIELDS_KNOWN {
        return Ok(alloy_rlp::decode_exact(rlp)?);
    }
    let (known, _appended) = whole_payload.split_at(known_bytes);
    let mut shortened = Vec::with_capacity(rlp.len());
    alloy_rlp::Header { list: true, payload_length: known.len() }.encode(&mut shortened);
    shortened.extend_from_slice(known);
    Ok(Header::decode(&mut shortened.as_slice())?)
}

/// Whether the raw RLP has fields beyond those of the header that was decoded from it.
pub(crate) fn has_unknown_fields(header: &Header, rlp: &[u8]) -> bool {
    header.length() < rlp.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_appended_field(header: &Header, field: &[u8]) -> Vec<u8> {
        let plain = alloy_rlp::encode(header);
        let mut rest = plain.as_slice();
        let payload = alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
        let mut rlp = Vec::new();
        let payload_length = payload.len() + field.len();
        alloy_rlp::Header { list: true, payload_length }.encode(&mut rlp);
        rlp.extend_from_slice(payload);
        rlp.extend_from_slice(field);
        rlp
    }

    fn newest() -> Header {
        Header {
            base_fee_per_gas: Some(7),
            withdrawals_root: Some(B256::repeat_byte(1)),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::repeat_byte(2)),
            requests_hash: Some(B256::repeat_byte(3)),
            block_access_list_hash: Some(B256::repeat_byte(4)),
            slot_number: Some(5),
            ..Header::default()
        }
    }

    #[test]
    fn a_field_of_a_later_fork_is_passed_over_and_hashed() {
        let header = newest();
        let rlp = with_appended_field(&header, &[0x83, 1, 2, 3]);
        assert_eq!(decode_header(&rlp).unwrap(), header);
        assert_ne!(hash_header(&rlp), header.hash_slow());
        assert!(has_unknown_fields(&header, &rlp));
        assert!(!has_unknown_fields(&header, &alloy_rlp::encode(&header)));
    }

    #[test]
    fn the_newest_known_header_has_every_known_field() {
        let rlp = alloy_rlp::encode(newest());
        let mut rest = rlp.as_slice();
        let mut payload = alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
        let mut count = 0;
        while !payload.is_empty() {
            alloy_rlp::Header::decode_raw(&mut payload).unwrap();
            count += 1;
        }
        assert_eq!(count, FIELDS_KNOWN, "alloy's header has grown: raise FIELDS_KNOWN");
    }

    #[test]
    fn a_malformed_later_field_is_refused() {
        let rlp = with_appended_field(&newest(), &[0x83, 1, 2]);
        assert!(decode_header(&rlp).is_err());
    }

    #[test]
    fn bytes_after_the_header_are_refused() {
        let mut rlp = alloy_rlp::encode(Header::default());
        rlp.push(0x80);
        assert!(decode_header(&rlp).is_err());
    }
}
