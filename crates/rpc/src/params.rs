//! Positional parameters: the forms that clients send, and no others.
//!
//! Any case, `0x` or `0X`, leading zeros and JSON integers are taken; whatever could mean two things,
//! such as `"10"` without a prefix, is not.

use std::borrow::Cow;

use alloy_primitives::{B256, hex};

use crate::refusal::Refusal;
use crate::scan::{Items, Token, TokenKind};

/// Hex digits of a hash; a number has fewer, however many zeros lead it.
const HASH_DIGITS: usize = 64;

/// Hex digits of a number of 64 bits.
const NUMBER_DIGITS: usize = 16;

/// Percentiles that a call may ask for.
const PERCENTILES_MAX: usize = 100;

/// A block as a parameter names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockRef {
    Number(u64),
    Tag(BlockTagName),
    Hash(B256),
}

/// A name for a block that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockTagName {
    Latest,
    Earliest,
    Safe,
    Finalized,
    Pending,
}

impl BlockTagName {
    const ALL: [(&'static str, Self); 5] = [
        ("latest", Self::Latest),
        ("earliest", Self::Earliest),
        ("safe", Self::Safe),
        ("finalized", Self::Finalized),
        ("pending", Self::Pending),
    ];

    /// How it is written.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, tag)| *tag == self);
        found.map_or("", |(name, _)| name)
    }

    fn find(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, tag)| *tag)
    }
}

/// The parameters of a call, from the first. Those that nobody asks for are passed over.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    items: Option<Items<'a>>,
    index: usize,
}

impl<'a> Params<'a> {
    pub(crate) fn new(params: Option<Token<'a>>) -> Self {
        Self { items: params.map(Token::items), index: 0 }
    }

    /// A block number or a tag.
    pub(crate) fn block(&mut self) -> Result<BlockRef, Refusal> {
        self.take(block_number_or_tag)
    }

    /// A block number or a tag, if one is given; null counts as none.
    pub(crate) fn optional_block(&mut self) -> Result<Option<BlockRef>, Refusal> {
        let given = |token: Token<'a>| {
            let is_null = token.kind() == TokenKind::Null;
            if is_null { Ok(None) } else { block_number_or_tag(token).map(Some) }
        };
        match self.take(given) {
            Err(Refusal::MissingParam { .. }) => Ok(None),
            read => read,
        }
    }

    /// A block by its hash.
    pub(crate) fn block_hash(&mut self) -> Result<BlockRef, Refusal> {
        self.hash().map(BlockRef::Hash)
    }

    /// A hash.
    pub(crate) fn hash(&mut self) -> Result<B256, Refusal> {
        self.take(hash)
    }

    /// Bytes, as many as there are.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Refusal> {
        self.take(bytes)
    }

    /// A block by number, by tag or by hash: what `eth_getBlockReceipts` takes.
    pub(crate) fn block_or_hash(&mut self) -> Result<BlockRef, Refusal> {
        self.take(|token| {
            if token.kind() == TokenKind::Object {
                return named_block(token);
            }
            let text = token.string();
            match text.as_deref().and_then(BlockTagName::find) {
                Some(tag) => Ok(BlockRef::Tag(tag)),
                None if text.is_some_and(|text| text.len() == HASH_DIGITS + 2) => {
                    hash(token).map(BlockRef::Hash)
                }
                None => number(token).map(BlockRef::Number),
            }
        })
    }

    /// A position in a list.
    pub(crate) fn index(&mut self) -> Result<u64, Refusal> {
        self.take(number)
    }

    /// A number of blocks, which nodes also take as a decimal string.
    pub(crate) fn count(&mut self) -> Result<u64, Refusal> {
        self.take(|token| {
            let text = token.string();
            let is_decimal = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
            match text.as_deref().filter(|text| !text.is_empty()).filter(is_decimal) {
                Some(digits) => digits.parse().map_err(|_| "number > 64 bits".to_owned()),
                None => number(token),
            }
        })
    }

    /// Percentiles from 0 to 100, each above the one before; null counts as none.
    pub(crate) fn percentiles(&mut self) -> Result<Vec<f64>, Refusal> {
        self.take(|token| match token.kind() {
            TokenKind::Null => Ok(Vec::new()),
            TokenKind::Array => percentiles(token),
            TokenKind::Object | TokenKind::String | TokenKind::Number | TokenKind::Bool => {
                Err(format!("{} where a list of percentiles belongs", kind_text(token)))
            }
        })
    }

    /// True or false; null counts as false, as everywhere.
    pub(crate) fn flag(&mut self) -> Result<bool, Refusal> {
        self.take(|token| match token.text() {
            "true" => Ok(true),
            "false" | "null" => Ok(false),
            _ => Err(format!("{} where true or false belongs", kind_text(token))),
        })
    }

    /// A text, such as a subscription's kind or id.
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, Refusal> {
        self.take(|token| match token.kind() {
            TokenKind::String => string(token),
            TokenKind::Object
            | TokenKind::Array
            | TokenKind::Number
            | TokenKind::Bool
            | TokenKind::Null => Err(format!("{} where a string belongs", kind_text(token))),
        })
    }

    /// The next parameter, of any form.
    pub(crate) fn take<T>(
        &mut self,
        read: impl FnOnce(Token<'a>) -> Result<T, String>,
    ) -> Result<T, Refusal> {
        let index = self.index;
        self.index = index.saturating_add(1);
        let token = self.items.as_mut().and_then(Iterator::next);
        let token = token.ok_or(Refusal::MissingParam { index })?;
        read(token).map_err(|reason| Refusal::BadParam { index, reason })
    }
}

