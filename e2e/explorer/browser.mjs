// A real browser for the tests beside this file, and what holds of every page that it shows.
//
// Knows: how chromium is started, what a page may never do, and how a failed check tells what was seen.
// Never knows: what the explorer shows.
//
// Every page is watched from its first byte: a message of level warning or error on the console, an
// exception, a violation of the Content-Security-Policy, a dialog, a second window, and a request to
// another origin are faults, unless the test says in advance that it provokes one.

import { mkdirSync } from "node:fs";
import path from "node:path";

import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];
// How long a page may take for anything, on a busy machine.
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 30_000);
const PAGE_TEXT_MAX = 1_500;
const PHONE = { width: 360, height: 740 };
const DESK = { width: 1280, height: 900 };

let failures = 0;
let browser;

/// Every check of a file is called through this: one line for each, as check.sh tallies them.
/// QUIPU_ONLY, a regular expression, narrows a run by hand to some.
export async function check(what, body) {
    if (!new RegExp(process.env.QUIPU_ONLY ?? "").test(what)) return;
    const begun = performance.now();
    try {
        const told = await body();
        const seconds = ((performance.now() - begun) / 1000).toFixed(1);
        console.log(`ok: ${what}${typeof told === "string" ? `: ${told}` : ""} (${seconds} s)`);
    } catch (error) {
        failures += 1;
        console.log(`FAILED: ${what}: ${error.cause === undefined ? (error.stack ?? error) : error.message}`);
    }
}

/// Ends the file: fails if a check did.
export async function finish() {
    await browser?.close();
    process.exit(failures === 0 ? 0 : 1);
}

export function same(found, expected, what) {
    const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
    if (one !== other) throw new Error(`${what}: found ${one}, expected ${other}`);
}

export function holds(condition, what) {
    if (!condition) throw new Error(what);
}

/// Asks until the answer is true, or fails with what `tell` says.
export async function until(what, ask, tell = () => "") {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        if (await ask()) return;
        if (Date.now() > deadline) throw new Error(`${what}: not within ${PATIENCE_MS} ms; ${await tell()}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

async function launched() {
    // With a new, empty profile, which goes with the process.
    browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS, headless: true });
    return browser;
}

/// A visitor: a browser with nothing in it, one tab, and what that tab did wrong.
///
/// `allows` are patterns of console messages that the test provokes, such as the browser's own line about
/// an answer with status 401.
export async function visits(origin, { allows = [], tabs = 1, scheme = "light", isPhone = false, ...settings } = {}) {
    const visitor = new Visitor(origin, allows, tabs);
    visitor.context = await (await launched()).newContext({
        colorScheme: scheme,
        viewport: isPhone ? PHONE : DESK,
        hasTouch: isPhone,
        isMobile: isPhone,
        reducedMotion: "reduce",
        ...settings,
    });
    visitor.context.setDefaultTimeout(PATIENCE_MS);
    visitor.context.on("request", (request) => visitor.requests.push(request.url()));
    visitor.context.on("page", (page) => visitor.watch(page));
    await visitor.context.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", (event) =>
            console.error(`policy violated: ${event.violatedDirective} by ${event.blockedURI} ${event.sample}`),
        );
    });
    visitor.page = await visitor.context.newPage();
    return visitor;
}

class Visitor {
    constructor(origin, allows, tabs) {
        this.origin = origin.replace(/\/$/, "");
        this.allows = allows;
        this.tabs = tabs;
        this.requests = [];
        this.faults = [];
        this.pages = 0;
    }

    watch(page) {
        this.pages += 1;
        if (this.pages > this.tabs) this.faults.push("another window opened");
        page.on("console", (message) => {
            if (!["warning", "error"].includes(message.type())) return;
            const text = `${message.type()} on the console: ${message.text()} (${message.location().url})`;
            if (!this.allows.some((pattern) => pattern.test(text))) this.faults.push(text);
        });
        page.on("pageerror", (error) => this.faults.push(`exception: ${error.stack ?? error}`));
        page.on("crash", () => this.faults.push("the tab crashed"));
        page.on("dialog", async (dialog) => {
            this.faults.push(`dialog: ${dialog.message()}`);
            await dialog.dismiss();
        });
        page.on("websocket", (socket) => this.requests.push(socket.url()));
    }

    /// Opens a page of the explorer by its permanent address, and waits until it is complete.
    async opens(route = "") {
        const url = `${this.origin}/${route}`;
        // A new document even where only the fragment differs.
        await this.page.goto("about:blank");
        await this.page.goto(url, { waitUntil: "load" });
        await this.settled();
    }

    /// A page with its heading has come that was not there before.
    async settled() {
        const isFresh = () => {
            const shown = document.querySelector("main > .page:not([data-seen])");
            if (shown?.querySelector("h1")) shown.dataset.seen = "";
            return shown?.dataset.seen !== undefined;
        };
        await until("the page is complete", () => this.page.evaluate(isFresh).catch(() => false), () => this.seen());
    }

    /// Goes to another route of the same document, as a link does.
    async goes(route) {
        await this.page.evaluate((hash) => (location.hash = hash), route);
        await this.settled();
    }

    /// Waits for an element; fails with the page's text.
    async sees(selector, options = {}) {
        const found = this.page.locator(selector, options).first();
        try {
            await found.waitFor({ state: "visible" });
        } catch (error) {
            throw new Error(`no ${selector} ${options.hasText ?? ""} within ${PATIENCE_MS} ms; ${await this.seen()}`);
        }
        return found;
    }

    /// Waits until the text of the main part matches.
    async reads(pattern, selector = "main") {
        let text = "";
        await until(
            `${selector} reads ${pattern}`,
            async () => {
                text = await this.page.locator(selector).first().innerText().catch(() => "");
                return pattern.test(text);
            },
            () => this.seen(),
        );
        return text;
    }

    /// What a person and a developer would see now, for a failure's message.
    async seen() {
        const text = await this.page.locator("main").innerText({ timeout: 1_000 }).catch((error) => `${error}`);
        const faults = [...new Set(this.faults)].join("\n");
        return `${this.page.url().slice(0, 300)} shows:\n${text.slice(0, PAGE_TEXT_MAX)}\nfaults so far: ${faults}`;
    }

    /// Fails if the visit had a fault, or if it asked anyone else for anything.
    blameless() {
        const { host } = new URL(this.origin);
        const foreign = this.requests.filter((url) => {
            const { protocol, host: asked } = new URL(url);
            return !["data:", "blob:", "about:"].includes(protocol) && asked !== host;
        });
        same(foreign, [], "requests to another origin");
        same([...new Set(this.faults)], [], "faults of the page");
        holds(this.requests.length > 0, "no request was seen: nothing was watched");
    }

    /// A screenshot, if a folder for them is given.
    async pictures(name) {
        const folder = process.env.QUIPU_SCREENSHOTS;
        if (folder === undefined || folder === "") return;
        mkdirSync(folder, { recursive: true });
        await this.page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
    }

    async leaves() {
        // An answer that a route still alters goes with the page.
        await this.page.unrouteAll({ behavior: "ignoreErrors" });
        await this.context.close();
    }
}

/// One check with a visitor of its own: the body, and then that the visit had no fault.
export function visit(what, origin, settings, body) {
    return check(what, async () => {
        const visitor = await visits(origin, settings);
        try {
            const told = await body(visitor);
            visitor.blameless();
            return told;
        } catch (error) {
            throw new Error(`${error.stack ?? error}\n${await visitor.seen()}`, { cause: error });
        } finally {
            await visitor.leaves();
        }
    });
}
