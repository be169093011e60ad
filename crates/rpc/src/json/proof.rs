//! Proof bundles as JSON: one text for each bundle, as `docs/proofs.md` has it.

use alloy_primitives::{B256, Bytes, keccak256};
use chain::BlockRange;
use store::LogQuery;

use super::{Object, put_data, put_list};

/// Something of a block with the nodes from the root of its trie down to it.
#[derive(Debug)]
pub(crate) struct IndexedPath<'a> {
    pub(crate) index: usize,
    pub(crate) rlp: &'a [u8],
    pub(crate) nodes: Vec<Vec<u8>>,
}

/// A log among those of its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogInReceipt {
    /// How many come before it.
    pub(crate) position: u64,
    /// How many come behind it.
    pub(crate) after: u64,
}

/// The way from a block to what whoever asks may trust.
#[derive(Debug)]
pub(crate) enum WayToAnchor {
    /// Through the headers that follow, up to that of a block.
    Headers { number: u64, hash: B256, headers: Vec<Bytes> },
    /// Up the tree of all blocks before the merge.
    Accumulator { root: B256, siblings: Vec<B256> },
}

/// Begins a bundle.
pub(crate) fn begin_bundle(out: &mut Vec<u8>) -> Object<'_> {
    let mut bundle = Object::begin(out);
    bundle.raw("version", "1");
    bundle
}

pub(crate) fn put_indexed(bundle: &mut Object<'_>, name: &str, path: &IndexedPath<'_>) {
    let mut object = Object::begin(bundle.member(name));
    put_number(object.member("index"), u64::try_from(path.index).unwrap_or(u64::MAX));
    object.data("rlp", path.rlp);
    put_all_data(object.member("proof"), &path.nodes);
    object.end();
}

pub(crate) fn put_log_place(bundle: &mut Object<'_>, place: LogInReceipt) {
    let mut object = Object::begin(bundle.member("log"));
    put_number(object.member("position"), place.position);
    put_number(object.member("after"), place.after);
    object.end();
}

/// The filter of a search, and the hash of its text: nothing else in a bundle depends on all of it.
pub(crate) fn put_filter(bundle: &mut Object<'_>, query: &LogQuery, blocks: BlockRange) {
    let mut text = Vec::new();
    let mut filter = Object::begin(&mut text);
    put_number(filter.member("fromBlock"), blocks.first());
    put_number(filter.member("toBlock"), blocks.last());
    put_all_data(filter.member("address"), query.addresses());
    put_list(filter.member("topics"), query.topics(), put_all_data);
    filter.end();
    bundle.member("filter").extend_from_slice(&text);
    bundle.data("filterHash", keccak256(&text).as_slice());
}

pub(crate) fn put_way(bundle: &mut Object<'_>, way: &WayToAnchor) {
    match way {
        WayToAnchor::Headers { number, hash, headers } => {
            bundle.raw("status", "\"linked\"");
            let mut anchor = Object::begin(bundle.member("anchor"));
            put_number(anchor.member("number"), *number);
            anchor.data("hash", hash.as_slice());
            anchor.raw("by", "\"headers\"");
            put_all_data(anchor.member("path"), headers);
            anchor.end();
        }
        WayToAnchor::Accumulator { root, siblings } => {
            bundle.raw("status", "\"anchored\"");
            let mut anchor = Object::begin(bundle.member("anchor"));
            anchor.data("hash", root.as_slice());
            anchor.raw("by", "\"accumulator\"");
            put_all_data(anchor.member("path"), siblings);
            anchor.end();
        }
    }
}

pub(crate) fn put_all_data<T: AsRef<[u8]>>(out: &mut Vec<u8>, items: &[T]) {
    put_list(out, items, |out, item| put_data(out, item.as_ref()));
}

/// Numbers are as JSON has them: a quantity could be written in several ways.
fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(number.to_string().as_bytes());
}
