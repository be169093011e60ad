// The page's verifier of proof bundles, without a browser: what it proves, and that it refuses all else at the
// step where the crate `proof` does.
//
// usage: node --test verify.test.mjs
// With QUIPU=path/of/quipu the words of each refusal are held against those of `quipu verify-proof`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { keccak256, sha256, toHex } from "../../crates/rpc/src/explorer/keccak.js";
import { MAINNET_ACCUMULATOR, parseAnchor, verifyBundle } from "../../crates/rpc/src/explorer/verify.js";
import {
  Random, accumulatorWay, addressOf, blockOf, chainOf, headerOf, headersWay, inclusion, logsBundle, mayHave, quoted,
  quotedList, rlp, topicOf, trie, wholeBlock,
} from "./chain.mjs";

const FIXTURES = new URL("../../crates/proof/tests/fixtures/", import.meta.url);
const fixture = (name) => readFileSync(new URL(`${name}.json`, FIXTURES), "utf8").trimEnd();
const NAMES = readdirSync(FIXTURES).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -5));

async function refusal(source, options) {
  const found = await verifyBundle(source, options);
  if (found.verdict === "proven") return null;
  const last = found.steps.at(-1);
  assert.deepEqual([found.verdict, found.claim, last.ok], ["refused", null, false]);
  assert.ok(found.steps.slice(0, -1).every((step) => step.ok), "one step fails, and it is the last");
  assert.notEqual(last.name, "verifier", last.detail);
  return `${last.name}: ${last.detail}`;
}

async function proves(source, options) {
  const found = await verifyBundle(source, options);
  assert.equal(found.verdict, "proven", found.steps.at(-1).detail);
  return found;
}

async function refuses(source, words, options) {
  const why = await refusal(source, options);
  assert.ok(why?.includes(words), `${why}\ndoes not say: ${words}`);
}

test("hashes are those of others", () => {
  const hashes = ["c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
    // 135, 136 and 137 bytes of 0x61: around the end of a permutation.
    "34367dc248bbd832f4e3e69dfaac2f92638bd0bbd18f2912ba4ef454919cf446",
    "a6c4d403279fe3e0af03729caada8374b5ca54d8065329a3ebcaeb4b60aa386e",
    "d869f639c7046b4929fc92a4d988a8b22c55fbadb802c0c66ebcd484f1915f39"];
  const inputs = ["", "abc", "a".repeat(135), "a".repeat(136), "a".repeat(137)];
  assert.deepEqual(inputs.map((input) => toHex(keccak256(Buffer.from(input))).slice(2)), hashes);
  const random = new Random(1);
  for (let size = 0; size < 300; size += 1) {
    const bytes = random.bytes(size);
    assert.equal(toHex(sha256(bytes)).slice(2), createHash("sha256").update(bytes).digest("hex"), `${size} bytes`);
  }
});

test("every fixture is proven", async () => {
  const expected = {
    block: ["block", "untrusted"],
    "log-accumulator": ["transaction", "untrusted"],
    logs: ["logs", "untrusted"],
    "mainnet-8187": ["block", "mainnet accumulator"],
    "receipt-headers": ["transaction", "untrusted"],
    "transaction-headers": ["transaction", "untrusted"],
  };
  assert.deepEqual(NAMES.toSorted(), Object.keys(expected).toSorted(), "a fixture that nobody knows");
  for (const [name, [kind, trust]] of Object.entries(expected)) {
    const text = fixture(name);
    const found = await proves(text);
    assert.deepEqual([found.claim.kind, found.trust], [kind, trust], name);
    assert.deepEqual(await proves(Buffer.from(`${text}\n`)), found, "bytes and a newline are the same bundle");
    const named = await proves(text, { trusted: [MAINNET_ACCUMULATOR.replace("ec", "ed"), found.anchor] });
    assert.equal(named.trust, "named");
    const other = found.anchor.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    const words = `anchor: the proof leads to ${found.anchor}, which is not an anchor that you trust`;
    assert.equal(await refusal(text, { trusted: [other, "no anchor"] }), words, name);
  }
});

