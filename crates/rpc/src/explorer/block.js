// The page of a block: every field, its transactions, withdrawals, uncles and fees.
//
// Knows: the members of a block and what they mean.
// Never knows: how anything is transported or proven.

import {
  ABSENT, amount, amountCell, badge, blockNumber, bloom, bytes, card, copyButton, count, counted, dataField, decimal, el, etherOfGwei, excerpt, field, fields,
  fill, hexLink, isAddress, isHash, listOf, percent, plainNumber, price, quantity, refill, route as routeTo, table, textsOf, time, whole,
} from "./format.js";
import { call, callAll, RpcError } from "./rpc.js";
import { chain, rangesOf } from "./chain.js";
import { absent, explain, isNotHeld, notHeld, notice } from "./answers.js";
import { gasChart } from "./chart.js";
import { rawJson, rawRlp } from "./raw.js";
import { onReplaced, TYPES } from "./transaction.js";

/** Rows of a table at a time. */
const PAGE_ROWS = 50;
const TAGS = ["latest", "earliest", "finalized", "safe", "pending"];

export async function renderBlock(main, route, page) {
  const asked = route.argument.trim().replace(/^0X/, "0x");
  const isHashAsked = isHash(asked);
  const isTag = TAGS.includes(asked.toLowerCase());
  const number = isHashAsked || isTag ? null : blockNumber(asked);
  if (!isHashAsked && !isTag && number === null) {
    return fill(main, el("h1", null, "No block is named so"), notice("", "A block is named by its number, its hash or a tag.",
      el("p", null, "The address has ", el("bdi", { class: "said" }, excerpt(asked, 100)), ".")));
  }
  const name = isTag ? `The ${asked.toLowerCase()} block` : isHashAsked ? "A block with this hash" : `Block ${whole(number)}`;
  const reference = isTag ? asked.toLowerCase() : isHashAsked ? asked : `0x${number.toString(16)}`;
  let block;
  try {
    block = await call(isHashAsked ? "eth_getBlockByHash" : "eth_getBlockByNumber", [reference, true], { signal: page.signal });
  } catch (error) {
    if (page.signal.aborted) return undefined;
    const at = number === null ? null : Number(number);
    return fill(main, heading(name, asked, isHashAsked), isNotHeld(error) ? notHeld(error, name, at) : explain(error));
  }
  if (block === null) {
    return fill(main, heading(name, asked, isHashAsked), isTag ? absentTag(asked.toLowerCase()) : await absent(name, asked, { isHashAsked }));
  }
  if (typeof block !== "object" || !isHash(block.hash)) {
    return fill(main, heading(name, asked, isHashAsked), notice("bad", "The answer is no block."), rawJson("What came", "block.json", block));
  }
  // An honest proof of another block would prove all that is shown. What a tag names, the server alone says.
  const isOther = isHashAsked ? block.hash.toLowerCase() !== asked.toLowerCase() : !isTag && quantity(block.number) !== number;
  if (isOther) {
    return fill(main, heading(name, asked, isHashAsked), notice("bad", "The server answered with another block.",
      el("p", null, `It is block ${whole(block.number)} with hash `, el("span", { class: "hex wrap" }, block.hash), ". Do not believe this server.")),
    rawJson("What came", "block.json", block));
  }
  return showBlock(main, block, page);
}

function heading(name, asked, isHashAsked) {
  return [el("h1", null, name), isHashAsked ? el("p", { class: "hash wrap" }, asked) : null];
}

function absentTag(tag) {
  const reasons = {
    pending: "There is no pending block: this server knows blocks that are in the chain, and no mempool.",
    finalized: "This server does not know which blocks are final: nothing that it trusts says so.",
    safe: "This server does not know which blocks are safe: nothing that it trusts says so.",
  };
  return notice("", "There is no such block.", el("p", null, reasons[tag] ?? "This server holds no block yet."),
    tag === "latest" ? null : el("p", null, "Look at ", el("a", { href: routeTo("block", "latest") }, "the newest block"), " instead."));
}

