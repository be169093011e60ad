// A node that plays recorded answers, over HTTP and WebSocket on one free port:
// node recorded.mjs RPC_JSONL_GZ CHAIN_ID CAST FORK TIP.
//
// Every line of the recording has a node's own answers about one block. Blocks FORK to FORK + 2 have a
// second branch, which is made here: recorded blocks with other extra data and other parents, the last
// of them without its transactions. Their hashes are new; all else that a header commits to is the
// recording's, so they are valid blocks for whoever does not execute them.
//
// The chain begins with tip TIP. recorded_play [branch, number] makes another block the tip, of branch
// "recorded" or "sibling", and announces every block of that branch which was not canonical before.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

import { WebSocketServer } from "ws";

const [recording, chainId, cast, fork, firstTip] = process.argv.slice(2);
const EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
const SIBLINGS = 3;
// How far below the tip a block is safe and final, as on the node that was recorded.
const DEPTHS = { latest: 0, pending: 0, safe: 4, finalized: 8 };
// Where a header has what the second branch changes.
const FIELDS = { parentHash: 0, transactionsRoot: 4, receiptsRoot: 5, logsBloom: 6, gasUsed: 10, extraData: 12 };
// What a header in a new head lacks of a block.
const BODY = ["transactions", "uncles", "withdrawals", "size"];

const hex = (number) => `0x${number.toString(16)}`;
const unhex = (text) => Buffer.from(text.slice(2), "hex");
const rehex = (bytes) => `0x${bytes.toString("hex")}`;

// The items of an RLP list, each with its own prefix.
function rlpItems(list) {
    const span = (bytes, at) => {
        const first = bytes[at];
        if (first < 0x80) return [at, at + 1];
        const base = first < 0xc0 ? 0x80 : 0xc0;
        if (first - base <= 55) return [at + 1, at + 1 + first - base];
        const begin = at + 1 + first - base - 55;
        return [begin, begin + bytes.readUIntBE(at + 1, first - base - 55)];
    };
    const items = [];
    let [at, end] = span(list, 0);
    while (at < end) {
        const next = span(list, at)[1];
        items.push(list.subarray(at, next));
        at = next;
    }
    return items;
}

function rlpPrefix(base, length) {
    if (length <= 55) return Buffer.from([base + length]);
    const digits = hex(length).slice(2);
    const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
    return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}

const rlpList = (items) => Buffer.concat([rlpPrefix(0xc0, Buffer.concat(items).length), ...items]);
const isOneByte = (bytes) => bytes.length === 1 && bytes[0] < 0x80;
const rlpBytes = (bytes) => (isOneByte(bytes) ? bytes : Buffer.concat([rlpPrefix(0x80, bytes.length), bytes]));
const rlpNumber = (text) => rlpBytes(text === "0x0" ? Buffer.alloc(0) : unhex(text));

// A recorded block on another parent, with other extra data, and without transactions if it is emptied.
function sibling(line, parentHash, isEmptied) {
    const copy = structuredClone(line);
    const block = copy.eth_getBlockByNumber;
    Object.assign(block, { parentHash, extraData: rehex(Buffer.from(`sibling ${Number(block.number)}`)) });
    if (isEmptied) {
        copy.eth_getBlockReceipts = copy.debug_getRawReceipts = [];
        const none = { transactionsRoot: EMPTY_ROOT, receiptsRoot: EMPTY_ROOT, logsBloom: `0x${"00".repeat(256)}`, gasUsed: "0x0" };
        Object.assign(block, none, { transactions: [] });
    }
    const header = rlpItems(unhex(line.debug_getRawHeader));
    for (const [name, at] of Object.entries(FIELDS)) {
        header[at] = name === "gasUsed" ? rlpNumber(block[name]) : rlpBytes(unhex(block[name]));
    }
    const parts = rlpItems(unhex(line.debug_getRawBlock));
    parts[0] = rlpList(header);
    if (isEmptied) parts[1] = rlpList([]);
    copy.debug_getRawHeader = rehex(parts[0]);
    copy.debug_getRawBlock = rehex(rlpList(parts));
    block.size = hex(rlpList(parts).length);
    block.hash = execFileSync(cast, ["keccak", copy.debug_getRawHeader]).toString().trim();
    const receipts = copy.eth_getBlockReceipts;
    for (const part of [...block.transactions, ...receipts, ...receipts.flatMap((receipt) => receipt.logs)]) {
        part.blockHash = block.hash;
    }
    return copy;
}

