// What became of all points, by status and reason.

const STATUSES = ["ok", "indivisible", "constraint", "memory", "unreachable", "unsupported", "out_of_range"];

/** Of a study without a feasible point: what comes closest, and which change would make it fit. */
function drawMisses() {
  const misses = DATA.near_misses, settings = misses.some((miss) => miss.setting);
  byId("misses").hidden = misses.length === 0;
  const heads = ["point", "what it lacks", "plan", ...(settings ? ["setting"] : [])];
  fillTable(byId("miss-table"), heads,
            misses.map((miss) => [String(miss.point_id), miss.problem, miss.plan, ...(settings ? [miss.setting] : [])]), [0]);
  const fixes = misses.flatMap((miss) => miss.fixes.map((fix) => [String(miss.point_id), fix.change, formatNumber(fix.memory_bytes, "byte"),
                                                                   formatNumber(fix.time_s, "s"), fix.where]));
  byId("fixes-head").hidden = fixes.length === 0;
  fillTable(byId("fix-table"), ["point", "change", "memory", "time", "where"], fixes, [0, 2, 3]);
}

function drawVerdicts() {
  const bar = byId("verdict-bar"), rows = [];
  bar.replaceChildren();
  for (const status of DATA.statuses) {
    const index = Math.max(STATUSES.indexOf(status.name), 0);
    const share = DATA.rows > 0 ? status.count / DATA.rows : 0;
    const label = `${status.name} ${formatPercent(share)}`;
    const part = element("span", {title: `${label}, ${formatCount(status.count)} points`});
    part.style.width = `${100 * share}%`;
    part.style.backgroundImage = tileUrl(index);
    if (share > 0.08) {
      const text = element("b", {}, label);
      text.style.cssText = "background: rgba(255,255,255,.85); padding: 0 .4rem; border-radius: 4px; font-weight: 600";
      part.append(text);
    }
    bar.append(part);
    const key = element("span", {className: "key"});
    key.style.backgroundImage = tileUrl(index);
    const head = element("b", {}, status.name);
    rows.push([element("span", {}, key, head), formatCount(status.count), formatPercent(share), String(status.example), ""]);
    for (const reason of status.reasons) {
      rows.push([element("span", {className: "reason"}, reason.name.replaceAll("_", " ")), formatCount(reason.count),
                 formatPercent(reason.count / DATA.rows), String(reason.example), reason.meaning]);
    }
  }
  const table = byId("verdict-table");
  fillTable(table, ["verdict", "points", "share", "first point", "meaning"], rows, [1, 2, 3]);
  for (const reason of table.querySelectorAll(".reason")) reason.closest("td").classList.add("indent");
  for (const cell of table.querySelectorAll("td:last-child")) cell.classList.add("text");
}
