"""The page of a recording, in a real browser: contents and use."""

from __future__ import annotations

import copy
import re
import time

import pytest
from hostile import HOSTILE
from memrt._profile.findings.comparison import compare
from playwright.sync_api import expect

SECTIONS = (
    *("Findings", "Overview", "Timeline", "Memory of the process"),
    *("Highest observed moment, by allocation site", "Flame graph", "Live at the end", "Leaks"),
    *("Holders of buffers live at the end", "Retention by small views", "Sizes"),
    "Settings and versions",
)


def texts(page, selector):
    return page.locator(selector).all_inner_texts()


def legend(page, chart="timeline-chart"):
    """Return the names in the legend of a chart."""
    return page.locator(f"#{chart} .u-label").all_text_contents()


def columns(page, chart):
    """Return the columns of a chart: horizontal positions, then one column for each series."""
    return page.evaluate(f"document.getElementById('{chart}').plot.data")


def column(page, table, index):
    return texts(page, f"#{table} tbody tr td:nth-child({index})")


def wait_for_rows(page, count):
    """Wait until the table of live buffers shows `count` rows."""
    expect(page.locator("#live-table tbody tr")).to_have_count(count, timeout=60_000)


def amount(text):
    """Return the bytes of a text such as 1.5 MiB."""
    number, unit = text.split()
    return float(number) * 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)


def test_each_section_is_present_and_not_empty(page):
    assert texts(page, "h2:visible") == list(SECTIONS)
    for section in page.locator("main section:visible").all():
        assert len(section.inner_text()) > 20
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1


def test_figures_equal_the_recording(page, document):
    stats = {name: number for name, _, number in document["stats"]}
    figures = dict(zip(texts(page, "#figures dt"), texts(page, "#figures dd"), strict=True))
    peak = next(value for title, value in figures.items() if title.startswith("Peak"))
    assert amount(peak) == pytest.approx(stats["peak"], rel=0.01)
    assert figures["Blocks allocated"] == f"{stats['alloc']:,}"
    assert texts(page, "#notes li") == document["notes"]


def test_memory_of_the_process_has_all_parts(page, page_of, document):
    rows = document["memory"]
    assert sorted(column(page, "memory-table", 1)) == sorted(row[0] for row in rows)
    sizes = [amount(text) for text in column(page, "memory-table", 2)]
    assert sizes == sorted(sizes, reverse=True)
    total = sum(row[2] for row in rows)
    said = page.locator("#memory-about").inner_text()
    assert amount(said.removeprefix("All ").split(" in memory")[0]) == pytest.approx(
        total, rel=0.01
    )
    assert ("Huge pages" in said) == (document["huge_pages"]["asked"] != 0)
    for got, shown in ((6 << 20, "6.0 MiB"), (None, "unknown")):
        counted = {**document, "huge_pages": {"asked": 8 << 20, "got": got}}
        text = page_of(counted).locator("#memory-about").inner_text()
        assert text.endswith(f"Huge pages: memrt asked for 8.0 MiB, in memory: {shown}.")
    unknown = {**document, "memory": [["a", "why", None, None], ["b", "b", 5, 5]]}
    assert column(page_of(unknown), "memory-table", 2) == ["5 B", "unknown"]
    old = {name: document[name] for name in document if name not in ("memory", "huge_pages")}
    assert "no account" in page_of(old).locator("#memory-about").inner_text()


def test_memory_over_time_has_all_parts_of_the_process(page_of, document):
    times = [0.5, 1.0, 1.5]
    sizes = {"arrays": [10, 20, 30], "malloc_used": [1, 2, 3], "stacks": [0, 0, 0]}
    parts = [{"name": name, "resident": resident} for name, resident in sizes.items()]
    page = page_of({**document, "memory_over_time": {"t": times, "parts": parts}})
    assert legend(page, "memory-chart") == ["malloc used", "arrays", "resident"]
    assert columns(page, "memory-chart") == [times, [11, 22, 33], [10, 20, 30], [11, 22, 33]]
    page.locator("#memory-chart").press("Home")
    reading = page.locator("#memory-reading").inner_text()
    assert reading == "At 0.500 s: resident 11 B; arrays 10 B, malloc used 1 B"


