//! Tokens: the values of a row in few bytes.
//!
//! An address is a reference to the segment's table, to one seen before in the same row, or
//! twenty bytes. A word is cut down to what is not padding, or is a reference likewise. Rows do
//! not refer to each other, so that each can be read alone.

use alloy_primitives::{Address, B256, Selector, U256};
use arrayvec::ArrayVec;

use crate::bytes::{put_length, put_varint};
use crate::tables::{Census, Codebook};

mod read;
#[cfg(test)]
mod tests;

pub(crate) use read::RowReader;

/// Table entries that are cheaper than a reference to what was seen before: one byte either way,
/// and the same byte in every row.
const HOT_ADDRESSES: u64 = 96;
/// What is remembered of a row.
const RECENT_ADDRESSES_MAX: usize = 31;
const RECENT_WORDS_MAX: usize = 16;
/// A word with fewer bytes than this is not worth a reference.
const WORD_BYTES_MIN: usize = 6;

/// An address reference: 0 and the bytes, one seen before, or a table entry.
const ADDRESS_LITERAL: u64 = 0;
const ADDRESS_TABLE: u64 = 32;
const _: () = assert!(RECENT_ADDRESSES_MAX < 32, "references to recent addresses end below 32");

/// Word tags. Below 32 the number of bytes of a right-aligned number follows from the tag.
const WORD_FULL: u8 = 32;
const WORD_ADDRESS: u8 = 33;
const WORD_TABLE: u8 = 34;
const WORD_LEFT: u8 = 34; // plus 1 to 31
const WORD_NEGATIVE: u8 = 65; // plus 1 to 31
const WORD_DECIMAL: u8 = 97;
const WORD_ZEROS: u8 = 98;
const WORD_RECENT: u8 = 100; // plus 0 to 15
const WORD_SMALL: u8 = 128; // plus 0 to 127

/// Amount tags: up to 32 the number of bytes, above it a power of ten.
const AMOUNT_BYTES_MAX: u8 = 32;
const AMOUNT_EXPONENT_MAX: u8 = 77;

/// Where the values of a row go: into bytes, or into a census.
pub(crate) trait Tokens {
    fn byte(&mut self, byte: u8);
    fn raw(&mut self, bytes: &[u8]);
    fn varint(&mut self, value: u64);
    fn amount(&mut self, value: U256);
    fn address(&mut self, address: Address);
    fn selector(&mut self, selector: [u8; 4]);
    fn word(&mut self, word: &[u8; 32]);
    fn zeros(&mut self, count: usize);

    fn length(&mut self, length: usize) {
        self.varint(u64::try_from(length).unwrap_or(u64::MAX));
    }
}

/// What a word is, once its padding is seen through.
enum WordShape<'a> {
    Small(u8),
    Address(Address),
    /// Bytes after leading zeros.
    Right(&'a [u8]),
    /// Bytes before trailing zeros.
    Left(&'a [u8]),
    /// Bytes after leading ones.
    Negative(&'a [u8]),
    Full,
}

/// Addresses may begin with zeros, but hardly with more than three zero bytes.
const ADDRESS_BYTES: std::ops::RangeInclusive<usize> = 17..=20;

fn shape(word: &[u8; 32]) -> WordShape<'_> {
    let value = U256::from_be_bytes(*word);
    let right_bytes = value.byte_len();
    match right_bytes {
        0 => return WordShape::Small(0),
        1 if word.last().is_some_and(|value| *value < 0x80) => {
            return WordShape::Small(word.last().copied().unwrap_or_default());
        }
        _ if ADDRESS_BYTES.contains(&right_bytes) => {
            return WordShape::Address(Address::from_word(B256::from(*word)));
        }
        _ => {}
    }
    let left_bytes = 32 - value.trailing_zeros() / 8;
    let negative_bytes = 32 - (!value).leading_zeros() / 8;
    if right_bytes <= left_bytes && right_bytes <= negative_bytes && right_bytes < 32 {
        WordShape::Right(word.get(32 - right_bytes..).unwrap_or_default())
    } else if left_bytes <= negative_bytes && left_bytes < 32 {
        WordShape::Left(word.get(..left_bytes).unwrap_or_default())
    } else if negative_bytes < 32 && negative_bytes > 0 {
        WordShape::Negative(word.get(32 - negative_bytes..).unwrap_or_default())
    } else {
        WordShape::Full
    }
}

impl WordShape<'_> {
    /// How many bytes of the word are not padding.
    fn significant_bytes(&self) -> usize {
        match self {
            Self::Small(_) => 1,
            Self::Address(_) => 20,
            Self::Right(bytes) | Self::Left(bytes) | Self::Negative(bytes) => bytes.len(),
            Self::Full => 32,
        }
    }
}

/// The powers of ten that fit: a power is needed for every other value of a row.
static POWERS: [U256; POWERS_COUNT] = powers();
const POWERS_COUNT: usize = 78;
const _: () =
    assert!(POWERS_COUNT == 78 && AMOUNT_EXPONENT_MAX == 77, "10^77 is the last that fits");

