// What the explorer holds against proven bytes, without a browser: nothing of an answer may be another, missing or
// made up.
//
//     node --test e2e/explorer/proven.test.mjs

import assert from "node:assert/strict";
import test from "node:test";

import { addressOf, headerOf, rlp, topicOf } from "./chain.mjs";

const { blockFields, blockReceiptFields, compare, headerFields, receiptFields, transactionFields, uncleFields } = await import(
    new URL("../../crates/rpc/src/explorer/proven.js", import.meta.url)
);

const [ADDRESS, HASH] = [addressOf(1), topicOf(2)];
const PAID = [21_000, ADDRESS, 5, Buffer.from("data")];
const FEES = [1, 30];
const SIGNED = [1, HASH, HASH];
const ACCESS = [[ADDRESS, [HASH, HASH]]];
const typed = (type, fields) => Buffer.concat([Buffer.from([type]), rlp(fields)]);

// One of every type; a legacy one with a chain and one without.
const TRANSACTIONS = [
    rlp([0, 30, ...PAID, 27, HASH, HASH]),
    rlp([1, 30, 53_000, Buffer.alloc(0), 0, Buffer.from("code"), 37, HASH, HASH]),
    typed(1, [1, 2, 30, ...PAID, ACCESS, ...SIGNED]),
    typed(2, [1, 3, ...FEES, ...PAID, ACCESS, ...SIGNED]),
    typed(3, [1, 4, ...FEES, ...PAID, ACCESS, 9, [HASH], ...SIGNED]),
    typed(4, [1, 5, ...FEES, ...PAID, ACCESS, [[1, ADDRESS, 7, ...SIGNED]], ...SIGNED]),
];
const LOGS = [[ADDRESS, [HASH, HASH], Buffer.from("one")], [ADDRESS, [], Buffer.alloc(0)]];
const RECEIPT = rlp([1, 21_000, Buffer.alloc(256), LOGS]);

const headerRlp = headerOf({ number: 9, parent: HASH, transactions: HASH, receipts: HASH, withdrawals: HASH });
const header = headerFields(headerRlp);
const block = blockFields({ header: headerRlp, transactions: TRANSACTIONS, ommers: rlp([]), withdrawals: [rlp([1, 2, ADDRESS, 3])] });
const before = blockFields({
    header: headerOf({ number: 9, parent: HASH, transactions: HASH, receipts: HASH }), transactions: [], ommers: rlp([]), withdrawals: null,
});
const transactions = TRANSACTIONS.map((bytes, index) => transactionFields(bytes, header, index));
const receipt = receiptFields(RECEIPT, transactions[0], 0);
const PROVEN = { "block": block, "block before withdrawals": before, "receipt": receipt, "receipt of a transaction with blobs": receiptFields(RECEIPT, transactions[4], 4) };
transactions.forEach((it, index) => (PROVEN[`transaction of type ${Number(it.type)}, nonce ${index}`] = it));

// All members of a proven value as an honest server answers them.
const answered = (proven) => JSON.parse(JSON.stringify(proven));
const differing = (shown, proven) => compare(shown, proven).differing;

for (const [what, proven] of Object.entries(PROVEN)) {
    const members = Object.keys(answered(proven));

    test(`an honest answer to a ${what} differs nowhere`, () => {
        assert.ok(members.length >= 10, `${members}`);
        const { compared, differing: none, unproven } = compare(answered(proven), proven);
        assert.deepEqual([none, unproven], [[], []]);
        assert.ok(compared >= members.length - 1, `${compared} values of ${members}`);
    });

    test(`no member of a ${what} can be left out: ${members.join(", ")}`, () => {
        for (const name of members) {
            const { [name]: left, ...rest } = answered(proven);
            const [found, ...others] = differing(rest, proven);
            assert.deepEqual([found?.name, found?.shown, others], [name, "nothing", []], `without ${name}, ${left}`);
        }
    });

    test(`no member of a ${what} can be another`, () => {
        for (const name of members) {
            const right = answered(proven)[name];
            // The last ones are written as what is right, or as what is not there, and are neither.
            const texts = [JSON.stringify(right), "null", "nothing", "undefined", "[object Object]"];
            for (const value of [null, "0x1234", [], {}, 7, false, Infinity, [right], { [name]: right }, ...texts]) {
                if (value !== Infinity && JSON.stringify(value) === JSON.stringify(right)) continue;
                const found = differing({ ...answered(proven), [name]: value }, proven);
                assert.ok(found.length > 0 && found.every((it) => it.name.startsWith(name)), `${name} as ${JSON.stringify(value)}: ${JSON.stringify(found)}`);
            }
        }
    });
}

