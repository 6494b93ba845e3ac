// Serving: what the best plans reach at each load.

const LOAD = COLUMNS.get("concurrency");
const loadChoice = {column: COLUMNS.get(DATA.y)};

/**
 * The better one of two rows by the first column that tells them apart; else the first row.
 * @param {...object} columns
 */
const betterRow = (...columns) => (a, b) => {
  for (const column of columns) {
    if (!isValue(column.at(b)) || isBetter(column, column.at(a), column.at(b))) return a;
    if (!isValue(column.at(a)) || isBetter(column, column.at(b), column.at(a))) return b;
  }
  return a;
};

/**
 * The rows by their load, ascending.
 * @param {number[]} rows
 * @returns {Array<{load: number, rows: number[], best: number, other: number}>} `best` by the ranking, `other` by the chosen column
 */
function loadGroups(rows) {
  const groups = new Map();
  for (const row of rows) {
    const load = LOAD.at(row);
    if (!groups.has(load)) groups.set(load, []);
    groups.get(load).push(row);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([load, members]) => ({
    load, rows: members, best: members.reduce(betterRow(ranking, loadChoice.column)),
    other: members.reduce(betterRow(loadChoice.column, ranking)),
  }));
}

/** Columns of the table of loads. */
function loadColumns() {
  const names = [...new Set([ranking.name, loadChoice.column.name, "ttft_s", "itl_s", "e2e_s", TOKEN_RATE, "memory_peak_bytes"])];
  const results = names.map((name) => COLUMNS.get(name)).filter(Boolean), bests = loadGroups(state.rows).map(({best}) => best);
  return saying([LOAD, ...results, COLUMNS.get("point_id"), ...varied.filter((column) => column !== LOAD)], bests);
}

/** The best plan at each load; a click on a row chooses it. */
function drawLoadTable(groups) {
  const columns = loadColumns(), table = byId("load-table");
  fillTable(table, columns.map(partName), groups.map(({best}) => columns.map((column) => cellOf(column, best))), columns.flatMap((column, i) => (column.names ? [] : [i])));
  table.style.setProperty("--first", `${table.tHead.rows[0].cells[0].offsetWidth}px`);
  groups.forEach(({best}, i) => {
    table.tBodies[0].rows[i].className = "pick";
    table.tBodies[0].rows[i].onclick = () => pick(best);
  });
}

/** The chosen column against the load: of the plan that is best by the ranking, and the best of all plans. */
function drawLoadLines(groups) {
  const column = loadChoice.column, same = column === ranking;
  const line = (label, row, index) => ({
    label, data: groups.map((group) => column.at(row(group))), borderColor: hueOf(index), backgroundColor: hueOf(index), borderWidth: 2,
    borderDash: index > 0 ? [6, 4] : [], pointStyle: shapeOf(index), pointRadius: 5,
  });
  draw("load-lines", {
    type: "line",
    data: {
      labels: groups.map(({load}) => formatCount(load)),
      datasets: [line(same ? `best ${partName(column)}` : `of the plan with the best ${partName(ranking)}`, (group) => group.best, 0),
                 ...(same ? [] : [line(`best ${partName(column)}`, (group) => group.other, 1)])],
    },
    options: {
      interaction: {mode: "nearest", intersect: false},
      onClick: (event, hits) => { if (hits.length > 0) pick(hits[0].datasetIndex === 0 ? groups[hits[0].index].best : groups[hits[0].index].other); },
      scales: {x: {type: "category", title: {display: true, text: "requests in flight"}}, y: valueAxis(column, {beginAtZero: true})},
      plugins: {
        legend: {position: "bottom", labels: {usePointStyle: true}},
        tooltip: {callbacks: {
          title: (items) => `${items[0].label} requests in flight`,
          label: (item) => [`${item.dataset.label}: ${formatValue(column, item.raw)}`,
                            ...tooltipLines(item.datasetIndex === 0 ? groups[item.dataIndex].best : groups[item.dataIndex].other)],
        }},
      },
    },
  });
}

/** The front of each load between the ranking and the chosen column. */
function drawLoadFronts(groups) {
  const x = ranking, y = loadChoice.column === ranking ? COLUMNS.get(DATA.y) : loadChoice.column;
  byId("load-fronts-head").textContent = `${partName(y)} against ${partName(x)}, the front of each load`;
  draw("load-fronts", {
    type: "scatter",
    data: {datasets: groups.map(({load, rows}, index) => {
      const colour = rampColour(groups.length > 1 ? index / (groups.length - 1) : 0);
      return {
        type: "line", label: formatCount(load), data: paretoFront(rows, x, y).map((row) => ({x: x.at(row), y: y.at(row), row})), borderColor: colour,
        backgroundColor: colour, borderWidth: 1.5, pointStyle: shapeOf(index), pointRadius: 5,
      };
    })},
    options: {
      interaction: {mode: "nearest", intersect: true},
      onClick: pickOnClick,
      scales: {x: valueAxis(x), y: valueAxis(y)},
      plugins: {legend: {position: "bottom", labels: {usePointStyle: true}, title: {display: true, text: "requests in flight"}}, tooltip: pointTooltip},
    },
  });
}

/** All of the section, for the rows that the condition leaves. */
function drawLoads() {
  if (!LOAD || COUNT === 0) return;
  const groups = loadGroups(state.rows);
  const exact = DATA.shown === DATA.feasible || (state.rows === everyRow && loadChoice.column.name === DATA.y);
  byId("loads-says").textContent = `The best plan by ${partName(ranking)} at each load${exact ? "" : ", of the points shown"}. A row shows its plan.`;
  drawLoadTable(groups);
  drawLoadLines(groups);
  drawLoadFronts(groups);
}

/** Shows the section where the study serves requests. */
function setUpLoads() {
  byId("loads").hidden = !LOAD || COUNT === 0;
  if (byId("loads").hidden) return;
  const columns = columnsOf("output", "faults").filter((column) => column.better !== undefined && (!column.constant || column === loadChoice.column));
  byId("load-y").replaceChildren(...columns.map((column) => element("option", {value: column.name, selected: column === loadChoice.column}, partName(column))));
  byId("load-y").onchange = (event) => { loadChoice.column = COLUMNS.get(event.target.value); drawLoads(); };
  byId("load-save").append(csvButton("loads", () => csvOfRows(loadColumns(), loadGroups(state.rows).map(({best}) => best))));
  state.listeners.push((what) => { if (what === "rows") drawLoads(); });
}
