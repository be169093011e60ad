// What the explorer makes of values, without a browser: units, search, events of tokens, harmful text.
//
//     node --test e2e/explorer/format.test.mjs

import assert from "node:assert/strict";
import test from "node:test";

const folder = new URL("../../crates/rpc/src/explorer/", import.meta.url);
const format = await import(new URL("format.js", folder));
const { readQuery } = await import(new URL("search.js", folder));
const { decodeLog } = await import(new URL("logs.js", folder));
const { rangesOf } = await import(new URL("chain.js", folder));
const { hasWrongChecksum, keyOf, outsideOf } = await import(new URL("address.js", folder));
const { secondsOf } = await import(new URL("rpc.js", folder));
const { areReceiptsOf } = await import(new URL("block.js", folder));
const { placeOf } = await import(new URL("chart.js", folder));

test("amounts are whole, in the unit that shows them best", () => {
    for (const [wei, shown] of [
        ["0x0", "0 ETH"],
        ["0x7", "7 wei"],
        ["0x989680", "0.01 gwei"],
        [1_500_000_000n, "1.5 gwei"],
        [10n ** 13n, "0.00001 ETH"],
        [1_234_567_890_123_456_789_012n, "1,234.567890123456789012 ETH"],
        [null, "–"],
        ["7", "–"],
        ["0x", "–"],
        [`0x1${"0".repeat(64)}`, "–"],
        [{}, "–"],
    ]) {
        assert.equal(format.amount(wei), shown, String(wei));
    }
    assert.equal(format.price(7n), "7 wei");
    assert.equal(format.price(1_000_000n), "0.001 gwei");
    assert.equal(format.gwei(-1), "–");
});

test("sizes, spans and shares have their units", () => {
    assert.deepEqual([1, 1023, 1024, 1_572_864, NaN].map((it) => format.bytes(it)), ["1 byte", "1,023 bytes", "1 KiB", "1.5 MiB", "–"]);
    assert.deepEqual([0.0001, 0.25, 59, 3_661, 90_000].map((it) => format.span(it)), ["0.1 ms", "250 ms", "59 s", "1 h 1 min", "1 d 1 h"]);
    assert.equal(format.percent(1n, 3n), "33.3%");
    assert.equal(format.percent(1, 0), "–");
    assert.equal(format.exactTime("0x6955b90c"), "2026-01-01 00:00:12 UTC");
    assert.equal(format.exactTime(253_402_300_800), "+010000-01-01 00:00:00 UTC");
    assert.equal(format.exactTime(2n ** 200n), "–");
});

test("what reorders, hides or breaks text is written out", () => {
    for (const [text, shown] of [
        ["\u202eabc", "\\u202eabc"],
        ["a\u200bb\u2066c", "a\\u200bb\\u2066c"],
        ["\u0000\u0007\u001b[31m", "\\u0000\\u0007\\u001b[31m"],
        ["\u{e0041}", "\\u{e0041}"],
        // What is written out tells a character above 0xffff from one below it and a digit.
        ["\ue0041", "\\ue0041"],
        ["\ud800", "\\ud800"],
        ["\ue000\u0603", "\\ue000\\u0603"],
        ["<script>alert(1)</script>", "<script>alert(1)</script>"],
        ["line\nand\ttab, שלום, 日本語, é", "line\nand\ttab, שלום, 日本語, é"],
    ]) {
        assert.equal(format.visible(text), shown);
    }
    assert.equal(format.readableText("0x7175697075"), "quipu");
    for (const data of ["0x", "0xff", "0x00", "nothing", null, 7]) assert.equal(format.readableText(data), null, String(data));
});

test("what may be long is cut before it is written out", () => {
    assert.equal(format.excerpt("abc", 3), "abc");
    assert.equal(format.excerpt("abcd", 3), "abc…");
    assert.equal(format.excerpt({ toString: 1 }, 20), '{"toString":1}');
    assert.equal(format.excerpt(undefined, 20), "undefined");
});