test("a claim says what was proven", async () => {
  const { claim, steps } = await proves(fixture("mainnet-8187"));
  const hash = "0xda05a0e3d71ff3b81e16267a8384ba46e9462491483ac1b722a6efad1c928f71";
  assert.deepEqual(claim.block, { number: 8187, hash });
  assert.equal(steps.find(({ name }) => name === "header hash").hash, hash);
  const { claim: transaction } = await proves(fixture("log-accumulator"));
  assert.equal(transaction.index, 131);
  assert.equal(transaction.hash, toHex(keccak256(transaction.transaction)));
  assert.deepEqual(transaction.log, {
    blockNumber: 9000, blockHash: transaction.block.hash, transactionIndex: 131, position: 2, logIndex: null,
    address: toHex(addressOf(1)), topics: [toHex(topicOf(2))], data: "0x03",
  });
});

/* Changes of one byte. */

/** The steps that a change of a hex digit at a place may be refused at, by the member that the place is in. */
const STEPS_OF = {
  header: /^(header hash|transaction path|receipt path|transactions root|receipts root|ommers hash|withdrawals root|header links|bloom|filter|anchor|accumulator branch):/,
  "transaction.rlp": /^transaction bytes:/,
  "transaction.proof": /^transaction path:/,
  "receipt.rlp": /^receipt bytes:/,
  "receipt.proof": /^receipt path:/,
  transactions: /^transactions root:/,
  receipts: /^receipts root:/,
  ommers: /^ommers hash:/,
  withdrawals: /^withdrawals root:/,
  filter: /^filter:/,
  filterHash: /^filter:/,
  "blocks.header": /^(header links|receipts root|bloom|filter|anchor):/,
  "blocks.receipts": /^receipts root:/,
  "anchor.hash": /^anchor:/,
  "anchor.path": /^(header links|anchor):/,
};
const STEPS_OF_NUMBERS = {
  "transaction.index": /^(transaction path|transaction bytes|receipt path):/,
  "receipt.index": /^receipt path:/,
  "log.position": /^log:/,
  "log.after": /^log:/,
  "filter.fromBlock": /^filter:/,
  "filter.toBlock": /^filter:/,
  "anchor.number": /^anchor:/,
};

/** For each byte of a text: the member that its value belongs to, by names from the outermost in. */
function membersOf(text) {
  const members = new Array(text.length).fill("");
  const open = [];
  let name = "";
  for (const token of text.matchAll(/"(\w+)":|"0x[0-9a-f]+"|[{}]|\d+/g)) {
    const [found, key] = token;
    if (found === "{") open.push(name);
    if (found === "}") name = open.pop();
    if (key) name = key;
    const [isHex, isNumber] = [found.startsWith('"0x'), /^\d/.test(found)];
    if (!isHex && !isNumber) continue;
    const whole = [...open.slice(1), name].join(".");
    const digits = isHex ? [token.index + 3, token.index + found.length - 1] : [token.index, token.index + found.length];
    const kind = isHex ? "hex " : "number ";
    members.fill(kind + (whole.startsWith("filter.") && isHex ? "filter" : whole), ...digits);
  }
  return members;
}

async function everyChangeIsRefused(text, letters) {
  await proves(text);
  const members = membersOf(text);
  const changed = Buffer.from(text);
  const counts = {};
  for (const [at, own] of [...changed].entries()) {
    const flipped = [0, 1, 2, 3, 4, 5, 6, 7].map((bit) => own ^ (1 << bit));
    for (const other of new Set([...flipped, ...letters])) {
      if (other === own) continue;
      changed[at] = other;
      const why = await refusal(changed);
      const letter = String.fromCharCode(other);
      const shown = `byte ${at} (${members[at]}) is ${JSON.stringify(letter)}: ${why}`;
      assert.ok(why !== null, shown);
      const [kind, member] = members[at].split(" ");
      const isSame = kind === "hex" ? /[0-9a-f]/.test(letter) : kind === "number" && /\d/.test(letter);
      const hasZero = kind === "number" && /[0-9]/.test(text[at + 1]) && letter === "0" && !/[0-9]/.test(text[at - 1]);
      const steps = isSame && !hasZero && member !== "version" ? (kind === "hex" ? STEPS_OF : STEPS_OF_NUMBERS)[member] : /^text:/;
      assert.ok(steps, `no step is known for ${members[at]}`);
      assert.match(why, steps, shown);
      const step = why.slice(0, why.indexOf(":"));
      counts[step] = (counts[step] ?? 0) + 1;
    }
    changed[at] = own;
  }
  for (const end of ["\n\n", " ", "\r\n", "}", "\0", "\ufeff"]) await refuses(text + end, "expected the end");
  await refuses(`\ufeff${text}`, "text: byte 0: expected");
  return counts;
}

