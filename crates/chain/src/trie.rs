//! The root of a trie whose keys are positions in a list: transactions, receipts, withdrawals.
//!
//! alloy's builder hashes one node after the other, and hashing leaves is a tenth of what proving a
//! block costs. Here nodes of the same height are hashed together, several at a time.

use alloy_primitives::B256;
use alloy_rlp::{BufMut as _, EMPTY_STRING_CODE, Encodable as _, Header};
use alloy_trie::EMPTY_ROOT_HASH;

use crate::keccak::keccak256_each;

/// Nodes shorter than this stand in their parent themselves, longer ones by their hash.
const HASHED_BYTES_MIN: usize = 32;
const BRANCH_CHILDREN: usize = 16;

/// The root over values in the order of their positions.
#[must_use]
pub(crate) fn ordered_root<V: AsRef<[u8]>>(values: &[V]) -> B256 {
    OrderedTrie::new(values).root()
}

/// The trie over values in the order of their positions: its root, and the nodes on the way to each
/// value.
#[derive(Debug)]
pub struct OrderedTrie<'a> {
    trie: Trie<'a>,
    root: Option<usize>,
    value_count: usize,
}

impl<'a> OrderedTrie<'a> {
    /// Builds and hashes it, but for its root.
    #[must_use]
    pub fn new<V: AsRef<[u8]>>(values: &'a [V]) -> Self {
        let mut items: Vec<TrieItem<'_>> = values
            .iter()
            .enumerate()
            .map(|(index, value)| TrieItem::new(index, value.as_ref()))
            .collect();
        items.sort_unstable_by_key(|item| item.key);
        let mut trie = Trie::default();
        let root = (!items.is_empty()).then(|| {
            let (root, height) = trie.add(&items, 0);
            trie.hash_below(height);
            root
        });
        Self { trie, root, value_count: values.len() }
    }

    /// What the header commits to.
    #[must_use]
    pub fn root(&self) -> B256 {
        match self.root {
            None => EMPTY_ROOT_HASH,
            Some(root) => alloy_primitives::keccak256(self.trie.encoded(root)),
        }
    }

    /// The encoded nodes from the root down to the value at a position, as EIP-1186 lists them: without
    /// those that stand in their parents. `None` where there is no value.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<Vec<Vec<u8>>> {
        let mut node = self.root.filter(|_| index < self.value_count)?;
        let key = TrieItem::new(index, &[]).key;
        let mut depth = 0_usize;
        let mut nodes = vec![self.trie.encoded(node)];
        loop {
            let child = match self.trie.nodes.get(node)? {
                TrieNode::Leaf { .. } => return Some(nodes),
                TrieNode::Extension { child, nibble_count, .. } => {
                    depth = depth.saturating_add(*nibble_count);
                    *child
                }
                TrieNode::Branch { children } => {
                    let nibble = usize::from(key.nibble(depth)?);
                    depth = depth.saturating_add(1);
                    (*children.get(nibble)?)?
                }
            };
            if matches!(self.trie.reference(Some(child)), Reference::Hash(_)) {
                nodes.push(self.trie.encoded(child));
            }
            node = child;
        }
    }
}

/// A value and the RLP of its position.
#[derive(Debug)]
struct TrieItem<'a> {
    key: NibbleKey,
    value: &'a [u8],
}

/// Nibbles in the low halves of bytes, zeros after them; no key is the beginning of another. They
/// sort as the keys do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct NibbleKey {
    nibbles: [u8; KEY_NIBBLES_MAX],
    count: usize,
}

/// An RLP number of eight bytes has one byte more.
const KEY_NIBBLES_MAX: usize = 18;

impl<'a> TrieItem<'a> {
    fn new(index: usize, value: &'a [u8]) -> Self {
        let rlp = alloy_rlp::encode_fixed_size(&index);
        let mut key =
            NibbleKey { nibbles: [0; KEY_NIBBLES_MAX], count: rlp.len().saturating_mul(2) };
        for (place, byte) in key.nibbles.as_chunks_mut::<2>().0.iter_mut().zip(&rlp) {
            *place = [byte >> 4, byte & 0xf];
        }
        Self { key, value }
    }
}

impl NibbleKey {
    fn nibble(&self, depth: usize) -> Option<u8> {
        self.nibbles.get(..self.count)?.get(depth).copied()
    }

    fn between(&self, begin: usize, end: usize) -> &[u8] {
        self.nibbles.get(begin..end).unwrap_or_default()
    }

