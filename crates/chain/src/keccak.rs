//! Keccak-256 of several inputs at once.
//!
//! Knows: the permutation on four states side by side, which a vector unit does in the time of
//! little more than one.
//! Never knows: what is hashed.
//!
//! A page of transactions is hashed as a whole when a block is answered: one at a time it is the
//! largest cost of reading a block. Inputs are sorted by length, so that four of a batch are
//! finished together.

#![expect(
    clippy::indexing_slicing,
    reason = "indices are constants, or bounded by loops over the five rows and columns of a state"
)]

use alloy_primitives::{B256, keccak256};

/// States side by side.
const LANES: usize = 4;
/// Bytes that one permutation absorbs.
const RATE: usize = 136;
const RATE_WORDS: usize = RATE / 8;

/// Word by word the four states, each word of them in one register.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State([[u64; LANES]; 25]);

/// The hash of every input, in order; the same as [`keccak256`] of each.
#[must_use]
pub fn keccak256_each<T: AsRef<[u8]>>(inputs: &[T]) -> Vec<B256> {
    let mut hashes = vec![B256::ZERO; inputs.len()];
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    order.sort_by_key(|position| inputs.get(*position).map_or(0, |input| input.as_ref().len()));
    let (batches, rest) = order.as_chunks::<LANES>();
    for batch in batches {
        let lanes = batch.map(|position| inputs.get(position).map_or(&[][..], AsRef::as_ref));
        for (position, hash) in batch.iter().zip(hash_lanes(lanes)) {
            if let Some(place) = hashes.get_mut(*position) {
                *place = hash;
            }
        }
    }
    for position in rest {
        if let (Some(place), Some(input)) = (hashes.get_mut(*position), inputs.get(*position)) {
            *place = keccak256(input);
        }
    }
    hashes
}

/// Four hashes. A lane that ends before the others waits: its state is put aside when it is done.
fn hash_lanes(inputs: [&[u8]; LANES]) -> [B256; LANES] {
    let mut state = State([[0; LANES]; 25]);
    let mut hashes = [B256::ZERO; LANES];
    let block_counts = inputs.map(|input| input.len() / RATE + 1);
    let blocks_max = block_counts.iter().copied().max().unwrap_or_default();
    for block in 0..blocks_max {
        for (lane, input) in inputs.iter().enumerate() {
            absorb(&mut state, lane, input, block);
        }
        permute(&mut state);
        for (lane, count) in block_counts.iter().enumerate() {
            if block + 1 == *count
                && let Some(hash) = hashes.get_mut(lane)
            {
                *hash = squeeze(&state, lane);
            }
        }
    }
    hashes
}

/// Adds one block of a lane's input, padded if it is the last; nothing once it has ended.
fn absorb(state: &mut State, lane: usize, input: &[u8], block: usize) {
    let Some(rest) = input.get(block * RATE..) else { return };
    if let Some(whole) = rest.first_chunk::<RATE>() {
        add(state, lane, whole);
    } else {
        let mut padded = [0; RATE];
        for (place, byte) in padded.iter_mut().zip(rest) {
            *place = *byte;
        }
        if let Some(place) = padded.get_mut(rest.len()) {
            *place ^= 0x01;
        }
        if let Some(last) = padded.last_mut() {
            *last ^= 0x80;
        }
        add(state, lane, &padded);
    }
}

fn add(state: &mut State, lane: usize, block: &[u8; RATE]) {
    let (words, _) = block.as_chunks::<8>();
    for (place, word) in state.0.iter_mut().take(RATE_WORDS).zip(words) {
        if let Some(place) = place.get_mut(lane) {
            *place ^= u64::from_le_bytes(*word);
        }
    }
}

fn squeeze(state: &State, lane: usize) -> B256 {
    let mut hash = B256::ZERO;
    let (chunks, _) = hash.0.as_chunks_mut::<8>();
    for (place, word) in chunks.iter_mut().zip(&state.0) {
        *place = word.get(lane).copied().unwrap_or_default().to_le_bytes();
    }
    hash
}

fn permute(state: &mut State) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the feature was detected just above")]
        unsafe {
            wide::permute(state);
        }
        return;
    }
    permute_each(state);
}

/// Without a vector unit: lane by lane, by the library's own permutation.
fn permute_each(state: &mut State) {
    for lane in 0..LANES {
        let mut words: [u64; 25] = state.0.map(|word| word[lane]);
        plain_permute(&mut words);
        for (place, word) in state.0.iter_mut().zip(words) {
            place[lane] = word;
        }
    }
}

const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// Where each word goes, and by how much it is turned, starting from word 1 (FIPS 202, rho and
/// pi).
const TURNS: [(usize, u32); 24] = [
    (10, 1),
    (7, 3),
    (11, 6),
    (17, 10),
    (18, 15),
    (3, 21),
    (5, 28),
    (16, 36),
    (8, 45),
    (21, 55),
    (24, 2),
    (4, 14),
    (15, 27),
    (23, 41),
    (19, 56),
    (13, 8),
    (12, 25),
    (2, 43),
    (20, 62),
    (14, 18),
    (22, 39),
    (9, 61),
    (6, 20),
    (1, 44),
];

