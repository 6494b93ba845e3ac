// The page as a whole: head, condition, and drawing again when the colour scheme changes or the page is printed.

/** What the study is, how much of it there is, and where the page comes from. */
function drawHead() {
  const points = DATA.points === DATA.total_points ? formatCount(DATA.points) : `${formatCount(DATA.points)} of ${formatCount(DATA.total_points)}`;
  const stored = DATA.rows === DATA.points ? "" : `; ${formatCount(DATA.rows)} of them are in the file`;
  byId("facts").replaceChildren(...pairsOf([...DATA.facts, ["seed", DATA.seed], ["points", `${points}, ${formatCount(FEASIBLE)} feasible${stored}`]]));
  if (DATA.selection.text) {
    const note = byId("selection");
    note.hidden = false;
    note.textContent = `These are ${formatCount(DATA.rows)} points, ${DATA.selection.text}.` +
        (DATA.selection.kind === "sample" ? " A better plan may be among the others." : "") +
        (DATA.selection.stands_for_study ? "" : " They do not stand for the rest: what an axis is worth is not shown.");
  }
  if (!DATA.complete) {
    const note = byId("progress");
    note.hidden = false;
    note.textContent = `The sweep is not finished: this is what ${points} points say so far.`;
  }
  const sampled = byId("sampled");
  sampled.hidden = DATA.shown === DATA.feasible;
  sampled.textContent = `${formatCount(DATA.shown)} of ${formatCount(DATA.feasible)} feasible points are in this page: a sample, with all of the Pareto front` +
      ` and the ${DATA.best_kept} best by each output. Counts, axes and faults are of all points.`;
  const commit = DATA.commit && DATA.commit !== "unknown" ? ` (${DATA.commit.slice(0, 12)})` : "";
  byId("origin").textContent = `Shardscape ${DATA.version}${commit}; study ${DATA.study_sha256.slice(0, 16)}. Charts: Chart.js, MIT licence.`;
}

/** The box of the condition: it is read when the reader pauses. */
function setUpCondition() {
  const box = byId("where"), says = byId("where-says");
  const named = (column) => SHORT[column.name] ?? column.name;
  const number = varied.find((column) => !column.names), choice = varied.find((column) => column.names);
  const quoted = (text) => (/^\w+$/.test(text) ? text : `'${text}'`);
  const examples = [];
  if (number) examples.push(`${named(number)} <= ${number.at(0)}`);
  if (choice) examples.push(`${named(choice)} == ${quoted(choice.names[choice.at(0)])}`);
  box.placeholder = examples.join(" and ");
  const help = `Conditions as in top --where, for the points, the best plans${LOAD ? ", the loads" : ""} and the lines across all axes.`;
  says.textContent = help;
  byId("where-known").textContent = DATA.columns.map((column) => (partName(column) === named(column) ? named(column) : `${named(column)} (${partName(column)})`)).join(", ");
  const apply = () => {
    const text = box.value.trim();
    try {
      const holds = text ? parseCondition(text) : undefined;
      state.rows = holds ? everyRow.filter(holds) : everyRow;
      state.condition = text;
      says.textContent = holds ? `${formatCount(state.rows.length)} of ${formatCount(COUNT)} points` : help;
      says.classList.remove("error");
      box.removeAttribute("aria-invalid");
      changed("rows");
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      says.textContent = error.message;
      says.classList.add("error");
      box.setAttribute("aria-invalid", "true");
    }
  };
  let waiting;
  box.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 250);
  };
}

/** Sets up all parts, draws them, and draws them again where the colours change. */
function start() {
  drawHead();
  drawAnswer();
  for (const id of ["explore", "plans"]) byId(id).hidden = COUNT === 0;
  byId("nothing").hidden = COUNT > 0;
  drawMisses();
  drawGlossary();
  setUpVerdicts();
  setUpLoads();
  setUpParallel();
  byId("compare").hidden = COUNT === 0;
  if (COUNT > 0) {
    setUpCondition();
    setUpScatter();
    setUpPlans();
    setUpComparison();
  }
  const drawAxes = setUpAxes(), drawFaults = setUpFaults();
  setUpFrame();
  keepDrawn(() => {
    drawVerdicts();
    if (COUNT > 0) {
      drawScatter();
      drawDetail();
      drawPlans();
      drawLoads();
      drawParallel();
      drawComparison();
    }
    drawAxes();
    drawFaults();
  });
  addPngButtons();
}

start();
