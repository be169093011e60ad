//! Keccak-256 of several inputs at once.
//!
//! A page of transactions is hashed as a whole when a block is answered: one at a time it is the
//! largest cost of reading a block. The longest inputs come first, and a lane whose input has ended
//! takes the next one: so the time is that of the longest input or of all of them shared by the
//! lanes, whichever is more.

#![expect(
    clippy::indexing_slicing,
    reason = "indices are constants, or bounded by loops over the five rows and columns of a state"
)]

use alloy_primitives::{B256, keccak256};

/// Bytes that one permutation absorbs.
const RATE: usize = 136;
const RATE_WORDS: usize = RATE / 8;

/// Word by word the states, each word of all of them in one register.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeccakState<const LANES: usize>([[u64; LANES]; 25]);

/// How many states this machine's registers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    One,
    Four,
    Eight,
}

fn width() -> Width {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return Width::Eight;
    } else if std::arch::is_x86_feature_detected!("avx2") {
        return Width::Four;
    }
    Width::One
}

/// The hash of every input, in order; the same as [`keccak256`] of each.
#[must_use]
pub fn keccak256_each<T: AsRef<[u8]>>(inputs: &[T]) -> Vec<B256> {
    hash_each(width(), inputs)
}

fn hash_each<T: AsRef<[u8]>>(width: Width, inputs: &[T]) -> Vec<B256> {
    match width {
        // Little is gained where most lanes would stay empty.
        Width::Eight if inputs.len() > 2 => hash_in_lanes::<8, T>(inputs),
        Width::Four | Width::Eight if inputs.len() > 1 => hash_in_lanes::<4, T>(inputs),
        Width::One | Width::Four | Width::Eight => inputs.iter().map(keccak256).collect(),
    }
}

/// A lane at work.
#[derive(Clone, Copy, Debug)]
struct Lane<'a> {
    /// Which of the inputs it hashes.
    position: usize,
    input: &'a [u8],
    /// The block that comes next, and how many there are.
    next: usize,
    count: usize,
}

