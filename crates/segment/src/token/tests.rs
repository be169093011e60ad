//! Values on one side, their tokens on the other.

use alloy_primitives::{address, hex};

use super::*;
use crate::corrupt::RowFault;
use crate::tables::Tables;

/// An amount through RLP, which is how it is read.
fn read_amount(row: &mut RowReader<'_>) -> Result<U256, RowFault> {
    let (mut out, copy) = (Vec::new(), row.cursor);
    row.amount_rlp("amount", &mut out)?;
    let amount: U256 = alloy_rlp::decode_exact(&out).unwrap();
    // Those of 128 bits and of 64 are read as numbers too.
    let mut again = RowReader::new(copy.rest(), row.tables);
    assert_eq!(again.amount_u128("amount").ok(), u128::try_from(amount).ok());
    let mut again = RowReader::new(copy.rest(), row.tables);
    assert_eq!(again.amount_u64("amount").ok(), u64::try_from(amount).ok());
    Ok(amount)
}

fn read_word(row: &mut RowReader<'_>) -> Result<[u8; 32], RowFault> {
    let mut out = Vec::new();
    row.single_word(&mut out)?;
    Ok(out.try_into().unwrap())
}

/// Two table entries of each kind; entry 100 of the addresses is past the hot ones.
fn tables() -> Tables {
    let filler = (0..100).map(|byte| Address::repeat_byte(byte + 100));
    let mut addresses = vec![HOT];
    addresses.extend(filler.take(99));
    addresses.push(COLD);
    Tables { addresses, words: vec![B256::repeat_byte(7)], selectors: vec![[1, 2, 3, 4]] }
}

const HOT: Address = address!("00000000000000000000000000000000000000aa");
const COLD: Address = address!("1111111111111111111111111111111111111111");
const UNLISTED: Address = address!("2222222222222222222222222222222222222222");

/// Writes a row, compares its bytes, and reads it back.
fn check<T: PartialEq + std::fmt::Debug>(
    write: impl Fn(&mut RowWriter<'_>),
    expected: &str,
    read: impl Fn(&mut RowReader<'_>) -> Result<T, RowFault>,
    value: &T,
) {
    let tables = tables();
    let codebook = Codebook::new(&tables);
    let mut out = Vec::new();
    write(&mut RowWriter::new(&mut out, &codebook));
    assert_eq!(hex::encode(&out), expected.replace(' ', ""));
    let mut reader = RowReader::new(&out, &tables);
    assert_eq!(&read(&mut reader).unwrap(), value);
    assert!(reader.cursor.is_empty());
    // Cut anywhere, it is refused.
    for length in 0..out.len() {
        let cut = out.get(..length).unwrap();
        assert!(read(&mut RowReader::new(cut, &tables)).is_err(), "cut to {length} bytes");
    }
}

fn check_amount(value: u128, expected: &str) {
    let value = U256::from(value);
    check(|row| row.amount(value), expected, read_amount, &value);
}

#[test]
fn amounts_are_bytes_or_powers_of_ten() {
    check_amount(0, "00");
    check_amount(1, "01 01");
    check_amount(21_000, "23 15");
    check_amount(21_001, "02 5209");
    check_amount(1_000, "23 01");
    check_amount(10_000_000_000, "2a 01");
    check_amount(1_500_000_000_000_000_000, "31 0f");
    check_amount(123_456_789, "04 075bcd15");
}

#[test]
fn the_largest_amount_comes_back() {
    let digits = "20".to_owned() + &"ff".repeat(32);
    check(|row| row.amount(U256::MAX), &digits, read_amount, &U256::MAX);
}

#[test]
fn addresses_are_entries_or_seen_before_or_bytes() {
    let addresses = vec![HOT, COLD, UNLISTED, COLD, UNLISTED, HOT];
    let unlisted = "00".to_owned() + &"22".repeat(20);
    check(
        |row| addresses.iter().for_each(|address| row.address(*address)),
        // Table entry 0, entry 100, the bytes, the one before last, again, entry 0.
        &format!("20 8401 {unlisted} 02 02 20"),
        |row| (0..6).map(|_| row.address("address").map(Address::from)).collect(),
        &addresses,
    );
}

fn check_words(words: &[[u8; 32]], expected: &str) {
    check(
        |row| words.iter().for_each(|word| row.word(word)),
        expected,
        |row| words.iter().map(|_| read_word(row)).collect(),
        &words.to_vec(),
    );
}

fn right(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[32 - bytes.len()..].copy_from_slice(bytes);
    word
}

fn left(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[..bytes.len()].copy_from_slice(bytes);
    word
}

#[test]
fn words_lose_their_padding() {
    check_words(&[right(&[0x40])], "c0");
    check_words(&[right(&[0x80])], "01 80");
    check_words(&[right(&[1, 2, 3])], "03 010203");
    check_words(&[left(b"abc")], "25 616263");
    // Too many zeros for an address.
    check_words(&[right(&HOT.0.0)], "01 aa");
    check_words(&[right(&UNLISTED.0.0)], &format!("21 00 {}", "22".repeat(20)));
    let mut negative = [0xff; 32];
    negative[31] = 0x9c;
    check_words(&[negative], "42 9c");
    let full = *b"thirty-two bytes without padding";
    check_words(&[full], &format!("20 {}", hex::encode(full)));
}

#[test]
fn words_are_entries_or_powers_of_ten_or_seen_before() {
    check_words(&[[7; 32]], "22 00");
    // 10^18 takes eight bytes.
    check_words(&[right(&1_000_000_000_000_000_000_u64.to_be_bytes())], "61 12 01");
    let one = right(&[9; 8]);
    let other = right(&[8; 8]);
    let (nines, eights) = ("09".repeat(8), "08".repeat(8));
    check_words(&[one, other, one, one], &format!("08 {nines} 08 {eights} 65 64"));
}

#[test]
fn rows_of_zero_words_are_counted() {
    let mut expected = vec![0; 3 * 32];
    expected.extend(right(&[5]));
    check(
        |row| {
            row.zeros(3);
            row.word(&right(&[5]));
        },
        "62 03 85",
        |row| {
            let mut out = Vec::new();
            row.words(4 * 32, &mut out).map(|()| out)
        },
        &expected,
    );
}

#[test]
fn more_zero_words_than_asked_for_are_refused() {
    let tables = tables();
    let mut reader = RowReader::new(&[WORD_ZEROS, 0xff, 0xff, 0x7f], &tables);
    let mut out = Vec::new();
    assert_eq!(reader.words(64, &mut out), Err(RowFault::TooLarge { what: "zero words" }));
    assert!(out.is_empty());
}

#[test]
fn selectors_are_entries_or_bytes() {
    let selectors = vec![[1, 2, 3, 4], [9, 9, 9, 9]];
    check(
        |row| selectors.iter().for_each(|selector| row.selector(*selector)),
        "00 ff 09090909",
        |row| (0..2).map(|_| row.selector()).collect(),
        &selectors,
    );
}

#[test]
fn references_to_nothing_are_refused() {
    let tables = tables();
    for (bytes, what) in [(&[0xff, 0x7f][..], "address"), (&[5], "address")] {
        let mut reader = RowReader::new(bytes, &tables);
        let fault = reader.address("address").unwrap_err();
        assert!(matches!(fault, RowFault::NoEntry { what: found, .. } if found == what), "{fault}");
    }
    let mut reader = RowReader::new(&[99], &tables);
    assert_eq!(read_word(&mut reader), Err(RowFault::Tag { what: "word", found: 99 }));
}
