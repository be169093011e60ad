//! `quipu key`: a new API key, and what lets it in.

use anyhow::anyhow;
use rpc::KeyHash;
use serde_json::Value;

use crate::Failure;
use crate::args::key::{KeyAction, KeyArgs};
use crate::output::print_lines;

/// How a key begins, so that people and scanners know one when they see it.
const PREFIX: &str = "qk_";

/// Random bits that nobody guesses: a fast hash of them is as safe as a slow one.
const KEY_BYTES: usize = 32;

pub(crate) fn run(args: &KeyArgs) -> Result<(), Failure> {
    match args.action {
        KeyAction::New => Ok(print_lines(&new_key(args.name.as_deref())?)?),
    }
}

/// The lines that tell of a new key.
fn new_key(name: Option<&str>) -> Result<Vec<String>, Failure> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("random bytes: {error}"))?;
    let key = format!("{PREFIX}{}", alloy_primitives::hex::encode(bytes));
    let hash = KeyHash::of(&key).to_string();
    let digits = hash.rsplit(':').next().and_then(|digits| digits.get(..8)).unwrap_or_default();
    let name = name.map_or_else(|| format!("key-{digits}"), ToOwned::to_owned);
    Ok(vec![
        key,
        String::new(),
        "# The key is stored nowhere and shown this once. This goes into quipu.toml:".to_owned(),
        "[[keys]]".to_owned(),
        format!("name = {}", Value::from(name)),
        format!("hash = {}", Value::from(hash)),
        "# methods = [\"eth_*\", \"net_version\"]  # all, if left out".to_owned(),
        "# rate = 50                            # calls a second".to_owned(),
        "# weight = 2000                        # units a second (docs/admission.md)".to_owned(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_has_256_random_bits_and_its_hash_beside_it() {
        let keys = [new_key(None), new_key(Some("a \"b\""))].map(Result::unwrap);
        assert_ne!(keys[0][0], keys[1][0]);
        for lines in &keys {
            let digits = lines[0].strip_prefix("qk_").unwrap();
            assert!(digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_hexdigit()));
            assert_eq!(lines[5], format!("hash = \"{}\"", KeyHash::of(&lines[0])));
        }
        assert!(keys[0][4].starts_with("name = \"key-"), "{:?}", keys[0]);
        assert_eq!(keys[1][4], r#"name = "a \"b\"""#);
    }
}