/// Hashes side by side: every lane takes the next input when it has ended one.
fn hash_in_lanes<const LANES: usize, T: AsRef<[u8]>>(inputs: &[T]) -> Vec<B256> {
    let mut hashes = vec![B256::ZERO; inputs.len()];
    let order = longest_first(inputs);
    let blocks = |at: &usize| inputs.get(*at).map_or(0, |input| input.as_ref().len() / RATE + 1);
    let sum: usize = order.iter().map(blocks).sum();
    let mut lengths = order.iter().map(blocks);
    let (first, second) = (lengths.next().unwrap_or(0), lengths.next().unwrap_or(0));
    let longest = order.first().filter(|_| is_alone(first, second, sum)).copied();
    if let Some((place, input)) = longest.and_then(|at| hashes.get_mut(at).zip(inputs.get(at))) {
        *place = keccak256(input);
    }
    let rest = order.into_iter().skip(usize::from(longest.is_some()));
    let mut waiting = rest.filter_map(|position| {
        let input = inputs.get(position)?.as_ref();
        Some(Lane { position, input, next: 0, count: input.len() / RATE + 1 })
    });
    let mut state = KeccakState([[0; LANES]; 25]);
    let mut lanes: [Option<Lane<'_>>; LANES] = std::array::from_fn(|_| waiting.next());
    let mut busy = lanes.iter().flatten().count();
    // Of four lanes, the last goes on alone; a turn of eight is hardly dearer than one of one.
    let alone_max = usize::from(LANES != 8);
    while busy > alone_max {
        for (place, lane) in lanes.iter_mut().enumerate() {
            if let Some(lane) = lane {
                absorb(&mut state, place, lane.input, lane.next);
                lane.next += 1;
            }
        }
        permute(&mut state);
        for (place, lane) in lanes.iter_mut().enumerate() {
            let Some(ended) = lane.filter(|lane| lane.next == lane.count) else { continue };
            if let Some(hash) = hashes.get_mut(ended.position) {
                *hash = squeeze(&state, place);
            }
            *lane = waiting.next();
            busy -= usize::from(lane.is_none());
            clear(&mut state, place);
        }
    }
    for (place, lane) in lanes.iter().enumerate() {
        let Some(lane) = lane else { continue };
        let mut alone =
            KeccakState(state.0.map(|word| [word.get(place).copied().unwrap_or_default()]));
        for block in lane.next..lane.count {
            absorb(&mut alone, 0, lane.input, block);
            permute(&mut alone);
        }
        if let Some(hash) = hashes.get_mut(lane.position) {
            *hash = squeeze(&alone, 0);
        }
    }
    hashes
}

/// The positions of long inputs, the longest first, then of all others as they come: a lane that
/// begins a short one last is waited for no longer than that takes.
fn longest_first<T: AsRef<[u8]>>(inputs: &[T]) -> Vec<usize> {
    let length = |at: &usize| inputs.get(*at).map_or(0, |it| it.as_ref().len());
    let all = 0..inputs.len();
    if inputs.iter().all(|input| input.as_ref().len() <= SHORT_BYTES_MAX) {
        return all.collect();
    }
    let (mut order, short): (Vec<usize>, Vec<usize>) =
        all.partition(|at| length(at) > SHORT_BYTES_MAX);
    order.sort_unstable_by_key(|at| std::cmp::Reverse(length(at)));
    order.extend(short);
    order
}

/// Most transactions are shorter than this, and not worth being sorted.
const SHORT_BYTES_MAX: usize = 4 * RATE;

/// Few short inputs take one turn of the lanes together, however few they are.
const ALONE_BLOCKS_MIN: usize = 16;

/// Whether the longest input is hashed alone, by its blocks, those of the next one and those of all.
/// With the other lanes empty a turn of eight takes 1.3 times what assembly takes for one: that is
/// lost if nothing else is nearly as long, and the others together are short beside it.
fn is_alone(first: usize, second: usize, sum: usize) -> bool {
    let rest = sum.saturating_sub(first);
    first >= ALONE_BLOCKS_MIN
        && first > second.saturating_mul(2)
        && first.saturating_mul(4) > rest.saturating_mul(3)
}

fn clear<const LANES: usize>(state: &mut KeccakState<LANES>, lane: usize) {
    for word in &mut state.0 {
        if let Some(word) = word.get_mut(lane) {
            *word = 0;
        }
    }
}

/// Adds one block of a lane's input, padded if it is the last; nothing once it has ended.
fn absorb<const LANES: usize>(
    state: &mut KeccakState<LANES>,
    lane: usize,
    input: &[u8],
    block: usize,
) {
    let Some(rest) = input.get(block * RATE..) else { return };
    let mut add = |place: usize, word: u64| {
        if let Some(place) = state.0.get_mut(place).and_then(|word| word.get_mut(lane)) {
            *place ^= word;
        }
    };
    let (words, cut) = rest.as_chunks::<8>();
    for (place, word) in words.iter().take(RATE_WORDS).enumerate() {
        add(place, u64::from_le_bytes(*word));
    }
    if rest.len() < RATE {
        // The padding begins with a one after the last byte, and ends with one in the last bit.
        let last = match input.last_chunk() {
            // What is too much of the last eight bytes is shifted out: no byte is asked for by itself.
            Some(bytes) => {
                let bits = 8 * (rest.len() % 8);
                u64::from_le_bytes(*bytes) >> 8 >> (56 - bits) | 1 << bits
            }
            None => cut.iter().rev().fold(1, |sum: u64, byte| sum << 8 | u64::from(*byte)),
        };
        add(words.len(), last);
        add(RATE_WORDS - 1, 1 << 63);
    }
}

fn squeeze<const LANES: usize>(state: &KeccakState<LANES>, lane: usize) -> B256 {
    let mut hash = B256::ZERO;
    let (chunks, _) = hash.0.as_chunks_mut::<8>();
    for (place, word) in chunks.iter_mut().zip(&state.0) {
        *place = word.get(lane).copied().unwrap_or_default().to_le_bytes();
    }
    hash
}

fn permute<const LANES: usize>(state: &mut KeccakState<LANES>) {
    #[cfg(target_arch = "x86_64")]
    if LANES == 8 && std::arch::is_x86_feature_detected!("avx512f") {
        #[expect(unsafe_code, reason = "a vector unit is named by its feature")]
        // SAFETY: the processor has AVX-512F, as was detected just above.
        unsafe {
            wide::permute_eight(state);
        }
        return;
    } else if LANES == 4 && std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "a vector unit is named by its feature")]
        // SAFETY: the processor has AVX2, as was detected just above.
        unsafe {
            wide::permute_four(state);
        }
        return;
    }
    permute_each(state);
}

