// A small sweep of the study's points with the present numbers, in the second engine.

const SWEEP_LIMIT = 20000, BLOCK = 50, DRAWN_LIMIT = 4000;
const RANKS = [["time_s", "time", 1], ["tokens_per_s_per_gpu", "tokens/s per GPU", -1], ["memory_bytes", "memory", 1]];
const sweep = {turn: 0, rows: [], counts: new Map(), done: 0, of: 0, total: 0, isRunning: false, of_set: ""};

/** Feasible rows, the best first; of equals the one with the lower id. */
function ranked() {
  const [name, , sign] = RANKS.find(([name]) => name === byId("sweep-rank").value);
  return [...sweep.rows].sort((a, b) => sign * (a[name] - b[name]) || a.id - b.id);
}

/** The blocks to ask for: all of them, or as many as the limit allows, evenly spread. */
function blocksOf(total) {
  const blocks = Math.ceil(total / BLOCK), asked = Math.min(blocks, SWEEP_LIMIT / BLOCK);
  return Array.from({length: asked}, (_, i) => BLOCK * Math.floor(i * blocks / asked));
}

/** How far the sweep is, and of what. */
function sayProgress() {
  const verdicts = [["feasible", sweep.rows.length], ...sweep.counts].map(([status, count]) => `${formatCount(count)} ${inWords(status)}`);
  const sampled = sweep.of < sweep.total ? ` (of ${formatCount(sweep.total)}: a page sweeps at most ${formatCount(SWEEP_LIMIT)}, ` +
      "evenly spread; the program sweeps all)" : "";
  const settings = sweep.settings > 1 ? ` The study has ${formatCount(sweep.settings)} settings; these are points of the first.` : "";
  const stale = sweep.of_set !== String(changesOf(state).set) ? " The numbers have changed since." : "";
  byId("sweep-says").textContent = sweep.of === 0 ? "" :
      `${formatCount(sweep.done)} of ${formatCount(sweep.of)} points${sampled}: ${verdicts.join(", ")}.${settings}${stale}`;
  const bar = byId("sweep-progress");
  bar.hidden = !sweep.isRunning;
  bar.value = sweep.of > 0 ? sweep.done / sweep.of : 0;
  byId("sweep-start").hidden = sweep.isRunning;
  byId("sweep-stop").hidden = !sweep.isRunning;
}

/** The ten best; a button sets the plan. */
function drawSweepTable() {
  const rows = ranked().slice(0, 10);
  fillTable(byId("sweep-table"), ["rank", "time", "tokens/s per GPU", "memory", "plan"], rows.map((row, i) => {
    const button = element("button", {type: "button", ariaLabel: `Set the plan ${row.point}`}, row.point);
    button.onclick = () => setPlan(row.point);
    return [String(i + 1), formatNumber(row.time_s, "s"), formatNumber(row.tokens_per_s_per_gpu, "1"),
            formatNumber(row.memory_bytes, "byte"), button];
  }), [0, 1, 2, 3]);
}

/** Memory against time; a click sets the plan. */
function drawSweepScatter() {
  byId("sweep-figure").hidden = sweep.rows.length === 0;
  if (sweep.rows.length === 0) return;
  const every = Math.ceil(sweep.rows.length / DRAWN_LIMIT), best = ranked().slice(0, 10);
  const at = (row) => ({x: row.time_s, y: row.memory_bytes, row});
  const says = ({row, x, y}) => `${row?.point ?? "this plan"}: ${formatSeconds(x)}, ${formatBytes(y)}`;
  const now = shown?.prediction;
  const here = isValue(wholeTime(now ?? {})) ? [{x: wholeTime(now), y: now.memory_peak_bytes}] : [];
  const dots = (label, data, index, pointRadius) => ({label, data, pointRadius, pointStyle: shapeOf(index), pointBorderWidth: 0.5,
                                                      backgroundColor: hueOf(index), borderColor: colourOf("--card")});
  const room = roomAround(sweep.rows.map((row) => row.time_s)), logarithmic = room.max > 5 * room.min;
  const xAxis = valueAxis({unit: "s", heading: "time"}, {logarithmic, ...(logarithmic ? room : {})});
  draw("sweep-scatter", {
    type: "scatter",
    data: {datasets: [
      {label: "this plan", data: here, pointRadius: 9, pointBorderWidth: 3, backgroundColor: "transparent", borderColor: colourOf("--mark")},
      dots("ten best", best.map(at), 1, 6), dots("feasible", sweep.rows.filter((_, i) => i % every === 0).map(at), 0, 3)]},
    options: {
      scales: {x: xAxis, y: valueAxis({unit: "byte", heading: "memory"})},
      plugins: {legend: {position: "bottom", labels: {usePointStyle: true}}, tooltip: {callbacks: {label: ({raw}) => says(raw)}}},
      onClick: (_, points, chart) => {
        const row = points.map(({datasetIndex, index}) => chart.data.datasets[datasetIndex].data[index].row).find(Boolean);
        if (row) setPlan(row.point);
      },
    },
  });
  byId("sweep-caption").textContent = (every > 1 ? `One of ${every} feasible points is drawn. ` : "") +
      "A click on a point, or on a plan of the table, sets it.";
}

/** Sweeps until the end, until it is stopped or until another one begins. */
async function runSweep() {
  const turn = ++sweep.turn, {set} = changesOf(state);
  Object.assign(sweep, {rows: [], counts: new Map(), done: 0, of: 0, isRunning: true, of_set: String(set)});
  let blocks = [0], last = 0;
  for (let i = 0; i < blocks.length; ++i) {
    const answer = await behind().ask({ask: "sweep", set, from: blocks[i], count: BLOCK});
    if (turn !== sweep.turn) return;
    if (answer.problems) {
      sweep.isRunning = false;
      sayProgress();
      byId("sweep-says").textContent = answer.problems.join("; ");
      return;
    }
    if (i === 0) {
      blocks = blocksOf(answer.total);
      sweep.total = answer.total;
      sweep.settings = answer.settings;
      sweep.of = blocks.reduce((sum, from) => sum + Math.min(BLOCK, answer.total - from), 0);
    }
    for (const row of answer.rows) {
      if (row.status === "ok") sweep.rows.push(row);
      else sweep.counts.set(row.status, (sweep.counts.get(row.status) ?? 0) + 1);
    }
    sweep.done += answer.rows.length;
    sweep.isRunning = i + 1 < blocks.length;
    if (performance.now() - last > 500 || !sweep.isRunning) {
      last = performance.now();
      drawSweep();
    }
  }
}

/** All parts of the section. */
function drawSweep() {
  sayProgress();
  if (sweep.rows.length > 0 || sweep.done > 0) drawSweepTable();
  drawSweepScatter();
}

/** The buttons. */
function setUpSweep() {
  byId("sweep-rank").append(...RANKS.map(([name, words]) => element("option", {value: name}, words)));
  byId("sweep-rank").onchange = drawSweep;
  byId("sweep-start").onclick = runSweep;
  byId("sweep-stop").onclick = () => {
    ++sweep.turn;
    sweep.isRunning = false;
    drawSweep();
  };
}