const fn powers() -> [U256; POWERS_COUNT] {
    let ten = U256::from_limbs([10, 0, 0, 0]);
    let mut powers = [U256::ONE; POWERS_COUNT];
    let mut exponent = 1;
    while exponent < POWERS_COUNT {
        #[expect(clippy::indexing_slicing, reason = "the bound is the array's length")]
        {
            powers[exponent] = powers[exponent - 1].wrapping_mul(ten);
        }
        exponent += 1;
    }
    powers
}

/// `mantissa * 10^exponent`, where that is worth it.
fn decimal(value: U256) -> Option<(u8, u64)> {
    // Fewer than three zeros at the end are not worth it, and few numbers are divisible by eight.
    if value.trailing_zeros() < 3 || value.is_zero() {
        return None;
    }
    let (mantissa, exponent) = match u128::try_from(value) {
        Ok(value) => strip_zeros(value),
        Err(_) => strip_zeros_wide(value)?,
    };
    let mantissa = u64::try_from(mantissa).ok()?;
    let mantissa_bytes = (64 - mantissa.leading_zeros()).div_ceil(7).max(1);
    let value_bytes = u32::try_from(value.byte_len()).ok()?;
    (exponent > 2 && mantissa_bytes < value_bytes).then_some((exponent, mantissa))
}

/// The number without its decimal zeros, and how many these were.
fn strip_zeros(value: u128) -> (u128, u8) {
    let (mut mantissa, mut exponent) = (value, 0_u8);
    // Wide divisions are dear: most numbers fit half the width.
    while let Err(_wide) = u64::try_from(mantissa) {
        if !mantissa.is_multiple_of(10) {
            return (mantissa, exponent);
        }
        mantissa /= 10;
        exponent = exponent.saturating_add(1);
    }
    let mut narrow = u64::try_from(mantissa).unwrap_or_default();
    while narrow.is_multiple_of(10) && narrow > 0 {
        narrow /= 10;
        exponent = exponent.saturating_add(1);
    }
    (narrow.into(), exponent)
}

/// The same for numbers past 128 bits; `None` unless the rest fits.
fn strip_zeros_wide(value: U256) -> Option<(u128, u8)> {
    let ten = U256::from(10);
    let (mut mantissa, mut exponent) = (value, 0_u8);
    loop {
        if let Ok(narrow) = u128::try_from(mantissa) {
            let (mantissa, more) = strip_zeros(narrow);
            return Some((mantissa, exponent.saturating_add(more)));
        }
        let (quotient, remainder) = mantissa.div_rem(ten);
        if !remainder.is_zero() {
            return None;
        }
        mantissa = quotient;
        exponent = exponent.saturating_add(1);
    }
}

/// The last different values of a row, counted from the latest. Values stay where they are: what
/// moves is the order, a byte each, the latest last.
#[derive(Debug)]
struct Recent<T, const N: usize> {
    values: ArrayVec<T, N>,
    order: ArrayVec<u8, N>,
}

impl<T: Copy + PartialEq, const N: usize> Recent<T, N> {
    fn new() -> Self {
        Self { values: ArrayVec::new(), order: ArrayVec::new() }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn find(&self, value: &T) -> Option<usize> {
        (0..self.len()).find(|position| self.get(*position) == Some(value))
    }

    /// The value at a position in the order.
    fn get(&self, position: usize) -> Option<&T> {
        self.values.get(usize::from(*self.order.get(self.place(position)?)?))
    }

    /// Where in the order a position is.
    fn place(&self, position: usize) -> Option<usize> {
        self.order.len().checked_sub(position)?.checked_sub(1)
    }

    /// Makes the value at a position the latest.
    fn renew(&mut self, position: usize) {
        let place = self.place(position);
        if let Some(newer) = place.and_then(|place| self.order.get_mut(place..)) {
            newer.rotate_left(1);
        }
    }

    /// Makes a value that is not known the latest; the oldest gives way.
    fn add(&mut self, value: T) {
        let slot = u8::try_from(self.len()).unwrap_or(u8::MAX);
        if self.values.try_push(value).is_ok() {
            let _ = self.order.try_push(slot);
            return;
        }
        self.renew(N.saturating_sub(1));
        let oldest = self.order.last().copied().map(usize::from);
        if let Some(place) = oldest.and_then(|slot| self.values.get_mut(slot)) {
            *place = value;
        }
    }
}

impl Tokens for Census {
    fn byte(&mut self, _byte: u8) {}
    fn raw(&mut self, _bytes: &[u8]) {}
    fn varint(&mut self, _value: u64) {}
    fn amount(&mut self, _value: U256) {}
    fn zeros(&mut self, _count: usize) {}

    fn address(&mut self, address: Address) {
        self.count_address(address);
    }

    fn selector(&mut self, selector: [u8; 4]) {
        self.count_selector(selector);
    }

