// What went wrong or is not there, in plain words, each with what to do next.
//
// Knows: every kind of refusal, and the difference between what does not exist and what is not held.
// Never knows: which page asks.

import { counted, el, excerpt, hexLink, isHash, whole } from "./format.js";
import { RpcError } from "./rpc.js";
import { chain, heldOf, missingOf, unreadableOf } from "./chain.js";

/** The code of what is not held here: EIP-4444. */
export const NOT_HELD = 4444;
/** Ranges of blocks that are named one by one. */
const RANGES_SHOWN = 6;

export function isNotHeld(error) {
  return error instanceof RpcError && error.kind === "rpc" && error.code === NOT_HELD;
}

/** Whether blocks are held without their receipts. */
export function isWithoutReceipts(error) {
  return isNotHeld(error) && error.message.startsWith("receipts not found");
}

/** A note to the reader: what happened, and what can be done. */
export function notice(tone, title, ...parts) {
  return el("div", { class: `notice ${tone}`, role: tone === "bad" ? "alert" : null }, el("p", { class: "title" }, title), parts);
}

function showAgain() {
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Any failure of a request. `again`: what tries once more; the whole page, unless it is said. */
export function explain(error, { again = showAgain } = {}) {
  const retry = again === null ? null : el("p", null, el("button", { type: "button", onclick: again }, "Try again"));
  if (isNotHeld(error)) return notHeld(error, "This");
  if (!(error instanceof RpcError)) {
    console.error(error);
    return notice("bad", "Something in this page failed.", el("p", null, "The server did answer; this is a mistake of the page: ", said(error?.message)), retry);
  }
  switch (error.kind) {
    case "unreachable":
      return notice("bad", "The server does not answer.", el("p", null, "It may have stopped, or the network between is down. What is on this page may be old."), retry);
    case "timeout":
      return notice("warn", "The server took too long.", el("p", null, `There was ${error.message}. It may be busy.`), retry);
    case "unauthorized":
      return notice("warn", "This server asks for a key.", el("p", null, "Enter one above; whoever runs the server makes them with ", el("code", null, "quipu key new"), "."));
    case "limited":
      return notice("warn", "The server asks to slow down.", el("p", null, "It says: ", said(error.message)), el("p", null, `Wait ${counted(error.data?.seconds ?? 1, "second")} and try again.`), retry);
    case "malformed":
      return notice("bad", "The answer could not be read.", el("p", null, `It says no such thing as JSON-RPC does: ${error.message}. Is something between this page and the server?`), retry);
    default:
      return notice("bad", "The server refused this.", el("p", null, said(error.message), error.code === 0 ? null : el("span", { class: "dim" }, ` (code ${error.code})`)),
        error.code === -32602 ? el("p", null, "The question itself is wrong: look at what you searched for.") : retry);
  }
}

function said(message) {
  return el("bdi", { class: "said" }, excerpt(message ?? "no reason given", 500));
}

/** What is not held here, though it may exist: it is said what is held, and what to do. */
export function notHeld(error, what, number = null) {
  const held = heldOf(error);
  const isReceipts = isWithoutReceipts(error);
  const nearest = number === null ? [] : nearestHeld(held, number);
  return notice("warn",
    isReceipts ? "The receipts are not held here." : `${what} is not held here.`,
    el("p", null, isReceipts
      ? "The block was stored without its receipts, so logs, gas used and status are not known."
      : "It may well exist: this server has a part of history, and this is not in it."),
    held.length === 0 ? null : el("p", null, "Held: ", rangeList(held), "."),
    nearest.length === 0 ? null : el("p", null, nearest.length === 1 ? "Nearest block held: " : "Nearest blocks held: ", nearest.map((it, at) => [at === 0 ? "" : " and ", hexLink("block", it)]), "."),
    isReceipts
      ? el("p", null, "To have them, ask a server that holds all of history, or let whoever runs this one import archives that have receipts: ",
        el("code", null, "quipu import ARCHIVES"), ".")
      : el("p", null, "To have it, ask a server that holds all of history, or let whoever runs this one add it: ",
        el("code", null, remedy(number)), "."),
    el("p", { class: "dim" }, "The server says: ", said(error.message), ` (code ${NOT_HELD})`));
}

function remedy(number) {
  return number === null ? "quipu backfill --upstream URL" : `quipu backfill --upstream URL --blocks ${number}..${number}`;
}

function nearestHeld(held, number) {
  const below = held.filter((it) => it.last < number).map((it) => it.last);
  const above = held.filter((it) => it.first > number).map((it) => it.first);
  return [...below.slice(-1), ...above.slice(0, 1)];
}

/** Ranges of blocks as text, the first and the last of many. */
export function rangeList(ranges) {
  const text = (it) => (it.first === it.last ? whole(it.first) : `${whole(it.first)} to ${whole(it.last)}`);
  if (ranges.length <= RANGES_SHOWN) return ranges.map(text).join(", ");
  const shown = RANGES_SHOWN / 2;
  return [...ranges.slice(0, shown).map(text), `… ${whole(ranges.length - 2 * shown)} more …`, ...ranges.slice(-shown).map(text)].join(", ");
}

/** What does not exist, as far as this server can know. */
export async function absent(what, text, { isHashAsked = isHash(text) } = {}) {
  const stat = await chain.statIfAny();
  const gaps = [...missingOf(stat), ...unreadableOf(stat)];
  const network = chain.networkName();
  const tip = chain.tip?.number ?? (Number.isSafeInteger(stat?.tip?.number) ? stat.tip.number : null);
  if (!isHashAsked) {
    return notice("", `${what} does not exist yet.`,
      el("p", null, tip === null ? "This server holds no block yet." : ["The newest block that this server knows is ", hexLink("block", tip), "."]),
      el("p", null, "A page of a number that is still to come can be reloaded, or wait on the ", el("a", { href: "#/" }, "overview"), ": new blocks appear there."));
  }
  return notice("", `${what} was not found.`,
    el("p", null, Array.isArray(stat?.coverage) && stat.coverage.length === 0 && gaps.length === 0 ? "This server holds no block yet." : gaps.length > 0
      ? ["It may be in blocks that are not held here: ", rangeList(gaps), "."]
      : `All of the history that this server has${tip === null ? "" : `, up to block ${whole(tip)},`} was looked at: it is not in it.`),
    el("ul", null,
      el("li", null, "Is every digit there? A hash has 64 of them after 0x, an address 40."),
      el("li", null, "Is it of this network", network === null ? "" : [" (", el("bdi", null, network), ")"], "?"),
      el("li", null, "A transaction that is still waiting to be mined is in no block, and this server knows blocks alone."),
      el("li", null, "A block or transaction that a reorg has replaced is gone.")));
}
