// A chain of which blocks 100 to 159 are held, and nothing says that they are canonical: node part.mjs URL

import { accessible } from "./accessible.mjs";
import { ask, hex } from "../nodes/ask.mjs";
import { finish, holds, same, visit } from "./browser.mjs";

const [url] = process.argv.slice(2);
const [FIRST, LAST] = [100, 159];

const absentHash = `0x${"cd".repeat(32)}`;

await visit("the overview shows what is held, and what is not", url, {}, async (visitor) => {
    await visitor.opens();
    const picture = await visitor.sees("svg[aria-label^='Blocks held']");
    holds(/60 blocks unanchored/.test(await picture.getAttribute("aria-label")), await picture.getAttribute("aria-label"));
    await visitor.reads(/unanchored[^]*60 blocks/);
    await visitor.reads(/finality is not known/);
    // The picture's ranges stand where their numbers are.
    const part = await picture.locator("rect.part").first().evaluate((it) => [it.x.baseVal.value, it.width.baseVal.value, it.ownerSVGElement.viewBox.baseVal.width]);
    holds(Math.abs(part[0] / part[2] - FIRST / (LAST + 1)) < 0.01 && Math.abs((part[0] + part[1]) / part[2] - 1) < 0.01, `the range lies at ${part}`);
    await accessible(visitor, "overview");
    await visitor.pictures("part");
});

await visit("small gaps and lost blocks are seen where they are", url, {}, async (visitor) => {
    const stat = await (await fetch(`${url}/stat.json`)).json();
    const range = (first, last, status) => ({ ...stat.coverage[0], first, last, status });
    const coverage = [range(0, 9_999_999, "anchored"), range(10_000_001, 19_999_999, "linked"), range(20_000_000, 20_000_000, "unanchored")];
    const gaps = [{ first: 10_000_000, last: 10_000_000 }];
    const lost = [{ first: 19_999_990, last: 19_999_999 }];
    await visitor.page.route("**/stat.json", (route) => route.fulfill({ json: { ...stat, coverage, gaps, lost } }));
    await visitor.opens();
    const picture = await visitor.sees("svg[aria-label^='Blocks held']");
    const parts = await picture.locator("rect.part").evaluateAll((all) => all.map((it) => [it.classList[1], it.x.baseVal.value, it.width.baseVal.value]));
    const told = JSON.stringify(parts);
    same(parts.map(([tone]) => tone), ["good", "accent", "warn", "empty", "bad"], "what is drawn, the last above the others");
    for (const [, x, width] of parts) holds(x >= 0 && width >= 4 && x + width <= 1000.01, `not seen, or beyond the picture: ${told}`);
    for (const [at, middle] of [[3, 500], [4, 998]]) holds(Math.abs(parts[at][1] - middle) < 5, `a range in another place: ${told}`);
    holds(/not held: 1 block[^]*cannot be read: 10 blocks/.test(await picture.getAttribute("aria-label")), await picture.getAttribute("aria-label"));
    await accessible(visitor, "gaps");
});

await visit("a file that cannot be read is named beside what is held", url, {}, async (visitor) => {
    const stat = await (await fetch(`${url}/stat.json`)).json();
    const lost = [{ first: 110, last: 120 }];
    const unreadable = [{ file: "blocks-0.segment", first: 110, last: 120, error: "there is no such file" }];
    const coverage = [{ ...stat.coverage[0], first: 100, last: 109 }, { ...stat.coverage[0], first: 121, last: 159 }];
    let shown = { ...stat, coverage, gaps: lost, lost, unreadable, unreadable_count: 1, blocks: 49 };
    await visitor.page.route("**/stat.json", (route) => route.fulfill({ json: shown }));
    await visitor.opens();
    const text = await visitor.reads(/1 file cannot be read[^]*blocks-0\.segment \(blocks 110 to 120\): there is no such file[^]*quipu doctor/);
    holds(/Blocks\s+49\s+from block 100, with 1 gap, 11 cannot be read/.test(text), text);
    holds(!/No block is held yet|no gap/.test(text), text);
    await visitor.pictures("unreadable");
    await accessible(visitor, "unreadable");
    // Where nothing is left, and where nothing is known.
    shown = { ...shown, coverage: [], gaps: [], blocks: 0, lost: [{ first: 100, last: 159 }] };
    await visitor.opens();
    holds(!/No block is held yet|no gap/.test(await visitor.reads(/No block can be read/)), await visitor.seen());
    shown = { error: "the data folder cannot be read", live: stat.live, follow: null };
    await visitor.opens();
    holds(!/No block is held yet|no gap/.test(await visitor.reads(/What is held is not known/)), await visitor.seen());
});

await visit("what is not held is said, with what to do next", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    for (const [text, where] of [["50", "#/block/50"], ["0x0", "#/block/0"], [absentHash, null]]) {
        await page.getByRole("textbox", { name: /search/i }).fill(text);
        await page.keyboard.press("Enter");
        await visitor.settled();
        if (where !== null) same(await page.evaluate(() => location.hash), where, `a search for ${text}`);
        // The block, the ranges that there are, a command, and the server's own words.
        await visitor.reads(/is not held here[^]*Held: 100 to 159[^]*quipu (backfill|import|fetch)[^]*4444/);
    }
    await visitor.pictures("not-held");
    await accessible(visitor, "not held");
    await visitor.goes("#/block/99");
    await page.getByRole("link", { name: "100", exact: true }).click();
    await visitor.settled();
    await visitor.sees("h1", { hasText: /^Block 100$/ });
    await page.getByRole("link", { name: "Previous block" }).click();
    await visitor.settled();
    await visitor.reads(/Block 99 is not held here/);
});

