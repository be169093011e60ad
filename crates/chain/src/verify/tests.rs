//! A small block with one of everything, and every way in which it can be false.

use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{
    Eip658Value, Receipt as Fields, SignableTransaction, TxEip1559, TxLegacy, TxType,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Log, LogData, Signature, TxKind, U256, b256};

use super::*;
use crate::trust::Anchor;

const SECRET: B256 = B256::repeat_byte(7);
/// The order of secp256k1: s and n - s are both valid, and one of them is high.
const CURVE_ORDER: U256 = U256::from_be_bytes(
    b256!("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").0,
);

struct Made {
    candidate: Candidate,
    header: Header,
}

impl Made {
    /// Puts a changed header into the candidate.
    fn with_header(mut self, change: impl FnOnce(&mut Header)) -> Candidate {
        change(&mut self.header);
        self.candidate.header = alloy_rlp::encode(&self.header).into();
        self.candidate
    }
}

fn sign<T: SignableTransaction<Signature>>(tx: T, is_high_s: bool) -> Bytes
where
    EthereumTxEnvelope<TxEip4844>: From<alloy_consensus::Signed<T>>,
{
    let mut signature = crate::sign(SECRET, tx.signature_hash()).unwrap();
    if is_high_s {
        signature = Signature::new(signature.r(), CURVE_ORDER - signature.s(), !signature.v());
    }
    let envelope: EthereumTxEnvelope<TxEip4844> = tx.into_signed(signature).into();
    envelope.encoded_2718().into()
}

fn legacy(is_high_s: bool) -> Bytes {
    let to = TxKind::Call(Address::repeat_byte(1));
    sign(TxLegacy { gas_limit: 21_000, to, ..TxLegacy::default() }, is_high_s)
}

fn receipt(tx_type: TxType, cumulative_gas_used: u64, logs: Vec<Log>) -> Receipt {
    let status = Eip658Value::Eip658(true);
    Receipt { tx_type, fields: Fields { status, cumulative_gas_used, logs } }
}

fn body_and_receipts() -> (Body, Vec<Receipt>) {
    let to = TxKind::Call(Address::repeat_byte(2));
    let second = sign(TxEip1559 { chain_id: 1, to, ..TxEip1559::default() }, false);
    let log = Log {
        address: Address::repeat_byte(3),
        data: LogData::new_unchecked(vec![B256::repeat_byte(4)], Bytes::from_static(b"data")),
    };
    let ommer = Header { number: 41, ..Header::default() };
    let withdrawal = Withdrawal { index: 1, amount: 5, ..Withdrawal::default() };
    let body = Body {
        transactions: vec![legacy(false), second],
        ommers: alloy_rlp::encode(vec![ommer]).into(),
        withdrawals: Some(alloy_rlp::encode(vec![withdrawal]).into()),
    };
    let receipts =
        vec![receipt(TxType::Legacy, 21_000, vec![log]), receipt(TxType::Eip1559, 50_000, vec![])];
    (body, receipts)
}

fn header_of(body: &Body, receipts: &[Receipt]) -> Header {
    let encoded: Vec<Vec<u8>> = receipts
        .iter()
        .map(|receipt| {
            let mut out = Vec::new();
            receipt.encode_2718(&logs_bloom(&receipt.fields.logs), &mut out);
            out
        })
        .collect();
    let mut logs_bloom = Bloom::ZERO;
    for receipt in receipts {
        logs_bloom.accrue_logs(&receipt.fields.logs);
    }
    let withdrawals = body.withdrawals.as_ref();
    let withdrawals =
        withdrawals.map(|rlp| alloy_rlp::decode_exact::<Vec<Withdrawal>>(rlp).unwrap());
    Header {
        number: 42,
        parent_hash: PARENT_HASH,
        transactions_root: alloy_trie::root::ordered_trie_root_encoded(&body.transactions),
        ommers_hash: keccak256(&body.ommers),
        withdrawals_root: withdrawals.map(|list| proofs::calculate_withdrawals_root(&list)),
        receipts_root: alloy_trie::root::ordered_trie_root_encoded(&encoded),
        logs_bloom,
        gas_used: receipts.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used),
        base_fee_per_gas: Some(7),
        ..Header::default()
    }
}

