//! The accounts that sign.
//!
//! Few accounts send much and many send little. To know a sender's nonce without counting through
//! the chain, senders come from a fixed table of slots: transaction number `o` of the whole chain
//! belongs to slot `o % SLOT_COUNT`, so an account with `k` slots sends `k` transactions in each
//! round through the table, and its nonces are 0, 1, 2... in chain order.

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_primitives::{Address, B256, Keccak256, Signature, U256};

use super::random::{SampleRandom, Stream, at, to_u64, to_usize};

const SLOT_COUNT: u64 = 4096;
/// Slots of the busiest account; the one of rank r has this many divided by r, at least one.
const SLOTS_OF_FIRST: u64 = 512;

/// Twice the half that alloy names, rounded down: the order of the curve is odd.
const CURVE_ORDER: U256 = SECP256K1N_HALF.wrapping_add(SECP256K1N_HALF).wrapping_add(U256::ONE);

/// A secret key. Whatever keccak gives is one, but for a chance of 2^-127.
#[derive(Clone, Debug)]
pub(super) struct SampleKey(B256);

impl SampleKey {
    /// The key of an account that signs one authorisation and nothing else, so that its nonce is 0.
    pub(super) fn of_authority(seed: u64, tx_ordinal: u64, index: u64) -> Self {
        Self::derive(b"sample authority", &[seed, tx_ordinal, index])
    }

    /// Signs a hash. Deterministic (RFC 6979).
    pub(super) fn sign(&self, hash: B256) -> Signature {
        chain::sign(self.0, hash).unwrap_or_else(|| unreachable!("not a key"))
    }

    /// The other valid signature of a hash, with s above half the order. Homestead (EIP-2) ruled
    /// these out.
    pub(super) fn sign_high_s(&self, hash: B256) -> Signature {
        let low = self.sign(hash);
        Signature::new(low.r(), CURVE_ORDER - low.s(), !low.v())
    }

    fn derive(domain: &[u8], numbers: &[u64]) -> Self {
        let mut hasher = Keccak256::new();
        hasher.update(domain);
        for number in numbers {
            hasher.update(number.to_be_bytes());
        }
        Self(hasher.finalize())
    }
}

/// An account that sends transactions.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) key: SampleKey,
    pub(super) address: Address,
}

impl Account {
    /// The `index`-th account of a seed's chain, the busiest first.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        let key = SampleKey::derive(b"sample sender", &[seed, index]);
        // alloy names no function from a key to its address, but whoever signs shows it.
        let address = key
            .sign(B256::ZERO)
            .recover_address_from_prehash(&B256::ZERO)
            .unwrap_or_else(|_| unreachable!("our own signature"));
        Self { key, address }
    }
}

/// All senders and their slots.
#[derive(Debug)]
pub(super) struct Accounts {
    senders: Vec<Sender>,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Sender {
    account: Account,
    slot_count: u64,
}

#[derive(Debug)]
struct Slot {
    sender: u64,
    /// How many slots before this one belong to the same sender.
    rank: u64,
}

impl Accounts {
    pub(super) fn new(seed: u64) -> Self {
        let mut slots = Vec::new();
        let mut senders = Vec::new();
        let mut slots_left = SLOT_COUNT;
        for index in 0_u64.. {
            let slot_count = (SLOTS_OF_FIRST / (index + 1)).max(1).min(slots_left);
            if slot_count == 0 {
                break;
            }
            slots_left -= slot_count;
            slots.extend((0..slot_count).map(|_| Slot { sender: index, rank: 0 }));
            senders.push(Sender { account: Account::new(seed, index), slot_count });
        }
        shuffle(&mut slots, &mut SampleRandom::new(seed, Stream::SlotTable, 0, 0));
        let mut ranks = vec![0; senders.len()];
        for slot in &mut slots {
            if let Some(rank) = ranks.get_mut(to_usize(slot.sender)) {
                slot.rank = *rank;
                *rank += 1;
            }
        }
        Self { senders, slots }
    }

    /// Who sends the transaction, and with which nonce.
    pub(super) fn of_tx(&self, tx_ordinal: u64) -> (&Account, u64) {
        let slot = at(&self.slots, tx_ordinal);
        let sender = at(&self.senders, slot.sender);
        let round = tx_ordinal / SLOT_COUNT;
        (&sender.account, round * sender.slot_count + slot.rank)
    }

    /// A sender's address, busy ones more often.
    pub(super) fn draw(&self, random: &mut SampleRandom) -> Address {
        at(&self.senders, random.pick(&self.slots).sender).account.address
    }
}

/// Fisher and Yates's shuffle.
fn shuffle<T>(items: &mut [T], random: &mut SampleRandom) {
    for last in (1..items.len()).rev() {
        let bound = to_u64(last) + 1;
        items.swap(last, to_usize(random.below(bound)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nonces_count_up_through_rounds() {
        let accounts = Accounts::new(3);
        let mut next: BTreeMap<Address, u64> = BTreeMap::new();
        for tx_ordinal in 0..3 * SLOT_COUNT {
            let (account, nonce) = accounts.of_tx(tx_ordinal);
            let expected = next.entry(account.address).or_default();
            assert_eq!(nonce, *expected);
            *expected += 1;
        }
        assert_eq!(next.len(), accounts.senders.len());
        assert_eq!(next.values().max(), Some(&(3 * SLOTS_OF_FIRST)));
    }

    #[test]
    fn both_signatures_of_a_hash_name_the_signer() {
        let account = Account::new(1, 0);
        let hash = B256::repeat_byte(0x5a);
        let (low, high) = (account.key.sign(hash), account.key.sign_high_s(hash));
        assert!(low.s() <= SECP256K1N_HALF && high.s() > SECP256K1N_HALF);
        for signature in [low, high] {
            let signer = signature.recover_address_from_prehash(&hash).unwrap();
            assert_eq!(signer, account.address);
        }
    }
}
