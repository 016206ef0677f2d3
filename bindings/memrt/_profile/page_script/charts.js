/** Charts of the page, drawn by uPlot: lines and stacked areas over seconds, and bars. */

const SERIES = 12; // scopes, or processes, with a series of their own in a chart

const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#e15759",
  "#9c755f", "#ff9da7", "#8cd17d", "#b6992d", "#499894", "#d37295", "#79706e"];

const PLOT_HEIGHT = 300; // height of a chart without its legend, in pixels
const PRINT_WIDTH = 640; // width of charts on paper, in pixels
const FONT = "12px system-ui, sans-serif";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const highestOf = (values) => values.reduce((a, b) => Math.max(a, b || 0), 0);

/** Return ticks at multiples of a power of two, at most nine. */
function byteTicks(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}

/** Return the columns of stacked series, the topmost series first, as each area covers the areas below. */
function stackedColumns(rows) {
  const sums = [];
  let below = null;
  for (const row of rows) {
    below = row.y.map((value, i) => value + (below ? below[i] : 0));
    sums.unshift(below);
  }
  return sums;
}

function axis(more) {
  const grid = { stroke: color("--line"), width: 1 };
  return { stroke: color("--front"), font: FONT, labelFont: FONT, grid, ticks: grid, ...more };
}

/** Let the pointer and the arrow keys select a point, and write the point as text below the chart. `keys` handles other keys. */
function selectable(place, plot, say, keys) {
  const reading = $(place.getAttribute("aria-describedby"));
  const x = plot.data[0];
  const write = () => { if (plot.cursor.idx !== null) reading.textContent = say(plot.cursor.idx); };
  plot.over.addEventListener("pointermove", write);
  reading.textContent = "";
  place.onkeydown = (event) => {
    if (keys && keys(event, place.selected ?? null)) {
      event.preventDefault();
      return;
    }
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50, Home: -x.length, End: x.length };
    if (!(event.key in steps) || !x.length) return;
    event.preventDefault();
    const at = Math.min(x.length - 1, Math.max(0, (place.selected ?? -1) + steps[event.key]));
    place.selected = at;
    plot.setCursor({ left: plot.valToPos(x[at], "x"), top: 0 });
    reading.textContent = say(at);
  };
}

/** Return the style of a line as a style of borders, for the legend. */
const borderStyle = (dash) => (!dash ? "solid" : dash[0] > 2 ? "dashed" : "dotted");

/** Draw a chart in place of the old one. `rows`: {title, y, color, stacked, dash}, stacked rows first. */
function draw(place, { x, rows, options, say, keys }) {
  if (place.plot) place.plot.destroy();
  place.selected = null;
  const stack = rows.filter((row) => row.stacked);
  const lines = rows.filter((row) => !row.stacked);
  const columns = [...stackedColumns(stack), ...lines.map((row) => row.y)];
  const isShort = (y) => y.filter((value) => value != null).length < 2; // no line is visible
  const series = [...stack.slice().reverse().map((row) => ({ label: row.title, stroke: row.color, fill: row.color, width: 0 })),
    ...lines.map((row) => ({ label: row.title, stroke: row.color, dash: row.dash, width: 1.5, spanGaps: false, ...row.more }))];
  place.plot = new uPlot({
    width: place.clientWidth, height: PLOT_HEIGHT,
    legend: { live: false, markers: { dash: (plot, i) => borderStyle(plot.series[i].dash) } }, ...options, series: [{}, ...series.map((each, i) => ({ points: { show: isShort(columns[i]), size: 6 }, ...each }))],
  }, [x, ...columns], place);
  selectable(place, place.plot, say, keys);
}

/** Remove the box of a drag; the marks of a chart show what was chosen. */
const unselect = (plot) => plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);

/** Draw bytes over seconds. A chart with `paint`, for marks on the canvas, does not zoom. */
function timeChart(place, { x, rows, most, say, keys, paint }) {
  const top = Math.max(most * 1.05, 1);
  draw(place, { x, rows, say, keys, options: {
    ...(paint && { hooks: { draw: [paint], setSelect: [unselect] }, cursor: { drag: { x: true, setScale: false } } }),
    scales: { x: { time: false }, y: { range: [0, top] } },
    axes: [axis({ label: "seconds" }),
      axis({ size: 76, splits: () => byteTicks(top), values: (_, ticks) => ticks.map(bytes) })],
  } });
}

/** Draw bars with a title each; `label` is the text of a tick of the vertical axis. */
function barChart(place, { titles, y, ticks, label, say }) {
  const shown = Math.max(1, Math.ceil((titles.length * 75) / Math.max(place.clientWidth - 76, 75)));
  const most = Math.max(highestOf(y) * 1.05, 1);
  const bars = { fill: color("--bar"), paths: uPlot.paths.bars({ size: [0.8, 80] }) };
  draw(place, { x: titles.map((_, i) => i), say,
    rows: [{ title: "buffers", y, color: color("--bar"), more: bars }],
    options: {
      legend: { show: false }, cursor: { drag: { x: false } },
      scales: { x: { time: false, range: [-0.5, Math.max(titles.length, 1) - 0.5] }, y: { range: [0, most] } },
      axes: [axis({ splits: () => titles.map((_, i) => i).filter((i) => i % shown === 0), grid: { show: false },
        values: (_, splits) => splits.map((i) => titles[i]) }),
      axis({ size: 76, splits: ticks && (() => ticks(most)), values: (_, splits) => splits.map(label) })],
    } });
}

/** Fit the charts to the width of the window, and of the paper. */
function fit(width = null) {
  for (const place of document.querySelectorAll(".chart")) {
    const to = width || place.clientWidth;
    if (place.plot && to > 0 && to !== place.plot.width) place.plot.setSize({ width: to, height: PLOT_HEIGHT });
  }
}