/** Digits of both kinds, what JSON is made of, and what it is not. */
const LETTERS = Buffer.from('0aA"]},: \\\0\xff', "latin1");

test("every change of one byte is refused at its step: a transaction alone, all 255 other bytes", async () => {
  const block = blockOf(9, topicOf(9), 2, new Random(3));
  const text = inclusion(block, 1, headersWay(block), { withReceipt: false });
  const counts = await everyChangeIsRefused(text, Array.from({ length: 256 }, (_, byte) => byte));
  assert.deepEqual(Object.keys(counts).toSorted(), ["anchor", "header hash", "text", "transaction bytes", "transaction path"]);
});

test("every change of one byte is refused at its step: a log, headers to its anchor", async () => {
  const blocks = chainOf(100, [2, 0], new Random(4));
  const index = blocks[0].logs.findIndex((logs) => logs.length > 0);
  assert.ok(index >= 0, "the block has a log");
  const counts = await everyChangeIsRefused(inclusion(blocks[0], index, headersWay(blocks[0], blocks.slice(1))), LETTERS);
  for (const step of ["header links", "log", "receipt path", "receipt bytes"]) assert.ok(counts[step] > 0, step);
});

test("every change of one byte is refused at its step: an accumulator as the anchor", async () => {
  const random = new Random(5);
  const block = blockOf(9000, topicOf(9), 3, random);
  await everyChangeIsRefused(inclusion(block, 2, accumulatorWay(block, random), { withReceipt: false }), LETTERS);
});

test("every change of one byte is refused at its step: all of a block, and a list of logs", async () => {
  const block = blockOf(103, topicOf(9), 2, new Random(6));
  const ofBlock = await everyChangeIsRefused(wholeBlock(block, headersWay(block)), LETTERS);
  for (const step of ["transactions root", "receipts root", "ommers hash", "withdrawals root"]) assert.ok(ofBlock[step] > 0, step);
  const blocks = chainOf(100, [1, 0], new Random(7));
  const filter = { addresses: [addressOf(1)], topics: [[], [topicOf(2), topicOf(3)]] };
  const ofLogs = await everyChangeIsRefused(logsBundle(blocks, filter, (it) => mayHave(it, addressOf(1))), LETTERS);
  for (const step of ["filter", "header links", "anchor"]) assert.ok(ofLogs[step] > 0, step);
});

test("no byte of a fixture can be lost, doubled or replaced by another digit", async () => {
  for (const name of NAMES) {
    const text = fixture(name);
    const stride = 1 + Math.floor(text.length / 700);
    for (let at = 0; at < text.length; at += stride) {
      const [before, after] = [text.slice(0, at), text.slice(at)];
      const digit = (Number.parseInt(text[at], 16) || 0) ^ 5;
      for (const changed of [before + after.slice(1), before + after[0] + after, before + digit.toString(16) + after.slice(1)]) {
        if (changed !== text) assert.notEqual(await refusal(changed), null, `${name}: byte ${at}`);
      }
    }
  }
});

/* Paths. */

test("every transaction of blocks of any length is proven", async () => {
  const random = new Random(8);
  for (const count of [1, 2, 3, 15, 16, 17, 18, 127, 128, 129, 257, 400]) {
    const block = blockOf(count, topicOf(9), count, random);
    const way = headersWay(block);
    const { claim } = await proves(wholeBlock(block, way));
    assert.deepEqual(claim.transactions.map(toHex), block.transactions.map(toHex));
    for (let index = 0; index < count; index += 1 + Math.floor(count / 20)) {
      const found = await proves(inclusion(block, index, way));
      assert.deepEqual([found.claim.index, found.claim.hash], [index, toHex(keccak256(block.transactions[index]))]);
      assert.equal(found.claim.log?.data, block.logs[index][0] && toHex(block.logs[index][0][2]));
    }
  }
});

