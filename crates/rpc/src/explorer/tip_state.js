// Whether the chain that is shown goes on: live, stalled, or an archive that nothing is added to.
//
// Knows: how old the newest block of a chain that goes on may be.
// Never knows: how heads arrive, or how a state is shown.

import { counted, count, span } from "./format.js";

/** A chain goes on while its newest block is younger than this many times the time between two blocks. */
const LIVE_BLOCKS = 5;
/** And than this, for chains with short times between blocks. */
const LIVE_SECONDS_MIN = 30;
const BLOCK_SECONDS_DEFAULT = 12;
/** A server that is this many blocks behind its node still takes them in. */
const LAG_MAX = 8;

/**
 * The state of the tip, as `{state, text, title}`. `way` is how heads arrive; `tip` is the newest block, `stat` the
 * object of `stat.json`, each null while it is not known; `now` is in seconds since 1970, by a clock that may be wrong;
 * `sinceHead` are the seconds since a head took the place of another, which no clock has to tell.
 */
export function tipState({ way, tip, stat, now, sinceHead = Infinity }) {
  if (way === "lost") return { state: "lost", text: "no connection", title: "The server does not answer; trying again" };
  const timestamp = count(tip?.timestamp);
  if (way === "waiting" || timestamp === null) {
    return stat !== null && stat?.tip === null
      ? { state: "archive", text: "no block", title: "The server has no block to show" }
      : { state: "waiting", text: "connecting", title: "Connecting" };
  }
  const old = Math.max(0, now - timestamp);
  const follow = stat?.follow ?? null;
  const blockSeconds = typeof follow?.block_seconds === "number" ? follow.block_seconds : null;
  const lag = count(follow?.lag);
  const isBehind = lag !== null && lag > LAG_MAX;
  const youngMax = Math.max(LIVE_SECONDS_MIN, LIVE_BLOCKS * (blockSeconds ?? BLOCK_SECONDS_DEFAULT));
  // Heads that arrive while a server catches up are not young.
  const isYoung = old <= youngMax || (sinceHead <= youngMax && !isBehind);
  const newest = `newest block ${age(old)} old`;
  // Where statistics are not shown, only the newest block says whether blocks are added.
  if (isYoung && (follow !== null || stat === null)) {
    const newest = `newest block ${old > youngMax ? `came ${age(sinceHead)} ago` : `${age(old)} old`}`;
    return way === "polling"
      ? { state: "polling", text: "polling", title: `New blocks are requested every few seconds: the WebSocket does not open; ${newest}` }
      : { state: "live", text: "live", title: `New blocks arrive over a WebSocket; ${newest}` };
  }
  if (follow === null) return { state: "archive", text: `archive, ${newest}`, title: "No node is followed, as far as this server shows" };
  if (isBehind && follow.error === null) {
    return { state: "behind", text: `${counted(lag, "block")} behind`, title: `The server catches up with its node; ${newest}` };
  }
  // A chain without regular blocks may rest.
  if (blockSeconds === null && follow.ready === true) {
    return { state: "idle", text: `idle, ${newest}`, title: "The server has the newest block of its node" };
  }
  return { state: "stalled", text: `stalled, ${newest}`, title: "A node is followed, and no new block arrives" };
}

/** A time span in its largest unit. */
function age(seconds) {
  return span(seconds < 1 ? 1 : seconds).split(" ").slice(0, 2).join(" ");
}
