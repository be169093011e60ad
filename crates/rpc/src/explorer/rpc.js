// Transport: JSON-RPC over HTTP and WebSocket to the server that this page came from, and nobody else.
//
// Knows: where the server is, the key of this tab, and every way in which a request can fail.
// Never knows: methods, or what is shown. It has no part in the document: other programs may import it.

/** How long an answer may take before it is given up. */
const ANSWER_TIMEOUT_MS = 30_000;
const SESSION_KEY = "quipu-key";
const PAUSE_MS_MIN = 1_000;
const PAUSE_MS_MAX = 30_000;
const POLL_MS = 4_000;
/** The code by which a batch is refused that is too large. */
const INVALID_REQUEST = -32600;
/** Failed attempts at a WebSocket after which the tip is asked for instead. */
const SOCKET_ATTEMPTS = 2;
/** How long a WebSocket may take to open and to answer; then the tip is asked for meanwhile. */
const SOCKET_TIMEOUT_MS = 8_000;

/** Why a call failed. `kind`: rpc, unauthorized, limited, unreachable, timeout, malformed, http. */
export class RpcError extends Error {
  constructor(kind, code, message, data = undefined) {
    super(message);
    this.name = "RpcError";
    this.kind = kind;
    this.code = code;
    this.data = data;
  }
}

/* Where the server is, and the key. */

// This module is in `explorer/` below the page. A key in the path is taken out of it, so that no link, no
// referrer and no copied address has it.
const [base, pathKey] = withoutKey(new URL("../", import.meta.url));

