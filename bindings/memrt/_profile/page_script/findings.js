/** Section "Findings": the verdict, before all figures. */

function findings(recorded, sites) {
  const rows = (recorded.findings || []).map((each) => make("li", {}, make("strong", {}, `${each.rule}: `),
    `${each.text}.`, make("span", { class: "fix" }, `Next step: ${each.fix}.`), ...sourceText(sites.bySource.get(each.place))));
  list($("findings-list"), rows.length ? [make("ol", {}, ...rows)] : [], "No rule found a problem.");
}
