// The playground: every method of the OpenRPC document, and its call as a program: node playground.mjs URL
//
// Each method runs with the example that its form proposes. What is shown is held against what was sent and
// what came back, and the programs for curl, viem and ethers are run.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

import { ask, hex, post } from "../nodes/ask.mjs";
import { check, finish, holds, same, visit } from "./browser.mjs";

const [url] = process.argv.slice(2);
const run = promisify(execFile);
const { methods } = await (await fetch(`${url}/openrpc.json`)).json();
// Refused over HTTP, because the example's id names nothing, because nobody follows the chain's tip, or because no
// access list is stored.
const REFUSED = ["debug_getRawBlockAccessList", "eth_gasPrice", "eth_getBlockAccessList", "eth_getFilterChanges", "eth_getFilterLogs", "eth_maxPriorityFeePerGas", "eth_subscribe", "eth_unsubscribe"];

// Runs what is in the form; what was sent, and what came back.
async function runs(visitor) {
    const { page } = visitor;
    const answered = page.waitForResponse((it) => it.request().method() === "POST" && JSON.parse(it.request().postData()).id === 1 && isOurs(it));
    const name = (await page.locator("h2.method-name").textContent()).trim();
    const isOurs = (it) => JSON.parse(it.request().postData()).method === name;
    await page.getByRole("button", { name: "Run" }).click();
    const response = await answered;
    const { method, params } = JSON.parse(response.request().postData());
    const answer = await response.json();
    await visitor.sees(".play-result .badge", { hasText: "error" in answer ? "refused" : "answered" });
    const shown = await page.locator(".play-result pre").textContent();
    // Of long answers the beginning is shown.
    const whole = JSON.stringify(answer, null, 2);
    holds(shown === whole || (shown.endsWith("…") && whole.startsWith(shown.slice(0, -1)) && shown.length > 10_000), `${method} answered ${whole.slice(0, 300)}, shown is ${shown.slice(0, 300)}`);
    await visitor.reads(/\d ms · /, ".play-result");
    return { method, params, answer };
}

// The programs for all tools, as they are shown, by the names of the tools.
async function programsOf(visitor) {
    const programs = await visitor.page.locator(".programs").evaluate((shown) =>
        [...shown.querySelectorAll("button[data-tool]")].map((button) => {
            button.click();
            const text = shown.querySelector("pre");
            return [button.textContent, text.getAttribute("aria-label"), text.textContent];
        }),
    );
    same(programs.map(([name]) => name), ["curl", "viem", "ethers", "web3.py", "alloy"], "tools");
    for (const [name, label] of programs) same(label, `Program for ${name}`, "the name of a program");
    return Object.fromEntries(programs.map(([name, , text]) => [name, text]));
}

// The same but for what moves: the time.
const steady = (answer) => JSON.stringify(answer, (key, value) => (["timestamp", "currentBlock"].includes(key) ? null : value));

const answers = {};
await visit(`${methods.length} methods run`, url, { allows: [/status of 403/] }, async (visitor) => {
    await visitor.opens();
    const refused = [];
    for (const { name } of methods) {
        await visitor.goes(`#/playground/${name}`);
        same(await visitor.page.title(), `${name} · sample`, "title");
        const { method, params, answer } = await runs(visitor);
        same(method, name, "the method that was called");
        const programs = await programsOf(visitor);
        for (const [tool, program] of Object.entries(programs)) holds(program.includes(name) && program.includes(url), `${tool}: ${program}`);
        answers[name] = { params, answer, programs };
        if ("error" in answer) {
            refused.push(name);
            await visitor.reads(new RegExp(`"code": ${answer.error.code}`), ".play-result");
        }
    }
    same(refused.sort(), REFUSED, "methods that are refused");
});

await check("the programs for curl answer the same", async () => {
    const work = Object.entries(answers);
    same(work.length, methods.length, "methods that ran");
    // An id of a filter is another each time, and gone when it is asked for again.
    const once = /Filter/;
    await Promise.all(
        Array.from({ length: 4 }, async () => {
            for (let next = work.pop(); next !== undefined; next = work.pop()) {
                const [name, { answer, programs }] = next;
                const { stdout } = await run("bash", ["-c", programs.curl], { maxBuffer: 2 ** 26 });
                if (!once.test(name)) same(steady(JSON.parse(stdout)), steady(answer), `${name} by\n${programs.curl}`);
            }
        }),
    );
});

