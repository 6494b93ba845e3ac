// What one more GB/s, GB or TFLOP/s, or a microsecond less, is worth in time: asked in parts of the second engine, so
// that the first stays free.

const WORTH_SHARE = 0.05;
const worth = {turn: 0, rows: [], total: 0};

/** Fields that have a unit one can have more or less of. */
const worthKeys = () => [...lines].filter(([, {field}]) => field.worth && field.value > 0).map(([key]) => key);

/** How much the time moves at most where the number moves by the share. */
const reach = (row, base) => Math.max(...[row.more_s, row.less_s].filter(isValue).map((time) => Math.abs(time - base)), 0);

/** The table: the numbers that move the time by the least share or more, the strongest first. */
function drawWorth(base, least) {
  const moving = worth.rows.filter((row) => reach(row, base) >= least * base).sort((a, b) => reach(b, base) - reach(a, base));
  const most = moving.length > 0 ? reach(moving[0], base) : 1;
  const meter = (row) => {
    const bar = element("i");
    bar.style.setProperty("--share", reach(row, base) / most);
    return element("div", {className: "meter"}, bar);
  };
  const rows = moving.map((row) => {
    const field = lines.get(row.key)?.field, step = row.per_unit_s;
    const better = field?.unit === "s" ? row.less_s : row.more_s;
    return [field?.label ?? row.key, field?.text ?? MISSING, row.unit_text ?? MISSING, isValue(step) ? signedSeconds(step) : MISSING,
            isValue(step) ? changeText(base + step, base) || "=" : MISSING, isValue(better) ? changeText(better, base) || "=" : MISSING, meter(row)];
  });
  fillTable(byId("worth-table"), ["number", "is", "step", "time by it", "in percent", "5 % better", "reach"], rows, [3, 4, 5]);
  const idle = worth.rows.length - moving.length;
  byId("worth-says").textContent = worth.rows.length < worth.total ? `${worth.rows.length} of ${worth.total} numbers so far` :
      `${moving.length} numbers move the time here by ${100 * least} % or more; ${idle} do not. Steps are straight lines through what 5 % more and less give.`;
}

/** Asks for all numbers at the present setting; a later call takes the place of this one. */
async function askWorth() {
  const turn = ++worth.turn, keys = worthKeys(), request = changesOf(state);
  Object.assign(worth, {rows: [], total: keys.length});
  byId("worth-table").closest("section").classList.add("waits");
  let count = 1;
  for (let from = 0; from < keys.length;) {
    const begin = performance.now();
    const answer = await behind().ask({ask: "worth", ...request, keys: keys.slice(from, from + count), share: WORTH_SHARE}, "worth");
    if (turn !== worth.turn || !answer) return;
    if (answer.problems || !isValue(answer.base_s)) {
      worth.total = 0;
      byId("worth-table").closest("section").classList.remove("waits");
      byId("worth-table").replaceChildren();
      byId("worth-says").textContent = answer.problems?.join("; ") ?? "This plan has no time.";
      return;
    }
    worth.rows.push(...answer.worth);
    from += count;
    // Long answers would hold up a sweep: as many at a time as take about a tenth of a second.
    count = Math.max(1, Math.min(16, Math.round(count * 100 / Math.max(performance.now() - begin, 10))));
    if (from >= keys.length) worth.total = worth.rows.length;
    drawWorth(answer.base_s, answer.worth_least_share);
  }
  byId("worth-table").closest("section").classList.remove("waits");
}
