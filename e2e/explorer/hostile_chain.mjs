// Makes a chain whose every text is hostile, on geth in developer mode: node hostile_chain.mjs NODE
//
// Block headers, call data, topics and data of logs carry markup, text that runs from right to left,
// control characters, bytes that are no text, nothing at all, and very much. What is printed tells where.
// The node needs its namespace `miner`.

import { ask, hex, mined } from "../nodes/ask.mjs";
import { EMITTER, emission } from "../nodes/emitter.mjs";

// keccak of the common events' signatures.
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
const APPROVAL_FOR_ALL = "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31";
const TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
const TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb";
// A header's extra data has 32 bytes at the most.
const EXTRAS = [
    "<script>alert(1)</script>",
    "\u202e\"><svg/onload=alert(1)>\u202c",
    "javascript:alert(1)//\u0000\u0007\u001b[2J",
    "\u{e0041}\u200b\u2066\u061c\ufeffx",
];
const MARKUP = "\"><img src=x onerror=alert(1)><script>alert(1)</script>'`${alert(1)}";
const REVERSED = "invoice\u202egnp.exe\u2066\u2069\u202c";
// What geth takes into its pool, nearly.
const HUGE_BYTES = 100_000;
const GAS_MAX = 9_000_000;

const [node] = process.argv.slice(2);
const [from] = await ask(node, "eth_accounts");

const utf8 = (text) => Buffer.from(text).toString("hex");
const ones = "f".repeat(64);
// Text in a topic, from the left as Solidity writes short strings.
const topic = (text) => `0x${utf8(text).slice(0, 64).padEnd(64, "0")}`;

const sends = (transaction) => mined(node, { from, ...transaction });

const contract = (await sends({ data: EMITTER })).contractAddress;
const emits = async (topics, data, count = 1, gas = 1_000_000) => {
    const receipt = await sends({ to: contract, gas: hex(gas), data: emission(topics, data, count) });
    if (receipt.logs.length !== count) throw new Error(`${receipt.logs.length} logs, expected ${count}`);
    return receipt.transactionHash;
};

const blocks = [];
for (const extra of EXTRAS) {
    await ask(node, "miner_setExtra", extra);
    const receipt = await sends({ to: contract, value: "0x0", data: `0x${"00".repeat(130)}${utf8(MARKUP)}` });
    blocks.push({ number: Number(receipt.blockNumber), hash: receipt.transactionHash, extra });
}

const someone = `0x${"0".repeat(24)}${from.slice(2)}`;
const transactions = {
    "markup as call data": (await sends({ to: from, data: `0x${utf8(MARKUP)}` })).transactionHash,
    "text from right to left as call data": (await sends({ to: from, data: `0x${utf8(REVERSED)}` })).transactionHash,
    "bytes that are no text": (await sends({ to: from, data: "0xfffec0808080edbfbff4908080" })).transactionHash,
    "no call data": (await sends({ to: from, value: "0x0" })).transactionHash,
    "huge call data": (await sends({ to: from, gas: hex(GAS_MAX), data: `0x${"3c".repeat(HUGE_BYTES)}` })).transactionHash,
    "markup in topics and data": await emits([topic(MARKUP), topic(REVERSED), `0x${ones}`], utf8(MARKUP + REVERSED)),
    "no topics, no data": await emits([], ""),
    "a transfer of nothing at all": await emits([TRANSFER, someone, someone], ""),
    "a transfer with a short amount": await emits([TRANSFER, someone, someone], "ff"),
    "a transfer of the largest amount": await emits([TRANSFER, someone, someone], ones),
    "a transfer to what is no address": await emits([TRANSFER, `0x${ones}`, topic(MARKUP)], ones),
    "a transfer with one topic": await emits([TRANSFER], utf8(MARKUP)),
    "a token with markup as its number": await emits([TRANSFER, someone, someone, topic(MARKUP)], ""),
    "an approval of too much data": await emits([APPROVAL, someone, someone], ones.repeat(9)),
    "an approval for all that is neither": await emits([APPROVAL_FOR_ALL, someone, someone], `${"0".repeat(63)}7`),
    "one token without its amount": await emits([TRANSFER_SINGLE, someone, someone, someone], ones),
    // Offsets beyond the end, and lengths that no memory holds.
    "tokens whose lists lie nowhere": await emits([TRANSFER_BATCH, someone, someone, someone], ones.repeat(4)),
    "tokens whose lists never end": await emits(
        [TRANSFER_BATCH, someone, someone, someone],
        [0x40, 0x40, (1n << 255n) - 1n].map((value) => value.toString(16).padStart(64, "0")).join(""),
    ),
    "a log of huge data": await emits([TRANSFER, someone, someone], "3c".repeat(HUGE_BYTES), 1, GAS_MAX),
    "very many logs": await emits([TRANSFER, someone, someone], ones, 255, GAS_MAX),
};
const failed = await sends({ data: "0xfe" });
transactions["a creation that fails"] = failed.transactionHash;

console.log(JSON.stringify({ contract, from, blocks, transactions, markup: MARKUP, hugeBytes: HUGE_BYTES }));
