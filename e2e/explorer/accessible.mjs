// Whether everybody can use a page: axe-core's rules, the keyboard alone, and a phone's width.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { holds, same } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// More stops than any page has.
const STOPS_MAX = 400;

/// What axe-core finds, at best nothing.
export async function findings(visitor, where) {
    const { page } = visitor;
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
    // Stylesheets are read by the browser already; axe asking again would be a request of ours.
    const { violations, passes } = await page.evaluate(() => window.axe.run(document, { preload: false, resultTypes: ["violations"] }));
    holds(passes.length > 10, `${where}: axe-core looked at nothing`);
    return violations.flatMap(({ id, help, nodes }) =>
        nodes.slice(0, 3).map((it) => `${where}: ${id}: ${help}: ${it.target} ${it.html.slice(0, 160)} ${it.any[0]?.message ?? ""}`),
    );
}

/// Fails if axe-core finds anything at all.
export async function accessible(visitor, where) {
    same(await findings(visitor, where), [], "axe-core");
}

/// Fails if the page is wider than its window: a phone would scroll sideways.
export async function fits(visitor, where) {
    const [wide, window, widest] = await visitor.page.evaluate(() => {
        const root = document.documentElement;
        const over = [...document.querySelectorAll("main *, header *, footer *")]
            .filter((it) => it.getBoundingClientRect().right > root.clientWidth + 1 && it.closest(".scroll, pre, [tabindex='0']") === null)
            .map((it) => `${it.tagName}.${it.className} ${it.textContent.slice(0, 60)}`);
        return [root.scrollWidth, root.clientWidth, over.slice(0, 5)];
    });
    holds(wide <= window, `${where}: ${wide} px wide in a window of ${window}: ${widest.join("; ")}`);
}

/// Walks through all of a page with the tabulator key: everything that can be used is reached once, is seen,
/// shows that it has the focus, and has a name.
export async function reachable(visitor, where) {
    const { page } = visitor;
    const expected = await page.evaluate(() => {
        document.activeElement?.blur();
        getSelection().removeAllRanges();
        document.body.tabIndex = -1;
        document.body.focus();
        const usable = "a[href], button:not([disabled]), input, select, textarea, summary, [tabindex='0']";
        // Of radio buttons the group is one stop.
        const all = [...document.querySelectorAll(usable)].filter((it) => it.checkVisibility() && it.tabIndex >= 0 && it.type !== "radio");
        all.forEach((it, at) => (it.dataset.stop = at));
        return all.map((it) => it.outerHTML.slice(0, 120));
    });
    const reached = new Set();
    for (let stop = 0; stop < STOPS_MAX && reached.size < expected.length; stop += 1) {
        await page.keyboard.press("Tab");
        const at = await page.evaluate(() => {
            const it = document.activeElement;
            const style = getComputedStyle(it);
            const isMarked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
            return { stop: it.dataset.stop, isMarked: isMarked || style.boxShadow !== "none", markup: it.outerHTML.slice(0, 160) };
        });
        if (at.stop === undefined) continue;
        if (reached.has(Number(at.stop))) break;
        holds(at.isMarked, `${where}: the focus cannot be seen on ${at.markup}`);
        reached.add(Number(at.stop));
    }
    const missed = expected.filter((_, at) => !reached.has(at));
    same(missed, [], `${where}: what the keyboard does not reach, of ${expected.length}`);
    return reached.size;
}
