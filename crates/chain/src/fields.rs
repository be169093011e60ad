//! The fields of an encoded transaction, read where they lie.
//!
//! An answer shows each field once: building a transaction for that would copy all of them and
//! allocate for most. What is read here was decoded by alloy when its block was verified; bytes
//! that cannot be a transaction are refused all the same.

use alloy_primitives::Address;
use alloy_rlp::{Decodable as _, Error, Header, Result};

use crate::rlp::whole_list;

/// A transaction in its EIP-2718 form, taken apart without copying. Numbers that may be wider than
/// 128 bits are left as they are encoded: big-endian, without zeros in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFields<'a> {
    /// 0 to 4.
    pub tx_type: u8,
    /// The chain that it was signed for; `None` before EIP-155.
    pub chain_id: Option<u64>,
    /// How many transactions its sender sent before.
    pub nonce: u64,
    /// What it pays at most for a unit of gas: `gasPrice` before EIP-1559.
    pub fee_max: u128,
    /// What the block's producer gets of that at most, from EIP-1559 on.
    pub tip_max: Option<u128>,
    /// The gas that it may use.
    pub gas_limit: u64,
    /// Whom it calls; `None` if it creates a contract.
    pub to: Option<Address>,
    /// What it sends.
    pub value: &'a [u8],
    /// Call data, or code.
    pub input: &'a [u8],
    /// Addresses and storage keys, from EIP-2930 on.
    pub access_list: Option<RlpItems<'a>>,
    /// What only a blob transaction has.
    pub blobs: Option<BlobFields<'a>>,
    /// Authorizations, where it sets code.
    pub authorizations: Option<RlpItems<'a>>,
    /// The signature's parity; in a legacy transaction with 27, or with the chain id, added.
    pub v: &'a [u8],
    /// The signature's r.
    pub r: &'a [u8],
    /// The signature's s.
    pub s: &'a [u8],
}

/// What only a blob transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFields<'a> {
    /// What it pays at most for a unit of blob gas.
    pub fee_max: u128,
    /// The versioned hashes of its blobs.
    pub hashes: RlpItems<'a>,
}

impl<'a> TxFields<'a> {
    /// Takes a transaction apart.
    pub fn read(encoded: &'a [u8]) -> Result<Self> {
        let (first, typed) = encoded.split_first().ok_or(Error::InputTooShort)?;
        if *first > LEGACY_MIN {
            return read_legacy(whole_list(encoded)?);
        }
        let mut rest = whole_list(typed)?;
        let fields = read_typed(*first, &mut rest)?;
        ended(rest, fields)
    }

    /// What a unit of gas cost in a block with this base fee.
    #[must_use]
    pub fn effective_gas_price(&self, base_fee: Option<u64>) -> u128 {
        match (self.tip_max, base_fee) {
            (Some(tip), Some(base_fee)) => {
                self.fee_max.min(tip.saturating_add(u128::from(base_fee)))
            }
            (Some(_), None) | (None, _) => self.fee_max,
        }
    }
}

/// A list begins with a byte above this, a type is one below it.
const LEGACY_MIN: u8 = 0x7f;

fn read_legacy(mut rest: &[u8]) -> Result<TxFields<'_>> {
    let rest = &mut rest;
    let (nonce, fee_max, gas_limit) = (u64::decode(rest)?, u128::decode(rest)?, u64::decode(rest)?);
    let (to, value, input) = (read_to(rest)?, read_number(rest)?, string(rest)?);
    let (v, r, s) = (read_number(rest)?, read_number(rest)?, read_number(rest)?);
    let fields = TxFields {
        tx_type: 0,
        chain_id: signed_chain(v)?,
        nonce,
        fee_max,
        tip_max: None,
        gas_limit,
        to,
        value,
        input,
        access_list: None,
        blobs: None,
        authorizations: None,
        v,
        r,
        s,
    };
    ended(rest, fields)
}

/// The chain in a legacy signature: 35 and twice its id, and the parity, are one number.
fn signed_chain(v: &[u8]) -> Result<Option<u64>> {
    let v = v.iter().try_fold(0_u128, |sum, byte| {
        sum.checked_mul(256).map(|sum| sum | u128::from(*byte)).ok_or(Error::Overflow)
    })?;
    match v.checked_sub(35) {
        Some(rest) => u64::try_from(rest / 2).map(Some).map_err(|_| Error::Overflow),
        None => Ok(None),
    }
}

