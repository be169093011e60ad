// The proof button, on good answers and on tampered ones: node proofs.mjs URL QUIPU CHAIN
//
// CHAIN is the path of the chain.mjs that lies in the repository, where it finds the hashes that it imports.
// What is altered is what the server sends, on its way to the page. Of a tampered bundle the page must say the
// very words that `quipu verify-proof` says of it; of a tampered answer it must name the value.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

import { keccak256 } from "ethers";

import { accessible, reachable } from "./accessible.mjs";
import { ask, hex } from "../nodes/ask.mjs";
import { finish, holds, same, visit } from "./browser.mjs";

const [url, quipu, chain] = process.argv.slice(2);
const { Random, blockOf, headersWay, inclusion, wholeBlock } = await import(chain);
const TIP = 159;
const block = (number) => ask(url, "eth_getBlockByNumber", hex(number), true);
// One of every type, one with two uncles, and in a block of 200 transactions one whose path is long.
const NUMBERS = [3, 5, 20, 46, 72, 85, 102, TIP];
const [SUBJECT, , THIRD] = (await block(85)).transactions;
const NEIGHBOUR = (await block(86)).transactions[0];
const WITH_LOGS = (await ask(url, "eth_getLogs", { fromBlock: hex(80), toBlock: hex(TIP) })).at(-1).transactionHash;

const isProof = (method) => method.startsWith("quipu_prove");

// Answers go through `alters(method, text)`; the text of a batch's call is that of its own answer.
async function altered(visitor, alters) {
    await visitor.page.route("**/*", async (route) => {
        const request = route.request();
        if (request.method() !== "POST") return route.continue();
        const asked = JSON.parse(request.postData());
        const response = await route.fetch();
        const text = await response.text();
        if (!Array.isArray(asked)) return route.fulfill({ response, body: alters(asked.method, text) });
        const answers = JSON.parse(text).map((it) => alters(asked.find(({ id }) => id === it.id).method, JSON.stringify(it)));
        return route.fulfill({ response, body: `[${answers}]` });
    });
}

// Presses the button; the verdict, the step that failed if one did, and all that it says.
async function proves(visitor) {
    const { page } = visitor;
    // Of an earlier press nothing is left.
    await page.locator(".proof-result").first().evaluate((it) => it.replaceChildren());
    await page.getByRole("button", { name: "Prove it" }).click();
    const verdict = await visitor.sees("[data-verdict]");
    const failed = page.locator("li[data-ok=false]");
    return {
        verdict: await verdict.getAttribute("data-verdict"),
        trust: await verdict.getAttribute("data-trust"),
        steps: await page.locator("li[data-ok]").evaluateAll((all) => all.map((it) => it.dataset.step)),
        failed: (await failed.count()) === 0 ? null : await failed.first().getAttribute("data-step"),
        text: await page.locator(".proof-result").first().innerText(),
        // The colour of the verdict, by the name that the style sheet gives it.
        tone: await verdict.locator("h3").evaluate((it) => {
            const probe = it.appendChild(document.createElement("i"));
            const toneOf = (name) => {
                probe.className = `badge ${name}`;
                return getComputedStyle(probe).color;
            };
            const found = ["good", "warn", "bad"].filter((name) => toneOf(name) === getComputedStyle(it).color);
            probe.remove();
            return found.join();
        }),
    };
}

// --- good answers

