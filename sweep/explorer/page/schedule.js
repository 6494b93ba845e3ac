// The pipeline of a training step: stages down, time across. Only what is in view is drawn, however far it is zoomed.

const PASSES = ["forward", "backward", "weights"];
const schedule = {shown: undefined, byStage: [], gutter: 56, foot: 22};

/** How wide the whole is against what is in view: 1 to where an operation of the median length has 40 pixels. */
function zoomFactor() {
  const {spans, end_s: end} = schedule.shown, view = byId("schedule-view").clientWidth;
  const lengths = spans.map((span) => span.end_s - span.begin_s).sort((a, b) => a - b);
  const median = lengths[lengths.length >> 1] || end;
  const most = Math.min(Math.max(2, 40 * end / (median * view)), 1e5 * 8 / view);
  return most ** (Number(byId("zoom").value) / 100);
}

/** Pixels of a row: stages share some 30 rem, but none is thinner than can be seen. */
const rowHeight = () => Math.max(6, Math.min(28, Math.floor(480 / schedule.shown.stages)));

/** A place of the canvas for a time. */
function timeScale() {
  const view = byId("schedule-view"), width = view.clientWidth - schedule.gutter - 8;
  const whole = width * schedule.factor, {end_s: end} = schedule.shown;
  return {width, end, at: (time) => schedule.gutter + time / end * whole - view.scrollLeft,
          time: (x) => (x - schedule.gutter + view.scrollLeft) / whole * end};
}

/** Ticks of the time in view, and the numbers of the stages. */
function drawTimeAxis(pen, scale, height) {
  const rough = (scale.time(scale.width) - scale.time(0)) / 8, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  pen.fillStyle = colourOf("--ink");
  pen.textAlign = "center";
  const first = Math.max(0, Math.ceil(scale.time(schedule.gutter) / step)), end = schedule.gutter + scale.width + 4;
  for (let tick = first; scale.at(tick * step) < end; ++tick) {
    pen.fillRect(scale.at(tick * step), height - schedule.foot, 1, 4);
    pen.fillText(formatTick({unit: "s"}, tick * step), scale.at(tick * step), height - 6);
  }
  pen.clearRect(0, 0, schedule.gutter - 1, height - schedule.foot);
  pen.textAlign = "right";
  const row = rowHeight(), every = Math.ceil(12 / row);
  for (let stage = 0; stage < schedule.shown.stages; stage += every) {
    pen.fillText(`stage ${stage}`, schedule.gutter - 6, (stage + 0.5) * row + 4);
  }
}

/** Draws what is in view. */
function paintSchedule() {
  if (!schedule.shown || byId("schedule-section").hidden) return;
  const canvas = byId("schedule"), view = byId("schedule-view"), row = rowHeight();
  const width = view.clientWidth, height = schedule.shown.stages * row + schedule.foot, ratio = devicePixelRatio || 1;
  byId("schedule-span").style.width = `${schedule.gutter + 8 + (width - schedule.gutter - 8) * schedule.factor}px`;
  Object.assign(canvas, {width: width * ratio, height: height * ratio});
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  const pen = canvas.getContext("2d"), scale = timeScale();
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  const colours = schedule.colours;
  for (const [stage, boxes] of schedule.byStage.entries()) {
    for (const box of boxes) {
      const left = scale.at(box.begin_s), right = scale.at(box.end_s);
      if (right < schedule.gutter || left > width) continue;
      pen.fillStyle = colours[box.place].fill;
      const wide = Math.max(right - left, 0.5);
      pen.fillRect(left, stage * row + 1, wide > 3 ? wide - 1 : wide, row - 2);
      if (wide < 24 || row < 14 || box.microbatch === undefined) continue;
      pen.fillStyle = colours[box.place].ink;
      pen.textAlign = "center";
      pen.fillText(String(box.microbatch), (left + right) / 2, (stage + 0.5) * row + 4);
    }
  }
  pen.fillStyle = colourOf("--ink");
  drawTimeAxis(pen, scale, height);
  canvas.dataset.drawn = schedule.shown.spans.length;
}

/** What a box is, in words. */
function boxText(box, stage) {
  const chunk = box.chunk > 0 ? `, chunk ${box.chunk}` : "", what = box.name ?? `${box.pass} of microbatch ${box.microbatch}${chunk}`;
  return `stage ${stage}: ${what}, ${formatSeconds(box.begin_s)} to ${formatSeconds(box.end_s)}`;
}

/** Takes the schedule of a prediction, or that there is none. */
function drawSchedule(shown) {
  byId("schedule-section").hidden = !shown || shown.spans.length === 0;
  schedule.shown = byId("schedule-section").hidden ? undefined : shown;
  if (!schedule.shown) return;
  const names = [...new Set(shown.tails.map(({name}) => name))];
  schedule.byStage = Array.from({length: shown.stages}, () => []);
  const kinds = [...PASSES, ...names];
  for (const box of [...shown.spans, ...shown.tails]) {
    schedule.byStage[box.stage]?.push({...box, place: Math.max(0, kinds.indexOf(box.name ?? box.pass))});
  }
  const used = kinds.filter((kind) => names.includes(kind) || shown.spans.some((span) => span.pass === kind));
  byId("schedule-key").replaceChildren(...used.map((kind) => {
    const key = element("span", {className: "key"});
    key.style.background = hueOf(kinds.indexOf(kind));
    return element("li", {}, key, kind);
  }));
  const busy = schedule.byStage.map((boxes) => boxes.reduce((sum, box) => sum + box.end_s - box.begin_s, 0) / shown.end_s);
  const microbatches = shown.spans.reduce((most, span) => Math.max(most, span.microbatch + 1), 0);
  const ends = [Math.min(...busy), Math.max(...busy)].map((share) => formatPercent(share, 0));
  byId("schedule-says").textContent = `${shown.stages} ${shown.stages === 1 ? "stage" : "stages"}, ${microbatches} microbatches, ${formatSeconds(shown.end_s)}; ` +
      `each stage is busy ${[...new Set(ends)].join(" to ")} of it.`;
  schedule.factor = zoomFactor();
  schedule.colours = kinds.map((_, place) => ({fill: hueOf(place), ink: colourOf("--ground")}));
  paintSchedule();
}

/** Zoom keeps the middle of the view; the pointer tells what is under it. */
function setUpSchedule() {
  const view = byId("schedule-view");
  byId("zoom").oninput = () => {
    if (!schedule.shown) return;
    const middle = timeScale().time(schedule.gutter + view.clientWidth / 2);
    schedule.factor = zoomFactor();
    paintSchedule();
    view.scrollLeft += timeScale().at(middle) - schedule.gutter - view.clientWidth / 2;
    paintSchedule();
  };
  view.onscroll = () => requestAnimationFrame(paintSchedule);
  byId("schedule").onpointermove = (event) => {
    if (!schedule.shown) return;
    const stage = Math.floor(event.offsetY / rowHeight()), time = timeScale().time(event.offsetX);
    const box = schedule.byStage[stage]?.find(({begin_s: begin, end_s: end}) => begin <= time && time < end);
    byId("schedule-at").textContent = box ? boxText(box, stage) : "";
  };
  new ResizeObserver(() => requestAnimationFrame(paintSchedule)).observe(view);
}
