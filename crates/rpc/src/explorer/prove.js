// "Prove it": a bundle of the server, recomputed here, step by step; and bundles from elsewhere.
//
// Knows: which method proves what a page shows, what each step means, and what a verdict is worth.
// Never knows: how a bundle is verified (verify.js). What the server says besides the bundle is not believed: it
// is held against what was proven.

import { badge, bytes, counted, el, fill, hexLink, isHash, quantity, shortened, whole } from "./format.js";
import { RpcError, callRaw } from "./rpc.js";
import { explain, isNotHeld, notice } from "./answers.js";
import { disclosure, saveFile } from "./raw.js";
import { BUNDLE_BYTES_MAX } from "./bundle.js";
import { blockFields, blockReceiptFields, compare, headerFields, receiptFields, transactionFields, uncleFields } from "./proven.js";
import { parseAnchor, verifyBundle } from "./verify.js";

/** Hashes on the way that are shown of a long one, at both ends. */
const TRAIL_SHOWN = 20;
const LOGS_SHOWN = 50;

/** What each step shows, for a reader who sees the word for the first time. */
const MEANINGS = {
  text: "A bundle has one spelling, so nothing hides in it that was not looked at.",
  "header hash": "Keccak-256 of the header's bytes is the block's hash.",
  "transaction path": "From the header's transactions root down, each node of the trie has the hash that the one before names.",
  "transaction bytes": "The leaf holds these bytes, and their Keccak-256 is the transaction's hash.",
  "receipt path": "From the header's receipts root down, each node of the trie has the hash that the one before names.",
  "receipt bytes": "The leaf holds these bytes: they are the receipt of this very transaction.",
  log: "The receipt has exactly as many logs as the bundle says, and this is one of them.",
  "transactions root": "The trie over all transactions, built anew, has the root that the header names.",
  "receipts root": "The trie over all receipts, built anew, has the root that the header names.",
  "ommers hash": "Keccak-256 of the list of ommers is the one that the header names.",
  "withdrawals root": "The trie over all withdrawals, built anew, has the root that the header names.",
  filter: "This is the question that the list of logs answers.",
  bloom: "The bloom filters of these blocks say that no log of theirs matches.",
  "header links": "Each header names the one before as its parent, so the last one vouches for all.",
  "accumulator branch": "Merged with its siblings by SHA-256, the block's hash leads to the root over all blocks before the merge.",
  anchor: "The way ends at the hash that the bundle names.",
  question: "What was asked for is what was proven.",
  page: "What this page shows is what the proven bytes say.",
  verifier: "This is a mistake of the page.",
};

/** Steps that go by another name in the document than here. */
const LABELS = { text: "canonical form", question: "what was asked for", page: "what this page shows" };

const BLOB_PRICE = "the price of blob gas, which follows from the header and the fork, and so what blobs cost";

/** Why a value of a page is in no bundle. */
const UNPROVEN = {
  "": "the transaction, whose type this page does not know",
  from: "the sender, which follows from the signature",
  gasUsed: "gas used, which takes the receipt before, and so the fee, what is burnt and the tip",
  contractAddress: "the address of a new contract, which follows from the sender",
  blobGasPrice: BLOB_PRICE,
  size: "the size of the block",
  receipt: "the receipt, and so the outcome, the gas used and the logs",
  "receipts[]": "receipts of transactions of types that this page does not know",
  "receipts[].blobGasPrice": BLOB_PRICE,
  "logs[].logIndex": "the index of logs in the block, which takes all receipts before",
  "uncles[]": "uncles that did not come",
  "transactions[]": "transactions of types that this page does not know",
  "transactions[].from": "senders, which follow from the signatures",
};

/**
 * Puts the button for a transaction into a container. `shown` has what the page shows, as the API answered it:
 * `{transaction, receipt, header}`, null where nothing came.
 */
