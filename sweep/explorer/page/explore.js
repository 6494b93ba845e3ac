// The page as a whole: asks the engine when something changes, and draws what it says.

const front = new Engine();
let second;
/** The engine for what takes longer; it starts when it is first needed. */
const behind = () => (second ??= new Engine());

const baseTexts = new Map();  // numbers of the study as it is, by key
let about, base, shown;       // the study; its own prediction; the last answer that had one
let isSettled = false;

/** Draws all that an answer changes. */
function drawShown() {
  const {prediction} = shown;
  drawAnswer(shown, base?.prediction);
  drawBreakdown(prediction, base?.prediction, state.set.size + state.point.size > 0);
  drawOperators(prediction);
  drawShare(shown);
}

/** Predicts the present state; `passing` while a slider moves, when only the prediction follows. */
async function refresh(passing) {
  isSettled = false;
  showChanges();
  const changes = changesOf(state);
  // A schedule of very many operations would hold up a slider.
  const isLong = passing && schedule.shown?.spans.length > 5000;
  const wanted = {schedule: about.phase === "training" && !isLong, operators: byId("operators").open};
  const slow = setTimeout(() => { byId("busy").hidden = false; }, 300);
  const answer = await front.ask({ask: "predict", ...changes, ...wanted}, "predict");
  clearTimeout(slow);
  if (!answer) return;
  byId("busy").hidden = true;
  showProblems(answer.problems ?? []);
  if (answer.problems) return;
  shown = answer;
  drawShown();
  if (wanted.schedule) drawSchedule(answer.schedule);
  sayProgress();
  isSettled = passing;
  if (passing) return;
  const fields = await front.ask({ask: "fields", ...changes}, "fields");
  if (!fields || fields.problems) return;
  drawFields(fields);
  drawSweepScatter();
  askWorth();
  isSettled = true;
}

/** What a change does to the page; keys held down on a slider are one step for "back". */
let remembering;
function stateChanged(passing) {
  clearTimeout(remembering);
  if (!passing) remembering = setTimeout(rememberState, 400);
  refresh(passing);
}

/** Whether all that the last change leads to is on the page and in its address. */
const settled = () => isSettled && worth.rows.length === worth.total && `#${fragmentOf(state)}` === (location.hash || "#");

/** What the study is. */
function drawFacts() {
  const named = ["model", "cluster", "device", "stack", "phase"].map((label) => [label, about[label]]);
  byId("facts").replaceChildren(...pairsOf([...named, ["GPUs", about.gpus && formatCount(about.gpus)], ["assumes", about.assumptions?.join("; ")]]));
}

/** Loads the study, shows the state of the address, then asks for the study as it is, to compare. */
async function start() {
  takeFragment(location.hash);
  about = await front.loaded;
  byId("loading").hidden = !about.problems;
  if (about.problems) {
    byId("loading").textContent = `The study cannot be explored: ${about.problems.join("; ")}`;
    byId("loading").className = "error";
    return;
  }
  DATA.title = about.title;
  drawFacts();
  setUpFrame();
  setUpFields();
  setUpSchedule();
  setUpSweep();
  setUpShare();
  byId("operators").ontoggle = () => byId("operators").open && refresh(true);
  addEventListener("hashchange", () => {
    if (`#${fragmentOf(state)}` === (location.hash || "#")) return;
    takeFragment(location.hash);
    refresh(false);
  });
  // The inputs scroll below the prediction, which stays in view.
  new ResizeObserver(([{target}]) => byId("inputs").style.setProperty("--answer-height", `${target.offsetHeight}px`))
      .observe(byId("answer"));
  keepDrawn(() => {
    if (shown) drawShown();
    drawSchedule(schedule.shown);
    drawSweepScatter();
  });
  await refresh(true);
  document.documentElement.dataset.firstAnswerMs = performance.now().toFixed(0);
  const {version, commit} = DATA.program;
  byId("origin").textContent = `Shardscape ${version}${commit && commit !== "unknown" ? ` (${commit.slice(0, 12)})` : ""}; first answer after ` +
      `${formatSeconds(performance.now() / 1000)}. Charts: Chart.js, MIT licence.`;
  const study = {set: [], point: ""};
  const [fields, prediction] = await Promise.all([front.ask({ask: "fields", ...study}), front.ask({ask: "predict", ...study})]);
  for (const field of (fields.groups ?? []).flatMap((group) => group.fields)) baseTexts.set(field.key, String(field.text ?? field.value));
  base = prediction.problems ? undefined : prediction;
  // A link whose state cannot be computed leaves the lines of the study to mend it with.
  if (!shown && fields.groups) {
    drawFields(fields);
  }
  await refresh(false);
}

start();
