// What proven bytes say, in the form of the JSON-RPC API, and where an answer of the server says otherwise.
//
// Knows: the fields of transactions, receipts, withdrawals and headers in their consensus form.
// Never knows: how bytes were proven, or the document: other programs may import it. Bytes of forms that it does
// not know are not compared, and that is told.

import { logsOf } from "./consensus.js";
import { keccak256, toHex } from "./keccak.js";
import { Fault, listItems, wholeList } from "./rlp.js";

const ITEMS_MAX = 2 ** 20;
const TYPE_MAX = 0x7f;
/** EIP-4844. */
const GAS_PER_BLOB = 2 ** 17;

/* Forms: how an item is written in JSON. */

const data = (item) => toHex(item.payload);
const quantity = (item) => `0x${toHex(item.payload).slice(2).replace(/^0+/, "") || "0"}`;
const recipient = (item) => (item.payload.length === 0 ? null : data(item));
const each = (form) => (item) => listItems(item, ITEMS_MAX).map(form);
const object = (forms) => (item) => named(listItems(item, 64), forms);
const accessList = each(object([["address", data], ["storageKeys", each(data)]]));
const authorizations = each(object([["chainId", quantity], ["address", data], ["nonce", quantity], ["yParity", quantity],
  ["r", quantity], ["s", quantity]]));

const NONCE = ["nonce", quantity];
const CHAIN = ["chainId", quantity];
const PAID = [["gas", quantity], ["to", recipient], ["value", quantity], ["input", data]];
const SIGNED = [["yParity", quantity], ["r", quantity], ["s", quantity]];
const FEES = [["maxPriorityFeePerGas", quantity], ["maxFeePerGas", quantity]];
const ACCESS = ["accessList", accessList];

/** The fields of a transaction by its type, in their order. */
const TRANSACTION_FORMS = [
  [NONCE, ["gasPrice", quantity], ...PAID, ["v", quantity], ["r", quantity], ["s", quantity]],
  [CHAIN, NONCE, ["gasPrice", quantity], ...PAID, ACCESS, ...SIGNED],
  [CHAIN, NONCE, ...FEES, ...PAID, ACCESS, ...SIGNED],
  [CHAIN, NONCE, ...FEES, ...PAID, ACCESS, ["maxFeePerBlobGas", quantity], ["blobVersionedHashes", each(data)], ...SIGNED],
  [CHAIN, NONCE, ...FEES, ...PAID, ACCESS, ["authorizationList", authorizations], ...SIGNED],
];

const WITHDRAWAL_FORMS = [["index", quantity], ["validatorIndex", quantity], ["address", data], ["amount", quantity]];

const HEADER_FORMS = [
  ["parentHash", data], ["sha3Uncles", data], ["miner", data], ["stateRoot", data], ["transactionsRoot", data],
  ["receiptsRoot", data], ["logsBloom", data], ["difficulty", quantity], ["number", quantity], ["gasLimit", quantity],
  ["gasUsed", quantity], ["timestamp", quantity], ["extraData", data], ["mixHash", data], ["nonce", data],
  ["baseFeePerGas", quantity], ["withdrawalsRoot", data], ["blobGasUsed", quantity], ["excessBlobGas", quantity],
  ["parentBeaconBlockRoot", data], ["requestsHash", data], ["blockAccessListHash", data], ["slotNumber", quantity],
];

/** Members of other types, which a transaction is proven not to have. */
const NO_FIELDS = Object.fromEntries(TRANSACTION_FORMS.flat().map(([name]) => [name, undefined]));

function named(items, forms) {
  return Object.fromEntries(forms.map(([name, form], at) => [name, at < items.length ? form(items[at]) : undefined]));
}

/* Values. A member that is undefined is proven not to be there; one that is missing is not proven. */

/** What a header says. Fields of forks that are still to come have no name here. */
export function headerFields(rlp) {
  return { ...named(wholeList(rlp, 64), HEADER_FORMS), hash: toHex(keccak256(rlp)) };
}

