"""Comparison of two recordings: pairs of source lines, and the verdict."""

import copy
import subprocess
import sys

import pytest
from gil import needs_gil
from memrt._profile.findings.comparison import compare
from memrt._profile.recording import loads

BEFORE = """\
import numpy as np
previews = []
def load():
    return np.ones(200_000)
def keep():
    image = np.ones(400_000)
    previews.append(image[:10])
for _ in range(5):
    keep()
table = load()
"""
AFTER = "# a fix that moves all lines\n" + BEFORE.replace("[:10]", "[:10].copy()").replace(
    "table = load()", "extra = np.ones(300_000)\ntable = load()"
)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Return the paths of a recording before a fix, and of a recording after."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "pyproject.toml").touch()
    for name, code in (("before", BEFORE), ("after", AFTER)):
        (folder / "program.py").write_text(code)
        command = [sys.executable, "-m", "memrt", "run", "--quiet", "--record"]
        subprocess.run(
            [*command, f"{name}.memrt", "program.py"], cwd=folder, check=True, timeout=60
        )
    return folder / "before.memrt", folder / "after.memrt"


@pytest.fixture
def documents(recordings):
    return [loads(path.read_bytes()) for path in recordings]


def test_moved_lines_are_paired_by_their_text(documents):
    rows = {row["source"]: row for row in compare(*documents)["rows"]}
    image = rows["image = np.ones(400_000)"]
    assert image["place"] == "keep at program.py:7"
    assert image["end"] == [5 * 3_200_000, 0]
    assert image["total"] == pytest.approx([5 * 3_200_000, 5 * 3_200_000], rel=0.01)
    assert rows["return np.ones(200_000)"]["end"] == [1_600_000, 1_600_000]
    assert rows["extra = np.ones(300_000)"]["end"] == [0, 2_400_000]
    assert next(iter(rows)) == "image = np.ones(400_000)"


def test_verdict_names_what_fell_and_rose(documents):
    verdict = compare(*documents)["verdict"]
    assert verdict[0].startswith("The peak fell from 16.8 MiB to ")
    assert verdict[1] == (
        "Memory live at the end fell from 16.8 MiB to 3.8 MiB: 13.0 MiB, 77% less."
    )
    assert "Smaller at the end: keep at program.py:7 from 15.3 MiB to 0 B." in verdict
    assert any(text.startswith("Larger at the end: <module> at program.py:") for text in verdict)


@needs_gil
def test_verdict_names_findings_no_longer_found(documents):
    verdict = compare(*documents)["verdict"]
    assert any(
        text.startswith("1 finding no longer found: retained in keep at program.py")
        for text in verdict
    )


@needs_gil  # for a finding of both
def test_equal_recordings_have_no_changes(documents):
    before, _ = documents
    found = compare(before, copy.deepcopy(before))
    assert found["verdict"][0] == "The peak is the same: 16.8 MiB and 16.8 MiB."
    assert "retained" in found["verdict"][-1]
    assert found["verdict"][-1].startswith("1 finding in both")
    assert len(found["verdict"]) == 3
    assert all(a == b for row in found["rows"] for a, b in (row["peak"], row["end"]))


def test_changed_line_is_paired_by_its_number(documents):
    before, _ = documents
    after = copy.deepcopy(before)
    for row in after[0]["sources"]:
        row[3] = [f"{text}  # changed" for text in row[3]]
    assert len(compare(before, after)["rows"]) == len(compare(before, before)["rows"])


def test_recordings_without_source_text_are_paired_by_line(documents):
    before, after = documents
    for document in (*before, *after):
        del document["sources"], document["user_calls"], document["findings"]
    rows = {row["place"]: row for row in compare(before, after)["rows"]}
    assert rows["keep at program.py:6"]["end"] == [5 * 3_200_000, 0]
    assert rows["keep at program.py:7"]["end"] == [0, 0]


def test_report_of_two_recordings_prints_the_verdict(recordings):
    before, after = recordings
    command = [sys.executable, "-m", "memrt", "report"]
    result = subprocess.run(
        [*command, before, after], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.startswith("The peak fell from 16.8 MiB to ")
    assert result.stdout.splitlines()[-1] == f"memrt: page in {after.with_suffix('.html')}"
    page = after.with_suffix(".html").read_text()
    assert "Smaller at the end: keep at program.py:7" in page
    refused = subprocess.run(
        [*command, before, after, "-o", before], capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 2
    assert "is the recording itself" in refused.stderr
