// A chain whose every text is hostile, and a server that talks worse nonsense than any chain can carry:
// node hostile.mjs URL HOSTILE_JSON
//
// HOSTILE_JSON is what hostile_chain.mjs printed. Whatever comes is shown as text, with what reorders or
// hides text written out, and every page goes on working.

import { readFileSync } from "node:fs";

import { ask, hex } from "../nodes/ask.mjs";
import { finish, holds, same, visit } from "./browser.mjs";

const [url, path] = process.argv.slice(2);
const { contract, from, blocks, transactions, markup, hugeBytes } = JSON.parse(readFileSync(path, "utf8"));
const tip = Number(await ask(url, "eth_blockNumber"));

// What reorders, hides or controls text, and has no business in a page as it is.
const HARMFUL = "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\u{e0000}-\\u{e007f}]";

const CLICKS_MAX = 15;

// Fails if the page has anything in it that is not its own.
async function harmless(visitor, where) {
    const found = await visitor.page.evaluate((harmful) => {
        const faults = [];
        const all = [...document.querySelectorAll("*")];
        const scripts = all.filter((it) => it.tagName === "SCRIPT").map((it) => it.getAttribute("src"));
        if (scripts.join() !== "explorer/main.js") faults.push(`scripts: ${scripts}`);
        for (const it of all) {
            const name = it.tagName.toLowerCase();
            if (["img", "iframe", "object", "embed", "base", "style", "video", "audio", "math"].includes(name)) faults.push(`<${name}>`);
            for (const { name: attribute, value } of it.attributes) {
                if (attribute.startsWith("on") || (attribute === "style" && value !== "")) faults.push(`${name} ${attribute}=${value}`);
                if (["href", "src", "action", "xlink:href"].includes(attribute) && name !== "link" && name !== "script") {
                    const to = new URL(value, document.baseURI);
                    const isOwn = value.startsWith("#") || (to.origin === location.origin && ["http:", "blob:"].includes(to.protocol));
                    if (!isOwn) faults.push(`${name} leads to ${value}`);
                }
            }
        }
        const seen = new RegExp(harmful, "u").exec(document.documentElement.outerHTML);
        if (seen) {
            const around = document.documentElement.outerHTML.slice(Math.max(0, seen.index - 80), seen.index + 20);
            faults.push(`U+${seen[0].codePointAt(0).toString(16)} after ${JSON.stringify(around)}`);
        }
        if (!document.querySelector("main h1")?.textContent.trim()) faults.push("no heading");
        return faults;
    }, HARMFUL);
    same(found, [], `${where}: what is no part of the page`);
    const text = await visitor.page.locator("main").innerText();
    const nonsense = /.{0,80}(\bundefined\b|\bNaN\b|\[object |Something in this page failed).{0,80}/.exec(text);
    // A form whose schema is nonsense proposes its example as well as it can.
    const isForm = /#\/playground/.test(visitor.page.url()) && nonsense?.[1] === "[object ";
    holds(nonsense === null || isForm, `${where}: ${nonsense?.[0]}; ${await visitor.seen()}`);
}

// Opens everything that is closed, and waits until it has its content.
async function opensAll(visitor) {
    const { page } = visitor;
    await page.locator("main details").evaluateAll((all) => all.forEach((it) => (it.open = true)));
    await visitor.reads(/^(?![^]*Asking the server)/);
    const more = page.getByRole("button", { name: /^(show all|Show \d+ more)/i });
    // Each goes when there is no more; a page of very many logs has as many buttons.
    for (let clicks = 0; clicks < CLICKS_MAX && (await more.count()) > 0; clicks += 1) await more.first().click();
}

// --- what a chain can carry

await visit("hostile extra data", url, {}, async (visitor) => {
    await visitor.opens();
    await harmless(visitor, "overview");
    for (const { number, extra } of blocks) {
        await visitor.goes(`#/block/${number}`);
        await visitor.sees("svg.bars");
        await opensAll(visitor);
        await harmless(visitor, `block ${number}`);
        const expected = extra.replace(new RegExp(HARMFUL, "gu"), (it) => {
            const digits = it.codePointAt(0).toString(16);
            return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits.padStart(4, "0")}`;
        });
        const text = await visitor.page.locator("main").innerText();
        // Text with many characters that control is not shown as text at all: its hex always is.
        holds(text.includes(expected) || /\u0007/.test(extra), `${JSON.stringify(expected)} is not shown: ${await visitor.seen()}`);
        const { extraData } = await ask(url, "eth_getBlockByNumber", hex(number), false);
        holds(text.includes(extraData), `${extraData} is not shown: ${await visitor.seen()}`);
    }
    await visitor.pictures("hostile-block");
});

await visit(`hostile transactions: ${Object.keys(transactions).join(", ")}`, url, {}, async (visitor) => {
    await visitor.opens();
    for (const [kind, hash] of Object.entries(transactions)) {
        await visitor.goes(`#/tx/${hash}`);
        await harmless(visitor, kind);
        await opensAll(visitor);
        await harmless(visitor, `${kind}, opened`);
        if (kind === "markup as call data") {
            await visitor.reads(/<img src=x onerror=alert\(1\)><script>alert\(1\)<\/script>/);
            await visitor.pictures("hostile-transaction");
        }
        if (kind === "text from right to left as call data") await visitor.reads(/invoice\\u202egnp\.exe/);
        if (kind === "huge call data") await visitor.reads(new RegExp((hugeBytes * 2 + 2).toLocaleString("en")));
        if (kind === "very many logs") await visitor.reads(/255/);
        if (kind === "a transfer of nothing at all") await visitor.reads(/event not known/);
        if (kind === "a transfer of the largest amount") await visitor.reads(/ERC-20[^]*Transfer/);
    }
});

await visit("addresses of a hostile chain", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    for (const address of [contract, from]) {
        await visitor.goes(`#/address/${address}`);
        await visitor.reads(/\d+ logs? found/);
        for (let pages = 0; pages < 20; pages += 1) {
            await harmless(visitor, address);
            const more = page.getByRole("button", { name: "Older logs" });
            if (!(await more.isVisible())) break;
            const before = await page.locator("main tbody tr").count();
            await more.click();
            await visitor.sees(`main tbody tr:nth-child(${before + 1})`);
        }
    }
});

await visit("hostile addresses of pages", url, {}, async (visitor) => {
    await visitor.opens();
    for (const page of ["search", "block", "tx", "address", "playground", "no"]) {
        for (const text of [markup, "javascript:alert(1)", "\u202egnp.exe", "\u{e0041}\u200b\u0000", "x".repeat(20_000), "__proto__", "constructor/prototype"]) {
            await visitor.goes(`#/${page}/${encodeURIComponent(text)}`);
            await harmless(visitor, `${page} ${text.slice(0, 40)}`);
        }
    }
});

// --- what no chain can carry

const POISONS = {
    markup,
    "a script as an address": "javascript:alert(1)",
    "right to left": "\u202e\u2066abc\u0000\u200b\u{e0041}",
    "no text": "",
    "no bytes": "0x",
    "an odd digit": "0xf",
    "a number that is too large": `0x${"f".repeat(2000)}`,
    "a negative number": -1,
    "a number that is none": 1e300,
    null: null,
    "a list": [["x"]],
    "an object": { __proto__: null, toString: 1, length: -1 },
    "a long text": "\u00e4<b>".repeat(2_000),
};

// The same value with every leaf but some exchanged.
function poisoned(value, poison, keeps, name = "") {
    if (keeps.includes(name)) return value;
    if (Array.isArray(value)) return value.map((it) => poisoned(it, poison, keeps));
    if (value !== null && typeof value === "object") {
        return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, poisoned(it, poison, keeps, key)]));
    }
    return poison;
}

