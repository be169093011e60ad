// How values look: numbers, units, times, hashes, and the one way to make elements.
//
// Knows: how a quantity of the API becomes text, and that text of a chain may be hostile.
// Never knows: where a value came from, or what a page shows. No markup is ever parsed here: every text
// becomes a text node, and characters that reorder or hide others are written out.

/* Elements. */

// The name of a namespace, which nobody is asked for. It is in two parts because tests hold that no file has
// an address of anybody else.
const SVG_NAMESPACE = "http:" + "//www.w3.org/2000/svg";
// What reorders, hides or breaks the text around it: controls, marks of direction, characters that nobody
// sees or that have no meaning of their own.
const HARMFUL = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;

/** Text with its harmful characters written out, as in `\u202e` and `\u{e0041}`. */
export function visible(value) {
  return written(value).replace(HARMFUL, (it) => {
    const digits = it.codePointAt(0).toString(16);
    return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits.padStart(4, "0")}`;
  });
}

/**
 * The beginning of any value as a text. What may be long is cut before its harmful characters are written out: that of
 * megabytes takes seconds.
 */
export function excerpt(value, lengthMax) {
  const text = written(value);
  return text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
}

/** Any value as a text. An object of an answer may have a `toString` that is none. */
export function written(value) {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * An element. `attrs`: class, href, title, `on*` handlers, `ariaLabel` and other `aria*`, `data*`, and any
 * attribute by its name; null, undefined and false leave one out. Children: nodes, texts, lists of them.
 */
export function el(tag, attrs, ...children) {
  return dress(document.createElement(tag), attrs, children);
}

/** The same for SVG. */
export function svg(tag, attrs, ...children) {
  return dress(document.createElementNS(SVG_NAMESPACE, tag), attrs, children);
}

function dress(element, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2).toLowerCase(), value);
    } else if (name === "href") {
      element.setAttribute("href", harmlessLink(String(value)));
    } else if (name === "value") {
      element.value = String(value);
    } else {
      element.setAttribute(attributeName(name), value === true ? "" : visible(value));
    }
  }
  append(element, children);
  return element;
}

function attributeName(name) {
  const dashed = /^(aria|data)[A-Z]/.test(name);
  return dashed ? name.replace(/[A-Z]/g, (it) => `-${it.toLowerCase()}`).replace(/^aria-(.*)$/, flatAria) : name;
}

// `ariaLabelledBy` is `aria-labelledby`: ARIA has one dash.
function flatAria(_, rest) {
  return `aria-${rest.replaceAll("-", "")}`;
}

// Links lead within this page, to its own files, or to what it made itself.
function harmlessLink(link) {
  return /^(#|blob:|\.\/|[a-z]+\.json$)/.test(link) ? link : "#/";
}

/** Puts children behind those that an element has. */
export function append(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return element;
}

/** Lets the keyboard go on at an element that no key leads to: where the button was that made it. */
export function focusOn(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

/** Puts children in place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, ...children);
}

/**
 * The same, but what is equal stays as it is, and so do the focus and a selection in it. Children with a `dataKey`
 * are equal to those of the same key alone. What stays keeps its handlers: they must not depend on what changes.
 */
export function refill(element, ...children) {
  merge(element, append(element.cloneNode(false), ...children));
}

const keyOf = (node) => node.dataset?.key ?? null;

function merge(old, next) {
  if (old.isEqualNode(next)) return;
  if (old.nodeName !== next.nodeName) return old.replaceWith(next);
  if (!(old instanceof Element)) {
    old.nodeValue = next.nodeValue;
    return;
  }
  for (const name of old.getAttributeNames()) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const name of next.getAttributeNames()) {
    if (old.getAttribute(name) !== next.getAttribute(name)) old.setAttribute(name, next.getAttribute(name));
  }
  mergeChildren(old, next);
}

function mergeChildren(old, next) {
  const keys = new Set([...next.childNodes].map(keyOf));
  for (const child of [...old.childNodes]) if (!keys.has(keyOf(child))) child.remove();
  let place = old.firstChild;
  for (const child of [...next.childNodes]) {
    if (place === null || keyOf(place) !== keyOf(child)) {
      old.insertBefore(child, place);
    } else {
      const behind = place.nextSibling;
      merge(place, child);
      place = behind;
    }
  }
  while (place !== null) {
    const behind = place.nextSibling;
    place.remove();
    place = behind;
  }
}

/* Values of the API. Nothing is believed about their types. */

/** A quantity as a BigInt; null for what is none. */
export function quantity(value) {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  return typeof value === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(value) ? BigInt(value) : null;
}

/** A quantity as a number, as near as one comes; null for what is none. */
export function count(value) {
  const it = quantity(value);
  return it === null ? null : Number(it);
}

/** The number of a block that a text writes, decimal or hexadecimal, as a BigInt; null for what is none. */
export function blockNumber(text) {
  const number = /^(\d{1,20}|0[xX][0-9a-fA-F]{1,64})$/.test(text) ? BigInt(text) : null;
  return number !== null && number < 2n ** 64n ? number : null;
}

/** The number of bytes in hex data; null for what is none. */
export function dataLength(value) {
  return isData(value) ? (value.length - 2) / 2 : null;
}

export function isData(value) {
  return typeof value === "string" && value.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(value);
}

export function isHash(value) {
  return typeof value === "string" && /^0x[0-9a-fA-F]{64}$/.test(value);
}

export function isAddress(value) {
  return typeof value === "string" && /^0x[0-9a-fA-F]{40}$/.test(value);
}

/** A list of objects, whatever came. */
export function listOf(value) {
  return Array.isArray(value) ? value.filter((it) => it !== null && typeof it === "object") : [];
}

/** A list of texts, whatever came. */
export function textsOf(value) {
  return Array.isArray(value) ? value.filter((it) => typeof it === "string") : [];
}

/* Numbers and units, as text. */

/** What stands where a value has no form that is known. */
export const ABSENT = "–";

/** A whole number in groups of three. */
export function whole(value) {
  const it = quantity(value);
  return it === null ? ABSENT : grouped(it.toString());
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number with at most so many digits behind the point. */
export function decimal(value, digits = 1) {
  if (typeof value !== "number" || !Number.isFinite(value)) return ABSENT;
  const [before, behind] = Math.abs(value).toFixed(digits).split(".");
  const fraction = (behind ?? "").replace(/0+$/, "");
  return `${value < 0 ? "−" : ""}${grouped(before)}${fraction && `.${fraction}`}`;
}

/** An amount of wei, in ether. Nothing is rounded away. */
export function ether(wei) {
  return scaled(wei, 18, "ETH");
}

/** A price or amount of wei, in gwei. Nothing is rounded away. */
export function gwei(wei) {
  return scaled(wei, 9, "gwei");
}

/** Gwei, in ether: withdrawals. */
export function etherOfGwei(amount) {
  return scaled(amount, 9, "ETH");
}

/** An amount in the unit that shows it best: ether, gwei or wei. */
export function amount(wei) {
  const it = quantity(wei);
  if (it === null) return ABSENT;
  if (it === 0n || it >= 10n ** 13n) return ether(it);
  return it >= 10n ** 7n ? gwei(it) : `${grouped(it.toString())} wei`;
}

/** A price for a unit of gas: gwei, or wei where that is too small to read. */
export function price(wei) {
  const it = quantity(wei);
  return it === null || it === 0n || it >= 10n ** 6n ? gwei(wei) : `${grouped(it.toString())} wei`;
}

/** An amount for a column: its first digits, and all of them where the pointer is. */
export function amountCell(wei) {
  const exact = amount(wei);
  const [, whole, fraction, unit] = /^([\d,]+)\.(\d{7,}) (.*)$/.exec(exact) ?? [];
  if (whole === undefined) return exact;
  const digits = whole === "0" ? fraction.slice(0, Math.max(6, fraction.search(/[1-9]/) + 4)) : fraction.slice(0, 6);
  return digits === fraction ? exact : el("span", { title: exact }, `${whole}.${digits}… ${unit}`);
}

/** A number that counts nothing, such as an id: without groups. */
export function plainNumber(value) {
  return quantity(value)?.toString() ?? ABSENT;
}

function scaled(value, digits, unit) {
  const it = quantity(value);
  return it === null ? ABSENT : `${fixedPoint(it, digits)} ${unit}`;
}

/** An integer of so many decimals as text, whole. */
export function fixedPoint(value, digits) {
  const text = value.toString().padStart(digits + 1, "0");
  const fraction = digits === 0 ? "" : text.slice(-digits).replace(/0+$/, "");
  return `${grouped(text.slice(0, text.length - digits))}${fraction && `.${fraction}`}`;
}

/** A size, in units of 1024. */
export function bytes(size) {
  const it = typeof size === "bigint" ? Number(size) : size;
  if (typeof it !== "number" || !Number.isFinite(it)) return ABSENT;
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let rest = it;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${decimal(rest, unit === 0 || rest >= 100 ? 0 : 1)} ${unit === 0 && rest === 1 ? "byte" : units[unit]}`;
}

/** A part of a whole. */
export function percent(part, all) {
  const [of, from] = [Number(part), Number(all)];
  return Number.isFinite(of) && from > 0 ? `${decimal((of / from) * 100, 1)}%` : ABSENT;
}

/** A noun with its number: `1 block`, `2,000 blocks`. */
export function counted(number, noun, plural = `${noun}s`) {
  return `${whole(number)} ${Number(number) === 1 ? noun : plural}`;
}

/** A time span in seconds, in the two largest units. */
export function span(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return ABSENT;
  if (seconds < 1) return `${decimal(seconds * 1000, seconds < 0.01 ? 2 : 0)} ms`;
  const units = [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, length]) => seconds >= length);
  const [name, length] = units[at];
  const next = units[at + 1];
  const rest = next ? Math.floor((seconds % length) / next[1]) : 0;
  return `${whole(Math.floor(seconds / length))} ${name}${rest > 0 ? ` ${rest} ${next[0]}` : ""}`;
}