const lines = gunzipSync(readFileSync(recording)).toString().trim().split("\n");
const recorded = lines.map((line) => JSON.parse(line));
const branches = { recorded, sibling: recorded.slice(0, Number(fork)) };
for (let count = 1; count <= SIBLINGS; count += 1) {
    const branch = branches.sibling;
    branch.push(sibling(recorded[branch.length], branch.at(-1).eth_getBlockByNumber.hash, count === SIBLINGS));
}
let chain = recorded.slice(0, Number(firstTip) + 1);
const hashOf = (line) => line?.eth_getBlockByNumber.hash;

// The canonical block that a parameter names: a number, a tag or a hash.
function find(which) {
    if (which in DEPTHS) return chain[Math.max(0, chain.length - 1 - DEPTHS[which])];
    if (which === "earliest") return chain[0];
    return which.length === 66 ? chain.find((line) => hashOf(line) === which) : chain[Number(which)];
}

function blockOf(line, isFull) {
    if (!line) return null;
    const block = line.eth_getBlockByNumber;
    return isFull ? block : { ...block, transactions: block.transactions.map((transaction) => transaction.hash) };
}

const transactionAt = (which, index) => find(which)?.eth_getBlockByNumber.transactions[Number(index)] ?? null;

// An item of one of the lists of any canonical block, by the hash of its transaction.
function findByHash(list, member, hash) {
    for (const line of chain) {
        const found = list(line).find((item) => item[member] === hash);
        if (found) return found;
    }
    return null;
}

const METHODS = {
    eth_chainId: () => hex(Number(chainId)),
    net_version: () => chainId,
    web3_clientVersion: () => "recorded",
    eth_blockNumber: () => hex(chain.length - 1),
    eth_syncing: () => false,
    eth_getBlockByNumber: (which, isFull) => blockOf(find(which), isFull),
    eth_getBlockByHash: (which, isFull) => blockOf(find(which), isFull),
    eth_getBlockReceipts: (which) => find(which)?.eth_getBlockReceipts ?? null,
    eth_getTransactionByBlockNumberAndIndex: transactionAt,
    eth_getTransactionByBlockHashAndIndex: transactionAt,
    eth_getTransactionByHash: (hash) => findByHash((line) => line.eth_getBlockByNumber.transactions, "hash", hash),
    eth_getTransactionReceipt: (hash) => findByHash((line) => line.eth_getBlockReceipts, "transactionHash", hash),
    debug_getRawBlock: (which) => find(which)?.debug_getRawBlock ?? null,
    debug_getRawHeader: (which) => find(which)?.debug_getRawHeader ?? null,
    debug_getRawReceipts: (which) => find(which)?.debug_getRawReceipts ?? null,
    recorded_play: play,
};

function play(branch, number) {
    const before = chain;
    chain = branches[branch].slice(0, number + 1);
    for (const line of chain.filter((line, at) => hashOf(line) !== hashOf(before[at]))) announce(line);
    return hashOf(chain.at(-1));
}

const subscriptions = new Map();
let subscriptionCount = 0;

function announce(line) {
    const header = { ...line.eth_getBlockByNumber };
    for (const member of BODY) delete header[member];
    for (const [subscription, socket] of subscriptions) {
        const params = { subscription, result: header };
        socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
    }
}

function respond({ id, method, params }, socket) {
    if (method === "eth_subscribe" && socket && params[0] === "newHeads") {
        subscriptionCount += 1;
        const subscription = hex(subscriptionCount);
        subscriptions.set(subscription, socket);
        return { jsonrpc: "2.0", id, result: subscription };
    }
    if (!(method in METHODS)) {
        return { jsonrpc: "2.0", id, error: { code: -32601, message: `${method} was not recorded` } };
    }
    return { jsonrpc: "2.0", id, result: METHODS[method](...(params ?? [])) };
}

function respondAll(text, socket) {
    const request = JSON.parse(text);
    const answers = Array.isArray(request) ? request.map((call) => respond(call, socket)) : respond(request, socket);
    return JSON.stringify(answers);
}

const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
        response.setHeader("content-type", "application/json");
        response.end(respondAll(Buffer.concat(parts).toString(), null));
    });
});
new WebSocketServer({ server }).on("connection", (socket) => {
    socket.on("message", (text) => socket.send(respondAll(text.toString(), socket)));
    socket.on("close", () => {
        for (const [subscription, other] of subscriptions) if (other === socket) subscriptions.delete(subscription);
    });
});
server.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