test("a path is neither shortened nor padded nor reordered", async () => {
  const block = blockOf(5, topicOf(9), 140, new Random(9));
  for (const index of [0, 1, 130]) {
    const honest = inclusion(block, index, headersWay(block));
    const nodes = block.ofTransactions.pathTo(index);
    assert.ok(nodes.length >= 2 && honest.includes(quotedList(nodes)), "long enough to change");
    const others = [[]];
    for (let at = 0; at <= nodes.length; at += 1) {
      for (const node of [...nodes, Buffer.from([0x80])]) others.push(nodes.toSpliced(at, 0, node));
      if (at < nodes.length) others.push(nodes.toSpliced(at, 1));
      for (let other = 0; other < at && at < nodes.length; other += 1) {
        others.push(nodes.with(at, nodes[other]).with(other, nodes[at]));
      }
    }
    for (const other of others) await refuses(honest.replace(quotedList(nodes), quotedList(other)), "transaction path: ");
    await proves(honest);
  }
});

test("a proof of one transaction does not pass for another", async () => {
  const block = blockOf(5, topicOf(9), 140, new Random(10));
  for (const [of, forOther] of [[0, 1], [1, 0], [127, 128], [128, 0], [130, 13], [13, 130]]) {
    const honest = inclusion(block, of, headersWay(block));
    await refuses(honest.replaceAll(`"index":${of},`, `"index":${forOther},`), "transaction ");
    await refuses(honest.replace(`"receipt":{"index":${of},`, `"receipt":{"index":${forOther},`), "receipt path: index ");
    const rlpOf = (index) => `"rlp":${quoted(block.transactions[index])}`;
    await refuses(honest.replace(rlpOf(of), rlpOf(forOther)), "transaction bytes: `rlp` has ");
  }
});

test("malformed nodes are refused even under a root of their own", async () => {
  const check = async (nodes, words) => {
    const none = trie([]).root;
    const header = headerOf({ number: 5, parent: topicOf(9), transactions: keccak256(nodes[0]), receipts: none });
    const way = headersWay({ number: 5, hash: keccak256(header) });
    const path = `"transaction":{"index":0,"rlp":"0x01","proof":${quotedList(nodes)}}`;
    const text = `{"version":1,"header":${quoted(header)},${path},${way}}`;
    await (words === null ? proves(text) : refuses(text, `transaction path: ${words}`));
  };
  const hex = (text) => Buffer.from(text.replaceAll(" ", ""), "hex");
  const cases = {
    "c482208001": null, // A leaf with the whole key 0x80.
    "80": "node 0, byte 0: a list was expected",
    "c0": "node 0: it has 0 items, not 2 or 17",
    "c48220800100": "node 0, byte 5: bytes are left over",
    "c58220808101": "node 0, byte 4: a byte below 0x80",
    "c482218001": "node 0: its part of the path is malformed",
    "c482408001": "node 0: its part of the path is malformed",
    "c28001": "node 0: its part of the path is malformed",
    "c3c12001": "node 0: its part of the path is malformed",
    "c482208101": "node 0: the path leads elsewhere",
    "c23801": "the path ends in a leaf before the index does",
    "c5822080c101": "the leaf holds a list, not bytes",
    "c20080": "node 0: an extension without a part of the path",
    "c482008080": "node 0: the trie has nothing at this index",
    "c482008001": "node 0: a child is neither hash nor node",
    "c418c23001": null, // An extension to a leaf inside of it, with the rest of the key.
    "c518c3200101": "node 0: it has 3 items, not 2 or 17",
    [`d7820080d1${"80".repeat(17)}`]: "node 0, byte 0: an item is cut off",
    [`d5820080d1${"80".repeat(17)}`]: "node 0: the path ends in a branch",
    [`e518e330a1${"ff".repeat(33)}`]: "node 0: a child that is long enough for a hash stands in its parent",
  };
  for (const [node, words] of Object.entries(cases)) await check([hex(node)], words);
  const leaf = hex("c23001");
  const parent = Buffer.concat([hex("e218a0"), keccak256(leaf)]);
  await check([parent, leaf], "node 1 has 3 bytes and belongs into its parent");
  await check([parent], "the path ends after 1 nodes, before a leaf: 0x");
});

/* Ways. */

