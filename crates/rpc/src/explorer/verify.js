// Verifies a proof bundle: every step from its bytes up to the anchor.
//
// Knows: the order of the steps of each kind of bundle, headers that lead to an anchor, and EIP-7643's
// accumulator over mainnet's blocks before the merge (docs/proofs.md).
// Never knows: which anchor deserves trust, or the document: other programs may import it. Nothing is taken
// from the server but the bundle.

import { ACCUMULATOR_SIBLINGS, Refusal, parseBundle } from "./bundle.js";
import { LogMatcher, logsOf, readHeader } from "./consensus.js";
import { isEqual, keccak256, sha256, toHex } from "./keccak.js";
import { Fault } from "./rlp.js";
import { orderedRoot, valueAt } from "./trie.js";

/** Mainnet's blocks before the merge: the hash tree root that EIP-7643 publishes. */
export const MAINNET_ACCUMULATOR = "accumulator:0xec8e040fd6c557b41ca8ddd38f7e9d58a9281918dc92bdb72342a38fb085e701";

/** A leaf for each block of an epoch, and for each epoch that the list can have: levels of both trees. */
const EPOCH_DEPTH = 13;
const EPOCH_LIST_DEPTH = 11;
const BLOCK_NUMBER_END = 2n ** 64n;

/** `NUMBER:HASH` or `accumulator:ROOT` in its one form; null if a text is none. */
export function parseAnchor(text) {
  const found = /^(accumulator|[0-9]{1,40}):0x([0-9a-fA-F]{64})$/.exec(text);
  if (found === null) return null;
  const [, place, digits] = found;
  const hash = `0x${digits.toLowerCase()}`;
  if (place === "accumulator") return `accumulator:${hash}`;
  const number = BigInt(place);
  return number < BLOCK_NUMBER_END ? `${number}:${hash}` : null;
}

/**
 * Verifies a bundle, from its text or the text's bytes. `trusted` has texts of anchors: if there are any, the
 * bundle must lead to one of them. It never throws.
 *
 * Returns `{verdict, steps, claim, content, anchor, trust}`. `verdict` is "proven" or "refused". Each step has `name`,
 * `ok`, `detail`, `hash` (null where it failed) and `trail`, the hashes that led there as `{label, hash}`; after
 * a step that failed there is none. `claim` says what is proven, by its `kind`: "transaction", "block" or "logs";
 * `content` has the bundle's bytes. `anchor` is the text of what the bundle leads to; `trust` is "named", "mainnet accumulator" or "untrusted".
 */
export async function verifyBundle(source, { trusted = [] } = {}) {
  const steps = new StepList();
  try {
    const { content, way } = parseBundle(source);
    steps.pass("text", "the one form that a bundle of this content can have", null);
    const { header, claim } = VERIFIERS[content.kind](content, steps);
    const { anchor, detail, hash } = followWay(way, header, steps);
    const trust = trustIn(anchor, trusted);
    steps.pass("anchor", detail, hash);
    return { verdict: "proven", steps: steps.list, claim, content, anchor, trust };
  } catch (error) {
    // A defect of the verifier proves nothing either.
    const refusal = error instanceof Refusal ? error : new Refusal("verifier", `it failed: ${error}`);
    steps.list.push({ name: refusal.step, ok: false, detail: refusal.why, hash: null, trail: [] });
    return { verdict: "refused", steps: steps.list, claim: null, content: null, anchor: null, trust: null };
  }
}

class StepList {
  constructor() {
    this.list = [];
  }

  pass(name, detail, hash, trail = []) {
    this.list.push({ name, ok: true, detail, hash: hash === null ? null : toHex(hash), trail });
  }
}

const VERIFIERS = { inclusion: verifyInclusion, block: verifyBlock, logs: verifyLogs };

/** Does a step; a fault in it is a refusal there. */
function at(step, work, where = "") {
  try {
    return work();
  } catch (fault) {
    throw fault instanceof Fault ? new Refusal(step, `${where}${fault.what}`) : fault;
  }
}

const blockOf = (header) => ({ number: Number(header.number), hash: toHex(header.hash) });

function verifyHeader(rlp, steps) {
  const header = at("header hash", () => readHeader(rlp));
  steps.pass("header hash", `the header of block ${header.number}`, header.hash);
  return header;
}

function verifyInclusion({ header: rlp, transaction, receipt, log: place }, steps) {
  const header = verifyHeader(rlp, steps);
  const { index } = transaction;
  const hash = verifyPath("transaction", transaction, header.transactionsRoot, steps);
  if (receipt !== null) {
    if (receipt.index !== index) {
      throw new Refusal("receipt path", `index ${receipt.index}, the transaction's is ${index}`);
    }
    verifyPath("receipt", receipt, header.receiptsRoot, steps);
  }
  const block = blockOf(header);
  let log = null;
  if (place !== null) {
    log = provenLog(findLog(receipt.rlp, place), block, { transactionIndex: index, position: place.position, logIndex: null });
    steps.pass("log", `position ${place.position} of the receipt`, keccak256(receipt.rlp));
  }
  const claim = { kind: "transaction", block, index, hash: toHex(hash), transaction: transaction.rlp, receipt: receipt?.rlp ?? null, log };
  return { header, claim };
}

