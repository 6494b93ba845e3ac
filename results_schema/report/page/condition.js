// Conditions on rows, in the language of `shardscape top --where`.
//
// Loosest first: or | and | not | comparison (== != < <= > >=) | + - | * / % | unary - | number | name | 'text' | true | false | ( ).
// A number may have a unit behind it (70 s, 60 GB, 40 %) and is then in SI units. Columns go by their name, the one without its unit, as axes of
// plans, as paths of the study (device.hbm.bandwidth), or by the label that the page shows (step time), whose capital letters do not count.
// A column of names compares by == and != with one of its names, bare or quoted. A missing value fails every comparison but !=.

/** What is wrong with a condition, for its writer. */
class ConditionError extends Error {}

/** As sweep/space/expression_lexer.cc has them: factors, by what they measure. */
const NUMBER_UNITS = {
  s: {ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600},
  byte: {B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40},
  "byte s-1": {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}, Hz: {Hz: 1, MHz: 1e6, GHz: 1e9}, "s-1": {"/s": 1, "/min": 1 / 60}, 1: {"%": 0.01},
};
const UNIT_KINDS = new Map(Object.entries(NUMBER_UNITS).flatMap(([kind, units]) => Object.keys(units).map((unit) => [unit, kind])));

/** The unit behind a number, and where that ends; a '%' before an operand is the remainder. */
function unitBehind(text, from) {
  const pattern = /\s*(?:(%)(?=\s*($|\)|and\b|or\b|[<>=!+*\/]))|([A-Za-z]+(?:\/s)?|\/s|\/min)(?![A-Za-z0-9_]))/y;
  pattern.lastIndex = from;
  const match = pattern.exec(text), unit = match && (match[1] ?? match[3]), kind = UNIT_KINDS.get(unit);
  return kind === undefined ? {factor: 1, end: from} : {unit, kind, factor: NUMBER_UNITS[kind][unit], end: pattern.lastIndex};
}

/** Labels of several words, the longest first. */
const labelPattern = new RegExp(`\\s*(${DATA.columns.map(partName).filter((label) => /\W/.test(label)).sort((a, b) => b.length - a.length)
    .map((label) => label.replace(/[^\w ]/g, "\\$&").replaceAll(" ", "\\s+")).join("|") || "$^"})(?![A-Za-z0-9_])`, "iy");

