// How large the page is, and how fast: node sizes.mjs URL LARGE_URL
//
// LARGE_URL has blocks of 1,500 transactions. The size is asserted: it is the same everywhere. Times are
// printed: they are of this machine and what else runs on it. A large block has a bound that any machine keeps.

import { ask, hex } from "../nodes/ask.mjs";
import { finish, holds, until, visit } from "./browser.mjs";

const [url, large] = process.argv.slice(2);
const WEIGHT_MAX = 120_000;
const LARGE_MILLIS_MAX = 2_000;
const ROUNDS = 5;
const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];
const tx = (await ask(url, "eth_getBlockByNumber", hex(20), false)).transactions[0];
const ROUTES = ["#/", "#/block/20", `#/tx/${tx}`, `#/address/0x${"1".repeat(40)}`, "#/playground", "#/search/x"];

await visit(`all of it weighs less than ${WEIGHT_MAX / 1000} KB, compressed`, url, {}, async (visitor) => {
    const weights = {};
    visitor.page.on("requestfinished", async (request) => {
        const { pathname } = new URL(request.url());
        if (request.method() !== "GET" || !(pathname === "/" || pathname.startsWith("/explorer/"))) return;
        weights[pathname] = request.sizes().then((sizes) => sizes.responseBodySize);
    });
    await visitor.opens();
    for (const route of ROUTES.slice(1)) await visitor.goes(route);
    let sum = 0;
    for (const [path, weight] of Object.entries(weights)) {
        weights[path] = await weight;
        sum += weights[path];
    }
    const told = Object.entries(weights).map(([path, weight]) => `${path.split("/").at(-1) || "/"} ${weight}`);
    holds(told.length > 10 && Object.values(weights).every((it) => it > 0), `not every file was counted: ${told}`);
    holds(sum < WEIGHT_MAX, `${sum} bytes: ${told.join(", ")}`);
    return `${sum} bytes: ${told.join(", ")}`;
});

await visit("files are asked for again only when they change", url, {}, async (visitor) => {
    const { context, page } = visitor;
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    // What came over the wire: to the page itself, what it had and may keep looks as if it came again.
    const asked = new Map();
    const notes = (requestId, note) => asked.set(requestId, { ...asked.get(requestId), ...note });
    session.on("Network.requestWillBeSent", ({ requestId, request }) => notes(requestId, { method: request.method, path: new URL(request.url).pathname }));
    session.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode }) => notes(requestId, { status: statusCode }));
    session.on("Network.loadingFinished", ({ requestId }) => notes(requestId, { isWhole: true }));
    const files = () => [...asked.values()].filter((it) => it.method === "GET" && it.isWhole && it.status && (it.path === "/" || it.path.startsWith("/explorer/")));
    const told = () => files().map(({ path, status }) => `${path} ${status}`).join(", ");
    const kept = () => new Set(files().filter((it) => it.status === 304).map((it) => it.path));
    await visitor.opens("#/block/20");
    await page.reload({ waitUntil: "load" });
    await visitor.settled();
    await until("files of the first visit are asked for again", () => kept().size > 10, told);
    const had = new Set();
    for (const { path, status } of files()) {
        holds(!had.has(path) || status === 304, `${path} was sent again: ${told()}`);
        had.add(path);
    }
    return `${kept().size} files`;
});

await visit("first contentful paint", url, {}, async (visitor) => {
    const times = [];
    for (let round = 0; round < ROUNDS; round += 1) {
        await visitor.opens();
        const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
        await visitor.page.waitForFunction(paint);
        times.push(await visitor.page.evaluate(paint));
    }
    return `median ${Math.round(median(times))} ms of ${times.map((it) => Math.round(it)).join(", ")}`;
});

await visit("a block of 1,500 transactions", large, {}, async (visitor) => {
    const counts = [];
    for (const number of [1, 2, 3]) counts.push(Number(await ask(large, "eth_getBlockTransactionCountByNumber", hex(number))));
    const number = counts.indexOf(Math.max(...counts)) + 1;
    holds(counts[number - 1] >= 1500, `the largest block has ${counts[number - 1]} transactions`);
    const [shown, complete, longest] = [[], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
        await visitor.opens("#/no/such/page");
        // From the change of the address to the table, and to the chart of all receipts, as the page itself sees it.
        const times = await visitor.page.evaluate(async (hash) => {
            const main = document.querySelector("main");
            const stalls = [];
            const takes = (entries) => stalls.push(...entries.map((it) => it.duration));
            const watching = new PerformanceObserver((list) => takes(list.getEntries()));
            watching.observe({ type: "longtask" });
            const comes = (selector) =>
                new Promise((resolve) => {
                    const looks = () => {
                        if (!main.querySelector(selector)) return;
                        observer.disconnect();
                        resolve(performance.now());
                    };
                    const observer = new MutationObserver(looks);
                    observer.observe(main, { childList: true, subtree: true });
                });
            const begun = performance.now();
            const [table, chart] = [comes("tbody tr a[href^='#/tx/']"), comes("svg.bars")];
            location.hash = hash;
            const ended = [(await table) - begun, (await chart) - begun];
            // A task is told of when it has ended, and this goes on in the one that drew the chart.
            await new Promise((resolve) => setTimeout(() => setTimeout(resolve)));
            takes(watching.takeRecords());
            return [...ended, Math.max(0, ...stalls)];
        }, `#/block/${number}`);
        shown.push(times[0]);
        complete.push(times[1]);
        longest.push(times[2]);
    }
    await visitor.pictures("block-large");
    for (const [what, times] of [["shown", shown], ["with receipts", complete]]) {
        holds(median(times) < LARGE_MILLIS_MAX, `${what} after a median of ${Math.round(median(times))} ms of ${times.map(Math.round)}`);
    }
    const told = (values) => `${Math.round(median(values))} ms`;
    return `${counts[number - 1]} transactions, shown after ${told(shown)}, with receipts after ${told(complete)}, longest stall ${told(longest)} (medians of ${ROUNDS})`;
});

await finish();