test("headers lead from a block to a later one, and no other way there", async () => {
  const [zero, one, two, three] = chainOf(100, [3, 0, 2, 5], new Random(11));
  const through = (following) => inclusion(zero, 1, headersWay(zero, following));
  for (const following of [[], [one], [one, two], [one, two, three]]) {
    const last = following.at(-1) ?? zero;
    const found = await proves(through(following));
    assert.equal(found.anchor, `${last.number}:${toHex(last.hash)}`);
    assert.equal((await proves(through(following), { trusted: [found.anchor] })).trust, "named");
  }
  await refuses(through([two, three]), "header links: header 0: the header of block 102 names");
  await refuses(through([one, three]), "header links: header 1: the header of block 103 names");
  await refuses(through([two, one, three]), "header links: header 0");
  await refuses(through([one, one, two]), "header links: header 1");
  await refuses(through([zero, one]), "header links: header 0");
  const none = trie([]).root;
  const skipping = headerOf({ number: 102, parent: zero.hash, transactions: none, receipts: none });
  const skipped = { number: 102, header: skipping, hash: keccak256(skipping) };
  await refuses(through([skipped]), "header 0: the header of block 102 follows that of block 100");
  const honest = through([one, two]);
  const leads = "anchor: the way from block 100 leads to 102:";
  await refuses(honest.replace(toHex(two.hash), toHex(three.hash)), leads);
  await refuses(honest.replace('"number":102', '"number":103'), leads);
});

test("the accumulator's branch leads from a block to its root, and from no other place", async () => {
  const random = new Random(12);
  for (const number of [0, 1, 8191, 8192, 1_000_000, 15_537_393, 16_760_831]) {
    const block = blockOf(number, topicOf(9), 2, random);
    const way = accumulatorWay(block, random);
    const { anchor, trust } = await proves(inclusion(block, 1, way));
    assert.equal(trust, "untrusted");
    await proves(inclusion(block, 1, way), { trusted: [anchor] });
    await refuses(inclusion(block, 1, way), "anchor: the proof leads to", { trusted: [MAINNET_ACCUMULATOR] });
    // The sides of the branch follow from the number: a block of another place does not pass by it.
    await refuses(wholeBlock(blockOf(number ^ 1, topicOf(9), 0, random), way), "anchor: the way from block ");
    const path = JSON.parse(`{${way}}`).anchor.path;
    const withPath = (other) => inclusion(block, 0, way.replace(/"path":.*/, `"path":${JSON.stringify(other)}}`));
    await refuses(withPath(path.slice(1)), "accumulator branch: a branch has 28 siblings, not 27");
    await refuses(withPath([]), "accumulator branch: a branch has 28 siblings, not 0");
    await refuses(withPath([...path, path[0]]), "expected at most 28 items");
    for (let at = 1; at < path.length; at += 1) {
      await refuses(withPath(path.with(at, path[at - 1]).with(at - 1, path[at])), "leads to accumulator:");
    }
  }
  const late = blockOf(2 ** 24, topicOf(9), 2, random);
  await refuses(inclusion(late, 0, accumulatorWay(late, random)), "block 16777216 is in no epoch before the merge");
});

test("a status that the way does not have is refused", async () => {
  const random = new Random(13);
  const block = blockOf(7, topicOf(9), 2, random);
  const [short, long] = [headersWay(block), accumulatorWay(block, random)];
  await refuses(inclusion(block, 0, short.replace("linked", "anchored")), "text: byte ");
  await refuses(inclusion(block, 0, long.replace("anchored", "linked")), "text: byte ");
  await refuses(inclusion(block, 0, long.replace("anchored", "final")), "text: byte ");
});

