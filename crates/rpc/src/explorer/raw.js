// What a page rests on, as it came: JSON and RLP, to read, copy and keep.
//
// Knows: how long texts are shown without stalling.
// Never knows: what is in them.

import { bytes, copyButton, counted, dataLength, el, fill, isData, visible } from "./format.js";
import { call } from "./rpc.js";
import { explain, notice } from "./answers.js";

/** Characters that are shown at once. */
const SHOWN_MAX = 60_000;

/** A part that is made when it is opened. */
export function disclosure(title, make) {
  const body = el("div", { class: "body" });
  const details = el("details", { class: "disclosure" }, el("summary", null, title), body);
  let begun = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || begun) return;
    begun = true;
    fill(body, el("p", { class: "loading" }, "Asking the server…"));
    try {
      fill(body, await make());
    } catch (error) {
      begun = false;
      fill(body, explain(error, { again: () => { details.open = false; details.open = true; } }));
    }
  });
  return details;
}

/** A long text with buttons to copy and to keep it. */
export function rawText(text, name) {
  const isCut = text.length > SHOWN_MAX;
  const type = name.endsWith(".json") ? "application/json" : "text/plain";
  const save = el("button", { type: "button", class: "more" }, "save as file");
  save.addEventListener("click", () => saveFile(text, name, type));
  return el("div", { class: "raw" },
    el("p", { class: "tools" }, el("span", { class: "dim" }, counted(text.length, "character")), copyButton(text, name), save),
    el("pre", { tabindex: "0", ariaLabel: name }, isCut ? text.slice(0, SHOWN_MAX) : text),
    isCut ? el("p", { class: "dim" }, `The first ${counted(SHOWN_MAX, "character")} are shown; copy and file have all.`) : null);
}

/** Lets the browser keep a text as a file. */
export function saveFile(text, name, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Values as indented JSON. */
export function rawJson(title, name, value) {
  return disclosure(title, async () => rawText(JSON.stringify(typeof value === "function" ? await value() : value, null, 2) ?? "null", name));
}

/** What a method of raw bytes answers. */
export function rawRlp(title, name, method, params) {
  return disclosure(title, async () => {
    const answer = await call(method, params);
    if (answer === null) return notice("", "The server has no such bytes any more.");
    if (Array.isArray(answer)) return listOfBytes(answer, name, method);
    if (!isData(answer)) return notice("bad", "The answer is no data.", el("p", null, visible(JSON.stringify(answer)?.slice(0, 200))));
    return [el("p", { class: "dim" }, el("code", null, method), `, ${bytes(dataLength(answer))}`), rawText(answer, name)];
  });
}

function listOfBytes(list, name, method) {
  const parts = list.filter(isData);
  const size = parts.reduce((sum, it) => sum + dataLength(it), 0);
  return [el("p", { class: "dim" }, el("code", null, method), `, ${counted(parts.length, "item")}, ${bytes(size)}, one a line`), rawText(parts.join("\n"), name)];
}
