//! What the objects of a bucket are called.

use alloy_primitives::{B256, hex};
use object_store::path::Path;
use sha2::{Digest as _, Sha256};

/// Segments and runs, under the names that they have in a data folder.
pub(crate) const FILES: &str = "files";
/// The texts of manifests, and the index.
pub(crate) const MANIFESTS: &str = "manifests";
/// Which segments are withdrawn.
pub(crate) const RETRACTIONS: &str = "retractions";
/// Which files nothing listed when somebody looked.
pub(crate) const ORPHANS: &str = "orphans";
/// The genesis.json of chains that are not built in.
pub(crate) const GENESIS: &str = "genesis";
/// Among the manifests, for stores that cannot be listed.
const INDEX: &str = "index";
const GENESIS_END: &str = ".json";

/// The paths below a bucket's prefix.
#[derive(Clone, Debug)]
pub(crate) struct ObjectNames {
    prefix: Path,
}

impl ObjectNames {
    pub(crate) fn below(prefix: Path) -> Self {
        Self { prefix }
    }

    /// The folder of a kind of objects.
    pub(crate) fn folder(&self, folder: &str) -> Path {
        self.prefix.clone().join(folder)
    }

    pub(crate) fn file(&self, name: &str) -> Path {
        self.folder(FILES).join(name)
    }

    pub(crate) fn named_by_digest(&self, folder: &str, digest: B256) -> Path {
        self.folder(folder).join(hex::encode(digest))
    }

    pub(crate) fn index(&self) -> Path {
        self.folder(MANIFESTS).join(INDEX)
    }

    pub(crate) fn genesis(&self, digest: B256) -> Path {
        self.folder(GENESIS).join(format!("{}{GENESIS_END}", hex::encode(digest)))
    }
}

/// The digest that an object is named by; `None` of a stranger.
pub(crate) fn digest_in_name(name: &str) -> Option<B256> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_digest = name.len() == 64 && name.bytes().all(is_digit);
    is_digest.then(|| name.parse().ok()).flatten()
}

/// What an object with these bytes is named by.
pub(crate) fn digest_of(bytes: &[u8]) -> B256 {
    B256::from_slice(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sixty_four_lower_case_digits_are_a_digest() {
        let digest = digest_of(b"quipu");
        let names = ObjectNames::below(Path::from("a/b"));
        let path = names.named_by_digest(MANIFESTS, digest);
        assert!(path.as_ref().starts_with("a/b/manifests/"), "{path}");
        assert_eq!(digest_in_name(path.filename().unwrap()), Some(digest));
        let name = hex::encode(digest);
        for stranger in [name.to_uppercase(), format!("0x{name}"), name[1..].into(), INDEX.into()] {
            assert_eq!(digest_in_name(&stranger), None, "{stranger}");
        }
        let genesis = format!("a/b/genesis/{name}.json");
        assert_eq!(names.genesis(digest).as_ref(), genesis);
        assert_eq!(names.file("x.run").as_ref(), "a/b/files/x.run");
    }
}
