// The playground: any method of the server, with a form for its parameters, its answer, and the call as a program.
//
// Knows: the OpenRPC document as the server sends it, and where examples in the chain are.
// Never knows: any method by what it answers. An answer is shown as it came.

import { badge, bytes, copyButton, counted, el, fill, listOf, route as routeTo } from "./format.js";
import { call, callAll, callRaw, endpoint, hasKey, page as fetchPage, RpcError } from "./rpc.js";
import { explain, notice } from "./answers.js";
import { saveFile } from "./raw.js";
import { parameterField, readParameters } from "./parameters.js";
import { TOOLS } from "./snippets.js";

const FIRST_METHOD = "eth_getBlockByNumber";
/** Characters of an answer that are shown; copy and file have all. */
const SHOWN_MAX = 60_000;
/** A longer answer is not indented: that would stall the page. */
const INDENTED_MAX = 8_000_000;
/** Blocks that are looked at for a transaction, from the newest down. */
const EXAMPLE_BLOCKS_MAX = 30;
const SOCKET_METHODS = ["eth_subscribe", "eth_unsubscribe"];

let document_ = null;
let tool = TOOLS[0].id;

export async function renderPlayground(main, route, page) {
  const asked = route.argument === "" ? FIRST_METHOD : route.argument;
  document_ ??= await fetchPage("openrpc.json", { signal: page.signal });
  const methods = listOf(document_.methods).filter((it) => typeof it.name === "string");
  const method = methods.find((it) => it.name === asked);
  const heading = el("h1", null, "Playground");
  if (method === undefined) {
    fill(main, heading, el("div", { class: "play" }, methodList(methods, asked),
      notice("warn", "There is no such method.", el("p", null, "This server does not answer ", el("code", null, asked.slice(0, 80)), ". Choose one from the list."))));
    return;
  }
  main.dataset.title = method.name;
  const examples = await exampleValues(method, page.signal);
  fill(main, heading, el("div", { class: "play" }, methodList(methods, asked), callForm(method, examples, page)));
}

/* The list of methods. */

function methodList(methods, chosen) {
  const filter = el("input", { id: "method-filter", type: "search", autocomplete: "off", autocapitalize: "none", spellcheck: "false", placeholder: "Filter" });
  const groups = Map.groupBy(methods, ({ name }) => name.split(/[_.]/)[0]);
  const items = methods.map(({ name }) => [name, el("li", null,
    el("a", { href: routeTo("playground", name), ariaCurrent: name === chosen ? "page" : null }, breakable(name)))]);
  const byName = new Map(items);
  const parts = [...groups].map(([space, own]) => el("section", { dataSpace: space }, el("h2", null, space), el("ul", { class: "plain" }, own.map(({ name }) => byName.get(name)))));
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const [name, item] of items) item.hidden = !name.toLowerCase().includes(wanted);
    for (const part of parts) part.hidden = [...part.querySelectorAll("li")].every((item) => item.hidden);
  });
  return el("nav", { class: "methods card", ariaLabel: "Methods" },
    el("label", { for: "method-filter", class: "offscreen" }, "Filter methods"), filter,
    el("div", { class: "method-list", tabindex: "0", role: "group", ariaLabel: counted(methods.length, "method") }, parts));
}

/** A long name, which may break before its words. */
function breakable(name) {
  return name.split(/(?<=_)|(?=[A-Z])/).map((word) => [el("wbr", null), word]);
}

/* Examples, from the newest block that has a transaction. */

async function exampleValues({ params }, signal) {
  const names = listOf(params).map((it) => it.name);
  if (names.length === 0) return {};
  try {
    const block = await exampleBlock(signal);
    const first = block?.transactions?.[0];
    return {
      block: block?.number ?? "latest", newest_block: "latest", block_hash: block?.hash, tx_hash: first, hash: first, index: "0", log_index: "0",
      page_number: "0", page_size: "10", block_count: "4", reward_percentiles: [25, 50, 75], bytes: "0x7175697075", return_full_txns: false,
      filter: { fromBlock: block?.number, toBlock: block?.number }, subscription: "0x1",
    };
  } catch (error) {
    if (signal.aborted || (error instanceof RpcError && error.kind === "unauthorized")) throw error;
    return {};
  }
}

async function exampleBlock(signal) {
  const latest = await call("eth_getBlockByNumber", ["latest", false], { signal });
  if (latest === null || latest.transactions?.length > 0) return latest;
  const number = Number(latest.number);
  const count = Math.min(number, EXAMPLE_BLOCKS_MAX);
  const before = Array.from({ length: count }, (_, back) => ["eth_getBlockByNumber", [`0x${(number - 1 - back).toString(16)}`, false]]);
  const blocks = await callAll(before, { signal });
  return blocks.find((it) => it !== null && !(it instanceof Error) && it.transactions?.length > 0) ?? latest;
}

/* The form of a method, its answer, and its programs. */

