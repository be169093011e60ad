// Whether a page shows what the API answers: every value of a JSON object, in a form that a person reads.

import { holds } from "./browser.mjs";

// Of longer data a page may show the beginning.
const DATA_DIGITS = 60;

/// What an element shows: its visible text, and the titles and links in it, without what groups digits.
export async function shownBy(page, selector = "main") {
    const text = await page.locator(selector).first().evaluate((element) => {
        for (const details of element.querySelectorAll(".log details")) details.open = true;
        const visible = [...element.querySelectorAll("*")].filter((it) => it.checkVisibility());
        const more = visible.flatMap((it) => [it.getAttribute("title"), it.getAttribute("href"), it.getAttribute("datetime")]);
        return [element.innerText, ...more.filter((it) => it !== null)].join("\n");
    });
    return plain(text);
}

const plain = (text) => text.toLowerCase().replace(/[,\u202f\u00a0]/g, "");

/// The ways in which a page may write a value.
function formsOf(value) {
    if (typeof value === "number" || typeof value === "boolean") return [String(value)];
    if (!/^0x[0-9a-f]*$/.test(value)) return [plain(value)];
    // A byte string of 8 bytes or more, or a quantity.
    if (value.length >= 18 && value.length !== 20) return [value.slice(0, DATA_DIGITS), ...quantities(value)];
    return [value, ...quantities(value)];
}

function quantities(value) {
    if (/^0x0*$/.test(value) && value.length !== 3) return ["empty", value.slice(0, DATA_DIGITS)];
    if (value.length > 66) return [];
    const number = BigInt(value);
    return [number.toString(), fixed(number, 9), fixed(number, 18)];
}

const exactTime = (seconds) => new Date(Number(seconds) * 1000).toISOString().slice(0, 19).replace("T", " ");

function fixed(number, digits) {
    const text = number.toString().padStart(digits + 1, "0");
    const fraction = text.slice(-digits).replace(/0+$/, "");
    return `${text.slice(0, -digits)}${fraction === "" ? "" : `.${fraction}`}`;
}

/// Fails unless the page shows every value of this object but those of `hidden`.
export function shows(shown, object, { hidden = [], of = "" } = {}) {
    for (const [name, value] of Object.entries(object)) {
        if (hidden.includes(name) || value === null) continue;
        const where = of === "" ? name : `${of}.${name}`;
        if (Array.isArray(value)) {
            value.forEach((item, index) => {
                const element = typeof item === "object" ? item : { [index]: item };
                shows(shown, element, { hidden, of: `${where}[${index}]` });
            });
        } else if (typeof value === "object") {
            shows(shown, value, { hidden, of: where });
        } else {
            const forms = /timestamp/i.test(name) ? [...formsOf(value), exactTime(value)] : formsOf(value);
            holds(forms.some((form) => shown.includes(form)), `${where} is not shown: ${value}, as any of ${forms.join(" | ")}`);
        }
    }
}
