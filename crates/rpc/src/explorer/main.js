// The shell: routes, search, the key of this tab, and what every page has around it.
//
// Knows: which module shows which route, and how one page leaves before the next one comes.
// Never knows: what is on a page.

import { el, excerpt, fill, refreshTimes, visible } from "./format.js";
import * as rpc from "./rpc.js";
import { chain } from "./chain.js";
import { explain } from "./answers.js";
import { tipState } from "./tip_state.js";

/* Pages. A module that is missing or broken is told of, and leaves the others as they are. */

const PAGES = {
  overview: { load: () => import("./overview.js"), show: (it, main, route, page) => it.renderOverview(main, route, page) },
  block: { load: () => import("./block.js"), show: (it, main, route, page) => it.renderBlock(main, route, page) },
  tx: { load: () => import("./transaction.js"), show: (it, main, route, page) => it.renderTransaction(main, route, page) },
  address: { load: () => import("./address.js"), show: (it, main, route, page) => it.renderAddress(main, route, page) },
  search: { load: () => import("./search.js"), show: (it, main, route, page) => it.renderSearch(main, route, page) },
  playground: { load: () => import("./playground.js"), show: (it, main, route, page) => it.renderPlayground(main, route, page) },
};

const main = document.getElementById("main");
const query = document.getElementById("query");
let current = null;

/** The route of the address: its page, its argument, and what follows. */
function readRoute() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const name = parts[0] === "" ? "overview" : parts[0];
  return { page: Object.hasOwn(PAGES, name) ? name : null, name, argument: parts[1] ?? "", rest: parts.slice(2), parts };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What a page is given: what ends its requests, and what is done when it leaves. */
class Page {
  #leaving = new AbortController();
  get signal() {
    return this.#leaving.signal;
  }
  /** At once if the page has left: nobody tells of that again. */
  onLeave(action) {
    if (this.signal.aborted) action();
    else this.signal.addEventListener("abort", action, { once: true });
  }
  /** Repeats an action while the page is there and seen. */
  every(millis, action) {
    const timer = setInterval(() => { if (!document.hidden) action(); }, millis);
    this.onLeave(() => clearInterval(timer));
  }
  leave() {
    this.#leaving.abort();
  }
}

async function show({ focus = true } = {}) {
  const route = readRoute();
  current?.leave();
  const page = new Page();
  current = page;
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    if (link.dataset.page === route.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  // A page stays until the next one has something to show; but under another address it proves and leads nowhere.
  for (const it of main.querySelectorAll(":scope > .page")) it.inert = true;
  const next = el("div", { class: `page page-${route.page ?? "unknown"}` });
  const waiting = setTimeout(() => { if (current === page) tellOfWaiting(); }, 150);
  try {
    if (route.page === null) renderUnknown(next, route);
    else await renderPage(next, route, page);
  } catch (error) {
    if (page.signal.aborted) return;
    fill(next, el("h1", null, "This page cannot be shown"), explain(error, { again: () => show() }));
  } finally {
    clearTimeout(waiting);
  }
  // A page that leads on to another one leaves nothing.
  if (page.signal.aborted || next.childNodes.length === 0) return;
  main.removeAttribute("aria-busy");
  fill(main, next);
  const heading = next.querySelector("h1");
  const title = next.dataset.title ?? heading?.textContent ?? "Quipu";
  document.title = visible(`${title} · ${chain.networkName() ?? "Quipu"}`);
  // Who types a key goes on typing.
  if (focus && heading !== null && asking?.contains(document.activeElement) !== true) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function tellOfWaiting() {
  main.setAttribute("aria-busy", "true");
  // Before the first page the document says so itself.
  if (main.querySelector(".page") === null || main.querySelector(".waiting") !== null) return;
  main.append(el("p", { class: "waiting", role: "status" }, "Asking the server for the next page…"));
}

async function renderPage(next, route, page) {
  const { load, show: render } = PAGES[route.page];
  let loaded;
  try {
    loaded = await load();
  } catch (error) {
    console.warn(error);
    fill(next, el("h1", null, "This page could not be loaded"),
      el("p", { class: "notice warn" }, `The server did not send the part “${route.name}” of this page. Reload it; if that does not help, the server was exchanged for one without it.`));
    return;
  }
  if (!page.signal.aborted) await render(loaded, next, route, page);
}

function renderUnknown(next, route) {
  fill(next, el("h1", null, "No such page"),
    el("p", { class: "notice" }, "There is no page ", el("code", null, `#/${excerpt(route.parts.join("/"), 80)}`), "."),
    el("p", null, "Pages are ", el("code", null, "#/block/NUMBER"), ", ", el("code", null, "#/tx/HASH"), ", ",
      el("code", null, "#/address/ADDRESS"), " and ", el("a", { href: "#/playground" }, "the playground"), ". Or use the search above."));
}

/* Search. */

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = query.value.trim();
  if (text === "") return query.focus();
  const target = `#/search/${encodeURIComponent(text)}`;
  if (location.hash === target) show();
  else location.hash = target;
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]") !== null;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    query.focus();
    query.select();
  } else if (event.key === "Escape" && event.target === query) {
    query.value = "";
    query.blur();
  }
});

