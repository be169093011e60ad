// Logs: what the common events say, and how a log is shown.
//
// Knows: the events of ERC-20, ERC-721, ERC-1155 and wrapped ether, by their topics.
// Never knows: how many decimals a token has, or its name: those are state, which is not held.

import { amount, badge, counted, dataField, el, excerpt, field, fields, hexLink, isAddress, isData, isHash, listOf, textsOf, whole } from "./format.js";

/** Where ether that moves is logged, in the form of a token's transfer (EIP-7708). */
const ETHER_EMITTER = "0xfffffffffffffffffffffffffffffffffffffffe";

/* Decoding. Events and their arguments: a log that does not fit its event to the byte is not decoded. */

const EVENTS = {
  "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": transferOrApproval("Transfer", "from", "to"),
  "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925": transferOrApproval("Approval", "owner", "spender"),
  "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31": (topics, words) =>
    topics.length === 3 && words.length === 1 && words[0] <= 1n
      ? event("NFT", "ApprovalForAll", [address("owner", topics[1]), address("operator", topics[2]), text("approved", words[0] === 1n ? "yes" : "no")])
      : null,
  "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62": (topics, words) =>
    topics.length === 4 && words.length === 2
      ? event("ERC-1155", "TransferSingle", [address("operator", topics[1]), address("from", topics[2]), address("to", topics[3]), number("id", words[0]), units("amount", words[1])])
      : null,
  "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb": transferBatch,
  "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c": (topics, words) =>
    topics.length === 2 && words.length === 1 ? event("wrapped ether", "Deposit", [address("to", topics[1]), units("amount", words[0])]) : null,
  "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65": (topics, words) =>
    topics.length === 2 && words.length === 1 ? event("wrapped ether", "Withdrawal", [address("from", topics[1]), units("amount", words[0])]) : null,
};

// ERC-20 has the amount in its data, ERC-721 the token in its last topic; otherwise both look alike.
function transferOrApproval(name, first, second) {
  return (topics, words, emitter) => {
    if (emitter === ETHER_EMITTER && topics.length === 3 && words.length === 1) return event("ether", name, [address(first, topics[1]), address(second, topics[2]), text("amount", amount(words[0]))]);
    if (topics.length === 3 && words.length === 1) return event("ERC-20", name, [address(first, topics[1]), address(second, topics[2]), allowance(name, words[0])]);
    if (topics.length === 4 && words.length === 0) return event("ERC-721", name, [address(first, topics[1]), address(second === "spender" ? "approved" : second, topics[2]), number("token", BigInt(topics[3]))]);
    return null;
  };
}

/** Tokens of a batch that are shown. */
const BATCH_SHOWN = 20;

// Two lists of the same length, as every compiler lays them out: two offsets, then the lists without a gap.
function transferBatch(topics, words) {
  if (topics.length !== 4 || words.length < 4 || words.length % 2 !== 0) return null;
  const length = (words.length - 4) / 2;
  const [ids, amounts] = [words.slice(3, 3 + length), words.slice(4 + length)];
  const laidOut = [64n, BigInt(96 + 32 * length), BigInt(length), BigInt(length)];
  if (laidOut.some((it, at) => it !== [words[0], words[1], words[2], words[3 + length]][at])) return null;
  const shown = ids.slice(0, BATCH_SHOWN).map((id, at) => `${whole(id)} × ${whole(amounts[at])}`).join(", ");
  return event("ERC-1155", "TransferBatch", [address("operator", topics[1]), address("from", topics[2]), address("to", topics[3]),
    text(counted(ids.length, "token"), `${shown}${ids.length > BATCH_SHOWN ? ", …" : ""}`)]);
}

function event(standard, name, values) {
  return values.includes(null) ? null : { standard, name, values };
}

function address(name, topic) {
  return /^0x0{24}/.test(topic) ? { name, address: `0x${topic.slice(26)}` } : null;
}

function number(name, value) {
  return { name, text: whole(value) };
}