/** The path leads to the bytes; their hash. */
function verifyPath(what, { index, rlp, nodes }, root, steps) {
  const value = at(`${what} path`, () => valueAt(root, index, nodes));
  const trail = nodes.map((node, depth) => ({ label: `node ${depth}, ${node.length} bytes`, hash: toHex(keccak256(node)) }));
  steps.pass(`${what} path`, `${nodes.length} nodes to index ${index}`, root, trail);
  if (!isEqual(value, rlp)) {
    const differing = value.findIndex((byte, place) => byte !== rlp[place]);
    const same = differing < 0 ? value.length : differing;
    const sizes = `\`rlp\` has ${rlp.length} bytes, the leaf ${value.length}`;
    throw new Refusal(`${what} bytes`, `${sizes}; they differ from byte ${same} on`);
  }
  const hash = keccak256(value);
  steps.pass(`${what} bytes`, `${value.length} bytes in the leaf`, hash);
  return hash;
}

function findLog(receipt, { position, after }) {
  const logs = at("log", () => logsOf(receipt), "the receipt: ");
  if (position + after + 1 !== logs.length) {
    const claimed = `${position} logs before it and ${after} after it`;
    throw new Refusal("log", `${claimed}, but the receipt has ${logs.length} logs`);
  }
  return logs[position];
}

function provenLog({ address, topics, data }, block, place) {
  const content = { address: toHex(address), topics: topics.map(toHex), data: toHex(data) };
  return { blockNumber: block.number, blockHash: block.hash, ...place, ...content };
}

function verifyBlock({ header: rlp, transactions, receipts, ommers, withdrawals }, steps) {
  const header = verifyHeader(rlp, steps);
  const count = transactions.length;
  checkHash("transactions root", `${count} transactions`, orderedRoot(transactions), header.transactionsRoot, steps);
  checkHash("receipts root", `${receipts.length} receipts`, orderedRoot(receipts), header.receiptsRoot, steps);
  if (count !== receipts.length) {
    throw new Refusal("receipts root", `${receipts.length} receipts of ${count} transactions`);
  }
  checkHash("ommers hash", `a list of ${ommers.length} bytes`, keccak256(ommers), header.ommersHash, steps);
  if (withdrawals !== null && header.withdrawalsRoot !== null) {
    const what = `${withdrawals.length} withdrawals`;
    checkHash("withdrawals root", what, orderedRoot(withdrawals), header.withdrawalsRoot, steps);
  } else if (withdrawals !== null) {
    throw new Refusal("withdrawals root", "the header has no such root");
  } else if (header.withdrawalsRoot !== null) {
    throw new Refusal("withdrawals root", "the header has such a root, the bundle no withdrawals");
  }
  const claim = { kind: "block", block: blockOf(header), transactions, receipts };
  return { header, claim };
}

function checkHash(step, what, found, expected, steps) {
  if (!isEqual(found, expected)) {
    throw new Refusal(step, `${what} give ${toHex(found)}, the header says ${toHex(expected)}`);
  }
  steps.pass(step, what, found);
}

function verifyLogs({ filter, filterHash, filterHashFound, blocks }, steps) {
  if (!isEqual(filterHash, filterHashFound)) {
    const why = `the filter's text has hash ${toHex(filterHashFound)}, \`filterHash\` is ${toHex(filterHash)}`;
    throw new Refusal("filter", why);
  }
  steps.pass("filter", "the question", filterHashFound);
  const search = { matcher: new LogMatcher(filter), logs: [], excluded: 0 };
  const trail = [];
  let [parent, last] = [null, null];
  for (const [place, block] of blocks.entries()) {
    const header = linkedHeader(block.header, last, place);
    parent ??= toHex(header.parent);
    if (last === null && header.number !== BigInt(filter.fromBlock)) throw rangeRefusal(filter, "begins", header);
    scan(block.receipts, header, search, steps);
    trail.push({ label: `block ${header.number}`, hash: toHex(header.hash) });
    last = header;
  }
  if (last === null) throw new Refusal("header links", "no blocks");
  if (last.number !== BigInt(filter.toBlock)) throw rangeRefusal(filter, "ends", last);
  steps.pass("bloom", `${search.excluded} blocks have no log that matches`, last.hash);
  steps.pass("header links", `${blocks.length} headers name each other as parents`, last.hash, trail);
  return { header: last, claim: { kind: "logs", filter: writtenFilter(filter), parent, last: blockOf(last), logs: search.logs } };
}

function writtenFilter({ fromBlock, toBlock, addresses, topics }) {
  return { fromBlock, toBlock, address: addresses.map(toHex), topics: topics.map((any) => any.map(toHex)) };
}

function rangeRefusal({ fromBlock, toBlock }, what, { number }) {
  const asked = `the filter asks for blocks ${fromBlock}..${toBlock}`;
  return new Refusal("filter", `${asked}, the list of blocks ${what} with ${number}`);
}

