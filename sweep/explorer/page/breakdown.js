// Where the time goes: a bar and a table by class, the study's own plan beside the present one, and the operators.

/** Classes of time in their order: [name, seconds now, seconds before, place of the hatching]. */
function classesOf(prediction, base) {
  return Object.entries(prediction.breakdown ?? {})
      .map(([name, seconds], place) => [inWords(name), seconds ?? 0, base?.breakdown?.[name] ?? 0, place])
      .filter(([, now, before]) => now > 0 || before > 0);
}

/** One bar with its words. */
function timeBar(words, classes, at, longest) {
  const total = classes.reduce((sum, one) => sum + one[at], 0);
  const bar = element("div", {className: "bar", role: "img", ariaLabel: `${words}: ${formatSeconds(total)}`});
  const there = classes.filter((one) => one[at] > 0);
  bar.append(...barParts(there.map((one) => [one[0], one[at] / longest, formatSeconds(one[at]), one[3]])));
  return element("div", {}, element("p", {className: "note"}, `${words}: ${formatSeconds(total)}`), bar);
}

/** Bars and table. */
function drawBreakdown(prediction, base, isChanged) {
  const classes = classesOf(prediction, base), known = isValue(wholeTime(prediction));
  const sum = (at) => classes.reduce((total, one) => total + one[at], 0);
  const [now, before] = [sum(1), sum(2)], longest = Math.max(now, before);
  const bars = [...(known ? [["now", 1]] : []), ...(isChanged && before > 0 ? [["the study's own", 2]] : [])];
  byId("breakdown-bars").replaceChildren(...bars.map(([words, at]) => timeBar(words, classes, at, longest)));
  const change = (a, b) => changeText(a, b) || (a === b ? "=" : MISSING);
  const row = (head, a, b) => [head, ...(known ? [formatSeconds(a), formatPercent(a / now)] : [MISSING, MISSING]), formatSeconds(b),
                               known ? change(a, b) : MISSING];
  const keyed = ([name, , , place]) => element("span", {}, keyOf(place), name);
  fillTable(byId("breakdown-table"), ["class", "now", "share", "the study's", "change"],
            [...classes.map((one) => row(keyed(one), one[1], one[2])), row("together", now, before)], [1, 2, 3, 4]);
}

/** The operators that take most of the time; the engine lists them only while they are looked at. */
function drawOperators({operators = [], load_time: load = []}) {
  if (!byId("operators").open) return;
  const MOST = 30, sorted = [...operators].sort((a, b) => b.share - a.share);
  byId("operators-say").textContent = sorted.length > MOST ? `The ${MOST} longest of ${sorted.length}.` : "";
  if (load.length > 0) {
    fillTable(byId("operator-table"), ["part of a request's time", "time", "share"],
              load.map(({part, time_s: time, share}) => [part, formatNumber(time, "s"), formatPercent(share)]), [1, 2]);
    return;
  }
  const row = (one) => [one.phase, inWords(one.operator), [one.shape, one.algorithm && inWords(one.algorithm)].filter(Boolean).join(", "),
                        formatNumber(one.count, "1"), formatNumber(one.time_s, "s"), formatPercent(one.share), one.bound ?? MISSING];
  fillTable(byId("operator-table"), ["phase", "operator", "shape", "times", "each", "share", "bound by"],
            sorted.slice(0, MOST).map(row), [3, 4, 5]);
}
