// Colours, shapes and hatchings, and what all charts share. Nothing is told by colour alone: points differ in shape, bars in hatching.

const HUE_COUNT = 10, RAMP_COUNT = 5;
const SHAPES = ["circle", "triangle", "rect", "rectRot", "star", "crossRot", "rectRounded", "cross"];

/** A colour of the style sheet, in the scheme in force. */
const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The palette of the colour scheme in force, from the style sheet; see useSchemeColours(). */
const palette = {hues: [], ramp: [], tiles: []};
/** The colour of the n-th of things without an order. */
const hueOf = (index) => palette.hues[index % HUE_COUNT];
/** The marker of the n-th of things. */
const shapeOf = (index) => SHAPES[index % SHAPES.length];

/** "#rrggbb" as three numbers. */
const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/** A colour for a share in 0..1 of an ordered range. */
function rampColour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP_COUNT - 1);
  const low = Math.min(Math.floor(place), RAMP_COUNT - 2);
  const mixed = palette.ramp[low].map((from, i) => Math.round(from + (place - low) * (palette.ramp[low + 1][i] - from)));
  return `rgb(${mixed.join(" ")})`;
}

/** A tile of the hue with lines, dots or nothing on it: the n-th looks unlike its neighbours in grey, too. */
function hatching(index) {
  const size = 8, tile = element("canvas", {width: size, height: size}), pen = tile.getContext("2d");
  pen.fillStyle = hueOf(index);
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = pen.fillStyle = colourOf("--card");
  const line = (x1, y1, x2, y2) => {
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  };
  const draw = [
    () => {},
    () => { line(-2, 10, 10, -2); line(-2, 2, 2, -2); line(6, 10, 10, 6); },
    () => pen.fillRect(2, 2, 3, 3),
    () => { line(-2, -2, 10, 10); line(6, -2, 10, 2); line(-2, 6, 2, 10); },
    () => line(0, 4, 8, 4),
    () => line(4, 0, 4, 8),
    () => { line(0, 4, 8, 4); line(4, 0, 4, 8); },
  ];
  draw[index % draw.length]();
  return {tile, fill: pen.createPattern(tile, "repeat")};
}
/** The hatching of the n-th part of a bar, for a canvas. */
const fillOf = (index) => palette.tiles[index % HUE_COUNT].fill;
/** The same for a style. */
const tileUrl = (index) => `url(${palette.tiles[index % HUE_COUNT].tile.toDataURL()})`;

/** The hatching as a key before words. */
function keyOf(index) {
  const key = element("span", {className: "key"});
  key.style.backgroundImage = tileUrl(index);
  return key;
}

Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = "system-ui, sans-serif";
Chart.defaults.font.size = 12;

/** Reads the palette of the colour scheme in force; before every drawing of the whole page. */
function useSchemeColours() {
  palette.hues = Array.from({length: HUE_COUNT}, (_, index) => colourOf(`--hue-${index}`));
  palette.ramp = Array.from({length: RAMP_COUNT}, (_, index) => channelsOf(colourOf(`--ramp-${index}`)));
  palette.tiles = palette.hues.map((_, index) => hatching(index));
  Chart.defaults.color = colourOf("--ink");
  Chart.defaults.borderColor = colourOf("--line");
}

/** Draws now, and again in other colours and on paper, which is white and as wide as it is. */
function keepDrawn(drawAll) {
  const drawInColour = () => {
    useSchemeColours();
    drawAll();
  };
  drawInColour();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawInColour);
  for (const [event, look] of [["beforeprint", "print"], ["afterprint", ""]]) {
    addEventListener(event, () => {
      document.documentElement.dataset.look = look;
      drawInColour();
    });
  }
}

const charts = new Map();

/** Draws a chart into the canvas of that id (or element), in place of what was there. */
function draw(canvas, configuration) {
  const target = typeof canvas === "string" ? byId(canvas) : canvas;
  charts.get(target)?.destroy();
  const chart = new Chart(target, configuration);
  charts.set(target, chart);
  return chart;
}

/** An axis of numbers of a column. */
function valueAxis(column, options = {}) {
  const {logarithmic = false, title = partName(column), ...more} = options;
  return {
    type: logarithmic ? "logarithmic" : "linear",
    title: {display: true, text: title},
    ticks: {callback: (value) => formatTick(column, value), autoSkip: !logarithmic, maxRotation: 0, includeBounds: false},
    ...(logarithmic ? {afterBuildTicks: (axis) => logarithmicTicks(axis, column)} : column.unit === "byte" ? {afterBuildTicks: byteTicks} : {}),
    ...more,
  };
}

/** Ticks at round numbers of GiB (or MiB, ...) instead of round numbers of bytes. */
function byteTicks(axis) {
  const span = axis.max - axis.min;
  if (!(span > 0)) return;
  let unit = 1;
  while (unit * 1024 <= span) unit *= 1024;
  const rough = span / unit / 7;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) * unit;
  const ticks = [];
  for (let value = Math.ceil(axis.min / step) * step; value <= axis.max * (1 + 1e-12); value += step) ticks.push({value});
  axis.ticks = ticks;
}

/** Ticks at 1, 2 and 5 times powers of ten (bytes: powers of two), thinned out until they have room. */
function logarithmicTicks(axis, column) {
  const within = (values) => values.filter((value) => value >= axis.min * (1 - 1e-9) && value <= axis.max * (1 + 1e-9));
  const decades = (...steps) => {
    const powers = Array.from({length: 48}, (_, i) => 10 ** (i - 24));
    return within(powers.flatMap((power) => steps.map((step) => step * power)));
  };
  const binary = (every) => within(Array.from({length: 80}, (_, i) => 2 ** i).filter((_, i) => i % every === 0));
  const choices = column.unit === "byte" ? [binary(1), binary(2), binary(5), binary(10)] : [decades(1, 2, 3, 5, 7), decades(1, 2, 5), decades(1, 3), decades(1)];
  const fitting = choices.find((values) => values.length <= 9) ?? choices.at(-1);
  axis.ticks = fitting.map((value) => ({value}));
}

/** The parts of time and memory keep their colour whatever else the file has. */
const MEMORY_ORDER = ["weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "logits_bytes", "buffers_bytes", "reserve_bytes", "kv_cache_bytes"];
/** The hatching of a class of time or kind of memory. */
function partFill(column, position) {
  const known = column.place ?? MEMORY_ORDER.indexOf(column.name);
  return fillOf(known >= 0 ? known : position);
}

/** Ends of a logarithmic axis: a little room beyond the values. */
function roomAround(values) {
  const known = values.filter((value) => isValue(value) && value > 0);
  if (known.length === 0) return {};
  return {min: known.reduce((a, b) => Math.min(a, b)) * 0.85, max: known.reduce((a, b) => Math.max(a, b)) * 1.15};
}
