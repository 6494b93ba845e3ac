// What became of all points, by status and reason.

const STATUSES = ["ok", "indivisible", "constraint", "memory", "unreachable", "unsupported"];

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