def test_memory_over_time_is_stacked_up_to_the_resident_bytes(page_of, document):
    document = {**document, "memory_over_time": {"t": [], "parts": []}}
    page = page_of(document)
    line = document["timeline"]
    _, everything, _, arrays, resident = columns(page, "memory-chart")
    assert arrays == line["live"]
    assert resident == line["resident"]
    assert all(total >= size for total, size in zip(everything, resident, strict=True))
    page.locator("#memory-chart").press("Home")
    assert page.locator("#memory-reading").inner_text().startswith(f"At {line['t'][0]:.3f} s: ")
    unknown = copy.deepcopy(document)
    unknown["timeline"]["resident"] = [-1 for _ in line["t"]]
    assert not page_of(unknown).locator("#memory-chart").is_visible()


def test_timeline_has_scopes_and_lines_that_can_be_hidden(page):
    names = legend(page)
    for name in ("resident", "kept for reuse", "live, in load", "live, in no scope"):
        assert name in names
    assert len(columns(page, "timeline-chart")) == 1 + len(names)
    page.get_by_label("resident").uncheck()
    assert "resident" not in legend(page)


def test_timeline_values_are_read_by_the_arrow_keys(page, document):
    page.locator("#timeline-chart").focus()
    page.keyboard.press("End")
    line = document["timeline"]
    assert texts(page, "#timeline-reading")[0].startswith(f"At {line['t'][-1]:.3f} s: live ")
    page.keyboard.press("ArrowLeft")
    assert texts(page, "#timeline-reading")[0].startswith(f"At {line['t'][-2]:.3f} s: live ")
    cursor = page.locator("#timeline-chart .u-cursor-x")
    assert "translate(0px" not in cursor.get_attribute("style")


def test_peak_table_lists_sites_largest_first(page, document):
    sizes = [amount(text) for text in column(page, "highest-table", 3)]
    assert sizes == sorted(sizes, reverse=True)
    assert "load" in column(page, "highest-table", 1)[0]
    assert sum(sizes) == pytest.approx(document["highest"]["bytes"], rel=0.01)


