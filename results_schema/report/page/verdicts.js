// What became of all points, by status and reason.

const STATUSES = Object.keys(VERDICTS);

/** Of a study without a feasible point: what comes closest, how to look at it, and which change would make it fit. */
function drawMisses() {
  const misses = DATA.near_misses, settings = misses.some((miss) => miss.setting);
  byId("misses").hidden = misses.length === 0;
  const heads = ["point", "what it lacks", "plan", ...(settings ? ["setting"] : [])];
  fillTable(byId("miss-table"), heads,
            misses.map((miss) => [String(miss.point_id), miss.problem, miss.plan, ...(settings ? [miss.setting] : [])]), [0]);
  const commands = misses.filter((miss) => miss.plan).slice(0, 1).map((miss) => commandBox(simulateCommand(miss.point_id, miss.plan)));
  byId("miss-command").replaceChildren(...commands);
  const fixes = misses.flatMap((miss) => miss.fixes.map((fix) => [String(miss.point_id), fix.change, formatNumber(fix.memory_bytes, "byte"),
                                                                   formatNumber(fix.time_s, "s"), fix.where]));
  byId("fixes-head").hidden = fixes.length === 0;
  fillTable(byId("fix-table"), ["point", "change", "memory", "time", "where"], fixes, [0, 2, 3]);
  labelCells(byId("miss-table"));
  labelCells(byId("fix-table"));
}

/** One part of the bar; its label is shown where there is room for it. */
function verdictPart(status, index, share) {
  const label = `${status.name} ${formatPercent(share)}`;
  const part = element("span", {title: `${label}, ${formatCount(status.count)} points`}, element("b", {}, label));
  part.style.width = `${100 * share}%`;
  part.style.backgroundImage = tileUrl(index);
  return part;
}

/** Hides the labels of parts that are too narrow for them. */
function fitVerdictLabels() {
  for (const part of byId("verdict-bar").children) {
    const label = part.firstChild;
    label.hidden = false;
    label.hidden = label.offsetWidth > part.clientWidth;
  }
}

/** The bar and the table of statuses and their reasons. */
function drawVerdicts() {
  const bar = byId("verdict-bar"), rows = [];
  bar.replaceChildren();
  for (const status of DATA.statuses) {
    const index = Math.max(STATUSES.indexOf(status.name), 0);
    const share = DATA.points > 0 ? status.count / DATA.points : 0;
    bar.append(verdictPart(status, index, share));
    const head = element("b", {}, status.name.replaceAll("_", " "));
    rows.push([element("span", {}, keyOf(index), head), formatCount(status.count), formatPercent(share), String(status.example), ""]);
    for (const reason of status.reasons) {
      rows.push([element("span", {className: "reason"}, reason.name.replaceAll("_", " ")), formatCount(reason.count),
                 formatPercent(reason.count / DATA.points), String(reason.example), reason.meaning]);
    }
  }
  const table = byId("verdict-table");
  fillTable(table, ["verdict", "points", "share", "first point", "meaning"], rows, [1, 2, 3]);
  for (const reason of table.querySelectorAll(".reason")) reason.closest("td").classList.add("indent");
  for (const cell of table.querySelectorAll("td:last-child")) cell.classList.add("text");
  labelCells(table);
  fitVerdictLabels();
}

/** The table as data. */
function verdictCsv() {
  const lines = DATA.statuses.flatMap((status) => [[status.name, "", status.count, status.example],
                                                   ...status.reasons.map((reason) => [status.name, reason.name, reason.count, reason.example])]);
  return csvText([["status", "reason", "points", "first_point"], ...lines]);
}

/** Labels are fitted again when the bar changes its width. */
function setUpVerdicts() {
  byId("verdict-save").append(csvButton("verdicts", verdictCsv));
  new ResizeObserver(fitVerdictLabels).observe(byId("verdict-bar"));
}