const PARENT_HASH: B256 = B256::repeat_byte(9);

/// A block for which the header is made after `change` touched its parts.
fn made_with(change: impl FnOnce(&mut Body, &mut Vec<Receipt>)) -> Made {
    let (mut body, mut receipts) = body_and_receipts();
    change(&mut body, &mut receipts);
    let header = header_of(&body, &receipts);
    let candidate = Candidate {
        header: alloy_rlp::encode(&header).into(),
        body,
        receipts: Some(receipts),
        total_difficulty: None,
    };
    Made { candidate, header }
}

fn made() -> Made {
    made_with(|_, _| {})
}

fn verify_with(
    spec: &ChainSpec,
    anchors: &Anchors,
    candidate: Candidate,
) -> Result<Verified<Block>, Mismatch> {
    Verifier::new(spec, anchors, Start::After { number: 41, hash: PARENT_HASH }).verify(candidate)
}

fn verify(candidate: Candidate) -> Result<Verified<Block>, Mismatch> {
    verify_with(&ChainSpec::bare("test", None, None), &Anchors::none(), candidate)
}

fn check(candidate: Candidate, part: BlockPart, message: &str) {
    let mismatch = verify(candidate).unwrap_err();
    let shown = mismatch.to_string();
    assert!(shown.starts_with("block 42: "), "{shown}");
    assert!(shown.contains(message), "{shown}\nshould say: {message}");
    assert_eq!(mismatch.fault.part(), part, "{shown}");
}

#[test]
fn a_true_block_is_verified_with_its_senders() {
    let block = verify(made().candidate).unwrap();
    let sender = sender_of_secret();
    assert_eq!(block.transactions.iter().map(|tx| tx.sender).collect::<Vec<_>>(), [sender, sender]);
    assert_eq!(block.hash, block.header.hash_slow());
    assert_eq!((block.ommers.len(), block.withdrawals.as_ref().map(Vec::len)), (1, Some(1)));
}

#[test]
fn a_verified_block_gives_back_its_candidate() {
    let mut candidate = made().candidate;
    assert_eq!(verify(candidate.clone()).unwrap().to_candidate(), candidate);
    candidate.receipts = None;
    assert_eq!(verify(candidate.clone()).unwrap().to_candidate(), candidate);
}

fn sender_of_secret() -> Address {
    let hash = B256::repeat_byte(1);
    let signature = crate::sign(SECRET, hash).unwrap();
    signature.recover_address_from_prehash(&hash).unwrap()
}

#[test]
fn a_header_in_the_wrong_place_is_refused() {
    let text = "number is 43, expected 42";
    check(made().with_header(|header| header.number = 43), BlockPart::Header, text);
    let text = format!("parent hash is {}, the block before has hash {PARENT_HASH}", B256::ZERO);
    check(made().with_header(|header| header.parent_hash = B256::ZERO), BlockPart::Header, &text);
    let mut candidate = made().candidate;
    candidate.header = Bytes::from_static(&[0xc0]);
    check(candidate, BlockPart::Header, "not a header");
}

#[test]
fn an_anchor_with_another_hash_is_refused() {
    let anchor = Anchor { number: 42, hash: B256::repeat_byte(8) };
    let anchors = Anchors::none().with_operator(anchor).unwrap();
    let spec = ChainSpec::bare("test", None, None);
    let mismatch = verify_with(&spec, &anchors, made().candidate).unwrap_err();
    assert!(matches!(*mismatch.fault, Fault::Anchor { expected, .. } if expected == anchor.hash));
}

#[test]
fn bodies_that_the_header_does_not_commit_to_are_refused() {
    let mut candidate = made().candidate;
    candidate.body.transactions.swap(0, 1);
    check(candidate, BlockPart::Body, "transactions give root");

    let mut candidate = made().candidate;
    candidate.body.ommers = Bytes::from_static(&[0xc0]);
    check(candidate, BlockPart::Body, &format!("ommers hash to {EMPTY_OMMER_ROOT_HASH}"));

    let mut candidate = made().candidate;
    candidate.body.withdrawals = Some(Bytes::from_static(&[0xc0]));
    check(candidate, BlockPart::Body, "withdrawals give root");

    let mut candidate = made().candidate;
    candidate.body.withdrawals = None;
    check(
        candidate,
        BlockPart::Body,
        "withdrawals are not in the body, withdrawals root is in the header",
    );

    let candidate = made().with_header(|header| header.withdrawals_root = None);
    check(
        candidate,
        BlockPart::Body,
        "withdrawals are in the body, withdrawals root is not in the header",
    );
}