test("headers of all forks are read and others are not", async () => {
  const none = trie([]).root;
  const basic = { number: 9, parent: topicOf(9), transactions: none, receipts: none };
  const bundle = (header) => wholeBlock({ header, transactions: [], receipts: [], withdrawals: null },
    headersWay({ number: 9, hash: keccak256(header) }));
  const over = (fields, more = {}) => bundle(headerOf({ ...basic, ...more, over: fields }));
  await proves(over({}));
  await proves(bundle(headerOf({ ...basic, withdrawals: none, over: { 17: 1, 18: 2, 19: topicOf(3), 20: topicOf(4), 21: 5 } }))
    .replace('"ommers":"0xc0"', '"ommers":"0xc0","withdrawals":[]'));
  for (const index of [0, 1, 4, 5, 6]) await refuses(over({ [index]: [] }), `header hash: field ${index} of the header is a list`);
  for (const index of [0, 1, 4, 5, 6]) await refuses(over({ [index]: "" }), `header hash: field ${index} of the header, `);
  await refuses(over({ 16: "" }, { withdrawals: none }), "header hash: field 16 of the header, withdrawals root");
  for (const number of [[0, 9], [0], [1, 1, 1, 1, 1, 1, 1, 1, 1]]) {
    await refuses(over({ 8: Buffer.from(number) }), "field 8 of the header, number, does not have its form");
  }
  await refuses(over({ 2: [] }), "header hash: field 2 of the header is a list");
  await refuses(bundle(rlp(new Array(14).fill(""))), "header hash: a header has 14 fields, at least 15");
  await refuses(bundle(rlp(new Array(65).fill(""))), "a list has too many items");
  await refuses(bundle(Buffer.concat([headerOf(basic), Buffer.from([0])])), "bytes are left over");
  await refuses(bundle(Buffer.from([0x80])), "a list was expected");
  // 64 bits of a number are read, and reach no anchor that a text can name.
  await refuses(over({ 8: Buffer.alloc(8, 0xff) }), "leads to 18446744073709551615:");
});

/* Blocks and logs. */

test("a block that lacks something is refused", async () => {
  const block = blockOf(9, topicOf(9), 12, new Random(14));
  const way = headersWay(block);
  const withList = (name, change) => wholeBlock({ ...block, [name]: change(block[name]) }, way);
  const swapped = (list) => list.with(0, list[1]).with(1, list[0]);
  await proves(wholeBlock(block, way));
  for (const change of [(list) => list.slice(1), (list) => list.slice(0, -1), swapped, (list) => [...list, Buffer.from([1])], () => []]) {
    await refuses(withList("transactions", change), "transactions root: ");
    await refuses(withList("receipts", change), "receipts root: ");
    await refuses(withList("withdrawals", change), "withdrawals root: ");
  }
  await refuses(withList("withdrawals", () => null), "the header has such a root, the bundle no withdrawals");
  await refuses(wholeBlock(block, way, rlp([[]])), "ommers hash: a list of 2 bytes give");
  const before = blockOf(8, topicOf(9), 1, new Random(15));
  await refuses(wholeBlock({ ...before, withdrawals: [] }, headersWay(before)), "the header has no such root");
  const other = blockOf(8, topicOf(9), 3, new Random(16));
  const header = headerOf({ number: 8, parent: topicOf(9), transactions: before.ofTransactions.root, receipts: other.ofReceipts.root });
  const mixed = { ...before, header, receipts: other.receipts };
  await refuses(wholeBlock(mixed, headersWay({ number: 8, hash: keccak256(header) })), "receipts root: 3 receipts of 1 transactions");
});

function naiveLogs(blocks, { addresses, topics }) {
  const isAny = (list, item) => list.length === 0 || list.some((it) => it.equals(item));
  return blocks.flatMap(({ number, logs }) => logs
    .flatMap((own, transaction) => own.map((log, position) => ({ transaction, position, log })))
    .map((it, logIndex) => ({ ...it, logIndex }))
    .filter(({ log }) => isAny(addresses, log[0]) && topics.length <= log[1].length && topics.every((any, at) => isAny(any, log[1][at])))
    .map(({ transaction, position, logIndex }) => [number, transaction, logIndex, position]));
}

test("a list of logs is what a scan of all blocks finds", async () => {
  const random = new Random(17);
  let [found, excluded] = [0, 0];
  for (let round = 0; round < 40; round += 1) {
    const blocks = chainOf(1000 + round, Array.from({ length: 6 }, () => random.below(5)), random);
    const topics = Array.from({ length: random.below(3) }, () => Array.from({ length: random.below(4) }, () => topicOf(random.below(6))));
    const filter = { addresses: [addressOf(random.below(7))], topics };
    const needed = (block) => mayHave(block, filter.addresses[0]);
    const whole = await proves(logsBundle(blocks, filter));
    const places = whole.claim.logs.map((log) => [log.blockNumber, log.transactionIndex, log.logIndex, log.position]);
    assert.deepEqual(places, naiveLogs(blocks, filter));
    // Lists whose blocks follow each other are one.
    const next = (await proves(logsBundle(blocks.slice(3), filter))).claim;
    assert.deepEqual([whole.claim.parent, next.parent], [toHex(topicOf(9)), (await proves(logsBundle(blocks.slice(0, 3), filter))).claim.last.hash]);
    assert.deepEqual((await proves(logsBundle(blocks, filter, needed))).claim, whole.claim);
    found += places.length;
    excluded += blocks.filter((block) => !needed(block)).length;
  }
  assert.ok(found > 50 && excluded > 50, `${found} logs found, ${excluded} blocks excluded`);
});