    /// How many nibbles from `depth` on are the same.
    fn common(&self, other: &Self, depth: usize) -> usize {
        let own = self.between(depth, self.count);
        own.iter().zip(other.between(depth, other.count)).take_while(|(a, b)| a == b).count()
    }
}

/// The nodes, children before parents.
#[derive(Debug, Default)]
struct Trie<'a> {
    nodes: Vec<TrieNode<'a>>,
    /// How nodes stand in their parents, once that is known.
    references: Vec<Reference>,
    /// Nodes by their height above the leaves.
    heights: Vec<Vec<usize>>,
}

#[derive(Debug)]
enum TrieNode<'a> {
    Leaf { path: Vec<u8>, value: &'a [u8] },
    Extension { path: Vec<u8>, nibble_count: usize, child: usize },
    Branch { children: Box<[Option<usize>; BRANCH_CHILDREN]> },
}

#[derive(Clone, Debug, Default)]
enum Reference {
    #[default]
    Unknown,
    Inline(Vec<u8>),
    Hash(B256),
}

impl<'a> Trie<'a> {
    /// Adds the node over sorted items that are the same before `depth`: which it is, and its
    /// height.
    fn add(&mut self, items: &[TrieItem<'a>], depth: usize) -> (usize, usize) {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return self.push(TrieNode::Leaf { path: Vec::new(), value: &[] }, 0);
        };
        if items.len() == 1 {
            let path = path(first.key.between(depth, first.key.count), true);
            return self.push(TrieNode::Leaf { path, value: first.value }, 0);
        }
        let common = first.key.common(&last.key, depth);
        if common > 0 {
            let end = depth.saturating_add(common);
            let (child, height) = self.add(items, end);
            let path = path(first.key.between(depth, end), false);
            let node = TrieNode::Extension { path, nibble_count: common, child };
            return self.push(node, height.saturating_add(1));
        }
        let mut children = Box::new([None; BRANCH_CHILDREN]);
        let mut height = 0;
        for group in items.chunk_by(|a, b| a.key.nibble(depth) == b.key.nibble(depth)) {
            let nibble = group.first().and_then(|item| item.key.nibble(depth));
            let (child, below) = self.add(group, depth.saturating_add(1));
            height = height.max(below.saturating_add(1));
            if let Some(place) = children.get_mut(usize::from(nibble.unwrap_or_default())) {
                *place = Some(child);
            }
        }
        self.push(TrieNode::Branch { children }, height)
    }

    fn push(&mut self, node: TrieNode<'a>, height: usize) -> (usize, usize) {
        let position = self.nodes.len();
        self.nodes.push(node);
        self.references.push(Reference::Unknown);
        if self.heights.len() <= height {
            self.heights.resize_with(height.saturating_add(1), Vec::new);
        }
        if let Some(same) = self.heights.get_mut(height) {
            same.push(position);
        }
        (position, height)
    }

    /// Finds out how the nodes below a height stand in their parents.
    fn hash_below(&mut self, height: usize) {
        for same in std::mem::take(&mut self.heights).into_iter().take(height) {
            let encoded: Vec<Vec<u8>> = same.iter().map(|node| self.encoded(*node)).collect();
            let long: Vec<&[u8]> = encoded
                .iter()
                .map(Vec::as_slice)
                .filter(|node| node.len() >= HASHED_BYTES_MIN)
                .collect();
            let mut hashes = keccak256_each(&long).into_iter();
            for (node, encoded) in same.iter().zip(encoded) {
                let reference = if encoded.len() < HASHED_BYTES_MIN {
                    Reference::Inline(encoded)
                } else {
                    hashes.next().map_or(Reference::Unknown, Reference::Hash)
                };
                if let Some(place) = self.references.get_mut(*node) {
                    *place = reference;
                }
            }
        }
    }

    fn encoded(&self, node: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(node, &mut out);
        out
    }

    /// Appends a node whose children are known.
    fn encode(&self, node: usize, out: &mut Vec<u8>) {
        match self.nodes.get(node) {
            Some(TrieNode::Leaf { path, value }) => {
                let payload_length = path.as_slice().length().saturating_add(value.length());
                out.reserve(payload_length.saturating_add(9));
                Header { list: true, payload_length }.encode(out);
                path.as_slice().encode(out);
                value.encode(out);
            }
            Some(TrieNode::Extension { path, child, .. }) => {
                let payload_length =
                    path.as_slice().length().saturating_add(self.reference_bytes(Some(*child)));
                Header { list: true, payload_length }.encode(out);
                path.as_slice().encode(out);
                self.put_reference(Some(*child), out);
            }
            Some(TrieNode::Branch { children }) => {
                // No key ends at a branch: its value is empty.
                let payload_length = children
                    .iter()
                    .fold(1, |sum: usize, child| sum.saturating_add(self.reference_bytes(*child)));
                Header { list: true, payload_length }.encode(out);
                for child in children.iter() {
                    self.put_reference(*child, out);
                }
                out.put_u8(EMPTY_STRING_CODE);
            }
            None => {}
        }
    }

