//! Numbers as JSON-RPC writes them: hexadecimal text.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A number that JSON has as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantity<T>(pub(crate) T);

/// What a quantity can be.
pub(crate) trait FromHex: Sized {
    fn from_hex(digits: &str) -> Option<Self>;
}

impl FromHex for u64 {
    fn from_hex(digits: &str) -> Option<Self> {
        Self::from_str_radix(digits, 16).ok()
    }
}

impl FromHex for u128 {
    fn from_hex(digits: &str) -> Option<Self> {
        Self::from_str_radix(digits, 16).ok()
    }
}

impl<'de, T: FromHex> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Hex(PhantomData))
    }
}

struct Hex<T>(PhantomData<T>);

impl<T: FromHex> Visitor<'_> for Hex<T> {
    type Value = Quantity<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number as 0x and hexadecimal digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let number = digits.and_then(T::from_hex);
        number.map(Quantity).ok_or_else(|| E::custom("not a number as 0x and hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_hexadecimal_text() {
        let parse = |text: &str| serde_json::from_str::<Quantity<u64>>(text).ok().map(|it| it.0);
        assert_eq!(parse("\"0x0\""), Some(0));
        assert_eq!(parse("\"0x00ff\""), Some(255));
        assert_eq!(parse("\"0xffffffffffffffff\""), Some(u64::MAX));
        for text in ["\"0x\"", "\"ff\"", "\"0x+1\"", "\"0x10000000000000000\"", "1", "null"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
