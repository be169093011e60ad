// Kills what takes blocks from a node, at random moments, while the node's chain grows and reorganises:
// node kills.mjs QUIPU FOLDER NODE NODE_SOCKET KILLS SEED CHAIN_FLAG...
//
// Whatever a server has answered is held against the next one that is started on its folder. A backfill
// that was killed is run again until one gets through, and leaves the files of one that nobody disturbed.

import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { ask, hex, post } from "./ask.mjs";

const [quipu, folder, node, socket, killsWanted, seed, ...chainFlags] = process.argv.slice(2);
// A process is killed so many milliseconds after its start.
const MOMENT_MIN = 50;
const MOMENT_MAX = 1500;
// A backfill is the one that is killed every so many times, and every so many times a server must have
// come up with the node first.
const BACKFILL_EVERY = 4;
const CATCH_UP_EVERY = 5;
const CATCH_UP_MAX = 30_000;
// Blocks that are there before anything is killed: more than two segments.
const BLOCKS_BEGIN = 600;
// Blocks that a server has missed at most when it is started again.
const MISSED_MAX = 300;
const REORG_DEPTH_MAX = 20;
const data = `${folder}/kills-data`;

const faults = [];
const tally = { servers: 0, backfills: 0, backfillsThrough: 0, checks: 0, caughtUp: 0, sealed: 0, reorganised: 0 };
// What servers have answered: all final blocks, and the newest answer of the others.
const finalBlocks = new Map();
let newestFinal = -1;
let tip = null;
let oldest = Infinity;

const fault = (text) => faults.push(text);

// Numbers that a seed repeats (mulberry32).
function chance(state) {
    return (min, max) => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return min + (((mixed ^ (mixed >>> 14)) >>> 0) % (max - min + 1));
    };
}
const moments = chance(Number(seed));
const turns = chance(Number(seed) + 1);

const accounts = await ask(node, "eth_accounts");
const transfer = () => ({ from: accounts[0], to: accounts[1], value: hex(turns(1, 1_000_000)) });

// One change of the node's chain: mostly some blocks more, with transactions; else a reorg.
async function stir() {
    if (turns(0, 2) === 0) {
        await ask(node, "anvil_reorg", turns(1, REORG_DEPTH_MAX), [[transfer(), 0]]);
        return;
    }
    for (let count = turns(0, 3); count > 0; count -= 1) await ask(node, "eth_sendTransaction", transfer());
    await ask(node, "anvil_mine", hex(turns(1, 30)));
}

// Runs quipu: `said` grows, `address` gives where it listens, or null if it ends before, and `ended` the
// exit code, or null if it was killed.
function start(...flags) {
    const child = spawn(quipu, flags, { stdio: ["ignore", "pipe", "pipe"] });
    const running = { child, said: "", isOver: false };
    running.ended = once(child, "close").then(([code]) => {
        running.isOver = true;
        return code;
    });
    running.address = new Promise((resolve) => {
        const hear = (text) => {
            running.said += text;
            const found = /^listening on (http:\S+)\n/m.exec(running.said);
            if (found) resolve(found[1]);
        };
        for (const stream of [child.stdout, child.stderr]) stream.on("data", hear);
        running.ended.then(() => resolve(null));
    });
    return running;
}

async function succeeds(what, ...flags) {
    const running = start(...flags);
    if ((await running.ended) !== 0) fault(`${what}: quipu ${flags.join(" ")} says:\n${running.said}`);
}

// Everything in a folder is proven again, if there is one: a process may be killed before it makes it.
async function check(what, checked) {
    if (!existsSync(checked)) return;
    tally.checks += 1;
    await succeeds(what, "check", "--data-dir", checked);
}

// What a server tells of its chain, from one view; null if it is gone.
async function look(ours) {
    const calls = [
        ["eth_getBlockByNumber", "finalized", false],
        ["eth_getBlockByNumber", "latest", false],
        ["eth_capabilities"],
    ];
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers = await post(ours, body).catch(() => null);
    if (answers === null) return null;
    const [final, latest, capabilities] = answers.map((answer) => answer.result);
    return { final, latest, oldest: capabilities.blocks.oldestBlock };
}

function remember(seen) {
    if (seen.final) {
        const number = Number(seen.final.number);
        const known = finalBlocks.get(number);
        if (known && known !== seen.final.hash) fault(`block ${number} was final as ${known}, now as ${seen.final.hash}`);
        finalBlocks.set(number, seen.final.hash);
        newestFinal = Math.max(newestFinal, number);
    }
    if (seen.latest) tip = { number: seen.latest.number, hash: seen.latest.hash };
    if (seen.oldest !== undefined) {
        if (Number(seen.oldest) > oldest) fault(`blocks from ${oldest} on were held, now from ${Number(seen.oldest)} on`);
        oldest = Number(seen.oldest);
    }
}

// What earlier servers have answered is still there. A tip may have been replaced: the node knows.
async function recall(ours, what) {
    const [number, hash] = [newestFinal, finalBlocks.get(newestFinal)];
    if (hash) {
        const found = await ask(ours, "eth_getBlockByNumber", hex(number), false);
        if (found?.hash !== hash) fault(`${what}: block ${number} was final as ${hash}, is ${found?.hash}`);
    }
    if (tip) {
        const [found, theirs] = await Promise.all([
            ask(ours, "eth_getBlockByHash", tip.hash, false),
            ask(node, "eth_getBlockByNumber", tip.number, false),
        ]);
        if (found === null && theirs?.hash === tip.hash) fault(`${what}: ${tip.hash} was the tip, and is gone`);
    }
}

