// The tip while a slot is merged: node merge.mjs QUIPU FOLDER BLOCKS TXS_PER_BLOCK [PAYLOAD]
//
// A chain of 8192 blocks and some more is served by one quipu, whose blocks are all final, and followed
// by another that holds the first FIRST blocks of it. A relay between the two shows the follower a tip
// that grows by a block every BLOCK_MS, until the slot is merged or the chain ends. What is told: how
// long the follower went without a new block and when that was, how far it was behind the tip at the
// most, and how long the merge took. A slot that is not merged by the end is a failure.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import http from "node:http";

const [quipu, folder, blocks, txs, payload = "small"] = process.argv.slice(2);
const count = Number(blocks);
const first = Number(process.env.FIRST ?? 8192 - 16);
const every = Number(process.env.BLOCK_MS ?? 1000);

function run(...args) {
    execFileSync(quipu, args, { stdio: ["ignore", "inherit", "inherit"] });
}

function serve(args) {
    const child = spawn(quipu, ["serve", "--listen", "127.0.0.1:0", ...args], {
        stdio: ["ignore", "ignore", "pipe"],
        env: { ...process.env, RUST_LOG: "info" },
    });
    const lines = [];
    const address = new Promise((resolve) => {
        let rest = "";
        child.stderr.on("data", (bytes) => {
            const parts = (rest + bytes).split("\n");
            rest = parts.pop();
            for (const line of parts) {
                lines.push([Date.now(), line]);
                const found = line.match(/^listening on (http:.*)$/);
                if (found) resolve(found[1]);
            }
        });
    });
    return { child, lines, address };
}

async function ask(url, method, params) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body });
    return (await answer.json()).result;
}

if (!existsSync(`${folder}/archives`)) {
    mkdirSync(folder, { recursive: true });
    run("sample", "--to", `${folder}/archives`, "--block-count", blocks, "--txs-per-block", txs, "--payload", payload);
    run("import", "--data-dir", `${folder}/node`, "--genesis", `${folder}/archives/genesis.json`, `${folder}/archives`);
}
const data = `${folder}/follower-${Date.now()}`;
run("import", "--data-dir", data, "--genesis", `${folder}/archives/genesis.json`, "--blocks", `0..${first - 1}`, `${folder}/archives`);
const node = serve(["--data-dir", `${folder}/node`]);
const nodeUrl = await node.address;

// The relay: what is asked by tag is answered by the number that the tip has now.
let tip = first + 8;
const hex = (number) => "0x" + number.toString(16);
function relayed(call) {
    const tags = { latest: tip, safe: tip, finalized: tip - 4 };
    const params = (call.params ?? []).map((it) => (it in tags ? hex(tags[it]) : it));
    return { ...call, params };
}
const relay = http.createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => (body += bytes));
    request.on("end", async () => {
        const calls = JSON.parse(body);
        const sent = Array.isArray(calls) ? calls.map(relayed) : relayed(calls);
        const headers = { "content-type": "application/json" };
        const answer = await fetch(nodeUrl, { method: "POST", headers, body: JSON.stringify(sent) });
        response.setHeader("content-type", "application/json");
        response.end(await answer.text());
    });
});
await new Promise((resolve) => relay.listen(0, "127.0.0.1", resolve));
const upstream = `http://127.0.0.1:${relay.address().port}`;

const follower = serve(["--data-dir", data, "--upstream", upstream, "--poll-every", "50"]);
const ours = await follower.address;
const number = async () => Number((await ask(ours, "eth_blockNumber", [])) ?? -1);
while ((await number()) < tip) await new Promise((resolve) => setTimeout(resolve, 50));

let behind = 0;
let silent = 0;
let silentUntil = 0;
function went(now) {
    if (now - moved <= silent) return;
    silent = now - moved;
    silentUntil = now;
}
let slowest = 0;
let moved = Date.now();
let last = await number();
let grown = Date.now();
const isMerged = () => readdirSync(data).some((name) => name.startsWith("blocks-0000000000-0000008191-"));
let merged = 0;
while (tip < count - 1 && (!merged || Date.now() - merged < 5 * every)) {
    if (Date.now() - grown >= every) {
        tip += 1;
        grown = Date.now();
    }
    const begun = Date.now();
    const now = await number();
    slowest = Math.max(slowest, Date.now() - begun);
    if (now > last) {
        went(Date.now());
        moved = Date.now();
        last = now;
    } else if (tip > now) {
        went(Date.now());
    }
    // What came in the last block time is not late.
    behind = Math.max(behind, tip - now - (Date.now() - grown < every ? 1 : 0));
    if (!merged && isMerged()) merged = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 10));
}
const at = (pattern) => follower.lines.find(([, line]) => pattern.test(line))?.[0];
const sealed = at(/sealed.*\.\.8191/);
console.log(`a block every ${every} ms, ${txs} transactions each: at most ${Math.max(0, behind)} blocks behind, `
    + `${silent} ms without a new block, ${slowest} ms for the slowest answer`);
console.log(`the longest wait ended ${silentUntil - sealed} ms after the last blocks of the slot were sealed`);
console.log(merged ? `merged ${merged - sealed} ms after they were sealed` : "FAILED: the slot was not merged");
follower.child.kill();
node.child.kill();
relay.close();
await new Promise((resolve) => follower.child.on("exit", resolve));
process.exit(merged ? 0 : 1);