function units(name, value) {
  return { name, text: `${whole(value)} ${value === 1n ? "unit" : "units"}` };
}

// The largest amount is approved where no limit is meant; transferred, it is an amount as any other.
function allowance(event, value) {
  return event === "Approval" && value === 2n ** 256n - 1n ? text("amount", "unlimited") : units("amount", value);
}

function text(name, value) {
  return { name, text: value };
}

/** Words of ABI data; null where it is no whole number of them, or more than a page can show. */
function wordsOf(data) {
  if (!isData(data) || (data.length - 2) % 64 !== 0 || data.length > 2 + 64 * 4096) return null;
  return Array.from({ length: (data.length - 2) / 64 }, (_, at) => BigInt(`0x${data.slice(2 + 64 * at, 66 + 64 * at)}`));
}

/** What a log says, as `{standard, name, values: [{name, address|text}]}`; null if it is no event that is known. */
export function decodeLog(log) {
  const said = Array.isArray(log?.topics) ? log.topics : [];
  if (!said.every(isHash)) return null;
  const topics = said.map((it) => it.toLowerCase());
  const decode = Object.hasOwn(EVENTS, topics[0] ?? "") ? EVENTS[topics[0]] : null;
  const words = decode === null ? null : wordsOf(log.data);
  return words === null ? null : decode(topics, words, isAddress(log.address) ? log.address.toLowerCase() : null);
}

/* How a log is shown. */

/** The arguments of an event in one line. */
export function eventLine(decoded, own = null) {
  return el("span", { class: "event" }, decoded.values.map(({ name, address: of, text: said }) => [
    el("span", { class: "argument" }, el("span", { class: "dim" }, `${name} `),
      of === undefined ? el("span", { class: "number" }, said) : of === own ? el("b", { class: "hex", title: of }, "this address") : hexLink("address", of)), " "]));
}

/** A log with all that it has. */
export function logCard(log) {
  const decoded = decodeLog(log);
  const topics = textsOf(log.topics);
  return el("article", { class: "log", ariaLabel: `Log ${whole(log.logIndex)}` },
    el("header", null, el("span", { class: "index", title: "position in the block" }, whole(log.logIndex)), hexLink("address", log.address),
      decoded === null ? el("span", { class: "dim" }, topics.length === 0 ? "anonymous event" : "event not known") : [badge(decoded.standard, "accent"), el("b", null, decoded.name)],
      log.removed === true ? badge("removed", "bad") : null),
    decoded === null ? null : el("p", null, eventLine(decoded)),
    el("details", null, el("summary", null, `${counted(topics.length, "topic")} and data`),
      fields(topics.map((topic, at) => field(at === 0 ? "Topic 0, the event" : `Topic ${at}`, topicText(topic, at))), field("Data", dataField(log.data, "data of the log")))));
}

function topicText(topic, at) {
  if (!isHash(topic)) return el("span", { class: "wrap" }, excerpt(topic, 200));
  const of = `0x${topic.slice(26)}`;
  const mayBeAddress = at > 0 && /^0x0{24}/.test(topic) && !/^0x0{16}/.test(of) && isAddress(of);
  return [el("span", { class: "hex wrap" }, topic), mayBeAddress ? [" ", el("span", { class: "dim" }, "as an address: "), hexLink("address", of)] : null];
}

/** Logs as cards, a page of them at a time. */
export function logCards(logs, { shown = 25 } = {}) {
  const all = listOf(logs);
  const container = el("div", { class: "logs" });
  let at = 0;
  const more = el("button", { type: "button" });
  const addMore = () => {
    container.append(...all.slice(at, at + shown).map(logCard));
    at = Math.min(all.length, at + shown);
    more.textContent = `Show ${Math.min(shown, all.length - at)} more of ${all.length - at}`;
    more.hidden = at >= all.length;
  };
  more.addEventListener("click", addMore);
  addMore();
  return el("div", null, all.length === 0 ? el("p", { class: "dim" }, "No logs.") : container, more);
}

