// The page of `compare`: bars that lead from one plan's time to another's, and both side by side.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** A difference with its sign. */
const signed = (text, difference) => (difference === 0 ? "same" : `${difference < 0 ? "−" : "+"}${text}`);
const signedSeconds = (seconds) => signed(formatSeconds(Math.abs(seconds)), seconds);
/** A figure by the unit at the end of its name. */
const figureText = (name, value) => (name === "mfu" ? formatPercent(value) : formatNumber(value, name.endsWith("_s") ? "s" : name.endsWith("_bytes") ? "byte" : "1"));

/** Fills a table of that id; all columns but the first hold numbers. */
function tableOf(id, heads, rows) {
  const cell = (tag) => (text, i) => element(tag, {className: i > 0 ? "number" : ""}, text);
  byId(id).replaceChildren(element("thead", {}, element("tr", {}, ...heads.map(cell("th")))),
                           element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td"))))));
}

/** The bars with where each begins and ends, between the two times. */
function steps() {
  const [{a, b}] = DATA.figures;
  let sum = a;
  const bars = DATA.waterfall.filter((bar) => Math.abs(bar.difference_s) > 1e-9 * a)
      .map((bar) => ({name: bar.bar, difference: bar.difference_s, from: sum, to: (sum += bar.difference_s)}));
  return [{name: "A", from: 0, to: a}, ...bars, {name: "B", from: 0, to: b}];
}

function drawWaterfall() {
  useSchemeColours();
  const all = steps(), ends = all.slice(1, -1).flatMap(({from, to}) => [from, to]);
  // Bars begin where the ones before end; the axis leaves out what they all have in common.
  const least = Math.min(all[0].to, all.at(-1).to, ...ends), most = Math.max(all[0].to, all.at(-1).to, ...ends);
  byId("waterfall").parentElement.style.height = `${80 + 28 * all.length}px`;
  draw("waterfall", {
    type: "bar",
    data: {labels: all.map(({name}) => name), datasets: [{
      data: all.map(({from, to}) => [Math.max(from, least - (most - least) / 10), to]),
      backgroundColor: all.map(({difference}) => fillOf(difference === undefined ? 0 : difference < 0 ? 2 : 1)),
    }]},
    options: {
      indexAxis: "y", maintainAspectRatio: false, animation: false,
      scales: {x: {min: Math.max(0, least - (most - least) / 10), ticks: {callback: (value) => formatSeconds(value)}}},
      plugins: {legend: {display: false}, tooltip: {callbacks: {label: ({dataIndex}) => (all[dataIndex].difference === undefined ? formatSeconds(all[dataIndex].to) : signedSeconds(all[dataIndex].difference))}}},
    },
  });
}

/** Whether memory made a plan recompute, a line for each lighter recomputation. */
function memoryLines(name, side) {
  const capacity = DATA.figures.find(({figure}) => figure === "memory_capacity_bytes")[name.toLowerCase()];
  return side.lighter_recompute.filter(({status}) => status === "memory" || status === "ok").map(({recompute, status, memory_peak_bytes, step_time_s}) =>
    `${name} recomputes: with ${recompute} it ${status === "ok" ? `fits as well, and takes ${formatSeconds(step_time_s)}` : `does not fit, ${formatBytes(memory_peak_bytes)} of ${formatBytes(capacity)}`}`);
}

for (const name of ["a", "b"]) byId("facts").append(element("dt", {}, name.toUpperCase()), element("dd", {}, `${DATA[name].from}: ${DATA[name].point}`));
byId("why").textContent = DATA.why;
tableOf("bar-table", ["from A to B", "", "of A"], steps().slice(1, -1).map(({name, difference}) => [name, signedSeconds(difference), formatPercent(difference / DATA.figures[0].a)]));
byId("memory").replaceChildren(...[...memoryLines("A", DATA.a), ...memoryLines("B", DATA.b)].map((text) => element("li", {}, text)));
tableOf("figure-table", ["", "A", "B", "B − A"], DATA.figures.map(({figure, a, b, difference}) =>
  [figure.replace(/_(s|bytes)$/, "").replaceAll("_", " "), figureText(figure, a), figureText(figure, b), signed(figureText(figure, Math.abs(difference)), difference)]));
tableOf("class-table", ["time by class", "A", "B", "B − A"], DATA.breakdown.map((row) =>
  [row.class.replaceAll("_", " "), formatSeconds(row.a_s), formatSeconds(row.b_s), signedSeconds(row.difference_s)]));
tableOf("differs-table", ["differs", "A", "B"], Object.entries(DATA.differs).map(([name, {a, b}]) => [name, a, b]));
drawWaterfall();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawWaterfall);