/// Without a vector unit: lane by lane, by the library's own permutation.
fn permute_each<const LANES: usize>(state: &mut KeccakState<LANES>) {
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

/// The permutation on four states in 256-bit registers, and on eight in 512-bit ones.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_andnot_si256, _mm256_or_si256, _mm256_set1_epi64x,
        _mm256_slli_epi64, _mm256_srli_epi64, _mm256_xor_si256, _mm512_rol_epi64,
        _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };

    use super::{KeccakState, ROUND_CONSTANTS};

    /// Rho and pi: where each word goes, and by how much it is turned.
    macro_rules! turns {
        ($a:ident, $moved:ident, $width:ident) => {
            turns!(
                $a, $moved, $width,
                10 1, 7 3, 11 6, 17 10, 18 15, 3 21, 5 28, 16 36, 8 45, 21 55, 24 2, 4 14,
                15 27, 23 41, 19 56, 13 8, 12 25, 2 43, 20 62, 14 18, 22 39, 9 61, 6 20
            )
        };
        ($a:ident, $moved:ident, $width:ident, $($to:literal $by:literal),*) => {
            $(
                let next = $a[$to];
                $a[$to] = $width::rotate::<$by, { 64 - $by }>($moved);
                $moved = next;
            )*
        };
    }

    /// The permutation on as many states as a register has words, by the operations of `$width`.
    macro_rules! permutation {
        ($name:ident, $feature:literal, $width:ident, $register:ident, $lanes:literal) => {
            #[target_feature(enable = $feature)]
            pub(super) fn $name<const LANES: usize>(state: &mut KeccakState<LANES>) {
                const {
                    assert!(LANES != $lanes || size_of::<[u64; LANES]>() == size_of::<$register>());
                };
                assert!(LANES == $lanes, "a register takes {} words", $lanes);
                #[expect(unsafe_code, reason = "words become registers without copying")]
                // SAFETY: 25 times as many words of 64 bits as a register has are 25 registers: the
                // size is asserted above, the state is aligned for the largest register, and every
                // bit pattern is a register's.
                let words: &mut [$register; 25] = unsafe { &mut *std::ptr::from_mut(state).cast() };
                let mut a = *words;
                for constant in ROUND_CONSTANTS {
                    let c: [$register; 5] = std::array::from_fn(|x| {
                        $width::sum($width::sum(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20])
                    });
                    for x in 0..5 {
                        let turned = $width::rotate::<1, 63>(c[(x + 1) % 5]);
                        for y in 0..5 {
                            a[x + 5 * y] = $width::sum(a[x + 5 * y], c[(x + 4) % 5], turned);
                        }
                    }
                    let mut moved = a[1];
                    turns!(a, moved, $width);
                    a[1] = $width::rotate::<44, 20>(moved);
                    for y in 0..5 {
                        let row: [$register; 5] = std::array::from_fn(|x| a[x + 5 * y]);
                        for x in 0..5 {
                            a[x + 5 * y] = $width::chi(row[x], row[(x + 1) % 5], row[(x + 2) % 5]);
                        }
                    }
                    a[0] = $width::add(a[0], constant);
                }
                *words = a;
            }
        };
    }
    permutation!(permute_four, "avx2", four, __m256i, 4);
    permutation!(permute_eight, "avx512f", eight, __m512i, 8);

    mod four {
        use super::{
            __m256i, _mm256_andnot_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_slli_epi64,
            _mm256_srli_epi64, _mm256_xor_si256,
        };

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn rotate<const LEFT: i32, const RIGHT: i32>(word: __m256i) -> __m256i {
            _mm256_or_si256(_mm256_slli_epi64::<LEFT>(word), _mm256_srli_epi64::<RIGHT>(word))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn sum(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
            _mm256_xor_si256(_mm256_xor_si256(a, b), c)
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn chi(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
            _mm256_xor_si256(a, _mm256_andnot_si256(b, c))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn add(a: __m256i, constant: u64) -> __m256i {
            _mm256_xor_si256(a, _mm256_set1_epi64x(constant.cast_signed()))
        }
    }

    mod eight {
        use super::{
            __m512i, _mm512_rol_epi64, _mm512_set1_epi64, _mm512_ternarylogic_epi64,
            _mm512_xor_si512,
        };

        /// Truth tables of three bits: all added up; the first added to "not second, and third".
        const SUM: i32 = 0x96;
        const CHI: i32 = 0xd2;

        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) fn rotate<const LEFT: i32, const RIGHT: i32>(word: __m512i) -> __m512i {
            const { assert!(LEFT + RIGHT == 64, "the same turn either way") };
            _mm512_rol_epi64::<LEFT>(word)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) fn sum(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
            _mm512_ternarylogic_epi64::<SUM>(a, b, c)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) fn chi(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
            _mm512_ternarylogic_epi64::<CHI>(a, b, c)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) fn add(a: __m512i, constant: u64) -> __m512i {
            _mm512_xor_si512(a, _mm512_set1_epi64(constant.cast_signed()))
        }
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
        fn check<const LANES: usize>() {
            let word = |at: usize| u64::try_from(at * 0x9e37_79b9).unwrap();
            let mut wide = KeccakState::<LANES>(std::array::from_fn(|at| {
                std::array::from_fn(|lane| word(at * 9 + lane))
            }));
            let mut plain = wide;
            permute(&mut wide);
            permute_each(&mut plain);
            assert_eq!(wide, plain);
        }
        check::<4>();
        check::<8>();
    }

    #[test]
    fn every_width_gives_the_same_hashes() {
        // One input is far longer than its neighbours.
        let mut inputs: Vec<Vec<u8>> = (0..29).map(|length| vec![7; length * 23]).collect();
        inputs.push(vec![9; 50_000]);
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let hashes = |width: Width| hash_each(width, &inputs);
        assert_eq!(hashes(Width::Four), hashes(Width::One));
        assert_eq!(hashes(Width::Eight), hashes(Width::One));
    }
}