pub(crate) fn block_number_or_tag(token: Token<'_>) -> Result<BlockRef, String> {
    let text = token.string();
    match text.as_deref().and_then(BlockTagName::find) {
        Some(tag) => Ok(BlockRef::Tag(tag)),
        None => number(token).map(BlockRef::Number),
    }
}

fn percentiles(list: Token<'_>) -> Result<Vec<f64>, String> {
    let mut found: Vec<f64> = Vec::new();
    for item in list.items() {
        if found.len() >= PERCENTILES_MAX {
            return Err(format!(
                "invalid reward percentile: over the query limit {PERCENTILES_MAX}"
            ));
        }
        let parsed = match item.kind() {
            TokenKind::Number => item.text().parse::<f64>().ok(),
            TokenKind::Object
            | TokenKind::Array
            | TokenKind::String
            | TokenKind::Bool
            | TokenKind::Null => None,
        };
        let percentile = parsed.filter(|value| (0.0..=100.0).contains(value)).ok_or_else(|| {
            let index = found.len();
            format!(
                "invalid reward percentile: the one at index {index} is no number from 0 to 100"
            )
        })?;
        if let Some(before) = found.last().filter(|before| **before >= percentile) {
            return Err(format!(
                "invalid reward percentile: {percentile} does not rise above {before}"
            ));
        }
        found.push(percentile);
    }
    Ok(found)
}

/// EIP-1898: a block as an object with its hash or its number.
fn named_block(token: Token<'_>) -> Result<BlockRef, String> {
    let mut found = None;
    for (key, value) in token.members() {
        let named = match key.string().as_deref() {
            Some("blockHash") => BlockRef::Hash(hash(value)?),
            Some("blockNumber") => BlockRef::Number(number(value)?),
            _ => continue,
        };
        // Two could be two blocks.
        if found.replace(named).is_some() {
            return Err("an object with more than one of blockHash and blockNumber".to_owned());
        }
    }
    found.ok_or_else(|| "an object without blockHash or blockNumber".to_owned())
}

