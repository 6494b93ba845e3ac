// Values as people read them: the same forms as the program's own tables.

const MISSING = "–";
const THIN = "\u00a0";  // between a number and its unit: never broken

/** A number that was computed: null stands for a missing one. */
function isValue(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A whole number with commas at thousands. */
function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Four significant digits. */
function fourDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

/** Four digits with a decimal prefix. */
function formatSi(value, unit) {
  if (value === 0) return `0${THIN}${unit}`;
  for (const [factor, prefix] of PREFIXES) {
    if (Math.abs(value) >= factor * 0.99995) return `${fourDigits(value / factor)}${THIN}${prefix}${unit}`;
  }
  return `${value.toPrecision(3)}${THIN}${unit}`;
}

/** Bytes with a binary prefix. */
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return `${bytes.toFixed(unit === 0 ? 0 : 2)}${THIN}${units[unit]}`;
}

/** A time; beyond a thousand seconds without a prefix. */
function formatSeconds(seconds) {
  return Math.abs(seconds) < 999.95 ? formatSi(seconds, "s") : `${formatCount(seconds.toFixed(0))}${THIN}s`;
}

/** A difference of times with its sign. */
const signedSeconds = (seconds) => (seconds === 0 ? `0${THIN}s` : `${seconds < 0 ? "−" : "+"}${formatSeconds(Math.abs(seconds))}`);

/** A share of one in percent. */
function formatPercent(share, digits = 1) {
  const size = (100 * share).toFixed(digits);
  return isValue(share) ? `${Math.abs(share) < 10 ? size : formatCount(Math.round(size))}${THIN}%` : MISSING;
}

/** A slowdown in percent, from ten times the time on as a factor. */
function formatSlowdown(slowdown, digits) {
  if (!(slowdown >= 9)) return formatPercent(slowdown, digits);
  return `${1 + slowdown < 100 ? (1 + slowdown).toFixed(1) : formatCount(Math.round(1 + slowdown))}×`;
}

/** A share of one, as opposed to a plain number. */
function isShare(column) {
  return column.percent_digits !== undefined;
}

/** A number by its UDUNITS unit. */
function formatNumber(value, unit) {
  if (!isValue(value)) return MISSING;
  switch (unit) {
    case "s": return formatSeconds(value);
    case "byte": return formatBytes(value);
    case "byte s-1": return formatSi(value, "B/s");
    case "s-1": return formatSi(value, "/s");
    case "Hz": return formatSi(value, "Hz");
    case "m2": return `${fourDigits(value * 1e6)}${THIN}mm²`;  // a prefix would be squared
    case "1": return Number.isInteger(value) ? formatCount(value) : String(Number(value.toPrecision(4)));
    default: return formatSi(value, unit);
  }
}

/** A cell of a column: the name of a code, a share in percent, a number with its unit. */
function formatValue(column, value) {
  if (!isValue(value)) return MISSING;
  if (column.names && column.names[value] !== undefined) return column.names[value];
  if (column.slowdown) return formatSlowdown(value, column.percent_digits);
  if (isShare(column)) return formatPercent(value, column.percent_digits);
  if (column.name === "outside_domain") return value > 0 ? "yes" : "no";
  if (column.unit === "s-1") return value < 9999.95 ? value.toFixed(1) : formatCount(Math.round(value));
  if (column.group === "id" || (["plan", "workload"].includes(column.group) && value < 10000)) return String(value);
  return formatNumber(value, column.unit);
}

/** Ticks of an axis: no digits that all of them lack. */
function formatTick(column, value) {
  if (column.names) return Number.isInteger(value) ? column.names[value] ?? "" : "";
  const short = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
  if (isShare(column)) return short(formatPercent(value, 2));
  return short(formatNumber(value, column.unit));
}

/** The heading in words: "tp comm", "step time". */
function partName(column) {
  return column.heading.replaceAll("_", " ");
}

/** Statuses in the order of their colours, and what they mean. */
const VERDICTS = {
  ok: "the plan is feasible: it has a time and fits",
  indivisible: "a degree of the plan does not divide what it splits",
  constraint: "a constraint of the study rejects the plan",
  memory: "the fullest device needs more memory than it has",
  unreachable: "faults or the fabric leave devices that cannot reach each other",
  unsupported: "the stack cannot run such a plan",
  out_of_range: "a quantity is beyond what can be computed",
  missed: "the plan is feasible and has a time, but misses a promise or a constraint of the study",
};