    fn reference(&self, node: Option<usize>) -> &Reference {
        node.and_then(|node| self.references.get(node)).unwrap_or(&Reference::Unknown)
    }

    fn reference_bytes(&self, node: Option<usize>) -> usize {
        match self.reference(node) {
            Reference::Unknown => 1,
            Reference::Inline(encoded) => encoded.len(),
            Reference::Hash(hash) => hash.length(),
        }
    }

    fn put_reference(&self, node: Option<usize>, out: &mut Vec<u8>) {
        match self.reference(node) {
            Reference::Unknown => out.put_u8(EMPTY_STRING_CODE),
            Reference::Inline(encoded) => out.extend_from_slice(encoded),
            Reference::Hash(hash) => hash.encode(out),
        }
    }
}

/// Nibbles as a node has them: two a byte, behind a mark of their kind and parity.
fn path(nibbles: &[u8], is_leaf: bool) -> Vec<u8> {
    let kind = if is_leaf { 0x20 } else { 0 };
    let (odd, even) = nibbles.split_at(nibbles.len() % 2);
    let first = odd.first().map_or(kind, |nibble| kind | 0x10 | nibble);
    let pairs = even.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low);
    std::iter::once(first).chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(values: &[Vec<u8>]) -> B256 {
        alloy_trie::root::ordered_trie_root_with_encoder(values, |value, out| {
            out.put_slice(value);
        })
    }

    /// Values of lengths around where nodes are no longer inline, heads grow and hashes take
    /// another round.
    fn values(count: usize, seed: usize) -> Vec<Vec<u8>> {
        let lengths = [1, 2, 20, 27, 28, 29, 30, 31, 32, 33, 55, 56, 135, 136, 137, 300, 70_000];
        let length = |index: usize| lengths[(index * 7 + seed) % (lengths.len() - index % 2)];
        let byte = |index: usize| u8::try_from((index * 31 + seed) % 251).unwrap();
        (0..count).map(|index| vec![byte(index); length(index)]).collect()
    }

    #[test]
    fn roots_are_those_of_alloy() {
        for count in (0..40).chain([126, 127, 128, 129, 200, 255, 256, 257, 300, 1000]) {
            let values = values(count, count);
            assert_eq!(ordered_root(&values), expected(&values), "{count} values");
        }
    }

    /// alloy's verifier takes each path for its own value, and for no other. It knows no root that is
    /// shorter than a hash: no transaction and no receipt is.
    #[test]
    fn paths_are_those_that_alloy_verifies() {
        let key = |index: usize| alloy_trie::Nibbles::unpack(alloy_rlp::encode_fixed_size(&index));
        for count in [1, 2, 3, 16, 17, 127, 128, 129, 257, 300] {
            let mut values = values(count, count);
            for value in &mut values {
                value.resize(value.len().max(40), 1);
            }
            let trie = OrderedTrie::new(&values);
            for (index, value) in values.iter().enumerate() {
                let path: Vec<alloy_primitives::Bytes> =
                    trie.path(index).unwrap().into_iter().map(Into::into).collect();
                let verify = |key, value: &[u8]| {
                    alloy_trie::proof::verify_proof(trie.root(), key, Some(value.to_vec()), &path)
                };
                verify(key(index), value).unwrap_or_else(|it| panic!("{index} of {count}: {it}"));
                assert!(verify(key(index), b"another").is_err(), "{index} of {count}");
                assert!(verify(key(index + 1), value).is_err(), "{index} of {count}");
            }
            assert_eq!(trie.path(count), None, "{count} values");
        }
    }

    #[test]
    fn short_values_stand_in_their_parents() {
        for length in 1..40 {
            for count in [1, 2, 17, 129, 260] {
                let values = vec![vec![0x7f; length]; count];
                assert_eq!(ordered_root(&values), expected(&values), "{count} of {length} bytes");
            }
        }
    }
}
