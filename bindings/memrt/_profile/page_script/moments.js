/** The moment or range chosen in the timeline: data for the table of allocation sites and the flame graph. */

const DRAG = 4; // pixels from which a movement of the pointer is a drag

let chosen = null; // {from, to} in seconds; null: the highest observed moment

/** Return the index of the listing closest to a time. */
const closest = (listings, t) => listings.reduce((best, each, i) =>
  (Math.abs(each.t - t) < Math.abs(listings[best].t - t) ? i : best), 0);

/** Return the indices of the first and last listing of the chosen range, or twice the index of the moment. */
function chosenListings(recorded) {
  const listings = recorded.listings;
  const from = closest(listings, chosen.from);
  let to = closest(listings, chosen.to);
  if (chosen.from === chosen.to) return [from, from];
  if (from === to && to < listings.length - 1) to += 1;
  return from === to ? [Math.max(0, from - 1), to] : [from, to];
}

/** Return the sum of buffers and bytes by site; rows end with both numbers. */
function bySite(rows) {
  const sums = new Map();
  for (const row of rows) {
    const sum = sums.get(row[0]) || [0, 0];
    sums.set(row[0], [sum[0] + row.at(-2), sum[1] + row.at(-1)]);
  }
  return sums;
}

/** Return the rows of a range: allocated, freed, both at most, or the change of live buffers. */
function rangeRows(listings, first, last, mode) {
  const came = bySite(listings.slice(first + 1, last + 1).flatMap((each) => each.came));
  const before = bySite(listings[first].rows);
  const after = bySite(listings[last].rows);
  const of = (sums, site) => sums.get(site) || [0, 0];
  return [...new Set([...came.keys(), ...before.keys(), ...after.keys()])].map((site) => {
    const [buffers, size] = [0, 1].map((i) => {
      const all = of(came, site)[i];
      const change = of(after, site)[i] - of(before, site)[i];
      const freed = Math.max(0, all - change);
      return { came: all, went: freed, temporary: Math.min(all, freed), change }[mode];
    });
    return { site, scope: null, buffers, size };
  }).filter((row) => row.size !== 0 || row.buffers !== 0);
}

function peakView(recorded) {
  const { t, bytes: all, rows } = recorded.highest;
  const peak = stat(recorded, "peak");
  const off = Math.max(0, peak + stat(recorded, "peak_error") - all);
  return {
    title: "Highest observed moment",
    about: rows.length ? `Highest observed moment, ${seconds(t)} after the start: ${bytes(all)} in tracked buffers. ` +
      `The peak is ${bytes(peak)}, within ${bytes(off)} of this moment.` : "No moment was observed.",
    rows: rows.map(([site, scope, buffers, size]) => ({ site, scope, buffers, size })), all,
  };
}

/** Return the distance of a listing from a time, in words. */
function distance(listing, t) {
  const by = listing.t - t;
  return Math.abs(by) < 5e-4 ? "at the chosen time" : `${seconds(Math.abs(by))} ${by < 0 ? "before" : "after"} the chosen time`;
}

/** Return title, text and rows of the highest observed moment, or of the chosen moment or range. */
function view(recorded) {
  if (chosen === null) return peakView(recorded);
  const listings = recorded.listings;
  const [first, last] = chosenListings(recorded);
  const [start, end] = [listings[first], listings[last]];
  if (first === last) {
    const rows = end.rows.map(([site, scope, buffers, size]) => ({ site, scope, buffers, size }));
    return { title: `Live at ${end.t.toFixed(3)} s`, rows, all: end.bytes,
      about: `Live at ${end.t.toFixed(3)} s, ${distance(end, chosen.to)}: ${bytes(end.bytes)} in tracked buffers.` };
  }
  const rowsOf = (mode) => rangeRows(listings, first, last, mode);
  const sum = (rows) => rows.reduce((all, row) => all + Math.max(0, row.size), 0);
  const [came, went, temporary] = ["came", "went", "temporary"].map((mode) => bytes(sum(rowsOf(mode))));
  const rows = rowsOf($("moment-of").value);
  return { title: `From ${start.t.toFixed(3)} s to ${end.t.toFixed(3)} s: ${$("moment-of").selectedOptions[0].textContent}`,
    rows, all: sum(rows),
    about: `From ${start.t.toFixed(3)} s, ${distance(start, chosen.from)}, to ${end.t.toFixed(3)} s, ` +
      `${distance(end, chosen.to)}: ${came} allocated and ${went} freed, at most ${temporary} of both in the range.` };
}

/** Show a time, a range, or, for null, the highest observed moment. */
function choose(recorded, from, to = from) {
  chosen = from === null || !(recorded.listings || []).length ? null : { from: Math.min(from, to), to: Math.max(from, to) };
  showChosen(recorded);
}

function showChosen(recorded) {
  const sites = new Sites(recorded, $("all-frames").checked);
  const isRange = chosen !== null && chosen.from !== chosen.to;
  $("moment-controls").hidden = chosen === null;
  $("moment-range").hidden = !isRange;
  $("moment-about").textContent = chosen === null ? "" : view(recorded).about;
  highest(recorded, sites);
  flame(recorded, sites);
  if ($("timeline-chart").plot) $("timeline-chart").plot.redraw(false);
}

/** Choose by Enter, a range by Shift and Enter, and the highest moment by Escape. Returns whether the key did so. */
function chooseByKey(recorded, event, t) {
  if (event.key === "Escape") choose(recorded, null);
  else if (event.key === "Enter" && t !== null) choose(recorded, event.shiftKey && chosen ? chosen.from : t, t);
  else return false;
  return true;
}

/** Choose by a click or a drag on a chart. A drag may end outside of the chart. */
function chooseByPointer(recorded, plot) {
  const at = (event) => {
    const box = plot.over.getBoundingClientRect();
    return Math.min(Math.max(0, event.clientX - box.left), box.width);
  };
  plot.over.addEventListener("pointerdown", (start) => {
    if (start.button !== 0) return;
    const end = (event) => {
      for (const kind of ["pointerup", "pointercancel"]) removeEventListener(kind, end);
      if (event.type === "pointercancel") return;
      const isDrag = Math.abs(at(event) - at(start)) >= DRAG;
      const to = plot.posToVal(at(event), "x");
      choose(recorded, isDrag ? plot.posToVal(at(start), "x") : to, to);
    };
    for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, end);
  });
}

/** Mark the times of listings, and the chosen moment or range, on the canvas of a chart. */
function paintMoments(recorded, plot) {
  const listings = recorded.listings || [];
  const { ctx, bbox: { top, height } } = plot;
  const x = (t) => plot.valToPos(t, "x", true);
  ctx.save();
  ctx.fillStyle = color("--accent");
  for (const each of listings) ctx.fillRect(x(each.t) - 0.5, top, 1, height / 40);
  if (chosen !== null) {
    const [from, to] = chosenListings(recorded).map((i) => x(listings[i].t));
    ctx.fillRect(to - 1, top, 2, height);
    ctx.fillRect(from - 1, top, 2, height);
    ctx.globalAlpha = 0.2;
    ctx.fillRect(from, top, to - from, height);
  }
  ctx.restore();
}