/// The permutation of FIPS 202 on one state, for machines without wide registers.
fn plain_permute(state: &mut [u64; 25]) {
    for constant in ROUND_CONSTANTS {
        let c: [u64; 5] = std::array::from_fn(|x| {
            state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20]
        });
        for x in 0..5 {
            let mix = c[(x + 4) % 5] ^ c[(x + 1) % 5].rotate_left(1);
            for y in 0..5 {
                state[x + 5 * y] ^= mix;
            }
        }
        let mut moved = state[1];
        for (to, by) in TURNS {
            let next = state[to];
            state[to] = moved.rotate_left(by);
            moved = next;
        }
        for y in 0..5 {
            let row: [u64; 5] = std::array::from_fn(|x| state[x + 5 * y]);
            for x in 0..5 {
                state[x + 5 * y] = row[x] ^ (!row[(x + 1) % 5] & row[(x + 2) % 5]);
            }
        }
        state[0] ^= constant;
    }
}

/// The permutation on four states in 256-bit registers.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_andnot_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_slli_epi64,
        _mm256_srli_epi64, _mm256_xor_si256,
    };

    use super::{ROUND_CONSTANTS, State};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(word: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<LEFT>(word), _mm256_srli_epi64::<RIGHT>(word))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn xor(a: __m256i, b: __m256i) -> __m256i {
        _mm256_xor_si256(a, b)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn permute(state: &mut State) {
        #[expect(unsafe_code, reason = "four words of 64 bits are one of 256")]
        let words: &mut [__m256i; 25] = unsafe { &mut *std::ptr::from_mut(state).cast() };
        let mut a = *words;
        for constant in ROUND_CONSTANTS {
            let c: [__m256i; 5] = std::array::from_fn(|x| {
                xor(xor(a[x], a[x + 5]), xor(xor(a[x + 10], a[x + 15]), a[x + 20]))
            });
            for x in 0..5 {
                let mix = xor(c[(x + 4) % 5], rotate::<1, 63>(c[(x + 1) % 5]));
                for y in 0..5 {
                    a[x + 5 * y] = xor(a[x + 5 * y], mix);
                }
            }
            let mut moved = a[1];
            macro_rules! turn {
                ($to:expr, $by:expr) => {
                    let next = a[$to];
                    a[$to] = rotate::<$by, { 64 - $by }>(moved);
                    moved = next;
                };
            }
            turn!(10, 1);
            turn!(7, 3);
            turn!(11, 6);
            turn!(17, 10);
            turn!(18, 15);
            turn!(3, 21);
            turn!(5, 28);
            turn!(16, 36);
            turn!(8, 45);
            turn!(21, 55);
            turn!(24, 2);
            turn!(4, 14);
            turn!(15, 27);
            turn!(23, 41);
            turn!(19, 56);
            turn!(13, 8);
            turn!(12, 25);
            turn!(2, 43);
            turn!(20, 62);
            turn!(14, 18);
            turn!(22, 39);
            turn!(9, 61);
            turn!(6, 20);
            a[1] = rotate::<44, 20>(moved);
            for y in 0..5 {
                let row: [__m256i; 5] = std::array::from_fn(|x| a[x + 5 * y]);
                for x in 0..5 {
                    a[x + 5 * y] =
                        xor(row[x], _mm256_andnot_si256(row[(x + 1) % 5], row[(x + 2) % 5]));
                }
            }
            a[0] = xor(a[0], _mm256_set1_epi64x(constant.cast_signed()));
        }
        *words = a;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_each_input_whatever_their_lengths() {
        // Around the ends of blocks, in an order that sorting must undo.
        let lengths = [0, 1, 135, 136, 137, 271, 272, 273, 1000, 5, 4096, 31, 32, 200, 136, 7, 8];
        let inputs: Vec<Vec<u8>> = lengths
            .iter()
            .enumerate()
            .map(|(seed, length)| {
                (0..*length).map(|at| u8::try_from((at * 31 + seed) % 251).unwrap()).collect()
            })
            .collect();
        for count in 0..=inputs.len() {
            let inputs = &inputs[..count];
            let expected: Vec<B256> = inputs.iter().map(keccak256).collect();
            assert_eq!(keccak256_each(inputs), expected, "{count} inputs");
        }
    }

    #[test]
    fn the_plain_rounds_are_the_same_as_the_wide_ones() {
        let word = |at: usize| u64::try_from(at * 0x9e37_79b9).unwrap();
        let mut wide =
            State(std::array::from_fn(|at| [0, 1, 2, 3].map(|lane| word(at * 5 + lane))));
        let mut plain = wide;
        permute(&mut wide);
        permute_each(&mut plain);
        assert_eq!(wide, plain);
    }
}