/** What a transaction says, as `eth_getTransactionByHash` writes it; null of a type that is not known. */
export function transactionFields(bytes, header, index) {
  const type = bytes[0] <= TYPE_MAX ? bytes[0] : 0;
  const forms = TRANSACTION_FORMS[type];
  if (forms === undefined) return null;
  const items = wholeList(bytes[0] <= TYPE_MAX ? bytes.subarray(1) : bytes, forms.length);
  if (items.length !== forms.length) throw new Fault(`a transaction of type ${type} has ${items.length} fields, not ${forms.length}`);
  const fields = { ...NO_FIELDS, ...named(items, forms) };
  if (type > 0) fields.v = fields.yParity;
  // EIP-155: a legacy transaction signs its chain by `v`, if it does.
  else if (BigInt(fields.v) >= 35n) fields.chainId = `0x${((BigInt(fields.v) - 35n) / 2n).toString(16)}`;
  if (type > 1) fields.gasPrice = paidPrice(fields, header);
  return { ...fields, type: `0x${type.toString(16)}`, hash: toHex(keccak256(bytes)), ...placeOf(header, index) };
}

/** What is paid for a unit of gas: the base fee and a tip, up to a limit. */
function paidPrice({ maxFeePerGas, maxPriorityFeePerGas }, { baseFeePerGas }) {
  const wanted = BigInt(baseFeePerGas ?? 0) + BigInt(maxPriorityFeePerGas);
  return `0x${(wanted < BigInt(maxFeePerGas) ? wanted : BigInt(maxFeePerGas)).toString(16)}`;
}

function placeOf(header, index) {
  const transactionIndex = `0x${index.toString(16)}`;
  return { blockHash: header.hash, blockNumber: header.number, blockTimestamp: header.timestamp, transactionIndex };
}

/** What a receipt says, as `eth_getTransactionReceipt` writes it. Its gas is proven for the first of a block alone. */
export function receiptFields(bytes, transaction, index) {
  const { cumulativeGasUsed, logsBloom, ...outcome } = outcomeFields(bytes, transaction);
  const { blockHash, blockNumber, blockTimestamp, transactionIndex, hash, type, to, gasPrice } = transaction;
  const place = { blockHash, blockNumber, transactionIndex, transactionHash: hash };
  const logs = logsOf(bytes).map(({ address, topics, data: logData }) => ({
    address: toHex(address), topics: topics.map(toHex), data: toHex(logData), ...place, blockTimestamp, removed: false,
  }));
  const own = index === 0 ? { gasUsed: cumulativeGasUsed } : {};
  return { ...outcome, ...own, ...place, type, to, effectiveGasPrice: gasPrice, cumulativeGasUsed, logsBloom, logs };
}

function outcomeFields(bytes, { blobVersionedHashes: blobs }) {
  const [outcome, gas, bloom] = wholeList(bytes[0] <= TYPE_MAX ? bytes.subarray(1) : bytes, 4);
  const said = outcome.payload.length === 32 ? { root: data(outcome), status: undefined } : { root: undefined, status: quantity(outcome) };
  said.blobGasUsed = blobs === undefined ? undefined : `0x${(blobs.length * GAS_PER_BLOB).toString(16)}`;
  if (blobs === undefined) said.blobGasPrice = undefined;
  return { ...said, cumulativeGasUsed: quantity(gas), logsBloom: data(bloom) };
}

/**
 * What all receipts of a block say, as far as its page shows them: of logs their number, so that large ones are not
 * written out. Null for each of a transaction whose type is not known; `transactions` are as `blockFields` has them.
 */
export function blockReceiptFields({ receipts }, transactions) {
  let before = 0n;
  return receipts.map((bytes, index) => {
    const transaction = transactions[index];
    const { root, logsBloom, cumulativeGasUsed, ...outcome } = outcomeFields(bytes, transaction ?? {});
    const gasUsed = `0x${(BigInt(cumulativeGasUsed) - before).toString(16)}`;
    before = BigInt(cumulativeGasUsed);
    if (transaction === null) return null;
    const { transactionIndex, hash: transactionHash, gasPrice: effectiveGasPrice } = transaction;
    return { ...outcome, transactionHash, transactionIndex, gasUsed, effectiveGasPrice, logs: logsOf(bytes).length };
  });
}

