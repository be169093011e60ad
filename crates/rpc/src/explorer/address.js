// The page of an address: the logs that it emitted or that name it, newest first.
//
// Knows: how to walk ranges of blocks downwards, over gaps and within the limits of `eth_getLogs`.
// Never knows: senders, recipients or balances: the server indexes logs, and holds no state.

import { badge, card, copyButton, count, counted, el, excerpt, fill, hexLink, isAddress, isHash, listOf, quantity, table, tableRow, textsOf, time, whole } from "./format.js";
import { call, callAll, RpcError } from "./rpc.js";
import { heldOf } from "./chain.js";
import { explain, isNotHeld, isWithoutReceipts, notice, rangeList } from "./answers.js";
import { keccak256, toHex } from "./keccak.js";
import { decodeLog, eventLine } from "./logs.js";

/** Logs of a page. */
const PAGE_LOGS = 25;
/** The first range that is searched, and how it grows and shrinks. */
const RANGE_FIRST = 4_096;
const RANGE_GROWTH = 8;
const RANGE_MAX = 4_194_304;
/** Ranges that are searched before the reader is asked whether to go on. */
const STEPS_MAX = 24;
/** What an answer that is too large is refused with. */
const LIMIT_EXCEEDED = -32005;

/** In which parts of a log the address is looked for. */
const PLACES = [
  { name: "emitted", filter: (address) => ({ address }) },
  { name: "topic 1", filter: (_, topic) => ({ topics: [null, topic] }) },
  { name: "topic 2", filter: (_, topic) => ({ topics: [null, null, topic] }) },
  { name: "topic 3", filter: (_, topic) => ({ topics: [null, null, null, topic] }) },
];

export async function renderAddress(main, route, page) {
  const address = route.argument.trim().toLowerCase();
  if (!isAddress(address)) {
    return fill(main, el("h1", null, "Address"), notice("", "This is no address.",
      el("p", null, "An address is 0x and 40 hexadecimal digits, not ", el("bdi", { class: "said" }, excerpt(route.argument, 100)), ".")));
  }
  main.dataset.title = `Address ${address.slice(0, 8)}…`;
  const results = el("div");
  fill(main, el("div", { class: "heading" }, el("h1", null, "Address")),
    el("p", { class: "hash" }, el("span", { class: "hex wrap" }, address), copyButton(address, "address")),
    el("p", { class: "dim scope" }, "Shown are the logs that this address emitted, and those that name it in an indexed topic, such as transfers of tokens from or to it. ",
      "Senders and recipients of transactions are not indexed and there is no state: a plain payment of ether, a balance or the code of a contract is not shown."),
    hasWrongChecksum(route.argument.trim())
      ? notice("warn", "The capitals of this address are not its checksum.", el("p", null, "A digit of what you typed may be another one (EIP-55): compare the address with where you have it from."))
      : null,
    results);
  const walk = new Walk(address, results, page);
  await walk.begin();
}

/** The way down through history. */
class Walk {
  #address;
  #topic;
  #container;
  #page;
  #rows = [];
  #found = new Map();
  #counts = PLACES.map(() => 0);
  #tip = null;
  /** The block from which the search goes on downwards; -1 when all was searched. */
  #next = -1;
  #range = RANGE_FIRST;
  /** Ranges that could not be searched, the newest first. */
  #gaps = [];
  #waiting = [];
  #state;
  #body;
  #more;
  #times = new Map();
  /** What is said of the last failure, until it is tried again. */
  #trouble = null;

