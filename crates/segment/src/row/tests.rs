//! Transactions of every chain in rows that leave the chain out.

use alloy_consensus::{Signed, TxLegacy};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Signature, TxKind, address};

use super::*;
use crate::row_set::Row;
use crate::tables::Tables;

fn legacy(chain_id: Option<u64>) -> Transaction {
    let tx = TxLegacy {
        chain_id,
        nonce: 7,
        gas_price: 20_000_000_000,
        gas_limit: 21_000,
        to: TxKind::Call(address!("00000000000000000000000000000000000000aa")),
        value: U256::from(1_000_000_000_000_000_000_u64),
        input: Bytes::from_static(&[1, 2, 3, 4, 5]),
    };
    let signature = Signature::new(U256::from(11), U256::from(12), true);
    let envelope = EthereumTxEnvelope::Legacy(Signed::new_unhashed(tx, signature));
    let sender = address!("2222222222222222222222222222222222222222");
    Transaction { encoded: envelope.encoded_2718().into(), envelope, sender }
}

/// Writes a transaction into a page of a chain and reads it back; gives back the row's bytes.
fn check(own: Option<u64>, page: Option<u64>, is_raw: bool) -> usize {
    let transaction = legacy(own);
    let source =
        RowSource { transaction: &transaction, receipt: None, gas_before: 0, chain_id: page };
    assert_eq!(source.says_chain(), !is_raw);
    let (mut row, mut payloads) = (Vec::new(), Vec::new());
    let tables = Tables::default();
    encode_row(&mut row, &Codebook::new(&tables), source, &mut payloads, is_raw);
    assert!(payloads.is_empty());
    let mut signature = [0; 64];
    signature[31] = 11;
    signature[63] = 12;
    let context = RowContext {
        tables: &tables,
        chain_id: page,
        receipt: None,
        is_whole: true,
        signature: &signature,
        senders: Senders::Told,
    };
    let read = Row::read(|slot| decode_row(&row, context, &mut || None, slot)).unwrap();
    let read = read.view();
    assert_eq!(*read.encoded, *transaction.encoded);
    assert_eq!((read.sender, read.receipt), (transaction.sender, None));
    row.len()
}

#[test]
fn a_transaction_of_another_chain_than_its_page_is_kept_raw() {
    let short = check(Some(1), Some(1), false);
    assert_eq!(check(None, Some(1), false), short);
    assert_eq!(check(None, None, false), short);
    assert_eq!(check(Some(u64::MAX), Some(u64::MAX), false), short);
    assert!(check(Some(5), Some(1), true) > short);
    assert!(check(Some(5), None, true) > short);
}