#[test]
fn parts_that_do_not_decode_are_refused_though_their_roots_hold() {
    let with_tx = |tx: Bytes| made_with(|body, _| body.transactions[1] = tx).candidate;
    check(with_tx(Bytes::from_static(&[5, 0xc0])), BlockPart::Body, "transaction 1 has type 0x05");
    check(
        with_tx(Bytes::from_static(&[2, 0xc0])),
        BlockPart::Body,
        "transaction 1 does not decode",
    );
    check(with_tx(Bytes::from_static(&[0xc0])), BlockPart::Body, "transaction 1 does not decode");

    let with_ommers =
        |rlp: &'static [u8]| made_with(|body, _| body.ommers = Bytes::from_static(rlp)).candidate;
    check(with_ommers(&[0xc1, 0xc0]), BlockPart::Body, "ommer 0 does not decode");
    check(with_ommers(&[0xc0, 0xc0]), BlockPart::Body, "ommers do not decode");
    check(with_ommers(&[0x80]), BlockPart::Body, "ommers do not decode");

    // Bytes after the list would be kept with it, though the root does not commit to them.
    let mut candidate = made().candidate;
    let withdrawals = candidate.body.withdrawals.take().unwrap();
    candidate.body.withdrawals = Some([withdrawals.as_ref(), &[0]].concat().into());
    check(candidate, BlockPart::Body, "withdrawals do not decode");
}

#[test]
fn a_transaction_that_is_signed_for_another_chain_is_refused() {
    // The second transaction is signed for chain 1, the first for no chain.
    let of_chain = |id| ChainSpec::bare("test", Some(id), None);
    verify_with(&of_chain(1), &Anchors::none(), made().candidate).unwrap();
    let mismatch = verify_with(&of_chain(5), &Anchors::none(), made().candidate).unwrap_err();
    assert!(mismatch.to_string().contains("is signed for chain 1, this is chain 5"), "{mismatch}");
}

#[test]
fn a_signature_without_a_sender_is_refused() {
    let unsigned = TxLegacy::default().into_signed(Signature::new(U256::ZERO, U256::ZERO, false));
    let envelope = EthereumTxEnvelope::<TxEip4844>::from(unsigned);
    let candidate =
        made_with(|body, _| body.transactions[0] = envelope.encoded_2718().into()).candidate;
    check(candidate, BlockPart::Body, "its signature gives no sender");
}

#[test]
fn a_high_s_is_refused_from_homestead_on_and_allowed_before() {
    let candidate = || made_with(|body, _| body.transactions[0] = legacy(true)).candidate;
    // Block 42 of mainnet is Frontier's; of a chain whose forks nobody knows it may be.
    for spec in [ChainSpec::bare("test", Some(1), None), ChainSpec::bare("test", None, None)] {
        let block = verify_with(&spec, &Anchors::none(), candidate()).unwrap();
        assert_eq!(block.transactions[0].sender, sender_of_secret());
    }
    // Sepolia began with Homestead's rules.
    let sepolia = ChainSpec::bare("test", Some(11_155_111), None);
    let mismatch = verify_with(&sepolia, &Anchors::none(), candidate()).unwrap_err();
    assert!(matches!(*mismatch.fault, Fault::HighS { index: 0, .. }), "{mismatch}");
}

#[test]
fn receipts_that_are_not_the_blocks_own_are_refused() {
    let with_receipts = |change: fn(&mut Vec<Receipt>)| {
        let mut candidate = made().candidate;
        change(candidate.receipts.as_mut().unwrap());
        candidate
    };
    let missing = with_receipts(|receipts| drop(receipts.pop()));
    check(missing, BlockPart::Receipts, "1 receipts for 2 transactions");
    let retyped = with_receipts(|receipts| receipts[1].tx_type = TxType::Eip2930);
    check(retyped, BlockPart::Receipts, "receipt 1 has type");
    let unordered = with_receipts(|receipts| receipts[1].fields.cumulative_gas_used = 20_999);
    check(unordered, BlockPart::Receipts, "receipt 1: cumulative gas 20999 is below 21000");
    let failed = with_receipts(|receipts| receipts[1].fields.status = Eip658Value::Eip658(false));
    check(failed, BlockPart::Receipts, "receipts give root");
    let unlogged = with_receipts(|receipts| receipts[0].fields.logs.clear());
    check(unlogged, BlockPart::Receipts, "receipts give root");
}

