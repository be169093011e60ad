// A client of a server that follows a recorded node across a fork: node amsterdam.mjs OURS NODE FORK LAST.
//
// The node plays a branch of three blocks at the fork, gives it up for the recorded one, and goes on to
// LAST block by block. After each step the server's tip must become the node's; every answer about every
// block is then the node's own; and the server's new heads are exactly those that were played, in order.

import { isDeepStrictEqual } from "node:util";

import WebSocket from "ws";

import { ask, hex } from "./ask.mjs";

const [ours, node, fork, last] = [...process.argv.slice(2, 4), ...process.argv.slice(4).map(Number)];
const SIBLINGS = 3;
const STEP_MAX = 30_000;
const faults = [];
const heads = [];
const expected = [];
let compared = 0;

// Resolves when another head arrives, or when a step has taken too long.
let wake = () => {};
const nextHead = (deadline) =>
    new Promise((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, deadline - Date.now()));
        wake = () => {
            clearTimeout(timer);
            resolve();
        };
    });

async function same(method, ...params) {
    const [found, wanted] = await Promise.all([ask(ours, method, ...params), ask(node, method, ...params)]);
    compared += 1;
    if (!isDeepStrictEqual(found, wanted)) {
        const [one, other] = [found, wanted].map((value) => String(JSON.stringify(value)).slice(0, 300));
        faults.push(`${method} ${JSON.stringify(params)}: ours ${one}, the node's ${other}`);
    }
    return found;
}

// All that the node was recorded to say of a block, by number and by hash.
async function compareBlock(number) {
    const block = await same("eth_getBlockByNumber", hex(number), true);
    if (block === null) return;
    await same("eth_getBlockByHash", block.hash, false);
    for (const method of ["eth_getBlockReceipts", "debug_getRawBlock", "debug_getRawHeader", "debug_getRawReceipts"]) {
        await same(method, hex(number));
    }
    for (const { hash } of block.transactions) {
        await same("eth_getTransactionByHash", hash);
        await same("eth_getTransactionReceipt", hash);
    }
}

async function compareFrom(first) {
    await same("eth_blockNumber");
    const tip = Number(await ask(node, "eth_blockNumber"));
    for (let number = first; number <= tip; number += 1) await compareBlock(number);
}

// The node moves to a block, and the server's client hears of what is new, which has these numbers.
async function play(branch, number, ...numbers) {
    await ask(node, "recorded_play", branch, number);
    for (const each of numbers) {
        const { hash } = await ask(node, "eth_getBlockByNumber", hex(each), false);
        expected.push(`${each} ${hash}`);
    }
    const deadline = Date.now() + STEP_MAX;
    while (heads.length < expected.length && Date.now() < deadline) await nextHead(deadline);
    const tip = await ask(ours, "eth_getBlockByNumber", "latest", false);
    const wanted = expected.at(-1);
    if (`${Number(tip?.number)} ${tip?.hash}` !== wanted) {
        throw new Error(`after ${branch} ${number}: the tip is ${Number(tip?.number)} ${tip?.hash}, expected ${wanted}`);
    }
}

async function scenario() {
    await compareFrom(0);
    for (let number = fork; number < fork + SIBLINGS; number += 1) await play("sibling", number, number);
    await compareFrom(fork);
    const abandoned = await ask(node, "eth_getBlockByNumber", "latest", true);
    const shared = (await ask(node, "eth_getBlockByNumber", hex(fork), true)).transactions[0];
    // One block more than the branch that is given up, told at once.
    const longer = Array.from({ length: SIBLINGS + 1 }, (_, at) => fork + at);
    await play("recorded", longer.at(-1), ...longer);
    await compareFrom(0);
    // What both branches have has moved; what only the recorded one has came with it.
    const moved = await ask(ours, "eth_getTransactionByHash", shared.hash);
    if (moved.blockHash === shared.blockHash) faults.push(`${shared.hash} is still in ${moved.blockHash}`);
    const replaced = await ask(ours, "eth_getBlockByNumber", abandoned.number, true);
    if (abandoned.transactions.length !== 0 || replaced.transactions.length === 0) {
        faults.push(`block ${abandoned.number}: ${abandoned.transactions.length} and ${replaced.transactions.length} transactions`);
    }
    for (let number = longer.at(-1) + 1; number <= last; number += 1) await play("recorded", number, number);
    await compareFrom(0);
}

const socket = new WebSocket(ours.replace("http", "ws"));
await new Promise((resolve) => socket.on("open", resolve));
const subscribed = new Promise((resolve) => {
    socket.on("message", (text) => {
        const message = JSON.parse(text);
        if (message.method !== "eth_subscription") return resolve();
        heads.push(`${Number(message.params.result.number)} ${message.params.result.hash}`);
        wake();
    });
});
socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
await subscribed;
await scenario().catch((error) => faults.push(String(error)));
socket.close();
if (!isDeepStrictEqual(heads, expected)) faults.push(`heads were ${heads.join(", ")}; expected ${expected.join(", ")}`);
for (const text of faults.slice(0, 20)) console.log(text);
console.log(`${compared} answers compared, ${heads.length} heads heard, ${faults.length} faults`);
process.exit(faults.length === 0 && compared > 0 ? 0 : 1);
