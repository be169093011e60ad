// Form fields for the parameters of a method, from their JSON schemas.
//
// Knows: the schemas of the server's OpenRPC document, and how a person writes their values.
// Never knows: methods by name, or how a call is sent. What is typed is not judged here: the server says best
// what is wrong with it.

import { el } from "./format.js";

/** Schemas that refer to each other are followed this far. */
const DEPTH_MAX = 6;
const SKIP = Symbol("left out");

let lastId = 0;

/** The schema behind references, and all that it allows, in one list. */
function alternatives(schema, schemas, depth = 0) {
  if (schema === null || typeof schema !== "object" || depth > DEPTH_MAX) return [];
  if (typeof schema.$ref === "string") return alternatives(schemas[schema.$ref.split("/").at(-1)], schemas, depth + 1);
  const several = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(several)) return several.flatMap((it) => alternatives(it, schemas, depth + 1));
  return [schema];
}

const allows = (kinds, type) => kinds.some((it) => it.type === type);
/** A pattern that quantities have, and other data have not. */
const isQuantity = (it) => it.type === "string" && typeof it.pattern === "string" && it.pattern.includes("[1-9a-f]");

/**
 * A field for a parameter `{name, required, schema}`: its element, and `read()`, which gives its value, or SKIP if
 * it was left empty. `read` throws a text that says what is wrong with what was typed.
 */
export function parameterField({ name, required, schema }, schemas, example) {
  const kinds = alternatives(schema, schemas);
  const described = { name, required: required !== false, kinds, example, schemas };
  if (kinds.some((it) => it.type === "object" && it.properties !== undefined)) return objectField(described);
  if (allows(kinds, "boolean")) return flagField(described);
  const isList = allows(kinds, "array");
  if (kinds.length === 1 && Array.isArray(kinds[0].enum)) return choiceField(described, kinds[0].enum);
  return isList || kinds.length === 0 ? jsonField(described) : textField(described);
}

function labelled({ name, required }, input, hint) {
  const note = required ? null : el("span", { class: "dim" }, " (optional)");
  return el("p", { class: "choice grows" }, el("label", { for: input.id }, name, note), input,
    hint === "" ? null : el("span", { class: "dim hint", id: `${input.id}-hint` }, hint));
}

function newInput(tag, attrs, hint) {
  lastId += 1;
  const id = `parameter-${lastId}`;
  return el(tag, { id, autocomplete: "off", autocapitalize: "none", spellcheck: "false", ...attrs, ariaDescribedby: hint === "" ? null : `${id}-hint` });
}

function flagField(described) {
  const input = newInput("select", {}, "");
  input.append(el("option", { value: "false" }, "false"), el("option", { value: "true" }, "true"));
  input.value = String(described.example ?? false);
  return { name: described.name, element: labelled(described, input, ""), read: () => input.value === "true" };
}

function choiceField(described, choices) {
  const input = newInput("select", {}, "");
  for (const choice of choices) input.append(el("option", { value: choice }, String(choice)));
  return { name: described.name, element: labelled(described, input, ""), read: () => input.value };
}

function textField(described) {
  const { kinds, example } = described;
  const choices = kinds.flatMap((it) => it.enum ?? []).filter((it) => typeof it === "string");
  const titles = [...new Set(kinds.map((it) => it.title).filter((it) => typeof it === "string").map((it) => it.replace(/^A number in hex.*/, "a number")))];
  const hint = [...titles, ...(choices.length > 0 ? [choices.join(", ")] : [])].join(" · ");
  const input = newInput("input", { type: "text", value: example ?? "" }, hint);
  let list = null;
  if (choices.length > 0) {
    list = el("datalist", { id: `${input.id}-choices` }, choices.map((it) => el("option", { value: it })));
    input.setAttribute("list", list.id);
  }
  const takesNumbers = kinds.some(isQuantity) || allows(kinds, "integer");
  const read = () => {
    const text = input.value.trim();
    if (text === "") return described.required ? "" : SKIP;
    // The API has numbers in hex; people have them in tens.
    return takesNumbers && /^\d{1,20}$/.test(text) ? `0x${BigInt(text).toString(16)}` : text;
  };
  return { name: described.name, element: el("div", { class: "parameter" }, labelled(described, input, hint), list), read };
}

function jsonField(described) {
  const hint = "as JSON";
  const input = newInput("input", { type: "text", value: described.example === undefined ? "" : JSON.stringify(described.example) }, hint);
  const read = () => (input.value.trim() === "" ? (described.required ? null : SKIP) : parsedJson(described.name, input.value));
  return { name: described.name, element: labelled(described, input, hint), read };
}

function parsedJson(name, text) {
  let value;
  // Such a number would be sent as another one, wherever in the value it is.
  let isLarge = false;
  try {
    value = JSON.parse(text, (_, it) => {
      isLarge ||= typeof it === "number" && Math.abs(it) > Number.MAX_SAFE_INTEGER;
      return it;
    });
  } catch {
    throw `${name} is no JSON: texts need double quotes, lists brackets`;
  }
  if (isLarge) throw `${name} has a number that is too large for JSON: write it in hex`;
  return value;
}

/** A field for each member; those left empty are left out. */
function objectField(described) {
  const { properties } = described.kinds.find((it) => it.properties !== undefined);
  const fields = Object.entries(properties).map(([name, schema]) => {
    const kinds = alternatives(schema, described.schemas);
    const example = described.example?.[name];
    const member = { name, required: false, kinds, example };
    return allows(kinds, "array") ? listField(member) : textField(member);
  });
  const note = described.required ? null : el("span", { class: "dim" }, " (optional)");
  const element = el("fieldset", { class: "object" }, el("legend", null, described.name, note), fields.map((it) => it.element));
  const read = () => {
    const members = fields.map((it) => [it.name, it.read()]).filter(([, value]) => value !== SKIP);
    return members.length === 0 && !described.required ? SKIP : Object.fromEntries(members);
  };
  return { name: described.name, element, read };
}

/** One item as it is, several behind commas, or a list as JSON. */
function listField(described) {
  const isPlain = allows(described.kinds, "string");
  const hint = isPlain ? "one, or several behind commas" : "a list as JSON: null, a text, or a list of texts for each position";
  const { example } = described;
  const shown = example === undefined ? "" : typeof example === "string" ? example : JSON.stringify(example);
  const input = newInput("input", { type: "text", value: shown }, hint);
  const read = () => {
    const text = input.value.trim();
    if (text === "") return SKIP;
    if (!isPlain || text.startsWith("[")) return parsedJson(described.name, text);
    const items = text.split(",").map((it) => it.trim());
    return items.length === 1 ? items[0] : items;
  };
  return { name: described.name, element: labelled(described, input, hint), read };
}

/** The parameters of a call: what was left empty is null, or left out where nothing follows. */
export function readParameters(fields) {
  const values = fields.map((it) => it.read());
  while (values.length > 0 && values.at(-1) === SKIP) values.pop();
  return values.map((it) => (it === SKIP ? null : it));
}
