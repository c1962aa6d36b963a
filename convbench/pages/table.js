// The table: the fastest implementations of each problem, and why cells have no time.

function drawWins() {
  const table = element("table");
  const all = mine();
  const groups = byRow(all);
  const columns = unique(all.filter((cell) => timed(cell) || cell.status === "failed").map((cell) => cell.implementation));
  const bests = new Map();
  for (const group of groups.values()) {
    const best = fastest(group);
    for (const cell of group) if (isBest(cell, best)) bests.set(cell.implementation, (bests.get(cell.implementation) || 0) + 1);
  }
  columns.sort((a, b) => (bests.get(b) || 0) - (bests.get(a) || 0) || a - b);
  const head = make("tr");
  head.append(make("th", benchmark().params.join(", ") || "cell", { scope: "col" }));
  head.append(...columns.map((i) => broken(make("th", page.implementations[i].name, { scope: "col" }))));
  const body = make("tbody");
  for (const [row, group] of groups) {
    if (!group.some((cell) => columns.includes(cell.implementation) && cell.status !== "skipped")) continue;
    const best = fastest(group);
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

const fastest = (group) => group.filter(timed).reduce((a, b) => (a && a.value <= b.value ? a : b), null);

// The best, or one that is as fast within its quartiles.
function isBest(cell, best) {
  return timed(cell) && (cell.value === best.value || (cell.q25 !== null && best.q75 !== null && cell.q25 <= best.q75));
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
  spot.title = cell.details;
  spot.append(make("span", cell.text + (cell.reason === null ? "" : " !")));
  const equal = isBest(cell, best);
  spot.classList.toggle("best", equal);
  if (equal) spot.append(make("span", "★", { class: "times" }));
  if (best.value > 0) {
    const ratio = cell.value / best.value;
    if (!equal) spot.append(make("span", `${times(ratio)}×`, { class: "times" }));
    const share = Math.min(1, Math.log10(ratio) / 2);
    spot.style.setProperty("--share", share);
    spot.classList.add(share <= 0.5 ? "near" : "far");
  }
  const rate = [cell.rate, cell.limit].filter(Boolean).join(", ");
  if (rate) spot.append(make("span", rate, { class: "times" }));
  return spot;
}

const times = (ratio) => (ratio < 1e6 ? Number(ratio.toPrecision(ratio < 10 ? 2 : 3)).toLocaleString("en-US") : ratio.toExponential(1));

const reason = (cell) => (cell.reason === null ? "no reason recorded" : run().reasons[cell.reason]);

// The details of one cell, with a link to its graph.
function tell(cell) {
  const words = element("cell");
  for (const spot of element("table").querySelectorAll("td[aria-selected]")) spot.removeAttribute("aria-selected");
  if (!cell) {
    words.textContent = mine().some(timed) ? "Choose a cell to see its details." : "Nothing that matches these filters has a time.";
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
  const link = make("a", "its graph", { href: `index.html#${encodeURIComponent(one.name)}?${query}` });
  const parts = [`${short(nameOf(cell))} on ${short(rowName(cell.benchmark, cell.row))}: ${cell.text}`];
  if (cell.details) parts.push(cell.details);
  if (!timed(cell) || cell.reason !== null) parts.push(reason(cell));
  words.replaceChildren(parts.join("; ") + "; ", link);
}

function drawWithout(all) {
  const found = new Map();
  for (const cell of all) {
    if (timed(cell)) continue;
    // Reasons that contain figures differ from cell to cell; their common part is shown once.
    const why = `${cell.status}: ${reason(cell).replace(/^(too slow here).*/s, "$1")}`;
    if (!found.has(why)) found.set(why, new Map());
    const holders = found.get(why);
    holders.set(nameOf(cell), (holders.get(nameOf(cell)) || 0) + 1);
  }
  const list = [...found].map(([why, holders]) => {
    const labels = [...holders].map(([name, count]) => short(name) + (count > 1 ? ` (${count} rows)` : ""));
    const item = make("li");
    item.textContent = `${labels.join(", ")}: ${why}`;
    return item;
  });
  const absent = run().absent[state.benchmark];
  if (absent) {
    const item = make("li");
    item.textContent = `${absent} cells have no value in the results file: they were not selected, or skipped without a reason.`;
    list.push(item);
  }
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
