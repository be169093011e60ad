// Proof bundles as their text has them: JSON in the one form that its content can have.
//
// Knows: which members the three kinds of bundles have, in which order (docs/proofs.md).
// Never knows: whether any of it is true. There is nothing to normalise and nothing to compare afterwards:
// whitespace, another order, unknown members and capital digits are refused at the byte where they are.

import { keccak256 } from "./keccak.js";

/** A bundle proves nothing: the step that failed, and what was found there. */
export class Refusal {
  constructor(step, why) {
    this.step = step;
    this.why = why;
  }
}

/** A longer text is refused unread. */
export const BUNDLE_BYTES_MAX = 64 * 2 ** 20;
/** A key has at most 18 nibbles, of which every node takes one, and the leaf may take none. */
const NODES_MAX = 19;
/** Items of all lists together: more than a block or a range of blocks ever has. */
const ITEMS_MAX = 2 ** 20;
/** As nodes limit a filter. */
const TOPIC_POSITIONS_MAX = 4;
const ALTERNATIVES_MAX = 1000;
/** Siblings of a branch through the accumulator. */
export const ACCUMULATOR_SIBLINGS = 28;

/** How much of what is there instead a refusal shows. */
const SHOWN_BYTES = 24;
const WHITESPACE = [0x20, 0x09, 0x0d, 0x0a];
const ESCAPES = { 9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\" };
/** By byte: the value of a lowercase hex digit, or 255. */
const DIGITS = new Uint8Array(256).fill(255);
for (const [value, digit] of [..."0123456789abcdef"].entries()) DIGITS[digit.charCodeAt(0)] = value;

/** A place in the text. */
class CanonicalText {
  constructor(bytes) {
    this.bytes = bytes;
    this.offset = 0;
    this.itemsLeft = ITEMS_MAX;
  }

  /** How many characters of this text come next. */
  same(expected) {
    let count = 0;
    while (count < expected.length && this.bytes[this.offset + count] === expected.charCodeAt(count)) count += 1;
    return count;
  }

  /** Whether this text comes next; if so, it is passed over. */
  passes(expected) {
    const comes = this.same(expected) === expected.length;
    if (comes) this.offset += expected.length;
    return comes;
  }

  expect(expected) {
    const same = this.same(expected);
    this.offset += same;
    if (same < expected.length) throw this.refusal(`expected \`${expected.slice(same)}\``);
  }

  /** One of two must come next; whether it is the first. */
  either(first, second) {
    if (this.passes(first)) return true;
    if (this.passes(second)) return false;
    throw this.refusal(`expected \`${first}\` or \`${second}\``);
  }

  /** An integer without sign, leading zeros or exponent. */
  number() {
    const start = this.offset;
    let end = start;
    while (this.bytes[end] >= 0x30 && this.bytes[end] <= 0x39) end += 1;
    if (end === start || (end > start + 1 && this.bytes[start] === 0x30)) {
      throw this.refusal("expected an integer without leading zeros");
    }
    let number = 0;
    for (let at = start; at < end; at += 1) {
      // Added as one: a sum above 2^53 on the way would be rounded.
      number = number * 10 + (this.bytes[at] - 0x30);
      if (number > Number.MAX_SAFE_INTEGER) throw this.refusal("expected an integer below 2^53");
    }
    this.offset = end;
    return number;
  }

  /** Bytes, at least one, as `"0x"` with two lowercase digits for each. */
  data() {
    this.expect('"0x');
    const start = this.offset;
    let end = start;
    while (DIGITS[this.bytes[end]] < 16) end += 1;
    this.offset = end;
    if (end === start || (end - start) % 2 === 1) {
      throw this.refusal("expected lowercase hex digits, an even number of them, and some");
    }
    this.expect('"');
    const data = new Uint8Array((end - start) / 2);
    for (let place = 0, at = start; at < end; place += 1, at += 2) {
      data[place] = (DIGITS[this.bytes[at]] << 4) | DIGITS[this.bytes[at + 1]];
    }
    return data;
  }

  /** So many bytes. */
  array(size) {
    const start = this.offset;
    const data = this.data();
    if (data.length !== size) {
      this.offset = start;
      throw this.refusal(`expected ${size} bytes, not ${data.length},`);
    }
    return data;
  }

  hash() {
    return this.array(32);
  }

  /** A list of at most `countMax` items. */
  list(countMax, item) {
    this.expect("[");
    const items = [];
    if (this.passes("]")) return items;
    do {
      if (items.length === countMax) throw this.refusal(`expected at most ${countMax} items`);
      if (this.itemsLeft === 0) throw this.refusal(`expected at most ${ITEMS_MAX} items in all lists`);
      this.itemsLeft -= 1;
      items.push(item());
    } while (this.either(",", "]"));
    return items;
  }

  /** A list of bytes. */
  dataList(countMax) {
    return this.list(countMax, () => this.data());
  }

  /** Nothing but the newline at the end of a file may follow. */
  end() {
    this.passes("\n");
    if (this.offset < this.bytes.length) throw this.refusal("expected the end");
  }

  /** A refusal at this place. */
  refusal(what) {
    const rest = this.bytes.subarray(this.offset, this.offset + SHOWN_BYTES);
    const found = rest.length === 0 ? "the text ends" : `there is \`${Array.from(rest, escaped).join("")}\``;
    const hint = WHITESPACE.includes(rest[0]) ? "; a bundle is compact JSON: try `jq -c .`" : "";
    return new Refusal("text", `byte ${this.offset}: ${what} but ${found}${hint}`);
  }
}

function escaped(byte) {
  const isPrintable = byte >= 0x20 && byte < 0x7f;
  const code = `\\x${byte.toString(16).padStart(2, "0")}`;
  return ESCAPES[byte] ?? (isPrintable ? String.fromCharCode(byte) : code);
}

/** Reads a bundle, from its text or the text's bytes. The same bundle has one text, and a refusal says so. */
export function parseBundle(source) {
  const bytes = bytesOf(source);
  if (bytes.length > BUNDLE_BYTES_MAX) throw tooLong(bytes.length);
  const text = new CanonicalText(bytes);
  text.expect('{"version":1,');
  let content;
  if (text.either('"header":', '"filter":')) {
    const header = text.data();
    const isOne = text.either(',"transaction":', ',"transactions":');
    content = isOne ? readInclusion(header, text) : readBlock(header, text);
  } else {
    content = readLogs(text);
  }
  const way = readWay(text);
  text.end();
  return { content, way };
}

function bytesOf(source) {
  if (source instanceof Uint8Array) return source;
  const text = typeof source === "string" ? source : "";
  // Characters have at least one byte each.
  if (text.length > BUNDLE_BYTES_MAX) throw tooLong(text.length);
  return new TextEncoder().encode(text);
}

function tooLong(size) {
  return new Refusal("text", `${size} bytes, more than ${BUNDLE_BYTES_MAX}; ask for a smaller range`);
}

function readInclusion(header, text) {
  const transaction = readIndexed(text);
  const receipt = text.passes(',"receipt":') ? readIndexed(text) : null;
  const log = receipt !== null && text.passes(',"log":') ? readLogPlace(text) : null;
  return { kind: "inclusion", header, transaction, receipt, log };
}

function readIndexed(text) {
  text.expect('{"index":');
  const index = text.number();
  text.expect(',"rlp":');
  const rlp = text.data();
  text.expect(',"proof":');
  const nodes = text.dataList(NODES_MAX);
  text.expect("}");
  return { index, rlp, nodes };
}

function readLogPlace(text) {
  text.expect('{"position":');
  const position = text.number();
  text.expect(',"after":');
  const after = text.number();
  text.expect("}");
  return { position, after };
}

function readBlock(header, text) {
  const transactions = text.dataList(ITEMS_MAX);
  text.expect(',"receipts":');
  const receipts = text.dataList(ITEMS_MAX);
  text.expect(',"ommers":');
  const ommers = text.data();
  const withdrawals = text.passes(',"withdrawals":') ? text.dataList(ITEMS_MAX) : null;
  return { kind: "block", header, transactions, receipts, ommers, withdrawals };
}

function readLogs(text) {
  const start = text.offset;
  const filter = readFilter(text);
  const filterHashFound = keccak256(text.bytes.subarray(start, text.offset));
  text.expect(',"filterHash":');
  const filterHash = text.hash();
  text.expect(',"blocks":');
  const blocks = text.list(ITEMS_MAX, () => readSearchedBlock(text));
  return { kind: "logs", filter, filterHash, filterHashFound, blocks };
}

function readFilter(text) {
  text.expect('{"fromBlock":');
  const fromBlock = text.number();
  text.expect(',"toBlock":');
  const toBlock = text.number();
  text.expect(',"address":');
  const addresses = text.list(ALTERNATIVES_MAX, () => text.array(20));
  text.expect(',"topics":');
  const topics = text.list(TOPIC_POSITIONS_MAX, () => text.list(ALTERNATIVES_MAX, () => text.hash()));
  text.expect("}");
  return { fromBlock, toBlock, addresses, topics };
}

function readSearchedBlock(text) {
  text.expect('{"header":');
  const header = text.data();
  const receipts = text.passes(',"receipts":') ? text.dataList(ITEMS_MAX) : null;
  text.expect("}");
  return { header, receipts };
}

/** The status says what ends the way, and so must the way. */
function readWay(text) {
  text.expect(',"status":"');
  let way;
  if (text.either('linked"', 'anchored"')) {
    text.expect(',"anchor":{"number":');
    const number = text.number();
    text.expect(',"hash":');
    const hash = text.hash();
    text.expect(',"by":"headers","path":');
    way = { by: "headers", number, hash, path: text.dataList(ITEMS_MAX) };
  } else {
    text.expect(',"anchor":{"hash":');
    const hash = text.hash();
    text.expect(',"by":"accumulator","path":');
    way = { by: "accumulator", hash, path: text.list(ACCUMULATOR_SIBLINGS, () => text.hash()) };
  }
  text.expect("}}");
  return way;
}