const ROUTES = ["#/", `#/block/${blocks[1].number}`, `#/tx/${transactions["markup in topics and data"]}`, `#/address/${contract}`, "#/playground/eth_getLogs"];
// Whether the values by which a page knows that this is a block at all are left as they are.
const KEPT = { "but for names": ["hash", "number", "blockNumber", "logIndex", "transactionIndex", "name", "$ref"], everywhere: [] };

for (const [extent, keeps] of Object.entries(KEPT)) {
    await visit(`answers of nonsense, ${extent}: ${Object.keys(POISONS).join(", ")}`, url, { allows: [/Failed to load resource/] }, async (visitor) => {
        const { page } = visitor;
        let poison = null;
        const poisons = (answer) => {
            if (Array.isArray(answer)) return answer.map(poisons);
            if ("error" in answer) return { ...answer, error: { code: 4444, message: poison, data: { held: [[poison, poison], { first: 0, last: poison }] } } };
            if ("params" in answer) return { ...answer, params: { ...answer.params, result: poisoned(answer.params.result, poison, keeps) } };
            return { ...answer, result: poisoned(answer.result, poison, keeps) };
        };
        await page.route("**/*", async (route) => {
            const request = route.request();
            const isJson = request.method() === "POST" || request.url().endsWith(".json");
            if (!isJson) return route.continue();
            const response = await route.fetch();
            const answer = await response.json();
            return route.fulfill({ response, json: request.method() === "POST" ? poisons(answer) : poisoned(answer, poison, keeps) });
        });
        await visitor.opens("#/no/such/page");
        for (const [kind, value] of Object.entries(POISONS)) {
            poison = value;
            for (const route of ROUTES) {
                await visitor.goes(route);
                await harmless(visitor, `${kind}, ${extent}, at ${route}`);
            }
        }
    });
}

