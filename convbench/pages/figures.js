// The figures under the table, each with a summary in words.

const SERIES = 8; // colours of lines in comparison.css
const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "star", "hexagon", "pentagon"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

// The plotting library is read when the first figure is drawn: the table need not wait for its millions of characters.
function library() {
  if (!window.Plotly) document.head.append(Object.assign(document.createElement("script"), { textContent: element("library").textContent }));
  return window.Plotly;
}

// A colour of comparison.css, in the scheme that the browser prefers.
const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Plotly interprets markup and links in every text, so every text given to it passes through here.
const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function plain(value) {
  if (typeof value === "string") return value.replace(/[&<>]/g, (sign) => ESCAPED[sign]);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

function figure(section, traces, layout, words) {
  const plot = document.querySelector(`#${section} .plot`);
  document.querySelector(`#${section} .words`).textContent = !traces.length && filtered() ? "Nothing that matches these filters can be drawn here." : words;
  plot.hidden = !traces.length;
  if (plot.hidden) {
    if (window.Plotly) Plotly.purge(plot);
    plot.replaceChildren();
    return;
  }
  const grid = { gridcolor: themed("line"), zerolinecolor: themed("line") };
  const narrow = window.innerWidth < 640;
  const base = {
    margin: { l: 60, r: 15, t: 30, b: narrow ? 210 : 50 },
    font: { size: 12, color: themed("ink") },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    modebar: { color: themed("faint"), activecolor: themed("ink") },
    template: { layout: { xaxis: grid, yaxis: grid } },
    // On a phone under the axis and its title, at the foot of the figure.
    legend: narrow ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", maxheight: 130 } : {},
    hovermode: "closest",
  };
  const drawn = traces.map(({ after = "", ...trace }) => ({
    ...plain(trace),
    ...(trace.text && { hovertemplate: `%{text}${after}<extra></extra>` }),
  }));
  library().react(plot, drawn, plain({ ...base, ...layout }), { responsive: true, displaylogo: false });
}

const axis = (title, extra = {}) => ({ title: { text: short(title) }, type: "log", exponentformat: "power", ...extra });

// By position in a figure: the first differ in colour and symbol, the others also in dashes.
function look(place) {
  const shade = themed(`series-${place % SERIES}`);
  return {
    colour: shade,
    band: `${shade}2e`,
    symbol: SYMBOLS[place % SYMBOLS.length],
    dash: DASHES[Math.floor(place / SERIES) % DASHES.length],
  };
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
    const why = along < 0 ? "The rows of this benchmark are not sizes, so there is no curve to draw." : "There are no times to draw.";
    figure("curves", [], {}, why + lost(all));
    return;
  }
  const places = unique(points.map(position)).sort((a, b) => a - b);
  const label = (x) => one.rows[points.find((cell) => position(cell) === x).row].values[along];
  const wins = winners(points, places, position);
  const kept = new Set([...points.filter((cell) => nameOf(cell) === one.baseline).map((cell) => cell.implementation)]);
  for (const x of places) kept.add(best(points.filter((cell) => position(cell) === x)).implementation);
  const order = unique([...kept, ...points.map((cell) => cell.implementation)]);
  const traces = order.flatMap((i, place) => {
    const line = points.filter((cell) => cell.implementation === i).sort((a, b) => position(a) - position(b));
    const x = line.map(position);
    const { colour, band, symbol, dash } = look(place);
    const common = { x, legendgroup: String(i), visible: kept.has(i) ? true : "legendonly" };
    const edge = { ...common, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
    const text = line.map((cell) => `${short(nameOf(cell))}, ${short(rowName(cell.benchmark, cell.row))}: ${cell.text}`);
    return [
      { ...edge, y: line.map((cell) => cell.q25 ?? cell.value) },
      { ...edge, y: line.map((cell) => cell.q75 ?? cell.value), fill: "tonexty", fillcolor: band },
      { ...common, y: line.map((cell) => cell.value), text, name: short(page.implementations[i].name), mode: "lines+markers", line: { color: colour, dash }, marker: { symbol, size: 8 } },
    ];
  });
  const marks = wins.slice(1).map(({ x }) => ({ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { dash: "dot", color: themed("faint") } }));
  const notes = wins.slice(1).map(({ x, winner }) => ({ x: Math.log10(x), y: 1.02, yref: "paper", text: short(page.implementations[winner].name), showarrow: false, font: { size: 11 }, yanchor: "bottom" }));
  const ticks = { tickmode: "array", tickvals: places, ticktext: places.map((x) => short(label(x))) };
  figure("curves", traces, { xaxis: axis(one.params[along], ticks), yaxis: axis(one.unit), shapes: marks, annotations: notes }, sentence(wins, label) + lost(all));
}

const best = (group) => group.reduce((a, b) => (a.value <= b.value ? a : b));

// The fastest from each size up. A new winner must differ from the old one: their quartiles do not overlap.
function winners(points, places, position) {
  const found = [];
  for (const x of places) {
    const here = points.filter((cell) => position(cell) === x);
    const now = best(here);
    const old = found.length && here.find((cell) => cell.implementation === found[found.length - 1].winner);
    if (!old || (old !== now && (old.q25 ?? old.value) > (now.q75 ?? now.value))) {
      if (!found.length || found[found.length - 1].winner !== now.implementation) found.push({ x, winner: now.implementation });
    }
  }
  return found;
}

function sentence(wins, label) {
  const parts = wins.map(({ x, winner }, i) => `${i ? `from ${short(label(x))} up` : "Fastest from the left"}: ${short(page.implementations[winner].name)}`);
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
    figure("roofline", [], {}, points.length ? "This run has no measured limits to compare its times with." : "This benchmark has no known FLOPs and bytes.");
    return;
  }
  const same = points.filter((cell) => facts(cell).dtype === dtype);
  const intensity = (cell) => facts(cell).flops / facts(cell).bytes;
  const span = [Math.min(...same.map(intensity), 0.25) / 2, Math.max(...same.map(intensity), (2 * roof[2]) / rates[0][2]) * 2];
  const xs = Array.from({ length: 60 }, (_, i) => span[0] * (span[1] / span[0]) ** (i / 59));
  const line = ([, bytes, rate], dash) => ({ x: xs, y: xs.map((x) => Math.min(roof[2], x * rate)), mode: "lines", name: `limit, copies of ${size(bytes)}`, line: { color: themed("ink"), dash }, hoverinfo: "name" });
  const traces = [line(rates[0], "dot"), ...(rates.length > 1 ? [line(rates[rates.length - 1], "solid")] : [])];
  for (const [place, i] of unique(same.map((cell) => cell.implementation)).entries()) {
    const group = same.filter((cell) => cell.implementation === i);
    const { colour, symbol } = look(place);
    traces.push({ x: group.map(intensity), y: group.map((cell) => cell.effective_gflops), text: group.map((cell) => `${short(nameOf(cell))}, ${short(rowName(cell.benchmark, cell.row))}: ${short(cell.details)}`), mode: "markers", name: short(page.implementations[i].name), marker: { color: colour, symbol, size: 9 } });
  }
  const held = (what) => same.filter((cell) => cell.held_by === what).length;
  const limited = same.filter((cell) => cell.percent_of_limit !== null);
  const closest = limited.length ? limited.reduce((a, b) => (a.percent_of_limit >= b.percent_of_limit ? a : b)) : null;
  const half = limited.filter((cell) => cell.percent_of_limit >= 50).length;
  let words = `On ${threads} thread${threads > 1 ? "s" : ""}: by the lower roof ${held("compute")} cells are compute-bound and ${held("memory")} memory-bound, of which ${half} reach half of it; ${held("overhead")} are overhead-bound.`;
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
    const { colour, symbol, dash } = look(traces.length);
    const y = line.map((cell) => alone.value / cell.value);
    ends.push([y[y.length - 1], i, line[line.length - 1].threads]);
    traces.push({ x: line.map((cell) => cell.threads), y, name: short(page.implementations[i].name), mode: "lines+markers", line: { color: colour, dash }, marker: { symbol, size: 8 }, text: line.map((cell) => `${short(nameOf(cell))}, ${cell.threads} threads: ${cell.text}`), after: ", %{y:.2f} times as fast" });
  }
  if (!traces.length) {
    figure("scaling", [], {}, "No implementation has times on one thread and on several for this problem.");
    return;
  }
  const counts = unique(points.map((cell) => cell.threads)).sort((a, b) => a - b);
  traces.push({ x: counts, y: counts, mode: "lines", line: { dash: "dash", color: themed("ink") }, name: "perfect scaling", hoverinfo: "skip" });
  ends.sort((a, b) => b[0] - a[0]);
  const words = ends.map(([ratio, i, threads]) => `${short(page.implementations[i].name)} ${ratio.toFixed(2)} times on ${threads}`).slice(0, 8).join(", ");
  figure("scaling", traces, { xaxis: { title: { text: "threads" }, tickvals: counts }, yaxis: { title: { text: "times as fast as on one" }, rangemode: "tozero" } }, `${one.name}: ${words}.`);
}

function scatter(section, pairs, vertical, words) {
  const traces = unique(pairs.map(([cell]) => cell.implementation)).map((i, place) => {
    const group = pairs.filter(([cell]) => cell.implementation === i);
    const { colour, symbol } = look(place);
    return { x: group.map(([cell]) => cell.value), y: group.map((pair) => pair[1]), text: group.map(([cell, , text]) => `${short(nameOf(cell))}, ${short(rowName(cell.benchmark, cell.row))}: ${cell.text}, ${text}`), mode: "markers", name: short(page.implementations[i].name), marker: { color: colour, symbol, size: 9 } };
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
  let words = known.length ? `The errors of ${known.length} cells are known.` : "The errors of this benchmark are not known.";
  if (exact.length) words += ` No error at all in ${exact.length}, of ${unique(exact).map(short).join(", ")}: they have no place on a logarithmic axis.`;
  scatter("error", known.filter((cell) => cell.relative_l2 > 0).map((cell) => [cell, cell.relative_l2, `error ${cell.relative_l2.toExponential(1)}`]), "relative L2 error", words);
}
