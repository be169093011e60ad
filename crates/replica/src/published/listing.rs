//! Which manifests and retractions there are: by listing, or by the index where nothing can be listed.
//!
//! Knows: the index, which may be stale and is never false.
//! Never knows: what the manifests say.

use std::collections::BTreeSet;

use alloy_primitives::{B256, hex};

use crate::bucket::{Bucket, BucketError};
use crate::object_names::{MANIFESTS, RETRACTIONS, digest_in_name};
use crate::signed_text::{TEXT_BYTES_MAX, decode_lines, encode_lines};

/// The first line of the index.
const INDEX_TITLE: &str = "quipu index 1";
const MANIFEST: &str = "manifest ";
const RETRACTION: &str = "retraction ";
/// How often the index is written anew because somebody else changed the bucket meanwhile.
const INDEX_ROUNDS_MAX: usize = 3;

/// The names of manifests and retractions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) manifests: BTreeSet<B256>,
    pub(crate) retractions: BTreeSet<B256>,
}

impl Listing {
    /// What is there.
    pub(crate) async fn read(bucket: &Bucket) -> Result<Self, BucketError> {
        if !bucket.is_listable() {
            return read_index(bucket).await;
        }
        // In this order: whoever withdraws does so before the manifest that has other blocks.
        let manifests = bucket.list(MANIFESTS).await?;
        let retractions = bucket.list(RETRACTIONS).await?;
        let names = |objects: Vec<object_store::ObjectMeta>| {
            let names = objects.iter().filter_map(|it| it.location.filename());
            names.filter_map(digest_in_name).collect()
        };
        Ok(Self { manifests: names(manifests), retractions: names(retractions) })
    }

    fn encode(&self) -> Vec<u8> {
        let manifests = self.manifests.iter().map(|it| format!("{MANIFEST}{}", hex::encode(it)));
        let retractions =
            self.retractions.iter().map(|it| format!("{RETRACTION}{}", hex::encode(it)));
        encode_lines(INDEX_TITLE, &manifests.chain(retractions).collect())
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut listing = Self::default();
        for line in decode_lines(INDEX_TITLE, bytes)? {
            let named = |begin: &str| line.strip_prefix(begin).and_then(digest_in_name);
            if let Some(name) = named(MANIFEST) {
                listing.manifests.insert(name);
            } else if let Some(name) = named(RETRACTION) {
                listing.retractions.insert(name);
            } else {
                return Err(format!("no line of an index is {line:?}"));
            }
        }
        Ok(listing)
    }
}

/// What the index names.
pub(crate) async fn read_index(bucket: &Bucket) -> Result<Listing, BucketError> {
    let path = bucket.names().index();
    let bytes = bucket.read(&path, TEXT_BYTES_MAX).await?;
    let damaged = |reason| BucketError::Damaged { place: bucket.place_of(&path), reason };
    Listing::decode(&bytes).map_err(damaged)
}

/// Writes an index of all that is there, but for manifests that are about to go. Another publisher may
/// write its own at the same time, so it is looked whether this one is whole.
pub(crate) async fn write_index(
    bucket: &Bucket,
    going: &BTreeSet<B256>,
) -> Result<(), BucketError> {
    let read = || async {
        let mut listing = Listing::read(bucket).await?;
        listing.manifests.retain(|it| !going.contains(it));
        Ok::<Listing, BucketError>(listing)
    };
    let mut listing = read().await?;
    if read_index(bucket).await.is_ok_and(|it| it == listing) {
        return Ok(());
    }
    for _ in 0..INDEX_ROUNDS_MAX {
        bucket.write(&bucket.names().index(), listing.encode().into()).await?;
        let after = read().await?;
        if after == listing {
            break;
        }
        listing = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_names_manifests_and_retractions() {
        let listing = Listing {
            manifests: [B256::repeat_byte(2), B256::repeat_byte(1)].into(),
            retractions: [B256::repeat_byte(3)].into(),
        };
        let text = listing.encode();
        assert_eq!(Listing::decode(&text).unwrap(), listing);
        let lines: BTreeSet<String> = ["manifest 12".to_owned()].into();
        let refused = Listing::decode(&encode_lines(INDEX_TITLE, &lines)).unwrap_err();
        assert!(refused.contains("manifest 12"), "{refused}");
    }
}