    fn word(&mut self, word: &[u8; 32]) {
        let shape = shape(word);
        match shape {
            WordShape::Address(address) => self.count_address(address),
            WordShape::Small(_) => {}
            WordShape::Right(_) | WordShape::Left(_) | WordShape::Negative(_) | WordShape::Full => {
                if shape.significant_bytes() >= WORD_TABLE_BYTES_MIN {
                    self.count_word(B256::from(*word));
                }
            }
        }
    }
}

/// A table entry takes 32 bytes whatever it replaces.
const WORD_TABLE_BYTES_MIN: usize = 12;

/// Writes one row.
pub(crate) struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    codebook: &'a Codebook,
    recent_addresses: Recent<Address, RECENT_ADDRESSES_MAX>,
    recent_words: Recent<B256, RECENT_WORDS_MAX>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, codebook: &'a Codebook) -> Self {
        Self { out, codebook, recent_addresses: Recent::new(), recent_words: Recent::new() }
    }

    /// How many bytes were written, by this writer and before it.
    pub(crate) fn written(&self) -> usize {
        self.out.len()
    }

    fn put_shape(&mut self, word: &[u8; 32], shape: &WordShape<'_>) {
        let tag = |base: u8, bytes: &[u8]| {
            base.saturating_add(u8::try_from(bytes.len()).unwrap_or(u8::MAX))
        };
        let (tag, bytes) = match shape {
            WordShape::Small(value) => (WORD_SMALL.saturating_add(*value), &[][..]),
            WordShape::Address(address) => {
                self.out.push(WORD_ADDRESS);
                return self.address(*address);
            }
            WordShape::Right(bytes) => (tag(0, bytes), *bytes),
            WordShape::Left(bytes) => (tag(WORD_LEFT, bytes), *bytes),
            WordShape::Negative(bytes) => (tag(WORD_NEGATIVE, bytes), *bytes),
            WordShape::Full => (WORD_FULL, word.as_slice()),
        };
        self.out.push(tag);
        self.out.extend_from_slice(bytes);
    }
}

impl Tokens for RowWriter<'_> {
    fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn varint(&mut self, value: u64) {
        put_varint(self.out, value);
    }

    fn amount(&mut self, value: U256) {
        if let Some((exponent, mantissa)) = decimal(value) {
            self.out.push(AMOUNT_BYTES_MAX.saturating_add(exponent));
            put_varint(self.out, mantissa);
            return;
        }
        let bytes = value.to_be_bytes::<32>();
        put_length(self.out, value.byte_len());
        self.out.extend_from_slice(bytes.get(32 - value.byte_len()..).unwrap_or_default());
    }

    fn address(&mut self, address: Address) {
        let entry = self.codebook.addresses.get(&address).copied();
        if let Some(entry) = entry.filter(|entry| *entry < HOT_ADDRESSES) {
            return put_varint(self.out, ADDRESS_TABLE.saturating_add(entry));
        }
        let seen = self.recent_addresses.find(&address);
        match (seen, entry) {
            (Some(position), _) => put_length(self.out, position.saturating_add(1)),
            (None, Some(entry)) => put_varint(self.out, ADDRESS_TABLE.saturating_add(entry)),
            (None, None) => {
                put_varint(self.out, ADDRESS_LITERAL);
                self.out.extend_from_slice(address.as_slice());
            }
        }
        match seen {
            Some(position) => self.recent_addresses.renew(position),
            None => self.recent_addresses.add(address),
        }
    }

    fn selector(&mut self, selector: [u8; 4]) {
        if let Some(entry) = self.codebook.selectors.get(&Selector::from(selector)) {
            self.out.push(*entry);
        } else {
            self.out.push(SELECTOR_LITERAL);
            self.out.extend_from_slice(&selector);
        }
    }

    fn word(&mut self, word: &[u8; 32]) {
        let shape = shape(word);
        if matches!(shape, WordShape::Address(_) | WordShape::Small(_)) {
            return self.put_shape(word, &shape);
        }
        let key = B256::from(*word);
        let significant_bytes = shape.significant_bytes();
        if significant_bytes >= WORD_TABLE_BYTES_MIN
            && let Some(entry) = self.codebook.words.get(&key)
        {
            self.out.push(WORD_TABLE);
            return put_varint(self.out, *entry);
        }
        if significant_bytes < WORD_BYTES_MIN {
            return self.put_shape(word, &shape);
        }
        let seen = self.recent_words.find(&key);
        if let Some(position) = seen.and_then(|position| u8::try_from(position).ok()) {
            self.out.push(WORD_RECENT.saturating_add(position));
        } else if let Some((exponent, mantissa)) = decimal(U256::from_be_bytes(*word)) {
            self.out.extend_from_slice(&[WORD_DECIMAL, exponent]);
            put_varint(self.out, mantissa);
        } else {
            self.put_shape(word, &shape);
        }
        match seen {
            Some(position) => self.recent_words.renew(position),
            None => self.recent_words.add(key),
        }
    }

    fn zeros(&mut self, count: usize) {
        if count == 1 {
            self.out.push(WORD_SMALL);
        } else {
            self.out.push(WORD_ZEROS);
            put_length(self.out, count);
        }
    }
}

/// In place of a table entry: the selector itself follows.
const SELECTOR_LITERAL: u8 = 0xff;