test("no block of a range can hide its logs or be left out", async () => {
  const blocks = chainOf(50, [6, 0, 7, 6], new Random(18));
  const filter = { addresses: [addressOf(1), addressOf(2)], topics: [] };
  const honest = logsBundle(blocks, filter);
  assert.ok((await proves(honest)).claim.logs.length > 0);
  for (const block of [blocks[0], blocks[2], blocks[3]]) {
    const receipts = `,"receipts":${quotedList(block.receipts)}`;
    await refuses(honest.replace(receipts, ""), `bloom: block ${block.number} may have logs that match, but no receipts`);
    await refuses(honest.replace(receipts, ',"receipts":[]'), "receipts root: 0 receipts of block");
    await refuses(honest.replace(receipts, `,"receipts":${quotedList(block.receipts.slice(1))}`), "receipts root: ");
  }
  const [zero, one, two, three] = blocks;
  const asked = (list) => {
    const own = logsBundle(list, filter);
    return own.replace(/"filter":.*?"filterHash":"\w+"/, /"filter":.*?"filterHash":"\w+"/.exec(honest)[0]);
  };
  await proves(asked(blocks));
  await refuses(asked([one, two, three]), "filter: the filter asks for blocks 50..53, the list of blocks begins with 51");
  await refuses(asked([zero, one, two]), "the list of blocks ends with 52");
  await refuses(asked([zero, one, three]), "header links: header 2: ");
  await refuses(asked([zero, two, one, three]), "header links: header 1: ");
  await refuses(honest.replace(/"blocks":\[.*\],"status"/, '"blocks":[],"status"'), "header links: no blocks");
  await refuses(honest.replace(toHex(addressOf(1)), toHex(addressOf(8))), "filter: the filter's text has hash ");
  await refuses(honest.replace('"toBlock":53', '"toBlock":54'), "filter: the filter's text has hash ");
});

test("malformed receipts are refused even under a root of their own", async () => {
  const check = async (receipt, words) => {
    const receipts = [Buffer.from(receipt)];
    const header = headerOf({ number: 5, parent: topicOf(9), transactions: topicOf(1), receipts: trie(receipts).root });
    const block = { number: 5, header, hash: keccak256(header), receipts };
    const text = logsBundle([block], { addresses: [addressOf(1)], topics: [] });
    await (words === null ? proves(text) : refuses(text, `log: receipt 0 of block 5: ${words}`));
  };
  await check([2], "byte 0 of its list: an item is missing");
  await check([2, 0xc0], "it has 0 fields, not 4");
  await check([0xc4, 0x80, 0x80, 0x80, 0x80], "byte 0 of its list: a list was expected");
  await check([0xc5, 0x80, 0x80, 0x80, 0x80, 0xc0], "byte 0 of its list: a list has too many items");
  await check([0xc4, 0x80, 0x80, 0x80, 0xc0], null);
  await check([0xc5, 0x80, 0x80, 0x80, 0xc1, 0x80], "log 0: a list was expected");
  await check([0xc5, 0x80, 0x80, 0x80, 0xc1, 0xc0], "log 0: it does not have three fields");
  await check([0xc6, 0x80, 0x80, 0x80, 0xc2, 0xc0, 0x81], "log 0: it does not have three fields");
  await check([0xc8, 0x80, 0x80, 0x80, 0xc4, 0xc3, 0x80, 0xc0, 0x80], "log 0: its address does not have 20 bytes");
});

/* Texts. */