function callForm(method, examples, page) {
  const schemas = document_.components?.schemas ?? {};
  const fields = listOf(method.params).map((it) => parameterField(it, schemas, exampleOf(it, examples)));
  const result = el("div", { class: "play-result", role: "region", ariaLabel: "Answer" });
  const programs = programView();
  const run = el("button", { type: "submit", title: "Ctrl+Enter" }, "Run");
  const wrong = el("p", { class: "wrong", role: "alert" });
  const form = el("form", { class: "call" },
    fields.length === 0 ? el("p", { class: "dim" }, "This method takes no parameters.") : fields.map((it) => it.element),
    el("p", { class: "tools" }, run, el("span", { class: "dim" }, "or ", el("kbd", null, "Ctrl"), " + ", el("kbd", null, "Enter"))), wrong);
  /** The parameters, or null where something that was typed cannot be one. */
  const parameters = () => {
    try {
      const params = readParameters(fields);
      fill(wrong);
      return params;
    } catch (fault) {
      fill(wrong, String(fault));
      return null;
    }
  };
  const refresh = () => {
    const params = parameters();
    if (params !== null) programs.show({ method: method.name, params, url: endpoint(), hasKey: hasKey() });
  };
  let running = new AbortController();
  form.addEventListener("input", refresh);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const params = parameters();
    if (params === null) return;
    running.abort();
    running = new AbortController();
    await runCall({ method: method.name, params }, result, AbortSignal.any([running.signal, page.signal]));
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  refresh();
  const onSocket = SOCKET_METHODS.includes(method.name)
    ? notice("", "This method works over a WebSocket alone.", el("p", null, "Over HTTP, as here, the server refuses it and says so. Open a socket at the same address."))
    : null;
  return el("div", { class: "call-page" },
    el("section", { class: "card" }, el("h2", { class: "method-name" }, method.name), el("p", null, method.summary ?? ""), onSocket, form),
    el("section", { class: "card" }, el("h2", null, "Answer"), result),
    el("section", { class: "card" }, el("h2", null, "The same as a program"), programs.element));
}

/** An example by the parameter's name; none for what may be left out. */
function exampleOf({ name, required, schema }, examples) {
  if (required === false) return undefined;
  // Filters are named by ids in some methods, and described in others.
  if (name === "filter" && schema?.$ref === undefined) return "0x1";
  return Object.hasOwn(examples, name) ? examples[name] : undefined;
}

async function runCall({ method, params }, result, signal) {
  fill(result, el("p", { class: "loading", role: "status" }, "Asking the server…"));
  try {
    const { text, millis, status } = await callRaw(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), { signal });
    showAnswer(text, millis, status, method, result);
  } catch (error) {
    if (!signal.aborted) fill(result, explain(error));
  }
}

function showAnswer(text, millis, status, method, result) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const isError = value === undefined || value?.error !== undefined;
  const pretty = value === undefined || text.length > INDENTED_MAX ? text : JSON.stringify(value, null, 2);
  const isCut = pretty.length > SHOWN_MAX;
  const save = el("button", { type: "button", class: "more" }, "save as file");
  save.addEventListener("click", () => saveFile(text, `${method}.json`, "application/json"));
  const size = new TextEncoder().encode(text).length;
  fill(result,
    el("p", { class: "tools", role: "status" }, badge(isError ? "refused" : "answered", isError ? "bad" : "good"),
      status === 200 ? null : badge(`HTTP ${status}`, "warn"),
      el("span", { class: "dim" }, `${millis < 10 ? millis.toFixed(1) : Math.round(millis)} ms · ${bytes(size)}`), copyButton(text, "answer"), save),
    el("pre", { tabindex: "0", ariaLabel: "Answer as JSON" }, isCut ? `${pretty.slice(0, SHOWN_MAX)}…` : pretty),
    isCut ? el("p", { class: "dim" }, `The first ${counted(SHOWN_MAX, "character")} of ${counted(pretty.length, "character")} are shown; copy and file have all.`) : null);
}

/** Buttons for tools, and the program of the one that is chosen. */
function programView() {
  const body = el("div", { class: "program" });
  let current = null;
  const buttons = TOOLS.map(({ id, name }) => {
    const button = el("button", { type: "button", dataTool: id }, name);
    button.addEventListener("click", () => { tool = id; draw(); });
    return button;
  });
  const draw = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    const { name, make } = TOOLS.find((it) => it.id === tool);
    const text = make(current);
    fill(body, el("pre", { tabindex: "0", ariaLabel: `Program for ${name}` }, text), copyButton(text, `program for ${name}`));
  };
  const key = el("p", { class: "dim" }, "The key of this tab is not written here: the program takes it from the environment, as ", el("code", null, "QUIPU_KEY"), ".");
  return {
    element: el("div", { class: "programs" }, el("div", { class: "tool-choice", role: "group", ariaLabel: "Tool" }, buttons), body, hasKey() ? key : null),
    show: (next) => { current = next; draw(); },
  };
}
