//! The one door: a [`Candidate`] becomes a [`Verified<Block>`] here or nowhere.

use std::ops::Deref;

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::{EthereumTxEnvelope, Header, TxEip4844, TxType, proofs};
use alloy_eips::eip2718::Decodable2718;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, Bloom, Bytes, U256, keccak256};

use crate::body::{Body, wrapped_length};
use crate::header::{decode_header, has_unknown_fields, hash_header};
use crate::receipt::{Receipt, logs_bloom};
use crate::rlp::{take_list, whole_list};
use crate::rules::{self, RuleFault, StepFields};
use crate::spec::ChainSpec;
use crate::trie::ordered_root;
use crate::trust::Anchors;

mod fault;
#[cfg(test)]
mod tests;

pub use fault::{BlockPart, Fault, Mismatch};

/// What a source claims to be a block. Anyone may fill it with anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The header's raw RLP.
    pub header: Bytes,
    /// Transactions, ommers and withdrawals.
    pub body: Body,
    /// One receipt for each transaction; `None` where the source holds none.
    pub receipts: Option<Vec<Receipt>>,
    /// Difficulty summed up to and including this block, where the source tells it. The header
    /// does not commit to it: see [`crate::accumulator`].
    pub total_difficulty: Option<U256>,
}

/// Something proven. Only [`Verifier::verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Gives up the proof and keeps the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A block whose parts prove each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Keccak of the header's raw RLP.
    pub hash: B256,
    /// The header's raw RLP: the truth, whatever fields a later fork appends.
    pub header_rlp: Bytes,
    /// The header's fields as far as this build knows them.
    pub header: Header,
    /// The transactions in order.
    pub transactions: Vec<Transaction>,
    /// The RLP list of ommer headers.
    pub ommers_rlp: Bytes,
    /// The ommer headers.
    pub ommers: Vec<Header>,
    /// The RLP list of withdrawals.
    pub withdrawals_rlp: Option<Bytes>,
    /// The withdrawals; `None` before Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
    /// One receipt for each transaction; `None` where the source held none, and then receipts
    /// root, logs bloom and gas used are unproven.
    pub receipts: Option<Vec<Receipt>>,
}

impl Block {
    /// The length of the RLP of the whole block: header, transactions, ommers, withdrawals.
    #[must_use]
    pub fn rlp_bytes(&self) -> u64 {
        let list =
            |payload_length| alloy_rlp::Header { list: true, payload_length }.length_with_payload();
        let transactions = self.transactions.iter().map(|tx| wrapped_length(&tx.encoded)).sum();
        let withdrawals = self.withdrawals_rlp.as_ref().map_or(0, |list| list.len());
        let parts = [self.header_rlp.len(), list(transactions), self.ommers_rlp.len(), withdrawals];
        u64::try_from(list(parts.iter().sum())).unwrap_or(u64::MAX)
    }

    /// What this block was verified from, for whoever is to prove it again.
    #[must_use]
    pub fn to_candidate(&self) -> Candidate {
        let transactions = self.transactions.iter().map(|tx| tx.encoded.clone()).collect();
        let body = Body {
            transactions,
            ommers: self.ommers_rlp.clone(),
            withdrawals: self.withdrawals_rlp.clone(),
        };
        Candidate {
            header: self.header_rlp.clone(),
            body,
            receipts: self.receipts.clone(),
            total_difficulty: None,
        }
    }
}

/// A transaction and who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The EIP-2718 form, as the transactions root commits to it.
    pub encoded: Bytes,
    /// The same, decoded.
    pub envelope: EthereumTxEnvelope<TxEip4844>,
    /// Recovered from the signature.
    pub sender: Address,
}

/// Where a run of blocks begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With this number, after a parent that we do not hold.
    At(u64),
    /// With the child of this block.
    After {
        /// The parent's number.
        number: u64,
        /// The parent's hash.
        hash: B256,
    },
}

/// Proves a run of blocks, each the child of the one before. A block that is refused changes
/// nothing: the next candidate is held against the same parent.
#[derive(Debug)]
pub struct Verifier<'a> {
    spec: &'a ChainSpec,
    anchors: &'a Anchors,
    next: u64,
    parent_hash: Option<B256>,
    /// The parent's header, as far as it is known.
    parent: Option<StepFields>,
}

impl<'a> Verifier<'a> {
    /// A verifier for the run that begins at `start`.
    #[must_use]
    pub fn new(spec: &'a ChainSpec, anchors: &'a Anchors, start: Start) -> Self {
        let (next, parent_hash) = match start {
            Start::At(number) => (number, None),
            // A parent numbered u64::MAX has no child: every header then fails its number.
            Start::After { number, hash } => (number.saturating_add(1), Some(hash)),
        };
        Self { spec, anchors, next, parent_hash, parent: None }
    }

