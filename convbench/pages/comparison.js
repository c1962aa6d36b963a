"use strict";
// Picks and places what convbench/pages/document.py has written. Every text reaches the page as text, never as HTML.

const page = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const FILTERS = ["run", "benchmark", "threads", "device"];
const CHOICES = ["fixed", "problem"]; // selects that belong to one section
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#806000", "#000000", "#7a3db8"];
const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "star", "hexagon", "pentagon"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const LONGEST = 80; // characters of a name that are shown; the rest is in its title

let state = {};
let cells = []; // of the chosen run

// Small helpers

const short = (text) => (text.length > LONGEST ? text.slice(0, LONGEST - 1) + "…" : text);
const marked = (text) => short(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]); // for Plotly
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
const ofBenchmark = (index) => cells.filter((cell) => cell.benchmark === index && shown(cell));
const mine = () => ofBenchmark(state.benchmark);
const rowName = (index, row) => page.benchmarks[index].rows[row].values.join(", ") || "all";

// State, which stands in the address

function readState() {
  const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  state = { without: (given.get("without") || "").split(",").filter(Boolean), cell: given.get("cell") };
  for (const name of [...FILTERS, ...CHOICES]) state[name] = given.get(name);
  state.run = options(element("run"), page.runs.map((one) => [one.id, `${one.machine}, ${one.commit.slice(0, 8)}, ${one.measured}`]), state.run);
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
  for (const name of ["run", "threads", "device", ...CHOICES]) if (state[name] && state[name] !== "all") known.set(name, state[name]);
  if (benchmark()) known.set("benchmark", benchmark().name);
  if (state.without.length) known.set("without", state.without.join(","));
  if (state.cell) known.set("cell", state.cell);
  return "#" + known;
}

const remember = () => history.replaceState(null, "", address());

// Who wins where

function drawWins() {
  const table = element("table");
  const all = mine();
  const groups = byRow(all);
  const columns = unique(all.filter((cell) => timed(cell) || cell.status === "failed").map((cell) => cell.implementation));
  columns.sort((a, b) => a - b);
  const head = make("tr");
  head.append(make("th", benchmark().params.join(", ") || "cell", { scope: "col" }));
  head.append(...columns.map((i) => broken(make("th", page.implementations[i].name, { scope: "col" }))));
  const body = make("tbody");
  for (const [row, group] of groups) {
    if (!group.some((cell) => columns.includes(cell.implementation) && cell.status !== "skipped")) continue;
    const best = group.filter(positive).reduce((a, b) => (a && a.value <= b.value ? a : b), null);
    const line = make("tr");
    line.append(make("th", rowName(state.benchmark, row), { scope: "row" }));
    for (const i of columns) line.append(place(group.find((cell) => cell.implementation === i), best));
    body.append(line);
  }
  const heading = make("thead");
  heading.append(head);
  table.replaceChildren(heading, body);
  const first = table.querySelector(`td[data-cell="${CSS.escape(state.cell || "")}"]`) || table.querySelector("td");
  if (first) first.tabIndex = 0;
  tell(all.find((cell) => key(cell) === state.cell));
  drawWithout(all);
}

function byRow(all) {
  const found = new Map();
  for (const cell of all) {
    if (!found.has(cell.row)) found.set(cell.row, []);
    found.get(cell.row).push(cell);
  }
  return found;
}

const key = (cell) => `${nameOf(cell)}|${page.benchmarks[cell.benchmark].rows[cell.row].values.join("|")}`;

function place(cell, best) {
  const spot = make("td", "", { tabindex: "-1" });
  if (!cell) return spot;
  spot.dataset.cell = key(cell);
  spot.cell = cell;
  if (!timed(cell)) {
    spot.className = "none";
    spot.textContent = cell.status;
    spot.title = reason(cell);
    return spot;
  }
  spot.dataset.value = cell.value;
  spot.append(make("span", cell.text + (cell.reason === null ? "" : " !")));
  if (best && positive(cell)) {
    const ratio = cell.value / best.value;
    const equal = cell === best || (cell.q25 !== null && best.q75 !== null && cell.q25 <= best.q75);
    spot.classList.toggle("best", equal);
    spot.append(make("span", equal ? "★" : `${times(ratio)}×`, { class: "times" }));
    // Dark on light up to ten times the best, light on dark beyond: between the two neither could be read.
    const share = Math.min(1, Math.log10(ratio) / 2);
    spot.style.background = `hsl(205 55% ${share <= 0.5 ? 95 - 70 * share : 55 - 30 * share}%)`;
    if (share > 0.5) spot.style.color = "#fff";
  }
  return spot;
}