await visit(`transactions and blocks of every type are proven: blocks ${NUMBERS.join(", ")}`, url, {}, async (visitor) => {
    await visitor.opens();
    for (const number of NUMBERS) {
        const { transactions, hash } = await block(number);
        await visitor.goes(`#/block/${number}`);
        const whole = await proves(visitor);
        same([whole.verdict, whole.failed, whole.tone], ["proven", null, "warn"], `block ${number}: ${whole.text}`);
        holds(whole.text.includes(hash), `block ${number}: its hash is not among ${whole.text}`);
        for (const step of ["header hash", "transactions root", "receipts root", "anchor", "page"]) holds(whole.steps.includes(step), `no step ${step} among ${whole.steps}`);
        const kinds = new Map(transactions.map((it) => [it.type, it]));
        for (const tx of new Set([...kinds.values(), transactions.at(-1)])) {
            await visitor.goes(`#/tx/${tx.hash}`);
            const one = await proves(visitor);
            same([one.verdict, one.failed, one.tone], ["proven", null, "warn"], `${tx.hash}: ${one.text}`);
            for (const step of ["transaction path", "receipt path", "anchor", "question", "page"]) holds(one.steps.includes(step), `no step ${step} among ${one.steps}`);
            for (const shown of [tx.hash, tx.blockHash]) holds(one.text.includes(shown), `${shown} is not among ${one.text}`);
        }
    }
});

await visit("the bundle is a file, which the command line and the page itself verify", url, {}, async (visitor) => {
    const { page } = visitor;
    let served = null;
    await altered(visitor, (method, text) => {
        if (isProof(method)) served = text;
        return text;
    });
    await visitor.opens(`#/tx/${SUBJECT.hash}`);
    await proves(visitor);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the bundle" }).click()]);
    const file = path.resolve("saved.json");
    await download.saveAs(file);
    const text = readFileSync(file, "utf8");
    same(JSON.parse(served).result, JSON.parse(text), "the file");
    const { status, stdout } = spawnSync(quipu, ["verify-proof", file], { encoding: "utf8" });
    same(status, 0, `quipu verify-proof: ${stdout}`);

    await page.locator("summary", { hasText: "Verify a bundle from elsewhere" }).click();
    await page.getByLabel("Open a file").setInputFiles(file);
    await visitor.sees(".proof-result + details [data-verdict=proven], details [data-verdict=proven]");
    await page.getByLabel("or paste the bundle").fill(text.replace("0x", "0X"));
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await visitor.sees("details [data-verdict=refused]");
});

await visit("a list of logs says which block it follows, so that lists can be joined", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens(`#/tx/${SUBJECT.hash}`);
    await page.locator("summary", { hasText: "Verify a bundle from elsewhere" }).click();
    await page.getByLabel("or paste the bundle").fill(JSON.stringify(await ask(url, "quipu_proveLogs", { fromBlock: hex(80), toBlock: hex(82) })));
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    const verdict = await visitor.sees("details [data-verdict=proven]");
    const [parent, last] = [(await block(79)).hash, (await block(82)).hash];
    const text = (await verdict.innerText()).replace(/\s+/g, " ");
    holds(text.includes(`from block 80, whose parent is ${parent}, up to block 82 with hash ${last}, and no others do.`), text);
});

await visit("an anchor that is trusted decides", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens(`#/tx/${SUBJECT.hash}`);
    const { hash } = await block(100);
    await page.getByLabel(/A block that you trust/).fill(`100:${hash}`);
    const right = await proves(visitor);
    same([right.verdict, right.trust, right.failed, right.tone], ["proven", "named", null, "good"], right.text);
    await page.getByLabel(/A block that you trust/).fill(`100:0x${"1".repeat(64)}`);
    await page.getByRole("button", { name: "Prove it" }).click();
    await visitor.sees("[data-verdict=refused]");
    await visitor.sees("li[data-ok=false][data-step=anchor]");
    await page.getByLabel(/A block that you trust/).fill("100:0x<b>");
    await page.getByRole("button", { name: "Prove it" }).click();
    await visitor.reads(/no anchor/i);
});

await visit("a proof can be read and used by everybody", url, {}, async (visitor) => {
    for (const [number, look] of [[85, "proof"], [20, "proof-crowded"]]) {
        await visitor.opens(`#/tx/${(await block(number)).transactions[0].hash}`);
        await proves(visitor);
        await accessible(visitor, `a proof in block ${number}`);
        await visitor.pictures(look);
    }
    await reachable(visitor, "a proof");
});