await visit("a transaction that is not held", url, {}, async (visitor) => {
    await visitor.opens(`#/tx/${absentHash}`);
    await visitor.reads(/is not held here[^]*100 to 159/);
});

await visit("the first block that is held knows no parent", url, {}, async (visitor) => {
    const block = await ask(url, "eth_getBlockByNumber", hex(FIRST), false);
    await visitor.opens(`#/block/${FIRST}`);
    await visitor.reads(/unanchored/);
    await visitor.opens(`#/block/${block.parentHash}`);
    await visitor.reads(/not held|not found/i);
});

await visit("logs of an address, as far as they are held", url, {}, async (visitor) => {
    const logs = await ask(url, "eth_getLogs", { fromBlock: hex(FIRST), toBlock: hex(LAST) });
    const of = {};
    for (const { address } of logs) of[address] = (of[address] ?? 0) + 1;
    const [address] = Object.entries(of).sort(([, one], [, other]) => other - one)[0];
    await visitor.opens(`#/address/${address}`);
    const more = visitor.page.getByRole("button", { name: /Older logs|Search on/ });
    for (;;) {
        await visitor.reads(/\d+ logs? found/);
        if (!(await more.isVisible())) break;
        await more.click();
    }
    await visitor.reads(/Not held and so not searched: 0 to 99/);
    const rows = await visitor.page.locator("main tbody tr").count();
    holds(rows >= of[address], `${rows} rows of at least ${of[address]} logs: ${await visitor.seen()}`);
});

await visit("logs of blocks without receipts are not said to be absent", url, {}, async (visitor) => {
    const { page } = visitor;
    let held = [];
    await page.route("**/*", async (route) => {
        const body = route.request().postData() ?? "";
        if (!body.includes("eth_getLogs")) return route.continue();
        const asked = JSON.parse(body);
        const error = { code: 4444, message: "receipts not found: block 100 is held without them", data: { held } };
        const isHeld = ({ params: [{ fromBlock }] }) => held.length > 0 && Number(fromBlock) >= held[0][0];
        return route.fulfill({ json: asked.map((it) => (isHeld(it) ? { jsonrpc: "2.0", id: it.id, result: [] } : { jsonrpc: "2.0", id: it.id, error })) });
    });
    const route = `#/address/0x${"12".repeat(20)}`;
    await visitor.opens(route);
    const none = await visitor.reads(/Receipts not held and so not searched: 0 to 159/);
    holds(/No log could be looked for/.test(none) && !/No log was found|0 logs found|Searched: blocks/.test(none), none);
    held = [[140, LAST]];
    await visitor.opens(route);
    const some = await visitor.reads(/0 logs found\. Searched: blocks 140 to 159, which is all that is held\. Receipts not held and so not searched: 0 to 139/);
    holds(/No log was found/.test(some), some);
});

await visit("an answer that does not come loses no logs of an address", url, { allows: [/Failed to load resource/] }, async (visitor) => {
    const { page } = visitor;
    const [{ address }] = await ask(url, "eth_getLogs", { fromBlock: hex(FIRST), toBlock: hex(LAST) });
    // A server whose logs do not tell their time, and that is away when it is asked for the first times.
    let refused = 0;
    await page.route("**/*", async (route) => {
        const body = route.request().postData() ?? "";
        if (body.includes("eth_getHeaderByHash")) return (refused += 1) === 1 ? route.abort() : route.continue();
        if (!body.includes("eth_getLogs")) return route.continue();
        const response = await route.fetch();
        const untimed = (_, value) => (value?.blockTimestamp === undefined ? value : { ...value, blockTimestamp: undefined });
        return route.fulfill({ response, json: JSON.parse(JSON.stringify(await response.json(), untimed)) });
    });
    await visitor.opens(`#/address/${address}`);
    await visitor.reads(/The server does not answer/);
    await page.getByRole("button", { name: "Try again" }).click();
    await visitor.reads(/\d+ logs? found/);
    same(await page.locator("main .notice").count(), 0, "notes that are left");
    const more = page.getByRole("button", { name: /Older logs|Search on/ });
    let text;
    for (;;) {
        text = await visitor.reads(/\d+ logs? found/);
        if (!(await more.isVisible())) break;
        await more.click();
    }
    holds(/which is all that is held\. Not held and so not searched: 0 to 99/.test(text), text);
    const found = Number(/([\d,]+) logs? found/.exec(text)[1].replaceAll(",", ""));
    same(await page.locator("main tbody tr").count(), found, "rows of the logs that were found");
});

await visit("a proof leads to what nobody vouches for", url, {}, async (visitor) => {
    await visitor.opens(`#/block/${FIRST + 20}`);
    await visitor.page.getByRole("button", { name: "Prove it" }).click();
    await visitor.sees("[data-verdict=proven][data-trust=untrusted]");
    await visitor.sees("li.open[data-step=anchor]", { hasText: "not trusted yet" });
    await visitor.reads(/compare this hash/);
});

await finish();