#[test]
fn a_header_that_the_receipts_do_not_add_up_to_is_refused() {
    let text = "receipts sum up to 50000 gas used, header says 50001";
    check(made().with_header(|header| header.gas_used += 1), BlockPart::Receipts, text);
    let unbloomed = made().with_header(|header| header.logs_bloom = Bloom::ZERO);
    check(unbloomed, BlockPart::Receipts, "logs give bloom");
}

/// A block whose header says `gas_used` and has Amsterdam's fields; its receipts sum up to 50,000.
fn amsterdam(gas_used: u64) -> Made {
    let mut made = made();
    let header = &mut made.header;
    header.gas_used = gas_used;
    header.blob_gas_used = Some(0);
    header.excess_blob_gas = Some(0);
    header.parent_beacon_block_root = Some(B256::ZERO);
    header.requests_hash = Some(B256::repeat_byte(3));
    header.block_access_list_hash = Some(B256::repeat_byte(4));
    header.slot_number = Some(5);
    made
}

#[test]
fn from_amsterdam_on_the_receipts_may_pay_more_or_less_than_the_header_says() {
    for gas_used in [25_000, 40_000, 50_000, 62_500] {
        let block = verify(amsterdam(gas_used).with_header(|_| {})).unwrap();
        assert_eq!(block.header.gas_used, gas_used);
    }
    for gas_used in [0, 24_999, 62_501, u64::MAX] {
        let text = format!("receipts sum up to 50000 gas used, header says {gas_used}: from");
        check(amsterdam(gas_used).with_header(|_| {}), BlockPart::Receipts, &text);
    }
}

#[test]
fn the_gas_rule_of_a_fork_with_unknown_fields_is_not_guessed() {
    let mut candidate = amsterdam(1).with_header(|_| {});
    let payload = whole_list(&candidate.header).unwrap();
    let mut rlp = Vec::new();
    let payload_length = payload.len() + 1;
    alloy_rlp::Header { list: true, payload_length }.encode(&mut rlp);
    rlp.extend_from_slice(payload);
    rlp.push(7);
    candidate.header = rlp.into();
    assert_eq!(verify(candidate.clone()).unwrap().header.gas_used, 1);
    candidate.receipts.as_mut().unwrap()[1].fields.cumulative_gas_used += 1;
    check(candidate, BlockPart::Receipts, "receipts give root");
}

#[test]
fn a_block_before_byzantium_keeps_its_post_state_roots() {
    let root = Eip658Value::PostState(B256::repeat_byte(6));
    let candidate = made_with(|_, receipts| receipts[0].fields.status = root).candidate;
    let block = verify(candidate).unwrap();
    assert_eq!(block.receipts.as_ref().unwrap()[0].fields.status, root);
}

#[test]
fn without_receipts_the_rest_is_still_proven() {
    let mut candidate = made().candidate;
    candidate.receipts = None;
    assert!(verify(candidate.clone()).unwrap().receipts.is_none());
    candidate.body.transactions.swap(0, 1);
    check(candidate, BlockPart::Body, "transactions give root");
}

/// A chain in which block 42 of these tests is Shanghai's.
fn described() -> ChainSpec {
    let text = r#"{"config": {"chainId": 1, "londonBlock": 0, "terminalTotalDifficulty": 0,
        "shanghaiTime": 100}, "gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {}}"#;
    ChainSpec::from_genesis("test", &serde_json::from_str(text).unwrap()).unwrap()
}

/// Block `number` with the receipts and transactions of [`made`], as its chain's rules want it.
fn ruled(number: u64, parent_hash: B256, change: impl FnOnce(&mut Header)) -> Candidate {
    let empty = |body: &mut Body, _: &mut Vec<Receipt>| body.ommers = Bytes::from_static(&[0xc0]);
    made_with(empty).with_header(|header| {
        (header.number, header.parent_hash) = (number, parent_hash);
        (header.gas_limit, header.timestamp) = (100_000, 100 + number);
        change(header);
    })
}

