// What the page says of the tip, without a browser: node --test tip_state.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";

import { tipState } from "../../crates/rpc/src/explorer/tip_state.js";

const NOW = 1_800_000_000;
const DAY = 86_400;
const followed = { block_seconds: 12, lag: 0, error: null, ready: true };

function check(expected, { way = "live", old = 5, stat = { follow: followed }, tip = { timestamp: `0x${(NOW - old).toString(16)}` }, sinceHead } = {}) {
  const { state, text, title } = tipState({ way, tip, stat, now: NOW, sinceHead });
  assert.equal(`${state}: ${text}`, expected);
  assert.ok(title.length > 0);
}

test("a chain is live only while a node is followed and its newest block is young", () => {
  check("live: live");
  check("live: live", { old: -3 });
  check("polling: polling", { way: "polling" });
  check("live: live", { old: 60 });
  check("stalled: stalled, newest block 1 min old", { old: 61 });
  check("live: live", { old: 29, stat: { follow: { ...followed, block_seconds: 0.25 } } });
  check("stalled: stalled, newest block 31 s old", { old: 31, stat: { follow: { ...followed, block_seconds: 0.25 } } });
});

test("a chain whose heads arrive is live, whatever the clock of the visitor says", () => {
  check("live: live", { old: DAY, sinceHead: 60 });
  check("stalled: stalled, newest block 1 d old", { old: DAY, sinceHead: 61 });
  check("live: live", { old: DAY, sinceHead: 3, stat: null });
  check("archive: archive, newest block 1 d old", { old: DAY, sinceHead: 3, stat: { follow: null } });
  check("behind: 500 blocks behind", { old: DAY, sinceHead: 1, stat: { follow: { ...followed, lag: 500, ready: false } } });
});

test("without a node blocks are an archive, however young", () => {
  check("archive: archive, newest block 322 d old", { old: 322 * DAY + 7_000, stat: { follow: null } });
  check("archive: archive, newest block 2 h old", { old: 7_300, way: "polling", stat: { follow: null } });
  check("archive: archive, newest block 5 s old", { stat: { follow: null } });
});

test("a node that is dead or behind is not live", () => {
  const old = 3_600;
  check("stalled: stalled, newest block 1 h old", { old, stat: { follow: { ...followed, error: "no answer", ready: false } } });
  check("stalled: stalled, newest block 1 h old", { old, stat: { follow: { ...followed, lag: 500, error: "no answer", ready: false } } });
  check("behind: 500 blocks behind", { old, stat: { follow: { ...followed, lag: 500, ready: false } } });
});

test("a chain that makes blocks on demand may rest, while its node answers", () => {
  const resting = { ...followed, block_seconds: null };
  check("idle: idle, newest block 1 h old", { old: 3_600, stat: { follow: resting } });
  check("stalled: stalled, newest block 1 h old", { old: 3_600, stat: { follow: { ...resting, ready: false } } });
});

test("where statistics are not shown the newest block decides", () => {
  check("live: live", { stat: null });
  check("archive: archive, newest block 1 h old", { old: 3_600, stat: null });
});

test("without a connection or a block nothing is said of the chain", () => {
  check("lost: no connection", { way: "lost" });
  check("waiting: connecting", { way: "waiting" });
  check("waiting: connecting", { tip: null });
  check("archive: no block", { tip: null, stat: { tip: null, follow: null } });
});