test("of all receipts of a block gas is proven, too", () => {
    const receipts = TRANSACTIONS.map((_, index) => rlp([1, 21_000 * (index + 1) + index, Buffer.alloc(256), LOGS]));
    const all = blockReceiptFields({ receipts }, transactions);
    assert.deepEqual(all.map((it) => Number(it.gasUsed)), [21_000, ...Array(5).fill(21_001)]);
    assert.deepEqual(all.map((it) => [it.status, it.logs]), receipts.map(() => ["0x1", 2]));
    assert.deepEqual(all.map((it) => it.blobGasUsed), receipts.map((_, at) => (at === 4 ? "0x20000" : undefined)));
    const proven = { receipts: all };
    assert.deepEqual(compare(answered(proven), proven), { compared: 1 + 6 * 6 + 1, differing: [], unproven: [] });
    const changes = { gasUsed: "0x5208", status: "0x0", effectiveGasPrice: "0x1", transactionHash: all[0].transactionHash, transactionIndex: "0x0", logs: 3, blobGasUsed: "0x1", blobGasPrice: "0x1" };
    for (const [name, value] of Object.entries(changes)) {
        const shown = answered(proven);
        shown.receipts[3][name] = value;
        assert.deepEqual(differing(shown, proven).map((it) => it.name), [`receipts[3].${name}`]);
    }
    // Alone, it does not prove its own.
    assert.equal(receiptFields(receipts[3], transactions[3], 3).gasUsed, undefined);
    // One of a type that is not known stands for nothing, and the next one is right nevertheless.
    const [, unknown, next] = blockReceiptFields({ receipts: receipts.slice(0, 3) }, [transactions[0], null, transactions[2]]);
    assert.deepEqual([unknown, Number(next.gasUsed)], [null, 21_001]);
});

test("an uncle is what its header in the list of ommers says", () => {
    const ommers = Buffer.from(rlp([7, 8].map((number) => Array.from({ length: 15 }, (_, at) => ({ 2: ADDRESS, 8: number, 11: 1_000 + number })[at] ?? 0))));
    const proven = { uncles: uncleFields({ ommers }) };
    assert.deepEqual(proven.uncles[1], { number: "0x8", miner: `0x${Buffer.from(ADDRESS).toString("hex")}`, timestamp: "0x3f0" });
    for (const name of ["number", "miner", "timestamp"]) {
        for (const value of ["0x1", undefined]) {
            const shown = answered(proven);
            shown.uncles[1][name] = value;
            assert.deepEqual(differing(shown, proven).map((it) => it.name), [`uncles[1].${name}`], String(value));
        }
    }
    // Nothing is shown of one that did not come.
    assert.deepEqual(compare({ uncles: [proven.uncles[0], null] }, { uncles: [proven.uncles[0], null] }).unproven, ["uncles[]"]);
});

test("members of members cannot be left out either", () => {
    const log = { address: "0xab", topics: ["0x01"], data: "0x" };
    const proven = { logs: [log, log] };
    for (const name of Object.keys(log)) {
        const { [name]: left, ...rest } = log;
        assert.deepEqual(differing({ logs: [log, rest] }, proven).map((it) => [it.name, it.shown]), [[`logs[1].${name}`, "nothing"]], `${left}`);
    }
    assert.deepEqual(differing({ logs: [log] }, proven).map((it) => it.name), ["logs.length"]);
});

test("nor can what is in a list or a log be a text that is written as it", () => {
    const log = { address: "0xab", topics: ["0x01"], data: "0x" };
    for (const [shown, name] of [
        [{ logs: [{ ...log, topics: JSON.stringify(log.topics) }] }, "logs[0].topics"],
        [{ logs: [{ ...log, topics: [JSON.stringify("0x01")] }] }, "logs[0].topics[0]"],
        [{ logs: [JSON.stringify(log)] }, "logs[0]"],
        [{ logs: [{ ...log, topics: [["0x01"]] }] }, "logs[0].topics[0]"],
    ]) {
        assert.deepEqual(differing(shown, { logs: [log] }).map((it) => it.name), [name]);
    }
    // A digit has no case, a word has one, and so has what stands before digits.
    assert.deepEqual(differing({ logs: [{ ...log, address: "0xAB" }] }, { logs: [log] }), []);
    assert.deepEqual(differing({ logs: [{ ...log, address: "0Xab" }] }, { logs: [log] }), [{ name: "logs[0].address", shown: '"0Xab"', proven: "0xab" }]);
    assert.deepEqual(differing({ to: "Null" }, { to: null }), [{ name: "to", shown: '"Null"', proven: "null" }]);
});

test("what is proven not to be there cannot be made up", () => {
    for (const [proven, name] of [
        [before, "withdrawals"], [before, "withdrawalsRoot"], [block, "slotNumber"], [transactions[0], "chainId"], [transactions[1], "authorizationList"],
        [transactions[2], "maxFeePerGas"], [transactions[3], "blobVersionedHashes"], [receipt, "blobGasUsed"], [receipt, "blobGasPrice"], [receipt, "root"],
    ]) {
        for (const made of [["0x1"], "nothing", "undefined", null]) {
            assert.deepEqual(differing({ ...answered(proven), [name]: made }, proven).map((it) => [it.name, it.proven]), [[name, "nothing"]], `${made}`);
        }
    }
});

test("what the bytes do not say is named, whatever its name", () => {
    const [proven] = transactions;
    const more = JSON.parse('{"from":"0x1","toString":"0x1","constructor":"0x1","__proto__":"0x1"}');
    const shown = JSON.parse(`${JSON.stringify(proven).slice(0, -1)},${JSON.stringify(more).slice(1)}`);
    assert.deepEqual(compare(shown, proven), { ...compare(answered(proven), proven), unproven: ["from", "toString", "constructor", "__proto__"] });
    // Of a transaction whose type is not known nothing is compared.
    assert.deepEqual(compare({ transactions: [answered(proven)] }, { transactions: [null] }).unproven, ["transactions[]"]);
});