/** The words, numbers, texts and signs of a condition; the last one is its end. */
function tokensOf(text) {
  const pattern = /\s*(?:('[^']*'|"[^"]*")|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?=(?:[kMGTP]i?B(?:\/s)?|B|[MG]?Hz|[num]?s|min|h)?(?![A-Za-z0-9_])))|([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*|[A-Za-z0-9_]+)|(==|!=|<=|>=|[<>+\-*\/%()]))/y;
  const tokens = [];
  while (pattern.lastIndex < text.length) {
    const start = labelPattern.lastIndex = pattern.lastIndex;
    if (/^\s*$/.test(text.slice(start))) break;
    const label = labelPattern.exec(text);
    if (label) {
      pattern.lastIndex = labelPattern.lastIndex;
      tokens.push({kind: "word", text: label[1].replace(/\s+/g, " ")});
      continue;
    }
    const match = pattern.exec(text);
    if (!match) {
      const rest = text.slice(start).trim();
      const instead = {"=": "==", "&": "and", "|": "or", "!": "not"}[rest[0]];
      throw new ConditionError(`unexpected '${rest[0]}' at position ${text.length - text.slice(start).trimStart().length + 1}${instead ? `: write '${instead}'` : ""}`);
    }
    const [, quoted, number, word, symbol] = match;
    if (quoted) tokens.push({kind: "text", text: quoted.slice(1, -1)});
    else if (number) {
      const {unit, kind, factor, end} = unitBehind(text, pattern.lastIndex);
      pattern.lastIndex = end;
      tokens.push({kind: "number", text: unit ? `${number} ${unit}` : number, value: Number(number) * factor, unit: kind});
    }
    else if (word) tokens.push({kind: "word", text: word});
    else tokens.push({kind: "symbol", text: symbol});
    if (tokens.length > 500) throw new ConditionError("the condition is too long");
  }
  tokens.push({kind: "end", text: "the end"});
  return tokens;
}

/** Columns by all their names: a later kind of name takes none that an earlier one has. */
const conditionNames = new Map(DATA.columns.map((column) => [column.name, column]));
if (COLUMNS.has("memory_peak_bytes")) conditionNames.set("memory", COLUMNS.get("memory_peak_bytes"));
for (const [full, brief] of Object.entries(SHORT)) conditionNames.set(brief, COLUMNS.get(full));
for (const nameOf of [(column) => column.name.replace(/_(bytes_per_s|bytes|per_s|s|hz)$/, ""), (column) => partName(column).toLowerCase()]) {
  for (const column of DATA.columns) {
    if (!conditionNames.has(nameOf(column))) conditionNames.set(nameOf(column), column);
  }
}
/** The column that a word of a condition names. */
const namedColumn = (text) => conditionNames.get(text) ?? conditionNames.get(text.toLowerCase()) ??
    conditionNames.get(text.replace(/^(space|workload|hardware)\./, "").replaceAll(".", "_"));

/** Letters to change, put in or leave out between two words. */
function editsBetween(a, b) {
  let costs = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const before = costs;
    costs = [i];
    for (let j = 1; j <= b.length; ++j) costs[j] = Math.min(before[j] + 1, costs[j - 1] + 1, before[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
  }
  return costs[b.length];
}

/** All names, those nearest to a word first; `near` of them are near enough to be meant. */
function namesBy(text) {
  const plain = (name) => name.toLowerCase().replace(/[\s_.-]/g, ""), word = plain(text);
  const ranked = [...new Set([...conditionNames.values()].map((column) => SHORT[column.name] ?? column.name))].map((name) => {
    const labels = [name, partName(namedColumn(name)), namedColumn(name).name].map(plain);
    return {name, edits: Math.min(...labels.map((label) => (word.length > 2 && label.startsWith(word) ? 1 : editsBetween(word, label))))};
  });
  const names = ranked.sort((a, b) => a.edits - b.edits);
  return {names: names.map(({name}) => name), near: names.filter(({edits}) => edits <= Math.max(1, word.length / 3) && edits < word.length).length};
}

/** A function of the row. ConditionError says what is wrong. Operands are {type: number|truth|choice|word, at, column, text}. */
function parseCondition(text) {
  const tokens = tokensOf(text);
  let at = 0;
  const peek = () => tokens[at];
  const isSymbol = (...symbols) => peek().kind === "symbol" && symbols.includes(peek().text);
  const isWord = (word) => peek().kind === "word" && peek().text === word;

  const need = (operand, type) => {
    if (operand.type === "word") {
      const {names, near} = namesBy(operand.text);
      throw new ConditionError(`unknown name '${operand.text}'${near > 0 ? `; did you mean '${names[0]}'?` : ""} Names: ${names.join(", ")}`);
    }
    if (operand.type === "choice")
      throw new ConditionError(`compare '${operand.text}' by == or != with one of ${operand.column.names.join(", ")}`);
    if (type === "truth" && operand.type !== "truth") throw new ConditionError(`'${operand.text}' is a value, not a condition; compare it`);
    return operand.at;
  };

  function logical(word, next, join) {
    let left = next();
    while (isWord(word)) {
      ++at;
      const a = need(left, "truth"), b = need(next(), "truth");
      left = {type: "truth", text: word, at: (row) => join(a, b, row)};
    }
    return left;
  }
  const disjunction = () => logical("or", conjunction, (a, b, row) => a(row) || b(row));
  const conjunction = () => logical("and", negation, (a, b, row) => a(row) && b(row));
  function negation() {
    if (!isWord("not")) return comparison();
    ++at;
    const inside = need(negation(), "truth");
    return {type: "truth", text: "not", at: (row) => !inside(row)};
  }

  const COMPARE = {
    "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  };
  function codeOf(column, word) {
    const code = column.names.indexOf(word.text);
    if (code < 0) throw new ConditionError(`'${column.name}' is never '${word.text}'; it is one of ${column.names.join(", ")}`);
    return () => code;
  }
  function comparison() {
    const left = sum();
    if (!isSymbol(...Object.keys(COMPARE))) return left;
    const sign = tokens[at++].text;
    let right;
    if (left.type === "choice" && (peek().kind === "word" || peek().kind === "text")) {
      right = {type: "word", text: tokens[at++].text};
    } else {
      right = sum();
    }
    if (isSymbol(...Object.keys(COMPARE))) throw new ConditionError("comparisons do not chain; write 'a < b and b < c'");
    const column = left.column ?? right.column;
    if (column && (left.type === "choice" || right.type === "choice")) {
      if (sign !== "==" && sign !== "!=") throw new ConditionError("names have no order; compare them by == or !=");
      const word = left.type === "choice" ? right : left;
      if (word.type !== "word") throw new ConditionError(`'${column.name}' compares with one of ${column.names.join(", ")}`);
      const code = codeOf(column, word);
      return {type: "truth", text: sign, at: (row) => COMPARE[sign](column.at(row), code())};
    }
    const a = need(left), b = need(right), compare = COMPARE[sign];
    const [other, number] = left.quantity && !(right.quantity && !right.named) ? [right, left] : [left, right];
    if (number.quantity && number.unit && other.unit && number.unit !== other.unit) {
      const fitting = Object.keys(NUMBER_UNITS[other.unit] ?? {}).filter((unit) => unit !== "%");
      throw new ConditionError(`'${other.text}' does not compare with '${number.text}': ` +
          (fitting.length > 0 ? `numbers for it have no unit or one of ${fitting.join(", ")}` : other.unit === "1" ? "numbers for it have no unit, or are in %" : "numbers for it have no unit"));
    }
    return {type: "truth", text: sign, at: (row) => compare(Number(a(row)), Number(b(row)))};
  }

  const ARITHMETIC = {"+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b};
  function arithmetic(signs, next) {
    let left = next();
    while (isSymbol(...signs)) {
      const sign = tokens[at++].text, apply = ARITHMETIC[sign];
      const a = need(left), right = next(), b = need(right), adds = sign === "+" || sign === "-";
      // Of a sum both sides have the unit; a product with a plain number keeps it; of others the unit is not known.
      const unit = left.unit && right.unit ? (adds && left.unit === right.unit ? left.unit : undefined) : sign === "/" || sign === "%" ? left.unit : left.unit ?? right.unit;
      left = {type: "number", text: `${left.text} ${sign} ${right.text}`, unit, quantity: left.quantity || right.quantity, named: left.named || right.named, at: (row) => apply(Number(a(row)), Number(b(row)))};
    }
    return left;
  }
  const sum = () => arithmetic(["+", "-"], product);
  const product = () => arithmetic(["*", "/", "%"], unary);
  function unary() {
    if (!isSymbol("-")) return primary();
    ++at;
    const operand = unary(), inside = need(operand);
    return {...operand, type: "number", text: `-${operand.text}`, at: (row) => -inside(row)};
  }
  function primary() {
    const token = tokens[at++];
    if (token.kind === "symbol" && token.text === "(") {
      const inside = disjunction();
      if (!isSymbol(")")) throw new ConditionError(`')' is due, not '${peek().text}'`);
      ++at;
      return inside;
    }
    if (token.kind === "number") return {type: "number", text: token.text, unit: token.unit, quantity: Boolean(token.unit), at: () => token.value};
    if (token.kind === "text") return {type: "word", text: token.text};
    const column = token.kind === "word" ? namedColumn(token.text) : undefined;
    if (column) {
      // A missing value is NaN here, which no comparison but != accepts.
      const value = (row) => column.at(row) ?? NaN;
      return {type: column.names ? "choice" : "number", text: token.text, column: column.names ? column : undefined, unit: column.unit, named: true, at: value};
    }
    if (token.text === "true" || token.text === "false") return {type: "truth", text: token.text, at: () => token.text === "true"};
    if (token.kind === "word" && !["and", "or", "not"].includes(token.text)) return {type: "word", text: token.text};
    throw new ConditionError(`a number, a name or '(' is due, not '${token.text}'`);
  }

  const whole = need(disjunction(), "truth");
  if (peek().kind !== "end") throw new ConditionError(`unexpected '${peek().text}'`);
  return whole;
}