fn number(token: Token<'_>) -> Result<u64, String> {
    match token.kind() {
        TokenKind::Number => {
            // The value is not repeated in the reason: it may be as long as a body.
            let is_whole = token.text().bytes().all(|byte| byte.is_ascii_digit());
            if !is_whole {
                return Err("not a non-negative integer".to_owned());
            }
            token.text().parse().map_err(|_| "number > 64 bits".to_owned())
        }
        TokenKind::String => hex_number(&string(token)?),
        TokenKind::Object | TokenKind::Array | TokenKind::Bool | TokenKind::Null => {
            Err(non_string(token))
        }
    }
}

fn hex_number(text: &str) -> Result<u64, String> {
    let digits = hex_digits(text)?;
    if digits.is_empty() {
        return Err("hex string \"0x\"".to_owned());
    }
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("invalid hex string".to_owned());
    }
    let significant = digits.trim_start_matches('0');
    if significant.len() > NUMBER_DIGITS {
        return Err("hex number > 64 bits".to_owned());
    }
    if digits.len() >= HASH_DIGITS {
        return Err(format!(
            "hex number of {} digits, leading zeros included: at most {} are read",
            digits.len(),
            HASH_DIGITS - 1
        ));
    }
    if significant.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(significant, 16).map_err(|_| "invalid hex string".to_owned())
}

fn bytes(token: Token<'_>) -> Result<Vec<u8>, String> {
    let text = string(token)?;
    let digits = hex_digits(&text)?;
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".to_owned());
    }
    // The decoder would pass over a second prefix.
    let decoded = if digits.starts_with("0x") { None } else { hex::decode(digits).ok() };
    decoded.ok_or_else(|| "invalid hex string".to_owned())
}

pub(crate) fn hash(token: Token<'_>) -> Result<B256, String> {
    let text = string(token)?;
    let digits = if text.is_empty() { "" } else { hex_digits(&text)? };
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".to_owned());
    }
    if digits.len() != HASH_DIGITS {
        return Err(format!(
            "hex string has length {}, want {HASH_DIGITS} for a hash",
            digits.len()
        ));
    }
    let mut hash = B256::ZERO;
    let decoded = hex::decode_to_slice(digits, hash.as_mut_slice());
    decoded.map_err(|_| "invalid hex string".to_owned())?;
    Ok(hash)
}

/// The content of a string. JSON lets one write half a character, which no text has.
pub(crate) fn string(token: Token<'_>) -> Result<Cow<'_, str>, String> {
    if token.kind() != TokenKind::String {
        return Err(non_string(token));
    }
    token.string().ok_or_else(|| "string with an unpaired surrogate".to_owned())
}

/// What follows the prefix.
pub(crate) fn hex_digits(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("empty hex string".to_owned());
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits.ok_or_else(|| "hex string without 0x prefix".to_owned())
}

fn non_string(token: Token<'_>) -> String {
    format!("non-string: {}", kind_text(token))
}

pub(crate) fn kind_text(token: Token<'_>) -> &'static str {
    match token.kind() {
        TokenKind::Object => "an object",
        TokenKind::Array => "an array",
        TokenKind::String => "a string",
        TokenKind::Number => "a number",
        TokenKind::Bool => "a boolean",
        TokenKind::Null => "null",
    }
}

#[cfg(test)]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods themselves are not general enough in their lifetimes"
)]
mod tests {
    use super::*;
    use crate::scan::scan;

