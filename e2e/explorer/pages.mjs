// Every page of a chain that is wholly held, and every way to search it: node pages.mjs URL

import { ask, hex } from "../nodes/ask.mjs";
import { findings, fits, reachable } from "./accessible.mjs";
import { check, finish, holds, same, until, visit } from "./browser.mjs";
import { shownBy, shows } from "./shown.mjs";

const [url] = process.argv.slice(2);

const block = (which, isFull = true) => ask(url, /^0x.{64}$/.test(which) ? "eth_getBlockByHash" : "eth_getBlockByNumber", which, isFull);
const tip = await block("latest");
const crowd = await block(hex(20), false);
const ABSENT_HASH = `0x${"ab".repeat(32)}`;
const ABSENT_NUMBER = Number(tip.number) + 1000;
// One block of every fork, one with uncles or none, an empty one, and the largest.
const NUMBERS = [0, 8, 9, 20, 24, 45, 53, 65, 73, 85, 97, 113, 137, Number(tip.number)];

// One transaction for each of these, from anywhere in the chain.
const KINDS = {
    "before receipts had a status": (tx, receipt) => receipt.root !== undefined,
    "of type 0": (tx) => tx.type === "0x0",
    "of type 1 with an access list": (tx) => tx.type === "0x1" && tx.accessList.length > 0,
    "of type 2": (tx) => tx.type === "0x2",
    "of type 3 with blobs": (tx) => tx.type === "0x3",
    "of type 4 with authorizations": (tx) => tx.type === "0x4" && tx.authorizationList.length > 0,
    "that creates a contract": (tx) => tx.to === null,
    "that failed": (tx, receipt) => receipt.status === "0x0",
    "with logs of four topics": (tx, receipt) => receipt.logs.some((log) => log.topics.length === 4),
    "with a log without topics": (tx, receipt) => receipt.logs.some((log) => log.topics.length === 0),
};
const found = {};
for (let number = Number(tip.number); number > 0 && Object.keys(found).length < Object.keys(KINDS).length; number -= 1) {
    const [full, receipts] = [await block(hex(number)), await ask(url, "eth_getBlockReceipts", hex(number))];
    full.transactions.forEach((tx, index) => {
        for (const [kind, is] of Object.entries(KINDS)) if (!(kind in found) && is(tx, receipts[index])) found[kind] = [tx, receipts[index]];
    });
}
const logs = await ask(url, "eth_getLogs", { fromBlock: "0x0", toBlock: "latest" });
const logsOf = {};
for (const log of logs) (logsOf[log.address] ??= []).push(log);
const busiest = Object.entries(logsOf).sort(([, one], [, other]) => other.length - one.length)[0];

const ROUTES = {
    overview: "#/",
    block: `#/block/${Number(tip.number)}`,
    "block-crowded": "#/block/20",
    transaction: `#/tx/${found["of type 2"][0].hash}`,
    "transaction-blobs": `#/tx/${found["of type 3 with blobs"][0].hash}`,
    address: `#/address/${busiest[0]}`,
    playground: "#/playground",
    "playground-method": "#/playground/eth_getBlockByNumber",
    absent: `#/block/${ABSENT_NUMBER}`,
    "absent-hash": `#/tx/${ABSENT_HASH}`,
    nothing: "#/search/nothing%20of%20the%20kind",
    unknown: "#/no/such/page",
};

// --- pages

