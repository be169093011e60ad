// Programs of the playground: whatever a value has in it, it stays a value, in every language.
//
// usage: node --test snippets.test.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { TOOLS, asciiJson, jsValue, pythonValue, rustValue, shellString } from "../../crates/rpc/src/explorer/snippets.js";

/** What would break out of quotes, end a line or a comment, run a command, or look like something else. */
const HOSTILE = [
  "'", '"', "\\", "`", "'; touch /tmp/broken; '", "$(touch /tmp/broken)", "`touch /tmp/broken`", "${1+1}", "\\'", "\\\\'", '\\"', "'\\''", "!history",
  "\n", "\r\n", "\t", "\0", "\u007f", "\u0085", "\u2028", "\u2029", "\u202e abc", "\ud83d\ude00", "\ud800", "\udfff x", "é",
  "*/ //", "# x", '""" + x', "'''", "</script>", "<!--", "%0a", "{0}", "{result}", "\\u0027", "\\x27", "\\N{BULLET}", "x".repeat(3000), "",
];
const VALUES = [
  ...HOSTILE, null, true, false, 0, -1, 1.5, 1e21, 9007199254740991, [], {}, [[]], [{}], HOSTILE, [null, [true, { a: [false] }]],
  Object.fromEntries(HOSTILE.map((name) => [name, name])), JSON.parse('{"__proto__":{"polluted":true},"constructor":"x"}'),
];
const CALLS = VALUES.map((value) => ({ method: "eth_getLogs", params: [value], url: "http://127.0.0.1:8545/", hasKey: false }));
const make = (id, call) => TOOLS.find((tool) => tool.id === id).make(call);

/** JSON, by which two values are compared: `__proto__` is a member like others there. */
const plain = (value) => JSON.stringify(value);

test("no program has anything but printable ASCII and its own newlines", () => {
  for (const call of CALLS) {
    for (const { name, make: program } of TOOLS) {
      for (const hasKey of [false, true]) {
        const plainCall = { ...call, params: [0] };
        const text = program({ ...call, hasKey });
        assert.match(text, /^[\x20-\x7e\n]*$/, `${name}: ${text}`);
        assert.equal(text.split("\n").length, program({ ...plainCall, hasKey }).split("\n").length, `${name} has lines of its own: ${text}`);
      }
    }
  }
});

test("a shell reads the call as one command with these arguments", () => {
  const run = (program, env = {}) => execFileSync("sh", ["-c", `curl() { printf '%s\\000' "$@"; }\n${program}`], { encoding: "utf8", env: { PATH: process.env.PATH, ...env } }).split("\0").slice(0, -1);
  for (const call of CALLS) {
    const args = run(make("curl", call));
    const body = args.pop();
    assert.deepEqual(args, ["-sS", call.url, "-H", "content-type: application/json", "--data-raw"]);
    assert.equal(body, asciiJson({ jsonrpc: "2.0", id: 1, method: call.method, params: call.params }));
    assert.equal(plain(JSON.parse(body).params), plain(call.params));
  }
  const keyed = run(make("curl", { ...CALLS[0], hasKey: true }), { QUIPU_KEY: "a b'c" });
  assert.equal(keyed[5], "authorization: Bearer a b'c");
  assert.equal(execFileSync("sh", ["-c", `printf %s ${shellString("http://x/'$(id)'/`id`/")}`], { encoding: "utf8" }), "http://x/'$(id)'/`id`/");
});

test("JavaScript reads the same value", () => {
  for (const value of VALUES) {
    const read = new Function(`"use strict"; return ${jsValue(value)};`)();
    assert.equal(plain(read), plain(value));
  }
  assert.deepEqual(Object.keys(new Function(`return ${jsValue(VALUES.at(-1))};`)()), ["__proto__", "constructor"]);
});

test("Python reads the same value", () => {
  const program = "import ast, json, sys\nfor line in sys.stdin: print(json.dumps(ast.literal_eval(line.rstrip('\\n'))))";
  const lines = execFileSync("python3", ["-c", program], { input: VALUES.map((value) => `${pythonValue(value)}\n`).join(""), encoding: "utf8" }).trimEnd().split("\n");
  assert.equal(lines.length, VALUES.length);
  for (const [at, value] of VALUES.entries()) assert.equal(plain(JSON.parse(lines[at])), plain(value), pythonValue(value));
});

/** Reads a literal of `json!` by Rust's rules: the escapes that it knows are not those of JSON. */
function readRust(text) {
  const json = text.replace(/"(?:[^"\\]|\\.)*"/gs, (literal) => {
    const body = literal.slice(1, -1);
    assert.match(body, /^(?:[^"\\\r]|\\["\\]|\\u\{[0-9a-f]{1,6}\})*$/, literal);
    const said = body.replace(/\\u\{([0-9a-f]+)\}|\\(["\\])/g, (_, point, own) => {
      if (own !== undefined) return own;
      const number = Number.parseInt(point, 16);
      assert.ok(number <= 0x10ffff && (number < 0xd800 || number > 0xdfff), `no character of Rust: ${literal}`);
      return String.fromCodePoint(number);
    });
    return JSON.stringify(said);
  });
  return JSON.parse(json);
}

test("Rust reads the same value", () => {
  for (const value of VALUES) assert.equal(plain(readRust(rustValue(value))), plain(JSON.parse(JSON.stringify(value), (_, it) => whole(it))));
});

/** Rust has no surrogates without a partner, in names of members neither. */
function whole(value) {
  if (typeof value === "string") return value.toWellFormed();
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name.toWellFormed(), it]));
}
