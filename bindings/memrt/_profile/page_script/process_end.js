/** Sections about the end of the process: live buffers, leaks, holders, retention; and all its memory. */

/** Show live buffers. A row of the table is the number of a row in the packed columns. */
function live(recorded, sites) {
  const at = Object.fromEntries(Object.entries(recorded.live.packed).map(([name, column]) => [name, packedColumn(column)]));
  const rows = Array.from({ length: recorded.live.count }, (_, i) => i);
  const more = recorded.live.more ? ` The ${number(recorded.live.more)} smallest are omitted.` : "";
  $("live-about").textContent = `Tracked buffers, after garbage collection.${more}`;
  table($("live-table"), [
    { title: "Size", of: at.nbytes, text: bytes, right: true },
    { title: "Allocation site", of: (row) => sites.place(at.site(row)), text: (_, row) => siteLink(sites, at.site(row)), kind: "place" },
    { title: "Scope", of: at.scope },
    { title: "Name", of: at.name },
    { title: "Age", of: at.age, text: seconds, right: true },
    { title: "References", of: at.refcount, text: number, right: true, common: true },
    { title: "Sampling weight", of: at.weight, text: number, right: true, common: true },
    { title: "Kind", of: at.kind, common: true },
    { title: "Policy", of: at.policy, common: true },
    { title: "Thread", of: at.thread, text: String, right: true, common: true },
    { title: "Serial number", of: at.id, text: number, right: true },
    { title: "Address", of: at.address, text: (address) => `0x${address.toString(16)}`, kind: "code" },
  ], rows, { label: "live buffers", sort: { column: 0, falling: true },
    search: (row) => [sites.place(at.site(row)), ...["scope", "name", "kind", "policy"].map((name) => at[name](row) || "")].join(" ") });
}

/** List lost or held buffers, a line for each allocation site. */
function leakGroups(place, found, sites, none) {
  list(place, found.map((each) => {
    const group = folded(`${bytes(each.bytes)} in ${number(each.buffers)} buffer${each.buffers === 1 ? "" : "s"} ` +
      `allocated ${each.place ? `in ${each.place}` : "at an unknown source line"}`, each.lines);
    group.querySelector("summary").after(...sourceText(sites.bySource.get(each.place)));
    return group;
  }), none);
}

/** Show groups of buffers by allocation site and kind of holder. */
function holderGroups(place, rows, sites, label) {
  const held = (_, row) => folded(`${number(row.buffers)} x ${row.holder}`, row.lines);
  table(place, [
    { title: "Bytes", of: (row) => row.bytes, text: bytes, right: true },
    { title: "In no view", of: (row) => row.wasted || null, text: (size) => (size ? bytes(size) : ""), right: true },
    { title: "Held by", of: (row) => row.holder, text: held, kind: "place held" },
    { title: "Allocation site", of: (row) => sites.place(row.site), text: (_, row) => siteLink(sites, row.site, true), kind: "place" },
  ], rows, { label, sort: { column: label === "retention" ? 1 : 0, falling: true },
    search: (row) => `${row.holder} ${sites.place(row.site)}` });
}

function ends(recorded, sites) {
  leakGroups($("lost"), recorded.lost, sites, "Nothing is lost.");
  leakGroups($("held"), recorded.held, sites, "Nothing is live.");
  const groups = recorded.groups || { holders: [], retention: [] };
  if (groups.holders.length) holderGroups($("holders-list"), groups.holders, sites, "holders");
  else list($("holders-list"), recorded.holders.map((each) => folded(each.title, each.lines)), "Nothing is live.");
  $("retention-about").textContent = `Views of a small part keep ${number(recorded.retention.count)} buffers alive; ` +
    `${bytes(recorded.retention.wasted)} of the memory are in no view.`;
  if (groups.retention.length) holderGroups($("retention-list"), groups.retention, sites, "retention");
  else list($("retention-list"), recorded.retention.buffers.map((each) => folded(each.why, each.lines)), "");
}

function processMemory(recorded) {
  const rows = recorded.memory || [];
  const resident = rows.reduce((sum, row) => sum + (row[2] || 0), 0);
  const amount = (count) => (count === null ? "unknown" : bytes(count));
  const huge = recorded.huge_pages || { asked: 0 };
  const pages = huge.asked ? ` Huge pages: memrt asked for ${bytes(huge.asked)}, in memory: ${amount(huge.got)}.` : "";
  $("memory-about").textContent = rows.length
    ? `All ${bytes(resident)} in memory, with the memory of the recording itself.${pages}`
    : "The recording has no account of the memory.";
  table($("memory-table"), [{ title: "Part", of: (row) => row[0] },
    { title: "In memory", of: (row) => row[2], text: amount, right: true },
    { title: "Mapped", of: (row) => row[3], text: amount, right: true },
    { title: "Meaning", of: (row) => row[1], kind: "place" }], rows, { label: "memory of the process", sort: { column: 1, falling: true } });
}

/** Return the parts of the process over time as {x, parts: [title, bytes]}, from the readings of the timeline. */
function memoryByReadings({ timeline: line }) {
  const kept = thinned(line.resident).filter((i) => line.resident[i] >= 0);
  const pick = (name) => kept.map((i) => line[name][i]);
  const rest = kept.map((i) => Math.max(0, line.resident[i] - line.live[i] - line.cached[i]));
  return { x: kept.map((i) => line.t[i]), resident: pick("resident"),
    parts: [["arrays", pick("live")], ["kept for reuse", pick("cached")], ["rest of the process", rest]] };
}

/** Return the same with all parts, from the accounts of the process; parts that are always empty are left out. */
function memoryByAccounts({ memory_over_time: { t, parts } }) {
  const shown = parts.filter(({ resident }) => resident.some((size) => size > 0));
  return { x: t, resident: t.map((_, i) => parts.reduce((sum, part) => sum + part.resident[i], 0)),
    parts: shown.map(({ name, resident }) => [name.replace("_", " "), resident]) };
}

/** Draw resident bytes over time, stacked. Recordings of short or large processes have few accounts of all parts. */
function memoryChart(recorded) {
  const accounts = recorded.memory_over_time || { t: [] };
  const isWhole = accounts.t.length > 2;
  const { x, parts, resident } = isWhole ? memoryByAccounts(recorded) : memoryByReadings(recorded);
  $("memory-over-time").hidden = !x.length;
  if (!x.length) return;
  $("memory-parts").textContent = isWhole ? "Bytes in memory of all parts of the process, as in the table below."
    : "Live bytes of arrays, bytes kept for reuse, and the rest of the resident bytes: malloc, Python, code and libraries. " +
      "Where arrays are not in memory yet, the stack is higher than the resident bytes.";
  const sums = x.map((_, i) => parts.reduce((sum, [, y]) => sum + y[i], 0));
  timeChart($("memory-chart"), { x, most: Math.max(highestOf(sums), highestOf(resident)),
    rows: [...parts.map(([title, y], i) => ({ title, y, stacked: true, color: HUES[i % HUES.length] })),
      { title: "resident", y: resident, color: color("--front") }],
    say: (k) => `At ${x[k].toFixed(3)} s: resident ${bytes(resident[k])}; ` +
      parts.map(([title, y]) => `${title} ${bytes(y[k])}`).join(", ") });
}
