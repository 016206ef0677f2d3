/** Allocation sites of a recording, with their call stacks. */

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

/** Return an allocation site as an element that opens to show its call stack. */
function siteLink(sites, site) {
  const calls = sites.calls(site).slice().reverse();
  if (calls.length < 2) return document.createTextNode(sites.place(site));
  return make("details", {}, make("summary", {}, sites.place(site)),
    make("ol", {}, ...calls.map((call) => make("li", {}, call))));
}
