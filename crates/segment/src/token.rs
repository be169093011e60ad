//! Tokens: the values of a row in few bytes.
//!
//! Knows: amounts, addresses and 32-byte words, and what makes most of them short.
//! Never knows: which field of which transaction a value is.
//!
//! An address is a reference to the segment's table, to one seen before in the same row, or
//! twenty bytes. A word is cut down to what is not padding, or is a reference likewise. Rows do
//! not refer to each other, so that each can be read alone.

use alloy_primitives::{Address, B256, U256};

use crate::bytes::{Cursor, put_length, put_varint};
use crate::corrupt::RowFault;
use crate::tables::{Census, Codebook, Tables};

#[cfg(test)]
mod tests;

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
enum Shape<'a> {
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

fn shape(word: &[u8; 32]) -> Shape<'_> {
    let after = |padding: u8| word.iter().take_while(|byte| **byte == padding).count();
    let zeros = after(0);
    let right = word.get(zeros..).unwrap_or_default();
    match right {
        [] => return Shape::Small(0),
        [value] if *value < 0x80 => return Shape::Small(*value),
        _ if ADDRESS_BYTES.contains(&right.len()) => {
            return Shape::Address(Address::from_word(B256::from(*word)));
        }
        _ => {}
    }
    let ones = after(0xff);
    let negative = word.get(ones..).unwrap_or_default();
    let left_bytes = 32 - word.iter().rev().take_while(|byte| **byte == 0).count();
    let left = word.get(..left_bytes).unwrap_or_default();
    if right.len() <= left.len() && right.len() <= negative.len() && right.len() < 32 {
        Shape::Right(right)
    } else if left.len() <= negative.len() && left.len() < 32 {
        Shape::Left(left)
    } else if negative.len() < 32 && !negative.is_empty() {
        Shape::Negative(negative)
    } else {
        Shape::Full
    }
}

/// How many bytes of a word are not padding.
fn significant_bytes(word: &[u8; 32]) -> usize {
    match shape(word) {
        Shape::Small(_) => 1,
        Shape::Address(_) => 20,
        Shape::Right(bytes) | Shape::Left(bytes) | Shape::Negative(bytes) => bytes.len(),
        Shape::Full => 32,
    }
}

/// `mantissa * 10^exponent`, where that is worth it.
fn decimal(value: U256) -> Option<(u8, u64)> {
    let ten = U256::from(10);
    let (mut mantissa, mut exponent) = (value, 0_u8);
    while exponent < AMOUNT_EXPONENT_MAX {
        let (quotient, remainder) = mantissa.div_rem(ten);
        if !remainder.is_zero() {
            break;
        }
        mantissa = quotient;
        exponent = exponent.saturating_add(1);
    }
    let mantissa = u64::try_from(mantissa).ok()?;
    let mantissa_bytes = (64 - mantissa.leading_zeros()).div_ceil(7).max(1);
    let value_bytes = u32::try_from(value.byte_len()).ok()?;
    (exponent > 2 && mantissa_bytes < value_bytes).then_some((exponent, mantissa))
}

