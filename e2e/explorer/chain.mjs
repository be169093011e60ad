// Makes blocks and bundles for tests of the verifier: nothing of the code under test but its two hashes,
// which are held against others by themselves.
//
// The trie is built by inserting one value after the other, as EIP-1186's authors have it; the verifier
// builds it from the sorted list.
import { keccak256, sha256, toHex } from "../../crates/rpc/src/explorer/keccak.js";

const EMPTY = Buffer.from([0x80]);

/** RLP of bytes, whole numbers and lists of these. */
export function rlp(value) {
  if (Array.isArray(value)) {
    const payload = Buffer.concat(value.map(rlp));
    return Buffer.concat([head(0xc0, payload.length), payload]);
  }
  const bytes = typeof value === "number" ? bigEndian(value) : Buffer.from(value);
  return bytes.length === 1 && bytes[0] < 0x80 ? bytes : Buffer.concat([head(0x80, bytes.length), bytes]);
}

function head(base, length) {
  if (length < 56) return Buffer.from([base + length]);
  const size = bigEndian(length);
  return Buffer.concat([Buffer.from([base + 55 + size.length]), size]);
}

export function bigEndian(number) {
  const digits = number.toString(16);
  return number === 0 ? Buffer.alloc(0) : Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
}

/** Numbers without pattern, the same each time: xorshift. */
export class Random {
  constructor(seed) {
    this.state = seed * 2654435761 + 1;
  }

  below(end) {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    return (this.state >>> 0) % end;
  }

  bytes(count) {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }
}

/* Tries. A node is null, {leaf, value}, {extension, child} or {children}; its RLP is made when it is whole. */

function insert(node, path, value) {
  if (node === null) return { leaf: path, value };
  if (node.children) {
    const children = [...node.children];
    children[path[0]] = insert(children[path[0]], path.slice(1), value);
    return { children };
  }
  const own = node.leaf ?? node.extension;
  let same = 0;
  while (same < own.length && own[same] === path[same]) same += 1;
  if (node.extension && same === own.length) {
    return { extension: own, child: insert(node.child, path.slice(same), value) };
  }
  const children = new Array(16).fill(null);
  const rest = own.slice(same + 1);
  const inExtension = rest.length > 0 ? { extension: rest, child: node.child } : node.child;
  children[own[same]] = node.leaf ? { leaf: rest, value: node.value } : inExtension;
  children[path[same]] = { leaf: path.slice(same + 1), value };
  return same > 0 ? { extension: own.slice(0, same), child: { children } } : { children };
}

function compact(nibbles, isLeaf) {
  const flag = (isLeaf ? 2 : 0) + (nibbles.length % 2);
  return Buffer.from([flag, ...(nibbles.length % 2 ? [] : [0]), ...nibbles].map((it) => it.toString(16)).join(""), "hex");
}

function encoded(node) {
  if (node.leaf) return rlp([compact(node.leaf, true), node.value]);
  const parts = node.children
    ? [...node.children.map((child) => (child === null ? EMPTY : reference(child))), EMPTY]
    : [rlp(compact(node.extension, false)), reference(node.child)];
  const payload = Buffer.concat(parts);
  return Buffer.concat([head(0xc0, payload.length), payload]);
}

function reference(node) {
  const bytes = encoded(node);
  return bytes.length < 32 ? bytes : rlp(keccak256(bytes));
}

const nibblesOf = (position) => [...rlp(position).toString("hex")].map((digit) => Number.parseInt(digit, 16));

/** The root over a list, and a function that gives the nodes on the way to a position. */
export function trie(values) {
  let top = null;
  for (const [position, value] of values.entries()) top = insert(top, nibblesOf(position), value);
  const root = Buffer.from(keccak256(top === null ? EMPTY : encoded(top)));
  const pathTo = (position) => {
    const nodes = [];
    let node = top;
    for (let left = nibblesOf(position); ; ) {
      const bytes = encoded(node);
      if (nodes.length === 0 || bytes.length >= 32) nodes.push(bytes);
      if (node.leaf) return nodes;
      const taken = node.children ? 1 : node.extension.length;
      node = node.children ? node.children[left[0]] : node.child;
      left = left.slice(taken);
    }
  };
  return { root, pathTo };
}

/* Blocks. */

function bloomOf(logs) {
  const bloom = Buffer.alloc(256);
  for (const item of logs.flatMap(([address, topics]) => [address, ...topics])) {
    const hash = keccak256(item);
    for (const at of [0, 2, 4]) {
      const bit = (hash[at] * 256 + hash[at + 1]) % 2048;
      bloom[255 - Math.floor(bit / 8)] |= 2 ** (bit % 8);
    }
  }
  return bloom;
}

/** Whether a block's bloom has all bits of an address. */
export function mayHave({ logs }, address) {
  const all = bloomOf(logs.flat());
  return bloomOf([[address, []]]).every((byte, at) => (byte & all[at]) === byte);
}

/** A header; `over` replaces fields by their index, and may add some. */
export function headerOf({ number, parent, transactions, receipts, logs = [], withdrawals = null, over = {} }) {
  const later = withdrawals === null ? [] : [7, withdrawals];
  const zero = Buffer.alloc(32);
  const fields = [parent, keccak256(rlp([])), Buffer.alloc(20), zero, transactions, receipts, bloomOf(logs), 0,
    number, 30_000_000, 21_000, 1_700_000_000 + 12 * number, Buffer.from("test"), zero, Buffer.alloc(8), ...later];
  for (const [index, field] of Object.entries(over)) fields[index] = field;
  return rlp(fields);
}

