// The terms that this page uses, and no others.

/** What the page itself calls things. */
const PAGE_TERMS = [
  ["feasible", "the plan divides the model and the batch, fits in memory, and is within the constraints", () => true],
  ["Pareto front", "the points that no other beats in both directions of a chart at once", () => COUNT > 0],
  ["critical rank", "the device that the others wait for; its time by class adds up to the step or request", () => COUNT > 0],
  ["fullest device", "the device with the least memory left; a plan fits where it fits there", () => COUNT > 0],
  ["middle half", "from the first to the third quartile of the feasible points", () => COUNT > 0 && DATA.axes.length > 0],
  ["GiB", "2^30 bytes; kB, MB, GB are powers of ten", () => true],
  ["slowdown", "time with faults over time without, less 1", () => Boolean(DATA.faults)],
  ["p95", "not exceeded by 95 of 100 fault samples", () => Boolean(DATA.faults)],
  ["place", "a link, device or switch that can be sick", () => Boolean(DATA.faults)],
  ["derate", "the share of bandwidth or clock that a sick place keeps", () => Boolean(DATA.faults)],
];

/** What the short headings of columns stand for, where the column's own words do not say it. */
const SPELT_OUT = {
  mfu: "model FLOPs utilisation", e2e_s: "end to end", sequence_parallel: "sequence parallel", microbatch_size: "microbatch size",
  virtual_stages: "virtual pipeline stages", ep_comm_s: "communication of experts",
};

/**
 * @returns {Array<[string, string]>} term and meaning, in the order of the alphabet
 */
function glossary() {
  const shown = COUNT === 0 ? [] : saying(DATA.columns, everyRow).filter((column) => varied.includes(column) || column.name === "point_id" ||
      (["output", "faults", "memory", "breakdown"].includes(column.group) && (!column.constant || isValue(column.value))));
  const ofColumns = shown.map((column) => {
    const spelt = SPELT_OUT[column.name];
    const better = column.better ? `; ${column.better} is better` : "";
    return [partName(column), `${spelt && !column.meaning.includes(spelt) ? `${spelt}: ` : ""}${column.meaning}${better}`];
  });
  const ofVerdicts = DATA.statuses.map(({name}) => [name.replaceAll("_", " "), VERDICTS[name]]).filter(([, meaning]) => meaning);
  const ofPage = PAGE_TERMS.filter(([, , isUsed]) => isUsed()).map(([term, meaning]) => [term, meaning]);
  const meanings = new Map();
  for (const [term, meaning] of [...ofColumns, ...ofVerdicts, ...ofPage]) meanings.set(term, new Set([...(meanings.get(term) ?? []), meaning]));
  return [...meanings].map(([term, all]) => [term, [...all].join("; or: ")]).sort(([a], [b]) => a.localeCompare(b, "en"));
}

/** The list of terms. */
function drawGlossary() {
  byId("terms").replaceChildren(...termsOf(glossary()));
}
