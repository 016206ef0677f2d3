/** Sections "Peak" and "Sizes": the buffers of the highest observed moment; the first also of a chosen moment. */

function highest(recorded, sites) {
  const { title, about, rows, all } = view(recorded);
  $("h-highest").textContent = `${title}, by allocation site`;
  $("highest-about").textContent = about;
  const sums = new Map();
  for (const { site, scope, buffers, size } of rows) {
    const key = JSON.stringify([sites.place(site), scope]);
    const sum = sums.get(key) || { place: sites.place(site), scope, site, buffers: 0, size: 0 };
    sum.buffers += buffers;
    sum.size += size;
    sums.set(key, sum);
  }
  const part = (size) => (all ? Math.max(0, size) / all : 0);
  const bar = (size) => make("span", {}, percent(part(size)), make("span", { class: "bar" }, width(make("span"), part(size))));
  table($("highest-table"), [
    { title: "Allocation site", of: (row) => row.place, text: (_, row) => siteLink(sites, row.site, true), kind: "place" },
    { title: "Scope", of: (row) => row.scope },
    { title: "Bytes", of: (row) => row.size, text: bytes, right: true },
    { title: "Percentage", of: (row) => row.size, text: bar, right: true },
    { title: "Buffers", of: (row) => row.buffers, text: number, right: true },
  ], [...sums.values()], { label: "allocation sites", sort: { column: 2, falling: true },
    search: (row) => `${row.place} ${row.scope || ""}` });
}

function sizes(recorded) {
  const rows = recorded.highest.sizes;
  const title = (bits) => (bits === 0 ? "0 B" : `< ${bytes(2 ** bits)}`);
  const of = $("sizes-of").value === "bytes" ? 2 : 1;
  const y = rows.map((row) => row[of]);
  const say = of === 2 ? bytes : number;
  barChart($("sizes-chart"), { titles: rows.map((row) => title(row[0])), y, label: say, ticks: of === 2 ? byteTicks : null,
    say: (i) => `${title(rows[i][0])}: ${bytes(rows[i][2])} in ${number(rows[i][1])} buffers` });
  table($("sizes-table"), [
    { title: "Size", of: (row) => row[0], text: title, right: true },
    { title: "Buffers", of: (row) => row[1], text: number, right: true },
    { title: "Bytes", of: (row) => row[2], text: bytes, right: true },
  ], rows, { label: "sizes", sort: { column: 0, falling: false } });
}
