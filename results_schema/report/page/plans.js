// The best plans as a table that sorts by any column, and as stacked bars of time and memory.

const planOrder = {column: ranking, descending: ranking.better === "larger", count: 10};
const BARS = 15;  // beyond, bars are too thin to read

/** The ranking comes first: that column stays in view when the others scroll. */
function planColumns() {
  const results = [EXECUTED?.name, ...DATA.objectives, "step_time_s", "e2e_s", "ttft_s", "itl_s", TOKEN_RATE, "mfu", "memory_peak_bytes",
                   "slowdown_mean", "slowdown_p95", "goodput_share"];
  const chosen = [...new Set(results)].map((name) => COLUMNS.get(name)).filter((column) => column && (!column.constant || isValue(column.value)));
  const first = chosen.filter((column) => column === EXECUTED), rest = chosen.filter((column) => column !== ranking && column !== EXECUTED);
  return saying([ranking, ...first, COLUMNS.get("point_id"), ...varied, ...rest], shownPlans());
}

/** Rows of the table: stable, so that equals keep the order of the file (best by the first objective first). */
function shownPlans() {
  const {column, descending, count} = planOrder;
  if (column === ranking && descending === (ranking.better === "larger")) return state.rows.slice(0, count);
  const sign = descending ? -1 : 1;
  const key = (row) => column.at(row) ?? NaN;
  return [...state.rows].sort((a, b) => {
    const x = key(a), y = key(b);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x - y);
  }).slice(0, count);
}

/** The table: headings sort, rows choose. */
function drawPlanTable(rows) {
  const columns = planColumns();
  const heads = columns.map((column) => {
    const sorted = column === planOrder.column;
    const button = element("button", {type: "button", title: column.meaning}, partName(column), sorted ? (planOrder.descending ? " ▼" : " ▲") : "");
    button.onclick = () => {
      planOrder.descending = sorted ? !planOrder.descending : column.better === "larger";
      planOrder.column = column;
      drawPlans();
      byId("plan-table").querySelectorAll("th button")[columns.indexOf(column)].focus();
    };
    return button;
  });
  const table = byId("plan-table");
  const numbers = columns.flatMap((column, i) => (column.names ? [] : [i]));
  const cells = rows.map((row) => columns.map((column) => {
    const text = cellOf(column, row);
    return column.name === "point_id" ? element("button", {type: "button", title: "show this plan above"}, text) : text;
  }));
  fillTable(table, heads, cells, numbers);
  columns.forEach((column, i) => {
    const sort = column === planOrder.column ? (planOrder.descending ? "descending" : "ascending") : "none";
    table.tHead.rows[0].cells[i].setAttribute("aria-sort", sort);
  });
  rows.forEach((row, i) => {
    const line = table.tBodies[0].rows[i];
    line.className = "pick";
    line.dataset.row = row;
    line.onclick = () => pick(row);
  });
  markPicked();
}

/** Marks the row of the chosen plan. */
function markPicked() {
  for (const line of byId("plan-table").querySelectorAll("tr.pick")) line.classList.toggle("picked", Number(line.dataset.row) === state.picked);
}

/** Stacked bars of the group's columns, a plan each; nothing where the file has none of them. */
function drawParts(id, group, rows) {
  const columns = columnsOf(group);
  byId(id).closest("figure").hidden = !columns.some(saysAnything);
  if (byId(id).closest("figure").hidden) return;
  const labels = rows.map((row) => `point ${COLUMNS.get("point_id").at(row)}`);
  const datasets = columns.flatMap((column, index) => {
    const values = rows.map((row) => column.at(row) ?? 0);
    if (!values.some((value) => value > 0)) return [];
    return [{label: partName(column), data: values, backgroundColor: partFill(column, index)}];
  });
  const axis = {unit: columns[0].unit, name: "", group};
  const total = (index) => datasets.reduce((sum, dataset) => sum + dataset.data[index], 0);
  draw(id, {
    type: "bar",
    data: {labels, datasets},
    options: {
      indexAxis: "y",
      interaction: {mode: "nearest", axis: "y", intersect: false},
      onClick: (event, elements) => { if (elements.length > 0) pick(rows[elements[0].index]); },
      scales: {x: {...valueAxis(axis, {title: ""}), stacked: true, title: {display: false}}, y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false}}},
      plugins: {
        legend: {position: "bottom"},
        tooltip: {
          mode: "index", axis: "y", position: "nearest", filter: (item) => item.raw > 0,
          callbacks: {
            title: (items) => (items.length === 0 ? "" : [items[0].label, ...tooltipLines(rows[items[0].dataIndex]).slice(3)]),
            label: (item) => `${item.dataset.label}: ${formatNumber(item.raw, axis.unit)} (${formatPercent(item.raw / total(item.dataIndex))})`,
            footer: (items) => (items.length === 0 ? "" : `together ${formatNumber(total(items[0].dataIndex), axis.unit)}`),
          },
        },
      },
    },
  });
}

/** The table and the bars of its first plans. */
function drawPlans() {
  const rows = shownPlans(), bars = rows.slice(0, BARS);
  drawPlanTable(rows);
  drawParts("breakdown", "breakdown", bars);
  drawParts("memory", "memory", bars);
  const sampled = DATA.shown < DATA.feasible;
  const exact = state.rows === everyRow && planOrder.column.better !== undefined && planOrder.descending === (planOrder.column.better === "larger") &&
      (planOrder.column === ranking || ["output", "faults"].includes(planOrder.column.group));
  byId("plans-says").textContent = `${formatCount(rows.length)} of ${formatCount(state.rows.length)}, by ${partName(planOrder.column)}` +
      (sampled && !exact ? ", among the points shown" : "") + (rows.length > BARS ? `; bars of the first ${BARS}` : "") +
      ". A heading sorts, a row shows its plan above.";
}

/** The controls of the section. */
function setUpPlans() {
  byId("breakdown-head").textContent = `Where the ${COLUMNS.has("step_time_s") ? "step" : "request"} goes, on the critical rank`;
  byId("plan-save").append(csvButton("plans", () => csvOfRows(planColumns(), shownPlans())));
  byId("count").onchange = (event) => { planOrder.count = Number(event.target.value); drawPlans(); };
  state.listeners.push((what) => (what === "rows" ? drawPlans() : markPicked()));
}
