// The page beside a chain that grows and reorganises, and a socket that breaks: node live.mjs URL NODE
//
// NODE is an anvil that the server follows. Nothing is reloaded but where a check says so: what the page
// shows comes over its socket.

import { ask, hex, mined } from "../nodes/ask.mjs";
import { finish, holds, same, until, visit } from "./browser.mjs";

const [url, node] = process.argv.slice(2);
const [from] = await ask(node, "eth_accounts");
// Depths of reorgs that the list of newest blocks shows in part, as a whole, and beyond its end.
const DEPTHS = [1, 2, 3, 5, 8, 11, 12, 13, 20, 1];

const blockOf = (number) => ask(node, "eth_getBlockByNumber", typeof number === "number" ? hex(number) : number, false);
const mines = (count) => ask(node, "anvil_mine", hex(count));
const sends = () => mined(node, { from, to: from, value: "0x1" });

// The rows of newest blocks: numbers, hashes, and how many transactions each has.
const rowsOf = (page) =>
    page.locator("main table tbody tr").evaluateAll((rows) =>
        rows.map((row) => {
            const links = [...row.querySelectorAll("a")].map((it) => it.getAttribute("href").split("/").at(-1));
            return { number: Number(links[0]), hash: links.at(-1), transactions: row.cells[2].textContent };
        }),
    );

async function isAtTip(visitor) {
    let rows = [];
    const tip = await blockOf("latest");
    await until(
        `the newest block is ${Number(tip.number)} ${tip.hash} with ${tip.transactions.length} transactions`,
        async () => {
            rows = await rowsOf(visitor.page);
            return rows[0]?.hash === tip.hash && rows[0].transactions === String(tip.transactions.length) && rows.length >= 10;
        },
        async () => `the rows are ${JSON.stringify(rows)}; ${await visitor.seen()}`,
    );
    // All below it are its ancestors.
    for (const { number, hash } of rows) same(hash, (await blockOf(number)).hash, `block ${number} of the list`);
    await visitor.reads(new RegExp(`Tip\\s+${Number(tip.number).toLocaleString("en")}\\b`));
    return tip;
}

await mines(30);

await visit("new blocks arrive by themselves", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens();
    await visitor.sees("#way[data-way=live][data-tip=live]");
    await page.evaluate(() => (window.isSame = true));
    await isAtTip(visitor);
    for (let count = 0; count < 3; count += 1) {
        await sends();
        await isAtTip(visitor);
    }
    // More than the list has, in one moment.
    await mines(40);
    await isAtTip(visitor);
    same(await page.evaluate(() => window.isSame), true, "the document is the same");
    await visitor.pictures("live");
});

await visit(`the list shows one chain at a time, during ${DEPTHS.length} reorgs`, url, {}, async (visitor) => {
    const { page } = visitor;
    const parents = {};
    const remembers = async () => {
        const tip = Number((await blockOf("latest")).number);
        for (let number = Math.max(0, tip - 40); number <= tip; number += 1) {
            const { hash, parentHash } = await blockOf(number);
            parents[hash] = parentHash;
        }
    };
    await visitor.opens();
    await visitor.sees("#way[data-way=live]");
    await isAtTip(visitor);
    // Every state of the list that the document ever has.
    await page.evaluate(() => {
        window.states = [];
        const looks = () => {
            const rows = [...document.querySelectorAll("main table tbody tr")];
            window.states.push(rows.map((row) => [...row.querySelectorAll("a")].at(-1).getAttribute("href").split("/").at(-1)));
        };
        new MutationObserver(looks).observe(document.querySelector("main"), { childList: true, subtree: true });
    });
    for (const [at, depth] of DEPTHS.entries()) {
        await sends();
        await isAtTip(visitor);
        await remembers();
        const gone = await blockOf("latest");
        // The first block that is exchanged has another transaction: one that is made anew without any has the same hash.
        await ask(node, "anvil_reorg", depth, [[{ from, to: from, value: hex(100 + at) }, 0]]);
        await remembers();
        const tip = await isAtTip(visitor);
        holds(tip.hash !== gone.hash, "the node did not reorganise");
        holds(!(await page.content()).includes(gone.hash), `${gone.hash} left the chain and is still on the page`);
        // Also of blocks that the list did not show. Each says another number than the one before.
        const first = Number(gone.number) - depth + 1;
        const left = depth === 1 ? "1 block" : `${depth} blocks`;
        await visitor.sees(".notice.reorg", { hasText: new RegExp(`\\b${left} left the chain (now|.* ago): block ${first} and above`) });
    }
    await visitor.pictures("reorg");
    const states = await page.evaluate(() => window.states);
    holds(states.length > DEPTHS.length, `only ${states.length} states were seen`);
    for (const state of states) {
        state.slice(1).forEach((hash, at) => {
            const parent = parents[state[at]];
            same(hash, parent, `below ${state[at]}, in the list ${state.map((it) => it.slice(0, 10)).join(" ")}`);
        });
    }
    return `${states.length} states`;
});

