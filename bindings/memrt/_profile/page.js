/** Fill the sections of a report page from the recording embedded in the page as JSON. */
"use strict";
(() => {
  const documents = JSON.parse(document.getElementById("recording").textContent);
  const PAGE = 25; // rows on one page of a table
  const POINTS = 4000; // points of a chart; more points would not be visible
  const SERIES = 12; // scopes, or processes, with a series of their own in a chart
  const FLAME_LEAST = 0.0008; // narrowest box that is drawn, as a fraction of the graph's width
  const FLAME_ROW = 22; // height of a row in pixels

  // --- Elements and formatting. ---

  const $ = (id) => document.getElementById(id);

  /** Return a new element. String children become text nodes, never markup. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }

  function bytes(count) {
    if (Math.abs(count) < 1024) return `${Math.round(count)} B`;
    const steps = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = -1;
    do { count /= 1024; step += 1; } while (Math.abs(count) >= 1023.95 && step < steps.length - 1);
    return `${count.toFixed(1)} ${steps[step]}`;
  }

  const number = (count) => count.toLocaleString("en-US", { maximumFractionDigits: 1 });
  const percent = (part) => `${(100 * part).toFixed(1)} %`;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function seconds(t) {
    if (t < 0) return `-${seconds(-t)}`;
    if (t === 0) return "0 s";
    if (t < 1e-3) return `${Math.round(t * 1e6)} µs`;
    return t < 1 ? `${(t * 1e3).toFixed(1)} ms` : `${t.toFixed(t < 100 ? 2 : 0)} s`;
  }

  // --- Tables: sorted by a click on a column head, searchable, divided into pages. ---

  /** Show a table. Columns: {title, of: row => value, text: (value, row) => text or node, right, kind}. */
  function table(place, columns, rows, { search = null, sort = null, label }) {
    let order = rows.map((_, i) => i);
    let shown = order;
    let page = 0;
    const body = make("tbody");
    const heads = columns.map((column, i) => make("th", { scope: "col", class: column.right ? "right" : null },
      make("button", { type: "button", onclick: () => sortBy(i) }, column.title)));
    const says = make("span", { "aria-live": "polite", class: "count" });
    const back = make("button", { type: "button", onclick: () => turn(-1) }, "Previous");
    const on = make("button", { type: "button", onclick: () => turn(1) }, "Next");
    const controls = make("p", { class: "controls" });
    if (search) {
      let timer = 0;
      const find = make("input", { type: "search", "aria-label": `Search ${label}`, placeholder: "Search" });
      find.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => filter(find.value), 80);
      });
      controls.append(make("label", {}, "Search ", find));
    }
    controls.append(says);
    if (rows.length > PAGE) controls.append(back, on);
    place.replaceChildren(controls, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      make("table", {}, make("caption", { hidden: true }, label), make("thead", {}, make("tr", {}, ...heads)), body)));

    let sorted = sort ? sort.column : -1;
    let falling = sort ? sort.falling : false;
    const texts = search ? rows.map((row) => search(row).toLowerCase()) : null;
    let words = "";

    function sortBy(i) {
      falling = sorted === i ? !falling : Boolean(columns[i].right);
      sorted = i;
      arrange();
    }
    function filter(text) {
      words = text.trim().toLowerCase();
      arrange();
    }
    function arrange() {
      const sign = falling ? -1 : 1;
      if (sorted >= 0) {
        const keys = rows.map(columns[sorted].of);
        const compare = (a, b) => {
          if (keys[a] === keys[b]) return a - b;
          if (keys[a] === null) return 1;
          if (keys[b] === null) return -1;
          return (keys[a] < keys[b] ? -1 : 1) * sign;
        };
        order = rows.map((_, i) => i).sort(compare);
      }
      heads.forEach((head, i) => {
        if (i === sorted) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      shown = words ? order.filter((i) => texts[i].includes(words)) : order;
      page = 0;
      draw();
    }
    function turn(by) {
      page += by;
      draw();
    }
    function draw() {
      const from = page * PAGE;
      const to = Math.min(from + PAGE, shown.length);
      body.replaceChildren(...shown.slice(from, to).map((i) => make("tr", {}, ...columns.map((column) => {
        const value = column.of(rows[i]);
        const text = column.text ? column.text(value, rows[i]) : value;
        return make("td", { class: column.right ? "right" : column.kind || null }, text === null ? "" : text);
      }))));
      says.textContent = shown.length > PAGE
        ? `${number(from + 1)} to ${number(to)} of ${number(shown.length)}`
        : `${number(shown.length)} of ${number(rows.length)}`;
      back.disabled = page === 0;
      on.disabled = to >= shown.length;
    }
    arrange();
  }

  function folded(title, lines) {
    return make("details", {}, make("summary", {}, title), make("pre", {}, lines.join("\n")));
  }

  function list(place, items, none) {
    place.replaceChildren(...(items.length ? items : [make("p", { class: "about" }, none)]));
  }

  // --- Lookup of sites, frames and statistics in a recording. ---

  class Sites {
    constructor(recorded) {
      this.frames = recorded.frames;
      this.found = new Map(recorded.sites.map(([site, place, calls]) => [site, { place, calls }]));
    }
    place(site) {
      const found = this.found.get(site);
      return (found && found.place) || "unknown source line";
    }
    calls(site) {
      const found = this.found.get(site);
      return found ? found.calls.map((i) => this.frames[i]) : ["unknown source line"];
    }
  }

  function stat(recorded, name) {
    const row = recorded.stats.find((each) => each[0] === name);
    return row ? row[2] : 0;
  }

  // --- Sections of the page. ---

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

  const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#e15759",
    "#9c755f", "#ff9da7", "#8cd17d", "#b6992d", "#499894", "#d37295", "#79706e"];

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

  const CHART = { responsive: true, displaylogo: false, displayModeBar: false };
  const shows = { cached: true, resident: true };

  function timeline(recorded) {
    const line = recorded.timeline;
    const kept = thinned(line.live);
    const t = kept.map((i) => line.t[i]);
    const texts = (values) => values.map(bytes);
    const clean = (name) => name.replace(/[<>&]/g, (mark) => `&#${mark.charCodeAt(0)};`);
    const traces = stacked(line, kept).map(([name, y], i) => ({
      x: t, y, name: clean(name), stackgroup: "live", mode: "lines", line: { width: 0.5, color: HUES[i % HUES.length] },
      customdata: texts(y), hovertemplate: "%{customdata}",
    }));
    const lines = { cached: ["kept for reuse", "dot"], resident: ["resident", "solid"] };
    for (const [name, [title, dash]] of Object.entries(lines)) {
      const y = kept.map((i) => (line[name][i] < 0 ? null : line[name][i]));
      if (shows[name]) {
        traces.push({ x: t, y, name: title, mode: "lines", line: { width: 1.5, dash, color: color("--faint") },
          customdata: texts(y), hovertemplate: "%{customdata}" });
      }
    }
    const visible = [line.live, ...Object.keys(lines).filter((name) => shows[name]).map((name) => line[name])];
    const most = visible.reduce((a, values) => values.reduce((b, value) => Math.max(b, value), a), 0);
    Plotly.react($("timeline-chart"), traces, layout({
      hovermode: "x unified", xaxis: { title: { text: "seconds" } }, yaxis: byteAxis(most), showlegend: true,
    }), CHART);
    controls(recorded);
    cursor(recorded, kept);
    table($("timeline-table"), [
      { title: "Seconds", of: (i) => line.t[i], text: (t) => t.toFixed(3), right: true },
      ...["live", "cached", "resident"].map((name) => ({ title: name, of: (i) => line[name][i], text: bytes, right: true })),
    ], line.t.map((_, i) => i), { label: "readings", sort: { column: 0, falling: false } });
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

  /** Let arrow keys select a reading: mark its time in the chart, and write its values as text. */
  function cursor(recorded, kept) {
    const line = recorded.timeline;
    let at = -1;
    $("timeline-reading").textContent = "";
    $("timeline-chart").onkeydown = (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50, Home: -kept.length, End: kept.length };
      if (!(event.key in steps) || !kept.length) return;
      event.preventDefault();
      at = Math.min(kept.length - 1, Math.max(0, at + steps[event.key]));
      const i = kept[at];
      const scopes = line.scoped[i].map(([scope, size]) => `${line.scopes[scope] || "other scopes"} ${bytes(size)}`);
      $("timeline-reading").textContent = `At ${line.t[i].toFixed(3)} s: live ${bytes(line.live[i])}, ` +
        `kept for reuse ${bytes(line.cached[i])}` +
        (line.resident[i] < 0 ? "" : `, resident ${bytes(line.resident[i])}`) +
        (scopes.length ? `; in ${scopes.join(", ")}` : "");
      const x = line.t[i];
      Plotly.relayout($("timeline-chart"), { shapes: [{ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper",
        line: { color: color("--accent"), width: 2 } }] });
    };
  }

  function highest(recorded, sites) {
    const all = recorded.highest.bytes;
    $("highest-about").textContent = recorded.highest.rows.length
      ? `Highest observed moment, ${seconds(recorded.highest.t)} after the start: ` +
        `${bytes(all)} in tracked buffers. The peak is ${bytes(stat(recorded, "peak"))}.`
      : "No moment was observed.";
    const sums = new Map();
    for (const [site, scope, buffers, size] of recorded.highest.rows) {
      const key = JSON.stringify([sites.place(site), scope]);
      const sum = sums.get(key) || { place: sites.place(site), scope, site, buffers: 0, size: 0 };
      sum.buffers += buffers;
      sum.size += size;
      sums.set(key, sum);
    }
    const bar = (size) => make("span", { class: "bar" }, width(make("span"), all ? size / all : 0));
    table($("highest-table"), [
      { title: "Allocation site", of: (row) => row.place, text: (_, row) => siteLink(sites, row.site), kind: "place" },
      { title: "Scope", of: (row) => row.scope },
      { title: "Bytes", of: (row) => row.size, text: bytes, right: true },
      { title: "Percentage", of: (row) => row.size, text: (size) => percent(all ? size / all : 0), right: true },
      { title: "", of: (row) => row.size, text: bar },
      { title: "Buffers", of: (row) => row.buffers, text: number, right: true },
    ], [...sums.values()], { label: "allocation sites", sort: { column: 2, falling: true },
      search: (row) => `${row.place} ${row.scope || ""}` });
  }

  function width(element, part) {
    element.style.width = `${100 * part}%`;
    return element;
  }

  /** Return an allocation site as an element that opens to show its call stack. */
  function siteLink(sites, site) {
    const calls = sites.calls(site).slice().reverse();
    if (calls.length < 2) return document.createTextNode(sites.place(site));
    return make("details", {}, make("summary", {}, sites.place(site)),
      make("ol", {}, ...calls.map((call) => make("li", {}, call))));
  }

  function live(recorded, sites) {
    const at = Object.fromEntries(recorded.live.columns.map((name, i) => [name, i]));
    const field = (name) => (row) => row[at[name]];
    const rows = recorded.live.rows;
    const more = recorded.live.more ? ` The ${number(recorded.live.more)} smallest are omitted.` : "";
    $("live-about").textContent = `Tracked buffers, after garbage collection.${more}`;
    table($("live-table"), [
      { title: "Size", of: field("nbytes"), text: bytes, right: true },
      { title: "Allocation site", of: (row) => sites.place(field("site")(row)), text: (_, row) => siteLink(sites, field("site")(row)), kind: "place" },
      { title: "Scope", of: field("scope") },
      { title: "Name", of: field("name") },
      { title: "Age", of: field("age"), text: seconds, right: true },
      { title: "References", of: field("refcount"), text: number, right: true },
      { title: "Sampling weight", of: field("weight"), text: number, right: true },
      { title: "Kind", of: field("kind") },
      { title: "Policy", of: field("policy") },
      { title: "Thread", of: field("thread"), text: String, right: true },
      { title: "Serial number", of: field("id"), text: number, right: true },
      { title: "Address", of: field("address"), text: (address) => `0x${address.toString(16)}`, kind: "code" },
    ], rows, { label: "live buffers", sort: { column: 0, falling: true },
      search: (row) => [sites.place(field("site")(row)), ...["scope", "name", "kind", "policy"].map((name) => field(name)(row) || "")].join(" ") });
  }

  function groups(place, found, none) {
    list(place, found.map((each) => folded(`${bytes(each.bytes)} in ${number(each.buffers)} ` +
      `buffer${each.buffers === 1 ? "" : "s"} allocated ${each.place ? `in ${each.place}` : "at an unknown source line"}`, each.lines)), none);
  }

  function ends(recorded) {
    groups($("lost"), recorded.lost, "Nothing is lost.");
    groups($("held"), recorded.held, "Nothing is live.");
    list($("holders-list"), recorded.holders.map((each) => folded(each.title, each.lines)), "Nothing is live.");
    $("retention-about").textContent = `Views of a small part keep ${number(recorded.retention.count)} buffers alive; ` +
      `${bytes(recorded.retention.wasted)} of the memory are in no view.`;
    list($("retention-list"), recorded.retention.buffers.map((each) => folded(each.why, each.lines)), "");
  }

  function sizes(recorded) {
    const rows = recorded.highest.sizes;
    const title = (bits) => (bits === 0 ? "0 B" : `< ${bytes(2 ** bits)}`);
    const of = $("sizes-of").value === "bytes" ? 2 : 1;
    const y = rows.map((row) => row[of]);
    const say = of === 2 ? bytes : number;
    const axis = of === 2 ? byteAxis(y.reduce((a, b) => Math.max(a, b), 0)) : { fixedrange: true };
    Plotly.react($("sizes-chart"), [{ type: "bar", x: rows.map((row) => title(row[0])), y,
      marker: { color: color("--bar") }, customdata: y.map(say), hovertemplate: "%{x}: %{customdata}<extra></extra>" }],
    layout({ xaxis: { type: "category", fixedrange: true }, yaxis: axis }), CHART);
    table($("sizes-table"), [
      { title: "Size", of: (row) => row[0], text: title, right: true },
      { title: "Buffers", of: (row) => row[1], text: number, right: true },
      { title: "Bytes", of: (row) => row[2], text: bytes, right: true },
    ], rows, { label: "sizes", sort: { column: 0, falling: false } });
  }

  function pairs(place, rows, label) {
    table(place, [{ title: "Name", of: (row) => row[0] }, { title: "Value", of: (row) => row[1], kind: "place" }], rows, { label });
  }

  function settings(recorded) {
    pairs($("versions"), [["Program", recorded.program.join(" ")], ["memrt", recorded.memrt], ["Python", recorded.python],
      ["NumPy", recorded.numpy], ["Platform", recorded.platform], ["Process", String(recorded.pid)],
      ["Parent", String(recorded.parent)], ...recorded.settings], "settings and versions");
    table($("options"), [{ title: "Option", of: (row) => row[0], kind: "code" }, { title: "Value", of: (row) => row[1] },
      { title: "Effect", of: (row) => row[2], kind: "place" }], recorded.options, { label: "options" });
    table($("stats"), [{ title: "Field", of: (row) => row[0] },
      { title: "Amount", of: (row) => row[2], text: (value, row) => (row[1] === "bytes" ? bytes(value) : number(value)), right: true },
      { title: "Exact value", of: (row) => row[2], text: number, right: true }], recorded.stats, { label: "statistics" });
  }

  // --- The flame graph. ---

  function grown(sites, weights) {
    const root = { name: "all", size: 0, children: new Map(), up: null, depth: 0 };
    for (const [site, size] of weights) {
      let node = root;
      node.size += size;
      for (const call of sites.calls(site)) {
        if (!node.children.has(call)) {
          node.children.set(call, { name: call, size: 0, children: new Map(), up: node, depth: node.depth + 1 });
        }
        node = node.children.get(call);
        node.size += size;
      }
    }
    return root;
  }

  /** Return the text of a call without the folder of its file. */
  const short = (name) => name.replace(/ at \/.*\/([^/]+:\d+)$/, " at $1");

  const below = (node) => [...node.children.values()].sort((a, b) => b.size - a.size);

  function hue(name) {
    let sum = 0;
    for (const mark of name) sum = (sum * 31 + mark.codePointAt(0)) % 3600;
    return sum % 60; // hues from red to yellow
  }

  function flame(recorded, sites) {
    const weights = $("flame-of").value === "total"
      ? recorded.total.map(([site, , size]) => [site, size])
      : recorded.highest.rows.map(([site, , , size]) => [site, size]);
    const root = grown(sites, weights);
    const graph = $("flame-graph");
    const buttons = new Map();
    let shown = root;

    function label(node) {
      return `${node.name}: ${bytes(node.size)}, ${percent(root.size ? node.size / root.size : 0)}`;
    }
    function focus(node) {
      if (!node || !buttons.has(node)) return;
      for (const [, button] of buttons) button.tabIndex = -1;
      buttons.get(node).tabIndex = 0;
      buttons.get(node).focus();
    }
    function show(node) {
      shown = node;
      draw();
      focus(node);
    }
    function neighbour(node, by) {
      if (!node.up) return null;
      const row = below(node.up);
      return row[row.indexOf(node) + by];
    }
    function key(event, node) {
      const moves = {
        ArrowUp: () => focus(node.up), ArrowDown: () => focus(below(node)[0]),
        ArrowLeft: () => focus(neighbour(node, -1)), ArrowRight: () => focus(neighbour(node, 1)),
        Home: () => focus(shown), Escape: () => show(root),
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      moves[event.key]();
    }
    function put(node, left, part, row, deepest) {
      const button = make("button", { type: "button", tabindex: node === shown ? "0" : "-1", title: label(node),
        "aria-label": label(node), onclick: () => show(node), onkeydown: (event) => key(event, node),
        onfocus: () => { $("flame-reading").textContent = label(node); } }, short(node.name));
      button.style.left = `${100 * left}%`;
      button.style.width = `${100 * part}%`;
      button.style.top = `${row * FLAME_ROW}px`;
      button.style.background = `hsl(${hue(node.name)} 75% var(--flame))`;
      buttons.set(node, button);
      let last = Math.max(deepest, row);
      let at = left;
      for (const child of below(node)) {
        const share = node.size ? (child.size / node.size) * part : 0;
        if (share >= FLAME_LEAST) last = Math.max(last, put(child, at, share, row + 1, last));
        at += share;
      }
      return last;
    }
    function draw() {
      buttons.clear();
      const above = [];
      for (let node = shown.up; node; node = node.up) above.unshift(node);
      above.forEach((node, row) => {
        const children = node.children;
        node.children = new Map();
        put(node, 0, 1, row, row);
        node.children = children;
      });
      const last = put(shown, 0, 1, above.length, above.length);
      graph.style.height = `${(last + 1) * FLAME_ROW}px`;
      graph.replaceChildren(...buttons.values());
    }
    $("flame-reset").onclick = () => show(root);
    $("flame-of").onchange = () => flame(recorded, sites);
    $("flame-reading").textContent = "";
    draw();
  }

  // --- All processes of a recording. ---

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
    Plotly.react($("together-chart"), series.map(([name, y], i) => ({
      x: t, y, name, stackgroup: "all", mode: "lines", line: { width: 0.5, shape: "hv", color: HUES[i % HUES.length] },
      customdata: y.map(bytes), hovertemplate: "%{customdata}",
    })), layout({ hovermode: "x unified", xaxis: { title: { text: "seconds" } }, yaxis: byteAxis(most), showlegend: true }), CHART);
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

  // --- The whole page. ---

  let current = null;

  function charts() {
    timeline(current);
    sizes(current);
    if (documents.length > 1) together();
  }

  function show(index) {
    current = documents[index];
    const sites = new Sites(current);
    overview(current);
    highest(current, sites);
    flame(current, sites);
    live(current, sites);
    ends(current);
    settings(current);
    charts();
  }

  $("sizes-of").addEventListener("change", () => sizes(current));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", charts);
  processes();
  show(0);
  document.documentElement.dataset.ready = "yes";
})();