/** How long ago a time in seconds since 1970 was. */
export function ago(seconds) {
  const at = Number(quantity(seconds) ?? NaN);
  if (!Number.isFinite(at)) return ABSENT;
  const passed = Date.now() / 1000 - at;
  if (Math.abs(passed) < 1) return "now";
  return passed < 0 ? `in ${span(-passed)}` : `${span(Math.floor(passed))} ago`;
}

/** A time in seconds since 1970, exact. */
export function exactTime(seconds) {
  const at = Number(quantity(seconds) ?? NaN);
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? ABSENT : `${date.toISOString().replace(/\.\d+Z$/, "").replace("T", " ")} UTC`;
}

/** A time as it is read and, exactly, as it is. The former goes on by itself: see `refreshTimes`. */
export function time(seconds, { exact = true } = {}) {
  const at = Number(quantity(seconds) ?? NaN);
  const utc = exactTime(seconds);
  if (seconds === undefined || seconds === null) return el("span", { class: "dim" }, ABSENT);
  if (utc === ABSENT) return el("span", { class: "dim" }, `${excerpt(seconds, 80)} s since 1970`);
  const passed = el("time", { datetime: new Date(at * 1000).toISOString(), title: utc, dataAgo: at }, ago(seconds));
  return exact ? el("span", null, passed, el("span", { class: "dim" }, ` · ${utc}`)) : passed;
}

