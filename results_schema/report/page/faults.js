// How plans and places bear faults.

const SLOWDOWN = {unit: "1", name: "slowdown", group: "faults", heading: "slowdown", percent_digits: 2, slowdown: true};

/** The cumulative distributions of slowdowns. */
function drawDistributions() {
  const dashes = [[], [8, 4], [2, 3]];
  // The slowest samples are far out: the caption names them.
  const tail = DATA.faults.distributions.map(({points}) => points.find(([share]) => share >= 0.995)?.[1] ?? 0);
  const last = DATA.faults.distributions[0].points.at(-1)?.[1];
  byId("cdf-caption").textContent = `Share of the fault samples that slow a plan by at most so much; the slowest sample of all by ${formatPercent(last)}.`;
  draw("cdf", {
    type: "line",
    data: {
      datasets: DATA.faults.distributions.map((distribution, index) => ({
        label: distribution.name, data: distribution.points.map(([share, slowdown]) => ({x: slowdown, y: share})), stepped: "before",
        borderColor: hueOf(index), backgroundColor: hueOf(index), borderDash: dashes[index % dashes.length], borderWidth: 2, pointRadius: 0, pointHoverRadius: 4,
      })),
    },
    options: {
      interaction: {mode: "nearest", axis: "y", intersect: false},
      scales: {
        x: {...valueAxis(SLOWDOWN), min: 0, max: Math.max(...tail, 1e-3)},
        y: {min: 0, max: 1, title: {display: true, text: "share of the samples"}, ticks: {callback: (share) => formatPercent(share, 0)}},
      },
      plugins: {
        legend: {position: "bottom", labels: {usePointStyle: true, pointStyle: "line", pointStyleWidth: 44}},
        tooltip: {
          callbacks: {
            title: () => "",
            label: ({dataset, raw}) => `${dataset.label}: ${formatPercent(raw.y, 2)} slow by at most ${formatPercent(raw.x, 2)}`,
          },
        },
      },
    },
  });
}

/** Mean time under faults against time without, a point per plan. */
function drawExpected() {
  const healthy = COLUMNS.get("step_time_s") ?? COLUMNS.get("e2e_s");
  const expected = COLUMNS.get("expected_step_time_s") ?? COLUMNS.get("expected_e2e_s");
  const points = state.rows.filter((row) => isValue(healthy.at(row)) && isValue(expected.at(row)))
      .map((row) => ({x: healthy.at(row), y: expected.at(row), row}));
  const low = points.reduce((least, point) => Math.min(least, point.x), Infinity), high = points.reduce((most, point) => Math.max(most, point.x), -Infinity);
  const picked = points.filter((point) => point.row === state.picked);
  const logarithmic = high > 5 * low;
  const room = (key) => (logarithmic ? roomAround(points.map((point) => point[key])) : {});
  draw("expected", {
    type: "scatter",
    data: {
      datasets: [
        {label: "chosen plan", data: picked, pointRadius: 9, pointBorderWidth: 3, backgroundColor: "transparent", borderColor: colourOf("--mark")},
        {type: "line", label: "no cost", data: points.length > 0 ? [{x: low, y: low}, {x: high, y: high}] : [], borderColor: colourOf("--dim"),
         borderDash: [6, 4], borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0},
        {label: "plans", data: points, pointRadius: points.length > 4000 ? 2 : 3, backgroundColor: hueOf(0), borderColor: colourOf("--card"),
         pointBorderWidth: 0.5},
      ],
    },
    options: {
      interaction: {mode: "nearest", intersect: true},
      onClick: pickOnClick,
      scales: {
        x: valueAxis(healthy, {logarithmic, title: `${partName(healthy)}, no faults`, ...room("x")}),
        y: valueAxis(expected, {logarithmic, title: `${partName(expected)}, mean`, ...room("y")}),
      },
      plugins: {
        legend: {position: "bottom", labels: {usePointStyle: true}},
        tooltip: {
          ...pointTooltip,
          callbacks: {
            title: () => "",
            label: ({raw}) => (raw.row === undefined ? "as fast as without faults" : [
              `without faults ${formatValue(healthy, raw.x)}`,
              `with them ${formatValue(expected, raw.y)} in the mean (${raw.y / raw.x < 10 ? "+" : ""}${formatSlowdown(raw.y / raw.x - 1, 2)})`,
              ...tooltipLines(raw.row).slice(3),
            ]),
          },
        },
      },
    },
  });
}

/** Cells of places, under PLACE_HEADS. */
function placeRows(places) {
  return places.map((place) => [place.name, formatCount(place.samples), formatCount(place.unreachable), formatSlowdown(place.mean, 2), formatSlowdown(place.max, 2),
                                formatPercent(place.above_1pct, 2)]);
}
const PLACE_HEADS = ["place", "samples", "cut off", "mean slowdown", "largest", "above 1 %"];

/** The worst places, by mean and largest slowdown. */
function drawPlaces() {
  const places = DATA.faults.places;
  draw("places", {
    type: "bar",
    data: {
      labels: places.map((place) => place.name),
      datasets: [{label: "mean", data: places.map((place) => place.mean), backgroundColor: fillOf(0), order: 1},
                 {type: "scatter", label: "largest", data: places.map((place) => ({x: place.max, y: place.name})), pointStyle: "rectRot", pointRadius: 5,
                  backgroundColor: hueOf(5), borderColor: hueOf(5), order: 0}],
    },
    options: {
      indexAxis: "y",
      scales: {x: {...valueAxis(SLOWDOWN), min: 0}, y: {type: "category", labels: places.map((place) => place.name), grid: {display: false}, ticks: {autoSkip: false}}},
      plugins: {
        legend: {position: "bottom", labels: {usePointStyle: true}},
        tooltip: {
          displayColors: false,
          callbacks: {label: (item) => {
            const place = places[item.dataIndex];
            return [`mean ${formatSlowdown(place.mean, 2)}`, `largest ${formatSlowdown(place.max, 2)}`,
                    `${formatPercent(place.above_1pct)} of ${formatCount(place.samples)} samples above 1 %`];
          }},
        },
      },
    },
  });
}

/** Shows the section where there are fault samples; gives what draws its charts. */
function setUpFaults() {
  if (!DATA.faults) return () => {};
  byId("faults").hidden = false;
  const {places, place_count: count, dimensions} = DATA.faults;
  byId("places-head").textContent = "Worst places, by the mean slowdown of all plans' samples in which they are sick" +
      (count > places.length ? ` (${places.length} of ${formatCount(count)})` : "");
  fillTable(byId("place-table"), PLACE_HEADS, placeRows(places), [1, 2, 3, 4, 5]);
  fillTable(byId("dimension-table"), PLACE_HEADS, placeRows(dimensions), [1, 2, 3, 4, 5]);
  state.listeners.push(drawExpected);
  return () => {
    drawDistributions();
    drawExpected();
    drawPlaces();
  };
}
