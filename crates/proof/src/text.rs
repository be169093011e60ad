//! The text of a bundle: JSON in the one form that its content can have.
//!
//! There is nothing to normalise and nothing to compare afterwards: each part has one spelling, and
//! the reader accepts no other. So whitespace, another order, unknown or repeated members, capital
//! digits and leading zeros are all refused at the byte where they are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::hash::Hash32;
use crate::step::{ProofRefusal, ProofStepName};

/// The largest integer that every JSON reader keeps exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// How much of what is there instead an error shows.
const SHOWN_BYTES: usize = 24;

/// Items of all lists together: more than a block or a range of blocks ever has. An item of five bytes
/// of text takes ten times as much memory.
const ITEMS_MAX: usize = 1 << 20;

/// A place in the text.
#[derive(Clone, Debug)]
pub(crate) struct CanonicalText<'a> {
    text: &'a [u8],
    offset: usize,
    /// How many items of lists may still come.
    items_left: usize,
}

impl<'a> CanonicalText<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, offset: 0, items_left: ITEMS_MAX }
    }

    /// How far the reader is.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes read since an earlier offset.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.offset).unwrap_or_default()
    }

    /// Whether these bytes come next; if so, they are passed over.
    pub(crate) fn passes(&mut self, expected: &str) -> bool {
        let comes = self.rest().starts_with(expected.as_bytes());
        if comes {
            self.offset = self.offset.saturating_add(expected.len());
        }
        comes
    }

    /// These bytes must come next.
    pub(crate) fn expect(&mut self, expected: &str) -> Result<(), ProofRefusal> {
        if self.passes(expected) {
            return Ok(());
        }
        // The place where both part, which is where the mistake is.
        let same = self.rest().iter().zip(expected.bytes()).take_while(|(a, b)| **a == *b).count();
        let expected = expected.get(same..).unwrap_or_default();
        self.offset = self.offset.saturating_add(same);
        Err(self.refuse(&format!("expected `{expected}`")))
    }

    /// One of two must come next; whether it is the first.
    pub(crate) fn either(&mut self, first: &str, second: &str) -> Result<bool, ProofRefusal> {
        if self.passes(first) {
            return Ok(true);
        }
        if self.passes(second) {
            return Ok(false);
        }
        Err(self.refuse(&format!("expected `{first}` or `{second}`")))
    }

    /// An integer without sign, leading zeros or exponent.
    pub(crate) fn number(&mut self) -> Result<u64, ProofRefusal> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let has_leading_zero = digits > 1 && self.rest().first() == Some(&b'0');
        if digits == 0 || has_leading_zero {
            return Err(self.refuse("expected an integer without leading zeros"));
        }
        let mut number: u64 = 0;
        for digit in self.rest().iter().take(digits) {
            let longer = number
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(u64::from(digit.saturating_sub(b'0'))))
                .filter(|number| *number <= NUMBER_MAX);
            number = longer.ok_or_else(|| self.refuse("expected an integer below 2^53"))?;
        }
        self.offset = self.offset.saturating_add(digits);
        Ok(number)
    }

    /// Bytes, at least one, as `"0x"` with two lowercase digits for each.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, ProofRefusal> {
        self.expect("\"0x")?;
        let count = self.rest().iter().take_while(|byte| digit_value(**byte).is_some()).count();
        let digits = self.rest().get(..count).unwrap_or_default();
        let (pairs, odd) = digits.as_chunks::<2>();
        if pairs.is_empty() || !odd.is_empty() {
            let hint = "expected lowercase hex digits, an even number of them, and some";
            self.offset = self.offset.saturating_add(count);
            return Err(self.refuse(hint));
        }
        let value = |digit: u8| digit_value(digit).unwrap_or_default();
        let bytes = pairs.iter().map(|[high, low]| value(*high) << 4 | value(*low)).collect();
        self.offset = self.offset.saturating_add(count);
        self.expect("\"")?;
        Ok(bytes)
    }

    /// As many bytes as the caller's array has.
    pub(crate) fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], ProofRefusal> {
        let start = self.offset;
        let bytes = self.bytes()?;
        let count = bytes.len();
        bytes.try_into().map_err(|_bytes| {
            let at = Self { offset: start, ..*self };
            at.refuse(&format!("expected {BYTES} bytes, not {count},"))
        })
    }

    pub(crate) fn hash(&mut self) -> Result<Hash32, ProofRefusal> {
        self.array().map(Hash32)
    }

    /// A list of as many items as the whole text may have.
    pub(crate) fn long_list<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, ProofRefusal>,
    ) -> Result<Vec<T>, ProofRefusal> {
        self.list(ITEMS_MAX, item)
    }

    /// A list of at most `count_max` items.
    pub(crate) fn list<T>(
        &mut self,
        count_max: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, ProofRefusal>,
    ) -> Result<Vec<T>, ProofRefusal> {
        self.expect("[")?;
        let mut items = Vec::new();
        if self.passes("]") {
            return Ok(items);
        }
        loop {
            if items.len() == count_max {
                return Err(self.refuse(&format!("expected at most {count_max} items")));
            }
            let Some(left) = self.items_left.checked_sub(1) else {
                return Err(
                    self.refuse(&format!("expected at most {ITEMS_MAX} items in all lists"))
                );
            };
            self.items_left = left;
            items.push(item(self)?);
            if !self.either(",", "]")? {
                return Ok(items);
            }
        }
    }

    /// Nothing but the newline at the end of a file may follow.
    pub(crate) fn end(&mut self) -> Result<(), ProofRefusal> {
        self.passes("\n");
        if self.rest().is_empty() { Ok(()) } else { Err(self.refuse("expected the end")) }
    }

    /// A refusal at this place.
    pub(crate) fn refuse(&self, what: &str) -> ProofRefusal {
        let rest = self.rest();
        let shown = rest.get(..SHOWN_BYTES.min(rest.len())).unwrap_or_default();
        let found = if shown.is_empty() {
            String::from("the text ends")
        } else {
            format!("there is `{}`", shown.escape_ascii())
        };
        let hint = match rest.first() {
            Some(b' ' | b'\t' | b'\r' | b'\n') => "; a bundle is compact JSON: try `jq -c .`",
            _ => "",
        };
        ProofStepName::Text.refuse(format!("byte {}: {what} but {found}{hint}", self.offset))
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.offset..).unwrap_or_default()
    }
}

fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn a_number_has_one_spelling() {
        let read = |text: &str| {
            let mut reader = CanonicalText::new(text.as_bytes());
            let number = reader.number().ok()?;
            reader.end().ok().map(|()| number)
        };
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("9007199254740991"), Some(NUMBER_MAX));
        for other in ["", "00", "01", "+1", "-1", "1.0", "1e3", "9007199254740992", "1 ", "1\n\n"] {
            assert_eq!(read(other), None, "{other:?}");
        }
        assert_eq!(read(&"9".repeat(40)), None);
    }

    #[test]
    fn bytes_have_one_spelling() {
        let read = |text: &str| CanonicalText::new(text.as_bytes()).bytes().ok();
        assert_eq!(read("\"0x00ff\""), Some([0, 255].into()));
        for other in ["\"0x\"", "\"0x0\"", "\"0xFF\"", "\"ff\"", "\"0xf g\"", "0xff", "\"0xff"] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_list_ends_where_it_may() {
        let read = |text: &str| {
            let mut reader = CanonicalText::new(text.as_bytes());
            let list = reader.list(2, CanonicalText::number).ok()?;
            reader.end().ok().map(|()| list)
        };
        assert_eq!(read("[]"), Some([].into()));
        assert_eq!(read("[1,2]\n"), Some([1, 2].into()));
        for other in ["[1,2,3]", "[1,]", "[,1]", "[1 ,2]", "[1", "[1,2", "1", "[1]]"] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_byte_and_says_what_helps() {
        let mut reader = CanonicalText::new(b"{\n \"version\":1}");
        assert_eq!(
            reader.expect("{\"version\":").unwrap_err().to_string(),
            "text: byte 1: expected `\"version\":` but there is `\\n \\\"version\\\":1}`; \
             a bundle is compact JSON: try `jq -c .`"
        );
    }
}