/** Lets the times of a page go on. */
export function refreshTimes(root) {
  for (const it of root.querySelectorAll("time[data-ago]")) {
    const text = ago(Number(it.dataset.ago));
    if (it.textContent !== text) it.textContent = text;
  }
}

/* Hex. */

/** Both ends of a long hex text. */
export function shortened(hex, ends = 8) {
  const text = written(hex);
  return text.length <= 2 * ends + 3 ? text : `${text.slice(0, ends + 2)}…${text.slice(-ends)}`;
}

/** A route of this page. */
export function route(kind, value) {
  return `#/${kind}/${encodeURIComponent(value)}`;
}

/** A link to the page of a block, transaction (`tx`) or address; a text where the value is none of these. */
export function hexLink(kind, value, { short = true, label = null } = {}) {
  const isKnown = kind === "address" ? isAddress(value) : isHash(value) || (kind === "block" && quantity(value) !== null);
  if (!isKnown) return el("span", { class: "hex" }, value === null || value === undefined ? ABSENT : shortened(value, 20));
  const isNumber = !isHash(value) && kind === "block";
  const text = label ?? (isNumber ? whole(value) : short ? shortened(value) : value);
  const target = isNumber ? quantity(value).toString() : value.toLowerCase();
  return el("a", { class: isNumber ? "number" : "hex", href: route(kind, target), title: isNumber ? null : value }, text);
}

const COPY_ICON = "M5.5 5.5V3a1 1 0 0 1 1-1H13a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1h-2.5M3 5.5h6.5a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V6.5a1 1 0 0 1 1-1Z";
const DONE_ICON = "M3 8.5 6.5 12 13 4.5";
const FAILED_ICON = "M4 4l8 8M12 4l-8 8";

function icon(path) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", ariaHidden: "true", focusable: "false" }, svg("path", { d: path }));
}

