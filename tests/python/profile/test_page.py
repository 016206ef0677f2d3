"""HTML text of a report page, without a browser. tests/report uses pages in a browser."""

from importlib import resources

from memrt._profile.page import render

DOCUMENT = {"program": ["program.py"], "memrt": "0.1.0"}


def test_page_contains_each_file_of_the_script_once():
    page = render([DOCUMENT]).decode()
    folder = resources.files("memrt") / "_profile" / "page_script"
    parts = [part.read_text() for part in folder.iterdir() if part.name.endswith(".js")]
    assert len(parts) > 1
    assert [page.count(part) for part in parts] == [1] * len(parts)
    assert page.count("<script") == 3  # recording, uPlot, script of the page


def test_page_without_data_is_small_and_has_the_licence_of_uplot():
    page = render([DOCUMENT])
    assert len(page) < 150_000
    assert b"The MIT License" in page