await check("the programs for viem and ethers answer the same", async () => {
    const programs = ["eth_getBlockByNumber", "eth_getLogs", "eth_feeHistory"].flatMap((name) =>
        ["viem", "ethers"].map((tool) => [name, tool, answers[name].programs[tool]]),
    );
    await Promise.all(
        programs.map(async ([name, tool, program]) => {
            const file = path.resolve(`program-${tool}-${name}.mjs`);
            // Node shortens what it prints of nested values.
            writeFileSync(file, program.replace("console.log(result)", "console.log(JSON.stringify(result))"));
            const { stdout } = await run("node", [file]);
            same(steady(JSON.parse(stdout)), steady(answers[name].answer.result), `${name} by\n${program}`);
        }),
    );
});

await visit("what is typed is what is asked", url, { allows: [/status of 403/] }, async (visitor) => {
    const { page } = visitor;
    const form = page.locator("form.call");
    await visitor.opens("#/playground/eth_getBlockByNumber");
    await form.getByLabel("block").fill("20");
    await form.getByLabel("return_full_txns").selectOption("true");
    const { params, answer } = await runs(visitor);
    same(params, ["0x14", true], "parameters");
    same(answer.result, await ask(url, "eth_getBlockByNumber", "0x14", true), "answer");

    await visitor.goes("#/playground/eth_getLogs");
    const [log] = await ask(url, "eth_getLogs", { fromBlock: hex(50), toBlock: hex(159) });
    await form.getByLabel("fromBlock").fill("50");
    await form.getByLabel("toBlock").fill("latest");
    await form.getByLabel("address").fill(`${log.address}, ${log.address}`);
    await form.getByLabel("topics").fill(JSON.stringify([[log.topics[0]].filter((it) => it !== undefined)]));
    same((await runs(visitor)).params[0].address, [log.address, log.address], "addresses");

    const { result: filter } = await post(url, { jsonrpc: "2.0", id: 1, method: "eth_newBlockFilter", params: [] });
    await visitor.goes("#/playground/eth_getFilterChanges");
    await form.getByLabel("filter", { exact: true }).fill(filter);
    same((await runs(visitor)).answer.result, [], "changes");

    // By the keyboard, and what is wrong is the server's word.
    await visitor.goes("#/playground/eth_getTransactionByHash");
    const wrong = "0x12<b>";
    await form.getByLabel("tx_hash").fill(wrong);
    await page.keyboard.press("Control+Enter");
    await visitor.reads(/-32602/, ".play-result");

    await visitor.goes("#/playground/eth_feeHistory");
    await form.getByLabel("reward_percentiles").fill("[1,");
    await page.getByRole("button", { name: "Run" }).click();
    await visitor.reads(/no JSON/);
    await visitor.pictures("playground-wrong");
    // A number that a browser rounds is not sent as another one.
    for (const text of ["9007199254740993", "[25, 9007199254740993]", '[[{"a": -9007199254740993}]]', "[1e400]"]) {
        await form.getByLabel("reward_percentiles").fill("[25]");
        same((await runs(visitor)).params[2], [25], "percentiles");
        await form.getByLabel("reward_percentiles").fill(text);
        await visitor.reads(/reward_percentiles has a number that is too large/);
    }
});

await visit("methods are found by their names", url, {}, async (visitor) => {
    const { page } = visitor;
    await visitor.opens("#/playground");
    same(await page.locator(".method-list a").count(), methods.length, "methods in the list");
    await page.getByLabel("Filter methods").fill("prove");
    const left = await page.locator(".method-list a:visible").allTextContents();
    same(left.sort(), methods.map((it) => it.name).filter((it) => /prove/i.test(it)).sort(), "methods with this in their names");
    await page.getByRole("link", { name: "quipu_proveBlock" }).click();
    await visitor.settled();
    await visitor.sees("h2", { hasText: "quipu_proveBlock" });
    await runs(visitor);
    await visitor.pictures("playground-answer");
});

await finish();
