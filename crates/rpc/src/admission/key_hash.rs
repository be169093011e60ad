//! The hash by which an API key is known.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::hex;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// How a hash begins that is written down.
const PREFIX: &str = "sha256:";

/// The SHA-256 of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

/// Logs show no hash: what they show of a key is its name.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// Why a text is no hash of a key. The text is not shown: it may be the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write sha256: and 64 hexadecimal digits, as `quipu key new` prints them")]
pub struct KeyHashError;

impl FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(KeyHashError)?;
        let mut hash = [0; 32];
        hex::decode_to_slice(digits, &mut hash).map_err(|_| KeyHashError)?;
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_as_it_is_read_and_a_key_is_none() {
        let hash = KeyHash::of("abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hash.to_string().as_str(), text.parse()), (text, Ok(hash)));
        assert_eq!(format!("{hash:?}"), "KeyHash(..)");
        let (short, long) = (&text[..70], format!("{text}00"));
        for wrong in ["", "abc", short, &long, &text[7..], &text.replace("ba", "xy")] {
            assert_eq!(wrong.parse::<KeyHash>(), Err(KeyHashError), "{wrong}");
        }
    }
}