await visit("overview", url, {}, async (visitor) => {
    await visitor.opens();
    await visitor.sees("#way[data-way=live][data-tip=archive]", { hasText: /^archive, newest block \d+ (d|y) old$/ });
    const stat = await (await fetch(`${url}/stat.json`)).json();
    const shown = await shownBy(visitor.page);
    shows(shown, { tip: stat.tip.number, finalized: stat.finalized.number, transactions: stat.transactions, logs: stat.logs, network: stat.network });
    const rows = await visitor.page.locator("table tbody tr").count();
    holds(rows >= 10, `${rows} newest blocks`);
    for (let at = 0; at < rows; at += 1) holds(shown.text.includes(`#/block/${Number(tip.number) - at}`), `block ${Number(tip.number) - at} is not listed`);
    const pictures = await visitor.page.locator("main svg[role=img]").evaluateAll((all) => all.map((it) => it.getAttribute("aria-label")));
    for (const picture of [/^Blocks held/, /^Bytes by part/, /^Requests a second/, /^Round trip/]) {
        holds(pictures.some((it) => picture.test(it)), `no picture ${picture} among ${JSON.stringify(pictures)}`);
    }
    // Numbers that move are asked for again by themselves.
    const before = await visitor.page.locator("svg[aria-label^='Requests a second'] path.line").getAttribute("d");
    await until("the chart goes on", async () => (await visitor.page.locator("svg[aria-label^='Requests a second'] path.line").getAttribute("d")) !== before, () => visitor.seen());
});

// The clock of these pages goes on when they are told to, and what is asked for is counted.
async function counts(visitor, pattern) {
    const asked = [];
    await visitor.page.clock.install();
    visitor.page.on("request", (request) => {
        if (pattern.test(`${request.url()} ${request.postData() ?? ""}`)) asked.push(request);
    });
    return asked;
}

// Answers of this page wait until they are let go.
async function holdsBack(page, pattern) {
    let release;
    const released = new Promise((resolve) => (release = resolve));
    await page.route(pattern, async (route) => {
        await released;
        return route.continue();
    });
    return release;
}

// The page's clock runs ahead of its socket, which it may close before it is connected.
const runsAhead = { allows: [/WebSocket is closed before the connection is established/] };

await visit("an overview that is left before it came asks for nothing more", url, runsAhead, async (visitor) => {
    const { page } = visitor;
    const asked = await counts(visitor, /stat\.json/);
    const release = await holdsBack(page, "**/stat.json");
    await page.goto(url);
    await until("the overview asks", () => asked.length > 0);
    await visitor.goes("#/no/such/page");
    const came = page.waitForResponse("**/stat.json");
    release();
    await (await came).finished();
    // What the page does with it is done when a later page is shown. These ask for nothing.
    await visitor.goes("#/no/other/page");
    const before = asked.length;
    await page.clock.runFor(20_000);
    await visitor.goes("#/no/third/page");
    same(asked.length - before, 0, "looks after the overview was left");
});

await visit("a server that is slow is not asked again before it answered", url, runsAhead, async (visitor) => {
    const { page } = visitor;
    const asked = await counts(visitor, /eth_blockNumber/);
    await visitor.opens();
    const release = await holdsBack(page, "**/stat.json");
    const before = asked.length;
    // Less than what an answer may take.
    await page.clock.runFor(10_000);
    await until("it is asked", () => asked.length > before);
    await page.clock.runFor(10_000);
    same(asked.length - before, 1, "questions while the first waits");
    const came = page.waitForResponse("**/stat.json");
    release();
    await (await came).finished();
    await page.clock.runFor(10_000);
    await until("it is asked again", () => asked.length > before + 1);
});

await visit("the focus and a selection stay where they are while numbers move", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    const focused = () => page.evaluate(() => `${document.activeElement.tagName} ${document.activeElement.getAttribute("href")}`);
    const looks = async () => {
        for (let count = 0; count < 2; count += 1) await page.waitForResponse("**/stat.json");
        const before = await page.locator("svg[aria-label^='Requests a second'] path.line").getAttribute("d");
        await until("they move", async () => (await page.locator("svg[aria-label^='Requests a second'] path.line").getAttribute("d")) !== before);
    };
    const number = Number(tip.number);
    for (const selector of [`.tile a[href='#/block/${number}']`, `tbody a[href='#/block/${number - 3}']`]) {
        await page.locator(selector).first().focus();
        const before = await focused();
        await looks();
        same(await focused(), before, `the focus after looks, at ${selector}`);
    }
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("main section p.dim")));
    const selected = await page.evaluate(() => String(getSelection()));
    holds(selected.length > 20, `selected: ${selected}`);
    await looks();
    same(await page.evaluate(() => String(getSelection())), selected, "the selection");
});

