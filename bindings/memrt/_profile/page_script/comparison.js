/** Section "Comparison": the verdict on two recordings, their live bytes, and the changes by source line. */

const signed = (size) => (size > 0 ? "+" : size < 0 ? "−" : "") + bytes(Math.abs(size));

function comparison() {
  const found = documents[0].comparison;
  for (const element of document.querySelectorAll(".compared")) element.hidden = !found;
  if (!found) return;
  list($("comparison-verdict"), [make("ul", {}, ...found.verdict.map((text) => make("li", {}, text)))], "");
  const change = (name) => (row) => row[name][1] - row[name][0];
  const amounts = [["At the peak", "peak"], ["At the end", "end"], ["In total", "total"]];
  table($("comparison-table"), [
    { title: "Allocation site", of: (row) => row.place, kind: "place",
      text: (place, row) => make("span", {}, place, ...(row.source ? [make("code", { class: "line" }, row.source)] : [])) },
    ...amounts.map(([title, name]) => ({ title, of: change(name), right: true,
      text: (size, row) => make("span", { title: `${bytes(row[name][0])} before, ${bytes(row[name][1])} after` }, signed(size)) })),
    ...amounts.slice(0, 2).flatMap(([title, name]) => [0, 1].map((i) => ({ title: `${title}, ${i ? "after" : "before"}`,
      of: (row) => row[name][i], text: bytes, right: true }))),
  ], found.rows.filter((row) => amounts.some(([, name]) => row[name][0] !== row[name][1])), { label: "changes", search: (row) => `${row.place} ${row.source}` });
}

function comparisonChart() {
  const found = documents[0].comparison;
  if (!found) return;
  const [x, before, after] = uPlot.join(found.timelines);
  const colors = ["--faint", "--accent"].map(color);
  timeChart($("comparison-chart"), { x, most: highestOf([before, after].map(highestOf)),
    rows: [["before", before, [6, 4]], ["after", after, null]].map(([title, y, dash], i) =>
      ({ title, y, dash, color: colors[i], more: { spanGaps: true } })),
    say: (k) => `At ${x[k].toFixed(3)} s: ${[["before", before], ["after", after]].filter(([, y]) => y[k] != null)
      .map(([title, y]) => `${bytes(y[k])} ${title}`).join(", ")}` });
}
