/** Elements of the page. */

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

/** Return a text as a list of nodes: parts between backticks become code. */
function marked(text) {
  return text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));
}

function width(element, part) {
  element.style.width = `${100 * part}%`;
  return element;
}

function folded(title, lines) {
  return make("details", {}, make("summary", {}, ...marked(title)), make("pre", {}, lines.join("\n")));
}

function list(place, items, none) {
  place.replaceChildren(...(items.length ? items : [make("p", { class: "about" }, none)]));
}
