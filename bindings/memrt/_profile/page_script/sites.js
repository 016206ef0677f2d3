/** Allocation sites of a recording, with their call stacks and source text. */

const PACKAGES = /^.*\/(?:site|dist)-packages\//;

class Sites {
  /** With `all`, places are the innermost calls, also in libraries, with whole paths. */
  constructor(recorded, all) {
    this.all = all;
    this.frames = recorded.frames;
    this.found = new Map(recorded.sites.map(([site, place, calls]) => [site, { place, calls }]));
    this.libraries = new Map((recorded.user_calls || []).map(([site, , library]) => [site, library]));
    const texts = new Map((recorded.sources || []).map(([call, line, first, lines]) => [call, { line, first, lines }]));
    this.sources = new Map((recorded.user_calls || []).map(([site, call]) => [site, texts.get(call)]));
    this.bySource = new Map(recorded.sites.map(([site, place]) => [place, this.sources.get(site)]));
    const roots = recorded.roots || { project: [], library: [] };
    this.roots = [...roots.library, ...roots.project];
  }
  place(site) {
    const calls = this.calls(site);
    if (this.all) return calls[calls.length - 1];
    const found = this.found.get(site);
    return (found && found.place) || "unknown source line";
  }
  /** Return the line of a library that allocates for the user's line, or an empty text. */
  through(site) {
    const library = this.all ? -1 : this.libraries.get(site) ?? -1;
    return library < 0 ? "" : this.short(this.frames[library]).replace(/^.* at /, "");
  }
  calls(site) {
    const found = this.found.get(site);
    return found ? found.calls.map((i) => this.short(this.frames[i])) : ["unknown source line"];
  }
  /** Return the text of a call, with a path relative to the project or to a library. */
  short(call) {
    const at = call.lastIndexOf(" at ") + 4;
    if (this.all || at < 4) return call;
    const file = call.slice(at).replace(PACKAGES, "");
    const root = this.roots.find((folder) => file.startsWith(folder));
    return call.slice(0, at) + (root === undefined ? file : file.slice(root.length));
  }
}

/** Return the source text around a line, in a list of elements; empty without source text. */
function sourceText(source) {
  if (!source) return [];
  const digits = String(source.first + source.lines.length).length;
  return [make("pre", { class: "source" }, ...source.lines.map((text, i) => make("span",
    { class: source.first + i === source.line ? "current" : null }, `${String(source.first + i).padStart(digits)}  ${text}\n`)))];
}

/** Return the text of the line itself, in a list of elements; empty without source text. */
function sourceLine(source) {
  return source ? [make("code", { class: "line" }, source.lines[source.line - source.first].trim())] : [];
}

/** Return an allocation site as an element that opens to show source text and call stack. With `line`, the closed
    element shows the text of the line, too. */
function siteLink(sites, site, line = false) {
  const calls = sites.calls(site).slice().reverse();
  const through = sites.through(site);
  const text = [sites.place(site), ...(through ? [make("span", { class: "about" }, ` through ${through}`)] : [])];
  const source = sites.sources.get(site);
  if (calls.length < 2 && !source) return make("span", {}, ...text);
  return make("details", {}, make("summary", {}, ...text, ...(line ? sourceLine(source) : [])), ...sourceText(source),
    make("ol", {}, ...calls.map((call) => make("li", {}, call))));
}
