//! A block as JSON: its header, and its transactions as hashes or in full.

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, Bloom, keccak256};
use alloy_rlp::Decodable as _;
use chain::decode_header;
use store::{BlockExtras, BlockFacts, HashedBlock, StoredBlock, StoredHeader, TxIndex};

use super::transaction::{TransactionLocation, put_transaction};
use super::{NotABlock, Object, put_data, put_list, try_put_list};

/// What a transaction as JSON has beside the digits of its own bytes, about.
const TRANSACTION_NAMES_BYTES: usize = 640;
/// What a hash takes as JSON in a list.
const HASH_BYTES: usize = "\"0x\",".len() + 64;
/// What may follow the hashes, withdrawals most of all, about. Room for all is made at once: growing a
/// long answer copies it each time.
const REST_BYTES: usize = 3072;

/// Appends a block with the hashes of its transactions.
pub(crate) fn put_hashed_block(out: &mut Vec<u8>, block: &HashedBlock) -> Result<(), NotABlock> {
    let HashedBlock { header, extras, hashes } = block;
    put_block(out, header, extras, |out, _| {
        out.reserve(hashes.len().saturating_mul(HASH_BYTES).saturating_add(REST_BYTES));
        put_list(out, hashes, |out, hash| put_data(out, hash.as_slice()));
        Ok(())
    })
}

/// Appends a block with its transactions.
pub(crate) fn put_full_block(out: &mut Vec<u8>, block: &StoredBlock) -> Result<(), NotABlock> {
    let StoredBlock { header, extras, rows } = block;
    put_block(out, header, extras, |out, decoded| {
        // Two digits a byte, and the names of members.
        let names = rows.len().saturating_mul(TRANSACTION_NAMES_BYTES);
        let bytes = usize::try_from(header.block_bytes).unwrap_or_default();
        out.reserve(bytes.saturating_mul(2).saturating_add(names));
        let facts = facts_of(header, decoded);
        let rows = rows.iter().zip(rows.hashes()).zip(0..);
        try_put_list(out, rows, |out, ((row, hash), index)| {
            put_transaction(
                out,
                row,
                TransactionLocation { block: &facts, index: TxIndex(index), hash },
            )
        })
    })
}

/// Appends a block; its transactions are for `put_transactions`.
fn put_block(
    out: &mut Vec<u8>,
    stored: &StoredHeader,
    extras: &BlockExtras,
    put_transactions: impl FnOnce(&mut Vec<u8>, &Header) -> Result<(), NotABlock>,
) -> Result<(), NotABlock> {
    let header = decode_header(&stored.rlp).map_err(|_| NotABlock)?;
    let mut object = Object::begin(out);
    put_header_members(&mut object, &header, stored.hash, Some(&header.logs_bloom));
    put_size_and_uncles(&mut object, stored, extras)?;
    put_transactions(object.member("transactions"), &header)?;
    put_withdrawals(&mut object, extras)?;
    object.end();
    Ok(())
}

pub(super) fn put_size_and_uncles(
    object: &mut Object<'_>,
    stored: &StoredHeader,
    extras: &BlockExtras,
) -> Result<(), NotABlock> {
    object.quantity("size", stored.block_bytes);
    let uncles = list_items(&extras.ommers)?;
    put_list(object.member("uncles"), uncles, |out, uncle| {
        put_data(out, keccak256(uncle).as_slice());
    });
    Ok(())
}

/// Withdrawals, from the fork on that has them.
pub(super) fn put_withdrawals(
    object: &mut Object<'_>,
    extras: &BlockExtras,
) -> Result<(), NotABlock> {
    if let Some(withdrawals) = &extras.withdrawals {
        let list = Vec::<Withdrawal>::decode(&mut withdrawals.as_ref()).map_err(|_| NotABlock)?;
        put_list(object.member("withdrawals"), &list, put_withdrawal);
    }
    Ok(())
}

/// Appends a header alone: what `eth_getHeaderBy...` answers.
pub(crate) fn put_header(out: &mut Vec<u8>, stored: &StoredHeader) -> Result<(), NotABlock> {
    let header = decode_header(&stored.rlp).map_err(|_| NotABlock)?;
    let mut object = Object::begin(out);
    put_header_members(&mut object, &header, stored.hash, Some(&header.logs_bloom));
    object.end();
    Ok(())
}

/// Appends a header as Erigon writes it: null for the fields of later forks, but for the slot.
pub(crate) fn put_erigon_header(out: &mut Vec<u8>, stored: &StoredHeader) -> Result<(), NotABlock> {
    let header = decode_header(&stored.rlp).map_err(|_| NotABlock)?;
    let mut object = Object::begin(out);
    put_header_members(&mut object, &header, stored.hash, Some(&header.logs_bloom));
    for (name, is_there) in [
        ("baseFeePerGas", header.base_fee_per_gas.is_some()),
        ("withdrawalsRoot", header.withdrawals_root.is_some()),
        ("blobGasUsed", header.blob_gas_used.is_some()),
        ("excessBlobGas", header.excess_blob_gas.is_some()),
        ("parentBeaconBlockRoot", header.parent_beacon_block_root.is_some()),
        ("requestsHash", header.requests_hash.is_some()),
        ("blockAccessListHash", header.block_access_list_hash.is_some()),
    ] {
        if !is_there {
            object.raw(name, "null");
        }
    }
    object.end();
    Ok(())
}