await visit("buttons that replace themselves leave the focus in their place", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens("#/block/20");
    await visitor.sees("svg.bars");
    const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    for (const [name, expected] of [["Next page", "Next page"], [/^4: rows/, "4: rows 150 to 199"], ["Previous page", "Previous page"], [/^1: rows/, "1: rows 0 to 49"]]) {
        await page.getByRole("button", { name }).focus();
        await page.keyboard.press("Enter");
        same(await focused(), expected, `the focus after ${name}`);
    }
    // One that leads no further hands it on.
    await page.getByRole("button", { name: /^3: rows/ }).or(page.getByRole("button", { name: /^4: rows/ })).first().click();
    await page.getByRole("button", { name: "Next page" }).focus();
    await page.keyboard.press("Enter");
    holds(/^4: rows|Next page/.test(await focused()), `the focus at the last page: ${await focused()}`);
    await visitor.opens("#/block/20");
    await page.getByRole("button", { name: /^show all/ }).first().focus();
    await page.keyboard.press("Enter");
    holds(await page.evaluate(() => document.activeElement !== document.body && document.querySelector("main").contains(document.activeElement)), "the focus is lost");
});

await visit(`blocks of every fork, every field: ${NUMBERS.join(", ")}`, url, {}, async (visitor) => {
    await visitor.opens();
    for (const number of NUMBERS) {
        const { transactions, ...fields } = await block(hex(number));
        await visitor.goes(`#/block/${number}`);
        same(await visitor.page.title(), `Block ${number} · sample`, "title");
        // What is shown of receipts comes later.
        if (transactions.length > 0) await visitor.sees("svg.bars");
        if (fields.uncles.length > 0) await visitor.sees("main table", { hasText: "Uncles" });
        const shown = await shownBy(visitor.page);
        try {
            shows(shown, fields);
            for (const { hash } of transactions.slice(0, 50)) holds(shown.text.includes(`#/tx/${hash}`), `${hash} is not listed`);
        } catch (error) {
            throw new Error(`block ${number}: ${error.message}`);
        }
    }
});

await visit("a block by hash and by tag", url, {}, async (visitor) => {
    for (const [name, number] of [[crowd.hash, 20], [`0X${crowd.hash.slice(2).toUpperCase()}`, 20], ["0X14", 20], ["latest", Number(tip.number)], ["finalized", Number(tip.number)], ["safe", Number(tip.number)], ["earliest", 0]]) {
        await visitor.opens(`#/block/${name}`);
        await visitor.sees("h1", { hasText: new RegExp(`^Block ${number}$`) });
    }
    await visitor.opens("#/block/pending");
    await visitor.reads(/no pending block/i);
});

await visit("a block of 200 transactions is paged", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens("#/block/20");
    const shown = new Set();
    for (;;) {
        const links = await page.locator("table tbody a[href^='#/tx/']").evaluateAll((all) => all.map((it) => it.getAttribute("href").slice(5)));
        holds(links.length <= 100, `${links.length} rows at once`);
        links.forEach((it) => shown.add(it));
        const next = page.getByRole("button", { name: "Next page" });
        if (await next.isDisabled()) break;
        await next.click();
        await until("another page of rows", async () => (await page.locator("table tbody a[href^='#/tx/']").first().getAttribute("href")).slice(5) !== links[0], () => visitor.seen());
    }
    same([...shown], crowd.transactions, "transactions on all pages");
});