function withoutKey(url) {
  const found = /^(.*\/)v1\/([^/]+)\/$/.exec(url.pathname);
  const place = new URL(found ? found[1] : url.pathname, url);
  return [place, found ? decoded(found[2]) : null];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The URL of the JSON-RPC endpoint, without a key. */
export function endpoint() {
  return base.href;
}

/** The path of the page, without a key. */
export function basePath() {
  return base.pathname;
}

/** Whether the page was opened below a key's path. */
export function hasPathKey() {
  return pathKey !== null;
}

let key = [pathKey, stored()].find(isKey) ?? null;
if (pathKey !== null) setKey(key);

/** Whether a text can be a key at all: a field of HTTP carries visible ASCII, and `fetch` fails on others. */
export function isKey(text) {
  return typeof text === "string" && /^[\x21-\x7e]+$/.test(text);
}

function stored() {
  try {
    return globalThis.sessionStorage?.getItem(SESSION_KEY) ?? null;
  } catch {
    return null; // The browser keeps nothing for this page.
  }
}

export function hasKey() {
  return key !== null;
}

/** Uses another key from now on, in this tab only; null, as what can be no key, for none. */
export function setKey(next) {
  key = isKey(next) ? next : null;
  try {
    if (key === null) globalThis.sessionStorage?.removeItem(SESSION_KEY);
    else globalThis.sessionStorage?.setItem(SESSION_KEY, key);
  } catch {
    // It is held in memory all the same.
  }
}

const unauthorizedListeners = new Set();

/** Tells whenever the server wants a key, or another one. */
export function onUnauthorized(listener) {
  unauthorizedListeners.add(listener);
}

/* Requests. */

async function ask(path, { body, signal, timeout = ANSWER_TIMEOUT_MS } = {}) {
  const clock = AbortSignal.timeout(timeout);
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = key;
  if (sent !== null) headers.authorization = `Bearer ${sent}`;
  try {
    const answer = await fetch(new URL(path, base), {
      method: body === undefined ? "GET" : "POST",
      body,
      headers,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: signal ? AbortSignal.any([signal, clock]) : clock,
    });
    return { answer, text: await answer.text(), sent };
  } catch (error) {
    if (signal?.aborted) throw error;
    if (clock.aborted) throw new RpcError("timeout", 0, `no answer within ${timeout / 1000} s`);
    throw new RpcError("unreachable", 0, "the server does not answer");
  }
}

/** What a refusal of the transport is, from its status and its body. `sent`: the key that was refused, if it was. */
function refusal({ answer, text, sent }) {
  const said = messageOf(parsed(text)) ?? `HTTP ${answer.status}`;
  if (answer.status === 401) {
    // What is late may refuse a key that has been exchanged since.
    if (sent === key) for (const listener of unauthorizedListeners) listener(said);
    return new RpcError("unauthorized", 401, said);
  }
  if (answer.status === 429 || answer.status === 503) {
    return new RpcError("limited", answer.status, said, { seconds: secondsOf(answer.headers.get("retry-after")) });
  }
  return new RpcError("http", answer.status, said);
}

/** The seconds that a `Retry-After` asks to wait: it is a number of them, or a date. */
export function secondsOf(text, now = Date.now()) {
  const seconds = /^\d{1,9}$/.test(text ?? "") ? Number(text) : Math.ceil((Date.parse(text) - now) / 1000);
  return Math.max(1, seconds || 1);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(value) {
  const message = value?.error?.message;
  return typeof message === "string" ? message : null;
}

function resultOf(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new RpcError("malformed", 0, "the answer is no JSON-RPC response");
  }
  if (value.error !== undefined && value.error !== null) {
    const { code, message, data } = value.error;
    throw new RpcError("rpc", Number.isInteger(code) ? code : 0, typeof message === "string" ? message : "no reason given", data);
  }
  if (!("result" in value)) throw new RpcError("malformed", 0, "the answer has neither result nor error");
  return value.result;
}

let lastId = 0;

function request(method, params) {
  lastId += 1;
  return { jsonrpc: "2.0", id: lastId, method, params };
}

/** The result of a call. */
export async function call(method, params = [], { signal } = {}) {
  const asked = await ask("", { body: JSON.stringify(request(method, params)), signal });
  const value = parsed(asked.text);
  // Refusals of single calls have a status of their own; what they say is in the body.
  if (!asked.answer.ok && !(asked.answer.status === 403 && value?.error)) throw refusal(asked);
  if (value === undefined) throw new RpcError("malformed", 0, "the answer is no JSON");
  return resultOf(value);
}

/**
 * Results of several calls `[method, params]`; an RpcError in the place of each that failed. They are one request, or
 * several where the server takes no batches of that size.
 */
export async function callAll(calls, { signal } = {}) {
  if (calls.length === 0) return [];
  const results = await callBatch(calls, signal);
  if (calls.length === 1 || !results.some((it) => it instanceof RpcError && it.code === INVALID_REQUEST)) return results;
  const half = Math.ceil(calls.length / 2);
  const parts = await Promise.all([callAll(calls.slice(0, half), { signal }), callAll(calls.slice(half), { signal })]);
  return [...parts[0], ...parts[1]];
}

async function callBatch(calls, signal) {
  const requests = calls.map(([method, params]) => request(method, params));
  const asked = await ask("", { body: JSON.stringify(requests), signal });
  if (!asked.answer.ok) throw refusal(asked);
  const values = parsed(asked.text);
  if (!Array.isArray(values)) resultOf(values);
  const byId = new Map(Array.isArray(values) ? values.map((it) => [it?.id, it]) : []);
  return requests.map(({ id }) => {
    try {
      return resultOf(byId.get(id) ?? null);
    } catch (error) {
      return error;
    }
  });
}

/** Sends a body as it is; `text` is the answer as it came, `millis` how long that took. */
export async function callRaw(bodyText, { signal } = {}) {
  const begun = performance.now();
  const asked = await ask("", { body: bodyText, signal });
  const millis = performance.now() - begun;
  const { status } = asked.answer;
  // Of these the body does not say what to do next.
  if ([401, 429, 503].includes(status)) throw refusal(asked);
  return { text: asked.text, millis, status };
}

/** A page of the server that is JSON: `stat.json`, `openrpc.json`. */
export async function page(path, { signal } = {}) {
  const asked = await ask(path, { signal });
  if (!asked.answer.ok) throw refusal(asked);
  const value = parsed(asked.text);
  if (value === null || typeof value !== "object") throw new RpcError("malformed", 0, "the answer is no JSON");
  return value;
}

/* The tip, as it moves. */

/**
 * Follows new heads over a WebSocket, and by asking where there is none. `onHead(block)` gets every header as
 * it came; `onWay(way)` gets "live", "polling" or "lost". Returns what ends it, and what opens another socket in
 * the place of one that is open and silent.
 */
export function followHeads({ onHead, onWay }) {
  const following = { ended: false, socket: null, timer: null, polling: null, attempts: 0, last: null };
  const told = (block) => {
    if (following.ended || block === null || typeof block !== "object" || block.hash === following.last) return;
    following.last = block.hash;
    onHead(block);
  };
  connect(following, told, onWay);
  const end = () => {
    following.ended = true;
    clearTimeout(following.timer);
    stopPolling(following);
    following.socket?.close();
  };
  return { end, reopen: () => { if (following.socket?.readyState === WebSocket.OPEN) following.socket.close(); } };
}

function socketUrl() {
  // Browsers set no header for a socket: the key is in its path, which no history keeps.
  const url = new URL(key === null ? "" : `v1/${encodeURIComponent(key)}`, base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}

function connect(following, told, onWay) {
  if (following.ended) return;
  let socket;
  try {
    socket = new WebSocket(socketUrl());
  } catch {
    pollHeads(following, told, onWay);
    return;
  }
  following.socket = socket;
  // A socket that is silent may not even tell that it is closed.
  const clock = setTimeout(() => {
    pollHeads(following, told, onWay);
    socket.close();
  }, SOCKET_TIMEOUT_MS);
  let isTold = false;
  socket.addEventListener("open", () => {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
  });
  socket.addEventListener("message", ({ data }) => {
    const message = typeof data === "string" ? parsed(data) : undefined;
    if (message?.id === 1) {
      clearTimeout(clock);
      if (typeof message.result !== "string") return socket.close();
      following.attempts = 0;
      stopPolling(following);
      onWay("live");
      // Nothing is told of what came before.
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "eth_getBlockByNumber", params: ["latest", false] }));
    } else if (message?.id === 2) {
      if (!isTold) told(message.result);
    } else if (message?.method === "eth_subscription") {
      isTold = true;
      told(message.params?.result);
    }
  });
  socket.addEventListener("close", () => {
    clearTimeout(clock);
    if (following.ended) return;
    following.attempts += 1;
    onWay(following.polling === null ? "lost" : "polling");
    if (following.attempts >= SOCKET_ATTEMPTS) pollHeads(following, told, onWay);
    const pause = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(following.attempts, 5));
    following.timer = setTimeout(() => connect(following, told, onWay), pause * (0.75 + Math.random() / 2));
  });
}

function pollHeads(following, told, onWay) {
  if (following.ended || following.polling !== null) return;
  const look = async () => {
    try {
      told(await call("eth_getBlockByNumber", ["latest", false]));
      if (following.polling !== null) onWay("polling");
    } catch {
      if (following.polling !== null) onWay("lost");
    }
    if (following.polling !== null) following.polling = setTimeout(look, POLL_MS);
  };
  following.polling = setTimeout(look, 0);
}

function stopPolling(following) {
  clearTimeout(following.polling);
  following.polling = null;
}