fn step_fields(candidate: &Candidate) -> StepFields {
    StepFields::of(&decode_header(&candidate.header).unwrap(), &candidate.header)
}

#[test]
fn rules_are_held_against_the_parent_that_was_proven_or_told() {
    let (spec, anchors) = (described(), Anchors::none());
    let first = ruled(42, PARENT_HASH, |_| {});
    let hash = hash_header(&first.header);
    let second = |timestamp| ruled(43, hash, |header| header.timestamp = timestamp);
    let text = "block 43: timestamp is 142, the parent's is 142: it must be above";

    let mut verifier = Verifier::new(&spec, &anchors, Start::At(42));
    let proven = verifier.verify(first.clone()).unwrap();
    assert_eq!(verifier.verify(second(142)).unwrap_err().to_string(), text);
    let child = verifier.verify(second(143)).unwrap();

    let after = Start::After { number: 42, hash };
    let told = || Verifier::new(&spec, &anchors, after).with_parent(step_fields(&first));
    let mismatch = told().verify(second(142)).unwrap_err();
    assert_eq!((mismatch.to_string().as_str(), mismatch.fault.part()), (text, BlockPart::Header));
    told().verify(second(143)).unwrap();

    // What was proven by itself is held against its parent when it takes its place.
    let early = Verifier::new(&spec, &anchors, after).verify(second(142)).unwrap();
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(42));
    verifier.follow(&proven).unwrap();
    assert_eq!(verifier.follow(&early).unwrap_err().to_string(), text);
    verifier.follow(&child).unwrap();
    // Nobody described this chain.
    let bare = ChainSpec::bare("test", Some(1), None);
    let verifier = Verifier::new(&bare, &anchors, after);
    verifier.with_parent(step_fields(&first)).verify(second(1)).unwrap();
}

#[test]
fn blobs_of_the_transactions_are_held_against_the_header() {
    let text = r#"{"config": {"chainId": 1, "londonBlock": 0, "terminalTotalDifficulty": 0,
        "shanghaiTime": 0, "cancunTime": 100}, "difficulty": "0x0", "alloc": {}}"#;
    let spec = ChainSpec::from_genesis("test", &serde_json::from_str(text).unwrap()).unwrap();
    let blob_tx = TxEip4844 { chain_id: 1, ..TxEip4844::default() };
    let blob_tx =
        sign(TxEip4844 { blob_versioned_hashes: vec![B256::repeat_byte(1); 2], ..blob_tx }, false);
    let candidate = |blob_gas_used| {
        let change = |body: &mut Body, receipts: &mut Vec<Receipt>| {
            body.ommers = Bytes::from_static(&[0xc0]);
            body.transactions[1] = blob_tx.clone();
            receipts[1].tx_type = TxType::Eip4844;
        };
        made_with(change).with_header(|header| {
            (header.gas_limit, header.timestamp) = (100_000, 100);
            header.blob_gas_used = Some(blob_gas_used);
            header.excess_blob_gas = Some(0);
            header.parent_beacon_block_root = Some(B256::ZERO);
        })
    };
    verify_with(&spec, &Anchors::none(), candidate(262_144)).unwrap();
    let mismatch = verify_with(&spec, &Anchors::none(), candidate(131_072)).unwrap_err();
    let text = "block 42: blob gas used is 131072, its 2 blobs take 262144";
    assert_eq!(mismatch.to_string(), text);
}

#[test]
fn a_refused_block_leaves_the_verifier_where_it_was() {
    let (spec, anchors) = (ChainSpec::bare("test", None, None), Anchors::none());
    let start = Start::After { number: 41, hash: PARENT_HASH };
    let mut verifier = Verifier::new(&spec, &anchors, start);
    assert!(verifier.verify(made().with_header(|header| header.gas_used = 1)).is_err());
    let hash = verifier.verify(made().candidate).unwrap().hash;
    let child = made().with_header(|header| {
        header.number = 43;
        header.parent_hash = hash;
    });
    assert_eq!(verifier.verify(child).unwrap().header.number, 43);
}