/** A block of so many transactions, some so short that nodes of the trie stand inside of others. */
export function blockOf(number, parent, count, random) {
  const transactions = Array.from({ length: count }, (_, index) => {
    const bytes = random.bytes(random.below(random.below(3) === 0 ? 300 : 30));
    return index % 3 === 0 ? rlp([bytes]) : Buffer.concat([Buffer.from([1 + random.below(4)]), bytes]);
  });
  const logs = transactions.map(() => Array.from({ length: random.below(4) }, () => logOf(random)));
  const receipts = logs.map((own, index) => {
    const list = rlp([1, 21_000 * (index + 1), bloomOf(own), own]);
    return index % 2 === 0 ? list : Buffer.concat([Buffer.from([2]), list]);
  });
  const withdrawals = number % 2 === 1 ? Array.from({ length: number % 5 }, (_, index) => rlp([index, number])) : null;
  const [ofTransactions, ofReceipts] = [trie(transactions), trie(receipts)];
  const header = headerOf({
    number, parent, transactions: ofTransactions.root, receipts: ofReceipts.root, logs: logs.flat(),
    withdrawals: withdrawals === null ? null : trie(withdrawals).root,
  });
  return { number, header, hash: Buffer.from(keccak256(header)), transactions, receipts, logs, withdrawals, ofTransactions, ofReceipts };
}

export const addressOf = (byte) => Buffer.alloc(20, byte);
export const topicOf = (byte) => Buffer.alloc(32, byte);

function logOf(random) {
  const topics = Array.from({ length: random.below(5) }, () => topicOf(random.below(6)));
  return [addressOf(random.below(6)), topics, random.bytes(random.below(70))];
}

/** Blocks that name each other as parents. */
export function chainOf(first, counts, random) {
  const blocks = [];
  for (const [place, count] of counts.entries()) {
    blocks.push(blockOf(first + place, blocks[place - 1]?.hash ?? topicOf(9), count, random));
  }
  return blocks;
}

/* Bundles. */

export const quoted = (bytes) => `"${toHex(bytes)}"`;
export const quotedList = (list) => `[${list.map(quoted)}]`;

/** The way from a block through those that follow it. */
export function headersWay(block, following = []) {
  const { number, hash } = following.at(-1) ?? block;
  const path = quotedList(following.map(({ header }) => header));
  return `"status":"linked","anchor":{"number":${number},"hash":${quoted(hash)},"by":"headers","path":${path}}`;
}

/** A way up an accumulator whose other records and epochs are made up. */
export function accumulatorWay({ number, hash }, random) {
  const path = Array.from({ length: 28 }, () => random.bytes(32));
  const [epoch, place] = [Math.floor(number / 8192), number % 8192];
  const bit = (level) => {
    if (level >= 1 && level <= 13) return Math.floor(place / 2 ** (level - 1)) % 2;
    return level >= 15 && level <= 25 ? Math.floor(epoch / 2 ** (level - 15)) % 2 : 0;
  };
  const root = path.reduce((node, sibling, level) =>
    sha256(Buffer.concat(bit(level) === 1 ? [sibling, node] : [node, sibling])), hash);
  return `"status":"anchored","anchor":{"hash":${quoted(root)},"by":"accumulator","path":${quotedList(path)}}`;
}

const indexed = (index, bytes, nodes) => `{"index":${index},"rlp":${quoted(bytes)},"proof":${quotedList(nodes)}}`;

/** A transaction, with its receipt and its first log if it has one. */
export function inclusion(block, index, way, { withReceipt = true } = {}) {
  const transaction = `"transaction":${indexed(index, block.transactions[index], block.ofTransactions.pathTo(index))}`;
  const parts = [`"version":1,"header":${quoted(block.header)}`, transaction];
  if (withReceipt) {
    parts.push(`"receipt":${indexed(index, block.receipts[index], block.ofReceipts.pathTo(index))}`);
    const after = block.logs[index].length - 1;
    if (after >= 0) parts.push(`"log":{"position":0,"after":${after}}`);
  }
  return `{${[...parts, way]}}`;
}

/** All of a block. */
export function wholeBlock({ header, transactions, receipts, withdrawals }, way, ommers = rlp([])) {
  const parts = [`"version":1,"header":${quoted(header)}`, `"transactions":${quotedList(transactions)}`,
    `"receipts":${quotedList(receipts)}`, `"ommers":${quoted(ommers)}`];
  if (withdrawals !== null) parts.push(`"withdrawals":${quotedList(withdrawals)}`);
  return `{${[...parts, way]}}`;
}

/** All logs of blocks that fit `filter`; `needed` says which blocks' receipts are there. */
export function logsBundle(blocks, { addresses, topics }, needed = () => true) {
  const [from, to] = [blocks[0].number, blocks.at(-1).number];
  const ofTopics = `[${topics.map(quotedList)}]`;
  const filter = `{"fromBlock":${from},"toBlock":${to},"address":${quotedList(addresses)},"topics":${ofTopics}}`;
  const entries = blocks.map((block) => {
    const receipts = needed(block) ? `,"receipts":${quotedList(block.receipts)}` : "";
    return `{"header":${quoted(block.header)}${receipts}}`;
  });
  const hash = quoted(keccak256(Buffer.from(filter)));
  return `{"version":1,"filter":${filter},"filterHash":${hash},"blocks":[${entries}],${headersWay(blocks.at(-1))}}`;
}