test("what is no bundle is refused, whatever it is", async () => {
  const deep = "[".repeat(100_000);
  const long = `{"version":1,"header":"0x${"00".repeat(100_000)}"`;
  for (const source of ["", "null", "{}", "[]", "\ud800", deep, long, undefined, null, 5, {}, new Uint8Array(), Buffer.alloc(1000, 0xff)]) {
    await refuses(source, "text: byte ");
  }
  await refuses(new Uint8Array(64 * 2 ** 20 + 1), "text: 67108865 bytes, more than 67108864");
  const rest = '","transaction":{"index":';
  for (const number of ["01", "-1", "1.0", "1e3", "9007199254740992", "+1", "9".repeat(400)]) {
    await refuses(`{"version":1,"header":"0x00${rest}${number},`, "text: byte ");
  }
  const anchored = fixture("transaction-headers");
  for (const number of ["9007199254740945", "9007199254740951", "9007199254740990", "9007199254740991"]) {
    await refuses(anchored.replace(/("anchor":{"number":)\d+/, `$1${number}`), `not to ${number}:0x`);
  }
  const text = fixture("block");
  await refuses(text.replace(":1,", ":1, "), "text: byte 13: expected `\"header\":` or `\"filter\":` but there is ` \\\"header\\\":\\\"0xf9");
  await refuses(text.replace(":1,", ":1, "), "a bundle is compact JSON: try `jq -c .`");
  await refuses(text.replace('"ommers"', '"extra":1,"ommers"'), "text: byte ");
});

test("anchors are read as they are written", () => {
  const hash = `0x${"ab".repeat(32)}`;
  for (const text of [`0:${hash}`, `17000000:${hash}`, `accumulator:${hash}`]) assert.equal(parseAnchor(text), text);
  assert.equal(parseAnchor(`007:${hash.replaceAll("ab", "AB")}`), `7:${hash}`);
  for (const text of ["", "5", ":", "5:0x", "5:0xab", hash, `5:${hash}00`, `+5:${hash}`, `latest:${hash}`, ` 5:${hash}`,
    `18446744073709551616:${hash}`, `5:${hash}\n`, undefined]) {
    assert.equal(parseAnchor(text), null, text);
  }
});

test("a block of 1,500 transactions is verified well under a second", async () => {
  const random = new Random(19);
  const small = blockOf(9, topicOf(9), 30, random);
  // Of the sizes of a full block of mainnet: 250 bytes a transaction, 500 a receipt.
  const transactions = Array.from({ length: 1500 }, () => Buffer.concat([Buffer.from([2]), random.bytes(250)]));
  const receipts = transactions.map((_, index) => Buffer.concat([small.receipts[index % 30], random.bytes(200)]));
  const header = headerOf({ number: 9, parent: topicOf(9), transactions: trie(transactions).root, receipts: trie(receipts).root });
  const text = wholeBlock({ header, transactions, receipts, withdrawals: null }, headersWay({ number: 9, hash: keccak256(header) }));
  let best = Infinity;
  for (let round = 0; round < 3; round += 1) {
    // Time of the processor: others may be at work on it too.
    const begun = process.cpuUsage();
    await proves(text);
    best = Math.min(best, process.cpuUsage(begun).user / 1000);
  }
  console.log(`# ${text.length} bytes of text verified in ${best.toFixed(0)} ms`);
  assert.ok(best < 900, `${best} ms`);
});

/* The crate. */

/** Changes of each fixture: each starts a program. */
const ROUNDS = 20;

test("refusals have the words of the crate's", { skip: !process.env.QUIPU && "QUIPU names no program" }, async () => {
  const random = new Random(20);
  let compared = 0;
  for (const name of NAMES) {
    const text = fixture(name);
    for (let round = 0; round < ROUNDS; round += 1) {
      const changed = Buffer.from(text);
      const at = random.below(changed.length);
      changed[at] = round % 3 === 0 ? random.below(256) : "0123456789abcdef".charCodeAt(random.below(16));
      const ours = await refusal(changed);
      const { stdout, stderr, status } = spawnSync(process.env.QUIPU, ["verify-proof", "-"], { input: changed, encoding: "utf8" });
      assert.equal(status === 0, ours === null, `${name}: ${stdout}${stderr}`);
      if (ours !== null) assert.ok(`${stdout}${stderr}`.includes(ours), `${name}, byte ${at}\nours: ${ours}\ncrate: ${stdout}${stderr}`);
      compared += 1;
    }
  }
  assert.equal(compared, ROUNDS * NAMES.length);
});
