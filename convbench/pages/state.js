"use strict";
// What the page holds, as convbench/pages/document.py has written it, and the current choice, which is kept in the URL.
// The files of this folder are one script, in the order of comparison.py. Every text reaches the page as text, never as HTML.

const page = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const FILTERS = ["machine", "run", "benchmark", "threads", "device"];
const CHOICES = ["fixed", "problem"]; // selects that belong to one section
const LONGEST = 80; // characters of a name that are shown; the rest is in its title

let state = {};
let cells = []; // of the chosen run

// Small helpers

const short = (text) => (text.length > LONGEST ? text.slice(0, LONGEST - 1) + "…" : text);
const unique = (values) => [...new Set(values)];
const run = () => page.runs.find((one) => one.id === state.run) || page.runs[0];
const benchmark = () => page.benchmarks[state.benchmark];
const nameOf = (cell) => page.implementations[cell.implementation].name;
const timed = (cell) => cell.status === "ok" && cell.value !== null;
const positive = (cell) => timed(cell) && cell.value > 0;

function make(tag, text = "", attributes = {}) {
  const node = document.createElement(tag);
  if (text) {
    node.textContent = short(text);
    if (text.length > LONGEST) node.title = text;
  }
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// A name may be broken behind its dots and underscores.
function broken(node) {
  node.replaceChildren(...node.textContent.split(/(?<=[._])/).flatMap((part) => [part, make("wbr")]));
  return node;
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => make("option", text, { value })));
  select.value = entries.some(([value]) => String(value) === String(chosen)) ? chosen : (entries[0] || [""])[0];
  select.disabled = entries.length < 2;
  return select.value;
}

// A run's columns as cells

function readRun() {
  const columns = run().cells;
  const names = Object.keys(columns);
  cells = columns.benchmark.map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
}

const shown = (cell) => {
  const declared = page.implementations[cell.implementation];
  return (
    (state.device === "all" || declared.device === state.device) &&
    !state.without.includes(declared.family) &&
    (state.threads === "all" || cell.threads === null || String(cell.threads) === state.threads)
  );
};
const filtered = () => state.threads !== "all" || state.device !== "all" || state.without.length > 0;
const mine = () => cells.filter((cell) => cell.benchmark === state.benchmark && shown(cell));
const rowName = (index, row) => page.benchmarks[index].rows[row].values.join(", ") || "all";

// State, which is kept in the URL

function readState() {
  const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  state = { without: given.getAll("without"), cell: given.get("cell") };
  for (const name of [...FILTERS, ...CHOICES]) state[name] = given.get(name);
  const machines = unique(page.runs.map((one) => one.machine));
  state.machine = options(element("machine"), [["all", "any"], ...machines.map((name) => [name, name])], state.machine);
  const runs = page.runs.filter((one) => state.machine === "all" || one.machine === state.machine);
  const gone = state.run && !page.runs.some((one) => one.id === state.run);
  element("nothing").hidden = !gone;
  if (gone) element("nothing").textContent = `The run ${short(state.run)}, which the address names, is not on this page; this is the newest.`;
  state.run = options(element("run"), runs.map((one) => [one.id, `${one.machine}, ${one.commit.slice(0, 8)}, ${one.measured}`]), state.run);
  readRun();
  const counts = page.benchmarks.map((_, i) => cells.filter((cell) => cell.benchmark === i && timed(cell)).length);
  const order = page.benchmarks.map((one, i) => [i, one.name]).filter(([i]) => cells.some((cell) => cell.benchmark === i));
  const named = page.benchmarks.findIndex((one) => one.name === state.benchmark);
  state.benchmark = Number(options(element("benchmark"), order, named >= 0 ? named : counts.indexOf(Math.max(...counts))));
  const threads = unique(cells.map((cell) => cell.threads)).filter((n) => n !== null).sort((a, b) => a - b);
  state.threads = options(element("threads"), [["all", "any number"], ...threads.map((n) => [String(n), String(n)])], state.threads);
  const devices = unique(page.implementations.map((one) => one.device)).filter(Boolean);
  state.device = options(element("device"), [["all", "any"], ...devices.map((name) => [name, name])], state.device);
  const families = unique(page.implementations.map((one) => one.family)).filter(Boolean).sort();
  state.without = state.without.filter((name) => families.includes(name));
  element("family").hidden = families.length < 2;
  element("family").replaceChildren(
    make("legend", "Family"),
    ...families.map((name) => {
      const label = make("label");
      const box = make("input", "", { type: "checkbox", value: name });
      box.checked = !state.without.includes(name);
      label.append(box, make("span", name));
      return label;
    }),
  );
}

function address() {
  const known = new URLSearchParams();
  for (const name of ["machine", "run", "threads", "device", ...CHOICES]) if (state[name] && state[name] !== "all") known.set(name, state[name]);
  if (benchmark()) known.set("benchmark", benchmark().name);
  for (const family of state.without) known.append("without", family);
  if (state.cell) known.set("cell", state.cell);
  return "#" + known;
}

const remember = () => history.replaceState(null, "", address());