// From Amsterdam on a header's gas is not the sum of what its transactions paid.
await visit("what is burnt is the base fee of the gas that was paid, in every fork", url, {}, async (visitor) => {
    const { page } = visitor;
    const rowOf = async (name) => (await page.locator("main dl.fields > div").filter({ has: page.locator(`dt:text-is("${name}")`) }).locator("dd").allInnerTexts()).join();
    const wei = (text) => {
        const [, digits, fraction = "", unit] = /^([\d,]+)(?:\.(\d+))? (ETH|gwei|wei)$/.exec(text) ?? [];
        return BigInt((digits?.replaceAll(",", "") ?? "") + fraction.padEnd({ ETH: 18, gwei: 9, wei: 0 }[unit] ?? 0, "0"));
    };
    const differing = [];
    await visitor.opens("#/no/such/page");
    for (const number of [85, 97, 113, 157]) {
        const { baseFeePerGas, gasUsed } = await block(hex(number), false);
        const receipts = await ask(url, "eth_getBlockReceipts", hex(number));
        const sum = (of) => receipts.reduce((total, it) => total + of(it), 0n);
        const paid = sum((it) => BigInt(it.gasUsed));
        if (paid !== BigInt(gasUsed)) differing.push(number);
        await visitor.goes(`#/block/${number}`);
        await visitor.sees("svg.bars");
        same(String(wei(await rowOf("Burnt"))), String(paid * BigInt(baseFeePerGas)), `block ${number}: burnt`);
        const tips = sum((it) => BigInt(it.gasUsed) * (BigInt(it.effectiveGasPrice) - BigInt(baseFeePerGas)));
        same(String(wei(await rowOf("Tips"))), String(tips), `block ${number}: tips`);
    }
    holds(differing.includes(157), `header and receipts differ in ${differing}`);
    // Without receipts it is not guessed.
    const error = { code: 4444, message: "receipts not found" };
    await page.route("**/*", async (route) => {
        const asked = route.request().method() === "POST" ? JSON.parse(route.request().postData()) : null;
        return asked?.method === "eth_getBlockReceipts" ? route.fulfill({ json: { jsonrpc: "2.0", id: asked.id, error } }) : route.continue();
    });
    for (const [number, isKnown] of [[85, true], [157, false]]) {
        const { baseFeePerGas, gasUsed } = await block(hex(number), false);
        await visitor.goes(`#/block/${number}`);
        await visitor.reads(/receipts are not held here/);
        const shown = await rowOf("Burnt");
        same(isKnown ? String(wei(shown)) : shown, isKnown ? String(BigInt(baseFeePerGas) * BigInt(gasUsed)) : "", `block ${number} without receipts: burnt`);
    }
    return `of blocks ${differing} the header says another gas`;
});

await visit("receipts that are not the block's are not shown, and that is said", url, {}, async (visitor) => {
    const { page } = visitor;
    let change = null;
    await page.route("**/*", async (route) => {
        const asked = route.request().method() === "POST" ? JSON.parse(route.request().postData()) : null;
        if (asked?.method !== "eth_getBlockReceipts") return route.continue();
        const response = await route.fetch();
        const answer = await response.json();
        return route.fulfill({ response, json: { ...answer, result: change(answer.result) } });
    });
    await visitor.opens("#/no/such/page");
    for (const [what, changes, said] of [
        ["null", () => null, /receipts of this block are not there/],
        ["none", () => [], /not the receipts of this block/],
        ["one less", (all) => all.slice(1), /not the receipts of this block/],
        ["another order", (all) => all.toReversed(), /not the receipts of this block/],
        ["one that is none", (all) => [null, ...all.slice(1)], /not the receipts of this block/],
    ]) {
        change = changes;
        await visitor.goes("#/block/85");
        const text = await visitor.reads(said);
        // What the header says is shown, and nothing waits.
        holds(/Burnt\s+[\d.,]*[1-9]/.test(text) && !/Fees paid|Failed|…\s*$/m.test(text), `${what}: ${text}`);
        same([...new Set(await page.locator("main table tbody tr td:last-child").allInnerTexts())].includes("…"), false, `${what}: a status that is awaited`);
        await visitor.goes("#/no/such/page");
    }
});

for (const kind of Object.keys(KINDS)) await check(`the chain has a transaction ${kind}`, () => holds(kind in found, "there is none"));
await visit(`transactions ${Object.keys(found).join(", ")}: every field`, url, {}, async (visitor) => {
    await visitor.opens();
    for (const [kind, [tx, receipt]] of Object.entries(found)) {
        await visitor.goes(`#/tx/${tx.hash}`);
        const shown = await shownBy(visitor.page);
        try {
            shows(shown, tx);
            shows(shown, receipt, { hidden: ["removed"] });
        } catch (error) {
            throw new Error(`a transaction ${kind}: ${error.message}; ${await visitor.seen()}`);
        }
    }
});