document.getElementById("skip").addEventListener("click", (event) => {
  // The address belongs to the routes.
  event.preventDefault();
  main.focus();
});

/* The key of this tab. */

let asking = null;

function askForKey(reason) {
  if (asking !== null) return;
  const input = el("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, maxlength: "4096" });
  const form = el("form", { class: "key" }, el("label", { for: "key" }, "Your API key"), input, el("button", { type: "submit" }, "Use it"));
  const mistake = el("p", { role: "alert" });
  asking = el("section", { class: "notice key-asked", role: "dialog", ariaLabel: "API key" },
    el("h2", null, rpc.hasKey() ? "This key is not let in" : "This server asks for a key"),
    el("p", null, "It stays in this tab, is forgotten with it, and is sent to this server alone. Whoever runs the server makes keys: ",
      el("code", null, "quipu key new"), "."),
    form, mistake, el("p", { class: "dim" }, "The server says: ", el("bdi", null, excerpt(reason, 500))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (!rpc.isKey(key)) {
      fill(mistake, "This can be no key: a key is letters, digits and signs of ASCII, without a space. It was not sent.");
      return input.focus();
    }
    rpc.setKey(key);
    asking.remove();
    asking = null;
    // What had the focus is gone.
    start({ focus: true });
  });
  main.before(asking);
  input.focus();
}

rpc.onUnauthorized(askForKey);

// A link carries no key: where one is used, the document is asked for with it and saved.
const openrpc = document.getElementById("openrpc");
const openrpcTrouble = el("span", { role: "alert" });
openrpc.after(openrpcTrouble);
openrpc.addEventListener("click", async (event) => {
  if (!rpc.hasKey()) return;
  event.preventDefault();
  fill(openrpcTrouble);
  try {
    const [document, { saveFile }] = await Promise.all([rpc.page("openrpc.json"), import("./raw.js")]);
    saveFile(JSON.stringify(document, null, 2), "openrpc.json", "application/json");
  } catch (error) {
    fill(openrpcTrouble, " could not be had: ", excerpt(error.message, 200));
  }
});

/* What is around every page. */

let way = "waiting";

/** Shows the state of the tip, which goes on with the time. */
function showTip() {
  const state = document.getElementById("way");
  const known = { way, tip: chain.tip, stat: chain.lastStat(), sinceHead: chain.sinceHead() };
  const { state: tip, text, title } = tipState({ ...known, now: Date.now() / 1000 });
  state.dataset.way = way;
  state.dataset.tip = tip;
  state.title = title;
  const label = document.getElementById("way-text");
  // Who hears the page hears what is new alone.
  if (label.textContent !== text) fill(label, text);
}

chain.onWay((it) => { way = it; showTip(); });
chain.onHead(showTip);
chain.onStat(showTip);

chain.onNetwork(() => {
  const label = document.getElementById("network");
  const name = chain.networkName();
  label.hidden = name === null;
  fill(label, el("bdi", null, name ?? ""));
  label.title = chain.chainId === null ? "" : `Chain id ${chain.chainId}`;
});

async function start({ focus = false } = {}) {
  show({ focus });
  chain.start();
  try {
    const version = await rpc.call("web3_clientVersion");
    fill(document.getElementById("version"), typeof version === "string" ? version.slice(0, 60) : "Quipu");
  } catch {
    // The pages say what is wrong.
  }
}

// A key in the address is one that is copied with it.
if (rpc.hasPathKey()) {
  history.replaceState(null, "", rpc.basePath() + location.search + location.hash);
}
addEventListener("hashchange", () => { show(); });
setInterval(() => {
  if (document.hidden) return;
  refreshTimes(document);
  showTip();
}, 1000);
// What a server that follows a node says of itself decides about a tip that is not young, and not every page asks for it.
setInterval(() => {
  const isYoung = ["live", "polling"].includes(document.getElementById("way").dataset.tip);
  if (!document.hidden && !isYoung && chain.lastStat()?.follow) chain.statIfAny();
}, 10_000);
start();
