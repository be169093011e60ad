// Headers, receipts and log filters in their consensus form, as far as proofs rest on them.
//
// Knows: the order of a header's fields, of which later forks only add more; the four fields of a receipt;
// which logs a filter matches, and which blooms say that none does.
// Never knows: whether anything commits to a header, a receipt or a bloom.

import { keccak256, toHex } from "./keccak.js";
import { Fault, ListReader, listItems, wholeList } from "./rlp.js";

/** Fields of Frontier's header. */
const FIELDS_MIN = 15;
/** More than any fork will need. */
const FIELDS_MAX = 64;
const BLOOM_BYTES = 256;
const RECEIPT_FIELDS = 4;
const LOG_FIELDS = 3;
/** `LOG4` has four. */
const TOPICS_MAX = 4;
/** A typed receipt begins with its type, which is below the first byte of any list. */
const TYPE_MAX = 0x7f;

/** What a header commits to. Its number is a BigInt: it may have 64 bits. */
export function readHeader(rlp) {
  const items = inContext((fault) => `byte ${fault.offset} of the header: ${fault.what}`, () => wholeList(rlp, FIELDS_MAX));
  if (items.length < FIELDS_MIN) throw new Fault(`a header has ${items.length} fields, at least ${FIELDS_MIN}`);
  const formed = (value, index, name) => {
    if (value === null) throw new Fault(`field ${index} of the header, ${name}, does not have its form`);
    return value;
  };
  const field = (size, index, name) => formed(items[index].array(size), index, name);
  const withdrawalsRoot = items.length > 16 ? field(32, 16, "withdrawals root") : null;
  const list = items.findIndex((item) => item.isList);
  if (list >= 0) throw new Fault(`field ${list} of the header is a list`);
  return {
    hash: keccak256(rlp),
    parent: field(32, 0, "parent hash"),
    number: formed(items[8].number(), 8, "number"),
    ommersHash: field(32, 1, "ommers hash"),
    transactionsRoot: field(32, 4, "transactions root"),
    receiptsRoot: field(32, 5, "receipts root"),
    bloom: field(BLOOM_BYTES, 6, "bloom"),
    withdrawalsRoot,
  };
}

/** All logs of a receipt: `{address, topics, data}`. */
export function logsOf(receipt) {
  const list = receipt[0] <= TYPE_MAX ? receipt.subarray(1) : receipt;
  const ofReceipt = (fault) => `byte ${fault.offset} of its list: ${fault.what}`;
  const fields = inContext(ofReceipt, () => wholeList(list, RECEIPT_FIELDS));
  if (fields.length !== RECEIPT_FIELDS) throw new Fault(`it has ${fields.length} fields, not ${RECEIPT_FIELDS}`);
  const rest = inContext(ofReceipt, () => new ListReader(fields[3]));
  const logs = [];
  while (!rest.isEmpty()) {
    logs.push(inContext((fault) => `log ${logs.length}: ${fault.what}`, () => readLog(rest.next())));
  }
  return logs;
}

function readLog(log) {
  const fields = listItems(log, LOG_FIELDS);
  if (fields.length !== LOG_FIELDS) throw new Fault("it does not have three fields");
  const [first, second, data] = fields;
  const address = first.array(20);
  if (address === null) throw new Fault("its address does not have 20 bytes");
  const topics = listItems(second, TOPICS_MAX).map((topic) => topic.array(32));
  if (topics.includes(null)) throw new Fault("a topic does not have 32 bytes");
  if (data.isList) throw new Fault("its data are a list");
  return { address, topics, data: data.payload };
}

/** Does something, and says of what a fault in it was. */
function inContext(describe, work) {
  try {
    return work();
  } catch (fault) {
    throw fault instanceof Fault ? new Fault(describe(fault)) : fault;
  }
}

/** A filter, made ready for many blocks. */
export class LogMatcher {
  constructor(filter) {
    this.addresses = new Set(filter.addresses.map(toHex));
    this.topics = filter.topics.map((any) => new Set(any.map(toHex)));
    const parts = [filter.addresses, ...filter.topics].filter((any) => any.length > 0);
    this.alternatives = parts.map((any) => any.map(bloomBits));
  }

  /**
   * Whether a block with this bloom has no log that matches. An empty bloom says that it has no logs at all,
   * because each sets bits for its address.
   */
  isExcludedBy(bloom) {
    const has = (bits) => bits.every(([byte, mask]) => (bloom[byte] & mask) !== 0);
    return bloom.every((byte) => byte === 0) || this.alternatives.some((any) => !any.some(has));
  }

  /** As nodes have it: a position without topics still asks for a log that has one there. */
  matches({ address, topics }) {
    return (
      (this.addresses.size === 0 || this.addresses.has(toHex(address))) &&
      this.topics.length <= topics.length &&
      this.topics.every((any, at) => any.size === 0 || any.has(toHex(topics[at])))
    );
  }
}

/** The three bits that an item sets: byte of the bloom, and mask in it. */
function bloomBits(item) {
  const hash = keccak256(item);
  return [0, 2, 4].map((at) => {
    const bit = ((hash[at] << 8) | hash[at + 1]) & 0x7ff;
    // Bit 0 is the lowest of the last byte.
    return [BLOOM_BYTES - 1 - (bit >> 3), 1 << (bit & 7)];
  });
}