// --- raw bytes

const opened = async (visitor, title) => {
    await visitor.page.locator("summary", { hasText: title }).click();
    const text = await visitor.sees(`details:has(summary:text-is("${title}")) pre`);
    return (await text.textContent()).trim();
};

await visit("raw JSON and RLP of a block are the server's", url, {}, async (visitor) => {
    await visitor.opens("#/block/85");
    same(JSON.parse(await opened(visitor, "JSON of the block")), await block(hex(85)), "JSON");
    same(await opened(visitor, "RLP of the header"), await ask(url, "debug_getRawHeader", hex(85)), "header");
    same(await opened(visitor, "RLP of the block"), await ask(url, "debug_getRawBlock", hex(85)), "block");
    same(await opened(visitor, "RLP of its receipts"), (await ask(url, "debug_getRawReceipts", hex(85))).join("\n"), "receipts");
});

// --- search

// The address that a text leads to, and what its heading says.
const SEARCHES = [
    ["20", "#/block/20", /^Block 20$/],
    [" 0x14 ", "#/block/20", /^Block 20$/],
    ["0X14", "#/block/20", /^Block 20$/],
    [`${url}/#/block/20`, "#/block/20", /^Block 20$/],
    ["0xffffffffffffffff", "#/block/18446744073709551615", /^Block 18,446,744,073,709,551,615$/],
    [crowd.hash, `#/block/${crowd.hash}`, /^Block 20$/],
    [crowd.hash.toUpperCase(), `#/block/${crowd.hash}`, /^Block 20$/],
    [crowd.transactions[0], `#/tx/${crowd.transactions[0]}`, /Transaction/],
    [crowd.transactions[1].slice(2), `#/tx/${crowd.transactions[1]}`, /Transaction/],
    [busiest[0], `#/address/${busiest[0]}`, /Address/],
    [`0x${busiest[0].slice(2).toUpperCase()}`, `#/address/${busiest[0]}`, /Address/],
    ["latest", "#/block/latest", new RegExp(`^Block ${Number(tip.number)}$`)],
    ["Earliest", "#/block/earliest", /^Block 0$/],
    ["finalized", "#/block/finalized", /^Block/],
    ["safe", "#/block/safe", /^Block/],
    ["pending", "#/block/pending", /pending/],
];

await visit("search by number, hash, address and tag", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    for (const [text, route, heading] of SEARCHES) {
        await page.keyboard.press("/");
        await page.keyboard.type(text);
        await page.keyboard.press("Enter");
        await until(`search for ${text} leads to ${route}`, async () => (await page.evaluate(() => location.hash)) === route, () => visitor.seen());
        await visitor.settled();
        await visitor.sees("h1", { hasText: heading });
        // The next key is a shortcut again.
        await page.locator("h1").first().click();
    }
    // The way back is by what was looked at, not by what was typed.
    await page.goBack();
    await until("the page before", async () => (await page.evaluate(() => location.hash)) === "#/block/safe", () => visitor.seen());
    await visitor.settled();
});

await visit("an address whose capitals are no checksum of it is remarked on", url, {}, async (visitor) => {
    const mixed = `0x${[...busiest[0].slice(2)].map((it, at) => (at % 2 === 0 ? it.toUpperCase() : it)).join("")}`;
    await visitor.opens(`#/search/${mixed}`);
    await visitor.reads(/capitals of this address are not its checksum[^]*[1-9]\d* logs? found/);
    await visitor.opens(`#/address/${busiest[0]}`);
    holds(!/checksum/.test(await visitor.reads(/logs? found/)), "small letters are no checksum");
});

// What is not there, each with something to do next.
const ABSENCES = [
    [String(ABSENT_NUMBER), /does not exist yet/],
    [`0x${ABSENT_NUMBER.toString(16)}`, /does not exist yet/],
    [ABSENT_HASH, /was not found/],
    ["0x1234567890123456789012345", /no number, hash, address or tag/],
    ["cord and knot", /no number, hash, address or tag/],
    ["99999999999999999999999", /no number, hash, address or tag|no block is named so/i],
    ["<script>alert(1)</script>", /<script>alert\(1\)<\/script>/],
    ["\u202etxet", /\\u202e/],
    ["%", /no number, hash, address or tag/],
    ["../../x#y?z&", /no number, hash, address or tag/],
];

