// Parallel coordinates: an upright line per axis of the plans and per objective, and a broken line per plan through its values.
// A click on a value keeps the plans that have it; a click on an objective keeps those that are as good or better.

const BETWEEN = 100, SIDE = 50, TOP = 52, BOTTOM = 22, HALO = 3;  // pixels: axis to axis, room at the ends, halo of texts
const BAND = 20;  // pixels over which the plans with the same value are spread, by their rank
const FEW = 12;  // values of an axis that are shown one by one
const brushes = new Map();  // column name -> Set of values, or {limit}

/**
 * The place of a value on its axis.
 * @param {object} column
 * @returns {{column: object, listed: boolean, values: number[], share: function(number): number}} `share` is 0 at the bottom, 1 at the top
 */
function parallelAxis(column) {
  const values = [...new Set(everyRow.map(column.at))].filter(isValue).sort((a, b) => a - b);
  const isResult = !INPUT_GROUPS.includes(column.group);
  if (!isResult && (column.names || values.length <= FEW)) {
    return {column, listed: true, values, share: (value) => (values.length > 1 ? values.indexOf(value) / (values.length - 1) : 0.5)};
  }
  const low = values[0] ?? 0, high = values.at(-1) ?? 1;
  const logarithmic = low > 0 && high > 20 * low;
  const scale = logarithmic ? Math.log : (value) => value;
  const share = (value) => (high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5);
  return {column, listed: false, values, share};
}

const parallelAxes = COUNT === 0 ? [] :
    [...varied, ...new Set([COLUMNS.get(DATA.y), ranking])].map(parallelAxis);

/** Where the line of a plan crosses an axis; nothing where it has no value there. */
function parallelPlace(index, row, height) {
  const axis = parallelAxes[index], value = axis.column.at(row);
  if (!isValue(value)) return undefined;
  const spread = axis.listed && COUNT > 1 ? BAND * (0.5 - row / (COUNT - 1)) : 0;
  return {x: SIDE + index * BETWEEN, y: TOP + (1 - axis.share(value)) * (height - TOP - BOTTOM) - spread};
}

/** Whether a plan passes all brushes. */
function isKept(row) {
  return parallelAxes.every(({column}) => {
    const brush = brushes.get(column.name), value = column.at(row);
    if (!brush) return true;
    if (brush instanceof Set) return brush.has(value);
    return isValue(value) && !isBetter(column, brush.limit, value);
  });
}

/**
 * The broken line of a plan, with gaps where it has no value.
 * @returns {boolean} whether there was anything to draw
 */
function strokePlan(pen, row, height) {
  let open = false, drawn = false;
  pen.beginPath();
  parallelAxes.forEach((axis, index) => {
    const place = parallelPlace(index, row, height);
    if (place && open) {
      pen.lineTo(place.x, place.y);
      drawn = true;
    } else if (place) {
      pen.moveTo(place.x, place.y);
    }
    open = Boolean(place);
  });
  pen.stroke();
  return drawn;
}

/** A text that lines behind it do not blur. */
function haloText(pen, text, x, y) {
  pen.strokeStyle = colourOf("--card");
  pen.lineWidth = 2 * HALO;
  pen.lineJoin = "round";
  pen.strokeText(text, x, y);
  pen.fillText(text, x, y);
}

/** Cuts a text to a width. */
function fittingText(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) --end;
  return `${text.slice(0, end)}…`;
}

/** The heading of an axis, over as many as two lines. */
function headAxis(pen, text, x) {
  const words = text.split(" "), lines = [""];
  for (const word of words) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && lines.length < 2 && pen.measureText(longer).width > BETWEEN - 6) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  lines.forEach((line, i) => haloText(pen, fittingText(pen, line, BETWEEN - 6), x, 10 + 15 * i));
}

/** The line of an axis with its values and its brush. */
function drawParallelAxis(pen, index, height) {
  const {column, listed, values, share} = parallelAxes[index];
  const x = SIDE + index * BETWEEN, yOf = (value) => TOP + (1 - share(value)) * (height - TOP - BOTTOM);
  const brush = brushes.get(column.name);
  pen.strokeStyle = colourOf("--ink");
  pen.lineWidth = 1;
  pen.strokeRect(x, TOP, 0, height - TOP - BOTTOM);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = colourOf("--ink");
  pen.font = "600 12px system-ui, sans-serif";
  headAxis(pen, partName(column), x);
  pen.font = "12px system-ui, sans-serif";
  for (const value of listed ? values : [values[0], values.at(-1)]) {
    pen.fillStyle = colourOf(brush instanceof Set && brush.has(value) ? "--mark" : "--ink");
    haloText(pen, fittingText(pen, formatValue(column, value), BETWEEN - 10), x, yOf(value));
  }
  if (!brush || brush instanceof Set) return;
  pen.fillStyle = pen.strokeStyle = colourOf("--mark");
  pen.lineWidth = 5;
  const end = yOf(column.better === "larger" ? values.at(-1) : values[0]);
  pen.beginPath();
  pen.moveTo(x, yOf(brush.limit));
  pen.lineTo(x, end);
  pen.stroke();
  haloText(pen, fittingText(pen, formatValue(column, brush.limit), BETWEEN - 10), x, yOf(brush.limit));
}

