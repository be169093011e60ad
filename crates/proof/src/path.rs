//! One path through a Merkle-Patricia trie whose keys are positions in a list.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::hash::{Hash32, keccak256};
use crate::rlp::{RlpFault, RlpItem, collect_items, position_key, whole_list};

/// A branch has sixteen children and a value.
const BRANCH_ITEMS: usize = 17;
/// Nodes shorter than this stand in their parent themselves, longer ones by their hash.
const HASHED_BYTES_MIN: usize = 32;

/// The value at a position, by all nodes from the root down and no other.
pub(crate) fn value_at<'a>(
    root: &Hash32,
    position: u64,
    nodes: &'a [Vec<u8>],
) -> Result<&'a [u8], String> {
    let key = nibbles_of(&position_key(position));
    let mut left: &[u8] = &key;
    let mut reference = NodeReference::Hash(*root);
    let mut used: usize = 0;
    // Every turn takes at least one nibble of the key, or is the last.
    loop {
        let items = match reference {
            NodeReference::Hash(hash) => {
                let items = hashed_node(&hash, used, nodes)?;
                used = used.saturating_add(1);
                items
            }
            NodeReference::Inline(item) => collect_items(&item, BRANCH_ITEMS)
                .map_err(|fault| malformed(used.saturating_sub(1), fault))?,
        };
        let node = used.saturating_sub(1);
        let child = match items.as_slice() {
            [partial, child] => {
                let (is_leaf, partial) = partial_path(partial)
                    .ok_or_else(|| format!("node {node}: its part of the path is malformed"))?;
                let rest = left.strip_prefix(partial.as_slice()).ok_or_else(|| {
                    format!("node {node}: the path leads elsewhere than to index {position}")
                })?;
                if is_leaf {
                    return leaf_value(child, rest, (used, nodes.len()));
                }
                if partial.is_empty() {
                    return Err(format!("node {node}: an extension without a part of the path"));
                }
                left = rest;
                child
            }
            branch if branch.len() == BRANCH_ITEMS => {
                // No key of such a trie is the beginning of another: nothing ends in a branch.
                let (nibble, rest) = left
                    .split_first()
                    .ok_or_else(|| format!("node {node}: the path ends in a branch"))?;
                left = rest;
                branch
                    .get(usize::from(*nibble))
                    .ok_or_else(|| format!("node {node}: it lacks a child"))?
            }
            other => return Err(format!("node {node}: it has {} items, not 2 or 17", other.len())),
        };
        reference = NodeReference::read(child).map_err(|why| format!("node {node}: {why}"))?;
    }
}

/// How a node names its child.
#[derive(Clone, Copy, Debug)]
enum NodeReference<'a> {
    Hash(Hash32),
    Inline(RlpItem<'a>),
}

impl<'a> NodeReference<'a> {
    fn read(child: &RlpItem<'a>) -> Result<Self, &'static str> {
        if child.is_list {
            let is_short = child.encoded.len() < HASHED_BYTES_MIN;
            return if is_short {
                Ok(Self::Inline(*child))
            } else {
                Err("a child that is long enough for a hash stands in its parent")
            };
        }
        if child.payload.is_empty() {
            return Err("the trie has nothing at this index");
        }
        child.array().map(|hash| Self::Hash(Hash32(hash))).ok_or("a child is neither hash nor node")
    }
}

/// The items of the next node that was given, which must have the hash.
fn hashed_node<'a>(
    hash: &Hash32,
    used: usize,
    nodes: &'a [Vec<u8>],
) -> Result<Vec<RlpItem<'a>>, String> {
    let node = nodes.get(used).ok_or_else(|| {
        format!("the path ends after {used} nodes, before a leaf: {hash} is missing")
    })?;
    let found = keccak256(node);
    if found != *hash {
        return Err(format!("node {used} has hash {found}, the way to it says {hash}"));
    }
    if used > 0 && node.len() < HASHED_BYTES_MIN {
        return Err(format!("node {used} has {} bytes and belongs into its parent", node.len()));
    }
    whole_list(node, BRANCH_ITEMS).map_err(|fault| malformed(used, fault))
}

fn leaf_value<'a>(
    value: &RlpItem<'a>,
    rest: &[u8],
    (used, given): (usize, usize),
) -> Result<&'a [u8], String> {
    if !rest.is_empty() {
        return Err(String::from("the path ends in a leaf before the index does"));
    }
    if used != given {
        return Err(format!("{given} nodes, but the path ends after {used}"));
    }
    value.string().ok_or_else(|| String::from("the leaf holds a list, not bytes"))
}

fn malformed(node: usize, fault: RlpFault) -> String {
    format!("node {node}, byte {}: {}", fault.offset, fault.what)
}

fn nibbles_of(key: &[u8]) -> Vec<u8> {
    key.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).collect()
}

/// Whether a node is a leaf, and its nibbles: the "hex prefix" form.
fn partial_path(item: &RlpItem<'_>) -> Option<(bool, Vec<u8>)> {
    let mut nibbles = nibbles_of(item.string()?);
    let flag = *nibbles.first()?;
    let is_odd = flag & 1 == 1;
    if flag > 3 || (!is_odd && nibbles.get(1) != Some(&0)) {
        return None;
    }
    nibbles.drain(..if is_odd { 1 } else { 2 });
    Some((flag >= 2, nibbles))
}
