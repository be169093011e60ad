// The overview: which chain, how far, how much of it, how serving goes, and the blocks that arrive.
//
// Knows: members of `stat.json`, and how a new head changes the list of newest blocks.
// Never knows: how it is transported, or how charts are drawn.

import {
  ABSENT, badge, bytes, card, count, counted, decimal, el, excerpt, field, fields, fill, hexLink, isHash, listOf, percent, plainNumber, price, quantity,
  refill, span, table, textsOf, time, visible, whole, written,
} from "./format.js";
import { call, callAll, RpcError } from "./rpc.js";
import { chain, missingOf, rangesOf, unreadableOf } from "./chain.js";
import { explain, notice } from "./answers.js";
import { legend, meter, rangeBar, sparkline, stackedBar } from "./chart.js";

const BLOCKS_SHOWN = 12;
/** What is served is looked at so often. */
const LOOK_MS = 2_000;
/** Files that cannot be read are named one by one. */
const FILES_SHOWN = 8;
const SAMPLES_MAX = 60;

/** Trust statuses of ranges: color and meaning. */
const STATUSES = {
  anchored: ["good", "every block proven against an accumulator or a trusted hash"],
  linked: ["accent", "proven, and linked by parent hashes to genesis or an anchor"],
  unanchored: ["warn", "proven inside, but nothing known says that it is canonical"],
};

const BYTE_PARTS = [
  ["transactions", "transactions", "p1"], ["receipts", "receipts", "p2"], ["log_index", "log index", "p3"], ["lookups", "lookups", "p4"],
  ["headers", "headers", "p5"], ["head", "head", "p6"], ["other", "other", "p7"],
];

// What was measured stays while other pages are looked at, where nothing is measured.
const samples = { requests: [], latency: [], measured: [] };

export async function renderOverview(main, _route, page) {
  // No line joins what was measured now with what was measured before this page was left.
  if (samples.measured.length > 0) for (const list of Object.values(samples)) push(list, null);
  const parts = { tiles: el("div", { class: "tiles" }), coverage: el("div"), charts: el("div"), health: el("div"), blocks: el("div"), troubles: el("div") };
  main.dataset.title = "Overview";
  main.append(el("h1", { class: "offscreen" }, "Overview"), parts.troubles, parts.tiles, parts.coverage,
    el("div", { class: "columns" }, parts.blocks, el("div", { class: "stack" }, parts.charts, parts.health)));
  const newest = new NewestBlocks(parts.blocks, page);
  await Promise.all([look(parts, page), newest.load()]);
  if (page.signal.aborted) return;
  showTiles(parts.tiles, latest.stat);
  chain.onHead((head) => { newest.take(head); showTiles(parts.tiles, latest.stat); }, page.signal);
  let isLooking = false;
  page.every(LOOK_MS, async () => {
    // A server that is slow is asked no more often than it answers.
    if (isLooking) return;
    isLooking = true;
    await look(parts, page).finally(() => { isLooking = false; });
  });
}

const latest = { stat: null };

async function look(parts, page) {
  const begun = performance.now();
  let stat;
  try {
    // How long an answer takes from here: one small call, beside the page of numbers.
    const [, got] = await Promise.all([call("eth_blockNumber", [], { signal: page.signal }).then((number) => {
      push(samples.measured, performance.now() - begun);
      const tip = count(number);
      if (tip !== null) chain.sees(tip);
    }), chain.stat()]);
    stat = got;
  } catch (error) {
    if (page.signal.aborted) return;
    push(samples.requests, null);
    push(samples.latency, null);
    push(samples.measured, null);
    refill(parts.troubles, explain(error));
    if (parts.tiles.childNodes.length === 0) showTiles(parts.tiles, null);
    return;
  }
  if (page.signal.aborted) return;
  latest.stat = stat;
  push(samples.requests, numberOf(stat?.live?.rates?.requests_per_second));
  push(samples.latency, numberOf(stat?.live?.latency?.p99_seconds));
  refill(parts.troubles, troubles(stat));
  showTiles(parts.tiles, stat);
  refill(parts.coverage, coverage(stat));
  refill(parts.charts, charts(stat));
  refill(parts.health, health(stat));
}

