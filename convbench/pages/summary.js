// The answer first: the fastest of each problem in the suite's short selection, for the chosen run.

function drawSummary() {
  const body = make("tbody");
  for (const [place, one] of page.benchmarks.entries()) {
    for (const row of one.unit === "seconds" ? one.short : []) {
      const group = cells.filter((cell) => cell.benchmark === place && cell.row === row && shown(cell)).filter(timed);
      if (group.length > 1) body.append(summaryLine(place, row, group));
    }
  }
  const head = make("tr");
  head.append(...["problem", "fastest", "median", "speed-up", "limit"].map((name) => make("th", name, { scope: "col" })));
  const heading = make("thead");
  heading.append(head);
  element("fastest").replaceChildren(heading, body);
  element("summary").hidden = !body.children.length;
}

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
  const percent = best.percent_of_limit === null ? "" : `${Number(best.percent_of_limit.toPrecision(2)).toLocaleString("en-US")} %`;
  const line = make("tr");
  line.append(problem, name, make("td", best.text), make("td", best.speedup === null ? "" : `${times(best.speedup)}×`), make("td", percent));
  return line;
}