    /// The same with the header before the run, against which the first block's is held: steps of
    /// timestamp, gas limit and fees.
    #[must_use]
    pub fn with_parent(self, parent: StepFields) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Proves that the candidate is the next block of the run: number and parent link, anchors,
    /// transactions root, ommers hash, withdrawals root, every sender and, where there are
    /// receipts, receipts root, logs bloom and gas. Where the chain's forks are described, its header
    /// must follow their rules.
    pub fn verify(&mut self, candidate: Candidate) -> Result<Verified<Block>, Mismatch> {
        let (block, fields) = self
            .prove(candidate)
            .map_err(|fault| Mismatch { number: self.next, fault: Box::new(fault) })?;
        self.advance(block.hash, fields);
        Ok(Verified(block))
    }

    /// Takes a block that was proven before as the next of the run, if number, parent link, anchors
    /// and the parent's header allow it.
    pub fn follow(&mut self, block: &Verified<Block>) -> Result<(), Mismatch> {
        let fields = StepFields::of(&block.header, &block.header_rlp);
        self.check_place(&block.header, block.hash)
            .and_then(|()| Ok(self.check_rules(&block.header, &fields)?))
            .map_err(|fault| Mismatch { number: self.next, fault: Box::new(fault) })?;
        self.advance(block.hash, fields);
        Ok(())
    }

    fn advance(&mut self, hash: B256, fields: StepFields) {
        self.next = self.next.saturating_add(1);
        self.parent_hash = Some(hash);
        self.parent = Some(fields);
    }

    /// Holds a header against the rules of its fork; tells whether all of them are known.
    fn check_rules(&self, header: &Header, fields: &StepFields) -> Result<bool, RuleFault> {
        rules::check_header(self.spec, self.parent.as_ref(), header, fields)
    }

    fn prove(&mut self, candidate: Candidate) -> Result<(Block, StepFields), Fault> {
        // No header commits to the total difficulty, so no block can vouch for it.
        let Candidate { header: header_rlp, body, receipts, total_difficulty: _ } = candidate;
        let hash = hash_header(&header_rlp);
        let header = decode_header(&header_rlp)?;
        self.check_place(&header, hash)?;
        let fields = StepFields::of(&header, &header_rlp);
        let are_rules_known = self.check_rules(&header, &fields)?;
        let ommers = check_ommers(&header, &body)?;
        let withdrawals = check_withdrawals(&header, &body)?;
        let transactions = self.check_transactions(&header, &body)?;
        if are_rules_known {
            rules::check_blobs(&header, blob_count(&transactions))?;
        }
        if let Some(receipts) = &receipts {
            check_receipts(&header, &header_rlp, &transactions, receipts)?;
        }
        let block = Block {
            hash,
            header_rlp,
            header,
            transactions,
            ommers_rlp: body.ommers,
            ommers,
            withdrawals_rlp: body.withdrawals,
            withdrawals,
            receipts,
        };
        Ok((block, fields))
    }

    fn check_place(&self, header: &Header, hash: B256) -> Result<(), Fault> {
        if header.number != self.next {
            return Err(Fault::Number { found: header.number, expected: self.next });
        }
        if let Some(expected) = self.parent_hash
            && header.parent_hash != expected
        {
            return Err(Fault::ParentHash { found: header.parent_hash, expected });
        }
        if let Some((expected, kind)) = self.anchors.expected_hash(header.number)
            && hash != expected
        {
            return Err(Fault::Anchor { found: hash, expected, kind });
        }
        Ok(())
    }

    fn check_transactions(
        &mut self,
        header: &Header,
        body: &Body,
    ) -> Result<Vec<Transaction>, Fault> {
        let found = ordered_root(&body.transactions);
        if found != header.transactions_root {
            return Err(Fault::TransactionsRoot { found, expected: header.transactions_root });
        }
        let is_high_s_allowed = self.spec.allows_high_s(header.number);
        let mut transactions = Vec::with_capacity(body.transactions.len());
        for (index, encoded) in body.transactions.iter().enumerate() {
            let envelope = decode_transaction(index, encoded)?;
            let chain_id = alloy_consensus::Transaction::chain_id(&envelope);
            if let (Some(found), Some(expected)) = (chain_id, self.spec.chain_id())
                && found != expected
            {
                return Err(Fault::ChainId { index, hash: *envelope.tx_hash(), found, expected });
            }
            let s = envelope.signature().s();
            if s > SECP256K1N_HALF && !is_high_s_allowed {
                return Err(Fault::HighS { index, hash: *envelope.tx_hash(), found: s });
            }
            let sender = envelope
                .signature()
                .recover_address_from_prehash(&envelope.signature_hash())
                .map_err(|_| Fault::Sender { index, hash: *envelope.tx_hash() })?;
            transactions.push(Transaction { encoded: encoded.clone(), envelope, sender });
        }
        Ok(transactions)
    }
}

fn blob_count(transactions: &[Transaction]) -> u64 {
    let counts =
        transactions.iter().map(|tx| alloy_consensus::Transaction::blob_count(&tx.envelope));
    counts.map(Option::unwrap_or_default).sum()
}

