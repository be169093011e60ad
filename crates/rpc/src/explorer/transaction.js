// The page of a transaction: what it is, what it cost, what it did, and its logs.
//
// Knows: the members of every type of transaction and of its receipt.
// Never knows: how anything is transported or proven.

import {
  ABSENT, amount, badge, bloom, bytes, card, copyButton, count, counted, dataField, dataLength, el, excerpt, field, fields, fill, focusOn,
  hexLink, isAddress, isData, isHash, listOf, percent, plainNumber, price, quantity, route as routeTo, table, textsOf, time, whole, written,
} from "./format.js";
import { call, callAll, RpcError } from "./rpc.js";
import { chain } from "./chain.js";
import { absent, explain, isNotHeld, notHeld, notice } from "./answers.js";
import { logCards } from "./logs.js";
import { rawJson, rawRlp } from "./raw.js";

/** Types of EIP-2718: a short name, and what it is. */
export const TYPES = [
  ["legacy", "from before typed transactions"],
  ["access list", "EIP-2930: says beforehand what it will read"],
  ["dynamic fee", "EIP-1559: a base fee that is burnt, and a tip"],
  ["blob", "EIP-4844: carries data for rollups beside the block"],
  ["set code", "EIP-7702: lets accounts act as contracts"],
];

/** Selectors of common functions, the first four bytes of call data. */
const SELECTORS = {
  "0xa9059cbb": "transfer(address,uint256)",
  "0x23b872dd": "transferFrom(address,address,uint256)",
  "0x095ea7b3": "approve(address,uint256)",
  "0xa22cb465": "setApprovalForAll(address,bool)",
  "0x42842e0e": "safeTransferFrom(address,address,uint256)",
  "0xb88d4fde": "safeTransferFrom(address,address,uint256,bytes)",
  "0xf242432a": "safeTransferFrom(address,address,uint256,uint256,bytes)",
  "0x2eb2c2d6": "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
  "0xd0e30db0": "deposit()",
  "0x2e1a7d4d": "withdraw(uint256)",
  "0xac9650d8": "multicall(bytes[])",
  "0x3593564c": "execute(bytes,bytes[],uint256)",
  "0x38ed1739": "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)",
  "0x7ff36ab5": "swapExactETHForTokens(uint256,address[],address,uint256)",
  "0x18cbafe5": "swapExactTokensForETH(uint256,uint256,address[],address,uint256)",
};

/** Items of a list that are shown at first. */
const ITEMS_SHOWN = 20;

export async function renderTransaction(main, route, page) {
  const hash = route.argument.trim().toLowerCase();
  const head = [el("h1", null, "Transaction"), el("p", { class: "hash wrap" }, excerpt(route.argument, 200))];
  if (!isHash(hash)) {
    return fill(main, head, notice("", "A transaction is named by its hash.", el("p", null, "That is 0x and 64 hexadecimal digits.")));
  }
  const [transaction, receipt] = await callAll([["eth_getTransactionByHash", [hash]], ["eth_getTransactionReceipt", [hash]]], { signal: page.signal });
  if (transaction instanceof RpcError) {
    return fill(main, head, isNotHeld(transaction) ? notHeld(transaction, "A transaction with this hash") : explain(transaction));
  }
  if (transaction === null) return fill(main, head, await absent("A transaction with this hash", hash));
  if (typeof transaction !== "object" || !isHash(transaction.hash)) {
    return fill(main, head, notice("bad", "The answer is no transaction."), rawJson("What came", "transaction.json", transaction));
  }
  // An honest proof of another transaction would prove all that is shown.
  if (transaction.hash.toLowerCase() !== hash) {
    return fill(main, head, notice("bad", "The server answered with another transaction.", el("p", null, "Its hash is ", el("span", { class: "hex wrap" }, transaction.hash), ". Do not believe this server.")),
      rawJson("What came", "transaction.json", transaction));
  }
  return showTransaction(main, hash, transaction, receipt, page);
}

