//! JSON Web Tokens: callers that somebody else vouches for, until a time.
//!
//! Knows: which keys are believed, each for one algorithm, and what the claims of a token allow.
//! Never knows: who issues tokens.
//!
//! `jsonwebtoken` reads tokens, ring, which TLS brings, verifies signatures, and their times are held
//! against a clock that tests can stop.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use alloy_primitives::hex;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use ring::hmac;
use ring::signature::{ED25519, UnparsedPublicKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use tokio::time::Instant;

use super::keys::KeyHash;
use super::rates::Rates;
use crate::method_pattern::MethodPattern;

/// By how much the clocks of an issuer and ours may differ.
const LEEWAY: Duration = Duration::from_mins(1);
/// Bytes of a secret at the least (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// How a key in PEM begins.
const PEM_BEGIN: &[u8] = b"-----BEGIN";
/// What stands before the 32 bytes of an Ed25519 key in a public key (RFC 8410, 4).
const ED25519_PREFIX: [u8; 12] = hex!("302a300506032b6570032100");

/// A key by which tokens are believed. Each is for one algorithm, whatever a token says.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey(TokenKeyKind);

#[derive(Clone, PartialEq, Eq)]
enum TokenKeyKind {
    /// HS256.
    Secret(Vec<u8>),
    /// `EdDSA` with Ed25519.
    Ed25519([u8; 32]),
}

/// What is shown of a key is its algorithm.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKey({:?})", self.algorithm())
    }
}

/// Why a text is no key for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenKeyError {
    /// Anybody could find it.
    #[error(
        "a secret of {0} bytes is too short: make one of 32, such as openssl rand -hex 32 does"
    )]
    ShortSecret(usize),
    /// A key of another kind, which anybody may know.
    #[error(
        "this is a key in PEM and no secret: a public key of Ed25519 belongs to --jwt-public-key-file"
    )]
    PemSecret,
    /// Not what a public key looks like.
    #[error(
        "this is no public key of Ed25519 in PEM, such as openssl genpkey -algorithm ed25519 and \
         openssl pkey -pubout make"
    )]
    NoPublicKey,
}

impl TokenKey {
    /// A secret that issuer and server share, for HS256. 64 hexadecimal digits, with 0x or without, are
    /// 32 bytes, as execution clients write theirs; anything else is taken as it stands, but for blanks
    /// at its ends.
    pub fn from_secret(text: &[u8]) -> Result<Self, TokenKeyError> {
        let text = text.trim_ascii();
        if text.starts_with(PEM_BEGIN) {
            return Err(TokenKeyError::PemSecret);
        }
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        let bytes = match hex::decode(digits) {
            Ok(bytes) if bytes.len() == SECRET_BYTES_MIN => bytes,
            Ok(_) | Err(_) => text.to_vec(),
        };
        if bytes.len() < SECRET_BYTES_MIN {
            return Err(TokenKeyError::ShortSecret(bytes.len()));
        }
        Ok(Self(TokenKeyKind::Secret(bytes)))
    }

    /// The public key of an issuer, for `EdDSA`, in PEM.
    pub fn from_public_pem(text: &[u8]) -> Result<Self, TokenKeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text);
        let key = der.ok().and_then(|der| der.strip_prefix(&ED25519_PREFIX)?.try_into().ok());
        Ok(Self(TokenKeyKind::Ed25519(key.ok_or(TokenKeyError::NoPublicKey)?)))
    }

    fn algorithm(&self) -> Algorithm {
        match self.0 {
            TokenKeyKind::Secret(_) => Algorithm::HS256,
            TokenKeyKind::Ed25519(_) => Algorithm::EdDSA,
        }
    }

    fn decoding_key(&self) -> DecodingKey {
        match &self.0 {
            TokenKeyKind::Secret(bytes) => DecodingKey::from_secret(bytes),
            TokenKeyKind::Ed25519(bytes) => DecodingKey::from_ed_der(bytes),
        }
    }
}

/// What a token allows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenGrant {
    /// Whose limits it shares with other tokens: the subject, or the token itself.
    pub(super) subject: KeyHash,
    pub(super) name: String,
    pub(super) methods: Option<Vec<MethodPattern>>,
    pub(super) rates: Rates,
    /// When it ends; none for a time past the end of all clocks.
    pub(super) until: Option<Instant>,
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// It has ended.
    Expired,
    /// It has not begun.
    NotYet,
    /// It is of no algorithm that a key is for.
    Algorithm,
    /// Its signature is not by our key.
    Signature,
    /// It says nothing that counts here.
    Claims,
}

impl TokenFault {
    /// For the client.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Expired => "unauthorized: the token has expired",
            Self::NotYet => "unauthorized: the token is not valid yet",
            Self::Algorithm => "unauthorized: no key is for the algorithm of the token",
            Self::Signature => "unauthorized: the signature of the token is not valid",
            Self::Claims => "unauthorized: the claims of the token are not valid",
        }
    }
}

