// Feasible points along any two columns, with their Pareto front; the chosen plan beside it.

const scatterChoice = {x: COLUMNS.get(DATA.x), y: COLUMNS.get(DATA.y), colour: undefined, logX: false, logY: false};
let front = [];

/** The points by the value of the colour's axis: [{label, rows}] in the order of the values. */
function colourGroups(rows) {
  const column = scatterChoice.colour;
  if (!column) return [{label: "feasible", rows, colour: hueOf(0), shape: shapeOf(0)}];
  const groups = new Map();
  for (const row of rows) {
    const value = column.at(row);
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(row);
  }
  // Colours belong to the values of the file, whatever a condition leaves of them.
  const known = [...new Set(everyRow.map(column.at))].sort((a, b) => a - b);
  return known.map((value, index) => ({
    label: formatValue(column, value),
    rows: groups.get(value) ?? [],
    colour: column.names ? hueOf(index) : rampColour(known.length > 1 ? index / (known.length - 1) : 0),
    shape: shapeOf(index),
  })).filter((group) => group.rows.length > 0);
}

/** The rows as points of the chart; those without a value are left out. */
function pointsOf(rows) {
  const {x, y} = scatterChoice;
  return rows.filter((row) => isValue(x.at(row)) && isValue(y.at(row))).map((row) => ({x: x.at(row), y: y.at(row), row}));
}

/** The chosen plan, the front and the groups of colours. */
function scatterDatasets() {
  const {x, y} = scatterChoice;
  front = paretoFront(state.rows, x, y);
  const many = state.rows.length > 4000;
  const line = {
    type: "line", label: "Pareto front", data: pointsOf(front), stepped: "before", order: 0,
    borderColor: colourOf("--ink"), borderWidth: 1.5, pointStyle: "circle", pointRadius: 5, pointHoverRadius: 7,
    pointBackgroundColor: "transparent", pointBorderColor: colourOf("--ink"), pointBorderWidth: 1.5,
  };
  const picked = {
    label: "chosen plan", data: pointsOf(state.picked >= 0 ? [state.picked] : []), order: -1, pointStyle: "circle", pointRadius: 10,
    pointHoverRadius: 10, pointBackgroundColor: "transparent", pointBorderColor: colourOf("--mark"), pointBorderWidth: 3,
  };
  const groups = colourGroups(state.rows).map((group) => {
    const stroke = ["star", "cross", "crossRot"].includes(group.shape);
    return {
      label: group.label, data: pointsOf(group.rows), order: 1, pointStyle: group.shape, pointRadius: many ? 2.5 : 4, pointHoverRadius: 7,
      backgroundColor: group.colour, pointBorderColor: stroke ? group.colour : colourOf("--card"), borderColor: group.colour, pointBorderWidth: stroke ? 1.5 : 0.5,
    };
  });
  return [picked, line, ...groups];
}

/** What a tooltip says of a plan: its point, both values, then its axes. */
function tooltipLines(row) {
  const {x, y} = scatterChoice;
  const lines = [`point ${COLUMNS.get("point_id").at(row)}`, `${x.heading} ${formatValue(x, x.at(row))}`, `${y.heading} ${formatValue(y, y.at(row))}`];
  let line = "";
  for (const column of saying(varied, [row])) {
    const part = `${column.heading} ${cellOf(column, row)}`;
    if (line && line.length + part.length > 44) {
      lines.push(line);
      line = part;
    } else {
      line += (line ? ", " : "") + part;
    }
  }
  return line ? [...lines, line] : lines;
}

/** Hover and click alike for every chart whose points carry their `row`. */
const pointTooltip = {
  displayColors: false, filter: (item, index) => index === 0,
  callbacks: {title: () => "", label: (item) => (item.raw.row === undefined ? item.formattedValue : tooltipLines(item.raw.row))},
};
/** Chooses the plan of the point that was hit. */
function pickOnClick(event, elements, chart) {
  const hit = elements.map(({datasetIndex, index}) => chart.data.datasets[datasetIndex].data[index]).find((point) => point.row !== undefined);
  if (hit) pick(hit.row);
}

/** The chart and what its caption says of it. */
function drawScatter() {
  const {x, y, colour, logX, logY} = scatterChoice;
  const scale = (column, logarithmic) => valueAxis(column, {logarithmic, ...(logarithmic ? roomAround(state.rows.map(column.at)) : {})});
  draw("scatter", {
    type: "scatter",
    data: {datasets: scatterDatasets()},
    options: {
      interaction: {mode: "nearest", intersect: true},
      onClick: pickOnClick,
      scales: {x: scale(x, logX), y: scale(y, logY)},
      plugins: {
        legend: {labels: {usePointStyle: true}, title: {display: Boolean(colour), text: colour && partName(colour)}},
        tooltip: pointTooltip,
      },
    },
  });
  const whole = DATA.shown === DATA.feasible || (x.name === DATA.x && y.name === DATA.y && state.rows === everyRow);
  byId("scatter-caption").textContent = `${formatCount(state.rows.length)} points; ${formatCount(front.length)} on the Pareto front` +
      ` (${betterWord(x)} ${partName(x)}, ${betterWord(y)} ${partName(y)})${whole ? "" : ", of the points shown"}.` +
      " Click a point to see its plan; with the keyboard, left and right walk along the front.";
}
/** The better end of a column, in a word. */
const betterWord = (column) => (column.better === "larger" ? "larger" : "smaller");

