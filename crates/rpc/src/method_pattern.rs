//! Methods as an operator names them: one by its name, or all that begin in one way.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A name, or the beginning of names: `eth_call`, `eth_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern<'a> {
    Name(&'a str),
    Prefix(&'a str),
}

impl<'a> Pattern<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        text.strip_suffix('*').map_or(Self::Name(text), Self::Prefix)
    }

    pub(crate) fn is_match(self, method: &str) -> bool {
        match self {
            Self::Name(name) => name == method,
            Self::Prefix(prefix) => method.starts_with(prefix),
        }
    }
}

/// One method that a caller may ask, or all that begin in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodPattern(String);

/// Why a text names no method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write a method such as eth_getLogs, or a beginning such as eth_*")]
pub struct MethodPatternError;

impl FromStr for MethodPattern {
    type Err = MethodPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (Pattern::Name(name) | Pattern::Prefix(name)) = Pattern::new(text);
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
        let is_named = !text.is_empty() && name.bytes().all(is_letter);
        is_named.then(|| Self(text.to_owned())).ok_or(MethodPatternError)
    }
}

impl MethodPattern {
    /// Whether this method is one of those.
    #[must_use]
    pub fn covers(&self, method: &str) -> bool {
        Pattern::new(&self.0).is_match(method)
    }
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_an_exact_name_or_its_beginning() {
        for (pattern, method, expected) in [
            ("eth_getLogs", "eth_getLogs", true),
            ("eth_getLogs", "ETH_getlogs", false),
            ("eth_getLogs", "eth_getLogsX", false),
            ("eth_*", "eth_call", true),
            ("eth_*", "ETH_call", false),
            ("eth_*", "ethx_call", false),
            ("*", "rpc.discover", true),
            ("rpc.discover", "rpc.discover", true),
            // Half a character is no beginning.
            ("eth_*", "eth\u{e9}", false),
        ] {
            let found = pattern.parse::<MethodPattern>().unwrap().covers(method);
            assert_eq!(found, expected, "{pattern} {method}");
        }
        for text in ["", "eth call", "eth_*x", "**", "eth-call", "\u{e9}"] {
            assert_eq!(text.parse::<MethodPattern>(), Err(MethodPatternError), "{text}");
        }
    }
}