// --- tampered bundles

// Another digit at this share of a text of hex.
function flipped(text, share = 0.5) {
    const at = 2 + Math.floor((text.length - 3) * share);
    return `${text.slice(0, at)}${text[at] === "0" ? "1" : "0"}${text.slice(at + 1)}`;
}
const last = (list, change) => [...list.slice(0, -1), change(list.at(-1))];
const other = async (method, ...params) => JSON.stringify((await ask(url, method, ...params)) ?? {});

const TAMPERED = {
    "a digit of the header": (it) => ({ ...it, header: flipped(it.header) }),
    "a digit of the transaction": (it) => ({ ...it, transaction: { ...it.transaction, rlp: flipped(it.transaction.rlp) } }),
    "a digit of the transaction's path": (it) => ({ ...it, transaction: { ...it.transaction, proof: last(it.transaction.proof, flipped) } }),
    "the root of the transaction's path": (it) => ({ ...it, transaction: { ...it.transaction, proof: [flipped(it.transaction.proof[0]), ...it.transaction.proof.slice(1)] } }),
    "a digit of the receipt": (it) => ({ ...it, receipt: { ...it.receipt, rlp: flipped(it.receipt.rlp) } }),
    "a digit of the receipt's path": (it) => ({ ...it, receipt: { ...it.receipt, proof: last(it.receipt.proof, flipped) } }),
    "another index": (it) => ({ ...it, transaction: { ...it.transaction, index: it.transaction.index + 1 } }),
    "another index of both": (it) => ({ ...it, transaction: { ...it.transaction, index: it.transaction.index + 1 }, receipt: { ...it.receipt, index: it.receipt.index + 1 } }),
    "another anchor": (it) => ({ ...it, anchor: { ...it.anchor, hash: flipped(it.anchor.hash) } }),
    "another number of the anchor": (it) => ({ ...it, anchor: { ...it.anchor, number: it.anchor.number + 1 } }),
    "a digit of the way to the anchor": (it) => ({ ...it, anchor: { ...it.anchor, path: last(it.anchor.path, flipped) } }),
    "a way without its last header": (it) => ({ ...it, anchor: { ...it.anchor, path: it.anchor.path.slice(0, -1) } }),
    "another status": (it) => ({ ...it, status: "canonical" }),
    "a member more": (it) => ({ ...it, note: "trust me" }),
    "a member less": ({ status, ...it }) => it,
    "another version": (it) => ({ ...it, version: 2 }),
    "markup as its status": (it) => ({ ...it, status: "<img src=x onerror=alert(1)>\u202e" }),
};
const TAMPERED_BLOCK = {
    "a digit of a transaction": (it) => ({ ...it, transactions: last(it.transactions, flipped) }),
    "a transaction less": (it) => ({ ...it, transactions: it.transactions.slice(1) }),
    "two receipts exchanged": (it) => ({ ...it, receipts: [it.receipts[1], it.receipts[0], ...it.receipts.slice(2)] }),
    "a digit of a withdrawal": (it) => ({ ...it, withdrawals: last(it.withdrawals, flipped) }),
    "an ommer": (it) => ({ ...it, ommers: "0xc180" }),
    "a digit of the header": (it) => ({ ...it, header: flipped(it.header, 0.9) }),
};

// The step at which the command line refuses this text, and its words.
function refusedByCommand(text) {
    const { status, stdout, stderr } = spawnSync(quipu, ["verify-proof", "-"], { input: text, encoding: "utf8" });
    const said = /^error: the pipe: ([a-z ]+): (.*)$/m.exec(stderr);
    holds(status === 1 && said !== null, `quipu verify-proof ended with ${status}: ${stdout} ${stderr}`);
    return { step: said[1], words: said[2] };
}