// Waits until a server's tip is the node's, which is quiet meanwhile.
async function catchUp(ours, what) {
    const { hash } = await ask(node, "eth_getBlockByNumber", "latest", false);
    const deadline = Date.now() + CATCH_UP_MAX;
    for (let seen = await look(ours); seen?.latest?.hash !== hash; seen = await look(ours)) {
        if (seen === null || Date.now() > deadline) return fault(`${what}: ${hash} did not become its tip`);
        remember(seen);
        await pause(20);
    }
    tally.caughtUp += 1;
}

// One life of a server, from its start to its death.
async function killServer(what, mustCatchUp) {
    const moment = moments(MOMENT_MIN, MOMENT_MAX);
    // So that it begins with catching up and, most of the time, with sealing.
    await ask(node, "anvil_mine", hex(turns(1, MISSED_MAX)));
    await stir();
    const running = start("serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--upstream", socket,
        "--backfill-to", "0", "--poll-every", "50", ...chainFlags);
    let isDying = false;
    const kill = () => {
        isDying = true;
        return running.child.kill("SIGKILL");
    };
    const timer = setTimeout(kill, mustCatchUp ? CATCH_UP_MAX * 2 : moment);
    const ours = await running.address;
    const unlessDying = (error) => isDying || fault(`${what}: ${error}`);
    if (ours !== null) {
        await recall(ours, what).catch(unlessDying);
        if (mustCatchUp) {
            await catchUp(ours, what);
            clearTimeout(timer);
            setTimeout(kill, moment);
        }
        const stirring = (async () => {
            while (!running.isOver) await stir();
        })();
        for (let seen = await look(ours); seen !== null; seen = await look(ours)) remember(seen);
        await stirring;
    }
    const code = await running.ended;
    if (!isDying) fault(`${what}: the server ended by itself with ${code}:\n${running.said}`);
    tally.sealed += running.said.match(/ sealed /g)?.length ?? 0;
    tally.reorganised += running.said.match(/ reorganised /g)?.length ?? 0;
    tally.servers += 1;
    await check(what, data);
}

// Kills a backfill into a fresh folder, or one that was killed before; true if it was not through before.
const filling = { rounds: 0, folder: null, last: 0, took: 0 };
async function killBackfill(what) {
    if (filling.folder === null) await beginFilling(what);
    const running = backfill(filling.folder);
    const timer = setTimeout(() => running.child.kill("SIGKILL"), moments(MOMENT_MIN, Math.max(filling.took, MOMENT_MIN)));
    const code = await running.ended;
    clearTimeout(timer);
    if (code !== null && code !== 0) fault(`${what}: the backfill ended with ${code}:\n${running.said}`);
    await check(what, filling.folder);
    if (code === null) tally.backfills += 1;
    else await endFilling(what);
    return code === null;
}

const undisturbed = `${folder}/undisturbed`;
const backfill = (into) =>
    start("backfill", "--data-dir", into, "--upstream", node, "--blocks", `0..${filling.last}`, ...chainFlags);

// Takes all that is final once without disturbing, to know the files and how long it takes.
async function beginFilling(what) {
    filling.rounds += 1;
    filling.last = Number((await ask(node, "eth_getBlockByNumber", "finalized", false)).number);
    const begun = Date.now();
    const running = backfill(undisturbed);
    if ((await running.ended) !== 0) fault(`${what}: a backfill failed:\n${running.said}`);
    filling.took = Date.now() - begun;
    filling.folder = `${folder}/filled-${filling.rounds}`;
}

async function endFilling(what) {
    const compared = spawn("diff", ["--recursive", "--brief", undisturbed, filling.folder]);
    let differences = "";
    for (const stream of [compared.stdout, compared.stderr]) stream.on("data", (text) => (differences += text));
    const [code] = await once(compared, "close");
    if (code !== 0) fault(`${what}: files differ from those of an undisturbed backfill:\n${differences}`);
    for (const path of [undisturbed, filling.folder]) rmSync(path, { recursive: true });
    filling.folder = null;
    tally.backfillsThrough += 1;
}

console.log(`QUIPU_SEED=${seed} QUIPU_KILLS=${killsWanted}`);
await ask(node, "evm_setAutomine", false);
await ask(node, "anvil_mine", hex(BLOCKS_BEGIN));
for (let kill = 1; kill <= Number(killsWanted) && faults.length === 0; kill += 1) {
    if (kill % BACKFILL_EVERY === 0) {
        while (!(await killBackfill(`kill ${kill}, of a backfill`)) && faults.length === 0);
    } else {
        await killServer(`kill ${kill}, of a server`, kill % CATCH_UP_EVERY === 0);
    }
}
// What was killed last gets through as well.
if (filling.folder !== null && faults.length === 0) {
    const running = backfill(filling.folder);
    if ((await running.ended) !== 0) fault(`the last backfill failed:\n${running.said}`);
    await endFilling("the last backfill");
}
// The node never gives up what it called final: whatever a server called so must be the node's.
for (const [number, hash] of finalBlocks) {
    const theirs = await ask(node, "eth_getBlockByNumber", hex(number), false);
    if (theirs?.hash !== hash) fault(`block ${number} was final as ${hash}, the node has ${theirs?.hash}`);
}
if (faults.length === 0) {
    for (const [name, count] of Object.entries(tally)) if (count === 0) fault(`nothing of this happened: ${name}`);
}
for (const text of faults.slice(0, 20)) console.log(text);
console.log(
    `${tally.servers} servers and ${tally.backfills} backfills killed, ${tally.checks} checks, ${tally.caughtUp} times the ` +
        `node's tip, ${tally.sealed} runs sealed, ${tally.reorganised} reorgs, ${tally.backfillsThrough} backfills through, ` +
        `${finalBlocks.size} final blocks answered, ${faults.length} faults`,
);
process.exit(faults.length === 0 ? 0 : 1);