async function showTransaction(main, hash, transaction, receipt, page) {
  const held = receipt instanceof RpcError || receipt === null || typeof receipt !== "object" ? null : receipt;
  main.dataset.title = `Transaction ${hash.slice(0, 10)}…`;
  const [answer] = await callAll([["eth_getHeaderByHash", [transaction.blockHash]]], { signal: page.signal }).catch(() => [null]);
  if (page.signal.aborted) return;
  const header = answer instanceof RpcError || answer === null || typeof answer !== "object" ? null : answer;
  const base = quantity(header?.baseFeePerGas);
  const type = count(transaction.type);
  const proof = el("div", { class: "proof" });
  const marks = el("span", { class: "marks" }, outcome(held), el("span", { title: TYPES[type]?.[1] ?? "a type that this page does not know" }, badge(TYPES[type]?.[0] ?? `type ${whole(type)}`)));
  fill(main,
    el("div", { class: "heading" }, el("h1", null, "Transaction"), marks),
    el("p", { class: "hash" }, el("span", { class: "hex wrap" }, hash), copyButton(hash, "hash")),
    receipt instanceof RpcError ? (isNotHeld(receipt) ? notHeld(receipt, "The receipt", count(transaction.blockNumber)) : explain(receipt)) : null,
    el("div", { class: "columns even" }, card("Transaction", summary(transaction, held)), card("Gas and fee", fee(transaction, held, base))),
    input(transaction), accessList(transaction), authorizations(transaction), blobs(transaction, held),
    held === null ? null : card(`Logs (${whole(listOf(held.logs).length)})`, logCards(held.logs)),
    card("Signature and other fields", signature(transaction, held)),
    el("section", { class: "card" }, el("h2", null, "Proof"), proof),
    el("section", { class: "card" }, el("h2", null, "Raw"),
      rawJson("JSON of the transaction", `transaction-${hash.slice(2, 10)}.json`, transaction),
      held === null ? null : rawJson("JSON of its receipt", `receipt-${hash.slice(2, 10)}.json`, held),
      rawRlp("RLP of the transaction", `transaction-${hash.slice(2, 10)}.hex`, "debug_getRawTransaction", [hash])));
  onReplaced(count(transaction.blockNumber), transaction.blockHash, (isReplaced) => {
    fill(marks, badge(isReplaced ? "its block was replaced by a reorg" : "its block is no longer in the server's chain", "bad"), " ", el("a", { href: routeTo("tx", hash), onclick: () => dispatchEvent(new HashChangeEvent("hashchange")) }, "look again"));
  }, page.signal);
  try {
    const { proveTransaction } = await import("./prove.js");
    proveTransaction(proof, hash, { transaction, receipt: held, header });
  } catch (error) {
    console.warn(error);
    fill(proof, el("p", { class: "dim" }, "The part of this page that proves could not be loaded."));
  }
}

/** Tells that the block of this number and hash has left the chain, and whether another took its place by then. */
export function onReplaced(number, hash, tell, signal) {
  let last = null;
  let told = null;
  const sees = (found, isAbove = false) => {
    const isReplaced = isHash(found) && found !== hash;
    const isGone = isAbove && found === undefined;
    if (told === "replaced" || !(isReplaced || (isGone && told === null))) return;
    told = isReplaced ? "replaced" : "gone";
    tell(isReplaced);
  };
  chain.onHead(async (head) => {
    const isNext = last !== null && head.parentHash === last;
    last = head.hash;
    const at = count(head.number);
    if (at === number) return sees(head.hash);
    // A child of the last head replaces nothing below. Before any other, heads may have come that nobody told of:
    // they are polled, or the socket broke. And where the newest block is below, this one may be gone.
    if (isNext || number === null || at === null) return;
    try {
      sees((await call("eth_getHeaderByNumber", [`0x${number.toString(16)}`], { signal }))?.hash, at < number);
    } catch {
      last = null; // The next head asks again.
    }
  }, signal);
}

function outcome(receipt) {
  const status = quantity(receipt?.status);
  if (receipt === null) return badge("outcome not known", "warn");
  if (status === null) return el("span", { title: "before Byzantium a receipt does not say whether a transaction succeeded" }, badge("outcome not recorded"));
  return status === 1n ? badge("succeeded", "good") : badge("failed", "bad");
}

function summary(transaction, receipt) {
  const creates = transaction.to === null;
  const created = receipt?.contractAddress;
  return fields(
    field("Block", [hexLink("block", transaction.blockNumber), el("span", { class: "dim" }, `, position ${whole(transaction.transactionIndex)}`)]),
    transaction.blockTimestamp === undefined ? null : field("Time", time(transaction.blockTimestamp)),
    field("From", address(transaction.from)),
    creates ? field(quantity(receipt?.status) === 0n ? "Would have created" : "Creates", isAddress(created) ? [address(created), el("span", { class: "dim" }, " a contract")] : el("span", { class: "dim" }, "a contract")) : field("To", address(transaction.to)),
    field("Value", amount(transaction.value)),
    field("Nonce", whole(transaction.nonce)));
}