const times = (ratio) => (ratio < 1e6 ? Number(ratio.toPrecision(ratio < 10 ? 2 : 3)).toLocaleString("en-US") : ratio.toExponential(1));

const reason = (cell) => (cell.reason === null ? "no reason recorded" : run().reasons[cell.reason]);

// What is known of one cell, in words, with a link to its graph.
function tell(cell) {
  const words = element("cell");
  for (const spot of element("table").querySelectorAll("td[aria-selected]")) spot.removeAttribute("aria-selected");
  if (!cell) {
    words.textContent = "Choose a cell to see what is known of it.";
    return;
  }
  const spot = element("table").querySelector(`td[data-cell="${CSS.escape(key(cell))}"]`);
  if (spot) spot.setAttribute("aria-selected", "true");
  const one = page.benchmarks[cell.benchmark];
  const values = one.rows[cell.row].raw.slice();
  values.splice(one.place, 0, one.raw[cell.implementation]);
  const names = one.params.slice();
  names.splice(one.place, 0, "implementation");
  const query = new URLSearchParams(names.map((name, i) => [`p-${name}`, values[i]]));
  const link = make("a", "its graph", { href: `index.html#${one.name}?${query}` });
  const parts = [`${short(nameOf(cell))} on ${short(rowName(cell.benchmark, cell.row))}: ${cell.text}`];
  if (cell.details) parts.push(cell.details);
  if (!timed(cell) || cell.reason !== null) parts.push(reason(cell));
  words.replaceChildren(parts.join("; ") + "; ", link);
}

function drawWithout(all) {
  const found = new Map();
  for (const cell of all) {
    if (timed(cell)) continue;
    // A reason that names figures differs from cell to cell; its kind says it once.
    const why = `${cell.status}: ${reason(cell).replace(/^(too slow here).*/s, "$1")}`;
    if (!found.has(why)) found.set(why, new Map());
    const holders = found.get(why);
    holders.set(nameOf(cell), (holders.get(nameOf(cell)) || 0) + 1);
  }
  const list = [...found].map(([why, holders]) => {
    const who = [...holders].map(([name, count]) => short(name) + (count > 1 ? ` (${count} rows)` : ""));
    const item = make("li");
    item.textContent = `${who.join(", ")}: ${why}`;
    return item;
  });
  const box = element("without");
  box.hidden = !list.length;
  box.querySelector("summary").textContent = `Without a time, and why (${list.length} reasons)`;
  box.querySelector("ul").replaceChildren(...list);
}

function moveInTable(event) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const spot = event.target.closest("td");
  if (!spot) return;
  if (event.key === "Enter" || event.key === " ") {
    choose(spot);
    event.preventDefault();
  } else if (event.key in steps) {
    const [down, right] = steps[event.key];
    const line = [...element("table").rows][spot.parentNode.rowIndex + down];
    const next = line && line.cells[spot.cellIndex + right];
    if (next && next.tagName === "TD") {
      spot.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      if (next.cell) tell(next.cell);
    }
    event.preventDefault();
  }
}

function choose(spot) {
  if (!spot || !spot.cell) return;
  state.cell = key(spot.cell);
  remember();
  tell(spot.cell);
}

// Figures

// The plotting library is read when the first figure is drawn: the table need not wait for its millions of characters.
function library() {
  if (!window.Plotly) document.head.append(Object.assign(document.createElement("script"), { textContent: element("library").textContent }));
  return window.Plotly;
}

function figure(section, traces, layout, words) {
  const plot = document.querySelector(`#${section} .plot`);
  document.querySelector(`#${section} .words`).textContent = words;
  if (!traces.length) {
    if (window.Plotly) Plotly.purge(plot);
    plot.replaceChildren();
    return;
  }
  const narrow = window.innerWidth < 640;
  const base = {
    margin: { l: 60, r: 15, t: 30, b: 50 },
    font: { size: 12 },
    legend: narrow ? { orientation: "h", y: -0.25 } : {},
    hovermode: "closest",
  };
  library().react(plot, traces, { ...base, ...layout }, { responsive: true, displaylogo: false });
}

