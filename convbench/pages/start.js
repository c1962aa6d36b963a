// A figure is drawn when it comes near the window, and again when what it shows has changed.

const DRAWN = { summary: drawSummary, wins: drawWins, curves: drawCurves, roofline: drawRoofline, scaling: drawScaling, memory: drawMemory, error: drawError };
const PAINT = 300; // milliseconds in which the table comes onto the screen
const stale = new Set();
const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => refresh(entry.target.id)), { rootMargin: "300px" });

function refresh(section) {
  if (!stale.has(section)) return;
  stale.delete(section);
  DRAWN[section]();
}

// Draws those in view at once: a browser reports every watched element when it is first seen. Figures wait until the
// table is on the screen: the plotting library takes a second to be read, and many lines another.
function watch() {
  seen.disconnect();
  const begin = () => setTimeout(() => Object.keys(DRAWN).forEach((section) => seen.observe(element(section))), PAINT);
  if (document.readyState === "complete") begin();
  else window.addEventListener("load", begin, { once: true });
}

function draw() {
  const one = run();
  const list = (entries) => Object.entries(entries).map(([name, value]) => `${name} ${value}`).join(", ");
  const source = [`${one.machine} (${list(one.facts)})`, `commit ${one.commit.slice(0, 8)}`, `measured ${one.measured}`, one.environment];
  if (Object.keys(one.versions).length) source.push(list(one.versions));
  if (Object.keys(one.pools).length) source.push(`threads read back: ${list(one.pools)}`);
  for (const node of document.querySelectorAll(".source")) node.textContent = source.join(" · ");
  for (const section of Object.keys(DRAWN)) stale.add(section);
  refresh("summary");
  refresh("wins");
  watch();
}

function changed(event) {
  if (event.target.closest("#family")) {
    state.without = [...element("family").querySelectorAll("input:not(:checked)")].map((box) => box.value);
  } else if (FILTERS.includes(event.target.id)) {
    state[event.target.id] = event.target.id === "benchmark" ? Number(event.target.value) : event.target.value;
  }
  if (event.target.id === "benchmark") state.cell = state.fixed = null;
  remember();
  if (["machine", "run"].includes(event.target.id)) readState();
  draw();
}

function start() {
  if (!page.runs.length) {
    const asked = page.benchmarks.length ? "No results of these benchmarks have a time yet." : "No benchmark of this suite has a parameter called implementation, so there is nothing to compare.";
    element("nothing").textContent = asked;
    element("nothing").hidden = false;
    element("choose").hidden = true;
    for (const section of Object.keys(DRAWN)) element(section).hidden = true;
    return;
  }
  readState();
  element("choose").open = location.hash.includes("=");
  draw();
  element("filters").addEventListener("change", changed);
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("filters").addEventListener("reset", (event) => {
    event.preventDefault();
    Object.assign(state, { threads: "all", device: "all", without: [] });
    remember();
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
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
