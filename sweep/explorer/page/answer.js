// The prediction in short: times and rates against the study's own, memory against capacity, verdict and evidence.

/** What is shown first, by its name in the prediction: words, unit, and whether more is better. */
const HEADLINES = [
  ["step_time_s", "step time", "s", false], ["e2e_s", "a request from end to end", "s", false],
  ["ttft_s", "time to first token", "s", false], ["itl_s", "between tokens", "s", false],
  ["tokens_per_s_per_gpu", "tokens/s per GPU", "rate", true], ["mfu", "MFU", "share", true],
  ["requests_per_s", "requests/s", "rate", true], ["attainment", "requests that keep the promises", "share", true],
];
const HEADLINE_FORMS = {s: formatSeconds, rate: fourDigits, share: (value) => formatPercent(value, 2)};

/** A name of the prediction in words: "tp_comm_s" is "tp comm". */
const inWords = (name) => name.replace(/_(s|bytes)$/, "").replaceAll("_", " ");

/** The time that a plan is judged by. */
const wholeTime = (prediction) => prediction.step_time_s ?? prediction.e2e_s ?? null;

/** A difference in percent: "−3.2 %", small ones with two digits; nothing where there is none. */
function changeText(value, before) {
  if (!isValue(value) || !isValue(before) || before === 0 || value === before) return "";
  const share = value / before - 1;
  const size = 100 * Math.abs(share);
  const digits = size < 0.1 ? Number(size.toPrecision(2)) : size.toFixed(size < 10 ? 2 : 1);
  return `${share < 0 ? "−" : "+"}${digits}${THIN}%`;
}

/** A tile for each headline that the prediction has. */
function drawHeadline(prediction, base) {
  const known = HEADLINES.filter(([name]) => prediction[name] !== undefined);
  byId("headline").replaceChildren(...known.map(([name, words, form, moreIsBetter]) => {
    const value = prediction[name], change = changeText(value, base?.[name]);
    const className = moreIsBetter === value > base?.[name] ? "better" : "worse";
    const says = change ? element("small", {className}, `${change} against the study's`) : "";
    const text = isValue(value) ? HEADLINE_FORMS[form](value) : MISSING;
    return element("div", {}, element("dt", {}, words), element("dd", {}, text, says));
  }));
}

/** What the plan lacks, and the plans that come nearest to it. */
function drawVerdict(prediction) {
  const {status, reason} = prediction, verdict = byId("verdict");
  const isFeasible = status === "ok";
  const why = reason && reason !== "none" ? ` (${inWords(reason)})` : "";
  const missed = (prediction.missed ?? []).map(({bound, by}) => `${bound} by ${formatPercent(by)}`).join(", ");
  verdict.textContent = isFeasible ? "Feasible." : status === "missed" ? `Misses ${missed}.` :
      `Not feasible: ${inWords(status)}${why}: ${VERDICTS[status] ?? ""}.`;
  verdict.className = isFeasible ? "better" : "worse";
  byId("nearest").replaceChildren(...(prediction.nearest_feasible ?? []).map(({changes, plan, ...near}) => {
    const says = `${formatNumber(wholeTime(near), "s")}, ${formatNumber(near.memory_peak_bytes, "byte")}`;
    const text = `Nearest feasible: ${changes} (${says})`;
    const button = element("button", {type: "button", className: "save"}, text);
    button.onclick = () => setPlan(planText(plan));
    return button;
  }));
}

/** A plan of a prediction as `--point` takes it. */
const planText = (plan) => Object.entries(plan).map(([name, value]) => `${name}=${value}`).join(",");

/** Parts of a bar: [name, share of the width, text, place of its hatching]. */
function barParts(parts) {
  return parts.map(([name, share, text, place]) => {
    const part = element("span", {title: `${name}: ${text}`});
    part.style.width = `${100 * share}%`;
    part.style.backgroundImage = tileUrl(place);
    return part;
  });
}

/** Keys of hatchings with words. */
const legendOf = (parts) => parts.map(([name, , text, place]) => element("li", {}, keyOf(place), text ? `${name} ${text}` : name));

/** Memory by kind, on a bar as long as the capacity or the need, with a mark at the capacity. */
function drawMemory({memory, memory_peak_bytes: peak, memory_capacity_bytes: capacity, memory_notes: notes}) {
  const bar = byId("memory-bar"), isKnown = isValue(peak) && isValue(capacity);
  const whole = Math.max(peak, capacity);
  const kinds = isKnown ? Object.entries(memory).filter(([, bytes]) => isValue(bytes) && bytes > 0) : [];
  const parts = kinds.map(([name, bytes]) => [inWords(name), bytes / whole, formatBytes(bytes), MEMORY_ORDER.indexOf(name)]);
  const limit = element("i", {className: "limit", title: `capacity ${formatBytes(capacity)}`});
  limit.style.left = `${100 * capacity / whole}%`;
  bar.hidden = !isKnown;
  bar.replaceChildren(...barParts(parts), ...(isKnown ? [limit] : []));
  byId("memory-parts").replaceChildren(...legendOf(parts));
  const left = capacity - peak;
  byId("memory-says").textContent = isKnown ? `${formatBytes(peak)} of ${formatBytes(capacity)}: ` +
      [left >= 0 ? `${formatBytes(left)} left` : `${formatBytes(-left)} too much`, ...notes].join("; ") : "not known for this plan";
}

/** How far the time can be trusted, and what says so. */
function drawEvidence(prediction) {
  const {expected_error: error, evidence, evidence_reason: reason, expected_error_of: of} = prediction;
  const expected = isValue(error) ? `Expected error ${formatPercent(error)} (of ${inWords(of ?? "the time")}); ` : "";
  const outside = prediction.outside_domain ? " The plan is outside of the domain of this model: see --mode checked." : "";
  byId("evidence").textContent = `${expected}evidence: ${evidence}${reason ? `: ${reason}` : ""}.${outside}`;
}

/** All of it. */
function drawAnswer({prediction}, base) {
  drawHeadline(prediction, base);
  drawVerdict(prediction);
  drawMemory(prediction);
  drawEvidence(prediction);
}