function showBlock(main, block, page) {
  const number = count(block.number);
  main.dataset.title = `Block ${whole(number)}`;
  const transactions = listOf(block.transactions);
  const marks = el("span", { class: "marks" });
  const parts = { chart: el("div"), totals: el("div", null, feesByHeader(block, transactions)) };
  const list = new TransactionTable(transactions);
  const proof = el("div", { class: "proof" });
  const [uncleCard, unclesShown] = uncles(block, page);
  fill(main,
    el("div", { class: "heading" }, el("h1", null, "Block ", el("span", { class: "number" }, whole(number))), marks,
      el("nav", { class: "steps", ariaLabel: "Neighbouring blocks" },
        number > 0 ? el("a", { class: "button", href: routeTo("block", number - 1), rel: "prev", ariaLabel: "Previous block" }, "‹ Previous") : el("span", { class: "button off", ariaHidden: "true" }, "‹ Previous"),
        el("a", { class: "button", href: routeTo("block", number + 1), rel: "next", ariaLabel: "Next block" }, "Next ›"))),
    el("p", { class: "hash" }, el("span", { class: "hex wrap" }, block.hash), copyButton(block.hash, "hash")),
    el("div", { class: "columns even" }, card("Block", summary(block, transactions)), card("Gas and fees", fees(block), parts.totals)),
    parts.chart,
    card(`Transactions (${whole(transactions.length)})`, transactions.length === 0 ? el("p", { class: "dim" }, "This block has no transactions.") : list.element),
    withdrawals(block), uncleCard, card("Hashes and other fields", details(block)),
    el("section", { class: "card" }, el("h2", null, "Proof"), proof),
    el("section", { class: "card" }, el("h2", null, "Raw"),
      rawJson("JSON of the block", `block-${number}.json`, block),
      rawJson("JSON of its receipts", `receipts-${number}.json`, () => call("eth_getBlockReceipts", [block.hash])),
      rawRlp("RLP of the header", `header-${number}.hex`, "debug_getRawHeader", [block.hash]),
      rawRlp("RLP of the block", `block-${number}.hex`, "debug_getRawBlock", [block.hash]),
      rawRlp("RLP of its receipts", `receipts-${number}.hex`, "debug_getRawReceipts", [block.hash])));
  const place = { number, hash: block.hash, isGone: false };
  showMarks(marks, place);
  chain.onHead(() => showMarks(marks, place), page.signal);
  onReplaced(number, block.hash, (isReplaced) => {
    place.isGone = true;
    fill(marks, badge(isReplaced ? "replaced by a reorg" : "no longer in the server's chain", "bad"), " ",
      el("a", { href: routeTo("block", number), onclick: () => dispatchEvent(new HashChangeEvent("hashchange")) }, isReplaced ? "show the block that took its place" : "look again"));
  }, page.signal);
  const receiptsShown = transactions.length > 0 ? showReceipts(block, transactions, list, parts, page) : null;
  showProof(proof, number, { block, later: Promise.all([receiptsShown, unclesShown]).then(([receipts, uncles]) => ({ receipts, uncles })) });
}

async function showProof(container, number, shown) {
  try {
    const { proveBlock } = await import("./prove.js");
    proveBlock(container, number, shown);
  } catch (error) {
    console.warn(error);
    fill(container, el("p", { class: "dim" }, "The part of this page that proves could not be loaded."));
  }
}

async function showMarks(marks, place) {
  const stat = await chain.statIfAny();
  const { number, hash, isGone } = place;
  if (isGone) return;
  const finalized = stat?.finalized?.number;
  const held = listOf(stat?.coverage).find((it) => rangesOf([it]).length > 0 && it.first <= number && number <= it.last);
  refill(marks, Number.isSafeInteger(finalized) && number <= finalized ? badge("final", "good") : null,
    chain.tip?.hash === hash ? badge("newest", "accent") : null,
    typeof held?.status === "string" ? el("span", { title: "how this block is known to be canonical" }, badge(held.status.slice(0, 40), held.status === "unanchored" ? "warn" : "")) : null);
}

function summary(block, transactions) {
  const [used, limit] = [quantity(block.gasUsed), quantity(block.gasLimit)];
  const creations = transactions.filter((it) => it.to === null).length;
  return fields(
    field("Time", time(block.timestamp)),
    field("Transactions", [whole(transactions.length), creations > 0 ? el("span", { class: "dim" }, ` · ${counted(creations, "contract creation")}`) : null]),
    Array.isArray(block.withdrawals) ? field("Withdrawals", whole(block.withdrawals.length)) : null,
    field("Fee recipient", hexLink("address", block.miner, { short: false })),
    field("Gas used", used === null || limit === null ? ABSENT : [whole(used), el("span", { class: "dim" }, ` of ${whole(limit)} · ${percent(used, limit)}`)]),
    field("Size", count(block.size) === null ? ABSENT : [bytes(count(block.size)), count(block.size) < 1024 ? null : el("span", { class: "dim" }, ` · ${counted(block.size, "byte")}`)]),
    field("Parent", hexLink("block", block.parentHash)),
    field("Extra data", dataField(block.extraData, "extra data")));
}

