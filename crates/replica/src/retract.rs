//! Withdrawing segments: what a rewind dropped must not be served from a bucket.

use std::collections::BTreeSet;

use alloy_primitives::B256;
use chain::BlockRange;
use store::disk::is_file_name;
use store::layout::overlap;

use crate::bucket::{Bucket, BucketError};
use crate::object_names::{RETRACTIONS, digest_of};
use crate::published::{Published, RETRACTION_TITLE, write_index};
use crate::signed_text::encode_lines;

/// The segments with some of these blocks that any manifest lists, be it of an older publication: what is
/// wrong about them after a rewind that drops these blocks. What others hold above or below stays.
#[must_use]
pub fn segments_within(published: &Published, dropped: BlockRange) -> BTreeSet<String> {
    let listed = published.manifests.iter().flat_map(|it| it.manifest.segments());
    let within = listed.filter(|it| overlap(it.range, dropped).is_some());
    let is_withdrawn = |name: &String| published.retracted.contains(name);
    within.map(|it| &it.file_name).filter(|it| !is_withdrawn(it)).cloned().collect()
}

/// Withdraws segments by their file names. From the next look at the bucket on no reader serves them,
/// whoever lists them. Gives the name of the retraction; `None` if there was nothing to withdraw.
pub async fn retract(
    bucket: &Bucket,
    segments: &BTreeSet<String>,
) -> Result<Option<B256>, BucketError> {
    if segments.is_empty() {
        return Ok(None);
    }
    if let Some(name) = segments.iter().find(|it| !is_file_name(it)) {
        let reason = format!("{name:?} is not the name of a segment");
        return Err(BucketError::Damaged { place: bucket.place().to_owned(), reason });
    }
    let text = encode_lines(RETRACTION_TITLE, segments);
    let name = digest_of(&text);
    bucket.write(&bucket.names().named_by_digest(RETRACTIONS, name), text.into()).await?;
    write_index(bucket, &BTreeSet::new()).await?;
    Ok(Some(name))
}
