// The page of `capacity`: answers as a table, GPUs against the rate, and the front of TTFT against throughput.

/** What tells an answer's workload from others at the same rate. */
const workloadOf = (answer) => DATA.workloads.map((key) => `${key}=${answer[key]}`).join(", ");
const loadOf = (answer) => [perSecond(answer.request_rate), ...(DATA.workloads.length ? [workloadOf(answer)] : [])].join(", ");
const planOf = (found) => [found.plan, ...(found.setting ? [found.setting] : [])].join(", ");
const perSecond = (value) => (isValue(value) ? `${Number(value.toPrecision(4))}${THIN}/s` : MISSING);

/** Rate, GPUs, plan and latencies of each answer. */
function drawAnswers() {
  const heads = ["rate", ...DATA.workloads, "GPUs", "plan", "memory", "attainment", "TTFT p95", "TPOT p95", "requests/s/GPU"];
  const row = (answer) => [
    perSecond(answer.request_rate), ...DATA.workloads.map((key) => answer[key]), answer.gpus === null ? (answer.certificate.exact ? "none" : "?") : formatCount(answer.gpus), answer.plan === null ? MISSING : planOf(answer),
    formatNumber(answer.memory_peak_bytes, "byte"), formatPercent(answer.attainment), formatNumber(answer.ttft_p95_s, "s"), formatNumber(answer.tpot_p95_s, "s"),
    perSecond(answer.gpus === null ? null : answer.requests_per_s / answer.gpus),
  ];
  fillTable(byId("answer-table"), heads, DATA.answers.map(row));
  byId("facts").replaceChildren(...pairsOf([["model", DATA.model], ["cluster", DATA.cluster], ["stack", DATA.stack], ["asked for", DATA.bounds.map(({words}) => words).join(", ")], ["assumed", DATA.assumptions.join("; ")]]));
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
  const found = DATA.answers.filter((answer) => answer.gpus !== null).sort((a, b) => a.request_rate - b.request_rate);
  const workloads = [...new Set(DATA.answers.map(workloadOf))];
  drawPoints("cost", workloads.map((workload, i) => ({
    type: "line", label: workload || "fewest GPUs", borderColor: hueOf(i), backgroundColor: hueOf(i), pointStyle: shapeOf(i), pointRadius: 5,
    data: found.filter((answer) => workloadOf(answer) === workload)
        .map((answer) => ({x: answer.request_rate, y: answer.gpus, says: `${formatCount(answer.gpus)} GPUs at ${loadOf(answer)}: ${planOf(answer)}`})),
  })),
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
    says: `${point.plan} on ${formatCount(point.gpus)} GPUs at ${loadOf(answer)}${point.kept ? "" : `, misses ${point.missed}`}`,
  })));
  const kept = all.filter((point) => point.kept);
  const dots = (label, data, index) => ({label, data, backgroundColor: hueOf(index), borderColor: hueOf(index), pointStyle: shapeOf(index), pointRadius: 4});
  drawPoints("front", [
    {type: "line", label: "front", data: frontOf(kept), borderColor: colourOf("--ink"), borderWidth: 1.5, pointRadius: 0},
    dots("keeps what is promised", kept, 0), dots("misses it", all.filter((point) => !point.kept), 1),
  ], {title: "requests per second and GPU"}, {title: "TTFT p95", options: valueAxis({unit: "s"}, {logarithmic: true, title: "TTFT p95"})});
}

/** What is to be known of the plan that an answer names. */
function errorOf({expected_error: error, evidence, evidence_reason: reason, memory_note: memory}) {
  const size = isValue(error) ? `±${formatPercent(error)} (one sigma) of the mean time between tokens, evidence: ${evidence}` : "unknown";
  return `Expected error: ${size}; ${reason}. Memory: ${memory}.`;
}

/** A plan that misses what is asked for, and what it would need. */
const missedBy = (found) => `${planOf(found)} on ${formatCount(found.gpus)} GPUs, ${found.simulated ? "" : "by its floors "}with ${found.needs.join(", ")}`;

/** By how much the next smaller number of GPUs misses what is asked for. */
function fewerOf({fewer}) {
  return `One step fewer misses by ${fewer.simulated ? "" : "at least "}${formatPercent(fewer.missed_by)}: ${missedBy(fewer)}.`;
}

function drawProofs() {
  byId("proofs").replaceChildren(...DATA.answers.flatMap((answer) => [
    element("h3", {}, loadOf(answer)), element("p", {}, answer.certificate.text),
    ...(answer.plan ? [element("p", {}, errorOf(answer))] : []),
    ...(answer.fewer ? [element("p", {}, fewerOf(answer))] : []),
    ...(!answer.launch ? [] : answer.launch.startsWith("none: ") ? [element("p", {className: "note"}, `launch: ${answer.launch}`)] : [element("p", {className: "note"}, "What runs it, printed by"), commandBox(answer.launch)]),
    ...(answer.nearest ? [element("p", {className: "note"}, `nearest: ${missedBy(answer.nearest)}`)] : []),
  ]));
}

drawAnswers();
drawProofs();
setUpFrame();
keepDrawn(() => {
  drawCost();
  drawFront();
});