fn read_typed<'a>(tx_type: u8, rest: &mut &'a [u8]) -> Result<TxFields<'a>> {
    if !(1..=4).contains(&tx_type) {
        return Err(Error::Custom("unknown transaction type"));
    }
    let (chain_id, nonce) = (u64::decode(rest)?, u64::decode(rest)?);
    let tip_max = if tx_type >= 2 { Some(u128::decode(rest)?) } else { None };
    let (fee_max, gas_limit) = (u128::decode(rest)?, u64::decode(rest)?);
    let (to, value, input) = (read_to(rest)?, read_number(rest)?, string(rest)?);
    let access_list = Some(RlpItems(list(rest)?));
    let blobs = if tx_type == 3 {
        Some(BlobFields { fee_max: u128::decode(rest)?, hashes: RlpItems(list(rest)?) })
    } else {
        None
    };
    let authorizations = if tx_type == 4 { Some(RlpItems(list(rest)?)) } else { None };
    let (v, r, s) = (read_number(rest)?, read_number(rest)?, read_number(rest)?);
    Ok(TxFields {
        tx_type,
        chain_id: Some(chain_id),
        nonce,
        fee_max,
        tip_max,
        gas_limit,
        to,
        value,
        input,
        access_list,
        blobs,
        authorizations,
        v,
        r,
        s,
    })
}

fn ended<'a>(rest: &[u8], fields: TxFields<'a>) -> Result<TxFields<'a>> {
    if rest.is_empty() { Ok(fields) } else { Err(Error::UnexpectedLength) }
}

fn string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    Header::decode_bytes(rest, false)
}

fn list<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    Header::decode_bytes(rest, true)
}

fn read_to(rest: &mut &[u8]) -> Result<Option<Address>> {
    match string(rest)? {
        [] => Ok(None),
        to => Address::try_from(to).map(Some).map_err(|_| Error::UnexpectedLength),
    }
}

/// A number of up to 256 bits as it is encoded.
fn read_number<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    match string(rest)? {
        [0, ..] => Err(Error::LeadingZero),
        number if number.len() > 32 => Err(Error::Overflow),
        number => Ok(number),
    }
}

/// The payload of an RLP list, item by item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlpItems<'a>(&'a [u8]);