/// Appends an uncle: a block of which only the header is known.
pub(crate) fn put_uncle(out: &mut Vec<u8>, rlp: &[u8]) -> Result<(), NotABlock> {
    let header = decode_header(rlp).map_err(|_| NotABlock)?;
    let mut object = Object::begin(out);
    put_header_members(&mut object, &header, keccak256(rlp), Some(&header.logs_bloom));
    // A block with this header and nothing in it: two empty lists.
    let payload_length = rlp.len().saturating_add(2);
    let bytes = alloy_rlp::Header { list: true, payload_length }.length_with_payload();
    object.quantity("size", u64::try_from(bytes).unwrap_or(u64::MAX));
    object.raw("uncles", "[]");
    object.end();
    Ok(())
}

/// The uncles of a block, each as its raw RLP.
pub(crate) fn list_items(list: &[u8]) -> Result<Vec<&[u8]>, NotABlock> {
    let mut rest = chain::whole_list(list).map_err(|_| NotABlock)?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let whole = rest;
        let head = alloy_rlp::Header::decode(&mut rest).map_err(|_| NotABlock)?;
        rest = rest.get(head.payload_length..).ok_or(NotABlock)?;
        items.push(whole.get(..whole.len().saturating_sub(rest.len())).ok_or(NotABlock)?);
    }
    Ok(items)
}

/// What transactions of a block say of it.
pub(crate) fn facts_of(stored: &StoredHeader, header: &Header) -> BlockFacts {
    BlockFacts {
        number: stored.number,
        hash: stored.hash,
        timestamp: header.timestamp,
        base_fee: header.base_fee_per_gas,
        excess_blob_gas: header.excess_blob_gas,
    }
}

/// The members of a header. Without a bloom, that is null.
pub(super) fn put_header_members(
    object: &mut Object<'_>,
    header: &Header,
    hash: B256,
    bloom: Option<&Bloom>,
) {
    object.data("hash", hash.as_slice());
    object.data("parentHash", header.parent_hash.as_slice());
    object.data("sha3Uncles", header.ommers_hash.as_slice());
    object.data("miner", header.beneficiary.as_slice());
    object.data("stateRoot", header.state_root.as_slice());
    object.data("transactionsRoot", header.transactions_root.as_slice());
    object.data("receiptsRoot", header.receipts_root.as_slice());
    match bloom {
        Some(bloom) => object.data("logsBloom", bloom.as_slice()),
        None => object.raw("logsBloom", "null"),
    }
    object.quantity_u256("difficulty", &header.difficulty);
    object.quantity("number", header.number);
    object.quantity("gasLimit", header.gas_limit);
    object.quantity("gasUsed", header.gas_used);
    object.quantity("timestamp", header.timestamp);
    object.data("extraData", &header.extra_data);
    object.data("mixHash", header.mix_hash.as_slice());
    object.data("nonce", header.nonce.as_slice());
    if let Some(base_fee) = header.base_fee_per_gas {
        object.quantity("baseFeePerGas", base_fee);
    }
    if let Some(root) = header.withdrawals_root {
        object.data("withdrawalsRoot", root.as_slice());
    }
    if let Some(gas) = header.blob_gas_used {
        object.quantity("blobGasUsed", gas);
    }
    if let Some(gas) = header.excess_blob_gas {
        object.quantity("excessBlobGas", gas);
    }
    if let Some(root) = header.parent_beacon_block_root {
        object.data("parentBeaconBlockRoot", root.as_slice());
    }
    if let Some(hash) = header.requests_hash {
        object.data("requestsHash", hash.as_slice());
    }
    if let Some(hash) = header.block_access_list_hash {
        object.data("blockAccessListHash", hash.as_slice());
    }
    if let Some(number) = header.slot_number {
        object.quantity("slotNumber", number);
    }
}

fn put_withdrawal(out: &mut Vec<u8>, withdrawal: &Withdrawal) {
    let mut object = Object::begin(out);
    object.quantity("index", withdrawal.index);
    object.quantity("validatorIndex", withdrawal.validator_index);
    object.data("address", withdrawal.address.as_slice());
    object.quantity("amount", withdrawal.amount);
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use chain::BlockNumber;

    #[test]
    fn a_header_of_the_next_fork_shows_its_fields_and_none_of_others() {
        let shown = |header: &Header| {
            let rlp = alloy_rlp::encode(header);
            let hash = keccak256(&rlp);
            let stored = StoredHeader {
                number: BlockNumber(header.number),
                hash,
                rlp: rlp.into(),
                transaction_count: 0,
                block_bytes: 0,
            };
            let mut out = Vec::new();
            put_header(&mut out, &stored).unwrap();
            serde_json::from_slice::<serde_json::Value>(&out).unwrap()
        };
        let next = Header {
            base_fee_per_gas: Some(7),
            withdrawals_root: Some(B256::ZERO),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            requests_hash: Some(B256::ZERO),
            block_access_list_hash: Some(B256::repeat_byte(4)),
            slot_number: Some(5),
            ..Header::default()
        };
        let json = shown(&next);
        assert_eq!(json["blockAccessListHash"], B256::repeat_byte(4).to_string());
        assert_eq!(json["slotNumber"], "0x5");
        assert_eq!(json.as_object().unwrap().len(), 16 + 8);
        assert_eq!(shown(&Header::default()).as_object().unwrap().len(), 16);
    }
}
