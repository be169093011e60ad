// Charts: drawn as SVG from plain numbers.
//
// Knows: scales, axes and how a picture is told to those who do not see it.
// Never knows: what the numbers are of.

import { el, percent, svg } from "./format.js";

/** Parts narrower than this share of a picture are drawn so wide nevertheless: they would not be seen. */
const PART_MIN = 0.004;

/**
 * A line of the latest values, the newest at the right. `values`: numbers, or null where there is none;
 * `absent`: what is said in the place of a newest one that is null.
 */
export function sparkline(values, { label, format, absent = "nothing measured", slots = 60, height = 64 }) {
  const width = 300;
  const known = values.filter((it) => it !== null);
  const top = niceCeiling(Math.max(0, ...known));
  const x = (at) => width - ((values.length - 1 - at) / (slots - 1)) * width;
  const y = (value) => height - 3 - (value / top) * (height - 10);
  const runs = [];
  values.forEach((value, at) => {
    if (value === null) return runs.push([]);
    if (runs.length === 0) runs.push([]);
    runs.at(-1).push(`${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  });
  const drawn = runs.filter((run) => run.length > 0);
  const newest = values.at(-1) ?? null;
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    ariaLabel: `${label}: now ${newest === null ? absent : format(newest)}${known.length > 0 ? `, at most ${format(Math.max(...known))}` : ""}` },
    svg("line", { class: "axis", x1: 0, x2: width, y1: height - 3, y2: height - 3 }),
    svg("line", { class: "axis faint", x1: 0, x2: width, y1: 7, y2: 7 }),
    drawn.map((run) => svg("path", { class: "area", d: `M${run[0].split(",")[0]},${height - 3} L${run.join(" L")} L${run.at(-1).split(",")[0]},${height - 3} Z` })),
    drawn.map((run) => svg("path", { class: "line", d: `M${run.join(" L")}` })));
}

/** The top of such a chart, as a number that a scale may end with. */
export function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((it) => it * power).find((it) => it >= value) ?? 10 * power;
}

/** Where a range is drawn on a scale from 0 to `last`: wide enough to be seen, and inside of the picture. */
export function placeOf({ first, last: end }, last, width) {
  const x = (number) => (Math.min(number, last + 1) / (last + 1)) * width;
  const wide = Math.max(PART_MIN * width, x(end + 1) - x(first));
  return { x: Math.min(x(first), width - wide), width: wide };
}

/** Ranges on a scale of block numbers from 0 to `last`. `ranges`: `{first, last, tone, title}`; later ones are drawn above. */
export function rangeBar(ranges, last, { label, height = 26 }) {
  const width = 1000;
  return svg("svg", { class: "ranges", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", ariaLabel: label },
    svg("rect", { class: "empty", x: 0, y: 0, width, height }),
    ranges.map((range) => {
      const place = placeOf(range, last, width);
      return svg("rect", { class: `part ${range.tone}`, x: place.x.toFixed(2), y: 0, height, width: place.width.toFixed(2) }, svg("title", null, range.title));
    }));
}

/** Parts of a whole, side by side, with their legend. `parts`: `{name, value, tone}`. */
export function stackedBar(parts, { label, format }) {
  const all = parts.reduce((sum, it) => sum + it.value, 0);
  const shown = parts.filter((it) => it.value > 0);
  const width = 1000;
  let at = 0;
  const rects = shown.map(({ name, value, tone }) => {
    const wide = (value / all) * width;
    const rect = svg("rect", { class: `part ${tone}`, x: at.toFixed(2), y: 0, width: Math.max(wide - 1.5, 1).toFixed(2), height: 14 },
      svg("title", null, `${name}: ${format(value)}, ${percent(value, all)}`));
    at += wide;
    return rect;
  });
  return el("div", { class: "stacked" },
    svg("svg", { class: "ranges thin", viewBox: `0 0 ${width} 14`, preserveAspectRatio: "none", role: "img",
      ariaLabel: `${label}: ${shown.map((it) => `${it.name} ${percent(it.value, all)}`).join(", ")}` }, rects),
    legend(shown.map(({ name, value, tone }) => [tone, name, `${format(value)} · ${percent(value, all)}`])));
}

/** A share of a whole, from 0 to 1, as a small bar beside its text. */
export function meter(share) {
  const width = Math.min(100, Math.max(0, share * 100));
  return svg("svg", { class: "meter", viewBox: "0 0 100 10", preserveAspectRatio: "none", ariaHidden: "true" },
    svg("rect", { class: "empty", width: 100, height: 10 }), svg("rect", { class: "part accent", width: width.toFixed(1), height: 10 }));
}

/** What colors mean: `[tone, name, value]`. */
export function legend(entries) {
  return el("ul", { class: "legend" }, entries.map(([tone, name, value]) =>
    el("li", null, el("span", { class: `swatch ${tone}`, ariaHidden: "true" }), el("span", null, name), el("span", { class: "value" }, value))));
}

/**
 * Transactions of a block, each as wide as its part of the gas used and as high as the price that it paid.
 * `bars`: `{gas, price, failed}` in numbers; `base`: the base fee.
 */
export function gasChart(bars, { base, label, formatPrice }) {
  const [width, height, foot] = [1000, 140, 2];
  const all = Math.max(1, bars.reduce((sum, it) => sum + it.gas, 0));
  const highest = bars.reduce((most, it) => Math.max(most, it.price), base ?? 0);
  // A single transaction that pays a hundred times as much leaves the others visible.
  const sorted = bars.map((it) => it.price).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length * 0.98)] ?? highest;
  const top = niceCeiling(Math.max(Math.min(highest, usual * 4), base ?? 0));
  const y = (price) => height - foot - (Math.min(price, top) / top) * (height - foot - 12);
  let used = 0;
  const paths = { good: "", bad: "", cut: "" };
  for (const { gas, price, failed } of bars) {
    const [left, right] = [(used / all) * width, ((used + gas) / all) * width];
    const upper = y(price);
    const gap = right - left > 3 ? 0.8 : 0;
    paths[failed ? "bad" : "good"] += `M${left.toFixed(2)} ${height - foot}V${upper.toFixed(1)}H${Math.max(right - gap, left + 0.4).toFixed(2)}V${height - foot}Z`;
    if (price > top) paths.cut += `M${left.toFixed(2)} 6H${Math.max(right - gap, left + 0.8).toFixed(2)}V10H${left.toFixed(2)}Z`;
    used += gas;
  }
  const line = (value, kind) => (value === null ? null : svg("line", { class: kind, x1: 0, x2: width, y1: y(value).toFixed(1), y2: y(value).toFixed(1) }));
  return el("figure", { class: "gas" },
    svg("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", ariaLabel: label },
      svg("line", { class: "axis", x1: 0, x2: width, y1: height - foot, y2: height - foot }),
      svg("path", { class: "bar", d: paths.good }), svg("path", { class: "bar failed", d: paths.bad }), svg("path", { class: "bar cut", d: paths.cut }),
      line(base, "base")),
    el("figcaption", null,
      el("span", null, `0 to ${formatPrice(top)} for a unit of gas${highest > top ? `; the highest, ${formatPrice(highest)}, are cut` : ""}`),
      legend([["accent", "a transaction, as wide as its gas", ""],
        ...(bars.some((it) => it.failed) ? [["bad", "failed", ""]] : []),
        ...(base === null ? [] : [["base", "base fee, burnt", formatPrice(base)]])])));
}