impl<'a> RlpItems<'a> {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next item as a string; `None` after the last, or if there is none such.
    pub fn next_string(&mut self) -> Option<&'a [u8]> {
        string(&mut self.0).ok()
    }

    /// The next item as a list; `None` after the last, or if there is none such.
    pub fn next_list(&mut self) -> Option<Self> {
        list(&mut self.0).ok().map(RlpItems)
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{
        EthereumTxEnvelope, SignableTransaction as _, Transaction as _, TxEip1559, TxEip2930,
        TxEip4844, TxEip7702, TxLegacy,
    };
    use alloy_eips::eip2718::Encodable2718 as _;
    use alloy_eips::eip2930::{AccessList, AccessListItem};
    use alloy_eips::eip7702::{Authorization, SignedAuthorization};
    use alloy_primitives::{B256, Bytes, Signature, TxKind, U256};

    use super::*;

    type Envelope = EthereumTxEnvelope<TxEip4844>;

    fn access_list() -> AccessList {
        let storage_keys = vec![B256::repeat_byte(1), B256::ZERO];
        let item = AccessListItem { address: Address::repeat_byte(8), storage_keys };
        AccessList(vec![item, AccessListItem::default()])
    }

    /// One of each type, and each with its smallest and its largest fields.
    fn transactions() -> Vec<Envelope> {
        let signature = Signature::new(U256::MAX, U256::from(1), true);
        let (input, value) = (Bytes::from_static(&[7; 60]), U256::MAX);
        let to = Address::repeat_byte(9);
        let authorization = Authorization { chain_id: U256::ZERO, address: to, nonce: u64::MAX };
        let authorization =
            SignedAuthorization::new_unchecked(authorization, 1, U256::from(2), U256::MAX);
        let (gas_limit, nonce, chain_id) = (u64::MAX, u64::MAX, u64::MAX);
        let (gas_price, max_fee_per_gas) = (u128::MAX, u128::MAX);
        let legacy = TxLegacy { chain_id: None, to: TxKind::Create, ..TxLegacy::default() };
        vec![
            legacy.into_signed(Signature::new(U256::ZERO, U256::ZERO, false)).into(),
            TxLegacy {
                chain_id: Some(chain_id),
                nonce,
                gas_price,
                gas_limit,
                to: to.into(),
                value,
                input: input.clone(),
            }
            .into_signed(signature)
            .into(),
            TxEip2930 { access_list: access_list(), ..TxEip2930::default() }
                .into_signed(signature)
                .into(),
            TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas,
                max_priority_fee_per_gas: 3,
                to: to.into(),
                value,
                access_list: AccessList::default(),
                input: input.clone(),
            }
            .into_signed(signature)
            .into(),
            TxEip4844 {
                max_fee_per_blob_gas: u128::MAX,
                blob_versioned_hashes: vec![B256::repeat_byte(1), B256::repeat_byte(2)],
                input,
                to,
                ..TxEip4844::default()
            }
            .into_signed(signature)
            .into(),
            TxEip7702 { authorization_list: vec![authorization], ..TxEip7702::default() }
                .into_signed(signature)
                .into(),
        ]
    }

    fn number(bytes: &[u8]) -> U256 {
        U256::from_be_slice(bytes)
    }

    fn assert_same(fields: &TxFields<'_>, envelope: &Envelope) {
        assert_eq!(fields.tx_type, u8::from(envelope.tx_type()));
        assert_eq!((fields.chain_id, fields.nonce), (envelope.chain_id(), envelope.nonce()));
        assert_eq!(fields.fee_max, envelope.max_fee_per_gas());
        assert_eq!(fields.tip_max, envelope.max_priority_fee_per_gas());
        assert_eq!((fields.gas_limit, fields.to), (envelope.gas_limit(), envelope.to()));
        assert_eq!(number(fields.value), envelope.value());
        assert_eq!(fields.input, envelope.input().as_ref());
        let signature = envelope.signature();
        assert_eq!((number(fields.r), number(fields.s)), (signature.r(), signature.s()));
        for base_fee in [None, Some(0), Some(5), Some(u64::MAX)] {
            let expected = envelope.effective_gas_price(base_fee);
            assert_eq!(fields.effective_gas_price(base_fee), expected);
        }
    }

    #[test]
    fn fields_are_those_that_alloy_reads() {
        for envelope in transactions() {
            let encoded = envelope.encoded_2718();
            assert_same(&TxFields::read(&encoded).unwrap(), &envelope);
        }
    }

    #[test]
    fn lists_come_apart_item_by_item() {
        let all = <[Envelope; 6]>::try_from(transactions()).unwrap();
        let [.., with_access, _, with_blobs, with_authorizations] = all;
        let encoded = with_access.encoded_2718();
        let mut list = TxFields::read(&encoded).unwrap().access_list.unwrap();
        for expected in access_list().0 {
            let mut item = list.next_list().unwrap();
            assert_eq!(item.next_string().unwrap(), expected.address.as_slice());
            let mut keys = item.next_list().unwrap();
            for key in expected.storage_keys {
                assert_eq!(keys.next_string().unwrap(), key.as_slice());
            }
            assert!(keys.is_empty() && keys.next_string().is_none() && item.is_empty());
        }
        assert!(list.is_empty() && list.next_list().is_none());
        let encoded = with_blobs.encoded_2718();
        let mut blobs = TxFields::read(&encoded).unwrap().blobs.unwrap();
        assert_eq!(blobs.fee_max, u128::MAX);
        assert_eq!(blobs.hashes.next_string().unwrap(), [1; 32]);
        assert_eq!(blobs.hashes.next_string().unwrap(), [2; 32]);
        assert!(blobs.hashes.is_empty());
        let encoded = with_authorizations.encoded_2718();
        let mut list = TxFields::read(&encoded).unwrap().authorizations.unwrap();
        assert_eq!(list.next_list().unwrap().next_string().unwrap(), [0; 0]);
        assert!(list.is_empty());
    }

    #[test]
    fn what_is_cut_or_longer_is_refused_at_every_byte() {
        for envelope in transactions() {
            let encoded = envelope.encoded_2718();
            for length in 0..encoded.len() {
                assert!(TxFields::read(&encoded[..length]).is_err(), "cut to {length} bytes");
            }
            let longer = [encoded.as_slice(), &[0]].concat();
            assert!(TxFields::read(&longer).is_err());
        }
        assert!(TxFields::read(&[5, 0xc0]).is_err());
        assert!(TxFields::read(&[]).is_err());
    }
}