function fees(block) {
  const base = quantity(block.baseFeePerGas);
  const [blobGas, excess] = [quantity(block.blobGasUsed), quantity(block.excessBlobGas)];
  return fields(
    base === null ? field("Base fee", el("span", { class: "dim" }, "none before London")) : field("Base fee", price(base), "for a unit of gas"),
    blobGas === null ? null : field("Blob gas used", `${whole(blobGas)}${blobGas > 0n ? ` · ${counted(blobGas / 131072n, "blob")}` : ""}`),
    excess === null ? null : field("Excess blob gas", whole(excess)));
}

function burnt(block, paidGas) {
  const base = quantity(block.baseFeePerGas);
  return base === null ? null : field("Burnt", amount(base * paidGas), "base fee × gas that was paid");
}

// From Amsterdam on a header's gas is not what was paid: receipts alone say that.
function feesByHeader(block, transactions) {
  const isPaid = block.blockAccessListHash === undefined && block.slotNumber === undefined;
  const paidGas = transactions.length === 0 ? 0n : isPaid ? quantity(block.gasUsed) : null;
  const row = paidGas === null ? null : burnt(block, paidGas);
  return row === null ? null : fields(row);
}

function details(block) {
  return fields(
    [["Hash", "hash"], ["Parent hash", "parentHash"], ["State root", "stateRoot"], ["Transactions root", "transactionsRoot"], ["Receipts root", "receiptsRoot"],
      ["Withdrawals root", "withdrawalsRoot"], ["Requests hash", "requestsHash"], ["Parent beacon block root", "parentBeaconBlockRoot"],
      ["Block access list hash", "blockAccessListHash"], ["Uncles hash", "sha3Uncles"], ["Randomness (mixHash)", "mixHash"]]
      .map(([name, member]) => (block[member] === undefined ? null : field(name, dataField(block[member], name)))),
    field("Nonce", dataField(block.nonce, "nonce")),
    field("Difficulty", quantity(block.difficulty) === 0n ? "0, as everywhere after the merge" : whole(block.difficulty)),
    block.slotNumber === undefined ? null : field("Slot", whole(block.slotNumber)),
    field("Timestamp", plainNumber(block.timestamp), "seconds since 1970"),
    field("Logs bloom", bloom(block.logsBloom)),
    otherFields(block));
}

const KNOWN = new Set(["hash", "parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "extraData", "mixHash", "nonce", "miner",
  "difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "withdrawalsRoot", "withdrawals", "blobGasUsed", "excessBlobGas",
  "parentBeaconBlockRoot", "requestsHash", "blockAccessListHash", "slotNumber", "size", "uncles", "transactions"]);

// Members of forks to come are shown as they are.
function otherFields(block) {
  return Object.entries(block).filter(([name]) => !KNOWN.has(name)).slice(0, 20)
    .map(([name, value]) => field(name.slice(0, 60), dataField(typeof value === "string" ? value : JSON.stringify(value), name)));
}

/* Transactions, a page of rows at a time. */

class TransactionTable {
  element;
  #transactions;
  #receipts = null;
  #refresh;

  constructor(transactions) {
    this.#transactions = transactions;
    [this.element, this.#refresh] = paged(transactions.length, (begin, end) => this.#table(begin, end));
  }

  /** Receipts in the order of the transactions; none where they cannot be had. */
  setReceipts(receipts) {
    this.#receipts = receipts;
    this.#refresh();
  }

  #table(begin, end) {
    const columns = [["#", "right"], ["Hash"], ["Type", "wide"], ["From"], ["To"], ["Value", "right"], ["Fee", "right wide"], ["Status"]];
    const rows = this.#transactions.slice(begin, end).map((it, at) => this.#row(it, this.#receipts === null ? null : this.#receipts[begin + at]));
    return table("Transactions of the block", columns, rows);
  }

  #row(transaction, receipt) {
    const type = count(transaction.type);
    return [whole(transaction.transactionIndex), hexLink("tx", transaction.hash), el("span", { title: TYPES[type]?.[1] ?? "" }, TYPES[type]?.[0] ?? whole(type)),
      hexLink("address", transaction.from),
      isAddress(transaction.to) ? hexLink("address", transaction.to) : transaction.to === null ? el("span", { class: "dim" }, "creates a contract") : ABSENT,
      amountCell(transaction.value), receipt === null ? "…" : amountCell(feeOf(receipt)), status(receipt)];
  }
}

