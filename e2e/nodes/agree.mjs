// The six reads about every block of some ranges, asked of two servers: node agree.mjs OURS THEIRS FIRST-LAST[,...] [HABIT...].
//
// A habit is a member that the other server writes otherwise than the specification has it, such as
// block.totalDifficulty: it is left out of all answers, and must be met at least once, so that no habit
// stays in the list that nobody has any more. It is met in one of the ranges: another may have no transactions.

import { isDeepStrictEqual } from "node:util";

import { ask, hex } from "./ask.mjs";

const [ours, theirs, asked, ...habits] = process.argv.slice(2);
const ranges = asked.split(",").map((range) => range.split("-").map(Number));
// Letters of a value that a difference shows.
const SHOWN_MAX = 100;
const met = new Set();
const typesMet = new Set();
let compared = 0;
let differing = 0;

// Takes the members of habits out of a value; tells which there were.
function leaveOut(kind, value) {
    return habits.filter((habit) => {
        const [of, member] = habit.split(".");
        return of === kind && value !== null && member in value && delete value[member];
    });
}

function show(path, found, expected) {
    const isObject = (value) => value !== null && typeof value === "object";
    if (isObject(found) && isObject(expected)) {
        for (const key of new Set([...Object.keys(found), ...Object.keys(expected)])) {
            if (!isDeepStrictEqual(found[key], expected[key])) show(`${path}.${key}`, found[key], expected[key]);
        }
    } else {
        const [one, other] = [found, expected].map((value) => String(JSON.stringify(value)).slice(0, SHOWN_MAX));
        console.log(`${path}: ours ${one}, theirs ${other}`);
    }
}

async function compare(kind, method, ...params) {
    const [found, expected] = await Promise.all([ask(ours, method, ...params), ask(theirs, method, ...params)]);
    compared += 1;
    leaveOut(kind, found);
    for (const habit of leaveOut(kind, expected)) met.add(habit);
    if (!isDeepStrictEqual(found, expected)) {
        differing += 1;
        show(`${method} ${JSON.stringify(params)}`, found, expected);
    }
    return found;
}

async function compareBlock(number) {
    const block = await compare("block", "eth_getBlockByNumber", hex(number), true);
    if (block === null) return;
    await compare("block", "eth_getBlockByNumber", hex(number), false);
    await compare("block", "eth_getBlockByHash", block.hash, true);
    for (const transaction of block.transactions) {
        typesMet.add(transaction.type);
        const index = transaction.transactionIndex;
        await Promise.all([
            compare("transaction", "eth_getTransactionByHash", transaction.hash),
            compare("transaction", "eth_getTransactionByBlockNumberAndIndex", hex(number), index),
            compare("transaction", "eth_getTransactionByBlockHashAndIndex", block.hash, index),
            compare("receipt", "eth_getTransactionReceipt", transaction.hash),
        ]);
    }
}

for (const [first, last] of ranges) {
    for (let number = first; number <= last; number += 1) await compareBlock(number);
}
await compare("block", "eth_getBlockByNumber", hex(Math.max(...ranges.flat()) + 1_000_000), false);
const unmet = habits.filter((habit) => !met.has(habit));
console.log(`types ${[...typesMet].sort().join(" ")}`);
for (const habit of unmet) console.log(`${habit}: the other server has no such habit`);
console.log(`${compared} answers compared, ${differing} differ`);
process.exit(differing === 0 && unmet.length === 0 && compared > 0 ? 0 : 1);
