// What all pages share of the chain: its network, its tip as it moves, and what is held of it.
//
// Knows: how new heads replace others, and how old what the server says of itself may be.
// Never knows: how anything is shown.

import { count, isHash, listOf, quantity } from "./format.js";
import { call, followHeads, page, RpcError } from "./rpc.js";

/** What the server says of itself is asked again no sooner than after so long. */
const STAT_AGE_MS = 1_500;
/** Where it is not shown, that is asked again after so long. */
const STAT_ABSENT_MS = 60_000;
/** Looks at the tip, one after the other, that find a newer one than heads tell of: then they tell no more. */
const LOOKS_BEHIND_MAX = 3;
/** What is not shown is answered so, by the server or by whoever stands before it; other errors may pass. */
const STATUSES_ABSENT = [403, 404, 405];

const noStat = () => ({ until: -Infinity, asking: null, value: null });

class Listeners {
  #all = new Set();
  add(listener, signal) {
    // What has left already is told nothing, and nobody tells of its leaving again.
    if (signal?.aborted) return;
    this.#all.add(listener);
    signal?.addEventListener("abort", () => this.#all.delete(listener), { once: true });
  }
  tell(value) {
    for (const listener of [...this.#all]) listener(value);
  }
}

class Chain {
  chainId = null;
  /** The newest block as a number and a hash; null while nothing is known. */
  tip = null;
  /** When a head took the place of another, by the page's own clock. */
  #headAt = -Infinity;
  #network = null;
  #heads = new Listeners();
  #ways = new Listeners();
  #networks = new Listeners();
  #stats = new Listeners();
  #way = "waiting";
  #following = null;
  #looksBehind = 0;
  #starts = 0;
  #stat = noStat();

  /** Begins to follow the tip, or begins anew with another key. */
  async start() {
    this.#following?.end();
    this.#following = null;
    this.#starts += 1;
    const started = this.#starts;
    // What is still asked for is asked with the key before.
    this.#stat = noStat();
    this.statIfAny();
    try {
      this.chainId = quantity(await call("eth_chainId"))?.toString() ?? null;
      this.#networks.tell();
    } catch (error) {
      // Whoever is not let in is asked for a key, and this begins anew with it.
      if (error instanceof RpcError && error.kind === "unauthorized") return;
    }
    if (started !== this.#starts) return;
    this.#following = followHeads({
      onHead: (block) => this.#take(block),
      onWay: (way) => { this.#way = way; this.#ways.tell(way); },
    });
  }

  #take(block) {
    const number = count(block.number);
    if (number === null || !isHash(block.hash)) return;
    // The first one may be of any age, and is told again where the connection is.
    const before = this.tip;
    if (before !== null && before.hash !== block.hash && (before.hash !== null || number > before.number)) this.#headAt = performance.now();
    this.tip = { number, hash: block.hash, timestamp: block.timestamp };
    this.#looksBehind = 0;
    this.#heads.tell(block);
  }

  /** The number of the newest block, by who asked for it. A socket may stay open and tell nothing: it is opened anew. */
  sees(number) {
    // A server that holds nothing says 0, too.
    if (number > 0) this.tip ??= { number, hash: null, timestamp: null };
    this.#looksBehind = number > (this.tip?.number ?? 0) ? this.#looksBehind + 1 : 0;
    if (this.#looksBehind < LOOKS_BEHIND_MAX) return;
    this.#looksBehind = 0;
    this.#following?.reopen();
  }

  /** Seconds since a head took the place of another; Infinity if none has. */
  sinceHead() {
    return (performance.now() - this.#headAt) / 1000;
  }

  /** Tells of every new head: it takes the place of its number and of all above. */
  onHead(listener, signal) {
    this.#heads.add(listener, signal);
  }

  onWay(listener, signal) {
    this.#ways.add(listener, signal);
    listener(this.#way);
  }

  /** Tells of every answer of `stat.json`. */
  onStat(listener, signal) {
    this.#stats.add(listener, signal);
  }

  /** The last answer of `stat.json`, or null where it is not shown or not known. */
  lastStat() {
    return this.#stat.value;
  }

  onNetwork(listener, signal) {
    this.#networks.add(listener, signal);
  }

  networkName() {
    return this.#network ?? (this.chainId === null ? null : `chain ${this.chainId}`);
  }

  /** `stat.json`; null where a server, or whoever stands before it, does not show it. */
  async stat() {
    const kept = this.#stat;
    if (performance.now() < kept.until) return kept.value;
    kept.asking ??= page("stat.json").then((value) => {
      if (typeof value.network === "string" && value.network !== this.#network) {
        this.#network = value.network.slice(0, 40);
        this.#networks.tell();
      }
      return value;
    }, (error) => {
      if (error instanceof RpcError && error.kind === "http" && STATUSES_ABSENT.includes(error.code)) return null;
      throw error;
    }).then((value) => {
      kept.until = performance.now() + (value === null ? STAT_ABSENT_MS : STAT_AGE_MS);
      kept.value = value;
      if (kept === this.#stat) this.#stats.tell();
      return value;
    }).finally(() => { kept.asking = null; });
    return kept.asking;
  }

  /** What the server says of itself, or null if it cannot be had now. */
  async statIfAny() {
    try {
      return await this.stat();
    } catch {
      return null;
    }
  }
}

export const chain = new Chain();

/** Block ranges of the API, as `{first, last}` of numbers, in order. */
export function rangesOf(value) {
  if (!Array.isArray(value)) return [];
  const ranges = value.map((it) => (Array.isArray(it) ? { first: it[0], last: it[1] } : it ?? {}));
  const isRange = ({ first, last }) => Number.isSafeInteger(first) && Number.isSafeInteger(last) && 0 <= first && first <= last;
  return ranges.filter(isRange).sort((a, b) => a.first - b.first);
}

/** What cannot be read of what was held, by `stat.json`. */
export function unreadableOf(stat) {
  const joined = [];
  for (const { first, last } of rangesOf([...listOf(stat?.lost), ...listOf(stat?.unreadable)])) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}

/** What is missing of history, by `stat.json`: below the first block that is held, and between. */
export function missingOf(stat) {
  const first = rangesOf(stat?.coverage)[0]?.first ?? 0;
  return [...(first > 0 ? [{ first: 0, last: first - 1 }] : []), ...rangesOf(stat?.gaps)];
}

/** The ranges that an error 4444 says are held. */
export function heldOf(error) {
  return rangesOf(error?.data?.held);
}
