//! Which manifests and retractions there are: by listing, or by the index where nothing can be listed.

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
        let ListedManifests { manifests, retractions } = ListedManifests::read(bucket).await?;
        let retractions = retractions_after(bucket, retractions).await?;
        Ok(Self { manifests, retractions })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let manifests = self.manifests.iter().map(|it| format!("{MANIFEST}{}", hex::encode(it)));
        let retractions =
            self.retractions.iter().map(|it| format!("{RETRACTION}{}", hex::encode(it)));
        encode_lines(INDEX_TITLE, &manifests.chain(retractions).collect())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
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

/// What is listed first: whoever withdraws does so before the manifest that has other blocks, so
/// retractions are listed when the manifests have been.
#[derive(Clone, Debug)]
pub(super) struct ListedManifests {
    pub(super) manifests: BTreeSet<B256>,
    /// Where the index tells both.
    pub(super) retractions: Option<BTreeSet<B256>>,
}

impl ListedManifests {
    pub(super) async fn read(bucket: &Bucket) -> Result<Self, BucketError> {
        if bucket.is_listable() {
            let manifests = list_digests(bucket, MANIFESTS).await?;
            return Ok(Self { manifests, retractions: None });
        }
        let Listing { manifests, retractions } = read_index(bucket).await?;
        Ok(Self { manifests, retractions: Some(retractions) })
    }
}

/// The retractions that are there after manifests were listed.
pub(super) async fn retractions_after(
    bucket: &Bucket,
    indexed: Option<BTreeSet<B256>>,
) -> Result<BTreeSet<B256>, BucketError> {
    match indexed {
        Some(retractions) => Ok(retractions),
        None => list_digests(bucket, RETRACTIONS).await,
    }
}

/// The digests that name the objects of a folder.
async fn list_digests(
    bucket: &Bucket,
    folder: &'static str,
) -> Result<BTreeSet<B256>, BucketError> {
    // The index and strangers lie there too.
    let count_max = bucket.settings().listed_max.saturating_mul(2);
    let objects = bucket.list_at_most(folder, count_max).await?;
    // What took the place of an object is refused by name, not passed over: it may stand for a
    // retraction.
    let irregular = bucket.irregular(folder).await?;
    let names = objects.iter().filter_map(|it| it.location.filename());
    let names = names.chain(irregular.iter().map(String::as_str));
    let digests = names.filter_map(digest_in_name).collect();
    check_count(bucket, folder, &digests)?;
    Ok(digests)
}

fn check_count(
    bucket: &Bucket,
    what: &'static str,
    digests: &BTreeSet<B256>,
) -> Result<(), BucketError> {
    let count_max = bucket.settings().listed_max;
    if digests.len() <= count_max {
        return Ok(());
    }
    let max = u64::try_from(count_max).unwrap_or(u64::MAX);
    Err(BucketError::TooMany { place: bucket.place().to_owned(), what, max })
}

/// What the index names.
pub(crate) async fn read_index(bucket: &Bucket) -> Result<Listing, BucketError> {
    let path = bucket.names().index();
    let bytes = bucket.read(&path, TEXT_BYTES_MAX).await?;
    let damaged = |reason| BucketError::Damaged { place: bucket.place_of(&path), reason };
    let listing = Listing::decode(&bytes).map_err(damaged)?;
    check_count(bucket, MANIFESTS, &listing.manifests)?;
    check_count(bucket, RETRACTIONS, &listing.retractions)?;
    Ok(listing)
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