fn decode_transaction(
    index: usize,
    encoded: &[u8],
) -> Result<EthereumTxEnvelope<TxEip4844>, Fault> {
    // A legacy transaction is a list and has no type byte.
    let tx_type = EthereumTxEnvelope::<TxEip4844>::extract_type_byte(&mut &*encoded);
    if let Some(found) = tx_type.filter(|tx_type| TxType::try_from(*tx_type).is_err()) {
        return Err(Fault::TxType { index, found });
    }
    EthereumTxEnvelope::decode_2718_exact(encoded)
        .map_err(|error| Fault::Transaction { index, reason: error.to_string() })
}

fn check_ommers(header: &Header, body: &Body) -> Result<Vec<Header>, Fault> {
    let found = keccak256(&body.ommers);
    if found != header.ommers_hash {
        return Err(Fault::OmmersHash { found, expected: header.ommers_hash });
    }
    let list_fault = |error: alloy_rlp::Error| Fault::Ommers { reason: error.to_string() };
    let mut payload = whole_list(&body.ommers).map_err(list_fault)?;
    let mut ommers = Vec::new();
    while !payload.is_empty() {
        let index = ommers.len();
        let ommer = decode_header(take_list(&mut payload).map_err(list_fault)?);
        ommers.push(ommer.map_err(|error| Fault::Ommer { index, reason: error.to_string() })?);
    }
    Ok(ommers)
}

fn check_withdrawals(header: &Header, body: &Body) -> Result<Option<Vec<Withdrawal>>, Fault> {
    let (Some(expected), Some(rlp)) = (header.withdrawals_root, &body.withdrawals) else {
        let (in_header, in_body) = (header.withdrawals_root.is_some(), body.withdrawals.is_some());
        return if in_header == in_body {
            Ok(None)
        } else {
            Err(Fault::WithdrawalsPresence { in_header, in_body })
        };
    };
    let withdrawals: Vec<Withdrawal> = alloy_rlp::decode_exact(rlp)
        .map_err(|error| Fault::Withdrawals { reason: error.to_string() })?;
    let found = proofs::calculate_withdrawals_root(&withdrawals);
    if found != expected {
        return Err(Fault::WithdrawalsRoot { found, expected });
    }
    Ok(Some(withdrawals))
}

fn check_receipts(
    header: &Header,
    header_rlp: &[u8],
    transactions: &[Transaction],
    receipts: &[Receipt],
) -> Result<(), Fault> {
    if receipts.len() != transactions.len() {
        return Err(Fault::ReceiptCount { found: receipts.len(), expected: transactions.len() });
    }
    let mut gas_used = 0;
    let mut block_bloom = Bloom::ZERO;
    let mut encoded = Vec::with_capacity(receipts.len());
    for (index, (receipt, transaction)) in receipts.iter().zip(transactions).enumerate() {
        let expected = transaction.envelope.tx_type();
        if receipt.tx_type != expected {
            return Err(Fault::ReceiptType { index, found: receipt.tx_type, expected });
        }
        let cumulative = receipt.fields.cumulative_gas_used;
        if cumulative < gas_used {
            return Err(Fault::GasOrder { index, found: cumulative, before: gas_used });
        }
        gas_used = cumulative;
        let bloom = logs_bloom(&receipt.fields.logs);
        block_bloom.accrue_bloom(&bloom);
        // A bloom alone takes 256 bytes.
        let mut consensus_form = Vec::with_capacity(512);
        receipt.encode_2718(&bloom, &mut consensus_form);
        encoded.push(consensus_form);
    }
    let found = ordered_root(&encoded);
    if found != header.receipts_root {
        return Err(Fault::ReceiptsRoot { found, expected: header.receipts_root });
    }
    if block_bloom != header.logs_bloom {
        let (found, expected) = (Box::new(block_bloom), Box::new(header.logs_bloom));
        return Err(Fault::LogsBloom { found, expected });
    }
    check_gas_used(header, header_rlp, gas_used)
}

/// Holds the receipts' sum against the header's gas. Up to Amsterdam they are equal. Amsterdam
/// parts them: the header has the larger of execution gas and state gas, of which receipts pay both
/// (EIP-8037), and refunds, a fifth at most, lower the receipts alone (EIP-7778). The header's own
/// fields tell the fork, because the chain's forks may not be known; of a fork that appended more
/// fields than this build knows the rule is not known either.
fn check_gas_used(header: &Header, header_rlp: &[u8], sum: u64) -> Result<(), Fault> {
    let (found, expected) = (sum, header.gas_used);
    if header.block_access_list_hash.is_none() && header.slot_number.is_none() {
        return if found == expected { Ok(()) } else { Err(Fault::GasUsed { found, expected }) };
    }
    let (sum, of_header) = (u128::from(sum), u128::from(header.gas_used));
    let is_within = sum * 5 >= of_header * 4 && sum <= of_header * 2;
    if is_within || has_unknown_fields(header, header_rlp) {
        return Ok(());
    }
    Err(Fault::GasBounds { found, expected })
}