test("a search is for what its form says", () => {
    const hash = `0x${"ab".repeat(32)}`;
    const address = `0x${"cd".repeat(20)}`;
    for (const [text, kind, value] of [
        ["1,234", "block", "1234"],
        [" 0x4d2 ", "block", "1234"],
        ["#0", "block", "0"],
        ["latest", "block", "latest"],
        ["Finalised", "block", "finalized"],
        [hash.toUpperCase().replace("0X", "0x"), "hash", hash],
        [hash.slice(2), "hash", hash],
        [address, "address", address],
        ["18446744073709551615", "block", "18446744073709551615"],
        ["0xffffffffffffffff", "block", "18446744073709551615"],
        ["18446744073709551616", "unknown", "18446744073709551616"],
        ["0X0C", "block", "12"],
        [`0X${"CD".repeat(20)}`, "address", address],
        ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "address", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
        ["http://127.0.0.1/#/block/5", "block", "5"],
        [`https://example.org/quipu/#/tx/${hash}`, "hash", hash],
        [`#/address/${address}`, "address", address],
        ["#/block/latest", "block", "latest"],
        ["#/block/x", "unknown", "x"],
        [hash.slice(0, 40), "unknown", hash.slice(0, 40)],
        ["vitalik.eth", "unknown", "vitalik.eth"],
        ["<img src=x>", "unknown", "<img src=x>"],
    ]) {
        const found = readQuery(text);
        assert.deepEqual([found.kind, found.value], [kind, value], text);
    }
});

const word = (value) => BigInt(value).toString(16).padStart(64, "0");
const topic = (value) => `0x${word(value)}`;
const [TRANSFER, APPROVAL, FOR_ALL, SINGLE, BATCH] = [
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
    "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925",
    "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31",
    "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62",
    "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb",
];

test("topics of events are the hashes of their signatures", async () => {
    const { keccak256, toHex } = await import(new URL("keccak.js", folder));
    const hash = (text) => `0x${toHex(keccak256(new TextEncoder().encode(text))).replace(/^0x/, "")}`;
    assert.deepEqual([
        "Transfer(address,address,uint256)", "Approval(address,address,uint256)", "ApprovalForAll(address,address,bool)",
        "TransferSingle(address,address,address,uint256,uint256)", "TransferBatch(address,address,address,uint256[],uint256[])",
    ].map(hash), [TRANSFER, APPROVAL, FOR_ALL, SINGLE, BATCH]);
    for (const [text, name] of [["Deposit(address,uint256)", "Deposit"], ["Withdrawal(address,uint256)", "Withdrawal"]]) {
        assert.equal(decodeLog({ topics: [hash(text), topic(1)], data: `0x${word(5)}` })?.name, name);
    }
});