    fn with<T>(
        list: &str,
        read: impl FnOnce(&mut Params<'_>) -> Result<T, Refusal>,
    ) -> Result<T, String> {
        let token = scan(list, |_| {}).unwrap();
        read(&mut Params::new(Some(token))).map_err(|refusal| refusal.message())
    }

    fn numbered(value: &str) -> Result<BlockRef, String> {
        with(&format!("[{value}]"), |params| params.block())
    }

    #[test]
    fn block_numbers_are_taken_in_every_form_that_means_one_thing() {
        for (value, expected) in [
            ("\"0x1b4\"", 436),
            ("\"0x01b4\"", 436),
            ("\"0X1B4\"", 436),
            ("\"0x0\"", 0),
            ("\"0x000000000000000000000000000000000000001\"", 1),
            ("436", 436),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
            ("\"0xffffffffffffffff\"", u64::MAX),
        ] {
            assert_eq!(numbered(value), Ok(BlockRef::Number(expected)), "{value}");
        }
        for (value, tag) in [
            ("\"latest\"", BlockTagName::Latest),
            ("\"LATEST\"", BlockTagName::Latest),
            ("\"safe\"", BlockTagName::Safe),
        ] {
            assert_eq!(numbered(value), Ok(BlockRef::Tag(tag)), "{value}");
        }
    }

    #[test]
    fn what_is_no_block_number_is_refused_with_the_reason() {
        let hash = format!("\"0x{}\"", "00".repeat(32));
        let zeros = format!("\"0x{}1\"", "0".repeat(5000));
        let large = format!("\"0x{}\"", "1".repeat(5000));
        for (value, reason) in [
            ("\"436\"", "hex string without 0x prefix"),
            ("\"\"", "empty hex string"),
            ("\"0x\"", "hex string \"0x\""),
            ("\"0x+5\"", "invalid hex string"),
            ("\" 0x5\"", "hex string without 0x prefix"),
            ("\"0x10000000000000000\"", "hex number > 64 bits"),
            (&hash, "hex number of 64 digits, leading zeros included: at most 63 are read"),
            (&zeros, "hex number of 5001 digits"),
            (&large, "hex number > 64 bits"),
            ("\"\\ud800\"", "string with an unpaired surrogate"),
            ("-1", "not a non-negative integer"),
            ("1.5", "not a non-negative integer"),
            ("1e3", "not a non-negative integer"),
            ("18446744073709551616", "number > 64 bits"),
            ("null", "non-string: null"),
            ("{\"blockNumber\":\"0x1\"}", "non-string: an object"),
            ("true", "non-string: a boolean"),
            ("\"newest\"", "hex string without 0x prefix"),
        ] {
            let refused = numbered(value).unwrap_err();
            assert!(refused.starts_with("invalid argument 0: "), "{refused}");
            assert!(refused.contains(reason), "{value}: {refused}");
            assert!(refused.len() < 100, "{refused}");
        }
        assert_eq!(
            with("[]", |params| params.block()),
            Err("missing value for required argument 0".into())
        );
    }

    #[test]
    fn hashes_have_64_digits_and_a_prefix() {
        let digits = "aB".repeat(32);
        let expected = B256::repeat_byte(0xab);
        for prefix in ["0x", "0X"] {
            assert_eq!(
                with(&format!("[\"{prefix}{digits}\"]"), |params| params.hash()),
                Ok(expected)
            );
        }
        for (value, reason) in [
            (format!("\"{digits}\""), "without 0x prefix"),
            (format!("\"0x{}\"", &digits[1..]), "odd length"),
            (format!("\"0x{}\"", &digits[2..]), "has length 62, want 64"),
            (format!("\"0x{}zz\"", &digits[2..]), "invalid hex string"),
            ("\"\"".to_owned(), "has length 0, want 64"),
            ("5".to_owned(), "non-string: a number"),
            ("null".to_owned(), "non-string: null"),
            ("\"latest\"".to_owned(), "without 0x prefix"),
        ] {
            let refused = with(&format!("[{value}]"), |params| params.hash()).unwrap_err();
            assert!(refused.contains(reason), "{value}: {refused}");
        }
    }

    #[test]
    fn flags_are_true_false_or_null() {
        let second = |list: &str| {
            with(list, |params| {
                params.block()?;
                params.flag()
            })
        };
        assert_eq!(second("[1,true]"), Ok(true));
        assert_eq!(second("[1,false,5]"), Ok(false));
        assert_eq!(second("[1,null]"), Ok(false));
        assert_eq!(second("[1]"), Err("missing value for required argument 1".into()));
        assert_eq!(
            second("[1,\"true\"]"),
            Err("invalid argument 1: a string where true or false belongs".into())
        );
        assert!(second("[1,1]").is_err());
    }

    #[test]
    fn bytes_have_two_digits_each_and_a_prefix() {
        let one = |value: &str| with(&format!("[{value}]"), |params| params.bytes());
        assert_eq!(one("\"0x\""), Ok(vec![]));
        assert_eq!(one("\"0X00fF\""), Ok(vec![0, 0xff]));
        for (value, reason) in [
            ("\"\"", "empty hex string"),
            ("\"00ff\"", "without 0x prefix"),
            ("\"0x0\"", "odd length"),
            ("\"0x0g\"", "invalid hex string"),
            ("\"0x0x\"", "invalid hex string"),
            ("\"0x\u{e9}\"", "invalid hex string"),
            ("[0,255]", "non-string: an array"),
            ("null", "non-string: null"),
        ] {
            let refused = one(value).unwrap_err();
            assert!(refused.contains(reason), "{value}: {refused}");
        }
    }

    #[test]
    fn counts_may_be_decimal_strings() {
        let one = |value: &str| with(&format!("[{value}]"), |params| params.count());
        for value in ["\"0x10\"", "\"16\"", "16", "\"0x010\""] {
            assert_eq!(one(value), Ok(16), "{value}");
        }
        for value in ["\"\"", "\"1x\"", "-1", "1.5", "null", "\"99999999999999999999\""] {
            assert!(one(value).is_err(), "{value}");
        }
    }

    #[test]
    fn percentiles_rise_from_0_to_100_and_are_at_most_a_hundred() {
        let list = |text: &str| with(&format!("[{text}]"), |params| params.percentiles());
        assert_eq!(list("[0, 1e1, 12.5, 100]"), Ok(vec![0.0, 10.0, 12.5, 100.0]));
        assert_eq!(list("[0,12.5,100]"), Ok(vec![0.0, 12.5, 100.0]));
        assert_eq!(list("[]"), Ok(vec![]));
        assert_eq!(list("null"), Ok(vec![]));
        for (text, reason) in [
            ("[101]", "the one at index 0 is no number from 0 to 100"),
            ("[5,-1]", "the one at index 1 is no number from 0 to 100"),
            ("[\"5\"]", "the one at index 0 is no number from 0 to 100"),
            ("[1e999]", "the one at index 0 is no number from 0 to 100"),
            ("[5,5]", "5 does not rise above 5"),
            ("[10,5.5]", "5.5 does not rise above 10"),
            ("5", "a number where a list of percentiles belongs"),
        ] {
            let refused = list(text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
        let many = |count: u32| {
            let all: Vec<String> = (0..count).map(|it| (f64::from(it) / 2.0).to_string()).collect();
            list(&format!("[{}]", all.join(","))).is_ok()
        };
        assert!(many(100) && !many(101));
        assert_eq!(
            with("[]", |params| params.percentiles()).unwrap_err(),
            "missing value for required argument 0"
        );
    }

    #[test]
    fn receipts_are_asked_for_by_number_tag_hash_or_object() {
        let hash = format!("\"0x{}\"", "11".repeat(32));
        let one = |value: &str| with(&format!("[{value}]"), |params| params.block_or_hash());
        assert_eq!(one("\"0x5\""), Ok(BlockRef::Number(5)));
        assert_eq!(one("\"latest\""), Ok(BlockRef::Tag(BlockTagName::Latest)));
        assert_eq!(one(&hash), Ok(BlockRef::Hash(B256::repeat_byte(0x11))));
        assert_eq!(
            one(&format!("{{\"blockHash\":{hash}}}")),
            Ok(BlockRef::Hash(B256::repeat_byte(0x11)))
        );
        assert_eq!(one("{\"blockNumber\":\"0x5\"}"), Ok(BlockRef::Number(5)));
        assert!(one("{}").is_err());
        assert!(one(&format!("{{\"blockHash\":{hash},\"blockNumber\":1}}")).is_err());
        assert!(one("{\"blockNumber\":1,\"blockNumber\":1}").is_err());
    }
}
