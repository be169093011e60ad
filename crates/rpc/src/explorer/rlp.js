// RLP, read strictly: every item has one encoding. And written, as far as tries need it.
//
// Knows: strings, lists and canonical lengths.
// Never knows: what is encoded. Lists inside of lists are opened by the caller, never by recursion.

/** Why bytes do not have the form that was expected; `offset` counts from the first byte that was given. */
export class Fault {
  constructor(what, offset = 0) {
    this.what = what;
    this.offset = offset;
  }
}

const STRING_BASE = 0x80;
const LIST_BASE = 0xc0;
/** Payloads up to this length stand directly behind their first byte. */
const SHORT_BYTES_MAX = 55;
/** A longer length than 4 bytes can say is none that we ever read. */
const LENGTH_BYTES_MAX = 4;

/** An item: its payload, and all of its bytes. */
class RlpItem {
  constructor(isList, payload, encoded) {
    this.isList = isList;
    this.payload = payload;
    this.encoded = encoded;
  }

  /** The payload of a string of exactly this many bytes; null of anything else. */
  array(size) {
    return !this.isList && this.payload.length === size ? this.payload : null;
  }

  /** A number of up to 64 bits without leading zeros, as a BigInt; null of anything else. */
  number() {
    if (this.isList || this.payload.length > 8 || this.payload[0] === 0) return null;
    return this.payload.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
  }
}

/** The item that `bytes` begin with. */
function firstItem(bytes) {
  if (bytes.length === 0) throw new Fault("an item is missing");
  const first = bytes[0];
  const isList = first >= LIST_BASE;
  const code = first - (isList ? LIST_BASE : STRING_BASE);
  let [head, length] = [1, code];
  if (code < 0) {
    [head, length] = [0, 1];
  } else if (code > SHORT_BYTES_MAX) {
    head = code - SHORT_BYTES_MAX + 1;
    length = longLength(bytes, head);
  }
  if (head + length > bytes.length) throw new Fault("an item is cut off");
  const payload = bytes.subarray(head, head + length);
  if (!isList && head === 1 && length === 1 && payload[0] < STRING_BASE) {
    throw new Fault("a byte below 0x80 has a length in front");
  }
  return new RlpItem(isList, payload, bytes.subarray(0, head + length));
}

function longLength(bytes, head) {
  if (bytes.length < head) throw new Fault("a length is cut off");
  if (bytes[1] === 0) throw new Fault("a length has leading zeros");
  if (head - 1 > LENGTH_BYTES_MAX) throw new Fault("a length is too large");
  const length = bytes.subarray(1, head).reduce((sum, byte) => sum * 256 + byte, 0);
  if (length <= SHORT_BYTES_MAX) throw new Fault("a short length is written as a long one");
  return length;
}

/** The items of the one list that `bytes` are; at most `countMax` of them. */
export function wholeList(bytes, countMax) {
  const list = firstItem(bytes);
  if (list.encoded.length !== bytes.length) throw new Fault("bytes are left over", list.encoded.length);
  return listItems(list, countMax);
}

/** The items of a list; at most `countMax` of them. */
export function listItems(list, countMax) {
  const rest = new ListReader(list);
  const items = [];
  while (!rest.isEmpty()) {
    if (items.length === countMax) throw new Fault("a list has too many items");
    items.push(rest.next());
  }
  return items;
}

/** Reads the items of a list one by one. */
export class ListReader {
  constructor(list) {
    if (!list.isList) throw new Fault("a list was expected");
    this.rest = list.payload;
    this.offset = list.encoded.length - list.payload.length;
  }

  isEmpty() {
    return this.rest.length === 0;
  }

  next() {
    try {
      const item = firstItem(this.rest);
      this.rest = this.rest.subarray(item.encoded.length);
      this.offset += item.encoded.length;
      return item;
    } catch (fault) {
      throw fault instanceof Fault ? new Fault(fault.what, fault.offset + this.offset) : fault;
    }
  }
}

/** A string, encoded. */
export function encodeString(bytes) {
  if (bytes.length === 1 && bytes[0] < STRING_BASE) return bytes;
  return withHead(STRING_BASE, bytes.length, [bytes]);
}

/** The list of items that are encoded already. */
export function encodeList(items) {
  const length = items.reduce((sum, item) => sum + item.length, 0);
  return withHead(LIST_BASE, length, items);
}

/** The RLP of a position in a list, which is its key in a trie. */
export function positionKey(position) {
  return encodeString(bigEndian(position));
}

function withHead(base, length, parts) {
  const size = length > SHORT_BYTES_MAX ? bigEndian(length) : [];
  const out = new Uint8Array(1 + size.length + length);
  out[0] = base + (size.length > 0 ? SHORT_BYTES_MAX + size.length : length);
  out.set(size, 1);
  let at = 1 + size.length;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** A whole number below 2^53 without leading zeros. */
function bigEndian(number) {
  const bytes = [];
  for (let rest = number; rest > 0; rest = Math.floor(rest / 256)) {
    bytes.unshift(rest % 256);
  }
  return Uint8Array.from(bytes);
}
