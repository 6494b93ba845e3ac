// Conditions on rows, in the language of `shardscape top --where`.
//
// Loosest first: or | and | not | comparison (== != < <= > >=) | + - | * / % | unary - | number | name | 'text' | true | false | ( ).
// A number may have a unit behind it (70 s, 60 GB, 40 %) and is then in SI units. Columns go by their name, the one without its unit, as axes of
// plans, or as paths of the study (device.hbm.bandwidth).
// A column of names compares by == and != with one of its names, bare or quoted. A missing value fails every comparison but !=.

/** What is wrong with a condition, for its writer. */
class ConditionError extends Error {}

/** As sweep/space/number_unit.h has them. */
const NUMBER_UNITS = Object.assign(Object.create(null), {
  ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, KiB: 2 ** 10, MiB: 2 ** 20,
  GiB: 2 ** 30, TiB: 2 ** 40, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, Hz: 1, MHz: 1e6, GHz: 1e9, "/s": 1, "/min": 1 / 60,
});

/** What a number is multiplied by for the unit behind it, and where that ends; a '%' before an operand is the remainder. */
function unitBehind(text, from) {
  const percent = /\s*%(?=\s*($|\)|and\b|or\b|[<>=!+*\/]))/y, word = /\s*([A-Za-z]+(?:\/s)?|\/s|\/min)(?![A-Za-z0-9_])/y;
  percent.lastIndex = word.lastIndex = from;
  if (percent.test(text)) return [0.01, percent.lastIndex];
  const match = word.exec(text), factor = match ? NUMBER_UNITS[match[1]] : undefined;
  return factor === undefined ? [1, from] : [factor, word.lastIndex];
}

/** The words, numbers, texts and signs of a condition; the last one is its end. */
function tokensOf(text) {
  const pattern = /\s*(?:('[^']*'|"[^"]*")|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?=(?:[kMGTP]i?B(?:\/s)?|B|[MG]?Hz|[num]?s|min|h)?(?![A-Za-z0-9_])))|([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*|[A-Za-z0-9_]+)|(==|!=|<=|>=|[<>+\-*\/%()]))/y;
  const tokens = [];
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    if (/^\s*$/.test(text.slice(start))) break;
    const match = pattern.exec(text);
    if (!match) {
      const rest = text.slice(start).trim();
      const instead = {"=": "==", "&": "and", "|": "or", "!": "not"}[rest[0]];
      throw new ConditionError(`unexpected '${rest[0]}' at position ${text.length - text.slice(start).trimStart().length + 1}${instead ? `: write '${instead}'` : ""}`);
    }
    const [, quoted, number, word, symbol] = match;
    if (quoted) tokens.push({kind: "text", text: quoted.slice(1, -1)});
    else if (number) {
      const [factor, end] = unitBehind(text, pattern.lastIndex);
      pattern.lastIndex = end;
      tokens.push({kind: "number", text: number, value: Number(number) * factor});
    }
    else if (word) tokens.push({kind: "word", text: word});
    else tokens.push({kind: "symbol", text: symbol});
  }
  tokens.push({kind: "end", text: "the end"});
  return tokens;
}

/** Columns by full and short name, and without the unit; paths with '_' for '.'. */
const conditionNames = new Map(DATA.columns.map((column) => [column.name, column]));
for (const column of DATA.columns) {
  const bare = column.name.replace(/_(bytes_per_s|bytes|per_s|s|hz)$/, "");
  if (!conditionNames.has(bare)) conditionNames.set(bare, column);
}
if (COLUMNS.has("memory_peak_bytes")) conditionNames.set("memory", COLUMNS.get("memory_peak_bytes"));
for (const [full, brief] of Object.entries(SHORT)) {
  if (COLUMNS.has(full)) conditionNames.set(brief, COLUMNS.get(full));
}

/** A function of the row. ConditionError says what is wrong. Operands are {type: number|truth|choice|word, at, column, text}. */
function parseCondition(text) {
  const tokens = tokensOf(text);
  let at = 0;
  const peek = () => tokens[at];
  const isSymbol = (...symbols) => peek().kind === "symbol" && symbols.includes(peek().text);
  const isWord = (word) => peek().kind === "word" && peek().text === word;

  const need = (operand, type) => {
    if (operand.type === "word") throw new ConditionError(`unknown name '${operand.text}'`);
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
    return {type: "truth", text: sign, at: (row) => compare(Number(a(row)), Number(b(row)))};
  }

  const ARITHMETIC = {"+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b};
  function arithmetic(signs, next) {
    let left = next();
    while (isSymbol(...signs)) {
      const sign = tokens[at++].text, apply = ARITHMETIC[sign];
      const a = need(left), b = need(next());
      left = {type: "number", text: sign, at: (row) => apply(Number(a(row)), Number(b(row)))};
    }
    return left;
  }
  const sum = () => arithmetic(["+", "-"], product);
  const product = () => arithmetic(["*", "/", "%"], unary);
  function unary() {
    if (!isSymbol("-")) return primary();
    ++at;
    const inside = need(unary());
    return {type: "number", text: "-", at: (row) => -inside(row)};
  }
  function primary() {
    const token = tokens[at++];
    if (token.kind === "symbol" && token.text === "(") {
      const inside = disjunction();
      if (!isSymbol(")")) throw new ConditionError(`')' is due, not '${peek().text}'`);
      ++at;
      return inside;
    }
    if (token.kind === "number") return {type: "number", text: token.text, at: () => token.value};
    if (token.kind === "text") return {type: "word", text: token.text};
    const column = token.kind === "word" ? conditionNames.get(token.text.replace(/^(space|workload|hardware)\./, "").replaceAll(".", "_")) : undefined;
    if (column) {
      // A missing value is NaN here, which no comparison but != accepts.
      const value = (row) => column.at(row) ?? NaN;
      return {type: column.names ? "choice" : "number", text: token.text, column: column.names ? column : undefined, at: value};
    }
    if (token.text === "true" || token.text === "false") return {type: "truth", text: token.text, at: () => token.text === "true"};
    if (token.kind === "word" && !["and", "or", "not"].includes(token.text)) return {type: "word", text: token.text};
    throw new ConditionError(`a number, a name or '(' is due, not '${token.text}'`);
  }

  const whole = need(disjunction(), "truth");
  if (peek().kind !== "end") throw new ConditionError(`unexpected '${peek().text}'`);
  return whole;
}