/** What a whole block says, as `eth_getBlockByNumber` writes it with all of each transaction. */
export function blockFields({ header: rlp, transactions, ommers, withdrawals }) {
  const header = headerFields(rlp);
  const fields = {
    ...header,
    transactions: transactions.map((bytes, index) => transactionFields(bytes, header, index)),
    uncles: wholeList(ommers, ITEMS_MAX).map((ommer) => toHex(keccak256(ommer.encoded))),
  };
  fields.withdrawals = withdrawals?.map((bytes) => named(wholeList(bytes, 64), WITHDRAWAL_FORMS));
  return fields;
}

/** What the uncles of a block say, as far as its page shows them. */
export function uncleFields({ ommers }) {
  return wholeList(ommers, ITEMS_MAX).map(({ encoded }) => {
    const { number, miner, timestamp } = headerFields(encoded);
    return { number, miner, timestamp };
  });
}

/* Comparison. */

/** Differences that are told one by one. */
const DIFFERENCES_MAX = 20;

/**
 * Holds what was shown against what is proven: `compared` values, `differing` ones as `{name, shown, proven}`,
 * and the names of those that the bytes do not say, `unproven`. What is proven and left out differs, too, and so does
 * what is proven not to be there: a page without a withdrawal is as false as one with another.
 */
export function compare(shown, proven) {
  const found = { compared: 0, differing: [], unproven: new Set() };
  compareValue("", shown, proven, found);
  return { ...found, unproven: [...found.unproven] };
}

function compareValue(name, shown, proven, found) {
  if (proven === undefined) {
    found.unproven.add(name.replaceAll(/\[\d+\]/g, "[]"));
  } else if (Array.isArray(shown) && Array.isArray(proven)) {
    compareValue(`${name}.length`, shown.length, proven.length, found);
    const count = Math.min(shown.length, proven.length);
    for (let at = 0; at < count; at += 1) compareValue(`${name}[${at}]`, shown[at], proven[at] ?? undefined, found);
  } else if (isObject(shown) && isObject(proven)) {
    for (const [key, value] of Object.entries(shown)) {
      const inner = memberName(name, key);
      if (Object.hasOwn(proven, key) && proven[key] === undefined) note(inner, textOf(value), NOTHING, found);
      else compareValue(inner, value, Object.hasOwn(proven, key) ? proven[key] : undefined, found);
    }
    for (const [key, value] of Object.entries(proven)) {
      if (value !== undefined && !Object.hasOwn(shown, key)) note(memberName(name, key), NOTHING, textOf(value), found);
    }
  } else {
    note(name, textOf(shown), textOf(proven), found);
  }
}

function note(name, shown, proven, found) {
  found.compared += 1;
  if (shown === proven || found.differing.length >= DIFFERENCES_MAX) return;
  found.differing.push({ name, shown: withoutQuotes(shown), proven: withoutQuotes(proven) });
}

const memberName = (name, key) => (name === "" ? key : `${name}.${key}`);

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** What stands for no value: it is no JSON, so no value has the same text. */
const NOTHING = "nothing";

/**
 * A value as JSON: a text that looks like a list, or like null, is neither. Hex digits have no case; the `x` has one:
 * what begins with `0X` is shown as no value at all.
 */
function textOf(value) {
  if (value === undefined) return NOTHING;
  // A number that is too large for JSON would be written as null.
  if (typeof value === "number") return String(value);
  return JSON.stringify(typeof value === "string" && /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value);
}

/** For the reader: quotes tell nothing of hex. */
const withoutQuotes = (text) => text.replace(/^"(0x[0-9a-f]*)"$/, "$1");
