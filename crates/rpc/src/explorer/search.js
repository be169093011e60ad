// Search: what a text may mean, and the page that it leads to.
//
// Knows: the forms of numbers, hashes, addresses and tags.
// Never knows: what is on the pages.

import { blockNumber, el, excerpt, fill, isAddress, isHash, route as routeTo } from "./format.js";
import { callAll, RpcError } from "./rpc.js";
import { absent, explain, isNotHeld, notHeld, notice } from "./answers.js";

const TAGS = ["latest", "earliest", "finalized", "safe", "pending"];

/** What a text asks for: `{kind, value}` with the kind block, address, hash or unknown. */
export function readQuery(text) {
  // A page's own address, whatever host it was copied with.
  const [, argument] = /#\/(?:block|tx|address)\/([^/?\s]+)/.exec(text) ?? [];
  if (argument !== undefined) return readQuery(argument);
  const query = text.trim().replace(/^#\/?/, "");
  const tag = TAGS.find((it) => it === query.toLowerCase() || (it === "finalized" && query.toLowerCase() === "finalised"));
  if (tag !== undefined) return { kind: "block", value: tag };
  const plain = query.replace(/[\s,_']/g, "");
  const decimal = /^\d+$/.test(plain) ? blockNumber(plain) : null;
  if (decimal !== null) return { kind: "block", value: decimal.toString() };
  const hex = /^(0x|0X)?([0-9a-fA-F]+)$/.exec(plain);
  if (hex === null) return { kind: "unknown", value: query };
  const value = `0x${hex[2].toLowerCase()}`;
  if (isHash(value)) return { kind: "hash", value };
  // Capitals and small letters together are a checksum, which the page of the address looks at.
  if (isAddress(value)) return { kind: "address", value: hex[2] === hex[2].toUpperCase() ? value : `0x${hex[2]}` };
  if (hex[1] !== undefined && hex[2].length <= 16) return { kind: "block", value: BigInt(value).toString() };
  return { kind: "unknown", value: query, digits: hex[2].length };
}

export async function renderSearch(main, route, page) {
  const { kind, value, digits } = readQuery(route.argument);
  if (kind === "block" || kind === "address") return location.replace(routeTo(kind, value));
  if (kind === "hash") return searchHash(main, value, page);
  fill(main, el("h1", null, "Nothing can be searched by this"),
    notice("", "This is no number, hash, address or tag.",
      el("p", null, "You searched for ", el("bdi", { class: "said" }, excerpt(value, 200)), "."),
      digits === undefined ? null : el("p", null, `It has ${digits} hexadecimal digits: a hash has 64, an address 40, and the number of a block in hexadecimal begins with 0x and has at most 16.`),
      el("ul", null,
        el("li", null, "A block: its number, as ", el("code", null, "1,234"), " or ", el("code", null, "0x4d2"), ", or its hash"),
        el("li", null, "A transaction: its hash"),
        el("li", null, "An address: 0x and 40 digits"),
        el("li", null, "A tag: ", TAGS.map((it, at) => [at === 0 ? "" : ", ", el("a", { href: routeTo("block", it) }, it)])))));
}

async function searchHash(main, hash, page) {
  const [transaction, block] = await callAll([["eth_getTransactionByHash", [hash]], ["eth_getBlockByHash", [hash, false]]], { signal: page.signal });
  const isFound = (it) => it !== null && typeof it === "object" && !(it instanceof RpcError);
  if (isFound(transaction)) return location.replace(routeTo("tx", hash));
  if (isFound(block)) return location.replace(routeTo("block", hash));
  const failure = [transaction, block].find((it) => it instanceof RpcError);
  fill(main, el("h1", null, "Not found"), el("p", { class: "hash wrap" }, hash));
  if (failure === undefined) main.append(await absent("A block or transaction with this hash", hash));
  else if (isNotHeld(failure)) main.append(notHeld(failure, "A block or transaction with this hash"));
  else main.append(explain(failure));
}
