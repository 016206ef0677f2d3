"""Findings of recordings at their source lines: `convert --to sarif` and `--to problems`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import memrt
import pytest
from gil import needs_gil
from memrt._profile.recording import dumps, loads
from memrt.commands.formats.findings import HELD, LOST, RETAINED, Line, find

PROGRAM = """\
import ctypes
import numpy as np

cache = {}

def load():
    return np.ones((1000, 100))

def head():
    return load()[:2]

def lose():
    array = np.zeros(50_000)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))

for n in range(3):
    cache[n] = head()
lose()
kept = [np.ones(1000) for _ in range(4)]
"""

# Requirements of sarif-schema-2.1.0.json for the objects that memrt writes.
TEXT = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}},
        "required": ["text"], "additionalProperties": False}  # fmt: skip
LEVEL = {"enum": ["none", "note", "warning", "error"]}
NATURAL = {"type": "integer", "minimum": 0}
ARTIFACT = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "pattern": r"^[!#-;=?-\[\]_a-z~%]+$"},
        "uriBaseId": {"const": "SRCROOT"},
    },
    "required": ["uri"],
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {
        "id": NATURAL,
        "physicalLocation": {
            "type": "object",
            "properties": {
                "artifactLocation": ARTIFACT,
                "region": {
                    "type": "object",
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                    "additionalProperties": False,
                },
            },
            "required": ["artifactLocation"],
            "additionalProperties": False,
        },
        "message": TEXT,
    },
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "shortDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {
            "type": "object",
            "properties": {"level": LEVEL},
            "additionalProperties": False,
        },
    },
    "required": ["id"],
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": NATURAL,
        "level": LEVEL,
        "message": TEXT,
        "properties": {"type": "object"},
        "locations": {"type": "array", "items": LOCATION, "maxItems": 1},
        "relatedLocations": {"type": "array", "items": LOCATION, "uniqueItems": True},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["message"],
    "additionalProperties": False,
}
RUN = {
    "type": "object",
    "properties": {
        "tool": {
            "type": "object",
            "properties": {
                "driver": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "semanticVersion": {"type": "string"},
                        "rules": {"type": "array", "items": RULE, "uniqueItems": True},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                }
            },
            "required": ["driver"],
            "additionalProperties": False,
        },
        "originalUriBaseIds": {"type": "object", "additionalProperties": {
            "type": "object", "properties": {"uri": {"type": "string", "pattern": "^file:///.*/$"}},
            "additionalProperties": False}},
        "results": {"type": "array", "items": RESULT},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    },
    "required": ["tool"],
    "additionalProperties": False,
}  # fmt: skip
SARIF = {
    "type": "object",
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
    "required": ["version", "runs"],
    "additionalProperties": False,
}


def command(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, "-m", "memrt", *map(str, arguments)], **options)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a folder with the program, in a folder with a space, and its recording."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "my code").mkdir()
    (folder / "my code" / "tiles.py").write_text(PROGRAM)
    result = command("run", "--quiet", "--record", "r", "my code/tiles.py", cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")
    return folder


@needs_gil
def test_sarif_output_matches_its_schema_and_names_the_lines(recorded):
    result = command("convert", "r", "--to", "sarif", cwd=recorded)
    assert (result.returncode, result.stderr) == (0, "")
    content = json.loads(result.stdout)
    jsonschema.validate(content, SARIF)
    (run,) = content["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    found = []
    for each in run["results"]:
        (location,) = each["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"] == {"uri": "my%20code/tiles.py", "uriBaseId": "SRCROOT"}
        assert rules[each["ruleIndex"]] == each["ruleId"]
        found.append((each["ruleId"], each["level"], physical["region"]["startLine"]))
    assert found == [
        ("lost-buffer", "error", 13),
        ("view-keeps-buffer", "warning", 7),
        ("held-at-end", "note", 7),
        ("held-at-end", "note", 19),
    ]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"{recorded.as_uri()}/"
    lost, retained, held, _ = run["results"]
    assert lost["message"]["text"] == "1 buffer of 390.6 KiB is lost: no Python object holds it"
    assert retained["message"]["text"].startswith("small views keep 2.3 MiB in 3 buffers alive")
    assert "3 x `__main__.cache[...]`" in held["message"]["text"]
    assert held["properties"] == {"bytes": 2_400_000, "buffers": 3}
    lines = [each["physicalLocation"]["region"]["startLine"] for each in held["relatedLocations"]]
    assert lines == [10, 17]
    prints = [each["partialFingerprints"]["memrtPlace/v1"] for each in run["results"]]
    assert len(set(prints)) == 4


@needs_gil
def test_problems_are_lines_that_the_matcher_of_the_guide_reads(recorded):
    result = command("convert", "r", "--to", "problems", cwd=recorded)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "my code/tiles.py:13: error: 1 buffer of 390.6 KiB is lost: no Python object holds it "
        "[lost-buffer]"
    )
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "reports.md").read_text()
    matcher = json.loads(re.search(r"```text\n(\{.*?)```", guide, re.DOTALL)[1])
    pattern = matcher["tasks"][0]["problemMatcher"]["pattern"]
    assert len(lines) == 4
    for line in lines:
        found = re.fullmatch(pattern["regexp"], line)
        assert found[pattern["file"]] == "my code/tiles.py"
        assert found[pattern["severity"]] in ("error", "warning", "info")
        assert int(found[pattern["line"]]) in (7, 13, 19)
        assert found[pattern["message"]].endswith("]")


def test_findings_need_a_recording(tmp_path):
    with memrt.debug.trace(tmp_path / "t"):
        pass
    result = command("convert", "t", "--to", "sarif", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "memrt: 't' is a trace, and --to sarif needs a recording: record the program with "
        "`python -m memrt run --record FILE SCRIPT`\n"
    )


@pytest.fixture
def document(tmp_path):
    """Return the document of a recording without findings."""
    memrt.debug.dump(tmp_path / "d")
    (found,) = loads((tmp_path / "d").read_bytes())
    return {**found, "lost": [], "held": [], "retention": {"count": 0, "wasted": 0, "buffers": []}}


def group(place, *lines, buffers=1):
    return {"bytes": 2048 * buffers, "buffers": buffers, "place": place, "lines": list(lines)}


@pytest.mark.parametrize(
    ("place", "calls", "expected"),
    [
        ("f at /p/a.py:1", [], Line("f", "/p/a.py", 1)),
        ("f at /lib/a.py:1", ["g at /p/b.py:2"], Line("g", "/p/b.py", 2)),
        ("f at /p/.venv/lib/site-packages/a.py:1", ["g at /p/b.py:2"], Line("g", "/p/b.py", 2)),
        ("f at /lib/a.py:1", ["g at /lib/b.py:2"], Line("f", "/lib/a.py", 1)),
        ("f at <string>:1", [], Line("f", "<string>", 1)),
        ("malloc+0x1f in libc.so", [], None),
        (None, [], None),
    ],
)
def test_place_of_a_finding_is_the_innermost_call_in_the_project(document, place, calls, expected):
    lines = [f"called from {call}" for call in calls]
    document["held"] = [group(place, *lines, "2 x `a.b`", "└─ c")]
    (found,) = find([document], "/p")
    assert (found.rule, found.place) == (HELD, expected)
    assert found.message == "1 buffer of 2.0 KiB is live at the end: 2 x `a.b`"


def test_findings_of_all_processes_are_sorted_by_level_and_size(document):
    other = {**document, "lost": [group("f at /p/a.py:1"), group("f at /p/b.py:1", buffers=2)]}
    document["held"] = [group("f at /p/c.py:1", buffers=9)]
    views = [{"why": "", "wasted": n, "lines": ["1 B MemInfo, allocated in f at /p/d.py:1"]}
             for n in (1, 2)]  # fmt: skip
    views.append({"why": "", "wasted": 5, "lines": []})
    document["retention"] = {**document["retention"], "buffers": views}
    found = find([document, other], "/p")
    assert [(each.rule, each.nbytes, each.buffers) for each in found] == [
        (LOST, 4096, 2), (LOST, 2048, 1), (RETAINED, 5, 1), (RETAINED, 3, 2), (HELD, 18432, 9),
    ]  # fmt: skip
    assert found[0].message == "2 buffers of 4.0 KiB are lost: no Python object holds them"
    assert (found[2].place, found[3].place) == (None, Line("f", "/p/d.py", 1))


def test_strange_names_stay_one_line_and_one_uri(document, tmp_path):
    strange = "f\n\x1b[31m at /p/a b\n\udcff#.py:0"
    document["held"] = [group(strange), group(None)]
    document["lost"] = [group("f at <string>:3")]
    (tmp_path / "r").write_text(dumps([document]))
    result = command("convert", "r", "--to", "problems", cwd=tmp_path)
    assert result.stdout.splitlines() == [
        "<string>:3: error: 1 buffer of 2.0 KiB is lost: no Python object holds it [lost-buffer]",
        "/p/a b??#.py:0: info: 1 buffer of 2.0 KiB is live at the end [held-at-end]",
    ]
    result = command("convert", "r", "--to", "sarif", cwd=tmp_path)
    content = json.loads(result.stdout)
    jsonschema.validate(content, SARIF)
    inside, outside, unknown = content["runs"][0]["results"]
    assert "locations" not in unknown
    place = outside["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "file:///p/a%20b%0A%3F%23.py"}}
    assert "uriBaseId" not in inside["locations"][0]["physicalLocation"]["artifactLocation"]
    assert os.linesep not in place["artifactLocation"]["uri"]
