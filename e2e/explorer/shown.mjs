// Whether a page shows what the API answers: every value of a JSON object, in a form that a person reads.

import { holds } from "./browser.mjs";

// Of longer data a page may show the beginning.
const DATA_DIGITS = 60;
// A number of fewer digits is found somewhere on any page: it is looked for where it belongs.
const DIGITS_MIN = 6;

/// What an element shows, without what groups digits: its visible text with the titles and links in it, and what
/// stands beside each term, in each column, on each tile and in each log.
export async function shownBy(page, selector = "main") {
    const { text, places } = await page.locator(selector).first().evaluate((element) => {
        for (const details of element.querySelectorAll(".log details")) details.open = true;
        const visible = [...element.querySelectorAll("*")].filter((it) => it.checkVisibility());
        const more = visible.flatMap((it) => [it.getAttribute("title"), it.getAttribute("href"), it.getAttribute("datetime")]);
        const places = {};
        const add = (name, it) => (places[name] ??= []).push(it?.innerText ?? "");
        for (const row of element.querySelectorAll("dl.fields > div")) {
            const [term, value] = row.children;
            add(row.closest(".log") === null ? term.innerText : `log: ${term.innerText}`, value);
        }
        for (const table of element.querySelectorAll("table")) {
            const names = [...table.querySelectorAll("th")].map((it) => `${table.caption.textContent}: ${it.innerText}`);
            for (const row of table.tBodies[0].rows) names.forEach((name, at) => add(name, row.cells[at]));
        }
        for (const tile of element.querySelectorAll(".tile")) add(`tile: ${tile.querySelector(".tile-name").innerText}`, tile);
        for (const [name, found] of [["heading", "h1"], ["card", "h2"], ["marks", ".marks"], ["log: index", ".log .index"]]) {
            for (const it of element.querySelectorAll(found)) add(name, it);
        }
        return { text: [element.innerText, ...more.filter((it) => it !== null)].join("\n"), places };
    });
    for (const name of Object.keys(places)) places[name] = places[name].map(plain);
    return { text: plain(text), places };
}

const plain = (text) => text.toLowerCase().replace(/[,\u202f\u00a0]/g, "");

/// The ways in which a page may write a value.
function formsOf(value) {
    if (typeof value === "number" || typeof value === "boolean") return [String(value)];
    if (!/^0x[0-9a-f]*$/.test(value)) return [plain(value)];
    // A byte string of 8 bytes or more, or a quantity.
    if (value.length >= 18 && value.length !== 20) return [value.slice(0, DATA_DIGITS), ...quantities(value)];
    return [value, ...quantities(value)];
}

function quantities(value) {
    if (/^0x0*$/.test(value) && value.length !== 3) return ["empty", value.slice(0, DATA_DIGITS)];
    if (value.length > 66) return [];
    const number = BigInt(value);
    return [number.toString(), fixed(number, 9), fixed(number, 18)];
}

const exactTime = (seconds) => new Date(Number(seconds) * 1000).toISOString().slice(0, 19).replace("T", " ");

function fixed(number, digits) {
    const text = number.toString().padStart(digits + 1, "0");
    const fraction = text.slice(-digits).replace(/0+$/, "");
    return `${text.slice(0, -digits)}${fraction === "" ? "" : `.${fraction}`}`;
}

const isShort = (value) =>
    typeof value === "string" ? value === "0x" || (/^0x[0-9a-f]{1,15}$/.test(value) && String(BigInt(value)).length < DIGITS_MIN) : String(value).length < DIGITS_MIN;

const TYPES = ["legacy", "access list", "dynamic fee", "blob", "set code"];

