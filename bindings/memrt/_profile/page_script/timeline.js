/** Section "Timeline": live, cached and resident bytes over time. */

const POINTS = 4000; // points of a chart; more points would not be visible
const shows = { cached: true, resident: true };

/** Return the indices of at most POINTS readings: the highest reading of each run of neighbours. */
function thinned(live) {
  if (live.length <= POINTS) return live.map((_, i) => i);
  const step = live.length / POINTS;
  const kept = [];
  for (let k = 0; k < POINTS; k += 1) {
    let best = Math.floor(k * step);
    for (let i = best; i < Math.floor((k + 1) * step); i += 1) if (live[i] > live[best]) best = i;
    kept.push(best);
  }
  return kept;
}

/** Return rows of live bytes: outside scopes, in the SERIES largest scopes, and in all other scopes. */
function stacked(line, kept) {
  const most = line.scopes.map(() => 0);
  for (const i of kept) for (const [scope, size] of line.scoped[i]) most[scope] = Math.max(most[scope], size);
  const chosen = most.map((_, i) => i).filter((i) => line.scopes[i] !== "").sort((a, b) => most[b] - most[a]).slice(0, SERIES);
  const series = new Map(chosen.map((scope) => [scope, kept.map(() => 0)]));
  const others = kept.map(() => 0);
  const outside = kept.map((i, k) => {
    let inside = 0;
    for (const [scope, size] of line.scoped[i]) {
      inside += size;
      if (series.has(scope)) series.get(scope)[k] = size;
      else others[k] += size;
    }
    return Math.max(0, line.live[i] - inside);
  });
  const rows = [["live, in no scope", outside], ...chosen.map((scope) => [`live, in ${line.scopes[scope]}`, series.get(scope)])];
  return others.some((size) => size > 0) ? [...rows, ["live, in other scopes", others]] : rows;
}

function timeline(recorded) {
  const line = recorded.timeline;
  const kept = thinned(line.live);
  const rows = stacked(line, kept).map(([title, y], i) => ({ title, y, stacked: true, color: HUES[i % HUES.length] }));
  const lines = { cached: ["kept for reuse", [2, 3]], resident: ["resident", null] };
  for (const [name, [title, dash]] of Object.entries(lines)) {
    const y = kept.map((i) => (line[name][i] < 0 ? null : line[name][i]));
    if (shows[name]) rows.push({ title, y, dash, color: color("--faint") });
  }
  const visible = [line.live, ...Object.keys(lines).filter((name) => shows[name]).map((name) => line[name])];
  timeChart($("timeline-chart"), { x: kept.map((i) => line.t[i]), rows, most: highestOf(visible.map(highestOf)),
    say: (k) => readingText(line, kept[k]), paint: (plot) => paintMoments(recorded, plot),
    keys: (event, k) => chooseByKey(recorded, event, k === null ? null : line.t[kept[k]]) });
  chooseByPointer(recorded, $("timeline-chart").plot);
  controls(recorded);
  table($("timeline-table"), [
    { title: "Seconds", of: (i) => line.t[i], text: (t) => t.toFixed(3), right: true },
    ...["live", "cached", "resident"].map((name) => ({ title: name, of: (i) => line[name][i], text: bytes, right: true })),
  ], line.t.map((_, i) => i), { label: "readings", sort: { column: 0, falling: false } });
}

function readingText(line, i) {
  const scopes = line.scoped[i].map(([scope, size]) => `${line.scopes[scope] || "other scopes"} ${bytes(size)}`);
  return `At ${line.t[i].toFixed(3)} s: live ${bytes(line.live[i])}, kept for reuse ${bytes(line.cached[i])}` +
    (line.resident[i] < 0 ? "" : `, resident ${bytes(line.resident[i])}`) +
    (scopes.length ? `; in ${scopes.join(", ")}` : "");
}

function controls(recorded) {
  $("timeline-controls").replaceChildren(...Object.keys(shows).map((name) => {
    const box = make("input", { type: "checkbox" });
    box.checked = shows[name];
    box.addEventListener("change", () => {
      shows[name] = box.checked;
      timeline(recorded);
      $("timeline-controls").querySelectorAll("input")[Object.keys(shows).indexOf(name)].focus();
    });
    return make("label", {}, box, ` ${name}`);
  }));
}
