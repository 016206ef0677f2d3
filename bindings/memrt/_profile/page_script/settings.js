/** Section "Settings": versions, options and statistics. */

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
