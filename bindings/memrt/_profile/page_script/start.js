/** Read the recordings, show the first process, and redraw when the user changes process, theme or unit. */

const documents = JSON.parse(document.getElementById("recording").textContent);

function stat(recorded, name) {
  const row = recorded.stats.find((each) => each[0] === name);
  return row ? row[2] : 0;
}

let current = null;

function charts() {
  timeline(current);
  memoryChart(current);
  sizes(current);
  if (documents.length > 1) together();
  comparisonChart();
}

function show(index) {
  if (current !== documents[index]) chosen = null;
  current = documents[index];
  const sites = new Sites(current, $("all-frames").checked);
  findings(current, sites);
  overview(current);
  showChosen(current);
  live(current, sites);
  ends(current, sites);
  processMemory(current);
  settings(current);
  charts();
}

/** Draw the charts in light colors and the width of paper, or as before. */
function drawFor(medium) {
  if (medium) document.documentElement.dataset.medium = medium;
  else delete document.documentElement.dataset.medium;
  charts();
  fit(medium ? PRINT_WIDTH : null);
}

$("all-frames").addEventListener("change", () => show(documents.indexOf(current)));
$("moment-of").addEventListener("change", () => showChosen(current));
$("moment-reset").addEventListener("click", () => choose(current, null));
$("sizes-of").addEventListener("change", () => sizes(current));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", charts);
addEventListener("resize", () => fit());
addEventListener("beforeprint", () => drawFor("paper"));
addEventListener("afterprint", () => drawFor(null));
processes();
comparison();
show(0);
document.documentElement.dataset.ready = "yes";
