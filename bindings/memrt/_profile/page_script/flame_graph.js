/** Section "Flame graph": bytes by call stack. */

const FLAME_LEAST = 0.0008; // narrowest box that is drawn, as a fraction of the graph's width
const FLAME_ROW = 22; // height of a row in pixels

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
    : view(recorded).rows.filter((row) => row.size > 0).map(({ site, size }) => [site, size]);
  $("flame-of").options[0].textContent = view(recorded).title;
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
