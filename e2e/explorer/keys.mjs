// A server that lets in who has a key: node keys.mjs URL KEY
//
// The key is in this tab and in requests to the server: not in an address, not in the history, not in what
// other tabs or later visits can read.

import { readFileSync } from "node:fs";

import { finish, holds, same, until, visit } from "./browser.mjs";

const [url, key] = process.argv.slice(2);
// The browser itself tells of requests that are refused, and of sockets.
const allows = [/status of 401/, /WebSocket connection to .* failed/];

async function enters(visitor, text) {
    const input = visitor.page.getByLabel("Your API key");
    await input.waitFor();
    await input.fill(text);
    await input.press("Enter");
}

// What is kept anywhere in the browser, but for the tab's own storage.
const keptBy = (page) =>
    page.evaluate(async () => ({
        address: location.href,
        state: JSON.stringify(history.state),
        local: JSON.stringify({ ...localStorage }),
        cookies: document.cookie,
        name: window.name,
        referrer: document.referrer,
        databases: JSON.stringify(await indexedDB.databases()),
        caches: JSON.stringify(await caches.keys().catch(() => [])),
        // The address of a socket is no entry of the history; no browser lets a page set its headers.
        resources: performance
            .getEntriesByType("resource")
            .map((it) => it.name)
            .filter((it) => !it.startsWith("ws")),
        markup: document.documentElement.outerHTML,
    }));

async function isNowhere(visitor) {
    for (const [where, text] of Object.entries(await keptBy(visitor.page))) {
        holds(!JSON.stringify(text).includes(key), `the key is in ${where}: ${JSON.stringify(text).slice(0, 300)}`);
    }
    const asked = visitor.requests.filter((it) => it.includes(key) && !it.startsWith("ws"));
    same(asked, [], "requests with the key in their address");
}

await visit("a key is asked for, kept in the tab and nowhere else", url, { allows, tabs: 2 }, async (visitor) => {
    const { page } = visitor;
    await page.goto(`${url}/#/block/120`);
    await page.getByLabel("Your API key").waitFor();
    await visitor.pictures("key");
    same(await page.getByLabel("Your API key").getAttribute("type"), "password", "the field's type");
    same(await page.getByLabel("Your API key").evaluate((it) => it === document.activeElement), true, "the field has the focus");

    const asked = visitor.requests.length;
    await enters(visitor, "qk_ключ");
    await visitor.reads(/can be no key[^]*not sent/, "body");
    same(visitor.requests.slice(asked), [], "requests with what can be no key");
    await enters(visitor, "qk_wrong");
    await visitor.reads(/not let in/i, "body");
    await visitor.reads(/asks for a key/);
    same(await page.getByLabel("Your API key").evaluate((it) => it === document.activeElement), true, "the field has the focus again");
    await enters(visitor, key);
    await visitor.reads(/120/);
    await until("the page has the focus", () => page.evaluate(() => document.activeElement.tagName === "H1"), () => visitor.seen());
    await until("the prompt is gone", async () => (await page.getByLabel("Your API key").count()) === 0, () => visitor.seen());
    await until("the page follows", async () => visitor.requests.some((it) => it.startsWith("ws")), () => visitor.seen());
    same(await page.evaluate(() => location.hash), "#/block/120", "the page that was asked for");
    await isNowhere(visitor);

    await page.reload();
    await visitor.settled();
    await visitor.reads(/120/);
    same(await page.getByLabel("Your API key").count(), 0, "prompts after a reload");
    for (const route of ["#/", "#/playground", "#/block/latest"]) {
        await visitor.goes(route);
        same(await page.getByLabel("Your API key").count(), 0, `prompts at ${route}`);
    }
    await isNowhere(visitor);

    const other = await visitor.context.newPage();
    await other.goto(url);
    await other.getByLabel("Your API key").waitFor();
    await other.close();
});

await visit("a late refusal of the key before does not ask for another", url, { allows }, async (visitor) => {
    const { page } = visitor;
    const waiting = [];
    let release;
    const released = new Promise((resolve) => (release = resolve));
    await page.route("**/stat.json", async (route) => {
        const isLate = (await route.request().headerValue("authorization")) === null;
        if (isLate) waiting.push(route.request());
        if (isLate) await released;
        return route.continue();
    });
    await page.goto(`${url}/#/block/120`);
    await enters(visitor, key);
    // With the key it is asked for anew.
    await visitor.reads(/Block 120[^]*unanchored/);
    same([waiting.length, await page.getByLabel("Your API key").count()], [1, 0], "requests that wait, and prompts");
    const refused = page.waitForResponse((it) => it.url().endsWith("/stat.json") && it.status() === 401);
    release();
    await (await refused).finished();
    // What the page does with it is done when a later answer is shown.
    await visitor.goes("#/block/121");
    await visitor.reads(/Block 121/);
    same(await page.getByLabel("Your API key").count(), 0, "prompts after the late refusal");
});

await visit("what can be no key is not used where it is stored", url, { allows }, async (visitor) => {
    const { page } = visitor;
    await page.goto(`${url}/v1/qk_%D0%BA/#/block/120`);
    await page.getByLabel("Your API key").waitFor();
    same(await page.evaluate(() => [location.hash, sessionStorage.length]), ["#/block/120", 0], "the page and what is stored");
    await page.evaluate(() => sessionStorage.setItem("quipu-key", "qk_ключ"));
    await page.reload();
    await page.getByLabel("Your API key").waitFor();
    await visitor.reads(/asks for a key/i, "body");
});

await visit("the OpenRPC document is saved with the key", url, { allows }, async (visitor) => {
    const { page } = visitor;
    await page.goto(`${url}/v1/${key}/#/block/120`);
    await visitor.settled();
    const coming = page.waitForEvent("download");
    await page.getByRole("link", { name: "OpenRPC document" }).click();
    const saved = await coming;
    same(saved.suggestedFilename(), "openrpc.json", "the file's name");
    const document = JSON.parse(readFileSync(await saved.path(), "utf8"));
    holds(document.methods.some((it) => it.name === "eth_getLogs"), `no eth_getLogs in ${Object.keys(document)}`);
    same(await page.evaluate(() => location.href), `${url}/#/block/120`, "the address");
    same(visitor.requests.filter((it) => it.includes("openrpc.json")), [`${url}/openrpc.json`], "what the document was asked by");
});

await visit("a key in the path leaves the address at once", url, { allows }, async (visitor) => {
    const { page } = visitor;
    await page.goto(`${url}/v1/${key}/#/block/120`);
    await visitor.settled();
    await visitor.reads(/120/);
    same(await page.evaluate(() => location.href), `${url}/#/block/120`, "the address");
    const entries = await page.evaluate(() => history.length);
    // The empty tab and this page.
    holds(entries <= 2, `${entries} entries in the history`);
});

await visit("a wrong key in the path is told of", url, { allows }, async (visitor) => {
    await visitor.page.goto(`${url}/v1/qk_wrong/`);
    await visitor.reads(/key/i, "body");
    await visitor.page.getByLabel("Your API key").waitFor();
});

await visit("pages without their key say what to do", url, { allows }, async (visitor) => {
    for (const route of ["#/", "#/block/1", `#/tx/0x${"1".repeat(64)}`, `#/address/0x${"1".repeat(40)}`, "#/playground"]) {
        await visitor.page.goto("about:blank");
        await visitor.page.goto(`${url}/${route}`);
        await visitor.page.getByLabel("Your API key").waitFor();
    }
    same(visitor.requests.filter((it) => it.startsWith("ws")).length < 10, true, "few attempts to open a socket");
});

await finish();