await visit("what is absent is said, with what to do next", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    for (const [text, answer] of ABSENCES) {
        await page.getByRole("textbox", { name: /search/i }).fill(text);
        await page.getByRole("button", { name: "Search" }).click();
        await visitor.settled();
        await visitor.reads(answer);
        const ways = await page.locator("main a, main li, main button").count();
        holds(ways > 0, `nothing to do next: ${await visitor.seen()}`);
    }
});

await visit("addresses that were typed wrongly are answered", url, {}, async (visitor) => {
    await visitor.opens();
    for (const route of ["#/nothing", "#/block/", "#/block/x", "#/block/-1", "#/block/0x", "#/block/1e3", "#/tx/", "#/tx/0x12", "#/tx/latest", "#/address/", "#/address/0x12",
        "#/block/%E0%A4%A", "#/search/", "#/playground/no_method", "#/constructor", "#/__proto__", "#//", "#x", `#/block/${"9".repeat(5000)}`]) {
        await visitor.goes(route);
        const text = await visitor.page.locator("main").innerText();
        holds(text.trim().length > 20, `${route} shows ${JSON.stringify(text)}`);
        holds(!/undefined|NaN|\[object/.test(text), `${route} shows ${text}`);
    }
});

await visit("values and refusals of megabytes are cut before they are shown", url, { allows: [/Failed to load resource/] }, async (visitor) => {
    const { page } = visitor;
    const long = "\u202e".repeat(1_000_000);
    await page.route("**/*", async (route) => {
        const asked = route.request().method() === "POST" ? JSON.parse(route.request().postData()) : null;
        if (asked?.method === "eth_chainId") return route.fulfill({ status: 401, json: { jsonrpc: "2.0", id: null, error: { code: -32001, message: long } } });
        if (asked?.method !== "eth_getBlockByNumber") return route.continue();
        const response = await route.fetch();
        const answer = await response.json();
        const values = Object.fromEntries(["timestamp", "miner", "extraData", "stateRoot", "gasUsed"].map((name) => [name, long]));
        return route.fulfill({ response, json: { ...answer, result: { ...answer.result, ...values } } });
    });
    await visitor.opens("#/block/20");
    await visitor.reads(/The server says:/, ".key-asked");
    const text = await page.locator("body").innerText();
    holds(/\\u202e… s since 1970/.test(text), text.slice(0, 3_000));
    holds(text.length < 40_000, `${text.length} characters`);
});

// --- nothing at all

await visit("a server that holds nothing says so on every page", url, {}, async (visitor) => {
    const { page } = visitor;
    const stat = await (await fetch(`${url}/stat.json`)).json();
    const nothing = { ...stat, blocks: 0, transactions: 0, logs: 0, tip: null, finalized: null, coverage: [], coverage_receipts: [], segment_count: 0 };
    await page.route("**/stat.json", (route) => route.fulfill({ json: nothing }));
    // As a server answers whose folder is empty: the number of its newest block is 0 nevertheless.
    const results = { eth_blockNumber: "0x0", eth_chainId: "0x1", web3_clientVersion: "quipu" };
    const answer = ({ id, method }) => ({ jsonrpc: "2.0", id, result: results[method] ?? null });
    await page.route("**/*", (route) => {
        if (route.request().method() !== "POST") return route.fallback();
        const asked = JSON.parse(route.request().postData());
        return route.fulfill({ json: Array.isArray(asked) ? asked.map(answer) : answer(asked) });
    });
    await page.routeWebSocket(/.*/, (socket) => socket.close());
    await visitor.opens();
    await visitor.reads(/Tip\s+–\s+no block yet[^]*No block is held yet/);
    for (const route of [ROUTES.address, ROUTES.transaction, `#/block/${ABSENT_HASH}`, "#/block/0", "#/block/latest"]) {
        await visitor.goes(route);
        const text = await visitor.reads(/[nN]o block (is held )?yet/);
        holds(!/question itself|was looked at|newest block/.test(text), `${route}: ${text}`);
    }
});

// --- everybody

for (const [scheme, isPhone] of [["light", false], ["dark", false], ["light", true]]) {
    const look = isPhone ? "phone" : scheme;
    await visit(isPhone ? "every page fits a phone" : `axe-core finds nothing, ${look}`, url, { scheme, isPhone }, async (visitor) => {
        const found = [];
        await visitor.opens("#/block/1");
        for (const [name, route] of Object.entries(ROUTES)) {
            await visitor.goes(route);
            if (name === "overview") await visitor.sees("main table");
            if (/^block/.test(name)) await visitor.sees("svg.bars");
            // On a phone the colours are the same, and the room is not.
            if (isPhone) await fits(visitor, name);
            else found.push(...(await findings(visitor, name)));
            await visitor.pictures(`${name}-${look}`);
        }
        holds(found.length === 0, [...new Set(found)].join("\n"));
        return `${Object.keys(ROUTES).length} pages`;
    });
}

await visit("the keyboard reaches everything", url, {}, async (visitor) => {
    await visitor.opens("#/block/1");
    let stops = 0;
    for (const route of [ROUTES.overview, "#/block/73", ROUTES.transaction, ROUTES.address, ROUTES["playground-method"]]) {
        await visitor.goes(route);
        stops += await reachable(visitor, route);
    }
    return `${stops} stops`;
});

await visit("by keyboard alone from the overview to a proof", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    // The first stop passes over what is above every page.
    await page.keyboard.press("Tab");
    same(await page.evaluate(() => document.activeElement.textContent), "Skip to content", "the first stop");
    await page.keyboard.press("Enter");
    same(await page.evaluate(() => document.activeElement.id), "main", "where it leads");
    const presses = async (pattern) => {
        for (let at = 0; at < 200; at += 1) {
            await page.keyboard.press("Tab");
            const name = await page.evaluate(() => `${document.activeElement.getAttribute("href") ?? ""} ${document.activeElement.textContent}`);
            if (pattern.test(name)) return page.keyboard.press("Enter");
        }
        throw new Error(`the keyboard does not come to ${pattern}; ${await visitor.seen()}`);
    };
    await presses(/#\/block\/159/);
    await until("the block", async () => (await page.evaluate(() => location.hash)) === "#/block/159", () => visitor.seen());
    await visitor.settled();
    // Who hears the page hears what it is.
    same(await page.evaluate(() => document.activeElement.tagName), "H1", "the focus on a new page");
    await presses(/#\/tx\//);
    await until("the transaction", async () => (await page.evaluate(() => location.hash)).startsWith("#/tx/"), () => visitor.seen());
    await visitor.settled();
    await presses(/Prove it/);
    await visitor.sees("[data-verdict=proven]");
});

await visit("a page that was left proves nothing under the next one's address", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens("#/block/20");
    await page.getByRole("button", { name: "Prove it" }).waitFor();
    const release = await holdsBack(page, (it) => it.pathname === "/");
    await page.evaluate(() => (location.hash = "#/block/21"));
    await visitor.sees("main .waiting");
    // What is inert is neither clicked nor reached by a key.
    same(await page.locator("main > .page").evaluate((it) => it.inert), true, "the page before is inert");
    release();
    await visitor.sees("h1", { hasText: /^Block 21$/ });
    await page.getByRole("button", { name: "Prove it" }).waitFor();
    same(await page.locator("main .waiting").count(), 0, "lines that tell of waiting");
});

for (const [what, speaks] of [["a socket that opens and answers nothing", () => {}], ["a socket that answers something else", (socket) => socket.send("{}")]]) {
    await visit(`beside ${what}, the tip is asked for`, url, {}, async (visitor) => {
        await visitor.page.routeWebSocket(/.*/, speaks);
        await visitor.opens("#/block/20");
        await visitor.sees("#way[data-way=polling]");
    });
}

await visit("a server that takes small batches alone is asked in small ones", url, {}, async (visitor) => {
    const { page } = visitor;
    let sizeMax = 0;
    // As the server refuses what is more than its --batch-items-max.
    await page.route("**/*", (route) => {
        const asked = route.request().method() === "POST" ? JSON.parse(route.request().postData()) : null;
        if (!Array.isArray(asked) || asked.length <= sizeMax) return route.continue();
        return route.fulfill({ json: asked.map(({ id }) => ({ jsonrpc: "2.0", id, error: { code: -32600, message: "batch too large" } })) });
    });
    for (sizeMax of [1, 5]) {
        await visitor.opens();
        const rows = await visitor.page.locator("main table tbody tr").count();
        holds(rows >= 10, `${rows} newest blocks`);
        await visitor.goes(ROUTES.transaction);
        await visitor.goes(ROUTES.address);
        await visitor.reads(/[1-9]\d* logs? found/);
    }
});

await visit("a chain that is shorter than before has lost the blocks above", url, {}, async (visitor) => {
    const { page } = visitor;
    const number = Number(tip.number);
    let socket = null;
    await page.routeWebSocket(/.*/, (it) => {
        socket = it;
        it.onMessage((text) => it.send(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(text).id, result: JSON.parse(text).id === 1 ? "0x1" : tip })));
    });
    let isGone = false;
    await page.route("**/*", (route) => {
        const asked = route.request().method() === "POST" ? JSON.parse(route.request().postData()) : null;
        return isGone && asked?.method === "eth_getHeaderByNumber" ? route.fulfill({ json: { jsonrpc: "2.0", id: asked.id, result: null } }) : route.continue();
    });
    const tells = (at, digit) => socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params: { subscription: "0x1",
        result: { number: hex(at), hash: `0x${digit.repeat(64)}`, parentHash: `0x${"f".repeat(64)}`, timestamp: tip.timestamp } } }));
    for (const route of [`#/block/${number}`, `#/tx/${tip.transactions[0].hash}`]) {
        isGone = false;
        await visitor.opens(route);
        await visitor.sees("#way[data-way=live]");
        // Whoever is behind may tell of an older head: the block is there nevertheless.
        const looked = page.waitForResponse((it) => it.request().postData()?.includes("eth_getHeaderByNumber") ?? false);
        tells(number - 10, "1");
        await (await looked).finished();
        holds(!/no longer in the server's chain/.test(await page.locator(".marks").first().innerText()), `${route}: gone without a reason`);
        isGone = true;
        tells(number - 20, "2");
        await visitor.sees(".marks", { hasText: "no longer in the server's chain" });
        // Until another one comes.
        tells(number, "3");
        await visitor.sees(".marks", { hasText: "replaced by a reorg" });
    }
});