// Where short values stand, and how: `#` is the value. A value that none of these names is a fault of the test.
const PLACES = {
    number: ["heading", "block #"],
    size: ["Size", "# byte"],
    extraData: ["Extra data", "#"],
    difficulty: ["Difficulty", "#"],
    baseFeePerGas: ["Base fee", "#"],
    blobGasUsed: ["Blob gas used", "#"],
    excessBlobGas: ["Excess blob gas", "#"],
    "withdrawals[].index": ["Withdrawals: Index", "#"],
    "withdrawals[].validatorIndex": ["Withdrawals: Validator", "#"],
    blockNumber: ["Block", "# position"],
    transactionIndex: ["Block", "position #"],
    type: (value) => ["marks", TYPES[Number(value)]],
    status: (value) => ["marks", value === "0x1" ? "succeeded" : "failed"],
    nonce: ["Nonce", "#"],
    value: ["Value", "#"],
    gas: ["Gas used", "of #"],
    gasUsed: ["Gas used", "# of"],
    cumulativeGasUsed: ["Gas up to here", "#"],
    gasPrice: ["Price paid", "#"],
    effectiveGasPrice: ["Price paid", "#"],
    maxFeePerGas: ["Highest price", "#"],
    maxPriorityFeePerGas: ["Highest tip", "#"],
    maxFeePerBlobGas: ["Highest blob price", "#"],
    blobGasPrice: ["Blob gas price", "#"],
    chainId: ["Chain id", "#"],
    yParity: ["Parity", "#"],
    v: (_, { v }) => [v === undefined ? "Parity" : "v", "#"],
    // Without any the page has no such card.
    input: (_, { card }) => [card.some((it) => /^(call data|init code)/.test(it)) ? "no card" : "card", ""],
    "authorizationList[].chainId": (value) => ["Authorizations: Chain", value === "0x0" ? "any" : "#"],
    "authorizationList[].nonce": ["Authorizations: Nonce", "#"],
    "authorizationList[].yParity": ["Authorizations: Parity", "#"],
    // A log is in the block and the transaction of its page.
    "logs[].blockNumber": ["Block", "# position"],
    "logs[].transactionIndex": ["Block", "position #"],
    "logs[].logIndex": ["log: index", "#"],
    "logs[].data": ["log: Data", "#"],
    tip: ["tile: Tip", "#"],
    finalized: ["tile: Finalized", "#"],
    transactions: ["tile: Transactions", "#"],
    logs: ["tile: Transactions", "# logs"],
};

// Fails unless a short value stands in its place.
function stands({ places }, where, value) {
    const path = where.replace(/\[\d+\]/g, "[]");
    holds(Object.hasOwn(PLACES, path), `no place is known for ${where}: ${value}`);
    const [place, how] = typeof PLACES[path] === "function" ? PLACES[path](value, places) : PLACES[path];
    // What has a place of its own in a list is there by its position.
    const index = /^(Withdrawals|Authorizations|log):/.test(place) ? [Number(/\[(\d+)\]/.exec(where)[1])] : [];
    const found = (places[place] ?? []).filter((_, at) => index.length === 0 || index.includes(at));
    const forms = value === "0x" ? ["empty"] : formsOf(value).map((it) => it.replaceAll(".", "\\."));
    const pattern = new RegExp(`(?<![\\w.])${how.replace("#", `(${forms.join("|")})`)}(?!\\.?[\\d])`);
    holds(found.some((text) => pattern.test(text)), `${where} is ${value}, and at ${place} the page shows ${JSON.stringify(found)}`);
}

/// Fails unless the page shows every value of this object but those of `hidden`.
export function shows(shown, object, { hidden = [], of = "" } = {}) {
    for (const [name, value] of Object.entries(object)) {
        if (hidden.includes(name) || value === null) continue;
        const where = of === "" ? name : `${of}.${name}`;
        if (Array.isArray(value)) {
            value.forEach((item, index) => {
                const element = typeof item === "object" ? item : { [index]: item };
                shows(shown, element, { hidden, of: `${where}[${index}]` });
            });
        } else if (typeof value === "object") {
            shows(shown, value, { hidden, of: where });
        } else if (isShort(value)) {
            stands(shown, where, value);
        } else {
            const forms = /timestamp/i.test(name) ? [...formsOf(value), exactTime(value)] : formsOf(value);
            holds(forms.some((form) => shown.text.includes(form)), `${where} is not shown: ${value}, as any of ${forms.join(" | ")}`);
        }
    }
}