  constructor(address, container, page) {
    this.#address = address;
    this.#topic = `0x${"0".repeat(24)}${address.slice(2)}`;
    this.#container = container;
    this.#page = page;
    this.#state = el("p", { class: "state", role: "status" });
    this.#body = el("div");
    this.#more = el("button", { type: "button", hidden: true, onclick: () => this.#goOn() }, "Older logs");
    fill(container, card("Logs", this.#state, this.#body, el("p", null, this.#more)));
  }

  async begin() {
    try {
      // Where nothing is held, `eth_blockNumber` is 0.
      this.#tip = count((await call("eth_getBlockByNumber", ["latest", false], { signal: this.#page.signal }))?.number);
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#tip === null) return fill(this.#container, notice("", "No block is held yet.", el("p", null, "There are no logs to look for.")));
    this.#next = this.#tip;
    // The page is there while the search goes on.
    this.#goOn();
    return undefined;
  }

  /** Searches downwards until a page of logs is found, or the reader should be asked. */
  async #goOn() {
    this.#more.hidden = true;
    fill(this.#state, "Searching…");
    try {
      for (let steps = 0; this.#waiting.length < PAGE_LOGS && this.#next >= 0 && steps < STEPS_MAX; steps += 1) {
        await this.#step();
        if (this.#page.signal.aborted) return;
        fill(this.#state, `Searching… ${this.#searched()}`);
      }
      const shown = this.#waiting.slice(0, PAGE_LOGS);
      await this.#ask(shown);
      if (this.#page.signal.aborted) return;
      // Those whose times could not be had wait for the next attempt.
      this.#waiting.splice(0, shown.length);
      this.#show(shown);
    } catch (error) {
      if (!this.#page.signal.aborted) this.#fail(error);
    }
  }

  /** One range. */
  async #step() {
    const to = this.#next;
    const from = Math.max(0, to - this.#range + 1);
    const range = { fromBlock: hex(from), toBlock: hex(to) };
    const calls = PLACES.map(({ filter }) => ["eth_getLogs", [{ ...filter(this.#address, this.#topic), ...range }]]);
    const answers = await callAll(calls, { signal: this.#page.signal }).catch((error) => {
      if (error instanceof RpcError && error.kind === "timeout") return [error];
      throw error;
    });
    const refusal = answers.find((it) => it instanceof RpcError);
    if (refusal !== undefined) return this.#yieldTo(refusal, from, to);
    const fresh = [];
    answers.forEach((logs, place) => {
      for (const log of listOf(logs)) {
        const key = keyOf(log);
        const known = this.#found.get(key);
        if (known !== undefined) {
          known.places.push(place);
        } else {
          const entry = { log, places: [place] };
          this.#found.set(key, entry);
          fresh.push(entry);
        }
        this.#counts[place] += 1;
      }
    });
    const order = (it) => [count(it.log.blockNumber) ?? 0, count(it.log.logIndex) ?? 0];
    fresh.sort((a, b) => order(b)[0] - order(a)[0] || order(b)[1] - order(a)[1]);
    this.#waiting.push(...fresh);
    this.#next = from - 1;
    if (fresh.length < PAGE_LOGS) this.#range = Math.min(RANGE_MAX, this.#range * RANGE_GROWTH);
    return undefined;
  }

  /** A range that is too large becomes smaller, and one that is not held is passed over. */
  #yieldTo(refusal, from, to) {
    if (isNotHeld(refusal)) {
      const held = heldOf(refusal);
      const own = held.find((it) => it.first <= to && to <= it.last);
      if (own !== undefined && own.first > from) {
        this.#range = to - own.first + 1;
        return;
      }
      if (own !== undefined) throw refusal;
      const below = held.filter((it) => it.last < to).at(-1);
      this.#gaps.push({ first: below === undefined ? 0 : below.last + 1, last: to, isWithoutReceipts: isWithoutReceipts(refusal) });
      this.#next = below === undefined ? -1 : below.last;
      return;
    }
    const isTooMuch = refusal.kind === "timeout" || [LIMIT_EXCEEDED, -32002, -32003].includes(refusal.code);
    if (!isTooMuch || to === from) throw refusal;
    this.#range = Math.max(1, Math.floor((to - from + 1) / RANGE_GROWTH));
  }

  /** The times of blocks whose logs do not tell them. */
  async #ask(shown) {
    const unknown = [...new Set(shown.filter(({ log }) => log.blockTimestamp === undefined && isHash(log.blockHash)).map(({ log }) => log.blockHash))].filter((it) => !this.#times.has(it));
    const headers = await callAll(unknown.map((hash) => ["eth_getHeaderByHash", [hash]]), { signal: this.#page.signal });
    unknown.forEach((hash, at) => { if (!(headers[at] instanceof RpcError)) this.#times.set(hash, headers[at]?.timestamp); });
  }

  #show(shown) {
    const columns = [["Block"], ["Age"], ["Event"], ["What"], ["Emitted by"], ["Transaction", "wide"]];
    const rows = shown.map((it) => this.#row(it));
    this.#rows.push(...rows);
    const isNothing = this.#next < 0 && this.#rangesSearched().length === 0;
    if (isNothing) {
      fill(this.#body, notice("warn", "No log could be looked for.", el("p", null, this.#gaps[0].isWithoutReceipts
        ? "Logs are in receipts, and this server holds these blocks without them."
        : "This server does not hold the blocks that were to be searched.")));
    } else if (this.#rows.length === 0) {
      fill(this.#body, notice("", this.#next < 0 ? "No log was found." : "No log was found so far.",
        el("p", null, "An account that only sends and receives ether appears in no log. A contract emits logs only if it was written to.")));
    } else if (this.#rows.length === rows.length) {
      fill(this.#body, table("Logs, newest first", columns, this.#rows));
    } else {
      this.#body.querySelector("tbody").append(...rows.map((cells) => tableRow(columns, cells)));
    }
    const counts = PLACES.map(({ name }, place) => (this.#counts[place] > 0 ? `${whole(this.#counts[place])} ${name === "emitted" ? "emitted by it" : `name it as ${name}`}` : null)).filter((it) => it !== null);
    fill(this.#state, isNothing ? null : [el("b", null, `${counted(this.#found.size, "log")} found`), counts.length > 0 ? ` (${counts.join(", ")})` : "", ". "], this.#searched(),
      this.#rows.length < this.#found.size ? ` Shown: the newest ${whole(this.#rows.length)}.` : "");
    this.#more.hidden = this.#next < 0 && this.#waiting.length === 0;
    this.#more.textContent = this.#waiting.length > 0 || this.#rows.length > 0 ? "Older logs" : "Search on";
  }

  #rangesSearched() {
    return outsideOf(this.#gaps, Math.max(0, this.#next + 1), this.#tip);
  }

  #searched() {
    if (this.#next === this.#tip) return "";
    const ranges = this.#rangesSearched();
    const isAll = this.#next < 0 ? `, which is all${this.#gaps.length === 0 ? "" : " that is held"}` : "";
    const gaps = (what, of) => (of.length === 0 ? "" : ` ${what} and so not searched: ${rangeList(of.toReversed())}.`);
    return [ranges.length === 0 ? "Searched: nothing." : `Searched: blocks ${rangeList(ranges)}${isAll}.`,
      gaps("Not held", this.#gaps.filter((it) => !it.isWithoutReceipts)), gaps("Receipts not held", this.#gaps.filter((it) => it.isWithoutReceipts))].join("");
  }

  #row({ log, places }) {
    const decoded = decodeLog(log);
    const topics = textsOf(log.topics);
    const timestamp = log.blockTimestamp ?? this.#times.get(log.blockHash);
    const isOwn = places.includes(0);
    return [
      hexLink("block", log.blockNumber), timestamp === undefined ? "–" : time(timestamp, { exact: false }),
      decoded === null ? el("span", { class: "hex dim", title: topics[0]?.slice(0, 100) }, topics[0] === undefined ? "anonymous" : topics[0].slice(0, 10)) : [badge(decoded.standard, "accent"), " ", decoded.name],
      decoded === null ? el("span", { class: "dim" }, `${counted(topics.length, "topic")}${isOwn ? "" : `, names it as ${PLACES[places[0]].name}`}`) : eventLine(decoded, this.#address),
      isOwn ? el("b", { class: "hex" }, "this address") : decoded?.standard === "ether" ? el("span", { class: "dim", title: "ether that moves is logged by the chain itself (EIP-7708)" }, "the chain") : hexLink("address", log.address),
      hexLink("tx", log.transactionHash),
    ];
  }

  #fail(error) {
    fill(this.#state, this.#searched());
    this.#trouble?.remove();
    this.#trouble = explain(error, { again: () => {
      this.#trouble.remove();
      if (this.#tip === null) this.begin();
      else this.#goOn();
    } });
    this.#body.append(this.#trouble);
  }
}

/** Whether an address has capitals and small letters, and not those of its checksum (EIP-55). */
export function hasWrongChecksum(address) {
  const [digits, small] = [address.slice(2), address.slice(2).toLowerCase()];
  if (digits === small || digits === digits.toUpperCase()) return false;
  const hash = toHex(keccak256(new TextEncoder().encode(small))).slice(2);
  return digits !== [...small].map((it, at) => (Number.parseInt(hash[at], 16) >= 8 ? it.toUpperCase() : it)).join("");
}

/** What tells a log from all others. One that does not say its place is like no other. */
export function keyOf({ blockHash, logIndex }) {
  const index = quantity(logIndex);
  return isHash(blockHash) && index !== null ? `${blockHash.toLowerCase()}:${index}` : Symbol("no place");
}

/** What of a range lies in no gap. Gaps are in order, the newest first. */
export function outsideOf(gaps, first, last) {
  const ranges = [];
  let end = last;
  for (const gap of gaps) {
    if (gap.last < end) ranges.unshift({ first: gap.last + 1, last: end });
    end = gap.first - 1;
  }
  if (first <= end) ranges.unshift({ first, last: end });
  return ranges;
}

function hex(number) {
  return `0x${number.toString(16)}`;
}