def test_flame_graph_works_by_keyboard(page):
    graph = page.locator("#flame-graph")
    everything = graph.locator("button").count()
    assert everything > 4
    assert graph.locator("button[tabindex='0']").count() == 1
    graph.locator("button[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    first = texts(page, "#flame-reading")[0]
    assert "MiB" in first
    page.keyboard.press("ArrowRight")
    second = texts(page, "#flame-reading")[0]
    assert second != first
    page.keyboard.press("Enter")
    assert 1 < graph.locator("button").count() < everything
    page.keyboard.press("Escape")
    assert graph.locator("button").count() == everything


def test_flame_graph_can_show_total_bytes(page, document):
    page.locator("#flame-of").select_option("total")
    title = page.locator("#flame-graph button").first.get_attribute("title")
    assert amount(title.split(": ")[1].split(",")[0]) == pytest.approx(
        sum(size for _, _, size in document["total"]), rel=0.01
    )


def test_live_buffers_are_sorted_by_column_heads(page):
    sizes = [amount(text) for text in column(page, "live-table", 1)]
    assert sizes == sorted(sizes, reverse=True)
    head = page.locator("#live-table th").first
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").press("Enter")
    sizes = [amount(text) for text in column(page, "live-table", 1)]
    assert head.get_attribute("aria-sort") == "ascending"
    assert sizes == sorted(sizes)


def test_live_buffers_have_pages_and_a_search(page, document):
    count = len(document["live"]["rows"])
    says = page.locator("#live-table .count")
    assert says.inner_text() == f"1 to 25 of {count:,}"
    page.locator("#live-table").get_by_role("button", name="Next").press("Enter")
    assert says.inner_text() == f"26 to 50 of {count:,}"
    page.get_by_label("Search live buffers").fill("load")
    wait_for_rows(page, 20)
    assert all("load" in text for text in column(page, "live-table", 2))


def test_site_expands_to_its_call_stack(page):
    page.locator("#live-table summary").first.press("Enter")
    calls = texts(page, "#live-table details[open] li")
    assert len(calls) > 1
    assert "<module>" in calls[-1]


def test_sites_show_the_library_and_on_request_all_calls(page):
    place = page.locator("#highest-table tbody tr td.place", has_text="load at").first
    assert "through numpy/_core/numeric.py:" in place.inner_text()
    page.locator("#all-frames").check()
    expect(page.locator("#highest-table tbody")).to_contain_text("site-packages/numpy")
    expect(page.locator("#highest-table tbody")).not_to_contain_text("through")


def test_library_in_the_project_folder_is_named_by_its_package(page_of, document):
    made = copy.deepcopy(document)
    library = "/srv/app/env/lib/python3.13/"
    made["roots"] = {"project": ["/srv/app/"], "library": [library]}
    made["frames"] = [
        re.sub(" at .*/site-packages/", f" at {library}", each) for each in made["frames"]
    ]
    place = page_of(made).locator("#highest-table tbody tr td.place", has_text="load at").first
    assert "through numpy/_core/numeric.py:" in place.inner_text()


def test_sites_show_their_source_text(page):
    row = page.locator("#highest-table tr", has_text="load at").first
    assert row.locator("code.line").inner_text() == "return [np.ones(100_000) for _ in range(20)]"
    row.locator("summary").press("Enter")
    lines = row.locator("pre.source span").all_text_contents()
    assert [int(line.split()[0]) for line in lines] == [4, 5, 6, 7]
    assert "def load():" in lines[0]
    assert row.locator("pre.source .current").inner_text().lstrip().startswith("5 ")
    assert page.locator("#findings pre.source").count() >= 1


def test_findings_come_first_with_the_next_step(page, page_of, document):
    first = page.locator("main section:visible").first
    assert "lost: 234.4 KiB of " in first.inner_text()
    assert "retained: " in first.inner_text()
    assert first.locator("li").count() == len(document["findings"])
    assert "Next step: " in first.locator("li").first.inner_text()
    healthy = page_of({**document, "findings": []})
    assert "No rule found a problem." in healthy.locator("#findings").inner_text()


def test_page_shows_leaks_holders_and_retention(page):
    assert "234.4 KiB in 1 buffer allocated in" in texts(page, "#lost summary")[0]
    page.locator("#holders-list summary").first.press("Enter")
    assert "__main__." in texts(page, "#holders-list details[open] pre")[0]


def test_holders_and_retention_are_grouped_by_site_and_holder(page, page_of, document):
    rows = texts(page, "#holders-list tbody tr")
    assert len(rows) < 20
    assert any("20 x __main__.kept[...]" in row and "load." in row for row in rows)
    assert column(page, "retention-list", 2) == ["3.8 MiB"]
    assert "1 x __main__.head, through a view" in texts(page, "#retention-list tbody tr")[0]
    old = {name: value for name, value in document.items() if name != "groups"}
    page = page_of(old)
    assert "MemInfo, refcount 1" in texts(page, "#holders-list summary")[0]
    assert "wasted: 3.8 MiB kept for" in texts(page, "#retention-list summary")[0]


def test_columns_without_content_are_hidden(page, document):
    heads = texts(page, "#live-table th")
    assert {"Size", "Name", "Scope"} <= {
        head.strip(" ▾▴") for head in heads
    }  # a few rows have some
    assert "Policy" not in heads
    said = page.locator("#live-table > .about").inner_text()
    assert said.startswith("All rows: ")
    assert "Policy run" in said


def test_size_histogram_switches_from_bytes_to_buffers(page, document):
    rows = document["highest"]["sizes"]
    assert columns(page, "sizes-chart")[1] == [size for _, _, size in rows]
    page.locator("#sizes-of").select_option("buffers")
    assert columns(page, "sizes-chart")[1] == [buffers for _, buffers, _ in rows]
    page.locator("#sizes-chart").press("End")
    said = page.locator("#sizes-reading").inner_text()
    assert said.endswith(f"in {rows[-1][1]:,} buffers")


def test_page_shows_settings_versions_and_options(page, document):
    for summary in page.locator("#settings summary").all():
        summary.press("Enter")
    said = page.locator("#settings").inner_text()
    for text in (document["memrt"], document["python"], document["numpy"], "MEMRT_DECAY"):
        assert text in said


def test_hostile_names_are_shown_as_text(page, document):
    assert page.evaluate("window.injected") is None
    assert page.locator("main img").count() == 0
    scopes = document["timeline"]["scopes"]
    assert any(HOSTILE in scope for scope in scopes)
    page.get_by_label("Search live buffers").fill(HOSTILE)
    wait_for_rows(page, 2)
    assert HOSTILE in page.locator("#live-table").inner_text()
    assert any(HOSTILE in name for name in legend(page))


def test_tab_key_reaches_the_main_sections(page):
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(
            "(document.activeElement.closest('section, nav, header, .skip') || {}).id || "
            "document.activeElement.textContent.trim()"
        ))  # fmt: skip
    for section in ("timeline", "highest", "flame", "live", "leaks", "holders", "retention"):
        assert section in reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_high_in_light_and_dark_mode(visit, recorded, scheme):
    page = visit(recorded.with_name("run.html"), color_scheme=scheme)
    back, front = page.evaluate(
        "(({backgroundColor, color}) => [backgroundColor, color].map((text) => "
        "text.match(/\\d+/g).slice(0, 3).map(Number)))(getComputedStyle(document.body))"
    )
    assert contrast(back, front) >= 7
    assert (sum(back) < sum(front)) == (scheme == "dark")
    axis = page.evaluate("document.getElementById('timeline-chart').plot.axes[0].stroke()")
    assert contrast(back, [int(axis[i : i + 2], 16) for i in (1, 3, 5)]) >= 7
    for call in page.locator("#flame-graph button").all()[:5]:
        colors = call.evaluate(
            "(element) => ['backgroundColor', 'color'].map((name) => "
            "getComputedStyle(element)[name].match(/[\\d.]+/g).slice(0, 3).map(Number))"
        )
        assert contrast(*colors) >= 4.5


