// Two plans side by side: what they are, what they reach, and where time and memory differ.

const comparison = {a: ANSWER, b: COUNT > 1 ? (ANSWER + 1) % 2 : 0};

/** The row that is best by a column. */
const bestRowBy = (column) => everyRow.reduce(betterRow(column), 0);

/**
 * The sections of the table.
 * @returns {Array<{title: string, columns: object[], summed: boolean}>} `summed`: its columns are parts of a whole
 */
function comparedParts() {
  const {a, b} = comparison;
  const present = (column) => isValue(column.at(a)) || isValue(column.at(b));
  // Parts are rounded: what is below a billionth of the whole is nothing.
  const nonZero = (column, _, parts) => [a, b].some((row) => column.at(row) > 1e-9 * parts.reduce((sum, part) => sum + (part.at(row) ?? 0), 0));
  const results = saying(columnsOf("output", "faults"), [a, b]).filter((column) => column.better !== undefined && present(column));
  return [{title: "plan and setting", columns: saying(varied, [a, b]), summed: false}, {title: "results", columns: results, summed: false},
          {title: "time by class, critical rank", columns: columnsOf("breakdown").filter(nonZero), summed: true},
          {title: "memory by kind, fullest device", columns: columnsOf("memory").filter(nonZero), summed: true}];
}

/**
 * A difference with its sign, in the unit of the column.
 * @param {object} column
 * @param {number} difference
 */
function signedText(column, difference) {
  if (difference === 0) return "=";
  const size = Math.abs(difference);
  // Of shares the difference is in points of a hundred, so that it is not taken for the relative one beside it.
  const text = isShare(column) ? `${(100 * size).toFixed(column.percent_digits)}${THIN}points` : formatValue(column, size);
  return `${difference > 0 ? "+" : "−"}${text}`;
}

/** B against A in percent. */
function relativeText(a, b) {
  const sign = b > a ? "+" : b < a ? "−" : "";
  return sign + formatPercent(Math.abs(b / a - 1));
}

/**
 * One line of the table.
 * @param {string} name
 * @param {object} column  how the values read
 * @param {number} a
 * @param {number} b
 * @returns {HTMLTableRowElement} of class "better" or "worse" where B is so, "differs" where neither; data-difference is b - a
 */
function comparedLine(name, column, a, b) {
  const both = isValue(a) && isValue(b), difference = both ? b - a : NaN;
  const judged = both && difference !== 0 && column.better !== undefined;
  const mark = judged ? (isBetter(column, b, a) ? "better" : "worse") : difference === 0 ? "same" : both || column.better === undefined ? "differs" : "";
  const counted = both && !column.names && (column.better !== undefined || column.name === "");
  const share = counted && a !== 0 ? relativeText(a, b) : "";
  const cells = [name, formatValue(column, a), formatValue(column, b), counted ? signedText(column, difference) : mark === "same" ? "=" : mark,
                 counted ? share : "", judged ? `B ${mark}` : ""];
  const line = element("tr", {className: mark}, ...cells.map((text, i) => element("td", {className: i > 0 && i < 5 ? "number" : ""}, text)));
  line.dataset.column = column.name || name;
  if (counted) line.dataset.difference = difference;
  return line;
}

/** The whole table for the plans that are chosen. */
function drawComparison() {
  if (COUNT === 0) return;
  const {a, b} = comparison, id = COLUMNS.get("point_id"), table = byId("compare-table");
  const head = ["", `A: point ${id.at(a)}`, `B: point ${id.at(b)}`, "B − A", "of A", "verdict"];
  fillTable(table, head, [], [1, 2, 3, 4]);
  table.replaceChild(element("tbody"), table.tBodies[0]);
  for (const {title, columns, summed} of comparedParts()) {
    if (columns.length === 0) continue;
    const body = element("tbody", {}, element("tr", {}, element("th", {colSpan: 6, scope: "rowgroup"}, title)));
    const shown = (column, row) => (isIdle(column, row) ? null : column.at(row));
    for (const column of columns) body.append(comparedLine(partName(column), column, shown(column, a), shown(column, b)));
    if (summed) {
      const sum = (row) => columns.reduce((total, column) => total + (column.at(row) ?? 0), 0);
      const line = comparedLine("together", {...columns[0], name: ""}, sum(a), sum(b));
      line.classList.add("sum");
      body.append(line);
    }
    table.append(body);
  }
  // The chart takes what the table leaves.
  const classes = columnsOf("breakdown"), sum = (row) => classes.reduce((total, column) => total + (column.at(row) ?? 0), 0);
  const parts = classes.map((column) => ({name: partName(column), difference: (column.at(b) ?? 0) - (column.at(a) ?? 0)}));
  byId("compare-chart").closest("figure").hidden = !classes.some(saysAnything);
  if (classes.some(saysAnything)) drawWaterfall("compare-chart", sum(a), sum(b), parts.filter(({difference}) => Math.abs(difference) > 1e-9 * sum(a)));
  byId("compare-a").value = id.at(a);
  byId("compare-b").value = id.at(b);
}

/** The same as data: SI units, names for codes. */
function comparisonCsv() {
  const {a, b} = comparison;
  const plain = (column, value) => (isValue(value) ? column.names?.[value] ?? value : null);
  const lines = comparedParts().flatMap(({columns}) => columns.map((column) => {
    const [left, right] = [column.at(a), column.at(b)];
    return [column.name, plain(column, left), plain(column, right), !column.names && isValue(left) && isValue(right) ? right - left : null];
  }));
  const id = COLUMNS.get("point_id");
  return csvText([["column", "a", "b", "b_minus_a"], ["point_id", id.at(a), id.at(b), null], ...lines]);
}

/**
 * Takes a point into the comparison.
 * @param {"a"|"b"} side
 * @param {number} row
 */
function compareWith(side, row) {
  comparison[side] = row;
  drawComparison();
}

/** Begins with the best plans by both columns that the page opens with. */
function setUpComparison() {
  const best = bestRowBy(COLUMNS.get(DATA.y));
  if (best !== ANSWER) comparison.b = best;
  const id = COLUMNS.get("point_id");
  for (const side of ["a", "b"]) {
    const field = byId(`compare-${side}`);
    field.onchange = () => {
      const row = everyRow.find((candidate) => id.at(candidate) === Number(field.value));
      byId("compare-says").textContent = row === undefined ? `Point ${field.value} is not a feasible point of this page.` : "";
      if (row !== undefined) compareWith(side, row);
    };
    byId(`take-${side}`).onclick = () => compareWith(side, state.picked);
  }
  byId("compare-save").append(csvButton("comparison", comparisonCsv));
}