const axis = (title, extra = {}) => ({ title: { text: title }, type: "log", exponentformat: "power", ...extra });

function look(implementation) {
  return {
    colour: COLOURS[implementation % COLOURS.length],
    symbol: SYMBOLS[implementation % SYMBOLS.length],
    dash: DASHES[Math.floor(implementation / COLOURS.length) % DASHES.length],
  };
}

function transparent(colour) {
  const part = (at) => parseInt(colour.slice(at, at + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},0.18)`;
}

function lost(all) {
  const count = all.filter((cell) => timed(cell) && !positive(cell)).length;
  return count ? ` ${count} values of zero or less cannot stand on a logarithmic axis.` : "";
}

function drawCurves() {
  const one = benchmark();
  const along = one.numbers.findIndex((numbers) => numbers);
  const rest = (row) => one.rows[row].values.filter((_, i) => i !== along).join(", ");
  const all = mine();
  const choices = along < 0 ? [] : unique(all.filter(positive).map((cell) => rest(cell.row)));
  const others = one.params.filter((_, i) => i !== along).join(", ");
  state.fixed = choice("fixed", others, choices, state.fixed);
  const position = (cell) => {
    const value = one.rows[cell.row].values[along];
    return one.params[along] === "threads" ? cell.threads : one.numbers[along][value];
  };
  const points = all.filter((cell) => positive(cell) && along >= 0 && rest(cell.row) === state.fixed && position(cell));
  if (!points.length) {
    const why = along < 0 ? "The rows of this benchmark are no sizes, so there is no curve to draw." : "There are no times to draw.";
    figure("curves", [], {}, why + lost(all));
    return;
  }
  const places = unique(points.map(position)).sort((a, b) => a - b);
  const label = (x) => one.rows[points.find((cell) => position(cell) === x).row].values[along];
  const wins = winners(points, places, position);
  const kept = new Set([...points.filter((cell) => nameOf(cell) === one.baseline).map((cell) => cell.implementation)]);
  for (const x of places) kept.add(best(points.filter((cell) => position(cell) === x)).implementation);
  const traces = unique(points.map((cell) => cell.implementation)).flatMap((i) => {
    const line = points.filter((cell) => cell.implementation === i).sort((a, b) => position(a) - position(b));
    const x = line.map(position);
    const { colour, symbol, dash } = look(i);
    const common = { x, legendgroup: String(i), visible: kept.has(i) ? true : "legendonly" };
    const edge = { ...common, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
    const text = line.map((cell) => `${marked(nameOf(cell))}, ${marked(rowName(cell.benchmark, cell.row))}: ${cell.text}`);
    return [
      { ...edge, y: line.map((cell) => cell.q25 ?? cell.value) },
      { ...edge, y: line.map((cell) => cell.q75 ?? cell.value), fill: "tonexty", fillcolor: transparent(colour) },
      { ...common, y: line.map((cell) => cell.value), text, name: marked(page.implementations[i].name), mode: "lines+markers", hovertemplate: "%{text}<extra></extra>", line: { color: colour, dash }, marker: { symbol, size: 8 } },
    ];
  });
  const marks = wins.slice(1).map(({ x }) => ({ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { dash: "dot", color: "#555" } }));
  const notes = wins.slice(1).map(({ x, who }) => ({ x: Math.log10(x), y: 1.02, yref: "paper", text: marked(page.implementations[who].name), showarrow: false, font: { size: 11 }, yanchor: "bottom" }));
  const ticks = { tickmode: "array", tickvals: places, ticktext: places.map((x) => marked(label(x))) };
  figure("curves", traces, { xaxis: axis(one.params[along], ticks), yaxis: axis(one.unit), shapes: marks, annotations: notes }, sentence(wins, label) + lost(all));
}

const best = (group) => group.reduce((a, b) => (a.value <= b.value ? a : b));

// Who is fastest from which size up. A new winner has to be told apart from the old one: their quartiles do not overlap.
function winners(points, places, position) {
  const found = [];
  for (const x of places) {
    const here = points.filter((cell) => position(cell) === x);
    const now = best(here);
    const old = found.length && here.find((cell) => cell.implementation === found[found.length - 1].who);
    if (!old || (old !== now && (old.q25 ?? old.value) > (now.q75 ?? now.value))) {
      if (!found.length || found[found.length - 1].who !== now.implementation) found.push({ x, who: now.implementation });
    }
  }
  return found;
}

function sentence(wins, label) {
  const parts = wins.map(({ x, who }, i) => `${i ? `from ${short(label(x))} up` : "Fastest from the left"}: ${short(page.implementations[who].name)}`);
  return parts.join("; ") + ".";
}

// A select in one section; hidden where there is nothing to choose.
function choice(id, name, values, chosen) {
  const label = element(id);
  const select = make("select", "", { "aria-label": name });
  const value = options(select, values.map((one) => [one, one]), chosen);
  label.replaceChildren(...(values.length > 1 ? [`${name} `, select] : []));
  return value;
}

function drawRoofline() {
  const { compute, copies } = run().roof;
  const facts = (cell) => page.benchmarks[cell.benchmark].rows[cell.row];
  const all = mine().filter((cell) => positive(cell) && cell.effective_gflops !== null && facts(cell).bytes > 0 && facts(cell).flops > 0);
  const threads = Math.min(...all.map((cell) => cell.threads ?? Infinity));
  const points = all.filter((cell) => cell.threads === threads);
  const dtype = points.length ? facts(points[0]).dtype : null;
  const roof = compute.find(([n, kind]) => n === threads && kind === dtype);
  const rates = copies.filter(([n]) => n === threads).sort((a, b) => a[1] - b[1]);
  if (!points.length || !roof || !rates.length) {
    figure("roofline", [], {}, points.length ? "This run has no measured limits to hold its times against." : "This benchmark has no known FLOPs and bytes.");
    return;
  }
  const same = points.filter((cell) => facts(cell).dtype === dtype);
  const intensity = (cell) => facts(cell).flops / facts(cell).bytes;
  const span = [Math.min(...same.map(intensity), 0.25) / 2, Math.max(...same.map(intensity), (2 * roof[2]) / rates[0][2]) * 2];
  const xs = Array.from({ length: 60 }, (_, i) => span[0] * (span[1] / span[0]) ** (i / 59));
  const line = ([, bytes, rate], dash) => ({ x: xs, y: xs.map((x) => Math.min(roof[2], x * rate)), mode: "lines", name: `limit, copies of ${size(bytes)}`, line: { color: "#333", dash }, hoverinfo: "name" });
  const traces = [line(rates[0], "dot"), ...(rates.length > 1 ? [line(rates[rates.length - 1], "solid")] : [])];
  for (const i of unique(same.map((cell) => cell.implementation))) {
    const group = same.filter((cell) => cell.implementation === i);
    const { colour, symbol } = look(i);
    traces.push({ x: group.map(intensity), y: group.map((cell) => cell.effective_gflops), text: group.map((cell) => `${marked(nameOf(cell))}, ${marked(rowName(cell.benchmark, cell.row))}: ${marked(cell.details)}`), hovertemplate: "%{text}<extra></extra>", mode: "markers", name: marked(page.implementations[i].name), marker: { color: colour, symbol, size: 9 } });
  }
  const held = (what) => same.filter((cell) => cell.held_by === what).length;
  const limited = same.filter((cell) => cell.percent_of_limit !== null);
  const closest = limited.length ? limited.reduce((a, b) => (a.percent_of_limit >= b.percent_of_limit ? a : b)) : null;
  let words = `On ${threads} thread${threads > 1 ? "s" : ""}: ${held("compute")} cells are compute-bound, ${held("memory")} memory-bound, ${held("overhead")} overhead-bound.`;
  if (closest) words += ` Closest to its limit: ${short(nameOf(closest))} on ${short(rowName(closest.benchmark, closest.row))} (${closest.details}).`;
  figure("roofline", traces, { xaxis: axis("FLOP / byte"), yaxis: axis("effective GFLOP/s") }, words);
}

const size = (bytes) => (bytes >= 2 ** 20 ? `${(bytes / 2 ** 20).toPrecision(3)} MiB` : `${(bytes / 1024).toPrecision(3)} KiB`);

function drawScaling() {
  const wanted = page.benchmarks.findIndex((one, i) => one.params.includes("threads") && cells.some((cell) => cell.benchmark === i && positive(cell)));
  if (wanted < 0) {
    figure("scaling", [], {}, "Nothing in this run was measured on several numbers of threads.");
    return;
  }
  const index = benchmark().params.includes("threads") ? state.benchmark : wanted;
  const one = page.benchmarks[index];
  const along = one.params.indexOf("threads");
  const rest = (row) => one.rows[row].values.filter((_, i) => i !== along).join(", ");
  const all = cells.filter((cell) => cell.benchmark === index && positive(cell) && cell.threads !== null && shown({ ...cell, threads: null }));
  state.problem = choice("problem", one.params.filter((_, i) => i !== along).join(", "), unique(all.map((cell) => rest(cell.row))), state.problem);
  const points = all.filter((cell) => rest(cell.row) === state.problem);
  const traces = [];
  const ends = [];
  for (const i of unique(points.map((cell) => cell.implementation))) {
    const line = [...new Map(points.filter((cell) => cell.implementation === i).map((cell) => [cell.threads, cell])).values()].sort((a, b) => a.threads - b.threads);
    const alone = line.find((cell) => cell.threads === 1);
    if (!alone || line.length < 2) continue;
    const { colour, symbol, dash } = look(i);
    const y = line.map((cell) => alone.value / cell.value);
    ends.push([y[y.length - 1], i, line[line.length - 1].threads]);
    traces.push({ x: line.map((cell) => cell.threads), y, name: marked(page.implementations[i].name), mode: "lines+markers", line: { color: colour, dash }, marker: { symbol, size: 8 }, text: line.map((cell) => `${marked(nameOf(cell))}, ${cell.threads} threads: ${cell.text}`), hovertemplate: "%{text}, %{y:.2f} times as fast<extra></extra>" });
  }
  if (!traces.length) {
    figure("scaling", [], {}, "Nobody has times on one thread and on several for this problem.");
    return;
  }
  const counts = unique(points.map((cell) => cell.threads)).sort((a, b) => a - b);
  traces.push({ x: counts, y: counts, mode: "lines", line: { dash: "dash", color: "#333" }, name: "as many as threads", hoverinfo: "skip" });
  ends.sort((a, b) => b[0] - a[0]);
  const words = ends.map(([ratio, i, threads]) => `${short(page.implementations[i].name)} ${ratio.toFixed(2)}`).slice(0, 8).join(", ");
  figure("scaling", traces, { xaxis: { title: { text: "threads" }, tickvals: counts }, yaxis: { title: { text: "times as fast as on one" }, rangemode: "tozero" } }, `${one.name}, on ${ends[0][2]} threads: ${words}.`);
}

function scatter(section, pairs, vertical, words) {
  const traces = unique(pairs.map(([cell]) => cell.implementation)).map((i) => {
    const group = pairs.filter(([cell]) => cell.implementation === i);
    const { colour, symbol } = look(i);
    return { x: group.map(([cell]) => cell.value), y: group.map((pair) => pair[1]), text: group.map(([cell, , text]) => `${marked(nameOf(cell))}, ${marked(rowName(cell.benchmark, cell.row))}: ${cell.text}, ${text}`), hovertemplate: "%{text}<extra></extra>", mode: "markers", name: marked(page.implementations[i].name), marker: { color: colour, symbol, size: 9 } };
  });
  figure(section, traces, { xaxis: axis("seconds"), yaxis: axis(vertical) }, words);
}

function drawMemory() {
  const label = (cell) => page.benchmarks[cell.benchmark].rows[cell.row].label;
  const operation = (index) => page.benchmarks[index].name.split(".")[0];
  const times = new Map();
  for (const cell of cells) {
    const unit = page.benchmarks[cell.benchmark].unit;
    const at = `${operation(cell.benchmark)}|${cell.implementation}|${label(cell)}`;
    if (positive(cell) && unit === "seconds" && label(cell) && (cell.threads ?? 1) === 1 && !times.has(at)) times.set(at, cell);
  }
  const weights = cells.filter((cell) => timed(cell) && page.benchmarks[cell.benchmark].unit === "bytes" && shown(cell));
  const pairs = weights.map((cell) => [times.get(`${operation(cell.benchmark)}|${cell.implementation}|${label(cell)}`), cell.value, cell.text]);
  const known = pairs.filter(([time, value]) => time && value > 0);
  const none = weights.filter((cell) => cell.value <= 0).map(nameOf);
  let words = weights.length ? `${known.length} of ${weights.length} measurements of memory have a time on the same problem.` : "Nothing in this run was measured in bytes.";
  if (none.length) words += ` Nothing extra, and so no place on a logarithmic axis: ${unique(none).map(short).join(", ")}.`;
  scatter("memory", known, "extra bytes", words);
}

function drawError() {
  const known = mine().filter((cell) => positive(cell) && cell.relative_l2 !== null);
  const exact = known.filter((cell) => cell.relative_l2 <= 0).map(nameOf);
  let words = known.length ? `The errors of ${known.length} cells are known.` : "Nothing is known of the errors of this benchmark.";
  if (exact.length) words += ` No error at all in ${exact.length}, of ${unique(exact).map(short).join(", ")}: they have no place on a logarithmic axis.`;
  scatter("error", known.filter((cell) => cell.relative_l2 > 0).map((cell) => [cell, cell.relative_l2, `error ${cell.relative_l2.toExponential(1)}`]), "relative L2 error", words);
}

// A figure is drawn when it comes into view, and again when what it shows has changed.

const DRAWN = { wins: drawWins, curves: drawCurves, roofline: drawRoofline, scaling: drawScaling, memory: drawMemory, error: drawError };
const stale = new Set();
const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => refresh(entry.target.id)), { rootMargin: "300px" });

function refresh(section) {
  if (!stale.has(section)) return;
  stale.delete(section);
  DRAWN[section]();
}

function draw() {
  const one = run();
  const list = (entries) => Object.entries(entries).map(([name, value]) => `${name} ${value}`).join(", ");
  const source = [`${one.machine} (${list(one.facts)})`, `commit ${one.commit.slice(0, 8)}`, `measured ${one.measured}`, one.environment];
  if (Object.keys(one.versions).length) source.push(list(one.versions));
  if (Object.keys(one.pools).length) source.push(`threads read back: ${list(one.pools)}`);
  for (const node of document.querySelectorAll(".source")) node.textContent = source.join(" · ");
  for (const section of Object.keys(DRAWN)) {
    stale.add(section);
    const box = element(section).getBoundingClientRect();
    if (box.top < window.innerHeight + 300 && box.bottom > -300) refresh(section);
  }
}

function changed(event) {
  if (event.target.closest("#family")) {
    state.without = [...element("family").querySelectorAll("input:not(:checked)")].map((box) => box.value);
  } else if (FILTERS.includes(event.target.id)) {
    state[event.target.id] = event.target.id === "benchmark" ? Number(event.target.value) : event.target.value;
  }
  if (event.target.id === "benchmark") state.cell = state.fixed = null;
  remember();
  if (event.target.id === "run") readState();
  draw();
}

function start() {
  if (!page.runs.length) {
    const asked = page.benchmarks.length ? "No results of these benchmarks can be read yet." : "No benchmark of this suite has a parameter called implementation, so there is nothing to compare.";
    element("nothing").textContent = asked;
    element("nothing").hidden = false;
    element("filters").hidden = true;
    for (const section of Object.keys(DRAWN)) element(section).hidden = true;
    return;
  }
  readState();
  draw();
  for (const section of Object.keys(DRAWN)) seen.observe(element(section));
  element("filters").addEventListener("change", changed);
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("filters").addEventListener("reset", (event) => {
    event.preventDefault();
    history.replaceState(null, "", "#");
    readState();
    draw();
  });
  for (const id of CHOICES) {
    element(id).addEventListener("change", (event) => {
      state[id] = event.target.value;
      remember();
      DRAWN[id === "fixed" ? "curves" : "scaling"]();
    });
  }
  element("table").addEventListener("keydown", moveInTable);
  element("table").addEventListener("click", (event) => choose(event.target.closest("td")));
  window.addEventListener("hashchange", () => {
    if (!location.hash.includes("=") && location.hash) return;
    readState();
    draw();
  });
}

for (const link of document.querySelectorAll("nav a[data-section]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state
    element(link.dataset.section).scrollIntoView();
  });
}
start();