/** All plans that the condition leaves: kept ones in the colours of the ranking over the others, the best on top. */
function drawParallel() {
  if (COUNT === 0) return;
  const canvas = byId("parallel"), pen = canvas.getContext("2d"), sharpness = devicePixelRatio || 1;
  const width = 2 * SIDE + (parallelAxes.length - 1) * BETWEEN, height = canvas.parentElement.clientHeight || 400;
  canvas.width = width * sharpness;
  canvas.height = height * sharpness;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  pen.scale(sharpness, sharpness);
  const kept = state.rows.filter(isKept), keptRows = new Set(kept);
  let drawn = 0;
  const strokeAll = (rows, colour, thickness) => {
    pen.lineWidth = thickness;
    for (const row of [...rows].reverse()) {
      pen.strokeStyle = colour(row);
      if (strokePlan(pen, row, height)) ++drawn;
    }
  };
  strokeAll(state.rows.filter((row) => !keptRows.has(row)), () => colourOf("--line"), 1);
  const colours = Array.from({length: 33}, (_, i) => rampColour(i / 32));
  strokeAll(kept, (row) => colours[Math.round(32 * row / Math.max(COUNT - 1, 1))], kept.length > 500 ? 1 : 1.5);
  canvas.dataset.drawn = drawn;
  canvas.dataset.kept = kept.length;
  pen.strokeStyle = colourOf("--mark");
  pen.lineWidth = 3;
  if (state.picked >= 0) strokePlan(pen, state.picked, height);
  parallelAxes.forEach((axis, index) => drawParallelAxis(pen, index, height));
  sayKept(kept);
}

/** How many plans pass the brushes, and the best of them. */
function sayKept(kept) {
  const says = byId("parallel-says"), text = `${formatCount(kept.length)} of ${formatCount(state.rows.length)} plans pass`;
  byId("parallel-clear").hidden = brushes.size === 0;
  says.replaceChildren(text);
  if (kept.length === 0) return;
  const best = kept[0];  // the data are in the order of the ranking
  const button = element("button", {type: "button", className: "save stays"}, `point ${COLUMNS.get("point_id").at(best)}`);
  button.onclick = () => pick(best);
  says.append("; the best of them is ", button, `, ${partName(ranking)} ${formatValue(ranking, ranking.at(best))}.`);
}

/**
 * A click at a place of the canvas: sets or lifts a brush of the nearest axis.
 * @param {number} x
 * @param {number} y
 */
function brushAt(x, y) {
  const index = Math.min(Math.max(Math.round((x - SIDE) / BETWEEN), 0), parallelAxes.length - 1);
  const {column, listed, values, share} = parallelAxes[index];
  const height = byId("parallel").clientHeight, at = Math.min(Math.max(1 - (y - TOP) / (height - TOP - BOTTOM), 0), 1);
  const nearest = values.reduce((best, value) => (Math.abs(share(value) - at) < Math.abs(share(best) - at) ? value : best), values[0]);
  const brush = brushes.get(column.name);
  if (listed) {
    const chosen = brush ?? new Set();
    if (!chosen.delete(nearest)) chosen.add(nearest);
    if (chosen.size > 0) brushes.set(column.name, chosen);
    else brushes.delete(column.name);
  } else if (brush && Math.abs(share(brush.limit) - at) < 0.04) {
    brushes.delete(column.name);
  } else {
    brushes.set(column.name, {limit: nearest});
  }
  drawParallel();
}

/** Shows the section where plans differ. */
function setUpParallel() {
  byId("parallel-section").hidden = COUNT === 0 || varied.length === 0;
  if (byId("parallel-section").hidden) return;
  byId("parallel-note").textContent = `A line per plan; its colour goes by its rank in ${partName(ranking)}.` +
      " Click values to keep the plans that have them, or a place on an objective to keep those at least as good; click again to lift it.";
  byId("parallel").onclick = (event) => brushAt(event.offsetX, event.offsetY);
  byId("parallel-clear").onclick = () => {
    brushes.clear();
    drawParallel();
  };
  state.listeners.push((what) => { if (["rows", "picked"].includes(what)) drawParallel(); });
}
