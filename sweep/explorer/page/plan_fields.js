// The axes of the plan: degrees with buttons that step, choices as lists. What is not chosen follows the study.

/** Values that the buttons of an axis step through. */
function stepsOf({kind, values = [], low = 1, high = 1 << 20}, value) {
  const listed = values.filter((one) => typeof one === "number");
  const more = kind === "integer" ? [value - 1, value + 1] : Array.from({length: 21}, (_, power) => 1 << power);
  const all = kind === "integer" && listed.length > 1 ? listed : [...listed, ...more];
  return [...new Set(all)].filter((one) => one >= low && one <= high).sort((a, b) => a - b);
}

/** A list of names, each once. */
const selectOf = (id, names) => element("select", {id}, ...[...new Set(names.map(String))].map((name) => element("option", {}, name)));

/** A button that takes a change back. */
function resetButton(name, onclick) {
  const words = `${name} as the study has it`;
  return element("button", {type: "button", className: "save reset", ariaLabel: words, title: words, onclick}, "↺");
}

/** The control of an axis; `take` gets its text. */
function axisControl(axis, id, take) {
  if (axis.kind === "flag") {
    const box = element("input", {type: "checkbox", id, checked: ["1", "true"].includes(String(axis.value))});
    box.onchange = () => take(box.checked ? "1" : "0");
    return [box];
  }
  if (axis.kind === "choice") {
    const list = selectOf(id, [...(axis.choices ?? []), ...(axis.values ?? []), axis.value]);
    list.value = String(axis.value);
    list.onchange = () => take(list.value);
    return [list];
  }
  const box = element("input", {type: "text", id, value: String(axis.value), spellcheck: false, autocomplete: "off"});
  const known = element("datalist", {id: `${id}-known`}, ...(axis.values ?? []).map((value) => element("option", {value})));
  box.setAttribute("list", known.id);
  box.onchange = () => take(box.value.trim() || undefined);
  if (axis.kind === "order") return [box, known];
  box.inputMode = "numeric";
  const step = (sign, direction) => {
    const button = element("button", {type: "button", className: "save", ariaLabel: `${axis.name} ${direction}`}, sign);
    button.onclick = () => {
      const value = Number(box.value), steps = stepsOf(axis, value);
      const next = sign === "+" ? steps.find((one) => one > value) : steps.findLast((one) => one < value);
      if (next !== undefined) take(String(next));
    };
    return button;
  };
  return [step("−", "lower"), box, step("+", "higher"), known];
}

/** A line per axis. The control that had the focus has it again. */
function drawPlanFields(plan) {
  const focused = document.activeElement?.dataset?.spot;
  byId("plan-fields").replaceChildren(...plan.map((axis) => {
    const id = `axis-${axis.name}`, isDegree = axis.kind === "degree" || axis.kind === "pool";
    const followers = plan.filter(({name, fill}) => isDegree && fill && name !== axis.name).map(({name}) => name);
    const take = (text) => setAxis(axis.name, text, followers);
    const controls = [...axisControl(axis, id, take), resetButton(axis.name, () => take(undefined))];
    controls.forEach((control, index) => { control.dataset.spot = `${axis.name}/${index}`; });
    const label = element("label", {htmlFor: id}, axis.name, element("small", {}, axis.meaning ?? ""));
    const line = element("div", {className: "field axis"}, label, ...controls);
    line.dataset.name = axis.name;
    return line;
  }), element("p", {className: "error", id: "plan-problem"}));
  if (focused) [...byId("plan-fields").querySelectorAll("[data-spot]")].find(({dataset}) => dataset.spot === focused)?.focus();
}