export function proveTransaction(container, hash, shown = null) {
  offer(container, {
    file: `proof-${hash.slice(2, 10)}.json`,
    what: "this transaction and its receipt",
    ask: async (anchor) => {
      try {
        return await fetchBundle("quipu_proveReceipt", [hash, anchor]);
      } catch (error) {
        if (!isNotHeld(error)) throw error;
        const answer = await fetchBundle("quipu_proveTransaction", [hash, anchor]);
        return { ...answer, note: "The receipt is not held by this server: the transaction alone is proven." };
      }
    },
    check: ({ claim, content }) => checkTransaction(hash, shown, claim, content),
  });
}

/**
 * Puts the button for a block into a container. `shown` has what the page shows, as the API answered it:
 * `{block, later}`, where `later` is a promise of `{receipts, uncles}`, null where nothing came.
 */
export function proveBlock(container, number, shown = null) {
  const reference = isHash(shown?.block.hash) ? shown.block.hash : `0x${number.toString(16)}`;
  offer(container, {
    file: `proof-block-${number}.json`,
    what: "this block with all of its transactions, receipts, uncles and withdrawals",
    ask: (anchor) => fetchBundle("quipu_proveBlock", [reference, anchor]),
    check: ({ claim, content }) => checkBlock(number, shown, claim, content),
  });
}

/* Bundles of the server. */

/** The text of a bundle as it came: null if there is nothing to prove. */
async function fetchBundle(method, params) {
  const { text, millis, status } = await callRaw(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  const head = '{"jsonrpc":"2.0","id":1,"result":';
  const bundle = text.startsWith(head) && text.endsWith("}") ? text.slice(head.length, -1) : resultOf(text, status);
  return { bundle: bundle === "null" ? null : bundle, millis, method, note: null };
}

/** The result of an answer that is written in another way than the server's own: a refusal, or reformatted. */
function resultOf(text, status) {
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new RpcError("malformed", status, `HTTP ${status}, and no JSON`);
  }
  if (answer?.error) {
    const { code, message, data } = answer.error;
    throw new RpcError("rpc", Number.isInteger(code) ? code : 0, String(message ?? "no reason given"), data);
  }
  if (answer?.result === undefined) throw new RpcError("malformed", status, "the answer has neither result nor error");
  return JSON.stringify(answer.result);
}

/* What was proven, against what was asked for and what is shown. */

const check = (name, ok, detail, hash = null, trail = []) => ({ name, ok, detail, hash, trail });

function checkTransaction(hash, shown, claim, content) {
  if (claim.kind !== "transaction") return [check("question", false, `a transaction was asked for, the bundle proves a ${claim.kind}`)];
  if (claim.hash !== hash.toLowerCase()) {
    return [check("question", false, `transaction ${hash} was asked for, the bundle proves ${claim.hash}`)];
  }
  const asked = check("question", true, "the transaction that was asked for is the one that is proven", claim.hash);
  if (shown === null) return [asked];
  return [asked, checkPage(() => transactionParts(shown, claim, content))];
}

/** What is shown, each beside what is proven. What has nothing proven beside it is named. */
function transactionParts(shown, claim, content) {
  const header = headerFields(content.header);
  const transaction = transactionFields(claim.transaction, header, claim.index);
  const parts = [[shown.transaction, transaction ?? undefined]];
  const base = shown.header?.baseFeePerGas;
  if (base !== undefined) parts.push([{ baseFeePerGas: base }, { baseFeePerGas: header.baseFeePerGas ?? null }]);
  if (shown.receipt === null) return parts;
  const isWithReceipt = claim.receipt !== null && transaction !== null;
  if (!isWithReceipt) return [...parts, [{ receipt: shown.receipt }, {}]];
  const receipt = receiptFields(claim.receipt, transaction, claim.index);
  return [...parts, [shown.receipt, receipt], gasPart(shown.receipt, transaction, receipt)];
}

/** Without the receipt before, gas used has a bound nevertheless. It is compared where it lies beyond. */
function gasPart({ gasUsed }, { gas }, { cumulativeGasUsed }) {
  const most = [gas, cumulativeGasUsed].reduce((one, other) => (BigInt(one) < BigInt(other) ? one : other));
  return (quantity(gasUsed) ?? 0n) > BigInt(most) ? [{ gasUsed }, { gasUsed: `at most ${most}` }] : [{}, {}];
}

