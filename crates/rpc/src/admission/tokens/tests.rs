//! Tokens as issuers sign them, and as nobody should.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;

const SECRET: &[u8] = b"a secret of 32 bytes and of more";

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn pem(public_key: &[u8]) -> String {
    let der = [&ED25519_PREFIX[..], public_key].concat();
    let text = data_encoding::BASE64.encode(&der);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

/// A token with this header, whatever it says, signed in one of two ways.
fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let [header, claims] =
        [header, claims].map(|part| BASE64URL_NOPAD.encode(part.to_string().as_bytes()));
    let message = format!("{header}.{claims}");
    format!("{message}.{}", BASE64URL_NOPAD.encode(&sign(message.as_bytes())))
}

fn with_secret(secret: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> + use<> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |message| hmac::sign(&key, message).as_ref().to_vec()
}

fn with_pair(message: &[u8]) -> Vec<u8> {
    pair().sign(message).as_ref().to_vec()
}

fn hs256(claims: &Value) -> String {
    signed(&json!({ "alg": "HS256", "typ": "JWT" }), claims, with_secret(SECRET))
}

fn eddsa(claims: &Value) -> String {
    signed(&json!({ "alg": "EdDSA" }), claims, with_pair)
}

fn secret_key() -> TokenKey {
    TokenKey::from_secret(SECRET).unwrap()
}

fn public_key() -> TokenKey {
    TokenKey::from_public_pem(pem(pair().public_key().as_ref()).as_bytes()).unwrap()
}

fn verify(keys: &[TokenKey], token: &str) -> Result<TokenGrant, TokenFault> {
    let verifier = TokenVerifier::new(keys, TokenClock::system());
    assert!(verifier.takes(token), "{token}");
    verifier.verify(token, KeyHash::of(token))
}

#[test]
fn claims_say_who_asks_what_and_how_much_until_when() {
    let claims = json!({
        "exp": now() + 100, "nbf": now() - 5, "sub": "app", "iss": "anybody",
        "methods": ["eth_*", "net_version"], "rate": 5, "weight": 100, "other": {},
    });
    for (key, token) in [(secret_key(), hs256(&claims)), (public_key(), eddsa(&claims))] {
        let found = verify(std::slice::from_ref(&key), &token).unwrap();
        assert_eq!((found.name.as_str(), found.subject), ("app", KeyHash::of("app")));
        let methods = found.methods.unwrap();
        assert!(methods.iter().any(|it| it.covers("eth_call")), "{methods:?}");
        assert!(!methods.iter().any(|it| it.covers("debug_getRawBlock")), "{methods:?}");
        let rates = Rates { calls: NonZeroU32::new(5), weight: NonZeroU32::new(100) };
        assert_eq!(found.rates, rates);
        // With the leeway of a minute, and some seconds for a slow machine.
        let left = (found.until.unwrap() - Instant::now()).as_secs();
        assert!((130..=160).contains(&left), "{left}");
        // Both kinds of keys may be there.
        verify(&[secret_key(), public_key()], &token).unwrap();
    }
    let alone = hs256(&json!({ "exp": now() + 100 }));
    let found = verify(&[secret_key()], &alone).unwrap();
    assert_eq!((found.subject, found.methods), (KeyHash::of(&alone), None));
    assert!(found.rates.is_unlimited());
    // A time that no clock reaches.
    let endless = hs256(&json!({ "exp": u64::MAX }));
    verify(&[secret_key()], &endless).unwrap();
}

#[test]
fn times_are_kept_to_with_a_minute_of_leeway() {
    for (claims, expected) in [
        (json!({ "exp": now() - 30 }), None),
        (json!({ "exp": now() - 90 }), Some(TokenFault::Expired)),
        (json!({ "exp": 0 }), Some(TokenFault::Expired)),
        (json!({ "exp": now() + 1000, "nbf": now() + 30 }), None),
        (json!({ "exp": now() + 1000, "nbf": now() + 90 }), Some(TokenFault::NotYet)),
        (json!({ "nbf": now() }), Some(TokenFault::Claims)),
        (json!({ "exp": null }), Some(TokenFault::Claims)),
        (json!({ "exp": "soon" }), Some(TokenFault::Claims)),
        (json!({ "exp": -1 }), Some(TokenFault::Claims)),
        (json!({ "exp": now() + 1000, "nbf": "now" }), Some(TokenFault::Claims)),
    ] {
        for (key, token) in [(secret_key(), hs256(&claims)), (public_key(), eddsa(&claims))] {
            assert_eq!(verify(&[key], &token).err(), expected, "{claims}");
        }
    }
}

#[test]
fn an_algorithm_counts_only_with_the_key_that_is_for_it() {
    let claims = json!({ "exp": now() + 100 });
    let public = pair().public_key().as_ref().to_vec();
    let header = |algorithm: &str| json!({ "alg": algorithm });
    let (secrets, publics) = (vec![secret_key()], vec![public_key()]);
    let both = vec![secret_key(), public_key()];
    let unsigned = |_: &[u8]| Vec::new();
    let by_public = with_secret(&public);
    let by_pem = with_secret(pem(&public).as_bytes());
    let algorithm = TokenFault::Algorithm;
    for (name, keys, token, expected) in [
        ("none", &both, signed(&header("none"), &claims, unsigned), algorithm),
        ("None", &both, signed(&header("None"), &claims, unsigned), algorithm),
        ("no algorithm", &both, signed(&json!({}), &claims, unsigned), algorithm),
        (
            "the public key as a secret",
            &publics,
            signed(&header("HS256"), &claims, &by_public),
            algorithm,
        ),
        ("its PEM as a secret", &publics, signed(&header("HS256"), &claims, &by_pem), algorithm),
        (
            "the same beside a secret",
            &both,
            signed(&header("HS256"), &claims, &by_public),
            TokenFault::Signature,
        ),
        (
            "a secret for EdDSA",
            &both,
            signed(&header("EdDSA"), &claims, with_secret(SECRET)),
            TokenFault::Signature,
        ),
        (
            "another size",
            &secrets,
            signed(&header("HS512"), &claims, with_secret(SECRET)),
            algorithm,
        ),
        ("another kind", &both, signed(&header("RS256"), &claims, with_secret(SECRET)), algorithm),
        (
            "another secret",
            &secrets,
            signed(&header("HS256"), &claims, with_secret(&[8; 32])),
            TokenFault::Signature,
        ),
        ("no signature", &both, signed(&header("HS256"), &claims, unsigned), TokenFault::Signature),
    ] {
        assert_eq!(verify(keys, &token).err(), Some(expected), "{name}");
    }
}

