// The page of `compare`: bars that lead from one plan's time to another's, and both side by side.

/** A difference with its sign. */
const signed = (text, difference) => (difference === 0 ? "same" : `${difference < 0 ? "−" : "+"}${text}`);
/** A figure by the unit at the end of its name. */
const figureText = (name, value) => (name === "mfu" ? formatPercent(value) : formatNumber(value, name.endsWith("_s") ? "s" : name.endsWith("_bytes") ? "byte" : "1"));
/** Fills a table of that id; all columns but the first hold numbers. */
const tableOf = (id, heads, rows) => fillTable(byId(id), heads, rows, heads.map((_, i) => i).slice(1));

const [{a: timeA, b: timeB}] = DATA.figures;
const bars = DATA.waterfall.filter((bar) => Math.abs(bar.difference_s) > 1e-9 * timeA).map(({bar, difference_s}) => ({name: bar, difference: difference_s}));

/** Whether memory made a plan recompute, a line for each lighter recomputation. */
function memoryLines(name, side) {
  const capacity = DATA.figures.find(({figure}) => figure === "memory_capacity_bytes")[name.toLowerCase()];
  return side.lighter_recompute.filter(({status}) => status === "memory" || status === "ok").map(({recompute, status, memory_peak_bytes, step_time_s}) =>
    `${name} recomputes: with ${recompute} it ${status === "ok" ? `fits as well, and takes ${formatSeconds(step_time_s)}` : `does not fit, ${formatBytes(memory_peak_bytes)} of ${formatBytes(capacity)}`}`);
}

byId("facts").replaceChildren(...pairsOf(["a", "b"].map((name) => [name.toUpperCase(), `${DATA[name].from}: ${DATA[name].point}`])));
byId("why").textContent = DATA.why;
byId("runs").replaceChildren(...["a", "b"].flatMap((name) => {
  const {expected_error: error, evidence, evidence_reason: reason, memory_notes: notes, launch} = DATA[name];
  const size = isValue(error) ? `±${formatPercent(error)} (one sigma), evidence: ${evidence}` : "unknown";
  return [element("h3", {}, name.toUpperCase()),
          element("p", {}, [`Expected error: ${size}; ${reason}.`, ...notes.map((note) => `Memory: ${note}.`)].join(" ")),
          ...(launch.startsWith("none: ") ? [element("p", {className: "note"}, `launch: ${launch}`)] : [element("p", {className: "note"}, "What runs it, printed by"), commandBox(launch)])];
}));
tableOf("bar-table", ["from A to B", "difference", "of A"], bars.map(({name, difference}) => [name, signedSeconds(difference), formatPercent(difference / timeA)]));
byId("memory").replaceChildren(...[...memoryLines("A", DATA.a), ...memoryLines("B", DATA.b)].map((text) => element("li", {}, text)));
tableOf("figure-table", ["", "A", "B", "B − A"], DATA.figures.map(({figure, a, b, difference}) =>
  [figure.replace(/_(s|bytes)$/, "").replaceAll("_", " "), figureText(figure, a), figureText(figure, b), signed(figureText(figure, Math.abs(difference)), difference)]));
tableOf("class-table", ["time by class", "A", "B", "B − A"], DATA.breakdown.map((row) =>
  [row.class.replaceAll("_", " "), formatSeconds(row.a_s), formatSeconds(row.b_s), signedSeconds(row.difference_s)]));
tableOf("differs-table", ["differs", "A", "B"], Object.entries(DATA.differs).map(([name, {a, b}]) => [name, a, b]));
setUpFrame();
keepDrawn(() => drawWaterfall("waterfall", timeA, timeB, bars));
