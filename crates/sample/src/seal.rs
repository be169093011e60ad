//! Drafts become blocks, one after the other.

use std::collections::VecDeque;

use alloy_consensus::Header;
use alloy_eips::eip1559::{BaseFeeParams, INITIAL_BASE_FEE};
use alloy_primitives::{B256, Bytes, U256, keccak256};
use chain::{Body, Candidate, hash_header};

use super::draft::BlockDraft;
use super::random::{SampleRandom, Stream, to_usize};
use super::{SampleSettings, schedule};

/// How many blocks back an ommer's parent may be.
const ANCESTORS_KEPT: usize = 4;

/// Links drafts into a chain. Cheap, and strictly in the order of the blocks.
#[derive(Debug)]
pub struct Sealer {
    settings: SampleSettings,
    /// Hashes and base fees of the newest blocks, the parent first.
    ancestors: VecDeque<(B256, Option<u64>)>,
    total_difficulty: U256,
    parent: Header,
}

impl Sealer {
    /// A sealer that waits for block 0.
    #[must_use]
    pub fn new(settings: &SampleSettings) -> Self {
        Self {
            settings: settings.clone(),
            ancestors: VecDeque::with_capacity(ANCESTORS_KEPT),
            total_difficulty: U256::ZERO,
            parent: Header::default(),
        }
    }

    /// Makes the draft the next block of the chain.
    ///
    /// # Panics
    ///
    /// If the draft is of any block but the next.
    pub fn seal(&mut self, draft: BlockDraft) -> Candidate {
        let BlockDraft { mut header, transactions, receipts, withdrawals } = draft;
        let next = if self.ancestors.is_empty() { 0 } else { self.parent.number + 1 };
        assert!(header.number == next, "sealing block {}, expected {next}", header.number);

        header.parent_hash = self.ancestors.front().map_or(B256::ZERO, |(hash, _)| *hash);
        header.base_fee_per_gas = self.base_fee(header.number);
        header.excess_blob_gas = self.excess_blob_gas(header.number);
        let ommers: Bytes = alloy_rlp::encode(self.ommers(header.number)).into();
        header.ommers_hash = keccak256(&ommers);
        self.total_difficulty += header.difficulty;
        let total_difficulty = (header.number < schedule::PARIS).then_some(self.total_difficulty);
        let rlp = alloy_rlp::encode(&header);

        self.ancestors.truncate(ANCESTORS_KEPT - 1);
        self.ancestors.push_front((hash_header(&rlp), header.base_fee_per_gas));
        self.parent = header;
        Candidate {
            header: rlp.into(),
            body: Body { transactions, ommers, withdrawals },
            receipts: Some(receipts),
            total_difficulty,
        }
    }

    /// By the rules of EIP-1559.
    fn base_fee(&self, number: u64) -> Option<u64> {
        let next = || self.parent.next_block_base_fee(BaseFeeParams::ethereum());
        (number >= schedule::LONDON).then(|| next().unwrap_or(INITIAL_BASE_FEE))
    }

    /// By the rules of EIP-4844 and EIP-7918, with the parameters of the block's own fork.
    fn excess_blob_gas(&self, number: u64) -> Option<u64> {
        let params = schedule::blob_params(number)?;
        let (Some(excess), Some(used)) = (self.parent.excess_blob_gas, self.parent.blob_gas_used)
        else {
            return Some(0);
        };
        let base_fee = self.parent.base_fee_per_gas.unwrap_or(0);
        Some(params.next_block_excess_blob_gas_osaka(excess, used, base_fee))
    }

    /// Blocks that lost the race against one of the last two: none, one or two.
    fn ommers(&self, number: u64) -> Vec<Header> {
        let count = match number {
            schedule::PARIS.. | 0..3 => 0,
            _ if number % 17 == 5 => 2,
            _ if number % 7 == 3 => 1,
            _ => 0,
        };
        (0..count).map(|index| self.ommer(number, index)).collect()
    }

    /// A sibling of the parent (`index` 0) or of the grandparent (1).
    fn ommer(&self, nephew: u64, index: u64) -> Header {
        let number = nephew - 1 - index;
        let mut random = SampleRandom::new(self.settings.seed, Stream::Ommer, nephew, index);
        let ancestor = |index| self.ancestors.get(to_usize(index)).copied();
        let sibling = ancestor(index);
        let parent = ancestor(index + 1);
        let (parent_hash, _) = parent.unwrap_or_else(|| unreachable!("no ommer without a parent"));
        Header {
            parent_hash,
            beneficiary: SampleRandom::new(self.settings.seed, Stream::Wallet, random.zipf(6), 1)
                .address(),
            state_root: random.hash(),
            difficulty: U256::from(schedule::difficulty(self.settings.seed, number) - 1),
            number,
            gas_limit: schedule::gas_limit(&self.settings, number),
            timestamp: schedule::timestamp(number) + random.below(schedule::BLOCK_SECONDS),
            extra_data: Bytes::from_static(b"late"),
            mix_hash: random.hash(),
            nonce: random.next().into(),
            base_fee_per_gas: sibling.and_then(|(_, base_fee)| base_fee),
            ..Header::default()
        }
    }
}