def contrast(one, other):
    """Return the contrast ratio of two colors by WCAG's definition."""

    def luminance(color):
        parts = [part / 255 for part in color]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_narrow_window_needs_no_horizontal_scrolling(visit, recorded):
    page = visit(recorded.with_name("run.html"), viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    chart = page.locator("#timeline-chart canvas")
    assert 200 < chart.bounding_box()["width"] <= 400
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function("document.querySelector('#timeline-chart canvas').clientWidth > 400")
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_charts_are_printed_in_light_colors_and_fit_the_paper(visit, recorded):
    page = visit(recorded.with_name("run.html"), color_scheme="dark")
    dark = page.evaluate("document.getElementById('timeline-chart').plot.axes[0].stroke()")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    paper = page.evaluate("document.getElementById('timeline-chart').plot.axes[0].stroke()")
    assert (dark, paper) == ("#e7eaee", "#1a1d21")
    assert page.locator("#timeline-chart canvas").bounding_box()["width"] == 640
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#timeline-chart canvas").bounding_box()["width"] > 640


def test_paper_has_no_controls_and_whole_tables(page):
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without the margins
    page.emulate_media(media="print")
    for hidden in ("nav", "footer", "#all-frames", "#live input", "#timeline-controls label"):
        assert not page.locator(hidden).first.is_visible(), hidden
    assert page.locator("#live .count").is_visible()
    wide = (
        "(all) => all.filter((one) => one.scrollWidth > one.clientWidth)"
        ".map((one) => one.ariaLabel)"
    )
    assert page.locator(".scroll").evaluate_all(wide) == []


def test_legend_shows_the_style_of_lines(page_of, document):
    compared = {**document, "comparison": compare([document], [document])}
    page = page_of(compared)
    styles = (
        "(all) => all.map((one) => [one.innerText.trim(),"
        " getComputedStyle(one.querySelector('.u-marker')).borderStyle])"
    )
    shown = dict(page.locator("#timeline-chart .u-series").evaluate_all(styles))
    assert (shown["kept for reuse"], shown["resident"]) == ("dotted", "solid")
    shown = dict(page.locator("#comparison-chart .u-series").evaluate_all(styles))
    assert (shown["before"], shown["after"]) == ("dashed", "solid")


def many(document, count, readings_count):
    """Return a copy of a document with `count` live buffers, and with `readings_count` samples."""
    made = copy.deepcopy(document)
    rows = made["live"]["rows"]
    made["live"]["rows"] = [
        [i, (i * 7919) % 100_000, *rows[i % len(rows)][2:]] for i in range(count)
    ]
    line = made["timeline"]
    readings = len(line["t"])
    for name in ("live", "cached", "resident", "scoped"):
        line[name] = [line[name][i % readings] for i in range(readings_count)]
    line["live"][readings_count // 3] = 10**9
    line["t"] = [i / 1000 for i in range(readings_count)]
    return made


def test_page_of_a_million_buffers_is_fast(page_of, document):
    begin = time.monotonic()
    page = page_of(many(document, 1_000_000, 100_000))
    assert time.monotonic() - begin < 30  # on a machine under load
    took = page.evaluate(
        "() => { const begin = performance.now();"
        " document.querySelector('#live-table th:nth-child(3) button').click();"
        " document.body.getBoundingClientRect(); return performance.now() - begin; }"
    )
    assert took < 3000
    assert page.locator("#live-table tbody tr").count() == 25
    assert page.locator("#live-table .count").inner_text() == "1 to 25 of 1,000,000"
    assert page.evaluate("document.querySelectorAll('*').length") < 10_000
    readings = columns(page, "timeline-chart")
    assert len(readings[0]) <= 4000
    assert max(readings[1]) > 900_000_000  # the peak is among the readings


def test_recording_without_allocations_has_a_page(page_of, document):
    empty = copy.deepcopy(document)
    empty["timeline"] = {
        **{name: [] for name in ("t", "live", "cached", "resident", "scopes", "scoped")},
        "halvings": 0,
    }
    empty["highest"] = {"t": 0, "bytes": 0, "rows": [], "sizes": []}
    empty["live"]["rows"] = []
    for name in ("total", "lost", "held", "holders", "sites", "frames", "notes"):
        empty[name] = []
    for name in ("groups", "sources", "user_calls"):
        del empty[name]
    page = page_of(empty)
    assert "No moment was observed." in page.locator("#highest").inner_text()
    assert "Nothing is lost." in page.locator("#leaks").inner_text()


def test_page_of_two_processes_has_each_process_and_the_sum(page_of, document):
    child = copy.deepcopy(document)
    child.update(pid=document["pid"] + 1, parent=document["pid"], ended="ended with status 9")
    child["started"] += document["seconds"] / 2
    child["stats"] = [[name, unit, 4096] for name, unit, _ in child["stats"]]
    page = page_of(document, child)
    assert len(columns(page, "together-chart")) == 3
    assert column(page, "processes", 1) == [str(document["pid"]), str(child["pid"])]
    summit = max(document["timeline"]["live"])
    said = page.locator("#together-about").inner_text()
    most = amount(said.split(" is ")[1].split(";")[0])
    assert summit <= most * 1.01
    assert most <= 2.02 * summit
    page.get_by_role("button", name=f"Show process {child['pid']}").press("Enter")
    assert "ended with status 9" in page.locator("#subtitle").inner_text()
    assert page.locator("#figures dd").first.inner_text() == "4.0 KiB"
    page.locator("#process").select_option("0")
    assert "ended with status 9" not in page.locator("#subtitle").inner_text()


def test_page_compares_two_recordings(page, page_of, document):
    assert not page.locator("#comparison").is_visible()
    fixed = copy.deepcopy(document)
    for row in fixed["live"]["rows"]:
        row[1] //= 2
    fixed["timeline"]["t"] = [t + 0.0001 for t in fixed["timeline"]["t"]]
    fixed["comparison"] = compare([document], [fixed])
    page = page_of(fixed)
    assert texts(page, "h2")[0] == "Comparison"
    assert "Smaller at the end: load." in page.locator("#comparison-verdict").inner_text()
    assert column(page, "comparison-table", 3)[0] == "\u22127.6 MiB"
    assert len(columns(page, "comparison-chart")) == 3
    page.locator("#comparison-chart").press("Home")
    assert page.locator("#comparison-reading").inner_text().endswith(" before")


def test_page_of_a_single_process_has_no_process_choice(page):
    assert not page.locator("#together").is_visible()
    assert not page.locator("#process").is_visible()


# --- Choose a moment. ---


def listed(document):
    """Return the document with three listings, at the start, in the middle and at the end."""
    line = document["timeline"]["t"]
    one, two = (site for site, _, _ in document["sites"][:2])
    first = {"t": 0.0, "bytes": 0, "rows": [], "came": []}
    middle = {
        "t": line[-1] / 2,
        "bytes": 3072,
        "rows": [[one, "load", 2, 2048], [two, None, 1, 1024]],
        "came": [[one, 2, 2048], [two, 11, 11_264]],
    }
    last = {
        "t": line[-1],
        "bytes": 4096,
        "rows": [[one, "load", 4, 4096]],
        "came": [[one, 2, 2048], [two, 4, 4096]],
    }
    return {**document, "listings": [first, middle, last]}


def chosen_rows(page):
    """Return bytes and buffers of the table of sites."""
    heads = texts(page, "#highest-table th")
    sizes, buffers = (
        column(page, "highest-table", heads.index(name) + 1) for name in ("Bytes", "Buffers")
    )
    return list(zip(sizes, buffers, strict=True))


def point_of(page, part):
    """Return the point in the timeline after a part of the time from the first to last reading."""
    return page.evaluate(
        """part => {
            const chart = document.getElementById("timeline-chart");
            chart.scrollIntoView();
            const { plot } = chart, { left, top } = plot.over.getBoundingClientRect();
            const t = plot.data[0].at(-1) * part;
            return [left + plot.valToPos(t, "x"), top + 100];
        }""",
        part,
    )


def title_of_flame(page):
    return page.locator("#flame-graph button").first.get_attribute("title")


def test_click_on_the_timeline_shows_what_was_live(page_of, document):
    page = page_of(listed(document))
    before = chosen_rows(page)
    x, y = point_of(page, 0.55)
    page.mouse.click(x, y)
    assert chosen_rows(page) == [("2.0 KiB", "2"), ("1.0 KiB", "1")]
    assert title_of_flame(page).endswith("3.0 KiB, 100.0 %")
    half = document["timeline"]["t"][-1] / 2
    said = page.locator("#highest-about").inner_text()
    assert said.startswith(f"Live at {half:.3f} s, ")
    assert " before the chosen time: 3.0 KiB in tracked buffers." in said
    assert page.locator("#moment-about").inner_text() == said
    assert page.locator("#moment-range").is_hidden()
    page.get_by_role("button", name="Show the peak").click()
    assert chosen_rows(page) == before
    assert page.locator("#moment-controls").is_hidden()


def test_drag_on_the_timeline_shows_what_came_and_went(page_of, document):
    page = page_of(listed(document))
    (x, y), (to, _) = point_of(page, 0.45), point_of(page, 0.97)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to, y, steps=5)
    page.mouse.up()
    assert chosen_rows(page) == [("4.0 KiB", "4"), ("2.0 KiB", "2")]
    for mode, rows in {
        "freed": [("5.0 KiB", "5"), ("0 B", "0")],
        "temporary, at most": [("4.0 KiB", "4"), ("0 B", "0")],
        "change of live buffers": [("2.0 KiB", "2"), ("-1.0 KiB", "-1")],
    }.items():
        page.get_by_label("In the range").select_option(mode)
        assert [row for row in chosen_rows(page) if row != ("0 B", "0")] == [
            row for row in rows if row != ("0 B", "0")
        ]
        assert mode in page.locator("#h-highest").inner_text()
    assert title_of_flame(page).endswith("2.0 KiB, 100.0 %")
    said = page.locator("#moment-about").inner_text()
    assert "6.0 KiB allocated and 5.0 KiB freed, at most 4.0 KiB of both in the range." in said


def test_moment_and_range_are_chosen_by_keys(page_of, document):
    page = page_of(listed(document))
    before = chosen_rows(page)
    page.locator("#timeline-chart").focus()
    page.keyboard.press("Enter")
    assert chosen_rows(page) == before
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert chosen_rows(page) == [("4.0 KiB", "4")]
    assert "at the chosen time" in page.locator("#moment-about").inner_text()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+Enter")
    assert chosen_rows(page) == [("15.0 KiB", "15"), ("4.0 KiB", "4")]
    page.keyboard.press("Escape")
    assert chosen_rows(page) == before
    assert page.locator("#moment-about").inner_text() == ""


def test_page_says_how_far_the_highest_moment_is_from_the_peak(page_of, document):
    stats = [["peak", "bytes", 3 << 20], ["peak_error", "bytes", 1 << 20]]
    highest = {**document["highest"], "bytes": 2 << 20}
    page = page_of({**document, "stats": stats, "highest": highest})
    said = page.locator("#highest-about").inner_text()
    assert said.endswith("The peak is 3.0 MiB, within 2.0 MiB of this moment.")


def test_recording_without_listings_shows_the_peak_only(page_of, document):
    old = {name: value for name, value in document.items() if name != "listings"}
    page = page_of(old)
    before = chosen_rows(page)
    page.mouse.click(*point_of(page, 0.5))
    assert chosen_rows(page) == before
    assert page.locator("#moment-controls").is_hidden()