function address(value) {
  return isAddress(value) ? [hexLink("address", value, { short: false }), copyButton(value, "address")] : hexLink("address", value);
}

function fee(transaction, receipt, base) {
  const [limit, used, paid] = [quantity(transaction.gas), quantity(receipt?.gasUsed), quantity(receipt?.effectiveGasPrice) ?? quantity(transaction.gasPrice)];
  const blobFee = (quantity(receipt?.blobGasUsed) ?? 0n) * (quantity(receipt?.blobGasPrice) ?? 0n);
  const known = used !== null && paid !== null;
  return fields(
    known ? field("Fee", [amount(used * paid + blobFee), blobFee > 0n ? el("span", { class: "dim" }, ` · ${amount(blobFee)} of it for blobs`) : null]) : null,
    field("Gas used", used === null ? ABSENT : [whole(used), el("span", { class: "dim" }, ` of ${whole(limit)} · ${percent(used, limit ?? 0n)}`)]),
    field("Price paid", price(paid), "for a unit of gas"),
    base === null ? null : field("Base fee", [price(base), known ? el("span", { class: "dim" }, ` · ${amount(base * used)} burnt`) : null]),
    base === null || paid === null || paid < base ? null : field("Tip", [price(paid - base), known && paid > base ? el("span", { class: "dim" }, ` · ${amount((paid - base) * used)}`) : null]),
    transaction.maxFeePerGas === undefined ? null : field("Highest price", price(transaction.maxFeePerGas), "maxFeePerGas: what the sender would have paid"),
    transaction.maxPriorityFeePerGas === undefined ? null : field("Highest tip", price(transaction.maxPriorityFeePerGas), "maxPriorityFeePerGas"),
    receipt === null ? null : field("Gas up to here", whole(receipt.cumulativeGasUsed), "of this and all earlier transactions of the block"));
}

function input(transaction) {
  const data = transaction.input;
  const size = dataLength(data);
  if (size === 0) return null;
  const selector = isData(data) && size >= 4 && transaction.to !== null ? data.slice(0, 10).toLowerCase() : null;
  const name = selector !== null && Object.hasOwn(SELECTORS, selector) ? SELECTORS[selector] : null;
  const zeros = isData(data) ? [...data.slice(2).matchAll(/../g)].filter(([octet]) => octet === "00").length : 0;
  return card(transaction.to === null ? "Init code" : "Call data", fields(
    selector === null ? null : field("Method", [el("code", null, selector), name === null ? el("span", { class: "dim" }, " selector of a function that this page does not know") : [" ", el("code", null, name), el("span", { class: "dim" }, " by its selector")]]),
    field("Size", size === null ? ABSENT : [bytes(size), zeros > 0 ? el("span", { class: "dim" }, ` · ${percent(zeros, size)} zero`) : null]),
    selector !== null && size > 4 && (size - 4) % 32 === 0 && size <= 4 + 32 * 64 ? field("Words", words(data)) : null,
    field("Data", dataField(data, "call data"))));
}

function words(data) {
  const all = [...data.slice(10).matchAll(/.{64}/g)].map(([it]) => it);
  const list = (shown) => el("ol", { class: "words", start: 0 }, shown.map((it) => {
    const isAddressLike = /^0{24}/.test(it) && !/^0{40}/.test(it);
    return el("li", null, el("span", { class: "hex wrap" }, it), isAddressLike ? [" ", hexLink("address", `0x${it.slice(24)}`)] : /^0{48}/.test(it) ? el("span", { class: "dim" }, ` = ${whole(BigInt(`0x${it}`))}`) : null);
  }));
  return more(all, ITEMS_SHOWN, list);
}

/** The first items of a list, and a button for all. */
function more(all, shown, make) {
  const container = el("div", null, make(all.slice(0, shown)));
  if (all.length > shown) container.append(el("button", { type: "button", class: "more", onclick: () => { fill(container, make(all)); focusOn(container); } }, `show all ${whole(all.length)}`));
  return container;
}

