// Merkle-Patricia tries whose keys are positions in a list: one path through one, and the root over all.
//
// Knows: branches, extensions and leaves, by hash or inside their parent.
// Never knows: what the values are, or whose root it is.

import { isEqual, keccak256, toHex } from "./keccak.js";
import { Fault, encodeList, encodeString, listItems, positionKey, wholeList } from "./rlp.js";

/** A branch has sixteen children and a value. */
const BRANCH_ITEMS = 17;
/** Nodes shorter than this stand in their parent themselves, longer ones by their hash. */
const HASHED_BYTES_MIN = 32;
const EMPTY_STRING = Uint8Array.of(0x80);

/** The value at a position, by all nodes from the root down and no other. */
export function valueAt(root, position, nodes) {
  const key = nibblesOf(positionKey(position));
  let depth = 0;
  let used = 1;
  let items = hashedNode(root, 0, nodes);
  // Every turn takes at least one nibble of the key, or is the last.
  for (;;) {
    const node = `node ${used - 1}`;
    let child;
    if (items.length === 2) {
      const { isLeaf, partial } = partialPath(items[0], node);
      if (partial.some((nibble, at) => nibble !== key[depth + at])) {
        throw new Fault(`${node}: the path leads elsewhere than to index ${position}`);
      }
      depth += partial.length;
      if (isLeaf) return leafValue(items[1], depth === key.length, used, nodes.length);
      if (partial.length === 0) throw new Fault(`${node}: an extension without a part of the path`);
      child = items[1];
    } else if (items.length === BRANCH_ITEMS) {
      // No key of such a trie is the beginning of another: nothing ends in a branch.
      if (depth === key.length) throw new Fault(`${node}: the path ends in a branch`);
      child = items[key[depth]];
      depth += 1;
    } else {
      throw new Fault(`${node}: it has ${items.length} items, not 2 or 17`);
    }
    const hash = childHash(child, node);
    items = hash === null ? wellFormed(used - 1, () => listItems(child, BRANCH_ITEMS)) : hashedNode(hash, used, nodes);
    used += hash === null ? 0 : 1;
  }
}

/** The hash by which a node names its child; null if the child stands in it. */
function childHash(child, node) {
  if (child.isList) {
    if (child.encoded.length < HASHED_BYTES_MIN) return null;
    throw new Fault(`${node}: a child that is long enough for a hash stands in its parent`);
  }
  if (child.payload.length === 0) throw new Fault(`${node}: the trie has nothing at this index`);
  const hash = child.array(32);
  if (hash === null) throw new Fault(`${node}: a child is neither hash nor node`);
  return hash;
}

/** The items of the next node that was given, which must have the hash. */
function hashedNode(hash, used, nodes) {
  if (used >= nodes.length) {
    throw new Fault(`the path ends after ${used} nodes, before a leaf: ${toHex(hash)} is missing`);
  }
  const node = nodes[used];
  const found = keccak256(node);
  if (!isEqual(found, hash)) {
    throw new Fault(`node ${used} has hash ${toHex(found)}, the way to it says ${toHex(hash)}`);
  }
  if (used > 0 && node.length < HASHED_BYTES_MIN) {
    throw new Fault(`node ${used} has ${node.length} bytes and belongs into its parent`);
  }
  return wellFormed(used, () => wholeList(node, BRANCH_ITEMS));
}

function wellFormed(node, read) {
  try {
    return read();
  } catch (fault) {
    throw fault instanceof Fault ? new Fault(`node ${node}, byte ${fault.offset}: ${fault.what}`) : fault;
  }
}

function leafValue(value, isWholeKey, used, given) {
  if (!isWholeKey) throw new Fault("the path ends in a leaf before the index does");
  if (used !== given) throw new Fault(`${given} nodes, but the path ends after ${used}`);
  if (value.isList) throw new Fault("the leaf holds a list, not bytes");
  return value.payload;
}

/** Whether a node is a leaf, and its nibbles: the "hex prefix" form. */
function partialPath(item, node) {
  const nibbles = item.isList ? [] : nibblesOf(item.payload);
  const [flag, padding] = nibbles;
  const isOdd = (flag & 1) === 1;
  if (nibbles.length === 0 || flag > 3 || (!isOdd && padding !== 0)) {
    throw new Fault(`${node}: its part of the path is malformed`);
  }
  return { isLeaf: flag >= 2, partial: nibbles.slice(isOdd ? 1 : 2) };
}

function nibblesOf(bytes) {
  return Array.from(bytes).flatMap((byte) => [byte >> 4, byte & 0xf]);
}

/** The root over values in the order of their positions. */
export function orderedRoot(values) {
  if (values.length === 0) return keccak256(EMPTY_STRING);
  // In the order of their keys: one byte each from 1 to 127, then 0 as 0x80, then those with a length in front.
  const positions = values.map((_, position) => position);
  const sorted = [...positions.slice(1, 128), 0, ...positions.slice(128)];
  const leaves = sorted.map((position) => ({ key: nibblesOf(positionKey(position)), value: values[position] }));
  return keccak256(nodeOver(leaves, 0, leaves.length, 0));
}

/**
 * The node over the leaves from `first` up to `end`, of which there is at least one, whose keys agree in the
 * first `depth` nibbles. It calls itself for each level of the trie, which has fewer than a key has nibbles.
 */
function nodeOver(leaves, first, end, depth) {
  const { key, value } = leaves[first];
  if (end - first === 1) {
    return encodeList([encodeString(hexPrefix(key.slice(depth), true)), encodeString(value)]);
  }
  // In sorted keys the first and the last differ where any two do.
  const last = leaves[end - 1].key;
  let fork = depth;
  while (key[fork] === last[fork]) fork += 1;
  if (fork > depth) {
    const child = reference(nodeOver(leaves, first, end, fork));
    return encodeList([encodeString(hexPrefix(key.slice(depth, fork), false)), child]);
  }
  const children = new Array(BRANCH_ITEMS).fill(EMPTY_STRING);
  for (let at = first; at < end; ) {
    const nibble = leaves[at].key[depth];
    const begin = at;
    while (at < end && leaves[at].key[depth] === nibble) at += 1;
    children[nibble] = reference(nodeOver(leaves, begin, at, depth + 1));
  }
  return encodeList(children);
}

function reference(node) {
  return node.length < HASHED_BYTES_MIN ? node : encodeString(keccak256(node));
}

/** The "hex prefix" form: what is left over in front of whole bytes goes beside the flag. */
function hexPrefix(nibbles, isLeaf) {
  const flag = isLeaf ? 2 : 0;
  const all = nibbles.length % 2 === 1 ? [flag + 1, ...nibbles] : [flag, 0, ...nibbles];
  return Uint8Array.from({ length: all.length / 2 }, (_, at) => (all[2 * at] << 4) | all[2 * at + 1]);
}
