/** Tables: sorted by a click on a column head, searchable, divided into pages; and packed columns. */

const PAGE = 25; // rows on one page of a table

const isEmpty = (value) => value === null || value === "";

/** Return whether to show a column: not without content, and not where a `common` value is equal in all rows. */
function shownColumn({ of, common }, rows) {
  if (common && rows.length > 1 && rows.every((row) => of(row) === of(rows[0]))) return false;
  return !rows.length || rows.some((row) => !isEmpty(of(row)));
}

/** Show a table. Columns: {title, of: row => value, text: (value, row) => text or node, right, kind, common}.
    A sentence has the values of `common` columns that are equal in all rows. */
function table(place, allColumns, rows, { search = null, sort = null, label }) {
  const columns = allColumns.filter((column) => shownColumn(column, rows));
  const equal = allColumns.filter((column) => column.common && rows.length > 1 && !columns.includes(column));
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
  place.replaceChildren(controls, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${label}` },
    make("table", {}, make("caption", { hidden: true }, label), make("thead", {}, make("tr", {}, ...heads)), body)));

  const same = equal.filter((column) => !isEmpty(column.of(rows[0]))).map(({ title, of, text }) =>
    `${title} ${text ? text(of(rows[0]), rows[0]) : of(rows[0])}`);
  if (same.length) place.append(make("p", { class: "about" }, `All rows: ${same.join("; ")}.`));

  let sorted = sort ? columns.indexOf(allColumns[sort.column]) : -1;
  let falling = sort ? sort.falling : false;
  let texts = null; // of the first search on
  let words = "";

  function sortBy(i) {
    falling = sorted === i ? !falling : Boolean(columns[i].right);
    sorted = i;
    arrange();
  }
  function filter(text) {
    words = text.trim().toLowerCase();
    texts = texts || rows.map((row) => search(row).toLowerCase());
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

// --- Packed columns: the values of many rows, decoded at the first use. ---

const CELLS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array };

/** Return the cells of a packed column as a typed array. */
function cellsOf({ width, cells }) {
  const text = atob(cells);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) found[i] = text.charCodeAt(i);
  return new CELLS[width](found.buffer);
}

/** Return a function from the number of a row to the value in a packed column. */
function packedColumn(column) {
  const { width, values, start } = column;
  if (width === 0) return () => values[0];
  let cells = null;
  return (i) => {
    cells = cells || cellsOf(column);
    return values ? values[cells[i]] : start + cells[i];
  };
}