/** A button that copies a text. */
export function copyButton(text, what = "value") {
  const button = el("button", { type: "button", class: "copy", title: `Copy ${what}`, ariaLabel: `Copy ${what}` }, icon(COPY_ICON));
  button.addEventListener("click", async () => {
    const done = await copy(text);
    fill(button, icon(done ? DONE_ICON : FAILED_ICON));
    button.title = done ? "Copied" : "The browser does not let this page copy";
    setTimeout(() => { fill(button, icon(COPY_ICON)); button.title = `Copy ${what}`; }, 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// Over plain HTTP browsers hide the clipboard: a selection is copied as ever.
function copyBySelection(text) {
  const field = el("textarea", { class: "offscreen", readonly: true, ariaHidden: "true", tabindex: "-1", value: text });
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** Characters of a long text that are shown at first, and at the most. */
const LONG_TEXT_SHOWN = 320;
const LONG_TEXT_MAX = 200_000;

/** A text that may be long: its beginning, and a button for the rest. */
export function longText(text, { shown = LONG_TEXT_SHOWN, what = "value", kind = "hex" } = {}) {
  const whole = written(text);
  if (whole.length <= shown) return el("span", { class: `${kind} wrap` }, whole, whole.length > 40 ? copyButton(whole, what) : null);
  const field = el("span", { class: `${kind} wrap` }, `${whole.slice(0, shown)}…`);
  const more = el("button", { type: "button", class: "more" }, `show all (${counted(whole.length, "character")})`);
  more.addEventListener("click", () => {
    const isCut = whole.length > LONG_TEXT_MAX;
    fill(field, isCut ? `${whole.slice(0, LONG_TEXT_MAX)}…` : whole);
    focusOn(field);
    more.replaceWith(isCut ? el("span", { class: "dim" }, ` cut here; copy has all ${counted(whole.length, "character")}`) : "");
  });
  return el("span", { class: "long" }, field, " ", more, copyButton(whole, what));
}

/** Hex data, with what it says where it is readable text. */
export function dataField(hex, what = "data") {
  if (!isData(hex)) return el("span", { class: "dim" }, hex === undefined || hex === null ? ABSENT : longText(hex, { what, kind: "plain" }));
  if (hex === "0x") return el("span", { class: "dim" }, "empty");
  const said = readableText(hex);
  return el("span", null, longText(hex, { what }), said === null ? null : el("span", { class: "said" }, " ", el("bdi", null, `“${said}”`)));
}

/** What data says, if it is text of UTF-8; null if it is not. */
export function readableText(hex) {
  const size = dataLength(hex);
  if (size === null || size === 0 || size > 256) return null;
  const octets = Uint8Array.from({ length: size }, (_, at) => Number.parseInt(hex.slice(2 + 2 * at, 4 + 2 * at), 16));
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(octets);
    const strange = [...text].filter((it) => it < " " || it === "\u007f").length;
    return strange * 4 > text.length ? null : visible(text);
  } catch {
    return null;
  }
}

/* Parts that several pages have. */

/** The bloom filter of logs. */
export function bloom(value) {
  if (typeof value === "string" && /^0x0*$/.test(value)) return el("span", { class: "dim" }, "empty: no logs");
  return dataField(value, "logs bloom");
}


/** Rows of a name and a value; rows that are null are left out. */
export function fields(...rows) {
  const list = el("dl", { class: "fields" });
  for (const row of rows.flat(1)) {
    if (row === null || row === undefined || row === false) continue;
    const [name, value, help] = row.content ?? row;
    list.append(el("div", null, el("dt", { title: help }, name), append(el("dd", null), value)));
  }
  return list;
}

/** A row of `fields`. */
export function field(name, value, help = null) {
  return { content: [name, value, help] };
}

/** A titled part of a page. */
export function card(title, ...children) {
  return el("section", { class: "card" }, title === null ? null : el("h2", null, title), children);
}

/** A table that scrolls by itself where it is too wide. `columns`: `[name, class]`; rows: lists of cells. */
export function table(label, columns, rows) {
  const head = el("tr", null, columns.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)));
  const body = el("tbody", null, rows.map((cells) => tableRow(columns, cells)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", ariaLabel: label },
    el("table", null, el("caption", { class: "offscreen" }, label), el("thead", null, head), body));
}

/** A row of such a table. */
export function tableRow(columns, cells) {
  return el("tr", null, cells.map((cell, at) => append(el("td", { class: columns[at]?.[1] }), cell)));
}

/** A label of a state. `tone`: good, warn, bad, or none. */
export function badge(text, tone = "") {
  return el("span", { class: `badge ${tone}` }, text);
}
