//! Signing, for the sample chain and for tests.

use alloy_primitives::{B256, Signature};
use secp256k1::{Message, SECP256K1, SecretKey};

/// Signs a hash, deterministically (RFC 6979). `None` if the secret is no key of the curve.
#[must_use]
pub fn sign(secret: B256, hash: B256) -> Option<Signature> {
    let secret = SecretKey::from_byte_array(secret.0).ok()?;
    Some(SECP256K1.sign_ecdsa_recoverable(Message::from_digest(hash.0), &secret).into())
}