function accessList(transaction) {
  const entries = listOf(transaction.accessList);
  if (entries.length === 0) return null;
  const keys = entries.reduce((sum, it) => sum + textsOf(it.storageKeys).length, 0);
  return card(`Access list (${whole(entries.length)})`, el("p", { class: "dim" }, `${counted(entries.length, "address", "addresses")} and ${counted(keys, "storage key")} that it said it would use.`),
    more(entries, ITEMS_SHOWN, (shown) => table("Access list", [["Address"], ["Storage keys"]], shown.map((it) => [
      hexLink("address", it.address), textsOf(it.storageKeys).length === 0 ? el("span", { class: "dim" }, "none")
        : more(textsOf(it.storageKeys), 5, (some) => el("ul", { class: "plain" }, some.map((key) => el("li", { class: "hex wrap" }, key.slice(0, 200)))))]))));
}

function authorizations(transaction) {
  const entries = listOf(transaction.authorizationList);
  if (entries.length === 0) return null;
  return card(`Authorizations (${whole(entries.length)})`, el("p", { class: "dim" }, "Accounts that let the code of an address act for them, by signature (EIP-7702). Whose account each is follows from its signature."),
    more(entries, ITEMS_SHOWN, (shown) => table("Authorizations", [["Code of"], ["Chain", "right"], ["Nonce", "right"], ["Parity", "right"], ["Signature r"], ["s"]], shown.map((it) => [
      /^0x0{40}$/.test(it.address) ? el("span", { title: it.address }, "none: takes it back") : hexLink("address", it.address),
      quantity(it.chainId) === 0n ? "any" : plainNumber(it.chainId), whole(it.nonce), whole(it.yParity), shortHex(it.r), shortHex(it.s)]))));
}

function shortHex(value) {
  return el("span", { class: "hex", title: typeof value === "string" ? value.slice(0, 100) : null }, typeof value === "string" && value.length > 22 ? `${value.slice(0, 12)}…${value.slice(-6)}` : written(value ?? ABSENT).slice(0, 40));
}

function blobs(transaction, receipt) {
  const hashes = textsOf(transaction.blobVersionedHashes);
  if (hashes.length === 0) return null;
  const [used, paid] = [quantity(receipt?.blobGasUsed), quantity(receipt?.blobGasPrice)];
  return card(`Blobs (${whole(hashes.length)})`,
    fields(
      field("Blob gas used", used === null ? ABSENT : whole(used)),
      field("Blob gas price", paid === null ? ABSENT : price(paid)),
      used === null || paid === null ? null : field("Blob fee", amount(used * paid), "burnt"),
      field("Highest blob price", price(transaction.maxFeePerBlobGas), "maxFeePerBlobGas"),
      field("Data", `${bytes(hashes.length * 131072)}, kept by beacon nodes for some weeks; the chain has the hashes alone`)),
    more(hashes, ITEMS_SHOWN, (shown) => el("ol", { class: "words", start: 0 }, shown.map((it) => el("li", { class: "hex wrap" }, it.slice(0, 200))))));
}

const KNOWN = new Set(["type", "chainId", "nonce", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "to", "value", "accessList", "blobVersionedHashes",
  "maxFeePerBlobGas", "authorizationList", "input", "r", "s", "yParity", "v", "hash", "blockHash", "blockNumber", "transactionIndex", "blockTimestamp", "from"]);

function signature(transaction, receipt) {
  return fields(
    field("Chain id", transaction.chainId === undefined ? el("span", { class: "dim" }, "none: signed before EIP-155, good on any chain") : plainNumber(transaction.chainId)),
    field("r", dataOrQuantity(transaction.r)), field("s", dataOrQuantity(transaction.s)),
    transaction.yParity === undefined ? null : field("Parity", whole(transaction.yParity)),
    transaction.yParity === undefined ? field("v", whole(transaction.v)) : null,
    field("Block hash", hexLink("block", transaction.blockHash, { short: false })),
    receipt?.logsBloom === undefined ? null : field("Logs bloom", bloom(receipt.logsBloom)),
    receipt?.root === undefined ? null : field("State root after it", dataField(receipt.root, "state root")),
    Object.entries(transaction).filter(([name]) => !KNOWN.has(name)).slice(0, 20)
      .map(([name, value]) => field(name.slice(0, 60), dataField(typeof value === "string" ? value : JSON.stringify(value), name))));
}

function dataOrQuantity(value) {
  return quantity(value) === null ? dataField(value) : el("span", { class: "hex wrap" }, value);
}

