/** Colors, axes and layout of all charts. */

const SERIES = 12; // scopes, or processes, with a series of their own in a chart

const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#e15759",
  "#9c755f", "#ff9da7", "#8cd17d", "#b6992d", "#499894", "#d37295", "#79706e"];

const CHART = { responsive: true, displaylogo: false, displayModeBar: false };
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function byteAxis(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  const ticks = [];
  for (let at = 0; at <= most * 1.1 + step; at += step) ticks.push(at);
  return { tickvals: ticks, ticktext: ticks.map(bytes), range: [0, Math.max(most * 1.05, 1)], fixedrange: true };
}

function layout(more) {
  const axis = { gridcolor: color("--line"), linecolor: color("--line"), zerolinecolor: color("--line"), automargin: true };
  return {
    paper_bgcolor: color("--back"), plot_bgcolor: color("--back"), font: { color: color("--front") },
    margin: { l: 10, r: 10, t: 10, b: 10 }, legend: { orientation: "h", y: -0.2 },
    ...more, xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis },
  };
}
