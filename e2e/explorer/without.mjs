// A server without the explorer, as a browser sees it: node without.mjs URL

import { check, finish, holds, same, visit } from "./browser.mjs";

const [url] = process.argv.slice(2);

await visit("a browser gets the status line", url, { allows: [/404.*\/favicon\.ico/] }, async (visitor) => {
    // The icon that browsers ask for is not there either.
    const response = await visitor.page.goto(url);
    same(response.status(), 200, "status");
    const text = await response.text();
    same(typeof JSON.parse(text), "object", "a line of JSON");
    holds(!/<html|<script/i.test(text), `a page came: ${text}`);
});

await check("its files are not there", async () => {
    for (const path of ["explorer/main.js", "explorer/style.css", "explorer/index.html"]) {
        same((await fetch(`${url}/${path}`)).status, 404, path);
    }
});

await finish();