function status(receipt) {
  if (receipt === null) return "…";
  if (receipt === undefined) return ABSENT;
  const it = quantity(receipt.status);
  return it === null ? el("span", { class: "dim", title: "before Byzantium a receipt has a state root instead" }, ABSENT) : it === 1n ? badge("ok", "good") : badge("failed", "bad");
}

/** What a transaction paid for gas. */
export function feeOf(receipt) {
  const [used, price] = [quantity(receipt?.gasUsed), quantity(receipt?.effectiveGasPrice)];
  if (used === null || price === null) return null;
  return used * price + (quantity(receipt.blobGasUsed) ?? 0n) * (quantity(receipt.blobGasPrice) ?? 0n);
}

/** A long table, a page of rows at a time, and what makes its rows anew: `[element, refresh]`. */
function paged(rows, make) {
  const [shown, pages] = [el("div"), el("div")];
  let current = 0;
  const refresh = () => refill(shown, make(current * PAGE_ROWS, (current + 1) * PAGE_ROWS));
  const go = (page) => {
    current = page;
    refresh();
    const pressed = document.activeElement?.getAttribute("aria-label");
    fill(pages, pager(rows, current, go));
    // The button that was pressed is another one now, or leads no further.
    const buttons = [...pages.querySelectorAll("button:enabled")];
    (buttons.find((it) => it.getAttribute("aria-label") === pressed) ?? pages.querySelector("[aria-current]"))?.focus();
  };
  fill(pages, pager(rows, current, go));
  refresh();
  return [el("div", null, shown, pages), refresh];
}

/** Buttons for pages of a long table; nothing where one page has all. */
function pager(rows, current, go) {
  const pages = Math.ceil(rows / PAGE_ROWS);
  if (pages <= 1) return null;
  const shown = [...new Set([0, current - 1, current, current + 1, pages - 1])].filter((it) => it >= 0 && it < pages);
  const buttons = shown.flatMap((it, at) => [
    at > 0 && it - shown[at - 1] > 1 ? el("span", { class: "dim", ariaHidden: "true" }, "…") : null,
    el("button", { type: "button", ariaCurrent: it === current ? "page" : null, ariaLabel: `${it + 1}: rows ${it * PAGE_ROWS} to ${Math.min(rows, (it + 1) * PAGE_ROWS) - 1}`, onclick: () => go(it) }, String(it + 1)),
  ]);
  return el("nav", { class: "pager", ariaLabel: "Pages of the table" },
    el("button", { type: "button", disabled: current === 0, ariaLabel: "Previous page", onclick: () => go(current - 1) }, "‹"), buttons,
    el("button", { type: "button", disabled: current === pages - 1, ariaLabel: "Next page", onclick: () => go(current + 1) }, "›"));
}

/* Receipts: fees, status and the picture of the block. */

/** Whether these are the receipts of the transactions, each at its place. */
export function areReceiptsOf(transactions, receipts) {
  const isSame = (one, other) => isHash(one) && isHash(other) && one.toLowerCase() === other.toLowerCase();
  return Array.isArray(receipts) && receipts.length === transactions.length
    && receipts.every((it, at) => isSame(it?.transactionHash, transactions[at].hash) && count(it.transactionIndex) === at);
}

