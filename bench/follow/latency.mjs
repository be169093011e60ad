// The time from a node having a block to Quipu answering it by hash:
// node latency.mjs OURS NODE NODE_SOCKET BLOCKS TXS_PER_BLOCK
//
// A node has a block when it says so, to whoever mined it or to whoever is subscribed, whichever is first.

import WebSocket from "ws";

import { ask } from "./ask.mjs";
import { median, quantile } from "./figures.mjs";
import { takeOver } from "./transact.mjs";

const [ours, node, socketAddress, blocks, txsPerBlock] = process.argv.slice(2);
const ANSWER_MAX = 10_000;

const send = await takeOver(node);
const socket = new WebSocket(socketAddress);
await new Promise((resolve) => socket.on("open", resolve));
let tellHead = () => {};
const isSubscribed = new Promise((resolve) => {
    socket.on("message", (text) => {
        const { method, params } = JSON.parse(text);
        if (method === "eth_subscription") tellHead({ hash: params.result.hash, at: performance.now() });
        else resolve();
    });
});
socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
await isSubscribed;

async function mine() {
    const head = new Promise((resolve) => (tellHead = resolve));
    await ask(node, "anvil_mine", "0x1");
    const minedAt = performance.now();
    const { hash, at } = await head;
    return { hash, at: Math.min(at, minedAt) };
}

const taken = [];
for (let count = Number(blocks); count > 0; count -= 1) {
    await send(Number(txsPerBlock));
    const { hash, at } = await mine();
    while ((await ask(ours, "eth_getBlockByHash", hash, true)) === null) {
        if (performance.now() - at > ANSWER_MAX) throw new Error(`${hash} is not answered`);
    }
    taken.push(performance.now() - at);
}
socket.close();
const [half, most, all] = [median(taken), quantile(taken, 0.95), Math.max(...taken)].map((time) => time.toFixed(1));
console.log(`tip latency over ${taken.length} blocks of ${txsPerBlock} transactions: median ${half} ms, p95 ${most} ms, longest ${all} ms (goal: median below 50)`);
