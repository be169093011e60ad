// Makes a chain of events on a development node: node events.mjs NODE [events.json] >events.json
//
// With a file that an earlier call made, the contracts are those in it, and fewer events come.
//
// Two contracts write logs of none to four topics, in blocks with one and in blocks with several; some
// blocks have none, and one has very many. What is printed tells the contracts, the values of their
// topics, and the last block.

import fs from "node:fs";

import { ask, hex, mined } from "./ask.mjs";
import { EMITTER, emission, word } from "./emitter.mjs";

// keccak of the signatures in e2e/clients/events.json, beside which the libraries compute their own.
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
const MOVED = "0x9df23e52a63476dbcbbb3556ab6828868788f9a7d8d341c53160a859a2f3c9de";
const NOTE = "0x61f50134ade1da4c6b1a14d45cbd893d0e82be8c83d9bd57c3920a0b8a934fb3";
// More than any other block has; at most two in a block are of events that an indexer asks for.
const CROWD = 12;

const [node, path] = process.argv.slice(2);
const rounds = path === undefined ? 20 : 6;
const [from] = await ask(node, "eth_accounts");
const holders = [1, 2, 3].map((number) => `0x${number.toString(16).padStart(40, "a")}`);

const sends = (transaction) => mined(node, { from, ...transaction });

async function emits(to, topics, value, count = 1) {
    const receipt = await sends({ to, data: emission(topics, word(value), count) });
    if (receipt.logs.length !== count) throw new Error(`${receipt.logs.length} logs, expected ${count}`);
}

async function makesContracts() {
    const made = async () => (await sends({ data: EMITTER })).contractAddress;
    return [await made(), await made()];
}

const contracts = path === undefined ? await makesContracts() : JSON.parse(fs.readFileSync(path)).contracts;
const [first, second] = contracts;
for (let round = 0; round < rounds; round += 1) {
    const [one, other] = [holders[round % 3], holders[(round + 1) % 3]];
    await emits(first, [TRANSFER, one, other], 1000 + round);
    await emits(second, [TRANSFER, other, one], 2000 + round, 2);
    await emits(first, [APPROVAL, one, other], 3000 + round);
    if (round % 4 === 1) await emits(first, [MOVED, one, other, round], 4000 + round);
    if (round % 4 === 2) await emits(second, [], 5000 + round);
    if (round % 4 === 3) await emits(second, [NOTE], 6000 + round);
    // A block without logs.
    if (round % 5 === 0) await sends({ to: one, value: hex(1) });
    if (round === rounds / 2) await emits(second, [NOTE], 7000, CROWD);
}
const last = Number(await ask(node, "eth_blockNumber"));
console.log(JSON.stringify({ contracts, holders, topics: { TRANSFER, APPROVAL, MOVED, NOTE }, last }));