/** Shows receipts as they come; returns what is shown of each, or null where none are shown. */
async function showReceipts(block, transactions, list, parts, page) {
  let receipts;
  try {
    receipts = await call("eth_getBlockReceipts", [block.hash], { signal: page.signal });
  } catch (error) {
    if (page.signal.aborted) return null;
    list.setReceipts([]);
    fill(parts.chart, isNotHeld(error) ? notHeld(error, "This", count(block.number)) : explain(error));
    return null;
  }
  if (!areReceiptsOf(transactions, receipts)) {
    list.setReceipts([]);
    fill(parts.chart, receipts === null
      ? notice("warn", "The receipts of this block are not there.", el("p", null, "Perhaps a reorg has replaced the block. Reload the page."))
      : notice("bad", "The answer is not the receipts of this block.", el("p", null, "Fees, status and logs are not shown: there must be one receipt for each transaction, in their order.")));
    return null;
  }
  list.setReceipts(receipts);
  const feesPaid = receipts.reduce((sum, it) => sum + (feeOf(it) ?? 0n), 0n);
  const blobFees = receipts.reduce((sum, it) => sum + (quantity(it.blobGasUsed) ?? 0n) * (quantity(it.blobGasPrice) ?? 0n), 0n);
  const base = quantity(block.baseFeePerGas);
  const paidGas = receipts.reduce((sum, it) => sum + (quantity(it.gasUsed) ?? 0n), 0n);
  const failed = receipts.filter((it) => quantity(it.status) === 0n).length;
  const blobPrice = receipts.map((it) => quantity(it.blobGasPrice)).find((it) => it !== null && it !== undefined);
  fill(parts.totals, fields(
    burnt(block, paidGas),
    field("Fees paid", amount(feesPaid)),
    field("Tips", amount(feesPaid - (base ?? 0n) * paidGas - blobFees), "what is paid above the base fee: the fee recipient's"),
    blobFees > 0n ? field("Blob fees", amount(blobFees), "burnt") : null,
    blobPrice === undefined ? null : field("Blob base fee", amount(blobPrice)),
    field("Logs", whole(receipts.reduce((sum, it) => sum + listOf(it.logs).length, 0))),
    field("Failed", failed === 0 ? "none" : counted(failed, "transaction"))));
  const bars = receipts.map((it) => ({ gas: count(it.gasUsed) ?? 0, price: count(it.effectiveGasPrice) ?? 0, failed: quantity(it.status) === 0n }));
  const format = (wei) => (wei >= 1e6 ? `${decimal(wei / 1e9, 3)} gwei` : `${whole(BigInt(Math.round(wei)))} wei`);
  fill(parts.chart, card("Gas and price of each transaction", gasChart(bars, {
    base: base === null ? null : Number(base), formatPrice: format,
    label: `${counted(transactions.length, "transaction")} by gas and price; base fee ${base === null ? "none" : format(Number(base))}`,
  })));
  return receipts.map(({ transactionHash, transactionIndex, status, gasUsed, effectiveGasPrice, blobGasUsed, blobGasPrice, logs }) =>
    ({ transactionHash, transactionIndex, status, gasUsed, effectiveGasPrice, blobGasUsed, blobGasPrice, logs: listOf(logs).length }));
}

/* Withdrawals and uncles. */

function withdrawals(block) {
  const all = listOf(block.withdrawals);
  if (all.length === 0) return null;
  const columns = [["Index"], ["Validator"], ["Address"], ["Amount", "right"]];
  const [container] = paged(all.length, (begin, end) => table("Withdrawals", columns, all.slice(begin, end).map((it) =>
    [whole(it.index), whole(it.validatorIndex), hexLink("address", it.address), etherOfGwei(it.amount)])));
  const sum = all.reduce((total, it) => total + (quantity(it.amount) ?? 0n), 0n);
  return card(`Withdrawals (${whole(all.length)})`, el("p", { class: "dim" }, `Together ${etherOfGwei(sum)}, from the beacon chain.`), container);
}

/** A card, and a promise of what it shows: the uncles as they came, null for each that did not. */
function uncles(block, page) {
  const hashes = textsOf(block.uncles);
  if (hashes.length === 0) return [null, Promise.resolve(null)];
  const container = el("div", null, el("p", { class: "loading" }, "Asking the server…"));
  return [card(`Uncles (${whole(hashes.length)})`, container), showUncles(container, block, hashes.slice(0, 16), page)];
}

async function showUncles(container, block, hashes, page) {
  try {
    const found = await callAll(hashes.map((_, at) => ["eth_getUncleByBlockHashAndIndex", [block.hash, `0x${at.toString(16)}`]]), { signal: page.signal });
    const shown = found.map((it) => (it instanceof RpcError || it === null ? null : { number: it.number, miner: it.miner, timestamp: it.timestamp }));
    fill(container, table("Uncles", [["Number"], ["Hash"], ["Miner"], ["Age"]], hashes.map((hash, at) => {
      const { number, miner, timestamp } = shown[at] ?? {};
      return [whole(number), el("span", { class: "hex", title: excerpt(hash, 66) }, hash.length === 66 ? `${hash.slice(0, 18)}…${hash.slice(-8)}` : ABSENT),
        hexLink("address", miner), timestamp === undefined ? ABSENT : time(timestamp, { exact: false })];
    })));
    return shown;
  } catch (error) {
    if (!page.signal.aborted) fill(container, explain(error));
    return null;
  }
}
