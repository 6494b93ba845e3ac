// The numbers and choices of device, fabric, stack and workload: a line each, with a slider, a text and a way back.

const SLIDER_STEPS = 1000;

/** Lines of the groups by key: {field, box, text, slider, reset, problem, range}. */
const lines = new Map();

/** The ends of a field's slider; nothing where there is no sensible pair. */
function rangeOf({value, low, high}) {
  if (!isValue(value)) return undefined;
  if (value > 0) {
    const ends = {low: Math.max(low ?? 0, value / 10), high: Math.min(high ?? Infinity, value * 10), log: true};
    return ends.low < ends.high ? ends : undefined;
  }
  if (value === 0 && isValue(high) && high > 0 && high <= 1000) return {low: Math.max(low ?? 0, 0), high, log: false};
  return undefined;
}

/** Where a value is on a slider, and the value at a place. */
const placeOf = ({low, high, log}, value) => SLIDER_STEPS *
    (log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low));
const valueAt = ({low, high, log}, place) => {
  const share = place / SLIDER_STEPS;
  return log ? low * (high / low) ** share : low + (high - low) * share;
};

/** Another value of a field in the unit that its text has: "2.039 TB/s" becomes "2.5 TB/s". */
function textOf(field, value) {
  const [, number, unit] = /^([-+.\d]+(?:e[-+]?\d+)?)(.*)$/i.exec(String(field.text)) ?? ["", "1", ""];
  const factor = Number(number) === 0 ? 1 : field.value / Number(number);
  const rounded = field.kind === "integer" ? Math.round(value / factor) : Number((value / factor).toPrecision(3));
  return `${rounded}${unit}`;
}

/** The part of a line that is not there for choices and flags. */
function numberControls(field, id, line) {
  const text = element("input", {type: "text", id, spellcheck: false, autocomplete: "off"});
  let waiting;
  const take = (passing) => {
    clearTimeout(waiting);
    line.isTyped = passing;
    setNumber(field.key, text.value.trim() || undefined, passing);
  };
  text.oninput = () => {
    clearTimeout(waiting);
    line.isTyped = true;
    waiting = setTimeout(take, 500, true);
  };
  text.onchange = () => take(false);
  text.onblur = () => { line.isTyped = false; };
  const slider = element("input", {type: "range", min: 0, max: SLIDER_STEPS, step: 1, ariaLabel: `${field.label}, slider`});
  const slide = (passing) => {
    text.value = textOf(line.field, valueAt(line.range, Number(slider.value)));
    slider.ariaValueText = text.value;
    setNumber(field.key, text.value, passing);
  };
  slider.oninput = () => slide(true);
  slider.onchange = () => slide(false);
  return [slider, text];
}

/** A new line for a field. */
function makeLine(field) {
  const id = `field-${field.key}`, line = {field};
  line.problem = element("p", {className: "error", id: `${id}-problem`, hidden: true});
  line.reset = resetButton(field.label, () => setNumber(field.key, undefined));
  if (field.kind === "choice" && field.choices?.length > 0) {
    line.text = selectOf(id, [...field.choices, field.value]);
    line.text.onchange = () => setNumber(field.key, line.text.value);
  } else if (field.kind === "flag") {
    line.text = element("input", {type: "checkbox", id});
    line.text.onchange = () => setNumber(field.key, String(line.text.checked));
  } else {
    [line.slider, line.text] = numberControls(field, id, line);
  }
  line.text.setAttribute("aria-describedby", line.problem.id);
  const label = element("label", {htmlFor: id, title: field.key}, field.label);
  if (field.meaning && field.meaning !== field.label) label.append(element("small", {}, field.meaning));
  line.box = element("div", {className: "field"}, label, ...(line.slider ? [line.slider] : []), line.text, line.reset, line.problem);
  return line;
}

/** Puts the value of a field into its line; a text that is being typed stays. */
function fillLine(line, field) {
  line.field = field;
  if (field.kind === "flag") {
    line.text.checked = String(field.value) === "true";
  } else if (!line.isTyped) {
    line.text.value = line.text.matches("select") ? String(field.value) : state.set.get(field.key) ?? field.text;
  }
  if (!line.slider) return;
  line.range ??= rangeOf(field);
  if (line.range && isValue(field.value)) {
    line.range.low = Math.min(line.range.low, field.value > 0 || !line.range.log ? field.value : line.range.low);
    line.range.high = Math.max(line.range.high, field.value);
  }
  line.slider.hidden = !line.range;
  if (line.range && isValue(field.value)) line.slider.value = placeOf(line.range, field.value);
  line.slider.ariaValueText = line.text.value;
}