for (const [what, route, tampers] of [["transaction", `#/tx/${SUBJECT.hash}`, TAMPERED], ["block", "#/block/85", TAMPERED_BLOCK]]) {
    await visit(`a tampered bundle of a ${what} is refused where the command line refuses it: ${Object.keys(tampers).join(", ")}`, url, {}, async (visitor) => {
        let tamper = null;
        let sent = null;
        await altered(visitor, (method, text) => {
            if (!isProof(method)) return text;
            const answer = JSON.parse(text);
            sent = JSON.stringify(tamper(answer.result));
            return `{"jsonrpc":"2.0","id":${answer.id},"result":${sent}}`;
        });
        await visitor.opens(route);
        for (const [kind, change] of Object.entries(tampers)) {
            tamper = change;
            const found = await proves(visitor);
            const expected = refusedByCommand(sent);
            same([found.verdict, found.failed, found.tone], ["refused", expected.step, "bad"], `${kind}: ${found.text}`);
            const plain = (text) => text.replace(/\s+/g, "");
            holds(plain(found.text).includes(plain(expected.words)), `${kind}: ${expected.words} is not said in ${found.text}`);
        }
        await visitor.pictures(`proof-refused-${what}`);
        await accessible(visitor, "a refusal");
    });
}

// Texts that are no bundle at all, and honest bundles of something else.
await visit("other bundles and other texts prove nothing", url, {}, async (visitor) => {
    const foreign = {
        "the bundle of another transaction": [await other("quipu_proveReceipt", NEIGHBOUR.hash), "question"],
        "the bundle of its block": [await other("quipu_proveBlock", hex(85)), "question"],
        "a list of logs": [await other("quipu_proveLogs", { fromBlock: hex(80), toBlock: hex(82) }), "question"],
        "a bundle that was cut": [(await other("quipu_proveReceipt", SUBJECT.hash)).slice(0, -20), null],
        "a text": ['"<script>alert(1)</script>"', "text"],
        "a number": ["7", "text"],
        "a list": ["[]", "text"],
        "an empty object": ["{}", "text"],
    };
    let answer = null;
    await altered(visitor, (method, text) => (isProof(method) ? `{"jsonrpc":"2.0","id":1,"result":${answer}}` : text));
    await visitor.opens(`#/tx/${SUBJECT.hash}`);
    for (const [kind, [text, step]] of Object.entries(foreign)) {
        answer = text;
        const found = await proves(visitor);
        same([found.verdict, found.tone], ["refused", "bad"], `${kind}: ${found.text}`);
        if (step !== null) same(found.failed, step, `${kind}: ${found.text}`);
    }
});

// A hash says nothing of the form of what has it.
await visit("bytes of no form that is known are refused at the page, and by name", url, {}, async (visitor) => {
    const made = blockOf(85, Buffer.alloc(32), 6, new Random(4));
    const hashes = made.transactions.map((_, index) => JSON.parse(inclusion(made, index, headersWay(made))).transaction.rlp).map(keccak256);
    const hash = `0x${made.hash.toString("hex")}`;
    let bundle = null;
    await altered(visitor, (method, text) => {
        if (isProof(method)) return `{"jsonrpc":"2.0","id":1,"result":${bundle}}`;
        const { result, ...answer } = JSON.parse(text);
        if (method === "eth_getBlockByHash") return JSON.stringify({ ...answer, result: { ...shown, hash } });
        if (method === "eth_getTransactionByHash") return JSON.stringify({ ...answer, result: { ...SUBJECT, hash: asked } });
        return text;
    });
    const shown = await block(85);
    let asked = null;
    const isRefused = async (what) => {
        const found = await proves(visitor);
        same([found.verdict, found.failed, found.tone], ["refused", "page", "bad"], `${what}: ${found.text}`);
        holds(found.text.includes("a form that this page does not know"), `${what}: ${found.text}`);
    };
    await visitor.opens(`#/block/${hash}`);
    bundle = wholeBlock(made, headersWay(made));
    await isRefused("a block");
    for (const [index, own] of hashes.entries()) {
        [asked, bundle] = [own, inclusion(made, index, headersWay(made))];
        await visitor.goes(`#/tx/${own}`);
        await isRefused(`transaction ${index}`);
    }
});