async function checkBlock(number, shown, claim, content) {
  if (claim.kind !== "block") return [check("question", false, `a block was asked for, the bundle proves ${claim.kind}`)];
  const hash = shown?.block.hash.toLowerCase() ?? claim.block.hash;
  if (claim.block.number !== number || claim.block.hash !== hash) {
    const proven = `block ${claim.block.number} with hash ${claim.block.hash}`;
    return [check("question", false, `block ${number} with hash ${hash} was asked for, the bundle proves ${proven}`)];
  }
  const asked = check("question", true, "the block that was asked for is the one that is proven", claim.block.hash);
  if (shown === null) return [asked];
  // A verdict stands beside nothing that comes after it.
  const later = await shown.later;
  return [asked, checkPage(() => blockParts({ ...shown, ...later }, content))];
}

/** What is shown of a block, each beside what is proven. */
function blockParts({ block, receipts, uncles }, content) {
  const proven = blockFields(content);
  const parts = [[block, proven]];
  if (receipts !== null) parts.push([{ receipts }, { receipts: blockReceiptFields(content, proven.transactions) }]);
  if (uncles === null) return parts;
  // Of an uncle that did not come nothing is shown.
  const headers = uncleFields(content).slice(0, uncles.length).map((it, at) => (uncles[at] === null ? null : it));
  return [...parts, [{ uncles }, { uncles: headers }]];
}

/** `makeParts` reads the proven bytes: what is in them may be anything, for a hash says nothing of their form. */
function checkPage(makeParts) {
  let found;
  try {
    found = makeParts().map(([shown, proven]) => compare(shown, proven));
  } catch (fault) {
    return check("page", false, `the proven bytes have a form that this page does not know: ${fault?.what ?? fault}`);
  }
  const differing = found.flatMap((it) => it.differing);
  const unproven = [...new Set(found.flatMap((it) => it.unproven))];
  const compared = found.reduce((sum, it) => sum + it.compared, 0);
  if (differing.length === 0) {
    return { ...check("page", true, `${whole(compared)} values were compared`), unproven };
  }
  const [{ name, shown, proven }] = differing;
  const others = differing.length > 1 ? `, and ${counted(differing.length - 1, "value")} more ${differing.length > 2 ? "differ" : "differs"}` : "";
  return check("page", false, `\`${name}\` is shown as ${cut(shown)}, the proven bytes say ${cut(proven)}${others}`);
}

const cut = (text) => (String(text).length > 160 ? `${String(text).slice(0, 160)}…` : String(text));

/* The button and its form. */

let lastId = 0;

function offer(container, subject) {
  lastId += 1;
  const ids = { way: `way-${lastId}`, anchor: `anchor-${lastId}`, hint: `anchor-hint-${lastId}` };
  const way = el("select", { id: ids.way },
    el("option", { value: "nearest" }, "the nearest anchor that the server knows"),
    el("option", { value: "finalized" }, "the finalized block"),
    el("option", { value: "latest" }, "the newest block"));
  const anchor = el("input", { id: ids.anchor, type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", placeholder: "NUMBER:HASH",
    maxlength: "200", ariaDescribedby: ids.hint });
  const hint = el("p", { id: ids.hint, class: "dim" }, "A hash that you have from somebody else: a node of yours, a light client, another explorer. The proof must lead there.");
  const button = el("button", { type: "submit" }, "Prove it");
  const result = el("div", { class: "proof-result" });
  const form = el("form", { class: "prove" },
    el("p", null, `The server sends the consensus bytes of ${subject.what}, and the hashes that lead from them to an anchor. This page recomputes all of it, holds what it shows against that, and names what no bundle proves.`),
    el("div", { class: "choices" },
      el("p", { class: "choice" }, el("label", { for: ids.way }, "Lead to"), way),
      el("p", { class: "choice grows" }, el("label", { for: ids.anchor }, "A block that you trust (optional)"), anchor),
      button),
    hint);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = anchor.value.trim();
    const trusted = text === "" ? null : parseAnchor(text);
    const isWrong = text !== "" && trusted === null;
    anchor.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) {
      fill(result, notice("warn", "This is no anchor.", el("p", null, "An anchor is ", el("code", null, "NUMBER:HASH"), " or ", el("code", null, "accumulator:ROOT"), ", the hash as 0x and 64 digits.")));
      return anchor.focus();
    }
    button.disabled = true;
    await prove(subject, anchorParameter(trusted, way.value), trusted === null ? [] : [trusted], result);
    button.disabled = false;
  });
  fill(container, form, result, fromElsewhere());
}