/** Draws the plan, and the groups anew where other fields are there than before; fills all lines. */
function drawFields({groups, plan}) {
  drawPlanFields(plan);
  const sameChoices = (a, b) => a.kind === b.kind && String(a.choices) === String(b.choices);
  const fields = groups.flatMap((group) => group.fields);
  const isKnown = (field) => lines.has(field.key) && sameChoices(lines.get(field.key).field, field);
  if (fields.length !== lines.size || !fields.every(isKnown)) {
    const open = new Map([...byId("groups").children].map((group) => [group.dataset.name, group.open])), before = new Map(lines);
    lines.clear();
    byId("groups").replaceChildren(...groups.map(({name, fields: members}) => {
      const summary = element("summary", {}, name, " ", element("span", {className: "note"}));
      const group = element("details", {open: open.get(name) ?? name === "device"}, summary);
      group.dataset.name = name;
      for (const field of members) {
        const line = makeLine(field);
        line.range = before.get(field.key)?.range;
        lines.set(field.key, line);
        group.append(line.box);
      }
      return group;
    }));
  }
  for (const field of fields) fillLine(lines.get(field.key), field);
  showChanges();
  search();
}

/** Marks what is changed, and counts it by group. */
function showChanges() {
  for (const [key, line] of lines) {
    const isChanged = state.set.has(key);
    line.reset.hidden = !isChanged;
    line.box.classList.toggle("changed", isChanged);
    const base = baseTexts.get(key);
    if (isChanged && base !== undefined) line.reset.title = `back to ${base}`;
  }
  for (const group of byId("groups").children) {
    const changed = group.querySelectorAll(".changed").length, all = group.querySelectorAll(".field").length;
    group.querySelector("summary span").textContent = `${all} numbers${changed > 0 ? `, ${changed} changed` : ""}`;
  }
  for (const axis of byId("plan-fields").querySelectorAll(".axis")) {
    const isChanged = state.point.has(axis.dataset.name);
    axis.classList.toggle("changed", isChanged);
    axis.querySelector(".reset").hidden = !isChanged;
  }
  byId("reset-all").disabled = state.set.size + state.point.size === 0;
}

/** Shows the lines that have all words of the search box. */
function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyChanged = byId("only-changed").checked;
  let found = 0;
  for (const group of byId("groups").children) {
    let inGroup = 0;
    for (const box of group.querySelectorAll(".field")) {
      const label = box.querySelector("label"), text = `${group.dataset.name} ${label.title} ${label.textContent}`.toLowerCase();
      box.hidden = !words.every((word) => text.includes(word)) || (onlyChanged && !box.classList.contains("changed"));
      inGroup += box.hidden ? 0 : 1;
    }
    group.hidden = inGroup === 0;
    if (words.length > 0 || onlyChanged) group.open = true;
    found += inGroup;
  }
  byId("search-says").textContent = words.length > 0 || onlyChanged ? `${found} of ${lines.size} numbers` : "";
}

/** Whether a problem speaks of a key, and not of a longer one. */
function speaksOf(problem, key) {
  const at = problem.indexOf(key), before = problem[at - 1] ?? " ", after = problem.slice(at + key.length);
  return at >= 0 && !/[\w.]/.test(before) && !/^\.?\w/.test(after);
}

/** Says problems at the top, and each beside the field that it names. */
function showProblems(problems) {
  byId("problem-box").hidden = problems.length === 0;
  for (const part of document.querySelectorAll(".stales")) part.classList.toggle("stale", problems.length > 0);
  byId("problems").replaceChildren(...problems.map((problem) => element("li", {}, problem)));
  for (const [key, line] of lines) {
    const mine = problems.filter((problem) => state.set.has(key) && speaksOf(problem, key));
    line.problem.textContent = mine.join(" ");
    line.problem.hidden = mine.length === 0;
    if (mine.length > 0) line.box.parentElement.open = true;
    if (mine.length > 0) line.text.setAttribute("aria-invalid", "true");
    else line.text.removeAttribute("aria-invalid");
  }
  const ofPlan = problems.filter((problem) => /^(--)?point\b/.test(problem)), says = byId("plan-problem");
  if (says) says.textContent = ofPlan.join(" ");
}

/** The search box and the button that takes all changes back. */
function setUpFields() {
  byId("search").oninput = search;
  byId("only-changed").onchange = search;
  byId("inputs").onsubmit = (event) => event.preventDefault();
  byId("reset-all").onclick = () => {
    state.set.clear();
    state.point.clear();
    stateChanged(false);
  };
}
