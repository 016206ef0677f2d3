/** Sections "Findings" and "Overview": the verdict, and the main figures of a recording. */

function findings(recorded, sites) {
  const rows = (recorded.findings || []).map((each) => make("li", {}, make("strong", {}, `${each.rule}: `),
    ...marked(`${each.text}.`), make("span", { class: "fix" }, ...marked(`Next step: ${each.fix}.`)), ...sourceText(sites.bySource.get(each.place))));
  list($("findings-list"), rows.length ? [make("ol", {}, ...rows)] : [], "No rule found a problem.");
}

function overview(recorded) {
  $("subtitle").textContent = `${recorded.ended} after ${seconds(recorded.seconds)}, ` +
    `process ${recorded.pid}, ${new Date(1000 * recorded.started).toLocaleString()}`;
  const error = stat(recorded, "peak_error");
  const figures = [
    ["Peak", bytes(stat(recorded, "peak")), error ? `± ${bytes(error)}` : "exact"],
    ["Live at the end", bytes(stat(recorded, "live"))],
    ["Allocated in total", bytes(stat(recorded, "total"))],
    ["Blocks allocated", number(stat(recorded, "alloc"))],
    ["Requests refused", number(stat(recorded, "failed"))],
    ["Highest resident memory", bytes(recorded.timeline.resident.reduce((a, b) => Math.max(a, b), 0))],
  ];
  $("figures").replaceChildren(...figures.map(([title, value, more]) => make("div", {},
    make("dt", {}, more ? `${title}, ${more}` : title), make("dd", {}, value))));
  $("notes").replaceChildren(...recorded.notes.map((note) => make("li", {}, note)));
}