/** The block to lead to, as a parameter: the one that is trusted, else the choice. */
function anchorParameter(trusted, choice) {
  const number = /^\d+/.exec(trusted ?? "");
  if (number !== null) return `0x${BigInt(number[0]).toString(16)}`;
  return trusted !== null || choice === "nearest" ? null : choice;
}

async function prove(subject, anchor, trusted, result) {
  fill(result, el("p", { class: "loading", role: "status" }, "Asking the server for the bundle…"));
  try {
    const answer = await subject.ask(anchor);
    if (answer.bundle === null) {
      fill(result, notice("warn", "There is nothing to prove.", el("p", null, "The server does not have this any more: perhaps a reorg has replaced the block. Reload the page.")));
      return;
    }
    await judge(answer.bundle, trusted, result, { ...subject, ...answer });
  } catch (error) {
    const isNoWay = error instanceof RpcError && error.code === -32602 && anchor !== null;
    fill(result, explain(error), isNoWay ? el("p", null, "The way may have at most 1,000 blocks, and leads to a later block. Choose the nearest anchor instead.") : null);
  }
}

/** A bundle from a file or the clipboard, whoever made it. */
function fromElsewhere() {
  return disclosure("Verify a bundle from elsewhere", () => {
    lastId += 1;
    const [textId, fileId, anchorId] = [`bundle-${lastId}`, `bundle-file-${lastId}`, `bundle-anchor-${lastId}`];
    const text = el("textarea", { id: textId, rows: "4", spellcheck: "false", autocomplete: "off", placeholder: '{"version":1,…' });
    const file = el("input", { id: fileId, type: "file", accept: ".json,application/json" });
    const anchor = el("input", { id: anchorId, type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", placeholder: "NUMBER:HASH", maxlength: "200" });
    const result = el("div", { class: "proof-result" });
    const run = async (source, name) => {
      const typed = anchor.value.trim();
      if (typed !== "" && parseAnchor(typed) === null) {
        anchor.setAttribute("aria-invalid", "true");
        fill(result, notice("warn", "This is no anchor.", el("p", null, "An anchor is NUMBER:HASH or accumulator:ROOT, the hash as 0x and 64 digits.")));
        return;
      }
      anchor.removeAttribute("aria-invalid");
      await judge(source, typed === "" ? [] : [typed], result, { file: name, check: () => [] });
    };
    file.addEventListener("change", async () => {
      const [chosen] = file.files;
      if (chosen === undefined) return;
      if (chosen.size > BUNDLE_BYTES_MAX) {
        fill(result, notice("bad", "The file is no bundle.", el("p", null, `A bundle has at most ${bytes(BUNDLE_BYTES_MAX)}, the file has ${bytes(chosen.size)}.`)));
        return;
      }
      text.value = "";
      await run(new Uint8Array(await chosen.arrayBuffer()), chosen.name);
    });
    const form = el("form", { class: "prove" },
      el("p", { class: "choice" }, el("label", { for: fileId }, "Open a file"), file),
      el("p", { class: "choice" }, el("label", { for: textId }, "or paste the bundle"), text),
      el("div", { class: "choices" },
        el("p", { class: "choice grows" }, el("label", { for: anchorId }, "A block that you trust (optional)"), anchor),
        el("button", { type: "submit" }, "Verify")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const [chosen] = file.files;
      const isFile = text.value === "" && chosen !== undefined;
      await run(isFile ? new Uint8Array(await chosen.arrayBuffer()) : text.value, isFile ? chosen.name : "bundle.json");
    });
    return [form, result];
  });
}

/* The verdict. */

/** Verifies a bundle and shows every step. */
async function judge(source, trusted, result, subject) {
  fill(result, el("p", { class: "loading", role: "status" }, "Recomputing…"));
  // The line above is painted before the work begins.
  await new Promise((done) => { setTimeout(done, 20); });
  const begun = performance.now();
  const outcome = await verifyBundle(source, { trusted });
  const checks = outcome.verdict === "proven" ? await subject.check(outcome) : [];
  const millis = performance.now() - begun;
  const steps = [...outcome.steps, ...checks];
  const failed = steps.find((step) => !step.ok) ?? null;
  const verdict = failed === null ? "proven" : "refused";
  const size = typeof source === "string" ? new TextEncoder().encode(source).length : source.length;
  const save = el("button", { type: "button" }, "Save the bundle");
  save.addEventListener("click", () => saveFile(source, subject.file, "application/json"));
  const times = [bytes(size), subject.millis === undefined ? null : `fetched in ${Math.round(subject.millis)} ms`,
    `${counted(steps.length, "step")} in ${Math.round(millis)} ms`].filter((it) => it !== null).join(" · ");
  fill(result,
    el("section", { class: `verdict ${verdict}`, dataVerdict: verdict, dataTrust: outcome.trust, role: "status", ariaLabel: "Verdict" },
      el("h3", null, el("span", { class: "mark", ariaHidden: "true" }, failed === null ? "✓" : "✗"), " ", headline(failed, outcome)),
      failed === null ? [el("p", null, claimed(outcome.claim)), el("p", null, meaning(outcome))] : refusal(failed, checks.length > 0),
      subject.note ? el("p", null, subject.note) : null),
    el("p", { class: "tools" }, save, el("span", { class: "dim" }, times)),
    el("p", { class: "dim" }, "The script that verifies came from this server too. To trust nobody, save the bundle and use ", el("code", null, "quipu verify-proof"), " or another verifier."),
    el("ol", { class: "proof-steps", ariaLabel: "Steps of the verification" }, steps.map((step) => stepItem(step, outcome))),
    failed === null ? unprovenNote(checks) : null,
    outcome.verdict === "refused" ? el("p", { class: "dim" }, "The steps after this one were not done.") : null,
    outcome.claim?.kind === "logs" && failed === null ? logList(outcome.claim) : null);
}

function headline(failed, { trust }) {
  if (failed !== null) return `Refused at the step “${labelOf(failed.name)}”`;
  return trust === "untrusted" ? "Proven, if the anchor is canonical" : "Proven";
}

function refusal(failed, isBundleRight) {
  return [
    el("p", null, isBundleRight
      ? "The bundle is right in itself, but it does not prove what this page shows. Do not believe this page."
      : "The bundle proves nothing: it was changed or damaged on its way, or the server does not tell the truth."),
    el("p", null, withHashes(failed.detail)),
  ];
}

/** What is proven, in a sentence. */
function claimed(claim) {
  const block = (it) => ["block ", hexLink("block", `0x${it.number.toString(16)}`), " with hash ", el("span", { class: "hex wrap" }, it.hash)];
  if (claim.kind === "block") {
    return ["These are all ", counted(claim.transactions.length, "transaction"), " and receipts of ", block(claim.block), "."];
  }
  if (claim.kind === "logs") {
    return [counted(claim.logs.length, "log matches", "logs match"), ` the filter from block ${whole(claim.filter.fromBlock)}, whose parent is `,
      el("span", { class: "hex wrap" }, claim.parent), ", up to ", block(claim.last), ", and no others do."];
  }
  const log = claim.log === null ? "" : [`, which has at position ${claim.log.position} a log of `, hexLink("address", claim.log.address)];
  const receipt = claim.receipt === null ? "" : [", with its receipt", log];
  return ["Transaction ", hexLink("tx", claim.hash), ` is at index ${claim.index} of `, block(claim.block), receipt, "."];
}

/** What a verdict is worth, by who vouches for the anchor. */
function meaning({ trust, anchor }) {
  const hash = el("code", { class: "anchor" }, anchor);
  if (trust === "named") return ["It leads to ", hash, ", the anchor that you trust. To forge it, somebody would have to find two inputs with one hash."];
  if (trust === "mainnet accumulator") {
    return ["It leads to ", hash, ", the root over all blocks of mainnet before the merge. EIP-7643 publishes it, and this page has it built in."];
  }
  return ["It leads to ", hash, ". Anybody can make up a chain on which every step is right, so one thing is left for you: compare this hash with one from somebody else. ",
    "Enter that as the block that you trust, and the verdict holds without a condition."];
}

const labelOf = (name) => (Object.hasOwn(LABELS, name) ? LABELS[name] : name);

/** A step; that to an anchor which nobody vouches for passes under a condition. */
function stepItem({ name, ok, detail, hash, trail }, { trust }) {
  const isOpen = ok && name === "anchor" && trust === "untrusted";
  const verdict = isOpen ? badge("not trusted yet", "warn") : badge(ok ? "passed" : "failed", ok ? "good" : "bad");
  return el("li", { class: isOpen ? "open" : ok ? "passed" : "failed", dataStep: name, dataOk: String(ok) },
    el("span", { class: "mark", ariaHidden: "true" }, isOpen ? "?" : ok ? "✓" : "✗"),
    el("div", null,
      el("div", null,
        el("p", { class: "step-name" }, el("strong", null, labelOf(name)), " ", verdict),
        el("p", { class: "dim" }, ok ? "" : "Expected: ", MEANINGS[name] ?? "")),
      el("div", null,
        el("p", { class: "wrap" }, withHashes(detail)),
        hash === null ? null : el("p", { class: "hex wrap" }, hash),
        trail.length === 0 ? null : trailOf(trail))));
}

/** The hashes that a step went along. */
function trailOf(trail) {
  const cutOut = trail.length - 2 * TRAIL_SHOWN;
  const item = ({ label, hash }) => el("li", null, el("span", { class: "dim" }, label), " ", el("span", { class: "hex wrap" }, hash));
  const items = cutOut > 0
    ? [...trail.slice(0, TRAIL_SHOWN).map(item), el("li", { class: "dim" }, `… ${counted(cutOut, "hash", "hashes")} more …`), ...trail.slice(-TRAIL_SHOWN).map(item)]
    : trail.map(item);
  return el("details", null, el("summary", null, counted(trail.length, "hash on the way", "hashes on the way")), el("ul", { class: "trail" }, items));
}

/** A sentence, its hashes set as such. */
function withHashes(text) {
  return text.split(/(0x[0-9a-f]{40,})/).map((part, at) => (at % 2 === 1 ? el("span", { class: "hex wrap" }, part) : part));
}

/** What the page shows and no step has shown. */
function unprovenNote(checks) {
  const names = checks.flatMap((it) => it.unproven ?? []);
  if (names.length === 0) return null;
  const said = [...new Set(names.map((name) => (Object.hasOwn(UNPROVEN, name) ? UNPROVEN[name] : name)))];
  return el("p", { class: "dim" }, `Not checked here: ${said.join("; ")}.`);
}

function logList({ filter, logs }) {
  const shown = logs.slice(0, LOGS_SHOWN);
  const row = (log) => el("li", null, "block ", hexLink("block", `0x${log.blockNumber.toString(16)}`), `, log ${log.logIndex}: `, hexLink("address", log.address),
    log.topics.map((topic) => [" ", el("span", { class: "hex", title: topic }, shortened(topic))]));
  return el("section", null,
    el("h3", null, "The question and the answer"),
    el("p", null, "Compare the filter with the one that you asked for: no hash of the chain binds it."),
    el("pre", { tabindex: "0", ariaLabel: "Filter" }, JSON.stringify(filter)),
    el("ul", { class: "plain" }, shown.map(row)),
    logs.length > shown.length ? el("p", { class: "dim" }, `The first ${LOGS_SHOWN} of ${whole(logs.length)} logs.`) : null);
}