// --- tampered answers, with honest bundles

const ANSWERS = [
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "value", (it) => ({ ...it, value: "0xde0b6b3a7640000" })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "to", (it) => ({ ...it, to: `0x${"ab".repeat(20)}` })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "input", (it) => ({ ...it, input: `${it.input}00` })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "nonce", (it) => ({ ...it, nonce: "0x7777" })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "blockNumber", (it) => ({ ...it, blockNumber: "0x3" })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionReceipt", "status", (it) => ({ ...it, status: it.status === "0x1" ? "0x0" : "0x1" })],
    [`#/tx/${WITH_LOGS}`, "eth_getTransactionReceipt", "logs", (it) => ({ ...it, logs: last(it.logs, (log) => ({ ...log, data: `0x${"ff".repeat(32)}` })) })],
    [`#/tx/${WITH_LOGS}`, "eth_getTransactionReceipt", "logs", (it) => ({ ...it, logs: it.logs.slice(1) })],
    [`#/tx/${WITH_LOGS}`, "eth_getTransactionReceipt", "logs", (it) => ({ ...it, logs: last(it.logs, (log) => ({ ...log, address: `0x${"ab".repeat(20)}` })) })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionReceipt", "status", ({ status, ...it }) => it],
    [`#/tx/${THIRD.hash}`, "eth_getTransactionReceipt", "gasUsed", (it) => ({ ...it, gasUsed: `0x${(BigInt(THIRD.gas) + 1n).toString(16)}` })],
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", "authorizationList", (it) => ({ ...it, authorizationList: [{ address: it.to }] })],
    [`#/tx/${SUBJECT.hash}`, "eth_getHeaderByHash", "baseFeePerGas", (it) => ({ ...it, baseFeePerGas: "0x1" })],
    [`#/tx/${WITH_LOGS}`, "eth_getTransactionReceipt", "logs", ({ logs, ...it }) => it],
    [`#/tx/${WITH_LOGS}`, "eth_getTransactionReceipt", "topics", (it) => ({ ...it, logs: last(it.logs, ({ topics, ...log }) => log) })],
    ["#/block/85", "eth_getBlockByNumber", "transactions", ({ transactions, ...it }) => it],
    ["#/block/85", "eth_getBlockByNumber", "transactions", (it) => ({ ...it, transactions: it.transactions.map(({ hash }) => hash) })],
    ["#/block/72", "eth_getBlockByNumber", "withdrawals", ({ withdrawals, ...it }) => it],
    ["#/block/3", "eth_getBlockByNumber", "withdrawals", (it) => ({ ...it, withdrawals: [{ index: "0x0", validatorIndex: "0x0", address: it.miner, amount: "0x1" }] })],
    ["#/block/85", "eth_getBlockByNumber", "gasUsed", (it) => ({ ...it, gasUsed: "0x1" })],
    ["#/block/85", "eth_getBlockByNumber", "timestamp", (it) => ({ ...it, timestamp: "0x1" })],
    ["#/block/85", "eth_getBlockByNumber", "miner", (it) => ({ ...it, miner: `0x${"ab".repeat(20)}` })],
    ["#/block/85", "eth_getBlockReceipts", "status", (it) => it.map((one) => ({ ...one, status: "0x0" }))],
    ["#/block/85", "eth_getBlockReceipts", "gasUsed", (it) => last(it, (one) => ({ ...one, gasUsed: "0xfffffffffff" }))],
    ["#/block/85", "eth_getBlockReceipts", "effectiveGasPrice", (it) => last(it, (one) => ({ ...one, effectiveGasPrice: "0x1" }))],
    ["#/block/85", "eth_getBlockReceipts", "logs", (it) => last(it, (one) => ({ ...one, logs: [{}, {}, {}] }))],
    ["#/block/5", "eth_getUncleByBlockHashAndIndex", "number", (it) => ({ ...it, number: "0x1337" })],
    ["#/block/5", "eth_getUncleByBlockHashAndIndex", "miner", (it) => ({ ...it, miner: `0x${"de".repeat(20)}` })],
    ["#/block/5", "eth_getUncleByBlockHashAndIndex", "timestamp", ({ timestamp, ...it }) => it],
    ["#/block/85", "eth_getBlockByNumber", "extraData", (it) => ({ ...it, extraData: "0x1234" })],
    ["#/block/85", "eth_getBlockByNumber", "transactions", (it) => ({ ...it, transactions: it.transactions.slice(1) })],
    ["#/block/85", "eth_getBlockByNumber", "value", (it) => ({ ...it, transactions: last(it.transactions, (tx) => ({ ...tx, value: "0x1" })) })],
    ["#/block/72", "eth_getBlockByNumber", "withdrawals", (it) => ({ ...it, withdrawals: last(it.withdrawals, (one) => ({ ...one, amount: "0x1" })) })],
];

await visit(`a tampered answer is caught by an honest bundle: ${ANSWERS.map(([, method, name]) => `${method.slice(7)} ${name}`).join(", ")}`, url, {}, async (visitor) => {
    let tampered = "";
    let change = null;
    await altered(visitor, (method, text) => {
        const answer = JSON.parse(text);
        return method === tampered && answer.result ? JSON.stringify({ ...answer, result: change(answer.result) }) : text;
    });
    await visitor.opens("#/no/such/page");
    for (const [route, method, name, changes] of ANSWERS) {
        [tampered, change] = [method, changes];
        await visitor.goes(route);
        const found = await proves(visitor);
        same([found.verdict, found.failed, found.tone], ["refused", "page", "bad"], `${method} ${name}: ${found.text}`);
        holds(found.text.includes(name), `${method}: ${name} is not named in ${found.text}`);
        if (name === "value") await visitor.pictures("proof-tampered");
        await visitor.goes("#/no/such/page");
    }
});

// --- answers to another question, each with honest bundles

const PLACE = (await block(85)).hash;
const OTHERS = [
    [`#/tx/${SUBJECT.hash}`, "eth_getTransactionByHash", NEIGHBOUR, /answered with another transaction/],
    ["#/block/85", "eth_getBlockByNumber", await block(86), /answered with another block/],
    ["#/block/0x55", "eth_getBlockByNumber", await block(84), /answered with another block/],
    [`#/block/${PLACE}`, "eth_getBlockByHash", await block(86), /answered with another block/],
    // Nor another of the same number.
    [`#/block/${PLACE}`, "eth_getBlockByHash", { ...(await block(85)), hash: `0x${"1".repeat(64)}` }, /answered with another block/],
];

await visit("what was not asked for is not shown, and not proven", url, {}, async (visitor) => {
    const { page } = visitor;
    let other = null;
    await altered(visitor, (method, text) => {
        const answer = JSON.parse(text);
        return other !== null && method === other.method ? JSON.stringify({ ...answer, result: other.result }) : text;
    });
    await visitor.opens("#/no/such/page");
    for (const [route, method, result, said] of OTHERS) {
        other = { method, result };
        await visitor.goes(route);
        const text = await visitor.reads(said);
        holds(text.includes(result.hash), `${result.hash} is not among ${text}`);
        same(await page.getByRole("button", { name: "Prove it" }).count(), 0, `${route}: buttons that prove`);
        await visitor.goes("#/no/such/page");
        // The same address is shown where it is answered.
        other = null;
        await visitor.goes(route);
        // It comes when its script is there.
        await page.getByRole("button", { name: "Prove it" }).waitFor();
        await visitor.goes("#/no/such/page");
    }
    // A hash may be asked for in capitals.
    for (const [route, hash] of [["tx", SUBJECT.hash], ["block", PLACE]]) {
        await visitor.goes(`#/${route}/0x${hash.slice(2).toUpperCase()}`);
        same((await proves(visitor)).verdict, "proven", `${route} in capitals`);
    }
    // What a tag names, the server alone says.
    other = { method: "eth_getBlockByNumber", result: await block(86) };
    await visitor.goes("#/block/latest");
    await visitor.sees("h1", { hasText: /^Block 86$/ });
    await page.unrouteAll({ behavior: "ignoreErrors" });
});

await visit("gas that a receipt alone does not prove is told as not checked, with what follows from it", url, {}, async (visitor) => {
    await visitor.opens(`#/tx/${THIRD.hash}`);
    const one = await proves(visitor);
    same(one.verdict, "proven", one.text);
    holds(/Not checked here: [^]*gas used, [^;]*fee[^;]*burnt[^;]*tip/.test(one.text), one.text);
    // All receipts of the block prove it.
    await visitor.goes("#/block/85");
    const whole = await proves(visitor);
    same(whole.verdict, "proven", whole.text);
    holds(!/Not checked here: [^]*gas used|what single transactions cost/.test(whole.text), whole.text);
});

await visit("a receipt that no bundle has is told as not checked", url, {}, async (visitor) => {
    const refuses = { code: 4444, message: "receipts not found" };
    await altered(visitor, (method, text) => {
        const { result, ...answer } = JSON.parse(text);
        if (method === "quipu_proveReceipt") return JSON.stringify({ ...answer, error: refuses });
        return method === "eth_getTransactionReceipt" ? JSON.stringify({ ...answer, result: { ...result, status: "0x0" } }) : text;
    });
    await visitor.opens(`#/tx/${SUBJECT.hash}`);
    const found = await proves(visitor);
    same(found.verdict, "proven", found.text);
    holds(/Not checked here: [^]*the receipt, and so the outcome/.test(found.text), found.text);
});

// --- no answer

for (const [what, answer, said] of [
    ["a server without proofs", { json: { jsonrpc: "2.0", id: 1, error: { code: -32601, message: "the method does not exist" } } }, /does not exist/],
    ["what is not held", { json: { jsonrpc: "2.0", id: 1, error: { code: 4444, message: "pruned history unavailable", data: { held: [[100, 159]] } } } }, /not held/],
    ["nothing to prove", { json: { jsonrpc: "2.0", id: 1, result: null } }, /nothing to prove/i],
    ["HTTP 500", { status: 500, body: "" }, /500|could not be read/],
    ["HTTP 429", { status: 429, headers: { "retry-after": "7" }, json: { jsonrpc: "2.0", id: null, error: { code: -32005, message: "slow down" } } }, /slow down[^]*7 seconds/],
    ["no answer at all", null, /does not answer/],
]) {
    await visit(`${what} is neither proven nor refused`, url, { allows: [/Failed to load resource/] }, async (visitor) => {
        const { page } = visitor;
        await page.route("**/*", (route) => {
            const request = route.request();
            if (request.method() !== "POST" || !/quipu_prove/.test(request.postData())) return route.continue();
            return answer === null ? route.abort("connectionrefused") : route.fulfill(answer);
        });
        await visitor.opens(`#/tx/${SUBJECT.hash}`);
        await page.getByRole("button", { name: "Prove it" }).click();
        await visitor.reads(said, ".proof-result");
        same(await page.locator("[data-verdict]").count(), 0, "verdicts");
        // The button is there for another try.
        same(await page.getByRole("button", { name: "Prove it" }).isEnabled(), true, "the button");
    });
}

await finish();