// --- a server that is away, slow, or talks nonsense

await visit("a server that goes away is told of, and found again", url, { allows: [/Failed to load resource/, /ERR_/] }, async (visitor) => {
    const { page } = visitor;
    await visitor.opens("#/block/20");
    let isAway = true;
    await page.route("**/*", (route) => (isAway && route.request().method() === "POST" ? route.abort("connectionrefused") : route.continue()));
    await visitor.goes("#/block/21");
    await visitor.reads(/does not answer/);
    isAway = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await visitor.sees("h1", { hasText: /^Block 21$/ });
});

for (const [what, answer, said] of [
    ["an answer that is no JSON", { body: "<html>504</html>", contentType: "text/html" }, /could not be read/],
    ["an answer of another kind", { json: [1, 2] }, /could not be read/],
    ["HTTP 500", { status: 500, body: "" }, /500/],
    ["HTTP 429", { status: 429, headers: { "retry-after": "7" }, json: { jsonrpc: "2.0", id: null, error: { code: -32005, message: "slow <b>down</b>" } } }, /slow <b>down<\/b>\s+Wait 7 seconds/],
]) {
    await visit(`${what} is told of`, url, { allows: [/Failed to load resource/] }, async (visitor) => {
        await visitor.opens("#/block/20");
        await visitor.page.route("**/*", (route) => (route.request().method() === "POST" ? route.fulfill(answer) : route.continue()));
        await visitor.goes("#/block/21");
        await visitor.reads(said);
    });
}

await finish();
