// The page of `capacity`: answers as a table, GPUs against the rate, and the front of TTFT against throughput.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** The element of that id. */
function byId(id) {
  return document.getElementById(id);
}

/** A new element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const perSecond = (value) => (isValue(value) ? `${Number(value.toPrecision(4))}${THIN}/s` : MISSING);

/** Rate, GPUs, plan and latencies of each answer. */
function drawAnswers() {
  const heads = ["rate", "GPUs", "plan", "attainment", "TTFT p95", "TPOT p95", "requests/s/GPU"];
  const row = (answer) => [
    perSecond(answer.request_rate), answer.gpus === null ? (answer.certificate.exact ? "none" : "?") : formatCount(answer.gpus), answer.plan ?? MISSING,
    formatPercent(answer.attainment), formatNumber(answer.ttft_p95_s, "s"), formatNumber(answer.tpot_p95_s, "s"),
    perSecond(answer.gpus === null ? null : answer.requests_per_s / answer.gpus),
  ];
  const line = (cells, tag) => element("tr", {}, ...cells.map((text) => element(tag, {}, text)));
  byId("answer-table").replaceChildren(element("thead", {}, line(heads, "th")),
                                       element("tbody", {}, ...DATA.answers.map((answer) => line(row(answer), "td"))));
  byId("facts").append(element("dt", {}, "asked for"), element("dd", {}, DATA.bounds.map(({words}) => words).join(", ")));
}

/** A chart of points with tooltips that say what each is. */
function drawPoints(canvas, datasets, x, y) {
  draw(canvas, {
    type: "scatter", data: {datasets},
    options: {
      interaction: {mode: "nearest", intersect: true},
      scales: {x: {title: {display: true, text: x.title}, ...x.options}, y: {title: {display: true, text: y.title}, ...y.options}},
      plugins: {legend: {position: "bottom", labels: {usePointStyle: true}}, tooltip: {callbacks: {label: (item) => item.raw.says}}},
    },
  });
}

function drawCost() {
  const data = DATA.answers.filter((answer) => answer.gpus !== null).sort((a, b) => a.request_rate - b.request_rate)
      .map((answer) => ({x: answer.request_rate, y: answer.gpus, says: `${formatCount(answer.gpus)} GPUs at ${perSecond(answer.request_rate)}: ${answer.plan}`}));
  drawPoints("cost", [{type: "line", label: "fewest GPUs", data, borderColor: hueOf(0), backgroundColor: hueOf(0), pointStyle: shapeOf(0), pointRadius: 5}],
             {title: "requests per second"}, {title: "GPUs", options: {beginAtZero: true}});
}

/** Plans that no other beats in throughput and TTFT at once. */
function frontOf(points) {
  let best = Infinity;
  return [...points].sort((a, b) => b.x - a.x || a.y - b.y).filter(({y}) => y < best && ((best = y), true));
}

function drawFront() {
  const all = DATA.answers.flatMap((answer) => answer.points.map((point) => ({
    x: point.requests_per_s_per_gpu, y: point.ttft_p95_s, kept: point.kept,
    says: `${point.plan} on ${formatCount(point.gpus)} GPUs at ${perSecond(answer.request_rate)}${point.kept ? "" : `, misses ${point.missed}`}`,
  })));
  const kept = all.filter((point) => point.kept);
  const dots = (label, data, index) => ({label, data, backgroundColor: hueOf(index), borderColor: hueOf(index), pointStyle: shapeOf(index), pointRadius: 4});
  drawPoints("front", [
    {type: "line", label: "front", data: frontOf(kept), borderColor: colourOf("--ink"), borderWidth: 1.5, pointRadius: 0},
    dots("keeps what is promised", kept, 0), dots("misses it", all.filter((point) => !point.kept), 1),
  ], {title: "requests per second and GPU"}, {title: "TTFT p95", options: {type: "logarithmic", ticks: {callback: (value) => formatNumber(value, "s")}}});
}

function drawProofs() {
  byId("proofs").replaceChildren(...DATA.answers.flatMap((answer) => [
    element("h3", {}, perSecond(answer.request_rate)), element("p", {}, answer.certificate.text),
    ...(answer.nearest ? [element("p", {className: "note"}, `nearest: ${answer.nearest.plan} on ${formatCount(answer.nearest.gpus)} GPUs, with ${answer.nearest.needs.join(", ")}`)] : []),
  ]));
}

function drawAll() {
  useSchemeColours();
  drawCost();
  drawFront();
}

drawAnswers();
drawProofs();
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
