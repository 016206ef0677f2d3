"""Findings of recordings at their source lines: `convert --to sarif` and `--to problems`."""

import json
import os
import re
from pathlib import Path

import jsonschema
import memrt
import pytest
from command_line import run_memrt
from gil import needs_gil
from memrt._profile.findings.verdict import _RULES
from memrt._profile.recording import dumps, loads
from memrt.commands.formats.findings import RULES, Line, read_findings

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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a folder with the program, in a folder with a space, and its recording."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "my code").mkdir()
    (folder / "my code" / "tiles.py").write_text(PROGRAM)
    result = run_memrt("run", "--quiet", "--record", "r", "my code/tiles.py", cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")
    return folder


@needs_gil
def test_sarif_output_matches_its_schema_and_names_the_lines(recorded):
    result = run_memrt("convert", "r", "--to", "sarif", cwd=recorded)
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
    assert found == [("lost", "error", 13), ("retained", "warning", 7)]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"{recorded.as_uri()}/"
    lost, retained = run["results"]
    assert "are lost: no Python object holds 1 buffer" in lost["message"]["text"]
    assert "Next step: copy the part" in retained["message"]["text"]
    assert retained["properties"] == {"bytes": 2_395_200}
    calls = [each["message"]["text"] for each in retained["relatedLocations"]]
    assert calls == ["ones", "head", "<module>"]
    prints = [each["partialFingerprints"]["memrtPlace/v1"] for each in run["results"]]
    assert len(set(prints)) == 2


@needs_gil
def test_problems_are_lines_that_the_matcher_of_the_guide_reads(recorded):
    result = run_memrt("convert", "r", "--to", "problems", cwd=recorded)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "leaks" / "editors.md").read_text()
    matcher = json.loads(re.search(r"```text\n(\{.*?)```", guide, re.DOTALL)[1])
    pattern = matcher["tasks"][0]["problemMatcher"]["pattern"]
    names = ("file", "line", "severity")
    matches = [re.fullmatch(pattern["regexp"], line) for line in lines]
    assert [tuple(found[pattern[name]] for name in names) for found in matches] == [
        ("my code/tiles.py", "13", "error"),
        ("my code/tiles.py", "7", "warning"),
    ]
    assert matches[1][pattern["message"]].endswith(" [retained]")


def test_findings_need_a_recording(tmp_path):
    with memrt.debug.trace(tmp_path / "t"):
        pass
    result = run_memrt("convert", "t", "--to", "sarif", cwd=tmp_path)
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
    return {**found, "findings": []}


def finding(rule, nbytes, *calls):
    return {"rule": rule, "bytes": nbytes, "text": "5 bytes", "fix": "copy", "place": None,
            "holder": None, "calls": list(calls)}  # fmt: skip


def test_every_rule_of_the_verdict_has_a_level():
    assert list(RULES) == [rule.__name__.removeprefix("find_") for rule in _RULES]


def test_findings_of_all_processes_are_sorted_by_rule_and_size(document):
    found = [finding("wide", 9), finding("lost", 1, ["f", "/p/a.py", 3]), finding("of 2030", 7)]
    first, second = {**document, "findings": found}, {**document, "findings": [finding("lost", 2)]}
    read = read_findings([first, second])
    assert [(each.rule, each.nbytes, each.calls) for each in read] == [
        ("lost", 2, ()), ("lost", 1, (Line("f", "/p/a.py", 3),)), ("wide", 9, ()),
    ]  # fmt: skip


def test_strange_names_stay_one_line_and_one_uri(document, tmp_path):
    document["findings"] = [
        finding("lost", 3, ["f", "<string>", 3]),
        finding("lost", 2, ["f\n\x1b[31m", "/p/a b\n\udcff#.py", 0]),
        finding("lost", 1),
    ]
    (tmp_path / "r").write_text(dumps([document]))
    result = run_memrt("convert", "r", "--to", "problems", cwd=tmp_path)
    assert result.stdout.splitlines() == [
        "<string>:3: error: 5 bytes. Next step: copy [lost]",
        "/p/a b??#.py:0: error: 5 bytes. Next step: copy [lost]",
    ]
    result = run_memrt("convert", "r", "--to", "sarif", cwd=tmp_path)
    content = json.loads(result.stdout)
    jsonschema.validate(content, SARIF)
    inside, outside, unknown = content["runs"][0]["results"]
    assert "locations" not in unknown
    place = outside["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "file:///p/a%20b%0A%3F%23.py"}}
    assert "uriBaseId" not in inside["locations"][0]["physicalLocation"]["artifactLocation"]
    assert os.linesep not in place["artifactLocation"]["uri"]
