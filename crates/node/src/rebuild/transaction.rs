//! A transaction as JSON has it, encoded again as EIP-2718.

use alloy_consensus::transaction::RlpEcdsaEncodableTx;
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use serde::Deserialize;

use super::RebuildFault;
use super::quantity::Quantity;

/// All that any type has; what a type lacks is absent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TxJson {
    r#type: Option<Quantity<u64>>,
    chain_id: Option<Quantity<u64>>,
    nonce: Quantity<u64>,
    gas: Quantity<u64>,
    to: Option<Address>,
    value: U256,
    input: Bytes,
    gas_price: Option<Quantity<u128>>,
    max_fee_per_gas: Option<Quantity<u128>>,
    max_priority_fee_per_gas: Option<Quantity<u128>>,
    access_list: Option<Vec<AccessJson>>,
    max_fee_per_blob_gas: Option<Quantity<u128>>,
    blob_versioned_hashes: Option<Vec<B256>>,
    authorization_list: Option<Vec<AuthorizationJson>>,
    v: Option<Quantity<u64>>,
    y_parity: Option<Quantity<u64>>,
    r: U256,
    s: U256,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessJson {
    address: Address,
    #[serde(default)]
    storage_keys: Vec<B256>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorizationJson {
    chain_id: U256,
    address: Address,
    nonce: Quantity<u64>,
    #[serde(alias = "v")]
    y_parity: Quantity<u64>,
    r: U256,
    s: U256,
}

impl TxJson {
    /// The encoding that the transactions root commits to.
    pub(super) fn encode(self, index: usize) -> Result<Bytes, RebuildFault> {
        let tx_type = self.r#type.map_or(0, |found| found.0);
        let place = TransactionPlace { index, tx_type };
        let mut out = Vec::with_capacity(self.input.len().saturating_add(256));
        match tx_type {
            0 => self.encode_legacy(place, &mut out)?,
            1 => self.encode_2930(place, &mut out)?,
            2 => self.encode_1559(place, &mut out)?,
            3 => self.encode_4844(place, &mut out)?,
            4 => self.encode_7702(place, &mut out)?,
            found => {
                return Err(RebuildFault::UnknownType { item: "transaction", index, found });
            }
        }
        Ok(out.into())
    }

    fn encode_legacy(self, place: TransactionPlace, out: &mut Vec<u8>) -> Result<(), RebuildFault> {
        let v = place.needed("v", self.v)?;
        // EIP-155 puts the chain id into v; before it, v is 27 or 28.
        let (chain_id, parity) = match v {
            27 | 28 => (None, v == 28),
            0 | 1 => (None, v == 1),
            _ => {
                let rest = v.checked_sub(35).ok_or(place.lacks("v that is a parity"))?;
                (Some(rest / 2), rest % 2 == 1)
            }
        };
        let transaction = TxLegacy {
            chain_id,
            nonce: self.nonce.0,
            gas_price: place.needed("gasPrice", self.gas_price)?,
            gas_limit: self.gas.0,
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            input: self.input,
        };
        transaction.eip2718_encode(&Signature::new(self.r, self.s, parity), out);
        Ok(())
    }

    fn encode_2930(self, place: TransactionPlace, out: &mut Vec<u8>) -> Result<(), RebuildFault> {
        let signature = self.signature(place)?;
        let transaction = TxEip2930 {
            chain_id: place.needed("chainId", self.chain_id)?,
            nonce: self.nonce.0,
            gas_price: place.needed("gasPrice", self.gas_price)?,
            gas_limit: self.gas.0,
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            access_list: access_list(place, self.access_list)?,
            input: self.input,
        };
        transaction.eip2718_encode(&signature, out);
        Ok(())
    }

    fn encode_1559(self, place: TransactionPlace, out: &mut Vec<u8>) -> Result<(), RebuildFault> {
        let signature = self.signature(place)?;
        let transaction = TxEip1559 {
            chain_id: place.needed("chainId", self.chain_id)?,
            nonce: self.nonce.0,
            gas_limit: self.gas.0,
            max_fee_per_gas: place.needed("maxFeePerGas", self.max_fee_per_gas)?,
            max_priority_fee_per_gas: place
                .needed("maxPriorityFeePerGas", self.max_priority_fee_per_gas)?,
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            access_list: access_list(place, self.access_list)?,
            input: self.input,
        };
        transaction.eip2718_encode(&signature, out);
        Ok(())
    }

    fn encode_4844(self, place: TransactionPlace, out: &mut Vec<u8>) -> Result<(), RebuildFault> {
        let signature = self.signature(place)?;
        let transaction = TxEip4844 {
            chain_id: place.needed("chainId", self.chain_id)?,
            nonce: self.nonce.0,
            gas_limit: self.gas.0,
            max_fee_per_gas: place.needed("maxFeePerGas", self.max_fee_per_gas)?,
            max_priority_fee_per_gas: place
                .needed("maxPriorityFeePerGas", self.max_priority_fee_per_gas)?,
            to: self.to.ok_or(place.lacks("to"))?,
            value: self.value,
            access_list: access_list(place, self.access_list)?,
            blob_versioned_hashes: self
                .blob_versioned_hashes
                .ok_or(place.lacks("blobVersionedHashes"))?,
            max_fee_per_blob_gas: place.needed("maxFeePerBlobGas", self.max_fee_per_blob_gas)?,
            input: self.input,
        };
        transaction.eip2718_encode(&signature, out);
        Ok(())
    }

    fn encode_7702(self, place: TransactionPlace, out: &mut Vec<u8>) -> Result<(), RebuildFault> {
        let signature = self.signature(place)?;
        let authorizations = self.authorization_list.ok_or(place.lacks("authorizationList"))?;
        let mut authorization_list = Vec::with_capacity(authorizations.len());
        for it in authorizations {
            let parity =
                u8::try_from(it.y_parity.0).map_err(|_| place.lacks("yParity of a byte"))?;
            let (chain_id, address, nonce) = (it.chain_id, it.address, it.nonce.0);
            let inner = Authorization { chain_id, address, nonce };
            authorization_list.push(SignedAuthorization::new_unchecked(inner, parity, it.r, it.s));
        }
        let transaction = TxEip7702 {
            chain_id: place.needed("chainId", self.chain_id)?,
            nonce: self.nonce.0,
            gas_limit: self.gas.0,
            max_fee_per_gas: place.needed("maxFeePerGas", self.max_fee_per_gas)?,
            max_priority_fee_per_gas: place
                .needed("maxPriorityFeePerGas", self.max_priority_fee_per_gas)?,
            to: self.to.ok_or(place.lacks("to"))?,
            value: self.value,
            access_list: access_list(place, self.access_list)?,
            authorization_list,
            input: self.input,
        };
        transaction.eip2718_encode(&signature, out);
        Ok(())
    }

    /// Typed transactions have a parity; older nodes call it v.
    fn signature(&self, place: TransactionPlace) -> Result<Signature, RebuildFault> {
        match place.needed("yParity", self.y_parity.or(self.v))? {
            parity @ (0 | 1) => Ok(Signature::new(self.r, self.s, parity == 1)),
            _ => Err(place.lacks("yParity of 0 or 1")),
        }
    }
}

/// Which transaction, for what is missing in it.
#[derive(Clone, Copy)]
struct TransactionPlace {
    index: usize,
    tx_type: u64,
}

impl TransactionPlace {
    fn lacks(self, field: &'static str) -> RebuildFault {
        let Self { index, tx_type } = self;
        RebuildFault::Invalid(format!("transaction {index} of type {tx_type} has no {field}"))
    }

    fn needed<T>(self, name: &'static str, field: Option<Quantity<T>>) -> Result<T, RebuildFault> {
        field.map(|quantity| quantity.0).ok_or_else(|| self.lacks(name))
    }
}

fn access_list(
    place: TransactionPlace,
    items: Option<Vec<AccessJson>>,
) -> Result<AccessList, RebuildFault> {
    let items = items.ok_or(place.lacks("accessList"))?;
    let item =
        |it: AccessJson| AccessListItem { address: it.address, storage_keys: it.storage_keys };
    Ok(AccessList(items.into_iter().map(item).collect()))
}
