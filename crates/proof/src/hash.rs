//! Hashes: Ethereum's Keccak-256, and pairs under SHA-256 as SSZ merges them.

use core::fmt;

use sha2::{Digest as _, Sha256};
use sha3::{Digest as _, Keccak256};

/// A hash, written as `0x` and 64 lowercase digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash32(pub [u8; 32]);

impl fmt::Display for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// Bytes as a bundle writes them.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Keccak-256 as Ethereum uses it, with the padding from before SHA-3.
pub(crate) fn keccak256(bytes: &[u8]) -> Hash32 {
    Hash32(Keccak256::digest(bytes).into())
}

/// The parent of two nodes of an SSZ tree.
pub(crate) fn sha256_pair(left: &Hash32, right: &Hash32) -> Hash32 {
    let digest = Sha256::new().chain_update(left.0).chain_update(right.0).finalize();
    Hash32(digest.into())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn the_hash_of_nothing_is_ethereums() {
        assert_eq!(
            keccak256(b"").to_string(),
            "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
        );
        assert_eq!(
            sha256_pair(&Hash32([0; 32]), &Hash32([0; 32])).to_string(),
            "0xf5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"
        );
    }
}
