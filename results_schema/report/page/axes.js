// What the values of each axis are worth: best, median and the middle half of the objective with each.

/** The name of a value of an axis. */
const axisLabel = (column, entry) => `${formatValue(column, entry.value)}`;

/** One chart per axis: a bar from the first to the third quartile, a diamond at the median, a circle at the best. */
function drawAxis(canvas, axis) {
  const column = COLUMNS.get(axis.column);
  const entries = axis.values;
  const points = (key) => entries.map((entry) => entry[key]);
  draw(canvas, {
    data: {
      labels: entries.map((entry) => axisLabel(column, entry)),
      datasets: [
        {type: "scatter", label: "best", data: points("best"), pointStyle: "circle", pointRadius: 5, backgroundColor: colourOf("--mark"),
         borderColor: colourOf("--mark")},
        {type: "scatter", label: "median", data: points("median"), pointStyle: "rectRot", pointRadius: 6, backgroundColor: colourOf("--ground"),
         borderColor: colourOf("--ink"), borderWidth: 2},
        {type: "bar", label: "middle half", data: entries.map((entry) => (isValue(entry.quarter) ? [entry.quarter, entry.three_quarters] : null)),
         backgroundColor: fillOf(0), maxBarThickness: 40},
      ],
    },
    options: {
      interaction: {mode: "index", intersect: false},
      scales: {
        x: {type: "category", grid: {display: false}, ticks: {autoSkip: false}},
        y: valueAxis(ranking, isWide(entries) ? {logarithmic: true, ...roomAround(ends(entries))} : {grace: "5%", beginAtZero: true}),
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          displayColors: false, filter: (item, index) => index === 0,
          callbacks: {
            title: (items) => (items.length === 0 ? "" : `${column.heading} ${items[0].label}`),
            label: (item) => axisLines(entries[item.dataIndex]),
          },
        },
      },
    },
  });
}

/** More than a factor of 20 between the ends: small values would vanish. */
function isWide(entries) {
  const values = ends(entries);
  return values.length > 0 && Math.min(...values) > 0 && Math.max(...values) > 20 * Math.min(...values);
}
/** What the marks of a chart reach to. */
const ends = (entries) => entries.flatMap((entry) => [entry.best, entry.quarter, entry.three_quarters]).filter(isValue);

/** What a tooltip says of one value of an axis. */
function axisLines(entry) {
  const value = (key) => formatValue(ranking, entry[key]);
  return [`best ${value("best")}${entry.best_point === null ? "" : `, point ${entry.best_point}`}`, `median ${value("median")}`,
          `middle half ${value("quarter")} to ${value("three_quarters")}`,
          `${formatCount(entry.feasible)} of ${formatCount(entry.points)} points feasible (${formatPercent(entry.feasible / entry.points)})`];
}

/** The best objective on each setting of a hardware axis, as bars. */
function drawHardware(canvas, axis) {
  const column = COLUMNS.get(axis.column), entries = axis.values;
  const sideways = entries.length > 5 || entries.some((entry) => axisLabel(column, entry).length > 10);
  const row = (entry) => COLUMNS.get("point_id").values.indexOf(entry.best_point);
  const scale = valueAxis(ranking, {beginAtZero: true, title: `best ${partName(ranking)}`});
  const names = {type: "category", grid: {display: false}, ticks: {autoSkip: false}};
  draw(canvas, {
    type: "bar",
    data: {
      labels: entries.map((entry) => axisLabel(column, entry)),
      datasets: [{data: entries.map((entry) => entry.best), backgroundColor: fillOf(0), maxBarThickness: 40}],
    },
    options: {
      indexAxis: sideways ? "y" : "x",
      interaction: {mode: "nearest", axis: sideways ? "y" : "x", intersect: false},
      scales: sideways ? {x: scale, y: names} : {x: names, y: scale},
      onClick: (event, elements) => { if (elements.length > 0 && row(entries[elements[0].index]) >= 0) pick(row(entries[elements[0].index])); },
      plugins: {
        legend: {display: false},
        tooltip: {
          displayColors: false,
          callbacks: {
            label: (item) => {
              const entry = entries[item.dataIndex], best = row(entry);
              return [...axisLines(entry).slice(0, 2), axisLines(entry)[3], ...(best >= 0 ? tooltipLines(best).slice(3) : [])];
            },
          },
        },
      },
    },
  });
}

/** A figure with a heading; gives its canvas. */
function addFigure(box, heading, note, rows) {
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${heading}: ${note}`);
  const frame = element("div", {className: "canvas"}, canvas);
  if (rows > 8) frame.style.height = `${4 + 1.6 * rows}rem`;
  box.append(element("figure", {}, element("h3", {}, heading), frame, element("figcaption", {}, note)));
  return canvas;
}

/** How much the choice on an axis matters, in words. */
function spreadText(axis) {
  if (!(axis.spread > 0)) return "the best is the same with each value";
  return `the best differ by up to ${formatPercent(axis.spread)}`;
}

/** Makes the sections of axes and hardware; gives what draws their charts. */
function setUpAxes() {
  const axes = [...DATA.axes].filter((axis) => axis.values.some((entry) => isValue(entry.best))).sort((a, b) => b.spread - a.spread);
  const hardware = axes.filter((axis) => COLUMNS.get(axis.column).group === "hardware");
  byId("axes").hidden = axes.length === 0;
  byId("hardware").hidden = hardware.length === 0;
  byId("axes-says").textContent = `${partName(ranking)} over all ${formatCount(DATA.feasible)} feasible points with each value of an axis:` +
      " circle the best, diamond the median, bar the middle half. The axis on which the choice matters most for the best plan comes first." +
      (DATA.selection.kind !== "sample" ? "" : ` Estimated from a sample of ${formatCount(DATA.rows)} of ${formatCount(DATA.selection.study_points)}` +
          " points: medians and quarters are those of the study up to chance; the best of the study may be better than the best seen here.");
  const figures = [];
  for (const axis of hardware) {
    const canvas = addFigure(byId("hardware-charts"), COLUMNS.get(axis.column).meaning, spreadText(axis), axis.values.length);
    figures.push(() => drawHardware(canvas, axis));
  }
  for (const axis of axes) {
    const column = COLUMNS.get(axis.column);
    const beside = element("div", {className: "beside"});
    const canvas = addFigure(beside, partName(column), spreadText(axis), 0);
    figures.push(() => drawAxis(canvas, axis));
    const table = element("table");
    const value = (entry, key) => formatValue(ranking, entry[key]);
    fillTable(table, [column.heading, "points", "feasible", "best", "first quarter", "median", "third quarter", "worst", "best point"],
              axis.values.map((entry) => [axisLabel(column, entry), formatCount(entry.points), formatCount(entry.feasible), value(entry, "best"),
                                          value(entry, "quarter"), value(entry, "median"), value(entry, "three_quarters"), value(entry, "worst"),
                                          entry.best_point === null ? MISSING : String(entry.best_point)]),
              column.names ? [1, 2, 3, 4, 5, 6, 7, 8] : [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    table.prepend(element("caption", {}, column.meaning));
    beside.append(element("div", {className: "scroll"}, table));
    byId("axis-charts").append(beside);
  }
  return () => figures.forEach((figure) => figure());
}
