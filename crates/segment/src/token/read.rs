//! Tokens read: the values of a row, one after the other.
//!
//! An address is handed on as a place in the tables or in the row, and a word is written to where it
//! goes: copied from result to result, in pieces of other sizes than it was written in, each would
//! stall for longer than all else that is done with it. *Measured:* half of the time of an address.

#![expect(
    clippy::inline_always,
    reason = "called for every field of every row: as calls they took 3 % of a block's time more"
)]

use alloy_primitives::{B256, U256};

use super::{
    ADDRESS_TABLE, AMOUNT_BYTES_MAX, HOT_ADDRESSES, POWERS, RECENT_ADDRESSES_MAX, RECENT_WORDS_MAX,
    Recent, SELECTOR_LITERAL, WORD_ADDRESS, WORD_BYTES_MIN, WORD_DECIMAL, WORD_FULL, WORD_LEFT,
    WORD_NEGATIVE, WORD_RECENT, WORD_SMALL, WORD_TABLE, WORD_ZEROS,
};
use crate::bytes::{Cursor, wide};
use crate::corrupt::RowFault;
use crate::rlp::{put_number, put_u128};
use crate::tables::Tables;

const WORD_BYTES: usize = 32;

/// Reads one row.
#[derive(Debug)]
pub(crate) struct RowReader<'a> {
    pub(crate) cursor: Cursor<'a>,
    pub(super) tables: &'a Tables,
    recent_addresses: Recent<&'a [u8; 20], RECENT_ADDRESSES_MAX>,
    recent_words: Recent<B256, RECENT_WORDS_MAX>,
}

/// A number: few need more than half the width, and all else is dearer there.
enum Amount {
    Narrow(u128),
    Wide(U256),
}

impl Amount {
    fn of(number: U256) -> Self {
        u128::try_from(number).map_or(Self::Wide(number), Self::Narrow)
    }
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(row: &'a [u8], tables: &'a Tables) -> Self {
        let cursor = Cursor::new(row);
        let (recent_addresses, recent_words) = (Recent::new(), Recent::new());
        Self { cursor, tables, recent_addresses, recent_words }
    }

    #[inline(always)]
    pub(crate) fn amount_u64(&mut self, what: &'static str) -> Result<u64, RowFault> {
        let amount = self.amount_u128(what)?;
        u64::try_from(amount).map_err(|_| RowFault::TooLarge { what })
    }

    #[inline(always)]
    pub(crate) fn amount_u128(&mut self, what: &'static str) -> Result<u128, RowFault> {
        match self.amount(what)? {
            Amount::Narrow(number) => Ok(number),
            Amount::Wide(_) => Err(RowFault::TooLarge { what }),
        }
    }

    /// Appends an amount of up to 256 bits as RLP.
    pub(crate) fn amount_rlp(
        &mut self,
        what: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), RowFault> {
        match self.amount(what)? {
            Amount::Narrow(number) => put_u128(out, number),
            Amount::Wide(number) => put_number(out, &number.to_be_bytes::<32>()),
        }
        Ok(())
    }

    #[inline(always)]
    fn amount(&mut self, what: &'static str) -> Result<Amount, RowFault> {
        let tag = self.cursor.byte(what)?;
        if let Some(exponent) = tag.checked_sub(AMOUNT_BYTES_MAX).filter(|it| *it > 0) {
            return self.scaled(exponent, what);
        }
        if let Some(number) = self.narrow(tag) {
            return Ok(Amount::Narrow(number));
        }
        let number = U256::try_from_be_slice(self.cursor.take(tag.into(), what)?);
        Ok(Amount::of(number.ok_or(RowFault::TooLarge { what })?))
    }