/// The claims that count here.
#[derive(Debug, Deserialize)]
struct TokenClaims {
    exp: f64,
    nbf: Option<f64>,
    sub: Option<String>,
    /// Whether it is meant for somebody, in any form: nobody here has a name.
    #[serde(default, rename = "aud", deserialize_with = "is_there")]
    has_audience: bool,
    methods: Option<Vec<String>>,
    rate: Option<NonZeroU32>,
    weight: Option<NonZeroU32>,
}

/// Whatever the claim says, null too.
fn is_there<'de, D: Deserializer<'de>>(claim: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(claim).map(|_| true)
}

/// Tells the time of day, since the beginning of 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenClock(pub(super) fn() -> Duration);

impl TokenClock {
    pub(super) fn system() -> Self {
        Self(|| Duration::from_secs(jsonwebtoken::get_current_timestamp()))
    }
}

/// Believes tokens, or does not.
pub(super) struct TokenVerifier {
    keys: Vec<(Validation, DecodingKey)>,
    clock: TokenClock,
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms = self.keys.iter().map(|(validation, _)| &validation.algorithms);
        f.debug_list().entries(algorithms).finish()
    }
}

impl TokenVerifier {
    pub(super) fn new(keys: &[TokenKey], clock: TokenClock) -> Self {
        // Once for the process: a second time changes nothing.
        let _ = PROVIDER.install_default();
        let entry = |key: &TokenKey| {
            let mut validation = Validation::new(key.algorithm());
            // Both times are ours to look at.
            validation.validate_exp = false;
            validation.validate_aud = false;
            (validation, key.decoding_key())
        };
        Self { keys: keys.iter().map(entry).collect(), clock }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a text has the form of a token, so far as a look can tell.
    pub(super) fn takes(&self, text: &str) -> bool {
        !self.is_empty() && text.bytes().filter(|it| *it == b'.').count() == 2
    }

    /// What a token allows.
    pub(super) fn verify(&self, token: &str, hash: KeyHash) -> Result<TokenGrant, TokenFault> {
        let header = decode_header(token).map_err(|_| TokenFault::Algorithm)?;
        // RFC 7515, 4.1.11: we understand no extension.
        if header.crit.is_some() {
            return Err(TokenFault::Claims);
        }
        // Several keys of one algorithm are tried one after the other.
        let mut fault = TokenFault::Algorithm;
        let is_meant = |validation: &Validation| validation.algorithms.contains(&header.alg);
        for (validation, key) in self.keys.iter().filter(|(validation, _)| is_meant(validation)) {
            match decode::<TokenClaims>(token, key, validation) {
                Ok(token) => return grant(token.claims, hash, (self.clock.0)()),
                Err(error) => {
                    let found = fault_of(&error);
                    // What is wrong by the key that signed it says more than that others did not.
                    if found != TokenFault::Signature || fault == TokenFault::Algorithm {
                        fault = found;
                    }
                }
            }
        }
        Err(fault)
    }
}

fn grant(claims: TokenClaims, hash: KeyHash, now: Duration) -> Result<TokenGrant, TokenFault> {
    let TokenClaims { exp, nbf, sub, has_audience, methods, rate, weight } = claims;
    let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
    if has_audience || !is_time(exp) || !nbf.is_none_or(is_time) {
        return Err(TokenFault::Claims);
    }
    // A time that no clock reaches never comes.
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if nbf.is_some_and(|begin| time(begin) > now.saturating_add(LEEWAY)) {
        return Err(TokenFault::NotYet);
    }
    let left = time(exp).saturating_add(LEEWAY).saturating_sub(now);
    if left.is_zero() {
        return Err(TokenFault::Expired);
    }
    let methods = methods.map(|methods| methods.iter().map(|text| text.parse()).collect());
    Ok(TokenGrant {
        subject: sub.as_deref().map_or(hash, KeyHash::of),
        name: sub.unwrap_or_default(),
        methods: methods.transpose().map_err(|_| TokenFault::Claims)?,
        rates: Rates { calls: rate, weight },
        until: Instant::now().checked_add(left),
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library may add further faults")]
fn fault_of(error: &Error) -> TokenFault {
    match error.kind() {
        ErrorKind::InvalidSignature | ErrorKind::Base64(_) => TokenFault::Signature,
        _ => TokenFault::Claims,
    }
}

/// Verifies by ring. Nothing is signed here.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| -> Result<Box<dyn JwtSigner>, Error> {
        Err(ErrorKind::UnsupportedAlgorithm.into())
    },
    verifier_factory: |algorithm, key| {
        let key = key.try_get_as_bytes()?;
        if *algorithm == Algorithm::HS256 {
            return Ok(Box::new(SecretVerifier(hmac::Key::new(hmac::HMAC_SHA256, key))));
        }
        if *algorithm == Algorithm::EdDSA {
            let key = key.try_into().map_err(|_| ErrorKind::InvalidEddsaKey)?;
            return Ok(Box::new(Ed25519Verifier(key)));
        }
        Err(ErrorKind::UnsupportedAlgorithm.into())
    },
    key_utils: KeyUtils::new_unimplemented(),
};

struct SecretVerifier(hmac::Key);

impl Verifier<Vec<u8>> for SecretVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for SecretVerifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

struct Ed25519Verifier([u8; 32]);

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

#[cfg(test)]
mod tests;
