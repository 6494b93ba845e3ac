// The data of the page: columns of feasible points (the best first), verdicts, axes, faults. Written by report_data.cc.

const COUNT = DATA.shown;
const COLUMNS = new Map(DATA.columns.map((column) => [column.name, column]));

for (const column of DATA.columns) {
  column.constant = column.values === undefined;
  column.at = column.constant ? () => column.value : (row) => column.values[row];
}

const INPUT_GROUPS = ["plan", "workload", "hardware"];
/** The columns of these groups, in the order of the file. */
const columnsOf = (...groups) => DATA.columns.filter((column) => groups.includes(column.group));
const inputs = columnsOf(...INPUT_GROUPS).filter((column) => column.name !== "microbatches");
const everyRow = Array.from({length: COUNT}, (_, row) => row);
/** What differs among the points: an axis of plans may have one value in all that are feasible. */
const varied = inputs.filter((column) => !column.constant && (column.group !== "plan" || everyRow.some((row) => column.at(row) !== column.at(0))));
const ranking = COLUMNS.get(DATA.ranking);
/** The rate of tokens, which files of loads have under two names. */
const TOKEN_RATE = DATA.objectives.includes("output_tokens_per_s_per_gpu") ? "output_tokens_per_s_per_gpu" : "tokens_per_s_per_gpu";
/** Whether a part of a whole is there at all. */
const saysAnything = (column) => everyRow.some((row) => column.at(row) > 0);

/** The plan that answers the study's question; -1 where none is feasible. */
const ANSWER = COUNT === 0 ? -1 : Math.max(0, COLUMNS.get("point_id").values.indexOf(DATA.answer.point));
/** The study's feasible points, whether or not they are in the file. */
const FEASIBLE = DATA.statuses.find((status) => status.name === "ok")?.count ?? 0;
/** The column of times that were executed, where some were. */
const EXECUTED = DATA.columns.find((column) => column.name.startsWith("executed_"));

/** Whether a column says of a plan what only those have whose prompts have a pool of GPUs of their own; caches may also come back from host and disk. */
const isIdle = (column, row) => /^(prefill_|kv_transfer|ffn_gpus)/.test(column.name) && !(COLUMNS.get("prefill_data_parallel")?.at(row) > 0) && !(column.name === "kv_transfer_exposed_s" && column.at(row) > 0);
/** What a column says of a plan. */
const cellOf = (column, row) => (isIdle(column, row) ? MISSING : formatValue(column, column.at(row)));
/** Columns that say something of one of the plans. */
const saying = (columns, rows) => columns.filter((column) => rows.length === 0 || rows.some((row) => !isIdle(column, row)));

/** Whether value a is better than b by the direction of the column. */
const isBetter = (column, a, b) => (column.better === "larger" ? a > b : a < b);

/** "tp 4, pp 8, recompute full": what tells a plan from the others. */
function planText(row) {
  return saying(varied, [row]).map((column) => `${partName(column)}${THIN}${cellOf(column, row)}`).join(", ");
}

/** Columns along which points can be compared: numbers that are not the same everywhere. */
function numericColumns() {
  const results = columnsOf("output", "faults", "memory", "breakdown").filter((column) => !column.constant && column.name !== "peak_stage");
  const axes = varied.filter((column) => !column.names);
  return [...results, ...axes];
}

/** Rows that no other of `rows` beats in both columns at once, the best in `x` first; rows without a value take no part. */
function paretoFront(rows, x, y) {
  const turn = (column) => (column.better === "larger" ? -1 : 1);
  const [sx, sy] = [turn(x), turn(y)];
  const sorted = rows.filter((row) => isValue(x.at(row)) && isValue(y.at(row)))
      .sort((a, b) => sx * (x.at(a) - x.at(b)) || sy * (y.at(a) - y.at(b)));
  let best = Infinity;
  return sorted.filter((row) => {
    const value = sy * y.at(row);
    if (value >= best) return false;
    best = value;
    return true;
  });
}

// What the user has chosen; parts of the page listen to it.
const state = {rows: everyRow, condition: "", picked: ANSWER, listeners: []};

/** Tells the parts of the page: "rows" or "picked". */
function changed(what) {
  for (const listener of state.listeners) listener(what);
}

/** Makes a row the chosen plan. */
function pick(row) {
  state.picked = row;
  changed("picked");
}
