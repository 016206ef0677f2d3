/** Section "Findings": the verdict, before all figures. */

function findings(recorded) {
  const rows = (recorded.findings || []).map((each) => make("li", {}, make("strong", {}, `${each.rule}: `),
    `${each.text}.`, make("span", { class: "fix" }, `Next step: ${each.fix}.`)));
  list($("findings-list"), rows.length ? [make("ol", {}, ...rows)] : [], "No rule found a problem.");
}
