"""HTML text of a report page, without a browser. tests/report uses pages in a browser."""

import base64
import json
import re
import struct
from importlib import resources

import pytest
from memrt._profile.ending import COLUMNS
from memrt._profile.page import render

EMPTY = {"columns": list(COLUMNS), "rows": [], "more": 0}
DOCUMENT = {"program": ["program.py"], "memrt": "0.1.0", "live": EMPTY}


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


def unpacked(column, count):
    """Return the width of a packed column, and its values for `count` rows."""
    width, values = column["width"], column["values"]
    if width == 0:
        return 0, values * count
    code = {1: "B", 2: "H", 4: "I", 8: "d"}[width]
    cells = struct.unpack(f"<{count}{code}", base64.b64decode(column["cells"]))
    return width, [column["start"] + cell if values is None else values[cell] for cell in cells]


@pytest.mark.parametrize(
    ("values", "width"),
    [
        (["<load>"], 0),
        ([None, "load"], 1),
        ([i % 300 for i in range(1000)], 2),
        ([2**46 + 64 * i for i in range(70_000)], 4),
        ([2**34 * i for i in range(70_000)], 8),
        ([i / 8 for i in range(70_000)], 8),
        ([f"name {i}" for i in range(70_000)], 4),
    ],
)
def test_packed_column_has_the_values_of_the_rows(values, width):
    rows = [[1] * (len(COLUMNS) - 1) + [value] for value in values]
    page = render([{**DOCUMENT, "live": {**EMPTY, "rows": rows}}]).decode()
    (text,) = re.findall(r'id="recording">(.*)</script>', page)
    live = json.loads(text)[0]["live"]
    assert (list(live["packed"]), live["count"]) == (list(COLUMNS), len(values))
    assert unpacked(live["packed"]["id"], len(values)) == (0, [1] * len(values))
    assert unpacked(live["packed"][COLUMNS[-1]], len(values)) == (width, values)