await visit("refusals of nonsense", url, { allows: [/Failed to load resource/] }, async (visitor) => {
    const { page } = visitor;
    let error = null;
    await page.route("**/*", (route) => (route.request().method() === "POST" ? route.fulfill({ json: { jsonrpc: "2.0", id: null, error } }) : route.continue()));
    await visitor.opens("#/no/such/page");
    let asked = 0;
    for (const message of Object.values(POISONS)) {
        for (const code of [-32000, 4444, "x"]) {
            error = { code, message, data: { held: message } };
            await visitor.goes(`#/block/${(asked += 1)}`);
            await harmless(visitor, `refused with ${code} ${JSON.stringify(message)?.slice(0, 40)}`);
        }
    }
});

await visit("heads of nonsense", url, {}, async (visitor) => {
    const { page } = visitor;
    await page.routeWebSocket(/.*/, (socket) => {
        const server = socket.connectToServer();
        server.onMessage((text) => {
            socket.send(text);
            if (JSON.parse(text).id !== 1) return;
            const head = { number: hex(tip + 1), hash: `0x${"1".repeat(64)}`, parentHash: `0x${"2".repeat(64)}` };
            for (const poison of Object.values(POISONS)) {
                for (const result of [poison, { ...head, timestamp: poison, gasUsed: poison, gasLimit: poison, transactions: poison, baseFeePerGas: poison }, poisoned(head, poison, [])]) {
                    socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params: { subscription: "0x1", result } }));
                }
            }
            for (const other of ["", "null", "[]", "{", "{\"params\":null,\"method\":\"eth_subscription\"}"]) socket.send(other);
            socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params: { subscription: "0x1", result: { ...head, number: hex(tip + 7777) } } }));
        });
    });
    await visitor.opens();
    await visitor.reads(new RegExp((tip + 7777).toLocaleString("en")));
    await harmless(visitor, "overview");
    await visitor.goes(`#/block/${tip}`);
    await harmless(visitor, "block");
});

await finish();
