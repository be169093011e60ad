// How fast a node answers, and how fast quipu backfill takes the same blocks from it:
// node rate.mjs QUIPU FOLDER NODE NODE_PROCESS LAST ROUNDS CHAIN_FLAG...
//
// Both ask for the same blocks and receipts in messages of the same size, as many at a time. The first reads
// the answers and throws them away; the second is the whole process, from its start to its end, and a fresh
// folder each time. They take turns.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, rmSync } from "node:fs";
import http from "node:http";

import { hex } from "./ask.mjs";
import { median } from "./figures.mjs";

const [quipu, folder, node, nodeProcess, last, roundCount, ...chainFlags] = process.argv.slice(2);
// As backfill does it (BLOCKS_PER_MESSAGE; --upstream-concurrency).
const BLOCKS_PER_MESSAGE = 8;
const CONCURRENCY = 16;
const blockCount = Number(last) + 1;
const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });

// The message for some blocks: each with its transactions, then its receipts.
function message(first) {
    const calls = [];
    for (let number = first; number < Math.min(first + BLOCKS_PER_MESSAGE, blockCount); number += 1) {
        calls.push(["eth_getBlockByNumber", [hex(number), true]], ["eth_getBlockReceipts", [hex(number)]]);
    }
    return JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })));
}

// Sends a message; gives the bytes of the answer.
async function weigh(body) {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const request = http.request(node, { method: "POST", agent, headers });
    request.end(body);
    const [response] = await once(request, "response");
    if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode}`);
    let bytes = 0;
    response.on("data", (chunk) => (bytes += chunk.length));
    await once(response, "end");
    return bytes;
}

async function askAll() {
    let next = 0;
    let bytes = 0;
    const worker = async () => {
        while (next < blockCount) {
            const first = next;
            next += BLOCKS_PER_MESSAGE;
            const answered = await weigh(message(first));
            bytes += answered;
        }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return bytes;
}

async function backfill(into) {
    const flags = ["backfill", "--data-dir", into, "--upstream", node, "--blocks", `0..${last}`];
    const child = spawn(quipu, [...flags, "--upstream-concurrency", CONCURRENCY, ...chainFlags], {
        stdio: ["ignore", "ignore", "inherit"],
    });
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`quipu backfill ended with ${code}`);
}

// Seconds of CPU that a process has used so far, and those of its children that have ended.
function cpu(id) {
    const TICKS_PER_SECOND = 100;
    // What comes before the state is a name, which may hold anything.
    const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").pop().split(" ").map(Number);
    const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15);
    return { own: (user + system) / TICKS_PER_SECOND, children: (childrenUser + childrenSystem) / TICKS_PER_SECOND };
}

// Seconds that each of the node's threads was at work so far: running, or ready to run while something else
// had the core. What else goes on on the machine does not change it.
function busy() {
    const NANOSECONDS = 1e9;
    const threads = `/proc/${nodeProcess}/task`;
    const times = readdirSync(threads).map((thread) => {
        const [running, ready] = readFileSync(`${threads}/${thread}/schedstat`, "utf8").split(" ").map(Number);
        return [thread, (running + ready) / NANOSECONDS];
    });
    return new Map(times);
}

// Threads come and go: one that has ended meanwhile is not counted.
function busySince(before) {
    let sum = 0;
    for (const [thread, time] of busy()) sum += time - (before.get(thread) ?? 0);
    return sum;
}

// Blocks a second, how many of the node's threads were at work, and the CPU that both sides take for it.
async function measure(work) {
    const [theirsBefore, oursBefore, busyBefore, begun] = [cpu(nodeProcess), cpu("self"), busy(), performance.now()];
    await work();
    const seconds = (performance.now() - begun) / 1000;
    const [theirs, ours] = [cpu(nodeProcess), cpu("self")];
    return {
        rate: blockCount / seconds,
        threads: busySince(busyBefore) / seconds,
        nodeCpu: theirs.own - theirsBefore.own,
        cpu: ours.own + ours.children - oursBefore.own - oursBefore.children,
    };
}

const show = ({ rate, threads, nodeCpu, cpu }) =>
    `${rate.toFixed(0)} blocks/s (${threads.toFixed(2)} of its threads at work; CPU ${nodeCpu.toFixed(1)} s there, ${cpu.toFixed(1)} s here)`;

// Once beforehand, so that no round pays for what is read for the first time.
const bytes = await askAll();
console.log(`blocks 0..${last}, ${(bytes / 1e6).toFixed(0)} MB of JSON`);
const rounds = [];
for (let round = 1; round <= Number(roundCount); round += 1) {
    const into = `${folder}/rate`;
    const asked = await measure(askAll);
    const filled = await measure(() => backfill(into));
    rmSync(into, { recursive: true });
    rounds.push({ asked, filled });
    console.log(`round ${round}: asking ${show(asked)}; backfill ${show(filled)}`);
}
const of = (pick) => median(rounds.map(pick));
const [asked, filled] = [of((round) => round.asked.rate), of((round) => round.filled.rate)].map((rate) => rate.toFixed(0));
const rates = of(({ asked, filled }) => filled.rate / asked.rate).toFixed(2);
const work = of(({ asked, filled }) => filled.threads / asked.threads).toFixed(2);
console.log(`medians: the node ${asked} blocks/s, backfill ${filled}, ratio ${rates} (goal 0.95); the node at work, backfill / asking: ${work}`);
agent.destroy();
