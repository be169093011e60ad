//! API keys: what is known of each, and how one is found.
//!
//! Knows: that a key is stored as its SHA-256 and nowhere else. A slow hash would protect keys that
//! people think of; one of 256 random bits cannot be guessed from a fast one either.
//! Never knows: how a key was sent.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use alloy_primitives::hex;
use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use thiserror::Error;

use super::caller::Grant;
use super::rates::Rates;
use crate::method_pattern::MethodPattern;

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

/// A key that is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What logs and pages call it.
    pub name: String,
    /// What it is known by.
    pub hash: KeyHash,
    /// The methods that it may ask; none for all.
    pub methods: Option<Vec<MethodPattern>>,
    /// How much it may ask.
    pub rates: Rates,
}

/// All keys that are let in.
#[derive(Debug, Default)]
pub(super) struct KeyTable(Vec<(KeyHash, Arc<Grant>)>);

impl KeyTable {
    pub(super) fn new(keys: Vec<ApiKey>) -> Self {
        let entry = |key: ApiKey| {
            let ApiKey { name, hash, methods, rates } = key;
            (hash, Arc::new(Grant::new(name, methods, rates)))
        };
        Self(keys.into_iter().map(entry).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of this hash. Each is compared to its end, so that the time tells nothing of how far one
    /// agrees; on a connection that is kept it is looked for once.
    pub(super) fn find(&self, hash: &KeyHash) -> Option<Arc<Grant>> {
        let mut place = u64::MAX;
        for (index, (known, _)) in (0_u64..).zip(&self.0) {
            place = u64::conditional_select(&place, &index, known.0.ct_eq(&hash.0));
        }
        let (_, grant) = self.0.get(usize::try_from(place).ok()?)?;
        Some(Arc::clone(grant))
    }

    /// Goes on counting for keys that are here and there with the same rates.
    pub(super) fn continue_from(&mut self, previous: &Self) {
        for (hash, grant) in &mut self.0 {
            let same = previous.0.iter().find(|(other, _)| other == hash);
            if let Some((_, other)) = same.filter(|(_, other)| other.rates() == grant.rates()) {
                *grant = Arc::new(grant.counting_with(other));
            }
        }
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

    #[test]
    fn a_key_is_found_by_its_hash_wherever_it_stands() {
        let key = |name: &str| ApiKey {
            name: name.to_owned(),
            hash: KeyHash::of(name),
            methods: None,
            rates: Rates::default(),
        };
        let table = KeyTable::new(["a", "b", "c"].map(key).into());
        for name in ["a", "b", "c"] {
            assert_eq!(table.find(&KeyHash::of(name)).unwrap().name(), name);
        }
        assert!(table.find(&KeyHash::of("d")).is_none());
        assert!(KeyTable::default().find(&KeyHash::of("a")).is_none());
    }
}
