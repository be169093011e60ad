// Every form of a log filter, with the node's own answer: node queries.mjs NODE events.json >queries.json
//
// A query of one event also says it as libraries do, by the event's name and arguments.

import fs from "node:fs";

import { ask, hex } from "./ask.mjs";

const [node, path] = process.argv.slice(2);
const { contracts, holders, topics, last } = JSON.parse(fs.readFileSync(path));
const { TRANSFER, APPROVAL, MOVED, NOTE } = topics;
const [first, second] = contracts;
const [one, other, third] = holders;
const topic = (value) => `0x${BigInt(value).toString(16).padStart(64, "0")}`;
const all = { fromBlock: "earliest", toBlock: "latest" };
const part = { fromBlock: hex(Math.floor(last / 4)), toBlock: hex(Math.floor(last / 2)) };
const logsOf = (filter) => ask(node, "eth_getLogs", filter);

// A block with a transfer of the first contract, and with it what its filters find.
const { blockHash, blockNumber } = (await logsOf({ ...part, address: first, topics: [TRANSFER] }))[0];

const queries = [
    ["everything", all],
    ["a part of the range", part],
    ["one block by its number", { fromBlock: blockNumber, toBlock: blockNumber }],
    ["one block by its hash", { blockHash }],
    ["one address", { ...all, address: first }],
    ["several addresses", { ...part, address: [second, first] }],
    ["an address that wrote nothing", { ...all, address: one }],
    ["the first topic", { ...all, topics: [TRANSFER] }],
    ["alternatives of the first topic", { ...all, topics: [[APPROVAL, MOVED, NOTE]] }],
    ["the second topic alone", { ...all, topics: [null, topic(one)] }],
    ["the third topic alone", { ...part, topics: [null, null, topic(other)] }],
    ["alternatives of two positions", { ...all, topics: [[TRANSFER, APPROVAL], [topic(one), topic(third)]] }],
    ["the fourth topic", { ...all, topics: [null, null, null, topic(5)] }],
    ["address and topics in a part of the range", { ...part, address: [second], topics: [TRANSFER, topic(other)] }],
    ["a block's hash with an address and a topic", { blockHash, address: first, topics: [TRANSFER] }],
    ["a block's hash with a topic that is not there", { blockHash, topics: [NOTE] }],
].map(([name, filter]) => ({ name, filter }));

function event(name, filter, eventName, args, indexed) {
    queries.push({ name, filter: { ...filter, address: first, topics: indexed }, event: eventName, args });
}
event("an event", all, "Approval", {}, [APPROVAL]);
event("an event without indexed arguments", { ...all }, "Note", {}, [NOTE]);
event("an event by its first argument", part, "Transfer", { from: one }, [TRANSFER, topic(one)]);
event("an event by its second argument", all, "Transfer", { to: third }, [TRANSFER, null, topic(third)]);
event("an event by alternatives", all, "Transfer", { from: [one, other], to: third },
    [TRANSFER, [topic(one), topic(other)], topic(third)]);
event("an event by its third argument", all, "Moved", { id: 5 }, [MOVED, null, null, topic(5)]);
event("an event of one block", { blockHash }, "Transfer", {}, [TRANSFER]);

for (const query of queries) query.logs = await logsOf(query.filter);
console.log(JSON.stringify({ queries }));
