// Bars that lead from one time to another.

/**
 * @param {string} canvas  its id
 * @param {number} a  seconds
 * @param {number} b
 * @param {Array<{name: string, difference: number}>} parts  whose differences add up to b - a
 */
function drawWaterfall(canvas, a, b, parts) {
  let sum = a;
  const steps = parts.map(({name, difference}) => ({name, difference, from: sum, to: (sum += difference)}));
  const bars = [{name: "A", from: 0, to: a}, ...steps, {name: "B", from: 0, to: b}];
  byId(canvas).parentElement.style.height = `${80 + 28 * bars.length}px`;
  draw(canvas, {
    type: "bar",
    data: {labels: bars.map(({name}) => name), datasets: [{
      data: bars.map(({from, to}) => [from, to]),
      backgroundColor: bars.map(({difference}) => fillOf(difference === undefined ? 0 : difference < 0 ? 2 : 1)),
    }]},
    options: {
      indexAxis: "y",
      scales: {x: {beginAtZero: true, ticks: {callback: (value) => formatSeconds(value)}}, y: {ticks: {autoSkip: false}}},
      plugins: {
        legend: {display: false},
        tooltip: {callbacks: {label: ({dataIndex}) => (bars[dataIndex].difference === undefined ? formatSeconds(bars[dataIndex].to) : signedSeconds(bars[dataIndex].difference))}},
      },
    },
  });
}
