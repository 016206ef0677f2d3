"""Rules of axe-core for screen readers, keyboards and contrast, on pages with all parts shown."""

from __future__ import annotations

import copy

from axe_playwright_python.sync_playwright import Axe
from memrt._profile.findings.comparison import compare


def violations(page):
    """Return a line for each element that breaks a rule, after all folded parts were opened."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for rule in Axe().run(page).response["violations"]
        for node in rule["nodes"][:2]
    ]


def test_axe_finds_no_violation_on_a_page(page):
    assert violations(page) == []


def test_axe_finds_no_violation_on_a_dark_narrow_page(page_of, document):
    main, child = copy.deepcopy(document), copy.deepcopy(document)
    main["comparison"] = compare([document], [document])
    child.update(pid=document["pid"] + 1, parent=document["pid"])
    viewport = {"width": 400, "height": 900}
    assert violations(page_of(main, child, color_scheme="dark", viewport=viewport)) == []


def test_axe_finds_no_violation_on_a_page_with_a_chosen_range(page):
    page.locator("#timeline-chart").focus()
    for key in ("End", "Enter", "Home", "Shift+Enter"):
        page.keyboard.press(key)
    assert page.locator("#moment-range").is_visible()
    assert violations(page) == []