/** Left and right choose the neighbour on the front. */
function walkFront(event) {
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (!step || front.length === 0) return;
  event.preventDefault();
  const at = front.indexOf(state.picked);
  const direction = scatterChoice.x.better === "larger" ? -step : step;  // the front begins with the best
  pick(front[at < 0 ? 0 : Math.min(Math.max(at + direction, 0), front.length - 1)]);
}

/** Parts of a whole with their shares, as a table with bars. */
function shareTable(title, columns, row) {
  const sum = columns.reduce((total, column) => total + (column.at(row) ?? 0), 0);
  const parts = columns.filter((column) => column.at(row) > 1e-9 * sum);  // less is what rounding leaves
  if (parts.length === 0) return [];
  const table = element("table");
  fillTable(table, [title, columns[0].unit === "s" ? "time" : "bytes", "share", ""], parts.map((column) => {
    const bar = element("i");
    bar.style.setProperty("--share", column.at(row) / sum);
    return [partName(column), formatValue(column, column.at(row)), formatPercent(column.at(row) / sum), bar];
  }), [1, 2]);
  for (const bar of table.querySelectorAll("i")) bar.parentElement.classList.add("meter");
  return [table];
}

/** All about the chosen plan. */
function drawDetail() {
  const panel = byId("detail"), row = state.picked;
  if (row < 0) {
    panel.replaceChildren(element("p", {className: "note"}, "No feasible point."));
    byId("parts").replaceChildren();
    return;
  }
  const list = element("dl");
  const add = (column) => list.append(element("dt", {title: column.meaning}, partName(column)), element("dd", {}, formatValue(column, column.at(row))));
  saying(varied, [row]).forEach(add);
  const results = saying(columnsOf("output", "faults"), [row]).filter((column) => isValue(column.at(row)) && !["worst_link", "worst_device", "fault_samples"].includes(column.name));
  results.forEach(add);
  const id = COLUMNS.get("point_id").at(row), unsaid = unsaidSettings(row);
  panel.replaceChildren(
      element("h3", {}, `Point ${id}${row === ANSWER ? ", the answer" : row === 0 ? `, best by ${partName(ranking)}` : ""}`), list,
      element("p", {className: "note"}, `Look closer with${unsaid ? `, the study set to ${unsaid}` : ""}`),
      commandBox(simulateCommand(id, pointOption(row))),
      element("p", {className: "note"}, "Run it in a framework with"), commandBox(launchCommand(id, pointOption(row))));
  byId("parts").replaceChildren(...shareTable("where its time goes", columnsOf("breakdown"), row), ...shareTable("its fullest device", columnsOf("memory"), row));
}

/** The smallest and the largest value of a column. */
function rangeOf(column) {
  let low = Infinity, high = -Infinity;
  for (const row of everyRow) {
    const value = column.at(row);
    if (!isValue(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** The controls of the section, with what they show at first. */
function setUpScatter() {
  const numeric = numericColumns();
  const fill = (id, columns, chosen, empty) => {
    const options = columns.map((column) => element("option", {value: column.name, title: column.meaning, selected: column === chosen}, partName(column)));
    byId(id).replaceChildren(...(empty ? [element("option", {value: ""}, empty)] : []), ...options);
  };
  // An axis is always on offer for what it shows at first, even where all points agree.
  const offer = (column) => (numeric.includes(column) ? numeric : [column, ...numeric]);
  fill("x", offer(scatterChoice.x), scatterChoice.x);
  fill("y", offer(scatterChoice.y), scatterChoice.y);
  const few = varied.filter((column) => new Set(column.values).size <= 40);
  scatterChoice.colour = few.find((column) => column.group === "hardware") ?? few.find((column) => column.name === "tensor_parallel") ?? few[0];
  fill("colour", few, scatterChoice.colour, "nothing");
  const [low, high] = rangeOf(scatterChoice.x);
  byId("log-x").checked = scatterChoice.logX = low > 0 && high > 20 * low;
  byId("x").onchange = (event) => { scatterChoice.x = COLUMNS.get(event.target.value); drawScatter(); };
  byId("y").onchange = (event) => { scatterChoice.y = COLUMNS.get(event.target.value); drawScatter(); };
  byId("colour").onchange = (event) => { scatterChoice.colour = COLUMNS.get(event.target.value); drawScatter(); };
  byId("log-x").onchange = (event) => { scatterChoice.logX = event.target.checked; drawScatter(); };
  byId("log-y").onchange = (event) => { scatterChoice.logY = event.target.checked; drawScatter(); };
  byId("scatter").onkeydown = walkFront;
  state.listeners.push((what) => {
    if (what === "rows") drawScatter();
    if (what === "rows" || what === "picked") drawDetail();
    if (what !== "picked") return;
    const chart = charts.get(byId("scatter"));
    chart.data.datasets[0].data = pointsOf(state.picked >= 0 ? [state.picked] : []);
    chart.update();
  });
}