await visit("what is said of a block goes on with the chain", url, {}, async (visitor) => {
    const { page } = visitor;
    let looks = 0;
    page.on("response", (response) => (looks += response.url().endsWith("/stat.json") ? 1 : 0));
    // Until a look begins after a new head, for several may share one.
    const looksAgain = async () => {
        const before = looks;
        await until("the page looks again", async () => {
            await mines(1);
            await new Promise((resolve) => setTimeout(resolve, 500));
            return looks > before + 1;
        });
    };
    const marks = () => page.locator(".heading .marks").innerText();
    const receipt = await sends();
    await visitor.opens();
    await isAtTip(visitor);
    await visitor.goes("#/block/latest");
    await until("it is marked as the newest", async () => /newest/.test(await marks()), () => visitor.seen());
    await mines(1);
    await until("it is not any more", async () => !/newest/.test(await marks()), () => visitor.seen());
    await visitor.goes(`#/block/${Number(receipt.blockNumber)}`);
    await ask(node, "anvil_reorg", Number((await blockOf("latest")).number) - Number(receipt.blockNumber) + 1, []);
    await until("it is marked as replaced", async () => /replaced/.test(await marks()), () => visitor.seen());
    await looksAgain();
    holds(/replaced/.test(await marks()), `marks after later blocks: ${await marks()}`);
});

await visit("a block and a transaction that a reorg takes away", url, {}, async (visitor) => {
    const { page } = visitor;
    const receipt = await sends();
    const number = Number(receipt.blockNumber);
    await visitor.opens();
    await isAtTip(visitor);
    await visitor.goes(`#/block/${number}`);
    await visitor.reads(new RegExp(receipt.blockHash));
    await ask(node, "anvil_reorg", 1, []);
    await visitor.reads(/replaced/i);
    await page.getByRole("link", { name: /took its place/ }).click();
    const next = await blockOf(number);
    holds(next.hash !== receipt.blockHash, "the node did not reorganise");
    await visitor.reads(new RegExp(next.hash));
    await visitor.opens(`#/tx/${receipt.transactionHash}`);
    await visitor.reads(/not found[^]*reorg/i);
    await visitor.opens(`#/block/${receipt.blockHash}`);
    await visitor.reads(/not found[^]*reorg/i);
});

// Between two that are asked for, heads come that nobody tells of: a block is then replaced by one whose head is
// never seen.
await visit("where the tip is asked for, a reorg deep below it is told of", url, {}, async (visitor) => {
    const { page } = visitor;
    await page.routeWebSocket(/.*/, (socket) => socket.close());
    for (const [kind, said] of [["tx", /its block was replaced by a reorg/], ["block", /show the block that took its place/]]) {
        const receipt = await sends();
        const number = Number(receipt.blockNumber);
        await mines(6);
        await visitor.opens();
        await isAtTip(visitor);
        await visitor.sees("#way[data-way=polling]");
        await visitor.goes(`#/${kind}/${kind === "tx" ? receipt.transactionHash : number}`);
        const hash = receipt.blockHash;
        await visitor.reads(new RegExp(hash));
        // New blocks above replace nothing.
        await mines(1);
        await until("the tip is asked for", async () => (await ask(url, "eth_blockNumber")) === (await ask(node, "eth_blockNumber")));
        const tip = Number(await ask(node, "eth_blockNumber"));
        await page.waitForResponse(async (response) => (await response.text()).includes((await blockOf(tip)).hash));
        holds(!said.test(await page.locator("main").innerText()), `replaced by nothing: ${await visitor.seen()}`);
        await ask(node, "anvil_reorg", tip - number + 1, []);
        holds((await blockOf(number)).hash !== hash, "the node did not reorganise");
        await visitor.reads(said);
    }
});

await visit("a contract that was not made is not said to be", url, {}, async (visitor) => {
    for (const [data, status, term] of [["0xfe", "0x0", "Would have created"], ["0x00", "0x1", "Creates"]]) {
        const receipt = await mined(node, { from, data });
        same(receipt.status, status, `the status of a creation by ${data}`);
        await visitor.opens();
        await isAtTip(visitor);
        await visitor.goes(`#/tx/${receipt.transactionHash}`);
        await visitor.sees("dt", { hasText: new RegExp(`^${term}$`) });
        await visitor.reads(new RegExp(receipt.contractAddress, "i"));
    }
});

await visit("a socket that breaks is opened again", url, {}, async (visitor) => {
    const sockets = [];
    await visitor.page.routeWebSocket(/.*/, (socket) => {
        sockets.push(socket);
        socket.connectToServer();
    });
    await visitor.opens();
    await visitor.sees("#way[data-way=live]");
    await sockets[0].close();
    await visitor.sees("#way:not([data-way=live])");
    // While it is away.
    await sends();
    await visitor.sees("#way[data-way=live]");
    holds(sockets.length > 1, `${sockets.length} sockets`);
    await isAtTip(visitor);
});

await visit("a socket that stays open and tells nothing is opened again", url, {}, async (visitor) => {
    const sockets = [];
    let silent = null;
    await visitor.page.routeWebSocket(/.*/, (socket) => {
        sockets.push(socket);
        const server = socket.connectToServer();
        server.onMessage((message) => {
            if (socket !== silent) socket.send(message);
        });
    });
    await visitor.opens();
    await visitor.sees("#way[data-way=live]");
    await isAtTip(visitor);
    silent = sockets.at(-1);
    await sends();
    await until("another socket opens", () => sockets.at(-1) !== silent, () => visitor.seen());
    await visitor.sees("#way[data-way=live]");
    await isAtTip(visitor);
});

await visit("without sockets the tip is asked for", url, {}, async (visitor) => {
    await visitor.page.routeWebSocket(/.*/, (socket) => socket.close());
    await visitor.opens();
    await visitor.sees("#way[data-way=polling]");
    await sends();
    await isAtTip(visitor);
});

await visit("what the node says of itself is shown", url, {}, async (visitor) => {
    await visitor.opens();
    await visitor.reads(/Upstream[^]*at the tip[^]*Reorgs seen/);
    await visitor.reads(/not sealed yet/);
});

await finish();
