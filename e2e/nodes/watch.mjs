// A client that never stops asking while the chain changes: node watch.mjs OURS NODE. It ends on SIGTERM,
// when it has the node's chain.
//
// Whatever is asked in one batch must be of one chain; new heads must lead, each above its parent, to the
// chain that the node has at the end.

import WebSocket from "ws";

import { ask, hex, post } from "./ask.mjs";

const [ours, node] = process.argv.slice(2);
const faults = [];
const chain = new Map();
let batches = 0;
let heads = 0;
let isEnding = false;

const fault = (text) => faults.push(text);

async function askBatch() {
    const calls = [
        ["eth_getBlockByNumber", "latest", true],
        ["eth_getBlockReceipts", "latest"],
        ["eth_getBlockByNumber", "latest", false],
        ["eth_getBlockTransactionCountByNumber", "latest"],
        ["eth_blockNumber"],
        ["eth_getHeaderByNumber", "latest"],
    ];
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers = await post(ours, body);
    const [full, receipts, hashes, count, number, header] = answers.map((answer) => answer.result);
    batches += 1;
    if ([full, receipts, hashes, count, number, header].some((value) => value === undefined || value === null)) {
        return fault(`an answer is missing: ${JSON.stringify(answers)}`);
    }
    const isOne =
        full.hash === hashes.hash &&
        full.hash === header.hash &&
        full.number === number &&
        Number(count) === full.transactions.length &&
        receipts.length === full.transactions.length &&
        receipts.every((receipt, index) => receipt.blockHash === full.hash && receipt.transactionHash === hashes.transactions[index]);
    if (!isOne) fault(`a batch shows two chains: ${JSON.stringify(answers)}`);
}

function takeHead(head) {
    heads += 1;
    const number = Number(head.number);
    for (const known of [...chain.keys()]) if (known >= number) chain.delete(known);
    if (chain.size > 0 && chain.get(number - 1) !== head.parentHash) {
        fault(`head ${number} ${head.hash} has no parent in what came before`);
    }
    chain.set(number, head.hash);
}

const socket = new WebSocket(ours.replace("http", "ws"));
socket.on("message", (text) => {
    const message = JSON.parse(text);
    if (message.method === "eth_subscription") takeHead(message.params.result);
    else if (message.result === undefined) fault(`not subscribed: ${text}`);
});
socket.on("close", () => {
    if (!isEnding) fault("the server closed the socket");
});
await new Promise((resolve) => socket.on("open", resolve));
socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));

process.on("SIGTERM", () => (isEnding = true));
console.log("watching");
while (!isEnding) await askBatch();

// The node is quiet now: wait for the head that it ends with.
const tip = await ask(node, "eth_getBlockByNumber", "latest", false);
const deadline = Date.now() + 30_000;
while (chain.get(Number(tip.number)) !== tip.hash && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
}
for (const [number, hash] of chain) {
    const block = await ask(node, "eth_getBlockByNumber", hex(number), false);
    if (block?.hash !== hash) fault(`heads end with ${number} ${hash}, the node has ${block?.hash}`);
}
socket.close();
for (const text of faults.slice(0, 20)) console.log(text);
console.log(`${batches} batches and ${heads} heads seen, ${chain.size} blocks rebuilt, ${faults.length} faults`);
process.exit(faults.length === 0 && batches > 0 && heads > 0 ? 0 : 1);