test("events of tokens are decoded to the byte or not at all", () => {
    const token = `0x${"11".repeat(20)}`;
    const decoded = (topics, data, address = token) => {
        const found = decodeLog({ address, topics, data });
        return found === null ? null : [found.standard, found.name, ...found.values.map((it) => it.text ?? it.address.slice(-2))];
    };
    assert.deepEqual(decoded([TRANSFER, topic(1), topic(2)], `0x${word(1_000)}`), ["ERC-20", "Transfer", "01", "02", "1,000 units"]);
    assert.deepEqual(decoded([TRANSFER, topic(1), topic(2)], `0x${word(10n ** 18n)}`, "0xfffffffffffffffffffffffffffffffffffffffe"), ["ether", "Transfer", "01", "02", "1 ETH"]);
    assert.deepEqual(decoded([APPROVAL, topic(1), topic(2)], `0x${"f".repeat(64)}`), ["ERC-20", "Approval", "01", "02", "unlimited"]);
    // Nobody transfers without a limit.
    const most = format.whole(2n ** 256n - 1n);
    assert.deepEqual(decoded([TRANSFER, topic(1), topic(2)], `0x${"f".repeat(64)}`), ["ERC-20", "Transfer", "01", "02", `${most} units`]);
    assert.deepEqual(decoded([TRANSFER, topic(1), topic(2), topic(77)], "0x"), ["ERC-721", "Transfer", "01", "02", "77"]);
    assert.deepEqual(decoded([FOR_ALL, topic(1), topic(2)], `0x${word(1)}`), ["NFT", "ApprovalForAll", "01", "02", "yes"]);
    assert.deepEqual(decoded([SINGLE, topic(1), topic(2), topic(3)], `0x${word(7)}${word(9)}`), ["ERC-1155", "TransferSingle", "01", "02", "03", "7", "9 units"]);
    const batch = `0x${[64, 160, 2, 7, 8, 2, 1, 3].map(word).join("")}`;
    assert.deepEqual(decoded([BATCH, topic(1), topic(2), topic(3)], batch), ["ERC-1155", "TransferBatch", "01", "02", "03", "7 × 1, 8 × 3"]);
    const batchTopics = [BATCH, topic(1), topic(2), topic(3)];
    assert.deepEqual(decoded(batchTopics, `0x${[64, 96, 0, 0].map(word).join("")}`), ["ERC-1155", "TransferBatch", "01", "02", "03", ""]);
    for (const [topics, data] of [
        [[TRANSFER, topic(1), topic(2)], "0x"],
        [[TRANSFER, topic(1), topic(2)], `0x${word(1)}00`],
        [[TRANSFER, topic(2n ** 200n), topic(2)], `0x${word(1)}`],
        [[TRANSFER], `0x${word(1)}`],
        [[BATCH, topic(1), topic(2), topic(3)], `0x${[64, 2n ** 255n, 0, 0].map(word).join("")}`],
        [[BATCH, topic(1), topic(2), topic(3)], `0x${[64, 96, 2n ** 64n, 0].map(word).join("")}`],
        // A word too many, lists that share words, lists in the other order, lists of different lengths.
        [batchTopics, `${batch}${word(0)}`],
        [batchTopics, `${batch}${word(0)}${word(0)}`],
        [batchTopics, `0x${[64, 64, 2, 7, 8, 2, 1, 3].map(word).join("")}`],
        [batchTopics, `0x${[160, 64, 2, 7, 8, 2, 1, 3].map(word).join("")}`],
        [batchTopics, `0x${[64, 128, 1, 7, 3, 1, 2, 3].map(word).join("")}`],
        [batchTopics, `0x${[64, 160, 2, 7, 8, 1, 1, 3].map(word).join("")}`],
        [batchTopics, "0x"],
        [[FOR_ALL, topic(1), topic(2)], `0x${word(2)}`],
        // Topics that are none are not passed over.
        [[TRANSFER, topic(1), "0x02", topic(2)], `0x${word(1)}`],
        [[TRANSFER, topic(1), 7, topic(2)], `0x${word(1)}`],
        [[TRANSFER, topic(1), topic(2), null], `0x${word(1)}`],
        [["constructor"], "0x"],
        [null, null],
        [[7, {}], 7],
    ]) {
        assert.equal(decoded(topics, data), null, JSON.stringify(topics));
    }
    assert.equal(decodeLog(null), null);
});

test("receipts are those of a block's transactions, each at its place, or none", () => {
    const hash = (digit) => `0x${digit.repeat(64)}`;
    const transactions = ["a", "b"].map((it) => ({ hash: hash(it) }));
    const receipts = transactions.map((it, at) => ({ transactionHash: it.hash, transactionIndex: `0x${at}` }));
    assert.ok(areReceiptsOf(transactions, receipts));
    assert.ok(areReceiptsOf([], []));
    const [one, other] = receipts;
    for (const others of [null, {}, [], [one], [...receipts, other], [other, one], [one, null], [null, one, other], [one, { ...other, transactionIndex: "0x0" }],
        [one, { ...other, transactionHash: hash("c") }], [one, { ...other, transactionHash: { toString: 1 } }]]) {
        assert.ok(!areReceiptsOf(transactions, others), JSON.stringify(others));
    }
    assert.ok(!areReceiptsOf([{ hash: {} }], [{ transactionHash: {}, transactionIndex: "0x0" }]));
});

test("ranges are believed only if they are some", () => {
    const held = [[60, 99], [0, 39], [5, 1], ["a", 2], null, { first: 100, last: 100 }, [-1, 5]];
    assert.deepEqual(rangesOf(held), [{ first: 0, last: 39 }, { first: 60, last: 99 }, { first: 100, last: 100 }]);
    assert.deepEqual(rangesOf({ held }), []);
});

