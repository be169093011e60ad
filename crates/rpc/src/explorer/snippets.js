// A call as a program of other tools: curl, viem, ethers, web3.py, alloy.
//
// Knows: how each language writes a value, so that no value can become anything else than itself.
// Never knows: the document, or what a method means: other programs may import it. A key is never written into a
// program: it is taken from the environment.

/** What a program reads a key from. */
const KEY = "QUIPU_KEY";

/** Tools in the order in which they are offered. `make` takes `{method, params, url, hasKey}`. */
export const TOOLS = [
  { id: "curl", name: "curl", file: "call.sh", make: curl },
  { id: "viem", name: "viem", file: "call.mjs", make: viem },
  { id: "ethers", name: "ethers", file: "call.mjs", make: ethers },
  { id: "web3py", name: "web3.py", file: "call.py", make: web3py },
  { id: "alloy", name: "alloy", file: "main.rs", make: alloy },
];

function curl({ method, params, url, hasKey }) {
  const body = asciiJson({ jsonrpc: "2.0", id: 1, method, params });
  const key = hasKey ? ` \\\n  -H "authorization: Bearer $${KEY}"` : "";
  return `curl -sS ${shellString(url)} \\\n  -H 'content-type: application/json'${key} \\\n  --data-raw ${shellString(body)}\n`;
}

function viem({ method, params, url, hasKey }) {
  const options = hasKey ? `, {\n  fetchOptions: { headers: { authorization: \`Bearer \${process.env.${KEY}}\` } },\n}` : "";
  return `// npm install viem
import { createPublicClient, http } from "viem";

const client = createPublicClient({ transport: http(${jsValue(url)}${options}) });
const result = await client.request({ method: ${jsValue(method)}, params: ${jsValue(params)} });
console.log(result);
`;
}

function ethers({ method, params, url, hasKey }) {
  const [names, server] = hasKey ? ["FetchRequest, JsonRpcProvider", "server"] : ["JsonRpcProvider", jsValue(url)];
  const key = `const server = new FetchRequest(${jsValue(url)});\nserver.setHeader("authorization", \`Bearer \${process.env.${KEY}}\`);\n`;
  return `// npm install ethers
import { ${names} } from "ethers";

${hasKey ? key : ""}const provider = new JsonRpcProvider(${server});
const result = await provider.send(${jsValue(method)}, ${jsValue(params)});
console.log(result);
provider.destroy();
`;
}

function web3py({ method, params, url, hasKey }) {
  const headers = `{"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["${KEY}"]}`;
  const [own, options] = hasKey ? ["import os\n\n", `, request_kwargs={"headers": ${headers}}`] : ["", ""];
  return `# pip install web3
${own}from web3 import Web3

client = Web3(Web3.HTTPProvider(${pythonValue(url)}${options}))
result = client.manager.request_blocking(${pythonValue(method)}, ${pythonValue(params)})
print(Web3.to_json(result))
`;
}

function alloy({ method, params, url, hasKey }) {
  // The path has the key too: no client with headers of its own is needed.
  const place = url.endsWith("/") ? url : `${url}/`;
  const [key, server] = hasKey
    ? [`    let key = std::env::var("${KEY}")?;\n    let url = ${rustString(`${place}v1/`)}.to_owned() + &key;\n`, "url.parse()?"]
    : ["", `${rustString(url)}.parse()?`];
  return `// cargo add alloy anyhow serde_json
// cargo add tokio --features macros,rt-multi-thread
use alloy::providers::{Provider, ProviderBuilder};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
${key}    let provider = ProviderBuilder::new().connect_http(${server});
    let params = json!(${rustValue(params)});
    let result: Value = provider.raw_request(${rustString(method)}.into(), params).await?;
    println!("{result:#}");
    Ok(())
}
`;
}

/* Values in each language. Everything but printable ASCII is escaped: nothing in a program looks like another. */

/** A text in single quotes, in which a POSIX shell reads nothing but their end. */
export function shellString(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON in ASCII alone. */
export function asciiJson(value) {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A value as JavaScript: JSON, but for `__proto__`, which is a name like others only in brackets. */
export function jsValue(value) {
  if (Array.isArray(value)) return `[${value.map(jsValue).join(", ")}]`;
  if (!isObject(value)) return asciiJson(value);
  const members = Object.entries(value).map(([name, it]) => `${name === "__proto__" ? '["__proto__"]' : asciiJson(name)}: ${jsValue(it)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** A value as Python. */
export function pythonValue(value) {
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([name, it]) => `${pythonString(name)}: ${pythonValue(it)}`).join(", ")}}`;
  if (typeof value === "string") return pythonString(value);
  return { true: "True", false: "False", null: "None" }[String(value)] ?? asciiJson(value);
}

function pythonString(text) {
  return escaped(text, (point) => (point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`));
}

/** A value in the macro `json!`. */
export function rustValue(value) {
  if (Array.isArray(value)) return `[${value.map(rustValue).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([name, it]) => `${rustString(name)}: ${rustValue(it)}`).join(", ")}}`;
  return typeof value === "string" ? rustString(value) : asciiJson(value);
}

/** Rust has no surrogates without a partner: U+FFFD stands for them. */
function rustString(text) {
  return escaped(text, (point) => `\\u{${hex(point >= 0xd800 && point <= 0xdfff ? 0xfffd : point, 1)}}`);
}

/** A text in double quotes; `escape` writes what is not printable ASCII. */
function escaped(text, escape) {
  const characters = Array.from(text, (it) => {
    if (it === '"' || it === "\\") return `\\${it}`;
    return it >= " " && it <= "~" ? it : escape(it.codePointAt(0));
  });
  return `"${characters.join("")}"`;
}

const hex = (number, digits) => number.toString(16).padStart(digits, "0");
const isObject = (value) => value !== null && typeof value === "object";
