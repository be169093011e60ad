//! Who and what the sample chain's transactions touch.
//!
//! Nothing is stored but the senders: the n-th contract's address is a function of n.

use alloy_primitives::{Address, B256, keccak256};

use super::SampleSettings;
use super::accounts::Accounts;
use super::random::{SampleRandom, Stream};

/// Each universe has two to this power members.
const WALLET_OCTAVES: u64 = 22;
const CONTRACT_OCTAVES: u64 = 14;
const SELECTOR_OCTAVES: u64 = 9;
const WORD_OCTAVES: u64 = 12;

/// Events that the made-up logs claim to be.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) transfer: B256,
    pub(super) approval: B256,
    pub(super) deposit: B256,
    pub(super) sync: B256,
    pub(super) swap: B256,
    pub(super) batch: B256,
}

/// Everything that transactions are drawn from.
#[derive(Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) chain_id: u64,
    pub(super) accounts: Accounts,
    pub(super) events: Events,
}

impl World {
    pub(super) fn new(settings: &SampleSettings) -> Self {
        let events = Events {
            transfer: keccak256("Transfer(address,address,uint256)"),
            approval: keccak256("Approval(address,address,uint256)"),
            deposit: keccak256("Deposit(address,uint256)"),
            sync: keccak256("Sync(uint112,uint112)"),
            swap: keccak256("Swap(address,uint256,uint256,uint256,uint256,address)"),
            batch: keccak256("BatchAppended(uint256)"),
        };
        let SampleSettings { seed, chain_id, .. } = *settings;
        Self { seed, chain_id, accounts: Accounts::new(seed), events }
    }

    /// Someone who holds ether or tokens: one in four sends transactions as well.
    pub(super) fn wallet(&self, random: &mut SampleRandom) -> Address {
        if random.chance(2_500) {
            return self.accounts.draw(random);
        }
        self.member(Stream::Wallet, random.zipf(WALLET_OCTAVES)).address()
    }

    pub(super) fn contract(&self, random: &mut SampleRandom) -> Address {
        self.member(Stream::Contract, random.zipf(CONTRACT_OCTAVES)).address()
    }

    pub(super) fn selector(&self, random: &mut SampleRandom) -> [u8; 4] {
        let mut selector = [0; 4];
        self.member(Stream::Selector, random.zipf(SELECTOR_OCTAVES)).fill(&mut selector);
        selector
    }

    /// Thirty-two bytes of code, or of anything else that is copied from contract to contract.
    pub(super) fn word(&self, random: &mut SampleRandom) -> B256 {
        self.member(Stream::Word, random.zipf(WORD_OCTAVES)).hash()
    }

    fn member(&self, stream: Stream, number: u64) -> SampleRandom {
        SampleRandom::new(self.seed, stream, number, 0)
    }
}
