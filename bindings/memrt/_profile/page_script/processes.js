/** All processes of a recording: the sum of their live bytes, and the choice of a process. */

const GRID = 600; // points in time at which processes are summed

/** Return the maximum of live bytes of one process in each cell of the time grid, and 0 outside its lifetime. */
function spread(recorded, from, step) {
  const line = recorded.timeline;
  const begin = recorded.started - from;
  const found = new Array(GRID).fill(0);
  let i = 0;
  let last = 0;
  for (let k = 0; k < GRID; k += 1) {
    let most = i > 0 ? last : 0;
    for (; i < line.t.length && begin + line.t[i] < (k + 1) * step; i += 1) {
      last = line.live[i];
      most = Math.max(most, last);
    }
    if ((k + 1) * step > begin && k * step <= begin + recorded.seconds) found[k] = most;
  }
  return found;
}

const called = (recorded) => `${recorded.pid}: ${recorded.program.join(" ")}`;

function together() {
  const from = Math.min(...documents.map((each) => each.started));
  const to = Math.max(...documents.map((each) => each.started + each.seconds));
  const step = Math.max(to - from, 1e-6) / (GRID - 1);
  const t = Array.from({ length: GRID }, (_, k) => k * step);
  const rows = documents.map((each) => spread(each, from, step));
  const sums = t.map((_, k) => rows.reduce((sum, row) => sum + row[k], 0));
  const most = sums.reduce((a, b) => Math.max(a, b), 0);
  const order = rows.map((row, i) => [row.reduce((a, b) => Math.max(a, b), 0), i]).sort((a, b) => b[0] - a[0]);
  const chosen = order.slice(0, SERIES).map(([, i]) => i);
  const others = t.map((_, k) => order.slice(SERIES).reduce((sum, [, i]) => sum + rows[i][k], 0));
  const series = chosen.map((i) => [String(documents[i].pid), rows[i]]);
  if (order.length > SERIES) series.push(["other processes", others]);
  $("together-about").textContent = `${number(documents.length)} processes. The highest observed sum of live bytes ` +
    `is ${bytes(most)}; memory that a forked child shares with its parent counts in both processes.`;
  timeChart($("together-chart"), { x: t, most,
    rows: series.map(([title, y], i) => ({ title, y, stacked: true, color: HUES[i % HUES.length] })),
    say: (k) => `At ${t[k].toFixed(3)} s: ${bytes(sums[k])}; in ${series.map(([title, y]) => `${title} ${bytes(y[k])}`).join(", ")}` });
}

function processes() {
  $("together").hidden = documents.length < 2;
  $("choice").hidden = documents.length < 2;
  if (documents.length < 2) return;
  const choose = (i) => {
    $("process").value = String(i);
    show(i);
  };
  $("process").replaceChildren(...documents.map((each, i) => make("option", { value: String(i) }, called(each))));
  $("process").addEventListener("change", () => show(Number($("process").value)));
  table($("processes"), [
    { title: "Process", of: ([each]) => each.pid, right: true,
      text: (pid, [, i]) => make("button", { type: "button", onclick: () => choose(i), "aria-label": `Show process ${pid}` }, String(pid)) },
    { title: "Parent", of: ([each]) => each.parent, text: String, right: true },
    { title: "Program", of: ([each]) => each.program.join(" "), kind: "place" },
    { title: "Start", of: ([each]) => each.started - documents[0].started, text: seconds, right: true },
    { title: "Duration", of: ([each]) => each.seconds, text: seconds, right: true },
    { title: "Peak", of: ([each]) => stat(each, "peak"), text: bytes, right: true },
    { title: "Live at the end", of: ([each]) => stat(each, "live"), text: bytes, right: true },
    { title: "End", of: ([each]) => each.ended },
  ], documents.map((each, i) => [each, i]), { label: "processes", search: ([each]) => called(each),
    sort: { column: 3, falling: false } });
}