function push(list, value) {
  list.push(value);
  if (list.length > SAMPLES_MAX) list.shift();
}

function numberOf(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

function troubles(stat) {
  const said = [...textsOf(stat?.live?.troubles), ...[stat?.notice, stat?.error].filter((it) => typeof it === "string")];
  if (said.length === 0) return null;
  return notice("warn", said.length === 1 ? "Something is wrong with this server." : "Some things are wrong with this server.",
    el("ul", null, said.slice(0, 20).map((it) => el("li", null, el("bdi", null, it.slice(0, 600))))));
}

/* Tiles. */

function showTiles(container, stat) {
  const tip = chain.tip ?? (Number.isSafeInteger(stat?.tip?.number) ? stat.tip : null);
  const finalized = Number.isSafeInteger(stat?.finalized?.number) ? stat.finalized : null;
  const [transactions, bytesAll] = [numberOf(stat?.transactions) ?? 0, numberOf(stat?.bytes?.total) ?? 0];
  const perTransaction = transactions > 0 && bytesAll > 0 && stat.source === undefined ? bytesAll / transactions : null;
  const below = tip !== null && finalized !== null ? Math.max(0, tip.number - finalized.number) : null;
  refill(container,
    tile("Tip", tip === null ? ABSENT : hexLink("block", tip.number), tip?.timestamp ? time(tip.timestamp, { exact: false }) : tip === null ? "no block yet" : "newest block held"),
    tile("Finalized", finalized === null ? ABSENT : hexLink("block", finalized.number),
      finalized === null ? "finality is not known" : below === 0 ? "the tip is final" : `${counted(below, "block")} below the tip`),
    tile("Blocks", whole(stat?.blocks), heldNote(stat)),
    tile("Transactions", whole(stat?.transactions), stat === null ? "not shown here" : `${whole(stat?.logs)} logs`),
    tile("On disk", stat?.bytes ? bytes(stat.bytes.total) : ABSENT,
      perTransaction === null ? (stat?.source ? "the local part of a bucket" : "bytes a transaction not known") : `${decimal(perTransaction, 1)} bytes a transaction`));
}

function heldNote(stat) {
  if (!Array.isArray(stat?.coverage)) return stat === null ? "not shown here" : "not known";
  const [gaps, first, unreadable] = [rangesOf(stat.gaps).length, rangesOf(stat.coverage)[0]?.first ?? 0, unreadableOf(stat)];
  const notes = [first > 0 ? `from block ${whole(first)}` : null, gaps > 0 ? `with ${counted(gaps, "gap")}` : null,
    unreadable.length > 0 ? `${whole(sumOf(unreadable))} cannot be read` : null].filter((it) => it !== null);
  return notes.length > 0 ? notes.join(", ") : "no gap";
}

function tile(name, value, note) {
  return el("div", { class: "tile" }, el("div", { class: "tile-name" }, name), el("div", { class: "tile-value" }, value), el("div", { class: "tile-note" }, note));
}

/* Coverage. */

function coverage(stat) {
  if (stat === null) {
    return card("What is held", el("p", { class: "dim" }, "This server, or the proxy before it, does not show its statistics here (", el("code", null, "stat.json"), "). Blocks and transactions can be looked at all the same."));
  }
  if (!Array.isArray(stat.coverage)) return card("What is held", notice("warn", "What is held is not known."));
  const held = listOf(stat.coverage).filter((it) => rangesOf([it]).length > 0);
  const unreadable = unreadableOf(stat);
  if (held.length === 0 && unreadable.length > 0) return card("What is held", notice("bad", "No block can be read."), unreadableFiles(stat));
  if (held.length === 0) {
    return card("What is held", notice("", "No block is held yet.", el("p", null, "Blocks come with ", el("code", null, "quipu import"), ", ", el("code", null, "quipu fetch"), " or ", el("code", null, "quipu serve --upstream"), ".")));
  }
  const last = Math.max(held.at(-1).last, unreadable.at(-1)?.last ?? 0, chain.tip?.number ?? 0);
  const tones = new Map();
  const ranges = held.map(({ first, last: end, status, anchor }) => {
    const word = typeof status === "string" ? status.slice(0, 40) : "unknown";
    const [tone] = statusOf(word);
    tones.set(word, (tones.get(word) ?? 0) + end - first + 1);
    const by = typeof anchor === "string" ? ` to ${anchor.slice(0, 100)}` : "";
    return { first, last: end, tone, title: visible(`blocks ${whole(first)} to ${whole(end)}: ${word}${by}`) };
  });
  const head = rangesOf([stat.head]);
  const gaps = missingOf(stat);
  const receipts = rangesOf(stat.coverage_receipts);
  const lacking = rangesOf(stat.without_log_index);
  const receiptCount = receipts.reduce((sum, it) => sum + it.last - it.first + 1, 0);
  const all = [...tones.values()].reduce((sum, it) => sum + it, 0);
  // Above what is held: a gap of few blocks would be covered by its neighbours.
  const without = (of, tone, word) => of.map((it) => ({ ...it, tone, title: `blocks ${whole(it.first)} to ${whole(it.last)}: ${word}` }));
  const told = [[...tones].map(([word, number]) => `${counted(number, "block")} ${word}`).join(", "),
    ...(gaps.length > 0 ? [`not held: ${gapText(gaps)}`] : []), ...(unreadable.length > 0 ? [`cannot be read: ${gapText(unreadable)}`] : [])].join("; ");
  return card("What is held",
    el("div", { class: "coverage" },
      rangeBar([...ranges, ...without(gaps, "empty", "not held"), ...without(unreadable, "bad", "cannot be read")], last,
        { label: `Blocks held, from 0 to ${whole(last)}: ${told}` }),
      rangeBar(receipts.map((it) => ({ ...it, tone: "receipts", title: `receipts of blocks ${whole(it.first)} to ${whole(it.last)}` })), last,
        { label: `Receipts held: of ${counted(receiptCount, "block")}`, height: 6 }),
      el("div", { class: "scale", ariaHidden: "true" }, [0, 0.25, 0.5, 0.75, 1].map((part) => el("span", null, whole(Math.round(last * part)))))),
    legend([
      ...[...tones].map(([word, number]) => [statusOf(word)[0], el("span", { title: statusOf(word)[1] }, word), counted(number, "block")]),
      ["receipts", "receipts", receiptCount === all ? "of all" : counted(receiptCount, "block")],
      ...(gaps.length > 0 ? [["empty", "not held", gapText(gaps)]] : []),
      ...(unreadable.length > 0 ? [["bad", "cannot be read", gapText(unreadable)]] : []),
    ]),
    unreadableFiles(stat),
    el("p", { class: "dim small" }, [...tones.keys()].filter((it) => statusOf(it)[1] !== null).map((it, at) => [at === 0 ? "" : " ", el("b", null, `${it}: `), `${statusOf(it)[1]}.`]),
      head.length > 0 ? ` Blocks ${whole(head[0].first)} to ${whole(head[0].last)} are not sealed yet.` : "",
      lacking.length > 0 ? ` No log index for ${gapText(lacking)}: logs are searched there block by block.` : ""),
    bytesByPart(stat));
}

/** The color and the meaning of a status; null for the meaning of one that is not known. */
function statusOf(word) {
  return Object.hasOwn(STATUSES, word) ? STATUSES[word] : ["dull", null];
}

/** The files that cannot be read, and what to do about them. */
function unreadableFiles(stat) {
  const files = listOf(stat.unreadable).filter((it) => typeof it.file === "string");
  if (files.length === 0) return null;
  const all = Math.max(numberOf(stat.unreadable_count) ?? 0, files.length);
  const more = all - Math.min(files.length, FILES_SHOWN);
  const item = (it) => {
    const [range] = rangesOf([it]);
    return el("li", { class: "wrap" }, el("bdi", { class: "hex" }, excerpt(it.file, 200)), range === undefined ? "" : ` (blocks ${whole(range.first)} to ${whole(range.last)})`,
      ": ", el("bdi", null, excerpt(it.error ?? "no reason given", 300)));
  };
  return notice("bad", `${counted(all, "file")} cannot be read.`,
    el("ul", null, files.slice(0, FILES_SHOWN).map(item), more > 0 ? el("li", { class: "dim" }, `and ${counted(more, "other")}`) : null),
    el("p", null, "The operator finds out what to do with ", el("code", null, "quipu doctor"), "."));
}

function sumOf(ranges) {
  return ranges.reduce((sum, it) => sum + it.last - it.first + 1, 0);
}

function gapText(ranges) {
  const number = sumOf(ranges);
  const first = ranges[0];
  const place = ranges.length === 1 ? `${whole(first.first)} to ${whole(first.last)}` : `${ranges.length} ranges`;
  return `${counted(number, "block")} (${place})`;
}

function bytesByPart(stat) {
  const parts = BYTE_PARTS.map(([member, name, tone]) => ({ name, tone, value: numberOf(stat.bytes?.[member]) ?? 0 }));
  if (parts.every((it) => it.value === 0)) return null;
  return el("div", { class: "by-part" }, el("h3", null, "Bytes by part"), stackedBar(parts, { label: "Bytes by part", format: bytes }));
}

/* Charts. */

function charts(stat) {
  const live = stat?.live ?? {};
  const rate = (value) => `${decimal(value, value < 10 ? 1 : 0)} /s`;
  // A quantile that is null beside a number of calls lies above all that the server counts apart.
  const hasCalls = numberOf(live.latency?.calls) > 0;
  const hasLatency = hasCalls || samples.latency.some((it) => it !== null);
  const bounded = (it) => `≤ ${span(it)}`;
  const [p50, beyond] = [numberOf(live.latency?.p50_seconds), hasCalls ? "over 8 s" : ABSENT];
  return el("div", { class: "tiles charts" },
    chartTile("Requests a second", samples.requests, rate, stat === null ? "not shown here" : `${whole(live.requests)} requests since the start`),
    hasLatency
      ? chartTile("Time of a call, p99", samples.latency, bounded, `p50 ${p50 === null ? beyond : bounded(p50)}; of the last ten seconds`, beyond)
      : null,
    chartTile("Round trip from here", samples.measured, (it) => span(it / 1000), "a small call, with the network and this browser"));
}

function chartTile(name, values, format, note, absent = ABSENT) {
  const newest = values.at(-1) ?? null;
  return el("div", { class: "tile chart" }, el("div", { class: "tile-name" }, name),
    el("div", { class: "tile-value" }, newest === null ? absent : format(newest)),
    sparkline(values, { label: name, format, slots: SAMPLES_MAX, absent: absent === ABSENT ? undefined : absent }), el("div", { class: "tile-note" }, note));
}

/* Health of nodes and of a bucket. */

function health(stat) {
  if (stat === null) return null;
  return [serverCard(stat), followCard(stat), sourceCard(stat.source)];
}

function serverCard(stat) {
  const live = stat.live ?? {};
  return card("Server", fields(
    field("State", live.ready === true ? badge("ready", "good") : live.ready === false ? badge("not ready", "bad") : ABSENT),
    field("Chain", [typeof stat.network === "string" ? el("bdi", null, stat.network.slice(0, 60)) : ABSENT, stat.chain_id === null || stat.chain_id === undefined ? null : el("span", { class: "dim" }, ` id ${plainNumber(stat.chain_id)}`)]),
    isHash(stat.genesis_hash) ? field("Genesis", el("span", { class: "hex", title: stat.genesis_hash }, `${stat.genesis_hash.slice(0, 18)}…`)) : null,
    field("Up for", span(numberOf(live.uptime_seconds) ?? NaN)),
    field("Calls", whole(live.calls)),
    field("Answered", bytes(numberOf(live.answer_bytes) ?? NaN)),
    field("Segments", whole(stat.segment_count))));
}

function followCard({ follow, source }) {
  if (follow === null || typeof follow !== "object") {
    // From a bucket blocks come without a node.
    if (source !== null && typeof source === "object") return null;
    return card("Upstream", el("p", { class: "dim" }, "No node is followed: new blocks come when somebody imports them."));
  }
  const lag = count(follow.lag);
  const upstreams = textsOf(follow.upstreams);
  return card("Upstream", fields(
    field("State", follow.error || (follow.ready === false && lag !== null && lag <= 2) ? badge("trouble", "bad") : lag === null ? badge("waiting", "warn") : lag <= 2 ? badge("at the tip", "good") : badge(`${counted(lag, "block")} behind`, "warn")),
    field("Its tip", count(follow.upstream_tip) === null ? ABSENT : whole(follow.upstream_tip)),
    field("Reorgs seen", whole(follow.reorgs)),
    rangesOf([follow.gap]).length > 0 ? field("Gap left", gapText(rangesOf([follow.gap]))) : null,
    upstreams.length > 0 ? field(upstreams.length === 1 ? "Node" : "Nodes", el("ul", { class: "plain" }, upstreams.slice(0, 8).map((it) => el("li", { class: "wrap" }, el("bdi", null, it.slice(0, 200)))))) : null,
    typeof follow.error === "string" ? field("Error", el("bdi", { class: "wrap" }, follow.error.slice(0, 400))) : null,
    typeof follow.backfill_error === "string" ? field("Backfill", el("bdi", { class: "wrap" }, follow.backfill_error.slice(0, 400))) : null));
}

function sourceCard(source) {
  if (source === undefined || source === null || typeof source !== "object") return null;
  const cache = source.cache ?? {};
  const hits = (numberOf(cache.memory_hits) ?? 0) + (numberOf(cache.disk_hits) ?? 0);
  return card("Source", fields(
    field("State", source.trouble ? badge("trouble", "bad") : badge("listed", "good")),
    field("Bucket", el("bdi", { class: "wrap" }, written(source.place ?? ABSENT).slice(0, 200))),
    field("Listed", numberOf(source.seconds_since_listing) === null ? ABSENT : `${span(Math.max(1, source.seconds_since_listing))} ago`),
    field("Manifests", whole(source.manifests)),
    field("Shown", `${counted(source.segments_shown, "segment")}, ${bytes(numberOf(source.bytes_shown) ?? NaN)}`),
    field("Fetched", `${bytes(numberOf(source.bytes_fetched) ?? NaN)} in ${counted(source.requests, "request")}`),
    field("Cache hits", percent(hits, hits + (numberOf(cache.misses) ?? 0))),
    field("Cached", `${bytes(numberOf(cache.memory_bytes) ?? NaN)} in memory, ${bytes(numberOf(cache.disk_bytes) ?? NaN)} on disk`),
    field("Failures", whole(source.failures)),
    typeof source.trouble === "string" ? field("Trouble", el("bdi", { class: "wrap" }, source.trouble.slice(0, 400))) : null));
}

/* The newest blocks. */

/** The list of newest blocks. Every head takes the place of its number and of all above it. */
class NewestBlocks {
  #container;
  #page;
  #blocks = [];
  /** The number of the last head that was told. Others may have come with an answer before. */
  #told = null;
  #reorg = null;
  #loading = null;

  constructor(container, page) {
    this.#container = container;
    this.#page = page;
  }

  /** Asks for the newest blocks. */
  async load() {
    this.#loading ??= this.#fetch().finally(() => { this.#loading = null; });
    return this.#loading;
  }

  async #fetch() {
    try {
      const tip = await call("eth_getBlockByNumber", ["latest", false], { signal: this.#page.signal });
      const number = count(tip?.number);
      if (number === null) return fill(this.#container, card("Newest blocks", el("p", { class: "dim" }, "The server has no block to show.")));
      const numbers = Array.from({ length: Math.min(BLOCKS_SHOWN - 1, number) }, (_, at) => number - 1 - at);
      const below = await callAll(numbers.map((it) => ["eth_getBlockByNumber", [`0x${it.toString(16)}`, false]]), { signal: this.#page.signal });
      this.#blocks = [];
      for (const block of [tip, ...below]) {
        if (block instanceof RpcError || block === null || count(block.number) === null || !isHash(block.hash)) break;
        this.#blocks.push({ ...block, transactionCount: textsOf(block.transactions).length });
      }
      if (chain.tip === null || chain.tip.hash === null) chain.tip = { number, hash: tip.hash, timestamp: tip.timestamp };
      this.#show(null);
    } catch (error) {
      if (!this.#page.signal.aborted) fill(this.#container, card("Newest blocks", explain(error, { again: () => this.load() })));
    }
  }

  /** A new head has come. */
  async take(head) {
    const number = count(head.number);
    if (number === null) return;
    const isShown = () => this.#blocks.some((it) => it.hash === head.hash);
    const left = isShown() ? 0 : (this.#told ?? count(this.#blocks[0]?.number) ?? -1) - number + 1;
    this.#told = number;
    if (left > 0) this.#reorg = { left, number, seen: Math.floor(Date.now() / 1000) };
    if (this.#loading !== null) {
      await this.#loading;
      // A later head has come meanwhile, and says more.
      if (this.#page.signal.aborted || chain.tip?.hash !== head.hash) return;
    }
    if (isShown()) return;
    const replaced = this.#blocks.filter((it) => count(it.number) >= number);
    const rest = this.#blocks.filter((it) => count(it.number) < number);
    // The list came after this head, or before one that nobody told of.
    if (replaced.length > 0 && left <= 0) return this.load();
    const isNext = rest.length === 0 || (count(rest[0].number) === number - 1 && rest[0].hash === head.parentHash);
    this.#blocks = [{ ...head, transactionCount: Array.isArray(head.transactions) ? head.transactions.length : null }, ...rest].slice(0, BLOCKS_SHOWN);
    this.#show(head.hash);
    // Where blocks between were never told of, all are asked for again.
    if (!isNext) return this.load();
    if (replaced.length > 0) return this.#fillUp();
    await this.#countTransactions(head.hash);
  }

  // After a reorg blocks may be fewer than are shown.
  async #fillUp() {
    await this.load();
  }

  async #countTransactions(hash) {
    try {
      const number = count(await call("eth_getBlockTransactionCountByHash", [hash], { signal: this.#page.signal }));
      const block = this.#blocks.find((it) => it.hash === hash);
      if (block === undefined) return;
      block.transactionCount = number;
      this.#show(null);
    } catch {
      // The block may be gone by now; the list is right without the number.
    }
  }

  #show(arrived) {
    const columns = [["Block"], ["Age"], ["Transactions", "right"], ["Gas used", "right"], ["Base fee", "right wide"], ["Hash", "wide"]];
    const rows = this.#blocks.map((block) => [
      hexLink("block", block.number), time(block.timestamp, { exact: false }), block.transactionCount === null ? "…" : whole(block.transactionCount),
      gasUsed(block), block.baseFeePerGas === undefined ? ABSENT : price(block.baseFeePerGas), hexLink("block", block.hash),
    ]);
    const list = table("Newest blocks", columns, rows);
    list.querySelectorAll("tbody tr").forEach((row, at) => {
      const { hash } = this.#blocks[at];
      row.dataset.key = hash;
      if (hash === arrived) row.classList.add("arrived");
    });
    refill(this.#container, card("Newest blocks", this.#reorg === null ? null : reorgNote(this.#reorg), list));
  }
}

/** That blocks left the chain, and when that was seen: the note stays after them. */
function reorgNote({ left, number, seen }) {
  const note = notice("warn reorg", "Reorg.",
    el("p", null, `${counted(left, "block")} left the chain `, time(seen, { exact: false }), `: block ${whole(number)} and above are others now.`));
  note.dataset.key = "reorg";
  return note;
}

function gasUsed(block) {
  const [used, limit] = [quantity(block.gasUsed), quantity(block.gasLimit)];
  if (used === null || limit === null || limit === 0n) return ABSENT;
  const part = Number(used) / Number(limit);
  return el("span", { class: "gas-used", title: `${whole(used)} of ${whole(limit)}` }, meter(part), el("span", null, percent(used, limit)));
}

