// The summary: the fastest of each problem in the suite's short selection, for the chosen run.

const HEADINGS = ["problem", "fastest", "median", "speed-up", "limit"];

function drawSummary() {
  const body = make("tbody");
  for (const [place, one] of page.benchmarks.entries()) {
    for (const row of one.unit === "seconds" ? one.short : []) {
      const group = cells.filter((cell) => cell.benchmark === place && cell.row === row && shown(cell)).filter(timed);
      if (group.length > 1) body.append(summaryLine(place, row, group));
    }
  }
  const head = make("tr");
  head.append(...HEADINGS.map((name) => make("th", name, { scope: "col" })));
  const heading = make("thead");
  heading.append(head);
  element("fastest").replaceChildren(heading, body);
  element("summary").hidden = !body.children.length;
  element("measured").textContent = `On ${run().machine}, commit ${run().commit.slice(0, 8)}. A problem leads to all its times.`;
  // They are those of the whole run.
  const crossovers = filtered() ? [] : run().crossovers;
  element("crossovers").hidden = !crossovers.length;
  element("crossovers").querySelector("ul").replaceChildren(...crossovers.map((sentence) => Object.assign(make("li"), { textContent: sentence })));
}

// On a phone the table's headings are hidden, so a figure that needs its heading repeats it.
const named = (heading, text) => make("td", text, text ? { "data-heading": heading } : {});

function summaryLine(place, row, group) {
  const best = fastest(group);
  const equal = group.filter((cell) => cell !== best && isBest(cell, best)).map(nameOf);
  const link = make("a", `${page.benchmarks[place].name.split(".").slice(0, -1).join(".")} ${rowName(place, row)}`, { href: "#wins" });
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state
    Object.assign(state, { benchmark: place, cell: key(best), fixed: null });
    element("benchmark").value = place;
    remember();
    draw();
    element("wins").scrollIntoView();
  });
  const problem = make("th", "", { scope: "row" });
  problem.append(link);
  const name = make("td", nameOf(best) + (equal.length ? ` +${equal.length}` : ""), { class: "name" });
  if (equal.length) name.title = `as fast within its quartiles: ${equal.join(", ")}`;
  const line = make("tr");
  line.append(problem, name, make("td", best.text), named("speed-up", best.speedup), named("limit", best.limit));
  return line;
}