/// The values of the row that was seen last come first.
fn remember<T: PartialEq>(recent: &mut Vec<T>, value: T, count_max: usize) {
    if let Some(position) = recent.iter().position(|seen| *seen == value) {
        recent.remove(position);
    } else if recent.len() == count_max {
        recent.pop();
    }
    recent.insert(0, value);
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
        match shape(word) {
            Shape::Address(address) => self.count_address(address),
            Shape::Small(_) => {}
            Shape::Right(_) | Shape::Left(_) | Shape::Negative(_) | Shape::Full => {
                if significant_bytes(word) >= WORD_TABLE_BYTES_MIN {
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
    recent_addresses: Vec<Address>,
    recent_words: Vec<B256>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, codebook: &'a Codebook) -> Self {
        Self { out, codebook, recent_addresses: Vec::new(), recent_words: Vec::new() }
    }

    /// How many bytes were written, by this writer and before it.
    pub(crate) fn written(&self) -> usize {
        self.out.len()
    }

    fn put_shape(&mut self, word: &[u8; 32]) {
        let tag = |base: u8, bytes: &[u8]| {
            base.saturating_add(u8::try_from(bytes.len()).unwrap_or(u8::MAX))
        };
        let (tag, bytes) = match shape(word) {
            Shape::Small(value) => (WORD_SMALL.saturating_add(value), &[][..]),
            Shape::Address(address) => {
                self.out.push(WORD_ADDRESS);
                return self.address(address);
            }
            Shape::Right(bytes) => (tag(0, bytes), bytes),
            Shape::Left(bytes) => (tag(WORD_LEFT, bytes), bytes),
            Shape::Negative(bytes) => (tag(WORD_NEGATIVE, bytes), bytes),
            Shape::Full => (WORD_FULL, word.as_slice()),
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
        let bytes = value.to_be_bytes_trimmed_vec();
        put_length(self.out, bytes.len());
        self.out.extend_from_slice(&bytes);
    }

    fn address(&mut self, address: Address) {
        let entry = self.codebook.addresses.get(&address).copied();
        if let Some(entry) = entry.filter(|entry| *entry < HOT_ADDRESSES) {
            return put_varint(self.out, ADDRESS_TABLE.saturating_add(entry));
        }
        let seen = self.recent_addresses.iter().position(|seen| *seen == address);
        match (seen, entry) {
            (Some(position), _) => put_length(self.out, position.saturating_add(1)),
            (None, Some(entry)) => put_varint(self.out, ADDRESS_TABLE.saturating_add(entry)),
            (None, None) => {
                put_varint(self.out, ADDRESS_LITERAL);
                self.out.extend_from_slice(address.as_slice());
            }
        }
        remember(&mut self.recent_addresses, address, RECENT_ADDRESSES_MAX);
    }

    fn selector(&mut self, selector: [u8; 4]) {
        if let Some(entry) = self.codebook.selectors.get(&selector) {
            self.out.push(*entry);
        } else {
            self.out.push(SELECTOR_LITERAL);
            self.out.extend_from_slice(&selector);
        }
    }

    fn word(&mut self, word: &[u8; 32]) {
        if matches!(shape(word), Shape::Address(_) | Shape::Small(_)) {
            return self.put_shape(word);
        }
        let key = B256::from(*word);
        if let Some(entry) = self.codebook.words.get(&key) {
            self.out.push(WORD_TABLE);
            return put_varint(self.out, *entry);
        }
        if significant_bytes(word) < WORD_BYTES_MIN {
            return self.put_shape(word);
        }
        let seen = self.recent_words.iter().position(|seen| *seen == key);
        let decimal = decimal(U256::from_be_bytes(*word));
        match (seen.and_then(|position| u8::try_from(position).ok()), decimal) {
            (Some(position), _) => self.out.push(WORD_RECENT.saturating_add(position)),
            (None, Some((exponent, mantissa))) => {
                self.out.extend_from_slice(&[WORD_DECIMAL, exponent]);
                put_varint(self.out, mantissa);
            }
            (None, None) => self.put_shape(word),
        }
        remember(&mut self.recent_words, key, RECENT_WORDS_MAX);
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

/// Reads one row.
#[derive(Debug)]
pub(crate) struct RowReader<'a> {
    pub(crate) cursor: Cursor<'a>,
    tables: &'a Tables,
    recent_addresses: Vec<Address>,
    recent_words: Vec<B256>,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(row: &'a [u8], tables: &'a Tables) -> Self {
        let cursor = Cursor::new(row);
        Self { cursor, tables, recent_addresses: Vec::new(), recent_words: Vec::new() }
    }

    pub(crate) fn amount(&mut self, what: &'static str) -> Result<U256, RowFault> {
        let tag = self.cursor.byte(what)?;
        match tag.checked_sub(AMOUNT_BYTES_MAX) {
            None | Some(0) => {
                let bytes = self.cursor.take(tag.into(), what)?;
                Ok(U256::from_be_slice(bytes))
            }
            Some(exponent) => self.scaled(exponent, what),
        }
    }

    fn scaled(&mut self, exponent: u8, what: &'static str) -> Result<U256, RowFault> {
        let mantissa = U256::from(self.cursor.varint(what)?);
        let scale = U256::from(10).checked_pow(U256::from(exponent));
        scale.and_then(|scale| mantissa.checked_mul(scale)).ok_or(RowFault::TooLarge { what })
    }

    pub(crate) fn address(&mut self, what: &'static str) -> Result<Address, RowFault> {
        let reference = self.cursor.varint(what)?;
        let address = if let Some(entry) = reference.checked_sub(ADDRESS_TABLE) {
            let address = find(&self.tables.addresses, entry, what)?;
            if entry < HOT_ADDRESSES {
                return Ok(address);
            }
            address
        } else if let Some(position) = reference.checked_sub(1) {
            find(&self.recent_addresses, position, what)?
        } else {
            Address::from(self.cursor.array::<20>(what)?)
        };
        remember(&mut self.recent_addresses, address, RECENT_ADDRESSES_MAX);
        Ok(address)
    }

    pub(crate) fn selector(&mut self) -> Result<[u8; 4], RowFault> {
        match self.cursor.byte("selector")? {
            SELECTOR_LITERAL => self.cursor.array("selector"),
            entry => find(&self.tables.selectors, entry.into(), "selector"),
        }
    }

    /// Reads words until `out` has grown by `length` bytes.
    pub(crate) fn words(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), RowFault> {
        let end = out.len().saturating_add(length);
        while out.len() < end {
            let tag = self.cursor.byte("word")?;
            if tag == WORD_ZEROS {
                let zeros = self.cursor.length("zero words")?.saturating_mul(32);
                let grown = out.len().saturating_add(zeros);
                if grown > end {
                    return Err(RowFault::TooLarge { what: "zero words" });
                }
                out.resize(grown, 0);
            } else {
                out.extend_from_slice(&self.word(tag)?);
            }
        }
        Ok(())
    }

    /// Reads one word.
    pub(crate) fn single_word(&mut self) -> Result<[u8; 32], RowFault> {
        let tag = self.cursor.byte("word")?;
        self.word(tag)
    }

    fn word(&mut self, tag: u8) -> Result<[u8; 32], RowFault> {
        let what = "word";
        let mut word = [0; 32];
        match tag {
            WORD_SMALL..=0xff => {
                if let Some(last) = word.last_mut() {
                    *last = tag - WORD_SMALL;
                }
                return Ok(word);
            }
            WORD_ADDRESS => return Ok(self.address(what)?.into_word().0),
            WORD_TABLE => {
                let entry = self.cursor.varint(what)?;
                return find(&self.tables.words, entry, what).map(|word| word.0);
            }
            WORD_RECENT..WORD_SMALL => {
                let position = u64::from(tag.saturating_sub(WORD_RECENT));
                word = find(&self.recent_words, position, what)?.0;
            }
            WORD_DECIMAL => {
                let exponent = self.cursor.byte(what)?;
                word = self.scaled(exponent, what)?.to_be_bytes();
            }
            1..=WORD_FULL => {
                let bytes = self.cursor.take(tag.into(), what)?;
                let place = word.len().saturating_sub(bytes.len());
                fill(&mut word, place, bytes);
            }
            _ if tag > WORD_NEGATIVE && tag < WORD_DECIMAL => {
                word = [0xff; 32];
                let bytes = self.cursor.take((tag - WORD_NEGATIVE).into(), what)?;
                let place = word.len().saturating_sub(bytes.len());
                fill(&mut word, place, bytes);
            }
            _ if tag > WORD_LEFT && tag <= WORD_NEGATIVE => {
                let bytes = self.cursor.take((tag - WORD_LEFT).into(), what)?;
                fill(&mut word, 0, bytes);
            }
            _ => return Err(RowFault::Tag { what, found: tag }),
        }
        if tag == WORD_DECIMAL
            || (WORD_RECENT..WORD_SMALL).contains(&tag)
            || significant_bytes(&word) >= WORD_BYTES_MIN
        {
            remember(&mut self.recent_words, B256::from(word), RECENT_WORDS_MAX);
        }
        Ok(word)
    }
}

fn fill(word: &mut [u8; 32], place: usize, bytes: &[u8]) {
    for (to, from) in word.iter_mut().skip(place).zip(bytes) {
        *to = *from;
    }
}

fn find<T: Copy>(entries: &[T], entry: u64, what: &'static str) -> Result<T, RowFault> {
    let position = usize::try_from(entry).unwrap_or(usize::MAX);
    entries.get(position).copied().ok_or(RowFault::NoEntry {
        what,
        found: entry,
        count: entries.len(),
    })
}