test("the number of a block is decimal or hexadecimal, of 64 bits", () => {
    for (const [text, number] of [["0", 0n], ["00012", 12n], ["0x0c", 12n], ["0X0C", 12n], ["18446744073709551615", 2n ** 64n - 1n], ["0xffffffffffffffff", 2n ** 64n - 1n]]) {
        assert.equal(format.blockNumber(text), number, text);
    }
    for (const text of ["", "x", "-1", "1e3", "0x", "18446744073709551616", "0x10000000000000000", "9".repeat(5000), "\u0661\u0662"]) assert.equal(format.blockNumber(text), null, text);
});

test("a checksum of an address is looked at where there is one", () => {
    // Examples of EIP-55.
    for (const it of ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0x52908400098527886E0F7030069857D2E4169EE7", "0xde709f2102306220921060314715629080e2fb77"]) {
        assert.equal(hasWrongChecksum(it), false, it);
    }
    for (const it of ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAee", "0xDe709f2102306220921060314715629080e2fb77"]) assert.equal(hasWrongChecksum(it), true, it);
});

test("a pause that a server asks for is a number of seconds or a date", () => {
    const now = Date.parse("Wed, 21 Oct 2015 07:28:00 GMT");
    for (const [text, seconds] of [["7", 7], ["0", 1], [null, 1], ["", 1], ["soon", 1], ["Wed, 21 Oct 2015 07:28:30 GMT", 30], ["Wed, 21 Oct 2015 07:27:00 GMT", 1]]) {
        assert.equal(secondsOf(text, now), seconds, text);
    }
});

test("logs are one if they say the same place, and only then", () => {
    const blockHash = `0x${"ab".repeat(32)}`;
    assert.equal(keyOf({ blockHash, logIndex: "0x0a" }), keyOf({ blockHash: `0x${"AB".repeat(32)}`, logIndex: "0xa" }));
    const others = [{ blockHash, logIndex: "0x1" }, { blockHash, logIndex: "0x2" }, { blockHash }, { blockHash }, { logIndex: "0x1" }, {}, { blockHash: { toString: 1 }, logIndex: "0x1" },
        { blockHash, logIndex: { toString: 1 } }, { blockHash, logIndex: "x" }];
    assert.equal(new Set(others.map(keyOf)).size, others.length);
});

test("what was searched is without the gaps", () => {
    const range = (text) => text.split(" ").filter((it) => it !== "").map((it) => it.split("-").map(Number)).map(([first, last]) => ({ first, last }));
    for (const [gaps, searched] of [["", "10-54"], ["0-54", ""], ["10-54", ""], ["50-54", "10-49"], ["10-19", "20-54"], ["40-44 20-20", "10-19 21-39 45-54"], ["0-39", "40-54"]]) {
        assert.deepEqual(outsideOf(range(gaps), 10, 54), range(searched), gaps);
    }
});

test("ranges are drawn where they are, wide enough to be seen, and inside of the picture", () => {
    const last = 25_000_000;
    assert.deepEqual(placeOf({ first: 0, last }, last, 1000), { x: 0, width: 1000 });
    const half = placeOf({ first: 0, last: 12_499_999 }, last, 1000);
    assert.ok(half.x === 0 && Math.abs(half.width - 500) < 0.01, JSON.stringify(half));
    for (const [first, end] of [[0, 0], [1, 9], [12_345_678, 12_345_700], [last - 8, last - 8], [last - 8, last], [last, last], [last, last + 5]]) {
        const place = placeOf({ first, last: end }, last, 1000);
        const what = `${first} to ${end}: ${JSON.stringify(place)}`;
        assert.ok(place.width >= 4, what);
        assert.ok(place.x >= 0 && place.x + place.width <= 1000, what);
        assert.ok(Math.abs(place.x - (first / last) * 1000) <= 4, what);
    }
    assert.deepEqual(placeOf({ first: 0, last: 0 }, 0, 1000), { x: 0, width: 1000 });
});