#[test]
fn of_two_keys_the_one_that_signed_tells_what_is_wrong() {
    let other = TokenKey::from_secret(&[b'o'; 32]).unwrap();
    for keys in [[secret_key(), other.clone()], [other, secret_key()]] {
        for (claims, expected) in [
            (json!({ "exp": now() + 100 }), None),
            (json!({ "exp": now() - 100 }), Some(TokenFault::Expired)),
            (json!({ "exp": "soon" }), Some(TokenFault::Claims)),
            (json!({}), Some(TokenFault::Claims)),
        ] {
            assert_eq!(verify(&keys, &hs256(&claims)).err(), expected, "{claims}");
        }
    }
}

#[test]
fn what_is_not_understood_is_not_believed() {
    let claims = json!({ "exp": now() + 100, "sub": "app" });
    let critical = json!({ "alg": "HS256", "crit": ["x"], "x": 1 });
    let aimed = json!({ "exp": now() + 100, "aud": "others" });
    for token in [
        signed(&critical, &claims, with_secret(SECRET)),
        hs256(&aimed),
        hs256(&json!({ "exp": now() + 100, "aud": ["others"] })),
        hs256(&json!({ "exp": now() + 100, "aud": 7 })),
        hs256(&json!({ "exp": now() + 100, "aud": null })),
        hs256(&json!({ "exp": now() + 100, "aud": { "name": "others" } })),
        hs256(&json!({ "exp": now() + 100, "methods": "eth_call" })),
        hs256(&json!({ "exp": now() + 100, "methods": ["eth call"] })),
        hs256(&json!({ "exp": now() + 100, "rate": 0 })),
        hs256(&json!({ "exp": now() + 100, "rate": -1 })),
        hs256(&json!({ "exp": now() + 100, "sub": 7 })),
        hs256(&json!([])),
    ] {
        assert_eq!(verify(&[secret_key()], &token).err(), Some(TokenFault::Claims), "{token}");
    }
    // Any letter that is changed is noticed, wherever it stands.
    let (token, keys) = (hs256(&claims), [secret_key()]);
    let place = token.rfind('.').unwrap() - 3;
    for place in [3, place, token.len() - 5] {
        let mut changed = token.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        assert!(verify(&keys, &String::from_utf8(changed).unwrap()).is_err(), "{place}");
    }
    for text in ["", "qk_5d0c", "a.b", "a.b.c.d"] {
        assert!(!TokenVerifier::new(&keys, TokenClock::system()).takes(text), "{text}");
    }
    assert!(!TokenVerifier::new(&[], TokenClock::system()).takes("a.b.c"));
    for text in ["..", "a.b.c", "e30.e30.e30"] {
        assert!(verify(&keys, text).is_err(), "{text}");
    }
}

#[test]
fn keys_are_read_as_programs_write_them() {
    let bytes = [0xab; 32];
    let digits = hex::encode(bytes);
    let raw = TokenKey(TokenKeyKind::Secret(bytes.to_vec()));
    for text in [digits.clone(), format!("0x{digits}\n"), format!("  {digits}  \r\n")] {
        assert_eq!(TokenKey::from_secret(text.as_bytes()).as_ref(), Ok(&raw), "{text}");
    }
    assert_eq!(TokenKey::from_secret(&bytes), Ok(raw));
    // Not 32 bytes in digits: the letters themselves.
    let longer = format!("{digits}00");
    let as_text = TokenKey(TokenKeyKind::Secret(longer.clone().into_bytes()));
    assert_eq!(TokenKey::from_secret(longer.as_bytes()), Ok(as_text));
    let short = TokenKey::from_secret(b"0x1234\n");
    assert_eq!(short, Err(TokenKeyError::ShortSecret(6)));
    let public = pair().public_key().as_ref().to_vec();
    // Whoever knows the public key could sign.
    for text in [pem(&public), format!("\n{}", pem(&public).replace("PUBLIC", "PRIVATE"))] {
        assert_eq!(TokenKey::from_secret(text.as_bytes()), Err(TokenKeyError::PemSecret), "{text}");
    }
    let expected = TokenKey(TokenKeyKind::Ed25519(public.clone().try_into().unwrap()));
    assert_eq!(TokenKey::from_public_pem(pem(&public).as_bytes()), Ok(expected));
    assert!(!format!("{:?}", secret_key()).contains("secret of"));
    let private = pem(&public).replace("PUBLIC", "PRIVATE");
    let cut = pem(&public[1..]);
    for text in ["", "x", &private, &cut, &pem(&[&public[..], &[0]].concat())] {
        let found = TokenKey::from_public_pem(text.as_bytes());
        assert_eq!(found, Err(TokenKeyError::NoPublicKey), "{text}");
    }
}