    /// A number of so many bytes, if it is not wide. Where it is followed by more than it could take,
    /// what is too much is shifted out, and no byte is asked for by itself.
    #[inline(always)]
    fn narrow(&mut self, count: u8) -> Option<u128> {
        let excess = 16_u32.checked_sub(count.into()).filter(|_| count > 0)?;
        let rest = self.cursor.rest();
        let own = self.cursor.take(count.into(), "number").ok()?;
        Some(match rest.first_chunk() {
            Some(bytes) => u128::from_be_bytes(*bytes) >> (excess * 8),
            // The last one of a row.
            None => own.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)),
        })
    }

    #[inline(always)]
    fn scaled(&mut self, exponent: u8, what: &'static str) -> Result<Amount, RowFault> {
        let mantissa = self.cursor.varint(what)?;
        let scale = POWERS.get(usize::from(exponent)).ok_or(RowFault::TooLarge { what })?;
        if let [scale, 0, 0, 0] = scale.as_limbs() {
            return Ok(Amount::Narrow(u128::from(mantissa).wrapping_mul(u128::from(*scale))));
        }
        let product = U256::from(mantissa).checked_mul(*scale);
        Ok(Amount::of(product.ok_or(RowFault::TooLarge { what })?))
    }

    #[inline(always)]
    pub(crate) fn address(&mut self, what: &'static str) -> Result<&'a [u8; 20], RowFault> {
        let reference = self.cursor.varint(what)?;
        if let Some(entry) = reference.checked_sub(ADDRESS_TABLE) {
            let address = &find(&self.tables.addresses, entry, what)?.0.0;
            if entry >= HOT_ADDRESSES {
                // The writer would have referred to one that was seen before.
                self.recent_addresses.add(address);
            }
            return Ok(address);
        }
        if let Some(position) = reference.checked_sub(1) {
            let place = usize::try_from(position).unwrap_or(usize::MAX);
            let address = *self.recent_addresses.get(place).ok_or(RowFault::NoEntry {
                what,
                found: position,
                count: self.recent_addresses.len(),
            })?;
            self.recent_addresses.renew(place);
            return Ok(address);
        }
        let address = self.cursor.array_ref(what)?;
        self.recent_addresses.add(address);
        Ok(address)
    }

    pub(crate) fn selector(&mut self) -> Result<[u8; 4], RowFault> {
        match self.cursor.byte("selector")? {
            SELECTOR_LITERAL => self.cursor.array("selector"),
            entry => find(&self.tables.selectors, entry.into(), "selector").copied(),
        }
    }

    /// Appends words until `out` has grown by `length` bytes.
    pub(crate) fn words(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), RowFault> {
        let end = out.len().saturating_add(length);
        while out.len() < end {
            let tag = self.cursor.byte("word")?;
            if tag == WORD_ZEROS {
                let zeros = self.cursor.length("zero words")?.saturating_mul(WORD_BYTES);
                let grown = out.len().saturating_add(zeros);
                if grown > end {
                    return Err(RowFault::TooLarge { what: "zero words" });
                }
                out.resize(grown, 0);
            } else {
                self.put_word(tag, out)?;
            }
        }
        Ok(())
    }

    /// Appends one word.
    pub(crate) fn single_word(&mut self, out: &mut Vec<u8>) -> Result<(), RowFault> {
        let tag = self.cursor.byte("word")?;
        self.put_word(tag, out)
    }

    fn put_word(&mut self, tag: u8, out: &mut Vec<u8>) -> Result<(), RowFault> {
        let what = "word";
        let significant_bytes = match tag {
            WORD_SMALL..=0xff => {
                out.extend_from_slice(&[0; WORD_BYTES - 1]);
                out.push(tag - WORD_SMALL);
                return Ok(());
            }
            WORD_ADDRESS => {
                out.extend_from_slice(&[0; WORD_BYTES - 20]);
                out.extend_from_slice(self.address(what)?);
                return Ok(());
            }
            WORD_TABLE => {
                let entry = self.cursor.varint(what)?;
                out.extend_from_slice(find(&self.tables.words, entry, what)?.as_slice());
                return Ok(());
            }
            WORD_RECENT..WORD_SMALL => {
                let position = usize::from(tag.saturating_sub(WORD_RECENT));
                let word = self.recent_words.get(position).ok_or(RowFault::NoEntry {
                    what,
                    found: wide(position),
                    count: self.recent_words.len(),
                })?;
                out.extend_from_slice(word.as_slice());
                self.recent_words.renew(position);
                return Ok(());
            }
            WORD_DECIMAL => {
                let exponent = self.cursor.byte(what)?;
                match self.scaled(exponent, what)? {
                    Amount::Narrow(number) => put_narrow(out, number),
                    Amount::Wide(number) => out.extend_from_slice(&number.to_be_bytes::<32>()),
                }
                WORD_BYTES
            }
            1..=WORD_FULL => {
                match self.narrow(tag) {
                    Some(number) => put_narrow(out, number),
                    None => self.padded(tag, Padding::Before(0), out)?,
                }
                tag.into()
            }
            _ if tag > WORD_NEGATIVE && tag < WORD_DECIMAL => {
                self.padded(tag - WORD_NEGATIVE, Padding::Before(0xff), out)?;
                usize::from(tag - WORD_NEGATIVE)
            }
            _ if tag > WORD_LEFT && tag <= WORD_NEGATIVE => {
                self.padded(tag - WORD_LEFT, Padding::After, out)?;
                usize::from(tag - WORD_LEFT)
            }
            _ => return Err(RowFault::Tag { what, found: tag }),
        };
        if let Some(word) = out.last_chunk().filter(|_| significant_bytes >= WORD_BYTES_MIN) {
            self.recent_words.add(B256::new(*word));
        }
        Ok(())
    }

    /// Appends a word of so many bytes and what fills it up.
    fn padded(&mut self, count: u8, padding: Padding, out: &mut Vec<u8>) -> Result<(), RowFault> {
        let bytes = self.cursor.take(count.into(), "word")?;
        let begin = out.len();
        if let Padding::Before(byte) = padding {
            out.resize(begin.saturating_add(WORD_BYTES.saturating_sub(bytes.len())), byte);
        }
        out.extend_from_slice(bytes);
        out.resize(begin.saturating_add(WORD_BYTES), 0);
        Ok(())
    }
}

/// Appends a number as a word.
#[inline(always)]
fn put_narrow(out: &mut Vec<u8>, number: u128) {
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&number.to_be_bytes());
}

/// What fills a word up.
#[derive(Clone, Copy)]
enum Padding {
    /// This byte, before all others.
    Before(u8),
    /// Zeros at the end.
    After,
}

fn find<'a, T>(entries: &'a [T], entry: u64, what: &'static str) -> Result<&'a T, RowFault> {
    let position = usize::try_from(entry).unwrap_or(usize::MAX);
    let missing = RowFault::NoEntry { what, found: entry, count: entries.len() };
    entries.get(position).ok_or(missing)
}
