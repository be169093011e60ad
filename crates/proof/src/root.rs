//! The root of a trie whose keys are the positions of a list's values.

use alloc::vec::Vec;

use crate::hash::{Hash32, keccak256};
use crate::rlp::{list_of, position_key, put_string};

const HASHED_BYTES_MIN: usize = 32;
const EMPTY_STRING: u8 = 0x80;

/// The root over values in the order of their positions.
pub(crate) fn ordered_root<V: AsRef<[u8]>>(values: &[V]) -> Hash32 {
    if values.is_empty() {
        return keccak256(&[EMPTY_STRING]);
    }
    let keyed = (0..).zip(values).map(|(position, value)| (nibbles(position), value.as_ref()));
    let mut items: Vec<KeyedValue<'_>> = keyed.collect();
    items.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    keccak256(&node(&items, 0))
}

/// A value behind the nibbles of its key.
type KeyedValue<'a> = (Vec<u8>, &'a [u8]);

/// The node over items, of which there is at least one, whose keys agree in the first `depth`
/// nibbles. It calls itself for each level of the trie, which has fewer than a key has nibbles: ten
/// for four thousand million values.
fn node(items: &[KeyedValue<'_>], depth: usize) -> Vec<u8> {
    let [(first, value), others @ ..] = items else { return Vec::new() };
    let tail = first.get(depth..).unwrap_or_default();
    let mut payload = Vec::new();
    // In sorted keys the first and the last differ where any two do.
    let Some((last, _)) = others.last() else {
        put_string(&hex_prefix(tail, true), &mut payload);
        put_string(value, &mut payload);
        return list_of(&payload);
    };
    let last = last.get(depth..).unwrap_or_default();
    let common = tail.iter().zip(last).take_while(|(one, other)| one == other).count();
    if common > 0 {
        put_string(&hex_prefix(tail.get(..common).unwrap_or_default(), false), &mut payload);
        put_reference(&node(items, depth.saturating_add(common)), &mut payload);
        return list_of(&payload);
    }
    let mut rest = items;
    for nibble in 0..16 {
        let count = rest.partition_point(|(key, _)| key.get(depth).is_none_or(|at| *at <= nibble));
        let (child, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        rest = after;
        if child.is_empty() {
            payload.push(EMPTY_STRING);
        } else {
            put_reference(&node(child, depth.saturating_add(1)), &mut payload);
        }
    }
    payload.push(EMPTY_STRING);
    list_of(&payload)
}

fn put_reference(node: &[u8], out: &mut Vec<u8>) {
    if node.len() < HASHED_BYTES_MIN {
        out.extend_from_slice(node);
    } else {
        put_string(&keccak256(node).0, out);
    }
}

fn nibbles(position: u64) -> Vec<u8> {
    position_key(position).iter().flat_map(|byte| [byte >> 4, byte & 0xf]).collect()
}

/// The "hex prefix" form: what is left over in front of whole bytes goes beside the flag.
fn hex_prefix(nibbles: &[u8], is_leaf: bool) -> Vec<u8> {
    let flag = if is_leaf { 0x20 } else { 0 };
    let (odd, pairs) = nibbles.as_rchunks::<2>();
    let first = odd.first().map_or(flag, |nibble| flag | 0x10 | nibble);
    core::iter::once(first).chain(pairs.iter().map(|[high, low]| high << 4 | low)).collect()
}