/** Looks for logs in a block: in its receipts, or by its bloom where that excludes the filter. */
function scan(receipts, header, search, steps) {
  const { number } = header;
  if (receipts === null) {
    if (!search.matcher.isExcludedBy(header.bloom)) {
      throw new Refusal("bloom", `block ${number} may have logs that match, but no receipts`);
    }
    search.excluded += 1;
    return;
  }
  checkHash("receipts root", `${receipts.length} receipts of block ${number}`, orderedRoot(receipts), header.receiptsRoot, steps);
  const block = blockOf(header);
  let logIndex = 0;
  for (const [transactionIndex, receipt] of receipts.entries()) {
    const logs = at("log", () => logsOf(receipt), `receipt ${transactionIndex} of block ${number}: `);
    for (const [position, log] of logs.entries()) {
      if (search.matcher.matches(log)) search.logs.push(provenLog(log, block, { transactionIndex, position, logIndex }));
      logIndex += 1;
    }
  }
}

/** A header, which must follow the one before if there is one. */
function linkedHeader(rlp, before, place) {
  const where = `header ${place}: `;
  const header = at("header links", () => readHeader(rlp), where);
  if (before === null) return header;
  const name = `${where}the header of block ${header.number}`;
  if (!isEqual(header.parent, before.hash)) {
    const parent = `block ${before.number} with hash ${toHex(before.hash)}`;
    throw new Refusal("header links", `${name} names ${toHex(header.parent)} as its parent, not ${parent}`);
  }
  if (header.number !== before.number + 1n) {
    throw new Refusal("header links", `${name} follows that of block ${before.number}`);
  }
  return header;
}

/** Follows the way from a block; the anchor that it ends at, as a text and as a step. */
function followWay(way, header, steps) {
  const isByHeaders = way.by === "headers";
  const reached = isByHeaders ? followHeaders(header, way.path, steps) : followBranch(header, way.path, steps);
  const named = anchorText(isByHeaders ? way.number : null, way.hash);
  const found = anchorText(isByHeaders ? reached.number : null, reached.hash);
  if (found !== named) {
    throw new Refusal("anchor", `the way from block ${header.number} leads to ${found}, not to ${named}`);
  }
  const end = isByHeaders ? `block ${reached.number}` : "the accumulator";
  return { anchor: found, detail: `the way ends at ${end}`, hash: reached.hash };
}

const anchorText = (number, hash) => `${number ?? "accumulator"}:${toHex(hash)}`;

function followHeaders(block, path, steps) {
  const trail = [];
  let last = block;
  for (const [place, rlp] of path.entries()) {
    last = linkedHeader(rlp, last, place);
    trail.push({ label: `block ${last.number}`, hash: toHex(last.hash) });
  }
  steps.pass("header links", `${path.length} headers name each other as parents`, last.hash, trail);
  return last;
}

function followBranch(block, siblings, steps) {
  const step = "accumulator branch";
  if (block.number >> BigInt(EPOCH_DEPTH + EPOCH_LIST_DEPTH) !== 0n) {
    throw new Refusal(step, `block ${block.number} is in no epoch before the merge`);
  }
  if (siblings.length !== ACCUMULATOR_SIBLINGS) {
    throw new Refusal(step, `a branch has ${ACCUMULATOR_SIBLINGS} siblings, not ${siblings.length}`);
  }
  const number = Number(block.number);
  const [epoch, place] = [number >> EPOCH_DEPTH, number & ((1 << EPOCH_DEPTH) - 1)];
  // Which sides the siblings are on follows from the number alone.
  const bits = (of, depth) => Array.from({ length: depth }, (_, level) => ((of >> level) & 1) === 1);
  const inEpoch = [false, ...bits(place, EPOCH_DEPTH), false];
  const inList = [...bits(epoch, EPOCH_LIST_DEPTH), false, false];
  const epochRoot = climb(block.hash, inEpoch, siblings);
  const root = climb(epochRoot, inList, siblings.slice(inEpoch.length));
  steps.pass(step, `block ${number} is record ${place} of epoch ${epoch}`, epochRoot);
  steps.pass(step, `epoch ${epoch} is in the list of epochs`, root);
  return { hash: root };
}

/** Merges a node with its siblings; each is on the left where `isRight` says that the node is on the right. */
function climb(leaf, isRight, siblings) {
  return isRight.reduce((node, right, level) => {
    const pair = new Uint8Array(64);
    pair.set(node, right ? 32 : 0);
    pair.set(siblings[level], right ? 0 : 32);
    return sha256(pair);
  }, leaf);
}

/** Who vouches for an anchor. */
function trustIn(anchor, trusted) {
  if (trusted.some((text) => parseAnchor(text) === anchor)) return "named";
  if (trusted.length > 0) {
    throw new Refusal("anchor", `the proof leads to ${anchor}, which is not an anchor that you trust`);
  }
  return anchor === MAINNET_ACCUMULATOR ? "mainnet accumulator" : "untrusted";
}
